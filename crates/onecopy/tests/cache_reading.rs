//! A cache in front of stores: what comes out of it is what the store has, whatever lies on the disk.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_bench;

use std::fs;
use std::path::{Path, PathBuf};

use onecopy::buffer::{Slab, Slice};
use onecopy::cache::Cached;
use onecopy::ledger::{Ledger, OpenHop, Report};
use onecopy::route::Hop;
use onecopy::store::{Object, Store, Taker};
use onecopy::sync::Arc;
use proptest::prelude::*;
use store_bench::{Bench, Kind};

const LEN: usize = 3_000_000;

fn content() -> Vec<u8> {
    (0..LEN)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16)).to_le_bytes()[0])
        .collect()
}

#[derive(Debug, Default)]
struct Kept(Vec<Slice>);

impl Taker for Kept {
    fn full(&mut self, _object: &Object, bytes: Slice) {
        self.0.push(bytes);
    }
}

/// One process with a cache.
struct Reader {
    cached: Cached,
    object: Object,
    hop: OpenHop,
    ledger: Arc<Ledger>,
}

impl Reader {
    fn new(bench: &Bench, key: &str, folder: &Path) -> Self {
        let ledger = Ledger::unread();
        let hop = ledger.hop(Hop::Recv);
        let (store, object) = bench.open(key);
        let cached = Cached::new(store, folder, &hop, 64 << 20).unwrap();
        Self {
            cached,
            object,
            hop,
            ledger,
        }
    }

    /// Reads slabs of these lengths from `offset` on.
    async fn read(&self, offset: u64, slabs: &[usize]) -> Vec<u8> {
        let target = slabs.iter().map(|len| Slab::heap(*len)).collect();
        let mut kept = Kept::default();
        let read = self
            .cached
            .read_run(&self.hop, &self.object, offset, target, &mut kept);
        let filled = read.await.unwrap();
        assert_eq!(filled.object.len_bytes, Some(LEN as u64));
        assert!(filled.target.is_empty());
        kept.0
            .iter()
            .flat_map(|part| part.iter().copied())
            .collect()
    }

    /// Ends it: what is on its way to the disk gets there.
    fn end(self) -> Report {
        drop(self.cached);
        self.ledger.report()
    }
}

fn bench() -> Bench {
    let bench = Bench::all().into_iter().find(|bench| bench.name == "s3");
    let bench = bench.unwrap();
    bench.put("a.tar", &content());
    bench
}

fn bytes_of(report: &Report, of: Hop) -> u64 {
    let hops = report.hops.iter().filter(|line| line.hop == of.spec().name);
    hops.map(|line| line.bytes).sum()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let below = fs::read_dir(folder).unwrap();
    let files = below.flat_map(|below| fs::read_dir(below.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

#[tokio::test]
async fn what_was_read_once_is_not_asked_for_again() {
    for bench in Bench::all() {
        bench.put("a.tar", &content());
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let slabs = [1 << 20, 1 << 20, LEN];
        let first = Reader::new(&bench, "a.tar", folder.path());
        assert!(first.read(0, &slabs).await == content(), "{}", bench.name);
        let first = first.end();
        assert_eq!((first.cache.hits, first.cache.misses), (0, 3));
        assert_eq!(first.cache.dropped_bytes, 0);
        assert_eq!(first.disk.written_bytes, LEN as u64, "{}", bench.name);
        let second = Reader::new(&bench, "a.tar", folder.path());
        assert!(second.read(0, &slabs).await == content(), "{}", bench.name);
        let second = second.end();
        assert_eq!((second.cache.hits, second.cache.misses), (3, 0));
        assert_eq!(second.cache.hit_bytes, LEN as u64);
        assert_eq!(bytes_of(&second, Hop::Recv), 0, "{}", bench.name);
        assert_eq!(second.disk.written_bytes, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ranges_of_any_cut_are_exact_and_what_is_held_costs_no_request(
        reads in prop::collection::vec((0..LEN, prop::collection::vec(1..900_000_usize, 1..4)), 1..6),
    ) {
        let whole = content();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let bench = bench();
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for turn in 0..2 {
            let reader = Reader::new(&bench, "a.tar", folder.path());
            for (offset, slabs) in &reads {
                let read = runtime.block_on(reader.read(*offset as u64, slabs));
                let end = LEN.min(offset + slabs.iter().sum::<usize>());
                prop_assert!(read == whole[*offset..end], "{offset}: {slabs:?}");
            }
            let report = reader.end();
            if turn == 1 {
                prop_assert_eq!(report.cache.misses, 0);
                prop_assert_eq!(bytes_of(&report, Hop::Recv), 0);
            }
        }
    }
}

#[tokio::test]
async fn damage_on_the_disk_is_told_and_costs_a_request_and_no_byte() {
    let bench = bench();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let reader = || Reader::new(&bench, "a.tar", folder.path());
    let slabs = [1 << 20, 1 << 20, 902_848];
    reader().read(0, &slabs).await;
    let data = files(folder.path())
        .into_iter()
        .find(|path| path.extension().unwrap() == "data");
    let mut bytes = fs::read(data.as_ref().unwrap()).unwrap();
    bytes[1_500_000] ^= 4;
    fs::write(data.unwrap(), bytes).unwrap();
    let damaged = reader();
    assert!(damaged.read(0, &slabs).await == content());
    let damaged = damaged.end();
    assert_eq!((damaged.cache.hits, damaged.cache.misses), (2, 1));
    assert_eq!(damaged.cache.damaged, 1);
    let mended = reader();
    assert!(mended.read(0, &slabs).await == content());
    assert_eq!(mended.end().cache.misses, 0);
}

#[tokio::test]
async fn a_new_version_is_another_object() {
    let bench = bench();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    Reader::new(&bench, "a.tar", folder.path())
        .read(0, &[LEN])
        .await;
    let mut other = content();
    other.reverse();
    bench.put("a.tar", &other);
    let reader = Reader::new(&bench, "a.tar", folder.path());
    assert!(reader.read(0, &[LEN]).await == other);
    assert_eq!(reader.end().cache.hits, 0);
}

#[tokio::test]
async fn where_the_disk_has_no_room_or_no_folder_the_data_is_streamed_and_a_note_says_why() {
    let bench = bench();
    for folder in ["/proc/onecopy", "/dev/null/cache"] {
        let reader = Reader::new(&bench, "a.tar", Path::new(folder));
        let target = vec![Slab::heap(LEN)];
        let mut kept = Kept::default();
        let read = reader
            .cached
            .read_run(&reader.hop, &reader.object, 0, target, &mut kept);
        let filled = read.await.unwrap();
        assert_eq!(filled.len_bytes, LEN as u64, "{folder}");
        let notes = reader.end().notes;
        assert!(notes.iter().any(|note| note.contains(folder)), "{notes:?}");
    }
}

#[tokio::test]
async fn readers_side_by_side_all_get_what_the_store_has() {
    let bench = bench();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut reading = tokio::task::JoinSet::new();
    for at in 0..8_u64 {
        let reader = Reader::new(&bench, "a.tar", folder.path());
        reading.spawn(async move {
            let from = at * 100_000;
            (from, reader.read(from, &[700_000, 1, 500_000]).await)
        });
    }
    let whole = content();
    while let Some(read) = reading.join_next().await {
        let (from, bytes) = read.unwrap();
        let from = usize::try_from(from).unwrap();
        assert!(bytes == whole[from..from + 1_200_001]);
    }
    assert!(matches!(bench.kind, Kind::Server(_)));
    assert_eq!(files(folder.path()).len(), 2);
}
