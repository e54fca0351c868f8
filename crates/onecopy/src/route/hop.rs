//! THE table of hops. Whatever moves payload bytes is one of these, and nothing else moves any.

use serde::Serialize;

use super::Place;

/// Who carries the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mover {
    /// A CPU core, load by load and store by store.
    Cpu,
    /// A DMA engine: no core touches the bytes.
    Dma,
}

/// In whose time a CPU copy is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Space {
    /// Inside a system call.
    Kernel,
    /// In this process's own code, or a library's.
    User,
}

/// Whether the bytes come out as they went in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The same bytes at another place. Counts towards copies per byte.
    Copy,
    /// Other bytes: decrypted, inflated, decoded. Listed, and no copy.
    Transform,
}

/// What is fixed about a hop.
#[derive(Debug, Clone, Copy)]
pub struct HopSpec {
    /// The name in JSON and in the path map.
    pub name: &'static str,
    /// Where the bytes come from.
    pub from: Place,
    /// Where they go.
    pub to: Place,
    /// Who carries them.
    pub by: Mover,
    /// In whose time.
    pub space: Space,
    /// Copy or transform.
    pub kind: Kind,
}

macro_rules! hops {
    ($($(#[$doc:meta])* $variant:ident = $name:literal: $from:ident -> $to:ident, $by:ident, $space:ident, $kind:ident;)*) => {
        /// One move of payload bytes from a place to a place.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Hop { $($(#[$doc])* $variant,)* }

        impl Hop {
            /// Every hop, in the order in which bytes meet them.
            pub const ALL: &'static [Hop] = &[$(Hop::$variant,)*];

            /// What is fixed about this hop.
            #[must_use]
            pub const fn spec(self) -> HopSpec {
                match self {
                    $(Hop::$variant => HopSpec {
                        name: $name, from: Place::$from, to: Place::$to,
                        by: Mover::$by, space: Space::$space, kind: Kind::$kind,
                    },)*
                }
            }
        }
    };
}

hops! {
    /// `recv` of a plain-HTTP body, straight into its final slab.
    Recv = "recv": Socket -> Pinned, Cpu, Kernel, Copy;
    /// Body bytes that the read of a response head brought along.
    HeadRest = "head_rest": Scratch -> Pinned, Cpu, User, Copy;
    /// `recv` of TLS records into their slab, a few bytes ahead of where their content goes.
    TlsRecv = "tls_recv": Socket -> Pinned, Cpu, Kernel, Copy;
    /// Decryption of TLS records to their place in the same slab, while the core's cache holds them.
    TlsOpen = "tls_open": Pinned -> Pinned, Cpu, User, Transform;
    /// Bytes of TLS records that do not fit where they belong (at the end of a range or slab, or behind a head) and come by way
    /// of the record buffer; and the beginning of a record, moved to where all of it fits.
    TlsCopy = "tls_copy": Scratch -> Pinned, Cpu, User, Copy;
    /// `pread` of a local file through the page cache.
    Read = "read": PageCache -> Pinned, Cpu, Kernel, Copy;
    /// `pread` of a local file past the page cache (O_DIRECT): the disk's controller moves the bytes.
    ReadDirect = "read_direct": Disk -> Pinned, Dma, Kernel, Copy;
    /// `pwrite` of a local file into the page cache.
    Write = "write": Pinned -> PageCache, Cpu, Kernel, Copy;
    /// `pwrite` of a local file past the page cache (O_DIRECT).
    WriteDirect = "write_direct": Pinned -> Disk, Dma, Kernel, Copy;
    /// A part of a piece that a cache holds: it is read whole, to be believed, beside where its part belongs.
    CachePart = "cache_part": Scratch -> Pinned, Cpu, User, Copy;
    /// Encryption of a request body, out of its slab into a buffer of some TLS records that stays in the cache.
    TlsSeal = "tls_seal": Pinned -> Scratch, Cpu, User, Transform;
    /// A request body out of its slab into the socket; over TLS, out of the buffer that it was sealed into.
    Send = "send": Pinned -> Socket, Cpu, Kernel, Copy;
    /// A member that lies in two slabs, put together.
    Straddle = "straddle": Pinned -> Heap, Cpu, User, Copy;
    /// Decompression of a shard (gzip, zstd).
    Inflate = "inflate": Pinned -> Heap, Cpu, User, Transform;
    /// A sample that waits until another one shows which form its batch has; only where such samples may be left out.
    Hold = "hold": Pinned -> Heap, Cpu, User, Copy;
    /// A picture or number decoded from its member straight into the batch.
    Decode = "decode": Pinned -> Batch, Cpu, User, Transform;
    /// An array or raw bytes laid into the batch as they are.
    Gather = "gather": Pinned -> Batch, Cpu, User, Copy;
    /// A decoded sample moved within a batch, because one before it was skipped.
    Close = "close_gap": Batch -> Batch, Cpu, User, Copy;
    /// Bytes, text and JSON made into objects of the caller's language. Tensors are not.
    ToPython = "to_python": Batch -> Heap, Cpu, User, Copy;
}

impl Hop {
    /// The position in [`Hop::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_indices_follow_the_table() {
        for (index, hop) in Hop::ALL.iter().enumerate() {
            assert_eq!(hop.index(), index);
            assert!(
                Hop::ALL
                    .iter()
                    .filter(|other| other.spec().name == hop.spec().name)
                    .count()
                    == 1
            );
        }
    }
}
