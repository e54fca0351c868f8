//! One suite for every store: what the trait promises, held against files, the stores of three clouds, and a web server.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_bench;

use onecopy::ErrorKind;
use onecopy::buffer::{Slab, Slice};
use onecopy::config::StoreConfig;
use onecopy::ledger::Ledger;
use onecopy::route::Hop;
use onecopy::store::{Filled, Key, ListRequest, Named, Object, Store, Taker, open_store, resolve};
use onecopy::sync::Arc;
use store_bench::{Bench, Kind};

fn bytes(len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at ^ (at >> 8)).to_le_bytes()[0])
        .collect()
}

async fn read(
    store: &Arc<dyn Store>,
    object: &Object,
    offset: u64,
    slabs: &[usize],
) -> onecopy::Result<Filled> {
    let hop = Ledger::unread().hop(Hop::Recv);
    let target = slabs.iter().map(|len| Slab::heap(*len)).collect();
    store.read_into(&hop, object, offset, target).await
}

fn joined(filled: &Filled) -> Vec<u8> {
    let all: Vec<u8> = filled
        .target
        .iter()
        .flat_map(|slab| slab.iter().copied())
        .collect();
    all[..usize::try_from(filled.len_bytes).unwrap()].into()
}

#[tokio::test]
async fn every_range_over_every_split_is_exact() {
    let whole = bytes(100_000);
    for bench in Bench::all() {
        bench.put("a/k.tar", &whole);
        let (store, unknown) = bench.open("a/k.tar");
        let known = store.head(&unknown).await.unwrap();
        assert_eq!(known.len_bytes, Some(100_000), "{}", bench.name);
        for object in [&unknown, &known] {
            for (offset, slabs) in [
                (0, vec![100_000]),
                (0, vec![1, 4095, 0, 50_000, 99_999]),
                (1, vec![7; 100]),
                (99_999, vec![1]),
                (99_999, vec![4096, 4096]),
                (65_536, vec![8192; 3]),
            ] {
                let filled = read(&store, object, offset, &slabs).await.unwrap();
                let from = usize::try_from(offset).unwrap();
                let to = whole.len().min(from + slabs.iter().sum::<usize>());
                assert_eq!(joined(&filled), whole[from..to], "{} {offset}", bench.name);
                assert_eq!(filled.object.len_bytes, Some(100_000));
                assert_eq!(filled.target.len(), slabs.len());
            }
        }
    }
}

/// Counts what it is told, and keeps what is handed over.
#[derive(Debug, Default)]
struct Kept {
    told: usize,
    slabs: Vec<Slice>,
}

impl Taker for Kept {
    fn told(&mut self, _object: &Object) {
        self.told += 1;
    }

    fn full(&mut self, _object: &Object, slab: Slice) {
        self.slabs.push(slab);
    }
}

#[tokio::test]
async fn stores_behind_a_network_tell_their_pace_and_hand_over_what_is_full() {
    let whole = bytes(50_000);
    for bench in Bench::all() {
        bench.put("k", &whole);
        let (store, object) = bench.open("k");
        let is_far = bench.name != "file";
        assert_eq!(store.pace().is_some(), is_far, "{}", bench.name);
        let hop = Ledger::unread().hop(Hop::Recv);
        let target = vec![Slab::heap(10_000), Slab::heap(20_000), Slab::heap(5_000)];
        let mut kept = Kept::default();
        let run = store.read_run(&hop, &object, 1_000, target, &mut kept);
        let filled = run.await.unwrap();
        let (told, handed) = if is_far { (1, 2) } else { (0, 0) };
        assert_eq!(
            (kept.told, kept.slabs.len()),
            (told, handed),
            "{}",
            bench.name
        );
        let handed = kept.slabs.iter().flat_map(|slab| slab.iter().copied());
        let all: Vec<u8> = handed.chain(joined(&filled)).collect();
        assert_eq!(all, whole[1_000..36_000], "{}", bench.name);
    }
}

#[tokio::test]
async fn payload_bytes_are_counted_once() {
    for bench in Bench::all() {
        bench.put("k", &bytes(50_000));
        let (store, object) = bench.open("k");
        let ledger = Ledger::unread();
        let hop = ledger.hop(Hop::Recv);
        store
            .read_into(&hop, &object, 0, vec![Slab::heap(50_000)])
            .await
            .unwrap();
        let hops = ledger.report().hops;
        let main = if bench.name == "file" { "read" } else { "recv" };
        let count = hops.iter().find(|hop| hop.hop == main).unwrap();
        assert_eq!(count.bytes, 50_000, "{}", bench.name);
    }
}

#[tokio::test]
async fn ends_and_empties_are_no_errors_and_beyond_is_one() {
    for bench in Bench::all() {
        bench.put("empty", b"");
        bench.put("k", &bytes(10));
        let (store, empty) = bench.open("empty");
        let (_, k) = bench.open("k");
        let filled = read(&store, &empty, 0, &[16]).await.unwrap();
        assert_eq!(
            (filled.len_bytes, filled.object.len_bytes),
            (0, Some(0)),
            "{}",
            bench.name
        );
        assert_eq!(
            read(&store, &k, 10, &[16]).await.unwrap().len_bytes,
            0,
            "{}",
            bench.name
        );
        let error = read(&store, &k, 11, &[16]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{}", bench.name);
        assert_eq!(
            read(&store, &k, 3, &[]).await.unwrap().len_bytes,
            0,
            "{}",
            bench.name
        );
    }
}

#[tokio::test]
async fn what_is_missing_is_not_found_and_named() {
    for bench in Bench::all() {
        let (store, object) = bench.open("nowhere");
        let read = read(&store, &object, 0, &[16]).await.unwrap_err();
        let looked = store.head(&object).await.unwrap_err();
        for error in [read, looked] {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{}", bench.name);
            assert_eq!(
                error.target(),
                format!("{}nowhere", bench.base),
                "{}",
                bench.name
            );
            assert!(error.help().is_some());
        }
    }
}

#[tokio::test]
async fn an_object_replaced_between_reads_is_changed() {
    for bench in Bench::all() {
        bench.put("k", &bytes(10_000));
        let (store, object) = bench.open("k");
        let first = read(&store, &object, 0, &[100]).await.unwrap();
        bench.put("k", &bytes(10_001));
        let error = read(&store, &first.object, 100, &[100]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Changed, "{}", bench.name);
    }
}

#[tokio::test]
async fn listings_are_complete_ordered_and_folded_on_request() {
    for bench in Bench::all()
        .into_iter()
        .filter(|bench| bench.name != "http")
    {
        for key in ["p/b", "p/a", "p/x/1", "p/x/2", "p/xy", "q/a"] {
            bench.put(key, b"1");
        }
        let (store, named) = open_store(&format!("{}p/", bench.base), &bench.config).unwrap();
        let Named::Prefix(folder) = named else {
            panic!("a prefix")
        };
        let prefix = |suffix: &str| Key::new([folder.as_bytes(), suffix.as_bytes()].concat());
        let list = |suffix: &str, is_folded| {
            let request = ListRequest {
                prefix: prefix(suffix),
                is_folded,
                page: None,
            };
            let (store, base) = (Arc::clone(&store), prefix("").as_bytes().len());
            async move {
                let page = store.list(&request).await.unwrap();
                assert!(page.next.is_none());
                let cut = |key: &Key| String::from_utf8_lossy(&key.as_bytes()[base..]).into_owned();
                let objects: Vec<String> = page.objects.iter().map(|o| cut(&o.key)).collect();
                let prefixes: Vec<String> = page.prefixes.iter().map(cut).collect();
                (objects.join(" "), prefixes.join(" "))
            }
        };
        let pair = |objects: &str, prefixes: &str| (objects.to_owned(), prefixes.to_owned());
        assert_eq!(
            list("", false).await,
            pair("a b x/1 x/2 xy", ""),
            "{}",
            bench.name
        );
        assert_eq!(list("", true).await, pair("a b xy", "x/"), "{}", bench.name);
        assert_eq!(
            list("x", false).await,
            pair("x/1 x/2 xy", ""),
            "{}",
            bench.name
        );
        assert_eq!(list("x", true).await, pair("xy", "x/"), "{}", bench.name);
        assert_eq!(list("none", false).await, pair("", ""), "{}", bench.name);
    }
}

#[tokio::test]
async fn files_are_found_by_all_the_ways_to_name_them() {
    let bench = Bench::all().remove(0);
    for key in [
        "t/a-0.tar",
        "t/a-1.tar",
        "t/x/c.tgz",
        "t/read.me",
        "t/odd{1,2}[x].tar",
    ] {
        bench.put(key, b"1");
    }
    let find = async |tails: &[&str]| {
        let urls: Vec<String> = tails
            .iter()
            .map(|tail| format!("{}{tail}", bench.base))
            .collect();
        resolve(&urls, &bench.config).await.map(|sources| {
            let cut = |url: &str| url[bench.base.len()..].to_owned();
            sources
                .iter()
                .map(|source| cut(&source.object.url))
                .collect::<Vec<_>>()
                .join(" ")
        })
    };
    let all = "t/a-0.tar t/a-1.tar t/odd{1,2}[x].tar t/x/c.tgz";
    assert_eq!(find(&["t/"]).await.unwrap(), all);
    assert_eq!(
        find(&["t/*.tar"]).await.unwrap(),
        "t/a-0.tar t/a-1.tar t/odd{1,2}[x].tar"
    );
    assert_eq!(
        find(&["t/a-{1..0}.tar"]).await.unwrap(),
        "t/a-1.tar t/a-0.tar"
    );
    assert_eq!(
        find(&["t/odd{1,2}[x].tar"]).await.unwrap(),
        "t/odd{1,2}[x].tar"
    );
    assert_eq!(
        find(&["t/read.me", "t/a-0.tar"]).await.unwrap(),
        "t/read.me t/a-0.tar"
    );
    let url = format!("file://{}t/a-0.tar", bench.base);
    assert_eq!(
        resolve(&[url], &bench.config).await.unwrap()[0]
            .object
            .len_bytes,
        Some(1)
    );
    assert_eq!(
        resolve(&[], &bench.config).await.unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

#[tokio::test]
async fn files_that_are_not_there_are_named() {
    let bench = Bench::all().remove(0);
    bench.put("t/x/c.tgz", b"1");
    for (tail, kind) in [
        ("t/none-*.tar", ErrorKind::NotFound),
        ("none/", ErrorKind::NotFound),
        ("t/none.tar", ErrorKind::NotFound),
        ("t/x", ErrorKind::InvalidInput),
    ] {
        let url = format!("{}{tail}", bench.base);
        let error = resolve(&[url], &bench.config).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:#}");
        assert!(
            error.target().contains(tail) || error.target().contains("none"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_pipe_is_refused_and_not_waited_for() {
    let bench = Bench::all().remove(0);
    let Kind::Folder(folder) = &bench.kind else {
        panic!("a folder")
    };
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo")
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    let (store, object) = bench.open("pipe");
    let error = read(&store, &object, 0, &[16]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn schemes_that_are_not_known_say_so() {
    let error = open_store("ftp://h/k", &StoreConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.help().unwrap().contains("gs://"));
}
