//! The other side of a connection whose keys are known: it sends what no well-behaved server would.

use std::ops::Range;

use rustls::{AlertDescription, ContentType};

use crate::buffer::Slab;
use crate::ledger::{Ledger, OpenHop};
use crate::route::Hop;
use crate::store::http1::gap::Gap;
use crate::store::http1::tls::breach::Breach;
use crate::store::http1::tls::inbound::Inbound;
use crate::store::http1::tls::key::{Cipher, Secret};
use crate::store::http1::tls::open::Opener;
use crate::store::http1::tls::record::Form;
use crate::store::http1::tls::scratch::{SCRATCH_LEN, Scratches};
use crate::store::http1::tls::seal::Sealer;
use crate::store::http1::tls::session::Session;
use crate::sync::{Arc, Mutex};

/// A cipher in one of the versions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Suite {
    pub(super) cipher: Cipher,
    pub(super) form: Form,
}

pub(super) fn suites() -> [Suite; 6] {
    let of = |cipher, form| Suite { cipher, form };
    [
        of(Cipher::Aes128Gcm, Form::Tls13),
        of(Cipher::Aes256Gcm, Form::Tls13),
        of(Cipher::Chacha20Poly1305, Form::Tls13),
        of(Cipher::Aes128Gcm, Form::Tls12Explicit),
        of(Cipher::Aes256Gcm, Form::Tls12Explicit),
        of(Cipher::Chacha20Poly1305, Form::Tls12Implicit),
    ]
}

pub(super) const TLS13: Suite = Suite {
    cipher: Cipher::Aes128Gcm,
    form: Form::Tls13,
};

pub(super) const TLS12: Suite = Suite {
    cipher: Cipher::Aes128Gcm,
    form: Form::Tls12Explicit,
};

impl Suite {
    /// Calls `with` with the key after `generation` updates, which protected so many records and may protect so many.
    fn with_key<T>(self, generation: u8, used: (u64, u64), with: fn(&Secret<'_>) -> T) -> T {
        let len = if self.cipher == Cipher::Aes128Gcm {
            16
        } else {
            32
        };
        with(&Secret {
            cipher: self.cipher,
            key: &[generation; 32][..len],
            iv: [generation ^ 0x5a; 12],
            form: self.form,
            used,
        })
    }

    fn opener(self, generation: u8, used: (u64, u64)) -> Opener {
        self.with_key(generation, used, Opener::new).unwrap()
    }

    pub(super) fn sealer(self, generation: u8, used: (u64, u64)) -> Sealer {
        self.with_key(generation, used, Sealer::new).unwrap()
    }
}

const UNLIMITED: (u64, u64) = (0, u64::MAX);

/// Keys that follow each other as both sides know, and the tickets that were kept.
pub(super) struct KnownKeys {
    suite: Suite,
    generation: u8,
    tickets: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Session for KnownKeys {
    fn next_to_open(&mut self) -> Result<Opener, Breach> {
        self.generation = self.generation.wrapping_add(1);
        Ok(self.suite.opener(self.generation, UNLIMITED))
    }

    fn next_to_seal(&mut self) -> Result<Sealer, Breach> {
        Err(Breach::new(
            AlertDescription::InternalError,
            "nothing is sent here",
        ))
    }

    fn keep_ticket(&mut self, payload: &[u8]) -> Result<(), Breach> {
        if payload == b"bad" {
            return Err(Breach::new(AlertDescription::DecodeError, "a bad ticket"));
        }
        self.tickets.lock().push(payload.into());
        Ok(())
    }
}

/// Seals records and counts them, as a server would.
pub(super) struct Peer {
    suite: Suite,
    sealer: Sealer,
    generation: u8,
    pub(super) wire: Vec<u8>,
    /// The payload among all that was sent.
    pub(super) payload: Vec<u8>,
}

impl Peer {
    pub(super) fn new(suite: Suite) -> Self {
        Self::limited(suite, UNLIMITED)
    }

    pub(super) fn limited(suite: Suite, used: (u64, u64)) -> Self {
        Self {
            suite,
            sealer: suite.sealer(0, used),
            generation: 0,
            wire: Vec::new(),
            payload: Vec::new(),
        }
    }

    pub(super) fn data(&mut self, content: &[u8], padding: usize) {
        self.record(ContentType::ApplicationData, content, padding);
        self.payload.extend(content);
    }

    /// A record of any type; the padding is left out where TLS 1.2 knows none.
    pub(super) fn record(&mut self, kind: ContentType, content: &[u8], padding: usize) {
        let mut extra = vec![u8::from(kind)];
        extra.resize(1 + padding, 0);
        self.sealer
            .seal_with(kind, content, &extra, &mut self.wire)
            .unwrap();
    }

    /// A TLS 1.3 record whose plaintext is `inner` as it stands.
    pub(super) fn inner(&mut self, inner: &[u8]) {
        let (last, content) = inner.split_last().unwrap();
        self.sealer
            .seal_with(
                ContentType::ApplicationData,
                content,
                &[*last],
                &mut self.wire,
            )
            .unwrap();
    }

    pub(super) fn ticket(&mut self, payload: &[u8]) {
        self.record(ContentType::Handshake, &message(4, payload), 0);
    }

    pub(super) fn key_update(&mut self, is_asking: bool) {
        self.record(ContentType::Handshake, &message(24, &[is_asking.into()]), 0);
        self.generation = self.generation.wrapping_add(1);
        self.sealer = self.suite.sealer(self.generation, UNLIMITED);
    }

    pub(super) fn alert(&mut self, level: u8, description: u8) {
        self.record(ContentType::Alert, &[level, description], 0);
    }
}

/// A handshake message.
pub(super) fn message(kind: u8, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[kind], &len[1..], payload].concat()
}

/// What stands in a slab where nothing was read to.
pub(super) const UNTOUCHED: u8 = 0xa5;

/// Our side, and the slabs that it reads to. Behind the gap is memory that is not its own.
pub(super) struct Reader {
    pub(super) inbound: Inbound,
    pub(super) tickets: Arc<Mutex<Vec<Vec<u8>>>>,
    pub(super) slabs: Vec<Slab>,
    pub(super) filled: usize,
    pub(super) end: usize,
    pub(super) ledger: Arc<Ledger>,
    pub(super) hop: OpenHop,
    /// The most that is asked for at once.
    pub(super) most: usize,
}

impl Reader {
    /// A reader to slabs of these lengths, of which the last `foreign` bytes are not to be touched.
    pub(super) fn new(suite: Suite, lens: &[usize], foreign: usize) -> Self {
        Self::limited(suite, UNLIMITED, lens, foreign)
    }

    pub(super) fn limited(suite: Suite, used: (u64, u64), lens: &[usize], foreign: usize) -> Self {
        let tickets = Arc::default();
        let session = KnownKeys {
            suite,
            generation: 0,
            tickets: Arc::clone(&tickets),
        };
        let scratch = vec![0; SCRATCH_LEN].into_boxed_slice();
        let inbound = Inbound::new(
            suite.opener(0, used),
            Box::new(session),
            Scratches::default(),
            scratch,
            0..0,
        );
        let mut slabs: Vec<Slab> = lens.iter().map(|len| Slab::heap(*len)).collect();
        for slab in &mut slabs {
            slab.fill(UNTOUCHED);
        }
        let ledger = Ledger::unread();
        let hop = ledger.hop(Hop::TlsCopy);
        Self {
            inbound,
            tickets,
            slabs,
            filled: 0,
            end: lens.iter().sum::<usize>() - foreign,
            ledger,
            hop,
            most: usize::MAX,
        }
    }

    /// Takes all of `wire`, at most `cut()` bytes at a time, until it is used up, or the slabs are full, or the other
    /// side has said goodbye. Says whether anything is wrong.
    pub(super) fn pump(
        &mut self,
        mut wire: &[u8],
        mut cut: impl FnMut() -> usize,
    ) -> Result<(), Breach> {
        loop {
            let mut gap = Gap::new(&mut self.slabs, self.filled, self.end);
            let len = self.inbound.open_into(&self.hop, &mut gap, self.most)?;
            assert_eq!(gap.filled(), self.filled + len);
            self.filled += len;
            if self.filled == self.end || self.inbound.is_closed() {
                return Ok(());
            }
            if len > 0 {
                continue;
            }
            if wire.is_empty() {
                return Ok(());
            }
            self.inbound.release();
            let space = self.inbound.space(&self.hop, &mut gap, self.most);
            assert!(!space.is_empty());
            let len = cut().clamp(1, space.len().min(wire.len()));
            let (now, later) = wire.split_at(len);
            space[..len].clone_from_slice(now);
            self.inbound.received(len);
            wire = later;
        }
    }

    /// Takes what `wire` begins with, as while heads are read, and says how much that was.
    pub(super) fn feed_head(&mut self, wire: &[u8]) -> usize {
        let space = self.inbound.space_for_head();
        let len = space.len().min(wire.len());
        space[..len].clone_from_slice(&wire[..len]);
        self.inbound.received(len);
        len
    }

    /// The bytes `range` of the slabs.
    pub(super) fn bytes(&self, range: Range<usize>) -> Vec<u8> {
        let slabs: Vec<&[u8]> = self.slabs.iter().map(|slab| &slab[..]).collect();
        slabs.concat()[range].to_vec()
    }

    /// What was read; nothing behind the gap may have been touched.
    pub(super) fn read(&self) -> Vec<u8> {
        let all = self.slabs.iter().map(|slab| slab.len()).sum();
        assert_eq!(self.bytes(self.end..all), vec![UNTOUCHED; all - self.end]);
        self.bytes(0..self.filled)
    }

    pub(super) fn copied(&self) -> u64 {
        let report = self.ledger.report();
        let hop = report.hops.iter().find(|hop| hop.hop == "tls_copy");
        hop.map_or(0, |hop| hop.bytes)
    }
}

/// Bytes of no pattern, the same every time.
pub(super) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        u8::try_from(state >> 24).unwrap_or_default()
    };
    (0..len).map(|_| next()).collect()
}
