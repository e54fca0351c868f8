//! What the command promises to those who start it.
#![expect(clippy::unwrap_used, reason = "test helpers")]

mod client;

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::process::{Child, Command, Stdio};

use client::Client;

fn start(args: &[&str]) -> (Child, serde_json::Value) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_onecopy-testkit"))
        .args(args)
        .arg("--until-stdin-closes")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let told = serde_json::from_str(&line).unwrap();
    (child, told)
}

fn client(told: &serde_json::Value) -> Client {
    let endpoint = told["endpoint"].as_str().unwrap();
    Client::to(endpoint.strip_prefix("http://").unwrap().parse().unwrap())
}

#[test]
fn serves_shards_until_stdin_closes() {
    let args = [
        "serve",
        "--anonymous",
        "--make-shards",
        "2",
        "--kind",
        "raw",
    ];
    let more = [
        "--samples-per-shard",
        "3",
        "--sample-bytes",
        "1000",
        "--bucket",
        "data",
    ];
    let (mut child, told) = start(&[&args[..], &more[..]].concat());
    assert_eq!(told["pid"], child.id());
    let list = client(&told).ask("GET", "/data?list-type=2", &[]);
    assert_eq!(list.xml_all("Key"), ["train-00000.tar", "train-00001.tar"]);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn serves_faults_until_stdin_closes() {
    let (mut child, told) = start(&["fault"]);
    assert_eq!(
        client(&told)
            .ask("GET", "/bucket/status=503/10", &[])
            .status,
        503
    );
    assert_eq!(
        client(&told)
            .ask("GET", "/bucket/status=503/10", &[])
            .body
            .len(),
        10
    );
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn serves_large_files_at_the_fault_server_without_holding_them() {
    let folder = tempfile::tempdir().unwrap();
    let large = File::create(folder.path().join("large")).unwrap();
    // More than anybody would hold: a file without content takes no room on the disk.
    large.set_len(1 << 40).unwrap();
    large.write_all_at(b"some bytes", 1 << 39).unwrap();
    std::fs::write(folder.path().join("small"), "few").unwrap();
    let (mut child, told) = start(&["fault", "--root", folder.path().to_str().unwrap()]);
    let list = client(&told).ask("GET", "/bucket?list-type=2", &[]);
    assert_eq!(
        list.xml_all("Size"),
        [(1_u64 << 40).to_string().as_str(), "3"]
    );
    assert_eq!(client(&told).ask("GET", "/bucket/small", &[]).body, b"few");
    let range = format!("bytes={}-{}", (1_u64 << 39) - 2, (1_u64 << 39) + 11);
    let part = client(&told).ask("GET", "/bucket/large", &[("Range", range.as_str())]);
    assert_eq!(part.body, b"\0\0some bytes\0\0");
    let tag = part.header("etag").to_owned();
    assert!(list.xml_all("ETag")[0].contains(tag.trim_matches('"')));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn writes_shards_and_ends_with_2_where_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let run = |folder: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onecopy-testkit"));
        let args = [
            "--shards",
            "2",
            "--samples",
            "4",
            "--kind",
            "npy",
            "--sample-bytes",
            "100",
        ];
        command
            .arg("shards")
            .arg(folder)
            .args(args)
            .output()
            .unwrap()
    };
    let output = run(folder.path().to_str().unwrap());
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
    assert!(folder.path().join("train-00001.tar").is_file());
    assert_eq!(run("/proc/nothing").status.code(), Some(2));
}
