//! `onecopy cp`
#![expect(clippy::unwrap_used, reason = "test helpers")]

use std::fs;
use std::io::Write;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onecopy_testkit::fault::FaultServer;
use serde_json::Value;

use crate::command::{Ended, World, bare};

fn lines(ended: &Ended) -> Vec<Value> {
    let text = ended.text().lines();
    text.map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_line_per_item_on_stdout_and_the_summary_on_stderr() {
    let world = World::new();
    world.put("p/a", "1");
    world.put("p/d/b", "22");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let ended = world.run(&["cp", "-r", "s3://data/p/", out]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut seen: Vec<&str> = ended.text().lines().collect();
    seen.sort_unstable();
    let wanted = [
        format!("cp s3://data/p/a {out}/a"),
        format!("cp s3://data/p/d/b {out}/d/b"),
    ];
    assert_eq!(seen, wanted);
    assert!(ended.stderr.starts_with("copied 2 (3 B) in "), "{ended:?}");
    assert_eq!(fs::read(format!("{out}/d/b")).unwrap(), b"22");
    let quiet = world.run(&["cp", "-q", "-r", out, "s3://data/q"]);
    assert_eq!(
        (quiet.code, quiet.text(), quiet.stderr.as_str()),
        (Some(0), "", "")
    );
    assert_eq!(world.server.get("data", "q/d/b").unwrap().unwrap(), "22");
    let dry = world.run(&["cp", "--dry-run", "s3://data/p/a", "s3://data/z"]);
    assert_eq!(dry.text(), "(dry run) cp s3://data/p/a s3://data/z\n");
    assert!(dry.stderr.starts_with("would have copied 1"), "{dry:?}");
    assert_eq!(world.server.get("data", "z").unwrap(), None);
}

#[test]
fn what_fails_is_told_on_stderr_and_the_answer_is_1() {
    let world = World::new();
    world.put("a", "1");
    let folder = tempfile::tempdir().unwrap();
    let out = format!("{}/", folder.path().display());
    let ended = world.run(&["cp", "s3://data/nope", "s3://data/a", &out]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.text(), format!("cp s3://data/a {out}a\n"));
    assert!(
        ended
            .stderr
            .contains("onecopy: could not look up s3://data/nope"),
        "{ended:?}"
    );
    assert!(ended.stderr.ends_with(", failed 1\n"), "{ended:?}");
    world
        .run(&["cp", "s3://data/", &out])
        .failed(&["--recursive"]);
    world
        .run(&["cp", &out, &out])
        .failed(&["both are on this machine"]);
    let ended = Ended::from(bare(&["cp", "a"]).output().unwrap());
    assert_eq!(ended.code, Some(2));
}

#[test]
fn json_is_an_object_per_item_and_one_for_all() {
    let world = World::new();
    world.put("p/a", "123");
    world.put("p/../b", "1");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let ended = world.run(&["cp", "--json", "-r", "s3://data/p/", out]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let lines = lines(&ended);
    let of = |source: &str| lines.iter().find(|line| line["source"] == source).unwrap();
    let fine = of("s3://data/p/a");
    assert_eq!(fine["operation"], "cp");
    assert_eq!(
        (&fine["success"], &fine["len_bytes"]),
        (&true.into(), &3.into())
    );
    assert_eq!(fine["destination"], format!("{out}/a"));
    let bad = of("s3://data/p/../b");
    assert_eq!(
        (&bad["success"], &bad["error"]["kind"]),
        (&false.into(), &"invalid_input".into())
    );
    let summary = lines.last().unwrap();
    assert_eq!(summary["schema"], 1);
    assert_eq!(
        [
            &summary["copied"],
            &summary["failed"],
            &summary["copied_bytes"]
        ],
        [&Value::from(1), &1.into(), &3.into()]
    );
    assert_eq!(summary["ledger"]["payload_bytes"], 3);
}

#[test]
fn rules_count_in_the_order_in_which_they_are_typed() {
    let world = World::new();
    for key in ["p/a.tar", "p/b.log", "p/d/c.tar"] {
        world.put(key, "1");
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for (rules, copied) in [
        (&["--exclude", "*", "--include", "*.tar"][..], 2),
        (&["--include", "*.tar", "--exclude", "*"], 0),
        (&["--exclude", "d/*"], 2),
        (
            &[
                "--exclude",
                "*.tar",
                "--include",
                "d/*",
                "--exclude",
                "*c.tar",
            ],
            1,
        ),
    ] {
        let args = ["cp", "--dry-run", "-r", "s3://data/p", out];
        let ended = world.run(&[&args[..], rules].concat());
        assert_eq!(ended.text().lines().count(), copied, "{rules:?} {ended:?}");
    }
    world
        .run(&["cp", "-r", "s3://data/p", out, "--exclude", "a["])
        .failed(&["a["]);
}

#[test]
fn standard_input_and_output_are_dashes() {
    let world = World::new();
    let long: Vec<u8> = (0..11_000_003_u32).map(|n| n.to_le_bytes()[1]).collect();
    for (key, bytes) in [("short", &b"hello"[..]), ("none", b""), ("long", &long)] {
        let url = format!("s3://data/{key}");
        let mut child = world
            .command(&["cp", "--memory", "64MiB", "-", &url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(
            world.server.get("data", key).unwrap().unwrap() == bytes,
            "{key}"
        );
        let back = world.run(&["cp", &url, "-"]);
        assert!(back.stdout == bytes, "{key}");
    }
    assert_eq!(world.server.open_uploads(), 0);
    world
        .run(&["cp", "-", "s3://data/"])
        .failed(&["name of its own"]);
    world
        .run(&["cp", "-r", "s3://data/", "-"])
        .failed(&["one source"]);
}

#[test]
fn signals_leave_nothing_half_done_and_name_themselves() {
    for (signal, code) in [
        (Signal::SIGINT, 130),
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
    ] {
        let server = FaultServer::start().unwrap();
        let world = World::new();
        let folder = tempfile::tempdir().unwrap();
        let out = format!("{}/", folder.path().display());
        let url = "s3://data/drip=1Bps/1000000/slow";
        let args = ["cp", "--raw", "--range", "64KiB", url, &out];
        let child = world
            .command(&args)
            .env("AWS_ENDPOINT_URL", server.endpoint())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while server.count("GET") < 2 {
            std::thread::yield_now();
        }
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        kill(pid, signal).unwrap();
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert_eq!(ended.stderr, "onecopy: could not finish: interrupted\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_hangup_that_is_ignored_ends_nothing() {
    let server = FaultServer::start().unwrap();
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let out = format!("{}/", folder.path().display());
    let args = ["cp", "--raw", "s3://data/drip=100KBps/100000/slow", &out];
    let mut command = world.in_a_shell("trap '' HUP", &args);
    command.env("AWS_ENDPOINT_URL", server.endpoint());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while server.count("GET") < 1 {
        std::thread::yield_now();
    }
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    kill(pid, Signal::SIGHUP).unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_stopped_upload_is_given_up() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let big = folder.path().join("big");
    // Sparse, and far more than can be sent before the stop.
    fs::File::create(&big).unwrap().set_len(8 << 30).unwrap();
    let child = world
        .command(&[
            "cp",
            "--memory",
            "64MiB",
            big.to_str().unwrap(),
            "s3://data/big",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Once a part is there, the upload is known to who began it.
    while world.server.count("PUT") == 0 {
        std::thread::yield_now();
    }
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(143), "{ended:?}");
    assert_eq!(world.server.open_uploads(), 0);
    assert_eq!(world.server.get("data", "big").unwrap(), None);
}

#[test]
fn many_files_are_copied_where_few_may_be_open() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("in"), folder.path().join("out"));
    fs::create_dir(&from).unwrap();
    for n in 0..1500 {
        fs::write(from.join(format!("{n}")), format!("{n}")).unwrap();
    }
    let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
    for args in [
        &["cp", "-q", "-r", from, "s3://data/p"][..],
        &["cp", "-q", "-r", "s3://data/p", to],
    ] {
        let mut command = world.in_a_shell("ulimit -n 256", args);
        let ended = Ended::from(command.output().unwrap());
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{args:?}");
    }
    assert_eq!(fs::read_dir(to).unwrap().count(), 1500);
    assert_eq!(world.server.get("data", "p/1499").unwrap().unwrap(), "1499");
}

#[test]
fn lines_that_cannot_be_written_are_an_error_and_a_reader_that_goes_away_is_none() {
    let world = World::new();
    world.put("p/a", "1");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for flags in [&[][..], &["--json"]] {
        let args = [&["cp", "-r", "s3://data/p", out], flags].concat();
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = world.command(&args);
        command.stdout(full).stderr(Stdio::piped());
        let ended = Ended::from(command.output().unwrap());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("stdout"), "{ended:?}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = world.command(&args);
        command.stdout(writer).stderr(Stdio::piped());
        let ended = Ended::from(command.output().unwrap());
        assert_eq!(ended.code, Some(141), "{ended:?}");
        assert!(folder.path().join("a").exists(), "the work was done");
    }
}

#[test]
fn a_dry_run_writes_nothing_to_standard_output() {
    let world = World::new();
    world.put("a", "bytes");
    let ended = world.run(&["cp", "--dry-run", "s3://data/a", "-"]);
    assert_eq!((ended.code, ended.text()), (Some(0), ""), "{ended:?}");
    assert_eq!(ended.stderr, "(dry run) cp s3://data/a -\n");
}

#[test]
fn attributes_are_written_and_help_has_examples() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    fs::write(&file, "x").unwrap();
    let file = file.to_str().unwrap();
    let flags = [
        "--metadata",
        "who=me",
        "--content-type",
        "text/x",
        "--storage-class",
        "STANDARD",
    ];
    let ended = world.run(&[&["cp", file, "s3://data/k"], &flags[..]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for command in ["cp", "sync"] {
        let help = world.run(&[command, "--help"]);
        assert!(help.text().contains("Examples:"), "{help:?}");
    }
    let bad = world.run(&["cp", file, "s3://data/k", "--metadata", "who"]);
    assert_eq!(bad.code, Some(2), "{bad:?}");
}

#[test]
fn secrets_in_urls_are_shown_nowhere() {
    let world = World::new();
    world.put("a", "1");
    let folder = tempfile::tempdir().unwrap();
    let out = format!("{}/", folder.path().display());
    let server = FaultServer::start().unwrap();
    let signed = format!("{}/data/10/b?X-Amz-Signature=hush", server.endpoint());
    let unknown = "ftp://me:hush@h/b?sig=hush";
    let commands = folder.path().join("commands");
    let lines = format!("cp '{signed}' {out}\ncp '{unknown}' {out}\ncp s3://data/a '{signed}'\n");
    fs::write(&commands, lines).unwrap();
    for args in [
        &["cp", &signed, &out][..],
        &["cp", unknown, &out],
        &["cp", "http://me:hush@127.0.0.1/b?sig=hush", &out],
        &["cat", "http://me:hush@127.0.0.1/b?sig=hush"],
        &["cp", unknown, &signed, &out],
        &["cp", "s3://data/a", &signed],
        &["cp", "-r", &signed, &out],
        &["cp", "s3://data/a", "s3://data/b", unknown],
        &["sync", &signed, &out],
        &["sync", unknown, &out],
        &["run", commands.to_str().unwrap()],
        &["cat", unknown],
        &["ls", unknown],
        &["bench", unknown],
        &["bench", &signed, "--to", "buffer"],
    ] {
        for flags in [&["--json"][..], &["--dry-run"], &[]] {
            if flags == ["--dry-run"] && !["cp", "sync"].contains(&args[0]) {
                continue;
            }
            let ended = world.run(&[args, flags].concat());
            let shown = ended.text().contains("hush") || ended.stderr.contains("hush");
            assert!(!shown, "{args:?} {ended:?}");
        }
    }
}
