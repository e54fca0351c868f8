//! `onecopy ls`

use crate::command::{World, bare};

fn names(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| line.get(31..).unwrap_or_default())
        .collect()
}

#[test]
fn folds_at_slashes_as_aws_does() {
    let world = World::new();
    world.put("x/a.txt", "1234");
    world.put("x/y/b.txt", "");
    world.put("x/y/c.txt", "");
    let ended = world.run(&["ls", "s3://data/x/"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines: Vec<&str> = ended.text().lines().collect();
    assert_eq!(lines[0], "                           PRE y/");
    assert!(lines[1].ends_with("          4 a.txt"), "{ended:?}");
    assert_eq!(names(ended.text()), ["y/", "a.txt"]);
    assert!(lines[1].starts_with("20"), "a date: {ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn a_prefix_needs_no_slash() {
    let world = World::new();
    world.put("train-0.tar", "");
    world.put("train/1.tar", "");
    world.put("val-0.tar", "");
    let ended = world.run(&["ls", "s3://data/tr"]);
    assert_eq!(names(ended.text()), ["train/", "train-0.tar"]);
}

#[test]
fn recursive_lists_whole_keys_and_sums_up() {
    let world = World::new();
    world.put("x/a", vec![0; 1536]);
    world.put("x/y/b", vec![0; 512]);
    let ended = world.run(&["ls", "-r", "--summarize", "--human-readable", "s3://data/x"]);
    let text = ended.text();
    assert!(text.contains("   1.5 KiB x/a\n"), "{text}");
    assert!(text.contains("     512 B x/y/b\n"), "{text}");
    assert!(
        text.ends_with("\nTotal Objects: 2\n   Total Size: 2.0 KiB\n"),
        "{text}"
    );
}

#[test]
fn globs_and_braces_give_whole_urls() {
    let world = World::new();
    for key in ["t/a-0.tar", "t/a-1.tar", "t/b.json", "t/u/a-2.tar"] {
        world.put(key, "x");
    }
    let glob = world.run(&["ls", "s3://data/t/a-*.tar"]);
    assert_eq!(
        names(glob.text()),
        ["s3://data/t/a-0.tar", "s3://data/t/a-1.tar"]
    );
    let braces = world.run(&["ls", "s3://data/t/a-{0..1}.tar"]);
    assert_eq!(names(braces.text()), names(glob.text()));
    assert!(braces.text().contains("         1 s3"), "{braces:?}");
}

#[test]
fn json_is_one_object() {
    let world = World::new();
    world.put("x/a", "123");
    world.put("x/y/b", "");
    let json = world.run(&["ls", "s3://data/x/", "--json"]).json();
    assert_eq!(json["prefixes"], serde_json::json!(["y/"]));
    let object = &json["objects"][0];
    assert_eq!(object["url"], "s3://data/x/a");
    assert_eq!(object["name"], "a");
    assert_eq!(object["len_bytes"], 3);
    assert!(object["modified"].as_str().unwrap().ends_with('Z'));
    assert!(object["etag"].as_str().unwrap().starts_with('"'));
    assert_eq!(
        (&json["total_objects"], &json["total_bytes"]),
        (&1.into(), &3.into())
    );
}

#[test]
fn nothing_below_a_prefix_is_a_no_and_an_empty_bucket_is_not() {
    let world = World::new();
    assert_eq!(world.run(&["ls", "s3://data"]).code, Some(0));
    let ended = world.run(&["ls", "s3://data/none"]);
    assert_eq!((ended.code, ended.text()), (Some(1), ""));
    assert_eq!(ended.stderr, "onecopy: nothing at s3://data/none\n");
    let ended = world.run(&["ls", "s3://data/none", "--quiet"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(1), ""));
}

#[test]
fn a_pattern_that_nothing_matches_is_a_no_and_the_rest_of_one_goes_on() {
    let world = World::new();
    world.put("a-1", "");
    let none = world.run(&["ls", "s3://data/none*"]);
    assert_eq!((none.code, none.text()), (Some(1), ""));
    assert!(
        none.stderr.contains("nothing at s3://data/none*"),
        "{none:?}"
    );
    let some = world.run(&["ls", "s3://data/a-{0..2}"]);
    assert_eq!(
        (some.code, names(some.text())),
        (Some(1), vec!["s3://data/a-1"])
    );
    assert_eq!(some.stderr.lines().count(), 2, "{some:?}");
    assert!(
        some.stderr.contains("could not look up s3://data/a-2: "),
        "{some:?}"
    );
}

#[test]
fn a_backslash_names_keys_that_look_like_patterns() {
    let world = World::new();
    for key in ["a*", "a[1]", "a{1,2}", "ab", r"c\d", "1"] {
        world.put(&format!("k/{key}"), "");
    }
    for (url, keys) in [
        (r"k/a\*", &["a*"][..]),
        (r"k/a\[1\]", &["a[1]"]),
        (r"k/a\{1\,2\}", &["a{1,2}"]),
        (r"k/{a\{1\,2\},a\*}", &["a{1,2}", "a*"]),
        (r"k/a\**", &["a*"]),
        (r"k/?\\?", &[r"c\d"]),
        (r"k/c\d*", &[r"c\d"]),
        ("k/?", &["1"]),
    ] {
        let ended = world.run(&["ls", &format!("s3://data/{url}"), "--json"]);
        let json = ended.json();
        let objects = json["objects"].as_array().unwrap();
        let found: Vec<_> = objects
            .iter()
            .map(|object| object["name"].as_str().unwrap())
            .collect();
        let found: Vec<_> = found
            .iter()
            .map(|name| name.rsplit('/').next().unwrap())
            .collect();
        // A whole URL shows its key with its backslashes escaped.
        let found: Vec<_> = found.iter().map(|name| name.replace(r"\\", r"\")).collect();
        assert_eq!(found, keys, "{url}");
    }
}

#[test]
fn nothing_that_is_shown_moves_the_cursor() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a\u{1b}[2Jb\n.tar");
    std::fs::write(&odd, "").unwrap();
    let folder = folder.path().to_str().unwrap();
    let world = World::new();
    world.put("k/a\u{1b}[2J", "");
    for (args, code) in [
        (&["ls", folder][..], 0),
        (&["ls", odd.to_str().unwrap()], 0),
        (&["ls", &format!("{folder}/*")], 0),
        (&["ls", "s3://data/k/"], 0),
        (&["ls", "s3://data/none\u{1b}\\[2J*"], 1),
        (&["ls", "http://127.0.0.1:1/\u{1b}[2J"], 2),
        (&["ls", "x\u{1b}[2J://b"], 2),
        (&["ls", "s3://b/[\u{1b}[2J*"], 2),
        (&["ls", "/no\u{1b}[2J"], 2),
        (&["cat", "@/no\u{1b}[2J"], 2),
        (&["bench", odd.to_str().unwrap(), "--to", "buffer"], 0),
        (&["bench", odd.to_str().unwrap(), "--stages"], 2),
    ] {
        let ended = world.run(args);
        assert_eq!(ended.code, Some(code), "{args:?} {ended:?}");
        let shown = ended.text().to_owned() + &ended.stderr;
        assert!(shown.contains("[2J"), "{args:?} {ended:?}");
        let unfit = |c: char| c.is_control() && c != '\n';
        assert!(!shown.contains(unfit), "{args:?} {ended:?}");
    }
}

#[test]
fn a_missing_bucket_is_told() {
    let world = World::new();
    world
        .run(&["ls", "s3://nope/"])
        .failed(&["s3://nope", "bucket"]);
}

#[test]
fn lists_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    std::fs::write(folder.path().join("a.tar"), "12").unwrap();
    std::fs::write(folder.path().join("sub/b.tar"), "1").unwrap();
    let path = folder.path().to_str().unwrap();
    let run = |args: &[&str]| {
        let output = bare(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(names(&run(&["ls", path])), ["sub/", "a.tar"]);
    assert!(run(&["ls", "-r", path]).contains("sub/b.tar"));
    let file = format!("{path}/a.tar");
    assert_eq!(names(&run(&["ls", &file])), [file.as_str()]);
}

#[test]
fn without_a_bucket_the_buckets_are_listed_as_aws_does() {
    let world = World::new();
    world.server.create_bucket("a.second").unwrap();
    for args in [&["ls"][..], &["ls", "s3://"], &["ls", "s3:", "-r"]] {
        let ended = world.run(args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let lines: Vec<(&str, &str)> = ended.text().lines().map(|line| line.split_at(20)).collect();
        let names: Vec<&str> = lines.iter().map(|(_, name)| *name).collect();
        assert_eq!(names, ["a.second", "data"]);
        assert!(lines[0].0.starts_with("20"), "a date: {ended:?}");
        assert!(ended.stderr.is_empty(), "{ended:?}");
    }
    let json = world.run(&["ls", "--json"]).json();
    assert_eq!(
        (&json["url"], &json["total_buckets"]),
        (&"s3://".into(), &2.into())
    );
    let bucket = &json["buckets"][1];
    assert_eq!(
        (&bucket["name"], &bucket["url"]),
        (&"data".into(), &"s3://data/".into())
    );
    assert!(bucket["created"].as_str().unwrap().ends_with('Z'));
    let ended = world.run(&["ls", "--no-sign-request"]);
    ended.failed(&[
        "could not list the buckets at http://",
        "leave out --no-sign-request",
    ]);
}
