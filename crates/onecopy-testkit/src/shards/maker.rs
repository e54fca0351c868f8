//! Puts fields into members, members into shards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::fields::Field;
use super::picture::Pool;
use crate::tar::TarWriter;

/// Pictures drawn per dataset unless told otherwise: enough that no batch holds one twice, few
/// enough to draw within a second.
const DISTINCT: usize = 64;

/// Where a member lies and what it holds: what a test compares a reader's answer with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The key of the sample.
    pub key: String,
    /// The name of the field.
    pub field: String,
    /// Where the content begins in the shard, in bytes.
    pub offset: u64,
    /// The length of the content in bytes.
    pub len: u64,
    /// The CRC-32 (IEEE) of the content.
    pub crc32: u32,
}

/// One tar.
#[derive(Debug, Clone)]
pub struct Shard {
    /// The file name, such as `train-00000.tar`.
    pub name: String,
    /// The whole archive.
    pub bytes: Bytes,
    /// Its members in order.
    pub members: Vec<Member>,
}

/// Makes a dataset; the same settings give the same bytes.
#[derive(Debug, Clone)]
pub struct ShardMaker {
    seed: u64,
    samples: u64,
    shards: u64,
    width: u16,
    height: u16,
    fields: Vec<Field>,
    prefix: String,
    distinct: usize,
}

impl ShardMaker {
    /// 100 samples of `jpg` and `cls` in one shard, pictures of 500 x 375.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            samples: 100,
            shards: 1,
            width: 500,
            height: 375,
            fields: vec![Field::jpg(), Field::cls()],
            prefix: "train-".to_owned(),
            distinct: DISTINCT,
        }
    }

    /// The number of samples in all shards together; the first shards get one more if it does not
    /// divide.
    #[must_use]
    pub fn samples(mut self, samples: u64) -> Self {
        self.samples = samples;
        self
    }

    /// The number of shards, at least 1.
    #[must_use]
    pub fn shards(mut self, shards: u64) -> Self {
        self.shards = shards.max(1);
        self
    }

    /// The size of the pictures in pixels, at least 1 x 1.
    #[must_use]
    pub fn size(mut self, width: u16, height: u16) -> Self {
        (self.width, self.height) = (width.max(1), height.max(1));
        self
    }

    /// The fields of every sample, in their order.
    #[must_use]
    pub fn fields(mut self, fields: impl Into<Vec<Field>>) -> Self {
        self.fields = fields.into();
        self
    }

    /// What the names of the shards begin with; the default is `train-`.
    #[must_use]
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// How many different pictures to draw, at least 1; more samples than that differ in a
    /// comment only. The default is 64.
    #[must_use]
    pub fn distinct(mut self, pictures: usize) -> Self {
        self.distinct = pictures.max(1);
        self
    }

    /// Makes all shards in memory.
    #[must_use]
    pub fn build(&self) -> Vec<Shard> {
        let mut shards = Vec::new();
        self.build_into(|shard| shards.push(shard));
        shards
    }

    /// Makes one shard after the other and gives each away, so that one is in memory at a time.
    pub fn build_into(&self, mut take: impl FnMut(Shard)) {
        let pool = self.pool();
        (0..self.shards).for_each(|number| take(self.shard(number, &pool)));
    }

    /// Writes the shards into a folder, which is made if it is missing. Gives their paths.
    ///
    /// # Errors
    /// If the folder or a file in it cannot be written.
    pub fn write_into(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::create_dir_all(folder)?;
        let pool = self.pool();
        let write = |number| {
            let shard = self.shard(number, &pool);
            let path = folder.join(&shard.name);
            fs::write(&path, &shard.bytes)?;
            Ok(path)
        };
        (0..self.shards).map(write).collect()
    }

    fn pool(&self) -> Pool {
        let wanted = if self.fields.iter().any(Field::is_picture) {
            self.samples
        } else {
            0
        };
        let count = usize::try_from(wanted)
            .unwrap_or(usize::MAX)
            .min(self.distinct);
        Pool::draw(self.seed, count, self.width, self.height)
    }

    fn shard(&self, number: u64, pool: &Pool) -> Shard {
        let (each, more) = (self.samples / self.shards, self.samples % self.shards);
        let first = number * each + number.min(more);
        let last = first + each + u64::from(number < more);
        let mut tar = TarWriter::new();
        let mut members = Vec::new();
        for sample in first..last {
            let key = format!("{sample:09}");
            for field in &self.fields {
                let content = field.content(self.seed, sample, &key, pool);
                let offset = tar.file(&format!("{key}.{}", field.name()), &content);
                members.push(Member {
                    key: key.clone(),
                    field: field.name().to_owned(),
                    offset,
                    len: content.len() as u64,
                    crc32: crc32fast::hash(&content),
                });
            }
        }
        let name = format!("{}{number:05}.tar", self.prefix);
        Shard {
            name,
            bytes: Bytes::from(tar.finish()),
            members,
        }
    }
}
