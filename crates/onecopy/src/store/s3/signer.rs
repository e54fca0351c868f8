//! Credentials, found once and refreshed, and the signatures made with them.

use reqsign_aws_v4::{Credential, DefaultCredentialProvider, RequestSigner};
use reqsign_core::time::Timestamp;
use reqsign_core::{Context, ProvideCredential, SignRequest, SigningCredential};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::super::http1::{Failure, Request};
use super::send;
use crate::config::StoreConfig;
use crate::error::ErrorKind;

/// A credential that runs out this soon is not worth a request.
const LEAST_LIFE: std::time::Duration = std::time::Duration::from_secs(15);

/// Signs requests with the first credential of the chain: environment, profile, SSO, web identity, process, ECS, IMDS.
#[derive(Debug)]
pub(super) struct Signer {
    context: Context,
    chain: DefaultCredentialProvider,
    signer: RequestSigner,
    /// Guards the credential in use; held while it is fetched, so that it is fetched once for all who wait.
    credential: Mutex<Option<Kept>>,
}

/// The credential in use, and when it was fetched.
#[derive(Debug)]
struct Kept {
    credential: Credential,
    fetched: Instant,
}

impl Signer {
    pub(super) fn new(config: &StoreConfig, region: &str) -> Self {
        let mut chain = DefaultCredentialProvider::builder();
        if let Some(profile) = &config.profile {
            // A profile named on purpose wins over keys in the environment, as with the AWS tools.
            chain = chain.no_env().with_profile(profile);
        }
        Self {
            context: send::context(config),
            chain: chain.build(),
            signer: RequestSigner::new("s3", region),
            credential: Mutex::new(None),
        }
    }

    /// Signs method, path, query and all headers of `request`.
    pub(super) async fn sign(&self, mut request: Request) -> Result<Request, Failure> {
        let credential = self.credential().await?;
        let uri = format!("{}{}", request.endpoint, request.path_and_query);
        let mut built = http::Request::new(());
        *built.method_mut() = request.method.clone();
        *built.uri_mut() = uri.parse().map_err(|error: http::uri::InvalidUri| {
            let why = "the key is too long or cannot be written in a request";
            Failure::new(ErrorKind::InvalidInput, "key", why).with_source(error)
        })?;
        *built.headers_mut() = request.headers;
        let (mut parts, ()) = built.into_parts();
        let signed = self
            .signer
            .sign_request(&self.context, &mut parts, Some(&credential), None);
        signed.await.map_err(|error| {
            let why = format!("the request cannot be signed: {}", error.kind());
            Failure::new(ErrorKind::InvalidInput, "sign", why)
        })?;
        request.headers = parts.headers;
        Ok(request)
    }

    /// Drops the credential that signed a request of `asked`, so that the next one fetches another. Where that was done
    /// since, nothing is dropped: of many requests that were refused together, the first one does it for all.
    pub(super) async fn forget(&self, asked: Instant) {
        let mut kept = self.credential.lock().await;
        if kept.as_ref().is_some_and(|kept| kept.fetched <= asked) {
            *kept = None;
        }
    }

    async fn credential(&self) -> Result<Credential, Failure> {
        let mut kept = self.credential.lock().await;
        if let Some(kept) = kept.as_ref().filter(|kept| kept.credential.is_valid()) {
            return Ok(kept.credential.clone());
        }
        let found = self
            .chain
            .provide_credential(&self.context)
            .await
            .ok()
            .flatten();
        let old = kept.as_ref().map(|kept| kept.credential.clone());
        match (found, old) {
            (Some(found), _) => {
                *kept = Some(Kept {
                    credential: found.clone(),
                    fetched: Instant::now(),
                });
                Ok(found)
            }
            // A refresh that fails costs nothing as long as the one in use lasts.
            (None, Some(old)) if old.is_valid_at(Timestamp::now() + LEAST_LIFE) => Ok(old),
            (None, old) => {
                let why = if old.is_some() {
                    "the credentials ran out and could not be refreshed"
                } else {
                    "no credentials were found"
                };
                Err(
                    Failure::new(ErrorKind::Denied, "no_credentials", why).with_help(
                        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile with \
                     `profile`, or read a public bucket with `no_sign_request`",
                    ),
                )
            }
        }
    }
}
