//! One run along a part of the path.

use std::time::Duration;

use onecopy::config::OnError;
use onecopy::device::Device;
use onecopy::ledger::{Ledger, Report};
use onecopy::pipeline::{Next, Piece};
use onecopy::sample::decode::{Decoder, Fit};
use onecopy::sample::note_lost_shard;
use onecopy::sync::Arc;
use onecopy::{Error, ErrorKind, Loader, Result};
use serde::Serialize;

use crate::args::{BenchArgs, Stage};
use crate::commands::{Context, load_config};

/// How long to wait for a batch before looking whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);

/// Where a run ends before its shards do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// It does not.
    None,
    /// After so many samples.
    Samples(u64),
    /// After so many bytes.
    Bytes(u64),
}

/// What a run found.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) report: Report,
    /// Where no samples were read: what bytes came in.
    pub(super) pieces: Option<Pieces>,
}

/// What bytes come in where nothing is made of them yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Pieces {
    /// Objects that were begun.
    pub(super) objects: u64,
    /// Ranges of them that came.
    pub(super) ranges: u64,
}

/// Refuses what cannot be.
pub(super) fn check(args: &BenchArgs) -> Result<()> {
    if args.to == Stage::Buffer && args.limit_samples.is_some() {
        let why = "buffers hold bytes, not samples";
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "stop after",
            "--limit-samples",
            why,
        )
        .with_help("use --to sample, or name fewer shards"));
    }
    Ok(())
}

/// Runs as far as `stage`.
pub(super) fn run(stage: Stage, args: &BenchArgs, limit: Limit, context: &Context) -> Result<Ran> {
    context.interrupt.check()?;
    let mut config = load_config(&args.store, &args.reading);
    config.wait_limit = args.waiting.limit();
    config.decode_threads = args.decode_threads;
    config.on_error = args.on_error.clone();
    config.max_skipped = args.max_skipped;
    let mut loader = onecopy::open(&args.urls, config);
    if let Limit::Samples(samples) = limit {
        loader = loader.limit(samples);
    }
    let mut pieces = None;
    let ledger = match stage {
        Stage::Buffer => {
            let came = pieces.insert(Pieces::default());
            buffers(loader, &args.on_error, limit, came, context)?
        }
        Stage::Sample => samples(loader, limit, context)?,
        Stage::Batch | Stage::Device => batches(shaped(loader, args), limit, context)?,
    };
    Ok(Ran {
        report: ledger.report(),
        pieces,
    })
}

fn shaped(loader: Loader, args: &BenchArgs) -> Loader {
    let mut loader = loader.batch(args.batch, false).to(Device::Cpu);
    if !args.is_raw {
        let size = (args.size > 0).then_some((args.size, args.size));
        loader = loader.decode(Some(Decoder::Rgb {
            size,
            fit: Fit::Crop,
        }));
    }
    if !args.fields.is_empty() {
        loader = loader.fields(args.fields.iter().map(String::as_str));
    }
    loader
}

/// Drops slices at once: a slab is filled again as soon as its bytes are there.
fn buffers(
    loader: Loader,
    on_error: &OnError,
    limit: Limit,
    came: &mut Pieces,
    context: &Context,
) -> Result<Arc<Ledger>> {
    let mut load = loader.run_buffers()?;
    let ledger = Arc::clone(load.ledger());
    let bar = context.progress.bytes("buffers");
    let feed = load.output().feed();
    let mut bytes = 0;
    let mut is_lost = false;
    while let Some(piece) = feed.next()? {
        context.interrupt.check()?;
        match piece {
            Piece::Bytes(slice) => {
                ledger.mark_first();
                came.ranges += 1;
                bytes += slice.len() as u64;
                bar.add(slice.len() as u64);
            }
            // Each of a shard's ranges may fail; it is lost once.
            Piece::Failed(error) if is_lost && on_error.passes_over(&error) => {}
            Piece::Failed(error) => {
                note_lost_shard(&ledger, on_error, error)?;
                is_lost = true;
                came.objects = came.objects.saturating_sub(1);
            }
            Piece::Shard(_) => {
                is_lost = false;
                came.objects += 1;
            }
            Piece::End => {}
        }
        if matches!(limit, Limit::Bytes(limit) if bytes >= limit) {
            break;
        }
    }
    ledger.finish();
    Ok(ledger)
}

fn samples(loader: Loader, limit: Limit, context: &Context) -> Result<Arc<Ledger>> {
    let mut load = loader.run_samples()?;
    let ledger = Arc::clone(load.ledger());
    let bar = context.progress.samples("samples", total(limit));
    for sample in load.by_ref() {
        context.interrupt.check()?;
        let _sample = sample?;
        ledger.mark_first();
        bar.add(1);
    }
    ledger.finish();
    Ok(ledger)
}

fn batches(loader: Loader, limit: Limit, context: &Context) -> Result<Arc<Ledger>> {
    let mut load = loader.run()?;
    let ledger = Arc::clone(load.ledger());
    let bar = context.progress.samples("batches", total(limit));
    loop {
        context.interrupt.check()?;
        match load.next_within(PATIENCE)? {
            Next::Batch(batch) => bar.add(batch.len as u64),
            Next::End => break,
            Next::NotYet => {}
        }
    }
    ledger.finish();
    Ok(ledger)
}

const fn total(limit: Limit) -> Option<u64> {
    match limit {
        Limit::Samples(samples) => Some(samples),
        Limit::None | Limit::Bytes(_) => None,
    }
}
