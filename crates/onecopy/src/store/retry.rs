//! When to ask again, and when to give up.

use std::time::Duration;

use tokio::time::Instant;

use super::http1::{Client, Failure};
use crate::ledger::Ledger;

/// The first delay is drawn from [0, 100 ms): a retry after a closed connection should cost no more than a slow answer.
const BASE: Duration = Duration::from_millis(100);

/// No delay is longer; what AWS's own clients use lies between 15 and 20 s.
const CAP: Duration = Duration::from_secs(15);

/// How often a retry that has to wait for its turn looks whether it has come.
const TURN: Duration = Duration::from_millis(50);

/// Retries that a request makes room for which went well at once: one for every five.
const GIVEN: f64 = 0.2;

/// And one that went well as a retry. More than one, so that many that wait after an outburst of failures are soon served
/// again, as many more each time; where more than half of all retries fail, there are ever fewer.
const GIVEN_BACK: f64 = 2.0;

/// The tries of one range, listing page or look-up.
#[derive(Debug)]
pub(super) struct Retry<'a> {
    client: &'a Client,
    ledger: &'a Ledger,
    failed_first: Option<Instant>,
    tries: u32,
    /// How often each cause came up.
    causes: Vec<(&'static str, u32)>,
}

impl<'a> Retry<'a> {
    /// For what belongs to no read: retries are counted on the client's own ledger.
    pub(super) fn new(client: &'a Client) -> Self {
        Self::counted(client, client.ledger())
    }

    pub(super) fn counted(client: &'a Client, ledger: &'a Ledger) -> Self {
        Self {
            client,
            ledger,
            failed_first: None,
            tries: 1,
            causes: Vec::new(),
        }
    }

    /// Waits before the next try and notes it; gives the failure back where there is to be none.
    ///
    /// One odd answer (a page of a proxy, a range that was not asked for) from a server that has given right ones is asked for
    /// once more: something on the way hiccups, too. From one that never did, it is how that server is.
    pub(super) async fn after(&mut self, mut failure: Failure) -> Result<(), Failure> {
        if failure.is_prompt {
            tracing::debug!(
                cause = failure.cause,
                why = failure.why,
                "asking another connection"
            );
            self.ledger.retried(failure.cause);
            return Ok(());
        }
        if failure.is_odd() && self.client.has_served() {
            failure.is_worth_retrying = true;
            failure.most_tries = Some(2);
        }
        let seen = self.note(failure.cause);
        if !failure.is_worth_retrying {
            return Err(failure);
        }
        let limits = self.client.limits();
        if self.tries >= limits.tries || failure.most_tries.is_some_and(|most| seen >= most) {
            let tries = self.tries;
            return Err(self.give_up(failure, format!("gave up after {tries} tries")));
        }
        let delay = delay(self.tries, failure.retry_after);
        // From the first failure on: time in our own queue for a connection is nobody's fault.
        let end = *self.failed_first.get_or_insert_with(Instant::now) + limits.budget;
        let budget = limits.budget.as_secs();
        if Instant::now() + delay > end {
            return Err(self.give_up(failure, format!("gave up after {budget} s")));
        }
        tracing::debug!(cause = failure.cause, why = failure.why, "asking again");
        tokio::time::sleep(delay).await;
        if !self.turn(end).await {
            let words =
                format!("gave up after {budget} s; so many requests fail that few are asked again");
            return Err(self.give_up(failure, words));
        }
        self.ledger.retried(failure.cause);
        self.tries += 1;
        Ok(())
    }

    /// All is well, which makes room for other retries.
    pub(super) fn succeeded(&self) {
        let given = if self.tries > 1 { GIVEN_BACK } else { GIVEN };
        self.client.retries().give(given);
        self.client.served();
    }

    /// Waits until one more retry may be made. Says whether that came before `end`.
    async fn turn(&self, end: Instant) -> bool {
        let mut is_first_look = true;
        while !self.client.retries().take() {
            if is_first_look {
                self.ledger.warned("retries_held_back");
                is_first_look = false;
            }
            if Instant::now() > end {
                return false;
            }
            tokio::time::sleep(TURN).await;
        }
        true
    }

    fn note(&mut self, cause: &'static str) -> u32 {
        for (seen, count) in &mut self.causes {
            if *seen == cause {
                *count += 1;
                return *count;
            }
        }
        self.causes.push((cause, 1));
        1
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
    use crate::config::{Limits, StoreConfig};
    use crate::error::ErrorKind;
    use crate::sync::{Arc, AtomicUsize, Ordering};

    fn client(tries: u32, budget: Duration) -> Client {
        let limits = Limits {
            tries,
            budget,
            ..Limits::default()
        };
        Client::new(&StoreConfig {
            limits,
            ..StoreConfig::default()
        })
    }

    fn reset() -> Failure {
        Failure::new(ErrorKind::Unreachable, "reset", "reset")
    }

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
        let patient = client(3, Duration::from_secs(180));
        let mut retry = Retry::new(&patient);
        assert!(retry.after(reset()).await.is_ok());
        assert!(retry.after(reset()).await.is_ok());
        let last = retry.after(reset()).await.unwrap_err();
        assert_eq!(last.why, "reset (gave up after 3 tries)");
        let mut retry = Retry::new(&patient);
        assert!(retry.after(Failure::corrupt("no")).await.is_err());
        let hasty = client(3, Duration::ZERO);
        let mut retry = Retry::new(&hasty);
        let mut throttled = Failure::new(ErrorKind::Throttled, "throttled", "slow down");
        throttled.retry_after = Some(Duration::from_secs(1));
        assert!(retry.after(throttled).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cause_with_few_tries_has_them_whatever_came_before() {
        let client = client(10, Duration::from_secs(180));
        let mut retry = Retry::new(&client);
        let expired = || {
            let mut failure = reset();
            failure.cause = "expired_token";
            failure.most_tries = Some(2);
            failure
        };
        for _ in 0..3 {
            assert!(retry.after(reset()).await.is_ok());
        }
        assert!(retry.after(expired()).await.is_ok());
        assert!(retry.after(reset()).await.is_ok());
        assert!(retry.after(expired()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_only_fails_is_not_hammered() {
        let client = Arc::new(client(10, Duration::from_secs(3600)));
        let retries = Arc::new(AtomicUsize::new(0));
        let mut ranges = tokio::task::JoinSet::new();
        for _ in 0..500 {
            let (client, retries) = (Arc::clone(&client), Arc::clone(&retries));
            ranges.spawn(async move {
                loop {
                    let mut retry = Retry::new(&client);
                    assert!(retry.after(reset()).await.is_ok());
                    retries.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        ranges.abort_all();
        // 200 at once, then ten a second; without a budget it would be some 300,000.
        let retries = retries.load(Ordering::Relaxed);
        assert!((400..=500).contains(&retries), "{retries}");
        assert!(client.ledger().report().warnings["retries_held_back"] > 0);
        // What goes well makes room, a retry for two.
        let mut retry = Retry::new(&client);
        client.retries().give(1.0);
        assert!(retry.after(reset()).await.is_ok());
        while client.retries().take() {}
        retry.succeeded();
        assert_eq!((0..100).filter(|_| client.retries().take()).count(), 2);
        while client.retries().take() {}
        for _ in 0..50 {
            Retry::new(&client).succeeded();
        }
        assert_eq!((0..100).filter(|_| client.retries().take()).count(), 10);
    }
}
