//! Objects become objects.

use onecopy::ErrorKind;
use onecopy::store::{Attributes, CopySource, Key, open_store};
use onecopy::transfer::CopySettings;

use crate::world::{World, bytes};

#[test]
fn within_a_store_no_byte_passes_through_here() {
    let world = World::new();
    world.server.create_bucket("other").unwrap();
    for key in ["p/a", "p/d/b", "p/\u{fc} +%", "p/marker/"] {
        world.put(key, key);
    }
    let ended = world.recursive("s3://bkt/p", "s3://other/q");
    assert_eq!(ended.counts(), [4, 0, 0, 0], "{:?}", ended.failed);
    for key in ["a", "d/b", "\u{fc} +%", "marker/"] {
        let found = world.server.get("other", &format!("q/{key}")).unwrap();
        assert_eq!(found.unwrap(), format!("p/{key}").as_bytes(), "{key}");
    }
    let reads = world.server.requests();
    assert!(
        reads
            .iter()
            .all(|read| read.method != "GET" || read.is_list())
    );
    assert_eq!((ended.hop("recv"), ended.hop("send")), (0, 0));
}

#[test]
fn a_large_object_is_copied_in_parts_and_keeps_what_is_told_of_it() {
    let mut world = World::new();
    let whole = vec![7; (128 << 20) + 5];
    world.put("from", whole.clone());
    world
        .settings
        .attributes
        .set("x-amz-meta-who", "me")
        .unwrap();
    let ended = world.cp(&["s3://bkt/from"], "s3://bkt/to", &CopySettings::default());
    assert_eq!(ended.counts(), [1, 0, 0, 0], "{:?}", ended.failed);
    assert!(world.get("to").unwrap() == whole);
    assert!(
        world
            .server
            .etag("bkt", "to")
            .unwrap()
            .unwrap()
            .ends_with("-2\"")
    );
    assert_eq!((ended.hop("recv"), ended.hop("send")), (0, 0));
    assert_eq!(world.server.open_uploads(), 0);
}

#[tokio::test]
async fn parts_of_other_objects_are_put_together() {
    let world = World::new();
    let whole = bytes((11 << 20) + 7);
    world.put("from", whole.clone());
    let (store, _) = open_store("s3://bkt", &world.settings.store).unwrap();
    let writer = store.writer().unwrap();
    let object = store.head(&writer.object(b"from")).await.unwrap();
    let source = CopySource {
        bucket: writer.bucket().to_owned(),
        object,
    };
    let attributes = Attributes::default();
    let target = writer.object(b"to");
    let upload = writer.begin(&target, &attributes).await.unwrap();
    let mut parts = Vec::new();
    for (number, range) in [(1, (0, 6 << 20)), (2, (6 << 20, whole.len() as u64))] {
        parts.push(
            writer
                .copy_part(&upload, number, &source, range)
                .await
                .unwrap(),
        );
    }
    writer.complete(&upload, &parts).await.unwrap();
    assert!(world.get("to").unwrap() == whole);
    // Another version is not copied.
    world.put("from", bytes(11 << 20));
    let upload = writer.begin(&target, &attributes).await.unwrap();
    let error = writer
        .copy_part(&upload, 1, &source, (0, 5 << 20))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    let error = writer
        .copy(&source, &target, &attributes)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    writer.abort(&upload).await.unwrap();
    writer.abort(&upload).await.unwrap();
    assert_eq!(world.server.open_uploads(), 0);
    // Completing what is gone is an error, unless the object is there with that length.
    let error = writer.complete(&upload, &parts[..1]).await.unwrap_err();
    assert!(error.to_string().contains("NoSuchUpload"), "{error}");
    writer.complete(&upload, &parts).await.unwrap();
}

#[tokio::test]
async fn deletes_take_any_key_and_a_missing_one_is_no_error() {
    let world = World::new();
    let keys = ["a", "b&<>\"'", "new\nline", "\u{1}", " ", "\u{fc}", "d/"];
    for key in keys {
        world.put(key, "x");
    }
    world.put("stays", "x");
    let (store, _) = open_store("s3://bkt", &world.settings.store).unwrap();
    let mut doomed: Vec<Key> = keys.iter().map(|key| Key::new(key.as_bytes())).collect();
    doomed.push(Key::new(*b"never there"));
    let refused = store.writer().unwrap().delete(&doomed).await.unwrap();
    assert!(refused.is_empty(), "{refused:?}");
    for key in keys {
        assert_eq!(world.get(key), None, "{key:?}");
    }
    assert!(world.get("stays").is_some());
}

#[test]
fn from_a_web_server_bytes_pass_through_memory() {
    let web = onecopy_testkit::fault::FaultServer::start().unwrap();
    let world = World::new();
    let whole = bytes((6 << 20) + 11);
    web.put("f.bin", whole.clone());
    let url = format!("{}/b/f.bin", web.endpoint());
    let ended = world.cp(&[&url], "s3://bkt/x/", &CopySettings::default());
    assert_eq!(ended.counts(), [1, 0, 0, 0], "{:?}", ended.failed);
    assert!(world.get("x/f.bin").unwrap() == whole);
    assert_eq!(ended.hop("send"), whole.len() as u64);
}
