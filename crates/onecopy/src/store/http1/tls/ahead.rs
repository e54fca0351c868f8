//! Sealed bytes that lie in the slab itself, ahead of where their content goes.

use std::ops::Range;

use rustls::AlertDescription;

use super::breach::Breach;

/// Received at once at most: fifteen full records, which a core's own cache holds until they are opened.
const BURST: usize = 256 << 10;

/// What lies in the slab behind the place of the next payload: `[lead, lead + held)`, counted from that place.
///
/// ```text
///  slab   | payload | left over | sealed: whole records, and the beginning of one | room
///         place --^  ..lead..   ^------------------- held -------------------^
/// ```
#[derive(Debug, Default)]
pub(super) struct Ahead {
    lead: usize,
    held: usize,
    /// The address of the place; it is only compared. Whoever goes on elsewhere has lost what lies here.
    place: usize,
}

impl Ahead {
    pub(super) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Where the sealed bytes lie in `front`, the memory from the next payload's place on.
    pub(super) fn sealed(&self, front: &[u8]) -> Result<Range<usize>, Breach> {
        if self.held == 0 {
            return Ok(0..0);
        }
        let sealed = self.lead..self.lead + self.held;
        let is_here = front.as_ptr().addr() == self.place && sealed.end <= front.len();
        if !is_here {
            return Err(lost());
        }
        Ok(sealed)
    }

    /// Where to receive in `front`, if records of `record_len` fit there. It ends where a record should end if all are of that
    /// length.
    pub(super) fn room(&mut self, front: &[u8], record_len: usize) -> Option<Range<usize>> {
        if self.held == 0 {
            *self = Self {
                place: front.as_ptr().addr(),
                ..Self::default()
            };
        }
        let fit = front.len().saturating_sub(self.lead) / record_len;
        let at_once = BURST / record_len;
        let (start, end) = (
            self.lead + self.held,
            self.lead + fit.min(at_once) * record_len,
        );
        if start < end {
            return Some(start..end);
        }
        // The beginning of a header, of a record that may be short enough.
        (self.held > 0 && start < front.len()).then_some(start..front.len())
    }

    pub(super) fn received(&mut self, len: usize) {
        self.held += len;
    }

    /// Notes that the first record was opened, and that `payload` bytes of it stay.
    pub(super) fn opened(&mut self, record_len: usize, payload: usize) {
        self.lead += record_len - payload;
        self.held -= record_len;
        self.place += payload;
    }

    /// Notes that `len` sealed bytes begin at the place itself, which is the front of `front`.
    pub(super) fn begins(&mut self, front: &[u8], len: usize) {
        *self = Self {
            lead: 0,
            held: len,
            place: front.as_ptr().addr(),
        };
    }

    /// Notes that nothing lies there any more.
    pub(super) fn clear(&mut self) {
        self.held = 0;
    }
}

/// Whoever reads goes on in other memory than that in which sealed bytes lie.
pub(super) fn lost() -> Breach {
    Breach::new(
        AlertDescription::InternalError,
        "what came in was left in memory that is gone",
    )
}
