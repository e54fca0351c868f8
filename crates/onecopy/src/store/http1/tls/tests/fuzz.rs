//! Damage of every kind to what comes in: no panic, nothing outside of the gap, and never a byte that was not sent.
//!
//! Bounded to [`ROUNDS`], or as [`rounds`] is told. The seed of a round that fails is in its message.

use std::io::{Read, Write};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustls::ContentType;
use tokio::time::timeout;

use super::peer::{Peer, Reader, TLS13, message, suites};
use super::sockets::{PATIENCE, SUITES, connect, connector, serve, server_config};
use crate::fuzzing::rounds;

const ROUNDS: u64 = 1500;

/// Records of all kinds, some of them against the rules; what stands in order before those is in `payload`.
fn play(random: &mut ChaCha8Rng, peer: &mut Peer, is_tls13: bool) {
    let mut bytes = [0xe1; 1 << 14];
    random.fill(&mut bytes[..400]);
    for _ in 0..random.random_range(1..12) {
        let len = random.random_range(0..400_usize);
        let padding = random.random_range(0..40);
        match random.random_range(0..14) {
            0 => {
                random.fill(&mut bytes[..]);
                peer.data(&bytes, 0);
            }
            1 => peer.data(b"", padding),
            2 if is_tls13 => peer.ticket(&bytes[..len]),
            3 if is_tls13 => peer.key_update(random.random()),
            4 => peer.alert(random.random(), random.random()),
            5 => {
                let kind = [20, 21, 22, 24, 25][random.random_range(0..5_usize)];
                peer.record(ContentType::from(kind), &bytes[..len], padding);
            }
            6 => {
                let whole = message(random.random(), &bytes[..len]);
                let cut = random.random_range(0..=whole.len());
                peer.record(ContentType::Handshake, &whole[..cut], padding);
            }
            7 if is_tls13 => {
                let mut inner = vec![0; len + 1];
                random.fill(inner.as_mut_slice());
                // Payload is only what is noted as such.
                if inner.iter().rfind(|byte| **byte != 0) != Some(&23) {
                    peer.inner(&inner);
                }
            }
            _ => peer.data(&bytes[..len], padding),
        }
    }
}

/// Damages the bytes of a wire: bits, bytes, pieces lost, doubled, moved and made up.
fn damage(random: &mut ChaCha8Rng, wire: &mut Vec<u8>) {
    for _ in 0..random.random_range(0..4) {
        if wire.is_empty() {
            return;
        }
        let at = random.random_range(0..wire.len());
        let end = random.random_range(at..=wire.len().min(at + 600));
        match random.random_range(0..7) {
            0 => wire[at] ^= 1 << random.random_range(0..8),
            1 => wire[at] = random.random(),
            2 => drop(wire.drain(at..end)),
            3 => wire.truncate(at),
            4 => {
                let piece = wire[at..end].to_vec();
                let to = random.random_range(0..=wire.len());
                wire.splice(to..to, piece);
            }
            5 => random.fill(&mut wire[at..end]),
            _ => {
                let len = random.random_range(0..30_u8);
                let head = [random.random_range(19..25), 3, 3, random.random(), len];
                wire.splice(at..at, head);
            }
        }
    }
}

#[test]
fn fuzz_records() {
    rounds(ROUNDS, |seed| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let suite = suites()[random.random_range(0..6)];
        let mut peer = Peer::new(suite);
        play(&mut random, &mut peer, suite.form == TLS13.form);
        let mut wire = peer.wire.clone();
        damage(&mut random, &mut wire);
        let lens: Vec<usize> = (0..random.random_range(1..4))
            .map(|_| random.random_range(0..40_000))
            .collect();
        let foreign = random.random_range(0..=lens.iter().sum());
        let mut reader = Reader::new(suite, &lens, foreign);
        let longest = random.random_range(1..60_000);
        let result = reader.pump(&wire, || random.random_range(1..=longest));
        let read = reader.read();
        // Whatever was done to the records: what was read are bytes that were sent, from the first on.
        assert!(
            peer.payload.starts_with(&read),
            "seed {seed}: {} bytes were read that were not sent, and {result:?}",
            read.len()
        );
    });
}

/// Damage to what a server says during the handshake.
#[tokio::test]
async fn fuzz_handshakes() {
    let runtime = tokio::runtime::Handle::current();
    let work = move || {
        rounds(60, |seed| {
            let (address, server) = serve(server_config(), 1, move |mut served| {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                while !served.tls.wants_write() {
                    let read = served.tls.read_tls(&mut served.socket);
                    if !matches!(read, Ok(len) if len > 0) {
                        return;
                    }
                    served.tls.process_new_packets().unwrap();
                }
                let mut sealed = served.sealed();
                damage(&mut random, &mut sealed);
                // The other side may have gone by now.
                drop(served.socket.write_all(&sealed));
                drop(served.socket.shutdown(std::net::Shutdown::Write));
                while matches!(served.socket.read(&mut [0; 4096]), Ok(len) if len > 0) {}
            });
            let suite = SUITES[usize::try_from(seed).unwrap_or(0) % SUITES.len()];
            runtime.block_on(async {
                let connector = connector(Some(suite));
                if let Ok(mut stream) = connect(&connector, address).await {
                    let mut bytes = [0; 9];
                    let read = stream.read(&mut bytes);
                    assert!(timeout(PATIENCE, read).await.unwrap().is_err(), "{seed}");
                }
            });
            server.join().unwrap();
        });
    };
    tokio::task::spawn_blocking(work).await.unwrap();
}
