//! Credentials from the chain, and signatures with them in the store's time.

use std::time::Duration;

use reqsign_aws_v4::DefaultCredentialProvider;
use reqsign_core::time::Timestamp;
use reqsign_core::{Context, ProvideCredential};

use super::super::credentials::{self, Trouble};
use super::super::http1::{Failure, Request};
use super::half::Half;
use super::keep::{Held, Keep};
use super::sign::{self, DayKey, Scope};
use crate::config::StoreConfig;
use crate::error::ErrorKind;
use crate::sync::{Arc, Mutex};

/// Credentials are renewed two minutes before their end, as reqsign has it.
const MARGIN: Duration = Duration::from_secs(120);

/// Clocks that differ by less sign well: S3 allows 15 minutes, and other stores less.
const TOLERANCE_SECONDS: u64 = 60;

/// Signs requests with the first credential of the chain: environment, profile, SSO, web identity, process, ECS, IMDS.
pub(super) struct Signer {
    context: Context,
    /// What went wrong when they were asked for.
    trouble: Trouble,
    /// Half of a pair of keys that was given, if any: what is there and what is not.
    half: Option<Half>,
    chain: DefaultCredentialProvider,
    keep: Keep,
    /// Guards the key derived last; held while a signature is made, which waits for nothing.
    day_key: Mutex<Option<DayKey>>,
    /// Guards by how many seconds the store's clock is ahead of ours, as far as it matters.
    ahead_seconds: Mutex<i64>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl Signer {
    pub(super) fn new(config: &StoreConfig) -> Self {
        let mut chain = DefaultCredentialProvider::builder();
        if let Some(profile) = &config.profile {
            // A profile named on purpose wins over keys in the environment, as with the AWS tools.
            chain = chain.no_env().with_profile(profile);
        }
        let (context, trouble) = credentials::context(config);
        Self {
            context,
            trouble,
            half: Half::of(config),
            chain: chain.build(),
            keep: Keep::new(MARGIN),
            day_key: Mutex::new(None),
            ahead_seconds: Mutex::new(0),
        }
    }

    /// The credential in use.
    pub(super) async fn credential(&self) -> Result<Arc<Held>, Failure> {
        if let Some(half) = self.half.as_ref().filter(|half| half.is_key) {
            // Whoever gives a key wants to be known by it, and not by what else may be found.
            return Err(half.failure());
        }
        let fetch = || async {
            let found = self.chain.provide_credential(&self.context).await;
            let missing = || match &self.half {
                Some(half) => half.failure(),
                None => none_found(self.trouble.told()),
            };
            found.ok().flatten().ok_or_else(missing)
        };
        self.keep.get(self.now().0, fetch).await
    }

    /// Signs `request`, and says by how many seconds its time differs from this machine's.
    pub(super) fn sign(
        &self,
        request: &mut Request,
        held: &Held,
        scope: Scope<'_>,
    ) -> Result<i64, Failure> {
        let (now, ahead) = self.now();
        let mut day_key = self.day_key.lock();
        sign::sign(request, &held.credential, scope, now, &mut day_key)?;
        Ok(ahead)
    }

    /// Gives `held` up, so that the next request fetches a new one.
    pub(super) fn refuse(&self, held: &Arc<Held>) {
        self.keep.refuse(held);
    }

    /// The time that requests are signed with, and by how many seconds it is ahead of this machine's.
    pub(super) fn now(&self) -> (Timestamp, i64) {
        let (now, ahead) = (Timestamp::now(), *self.ahead_seconds.lock());
        let shifted = Timestamp::from_second(now.as_second().saturating_add(ahead));
        (shifted.unwrap_or(now), ahead)
    }

    /// Notes the time of a store that found a request out of time which was signed `used` seconds ahead of this
    /// machine's; how far ahead the store is, where another signature makes sense.
    pub(super) fn learn_time(&self, used: i64, store_seconds: i64) -> Option<i64> {
        let ahead = store_seconds.saturating_sub(Timestamp::now().as_second());
        if ahead.abs_diff(used) < TOLERANCE_SECONDS {
            return None;
        }
        *self.ahead_seconds.lock() = ahead;
        Some(ahead)
    }
}

fn none_found(trouble: Option<String>) -> Failure {
    let why = match trouble {
        Some(trouble) => format!("no credentials were found: {trouble}"),
        None => "no credentials were found".to_owned(),
    };
    Failure::new(ErrorKind::Denied, "no_credentials", why).with_help(
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile with `profile`, or read a \
         public bucket with `no_sign_request`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_learned_where_it_explains_the_refusal() {
        let signer = Signer::new(&StoreConfig::default());
        let here = Timestamp::now().as_second();
        assert_eq!(signer.learn_time(0, here + 20), None);
        let ahead = signer.learn_time(0, here + 3600).unwrap();
        assert!((3590..=3600).contains(&ahead), "{ahead}");
        let (now, used) = signer.now();
        assert_eq!(used, ahead);
        assert!((3590..3700).contains(&(now.as_second() - here)));
        // Signed in the store's time and refused again: the clock is not the reason.
        assert_eq!(signer.learn_time(used, here + 3600), None);
        // A request from before it was known.
        assert!(signer.learn_time(0, here + 3600).is_some());
        assert!(signer.learn_time(0, i64::MAX).is_some());
        assert!(signer.now().0.as_second() >= here);
    }
}
