//! Ranges and requests: how many bytes a load asks for at once, of whom, and in which order they come.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod loads_support;

use std::time::Duration;

use loads_support::*;
use onecopy::config::{LoadConfig, StoreConfig, Variables};
use onecopy::pipeline::Piece;
use onecopy_testkit::fault::{FaultServer, Profile, fill};

const RANGE: usize = 8 * MIB;

/// A server whose answers come at once after a long wait: longer requests are worth it.
fn distant() -> FaultServer {
    let profile = Profile {
        first_byte_median: Duration::from_millis(30),
        first_byte_p99: Duration::from_millis(30),
        ..Profile::instant()
    };
    FaultServer::start_with("127.0.0.1:0", profile).unwrap()
}

fn over(connections: usize, memory: usize) -> LoadConfig {
    let mut config = config(memory);
    config.store = StoreConfig {
        variables: Variables::only([("NO_PROXY", "*")]),
        ..StoreConfig::default()
    };
    config.store.limits.connections = connections;
    config
}

/// What the server was asked for, in that order.
fn asked(server: &FaultServer) -> Vec<(usize, usize)> {
    let requests = server.requests().into_iter();
    let ranges = requests.filter_map(|request| {
        let range = request.range?;
        let (from, last) = range.strip_prefix("bytes=")?.split_once('-')?;
        Some((from.parse().ok()?, last.parse::<usize>().ok()? + 1))
    });
    ranges.collect()
}

/// Reads an object of `len` bytes, holding each piece against what it must be, and what was asked for until then against
/// the memory there is. Gives what was asked for.
fn read(server: &FaultServer, script: &str, len: usize, config: LoadConfig) -> Vec<(usize, usize)> {
    let key = format!("{script}/{len}/object");
    let url = format!("{}/bucket/{key}", server.endpoint());
    let memory = config.memory_bytes.unwrap();
    let mut load = onecopy::open([url], config).run_buffers().unwrap();
    let feed = load.output().feed();
    let (mut at, mut wanted) = (0, vec![0; MIB]);
    while let Some(piece) = feed.next().unwrap() {
        match piece {
            Piece::Bytes(slice) => {
                let furthest = asked(server).iter().map(|range| range.1).max();
                assert!(furthest.unwrap_or(0) <= at + memory);
                for part in slice.chunks(MIB) {
                    fill(&key, at as u64, &mut wanted[..part.len()]);
                    assert!(part == &wanted[..part.len()], "wrong bytes from {at} on");
                    at += part.len();
                }
            }
            Piece::Failed(error) => panic!("{error}"),
            Piece::Shard(_) | Piece::End => {}
        }
    }
    assert_eq!(at, len);
    asked(server)
}

fn lens(ranges: &[(usize, usize)]) -> Vec<usize> {
    ranges.iter().map(|(from, to)| to - from).collect()
}

#[test]
fn neighbouring_ranges_become_one_request_once_answers_are_known_to_be_late() {
    let server = distant();
    let mut ranges = read(&server, "ok", 20 * RANGE, over(1, 512 * MIB));
    // Before the first answer nothing is known of waits; then the rest falls into even parts.
    assert_eq!(lens(&ranges[..1]), [RANGE]);
    assert!(
        lens(&ranges).iter().any(|len| *len >= 3 * RANGE),
        "{ranges:?}"
    );
    ranges.sort_unstable();
    assert!(
        ranges.windows(2).all(|pair| pair[0].1 == pair[1].0),
        "{ranges:?}"
    );
    assert!(ranges.len() <= 12, "{ranges:?}");
}

#[test]
fn a_range_that_somebody_chose_is_the_length_of_every_request() {
    let server = distant();
    let config = LoadConfig {
        range_bytes: Some(RANGE),
        ..over(1, 512 * MIB)
    };
    let ranges = read(&server, "ok", 9 * RANGE, config);
    assert_eq!(lens(&ranges), [RANGE; 9]);
}

#[test]
fn little_memory_is_asked_for_range_by_range() {
    let server = distant();
    let ranges = read(&server, "ok", 9 * RANGE, over(1, 64 * MIB));
    assert!(lens(&ranges).iter().all(|len| *len <= RANGE), "{ranges:?}");
}

#[test]
fn no_request_takes_more_of_the_end_than_the_share_of_one_connection() {
    let server = distant();
    let len = 24 * RANGE;
    let ranges = read(&server, "ok", len, over(4, 1024 * MIB));
    for (from, to) in &ranges {
        let share = (len - from) / 4;
        assert!(to - from <= share.max(RANGE), "{ranges:?}");
    }
}

#[test]
fn a_request_that_breaks_goes_on_where_it_broke_and_gives_nothing_twice() {
    let server = distant();
    // Every answer that is longer than a range ends within its second range.
    let script = format!("cut={}x100", RANGE + 1000);
    let ranges = read(&server, &script, 12 * RANGE, over(1, 512 * MIB));
    let went_on = |range: &&(usize, usize)| range.0 % RANGE == 1000;
    assert!(ranges.iter().any(|range| went_on(&range)), "{ranges:?}");
}

#[test]
fn the_head_of_the_first_answer_is_enough_to_ask_for_the_rest() {
    let server = FaultServer::start().unwrap();
    let mut config = over(4, 512 * MIB);
    config.store.limits.stall_timeout = Duration::from_millis(500);
    let ranges = read(&server, "stall=1000x1", 3 * RANGE, config);
    let place = |from: usize| ranges.iter().position(|range| range.0 == from).unwrap();
    // The first answer falls silent, and is asked for again long after the rest.
    assert_eq!(place(0), 0);
    assert!(place(RANGE) < place(1000), "{ranges:?}");
    assert!(place(2 * RANGE) < place(1000), "{ranges:?}");
}
