//! `onecopy demo`: a real stream without an account anywhere. An S3 server in this process serves a
//! dataset made on the spot; the client reads it as it reads any other; every sample is held
//! against what was written.

mod check;
mod dataset;

use std::fmt;
use std::time::Duration;

use onecopy::config::{LoadConfig, StoreConfig};
use onecopy::ledger::Report;
use onecopy::pipeline::Next;
use onecopy::sample::decode::{Decoder, Fit};
use onecopy::sync::Arc;
use onecopy::{Loader, Result};
use serde::Serialize;

use super::{Context, Outcome};
use crate::args::DemoArgs;
use crate::exit::Exit;
use check::Check;
use dataset::Dataset;

/// How long to wait for a batch before looking whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);

/// Differences that are shown; the rest is a number.
const SHOWN_DIFFERENCES: usize = 10;

/// The ledger of the stream of batches, and what the check found.
#[derive(Debug, Serialize)]
struct Demo {
    #[serde(flatten)]
    ledger: Report,
    verified: u64,
    differences: Vec<String>,
    dataset: DatasetFigures,
}

#[derive(Debug, Serialize)]
struct DatasetFigures {
    samples: u64,
    shards: u64,
    bytes: u64,
    endpoint_url: String,
}

pub(super) fn run(args: &DemoArgs, context: &Context) -> Result<Outcome> {
    let dataset = Dataset::make(args, context)?;
    let mut check = Check::new(&dataset);
    raw_pass(args, &dataset, &mut check, context)?;
    let ledger = decoded_pass(args, &dataset, &mut check, context)?;
    let (verified, differences) = check.finish();
    let is_good = verified == dataset.samples() && differences.is_empty();
    let demo = Demo {
        ledger,
        verified,
        differences,
        dataset: DatasetFigures {
            samples: dataset.samples(),
            shards: dataset.shards(),
            bytes: dataset.bytes(),
            endpoint_url: dataset.endpoint_url(),
        },
    };
    Ok(Outcome::new(demo, Exit::answer(is_good)))
}

fn loader(args: &DemoArgs, dataset: &Dataset) -> Loader {
    let config = LoadConfig {
        store: StoreConfig {
            endpoint_url: Some(dataset.endpoint_url()),
            region: Some(dataset::REGION.to_owned()),
            variables: dataset::credentials(),
            ..StoreConfig::default()
        },
        memory_bytes: Some(args.memory),
        ..LoadConfig::default()
    };
    onecopy::open([dataset::URL], config)
}

/// Every field's bytes, as they are in the shard.
fn raw_pass(
    args: &DemoArgs,
    dataset: &Dataset,
    check: &mut Check<'_>,
    context: &Context,
) -> Result<()> {
    let mut load = loader(args, dataset).run_samples()?;
    let bar = context
        .progress
        .samples("checking bytes", Some(dataset.samples()));
    for sample in load.by_ref() {
        context.interrupt.check()?;
        check.sample(&sample?);
        bar.add(1);
    }
    check.end_pass("as bytes");
    Ok(())
}

/// Decoded batches, as a training loop gets them. This is the stream whose ledger is shown.
fn decoded_pass(
    args: &DemoArgs,
    dataset: &Dataset,
    check: &mut Check<'_>,
    context: &Context,
) -> Result<Report> {
    let mut load = loader(args, dataset)
        .decode(Some(Decoder::Rgb {
            size: Some((args.size, args.size)),
            fit: Fit::Crop,
        }))
        .batch(args.batch, false)
        .run()?;
    let ledger = Arc::clone(load.ledger());
    ledger.note("the S3 server is in this process: CPU time and resident memory are of both");
    let bar = context
        .progress
        .samples("checking batches", Some(dataset.samples()));
    loop {
        context.interrupt.check()?;
        match load.next_within(PATIENCE)? {
            Next::Batch(batch) => {
                check.batch(&batch, args.size as usize);
                bar.add(batch.len as u64);
            }
            Next::End => break,
            Next::NotYet => {}
        }
    }
    check.end_pass("in a batch");
    Ok(ledger.report())
}

impl fmt::Display for Demo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dataset = &self.dataset;
        writeln!(
            f,
            "dataset: {} samples in {} shards, {:.1} MiB, from S3 in memory at {} \
             (plain HTTP, signed requests)\n",
            dataset.samples,
            dataset.shards,
            dataset.bytes as f64 / (1024.0 * 1024.0),
            dataset.endpoint_url
        )?;
        fmt::Display::fmt(&self.ledger, f)?;
        let (verified, samples) = (self.verified, dataset.samples);
        writeln!(
            f,
            "\nverified: {verified} of {samples} samples, byte for byte"
        )?;
        for difference in self.differences.iter().take(SHOWN_DIFFERENCES) {
            writeln!(f, "differs: {difference}")?;
        }
        let rest = self.differences.len().saturating_sub(SHOWN_DIFFERENCES);
        if rest > 0 {
            writeln!(f, "differs: {rest} more")?;
        }
        Ok(())
    }
}
