//! What recent requests of an endpoint were like: the measure for those on their way.

use std::time::Duration;

use super::tokens::Tokens;
use crate::sync::Mutex;

/// Ranges whose rates are remembered; the median of fewer than [`ENOUGH`] says little.
const RATES: usize = 64;
const ENOUGH: usize = 16;

/// Bodies shorter than this tell more of the delay than of the rate.
const LEAST_BODY: u64 = 256 << 10;

/// A range below this part of the median rate is slow (a fifth part of S3's connections lie between a quarter and the
/// median, none of the healthy ones below).
const SLOW: f64 = 0.25;

/// What taking a range over costs before its first byte: a connection and an answer.
const TAKING_OVER: f64 = 0.2;

/// First bytes that are remembered.
const FIRST_BYTES: usize = 128;

/// No first byte is late before this: AWS advises to ask again after two seconds.
const LEAST_LATE: Duration = Duration::from_secs(2);

/// A first byte is late where it takes so many times as long as nine out of ten recent ones.
const LATE: f64 = 4.0;

/// The wait for a first byte grows to so many times the usual one where the other side is that slow.
const LONGEST_WAIT: u32 = 6;

/// Ranges that may be taken over: two at once, then one of twenty (AWS advises to ask again for the slowest 5 %), and eight
/// at most, so that a network that slows down as a whole is not met with cancelled work.
const TAKE_OVERS_AT_ONCE: f64 = 2.0;
const TAKE_OVERS_MOST: f64 = 8.0;
const TAKE_OVERS_PER_RANGE: f64 = 0.05;

#[derive(Debug)]
pub(super) struct Recent {
    /// The wait for a first byte, as configured.
    usual_wait: Duration,
    take_overs: Tokens,
    /// Guards what is remembered.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// In bytes per second.
    rates: Ring<RATES>,
    median: Option<f64>,
    /// The same of however few there are.
    rate: f64,
    /// In seconds.
    first_bytes: Ring<FIRST_BYTES>,
    late: Option<f64>,
    first_byte: f64,
    wait: Duration,
}

impl Recent {
    pub(super) fn new(usual_wait: Duration) -> Self {
        Self {
            usual_wait,
            take_overs: Tokens::new(TAKE_OVERS_AT_ONCE, TAKE_OVERS_MOST, 0.0),
            state: Mutex::new(State {
                rates: Ring::default(),
                median: None,
                rate: 0.0,
                first_bytes: Ring::default(),
                late: None,
                first_byte: 0.0,
                wait: usual_wait,
            }),
        }
    }

    /// Notes a body that came whole, and for how long it was read.
    pub(super) fn read(&self, bytes: u64, time: Duration) {
        if bytes < LEAST_BODY {
            return;
        }
        self.take_overs.give(TAKE_OVERS_PER_RANGE);
        let mut state = self.state.lock();
        state
            .rates
            .push(bytes as f64 / time.as_secs_f64().max(1e-6));
        if state.rates.is_due()
            && let Some([median]) = state.rates.percentiles([50])
        {
            state.rate = median;
            state.median = (state.rates.len() >= ENOUGH).then_some(median);
        }
    }

    /// The medians of first bytes and of rates (in bytes per second), as far as any are known.
    pub(super) fn medians(&self) -> (Duration, f64) {
        let state = self.state.lock();
        (Duration::from_secs_f64(state.first_byte), state.rate)
    }

    /// Whether a body that comes at `rate` bytes per second is slow among its like.
    pub(super) fn is_slow(&self, rate: f64) -> bool {
        let median = self.state.lock().median;
        median.is_some_and(|median| rate < SLOW * median)
    }

    /// Whether to cancel a slow body with `left` bytes to come and ask another connection for them: where that at least
    /// halves the time that is left, and not too often.
    pub(super) fn may_take_over(&self, rate: f64, left: u64) -> bool {
        let Some(median) = self.state.lock().median else {
            return false;
        };
        let left = left as f64;
        let is_worth_it = left / rate.max(1.0) > 2.0 * (TAKING_OVER + left / median);
        is_worth_it && self.take_overs.take()
    }

    /// Notes how long an answer let us wait for its first byte.
    pub(super) fn answered(&self, time: Duration) {
        let mut state = self.state.lock();
        state.first_bytes.push(time.as_secs_f64());
        if state.first_bytes.is_due()
            && let Some([median, tenth]) = state.first_bytes.percentiles([50, 90])
        {
            state.first_byte = median;
            state.late = (state.first_bytes.len() >= ENOUGH).then_some(LATE * tenth);
        }
        state.wait = self.usual_wait.max(2 * time).min(self.longest_wait());
    }

    /// How long to wait for a first byte before giving the connection up.
    pub(super) fn wait(&self) -> Duration {
        self.state.lock().wait
    }

    /// Notes that nothing came within `wait`. The next wait is longer, up to a bound: a store under load may need it.
    pub(super) fn timed_out(&self, wait: Duration) {
        let mut state = self.state.lock();
        if wait >= state.wait {
            state.wait = (2 * wait).min(self.longest_wait());
        }
    }

    fn longest_wait(&self) -> Duration {
        LONGEST_WAIT * self.usual_wait
    }

    /// After how long a first byte is late among its like. None where too little is known.
    pub(super) fn late_after(&self) -> Option<Duration> {
        let late = self.state.lock().late?;
        Some(Duration::from_secs_f64(late).max(LEAST_LATE))
    }

    /// Whether a request whose first byte is late may be made again on another connection.
    pub(super) fn may_ask_anew(&self) -> bool {
        self.take_overs.take()
    }
}

/// The last `N` values.
#[derive(Debug)]
struct Ring<const N: usize> {
    values: Vec<f64>,
    next: usize,
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Self {
            values: Vec::with_capacity(N),
            next: 0,
        }
    }
}

impl<const N: usize> Ring<N> {
    fn len(&self) -> usize {
        self.values.len()
    }

    fn push(&mut self, value: f64) {
        if self.values.len() < N {
            self.values.push(value);
        } else {
            self.values[self.next] = value;
        }
        self.next = (self.next + 1) % N;
    }

    /// Whether to look at all values again: with every new one while they are few, later with every eighth. Small objects
    /// bring thousands a second, and sorting is what that costs.
    fn is_due(&self) -> bool {
        self.values.len() < N || self.next.is_multiple_of(8)
    }

    /// The values that so many percent of them do not pass.
    fn percentiles<const M: usize>(&self, percents: [usize; M]) -> Option<[f64; M]> {
        let mut sorted = self.values.clone();
        let last = sorted.len().checked_sub(1)?;
        sorted.sort_unstable_by(f64::total_cmp);
        Some(percents.map(|percent| sorted[(percent * last).div_ceil(100)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    fn recent(ranges: usize) -> Recent {
        let recent = Recent::new(Duration::from_secs(10));
        for _ in 0..ranges {
            recent.read(8 * MB, Duration::from_millis(160));
        }
        recent
    }

    #[tokio::test]
    async fn slow_is_below_a_quarter_of_the_median_and_only_once_enough_was_seen() {
        let few = recent(ENOUGH - 1);
        assert!(!few.is_slow(1.0));
        few.read(100, Duration::from_secs(1));
        assert!(!few.is_slow(1.0), "a small body tells nothing of the rate");
        let enough = recent(ENOUGH);
        assert!(enough.is_slow(12e6));
        assert!(!enough.is_slow(13e6));
    }

    #[tokio::test]
    async fn a_range_is_taken_over_where_that_helps_and_not_often() {
        let recent = recent(30);
        assert!(!recent.may_take_over(12e6, MB), "it is nearly done");
        assert!(recent.may_take_over(1e6, 7 * MB));
        let all = (0..100)
            .filter(|_| recent.may_take_over(1e6, 7 * MB))
            .count();
        assert_eq!(
            all, 2,
            "two at first and one for twenty ranges, less the one above"
        );
        for _ in 0..1000 {
            recent.read(8 * MB, Duration::from_millis(160));
        }
        let all = (0..100)
            .filter(|_| recent.may_take_over(1e6, 7 * MB))
            .count();
        assert_eq!(all, 8);
    }

    #[tokio::test]
    async fn medians_are_told_of_however_few_there_are() {
        let recent = recent(0);
        assert_eq!(recent.medians(), (Duration::ZERO, 0.0));
        recent.answered(Duration::from_millis(30));
        recent.read(8 * MB, Duration::from_millis(160));
        assert_eq!(recent.medians(), (Duration::from_millis(30), 50e6));
        for _ in 0..2 {
            recent.answered(Duration::from_millis(10));
            recent.read(8 * MB, Duration::from_millis(80));
        }
        assert_eq!(recent.medians(), (Duration::from_millis(10), 100e6));
    }

    #[tokio::test]
    async fn first_bytes_are_late_by_what_others_took() {
        let recent = recent(0);
        assert_eq!(recent.late_after(), None);
        for _ in 0..FIRST_BYTES {
            recent.answered(Duration::from_millis(30));
        }
        assert_eq!(recent.late_after(), Some(LEAST_LATE));
        for _ in 0..FIRST_BYTES {
            recent.answered(Duration::from_secs(1));
        }
        assert_eq!(recent.late_after(), Some(Duration::from_secs(4)));
    }

    #[tokio::test]
    async fn the_wait_for_a_first_byte_follows_a_slow_store_and_comes_back() {
        let recent = recent(0);
        let seconds = |recent: &Recent| recent.wait().as_secs();
        assert_eq!(seconds(&recent), 10);
        // Of many that time out together only the first makes the wait longer.
        for _ in 0..50 {
            recent.timed_out(Duration::from_secs(10));
        }
        assert_eq!(seconds(&recent), 20);
        for _ in 0..9 {
            recent.timed_out(recent.wait());
        }
        assert_eq!(seconds(&recent), 60);
        recent.answered(Duration::from_secs(15));
        assert_eq!(seconds(&recent), 30);
        recent.answered(Duration::from_millis(30));
        assert_eq!(seconds(&recent), 10);
    }
}
