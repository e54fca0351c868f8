//! Settings, with their defaults and the reasons for them.

mod on_error;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub use on_error::{Answer, Handler, OnError};

use crate::error::{Error, ErrorKind, Result};
use crate::route::RouteWish;
use crate::size::MIB;

/// How to reach a store. Everything has a default; `AWS_*`, `GOOGLE_*` and `AZURE_*` variables fill what is left open, as with
/// the tools of each cloud.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreConfig {
    /// `--endpoint-url`: where the store is, if not at its cloud. Else `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, the profile;
    /// `STORAGE_EMULATOR_HOST`; `AZURE_STORAGE_ENDPOINT`, `AZURE_STORAGE_CONNECTION_STRING`.
    pub endpoint_url: Option<String>,
    /// `--region`. Else `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile; at last us-east-1.
    pub region: Option<String>,
    /// `--profile`. Else `AWS_PROFILE`.
    pub profile: Option<String>,
    /// `--no-sign-request`: send no credentials.
    pub is_anonymous: bool,
    /// `--request-payer requester`; at Google the project in `GOOGLE_CLOUD_QUOTA_PROJECT` pays.
    pub is_requester_paying: bool,
    /// `--addressing-style`. Else the profile's; at last auto.
    pub addressing_style: Option<AddressingStyle>,
    /// `--sse-c-key`: the key that objects are encrypted with at the store (SSE-C), as base64 of its 32 bytes, or the
    /// file that holds it: `fileb://path` (the bytes) or `file://path` (base64).
    pub sse_c_key: Option<Secret>,
    /// `--no-verify-checksum`: do not hold objects against the checksums that the store has of them.
    pub is_checksum_unverified: bool,
    /// A PEM file of certificates to trust instead of the system's.
    pub ca_bundle: Option<String>,
    /// `--no-verify-ssl`: do not check certificates.
    pub is_tls_unverified: bool,
    /// Environment variables, where they are not to be the ones of this process.
    pub variables: Variables,
    /// Limits and times.
    pub limits: Limits,
}

/// Where in a request the bucket is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressingStyle {
    /// In the host name at AWS, where DNS and its certificate allow it; in the path at a given endpoint.
    #[default]
    Auto,
    /// In the path.
    Path,
    /// In the host name.
    Virtual,
}

impl std::str::FromStr for AddressingStyle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "path" => Ok(Self::Path),
            "virtual" => Ok(Self::Virtual),
            other => Err(format!(
                "unknown style {other:?}: use auto, path or virtual"
            )),
        }
    }
}

/// A text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Environment variables: those of this process, with some set to other values; or only those set here.
///
/// `Debug` shows names and no values, because credentials are among them.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Variables {
    set: BTreeMap<String, String>,
    is_alone: bool,
}

impl Variables {
    /// Exactly these, whatever the environment says.
    #[must_use]
    pub fn only<K: Into<String>, V: Into<String>>(set: impl IntoIterator<Item = (K, V)>) -> Self {
        Self {
            is_alone: true,
            ..Self::over(set)
        }
    }

    /// These, and the environment's for all other names.
    #[must_use]
    pub fn over<K: Into<String>, V: Into<String>>(set: impl IntoIterator<Item = (K, V)>) -> Self {
        let set = set
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        Self {
            set: set.collect(),
            is_alone: false,
        }
    }

    /// The value of `name`, where it is set, is text and is not empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        let value = match self.set.get(name) {
            Some(value) => Some(value.clone()),
            None if self.is_alone => None,
            None => std::env::var(name).ok(),
        };
        value.filter(|value| !value.is_empty())
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        if !self.is_alone {
            // `vars` panics on values that are no text; these are left out.
            let text = std::env::vars_os().filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.into_string().ok()?))
            });
            all.extend(text);
        }
        all.extend(self.set.clone());
        all
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variables")
            .field("set", &self.set.keys().collect::<Vec<_>>())
            .field("is_alone", &self.is_alone)
            .finish()
    }
}

/// Limits and times of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections at most, to one endpoint. Fewer where this process may not open as many files.
    pub connections: usize,
    /// Connections to begin with, where that is no more than there may be. More are made while each step brings more, and
    /// fewer while the other side asks for less.
    pub connections_at_first: usize,
    /// Tries per range, the first one included.
    pub tries: u32,
    /// Time for everything that one range takes from its first failure on, retries included.
    pub budget: Duration,
    /// Time to connect, TLS handshake included.
    pub connect_timeout: Duration,
    /// Time to the first byte of an answer to a read. Longer, up to six times as long, while the other side is that slow.
    pub first_byte_timeout: Duration,
    /// Time without a byte of the body, while we read.
    pub stall_timeout: Duration,
    /// How long an idle connection is kept: S3 closes after about 5 s, so less.
    pub idle_timeout: Duration,
}

impl Limits {
    /// For how long a store may be silent before its own limits end that: a connection, a first byte that may take six times
    /// as long as usual, and a try that is held back until the budget is spent.
    #[must_use]
    pub fn longest_silence(&self) -> Duration {
        self.connect_timeout + 6 * self.first_byte_timeout.max(self.stall_timeout) + self.budget
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // An S3 connection gives about 50 MB/s, so this is 100 Gbit/s.
            connections: 256,
            // 10 Gbit/s, and some more because a part of them always waits for its first byte.
            connections_at_first: 32,
            tries: 10,
            budget: Duration::from_secs(180),
            connect_timeout: Duration::from_secs(5),
            // As long as a body may be silent. S3's 99th percentile is 0.3 s, and a store that needs more gets it.
            first_byte_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(4),
        }
    }
}

/// The length of a ranged read where nobody gave one: 8 to 16 MiB is where S3 gives most per connection.
pub const RANGE_BYTES: usize = 8 * MIB;

/// For how long nothing may move while a load is waited for, where nobody said: longer than [`Limits::longest_silence`], so that
/// a store's own error, which says more, comes first.
pub const WAIT_LIMIT: Duration = Duration::from_mins(5);

/// Settings of one load.
#[derive(Debug, Clone)]
pub struct LoadConfig {
    /// How to reach the store.
    pub store: StoreConfig,
    /// The route wished for.
    pub route: RouteWish,
    /// Memory for everything in flight, in bytes; none takes a quarter of what is free.
    pub memory_bytes: Option<usize>,
    /// The length of a ranged read, and of every request. None takes [`RANGE_BYTES`], and asks for several neighbouring
    /// ranges in one request where the wait for its first byte would cost much.
    pub range_bytes: Option<usize>,
    /// Threads that decode; none takes one per core.
    pub decode_threads: Option<usize>,
    /// What to do with what cannot be read.
    pub on_error: OnError,
    /// How many samples and shards may be left out, together; none allows any number. The next one ends the load.
    pub max_skipped: Option<u64>,
    /// For how long nothing may move (no byte, no sample, no try) while the load is waited for, before that is an error; none
    /// waits for ever. Where data come over the network it is no less than [`Limits::longest_silence`].
    pub wait_limit: Option<Duration>,
    /// Whether to lock memory in RAM.
    pub is_locking: bool,
}

impl Default for LoadConfig {
    fn default() -> Self {
        Self {
            store: StoreConfig::default(),
            route: RouteWish::Auto,
            memory_bytes: None,
            range_bytes: None,
            decode_threads: None,
            on_error: OnError::Raise,
            max_skipped: None,
            wait_limit: Some(WAIT_LIMIT),
            is_locking: true,
        }
    }
}

impl LoadConfig {
    /// `wait_limit`, as it holds for data that are on this machine, or come over the network.
    #[must_use]
    pub fn wait_limit_for(&self, is_local: bool) -> Option<Duration> {
        let least = if is_local {
            Duration::ZERO
        } else {
            self.store.limits.longest_silence()
        };
        self.wait_limit.map(|limit| limit.max(least))
    }

    /// Holds settings against each other.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where one makes no sense beside another.
    pub fn check(&self) -> Result<()> {
        match self.max_skipped {
            Some(max) if self.on_error == OnError::Raise => Err(Error::new(
                ErrorKind::InvalidInput,
                "leave out up to",
                format!("{max} samples and shards"),
                "nothing is left out where every error ends the load",
            )
            .with_help("add `on_error=skip` or `on_error=warn`, or leave `max_skipped` out")),
            _ => Ok(()),
        }
    }
}

/// A quarter of the memory that is free, as the kernel and the control group see it, at most 2 GiB: more buys nothing
/// below 100 Gbit/s.
#[must_use]
pub fn default_memory_bytes() -> usize {
    let available = available_memory_bytes().unwrap_or(4 << 30);
    (available / 4).clamp(64 * MIB, 2048 * MIB)
}

/// Memory that can still be had: `MemAvailable`, or what the control group leaves where that is less.
fn available_memory_bytes() -> Option<usize> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|kib| kib.parse::<usize>().ok())?;
    let left = group_folders()
        .iter()
        .filter_map(|folder| left_in_group(folder))
        .min();
    Some(left.map_or(kib * 1024, |left| left.min(kib * 1024)))
}

/// The folder of this process's control group and all above it: each may set a limit.
fn group_folders() -> Vec<String> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = own
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .unwrap_or("/");
    let mut folders = vec!["/sys/fs/cgroup".to_owned()];
    for part in path.split('/').filter(|part| !part.is_empty()) {
        folders.extend(folders.last().map(|above| format!("{above}/{part}")));
    }
    folders
}

/// What a control group's limit leaves. Page cache that can be given up does not count as used.
fn left_in_group(folder: &str) -> Option<usize> {
    let read = |file: &str| std::fs::read_to_string(format!("{folder}/{file}")).ok();
    let number = |file: &str| read(file)?.trim().parse::<usize>().ok();
    let (limit, used) = match number("memory.max") {
        Some(limit) => (limit, number("memory.current")?),
        None => (
            number("memory/memory.limit_in_bytes")?,
            number("memory/memory.usage_in_bytes")?,
        ),
    };
    let cached = read("memory.stat")
        .and_then(|stat| {
            let line = stat
                .lines()
                .find_map(|line| line.strip_prefix("inactive_file "))?;
            line.trim().parse::<usize>().ok()
        })
        .unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_show_names_and_no_values() {
        let variables = Variables::only([("AWS_SECRET_ACCESS_KEY", "hush")]);
        assert_eq!(
            variables.get("AWS_SECRET_ACCESS_KEY").as_deref(),
            Some("hush")
        );
        assert!(!format!("{variables:?}").contains("hush"));
        assert_eq!(variables.get("PATH"), None);
        assert!(Variables::over([("X", "")]).get("PATH").is_some());
    }
}
