//! What was typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Stand-ins for S3 and datasets for it.
#[derive(Debug, Parser)]
#[command(name = "onecopy-testkit", version, about)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve S3 from memory or a folder
    Serve(ServeArgs),
    /// Serve S3 that misbehaves as the keys say: GET /bucket/cut=1000x2/8MiB
    Fault(FaultArgs),
    /// Write a dataset of WebDataset shards
    Shards(ShardsArgs),
}

/// What the content of a sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Jpg,
    Npy,
    Raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileName {
    Instant,
    Standard,
    Express,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Serve the folders below this one as buckets
    #[arg(long, value_name = "DIR", conflicts_with = "memory")]
    pub(crate) root: Option<PathBuf>,
    /// Give files that were there before a CRC64NVME, too, computed once and kept in FILE
    #[arg(long, value_name = "FILE", requires = "root")]
    pub(crate) sums: Option<PathBuf>,
    /// Keep objects in memory (the default)
    #[arg(long)]
    pub(crate) memory: bool,
    /// Put this many shards into the bucket first
    #[arg(long, value_name = "N")]
    pub(crate) make_shards: Option<u64>,
    /// Samples in each of these shards
    #[arg(long, default_value_t = 100)]
    pub(crate) samples_per_shard: u64,
    /// What the samples of these shards are
    #[arg(long, value_enum, default_value_t = Kind::Jpg)]
    pub(crate) kind: Kind,
    /// Bytes of a sample of kind npy or raw
    #[arg(long, default_value_t = 110_000)]
    pub(crate) sample_bytes: usize,
    /// Seed of these shards
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Bucket to make
    #[arg(long, default_value = "bucket")]
    pub(crate) bucket: String,
    /// Access key
    #[arg(long, default_value = "onecopy")]
    pub(crate) key: String,
    /// Secret key
    #[arg(long, default_value = "onecopy-secret")]
    pub(crate) secret: String,
    /// Region that signatures must be made for
    #[arg(long, default_value = "us-east-1")]
    pub(crate) region: String,
    /// Let requests without a signature through
    #[arg(long)]
    pub(crate) anonymous: bool,
    /// Speak HTTPS and write the certificate to trust to DIR/ca.pem
    #[arg(long, value_name = "DIR")]
    pub(crate) tls: Option<PathBuf>,
    /// Stop when stdin closes, so that the server ends with whoever started it
    #[arg(long)]
    pub(crate) until_stdin_closes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FaultArgs {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Serve the files below this folder, too; those up to 8 MiB are held in memory
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Take the time that S3 takes
    #[arg(long, value_enum, default_value_t = ProfileName::Instant)]
    pub(crate) profile: ProfileName,
    /// Seed of the profile
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Give every connection this rate instead
    #[arg(long, value_name = "N", conflicts_with = "profile")]
    pub(crate) bytes_per_second: Option<u32>,
    /// The time to every first byte, with --bytes-per-second
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 0,
        requires = "bytes_per_second"
    )]
    pub(crate) first_byte_ms: u64,
    /// Answer every GET by 503 from so long after the first one on
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) refuse_after_ms: u64,
    /// .. for so long
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) refuse_for_ms: u64,
    /// Stop when stdin closes, so that the server ends with whoever started it
    #[arg(long)]
    pub(crate) until_stdin_closes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShardsArgs {
    /// Folder to write to
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Number of shards
    #[arg(long, default_value_t = 1)]
    pub(crate) shards: u64,
    /// Number of samples in all shards together
    #[arg(long, default_value_t = 100)]
    pub(crate) samples: u64,
    /// What the samples are
    #[arg(long, value_enum, default_value_t = Kind::Jpg)]
    pub(crate) kind: Kind,
    /// Bytes of a sample of kind npy or raw
    #[arg(long, default_value_t = 110_000)]
    pub(crate) sample_bytes: usize,
    /// Width of the pictures in pixels
    #[arg(long, default_value_t = 500)]
    pub(crate) width: u16,
    /// Height of the pictures in pixels
    #[arg(long, default_value_t = 375)]
    pub(crate) height: u16,
    /// The same seed gives the same bytes
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}
