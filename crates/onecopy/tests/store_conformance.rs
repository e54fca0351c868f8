//! One suite for every store: what the trait promises, held against files, the stores of three clouds, and a web server.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use onecopy::ErrorKind;
use onecopy::buffer::Slab;
use onecopy::config::{StoreConfig, Variables};
use onecopy::ledger::Ledger;
use onecopy::route::Hop;
use onecopy::store::{Filled, Key, ListRequest, Named, Object, Store, open_store, resolve};
use onecopy::sync::Arc;
use onecopy_testkit::cloud::{Access, CloudServer};
use onecopy_testkit::s3::S3Server;

/// A store under test, with a way to write behind its back.
struct Bench {
    name: &'static str,
    config: StoreConfig,
    /// What precedes a key in a URL.
    base: String,
    kind: Kind,
}

enum Kind {
    Folder(tempfile::TempDir),
    Server(S3Server),
    Cloud(CloudServer),
}

impl Bench {
    fn all() -> Vec<Self> {
        let folder = tempfile::tempdir().unwrap();
        let variables = Variables::only([
            ("AWS_ACCESS_KEY_ID", "onecopy"),
            ("AWS_SECRET_ACCESS_KEY", "onecopy-secret"),
        ]);
        let file = Self {
            name: "file",
            config: StoreConfig::default(),
            base: format!("{}/", folder.path().display()),
            kind: Kind::Folder(folder),
        };
        let server = || {
            let server = S3Server::builder().anonymous(true).start().unwrap();
            server.create_bucket("bkt").unwrap();
            server
        };
        let (s3, http) = (server(), server());
        let config = StoreConfig {
            endpoint_url: Some(s3.endpoint()),
            variables,
            ..StoreConfig::default()
        };
        let s3 = Self {
            name: "s3",
            config,
            base: "s3://bkt/".into(),
            kind: Kind::Server(s3),
        };
        let http = Self {
            name: "http",
            config: StoreConfig::default(),
            base: format!("{}/bkt/", http.endpoint()),
            kind: Kind::Server(http),
        };
        let google = CloudServer::google("127.0.0.1:0", Access::Anyone).unwrap();
        let azure = CloudServer::azure("127.0.0.1:0", "acc", Access::Anyone).unwrap();
        let gs = Self::cloud(google, "gs", "gs://bkt/");
        let az = Self::cloud(azure, "az", "az://bkt/");
        vec![file, s3, http, gs, az]
    }

    fn cloud(server: CloudServer, name: &'static str, base: &str) -> Self {
        server.create_bucket("bkt");
        Self {
            name,
            config: StoreConfig {
                endpoint_url: Some(server.endpoint()),
                is_anonymous: true,
                ..StoreConfig::default()
            },
            base: base.to_owned(),
            kind: Kind::Cloud(server),
        }
    }

    fn put(&self, key: &str, bytes: &[u8]) {
        match &self.kind {
            Kind::Folder(folder) => {
                let path = folder.path().join(key);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, bytes).unwrap();
            }
            Kind::Server(server) => server.put("bkt", key, bytes.to_owned()).unwrap(),
            Kind::Cloud(server) => server.put("bkt", key, bytes.to_owned()),
        }
    }

    fn open(&self, key: &str) -> (Arc<dyn Store>, Object) {
        match open_store(&format!("{}{key}", self.base), &self.config).unwrap() {
            (store, Named::Object(object)) => (store, object),
            (_, Named::Prefix(key)) => panic!("{key} is a prefix"),
        }
    }
}

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
