//! What the network was like: waits, rates, connections, addresses.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;

use super::Ledger;
use super::histogram::{Histogram, Spread};
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Addresses that are told apart. A name of a cloud has thousands over time; what comes later is counted as `others`.
const MOST_ADDRESSES: usize = 256;

/// The running count.
#[derive(Debug, Default)]
pub(super) struct Network {
    first_byte_micros: Histogram,
    range_micros: Histogram,
    bytes_per_second: Histogram,
    opened: AtomicU64,
    reused: AtomicU64,
    allowed: AtomicU64,
    /// Guards the connections by address; held for a look-up.
    addresses: Mutex<BTreeMap<String, u64>>,
}

/// What the network was like.
#[derive(Debug, Clone, Default, Serialize)]
pub struct NetworkReport {
    /// From a request to the first byte of its answer, in seconds: of ranges, look-ups and listings.
    pub first_byte_seconds: Spread,
    /// From a request for a range to its last byte, in seconds; of those whose answer came whole.
    pub range_seconds: Spread,
    /// The rate of a connection while a body of at least 256 KiB was read from it, in bytes per second.
    pub connection_bytes_per_second: Spread,
    /// Connections.
    pub connections: Connections,
    /// Connections opened, by address; of a proxy where there is one.
    pub addresses: BTreeMap<String, u64>,
}

/// Connections.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Connections {
    /// How many were made.
    pub opened: u64,
    /// Requests that found one open.
    pub reused: u64,
    /// How many there might be at once when the run ended (or was asked).
    pub allowed: u64,
}

/// Shorter bodies tell more of the delay than of the rate.
const LEAST_BODY: u64 = 256 << 10;

impl Network {
    pub(super) fn opened(&self, address: IpAddr) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        let mut addresses = self.addresses.lock();
        let mut name = address.to_string();
        if addresses.len() >= MOST_ADDRESSES && !addresses.contains_key(&name) {
            "others".clone_into(&mut name);
        }
        *addresses.entry(name).or_default() += 1;
    }

    pub(super) fn reused(&self) {
        self.reused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn allowed(&self, connections: usize) {
        self.allowed.store(connections as u64, Ordering::Relaxed);
    }

    pub(super) fn connections(&self) -> usize {
        usize::try_from(self.allowed.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    pub(super) fn answered(&self, wait: Duration) {
        self.first_byte_micros.add(micros(wait));
    }

    pub(super) fn range(&self, bytes: u64, whole: Duration, body: Duration) {
        self.range_micros.add(micros(whole));
        if bytes >= LEAST_BODY {
            let rate = bytes.saturating_mul(1_000_000) / micros(body).max(1);
            self.bytes_per_second.add(rate);
        }
    }

    pub(super) fn report(&self) -> NetworkReport {
        NetworkReport {
            first_byte_seconds: self.first_byte_micros.spread(1e6),
            range_seconds: self.range_micros.spread(1e6),
            connection_bytes_per_second: self.bytes_per_second.spread(1.0),
            connections: Connections {
                opened: self.opened.load(Ordering::Relaxed),
                reused: self.reused.load(Ordering::Relaxed),
                allowed: self.allowed.load(Ordering::Relaxed),
            },
            addresses: self.addresses.lock().clone(),
        }
    }
}

impl Ledger {
    /// Notes a connection that was made.
    pub fn connection_opened(&self, address: IpAddr) {
        self.pulse().stir();
        self.network().opened(address);
    }

    /// Notes a request that found a connection open.
    pub fn connection_reused(&self) {
        self.network().reused();
    }

    /// Notes how many connections there may be at once from now on.
    pub fn connections_allowed(&self, connections: usize) {
        self.network().allowed(connections);
    }

    /// How many connections there may be at once now; 0 where none was ever asked for.
    pub(crate) fn connections(&self) -> usize {
        self.network().connections()
    }

    /// Notes how long a read waited for the first byte of its answer.
    pub fn answered(&self, wait: Duration) {
        self.pulse().stir();
        self.network().answered(wait);
    }

    /// Notes a range of `bytes` that came whole: the time since it was asked for, and that in which its body was read.
    pub fn range_read(&self, bytes: u64, whole: Duration, body: Duration) {
        self.network().range(bytes, whole, body);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// One line for the map; more with `{:#}`. Nothing where the network was not used.
impl fmt::Display for NetworkReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.connections.opened == 0 {
            return Ok(());
        }
        let (first, range) = (self.first_byte_seconds, self.range_seconds);
        let rate = self.connection_bytes_per_second;
        write!(
            f,
            "  network           first byte p50 {:.1} ms, p99 {:.1} ms; range p50 {:.0} ms, p99 {:.0} ms",
            first.p50 * 1e3,
            first.p99 * 1e3,
            range.p50 * 1e3,
            range.p99 * 1e3
        )?;
        if rate.count > 0 {
            write!(f, "; {:.0} MB/s a connection", rate.p50 / 1e6)?;
        }
        writeln!(f)?;
        if !f.alternate() {
            return Ok(());
        }
        writeln!(
            f,
            "  longest (ms)      first byte {:.1} of {}, range {:.0} of {}",
            first.max * 1e3,
            first.count,
            range.max * 1e3,
            range.count
        )?;
        if rate.count > 0 {
            writeln!(
                f,
                "  connection (MB/s) p1 {:.1}, p50 {:.1}, p99 {:.1}, best {:.1}",
                rate.p1 / 1e6,
                rate.p50 / 1e6,
                rate.p99 / 1e6,
                rate.max / 1e6
            )?;
        }
        let Connections {
            opened,
            reused,
            allowed,
        } = self.connections;
        writeln!(
            f,
            "  connections       opened {opened}, used again {reused} times, at most {allowed} at once"
        )?;
        for (address, count) in &self.addresses {
            writeln!(f, "  address           {address}: {count} connections")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_counted_up_to_a_limit() {
        let network = Network::default();
        for number in 0..300_u16 {
            let [high, low] = number.to_be_bytes();
            network.opened(IpAddr::from([10, 0, high, low]));
        }
        network.opened(IpAddr::from([10, 0, 0, 7]));
        let report = network.report();
        assert_eq!(report.connections.opened, 301);
        assert_eq!(report.addresses.len(), MOST_ADDRESSES + 1);
        assert_eq!(report.addresses["others"], 44);
        assert_eq!(report.addresses["10.0.0.7"], 2);
    }

    #[test]
    fn the_map_has_a_line_and_more_on_request_and_none_for_files() {
        let network = Network::default();
        assert_eq!(network.report().to_string(), "");
        network.opened(IpAddr::from([127, 0, 0, 1]));
        network.answered(Duration::from_millis(30));
        network.range(
            8_000_000,
            Duration::from_millis(190),
            Duration::from_millis(160),
        );
        network.reused();
        network.allowed(32);
        let short = network.report().to_string();
        assert_eq!(short.lines().count(), 1);
        // 50, to within a sixteenth.
        assert!(short.contains("; 48 MB/s a connection"), "{short}");
        let long = format!("{:#}", network.report());
        assert!(long.starts_with(&short));
        for words in ["opened 1, used again 1 times, at most 32", "127.0.0.1: 1"] {
            assert!(long.contains(words), "{long}");
        }
    }
}
