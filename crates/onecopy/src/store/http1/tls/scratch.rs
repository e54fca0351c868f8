//! Record buffers: small, few, and handed on while they are still in the cache.

use std::ops::Range;

use crate::buffer::copy;
use crate::ledger::OpenHop;
use crate::sync::{Arc, Mutex};

/// Room for the longest message of a handshake that rustls takes (64 KiB) and what comes with it. Of what follows a handshake it
/// holds one record at a time, and a few small ones.
pub(super) const SCRATCH_LEN: usize = 128 << 10;

/// Buffers kept for whoever comes next. A connection holds one only while it has bytes in it.
const KEPT_MAX: usize = 64;

/// The buffers of one client.
#[derive(Debug, Default, Clone)]
pub(super) struct Scratches {
    /// Guards the buffers not in use, the last used last: it is the one that a core's cache may still hold. Never held
    /// over an await.
    free: Arc<Mutex<Vec<Box<[u8]>>>>,
}

impl Scratches {
    pub(super) fn lease(&self) -> Box<[u8]> {
        let kept = self.free.lock().pop();
        kept.unwrap_or_else(|| vec![0; SCRATCH_LEN].into_boxed_slice())
    }

    pub(super) fn give_back(&self, scratch: Box<[u8]>) {
        let mut free = self.free.lock();
        if free.len() < KEPT_MAX {
            free.push(scratch);
        }
    }
}

/// Moves the beginning of a record to the front of its buffer.
///
/// # Copies
///
/// One in user space per byte, counted on `hop` where there is one.
pub(super) fn to_front(hop: Option<&OpenHop>, scratch: &mut [u8], sealed: Range<usize>) {
    if sealed.is_empty() || sealed.start == 0 {
        return;
    }
    match hop {
        Some(hop) => copy::shift(hop, scratch, sealed, 0),
        #[expect(
            clippy::disallowed_methods,
            reason = "part of a head or a small answer, not payload"
        )]
        None => scratch.copy_within(sealed, 0),
    }
}
