//! `onecopy index`: how many samples shards have, and where they begin.

use std::fmt;

use onecopy::pack::{IndexObserver, IndexSettings, IndexSummary};
use onecopy::sample::SampleOptions;
use onecopy::setting::spelled;
use onecopy::sync::{Arc, Mutex};
use onecopy::transfer::Stop;
use onecopy::{Error, Result};
use serde::Serialize;

use super::figures::human;
use super::{Context, Outcome, store_config};
use crate::args::IndexArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Bar;
use crate::words;

pub(super) fn run(args: &IndexArgs, context: &Context) -> Result<Outcome> {
    let mut store = store_config(&args.store);
    if let Some(connections) = args.connections {
        store.limits.connections = connections;
    }
    let settings = IndexSettings {
        store,
        memory_bytes: args.memory,
        options: SampleOptions {
            key_rule: args.key_rule,
            duplicates: args.duplicates,
            on_error: args.on_error.clone(),
            ..SampleOptions::default()
        },
        out: args.out.clone(),
        is_forced: args.is_forced,
        ..IndexSettings::default()
    };
    let shards = Arc::new(Shards {
        bar: context.progress.shards("index"),
        output: context.output,
        failures: Mutex::default(),
    });
    let observer: Arc<dyn IndexObserver> = Arc::<Shards>::clone(&shards);
    let stop = Stop::at(context.interrupt.flag());
    let summary = onecopy::pack::index(&args.urls, &settings, &observer, &stop)?;
    let failures = std::mem::take(&mut *shards.failures.lock());
    let is_whole = summary.failed == 0 && summary.ledger.skipped.is_empty();
    let told = Told {
        schema: 1,
        seconds: summary.ledger.seconds,
        summary,
        failures,
    };
    Ok(Outcome::new(told, Exit::answer(is_whole)))
}

/// A shard that failed.
#[derive(Debug, Serialize)]
struct Failure {
    shard: String,
    kind: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

/// Tells of failures as they come, and keeps them for the result.
struct Shards {
    bar: Bar,
    output: Output,
    /// Guards the failures so far; held to add one and to take them.
    failures: Mutex<Vec<Failure>>,
}

impl IndexObserver for Shards {
    fn planned(&self, shards: u64) {
        self.bar.of(shards);
    }

    fn shard(&self, url: &str, error: Option<&Error>) {
        self.bar.add(1);
        let Some(error) = error else {
            return;
        };
        let help = error.help().map(|help| spelled(help, words::flag));
        let lines = match &help {
            Some(help) => format!("onecopy: {error}\nhelp: {help}"),
            None => format!("onecopy: {error}"),
        };
        self.bar.suspend(|| self.output.note(&lines));
        self.failures.lock().push(Failure {
            shard: url.to_owned(),
            kind: error.kind().name(),
            message: error.to_string(),
            help,
        });
    }
}

/// What it came to.
#[derive(Debug, Serialize)]
struct Told {
    schema: u32,
    seconds: f64,
    #[serde(flatten)]
    summary: IndexSummary,
    failures: Vec<Failure>,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = &self.summary;
        let (shards, samples) = (summary.shards, summary.samples);
        let bytes = human(summary.shard_bytes);
        if summary.failed == 0 {
            writeln!(
                f,
                "{}: {samples} samples in {shards} shards ({bytes})",
                summary.index
            )?;
        } else {
            let failed = summary.failed;
            writeln!(
                f,
                "{} was not written: {failed} shards failed; {samples} samples in {shards} others ({bytes}) are kept for \
                 the next start",
                summary.index
            )?;
        }
        write!(
            f,
            "read {} in {} requests, {:.1} s",
            human(summary.read_bytes),
            summary.requests,
            self.seconds
        )?;
        for (count, what) in [
            (summary.reused, "taken over from before"),
            (
                summary.without_offsets,
                "without offsets: to be read from their beginning only",
            ),
        ] {
            if count > 0 {
                write!(f, "; {count} shards {what}")?;
            }
        }
        let skipped = &summary.ledger.skipped;
        if !skipped.is_empty() {
            let (samples, shards) = (skipped.samples, skipped.shards);
            write!(
                f,
                "\nleft out: {samples} samples, the rest of {shards} shards"
            )?;
        }
        writeln!(f)
    }
}
