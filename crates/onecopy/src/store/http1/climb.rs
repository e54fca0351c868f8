//! How many connections to hold: as many as still bring more, fewer once the other side asks for less.
//!
//! A state machine without a clock: it is told what an epoch brought and when the other side asked for less, and says how
//! many connections there may be. The same story always has the same end.
//!
//! ```text
//!  trial of the count it has --> trial of a quarter more --gained--> kept, and tried again
//!            ^                              |no gain: back
//!            |                              v
//!            +--------- rest, longer each time --> trial of an eighth fewer --as good--> kept
//!
//!  asked for less: half at once, then back up by steps, then rest
//! ```

use std::time::Duration;

use super::epoch::{EPOCH, Epoch};

/// Epochs after a change of the count that are not judged: connections must be made, and windows must open.
const SETTLING: u32 = 1;

/// Epochs that are judged together.
const JUDGED: u32 = 2;

/// A count that was raised by a share must raise the rate by this part of that share to be kept: with less, what one
/// more connection wins is taken from the others.
const WORTH: f64 = 0.25;

/// A count that was lowered is kept if the rate fell by no more than this.
const NO_LOSS: f64 = 0.02;

/// Epochs of rest after a trial that changed nothing; doubled each time up to the most, so that trials cost little.
const REST: u32 = 8;
const REST_MOST: u32 = 128;

/// The way back after a cut takes so many epochs: two to three seconds.
const STEPS_BACK: usize = 6;

/// What a trial compares with.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trial {
    /// With nothing: it measures the count there is.
    Level,
    /// With this count and its rate, from which it went up.
    Up { from: usize, rate: f64 },
    /// The same, down.
    Down { from: usize, rate: f64 },
}

#[derive(Debug)]
enum Phase {
    Trying {
        trial: Trial,
        /// Telling epochs so far, those of settling included.
        epochs: u32,
        bytes: u64,
        span: Duration,
    },
    Resting {
        epochs: u32,
    },
    /// After a cut, on the way back to what was held before.
    Returning {
        to: usize,
        has_grown: bool,
    },
}

/// The number of connections of one endpoint.
#[derive(Debug)]
pub(super) struct Climb {
    least: usize,
    most: usize,
    count: usize,
    phase: Phase,
    /// The length of the next rest, in epochs.
    rest: u32,
    is_down_next: bool,
    cut_at: Option<Duration>,
    /// When the other side last asked for less, whether that led to a cut or not.
    asked_at: Option<Duration>,
}

impl Climb {
    /// Begins with `first` connections; no more than `most`, and no fewer than `first` unless asked for less.
    pub(super) fn new(first: usize, most: usize) -> Self {
        let most = most.max(1);
        let first = first.clamp(1, most);
        Self {
            least: first,
            most,
            count: first,
            phase: trying(Trial::Level),
            rest: REST,
            is_down_next: false,
            cut_at: None,
            asked_at: None,
        }
    }

    /// How many connections there may be.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// How many there are to be while nobody asks for less: after a cut, as many as there were before it.
    pub(super) fn aim(&self) -> usize {
        match self.phase {
            Phase::Returning { to, .. } => to,
            _ => self.count,
        }
    }

    /// The other side asked for less at `now` (on any clock that only goes forward). What it says within an epoch of the
    /// last cut was asked before that cut, and only says that it is too early to grow.
    pub(super) fn throttled(&mut self, now: Duration) {
        self.asked_at = Some(now);
        if self.cut_at.is_some_and(|at| now.saturating_sub(at) < EPOCH) {
            return;
        }
        self.cut_at = Some(now);
        let to = match self.phase {
            // Cut again before it could grow: the way back stays as long as it was.
            Phase::Returning {
                to,
                has_grown: false,
            } => to,
            // What a trial went up to was not yet proven.
            Phase::Trying {
                trial: Trial::Up { from, .. },
                ..
            } => from,
            _ => self.count,
        };
        self.count = (self.count / 2).max(1);
        self.phase = Phase::Returning {
            to,
            has_grown: false,
        };
    }

    /// An epoch ended at `now`.
    pub(super) fn ended(&mut self, now: Duration, epoch: Epoch) {
        match self.phase {
            Phase::Returning { to, .. } => {
                let is_calm = self
                    .asked_at
                    .is_none_or(|at| now.saturating_sub(at) >= EPOCH);
                if is_calm {
                    self.grow_back(to);
                }
            }
            // One that only ever holds `most` has nothing to try.
            _ if self.least == self.most && self.count == self.most => {}
            _ if !epoch.is_telling() => {}
            Phase::Resting { epochs } if epochs > 1 => {
                self.phase = Phase::Resting { epochs: epochs - 1 };
            }
            Phase::Resting { .. } => self.phase = trying(Trial::Level),
            Phase::Trying {
                trial,
                epochs,
                bytes,
                span,
            } => self.judge_after(trial, epochs + 1, bytes, span, epoch),
        }
    }

    fn grow_back(&mut self, to: usize) {
        let step = to.div_ceil(STEPS_BACK);
        self.count = (self.count + step).min(to);
        self.phase = if self.count == to {
            Phase::Resting { epochs: REST }
        } else {
            Phase::Returning {
                to,
                has_grown: true,
            }
        };
    }

    fn judge_after(&mut self, trial: Trial, epochs: u32, bytes: u64, span: Duration, epoch: Epoch) {
        let is_settling = epochs <= SETTLING;
        let (bytes, span) = if is_settling {
            (0, Duration::ZERO)
        } else {
            (bytes + epoch.bytes, span + epoch.span)
        };
        self.phase = Phase::Trying {
            trial,
            epochs,
            bytes,
            span,
        };
        if epochs >= SETTLING + JUDGED {
            self.judge(trial, bytes as f64 / span.as_secs_f64().max(1e-9));
        }
    }

    fn judge(&mut self, trial: Trial, now: f64) {
        match trial {
            Trial::Level if self.is_down_next && self.count > self.least => {
                self.is_down_next = false;
                let fewer = (self.count - (self.count / 8).max(1)).max(self.least);
                self.try_count(fewer, |from| Trial::Down { from, rate: now });
            }
            Trial::Level => self.go_up(now),
            Trial::Up { from, rate } => {
                let raised = self.count as f64 / from as f64 - 1.0;
                if now >= rate * (1.0 + WORTH * raised) {
                    self.rest = REST;
                    self.go_up(now);
                } else {
                    self.count = from;
                    self.is_down_next = true;
                    self.take_rest();
                }
            }
            Trial::Down { from, rate } => {
                if now >= rate * (1.0 - NO_LOSS) {
                    self.rest = REST;
                    self.is_down_next = true;
                } else {
                    self.count = from;
                }
                self.take_rest();
            }
        }
    }

    fn go_up(&mut self, rate: f64) {
        let more = (self.count + (self.count / 4).max(1)).min(self.most);
        if more == self.count {
            self.is_down_next = true;
            self.take_rest();
        } else {
            self.try_count(more, |from| Trial::Up { from, rate });
        }
    }

    fn try_count(&mut self, count: usize, trial: impl FnOnce(usize) -> Trial) {
        let from = std::mem::replace(&mut self.count, count);
        self.phase = trying(trial(from));
    }

    fn take_rest(&mut self) {
        self.phase = Phase::Resting { epochs: self.rest };
        self.rest = (self.rest * 2).min(REST_MOST);
    }
}

fn trying(trial: Trial) -> Phase {
    Phase::Trying {
        trial,
        epochs: 0,
        bytes: 0,
        span: Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link with a rate for every count of connections, in bytes per epoch.
    struct Link<F> {
        climb: Climb,
        now: Duration,
        rate: F,
    }

    impl<F: Fn(usize) -> u64> Link<F> {
        fn new(first: usize, most: usize, rate: F) -> Self {
            let climb = Climb::new(first, most);
            Self {
                climb,
                now: Duration::ZERO,
                rate,
            }
        }

        fn epoch(&mut self, full: f64) -> usize {
            self.now += EPOCH;
            let bytes = (self.rate)(self.climb.count());
            let full = EPOCH.mul_f64(full);
            let span = EPOCH;
            self.climb.ended(self.now, Epoch { span, full, bytes });
            self.climb.count()
        }

        fn run(&mut self, epochs: usize) -> usize {
            for _ in 0..epochs {
                self.epoch(1.0);
            }
            self.climb.count()
        }
    }

    #[test]
    fn climbs_while_more_brings_more_and_stops_where_the_link_is_full() {
        // 50 MB/s each up to a link of 5 GB/s: a hundred connections.
        let full = |count: usize| 25_000_000 * count.min(100) as u64;
        let mut link = Link::new(32, 1024, full);
        let reached = link.run(60);
        assert!((80..=130).contains(&reached), "{reached}");
        for _ in 0..2000 {
            let count = link.epoch(1.0);
            assert!((70..=165).contains(&count), "{count}");
        }
    }

    #[test]
    fn the_cap_is_never_passed_and_a_fixed_number_never_left() {
        let endless = |count: usize| count as u64 * 1_000_000;
        let mut link = Link::new(32, 200, endless);
        for _ in 0..500 {
            assert!(link.epoch(1.0) <= 200);
        }
        assert_eq!(link.climb.count(), 200);
        for most in [1, 4, 16] {
            let mut link = Link::new(32, most, endless);
            for _ in 0..200 {
                assert_eq!(link.epoch(1.0), most);
            }
        }
    }

    #[test]
    fn more_that_brings_less_is_taken_back_and_fewer_that_bring_as_much_are_kept() {
        // Each connection beyond 40 costs all of them.
        let crowded = |count: usize| 1_000_000_000 - 10_000_000 * count.saturating_sub(40) as u64;
        let mut link = Link::new(32, 1024, crowded);
        link.run(400);
        assert!(link.climb.count() <= 45, "{}", link.climb.count());
        // A link that lost most of its width lets go of what it no longer needs, in time.
        let mut link = Link::new(8, 1024, |count: usize| 1_000_000 * count.min(64) as u64);
        let high = link.run(60);
        assert!(high >= 48, "{high}");
        let mut narrow = Link {
            climb: link.climb,
            now: link.now,
            rate: |count: usize| 1_000_000 * count.min(16) as u64,
        };
        let low = narrow.run(3000);
        assert!(low < high && low >= 16, "{low} of {high}");
    }

    #[test]
    fn epochs_in_which_nothing_waited_for_a_connection_teach_nothing() {
        let mut link = Link::new(32, 1024, |count: usize| count as u64 * 1_000_000);
        link.run(4);
        let before = link.climb.count();
        assert!(before > 32);
        for _ in 0..1000 {
            // The consumer pauses: no bytes, but also nobody who waits for a connection.
            assert_eq!(link.epoch(0.5), before);
        }
        assert!(link.run(10) > before);
    }

    #[test]
    fn asked_for_less_it_halves_once_an_epoch_and_comes_back_within_five_seconds() {
        let mut link = Link::new(16, 16, |count: usize| count as u64 * 1_000_000);
        for ms in 0..2000 {
            let now = link.now + Duration::from_millis(ms);
            if ms % 500 == 0 {
                // An epoch that ends among refusals is not calm, even where none of them cut.
                let (span, full, bytes) = (EPOCH, EPOCH, 0);
                link.climb.ended(now, Epoch { span, full, bytes });
            }
            link.climb.throttled(now);
        }
        // 16, 8, 4, 2, 1: four cuts in two seconds, whatever the number of refusals, and one is always left.
        assert_eq!(link.climb.count(), 1);
        link.now += Duration::from_secs(2);
        let mut epochs = 0;
        while link.climb.count() < 15 {
            link.epoch(0.0);
            epochs += 1;
            assert!(EPOCH * epochs <= Duration::from_secs(5));
        }
        link.run(100);
        assert_eq!(link.climb.count(), 16);
    }

    #[test]
    fn a_limit_that_stays_is_met_by_a_saw_tooth_below_it_and_not_by_a_climb() {
        let mut link = Link::new(32, 256, |count: usize| count as u64 * 1_000_000);
        let mut sum = 0;
        for _ in 0..400 {
            if link.epoch(1.0) > 40 {
                let now = link.now;
                link.climb.throttled(now);
            }
            sum += link.climb.count();
            assert!(link.climb.count() <= 60);
        }
        assert!((20..=40).contains(&(sum / 400)), "{}", sum / 400);
    }
}
