//! Anonymous memory from the kernel: page-aligned, zeroed by it, given back on drop.
#![expect(unsafe_code, reason = "mmap, munmap, madvise")]

use std::io;
use std::ptr::NonNull;

use crate::error::{Error, ErrorKind, Result};
use crate::size::{MIB, whole_pages};

/// Huge pages are this large on x86-64; a region of at least that size asks for them. A first touch of 4 KiB pages
/// costs 0.65 CPU seconds per GB on the machine this was measured on, of 2 MiB pages a fraction of it.
const HUGE_PAGE: usize = 2 * MIB;

/// A mapping of its own.
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
    /// Maps `len` bytes, rounded up to whole pages (huge ones where that wastes little).
    ///
    /// # Errors
    ///
    /// `LimitReached` where the kernel has no address space left for it.
    pub(super) fn map(len: usize) -> Result<Self> {
        let len = if len >= HUGE_PAGE {
            len.next_multiple_of(HUGE_PAGE)
        } else {
            whole_pages(len.max(1))
        };
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
        let region = Self { start, len };
        if len >= HUGE_PAGE {
            region.ask_for_huge_pages();
        }
        Ok(region)
    }

    fn ask_for_huge_pages(&self) {
        // SAFETY: the range is exactly this mapping; the advice changes no content. A refusal costs speed only.
        let _refusal =
            unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, libc::MADV_HUGEPAGE) };
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
