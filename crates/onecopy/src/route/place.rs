//! Where payload bytes can be.

use serde::Serialize;

/// A kind of memory or medium that payload bytes pass through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Place {
    /// The receive queue of a TCP socket, in the kernel.
    Socket,
    /// The kernel's page cache.
    PageCache,
    /// A local disk.
    Disk,
    /// A small buffer that is reused for every record or head, and stays in the CPU's cache.
    Scratch,
    /// A slab of the pool: page-aligned, recycled, locked in memory where the limits allow.
    Pinned,
    /// Memory of a batch: page-aligned, recycled, locked in memory where the limits allow.
    Batch,
    /// Ordinary memory.
    Heap,
}

impl Place {
    /// The name used in JSON and in the path map.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::PageCache => "page_cache",
            Self::Disk => "disk",
            Self::Scratch => "scratch",
            Self::Pinned => "pinned",
            Self::Batch => "batch",
            Self::Heap => "heap",
        }
    }
}
