//! `onecopy ls` without a bucket: the buckets of the account, as `aws s3 ls` shows them.

use std::fmt;

use onecopy::Result;
use onecopy::error::Printable;
use onecopy::store::{Bucket, list_buckets};
use serde::Serialize;

use super::figures::Moment;
use super::ls::block_on;
use super::{Outcome, store_config};
use crate::args::LsArgs;
use crate::exit::Exit;

/// What was found.
#[derive(Debug, Serialize)]
struct Listing {
    schema: u32,
    url: String,
    buckets: Vec<Entry>,
    total_buckets: usize,
}

/// One bucket.
#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    url: String,
    /// In UTC.
    created: Option<Moment>,
    region: Option<String>,
}

pub(super) fn is_meant(url: &str) -> bool {
    matches!(url, "s3://" | "s3:" | "s3:///")
}

/// An account without buckets is a good answer, as an empty bucket is.
pub(super) fn run(args: &LsArgs) -> Result<Outcome> {
    let buckets: Vec<Entry> = block_on(list_buckets(&store_config(&args.store)))?
        .into_iter()
        .map(Entry::new)
        .collect();
    let listing = Listing {
        schema: 1,
        url: args.url.clone(),
        total_buckets: buckets.len(),
        buckets,
    };
    Ok(Outcome::new(listing, Exit::Done))
}

impl Entry {
    fn new(bucket: Bucket) -> Self {
        Self {
            url: format!("s3://{}/", bucket.name),
            name: bucket.name,
            created: bucket.created_unix.map(Moment),
            region: bucket.region,
        }
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for bucket in &self.buckets {
            let created = bucket.created.map(|moment| moment.to_string());
            let name = Printable(&bucket.name);
            writeln!(f, "{:<19} {name}", created.as_deref().unwrap_or("-"))?;
        }
        Ok(())
    }
}
