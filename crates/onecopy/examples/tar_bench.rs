//! Samples per second out of a tar in memory: `tar_bench SHARD.tar [SECONDS]` prints one JSON object.
#![expect(clippy::print_stdout, reason = "the result is what this is for")]

use std::time::Instant;

use onecopy::buffer::Slice;
use onecopy::ledger::Ledger;
use onecopy::sample::{SampleOptions, SampleReader};
use onecopy::size::MIB;
use onecopy::sync::Arc;
use onecopy::{Error, Result};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "shard.tar".to_owned());
    let seconds: f64 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(2.0);
    let bytes = std::fs::read(&path).map_err(|error| Error::io("read", &*path, error))?;
    let len_bytes = bytes.len();
    let whole = Slice::from_vec(bytes);
    // As they come from the network: neighbours of 8 MiB in one piece of memory.
    let ranges: Vec<_> = (0..len_bytes)
        .step_by(8 * MIB)
        .map(|start| whole.slice(start..(start + 8 * MIB).min(len_bytes)))
        .collect();
    let shard: Arc<str> = Arc::from(&*path);
    let ledger = Ledger::unread();
    let start = Instant::now();
    let (mut samples, mut payload_bytes, mut passes) = (0_u64, 0, 0_u64);
    while start.elapsed().as_secs_f64() < seconds {
        let pieces = ranges.iter().map(|range| Ok(range.clone()));
        let reader = SampleReader::new(
            Arc::clone(&shard),
            Some(len_bytes as u64),
            pieces,
            SampleOptions::default(),
            &ledger,
        );
        for sample in reader {
            payload_bytes += sample?.len_bytes();
            samples += 1;
        }
        passes += 1;
    }
    let result = serde_json::json!({
        "samples": samples,
        "seconds": start.elapsed().as_secs_f64(),
        "samples_per_second": (samples as f64 / start.elapsed().as_secs_f64()).round(),
        "payload_bytes": payload_bytes,
        "passes": passes,
    });
    println!("{result}");
    Ok(())
}
