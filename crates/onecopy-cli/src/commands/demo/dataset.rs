//! The dataset of the demo: made here, served by an S3 server in this process, and recorded.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use onecopy::config::Variables;
use onecopy::sync::{check_files, no_thread};
use onecopy::{Error, Result};
use onecopy_testkit::s3::S3Server;
use onecopy_testkit::shards::{Field, Shard, ShardMaker};

use crate::args::DemoArgs;
use crate::commands::Context;

/// What the client is told to read: a prefix, so that it lists.
pub(super) const URL: &str = "s3://demo/train/";

/// The region that requests are signed for.
pub(super) const REGION: &str = "us-east-1";

const BUCKET: &str = "demo";
const FOLDER: &str = "train/";

/// Made up: they open nothing but this server.
const ACCESS_KEY: &str = "ONECOPYDEMO";
const SECRET_KEY: &str = "made-up-for-the-demo";

/// Samples in a shard: about 35 MiB, several ranges and less than a slab's worth of them.
const SAMPLES_PER_SHARD: u64 = 313;

/// The dataset is the same on every machine.
const SEED: u64 = 1;

/// Files and sockets that server and client open, with one connection between them and room to spare.
const FILES: usize = 32;

/// What was written into one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) len_bytes: u64,
    pub(super) crc32: u32,
}

/// A dataset behind a running server.
#[derive(Debug)]
pub(super) struct Dataset {
    server: S3Server,
    samples: BTreeMap<String, BTreeMap<String, Written>>,
    shards: u64,
    bytes: u64,
}

/// The server's keys, and nothing of this machine's environment.
pub(super) fn credentials() -> Variables {
    Variables::only([
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
    ])
}

impl Dataset {
    /// Starts the server and fills it.
    pub(super) fn make(args: &DemoArgs, context: &Context) -> Result<Self> {
        // Its server and its client would wait for each other where only one of them has a socket.
        check_files("the demo", FILES)?;
        let server = S3Server::builder()
            .credentials(ACCESS_KEY, SECRET_KEY)
            .region(REGION)
            .start()
            .map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => no_thread("demo-s3", error),
                _ => Error::io("start", "the demo's S3 server", error),
            })?;
        let mut dataset = Self {
            server,
            samples: BTreeMap::new(),
            shards: args.samples.div_ceil(SAMPLES_PER_SHARD),
            bytes: 0,
        };
        dataset
            .server
            .create_bucket(BUCKET)
            .map_err(|error| Error::io("make the bucket", BUCKET, error))?;
        if let Some(folder) = &args.keep {
            fs::create_dir_all(folder).map_err(|error| unkept("make the folder", folder, error))?;
        }
        let bar = context
            .progress
            .samples("making the dataset", Some(args.samples));
        let mut result = Ok(());
        ShardMaker::new(SEED)
            .samples(args.samples)
            .shards(dataset.shards)
            .fields([Field::jpg(), Field::cls(), Field::json()])
            .build_into(|shard| {
                if result.is_ok() {
                    result = context
                        .interrupt
                        .check()
                        .and_then(|()| dataset.add(&shard, args.keep.as_deref()));
                    bar.add(shard.members.len() as u64 / 3);
                }
            });
        result.map(|()| dataset)
    }

    fn add(&mut self, shard: &Shard, keep: Option<&Path>) -> Result<()> {
        for member in &shard.members {
            let written = Written {
                len_bytes: member.len,
                crc32: member.crc32,
            };
            self.samples
                .entry(member.key.clone())
                .or_default()
                .insert(member.field.clone(), written);
        }
        self.bytes += shard.bytes.len() as u64;
        if let Some(folder) = keep {
            let path = folder.join(&shard.name);
            fs::write(&path, &shard.bytes).map_err(|error| unkept("write", &path, error))?;
        }
        let key = format!("{FOLDER}{}", shard.name);
        self.server
            .put(BUCKET, &key, shard.bytes.clone())
            .map_err(|error| Error::io("put", key, error))
    }

    /// What was written into the fields of the sample `key`.
    pub(super) fn sample(&self, key: &str) -> Option<(&str, &BTreeMap<String, Written>)> {
        self.samples
            .get_key_value(key)
            .map(|(key, fields)| (key.as_str(), fields))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.samples.keys().map(String::as_str)
    }

    pub(super) fn samples(&self) -> u64 {
        self.samples.len() as u64
    }

    pub(super) fn shards(&self) -> u64 {
        self.shards
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn endpoint_url(&self) -> String {
        self.server.endpoint()
    }
}

/// Why the shards cannot be kept where `--keep` says.
fn unkept(doing: &str, path: &Path, error: io::Error) -> Error {
    Error::io(doing, path.display().to_string(), error)
        .with_help("give --keep a folder that can be written to, or leave it out")
}
