//! `gs://` and `az://`, as the command reads them.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use std::fs;
use std::process::Command;

use onecopy_testkit::cloud::{Access, CloudServer};

use crate::command::{Ended, World, bare};

const KEY: &str = "aHVzaC1odXNoLWh1c2g=";

/// A service, where it is told of in the environment, and what stands before a key.
struct Cloud {
    server: CloudServer,
    set: Vec<(&'static str, String)>,
    base: &'static str,
}

impl Cloud {
    fn both() -> [Self; 2] {
        let google = CloudServer::google("127.0.0.1:0", Access::Anyone).unwrap();
        let azure = CloudServer::azure("127.0.0.1:0", "acc", Access::Key(KEY.into())).unwrap();
        let google_set = vec![("STORAGE_EMULATOR_HOST", google.endpoint())];
        let string = format!(
            "BlobEndpoint={};AccountName=acc;AccountKey={KEY}",
            azure.endpoint()
        );
        let azure_set = vec![("AZURE_STORAGE_CONNECTION_STRING", string)];
        let clouds = [
            Self {
                server: google,
                set: google_set,
                base: "gs://data/",
            },
            Self {
                server: azure,
                set: azure_set,
                base: "az://data/",
            },
        ];
        for cloud in &clouds {
            for (key, bytes) in [("p/a", "1"), ("p/d/b c", "22"), ("q.tar", "333")] {
                cloud.server.put("data", key, bytes);
            }
        }
        clouds
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = bare(args);
        command.env("HOME", "/nonexistent");
        for (name, value) in &self.set {
            command.env(name, value);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        Ended::from(self.command(args).output().unwrap())
    }

    fn url(&self, key: &str) -> String {
        format!("{}{key}", self.base)
    }
}

#[test]
fn ls_folds_lists_below_and_matches() {
    for cloud in Cloud::both() {
        for (args, names) in [
            (vec!["ls", cloud.base], vec!["p/", "q.tar"]),
            (vec!["ls", &cloud.url("p")], vec!["p/"]),
            (
                vec!["ls", "-r", cloud.base],
                vec!["p/a", "p/d/b c", "q.tar"],
            ),
            (vec!["ls", &cloud.url("p/**")], vec!["p/a", "p/d/b c"]),
        ] {
            let ended = cloud.run(&args);
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert_eq!(ended.text().lines().count(), names.len(), "{ended:?}");
            for (line, name) in ended.text().lines().zip(names) {
                assert!(line.ends_with(name), "{ended:?}");
            }
        }
        assert_eq!(cloud.run(&["ls", &cloud.url("none")]).code, Some(1));
    }
}

#[test]
fn cat_and_cp_bring_the_bytes() {
    for cloud in Cloud::both() {
        let ended = cloud.run(&["cat", &cloud.url("q.tar"), &cloud.url("p/d/b c")]);
        assert_eq!((ended.code, ended.text()), (Some(0), "33322"), "{ended:?}");
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let shown = out.to_str().unwrap();
        let one = cloud.run(&["cp", &cloud.url("q.tar"), &format!("{shown}.tar")]);
        assert_eq!(one.code, Some(0), "{one:?}");
        assert_eq!(fs::read(format!("{shown}.tar")).unwrap(), b"333");
        let all = cloud.run(&["cp", "-r", &cloud.url("p"), shown]);
        assert_eq!(all.code, Some(0), "{all:?}");
        assert_eq!(fs::read(out.join("d/b c")).unwrap(), b"22");
        assert!(all.text().contains(&cloud.url("p/d/b c")), "{all:?}");
    }
}

#[test]
fn sync_brings_what_is_new_and_deletes_what_is_gone() {
    for cloud in Cloud::both() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().to_str().unwrap();
        fs::write(folder.path().join("old"), "x").unwrap();
        let sync = || cloud.run(&["sync", cloud.base, out, "--delete", "--size-only"]);
        let first = sync();
        assert_eq!(first.code, Some(0), "{first:?}");
        assert_eq!(fs::read(folder.path().join("p/a")).unwrap(), b"1");
        assert!(!folder.path().join("old").exists());
        cloud.server.put("data", "p/a", "more");
        let again = sync();
        assert_eq!(again.text().lines().count(), 1, "{again:?}");
        assert_eq!(fs::read(folder.path().join("p/a")).unwrap(), b"more");
    }
}

#[test]
fn objects_go_from_there_to_s3() {
    let world = World::new();
    for cloud in Cloud::both() {
        let mut command = world.command(&["cp", "-r", &cloud.url("p"), "s3://data/copied/"]);
        for (name, value) in &cloud.set {
            command.env(name, value);
        }
        let ended = Ended::from(command.output().unwrap());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let copied = world.server.get("data", "copied/d/b c").unwrap();
        assert_eq!(copied.unwrap(), "22");
    }
}

#[test]
fn writing_there_is_refused_and_says_where_one_can() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    fs::write(&file, "1").unwrap();
    let (file, folder) = (file.to_str().unwrap(), folder.path().to_str().unwrap());
    for cloud in Cloud::both() {
        for args in [
            vec!["cp", file, &cloud.url("a")],
            vec!["cp", "-", &cloud.url("a")],
            vec!["cp", &cloud.url("p/a"), &cloud.url("b")],
            vec!["sync", folder, cloud.base],
        ] {
            let ended = cloud.run(&args);
            assert_eq!(ended.code, Some(2), "{ended:?}");
            assert!(ended.stderr.contains("cannot be written to"), "{ended:?}");
            assert!(ended.stderr.contains("s3://"), "{ended:?}");
        }
    }
}

#[test]
fn one_endpoint_is_not_asked_for_two_kinds_of_stores() {
    let [cloud, _] = Cloud::both();
    let endpoint = cloud.server.endpoint();
    let args = [
        "cp",
        "gs://data/q.tar",
        "s3://data/q.tar",
        "--endpoint-url",
        &endpoint,
    ];
    let ended = cloud.run(&args);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("STORAGE_EMULATOR_HOST"), "{ended:?}");
    assert!(cloud.server.records().is_empty());
}

#[test]
fn a_sas_token_in_a_url_is_refused_and_not_shown() {
    let [_, cloud] = Cloud::both();
    for verb in [vec!["cat"], vec!["ls"], vec!["cp"]] {
        let mut args = verb;
        args.push("az://data/q.tar?sv=1&sig=hush");
        if args[0] == "cp" {
            args.push("/tmp/");
        }
        let ended = cloud.run(&args);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(
            ended.stderr.contains("AZURE_STORAGE_SAS_TOKEN"),
            "{ended:?}"
        );
        assert!(!format!("{ended:?}").contains("hush"), "{ended:?}");
    }
}
