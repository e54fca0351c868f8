//! Containers and accounts, as URLs name them.

use crate::error::{Error, ErrorKind, Result};

/// What follows the account and the service in the host names of Azure's clouds. Credentials go nowhere else because a URL
/// says so; another place is named by `endpoint_url`.
const CLOUDS: [&str; 5] = [
    "core.windows.net",
    "core.usgovcloudapi.net",
    "core.chinacloudapi.cn",
    "core.cloudapi.de",
    "fabric.microsoft.com",
];

/// A container, and the account where the URL names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::store) struct Container {
    pub(super) name: String,
    pub(super) account: Option<NamedAccount>,
    /// What precedes the key in a URL, without the slash.
    pub(super) shown: String,
}

/// An account that a URL names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::store) struct NamedAccount {
    pub(super) name: String,
    pub(super) cloud: &'static str,
}

impl NamedAccount {
    /// The host of its blobs.
    pub(super) fn host(&self) -> String {
        format!("{}.blob.{}", self.name, self.cloud)
    }

    /// Reads `account.dfs.core.windows.net` or `account.blob.core.windows.net`.
    pub(super) fn read(host: &str) -> Option<Self> {
        let host = host.to_ascii_lowercase();
        let (name, rest) = host.split_once('.')?;
        let rest = rest.strip_prefix("dfs.").or(rest.strip_prefix("blob."))?;
        let cloud = CLOUDS.into_iter().find(|cloud| *cloud == rest)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (!name.is_empty() && name.bytes().all(is_plain)).then(|| Self {
            name: name.to_owned(),
            cloud,
        })
    }
}

impl Container {
    /// Reads what stands between the scheme and the key: `container` or `container@account.dfs.core.windows.net`.
    pub(in crate::store) fn read(scheme: &str, text: &str) -> Result<Self> {
        let (name, host) = match text.split_once('@') {
            Some((name, host)) => (name, Some(host)),
            None => (text, None),
        };
        let bad = |shown: &str, why, help: &str| {
            let target = format!("{scheme}://{shown}");
            Error::new(ErrorKind::InvalidInput, "use the container", target, why).with_help(help)
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_$".contains(&byte);
        if !(1..=63).contains(&name.len()) || !name.bytes().all(is_plain) {
            // It may be a name with its password.
            let shown = if host.is_some() { ".." } else { name };
            return Err(bad(shown, "this is no container name", HELP));
        }
        let account = host
            .map(|host| {
                let why = "this is no account of Azure's clouds";
                NamedAccount::read(host).ok_or_else(|| bad(text, why, HELP))
            })
            .transpose()?;
        Ok(Self {
            name: name.to_owned(),
            account,
            shown: format!("{scheme}://{text}"),
        })
    }
}

const HELP: &str = "write az://container/name with the account in AZURE_STORAGE_ACCOUNT_NAME, or \
                    abfss://container@account.dfs.core.windows.net/name; for other hosts there is `endpoint_url`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_and_accounts_are_told_apart() {
        let read = |text: &str| {
            let read = Container::read("abfss", text).unwrap();
            let host = read.account.map(|account| account.host());
            (read.name, host, read.shown)
        };
        assert_eq!(read("data"), ("data".into(), None, "abfss://data".into()));
        let host = Some("acc.blob.core.windows.net".to_owned());
        for text in [
            "data@acc.dfs.core.windows.net",
            "data@Acc.blob.core.windows.net",
        ] {
            let shown = format!("abfss://{text}");
            assert_eq!(read(text), ("data".into(), host.clone(), shown));
        }
        assert_eq!(read("$web").0, "$web");
    }

    #[test]
    fn credentials_go_to_no_host_that_a_url_makes_up() {
        for text in [
            "c@evil.example",
            "c@acc.dfs.core.windows.net.evil.example",
            "c@acc.evil.core.windows.net",
            "c@.blob.core.windows.net",
            "c@a/b.blob.core.windows.net",
            "c@acc.blob.core.windows.net:444",
            "acc.blob.core.windows.net",
            "",
            "a b",
        ] {
            let error = Container::read("az", text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}");
            assert!(error.help().unwrap().contains("abfss://container@"));
        }
        let error = Container::read("az", "me:hush@acc.blob.core.windows.net").unwrap_err();
        assert!(!format!("{error:#}").contains("hush"), "{error:#}");
    }
}
