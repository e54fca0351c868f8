//! What is read of the shards, and where the index goes.

use onecopy::ErrorKind;
use onecopy::sample::SampleOptions;
use onecopy::sample::index::beside;

use crate::world::{World, hold, shard};

/// Bytes that the server sent of shards, and in how many answers.
fn sent(world: &World) -> (u64, usize) {
    let requests = world.server.requests();
    let shards = requests
        .iter()
        .filter(|request| request.method == "GET" && request.path.ends_with(".tar"));
    (
        shards
            .clone()
            .filter_map(|request| request.length_bytes)
            .sum(),
        shards.count(),
    )
}

#[test]
fn of_members_of_1_mb_less_than_2_percent_are_read() {
    let world = World::new();
    let mut bytes = 0;
    for number in 0..4 {
        let shard = shard(&format!("{number}-"), 12, 1_000_000);
        bytes += shard.len() as u64;
        world.put(&format!("t/{number}.tar"), shard);
    }
    let ended = world.index(&["s3://bkt/t/"]);
    assert_eq!(ended.counts(), [4, 48, 0, 0]);
    let (read, requests) = sent(&world);
    assert!(read * 50 < bytes, "{read} of {bytes}");
    let summary = ended.result.unwrap();
    assert_eq!(
        (summary.read_bytes, summary.requests),
        (read, requests as u64)
    );
    // One for the front of each shard, one for each member that was passed over.
    assert_eq!(requests, 4 + 48);
    assert_eq!(
        world.server.count("HEAD"),
        2,
        "of index.json and index.json.part"
    );
    assert_eq!(summary.shard_bytes, bytes);
    for number in 0..4 {
        let shard = world.get(&format!("t/{number}.tar")).unwrap();
        let idx = world.get(&format!("t/{number}.idx")).unwrap();
        hold(&idx, &shard, &SampleOptions::default());
    }
}

#[test]
fn small_members_are_read_in_large_pieces() {
    let world = World::new();
    let bytes = shard("", 2000, 10_000);
    world.put("a.tar", bytes.clone());
    assert_eq!(world.index(&["s3://bkt/a.tar"]).counts(), [1, 2000, 0, 0]);
    let (read, requests) = sent(&world);
    assert!(read <= bytes.len() as u64, "{read} of {}", bytes.len());
    assert!(requests < 20, "{requests}");
}

#[test]
fn shards_on_a_web_server_and_of_several_folders_go_to_a_place_of_its_own() {
    let mut world = World::new();
    for key in ["x/a.tar", "y/a.tar", "y/b.tar"] {
        world.put(key, shard("", 3, 200_000));
    }
    let http = |key: &str| format!("{}/bkt/{key}", world.server.endpoint());
    let urls = [http("x/a.tar"), http("y/b.tar")];
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let error = world.index(&urls).result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.help().unwrap().contains("`out`"), "{error:?}");
    world.settings.out = Some(world.path("web"));
    assert_eq!(world.index(&urls).counts(), [2, 6, 0, 0]);
    let index = world.local("web/index.json");
    assert_eq!(index.shards[1].name, urls[1]);
    let offsets = index.shards[1].offsets.as_deref().unwrap();
    assert_eq!(offsets, "y/b.idx");
    let path = beside(&world.path("web/index.json"), offsets);
    let idx = std::fs::read(path).unwrap();
    hold(
        &idx,
        &world.get("y/b.tar").unwrap(),
        &SampleOptions::default(),
    );
    // In the bucket, of shards that are named outright: as many requests as headers.
    world.settings.out = Some("s3://bkt/indexes".to_owned());
    world.server.forget_requests();
    let named = ["s3://bkt/{x,y}/a.tar"];
    assert_eq!(world.index(&named).counts(), [2, 6, 0, 0]);
    assert_eq!(sent(&world).1, 2 * 4);
    let index = world.remote("indexes/index.json");
    assert_eq!(index.shards[0].name, "s3://bkt/x/a.tar");
    assert!(world.get("indexes/y/a.idx").is_some());
    let objects = [world.object("y/a.tar"), world.object("x/a.tar")];
    let found = index.matched(&objects).unwrap();
    assert_eq!(found[0].name, "s3://bkt/y/a.tar");
    // Named again, they are looked up, and that is all.
    world.server.forget_requests();
    assert_eq!(world.index(&named).counts(), [2, 6, 2, 0]);
    assert_eq!(sent(&world), (0, 0));
}

#[test]
fn what_cannot_be_laid_out_is_refused_before_anything_is_read() {
    let world = World::new();
    world.put("a.tar", shard("", 1, 10));
    world.put("a", shard("", 1, 10));
    let path = world.write("b.tar", &shard("", 1, 10));
    for (urls, told) in [
        (&["s3://bkt/a.tar", "s3://bkt/a"][..], "offsets in a.idx"),
        (&["s3://bkt/a.tar", &path], "no folder in common"),
    ] {
        let error = world.index(urls).result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.why().contains(told), "{error}");
        assert!(error.help().unwrap().contains("`out`"), "{error:?}");
    }
    let error = world.index(&["s3://bkt/none/"]).result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(world.server.count("GET"), 1, "the listing");
}

#[test]
fn a_shard_that_is_named_twice_is_indexed_once() {
    let world = World::new();
    let path = world.write("a.tar", &shard("", 3, 10));
    assert_eq!(world.index(&[&path, &path]).counts(), [1, 3, 0, 0]);
}
