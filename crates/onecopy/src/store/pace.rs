//! What reading is like just now.

use std::time::Duration;

use crate::config::Limits;

/// What reading from a store is like just now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Requests that there may be at once while nothing is wrong.
    pub connections: usize,
    /// The median time to the first byte of an answer; zero where not known.
    pub first_byte: Duration,
    /// The median rate of a connection while a body comes; 0 where not known.
    pub bytes_per_second: f64,
}

impl Pace {
    /// Before the first request.
    pub(super) fn at_first(limits: &Limits) -> Self {
        Self {
            connections: limits
                .connections_at_first
                .clamp(1, limits.connections.max(1)),
            first_byte: Duration::ZERO,
            bytes_per_second: 0.0,
        }
    }

    /// Of two endpoints: the connections of both, and the times of that at which waiting costs more.
    pub(super) fn and(self, other: Self) -> Self {
        let cost = |pace: &Self| pace.first_byte.as_secs_f64() * pace.bytes_per_second;
        let dearer = if cost(&self) < cost(&other) {
            other
        } else {
            self
        };
        Self {
            connections: self.connections + other.connections,
            ..dearer
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_endpoints_have_the_connections_of_both_and_the_times_of_the_dearer() {
        let pace = |connections, millis, bytes_per_second| Pace {
            connections,
            first_byte: Duration::from_millis(millis),
            bytes_per_second,
        };
        let (near, far) = (pace(8, 4, 90e6), pace(32, 30, 50e6));
        assert_eq!(near.and(far), pace(40, 30, 50e6));
        assert_eq!(far.and(near), pace(40, 30, 50e6));
        let first = Pace::at_first(&Limits::default());
        assert_eq!(
            (first.connections, first.and(near)),
            (32, pace(40, 4, 90e6))
        );
    }

    #[test]
    fn it_begins_with_no_more_connections_than_there_may_be() {
        let limits = Limits {
            connections: 4,
            ..Limits::default()
        };
        assert_eq!(Pace::at_first(&limits).connections, 4);
    }
}
