//! Who asks, and where: endpoint, region and credentials, from flags, environment and profile in this order.

use super::super::http1::{Client, Endpoint};
use super::address::{Addressing, encode_key};
use super::customer_key::CustomerKey;
use super::profile::Profile;
use super::signer::Signer;
use crate::config::{AddressingStyle, StoreConfig};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Arc;

/// What all buckets of one configuration share.
#[derive(Debug)]
pub(in crate::store) struct Account {
    client: Arc<Client>,
    addressing: Addressing,
    region: String,
    /// None where requests go unsigned.
    signer: Option<Signer>,
    customer_key: Option<CustomerKey>,
    is_requester_paying: bool,
    is_verifying: bool,
    has_sessions: bool,
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
                .or(profile.endpoint_url.clone())
                .filter(|_| !ignores_endpoints)
        };
        let endpoint = config.endpoint_url.clone().or_else(configured);
        let addressing = Addressing {
            endpoint: endpoint.map(|url| read_endpoint(&url)).transpose()?,
            style: style(config, &profile)?,
            is_dual_stack: is_set(
                variables.get("AWS_USE_DUALSTACK_ENDPOINT"),
                &profile.dual_stack,
            ),
            is_fips: is_set(variables.get("AWS_USE_FIPS_ENDPOINT"), &profile.fips),
        };
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
        Ok(Self {
            client,
            addressing,
            region,
            signer: (!config.is_anonymous).then(|| Signer::new(config)),
            customer_key: config
                .sse_c_key
                .as_ref()
                .map(CustomerKey::read)
                .transpose()?,
            is_requester_paying: config.is_requester_paying,
            is_verifying: !config.is_checksum_unverified,
            has_sessions: !is_set(
                variables.get("AWS_S3_DISABLE_EXPRESS_SESSION_AUTH"),
                &profile.sessionless,
            ),
        })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn addressing(&self) -> &Addressing {
        &self.addressing
    }

    pub(super) fn region(&self) -> &str {
        &self.region
    }

    pub(super) fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }

    pub(super) fn customer_key(&self) -> Option<&CustomerKey> {
        self.customer_key.as_ref()
    }

    /// Whether directory buckets are read in sessions.
    pub(super) fn has_sessions(&self) -> bool {
        self.has_sessions
    }

    /// Whether objects are held against the store's checksums.
    pub(super) fn is_verifying(&self) -> bool {
        self.is_verifying
    }

    pub(super) fn is_requester_paying(&self) -> bool {
        self.is_requester_paying
    }
}

/// The flag, or what the profile says.
fn style(config: &StoreConfig, profile: &Profile) -> Result<AddressingStyle> {
    match (config.addressing_style, &profile.addressing_style) {
        (Some(style), _) => Ok(style),
        (None, None) => Ok(AddressingStyle::Auto),
        (None, Some(word)) => word.parse().map_err(|why: String| {
            let setting = "addressing_style of the profile";
            Error::new(ErrorKind::InvalidInput, "use the", setting, why)
        }),
    }
}

fn is_set(variable: Option<String>, setting: &Option<String>) -> bool {
    let text = variable.as_ref().or(setting.as_ref());
    text.is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

fn read_endpoint(url: &str) -> Result<(Endpoint, String)> {
    let (endpoint, rest) = Endpoint::split(url)?;
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    // Written as it is signed: encoded, once.
    let path: Vec<u8> = percent_encoding::percent_decode_str(path).collect();
    Ok((endpoint, encode_key(&path).trim_end_matches('/').to_owned()))
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
                account.addressing.endpoint.as_ref().unwrap().0.host.clone(),
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
    fn the_way_to_address_comes_from_flag_environment_and_profile() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let text = "[default]\nuse_fips_endpoint = true\ns3 =\n  addressing_style = path\n  use_dualstack_endpoint = true\n";
        std::fs::write(&file, text).unwrap();
        let mut config = StoreConfig {
            variables: Variables::only([
                ("AWS_CONFIG_FILE", file.to_str().unwrap()),
                ("AWS_USE_FIPS_ENDPOINT", "false"),
            ]),
            ..StoreConfig::default()
        };
        let addressing = account(&config).unwrap().addressing;
        assert_eq!(addressing.style, AddressingStyle::Path);
        assert!(addressing.is_dual_stack && !addressing.is_fips);
        config.addressing_style = Some(AddressingStyle::Virtual);
        let addressing = account(&config).unwrap().addressing;
        assert_eq!(addressing.style, AddressingStyle::Virtual);
        std::fs::write(&file, text.replace("= path", "= sideways")).unwrap();
        config.addressing_style = None;
        let error = account(&config).unwrap_err();
        assert!(error.why().contains("sideways"), "{error}");
    }

    #[test]
    fn the_path_of_an_endpoint_is_written_as_it_is_signed() {
        for (url, path) in [
            ("http://h/a b/", "/a%20b"),
            ("http://h/a%20b/c+d", "/a%20b/c%2Bd"),
            ("http://h/?x#y", ""),
        ] {
            assert_eq!(read_endpoint(url).unwrap().1, path, "{url}");
        }
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
