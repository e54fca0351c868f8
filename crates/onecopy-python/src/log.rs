//! Warnings of the engine's threads, kept until a Python thread comes by to log them: those threads never wait for the
//! interpreter.

use std::fmt::{self, Write};
use std::sync::Once;

use onecopy::sync::Mutex;
use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Messages that wait at most; what comes after is counted only. A broken dataset must not fill the memory.
const WAITING: usize = 1000;

/// What waits to be logged.
static LOG: Mutex<Waiting> = Mutex::new(Waiting {
    messages: Vec::new(),
    dropped: 0,
});

struct Waiting {
    messages: Vec<String>,
    dropped: u64,
}

/// Begins to keep warnings, unless this process has a subscriber already.
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // The command may have installed its own: then warnings go there.
        let _taken = tracing::subscriber::set_global_default(Keeper);
    });
}

/// Hands out the messages that wait, oldest first.
#[pyfunction]
pub(crate) fn drain_log() -> Vec<String> {
    let mut waiting = LOG.lock();
    let mut messages = std::mem::take(&mut waiting.messages);
    let dropped = std::mem::take(&mut waiting.dropped);
    if dropped > 0 {
        messages.push(format!("{dropped} more warnings"));
    }
    messages
}

/// Keeps warnings and errors; knows no spans.
struct Keeper;

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("onecopy")
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let mut waiting = LOG.lock();
        if waiting.messages.len() < WAITING {
            waiting
                .messages
                .push(format!("{}{}", text.message, text.fields));
        } else {
            waiting.dropped += 1;
        }
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// An event as one line: the message, then `: value` for an error, ` name=value` for the rest.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing into a String cannot fail.
        let _infallible = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            "error" => write!(self.fields, ": {value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
