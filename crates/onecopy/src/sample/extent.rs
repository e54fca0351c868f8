//! Parts of a shard.

/// Which bytes of a shard are read: those between two members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where the first member begins.
    pub start: u64,
    /// Where the last one ends, padding included; none reads on to the end of the archive.
    pub end: Option<u64>,
}

impl Extent {
    /// All of it.
    pub const WHOLE: Self = Self {
        start: 0,
        end: None,
    };
}
