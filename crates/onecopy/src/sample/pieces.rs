//! Where the bytes of a shard come from.

use crate::buffer::Slice;
use crate::error::Result;

/// The content of a shard in order, in pieces of any size. Every iterator over slices is one.
pub trait Pieces {
    /// Whether the content of members is wanted. Where it is not, members are passed over, and their fields are empty: for
    /// whoever wants to know what there is and where it lies.
    const HAS_CONTENT: bool = true;

    /// The next piece; none at the end.
    fn next_piece(&mut self) -> Option<Result<Slice>>;

    /// Passes over up to `len_bytes` of what comes next without reading it, and says over how many.
    fn pass_over(&mut self, len_bytes: u64) -> u64 {
        let _all_is_read = len_bytes;
        0
    }
}

impl<I: Iterator<Item = Result<Slice>>> Pieces for I {
    fn next_piece(&mut self) -> Option<Result<Slice>> {
        self.next()
    }
}
