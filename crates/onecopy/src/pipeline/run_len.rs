//! How many bytes to ask for in one request.

use std::time::Duration;

/// The share of a request's time that waiting for its first byte may take. At 50 MB/s and 30 ms that asks for 56 MiB; ranges
/// of 8 MiB lose 15 %.
const WAITING_SHARE: f64 = 0.025;

/// The same of a lane that has just begun: the first batch waits for all lanes, so none may keep the others from their first bytes.
const WAITING_SHARE_FIRST: f64 = 1.0 / 3.0;

/// That, at 30 ms and 50 MB/s, as S3 mostly is: while nothing is known yet.
pub(super) const FIRST_BYTES: u64 = 3_000_000;

/// No run is longer: behind a slow connection all that others bring must wait, and 64 MiB at 50 MB/s are 1.3 s.
const LONGEST_BYTES: u64 = 64 << 20;

/// What runs on their way may take of the memory that is leased and not yet filled. The rest is asked for next.
const MEMORY_SHARE: (u64, u64) = (2, 3);

/// What is known when a connection is about to be free for the next request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// The median time to a first byte; zero where not known.
    pub(super) first_byte: Duration,
    /// The median rate of a connection; 0 where not known.
    pub(super) bytes_per_second: f64,
    /// Connections that there may be.
    pub(super) connections: usize,
    /// The length of a range: memory is leased, and bytes are announced, by ranges.
    pub(super) range_bytes: u64,
    /// Memory that is leased and not yet filled, asked for or not.
    pub(super) leased_bytes: u64,
    /// What is left to be asked for, over the whole load, as far as lengths are known.
    pub(super) left_bytes: u64,
    /// What is left to be asked for of this object.
    pub(super) object_bytes: u64,
    /// What was asked for of this lane before.
    pub(super) lane_bytes: u64,
}

impl Facts {
    /// The length of the next run: whole ranges, or the rest of the object; one range where nothing is known of waits and
    /// rates.
    ///
    /// As long as makes waiting cheap, but no longer than
    /// - a connection's share of the memory, or a first run, so that no connection waits for memory that another has taken ahead;
    /// - a connection's share of what is left to read, so that all of them end together;
    /// - as much again as the lane was given before, so that many lanes begin together;
    /// - parts into which the rest of the object falls evenly, so that it has no short end.
    pub(super) fn run_bytes(&self) -> u64 {
        let range = self.range_bytes.max(1);
        let share = self.connections.max(1) as u64;
        let first = whole_ranges(self.with_waiting(WAITING_SHARE_FIRST), range);
        let memory = self.leased_bytes / MEMORY_SHARE.1 * MEMORY_SHARE.0 / share;
        let most = (memory.max(first).min(self.left_bytes / share)).min(LONGEST_BYTES);
        let most = most.min(self.lane_bytes.max(first));
        let ranges = self.wish().div_ceil(range).min(most / range).max(1);
        let rest = self.object_bytes.div_ceil(range).max(1);
        rest.div_ceil(rest.div_ceil(ranges)) * range
    }

    /// How much memory is to be leased and not yet filled: half as much again as runs of that length take on all connections,
    /// so that none waits for memory to be made ready. More would only be touched in vain.
    pub(super) fn open_bytes(&self) -> u64 {
        let range = self.range_bytes.max(1);
        let run = whole_ranges(self.wish().min(LONGEST_BYTES), range).max(range);
        let count = (self.connections.max(1) as u64).saturating_add(1);
        (run.saturating_mul(count) / MEMORY_SHARE.0).saturating_mul(MEMORY_SHARE.1)
    }

    fn wish(&self) -> u64 {
        self.with_waiting(WAITING_SHARE)
    }

    /// The bytes with which waiting takes no more than `share`; those of a first run while nothing is known.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is beyond all bounds becomes the greatest number"
    )]
    fn with_waiting(&self, share: f64) -> u64 {
        if self.first_byte.is_zero() || self.bytes_per_second <= 0.0 {
            return FIRST_BYTES;
        }
        let waited = self.first_byte.as_secs_f64() * self.bytes_per_second;
        (waited * (1.0 / share - 1.0)) as u64
    }
}

fn whole_ranges(bytes: u64, range: u64) -> u64 {
    bytes.div_ceil(range).saturating_mul(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// S3 as it mostly is, memory and bytes without end.
    fn usual() -> Facts {
        Facts {
            first_byte: Duration::from_millis(30),
            bytes_per_second: 50e6,
            connections: 16,
            range_bytes: 8 * MIB,
            leased_bytes: 1 << 40,
            left_bytes: 1 << 40,
            object_bytes: 1 << 40,
            lane_bytes: 1 << 40,
        }
    }

    fn run(change: impl FnOnce(&mut Facts)) -> u64 {
        let mut facts = usual();
        change(&mut facts);
        facts.run_bytes() / MIB
    }

    #[test]
    fn a_run_is_as_long_as_makes_waiting_cheap() {
        assert_eq!(run(|_| ()), 56);
        assert_eq!(run(|facts| facts.first_byte = Duration::from_millis(4)), 8);
        assert_eq!(run(|facts| facts.first_byte = Duration::from_millis(8)), 16);
        assert_eq!(run(|facts| facts.first_byte = Duration::from_secs(1)), 64);
        assert_eq!(run(|facts| facts.bytes_per_second = 20e6), 24);
        for first_byte in [5, 10, 20, 30] {
            let first_byte = Duration::from_millis(first_byte);
            let bytes = run(|facts| facts.first_byte = first_byte) * MIB;
            let waited = first_byte.as_secs_f64();
            let whole = waited + bytes as f64 / 50e6;
            assert!(waited / whole <= 0.04, "{first_byte:?}: {bytes}");
        }
    }

    #[test]
    fn memory_is_made_ready_for_half_as_much_again_as_all_connections_take() {
        let open = |change: fn(&mut Facts)| {
            let mut facts = usual();
            change(&mut facts);
            facts.open_bytes() / MIB
        };
        // 17 runs of 56 MiB.
        assert_eq!(open(|_| ()), 1428);
        assert_eq!(open(|facts| facts.connections = 1), 168);
        assert_eq!(open(|facts| facts.connections = 0), 168);
        assert_eq!(
            open(|facts| facts.first_byte = Duration::from_millis(1)),
            204
        );
        assert_eq!(
            open(|facts| facts.first_byte = Duration::from_secs(9)),
            1632
        );
        assert_eq!(open(|facts| facts.bytes_per_second = 0.0), 204);
        let mut odd = usual();
        (odd.connections, odd.range_bytes) = (usize::MAX, u64::MAX);
        assert!(odd.open_bytes() > 1 << 60);
    }

    #[test]
    fn what_is_not_known_makes_runs_of_one_range() {
        assert_eq!(run(|facts| facts.first_byte = Duration::ZERO), 8);
        assert_eq!(run(|facts| facts.bytes_per_second = 0.0), 8);
        assert_eq!(run(|facts| facts.connections = 0), 56);
        // Of small ranges so many as make waiting no more than a third where S3 is as it mostly is.
        let unknown = |facts: &mut Facts| facts.first_byte = Duration::ZERO;
        for (range_mib, run_mib) in [(1, 3), (2, 4), (3, 3)] {
            let facts = |facts: &mut Facts| {
                unknown(facts);
                facts.range_bytes = range_mib * MIB;
            };
            assert_eq!(run(facts), run_mib);
        }
    }

    #[test]
    fn no_connection_takes_more_than_its_share_of_the_memory() {
        // 2 GiB of memory have a pool of 1.5 GiB.
        assert_eq!(run(|facts| facts.leased_bytes = 1536 * MIB), 56);
        assert_eq!(run(|facts| facts.leased_bytes = 768 * MIB), 32);
        assert_eq!(run(|facts| facts.leased_bytes = 192 * MIB), 8);
        assert_eq!(run(|facts| facts.leased_bytes = 0), 8);
        for connections in 1..300 {
            let bytes = run(|facts| {
                facts.connections = connections;
                facts.leased_bytes = 1536 * MIB;
            });
            assert!(bytes == 8 || bytes * connections as u64 <= 1024);
        }
    }

    #[test]
    fn what_is_left_is_split_among_all_connections() {
        assert_eq!(run(|facts| facts.left_bytes = 512 * MIB), 32);
        assert_eq!(run(|facts| facts.left_bytes = 300 * MIB), 16);
        assert_eq!(run(|facts| facts.left_bytes = 100 * MIB), 8);
        // One connection has nobody to share with.
        let alone = |left: u64| {
            run(|facts| {
                facts.connections = 1;
                facts.left_bytes = left * MIB;
                facts.object_bytes = left * MIB;
            })
        };
        assert_eq!((alone(40), alone(56), alone(64)), (40, 56, 32));
    }

    #[test]
    fn a_lane_begins_with_little_and_takes_as_much_again() {
        let small = |given_ranges: u64| {
            let mut facts = usual();
            facts.range_bytes = MIB;
            facts.lane_bytes = given_ranges * MIB;
            facts.run_bytes() / MIB
        };
        // 30 ms of waiting to 60 ms of 3 MB.
        assert_eq!([0, 1, 3, 6, 12, 24].map(small), [3, 3, 3, 6, 12, 24]);
        assert_eq!(run(|facts| facts.lane_bytes = 0), 8);
        assert_eq!(run(|facts| facts.lane_bytes = 9 * 8 * MIB), 56);
    }

    #[test]
    fn an_object_falls_into_even_parts() {
        let parts = |len: u64| run(|facts| facts.object_bytes = len * MIB);
        assert_eq!((parts(56), parts(57), parts(64)), (56, 32, 32));
        assert_eq!((parts(120), parts(40), parts(1)), (40, 40, 8));
    }
}
