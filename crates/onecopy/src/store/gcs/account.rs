//! Who asks Google Cloud Storage, and where: from flags and environment, in this order.

use super::super::cloud;
use super::super::http1::{Client, Endpoint};
use super::signer::Signer;
use crate::config::StoreConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Arc;

const GOOGLE: &str = "https://storage.googleapis.com";

/// What all buckets of one configuration share.
#[derive(Debug)]
pub(in crate::store) struct Account {
    pub(super) client: Arc<Client>,
    pub(super) endpoint: Endpoint,
    /// The path that buckets lie below: mostly none.
    pub(super) base: String,
    /// None where requests go without a token.
    pub(super) signer: Option<Signer>,
    /// The project that pays, where the requester does.
    pub(super) project: Option<http::HeaderValue>,
    pub(super) is_verifying: bool,
}

impl Account {
    /// Reads the configuration.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where the endpoint is no URL, or the requester is to pay and no project is named.
    pub(in crate::store) fn new(client: Arc<Client>, config: &StoreConfig) -> Result<Self> {
        let emulator = config.variables.get("STORAGE_EMULATOR_HOST");
        let emulator = emulator.filter(|_| config.endpoint_url.is_none());
        let url = match (&config.endpoint_url, &emulator) {
            (Some(url), _) => url.clone(),
            (None, Some(host)) if host.contains("://") => host.clone(),
            (None, Some(host)) => format!("http://{host}"),
            (None, None) => GOOGLE.to_owned(),
        };
        let (endpoint, base) = cloud::read_endpoint(&url)?;
        // An emulator checks nothing, and is nobody that a token of Google's is meant for.
        let is_anonymous = config.is_anonymous || emulator.is_some();
        Ok(Self {
            client,
            endpoint,
            base,
            signer: (!is_anonymous).then(|| Signer::new(config)),
            project: config
                .is_requester_paying
                .then(|| project(config))
                .transpose()?,
            is_verifying: !config.is_checksum_unverified,
        })
    }
}

/// The project that is billed for requests.
fn project(config: &StoreConfig) -> Result<http::HeaderValue> {
    let variables = &config.variables;
    let named = variables
        .get("GOOGLE_CLOUD_QUOTA_PROJECT")
        .or_else(|| variables.get("GOOGLE_CLOUD_PROJECT"));
    let bad = |why| {
        Error::new(ErrorKind::InvalidInput, "let", "the requester pay", why)
            .with_help("name the project that pays in GOOGLE_CLOUD_QUOTA_PROJECT")
    };
    let named = named.ok_or_else(|| bad("no project is named"))?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:_".contains(&byte);
    if !named.bytes().all(is_plain) {
        return Err(bad("the name of the project has odd characters in it"));
    }
    http::HeaderValue::from_str(&named).map_err(|error| bad("it is no project").with_source(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Variables;

    fn account(config: &StoreConfig) -> Result<Account> {
        Account::new(Arc::new(Client::new(config)), config)
    }

    #[test]
    fn the_flag_wins_over_the_emulator_and_an_emulator_is_given_no_token() {
        let mut config = StoreConfig {
            variables: Variables::only([("A", "b")]),
            ..StoreConfig::default()
        };
        let seen = |config: &StoreConfig| {
            let account = account(config).unwrap();
            let endpoint = format!("{}{}", account.endpoint, account.base);
            (endpoint, account.signer.is_some())
        };
        assert_eq!(seen(&config), (GOOGLE.to_owned(), true));
        for (host, url) in [
            ("localhost:4443", "http://localhost:4443"),
            ("https://e:1/x/", "https://e:1/x"),
        ] {
            config.variables = Variables::only([("STORAGE_EMULATOR_HOST", host)]);
            assert_eq!(seen(&config), (url.to_owned(), false));
        }
        config.endpoint_url = Some("https://flag".into());
        assert_eq!(seen(&config), ("https://flag".to_owned(), true));
    }

    #[test]
    fn who_pays_is_a_project() {
        let mut config = StoreConfig {
            is_requester_paying: true,
            variables: Variables::only([("A", "b")]),
            ..StoreConfig::default()
        };
        let error = account(&config).unwrap_err();
        assert!(error.help().unwrap().contains("GOOGLE_CLOUD_QUOTA_PROJECT"));
        for (name, value, wanted) in [
            ("GOOGLE_CLOUD_QUOTA_PROJECT", "pay-1", Some("pay-1")),
            ("GOOGLE_CLOUD_PROJECT", "own:pay", Some("own:pay")),
            ("GOOGLE_CLOUD_PROJECT", "a\r\nb", None),
        ] {
            config.variables = Variables::only([(name, value)]);
            let project = account(&config).ok().and_then(|account| account.project);
            assert_eq!(project.as_ref().map(|name| name.to_str().unwrap()), wanted);
        }
        config.is_requester_paying = false;
        assert_eq!(account(&config).unwrap().project, None);
    }
}
