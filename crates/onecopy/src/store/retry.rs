//! When to ask again, and when to give up.

use std::time::{Duration, Instant};

use super::http1::Failure;
use crate::config::Limits;
use crate::ledger::Ledger;

/// The first delay is drawn from [0, 100 ms): a retry after a closed connection should cost no more than a slow answer.
const BASE: Duration = Duration::from_millis(100);

/// No delay is longer; what AWS's own clients use lies between 15 and 20 s.
const CAP: Duration = Duration::from_secs(15);

/// The tries of one range, listing page or look-up.
#[derive(Debug)]
pub(super) struct Retry<'a> {
    limits: &'a Limits,
    failed_first: Option<Instant>,
    tries: u32,
}

impl<'a> Retry<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            failed_first: None,
            tries: 1,
        }
    }

    /// Waits before the next try and notes it in `ledger`; gives the failure back where there is to be none.
    pub(super) async fn after(
        &mut self,
        failure: Failure,
        ledger: Option<&Ledger>,
    ) -> Result<(), Failure> {
        if !failure.is_worth_retrying {
            return Err(failure);
        }
        let tries = self
            .limits
            .tries
            .min(failure.most_tries.unwrap_or(u32::MAX));
        if self.tries >= tries {
            let tries = self.tries;
            return Err(self.give_up(failure, format!("gave up after {tries} tries")));
        }
        let delay = delay(self.tries, failure.retry_after);
        // From the first failure on: time in our own queue for a connection is nobody's fault.
        let began = *self.failed_first.get_or_insert_with(Instant::now);
        if began.elapsed() + delay > self.limits.budget {
            let budget = self.limits.budget.as_secs();
            return Err(self.give_up(failure, format!("gave up after {budget} s")));
        }
        tracing::debug!(cause = failure.cause, why = failure.why, "asking again");
        if let Some(ledger) = ledger {
            ledger.retried(failure.cause);
        }
        self.tries += 1;
        tokio::time::sleep(delay).await;
        Ok(())
    }

    fn give_up(&self, mut failure: Failure, words: String) -> Failure {
        if self.tries > 1 {
            failure.why = format!("{} ({words})", failure.why);
        }
        failure
    }
}

/// Full jitter: anything up to a bound that doubles with every try, and no less than what the other side asked for.
fn delay(tries: u32, asked: Option<Duration>) -> Duration {
    let bound = BASE
        .saturating_mul(1 << tries.saturating_sub(1).min(16))
        .min(CAP);
    let drawn = bound.mul_f64(rand::random_range(0.0..1.0));
    drawn.max(asked.unwrap_or_default().min(CAP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn delays_are_jittered_bounded_and_obey_the_other_side() {
        for tries in [1, 2, 5, 10, 40] {
            let bound = BASE * (1 << (tries - 1).min(16));
            assert!(delay(tries, None) <= bound.min(CAP));
        }
        assert!(delay(1, Some(Duration::from_secs(2))) >= Duration::from_secs(2));
        assert!(delay(1, Some(Duration::from_secs(3600))) <= CAP);
    }

    #[tokio::test(start_paused = true)]
    async fn tries_and_budget_are_limits_and_kinds_decide() {
        let mut limits = Limits {
            tries: 3,
            ..Limits::default()
        };
        let reset = || Failure::new(ErrorKind::Unreachable, "reset", "reset");
        let mut retry = Retry::new(&limits);
        assert!(retry.after(reset(), None).await.is_ok());
        assert!(retry.after(reset(), None).await.is_ok());
        let last = retry.after(reset(), None).await.unwrap_err();
        assert_eq!(last.why, "reset (gave up after 3 tries)");
        let mut retry = Retry::new(&limits);
        assert!(retry.after(Failure::corrupt("no"), None).await.is_err());
        limits.budget = Duration::ZERO;
        let mut retry = Retry::new(&limits);
        let mut throttled = Failure::new(ErrorKind::Throttled, "throttled", "slow down");
        throttled.retry_after = Some(Duration::from_secs(1));
        assert!(retry.after(throttled, None).await.is_err());
    }
}
