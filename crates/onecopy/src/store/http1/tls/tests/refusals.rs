//! What is not allowed ends the connection, and nothing of it is taken for payload.

use rustls::{AlertDescription, ContentType};

use super::peer::{Peer, Reader, Suite, TLS12, TLS13, message, noise, suites};
use crate::buffer::Slab;
use crate::store::http1::tls::breach::Breach;
use crate::store::http1::tls::record::RECORD_MAX;

/// Plays one record of payload and then `play`; gives what is said about it.
fn refused(suite: Suite, play: impl FnOnce(&mut Peer)) -> Breach {
    let mut peer = Peer::new(suite);
    peer.data(b"good", 0);
    play(&mut peer);
    // Whatever follows is not read.
    peer.data(b"late", 0);
    let mut reader = Reader::new(suite, &[64, 64], 64);
    let breach = reader.pump(&peer.wire, || usize::MAX).unwrap_err();
    assert_eq!(reader.read(), b"good", "{breach}");
    breach
}

#[test]
fn what_the_protocol_forbids_is_refused_by_name() {
    use AlertDescription as Alert;
    type Play = fn(&mut Peer);
    // Version, what is sent, the alert that answers it, what the error says.
    let table: &[(Suite, Play, Option<Alert>, &str)] = &[
        (
            TLS13,
            |peer| peer.inner(&[0; 20]),
            Some(Alert::UnexpectedMessage),
            "nothing but padding",
        ),
        (
            TLS13,
            |peer| peer.inner(&[1, 20]),
            Some(Alert::UnexpectedMessage),
            "type ChangeCipherSpec",
        ),
        (
            TLS13,
            |peer| peer.inner(&[1, 99]),
            Some(Alert::UnexpectedMessage),
            "0x63",
        ),
        (
            TLS13,
            |peer| peer.wire.extend([20, 3, 3, 0, 1, 1]),
            Some(Alert::UnexpectedMessage),
            "type ChangeCipherSpec",
        ),
        (
            TLS13,
            |peer| peer.wire.extend([21, 3, 3, 0, 2, 2, 40]),
            Some(Alert::UnexpectedMessage),
            "type Alert",
        ),
        (
            TLS13,
            |peer| peer.wire.extend([23, 3, 3, 0x40, 0x12]),
            Some(Alert::RecordOverflow),
            "16402 bytes, where 16401 are allowed",
        ),
        (
            TLS12,
            |peer| peer.wire.extend([23, 3, 3, 0x40, 0x19]),
            Some(Alert::RecordOverflow),
            "16409 bytes, where 16408 are allowed",
        ),
        (
            TLS13,
            |peer| peer.wire.extend([23, 3, 3, 0, 16]),
            Some(Alert::DecodeError),
            "too short",
        ),
        (
            TLS13,
            |peer| peer.wire.extend([23, 3, 1, 0, 40]),
            Some(Alert::ProtocolVersion),
            "version 3.1",
        ),
        (
            TLS13,
            |peer| peer.wire.extend(b"HTTP/1.1 400 Bad Request"),
            Some(Alert::UnexpectedMessage),
            "0x48",
        ),
        (
            TLS13,
            |peer| {
                peer.wire
                    .extend([&[23, 3, 3, 0, 40][..], &[7; 40]].concat())
            },
            Some(Alert::BadRecordMac),
            "its tag does not match",
        ),
        (TLS13, |peer| peer.alert(2, 40), None, "HandshakeFailure"),
        (TLS13, |peer| peer.alert(1, 40), None, "HandshakeFailure"),
        (TLS12, |peer| peer.alert(2, 51), None, "DecryptError"),
        (TLS13, |peer| peer.alert(2, 77), None, "0x4d"),
        (
            TLS13,
            |peer| peer.record(ContentType::Alert, &[1, 0, 1, 0], 0),
            Some(Alert::DecodeError),
            "an alert of 4 bytes",
        ),
        (
            TLS13,
            |peer| peer.record(ContentType::Alert, &[], 0),
            Some(Alert::DecodeError),
            "an alert of 0 bytes",
        ),
        (
            TLS12,
            |peer| peer.record(ContentType::Handshake, &message(0, b""), 0),
            Some(Alert::UnexpectedMessage),
            "negotiate anew",
        ),
        (
            TLS12,
            |peer| peer.ticket(b"late"),
            Some(Alert::UnexpectedMessage),
            "negotiate anew",
        ),
        (
            TLS13,
            |peer| peer.record(ContentType::Handshake, &[], 0),
            Some(Alert::UnexpectedMessage),
            "without content",
        ),
        (
            TLS13,
            |peer| {
                peer.record(
                    ContentType::Handshake,
                    &message(13, b"certificate request"),
                    0,
                )
            },
            Some(Alert::UnexpectedMessage),
            "CertificateRequest",
        ),
        (
            TLS13,
            |peer| peer.record(ContentType::Handshake, &message(24, &[2]), 0),
            Some(Alert::IllegalParameter),
            "key update",
        ),
        (
            TLS13,
            |peer| peer.record(ContentType::Handshake, &message(24, &[0, 0]), 0),
            Some(Alert::DecodeError),
            "key update of 2 bytes",
        ),
        (
            TLS13,
            |peer| {
                let two = [message(24, &[0]), message(4, b"ticket")].concat();
                peer.record(ContentType::Handshake, &two, 0);
            },
            Some(Alert::UnexpectedMessage),
            "across a change of keys",
        ),
        (
            TLS13,
            |peer| peer.record(ContentType::Handshake, &[4, 1, 0, 0], 0),
            Some(Alert::DecodeError),
            "65536 bytes, where 65535 are allowed",
        ),
        (
            TLS13,
            |peer| peer.record(ContentType::Handshake, &message(4, b"ticket")[..5], 0),
            Some(Alert::UnexpectedMessage),
            "payload in the middle",
        ),
        (
            TLS13,
            |peer| {
                peer.record(ContentType::Handshake, &message(4, b"ticket")[..5], 0);
                peer.alert(1, 0);
            },
            Some(Alert::UnexpectedMessage),
            "type Alert",
        ),
        (
            TLS13,
            |peer| peer.ticket(b"bad"),
            Some(Alert::DecodeError),
            "a bad ticket",
        ),
    ];
    for (suite, play, alert, text) in table {
        let breach = refused(*suite, play);
        assert!(breach.to_string().contains(text), "{breach} for {text}");
        assert_eq!(breach.alert(), *alert, "{breach}");
    }
}

#[test]
fn too_many_records_without_payload_in_a_row_are_refused() {
    type Play = fn(&mut Peer);
    let plays: [Play; 4] = [
        |peer| peer.data(b"", 0),
        |peer| peer.ticket(b"t"),
        |peer| peer.key_update(true),
        |peer| peer.alert(1, 90),
    ];
    for play in plays {
        let mut peer = Peer::new(TLS13);
        for _ in 0..3 {
            // As many as are allowed, and one record of payload that sets the count back.
            (0..32).for_each(|_| play(&mut peer));
            peer.data(b"x", 0);
        }
        let mut reader = Reader::new(TLS13, &[16], 0);
        reader.pump(&peer.wire, || usize::MAX).unwrap();
        assert_eq!(reader.read(), b"xxx");
        let breach = refused(TLS13, |peer| (0..33).for_each(|_| play(peer)));
        assert!(breach.to_string().contains("32 records"), "{breach}");
    }
}

#[test]
fn a_goodbye_ends_the_stream_and_nothing_behind_it_is_read() {
    for (suite, level) in [(TLS13, 1), (TLS13, 2), (TLS12, 1)] {
        let mut peer = Peer::new(suite);
        peer.data(b"good", 0);
        peer.alert(level, 0);
        peer.data(b"late", 0);
        let mut reader = Reader::new(suite, &[64], 0);
        reader.pump(&peer.wire, || usize::MAX).unwrap();
        assert!(reader.inbound.is_closed());
        assert_eq!(reader.read(), b"good");
        assert_eq!(reader.inbound.take(&mut [0; 8]).unwrap(), 0);
    }
}

#[test]
fn no_changed_byte_is_taken_for_what_was_sent() {
    for suite in suites() {
        let mut peer = Peer::new(suite);
        for part in noise(300).chunks(100) {
            peer.data(part, 5);
        }
        for at in 0..peer.wire.len() {
            for bit in [1, 0x80] {
                let mut wire = peer.wire.clone();
                wire[at] ^= bit;
                let mut reader = Reader::new(suite, &[300, 9], 9);
                let result = reader.pump(&wire, || usize::MAX);
                let read = reader.read();
                // A longer length makes the reader wait for bytes that never come: no breach yet, and no payload.
                assert!(result.is_err() || read.len() < 300, "{suite:?}, byte {at}");
                assert_eq!(read, peer.payload[..read.len()], "{suite:?}, byte {at}");
                assert_eq!(read.len() % 100, 0);
            }
        }
    }
}

#[test]
fn records_out_of_order_are_refused() {
    for suite in suites() {
        let mut peer = Peer::new(suite);
        let mut records = Vec::new();
        for part in [b"one", b"two", b"six"] {
            peer.data(part, 0);
            records.push(std::mem::take(&mut peer.wire));
        }
        // Order, and how many of them are still good.
        let table: [(&[usize], usize); 5] = [
            (&[1, 0, 2], 0),
            (&[0, 2], 1),
            (&[0, 0], 1),
            (&[0, 1, 1], 2),
            (&[2], 0),
        ];
        for (order, good) in table {
            let wire: Vec<u8> = order.iter().flat_map(|at| records[*at].clone()).collect();
            let mut reader = Reader::new(suite, &[64], 0);
            let breach = reader.pump(&wire, || usize::MAX).unwrap_err();
            assert_eq!(breach.alert(), Some(AlertDescription::BadRecordMac));
            assert_eq!(reader.filled, 3 * good, "{order:?}");
        }
    }
}

#[test]
fn a_key_is_not_used_beyond_its_limit() {
    for suite in suites() {
        for used in [(7, 9), ((1 << 24) - 2, 1 << 24), (u64::MAX - 3, u64::MAX)] {
            let mut peer = Peer::limited(suite, used);
            peer.data(b"one", 0);
            peer.data(b"two", 0);
            let mut sealed = Vec::new();
            let mut reader = Reader::limited(suite, used, &[64], 0);
            assert!(reader.inbound.is_nearly_spent());
            reader.pump(&peer.wire, || usize::MAX).unwrap();
            assert_eq!(reader.read(), b"onetwo");
            // One more, by a server that does not keep the limit.
            let mut careless = Peer::limited(suite, (used.0 + 2, u64::MAX));
            if used.1 == u64::MAX {
                sealed.extend([23, 3, 3, 0, 40]);
                sealed.extend([0; 40]);
            } else {
                careless.data(b"six", 0);
                sealed = careless.wire;
            }
            let breach = reader.pump(&sealed, || usize::MAX).unwrap_err();
            assert!(breach.to_string().contains("limit"), "{breach}");
            assert_eq!(reader.read(), b"onetwo");
        }
        let fresh = Reader::limited(suite, (0, 1 << 24), &[1], 0);
        assert!(!fresh.inbound.is_nearly_spent());
    }
}

#[test]
fn a_sealer_stops_at_its_limit_too() {
    let mut peer = Peer::limited(TLS13, (0, 1));
    peer.data(b"one", 0);
    let mut out = Vec::new();
    let mut sealer = TLS13.sealer(0, (5, 5));
    assert!(sealer.is_nearly_spent());
    let kind = ContentType::ApplicationData;
    assert!(sealer.seal(kind, b"no", &mut out).is_err());
    assert!(out.is_empty());
}

/// Whoever goes on in other memory than that in which records wait has lost them.
#[test]
fn what_waits_in_a_slab_is_opened_there_or_not_at_all() {
    let mut peer = Peer::new(TLS13);
    peer.data(&noise(1000), 0);
    let begun = || {
        let mut reader = Reader::new(TLS13, &[RECORD_MAX], 0);
        reader.pump(&peer.wire[..900], || usize::MAX).unwrap();
        assert!(!reader.inbound.is_empty());
        reader
    };
    let mut same = begun();
    same.pump(&peer.wire[900..], || usize::MAX).unwrap();
    assert_eq!(same.read(), noise(1000));

    let mut elsewhere = begun();
    let _kept = std::mem::replace(&mut elsewhere.slabs, vec![Slab::heap(RECORD_MAX)]);
    let breach = elsewhere.pump(&peer.wire[900..], || usize::MAX);
    assert!(
        breach
            .unwrap_err()
            .to_string()
            .contains("memory that is gone")
    );

    assert!(begun().inbound.take(&mut [0; 9]).is_err());
    assert!(begun().inbound.settle().is_err());
}
