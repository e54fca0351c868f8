//! Commands on machines that give little: few files, few threads, small files, no stdout.
#![expect(clippy::unwrap_used, reason = "test helpers")]
#![expect(clippy::print_stderr, reason = "a test that cannot run here says so")]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::command::{Ended, World, bare};

/// The command as a shell starts it after `setup`. One that hangs ends with 124.
fn limited(world: &World, setup: &str, args: &[&str]) -> Ended {
    let hangs = format!("{setup} && exec timeout 120 \"$0\" \"$@\" #");
    Ended::from(world.in_a_shell(&hangs, args).output().unwrap())
}

/// It did its work, or said by an error of its own that it could not.
#[track_caller]
fn worked_or_told(ended: &Ended, told: &[&str], what: &str) {
    assert!(!ended.stderr.contains("panicked"), "{what} {ended:?}");
    if ended.code == Some(0) {
        return;
    }
    assert!(matches!(ended.code, Some(1 | 2)), "{what} {ended:?}");
    for text in told {
        assert!(ended.stderr.contains(text), "{what} {ended:?}");
    }
}

#[test]
fn with_any_number_of_files_a_command_works_or_names_the_number_and_the_cure() {
    let world = World::new();
    world.put("k/a", "1");
    world.put("k/b", vec![7; 100_000]);
    world.put_shards(6);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(at("d")).unwrap();
    for name in ["d/1", "d/2", "file"] {
        fs::write(at(name), "some text").unwrap();
    }
    let (here, file, copy, down) = (at("d"), at("file"), at("copy"), at("down/"));
    for permitted in 3..=40 {
        let setup = format!("ulimit -n {permitted}");
        for args in [
            &["ls", &here][..],
            &["ls", "-r", &here],
            &["ls", "s3://data/"],
            &["cp", &file, "s3://data/up"],
            &["cp", "s3://data/k/b", &copy],
            &["cp", "-r", "s3://data/k/", &down],
            &["sync", &here, "s3://data/synced/"],
            &["cat", "s3://data/k/a"],
            &["bench", "s3://data/train/", "--memory", "64MiB"],
            &["demo", "--samples", "3", "--memory", "64MiB"],
        ] {
            let ended = limited(&world, &setup, args);
            let what = format!("{permitted} files, {args:?}");
            // The C library's loader, or `timeout` itself, could not open what they need.
            if ended
                .stderr
                .contains("error while loading shared libraries")
            {
                assert!(permitted < 5, "{what} {ended:?}");
                continue;
            }
            let number = format!("may have {permitted} files");
            worked_or_told(&ended, &[&number, "\nhelp: ", "ulimit -n"], &what);
        }
    }
}

/// Runs the command as a user of its own, who may have only so many threads. None, with the reason printed, where this
/// machine cannot do that.
fn with_threads(world: &World, threads: &str, args: &[&str]) -> Option<Ended> {
    // A number that nobody else has: threads are counted by user.
    let user = (100_000 + std::process::id() % 1_000_000).to_string();
    let as_user = |setup: &str, args: &[&str]| {
        let inner = world.command(args);
        let mut command = Command::new("setpriv");
        command
            .env_clear()
            .args(["--reuid", &user, "--clear-groups", "/bin/sh", "-c"])
            .arg(format!("{setup} exec timeout 120 \"$0\" \"$@\""))
            .arg(inner.get_program())
            .args(inner.get_args());
        let envs = inner.get_envs();
        command.envs(envs.filter_map(|(name, value)| Some((name, value?))));
        command.output()
    };
    match as_user("", &["--version"]) {
        Ok(output) if output.status.success() => {}
        other => {
            eprintln!("not run: another user cannot be taken on, or may not run this: {other:?}");
            return None;
        }
    }
    let setup = format!("ulimit -u {threads};");
    Some(Ended::from(as_user(&setup, args).unwrap()))
}

#[test]
fn with_any_number_of_threads_a_command_works_or_names_the_limit_and_never_hangs() {
    let world = World::new();
    for n in 0..20 {
        world.put(&format!("many/{n}"), vec![7; 1000]);
    }
    world.put_shards(3);
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let from = folder.path().join("from");
    fs::create_dir(&from).unwrap();
    for n in 0..20 {
        fs::write(from.join(n.to_string()), "text").unwrap();
    }
    let from = from.to_str().unwrap();
    for threads in 1..=12 {
        let to = folder.path().join(format!("to-{threads}/"));
        let to = format!("{}/", to.display());
        let up = format!("s3://data/up-{threads}/");
        for args in [
            &["ls", from][..],
            &["cp", "-r", from, &up],
            &["cp", "-r", "s3://data/many/", &to],
            &["sync", from, &up],
            &["bench", "s3://data/train/", "--memory", "64MiB"],
        ] {
            // `timeout` and what it starts are two.
            let Some(ended) = with_threads(&world, &(threads + 1).to_string(), args) else {
                return;
            };
            let what = format!("{threads} threads, {args:?}");
            let is_told = ended.stderr.contains("no more threads");
            // An earlier run with fewer threads may have left nothing to copy; a shell may fail to start anything.
            if ended.stderr.contains("annot fork") || ended.stderr.contains("fork system call") {
                continue;
            }
            let told: &[&str] = if is_told {
                &["ulimit -u", "\nhelp: "]
            } else {
                &["no more threads"]
            };
            worked_or_told(&ended, told, &what);
        }
    }
}

#[test]
fn a_file_beyond_the_permitted_size_is_an_item_that_failed_and_leaves_nothing() {
    let world = World::new();
    world.put("p/large", vec![1; 3_000_000]);
    world.put("p/larger", vec![1; 20_000_000]);
    world.put("p/small", "1");
    let folder = tempfile::tempdir().unwrap();
    let to = format!("{}/", folder.path().display());
    // Blocks of 512 bytes, or of 1024, as the shell likes.
    let ended = limited(&world, "ulimit -f 1000", &["cp", "-r", "s3://data/p/", &to]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("the file is too large"), "{ended:?}");
    assert!(ended.stderr.contains("ulimit -f"), "{ended:?}");
    let left: Vec<_> = fs::read_dir(&to)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["small"]);
    let out = File::create(folder.path().join("out")).unwrap();
    let mut command = world.in_a_shell("ulimit -f 1000", &["cat", "s3://data/p/large"]);
    let ended = Ended::from(command.stdout(out).stderr(Stdio::piped()).output().unwrap());
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("too large"), "{ended:?}");
}

#[test]
fn what_cannot_be_written_to_stdout_is_an_error_and_never_lost() {
    let world = World::new();
    world.put("a", "x");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy").to_str().unwrap().to_owned();
    for args in [
        &["ls", "s3://data/"][..],
        &["ls", "s3://data/", "--json"],
        &["ls"],
        &["cat", "s3://data/a"],
        &["cp", "s3://data/a", "-"],
        &["cp", "s3://data/a", &copy],
        &["--version"],
        &["--help"],
        &[
            "bench",
            "s3://data/a",
            "--to",
            "buffer",
            "--memory",
            "64MiB",
        ],
    ] {
        for (stdout, help) in [
            (">&-", "/dev/null"),
            ("</dev/null >&0", "/dev/null"),
            (">/dev/full", "make room"),
        ] {
            let ended = limited(&world, &format!("exec {stdout}"), args);
            assert_eq!(ended.code, Some(2), "{stdout} {args:?} {ended:?}");
            assert!(
                ended.stderr.contains("stdout"),
                "{stdout} {args:?} {ended:?}"
            );
            assert!(ended.stderr.contains("\nhelp: "), "{args:?} {ended:?}");
            assert!(ended.stderr.contains(help), "{args:?} {ended:?}");
        }
    }
    // What writes nothing needs none.
    let quiet = limited(&world, "exec >&-", &["cp", "-q", "s3://data/a", &copy]);
    assert_eq!((quiet.code, &*quiet.stderr), (Some(0), ""));
}

#[test]
fn a_closed_standard_input_is_no_empty_one() {
    let world = World::new();
    let upload = limited(&world, "exec <&-", &["cp", "-", "s3://data/up"]);
    assert_eq!(upload.code, Some(1), "{upload:?}");
    assert!(world.server.get("data", "up").unwrap().is_none());
    for args in [&["run"][..], &["cat", "@-"]] {
        let ended = limited(&world, "exec <&-", args);
        ended.failed(&["standard input", "it is closed"]);
    }
}

#[test]
fn more_connections_than_files_are_clamped_and_that_is_told() {
    let world = World::new();
    world.put("k/a", "1");
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("a").to_str().unwrap().to_owned();
    let below = folder.path().join("below/").to_str().unwrap().to_owned();
    for args in [
        &[
            "bench",
            "s3://data/k/a",
            "--to",
            "buffer",
            "--memory",
            "64MiB",
        ][..],
        &["cp", "s3://data/k/a", &to],
        &["sync", "s3://data/k/", &below],
    ] {
        let args = [args, &["--connections", "512", "--json"]].concat();
        let ended = limited(&world, "ulimit -n 256", &args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let last = ended.text().lines().last().unwrap();
        assert!(last.contains("of the 512 allowed"), "{last}");
        assert!(last.contains("ulimit -n"), "{last}");
    }
}

#[test]
fn commands_in_a_file_have_lines_of_some_length() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("commands");
    fs::write(&file, format!("# one\ncp {}\n", "x".repeat(2 << 20))).unwrap();
    for (name, line) in [(file.to_str().unwrap(), "line 2"), ("/dev/zero", "line 1")] {
        let ended = Ended::from(bare(&["run", name]).output().unwrap());
        ended.failed(&[line, "more than 1048576 bytes"]);
    }
}

#[test]
fn a_folder_that_cannot_be_read_is_named_and_the_rest_listed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    // Deeper than any folders that are no loop of links.
    fs::create_dir_all(root.join("a/".repeat(70))).unwrap();
    for n in 0..2500 {
        fs::write(root.join(format!("b{n:04}")), "1").unwrap();
    }
    let path = format!("{}/", root.display());
    for flags in [&[][..], &["--json"]] {
        let args = [&["ls", "-r", "--summarize", &path], flags].concat();
        let ended = Ended::from(bare(&args).output().unwrap());
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains("could not list"), "{}", ended.stderr);
        let (first, last) = (ended.text().find("b0000"), ended.text().find("b2499"));
        assert!(first < last && first.is_some());
        assert!(ended.text().contains("2500"), "the sum is of all");
    }
}
