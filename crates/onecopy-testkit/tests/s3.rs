//! What the S3 server promises of reading and listing, asked over plain sockets.
#![expect(clippy::unwrap_used, reason = "test helpers")]

mod client;

use bytes::Bytes;
use client::{Client, encoded};
use onecopy_testkit::s3::S3Server;

/// Keys that clients have got wrong (see the lists of any S3 tool's bug tracker).
const ODD_KEYS: &[&str] = &[
    "plain.txt",
    "a//b",
    "/lead",
    "d/",
    "two  blanks ",
    "+",
    "%",
    "%2F",
    "~",
    "&=;?#",
    "'*[]\\",
    "ä",
    "a\u{308}",
    "🦀",
    "line\nbreak",
    "a/../b",
    "./a",
    "\"<>\"",
    "x:y@z!$(),|^`{}",
];

fn open_server() -> S3Server {
    let server = S3Server::builder().anonymous(true).start().unwrap();
    server.create_bucket("bucket").unwrap();
    server
}

#[test]
fn keeps_every_odd_key_as_it_is_and_accepts_its_signature() {
    let server = S3Server::builder()
        .credentials("AK", "SK/+=")
        .start()
        .unwrap();
    server.create_bucket("bucket").unwrap();
    let mut client = Client::to(server.addr());
    for key in ODD_KEYS {
        let target = format!("/bucket/{}", encoded(key));
        let put = client.signed("PUT", &target, ("AK", "SK/+="), "us-east-1", key.as_bytes());
        assert_eq!(put.status, 200, "{key:?}: {}", put.text());
        assert_eq!(
            server.get("bucket", key).unwrap().unwrap(),
            key.as_bytes(),
            "{key:?}"
        );
        let got = client.signed("GET", &target, ("AK", "SK/+="), "us-east-1", b"");
        assert_eq!(got.body, key.as_bytes(), "{key:?}: {}", got.text());
    }
    let list = "/bucket?encoding-type=url&list-type=2";
    let listed = client.signed("GET", list, ("AK", "SK/+="), "us-east-1", b"");
    let mut told: Vec<_> = listed
        .xml_all("Key")
        .iter()
        .map(|key| key.replace('+', " "))
        .map(|key| {
            percent_encoding::percent_decode_str(&key)
                .decode_utf8()
                .unwrap()
                .into_owned()
        })
        .collect();
    told.sort();
    let mut wanted: Vec<_> = ODD_KEYS.iter().map(|key| (*key).to_owned()).collect();
    wanted.sort();
    assert_eq!(told, wanted);
}

#[test]
fn refuses_wrong_keys_missing_signatures_and_other_regions() {
    let server = S3Server::builder()
        .credentials("AK", "SK")
        .region("eu-west-1")
        .start()
        .unwrap();
    server.create_bucket("bucket").unwrap();
    let mut client = Client::to(server.addr());
    let ask = |client: &mut Client, keys, region| {
        client.signed("GET", "/bucket?list-type=2", keys, region, b"")
    };
    assert_eq!(ask(&mut client, ("AK", "SK"), "eu-west-1").status, 200);
    let wrong = ask(&mut client, ("AK", "other"), "eu-west-1");
    assert_eq!(
        (wrong.status, wrong.xml("Code")),
        (403, "SignatureDoesNotMatch".to_owned())
    );
    let unknown = ask(&mut client, ("who", "SK"), "eu-west-1");
    assert_eq!(
        (unknown.status, unknown.xml("Code")),
        (403, "InvalidAccessKeyId".to_owned())
    );
    let region = ask(&mut client, ("AK", "SK"), "us-east-1");
    assert_eq!(region.xml("Code"), "AuthorizationHeaderMalformed");
    assert_eq!(
        (region.status, region.xml("Region")),
        (400, "eu-west-1".to_owned())
    );
    let unsigned = client.ask("GET", "/bucket?list-type=2", &[]);
    assert_eq!(
        (unsigned.status, unsigned.xml("Code")),
        (403, "AccessDenied".to_owned())
    );
}

#[test]
fn answers_ranges_exactly() {
    let server = open_server();
    server
        .put("bucket", "k", Bytes::from_static(b"0123456789"))
        .unwrap();
    server.put("bucket", "empty", Bytes::new()).unwrap();
    let mut client = Client::to(server.addr());
    let mut ask = |key: &str, range: &str| {
        let headers: &[_] = if range.is_empty() {
            &[]
        } else {
            &[("Range", range)]
        };
        let answer = client.ask("GET", &format!("/bucket/{key}"), headers);
        (
            answer.status,
            answer.header("content-range").to_owned(),
            answer.text(),
        )
    };
    assert_eq!(ask("k", ""), (200, String::new(), "0123456789".into()));
    assert_eq!(
        ask("k", "bytes=2-4"),
        (206, "bytes 2-4/10".into(), "234".into())
    );
    assert_eq!(
        ask("k", "bytes=7-"),
        (206, "bytes 7-9/10".into(), "789".into())
    );
    assert_eq!(
        ask("k", "bytes=8-99"),
        (206, "bytes 8-9/10".into(), "89".into())
    );
    assert_eq!(
        ask("k", "bytes=-3"),
        (206, "bytes 7-9/10".into(), "789".into())
    );
    let (status, told, body) = ask("k", "bytes=10-12");
    assert_eq!((status, told.as_str()), (416, "bytes */10"));
    assert!(body.contains("<Code>InvalidRange</Code>"), "{body}");
    assert_eq!(ask("empty", "").0, 200);
    assert_eq!(ask("empty", "bytes=0-0").0, 416);
    assert_eq!(ask("empty", "bytes=-1").0, 416);
}

#[test]
fn obeys_if_match_and_if_none_match() {
    let server = open_server();
    server
        .put("bucket", "k", Bytes::from_static(b"hello"))
        .unwrap();
    let etag = server.etag("bucket", "k").unwrap().unwrap();
    assert_eq!(etag, "\"5d41402abc4b2a76b9719d911017c592\"");
    let mut client = Client::to(server.addr());
    for method in ["GET", "HEAD"] {
        let mut ask = |name, value: &str| client.ask(method, "/bucket/k", &[(name, value)]).status;
        assert_eq!(ask("If-Match", &etag), 200);
        assert_eq!(ask("If-Match", "\"other\""), 412);
        assert_eq!(ask("If-None-Match", &etag), 304);
        assert_eq!(ask("If-None-Match", "\"other\""), 200);
    }
    client.send("PUT", "/bucket/k", &[("If-None-Match", "*")], b"x");
    assert_eq!(client.answer("PUT").status, 412);
    client.send("PUT", "/bucket/k", &[("If-Match", &etag)], b"x");
    assert_eq!(client.answer("PUT").status, 200);
}

#[test]
fn tells_a_missing_bucket_from_a_missing_key() {
    let server = open_server();
    let mut client = Client::to(server.addr());
    let key = client.ask("GET", "/bucket/nothing", &[]);
    assert_eq!((key.status, key.xml("Code")), (404, "NoSuchKey".to_owned()));
    let bucket = client.ask("GET", "/nowhere/nothing", &[]);
    assert_eq!(
        (bucket.status, bucket.xml("Code")),
        (404, "NoSuchBucket".to_owned())
    );
    let list = client.ask("GET", "/nowhere?list-type=2", &[]);
    assert_eq!(
        (list.status, list.xml("Code")),
        (404, "NoSuchBucket".to_owned())
    );
    assert_eq!(client.ask("HEAD", "/bucket", &[]).status, 200);
    assert_eq!(client.ask("HEAD", "/nowhere", &[]).status, 404);
    assert_eq!(client.ask("HEAD", "/bucket/nothing", &[]).status, 404);
}

#[test]
fn lists_in_pages_with_tokens_that_must_be_encoded() {
    let server = open_server();
    for number in 0..25 {
        server
            .put(
                "bucket",
                &format!("p/{number:02}"),
                Bytes::from_static(b"x"),
            )
            .unwrap();
    }
    let mut client = Client::to(server.addr());
    let (mut told, mut token, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let mut target = "/bucket?list-type=2&prefix=p%2F&max-keys=10".to_owned();
        if !token.is_empty() {
            assert!(
                ['+', '/', '='].iter().all(|c| token.contains(*c)),
                "{token}"
            );
            target += &format!(
                "&continuation-token={}",
                encoded(&token).replace('/', "%2F")
            );
        }
        let page = client.ask("GET", &target, &[]);
        told.extend(page.xml_all("Key"));
        pages += 1;
        token = page.xml("NextContinuationToken");
        assert_eq!(page.xml("IsTruncated") == "true", !token.is_empty());
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(pages, 3);
    assert_eq!(
        told,
        (0..25).map(|n| format!("p/{n:02}")).collect::<Vec<_>>()
    );
    let wrong = client.ask(
        "GET",
        "/bucket?list-type=2&continuation-token=nonsense",
        &[],
    );
    assert_eq!(
        (wrong.status, wrong.xml("Code")),
        (400, "InvalidArgument".to_owned())
    );
    assert_eq!(server.requests().iter().filter(|r| r.is_list()).count(), 4);
}

#[test]
fn rolls_keys_up_at_the_delimiter_over_pages() {
    let server = open_server();
    for key in ["a", "b/1", "b/2", "b/3", "c", "d/x/1", "e"] {
        server.put("bucket", key, Bytes::from_static(b"x")).unwrap();
    }
    let mut client = Client::to(server.addr());
    let (mut keys, mut prefixes, mut token) = (Vec::new(), Vec::new(), String::new());
    loop {
        let mut target = "/bucket?list-type=2&delimiter=%2F&max-keys=2".to_owned();
        if !token.is_empty() {
            target += &format!("&continuation-token={}", encoded(&token));
        }
        let page = client.ask("GET", &target, &[]);
        assert!(page.xml("KeyCount").parse::<u32>().unwrap() <= 2);
        keys.extend(page.xml_all("Key"));
        for common in page.xml_all("CommonPrefixes") {
            prefixes.push(common.replace("<Prefix>", "").replace("</Prefix>", ""));
        }
        token = page.xml("NextContinuationToken");
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(keys, ["a", "c", "e"]);
    assert_eq!(prefixes, ["b/", "d/"]);
}

#[test]
fn serves_a_folder_as_objects() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("bucket/sub")).unwrap();
    let big: Vec<u8> = (0..3_000_000_u32)
        .map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1])
        .collect();
    std::fs::write(root.path().join("bucket/sub/big.bin"), &big).unwrap();
    let server = S3Server::builder()
        .anonymous(true)
        .folder(root.path())
        .start()
        .unwrap();
    let mut client = Client::to(server.addr());
    assert_eq!(client.ask("GET", "/bucket/sub/big.bin", &[]).body, big);
    let part = client.ask(
        "GET",
        "/bucket/sub/big.bin",
        &[("Range", "bytes=5-2500004")],
    );
    assert_eq!(part.body, &big[5..2_500_005]);
    assert_eq!(client.put("/bucket/sub/new.txt", b"hello").status, 200);
    assert_eq!(
        std::fs::read(root.path().join("bucket/sub/new.txt")).unwrap(),
        b"hello"
    );
    let head = client.ask("HEAD", "/bucket/sub/new.txt", &[]);
    assert_eq!(head.header("etag"), "\"5d41402abc4b2a76b9719d911017c592\"");
    let list = client.ask("GET", "/bucket?list-type=2&prefix=sub/", &[]);
    assert_eq!(list.xml_all("Key"), ["sub/big.bin", "sub/new.txt"]);
    for outside in ["/bucket/../../etc/passwd", "/bucket/a//b", "/bucket//lead"] {
        assert_eq!(
            client.put(outside, b"x").xml("Code"),
            "InvalidArgument",
            "{outside}"
        );
    }
    let list = client.ask("GET", "/bucket?list-type=2&delimiter=/", &[]);
    assert_eq!(list.xml_all("CommonPrefixes").len(), 1);
}

#[test]
fn files_that_were_there_before_have_a_checksum_where_that_is_wished_for() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("data/bucket");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("old"), b"123456789").unwrap();
    let sums = root.path().join("sums");
    let headers = [("x-amz-checksum-mode", "ENABLED")];
    let told = |method: &str, headers: &[(&str, &str)]| {
        let builder = S3Server::builder().anonymous(true);
        let builder = builder.folder(root.path().join("data")).sums(&sums);
        let server = builder.start().unwrap();
        let answer = Client::to(server.addr()).ask(method, "/bucket/old", headers);
        let sum = answer.header("x-amz-checksum-crc64nvme").to_owned();
        (sum, answer.header("x-amz-checksum-type").to_owned())
    };
    let nothing = (String::new(), String::new());
    assert_eq!(told("HEAD", &[]), nothing);
    assert!(!sums.exists(), "nothing is computed that nobody asks for");
    let ranged = [headers[0], ("Range", "bytes=0-3")];
    assert_eq!(told("GET", &ranged), nothing, "as S3: not with a range");
    // The check value of CRC-64/NVME.
    let right = ("rosUhgp5mIg=".to_owned(), "FULL_OBJECT".to_owned());
    assert_eq!(told("HEAD", &headers), right);
    // The next server reads it, and does not compute it.
    let kept = std::fs::read_to_string(&sums).unwrap();
    std::fs::write(&sums, kept.replace("rosUhgp5mIg=", "AAAAAAAAAAA=")).unwrap();
    assert_eq!(told("GET", &headers).0, "AAAAAAAAAAA=");
    // Another file has another checksum.
    std::fs::write(folder.join("old"), b"1234567890").unwrap();
    let now = told("GET", &headers).0;
    assert!(
        !["", "AAAAAAAAAAA=", "rosUhgp5mIg="].contains(&&*now),
        "{now}"
    );
}

#[test]
fn records_requests_and_reuses_connections() {
    let server = open_server();
    server
        .put("bucket", "k", Bytes::from_static(b"abc"))
        .unwrap();
    let mut client = Client::to(server.addr());
    client.ask("GET", "/bucket/k", &[("Range", "bytes=0-1")]);
    client.ask("HEAD", "/bucket/k", &[]);
    Client::to(server.addr()).ask("GET", "/bucket/k", &[]);
    let seen = server.requests();
    assert_eq!(
        seen.iter().map(|r| r.connection).collect::<Vec<_>>(),
        [0, 0, 1]
    );
    assert_eq!(seen[0].range.as_deref(), Some("bytes=0-1"));
    assert_eq!((seen[0].status, seen[0].length_bytes), (206, Some(2)));
    assert_eq!((server.count("GET"), server.count("HEAD")), (2, 1));
}
