//! `onecopy bench`: as far along the path as asked, and the ledger of it.

mod bound;
mod stage;

use std::fmt;

use onecopy::Result;
use onecopy::ledger::Report;
use serde::Serialize;

use super::{Context, Outcome};
use crate::args::{BenchArgs, Stage};
use crate::exit::Exit;
use bound::Stages;
use stage::{Limit, Pieces, Ran};

/// The ledger of the median run, and what each run took.
#[derive(Debug, Serialize)]
struct Bench {
    #[serde(flatten)]
    ledger: Report,
    stage: &'static str,
    /// Only where no samples were read.
    #[serde(flatten)]
    pieces: Option<Pieces>,
    runs: Vec<Run>,
}

/// What one run took.
#[derive(Debug, Clone, Copy, Serialize)]
struct Run {
    seconds: f64,
    cpu_seconds: f64,
    gb_per_second: f64,
}

impl Run {
    fn new(report: &Report) -> Self {
        Self {
            seconds: report.seconds,
            cpu_seconds: report.cpu_seconds,
            gb_per_second: gb(report) / report.seconds.max(1e-9),
        }
    }
}

impl fmt::Display for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.ledger, f)?;
        if let Some(Pieces { objects, ranges }) = self.pieces {
            let per_second = |count: u64| count as f64 / self.ledger.seconds.max(1e-9);
            writeln!(
                f,
                "  requests          {objects} objects, {:.0} a second; {ranges} ranges, {:.0} a second",
                per_second(objects),
                per_second(ranges)
            )?;
        }
        if self.runs.len() > 1 {
            let rates: Vec<String> = self
                .runs
                .iter()
                .map(|run| format!("{:.2}", run.gb_per_second))
                .collect();
            writeln!(
                f,
                "  runs (GB/s)       {}; the map is that of the median",
                rates.join(", ")
            )?;
        }
        Ok(())
    }
}

pub(super) fn run(args: &BenchArgs, context: &Context) -> Result<Outcome> {
    if args.is_by_stage {
        return by_stage(args, context);
    }
    stage::check(args)?;
    let limit = args.limit_samples.map_or(Limit::None, Limit::Samples);
    let all = (0..args.repeat)
        .map(|_| stage::run(args.to, args, limit, context))
        .collect::<Result<Vec<_>>>()?;
    let runs = all.iter().map(|ran| Run::new(&ran.report)).collect();
    let exit = Exit::answer(all.iter().all(is_complete));
    let median = median(all)?;
    let bench = Bench {
        ledger: median.report,
        stage: args.to.name(),
        pieces: median.pieces,
        runs,
    };
    Ok(Outcome::new(bench, exit))
}

/// Runs the stages in turn, so that what changes over time (a cache that warms up) falls on all of
/// them.
fn by_stage(args: &BenchArgs, context: &Context) -> Result<Outcome> {
    // On the cpu a batch's memory is itself the result, so `device` would be `batch` again.
    let stages = [Stage::Buffer, Stage::Sample, Stage::Batch];
    let mut reports = stages.map(|_| Vec::new());
    for _ in 0..args.repeat {
        let mut limit = Limit::None;
        if let Some(samples) = args.limit_samples {
            // Buffers hold no samples: as many bytes as the samples took.
            let ran = stage::run(Stage::Sample, args, Limit::Samples(samples), context)?;
            limit = Limit::Bytes(ran.report.payload_bytes);
            reports[1].push(ran);
        }
        for (index, stage) in stages.into_iter().enumerate() {
            let limit = match (stage, args.limit_samples) {
                (Stage::Sample, Some(_)) => continue,
                (Stage::Batch, Some(samples)) => Limit::Samples(samples),
                _ => limit,
            };
            reports[index].push(stage::run(stage, args, limit, context)?);
        }
    }
    let exit = Exit::answer(reports.iter().flatten().all(is_complete));
    let mut medians = Vec::new();
    for (stage, reports) in stages.into_iter().zip(reports) {
        medians.push((stage, median(reports)?.report));
    }
    Ok(Outcome::new(Stages::new(medians), exit))
}

/// Whether a run left nothing out.
fn is_complete(ran: &Ran) -> bool {
    ran.report.skipped.is_empty()
}

/// The run with the median time per byte.
fn median(mut runs: Vec<Ran>) -> Result<Ran> {
    runs.sort_by(|a, b| seconds_per_gb(&a.report).total_cmp(&seconds_per_gb(&b.report)));
    let middle = runs.len() / 2;
    if runs.is_empty() {
        return Err(onecopy::Error::bug(
            "find the median run",
            "there is no run",
        ));
    }
    Ok(runs.swap_remove(middle))
}

fn gb(report: &Report) -> f64 {
    report.payload_bytes as f64 / 1e9
}

fn seconds_per_gb(report: &Report) -> f64 {
    report.seconds / gb(report).max(1e-9)
}
