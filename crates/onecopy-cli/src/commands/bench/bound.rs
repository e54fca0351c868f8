//! Which stage bounds the rate: differential stall analysis.
//!
//! The path is run as far as each stage. A stage runs beside those before it, so adding one that
//! keeps up changes nothing; one that does not lowers the rate. The stage whose addition lowers it
//! most is the bound; where none lowers it, that is the first, which no other stands before.

use std::fmt;

use onecopy::error::Printable;
use onecopy::ledger::Report;
use serde::Serialize;

use super::{gb, seconds_per_gb};
use crate::args::Stage;

/// A rate that falls by less than this is the same rate: runs of the same stage differ by as much.
const NOISE: f64 = 0.05;

/// Every stage's figures, and the one that bounds them.
#[derive(Debug, Serialize)]
pub(super) struct Stages {
    schema: u32,
    version: &'static str,
    urls: String,
    stages: Vec<StageFigures>,
    bound: Bound,
    ledgers: Vec<Report>,
}

/// What the path costs as far as this stage.
#[derive(Debug, Clone, Serialize)]
struct StageFigures {
    stage: &'static str,
    payload_bytes: u64,
    seconds: f64,
    gb_per_second: f64,
    samples_per_second: Option<f64>,
    cpu_seconds_per_gb: f64,
    /// Beyond the path without this stage; below zero where a run was faster by chance.
    added_seconds_per_gb: f64,
    added_cpu_seconds_per_gb: f64,
}

/// The stage that bounds the rate.
#[derive(Debug, Serialize)]
struct Bound {
    stage: &'static str,
    /// The rate without it; none for the first stage.
    gb_per_second_without: Option<f64>,
    gb_per_second_with: f64,
    /// By which part the rate falls when it is added; none for the first stage.
    lowers_rate_by: Option<f64>,
    sentence: String,
}

impl Stages {
    /// From the ledgers of the stages, in the order of the path.
    pub(super) fn new(ledgers: Vec<(Stage, Report)>) -> Self {
        let mut stages: Vec<StageFigures> = Vec::new();
        for (stage, report) in &ledgers {
            let figures = StageFigures::new(*stage, report, stages.last());
            stages.push(figures);
        }
        let first = ledgers.first().map(|(_, report)| report);
        Self {
            schema: 1,
            version: env!("CARGO_PKG_VERSION"),
            urls: first.map(|report| report.urls.clone()).unwrap_or_default(),
            bound: Bound::find(&stages),
            stages,
            ledgers: ledgers.into_iter().map(|(_, report)| report).collect(),
        }
    }
}

impl StageFigures {
    fn new(stage: Stage, report: &Report, before: Option<&Self>) -> Self {
        let seconds = seconds_per_gb(report);
        let cpu = report.cpu_seconds / gb(report).max(1e-9);
        let samples = report.samples as f64 / report.seconds.max(1e-9);
        Self {
            stage: stage.name(),
            payload_bytes: report.payload_bytes,
            seconds: report.seconds,
            gb_per_second: gb(report) / report.seconds.max(1e-9),
            samples_per_second: (stage > Stage::Buffer).then_some(samples),
            cpu_seconds_per_gb: cpu,
            added_seconds_per_gb: seconds - before.map_or(0.0, Self::seconds_per_gb),
            added_cpu_seconds_per_gb: cpu - before.map_or(0.0, |stage| stage.cpu_seconds_per_gb),
        }
    }

    fn seconds_per_gb(&self) -> f64 {
        1.0 / self.gb_per_second.max(1e-9)
    }
}

impl Bound {
    fn find(stages: &[StageFigures]) -> Self {
        let fall =
            |pair: &[StageFigures]| 1.0 - pair[1].gb_per_second / pair[0].gb_per_second.max(1e-9);
        let worst = stages
            .windows(2)
            .max_by(|a, b| fall(a).total_cmp(&fall(b)))
            .filter(|pair| fall(pair) > NOISE);
        if let Some(pair) = worst {
            let (before, stage) = (&pair[0], &pair[1]);
            let sentence = format!(
                "{} bounds the rate: adding {} lowers it from {} to {} GB/s, by {:.0} %",
                stage.stage,
                adds(stage.stage),
                rate(before.gb_per_second),
                rate(stage.gb_per_second),
                fall(pair) * 100.0
            );
            return Self {
                stage: stage.stage,
                gb_per_second_without: Some(before.gb_per_second),
                gb_per_second_with: stage.gb_per_second,
                lowers_rate_by: Some(fall(pair)),
                sentence,
            };
        }
        let (stage, gb_per_second) = stages
            .first()
            .map_or(("buffer", 0.0), |stage| (stage.stage, stage.gb_per_second));
        let sentence = format!(
            "{stage} bounds the rate: the store and the network give {} GB/s, and no later \
             stage lowers that by more than {:.0} %",
            rate(gb_per_second),
            NOISE * 100.0
        );
        Self {
            stage,
            gb_per_second_without: None,
            gb_per_second_with: gb_per_second,
            lowers_rate_by: None,
            sentence,
        }
    }
}

/// A rate in GB/s with at least two digits that say something.
fn rate(gb_per_second: f64) -> String {
    match gb_per_second {
        rate if rate >= 0.1 => format!("{rate:.2}"),
        rate if rate >= 0.01 => format!("{rate:.3}"),
        rate => format!("{rate:.4}"),
    }
}

fn adds(stage: &str) -> &'static str {
    match stage {
        "sample" => "the reading of shards",
        "batch" => "decoding and collating",
        _ => "it",
    }
}

impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "stages of {}\n", Printable(&self.urls))?;
        writeln!(
            f,
            "  {:<8} {:>10} {:>10} {:>10} {:>12} {:>16}",
            "stage", "MiB", "GB/s", "samples/s", "CPU s/GB", "added s/GB"
        )?;
        for stage in &self.stages {
            let samples = stage
                .samples_per_second
                .map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
            writeln!(
                f,
                "  {:<8} {:>10.1} {:>10} {samples:>10} {:>12.2} {:>16.2}",
                stage.stage,
                stage.payload_bytes as f64 / (1024.0 * 1024.0),
                rate(stage.gb_per_second),
                stage.cpu_seconds_per_gb,
                stage.added_seconds_per_gb,
            )?;
        }
        writeln!(f, "\n{}", self.bound.sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(stage: &'static str, gb_per_second: f64) -> StageFigures {
        StageFigures {
            stage,
            payload_bytes: 0,
            seconds: 0.0,
            gb_per_second,
            samples_per_second: None,
            cpu_seconds_per_gb: 0.0,
            added_seconds_per_gb: 0.0,
            added_cpu_seconds_per_gb: 0.0,
        }
    }

    #[test]
    fn the_stage_that_lowers_the_rate_most_is_the_bound() {
        let bound = Bound::find(&[at("buffer", 2.0), at("sample", 1.9), at("batch", 0.5)]);
        assert_eq!(bound.stage, "batch");
        assert!(
            bound.sentence.contains("from 1.90 to 0.50 GB/s, by 74 %"),
            "{}",
            bound.sentence
        );
        let bound = Bound::find(&[at("buffer", 2.0), at("sample", 0.5), at("batch", 0.45)]);
        assert_eq!(bound.stage, "sample");
    }

    #[test]
    fn the_store_is_the_bound_where_later_stages_keep_up() {
        let bound = Bound::find(&[at("buffer", 1.0), at("sample", 1.02), at("batch", 0.98)]);
        assert_eq!(bound.stage, "buffer");
        assert!(bound.lowers_rate_by.is_none());
    }
}
