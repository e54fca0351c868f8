//! What the environment says of an account: name, key, SAS token, endpoint.

use super::super::http1::Endpoint;
use super::place::NamedAccount;
use crate::config::Variables;
use crate::error::{Error, ErrorKind, Result};

/// The account that Azurite has from the start, and its key, which its documentation gives to everybody.
const EMULATED: (&str, &str) = (
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
);

/// Where Azurite listens, where nothing else is said.
const EMULATOR: &str = "http://127.0.0.1:10000";

/// What is set.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) account: Option<String>,
    pub(super) key: Option<String>,
    /// Without a question mark in front.
    pub(super) sas: Option<String>,
    pub(super) token: Option<String>,
    /// The place of the account's containers.
    pub(super) endpoint: Option<String>,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// Reads the variables that other tools read, too. A connection string is taken whole and alone, as with the Azure tools.
    pub(super) fn read(variables: &Variables) -> Result<Self> {
        let first = |names: &[&str]| names.iter().find_map(|name| variables.get(name));
        let mut settings = match variables.get("AZURE_STORAGE_CONNECTION_STRING") {
            Some(text) => Self::connection(&text)?,
            None => Self {
                account: first(&["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"]),
                key: first(&["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"]),
                sas: first(&["AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"]),
                token: first(&["AZURE_STORAGE_TOKEN"]),
                endpoint: first(&["AZURE_STORAGE_ENDPOINT"]),
            },
        };
        let is_emulated = variables
            .get("AZURE_STORAGE_USE_EMULATOR")
            .is_some_and(|text| text == "1" || text.eq_ignore_ascii_case("true"));
        if is_emulated {
            settings.emulate(variables.get("AZURITE_BLOB_STORAGE_URL"));
        }
        settings.sas = settings
            .sas
            .map(|sas| sas.trim_start_matches('?').to_owned());
        if let Some(account) = &settings.account {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            if !account.bytes().all(is_plain) {
                let why = "an account's name has lower-case letters and digits";
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    "use the account",
                    account,
                    why,
                ));
            }
        }
        Ok(settings)
    }

    /// Whether what is set may go to `account`: it is set for that one, or for none in particular. An endpoint outside of
    /// Azure's clouds may be anybody's.
    pub(super) fn are_of(&self, account: &NamedAccount) -> bool {
        match (&self.account, &self.endpoint) {
            (Some(name), _) => *name == account.name,
            (None, Some(url)) => Endpoint::split(url)
                .is_ok_and(|(at, _)| NamedAccount::read(&at.host).as_ref() == Some(account)),
            (None, None) => true,
        }
    }

    /// Fills what is left open with what Azurite has from the start.
    fn emulate(&mut self, url: Option<String>) {
        let account = self.account.get_or_insert_with(|| EMULATED.0.to_owned());
        if self.endpoint.is_none() {
            let url = url.unwrap_or_else(|| EMULATOR.to_owned());
            self.endpoint = Some(format!("{}/{account}", url.trim_end_matches('/')));
        }
        if account == EMULATED.0 && self.sas.is_none() && self.token.is_none() {
            self.key.get_or_insert_with(|| EMULATED.1.to_owned());
        }
    }

    /// `DefaultEndpointsProtocol=https;AccountName=..;AccountKey=..;EndpointSuffix=..`, or `BlobEndpoint=..` in place of what
    /// gives the host. The text is a secret, and not repeated.
    fn connection(text: &str) -> Result<Self> {
        let bad = |why| {
            let target = "AZURE_STORAGE_CONNECTION_STRING";
            Error::new(ErrorKind::InvalidInput, "use", target, why)
                .with_help("copy it from the account's access keys in the Azure portal")
        };
        let mut settings = Self::default();
        let (mut protocol, mut suffix) = ("https".to_owned(), "core.windows.net".to_owned());
        let mut is_emulated = false;
        for part in text.split(';').map(str::trim) {
            if part.is_empty() {
                continue;
            }
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| bad("a part of it is no name=value"))?;
            let value = value.to_owned();
            match name.to_ascii_lowercase().as_str() {
                "accountname" => settings.account = Some(value),
                "accountkey" => settings.key = Some(value),
                "sharedaccesssignature" => settings.sas = Some(value),
                "blobendpoint" => settings.endpoint = Some(value),
                "defaultendpointsprotocol" => protocol = value,
                "endpointsuffix" => suffix = value,
                "usedevelopmentstorage" => is_emulated = value.eq_ignore_ascii_case("true"),
                _ => {}
            }
        }
        if is_emulated {
            settings.emulate(None);
        }
        if settings.endpoint.is_none() {
            let account = settings.account.as_ref();
            let account = account.ok_or_else(|| bad("it names no account"))?;
            settings.endpoint = Some(format!("{protocol}://{account}.blob.{suffix}"));
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Settings {
        Settings::read(&Variables::only(set.iter().copied())).unwrap()
    }

    #[test]
    fn a_connection_string_gives_all_there_is() {
        let text = "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=a2V5==;EndpointSuffix=core.windows.net";
        let settings = read(&[
            ("AZURE_STORAGE_CONNECTION_STRING", text),
            ("AZURE_STORAGE_ACCOUNT", "other"),
        ]);
        assert_eq!(settings.account.as_deref(), Some("acc"));
        assert_eq!(settings.key.as_deref(), Some("a2V5=="));
        let endpoint = "https://acc.blob.core.windows.net";
        assert_eq!(settings.endpoint.as_deref(), Some(endpoint));
        let settings = read(&[(
            "AZURE_STORAGE_CONNECTION_STRING",
            "BlobEndpoint=https://h/acc;SharedAccessSignature=?sv=1&sig=x%3D;",
        )]);
        assert_eq!(settings.endpoint.as_deref(), Some("https://h/acc"));
        assert_eq!(settings.sas.as_deref(), Some("sv=1&sig=x%3D"));
        for text in ["AccountKey=hush", "hush", "AccountName"] {
            let variables = Variables::only([("AZURE_STORAGE_CONNECTION_STRING", text)]);
            let error = Settings::read(&variables).unwrap_err();
            assert!(!format!("{error:#}").contains("hush"), "{error:#}");
        }
    }

    #[test]
    fn the_emulator_is_where_it_is_from_the_start() {
        let endpoint = "http://127.0.0.1:10000/devstoreaccount1";
        for set in [
            ("AZURE_STORAGE_USE_EMULATOR", "true"),
            (
                "AZURE_STORAGE_CONNECTION_STRING",
                "UseDevelopmentStorage=true",
            ),
        ] {
            let settings = read(&[set]);
            assert_eq!(settings.endpoint.as_deref(), Some(endpoint));
            assert_eq!(settings.account.as_deref(), Some(EMULATED.0));
            assert_eq!(settings.key.as_deref(), Some(EMULATED.1));
        }
        let settings = read(&[
            ("AZURE_STORAGE_USE_EMULATOR", "1"),
            ("AZURE_STORAGE_ACCOUNT_NAME", "own"),
            ("AZURITE_BLOB_STORAGE_URL", "http://azurite:1/"),
        ]);
        assert_eq!(settings.endpoint.as_deref(), Some("http://azurite:1/own"));
        assert_eq!(settings.key, None);
    }

    #[test]
    fn no_debug_output_shows_a_secret_and_no_odd_name_is_taken() {
        let settings = read(&[
            ("AZURE_STORAGE_ACCOUNT", "acc"),
            ("AZURE_STORAGE_KEY", "hush"),
            ("AZURE_STORAGE_SAS_TOKEN", "?hush"),
        ]);
        assert_eq!(settings.sas.as_deref(), Some("hush"));
        assert!(!format!("{settings:?}").contains("hush"));
        let variables = Variables::only([("AZURE_STORAGE_ACCOUNT", "evil.example/x")]);
        assert!(Settings::read(&variables).is_err());
    }
}
