//! Record buffers: small, few, and handed on while they are still in the cache.

use crate::sync::{Arc, Mutex};

/// Ciphertext received at once: fifteen full records, which stay in a core's own cache between the `recv` that brings
/// them and the opening. Measured: buffers of 64 and 128 KiB cost a fifth more CPU, one of 512 KiB no less.
pub(super) const SCRATCH_LEN: usize = 256 << 10;

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
