//! The ways from object storage to the device, and what happened to a wish for one.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A way that payload bytes take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Route {
    /// Socket to page-locked memory to device; no disk.
    Stream,
    /// As stream, and kept on NVMe for the next epoch.
    Cache,
    /// Storage to device memory by DMA; no host memory.
    Direct,
}

impl Route {
    /// The name used in options, JSON and docs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Cache => "cache",
            Self::Direct => "direct",
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The route asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RouteWish {
    /// The best that works here; the ledger names what was taken and why.
    #[default]
    Auto,
    /// This one if it works; another, named in the ledger, if not.
    Prefer(Route),
    /// This one or an error.
    Require(Route),
}

impl FromStr for Route {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "stream" => Ok(Self::Stream),
            "cache" => Ok(Self::Cache),
            "direct" => Ok(Self::Direct),
            other => Err(format!(
                "unknown route {other:?}: use stream, cache or direct"
            )),
        }
    }
}

/// A wish that was not granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fallback {
    /// The route that was wanted.
    pub wanted: String,
    /// The route that was taken instead.
    pub used: String,
    /// Why.
    pub why: String,
}
