//! The only writer of stdout: text or JSON, both from one value. Errors, once, on stderr.

use std::ffi::OsString;
use std::fmt::{Debug, Display};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use onecopy::{Error, ErrorKind, Result};
use serde::Serialize;
use tracing_subscriber::EnvFilter;

use crate::exit::Exit;

/// What a command found: shown as text, or as JSON.
pub(crate) trait Shown: Display + Debug + Send {
    /// The JSON form: one object with `"schema": 1`.
    fn json(&self) -> serde_json::Result<String>;
}

impl<T: Display + Debug + Send + Serialize> Shown for T {
    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

/// Where results and errors go, and in which form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    is_json: bool,
    /// Text shows what is left out otherwise.
    is_verbose: bool,
    /// Stdout carries objects' bytes, so JSON must not get in between them: it goes to stderr.
    is_stdout_taken: bool,
}

impl Output {
    pub(crate) const fn new(is_json: bool, is_verbose: bool, is_stdout_taken: bool) -> Self {
        Self {
            is_json,
            is_verbose,
            is_stdout_taken,
        }
    }

    /// Shows a result. A reader that has gone away is a quiet end.
    pub(crate) fn show(&self, value: &dyn Shown) -> Result<()> {
        let text = if self.is_json {
            let json = value.json().map_err(|error| {
                Error::bug("write the result as JSON", error.to_string()).with_source(error)
            })?;
            json + "\n"
        } else {
            self.text(value)
        };
        self.write(&text)
            .or_else(quiet_if_gone)
            .map_err(|error| Error::io("write", "the result to stdout", error))
    }

    fn text(&self, value: &dyn Shown) -> String {
        if self.is_verbose {
            format!("{value:#}")
        } else {
            value.to_string()
        }
    }

    /// Prints `error` once: on stderr as people read it, and with `--json` on stdout as programs
    /// do.
    pub(crate) fn fail(&self, error: &Error) -> Exit {
        // There is nowhere to report that stderr is closed.
        let _closed = writeln!(io::stderr(), "onecopy: {error:#}");
        if self.is_json {
            let failure = Failure::new(error.kind(), error.to_string(), error.help());
            let _gone = self.write(&failure.line());
        }
        Exit::from(error)
    }

    pub(crate) const fn is_json(&self) -> bool {
        self.is_json
    }

    /// Shows one line of a result that comes line by line. A reader that has gone away is no reason to stop the work.
    pub(crate) fn line(&self, line: &str) -> io::Result<()> {
        self.write(&format!("{line}\n")).or_else(quiet_if_gone)
    }

    /// Says something beside the result, on stderr.
    pub(crate) fn note(&self, line: &str) {
        // There is nowhere to report that stderr is closed.
        let _closed = writeln!(io::stderr(), "{line}");
    }

    fn write(&self, text: &str) -> io::Result<()> {
        if self.is_stdout_taken {
            return io::stderr().write_all(text.as_bytes());
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }
}

/// Says `text` on stderr.
pub(crate) fn remark(text: &str) {
    // There is nowhere to report that stderr is closed.
    let _closed = writeln!(io::stderr(), "onecopy: {text}");
}

/// Stdout for bytes: a file without a buffer, so that a slice goes from its slab to the kernel and
/// nowhere else.
pub(crate) fn stdout_for_bytes() -> Result<File> {
    let fd = io::stdout().as_fd().try_clone_to_owned();
    fd.map(File::from)
        .map_err(|error| Error::io("open", "stdout", error))
}

/// Whether a write failed because nobody reads any more, as after `| head`.
pub(crate) fn quiet_if_gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(());
    }
    Err(error)
}

/// Answers arguments that say nothing to run: help and version on stdout, a refusal as an error.
pub(crate) fn refuse(refusal: &clap::Error, typed: &[OsString]) -> Exit {
    let _closed = refusal.print();
    if !refusal.use_stderr() {
        return Exit::Done;
    }
    if typed.iter().any(|word| word == "--json") {
        let text = refusal.render().to_string();
        let message = text.lines().next().unwrap_or_default();
        let message = message.trim_start_matches("error: ");
        let help = Some("see onecopy --help");
        let failure = Failure::new(ErrorKind::InvalidInput, message, help);
        let _gone = Output::new(true, false, false).write(&failure.line());
    }
    Exit::Failed
}

/// Sends the engine's log to stderr: from `level` on (`debug`, or `onecopy=trace`), else warnings.
pub(crate) fn log_to_stderr(level: Option<&str>) -> Result<()> {
    let filter = EnvFilter::builder()
        .parse(level.unwrap_or("warn"))
        .map_err(|error| {
            Error::new(
                ErrorKind::InvalidInput,
                "log at",
                format!("{:?}", level.unwrap_or_default()),
                "there is no such level",
            )
            .with_help("use --log error, warn, info, debug or trace")
            .with_source(error)
        })?;
    let is_coloured = io::stderr().is_terminal() && !is_colour_unwanted();
    // A second call in one process keeps the first one's settings.
    let _kept = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(is_coloured)
        .try_init();
    Ok(())
}

/// <https://no-color.org>: set, and not empty.
fn is_colour_unwanted() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// An error as programs read it.
#[derive(Debug, Serialize)]
struct Failure {
    schema: u32,
    error: Told,
}

#[derive(Debug, Serialize)]
struct Told {
    kind: &'static str,
    message: String,
    help: Option<String>,
}

impl Failure {
    fn new(kind: ErrorKind, message: impl Into<String>, help: Option<&str>) -> Self {
        let error = Told {
            kind: kind.name(),
            message: message.into(),
            help: help.map(str::to_owned),
        };
        Self { schema: 1, error }
    }

    fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}
