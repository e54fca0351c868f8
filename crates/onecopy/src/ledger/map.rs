//! The ledger as a map for the eye: one line per hop, so that the slow one stands out.

use std::collections::BTreeMap;
use std::fmt;

use super::report::{HopReport, Report, arrived_bytes};
use crate::error::Printable;
use crate::route::{Kind, Mover, Space};

const MIB: f64 = 1024.0 * 1024.0;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header(f)?;
        for hop in &self.hops {
            self.hop_line(f, hop)?;
        }
        self.sums(f)?;
        fmt::Display::fmt(&self.network, f)?;
        self.events(f)
    }
}

/// One line of counts by name; none where nothing was counted.
fn counts(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    total: &str,
    by_cause: &BTreeMap<String, u64>,
) -> fmt::Result {
    if by_cause.is_empty() {
        return Ok(());
    }
    writeln!(f, "  {title:<17} {total} ({})", causes(by_cause))
}

/// `corrupt 2, not_found 1`.
pub(super) fn causes(by_cause: &BTreeMap<String, u64>) -> String {
    let causes = by_cause
        .iter()
        .map(|(cause, count)| format!("{cause} {count}"));
    causes.collect::<Vec<_>>().join(", ")
}

fn per_second(samples: u64, seconds: f64) -> String {
    format!(", {:.0} samples/s", samples as f64 / seconds)
}

impl Report {
    fn header(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let urls = Printable(&self.urls);
        writeln!(f, "route {} to {}: {urls}", self.route, self.device)?;
        write!(f, "{:.1} MiB payload", self.payload_bytes as f64 / MIB)?;
        if self.samples > 0 {
            write!(f, ", {} samples", self.samples)?;
        }
        if self.batches > 0 {
            write!(f, " in {} batches", self.batches)?;
        }
        let seconds = self.seconds.max(1e-9);
        // Only what was made is told of: a load may end at samples, or at bytes.
        let (rate, first) = match (self.samples, self.batches) {
            (0, _) => (String::new(), "bytes"),
            (samples, 0) => (per_second(samples, seconds), "sample"),
            (samples, _) => (per_second(samples, seconds), "batch"),
        };
        writeln!(
            f,
            ", {:.2} s, {:.2} GB/s{rate}, {:.2} CPU s/GB, first {first} after {:.0} ms\n",
            self.seconds,
            self.payload_bytes as f64 / 1e9 / seconds,
            self.cpu_seconds / (self.payload_bytes as f64 / 1e9).max(1e-9),
            self.first_batch_seconds * 1e3,
        )?;
        writeln!(
            f,
            "  {:<10} {:<24} {:<11} {:>12} {:>10} {:>9} {:>9}  kind",
            "hop", "from -> to", "by", "MiB", "per byte", "GB/s", "busy s"
        )
    }

    fn hop_line(&self, f: &mut fmt::Formatter<'_>, hop: &HopReport) -> fmt::Result {
        let by = match (hop.by, hop.space) {
            (Mover::Dma, _) => "dma",
            (Mover::Cpu, Space::Kernel) => "cpu, kernel",
            (Mover::Cpu, Space::User) => "cpu, user",
        };
        let kind = match hop.kind {
            Kind::Copy => "copy",
            Kind::Transform => "transform",
        };
        let rate = if hop.busy_seconds > 0.0 {
            format!("{:.2}", hop.bytes as f64 / 1e9 / hop.busy_seconds)
        } else {
            "-".to_owned()
        };
        writeln!(
            f,
            "  {:<10} {:<24} {:<11} {:>12.1} {:>10.2} {:>9} {:>9.2}  {kind}",
            hop.hop,
            format!("{} -> {}", hop.from, hop.to),
            by,
            hop.bytes as f64 / MIB,
            hop.bytes as f64 / (arrived_bytes(&self.hops, self.payload_bytes) as f64).max(1.0),
            rate,
            hop.busy_seconds,
        )
    }

    fn sums(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copies = self.copies_per_byte;
        writeln!(
            f,
            "\n  copies per byte   cpu {:.2}, of them in user space {:.2}; dma {:.2}",
            copies.cpu, copies.user, copies.dma
        )?;
        let waits = self.waits;
        writeln!(
            f,
            "  waits (s)         consumer {:.2}, network {:.2}, decode {:.2}, device {:.2}, pool {:.2}",
            waits.consumer_seconds,
            waits.network_seconds,
            waits.decode_seconds,
            waits.device_seconds,
            waits.pool_seconds
        )?;
        writeln!(
            f,
            "  memory (MiB)      pool {:.0}, locked {:.0}, peak resident {:.0}",
            self.pool_bytes as f64 / MIB,
            self.locked_bytes as f64 / MIB,
            self.peak_rss_bytes as f64 / MIB
        )
    }

    fn events(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let retries = self.retries.total.to_string();
        counts(f, "retries", &retries, &self.retries.by_cause)?;
        counts(f, "skipped", &self.skipped_words(), &self.skipped.by_cause)?;
        let warnings = self.warnings.values().sum::<u64>().to_string();
        counts(f, "warnings", &warnings, &self.warnings)?;
        let verified = self.verified.values().sum::<u64>().to_string();
        counts(f, "verified objects", &verified, &self.verified)?;
        if self.passes > 1 && self.sources.is_empty() {
            writeln!(
                f,
                "  passes            the shards were begun {} times, so that samples came more than once",
                self.passes
            )?;
        }
        for of in &self.sources {
            let again = match of.passes {
                1 => String::new(),
                passes => format!(", begun {passes} times"),
            };
            writeln!(
                f,
                "  source            {} samples, {:.1} MiB{again}: {}",
                of.samples,
                of.payload_bytes as f64 / MIB,
                Printable(&of.urls)
            )?;
        }
        for fallback in &self.fallbacks {
            writeln!(
                f,
                "  fallback          wanted {}, used {}: {}",
                fallback.wanted, fallback.used, fallback.why
            )?;
        }
        for note in &self.notes {
            writeln!(f, "  note              {}", Printable(note))?;
        }
        Ok(())
    }

    fn skipped_words(&self) -> String {
        let counts = self.skipped.counts();
        match self.skipped.max_skipped {
            Some(max) => format!("{counts}, of {max} that may be"),
            None => counts,
        }
    }
}
