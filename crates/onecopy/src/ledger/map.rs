//! The ledger as a map for the eye: one line per hop, so that the slow one stands out.

use std::fmt;

use super::report::{HopReport, Report, arrived_bytes};
use crate::route::{Kind, Mover, Space};

const MIB: f64 = 1024.0 * 1024.0;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header(f)?;
        for hop in &self.hops {
            self.hop_line(f, hop)?;
        }
        self.sums(f)?;
        self.events(f)
    }
}

impl Report {
    fn header(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "route {} to {}: {}", self.route, self.device, self.urls)?;
        write!(f, "{:.1} MiB payload", self.payload_bytes as f64 / MIB)?;
        if self.samples > 0 {
            write!(f, ", {} samples", self.samples)?;
        }
        if self.batches > 0 {
            write!(f, " in {} batches", self.batches)?;
        }
        let seconds = self.seconds.max(1e-9);
        writeln!(
            f,
            ", {:.2} s, {:.2} GB/s, {:.0} samples/s, {:.2} CPU s/GB, first batch after {:.0} ms\n",
            self.seconds,
            self.payload_bytes as f64 / 1e9 / seconds,
            self.samples as f64 / seconds,
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
        let counts = |f: &mut fmt::Formatter<'_>, title: &str, total: u64, by: &_| {
            let by: &std::collections::BTreeMap<String, u64> = by;
            if total == 0 {
                return Ok(());
            }
            let causes: Vec<String> = by
                .iter()
                .map(|(cause, count)| format!("{cause} {count}"))
                .collect();
            writeln!(f, "  {title:<17} {total} ({})", causes.join(", "))
        };
        counts(f, "retries", self.retries.total, &self.retries.by_cause)?;
        counts(
            f,
            "skipped samples",
            self.skipped.samples,
            &self.skipped.by_cause,
        )?;
        counts(f, "warnings", self.warnings.values().sum(), &self.warnings)?;
        for fallback in &self.fallbacks {
            writeln!(
                f,
                "  fallback          wanted {}, used {}: {}",
                fallback.wanted, fallback.used, fallback.why
            )?;
        }
        for note in &self.notes {
            writeln!(f, "  note              {note}")?;
        }
        Ok(())
    }
}
