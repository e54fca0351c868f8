//! Whatever stands in the place of an index: read without a panic, or refused.

use super::{DatasetIndex, Offsets};
use crate::fuzzing::fuzz;

/// What holds of any offsets.
fn check(offsets: &Offsets, most: usize) {
    assert!(
        offsets.len() <= most,
        "more samples than bytes that tell of them"
    );
    let starts: Vec<u64> = (0..offsets.len())
        .map_while(|place| offsets.start(place))
        .collect();
    assert_eq!(starts.len(), offsets.len());
    assert!(starts.is_sorted_by(|a, b| a < b));
    assert!(starts.last().is_none_or(|last| *last < offsets.end()));
    assert!(starts.iter().all(|start| start % 512 == 0));
}

#[test]
fn fuzz_offsets() {
    let binary: Vec<u8> = [0_u64, 1024, 4096, 1 << 40]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    let seeds: [&[u8]; 4] = [
        b"v1.2 2\ncls 512 1 a.cls jpg 1536 600 a.jpg\ncls 3072 1 b.cls jpg 4096 512 b.jpg\n",
        b"v1.1 2\ncls 512 1 jpg 1536 600\ncls 3072 0\n",
        b"v1.2 1\njson 512 9 __index__.json\n",
        &binary,
    ];
    let words: [&[u8]; 8] = [
        b" ",
        b"\n",
        b"v1.2 ",
        b"512",
        b"18446744073709551104",
        b"0",
        b"\xff",
        b"\0\0\0\0\0\0\0\0",
    ];
    fuzz(&seeds, &words, |input| {
        let read = [
            Offsets::read_dali("i", input),
            Offsets::read_energon("i", input),
        ];
        read.iter()
            .flatten()
            .for_each(|offsets| check(offsets, input.len()));
    });
}

#[test]
fn fuzz_datasets() {
    let seeds: [&[u8]; 4] = [
        b"{\"__kind__\":\"wids-shard-index-v1\",\"wids_version\":1,\"key_rule\":\"first-dot\",\"shardlist\":[\
          {\"url\":\"a.tar\",\"nsamples\":7,\"filesize\":1024,\"etag\":\"ab\",\"idx\":\"a.idx\"}]}",
        b"{\"wids_version\":1,\"base\":\"s3://b/t/\",\"datasets\":[{\"base\":\"../x\",\"shardlist\":[{\"url\":\"./../p.tar\",\"nsamples\":3}]}]}",
        b"{\"energon_version\":\"7\",\"shard_counts\":{\"a.tar\":3,\"b/c.d.tar\":0}}",
        b"energon_version: 5.0\nshard_counts:\n  a.tar: 10\n  'b''s: 1.tar': 2\n  \"c\\t.tar\": 3\n",
    ];
    let words: [&[u8]; 9] = [
        b"\"",
        b"'",
        b": ",
        b"\n  ",
        b"../",
        b"://",
        b"[[[[[[[[",
        b"-1",
        b"\xff",
    ];
    fuzz(&seeds, &words, |input| {
        if let Ok(index) = DatasetIndex::read_wids("i", input) {
            let again = DatasetIndex::read_wids("i", index.to_json().as_bytes()).unwrap();
            let names = |index: &DatasetIndex| -> Vec<_> {
                let shards = index.shards.iter();
                shards
                    .map(|shard| (shard.name.clone(), shard.samples))
                    .collect()
            };
            assert_eq!(names(&again), names(&index));
        }
        if let Ok(index) = DatasetIndex::read_energon("i", input) {
            assert!(index.shards.iter().all(|shard| shard.offsets.is_some()));
        }
    });
}
