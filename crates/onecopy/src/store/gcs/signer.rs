//! Tokens of Google: application default credentials, kept until they run out.

use std::time::Duration;

use http::{HeaderMap, header};
use reqsign_core::time::Timestamp;
use reqsign_core::{Context, ProvideCredential};
use reqsign_google::{
    Credential, DefaultCredentialProvider, FileCredentialProvider,
    ServiceAccountTokenCredentialProvider,
};

use super::super::cloud;
use super::super::credentials::{self, Held, Keep, Kept, Trouble};
use super::super::http1::{Endpoint, Failure};
use crate::config::{StoreConfig, Variables};
use crate::error::ErrorKind;
use crate::sync::Arc;

/// Tokens are renewed two minutes before their end, as reqsign has it.
const MARGIN: Duration = Duration::from_secs(120);

/// The variable that names a file with credentials.
const FILE: &str = "GOOGLE_APPLICATION_CREDENTIALS";

/// The variable that holds a token, as gcloud knows it.
const TOKEN: &str = "CLOUDSDK_AUTH_ACCESS_TOKEN";

/// Signs requests with the first credential that there is: a token in the environment, the file that is named there (a
/// service account, a user's, another cloud's), the file that gcloud wrote, the metadata service.
pub(super) struct Signer {
    context: Context,
    /// What went wrong when credentials were asked for.
    trouble: Trouble,
    variables: Variables,
    keep: Keep<Credential>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl Kept for Credential {
    fn is(&self, other: &Self) -> bool {
        token(self) == token(other)
    }

    fn expired() -> Failure {
        let why = "the token is not valid, or no longer";
        Failure::new(ErrorKind::Denied, "expired_token", why)
            .with_help("log in again: gcloud auth application-default login")
    }
}

fn token(credential: &Credential) -> &str {
    let token = credential.token.as_ref();
    token.map_or("", |token| &token.access_token)
}

impl Signer {
    pub(super) fn new(config: &StoreConfig) -> Self {
        let (context, trouble) = credentials::context(config);
        Self {
            context,
            trouble,
            variables: config.variables.clone(),
            keep: Keep::new(MARGIN),
        }
    }

    /// The credential in use.
    pub(super) async fn credential(&self) -> Result<Arc<Held<Credential>>, Failure> {
        self.keep.get(Timestamp::now(), || self.fetch()).await
    }

    /// Puts the token of `held` into a request to `endpoint`.
    pub(super) fn sign(
        held: &Held<Credential>,
        endpoint: &Endpoint,
        headers: &mut HeaderMap,
    ) -> Result<(), Failure> {
        cloud::check_privacy(endpoint, "the token")?;
        let value = format!("Bearer {}", token(&held.credential));
        headers.insert(header::AUTHORIZATION, cloud::secret(&value)?);
        Ok(())
    }

    /// What the credential in use is kept in, and given up.
    pub(super) fn keep(&self) -> &Keep<Credential> {
        &self.keep
    }

    async fn fetch(&self) -> Result<Credential, Failure> {
        if let Some(access_token) = self.variables.get(TOKEN) {
            return Ok(Credential::with_token(reqsign_google::Token {
                access_token,
                expires_at: None,
            }));
        }
        let found = self.find().await.ok_or_else(|| self.none_found())?;
        match found.service_account {
            // It is a key, and a token is to be had for it.
            Some(account) => {
                let exchange = ServiceAccountTokenCredentialProvider::new(account);
                let found = exchange.provide_credential(&self.context).await;
                found.ok().flatten().ok_or_else(|| self.none_found())
            }
            None => Ok(found),
        }
    }

    async fn find(&self) -> Option<Credential> {
        let chain = DefaultCredentialProvider::builder();
        // Where a file is named, no other identity is taken in its place.
        if self.variables.get(FILE).is_some() {
            let chain = chain.no_well_known().no_vm_metadata().build();
            return chain.provide_credential(&self.context).await.ok()?;
        }
        if let Some(folder) = self.variables.get("CLOUDSDK_CONFIG") {
            let path = format!("{folder}/application_default_credentials.json");
            let file = FileCredentialProvider::new(path);
            if let Ok(Some(found)) = file.provide_credential(&self.context).await {
                return Some(found);
            }
        }
        chain.build().provide_credential(&self.context).await.ok()?
    }

    /// What reqsign says may repeat what a server sent, and is not shown.
    fn none_found(&self) -> Failure {
        let failure = |why| {
            Failure::new(
                ErrorKind::Denied,
                "no_credentials",
                self.trouble.behind(why),
            )
        };
        if self.variables.get(FILE).is_some() {
            return failure(
                "the credentials that GOOGLE_APPLICATION_CREDENTIALS names cannot be used",
            )
            .with_help(
                "check that the file can be read, that its account is not disabled and its key not \
                 deleted, and that oauth2.googleapis.com can be reached",
            );
        }
        failure("no credentials were found").with_help(
            "run gcloud auth application-default login, name a key file in \
             GOOGLE_APPLICATION_CREDENTIALS, or read a public bucket with `no_sign_request`",
        )
    }
}
