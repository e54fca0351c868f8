//! Who asks Azure Blob Storage, and where: from flags, URL and environment, in this order.

use super::super::cloud;
use super::super::http1::{Client, Endpoint};
use super::place::NamedAccount;
use super::settings::Settings;
use super::signer::Signer;
use crate::config::StoreConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Arc;

/// What all containers of one account share.
#[derive(Debug)]
pub(in crate::store) struct Account {
    pub(super) client: Arc<Client>,
    pub(super) endpoint: Endpoint,
    /// The path that containers lie below: none at Azure, the account at an emulator.
    pub(super) base: String,
    /// None where requests go without credentials.
    pub(super) signer: Option<Signer>,
    pub(super) is_verifying: bool,
}

impl Account {
    /// Reads the configuration. `named` is the account that the URL names, where it names one.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where no account is named, the endpoint is no URL, or a variable is not what it should be.
    pub(in crate::store) fn new(
        client: Arc<Client>,
        config: &StoreConfig,
        named: Option<&NamedAccount>,
    ) -> Result<Self> {
        let mut settings = Settings::read(&config.variables)?;
        if let Some(named) = named {
            // What belongs to one account is not sent to another.
            if !settings.are_of(named) {
                settings = Settings::default();
            }
            settings.account = Some(named.name.clone());
        }
        let url = config.endpoint_url.clone().or(settings.endpoint.take());
        let url = url.or_else(|| named.map(|named| format!("https://{}", named.host())));
        let url = match (url, &settings.account) {
            (Some(url), _) => url,
            (None, Some(account)) => format!("https://{account}.blob.core.windows.net"),
            (None, None) => return Err(nobody()),
        };
        let (endpoint, base) = cloud::read_endpoint(&url)?;
        if settings.account.is_none() {
            settings.account = NamedAccount::read(&endpoint.host).map(|account| account.name);
        }
        let signer = if config.is_anonymous {
            None
        } else {
            Some(Signer::new(config, settings)?)
        };
        Ok(Self {
            client,
            endpoint,
            base,
            signer,
            is_verifying: !config.is_checksum_unverified,
        })
    }
}

fn nobody() -> Error {
    let why = "no storage account is named";
    Error::new(ErrorKind::InvalidInput, "use", "az://", why).with_help(
        "set AZURE_STORAGE_ACCOUNT_NAME or AZURE_STORAGE_CONNECTION_STRING, or write \
         abfss://container@account.dfs.core.windows.net/name",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Variables;

    fn seen(
        flag: Option<&str>,
        set: &[(&str, &str)],
        named: Option<&str>,
    ) -> Result<(String, &'static str)> {
        let config = StoreConfig {
            endpoint_url: flag.map(str::to_owned),
            variables: Variables::only([("A", "b")].iter().chain(set).copied()),
            ..StoreConfig::default()
        };
        let named = named.map(|host| NamedAccount::read(host).unwrap());
        let account = Account::new(Arc::new(Client::new(&config)), &config, named.as_ref())?;
        let way = account.signer.unwrap().way();
        Ok((format!("{}{}", account.endpoint, account.base), way))
    }

    #[test]
    fn flags_win_over_urls_and_urls_over_the_environment() {
        let name = ("AZURE_STORAGE_ACCOUNT_NAME", "acc");
        let key = ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5");
        let at = |url: &str, way| (url.to_owned(), way);
        let other = Some("other.dfs.core.usgovcloudapi.net");
        for (flag, set, named, wanted) in [
            (
                None,
                vec![name, key],
                None,
                at("https://acc.blob.core.windows.net", "key"),
            ),
            (
                None,
                vec![name, key],
                Some("acc.dfs.core.windows.net"),
                at("https://acc.blob.core.windows.net", "key"),
            ),
            (
                None,
                vec![name, key],
                other,
                at("https://other.blob.core.usgovcloudapi.net", "chain"),
            ),
            (
                None,
                vec![("AZURE_STORAGE_SAS_TOKEN", "sig=x")],
                other,
                at("https://other.blob.core.usgovcloudapi.net", "sas"),
            ),
            (
                Some("https://h/p/"),
                vec![name, key],
                None,
                at("https://h/p", "key"),
            ),
            (
                Some("http://127.0.0.1:1/acc"),
                vec![("AZURE_STORAGE_TOKEN", "t")],
                None,
                at("http://127.0.0.1:1/acc", "token"),
            ),
            (
                None,
                vec![("AZURE_STORAGE_USE_EMULATOR", "true")],
                None,
                at("http://127.0.0.1:10000/devstoreaccount1", "key"),
            ),
        ] {
            let found = seen(flag, &set, named).unwrap();
            assert_eq!(found, wanted, "{flag:?} {named:?}");
        }
    }

    #[test]
    fn what_belongs_to_one_account_goes_to_no_other() {
        let string = |text: &'static str| ("AZURE_STORAGE_CONNECTION_STRING", text);
        let sas = "BlobEndpoint=https://acc.blob.core.windows.net;SharedAccessSignature=sig=x";
        let odd = "BlobEndpoint=https://h/acc;SharedAccessSignature=sig=x";
        let at = (
            "AZURE_STORAGE_ENDPOINT",
            "https://acc.blob.core.windows.net/",
        );
        let token = ("AZURE_STORAGE_TOKEN", "t");
        let (own, other) = ("acc.dfs.core.windows.net", "other.dfs.core.windows.net");
        let cloud = "acc.dfs.core.usgovcloudapi.net";
        for (set, named, way) in [
            (vec![string(sas)], own, "sas"),
            (vec![string(sas)], other, "chain"),
            (vec![string(sas)], cloud, "chain"),
            (vec![string(odd)], own, "chain"),
            (vec![at, token], own, "token"),
            (vec![at, token], other, "chain"),
            (
                vec![("AZURE_STORAGE_ENDPOINT", "no URL"), token],
                own,
                "chain",
            ),
            (vec![token], other, "token"),
        ] {
            let host = NamedAccount::read(named).unwrap().host();
            let wanted = (format!("https://{host}"), way);
            assert_eq!(seen(None, &set, Some(named)).unwrap(), wanted, "{set:?}");
        }
    }

    #[test]
    fn without_an_account_it_says_how_to_name_one() {
        let error = seen(None, &[], None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.help().unwrap().contains("AZURE_STORAGE_ACCOUNT_NAME"));
    }
}
