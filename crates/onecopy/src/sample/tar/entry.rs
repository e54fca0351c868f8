//! Members as their headers tell of them.

/// A regular member whose content comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sample) struct Entry {
    /// Where its first header begins, extended ones included.
    pub(in crate::sample) offset: u64,
    /// The length of its content in bytes.
    pub(in crate::sample) size: u64,
}

/// A member whose content was passed over in place of being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sample) struct Passed {
    pub(in crate::sample) name: Vec<u8>,
    /// Where its content begins, in bytes of the (inflated) tar.
    pub(in crate::sample) offset: u64,
    /// The length of its content in bytes.
    pub(in crate::sample) size: u64,
}

impl Passed {
    pub(super) fn new(name: &[u8], offset: u64, size: u64) -> Self {
        Self {
            name: name.into(),
            offset,
            size,
        }
    }
}
