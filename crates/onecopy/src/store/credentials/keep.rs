//! A credential in use: fetched once for all who wait, renewed before its end, given up when it is refused.

use std::future::Future;
use std::time::{Duration, Instant};

use reqsign_core::SigningCredential;
use reqsign_core::time::Timestamp;

use super::super::http1::Failure;
use crate::sync::{Arc, Mutex};

/// A credential that runs out this soon is not worth a request.
const LEAST_LIFE: Duration = Duration::from_secs(15);

/// After a renewal that failed, the credential in use goes on for this long before the next attempt.
const PAUSE: Duration = Duration::from_secs(10);

/// A credential that may be given up for another one.
pub(in crate::store) trait Kept: SigningCredential {
    /// Whether `other` is this one again.
    fn is(&self, other: &Self) -> bool;

    /// What to say where a store refuses it as past its time, and there is no other.
    fn expired() -> Failure;
}

/// A credential and the number of its fetch, so that one refusal gives it up and not its successor.
#[derive(Debug)]
pub(in crate::store) struct Held<C> {
    pub(in crate::store) credential: C,
    number: u64,
}

/// The credential that requests are signed with.
#[derive(Debug)]
pub(in crate::store) struct Keep<C> {
    /// Guards what is known; held for a look or a change only.
    state: Mutex<State<C>>,
    /// Held while a credential is fetched, so that it is fetched once for all who wait.
    fetching: tokio::sync::Mutex<()>,
    /// It is renewed when it has no more life than this.
    margin: Duration,
}

#[derive(Debug)]
struct State<C> {
    held: Option<Arc<Held<C>>>,
    number: u64,
    /// What a store called expired: to be told again would help nobody.
    refused: Option<Arc<Held<C>>>,
    not_before: Option<Instant>,
}

impl<C: Kept> Keep<C> {
    pub(in crate::store) fn new(margin: Duration) -> Self {
        Self {
            state: Mutex::new(State {
                held: None,
                number: 0,
                refused: None,
                not_before: None,
            }),
            fetching: tokio::sync::Mutex::new(()),
            margin,
        }
    }

    /// The credential in use, or a new one from `fetch` where that has too little life left at `now`.
    pub(in crate::store) async fn get<F>(
        &self,
        now: Timestamp,
        fetch: impl FnOnce() -> F,
    ) -> Result<Arc<Held<C>>, Failure>
    where
        F: Future<Output = Result<C, Failure>>,
    {
        if let Some(held) = self.fresh(now) {
            return Ok(held);
        }
        let _one_at_a_time = self.fetching.lock().await;
        if let Some(held) = self.fresh(now) {
            return Ok(held);
        }
        match fetch().await {
            Ok(credential) => self.take(credential),
            Err(failure) => {
                let mut state = self.state.lock();
                state.not_before = Some(Instant::now() + PAUSE);
                // A renewal that fails costs nothing as long as the one in use lasts.
                let lasting = state.held.clone().filter(|held| lasts(held, now));
                lasting.ok_or(failure)
            }
        }
    }

    /// Notes that a store called `held` expired.
    pub(in crate::store) fn refuse(&self, held: &Arc<Held<C>>) {
        let mut state = self.state.lock();
        if state
            .held
            .as_ref()
            .is_some_and(|now| now.number == held.number)
        {
            state.held = None;
            state.refused = Some(Arc::clone(held));
        }
    }

    /// Whether another request has brought a successor of `held` in the meantime, or one may be fetched.
    fn fresh(&self, now: Timestamp) -> Option<Arc<Held<C>>> {
        let state = self.state.lock();
        let held = state.held.as_ref()?;
        let is_pausing = state
            .not_before
            .is_some_and(|then| Instant::now() < then && lasts(held, now));
        let is_fresh = held.credential.is_valid_at(now + self.margin);
        (is_fresh || is_pausing).then(|| Arc::clone(held))
    }

    fn take(&self, credential: C) -> Result<Arc<Held<C>>, Failure> {
        let mut state = self.state.lock();
        let is_same = |held: &Arc<Held<C>>| held.credential.is(&credential);
        if state.refused.as_ref().is_some_and(is_same) {
            return Err(C::expired());
        }
        state.number += 1;
        let held = Arc::new(Held {
            credential,
            number: state.number,
        });
        state.held = Some(Arc::clone(&held));
        state.refused = None;
        state.not_before = None;
        Ok(held)
    }
}

fn lasts<C: Kept>(held: &Held<C>, now: Timestamp) -> bool {
    held.credential.is_valid_at(now + LEAST_LIFE)
}

#[cfg(test)]
mod tests {
    use reqsign_aws_v4::Credential;

    use super::*;
    use crate::error::ErrorKind;
    use crate::sync::{AtomicUsize, Ordering};

    fn credential(name: &str, life: Option<Duration>) -> Credential {
        Credential {
            access_key_id: name.to_owned(),
            secret_access_key: "s".to_owned(),
            session_token: None,
            expires_in: life.map(|life| Timestamp::now() + life),
        }
    }

    async fn get(
        keep: &Keep<Credential>,
        found: Option<Credential>,
    ) -> Result<String, &'static str> {
        let failure = Failure::new(ErrorKind::Denied, "none", "none");
        let fetch = || async { found.ok_or(failure) };
        let held = keep.get(Timestamp::now(), fetch).await;
        held.map(|held| held.credential.access_key_id.clone())
            .map_err(|failure| failure.cause)
    }

    #[tokio::test]
    async fn one_refusal_of_many_requests_fetches_once() {
        let keep = Arc::new(Keep::new(Duration::from_secs(120)));
        let fetched = Arc::new(AtomicUsize::new(0));
        let next = |keep: Arc<Keep<Credential>>, fetched: Arc<AtomicUsize>| async move {
            let fetch = || async {
                let number = fetched.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                Ok(credential(&format!("k{number}"), None))
            };
            keep.get(Timestamp::now(), fetch).await.unwrap()
        };
        let first = next(Arc::clone(&keep), Arc::clone(&fetched)).await;
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..20 {
            keep.refuse(&first);
            running.spawn(next(Arc::clone(&keep), Arc::clone(&fetched)));
        }
        while let Some(held) = running.join_next().await {
            assert_eq!(held.unwrap().credential.access_key_id, "k1");
        }
        assert_eq!(fetched.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn the_same_credential_again_is_final() {
        let keep = Keep::new(Duration::from_secs(120));
        let fetch = || async { Ok(credential("a", None)) };
        let held = keep.get(Timestamp::now(), fetch).await.unwrap();
        keep.refuse(&held);
        let again = get(&keep, Some(credential("a", None))).await;
        assert_eq!(again, Err("expired_token"));
        assert_eq!(
            get(&keep, Some(credential("b", None))).await,
            Ok("b".into())
        );
    }

    #[tokio::test]
    async fn it_is_renewed_before_its_end_and_used_on_where_that_fails() {
        let keep = Keep::new(Duration::from_secs(120));
        let short = credential("short", Some(Duration::from_secs(60)));
        assert_eq!(get(&keep, Some(short)).await, Ok("short".into()));
        assert_eq!(get(&keep, None).await, Ok("short".into()));
        // For a while nobody is asked; then the next one is taken.
        let long = credential("long", Some(Duration::from_secs(3600)));
        assert_eq!(get(&keep, Some(long.clone())).await, Ok("short".into()));
        keep.state.lock().not_before = None;
        assert_eq!(get(&keep, Some(long)).await, Ok("long".into()));
        let keep = Keep::new(Duration::from_secs(120));
        let dying = credential("dying", Some(Duration::from_secs(5)));
        assert_eq!(get(&keep, Some(dying)).await, Ok("dying".into()));
        assert_eq!(get(&keep, None).await, Err("none"));
    }
}
