//! Who asks, and where: endpoint, region and credentials, from flags, environment and profile in this order.

use super::super::http1::{Client, Endpoint, Failure, Request};
use super::profile::Profile;
use super::signer::Signer;
use crate::config::StoreConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Arc;

/// What all buckets of one configuration share.
#[derive(Debug)]
pub(in crate::store) struct Account {
    client: Arc<Client>,
    /// An endpoint that is not AWS's own, and the path below which buckets lie there.
    endpoint: Option<(Endpoint, String)>,
    region: String,
    /// None where requests go unsigned.
    signer: Option<Signer>,
    is_requester_paying: bool,
}

impl Account {
    /// Reads the configuration.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where the endpoint is no URL or the profile does not exist.
    pub(in crate::store) fn new(client: Arc<Client>, config: &StoreConfig) -> Result<Self> {
        let variables = &config.variables;
        let named = config
            .profile
            .clone()
            .or_else(|| variables.get("AWS_PROFILE"));
        let name = named.clone().unwrap_or_else(|| "default".to_owned());
        let profile = Profile::read(&name, variables);
        if named.is_some() && !profile.is_found && !config.is_anonymous {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "use the profile",
                name,
                "there is no such profile",
            )
            .with_help("see ~/.aws/config and ~/.aws/credentials, or AWS_CONFIG_FILE"));
        }
        let ignores_endpoints = variables
            .get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
            .is_some_and(|text| text == "true");
        let configured = || {
            variables
                .get("AWS_ENDPOINT_URL_S3")
                .or_else(|| variables.get("AWS_ENDPOINT_URL"))
                .or(profile.endpoint_url)
                .filter(|_| !ignores_endpoints)
        };
        let endpoint = config.endpoint_url.clone().or_else(configured);
        let endpoint = endpoint.map(|url| read_endpoint(&url)).transpose()?;
        let region = config
            .region
            .clone()
            .or_else(|| variables.get("AWS_REGION"))
            .or_else(|| variables.get("AWS_DEFAULT_REGION"))
            .or(profile.region)
            .unwrap_or_else(|| "us-east-1".to_owned());
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if region.is_empty() || !region.bytes().all(is_plain) {
            let why = "a region looks like us-east-1";
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "use the region",
                region,
                why,
            ));
        }
        let signer = (!config.is_anonymous).then(|| Signer::new(config, &region));
        let is_requester_paying = config.is_requester_paying;
        Ok(Self {
            client,
            endpoint,
            region,
            signer,
            is_requester_paying,
        })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn endpoint(&self) -> Option<&(Endpoint, String)> {
        self.endpoint.as_ref()
    }

    pub(super) fn region(&self) -> &str {
        &self.region
    }

    pub(super) fn is_anonymous(&self) -> bool {
        self.signer.is_none()
    }

    pub(super) fn is_requester_paying(&self) -> bool {
        self.is_requester_paying
    }

    pub(super) async fn sign(&self, request: Request) -> Result<Request, Failure> {
        match &self.signer {
            Some(signer) => signer.sign(request).await,
            None => Ok(request),
        }
    }

    /// Credentials that a request of `asked` was refused for as old are fetched anew for the next request.
    pub(super) async fn forget_credential(&self, asked: tokio::time::Instant) {
        if let Some(signer) = &self.signer {
            signer.forget(asked).await;
        }
    }
}

fn read_endpoint(url: &str) -> Result<(Endpoint, String)> {
    let (endpoint, rest) = Endpoint::split(url)?;
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    Ok((endpoint, path.trim_end_matches('/').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Variables;

    fn account(config: &StoreConfig) -> Result<Account> {
        Account::new(Arc::new(Client::new(config)), config)
    }

    #[test]
    fn flags_win_over_environment_and_environment_over_profile() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let text = "[default]\nregion = eu-north-1\nendpoint_url = http://profile:1\n";
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let mut config = StoreConfig {
            variables: Variables::only([("AWS_CONFIG_FILE", file)]),
            ..StoreConfig::default()
        };
        let seen = |config: &StoreConfig| {
            let account = account(config).unwrap();
            (
                account.region.clone(),
                account.endpoint.as_ref().unwrap().0.host.clone(),
            )
        };
        assert_eq!(seen(&config), ("eu-north-1".into(), "profile".into()));
        config.variables = Variables::only([
            ("AWS_CONFIG_FILE", file),
            ("AWS_DEFAULT_REGION", "us-west-1"),
            ("AWS_ENDPOINT_URL", "http://general"),
            ("AWS_ENDPOINT_URL_S3", "http://environment"),
        ]);
        assert_eq!(seen(&config), ("us-west-1".into(), "environment".into()));
        config.region = Some("ap-east-1".into());
        config.endpoint_url = Some("http://flag".into());
        assert_eq!(seen(&config), ("ap-east-1".into(), "flag".into()));
    }

    #[test]
    fn a_profile_that_does_not_exist_is_named() {
        let config = StoreConfig {
            profile: Some("nobody".into()),
            variables: Variables::only([("HOME", "/nonexistent")]),
            ..StoreConfig::default()
        };
        let error = account(&config).unwrap_err();
        assert_eq!(
            (error.kind(), error.target()),
            (ErrorKind::InvalidInput, "nobody")
        );
    }
}
