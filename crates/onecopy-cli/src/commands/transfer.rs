//! What `cp` and `sync` share: settings, a line per item, the summary.

use std::fmt;

use onecopy::config::RANGE_BYTES;
use onecopy::setting::spelled;
use onecopy::store::Attributes;
use onecopy::store::shown_url;
use onecopy::sync::{Arc, Mutex};
use onecopy::transfer::{Action, Filter, Item, Observer, Settings, Stop, Summary};
use onecopy::{Error, Result};
use serde::Serialize;

use super::figures::human;
use super::{Context, Outcome, load_config};
use crate::args::TransferArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Bar;
use crate::stdout::Reader;
use crate::words;

pub(super) fn settings(args: &TransferArgs) -> Result<Settings> {
    let load = load_config(&args.store, &args.reading);
    let mut filter = Filter::default();
    for (is_included, pattern) in &args.rules.0 {
        filter.add(*is_included, pattern)?;
    }
    Ok(Settings {
        store: load.store,
        memory_bytes: load.memory_bytes,
        range_bytes: load.range_bytes.unwrap_or(RANGE_BYTES),
        filter,
        is_dry_run: args.is_dry_run,
        is_synced_to_disk: args.is_synced_to_disk,
        is_following_links: !args.is_not_following_links,
        attributes: attributes(args)?,
        is_guessing_type: !args.attributes.is_not_guessing_type,
        ..Settings::default()
    })
}

fn attributes(args: &TransferArgs) -> Result<Attributes> {
    let typed = &args.attributes;
    let mut attributes = Attributes::default();
    for (name, value) in [
        ("content-type", &typed.content_type),
        ("content-encoding", &typed.content_encoding),
        ("content-disposition", &typed.content_disposition),
        ("cache-control", &typed.cache_control),
        ("x-amz-storage-class", &typed.storage_class),
        ("x-amz-acl", &typed.acl),
        ("x-amz-server-side-encryption", &typed.sse),
        (
            "x-amz-server-side-encryption-aws-kms-key-id",
            &typed.sse_kms_key_id,
        ),
    ] {
        if let Some(value) = value {
            attributes.set(name, value)?;
        }
    }
    for (name, value) in &typed.metadata {
        attributes.set(&format!("x-amz-meta-{name}"), value)?;
    }
    Ok(attributes)
}

/// Runs `work` with an observer that prints a line per item, and makes the outcome of what it came to.
pub(super) fn run(
    operation: &'static str,
    context: &Context,
    work: impl FnOnce(&Arc<dyn Observer>, &Stop) -> Result<Summary>,
) -> Result<Outcome> {
    let lines = Arc::new(Lines::new(operation, context));
    let observer: Arc<dyn Observer> = Arc::<Lines>::clone(&lines);
    let summary = work(&observer, &Stop::at(context.interrupt.flag()))?;
    drop(observer);
    let reader = lines.check()?;
    drop(lines);
    let exit = Exit::answer(summary.failed == 0).read_by(reader);
    let told = Told {
        schema: 1,
        operation,
        summary,
    };
    if !context.is_quiet && !context.output.is_json() {
        context.output.note(&told.line());
    }
    Ok(Outcome::new(told, exit))
}

/// Tells a command that cannot be, of several: an item of that `operation` that failed.
pub(super) fn refuse(
    operation: &'static str,
    context: &Context,
    sources: &[String],
    target: &str,
    error: &Error,
) -> Result<Reader> {
    let sources: Vec<_> = sources.iter().map(|url| shown_url(url)).collect();
    let lines = Lines::new("run", context);
    let item = Item {
        action: Action::Copy,
        source: &sources.join(" "),
        target: Some(&shown_url(target)),
        len_bytes: None,
        is_planned: false,
        error: Some(error),
    };
    lines.tell(operation, &item);
    lines.check()
}

/// The summary: as JSON the last object on stdout. As text it goes to stderr, so that stdout has items only.
#[derive(Debug, Serialize)]
struct Told {
    schema: u32,
    operation: &'static str,
    #[serde(flatten)]
    summary: Summary,
}

impl fmt::Display for Told {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Told {
    fn line(&self) -> String {
        let summary = &self.summary;
        let seconds = summary.ledger.seconds;
        let would = if summary.is_dry_run {
            "would have "
        } else {
            ""
        };
        let mut line = format!(
            "{would}copied {} ({}) in {seconds:.1} s, {:.2} GB/s",
            summary.copied,
            human(summary.copied_bytes),
            summary.ledger.payload_bytes as f64 / 1e9 / seconds.max(1e-9),
        );
        for (count, word) in [
            (summary.deleted, "deleted"),
            (summary.unchanged, "unchanged"),
            (summary.failed, "failed"),
        ] {
            if count > 0 {
                line += &format!(", {word} {count}");
            }
        }
        line
    }
}

/// A line per item: on stdout what was done, on stderr what failed.
struct Lines {
    operation: &'static str,
    output: Output,
    is_quiet: bool,
    bar: Bar,
    /// Guards what became of the lines, and why one could not be written the first time; held to set and to take it.
    written: Mutex<Result<Reader>>,
}

impl Lines {
    fn new(operation: &'static str, context: &Context) -> Self {
        Self {
            operation,
            output: context.output,
            is_quiet: context.is_quiet,
            bar: context.progress.bytes(operation),
            written: Mutex::new(Ok(Reader::There)),
        }
    }

    fn line(&self, line: &str) {
        let written = self.output.line(line);
        let mut so_far = self.written.lock();
        // Neither is a reason to stop the work.
        match written {
            Ok(Reader::There) => {}
            Ok(Reader::Gone) if so_far.is_err() => {}
            Err(_) if so_far.is_err() => {}
            other => *so_far = other,
        }
    }

    fn tell(&self, operation: &'static str, item: &Item<'_>) {
        self.bar.suspend(|| {
            if let Some(error) = item.error {
                self.output.note(&format!("onecopy: {}", told(error)));
            }
            if self.output.is_json() {
                self.line(&json(operation, item));
            } else if item.error.is_none() && !self.is_quiet {
                self.line(&text(item));
            }
        });
    }

    /// An error where lines are missing: whoever reads them would take items for not done.
    fn check(&self) -> Result<Reader> {
        std::mem::replace(&mut *self.written.lock(), Ok(Reader::There))
    }
}

/// An item as JSON, in the form of s5cmd's.
#[derive(Debug, Serialize)]
struct Line<'a> {
    operation: &'static str,
    success: bool,
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    len_bytes: Option<u64>,
    is_dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

#[derive(Debug, Serialize)]
struct Failure {
    kind: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

impl Observer for Lines {
    fn item(&self, item: &Item<'_>) {
        self.tell(item.action.name(), item);
    }

    fn moved(&self, bytes: u64) {
        self.bar.add(bytes);
    }

    fn ended(&self, summary: &Summary) {
        if summary.copied + summary.deleted + summary.failed == 0 {
            return;
        }
        let told = Told {
            schema: 1,
            operation: self.operation,
            summary: summary.clone(),
        };
        self.bar.suspend(|| {
            if self.output.is_json() {
                self.line(&serde_json::to_string(&told).unwrap_or_default());
            } else if !self.is_quiet {
                self.output.note(&told.line());
            }
        });
    }
}

/// An error with its help in the words of this command.
fn told(error: &Error) -> String {
    let text = format!("{error:#}");
    match text.rsplit_once("\nhelp: ") {
        Some((what, help)) => format!("{what}\nhelp: {}", spelled(help, words::flag)),
        None => text,
    }
}

fn text(item: &Item<'_>) -> String {
    let planned = if item.is_planned { "(dry run) " } else { "" };
    let target = item
        .target
        .map(|target| format!(" {target}"))
        .unwrap_or_default();
    format!("{planned}{} {}{target}", item.action.name(), item.source)
}

fn json(operation: &'static str, item: &Item<'_>) -> String {
    let line = Line {
        operation,
        success: item.error.is_none(),
        source: item.source,
        destination: item.target,
        len_bytes: item.len_bytes,
        is_dry_run: item.is_planned,
        error: item.error.map(|error| Failure {
            kind: error.kind().name(),
            message: error.to_string(),
            help: error.help().map(|help| spelled(help, words::flag)),
        }),
    };
    serde_json::to_string(&line).unwrap_or_default()
}
