//! What is allowed is read, however it comes in.

use proptest::prelude::*;

use super::peer::{Peer, Reader, TLS13, message, noise, suites};
use crate::store::http1::tls::record::RECORD_MAX;
use rustls::ContentType;

const FULL: usize = 1 << 14;

/// What a server may send.
#[derive(Debug, Clone)]
enum Sent {
    Data {
        len: usize,
        padding: usize,
    },
    Ticket(usize),
    Update(bool),
    /// A ticket over so many records.
    Pieces(usize),
    Warning,
}

fn sent() -> impl Strategy<Value = Sent> {
    let len = prop_oneof![
        Just(0_usize),
        Just(1),
        Just(FULL),
        0..FULL,
        (FULL - 40)..FULL,
        0..200_usize
    ];
    let padding = prop_oneof![4 => Just(0_usize), 1 => 0..300_usize, 1 => Just(FULL)];
    prop_oneof![
        12 => (len, padding).prop_map(|(len, padding)| Sent::Data {
            len,
            padding: padding.min(FULL - len)
        }),
        1 => (0..600_usize).prop_map(Sent::Ticket),
        1 => any::<bool>().prop_map(Sent::Update),
        1 => (1..5_usize).prop_map(Sent::Pieces),
        1 => Just(Sent::Warning),
    ]
}

/// Plays `all` on a peer; gives the tickets that were in it.
fn play(peer: &mut Peer, all: &[Sent], is_tls13: bool) -> Vec<Vec<u8>> {
    let bytes = noise(FULL);
    let mut tickets = Vec::new();
    for sent in all {
        match *sent {
            Sent::Data { len, padding } => peer.data(&bytes[..len], padding),
            Sent::Warning if is_tls13 => peer.alert(1, 90),
            Sent::Warning => peer.alert(1, 100),
            _ if !is_tls13 => {}
            Sent::Ticket(len) => {
                peer.ticket(&bytes[..len]);
                tickets.push(bytes[..len].to_vec());
            }
            Sent::Update(is_asking) => peer.key_update(is_asking),
            Sent::Pieces(count) => {
                let whole = [message(4, &bytes[..90]), message(4, b"two")].concat();
                for piece in whole.chunks(whole.len().div_ceil(count)) {
                    peer.record(ContentType::Handshake, piece, 3);
                }
                tickets.extend([bytes[..90].to_vec(), b"two".to_vec()]);
            }
        }
    }
    tickets
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn records_of_any_size_cut_anywhere_fill_slabs_of_any_size(
        all in prop::collection::vec(sent(), 1..40),
        suite in 0..6_usize,
        cuts in prop::collection::vec(prop_oneof![1..40_usize, 1..40_000_usize, Just(1 << 20)], 1..20),
        slabs in prop::collection::vec(prop_oneof![0..100_usize, 0..100_000_usize, Just(4096)], 1..8),
        most in prop_oneof![1 => 1..100_usize, 2 => 1..50_000_usize, 3 => Just(usize::MAX)],
        foreign in 0..50_usize,
    ) {
        let suite = suites()[suite];
        let mut peer = Peer::new(suite);
        let is_tls13 = suite.form == TLS13.form;
        let tickets = play(&mut peer, &all, is_tls13);
        peer.alert(1, 0);
        let holds: usize = slabs.iter().sum();
        let mut slabs = slabs;
        // Room enough, with nothing to spare and with more than that.
        let foreign = foreign.min(holds);
        if peer.payload.len() + foreign > holds {
            slabs.push(peer.payload.len() + foreign - holds);
        }
        let mut reader = Reader::new(suite, &slabs, foreign);
        reader.most = most;
        let mut cuts = cuts.into_iter().cycle();
        reader.pump(&peer.wire, || cuts.next().unwrap_or(1)).unwrap();
        prop_assert_eq!(reader.read(), peer.payload);
        if reader.inbound.is_closed() {
            prop_assert_eq!(&*reader.tickets.lock(), &tickets);
        }
    }
}

/// A little of everything, about 1600 bytes.
fn medley(peer: &mut Peer, is_tls13: bool) {
    let all = [
        Sent::Data {
            len: 300,
            padding: 0,
        },
        Sent::Data { len: 1, padding: 0 },
        Sent::Data { len: 0, padding: 7 },
        Sent::Ticket(60),
        Sent::Data {
            len: 40,
            padding: 90,
        },
        Sent::Update(true),
        Sent::Data {
            len: 200,
            padding: 0,
        },
        Sent::Pieces(3),
        Sent::Data { len: 2, padding: 1 },
    ];
    play(peer, &all, is_tls13);
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    for suite in suites() {
        let mut peer = Peer::new(suite);
        medley(&mut peer, suite.form == TLS13.form);
        let len = peer.payload.len();
        for at in 1..peer.wire.len() {
            let mut reader = Reader::new(suite, &[len, 20], 20);
            let mut cuts = [at].into_iter();
            reader
                .pump(&peer.wire, || cuts.next().unwrap_or(usize::MAX))
                .unwrap();
            assert_eq!(reader.read(), peer.payload, "cut at {at}");
        }
        let mut reader = Reader::new(suite, &[len, 20], 20);
        reader.pump(&peer.wire, || 1).unwrap();
        assert_eq!(reader.read(), peer.payload);
    }
}

#[test]
fn heads_are_taken_byte_by_byte_and_the_rest_goes_to_the_slab() {
    for suite in suites() {
        let mut peer = Peer::new(suite);
        medley(&mut peer, suite.form == TLS13.form);
        let all = peer.payload.clone();
        for head in 0..all.len() {
            let mut reader = Reader::new(suite, &[all.len() - head, 9], 9);
            assert_eq!(reader.feed_head(&peer.wire), peer.wire.len());
            let mut bytes = vec![0; head];
            for byte in bytes.chunks_mut(1) {
                assert_eq!(reader.inbound.take(byte).unwrap(), 1);
            }
            reader.pump(&[], || 1).unwrap();
            assert_eq!([bytes, reader.read()].concat(), all);
        }
    }
}

#[test]
fn a_range_of_full_records_is_copied_only_at_its_ends() {
    let body = noise(8 << 20);
    for suite in suites() {
        let mut peer = Peer::new(suite);
        let (first, rest) = body.split_at(FULL - 400);
        peer.data(&[&noise(400), first].concat(), 0);
        for record in rest.chunks(FULL) {
            peer.data(record, 0);
        }
        let mut reader = Reader::new(suite, &[body.len(), 1 << 20], 1 << 20);
        let mut wire = peer.wire.as_slice();
        let mut head = [0; 400];
        while reader.inbound.take(&mut head).unwrap() == 0 {
            let len = reader.feed_head(wire);
            wire = &wire[len..];
        }
        reader.pump(wire, || usize::MAX).unwrap();
        assert_eq!(reader.read(), body);
        // The rest of the first record, and the last record.
        let copied = reader.copied();
        assert!(copied <= 2 * (1 << 14), "{suite:?}: {copied}");
        assert!(
            copied > 0,
            "the head's record cannot have been opened in place"
        );
    }
}

#[test]
fn short_records_between_full_ones_cost_no_copies_but_at_the_ends_of_slabs() {
    const SLABS: usize = 8;
    let pairs = noise(SLABS << 20);
    for suite in suites() {
        for short in [1, 200, 8192, FULL - 1] {
            let mut peer = Peer::new(suite);
            for pair in pairs.chunks(short + FULL) {
                let (first, second) = pair.split_at(pair.len().min(short));
                peer.data(first, 0);
                peer.data(second, 0);
            }
            let mut reader = Reader::new(suite, &[1 << 20; SLABS], 0);
            reader.pump(&peer.wire, || usize::MAX).unwrap();
            assert_eq!(reader.read(), pairs);
            let copied = reader.copied();
            let most = SLABS as u64 * 2 * RECORD_MAX as u64;
            assert!(copied <= most, "{suite:?}, {short}: {copied}");
        }
    }
}

#[test]
fn a_record_is_copied_only_where_its_tag_has_no_room() {
    let tables = suites().map(|suite| [(suite, 1000, 1000), (suite, 1000 + RECORD_MAX, 0)]);
    for (suite, room, copied) in tables.into_iter().flatten() {
        let mut peer = Peer::new(suite);
        peer.data(&noise(1000), 0);
        let mut reader = Reader::new(suite, &[room], 0);
        reader.pump(&peer.wire, || usize::MAX).unwrap();
        assert_eq!(reader.read(), peer.payload);
        assert_eq!(reader.copied(), copied);
    }
}

#[test]
fn a_short_body_behind_its_head_is_copied_once() {
    for suite in suites() {
        let mut peer = Peer::new(suite);
        peer.data(&noise(500), 0);
        let head = peer.wire.len();
        peer.data(&noise(8192), 0);
        let mut reader = Reader::new(suite, &[8192], 0);
        assert_eq!(reader.feed_head(&peer.wire[..head]), head);
        assert_eq!(reader.inbound.take(&mut [0; 500]).unwrap(), 500);
        reader.pump(&peer.wire[head..], || usize::MAX).unwrap();
        assert_eq!(reader.read(), noise(8192));
        assert_eq!(reader.copied(), 8192);
    }
}

#[test]
fn the_buffer_is_handed_on_while_nothing_is_in_it() {
    let mut peer = Peer::new(TLS13);
    peer.data(b"one", 0);
    let whole = peer.wire.len();
    peer.data(b"two", 0);
    let mut reader = Reader::new(TLS13, &[6, 1], 1);
    reader.pump(&peer.wire[..whole + 3], || usize::MAX).unwrap();
    assert!(!reader.inbound.is_empty());
    reader.inbound.release();
    reader.pump(&peer.wire[whole + 3..], || 1).unwrap();
    assert!(reader.inbound.is_empty());
    reader.inbound.release();
    assert_eq!(reader.read(), b"onetwo");
}

#[test]
fn what_comes_while_idle_is_taken_and_payload_is_noticed() {
    let settle = |play: &dyn Fn(&mut Peer)| {
        let mut peer = Peer::new(TLS13);
        play(&mut peer);
        let mut reader = Reader::new(TLS13, &[1], 0);
        assert_eq!(reader.feed_head(&peer.wire), peer.wire.len());
        reader.inbound.settle().ok()
    };
    assert_eq!(settle(&|_| {}), Some(true));
    assert_eq!(settle(&|peer| peer.ticket(b"kept")), Some(true));
    assert_eq!(settle(&|peer| peer.key_update(true)), Some(true));
    assert_eq!(settle(&|peer| peer.data(b"", 5)), Some(true));
    assert_eq!(settle(&|peer| peer.data(b"x", 0)), Some(false));
    assert_eq!(settle(&|peer| peer.alert(1, 0)), Some(false));
    assert_eq!(settle(&|peer| peer.alert(2, 40)), None);
    // The beginning of a record: something is on its way that nobody asked for.
    let cut = settle(&|peer| {
        peer.ticket(b"kept");
        peer.wire.pop();
    });
    assert_eq!(cut, Some(false));
}
