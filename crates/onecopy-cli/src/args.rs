//! What was typed. Nothing here does anything: each command turns its arguments into calls of the
//! engine.

mod examples;
mod index;
mod transfer;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{RangedI64ValueParser, RangedU64ValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, value_parser};
use onecopy::config::{AddressingStyle, OnError, Secret, WAIT_LIMIT};

pub(crate) use index::IndexArgs;
pub(crate) use transfer::{CpArgs, CpFlags, RunArgs, SyncArgs, TransferArgs};

/// Training data from object storage into memory, in as few copies as the machine allows.
#[derive(Debug, Parser)]
#[command(name = "onecopy", version, arg_required_else_help = true, after_help = examples::ALL)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// How results, progress and logs are shown.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Output")]
pub(crate) struct ShownArgs {
    /// Print one JSON object instead of text
    #[arg(long = "json", global = true)]
    pub(crate) is_json: bool,
    /// Show no progress
    #[arg(long = "quiet", short = 'q', global = true)]
    pub(crate) is_quiet: bool,
    /// Show more of the network: longest waits, rates, connections, addresses
    #[arg(long = "verbose", short = 'v', global = true)]
    pub(crate) is_verbose: bool,
    /// Log to stderr from this level on: error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL", global = true)]
    pub(crate) log: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Stream a made-up dataset through the real client, check every sample, show the path map
    Demo(DemoArgs),
    /// List buckets, their objects and prefixes, and files
    Ls(LsArgs),
    /// Write objects' bytes to stdout, in order
    Cat(CatArgs),
    /// Copy objects and files, one or many
    Cp(CpArgs),
    /// Make a folder or prefix like another
    Sync(SyncArgs),
    /// Carry out cp and sync commands, one a line
    Run(RunArgs),
    /// Count the samples of shards, and note where each begins
    Index(IndexArgs),
    /// Run a part of the path and print its ledger
    Bench(BenchArgs),
}

impl Command {
    /// Whether `--quiet` leaves nothing to write to stdout.
    pub(crate) fn is_quiet_able(&self) -> bool {
        match self {
            Self::Cp(args) => !args.is_to_stdout(),
            Self::Sync(_) | Self::Run(_) => true,
            _ => false,
        }
    }

    /// Whether stdout carries bytes, so that nothing else may be written there.
    pub(crate) fn has_bytes_on_stdout(&self) -> bool {
        match self {
            Self::Cat(_) => true,
            Self::Cp(args) => args.is_to_stdout(),
            _ => false,
        }
    }
}

/// How to reach a store. `AWS_*`, `GOOGLE_*` and `AZURE_*` variables and profiles fill what is left
/// open, as with the tools of each cloud.
#[derive(Debug, Clone, Default, PartialEq, ClapArgs)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// Where the store is, if not at AWS, Google or Azure
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint_url: Option<String>,
    /// The region of the bucket
    #[arg(long, value_name = "NAME")]
    pub(crate) region: Option<String>,
    /// The profile in ~/.aws to take credentials and settings from
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Send no credentials
    #[arg(long = "no-sign-request")]
    pub(crate) is_anonymous: bool,
    /// Agree to pay for requests to the bucket of somebody else
    #[arg(long, value_name = "requester")]
    pub(crate) request_payer: Option<Payer>,
    /// Where the bucket is named, in the host or in the path: auto, path, virtual [default: the
    /// profile's, or auto]
    #[arg(long, value_name = "STYLE")]
    pub(crate) addressing_style: Option<AddressingStyle>,
    /// The key that objects are encrypted with at the store (SSE-C): fileb://FILE with its 32
    /// bytes, file://FILE with their base64, or the base64 itself, which others can see
    #[arg(long, value_name = "KEY")]
    pub(crate) sse_c_key: Option<Secret>,
    /// Do not hold objects against the checksums that the store has of them
    #[arg(long = "no-verify-checksum")]
    pub(crate) is_checksum_unverified: bool,
    /// Trust the certificates in this PEM file instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_bundle: Option<String>,
    /// Do not check certificates
    #[arg(long = "no-verify-ssl")]
    pub(crate) is_tls_unverified: bool,
}

/// Who pays for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Payer {
    /// The one who asks.
    Requester,
}

/// `onecopy demo`
#[derive(Debug, ClapArgs)]
#[command(after_help = examples::DEMO)]
pub(crate) struct DemoArgs {
    /// Samples in the dataset, each about 110 KB
    #[arg(long, value_name = "N", default_value_t = 2500, value_parser = some())]
    pub(crate) samples: u64,
    /// Memory for everything in flight
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = size)]
    pub(crate) memory: usize,
    /// Samples in a batch
    #[arg(long, value_name = "N", default_value = "64", value_parser = at_least_one)]
    pub(crate) batch: usize,
    /// Width and height of the pictures in a batch, in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 224, value_parser = pixels())]
    pub(crate) size: u32,
    /// Write the shards into this folder as well, and leave them there
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
}

/// `onecopy ls`
#[derive(Debug, ClapArgs)]
#[command(after_help = examples::LS)]
pub(crate) struct LsArgs {
    /// s3://, gs:// or az://bucket/prefix, a glob or braces (s3://b/train-{000..009}.tar), a URL, a
    /// path; s3:// for the buckets themselves
    #[arg(value_name = "URL", default_value = "s3://")]
    pub(crate) url: String,
    /// List everything below, not only up to the next slash
    #[arg(long = "recursive", short = 'r')]
    pub(crate) is_recursive: bool,
    /// Show sizes in KiB, MiB, GiB
    #[arg(long = "human-readable", short = 'H')]
    pub(crate) is_human_readable: bool,
    /// Show the number of objects and their size at the end
    #[arg(long = "summarize")]
    pub(crate) is_summarized: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// `onecopy cat`
#[derive(Debug, ClapArgs)]
#[command(after_help = examples::CAT)]
pub(crate) struct CatArgs {
    /// Objects (s3://, gs://, az://), globs, braces, URLs, paths
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) waiting: WaitingArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// How bytes are fetched.
#[derive(Debug, Clone, PartialEq, ClapArgs)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadingArgs {
    /// Memory for everything in flight [default: a quarter of what is free, at most 2GiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<usize>,
    /// Bytes asked for in one request [default: 8MiB; cat and bench take several times that where waiting for answers costs
    /// much]
    #[arg(long, value_name = "SIZE", value_parser = at_least_one_byte)]
    pub(crate) range: Option<usize>,
    /// Connections at most [default: 256]; it begins with 32 and takes more while they bring more
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) connections: Option<usize>,
}

/// How long bytes are waited for.
#[derive(Debug, Clone, PartialEq, ClapArgs)]
#[command(next_help_heading = "Reading")]
pub(crate) struct WaitingArgs {
    /// Give up where nothing at all has moved for so long; 0 waits for ever. Stores give up before, by limits of their own; a disk
    /// that does not answer has none
    #[arg(long, value_name = "SECONDS", default_value_t = WAIT_LIMIT.as_secs())]
    wait_limit: u64,
}

impl WaitingArgs {
    /// For commands that take as long as it takes.
    pub(crate) const FOR_EVER: Self = Self { wait_limit: 0 };

    pub(crate) fn limit(&self) -> Option<Duration> {
        (self.wait_limit > 0).then(|| Duration::from_secs(self.wait_limit))
    }
}

/// `onecopy bench`
#[derive(Debug, ClapArgs)]
#[command(after_help = examples::BENCH)]
pub(crate) struct BenchArgs {
    /// Shards: s3://bucket/train-{000..009}.tar (or gs://, az://), a prefix, a glob, a URL, a path
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,
    /// How far along the path to go
    #[arg(long, value_name = "STAGE", default_value = "batch")]
    pub(crate) to: Stage,
    /// Run every part of the path and say which stage bounds the rate, and by how much
    #[arg(long = "stages", conflicts_with = "to")]
    pub(crate) is_by_stage: bool,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) waiting: WaitingArgs,
    /// Threads that decode [default: one per core]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) decode_threads: Option<usize>,
    /// Samples in a batch
    #[arg(long, value_name = "N", default_value = "64", value_parser = at_least_one)]
    pub(crate) batch: usize,
    /// Width and height of pictures in a batch, in pixels; 0 keeps their own
    #[arg(long, value_name = "PIXELS", default_value_t = 224)]
    pub(crate) size: u32,
    /// Only these fields [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_parser = field_name)]
    pub(crate) fields: Vec<String>,
    /// Leave fields as the bytes they are in the shard
    #[arg(long = "raw")]
    pub(crate) is_raw: bool,
    /// Stop after exactly so many samples were read; the last batch is as short as it has to be
    #[arg(long, value_name = "N", value_parser = some())]
    pub(crate) limit_samples: Option<u64>,
    /// Run so many times and show the median
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = runs())]
    pub(crate) repeat: u32,
    /// What to do with a sample or shard that cannot be read: raise, warn, skip
    #[arg(long, value_name = "POLICY", default_value = "raise")]
    pub(crate) on_error: OnError,
    /// With --on-error skip or warn: how many samples and shards may be left out, together; one more ends the run [default: any
    /// number]
    #[arg(long, value_name = "N")]
    pub(crate) max_skipped: Option<u64>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// How far along the path: each stage includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Stage {
    /// Shards' bytes in memory
    Buffer,
    /// Samples, as slices of it
    Sample,
    /// Decoded and collated batches
    Batch,
    /// Batches on the device; on the cpu a batch's memory is itself the result
    Device,
}

impl Stage {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Buffer => "buffer",
            Self::Sample => "sample",
            Self::Batch => "batch",
            Self::Device => "device",
        }
    }
}

fn some() -> RangedU64ValueParser<u64> {
    value_parser!(u64).range(1..)
}

fn runs() -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..)
}

/// Pictures larger than 4096 x 4096 are no demo any more.
fn pixels() -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..=4096)
}

fn size(text: &str) -> Result<usize, onecopy::Error> {
    onecopy::size::parse(text).map(onecopy::size::to_usize)
}

fn at_least_one_byte(text: &str) -> Result<usize, String> {
    match size(text) {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

fn field_name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a field has a name, such as jpg; leave --fields out to take all".to_owned()),
        name => Ok(name.to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(format!("{error}")),
    }
}
