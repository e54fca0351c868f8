//! Locking memory in RAM, so that a device can read it by DMA and the kernel never swaps it.
#![expect(unsafe_code, reason = "mlock, munlock")]

use std::fmt::Debug;
use std::io;
use std::ptr::NonNull;

/// A way to lock memory: mlock here, a driver's registration in `device`.
pub trait PageLock: Send + Sync + Debug {
    /// Locks `len` bytes from `start`, which is page-aligned and mapped.
    ///
    /// # Errors
    ///
    /// What the kernel or the driver said. The memory then stays usable, but is not locked.
    fn lock(&self, start: NonNull<u8>, len: usize) -> io::Result<()>;

    /// Undoes `lock`. Called once for each range that was locked, before it is unmapped.
    fn unlock(&self, start: NonNull<u8>, len: usize);
}

/// `mlock(2)`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mlock;

impl PageLock for Mlock {
    fn lock(&self, start: NonNull<u8>, len: usize) -> io::Result<()> {
        // SAFETY: mlock reads and writes no content, and answers with an error for a range that is not mapped.
        let code = unsafe { libc::mlock(start.as_ptr().cast(), len) };
        if code == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    fn unlock(&self, start: NonNull<u8>, len: usize) {
        // SAFETY: as for mlock; an error leaves the memory locked until it is unmapped, which follows.
        let _error = unsafe { libc::munlock(start.as_ptr().cast(), len) };
    }
}

/// Leaves memory as it is: for tests, and where locking is switched off.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLock;

impl PageLock for NoLock {
    fn lock(&self, _start: NonNull<u8>, _len: usize) -> io::Result<()> {
        Err(io::Error::other("page-locking is switched off"))
    }

    fn unlock(&self, _start: NonNull<u8>, _len: usize) {}
}
