//! Versions of objects, by the name that the URL of a source ends with.

use std::fs;

use onecopy::ErrorKind;
use onecopy::transfer::{CopySettings, Stop, SyncSettings, copy, sync};

use crate::store_scripted::{Server, Then, body, part, raw, serve_with, status};
use crate::world::{Ended, World, settings, told};

/// A store in which only the version v1 of `k` exists, and that copies it.
fn server() -> Server {
    serve_with(|request| {
        let line = request.lines().next().unwrap();
        let is_version = line.contains("/bkt/k?versionId=v1 ");
        let answer = if line.starts_with("PUT /bkt/to ") {
            let text = "<CopyObjectResult><ETag>\"e\"</ETag></CopyObjectResult>";
            let head = format!("HTTP/1.1 200 OK\nContent-Length: {}", text.len());
            raw(&head, text.as_bytes())
        } else if is_version && line.starts_with("HEAD ") {
            raw(
                "HTTP/1.1 200 OK\nETag: \"v1\"\nContent-Length: 1000\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
                b"",
            )
        } else if is_version && request.contains("range: bytes=0-") {
            part(0, 1000, 1000)
        } else if is_version {
            raw(
                "HTTP/1.1 200 OK\nETag: \"v1\"\nContent-Length: 1000",
                &body(0, 1000),
            )
        } else {
            status("404 Not Found")
        };
        Some((answer, Then::Keep))
    })
}

fn cp(server: &Server, source: &str, target: &str, how: &CopySettings) -> Ended {
    let settings = settings(&server.url);
    let sources = [source.to_owned()];
    told(|observer| copy(&sources, target, &settings, how, observer, &Stop::default()))
}

#[test]
fn a_version_becomes_a_file_or_another_object() {
    let world = World::new();
    let server = server();
    let how = CopySettings::default();
    let url = "s3://bkt/k?versionId=v1";
    let ended = cp(&server, url, &world.text("old"), &how);
    assert_eq!(ended.counts(), [1, 0, 0, 0], "{:?}", ended.failed);
    assert!(
        ended.done[0].starts_with(&format!("cp {url} ")),
        "{:?}",
        ended.done
    );
    assert_eq!(fs::read(world.path("old")).unwrap(), body(0, 1000));
    fs::create_dir(world.path("d")).unwrap();
    let ended = cp(&server, url, &world.text("d"), &how);
    assert_eq!(ended.counts(), [1, 0, 0, 0], "{:?}", ended.failed);
    assert_eq!(
        world.files(),
        ["d/k", "old"],
        "the version is no part of the name"
    );
    server.seen.lock().clear();
    let ended = cp(&server, url, "s3://bkt/to", &how);
    assert_eq!(ended.counts(), [1, 0, 0, 0], "{:?}", ended.failed);
    let seen = server.seen.lock();
    let put = seen
        .iter()
        .find(|(_, request)| request.starts_with("PUT "))
        .unwrap();
    assert!(
        put.1.contains("x-amz-copy-source: /bkt/k?versionId=v1\r\n"),
        "{put:?}"
    );
    assert!(
        put.1.contains("x-amz-copy-source-if-match: \"v1\"\r\n"),
        "{put:?}"
    );
}

#[test]
fn what_cannot_have_a_version_is_refused() {
    let world = World::new();
    let server = server();
    let out = world.text("out/");
    let plain = CopySettings::default();
    let recursive = CopySettings {
        is_recursive: true,
        ..CopySettings::default()
    };
    for (url, how) in [
        ("s3://bkt/p/?versionId=v1", &plain),
        ("s3://bkt/*?versionId=v1", &plain),
        ("s3://bkt/{k,l}?versionId=v1", &plain),
        ("s3://bkt/k?versionId=v1", &recursive),
    ] {
        let error = cp(&server, url, &out, how).result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{url}: {error:#}");
        assert!(error.help().is_some());
    }
    let ended = cp(&server, "s3://bkt/k?versionId=v2", &out, &plain);
    assert_eq!(
        ended.failed["s3://bkt/k?versionId=v2"].0,
        ErrorKind::NotFound
    );
    let settings = settings(&server.url);
    for (source, target) in [
        ("s3://bkt/k?versionId=v1", &*out),
        (&*out, "s3://bkt/k?versionId=v1"),
    ] {
        let ended = told(|observer| {
            let how = SyncSettings::default();
            sync(source, target, &settings, &how, observer, &Stop::default())
        });
        let error = ended.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:#}");
    }
}
