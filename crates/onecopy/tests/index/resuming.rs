//! What is left by an index that was broken off, and what the next one makes of it.

use std::collections::BTreeSet;
use std::time::Duration;

use onecopy::ErrorKind;
use onecopy::sample::KeyRule;

use crate::world::{World, shard};

fn fill(world: &World, shards: usize) {
    for number in 0..shards {
        let key = format!("t/{number:02}.tar");
        world.put(&key, shard("", number + 1, 10));
    }
}

#[test]
fn an_index_that_was_broken_off_goes_on_where_it_ended() {
    let mut world = World::new();
    fill(&world, 30);
    world.settings.store.limits.connections = 1;
    let ended = world.index_some(&["s3://bkt/t/"], 10);
    assert_eq!(ended.result.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(world.get("t/index.json").is_none());
    let kept = world.remote("t/index.json.part").shards.len() as u64;
    assert!((10..=12).contains(&kept), "{kept}");
    world.server.forget_requests();
    assert_eq!(world.index(&["s3://bkt/t/"]).counts(), [30, 465, kept, 0]);
    let requests = world.server.requests();
    let read: BTreeSet<&str> = requests
        .iter()
        .map(|request| request.path.as_str())
        .filter(|path| path.ends_with(".tar"))
        .collect();
    assert_eq!(read.len() as u64, 30 - kept, "only the rest is read");
    assert_eq!(world.remote("t/index.json").shards.len(), 30);
    assert!(world.get("t/index.json.part").is_none());
}

#[test]
fn every_shard_may_be_kept_as_it_is_done() {
    let mut world = World::new();
    world.settings.keep_every = Duration::ZERO;
    for number in 0..5 {
        world.write(&format!("{number}.tar"), &shard("", 2, 10));
    }
    world.write("5.tar", b"no tar");
    let ended = world.index(&[&world.path("")]);
    assert_eq!(ended.counts(), [5, 10, 0, 1]);
    assert_eq!(world.local("index.json.part").shards.len(), 5);
    // As a process leaves it that was killed while it wrote.
    world.write(".onecopy-4294967-1.part", b"{\"wids_ver");
    world.write("5.tar", &shard("", 3, 10));
    assert_eq!(world.index(&[&world.path("")]).counts(), [6, 13, 5, 0]);
    assert!(world.read(".onecopy-4294967-1.part").is_none());
    assert!(world.read("index.json.part").is_none());
}

#[test]
fn only_what_is_the_same_is_taken_over() {
    let mut world = World::new();
    fill(&world, 4);
    assert_eq!(world.index(&["s3://bkt/t/"]).counts(), [4, 10, 0, 0]);
    assert_eq!(world.index(&["s3://bkt/t/"]).counts(), [4, 10, 4, 0]);
    // Of the same length.
    world.put("t/00.tar", shard("x", 1, 10));
    assert_eq!(world.index(&["s3://bkt/t/"]).counts(), [4, 10, 3, 0]);
    // Its offsets are gone.
    world.server.delete("bkt", "t/01.idx").unwrap();
    assert_eq!(world.index(&["s3://bkt/t/"]).counts(), [4, 10, 3, 0]);
    assert!(world.get("t/01.idx").is_some());
    // Shards that are no longer meant are no longer in it.
    assert_eq!(
        world.index(&["s3://bkt/t/0[0-2].tar"]).counts(),
        [3, 6, 3, 0]
    );
    world.settings.options.key_rule = KeyRule::LastDot;
    assert_eq!(world.index(&["s3://bkt/t/"]).counts(), [4, 10, 0, 0]);
    world.settings.is_forced = true;
    assert_eq!(world.index(&["s3://bkt/t/"]).counts(), [4, 10, 0, 0]);
}

#[test]
fn files_are_told_apart_by_more_than_their_length() {
    let world = World::new();
    let path = world.write("a.tar", &shard("", 3, 10));
    assert_eq!(world.index(&[&path]).counts(), [1, 3, 0, 0]);
    assert_eq!(world.index(&[&path]).counts(), [1, 3, 1, 0]);
    let other = world.write("b", &shard("x", 3, 10));
    std::fs::rename(other, &path).unwrap();
    assert_eq!(world.index(&[&path]).counts(), [1, 3, 0, 0]);
}

#[test]
fn an_index_of_others_is_not_replaced_unless_that_is_asked_for() {
    let mut world = World::new();
    let path = world.write("a.tar", &shard("", 3, 10));
    for foreign in [
        r#"{"version": 2, "shards": []}"#,
        r#"{"__kind__": "wids-shard-index-v1", "wids_version": 1, "shardlist": []}"#,
        "",
    ] {
        world.write("index.json", foreign.as_bytes());
        let error = world.index(&[&path]).result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.help().unwrap().contains("`force`"), "{error:?}");
        assert_eq!(world.read("index.json").unwrap(), foreign.as_bytes());
    }
    world.settings.is_forced = true;
    assert_eq!(world.index(&[&path]).counts(), [1, 3, 0, 0]);
    world.settings.is_forced = false;
    assert_eq!(world.index(&[&path]).counts(), [1, 3, 1, 0]);
}
