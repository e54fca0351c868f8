//! How commands end: codes, errors, Ctrl-C, readers that go away.

use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::command::{Ended, World, bare};

#[test]
fn bad_arguments_are_a_2_with_nothing_on_stdout() {
    for args in [
        &["nope"][..],
        &["cat"],
        &["bench", "s3://data/a", "--to", "moon"],
        &["bench", "s3://data/a", "--memory", "2 apples"],
        &["bench", "s3://data/a", "--range", "0"],
        &["bench", "s3://data/a", "--stages", "--to", "batch"],
        &["demo", "--samples", "0"],
        &["ls", "s3://data/", "--log", "loud=very=much"],
        &["ls", "s3://data/", "--log", "nosuch"],
        &["ls", "s3://data/", "--log", "warn,nosuch"],
        &["ls", "s3://data/", "--log", ""],
        &["bench", "s3://data/a", "--fields", ""],
        &["bench", "s3://data/a", "--fields", "jpg,,cls"],
        &["ls", "gopher://b/"],
        &["ls", "s3://data/", "--addressing-style", "sideways"],
    ] {
        let ended = Ended::from(bare(args).output().unwrap());
        assert_eq!(ended.code, Some(2), "{args:?} {ended:?}");
        assert!(
            ended.stdout.is_empty() && !ended.stderr.is_empty(),
            "{ended:?}"
        );
    }
}

#[test]
#[ignore = "needs the right to mount"]
fn a_disk_that_fills_up_costs_what_does_not_fit_and_nothing_of_it_is_left() {
    let world = World::new();
    for (key, len) in [("fits", 1 << 20), ("mid", 6 << 20), ("large", 12 << 20)] {
        world.put(key, vec![7; len]);
    }
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().to_str().unwrap();
    let mut command = world.command(&[]);
    let program = command.get_program().to_owned();
    // A file system of its own, of 4 MiB, that only this shell and what it starts can see.
    let script = "mount -t tmpfs -o size=4m tmpfs \"$0\" || exit 9; \
                  for key in mid large fits; do \"$1\" cp \"s3://data/$key\" \"$0/\"; echo \"$key $?\"; done; \
                  ls -A \"$0\"";
    let mut shell = std::process::Command::new("unshare");
    shell.args(["-rm", "sh", "-c", script, into]).arg(program);
    for (name, value) in command
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .get_envs()
    {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let ended = Ended::from(shell.output().unwrap());
    let lines: Vec<&str> = ended
        .text()
        .lines()
        .filter(|line| !line.starts_with("cp "))
        .collect();
    assert_eq!(lines, ["mid 1", "large 1", "fits 0", "fits"], "{ended:?}");
    assert_eq!(
        ended.stderr.matches("make room on the disk").count(),
        2,
        "{ended:?}"
    );
}

#[test]
fn refused_arguments_are_json_where_asked() {
    let ended = Ended::from(bare(&["bench", "--json", "--nope", "x"]).output().unwrap());
    assert_eq!(ended.code, Some(2));
    assert_eq!(ended.json()["error"]["kind"], "invalid_input");
    assert!(ended.stderr.contains("--nope"), "{ended:?}");
}

#[test]
fn help_and_version_are_results() {
    for args in [&["--help"][..], &["--version"], &["bench", "--help"]] {
        let ended = Ended::from(bare(args).output().unwrap());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(
            !ended.stdout.is_empty() && ended.stderr.is_empty(),
            "{ended:?}"
        );
    }
}

#[test]
fn an_error_is_json_on_stdout_too_where_asked() {
    let world = World::new();
    let ended = world.run(&["ls", "s3://nope/", "--json"]);
    assert_eq!(ended.code, Some(2));
    let error = &ended.json()["error"];
    assert_eq!(error["kind"], "not_found");
    assert!(error["message"].as_str().unwrap().starts_with("could not "));
    assert!(error["help"].is_string(), "{ended:?}");
    assert!(ended.stderr.starts_with("onecopy: could not "), "{ended:?}");
}

#[test]
fn wrong_and_missing_credentials_are_told_and_never_shown() {
    let world = World::new();
    world.put("a", "x");
    let output = world
        .command(&["cat", "s3://data/a"])
        .env("AWS_ACCESS_KEY_ID", "SOMEBODY")
        .env("AWS_SECRET_ACCESS_KEY", "hush-hush")
        .output()
        .unwrap();
    let ended = Ended::from(output);
    ended.failed(&["s3://data/a"]);
    assert!(!ended.stderr.contains("hush-hush"), "{ended:?}");
    let output = world
        .command(&["ls", "s3://data/"])
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY")
        .output()
        .unwrap();
    Ended::from(output).failed(&["credentials", "--no-sign-request"]);
    world
        .run(&["cat", "s3://data/a", "--no-sign-request"])
        .failed(&["s3://data/a"]);
}

#[test]
fn a_key_of_the_customer_is_checked_and_never_shown() {
    let world = World::new();
    world.put("a", "x");
    for key in ["hush-hush", "aHVzaA==", "file:///nonexistent"] {
        let ended = world.run(&["cat", "s3://data/a", "--sse-c-key", key, "--log", "trace"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("the SSE-C key"), "{ended:?}");
        let shown = ended.stderr.contains("hush") || ended.stderr.contains("aHVz");
        assert!(!shown, "{ended:?}");
    }
    // The server knows no such keys; what matters is that none of the log shows it.
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let ended = world.run(&["cat", "s3://data/a", "--sse-c-key", key, "--log", "trace"]);
    assert!(!ended.stderr.contains(key), "{ended:?}");
}

#[test]
fn an_endpoint_that_nobody_listens_at_is_told() {
    // Bound and let go: nobody listens there.
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("http://127.0.0.1:{port}");
    let world = World::new();
    world
        .run(&["ls", "s3://data/", "--endpoint-url", &url])
        .failed(&[&url["http://".len()..]]);
}

#[test]
fn ctrl_c_ends_a_wait_with_130() {
    // Takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a.tar", silent.local_addr().unwrap());
    for args in [
        &["cat", &url][..],
        &["bench", &url, "--to", "sample"],
        &["bench", &url],
    ] {
        let child = bare(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Once it has connected, it surely waits.
        let (_connection, _): (TcpStream, _) = silent.accept().unwrap();
        kill(
            Pid::from_raw(child.id().try_into().unwrap()),
            Signal::SIGINT,
        )
        .unwrap();
        let ended = Ended::from(child.wait_with_output().unwrap());
        // Without the interrupt it would wait for the server to its deadline, and end with 2.
        assert_eq!(ended.code, Some(130), "{ended:?}");
        assert_eq!(ended.stderr, "onecopy: could not finish: interrupted\n");
    }
}

#[test]
fn a_reader_that_goes_away_is_a_quiet_end_as_by_sigpipe() {
    let world = World::new();
    for n in 0..3000 {
        world.put(
            &format!("a-key-of-some-length-so-that-a-pipe-fills/{n}"),
            "",
        );
    }
    let mut child = world
        .command(&["ls", "-r", "s3://data/"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(141), ""));
}

/// A thread whose stack no memory can hold is refused as one beyond every limit of threads is.
#[test]
fn a_machine_without_a_thread_to_give_is_told_with_the_cure() {
    for args in [&["ls", "s3://data/"][..], &["demo"], &["bench", "x.tar"]] {
        let output = bare(args)
            .env("RUST_MIN_STACK", (1_u64 << 50).to_string())
            .output()
            .unwrap();
        Ended::from(output).failed(&["no more threads", "ulimit -u"]);
    }
}

#[test]
fn a_reader_of_anything_that_goes_away_is_a_quiet_end() {
    let world = World::new();
    world.put("a", "x");
    for args in [
        &["--help"][..],
        &["bench", "--help"],
        &["--version"],
        &["ls"],
        &["ls", "s3://data/"],
        &["ls", "s3://data/", "--json"],
        &["cat", "s3://data/a"],
        &["demo", "--samples", "3", "--memory", "64MiB"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = world.command(args);
        command.stdout(writer).stderr(Stdio::piped());
        let ended = Ended::from(command.output().unwrap());
        assert_eq!((ended.code, &*ended.stderr), (Some(141), ""), "{args:?}");
    }
}

#[test]
fn help_speaks_of_flags() {
    let world = World::new();
    let ended = world.run(&["ls", "s3://nope/"]);
    assert!(ended.stderr.contains("(--endpoint-url)"), "{ended:?}");
    world.put("a.tar", "no tar ".repeat(100));
    let json = world.run(&["bench", "s3://data/a.tar", "--json"]).json();
    let help = json["error"]["help"].as_str().unwrap();
    assert!(!help.contains("on_error"), "{help}");
}

#[test]
fn logs_go_to_stderr() {
    let world = World::new();
    world.put("a", "x");
    let ended = world.run(&["ls", "s3://data/", "--json", "--log", "debug"]);
    assert_eq!(ended.json()["total_objects"], 1);
    assert!(
        !ended.stderr.contains('\x1b'),
        "no terminal, no colour: {ended:?}"
    );
}
