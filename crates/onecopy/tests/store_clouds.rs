//! Google Cloud Storage and Azure Blob Storage, held against stand-ins that check who asks.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use onecopy::ErrorKind;
use onecopy::buffer::Slab;
use onecopy::config::{Limits, StoreConfig, Variables};
use onecopy::ledger::{Ledger, Report};
use onecopy::route::Hop;
use onecopy::store::{ListRequest, Named, Source, open_store, resolve};
use onecopy::sync::Arc;
use onecopy_testkit::cloud::{Access, CloudServer};

const KEY: &str = "aHVzaC1odXNoLWh1c2g=";

/// Names of any kind that a service permits; both list them in the order of their bytes.
const ODD: [&str; 9] = [
    " a b ",
    "#",
    "a%20b",
    "a&b=<c>",
    "a+b",
    "a//b",
    "a/?x=[y]*",
    "ß/写真",
    "\u{1f600}",
];

fn google(access: Access) -> CloudServer {
    CloudServer::google("127.0.0.1:0", access).unwrap()
}

fn azure(access: Access) -> CloudServer {
    CloudServer::azure("127.0.0.1:0", "acc", access).unwrap()
}

fn config(server: &CloudServer, set: &[(&str, &str)]) -> StoreConfig {
    StoreConfig {
        endpoint_url: Some(server.endpoint()),
        // Nobody answers there, and so no metadata service outside of the test is asked.
        variables: Variables::only(
            [("GCE_METADATA_HOST", "127.0.0.1:1"), ("PATH", "/nowhere")]
                .iter()
                .chain(set)
                .copied(),
        ),
        limits: Limits {
            tries: 3,
            ..Limits::default()
        },
        ..StoreConfig::default()
    }
}

fn open(url: &str, config: &StoreConfig) -> Source {
    match open_store(url, config).unwrap() {
        (store, Named::Object(object)) => Source { store, object },
        (_, Named::Prefix(key)) => panic!("{key} is a prefix"),
    }
}

fn body(len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at ^ (at >> 8)).to_le_bytes()[0])
        .collect()
}

/// Reads bytes from `offset` on, as many as `len`.
async fn read(source: &Source, offset: u64, len: usize) -> (onecopy::Result<Vec<u8>>, Report) {
    let ledger = Ledger::unread();
    let hop = ledger.hop(Hop::Recv);
    let target = vec![Slab::heap(len)];
    let filled = source
        .store
        .read_into(&hop, &source.object, offset, target)
        .await;
    let bytes = filled.map(|filled| {
        let len = usize::try_from(filled.len_bytes).unwrap();
        filled.target[0][..len].to_owned()
    });
    (bytes, ledger.report())
}

async fn list(url: &str, config: &StoreConfig, is_folded: bool) -> (Vec<String>, Vec<String>, u32) {
    let (store, named) = open_store(url, config).unwrap();
    let prefix = match named {
        Named::Prefix(prefix) => prefix,
        Named::Object(object) => object.key,
    };
    let mut request = ListRequest {
        prefix,
        is_folded,
        page: None,
    };
    let (mut keys, mut prefixes, mut pages) = (Vec::new(), Vec::new(), 0);
    loop {
        let page = store.list(&request).await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_owned()).unwrap();
        keys.extend(page.objects.iter().map(|o| text(o.key.as_bytes())));
        prefixes.extend(page.prefixes.iter().map(|key| text(key.as_bytes())));
        pages += 1;
        match page.next {
            Some(next) => request.page = Some(next),
            None => return (keys, prefixes, pages),
        }
    }
}

/// Both services with everybody let in, the way to them, and what stands before a key.
fn both() -> [(CloudServer, StoreConfig, &'static str); 2] {
    let set = |server: &CloudServer| StoreConfig {
        is_anonymous: true,
        ..config(server, &[])
    };
    let (google, azure) = (google(Access::Anyone), azure(Access::Anyone));
    let configs = (set(&google), set(&azure));
    [
        (google, configs.0, "gs://bkt/"),
        (azure, configs.1, "az://bkt/"),
    ]
}

#[tokio::test]
async fn odd_names_are_listed_over_pages_and_read_back() {
    for (server, config, base) in both() {
        server.set_page_len(2);
        for key in ODD {
            server.put("bkt", key, key);
        }
        let (keys, _, pages) = list(base, &config, false).await;
        assert_eq!(keys, ODD, "{base}");
        assert_eq!(pages, 5, "{base}");
        let (keys, prefixes, _) = list(base, &config, true).await;
        assert_eq!(prefixes, ["a/", "ß/"], "{base}");
        assert_eq!(keys.len(), ODD.len() - 3, "{base}");
        for key in ODD {
            let (store, _) = open_store(base, &config).unwrap();
            let object = store.object(key.as_bytes()).unwrap();
            let (bytes, _) = read(&Source { store, object }, 0, 100).await;
            assert_eq!(bytes.unwrap(), key.as_bytes(), "{base}{key}");
        }
    }
}

#[tokio::test]
async fn names_that_xml_cannot_hold_come_encoded_from_azure() {
    let [_, (server, config, base)] = both();
    let names = ["a\u{1}b +%20", "x\u{ffff}/y"];
    for name in names {
        server.put("bkt", name, "1");
    }
    assert_eq!(list(base, &config, false).await.0, names);
    assert_eq!(list(base, &config, true).await.1, ["x\u{ffff}/"]);
}

#[tokio::test]
async fn shards_are_found_by_prefix_glob_and_braces() {
    for (server, config, base) in both() {
        for key in ["t/a-0.tar", "t/a-1.tar", "t/b.json", "t/x/c.tgz"] {
            server.put("bkt", key, "1");
        }
        let find = async |tail: &str| {
            let found = resolve(&[format!("{base}{tail}")], &config).await.unwrap();
            let urls = found.iter().map(|source| source.object.url.to_string());
            urls.map(|url| url[base.len()..].to_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(find("t/").await, "t/a-0.tar t/a-1.tar t/x/c.tgz");
        assert_eq!(find("").await, "t/a-0.tar t/a-1.tar t/x/c.tgz");
        assert_eq!(find("t/*.json").await, "t/b.json");
        assert_eq!(find("t/a-{1..0}.tar").await, "t/a-1.tar t/a-0.tar");
    }
}

#[tokio::test]
async fn what_is_missing_is_told_apart() {
    for (server, config, base) in both() {
        server.create_bucket("bkt");
        let scheme = &base[..5];
        for (url, why) in [
            (format!("{base}nowhere"), "does not exist"),
            (format!("{scheme}none/k"), "none"),
        ] {
            let source = open(&url, &config);
            let error = read(&source, 0, 10).await.0.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{url}");
            assert!(error.why().contains(why), "{error}");
            assert!(error.help().is_some());
            let error = source.store.head(&source.object).await.unwrap_err();
            assert_eq!((error.kind(), error.target()), (ErrorKind::NotFound, &*url));
        }
    }
}

#[tokio::test]
async fn throttling_is_waited_out_and_told_where_it_does_not_end() {
    for (server, config, base) in both() {
        server.put("bkt", "k", body(100));
        let codes = if base.starts_with("gs") {
            (429, "TooManyRequests")
        } else {
            (503, "ServerBusy")
        };
        let source = open(&format!("{base}k"), &config);
        server.refuse(2, codes.0, codes.1);
        let (bytes, report) = read(&source, 0, 200).await;
        assert_eq!(bytes.unwrap(), body(100));
        assert_eq!(report.retries.by_cause["throttled"], 2);
        server.refuse(1, codes.0, codes.1);
        assert_eq!(list(base, &config, false).await.0, ["k"]);
        server.refuse(3, codes.0, codes.1);
        let error = read(&source, 0, 200).await.0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Throttled);
    }
}

#[tokio::test]
async fn an_object_listed_before_it_was_replaced_is_changed() {
    for (server, config, base) in both() {
        server.put("bkt", "k.tar", body(1000));
        let url = format!("{base}k.tar");
        let listed = resolve(&[base.to_owned()], &config)
            .await
            .unwrap()
            .remove(0);
        let (bytes, _) = read(&listed, 10, 20).await;
        assert_eq!(bytes.unwrap(), body(1000)[10..30], "{url}");
        let mut other = body(1000);
        other.reverse();
        server.put("bkt", "k.tar", other);
        let error = read(&listed, 10, 20).await.0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Changed, "{url}: {error}");
    }
}

#[tokio::test]
async fn googles_checksum_of_the_whole_is_held_against_ranges_and_wholes() {
    let server = google(Access::Anyone);
    server.put("bkt", "k", body(1000));
    let config = StoreConfig {
        is_anonymous: true,
        ..config(&server, &[])
    };
    let source = open("gs://bkt/k", &config);
    let known = source.store.head(&source.object).await.unwrap();
    let known = Source {
        object: known,
        store: source.store,
    };
    // In one piece, then in two, the second first.
    let (_, report) = read(&known, 0, 1000).await;
    assert_eq!(report.verified["crc32c"], 1);
    assert!(read(&known, 600, 400).await.1.verified.is_empty());
    let (bytes, report) = read(&known, 0, 600).await;
    assert_eq!(bytes.unwrap(), body(600));
    assert_eq!(report.verified["crc32c"], 1);
    // Nothing is looked up for it.
    let records = server.records();
    assert_eq!(records.iter().filter(|r| r.method == "HEAD").count(), 1);

    server.lie_about_checksums(true);
    let fresh = open("gs://bkt/k", &config);
    let fresh = Source {
        object: known.object.clone(),
        store: fresh.store,
    };
    let whole = read(&fresh, 0, 1000).await.0.unwrap_err();
    assert_eq!(whole.kind(), ErrorKind::Corrupt);
    assert!(read(&fresh, 0, 600).await.0.is_ok());
    let ranges = read(&fresh, 600, 400).await.0.unwrap_err();
    assert_eq!(ranges.kind(), ErrorKind::Corrupt);
    let unverified = StoreConfig {
        is_checksum_unverified: true,
        ..config.clone()
    };
    let source = open("gs://bkt/k", &unverified);
    assert_eq!(read(&source, 0, 2000).await.0.unwrap(), body(1000));
}

#[tokio::test]
async fn azure_is_said_to_have_no_checksum() {
    let [_, (server, config, base)] = both();
    server.put("bkt", "k", body(10));
    let (_, report) = read(&open(&format!("{base}k"), &config), 0, 10).await;
    assert!(report.notes[0].contains("not held against a checksum"));
}

#[tokio::test]
async fn requests_with_ranges_and_odd_names_are_signed_with_the_accounts_key() {
    let server = azure(Access::Key(KEY.into()));
    for key in ODD {
        server.put("bkt", key, body(100));
    }
    let set = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "acc"),
        ("AZURE_STORAGE_ACCOUNT_KEY", KEY),
    ];
    let right = config(&server, &set);
    server.set_page_len(4);
    assert_eq!(list("az://bkt", &right, false).await.0, ODD);
    assert_eq!(list("az://bkt/a b+&=", &right, true).await.0.len(), 0);
    let (store, _) = open_store("az://bkt", &right).unwrap();
    for key in ODD {
        let object = store.object(key.as_bytes()).unwrap();
        let known = store.head(&object).await.unwrap();
        for object in [object, known] {
            let source = Source {
                store: Arc::clone(&store),
                object,
            };
            let (bytes, _) = read(&source, 7, 13).await;
            assert_eq!(bytes.unwrap(), body(20)[7..], "{key}");
        }
    }
    let wrong = config(
        &server,
        &[set[0], ("AZURE_STORAGE_ACCOUNT_KEY", "aHVzaA==")],
    );
    let error = read(&open("az://bkt/k", &wrong), 0, 10)
        .await
        .0
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.help().unwrap().contains("clock"), "{error:?}");
}
