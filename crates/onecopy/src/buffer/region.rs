//! Anonymous memory from the kernel: page-aligned, zeroed by it, given back on drop.
#![expect(unsafe_code, reason = "mmap, munmap")]

use std::io;
use std::ptr::NonNull;

use crate::error::{Error, ErrorKind, Result};
use crate::size::whole_pages;

/// A mapping of its own.
///
/// Huge pages are not asked for: on memory that is in use the kernel has to move pages about to find them, which cost a
/// 192 MiB pool 0.5 CPU seconds at start, where 4 KiB pages cost 0.1; after that, receiving was equally cheap on both.
#[derive(Debug)]
pub(super) struct Region {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a region is plain memory that belongs to whoever owns the value; no thread is special to it.
unsafe impl Send for Region {}
// SAFETY: a shared region hands out its address only; who reads or writes there is ordered by `run.rs`.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `len` bytes, rounded up to whole pages.
    ///
    /// # Errors
    ///
    /// `LimitReached` where the kernel has no address space left for it.
    pub(super) fn map(len: usize) -> Result<Self> {
        let len = whole_pages(len.max(1));
        // SAFETY: a new private anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        let refused = start == libc::MAP_FAILED;
        let Some(start) = NonNull::new(start.cast::<u8>()).filter(|_| !refused) else {
            let error = io::Error::last_os_error();
            return Err(Error::new(
                ErrorKind::LimitReached,
                "map memory of",
                format!("{len} bytes"),
                error.to_string(),
            )
            .with_help("lower `memory`, or raise the address space limit (ulimit -v)")
            .with_source(error));
        };
        Ok(Self { start, len })
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The address of byte `offset`, which lies inside.
    pub(super) fn offset(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.len, "offset within the region");
        // SAFETY: checked above: the result lies in this mapping.
        unsafe { self.start.add(offset) }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length and is unmapped only here; no run outlives its region.
        let _error = unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
