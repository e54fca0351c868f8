//! Objects, keys and listings in S3.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_signed;
use onecopy::ErrorKind;
use onecopy::buffer::Slab;
use onecopy::ledger::Ledger;
use onecopy::route::Hop;
use onecopy::store::{Key, ListRequest, Object, Source, open_store};
use onecopy::sync::Arc;
use store_signed::*;

#[tokio::test]
async fn reads_ranges_straight_into_slabs_and_counts_every_byte() {
    let server = server();
    let whole = bytes(3 << 20);
    server.put("bkt", "k", whole.clone()).unwrap();
    let source = open("s3://bkt/k", &config(&server));
    let ledger = Ledger::unread();
    let hop = ledger.hop(Hop::Recv);
    let target = vec![Slab::heap(1 << 20), Slab::heap(4096), Slab::heap(1 << 20)];
    let filled = source
        .store
        .read_into(&hop, &source.object, 12345, target)
        .await
        .unwrap();
    let len = (2 << 20) + 4096;
    assert_eq!(joined(&filled), whole[12345..12345 + len]);
    assert_eq!(filled.object.len_bytes, Some(3 << 20));
    assert!(filled.object.etag.is_some());
    let report = ledger.report();
    let of = |name: &str| {
        report
            .hops
            .iter()
            .find(|hop| hop.hop == name)
            .map_or(0, |hop| hop.bytes)
    };
    assert_eq!(of("recv"), len as u64);
    assert!(of("head_rest") < 512, "{}", of("head_rest"));
}

#[tokio::test]
async fn an_object_that_fits_is_read_by_a_plain_get_and_a_known_empty_one_by_none() {
    let server = server();
    server.put("bkt", "k", bytes(1000)).unwrap();
    server.put("bkt", "empty", bytes(0)).unwrap();
    let config = config(&server);
    let known = |key: &str| {
        let source = open(&format!("s3://bkt/{key}"), &config);
        async move {
            let object = source.store.head(&source.object).await.unwrap();
            Source { object, ..source }
        }
    };
    let (full, empty) = (known("k").await, known("empty").await);
    server.forget_requests();
    assert_eq!(joined(&read(&full, 0, &[4096]).await.unwrap()), bytes(1000));
    assert_eq!(read(&empty, 0, &[4096]).await.unwrap().len_bytes, 0);
    assert_eq!(read(&full, 1000, &[4096]).await.unwrap().len_bytes, 0);
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].range, None);
    assert!(requests[0].if_match.is_some());
    assert_eq!(
        read(&full, 1001, &[8]).await.unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

#[tokio::test]
async fn an_object_of_unknown_length_tells_it() {
    let server = server();
    server.put("bkt", "k", bytes(1000)).unwrap();
    server.put("bkt", "empty", bytes(0)).unwrap();
    let config = config(&server);
    let filled = read(&open("s3://bkt/k", &config), 990, &[4096])
        .await
        .unwrap();
    assert_eq!(
        (filled.len_bytes, filled.object.len_bytes),
        (10, Some(1000))
    );
    let filled = read(&open("s3://bkt/empty", &config), 0, &[4096])
        .await
        .unwrap();
    assert_eq!((filled.len_bytes, filled.object.len_bytes), (0, Some(0)));
    let error = read(&open("s3://bkt/k", &config), 2000, &[4096])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn every_key_is_signed_sent_listed_and_read_as_it_is() {
    // As long as S3 allows.
    let long = "x".repeat(1024);
    let keys = [
        "a//b",
        "/lead",
        "trail/",
        " a  b ",
        "a b+c%20~'*[]?#&=;",
        "ümlaut/日本.tar",
        "new\nline",
        "%2F",
        "back\\slash",
        "a:b@c,d$e!f(g)",
        "..",
        "x/../y",
        "./z",
        "\u{7f}",
        "🦀",
        &long,
        "nfd-u\u{308}",
        "nfc-\u{fc}",
    ];
    let server = server();
    for key in keys {
        server
            .put("bkt", key, format!("<{key}>").into_bytes())
            .unwrap();
    }
    let config = config(&server);
    let (store, _) = open_store("s3://bkt", &config).unwrap();
    let request = ListRequest {
        prefix: Key::new(*b""),
        is_folded: false,
        page: None,
    };
    let page = store.list(&request).await.unwrap();
    let mut listed: Vec<&[u8]> = page
        .objects
        .iter()
        .map(|object| object.key.as_bytes())
        .collect();
    let mut wanted: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    wanted.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, wanted);
    for object in page.objects {
        let source = Source {
            store: Arc::clone(&store),
            object,
        };
        let filled = read(&source, 0, &[4096]).await.unwrap();
        let key = String::from_utf8(source.object.key.as_bytes().into()).unwrap();
        assert_eq!(joined(&filled), format!("<{key}>").into_bytes(), "{key:?}");
    }
}

#[tokio::test]
async fn an_object_that_was_replaced_is_changed() {
    let server = server();
    server.put("bkt", "k", bytes(1000)).unwrap();
    let mut source = open("s3://bkt/k", &config(&server));
    source.object = read(&source, 0, &[100]).await.unwrap().object;
    server.put("bkt", "k", bytes(999)).unwrap();
    let error = read(&source, 100, &[100]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert!(error.help().is_some());
}

#[tokio::test]
async fn prefixes_globs_braces_and_lists_find_what_they_name() {
    let server = server();
    for key in [
        "t/a-0.tar",
        "t/a-1.tar",
        "t/b.TGZ",
        "t/x/c.tar",
        "t/readme.md",
        "t/",
        "odd/[1].bin",
    ] {
        server.put("bkt", key, bytes(10)).unwrap();
    }
    let config = config(&server);
    let find = |urls: &'static [&'static str]| resolved(urls, &config);
    let all = [
        "s3://bkt/t/a-0.tar",
        "s3://bkt/t/a-1.tar",
        "s3://bkt/t/b.TGZ",
        "s3://bkt/t/x/c.tar",
    ];
    assert_eq!(find(&["s3://bkt/t/"]).await.unwrap(), all);
    assert_eq!(find(&["s3://bkt"]).await.unwrap(), all);
    assert_eq!(find(&["s3://bkt/t/a*"]).await.unwrap(), all[..2]);
    assert_eq!(find(&["s3://bkt/t/**/c.tar"]).await.unwrap(), all[3..]);
    assert_eq!(
        find(&["s3://bkt/odd/[1].bin"]).await.unwrap(),
        ["s3://bkt/odd/[1].bin"]
    );
    server.forget_requests();
    assert_eq!(
        find(&["s3://bkt/t/a-{1..0}.tar"]).await.unwrap(),
        [all[1], all[0]]
    );
    assert_eq!(server.requests().len(), 0);
    for urls in [&["s3://bkt/t/z*"], &["s3://bkt/none/"], &["s3://bkt/odd/"]] {
        let error = find(urls).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.target()),
            (ErrorKind::NotFound, urls[0])
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("urls.txt");
    std::fs::write(
        &list,
        "# two\r\ns3://bkt/t/x/c.tar\r\n\r\ns3://bkt/t/a-{0..1}.tar\n",
    )
    .unwrap();
    let list = list.to_str().unwrap();
    let wanted = [all[3], all[0], all[1]];
    assert_eq!(resolved(&[list], &config).await.unwrap(), wanted);
    assert_eq!(
        resolved(&[&format!("@{list}")], &config).await.unwrap(),
        wanted
    );
}

#[tokio::test]
async fn more_keys_than_fit_a_page_are_all_found() {
    let server = server();
    let config = config(&server);
    let put = |index: usize| {
        let key = format!("p/{index:04}.tar");
        server.put("bkt", &key, bytes(1)).unwrap();
    };
    (0..1000).for_each(put);
    for (count, pages) in [(1000, 1), (1001, 2)] {
        server.forget_requests();
        let found = resolved(&["s3://bkt/p/"], &config).await.unwrap();
        assert_eq!((found.len(), server.requests().len()), (count, pages));
        put(count);
    }
    let (store, _) = open_store("s3://bkt", &config).unwrap();
    let request = ListRequest {
        prefix: Key::new(*b""),
        is_folded: true,
        page: None,
    };
    let page = store.list(&request).await.unwrap();
    assert_eq!(page.prefixes, [Key::new(*b"p/")]);
    assert!(page.objects.is_empty());
}

#[tokio::test]
async fn a_look_up_tells_length_version_and_time() {
    let server = server();
    server.put("bkt", "k", bytes(77)).unwrap();
    let config = config(&server);
    let source = open("s3://bkt/k", &config);
    let found: Object = source.store.head(&source.object).await.unwrap();
    assert_eq!(found.len_bytes, Some(77));
    assert_eq!(
        found.etag.map(|tag| tag.0.to_string()),
        server.etag("bkt", "k").unwrap()
    );
    assert!(found.modified_unix.is_some());
    let missing = open("s3://bkt/nope", &config);
    let error = missing.store.head(&missing.object).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
