//! What an index tells of the sources of a load.

use tokio::task::JoinSet;

use super::Counted;
use crate::buffer::Slice;
use crate::config::StoreConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::route::Hop;
use crate::sample::KeyRule;
use crate::sample::index::{DatasetIndex, MOST_INDEX_BYTES, Offsets, beside, file_name};
use crate::size::to_usize;
use crate::store::{Named, Object, Opener, Source, read_front, read_whole};
use crate::sync::Arc;

/// So many indexes of shards are read at a time.
const AT_ONCE: usize = 32;

/// What a shard takes up in the index of the dataset, with a name of usual length and to spare.
const BYTES_PER_SHARD: usize = 512;

/// What a sample takes up in the index of its shard, with several members and to spare.
const BYTES_PER_SAMPLE: usize = 192;

/// What there is beside, and to spare.
const BYTES_BESIDE: usize = 4 << 10;

/// No more memory is made ready for a guess.
const MOST_GUESSED_BYTES: usize = 16 << 20;

/// The index of a dataset, held against its sources.
#[derive(Debug)]
pub(super) struct Indexed {
    /// One for all: a dataset may have thousands of indexes.
    opener: Arc<Opener>,
    /// For each source the URL of its own index, where it has one that says where samples begin.
    offsets: Vec<Option<String>>,
}

impl Indexed {
    /// Reads the index at `url`, and what it tells of `sources`.
    ///
    /// # Errors
    ///
    /// As reading `url`; `Changed` where a source is not what was indexed; `InvalidInput` where samples were told apart by another
    /// rule.
    pub(super) async fn read(
        url: &str,
        store: &StoreConfig,
        key_rule: KeyRule,
        sources: &[Source],
        ledger: &Ledger,
    ) -> Result<(Self, Counted)> {
        // None of it is payload, so the ledger of the load does not see it; but that something moves.
        let opener = Arc::new(Opener::new(store, &ledger.unread_beside()));
        let guess = BYTES_BESIDE + BYTES_PER_SHARD * sources.len();
        let bytes = small(url, &opener, guess).await?;
        let index = if file_name(url).starts_with(".info.") {
            DatasetIndex::read_energon(url, &bytes)?
        } else {
            DatasetIndex::read_wids(url, &bytes)?
        };
        if index.key_rule.is_some_and(|rule| rule != key_rule) {
            let why = "it was made with another key rule, so its samples are others";
            return Err(Error::new(ErrorKind::InvalidInput, "use the index", url, why)
                .with_help("open the data with the key rule of the index, or make it anew with `onecopy index`"));
        }
        let objects: Vec<Object> = sources.iter().map(|source| source.object.clone()).collect();
        let shards = index.matched(&objects)?;
        let counted = Counted {
            samples: shards.iter().map(|shard| shard.samples).collect(),
            starts: vec![None; shards.len()],
        };
        let name = |offsets: &Option<String>| offsets.as_deref().map(|name| beside(url, name));
        let offsets = shards.iter().map(|shard| name(&shard.offsets)).collect();
        Ok((Self { opener, offsets }, counted))
    }

    /// Reads where the samples of `shards` begin, where that is known.
    ///
    /// # Errors
    ///
    /// As reading them; `Changed` where one tells of another number of samples than the index of the dataset.
    pub(super) async fn fill(&self, counted: &mut Counted, shards: &[usize]) -> Result<()> {
        let mut left = shards
            .iter()
            .filter_map(|&shard| Some((shard, self.offsets.get(shard)?.clone()?)));
        let mut reading = JoinSet::new();
        loop {
            while reading.len() < AT_ONCE
                && let Some((shard, url)) = left.next()
            {
                let opener = Arc::clone(&self.opener);
                let samples = counted.samples[shard];
                reading.spawn(async move { (shard, bounds(&url, samples, &opener).await, url) });
            }
            let Some(read) = reading.join_next().await else {
                return Ok(());
            };
            let (shard, bounds, url) =
                read.map_err(|died| Error::bug("read an index", died.to_string()))?;
            let bounds = bounds?;
            if bounds.len() as u64 != counted.samples[shard] + 1 {
                let why = format!(
                    "it tells of {} samples, and the index of the dataset of {}",
                    bounds.len() - 1,
                    counted.samples[shard]
                );
                return Err(Error::new(ErrorKind::Changed, "use the index", url, why)
                    .with_help("make both anew with `onecopy index`"));
            }
            counted.starts[shard] = Some(bounds);
        }
    }
}

async fn bounds(url: &str, samples: u64, opener: &Arc<Opener>) -> Result<Arc<[u64]>> {
    let guess = to_usize(samples)
        .saturating_mul(BYTES_PER_SAMPLE)
        .saturating_add(BYTES_BESIDE);
    let bytes = small(url, opener, guess).await?;
    let offsets = if url.ends_with(".tar.idx") && !bytes.starts_with(b"v1.") {
        Offsets::read_energon(url, &bytes)?
    } else {
        Offsets::read_dali(url, &bytes)?
    };
    Ok(offsets.into_bounds().into())
}

/// The whole of an object that fits into memory and has about `guessed_bytes`: one request where that is no less than it has.
async fn small(url: &str, opener: &Arc<Opener>, guessed_bytes: usize) -> Result<Slice> {
    let (store, Named::Object(object)) = opener.open_aside(url).await? else {
        let why = "it names a folder or a prefix, not a file";
        return Err(
            Error::new(ErrorKind::InvalidInput, "read the index", url, why)
                .with_help("name the index.json that `onecopy index` has written"),
        );
    };
    let hop = opener.ledger().hop(Hop::Recv);
    let guessed_bytes = guessed_bytes.min(MOST_GUESSED_BYTES) as u64;
    let (bytes, object) = read_front(&*store, &hop, &object, guessed_bytes).await?;
    let len = object.len_bytes.unwrap_or(bytes.len() as u64);
    if len > MOST_INDEX_BYTES {
        let why = format!("it has {len} bytes, where {MOST_INDEX_BYTES} fit");
        return Err(
            Error::new(ErrorKind::LimitReached, "read the index", url, why)
                .with_help("name the index.json that `onecopy index` has written"),
        );
    }
    if len > bytes.len() as u64 {
        return read_whole(&*store, &hop, &object, len).await;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_index_is_whole_whatever_length_was_guessed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.json");
        std::fs::write(&path, b"0123456789").unwrap();
        let opener = Arc::new(Opener::new(&StoreConfig::default(), &Ledger::unread()));
        for guessed in [0, 1, 9, 10, 11, usize::MAX] {
            let bytes = small(path.to_str().unwrap(), &opener, guessed).await;
            assert_eq!(&bytes.unwrap()[..], b"0123456789", "{guessed}");
        }
    }
}
