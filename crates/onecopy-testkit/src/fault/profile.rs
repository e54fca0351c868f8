//! The timing of S3: what a benchmark on loopback would miss.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::random::Random;

/// How a server takes its time. Rates are in bytes per second.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The same seed draws the same numbers for the same connection and request.
    pub seed: u64,
    /// The median time to the first byte, lognormal.
    pub first_byte_median: Duration,
    /// Its 99th percentile.
    pub first_byte_p99: Duration,
    /// This share of requests waits [`Self::straggler_delay`] more.
    pub straggler_share: f64,
    /// What a straggler waits.
    pub straggler_delay: Duration,
    /// The mean rate of a connection, normal, cut at the two below. 0 is unlimited.
    pub rate_mean: f64,
    /// No connection is slower than this, but for the slow ones.
    pub rate_min: f64,
    /// No connection is faster than this.
    pub rate_max: f64,
    /// This share of connections has a rate of 1 to 10 MB/s.
    pub slow_share: f64,
    /// `Connection: close` comes with this request of a connection; 0 is never.
    pub close_after: u64,
    /// Requests per second before 503 SlowDown; 0 is unlimited.
    pub requests_per_second: f64,
    /// From so long after the first GET on every GET is answered by 503 SlowDown ..
    pub refuse_after: Duration,
    /// .. for so long; zero is never.
    pub refuse_for: Duration,
}

impl Profile {
    /// No delays at all.
    #[must_use]
    pub fn instant() -> Self {
        Self {
            seed: 0,
            first_byte_median: Duration::ZERO,
            first_byte_p99: Duration::ZERO,
            straggler_share: 0.0,
            straggler_delay: Duration::ZERO,
            rate_mean: 0.0,
            rate_min: 0.0,
            rate_max: 0.0,
            slow_share: 0.0,
            close_after: 0,
            requests_per_second: 0.0,
            refuse_after: Duration::ZERO,
            refuse_for: Duration::ZERO,
        }
    }

    /// Every connection at the same rate, every first byte after the same time.
    #[must_use]
    pub fn even(bytes_per_second: f64, first_byte: Duration) -> Self {
        Self {
            first_byte_median: first_byte,
            first_byte_p99: first_byte,
            rate_mean: bytes_per_second,
            rate_min: bytes_per_second,
            rate_max: bytes_per_second,
            ..Self::instant()
        }
    }

    /// Whether a GET is refused that comes `since` the first one.
    #[must_use]
    pub(crate) fn refuses(&self, since: Duration) -> bool {
        (self.refuse_after..self.refuse_after + self.refuse_for).contains(&since)
    }

    /// S3 Standard from the same region: 25 ms (p99 120 ms), 75 MB/s a connection (20 to 95),
    /// one connection in 50 slow, one request in 1000 five seconds late, 100 requests a
    /// connection, 5500 requests a second.
    #[must_use]
    pub fn standard(seed: u64) -> Self {
        Self {
            seed,
            first_byte_median: Duration::from_millis(25),
            first_byte_p99: Duration::from_millis(120),
            straggler_share: 0.001,
            straggler_delay: Duration::from_secs(5),
            rate_mean: 75e6,
            rate_min: 20e6,
            rate_max: 95e6,
            slow_share: 0.02,
            close_after: 100,
            requests_per_second: 5500.0,
            ..Self::instant()
        }
    }

    /// S3 Express One Zone: 4 ms (p99 12 ms), otherwise as Standard but without stragglers.
    #[must_use]
    pub fn express(seed: u64) -> Self {
        Self {
            first_byte_median: Duration::from_millis(4),
            first_byte_p99: Duration::from_millis(12),
            straggler_share: 0.0,
            ..Self::standard(seed)
        }
    }

    /// The rate of a connection; None is unlimited.
    #[must_use]
    pub fn connection_rate(&self, connection: u64) -> Option<f64> {
        if self.rate_mean <= 0.0 {
            return None;
        }
        let mut random = Random::new(self.seed, connection);
        if f64::from(random.unit()) < self.slow_share {
            return Some(1e6 + 9e6 * f64::from(random.unit()));
        }
        // A fifth of the mean is the spread; the cut keeps it within what was seen.
        let rate = self.rate_mean * (1.0 + 0.2 * random.normal());
        Some(rate.clamp(self.rate_min, self.rate_max))
    }

    /// The time to the first byte of one request of a connection.
    #[must_use]
    pub fn first_byte(&self, connection: u64, request: u64) -> Duration {
        let mut random = Random::new(self.seed ^ 0xF1B7, connection << 20 | request);
        let median = self.first_byte_median.as_secs_f64();
        let mut seconds = median;
        if median > 0.0 {
            // 2.326 is the 99th percentile of a standard normal.
            let sigma = (self.first_byte_p99.as_secs_f64() / median).ln().max(0.0) / 2.326;
            seconds = median * (sigma * random.normal()).exp();
        }
        if f64::from(random.unit()) < self.straggler_share {
            seconds += self.straggler_delay.as_secs_f64();
        }
        Duration::from_secs_f64(seconds)
    }
}

/// Counts requests against the limit; a second's worth may come at once.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    per_second: f64,
    /// Guards the tokens left and when they were last counted.
    state: Mutex<(f64, Instant)>,
}

impl TokenBucket {
    pub(crate) fn new(per_second: f64) -> Self {
        Self {
            per_second,
            state: Mutex::new((per_second, Instant::now())),
        }
    }

    /// May one more request be served now?
    pub(crate) fn take(&self) -> bool {
        if self.per_second <= 0.0 {
            return true;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let more = now.duration_since(state.1).as_secs_f64() * self.per_second;
        state.0 = (state.0 + more).min(self.per_second);
        state.1 = now;
        if state.0 < 1.0 {
            return false;
        }
        state.0 -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_profile_draws_the_same_and_refuses_for_a_while() {
        let mut profile = Profile::even(50e6, Duration::from_millis(30));
        for connection in 0..100 {
            assert_eq!(profile.connection_rate(connection), Some(50e6));
            assert_eq!(profile.first_byte(connection, 3).as_millis(), 30);
            assert!(!profile.refuses(Duration::from_secs(connection)));
        }
        profile.refuse_after = Duration::from_secs(4);
        profile.refuse_for = Duration::from_secs(2);
        let refused = (0..10).filter(|second| profile.refuses(Duration::from_secs(*second)));
        assert_eq!(refused.collect::<Vec<_>>(), [4, 5]);
    }

    #[test]
    fn draws_what_the_profile_says() {
        let profile = Profile::standard(1);
        let mut times: Vec<_> = (0..2000).map(|n| profile.first_byte(n, 0)).collect();
        times.sort();
        assert!(
            (20..31).contains(&times[1000].as_millis()),
            "{:?}",
            times[1000]
        );
        assert!(
            (80..200).contains(&times[1980].as_millis()),
            "{:?}",
            times[1980]
        );
        let rates: Vec<_> = (0..2000)
            .filter_map(|n| profile.connection_rate(n))
            .collect();
        let slow = rates.iter().filter(|rate| **rate < 10e6).count();
        assert!((15..80).contains(&slow), "{slow}");
        assert!(rates.iter().all(|rate| *rate <= 95e6));
        assert_eq!(profile.first_byte(3, 4), profile.first_byte(3, 4));
    }
}
