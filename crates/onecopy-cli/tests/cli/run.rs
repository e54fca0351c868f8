//! `onecopy run`

use std::io::Write;
use std::process::Stdio;

use crate::command::{Ended, World};

#[test]
fn carries_out_a_command_a_line_from_a_file_or_standard_input() {
    let world = World::new();
    for n in 0..40 {
        world.put(&format!("p/{n} #x"), format!("{n}"));
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_owned();
    let mut lines = String::from("# copies\n\n");
    for n in 0..40 {
        lines += &format!("cp 's3://data/p/{n} #x' {out}/\n");
    }
    lines += &format!("cp s3://data/none {out}/\nsync {out} s3://data/q/\n");
    let file = folder.path().join("commands");
    std::fs::write(&file, &lines).unwrap();
    let ended = world.run(&["run", file.to_str().unwrap()]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.text().lines().count(), 80, "{ended:?}");
    assert!(ended.stderr.contains("s3://data/none"), "{ended:?}");
    assert_eq!(world.server.get("data", "q/7 #x").unwrap().unwrap(), "7");
    let mut child = world
        .command(&["run", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let text = format!("sync s3://data/q/ {out}\ncp -n 's3://data/p/1 #x' {out}/\n");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let summaries: Vec<serde_json::Value> = ended
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &serde_json::Value| line["schema"] == 1)
        .collect();
    let unchanged: Vec<&serde_json::Value> = summaries.iter().map(|s| &s["unchanged"]).collect();
    // Uploaded after it was written: the object is newer, and so copied again.
    assert_eq!(summaries.len(), 2, "{ended:?}");
    assert_eq!(unchanged[1], 1);
}

#[test]
fn a_line_that_cannot_be_stops_all_before_anything_is_done() {
    let world = World::new();
    world.put("a", "1");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for (bad, why) in [
        ("cp s3://data/a", "not provided"),
        ("ls s3://data/", "only cp and sync"),
        ("run x", "only cp and sync"),
        ("cp 's3://data/a x", "quote"),
        ("cp s3://data/a -", "standard input and output"),
        ("fly me", "fly"),
    ] {
        let file = folder.path().join("commands");
        std::fs::write(&file, format!("cp s3://data/a {out}/done\n{bad}\n")).unwrap();
        let ended = world.run(&["run", file.to_str().unwrap()]);
        ended.failed(&["line 2 of", why]);
        assert!(!folder.path().join("done").exists());
    }
    world
        .run(&["run", "/nonexistent"])
        .failed(&["/nonexistent"]);
}

#[test]
fn a_line_that_fails_is_an_item_that_failed_whatever_stands_beside_it() {
    let world = World::new();
    world.put("p/a", "1");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("commands");
    let out = folder.path().join("out").to_str().unwrap().to_owned();
    let here = folder.path().to_str().unwrap();
    let fine = format!("cp s3://data/p/a {out}/");
    let other = format!("cp -n s3://data/p/a {out}/other");
    for bad in [
        format!("cp s3://data/p/ {out}/"),
        format!("cp {here} {here}"),
        format!("cp ftp://h/a?sig=hush {out}/"),
        format!("cp --memory 1MiB s3://data/p/a {out}/"),
        format!("sync {here} {here}"),
        "sync s3://data/p/ ftp://h/a?sig=hush".to_owned(),
        format!("sync s3://missing/ {out}/"),
    ] {
        for (lines, done) in [
            (vec![&bad], 0),
            (vec![&bad, &fine], 1),
            (vec![&fine, &bad], 1),
            (vec![&fine, &bad, &fine], 2),
            (vec![&bad, &other], 1),
            (vec![&bad, &bad], 0),
        ] {
            let _not_there_yet = std::fs::remove_dir_all(&out);
            let text: Vec<&str> = lines.iter().map(|line| line.as_str()).collect();
            std::fs::write(&file, text.join("\n")).unwrap();
            for flag in ["--log=warn", "--json"] {
                let _nothing_there = std::fs::remove_dir_all(&out);
                let ended = world.run(&["run", flag, file.to_str().unwrap()]);
                assert_eq!(ended.code, Some(1), "{text:?} {ended:?}");
                assert!(ended.stderr.contains("onecopy: could not"), "{ended:?}");
                assert!(!ended.stderr.contains("hush") && !ended.text().contains("hush"));
                let word = if flag == "--json" {
                    "\"success\":true"
                } else {
                    "cp s3://data/p/a "
                };
                let count = ended
                    .text()
                    .lines()
                    .filter(|line| line.contains(word))
                    .count();
                assert_eq!(count, done, "{text:?} {ended:?}");
                if flag == "--json" {
                    let operation = bad.split(' ').next().unwrap();
                    let refused = format!("{{\"operation\":\"{operation}\",\"success\":false");
                    assert!(ended.text().contains(&refused), "{text:?} {ended:?}");
                }
            }
        }
    }
}
