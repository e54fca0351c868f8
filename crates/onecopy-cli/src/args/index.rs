//! What was typed behind `index`.

use clap::Args as ClapArgs;
use onecopy::config::OnError;
use onecopy::sample::{Duplicates, KeyRule};

use super::examples::INDEX;
use super::{StoreArgs, at_least_one, size};

/// `onecopy index`
#[derive(Debug, ClapArgs)]
#[command(after_help = INDEX)]
pub(crate) struct IndexArgs {
    /// Shards: s3://bucket/train-{000..009}.tar (or gs://, az://), a prefix, a glob, a URL, a path
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,
    /// The folder or prefix (s3://) for the index [default: the one that the shards have in common]
    #[arg(long, value_name = "URL")]
    pub(crate) out: Option<String>,
    /// Which dot of a file name ends the key of its sample: first-dot, last-dot
    #[arg(long, value_name = "RULE", default_value = "first-dot")]
    pub(crate) key_rule: KeyRule,
    /// Which of two fields of one name counts: first, last, or error
    #[arg(long, value_name = "RULE", default_value = "error")]
    pub(crate) duplicates: Duplicates,
    /// What to do about damage in a shard: raise (the shard is not indexed), warn, skip (what is left is counted)
    #[arg(long, value_name = "POLICY", default_value = "raise")]
    pub(crate) on_error: OnError,
    /// Index all shards anew, and replace whatever is called index.json
    #[arg(long = "force")]
    pub(crate) is_forced: bool,
    /// Memory for everything in flight [default: a quarter of what is free, at most 2GiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<usize>,
    /// Connections at most [default: 256], and shards at the same time (up to 128)
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) connections: Option<usize>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
