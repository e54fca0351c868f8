//! Credentials of an account, and requests with them.

use std::time::Duration;

use reqsign_azure_storage::{
    AzureCliCredentialProvider, AzurePipelinesCredentialProvider,
    ClientCertificateCredentialProvider, ClientSecretCredentialProvider, Credential,
    ImdsCredentialProvider, RequestSigner, WorkloadIdentityCredentialProvider,
};
use reqsign_core::time::Timestamp;
use reqsign_core::{Context, ProvideCredential, ProvideCredentialChain, SignRequest};

use super::super::cloud;
use super::super::credentials::{self, Held, Keep, Kept, Trouble};
use super::super::http1::{Failure, Request};
use super::settings::Settings;
use crate::config::StoreConfig;
use crate::error::{Error, ErrorKind, Result as Fallible};
use crate::sync::Arc;

/// Tokens are renewed two minutes before their end, as reqsign has it.
const MARGIN: Duration = Duration::from_secs(120);

/// The variables that name an identity: a service principal by its secret or certificate, and a workload identity.
const SECRET: &str = "AZURE_CLIENT_SECRET";
const CERTIFICATE: &str = "AZURE_CLIENT_CERTIFICATE_PATH";
const TOKEN_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";

/// Signs requests with the key, SAS token or token that the environment gives, with a token of the identity that it names
/// (service principal, workload identity), or with the first token that the chain finds: Azure Pipelines, managed identity,
/// the Azure CLI.
pub(super) struct Signer {
    context: Context,
    /// What went wrong when credentials were asked for.
    trouble: Trouble,
    /// What is given outright.
    given: Option<Credential>,
    chain: ProvideCredentialChain<Credential>,
    /// The variable that says which identity to take, if one does.
    named: Option<&'static str>,
    keep: Keep<Credential>,
    signer: RequestSigner,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl Kept for Credential {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::BearerToken { token, .. }, Self::BearerToken { token: other, .. })
            | (Self::SasToken { token, .. }, Self::SasToken { token: other, .. }) => token == other,
            (
                Self::SharedKey { account_key, .. },
                Self::SharedKey {
                    account_key: other, ..
                },
            ) => account_key == other,
            _ => false,
        }
    }

    fn expired() -> Failure {
        let why = "the token is not valid, or no longer";
        Failure::new(ErrorKind::Denied, "expired_token", why)
            .with_help("log in again (az login), or set a fresh token")
    }
}

impl Signer {
    pub(super) fn new(config: &StoreConfig, settings: Settings) -> Fallible<Self> {
        let (context, trouble) = credentials::context(config);
        let is_set = |name: &&str| config.variables.get(name).is_some();
        let named = [SECRET, CERTIFICATE, TOKEN_FILE].into_iter().find(is_set);
        Ok(Self {
            context,
            trouble,
            given: given(settings)?,
            chain: chain(named),
            named,
            keep: Keep::new(MARGIN),
            signer: RequestSigner::new(),
        })
    }

    /// The kind of credential that is given, for tests.
    #[cfg(test)]
    pub(super) fn way(&self) -> &'static str {
        match &self.given {
            None => "chain",
            Some(Credential::SharedKey { .. }) => "key",
            Some(Credential::SasToken { .. }) => "sas",
            Some(Credential::BearerToken { .. }) => "token",
        }
    }

    /// Whether requests carry a SAS token.
    pub(super) fn has_sas(&self) -> bool {
        matches!(self.given, Some(Credential::SasToken { .. }))
    }

    /// Whether requests are signed with the account's key.
    pub(super) fn has_key(&self) -> bool {
        matches!(self.given, Some(Credential::SharedKey { .. }))
    }

    /// The credential in use.
    pub(super) async fn credential(&self) -> Result<Arc<Held<Credential>>, Failure> {
        let fetch = || async {
            if let Some(given) = &self.given {
                return Ok(given.clone());
            }
            // What reqsign says may repeat what a server sent, and is not shown.
            let found = self.chain.provide_credential(&self.context).await;
            found.ok().flatten().ok_or_else(|| self.none_found())
        };
        self.keep.get(Timestamp::now(), fetch).await
    }

    /// Signs `request`, all of whose headers are there: those with conditions are signed, too.
    pub(super) async fn sign(
        &self,
        request: &mut Request,
        held: &Held<Credential>,
    ) -> Result<(), Failure> {
        match &held.credential {
            Credential::SharedKey { .. } => {}
            Credential::SasToken { .. } => {
                cloud::check_privacy(&request.endpoint, "the SAS token")?;
            }
            Credential::BearerToken { .. } => {
                cloud::check_privacy(&request.endpoint, "the token")?;
            }
        }
        let uri = format!("{}{}", request.endpoint, request.path_and_query);
        let asked = http::Request::builder()
            .method(request.method.clone())
            .uri(uri)
            .body(());
        let (mut parts, ()) = asked.map_err(|_shows_it| cannot())?.into_parts();
        parts.headers = std::mem::take(&mut request.headers);
        let signed =
            self.signer
                .sign_request(&self.context, &mut parts, Some(&held.credential), None);
        signed.await.map_err(|_shows_it| cannot())?;
        request.headers = parts.headers;
        if let Some(path_and_query) = parts.uri.path_and_query() {
            request.path_and_query = path_and_query.to_string();
        }
        Ok(())
    }

    /// What the credential in use is kept in, and given up.
    pub(super) fn keep(&self) -> &Keep<Credential> {
        &self.keep
    }

    fn none_found(&self) -> Failure {
        let failure = |why: &str| {
            Failure::new(
                ErrorKind::Denied,
                "no_credentials",
                self.trouble.behind(why),
            )
        };
        if let Some(name) = self.named {
            let why = format!("the identity that {name} speaks for cannot be used");
            return failure(&why).with_help(format!(
                "check {name}, AZURE_TENANT_ID and AZURE_CLIENT_ID; unset {name} to be known by \
                 another identity"
            ));
        }
        failure("no credentials were found that work").with_help(
            "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, log in with az login, set \
             AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or read a public container with \
             `no_sign_request`",
        )
    }
}

/// Where tokens are looked for. Where an identity is named no other is taken in its place: the chain goes on after a failure.
fn chain(named: Option<&str>) -> ProvideCredentialChain<Credential> {
    let chain = ProvideCredentialChain::new();
    match named {
        Some(SECRET) => chain.push(ClientSecretCredentialProvider::new()),
        Some(CERTIFICATE) => chain.push(ClientCertificateCredentialProvider::new()),
        Some(_token_file) => chain.push(WorkloadIdentityCredentialProvider::new()),
        None => chain
            .push(AzurePipelinesCredentialProvider::new())
            .push(ImdsCredentialProvider::new())
            .push(AzureCliCredentialProvider::new()),
    }
}

/// The credential that the settings give outright: a token before a SAS token before a key, the narrower right first.
fn given(settings: Settings) -> Fallible<Option<Credential>> {
    if let Some(token) = settings.token {
        return Ok(Some(Credential::with_bearer_token(&token, None)));
    }
    if let Some(sas) = settings.sas {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"#\"<>\\^`{|}".contains(&byte);
        if !sas.bytes().all(is_plain) || !sas.contains("sig=") {
            let why = "it is no SAS token";
            return Err(
                Error::new(ErrorKind::InvalidInput, "use", "the SAS token", why)
                    .with_help("it looks like sv=..&sp=rl&sig=.., as the Azure portal shows it"),
            );
        }
        return Ok(Some(Credential::with_sas_token(&sas)));
    }
    let Some(key) = settings.key else {
        return Ok(None);
    };
    let bad = |why, help| {
        Error::new(ErrorKind::InvalidInput, "use", "the account key", why).with_help(help)
    };
    let help = "set AZURE_STORAGE_ACCOUNT_NAME to the account of the key";
    let account = settings
        .account
        .ok_or_else(|| bad("no account is named with it", help))?;
    if reqsign_core::hash::base64_decode(&key).is_err() {
        let help = "copy one of the account's access keys from the Azure portal";
        return Err(bad("it is no base64", help));
    }
    Ok(Some(Credential::with_shared_key(&account, &key)))
}

fn cannot() -> Failure {
    let why = "the request cannot be signed: odd characters in it";
    Failure::new(ErrorKind::InvalidInput, "sign", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_is_checked_and_shown_nowhere() {
        let with = |set: fn(&mut Settings)| {
            let mut settings = Settings {
                account: Some("acc".into()),
                ..Settings::default()
            };
            set(&mut settings);
            given(settings)
        };
        let key = with(|set| set.key = Some("aHVzaA==".into())).unwrap();
        assert!(matches!(key, Some(Credential::SharedKey { .. })));
        let both = with(|set| {
            set.key = Some("aHVzaA==".into());
            set.sas = Some("sp=r&sig=hush".into());
        });
        assert!(matches!(both, Ok(Some(Credential::SasToken { .. }))));
        for bad in [
            with(|set| set.key = Some("hush!".into())),
            with(|set| set.sas = Some("hush".into())),
            with(|set| set.sas = Some("sig=hush hush".into())),
            with(|set| {
                set.account = None;
                set.key = Some("aHVzaA==".into());
            }),
        ] {
            let error = bad.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(!format!("{error:#}").contains("hush"), "{error:#}");
        }
    }
}
