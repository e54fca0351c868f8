//! docs/ROUTES.md holds: each route is run, and what was counted is held against its table.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use onecopy::Loader;
use onecopy::config::{LoadConfig, StoreConfig, Variables};
use onecopy::ledger::Report;
use onecopy::sample::decode::{Decoder, Fit};
use onecopy::sync::Arc;
use onecopy::transfer::{CopySettings, Item, Observer, Settings, Stop};
use onecopy_testkit::s3::S3Server;
use onecopy_testkit::shards::{Field, ShardMaker};

/// What a table says of a hop: at least and at most so many bytes per payload byte.
type Bounds = BTreeMap<String, (f64, f64)>;

/// The table under the heading `title` of docs/ROUTES.md.
fn table(title: &str) -> Bounds {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ROUTES.md");
    let text = fs::read_to_string(path).unwrap();
    let heading = format!("## {title}");
    let section: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != heading)
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .collect();
    let bounds: Bounds = section
        .iter()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| hop"))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let bounds = match cells[3] {
                "~0" => (0.0, 0.01),
                "up to 1" => (0.01, 1.0),
                exact => {
                    let exact: f64 = exact.parse().unwrap();
                    (exact, exact + 0.01)
                }
            };
            (cells[0].to_owned(), bounds)
        })
        .collect();
    assert!(!bounds.is_empty(), "no table under {heading:?}");
    bounds
}

/// Holds a report against a table: no other hop, and each within its bounds.
fn hold(report: &Report, title: &str) {
    let table = table(title);
    for hop in &report.hops {
        assert!(
            table.contains_key(hop.hop),
            "{title}: {} is not in the table",
            hop.hop
        );
    }
    for (name, (least, most)) in table {
        let bytes = report
            .hops
            .iter()
            .find(|hop| hop.hop == name)
            .map_or(0, |hop| hop.bytes);
        let per_byte = bytes as f64 / report.payload_bytes as f64;
        assert!(
            (least..=most).contains(&per_byte),
            "{title}: {name} moved {per_byte} per byte, which is not {least} to {most}"
        );
    }
}

fn server(is_tls: bool, fields: Vec<Field>) -> (S3Server, u64) {
    let server = S3Server::builder().tls(is_tls).start().unwrap();
    server.create_bucket("data").unwrap();
    let mut bytes = 0;
    let maker = ShardMaker::new(1)
        .samples(120)
        .shards(2)
        .size(500, 375)
        .distinct(4);
    maker.fields(fields).build_into(|shard| {
        bytes += shard.bytes.len() as u64;
        server.put("data", &shard.name, shard.bytes).unwrap();
    });
    (server, bytes)
}

fn config(server: &S3Server) -> LoadConfig {
    let store = StoreConfig {
        endpoint_url: Some(server.endpoint()),
        is_tls_unverified: true,
        variables: Variables::only([
            ("AWS_ACCESS_KEY_ID", "onecopy"),
            ("AWS_SECRET_ACCESS_KEY", "onecopy-secret"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ]),
        ..StoreConfig::default()
    };
    LoadConfig {
        store,
        memory_bytes: Some(128 << 20),
        ..LoadConfig::default()
    }
}

fn run(loader: Loader, bytes: u64) -> Report {
    let mut load = loader.batch(32, false).run().unwrap();
    let samples: usize = load.by_ref().map(|batch| batch.unwrap().len).sum();
    let report = load.report();
    assert_eq!((samples, report.samples, report.batches), (120, 120, 4));
    assert_eq!(report.payload_bytes, bytes);
    report
}

#[test]
fn stream_of_pictures_over_http_copies_nothing_in_user_space() {
    let (server, bytes) = server(false, vec![Field::jpg(), Field::cls()]);
    let picture = Decoder::Rgb {
        size: Some((64, 64)),
        fit: Fit::Crop,
    };
    let loader = onecopy::open(["s3://data/"], config(&server)).decode(Some(picture));
    let report = run(loader, bytes);
    hold(&report, "stream over HTTP, pictures decoded into batches");
    assert_eq!(format!("{:.2}", report.copies_per_byte.user), "0.00");
    assert_eq!(format!("{:.2}", report.copies_per_byte.cpu), "1.00");
}

#[test]
fn stream_of_raw_fields_over_http_copies_them_once_into_the_batch() {
    let (server, bytes) = server(false, vec![Field::raw(50_000), Field::cls()]);
    let report = run(onecopy::open(["s3://data/"], config(&server)), bytes);
    hold(&report, "stream over HTTP, fields kept as they are");
}

#[test]
fn stream_over_https_copies_nothing_in_user_space() {
    let (server, bytes) = server(true, vec![Field::jpg(), Field::cls()]);
    let mut load = onecopy::open(["s3://data/"], config(&server))
        .run_buffers()
        .unwrap();
    while load.output().feed().next().unwrap().is_some() {}
    let report = load.report();
    assert_eq!(report.payload_bytes, bytes);
    hold(&report, "stream over HTTPS");
    assert_eq!(format!("{:.2}", report.copies_per_byte.user), "0.00");
    assert_eq!(format!("{:.2}", report.copies_per_byte.cpu), "1.00");
}

#[test]
fn stream_from_a_file_reads_once() {
    let folder = tempfile::tempdir().unwrap();
    let maker = ShardMaker::new(1)
        .samples(20)
        .shards(1)
        .fields(vec![Field::raw(100_000)]);
    let paths = maker.write_into(folder.path()).unwrap();
    let urls = paths.iter().map(|path| path.display().to_string());
    let mut load = onecopy::open(urls, LoadConfig::default())
        .run_buffers()
        .unwrap();
    while load.output().feed().next().unwrap().is_some() {}
    let report = load.report();
    assert_eq!(report.payload_bytes, fs::metadata(&paths[0]).unwrap().len());
    hold(&report, "stream from a file");
}

/// Copies one way and holds it against the table for a disk that takes O_DIRECT, or for one that does not.
fn copy(server: &S3Server, from: &str, to: &str, title: &str, direct: &str) {
    struct Nobody;
    impl Observer for Nobody {
        fn item(&self, item: &Item<'_>) {
            assert!(item.error.is_none(), "{item:?}");
        }
        fn moved(&self, _bytes: u64) {}
    }
    let settings = Settings {
        store: config(server).store,
        memory_bytes: Some(128 << 20),
        ..Settings::default()
    };
    let observer: Arc<dyn Observer> = Arc::new(Nobody);
    let how = CopySettings::default();
    let stop = Stop::default();
    let summary =
        onecopy::transfer::copy(&[from.to_owned()], to, &settings, &how, &observer, &stop).unwrap();
    let report = summary.ledger;
    assert_eq!(summary.copied, 1);
    let is_direct = report.hops.iter().any(|hop| hop.hop == direct);
    let through = if is_direct { "past" } else { "through" };
    hold(&report, &format!("{title}, {through} the page cache"));
    let is_told = report.notes.iter().any(|note| note.contains("O_DIRECT"));
    assert_eq!(is_told, !is_direct, "{:?}", report.notes);
    let disk = report.disk;
    let (written, read) = if direct == "write_direct" {
        (report.payload_bytes, 0)
    } else {
        (0, report.payload_bytes)
    };
    assert_eq!((disk.written_bytes, disk.read_bytes), (written, read));
}

#[test]
fn an_upload_over_https_is_encrypted_out_of_its_slab() {
    let server = S3Server::builder().tls(true).start().unwrap();
    server.create_bucket("data").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    fs::write(&file, vec![7; 20 << 20]).unwrap();
    copy(
        &server,
        file.to_str().unwrap(),
        "s3://data/k",
        "cp from a file to S3 over HTTPS",
        "read_direct",
    );
    assert!(server.get("data", "k").unwrap().unwrap() == fs::read(&file).unwrap());
}

#[test]
fn whole_objects_are_copied_once_by_the_cpu_each_way() {
    let server = S3Server::builder().start().unwrap();
    server.create_bucket("data").unwrap();
    server.put("data", "k", vec![7; 20 << 20]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    let file = file.to_str().unwrap();
    copy(
        &server,
        "s3://data/k",
        file,
        "cp from S3 to a file",
        "write_direct",
    );
    copy(
        &server,
        file,
        "s3://data/l",
        "cp from a file to S3",
        "read_direct",
    );
    assert!(server.get("data", "l").unwrap() == server.get("data", "k").unwrap());
}
