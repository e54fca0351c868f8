//! Records as they come in, opened in their slabs. Knows no socket: bytes are put into [`Inbound::space`].

use std::fmt::{self, Debug};
use std::ops::Range;

use rustls::ContentType;

use super::ahead::{Ahead, lost};
use super::breach::Breach;
use super::control::{Control, Outlook};
use super::open::{Opened, Opener};
use super::record::{HEADER_LEN, Header, RECORD_MAX};
use super::scratch::{Scratches, to_front};
use super::session::Session;
use crate::buffer::copy;
use crate::ledger::OpenHop;
use crate::store::http1::gap::Gap;

/// Received at once while no slab is at hand, where a record does not reach further: a head, and little of what follows it, all
/// of which has to be copied. Chunked bodies, listings and error texts come that way, too: in two pieces for each full record.
const HEAD: usize = 4 << 10;

/// The receiving half of a connection.
///
/// Sealed bytes lie in the slab, or in the record buffer: never in both.
///
/// ```text
///  scratch   | done | plain | done | sealed: whole records, and the beginning of one | space |
///                   opened in place  ^start                                          ^end
/// ```
pub(super) struct Inbound {
    opener: Opener,
    session: Box<dyn Session>,
    control: Control,
    /// Sealed bytes in the slab.
    ahead: Ahead,
    /// Whether the space that was last given is in the slab.
    is_space_ahead: bool,
    scratches: Scratches,
    /// The record buffer; none while nothing is in it.
    scratch: Option<Box<[u8]>>,
    /// Sealed bytes, `[start, end)` of the scratch.
    start: usize,
    end: usize,
    /// Payload that was opened in the scratch and is still to be taken.
    plain: Range<usize>,
    /// Length of the last record that was opened in a slab: the next there is most likely as long.
    stride: usize,
    is_closed: bool,
    /// What was found behind payload that had to be handed out first.
    breach: Option<Breach>,
}

impl Inbound {
    /// Goes on where the handshake ended: `sealed` of `scratch` came in and was not looked at.
    pub(super) fn new(
        opener: Opener,
        session: Box<dyn Session>,
        scratches: Scratches,
        scratch: Box<[u8]>,
        sealed: Range<usize>,
    ) -> Self {
        Self {
            opener,
            session,
            control: Control::default(),
            ahead: Ahead::default(),
            is_space_ahead: false,
            scratches,
            scratch: Some(scratch),
            start: sealed.start,
            end: sealed.end,
            plain: 0..0,
            stride: RECORD_MAX,
            is_closed: false,
            breach: None,
        }
    }

    /// Whether the other side said that nothing follows.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether everything that came in was taken.
    pub(super) fn is_empty(&self) -> bool {
        self.is_scratch_empty() && self.ahead.is_empty()
    }

    fn is_scratch_empty(&self) -> bool {
        self.start == self.end && self.plain.is_empty()
    }

    pub(super) fn is_nearly_spent(&self) -> bool {
        self.opener.is_nearly_spent()
    }

    pub(super) fn control(&mut self) -> &mut Control {
        &mut self.control
    }

    pub(super) fn session(&mut self) -> &mut dyn Session {
        self.session.as_mut()
    }

    /// Where to put what comes in next, while no slab is at hand. Never empty, as long as all plain bytes were taken before.
    pub(super) fn space_for_head(&mut self) -> &mut [u8] {
        self.space_in_scratch(None, HEAD)
    }

    /// Where to put what comes in next, of a body whose next `most` bytes belong into `gap`: there, as far as whole records
    /// fit. Never empty, as long as [`Inbound::open_into`] gave nothing before, and the gap is not full.
    ///
    /// # Copies
    ///
    /// Where the record buffer is used and records differ in length, the beginning of one may have to be moved to its front: one
    /// copy in user space, counted on `hop`.
    pub(super) fn space<'a>(
        &'a mut self,
        hop: &OpenHop,
        gap: &'a mut Gap<'_>,
        most: usize,
    ) -> &'a mut [u8] {
        if self.start == self.end {
            let front = gap.front(most);
            let header = self.ahead.sealed(front).ok();
            let header = header.and_then(|sealed| self.header(&front[sealed]).ok().flatten());
            let record_len = header.map_or(self.stride, |header| header.record_len());
            if let Some(room) = self.ahead.room(front, record_len) {
                self.is_space_ahead = true;
                return &mut front[room];
            }
        }
        self.space_in_scratch(Some(hop), self.stride)
    }

    /// The place for what is left of the next record, or for `least` bytes, whichever is more.
    fn space_in_scratch(&mut self, hop: Option<&OpenHop>, least: usize) -> &mut [u8] {
        self.is_space_ahead = false;
        let header = self.scratch_header().ok().flatten();
        let len = header.map_or(least, |header| header.record_len().max(least));
        let scratches = &self.scratches;
        let scratch = self.scratch.get_or_insert_with(|| scratches.lease());
        if self.start == self.end || self.start + len > scratch.len() {
            to_front(hop, scratch, self.start..self.end);
            self.end -= self.start;
            self.start = 0;
        }
        &mut scratch[self.end..self.start + len]
    }

    /// Notes that the first `len` bytes of the space were filled.
    pub(super) fn received(&mut self, len: usize) {
        if self.is_space_ahead {
            self.ahead.received(len);
        } else {
            self.end += len;
        }
    }

    /// Hands the record buffer on where nothing is in it.
    pub(super) fn release(&mut self) {
        if self.is_scratch_empty()
            && let Some(scratch) = self.scratch.take()
        {
            self.scratches.give_back(scratch);
            (self.start, self.end, self.plain) = (0, 0, 0..0);
        }
    }

    /// Opens what is there into `gap`, at most `most` bytes of payload, and says how many these were. None where a
    /// whole record is still to come, and at the end.
    ///
    /// # Copies
    ///
    /// None, but for a record that does not fit into the gap's next slab as a whole: it is opened in the record buffer and
    /// copied, counted on `hop`. That is the last one of a slab or body, whose tag has no room. What came along with a head is
    /// copied as well, and the beginning of a record where the next one turns out to be longer than the last.
    pub(super) fn open_into(
        &mut self,
        hop: &OpenHop,
        gap: &mut Gap<'_>,
        most: usize,
    ) -> Result<usize, Breach> {
        let mut done = 0;
        while done < most && gap.left() > 0 {
            match self.open_one_into(hop, gap, most - done) {
                Ok(Some(len)) => done += len,
                Ok(None) => break,
                Err(breach) if done == 0 => return Err(breach),
                // What is good stays, and is counted; what follows it is reported when it is asked for.
                Err(breach) => {
                    self.breach = Some(breach);
                    break;
                }
            }
        }
        Ok(done)
    }

    /// One record, or what is left of one; none where there is nothing more for now.
    fn open_one_into(
        &mut self,
        hop: &OpenHop,
        gap: &mut Gap<'_>,
        most: usize,
    ) -> Result<Option<usize>, Breach> {
        if !self.plain.is_empty() {
            let len = self.plain.len().min(most);
            let laid = gap.lay(hop, self.bytes(self.plain.start..self.plain.start + len));
            self.plain.start += laid;
            return Ok(Some(laid));
        }
        self.go_on()?;
        if self.is_closed {
            return Ok(None);
        }
        if self.start == self.end {
            return self.open_ahead(hop, gap, most);
        }
        let Some(header) = self.scratch_header()? else {
            return Ok(None);
        };
        if header.record_len() <= self.end - self.start {
            self.open_in_scratch(&header)?;
            return Ok(Some(0));
        }
        let front = gap.front(most);
        if header.record_len() > front.len() {
            return Ok(None);
        }
        // The rest of it is received behind its beginning, in the slab.
        let sealed = self.start..self.end;
        copy::lay(hop, self.bytes(sealed.clone()), front);
        self.ahead.begins(front, sealed.len());
        self.start = self.end;
        Ok(Some(0))
    }

    /// Opens the next record in the slab, if it is whole; moves its beginning where it cannot become so there.
    fn open_ahead(
        &mut self,
        hop: &OpenHop,
        gap: &mut Gap<'_>,
        most: usize,
    ) -> Result<Option<usize>, Breach> {
        let front = gap.front(most);
        let sealed = self.ahead.sealed(front)?;
        if sealed.is_empty() {
            return Ok(None);
        }
        let header = self.header(&front[sealed.clone()])?;
        let record_len = header.map_or(HEADER_LEN, |header| header.record_len());
        if sealed.start + record_len > front.len() {
            self.make_room(hop, front, sealed, record_len);
            return Ok(Some(0));
        }
        let Some(header) = header.filter(|_| record_len <= sealed.len()) else {
            return Ok(None);
        };
        self.stride = record_len;
        let record = &mut front[..sealed.start + record_len];
        let Opened { kind, len } = self.opener.open(&header, record)?;
        let payload = self.sort(kind, &front[..len])?;
        self.ahead.opened(record_len, payload);
        gap.advance(payload);
        Ok(Some(payload))
    }

    /// Moves the beginning of a record to where all of it fits: to the front of the slab, or into the record buffer.
    fn make_room(
        &mut self,
        hop: &OpenHop,
        front: &mut [u8],
        sealed: Range<usize>,
        record_len: usize,
    ) {
        if record_len <= front.len() {
            let len = sealed.len();
            copy::shift(hop, front, sealed, 0);
            self.ahead.begins(front, len);
            return;
        }
        let scratches = &self.scratches;
        let scratch = self.scratch.get_or_insert_with(|| scratches.lease());
        (self.start, self.end) = (0, sealed.len());
        copy::lay(hop, &front[sealed], scratch);
        self.ahead.clear();
    }

    /// Takes what was in a record, and says how much of it is payload.
    fn sort(&mut self, kind: ContentType, content: &[u8]) -> Result<usize, Breach> {
        if kind == ContentType::ApplicationData {
            self.control.payload(content.len())?;
            return Ok(content.len());
        }
        let Self {
            control,
            opener,
            session,
            ..
        } = self;
        let outlook = control.take(kind, content, opener, session.as_mut())?;
        self.is_closed = outlook == Outlook::Closed;
        Ok(0)
    }

    /// Copies payload out for whoever has no slab for it: heads, and small answers. None where a whole record is still
    /// to come, and at the end.
    #[expect(
        clippy::disallowed_methods,
        reason = "heads and small answers, not payload; what comes along of it is counted where it is laid into a slab"
    )]
    pub(super) fn take(&mut self, into: &mut [u8]) -> Result<usize, Breach> {
        while self.plain.is_empty() {
            if !self.open_next()? {
                return Ok(0);
            }
        }
        let len = self.plain.len().min(into.len());
        let plain = self.plain.start..self.plain.start + len;
        into[..len].copy_from_slice(self.bytes(plain));
        self.plain.start += len;
        Ok(len)
    }

    /// Takes what is no payload among what is there. Says whether that was all, and the connection goes on.
    pub(super) fn settle(&mut self) -> Result<bool, Breach> {
        while self.plain.is_empty() && self.open_next()? {}
        Ok(self.is_empty() && !self.is_closed)
    }

    /// Opens one record in the scratch, if a whole one is there.
    fn open_next(&mut self) -> Result<bool, Breach> {
        self.go_on()?;
        if !self.ahead.is_empty() {
            return Err(lost());
        }
        let header = self
            .scratch_header()?
            .filter(|header| !self.is_closed && header.record_len() <= self.end - self.start);
        if let Some(header) = &header {
            self.open_in_scratch(header)?;
        }
        Ok(header.is_some())
    }

    /// Fails where something was found before that had to wait.
    fn go_on(&mut self) -> Result<(), Breach> {
        self.breach.take().map_or(Ok(()), Err)
    }

    /// The header of the record that begins `sealed`, once that is there.
    fn header(&self, sealed: &[u8]) -> Result<Option<Header>, Breach> {
        let Some(header) = sealed.first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        self.opener.form().header(*header).map(Some)
    }

    fn scratch_header(&self) -> Result<Option<Header>, Breach> {
        self.header(self.bytes(self.start..self.end))
    }

    fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.scratch.as_deref().map_or(&[], |bytes| &bytes[range])
    }

    fn open_in_scratch(&mut self, header: &Header) -> Result<(), Breach> {
        let record = self.start..self.start + header.record_len();
        self.start = record.end;
        // Out of the way for a moment, so that the rest of this can be used.
        let mut scratch = self.scratch.take().unwrap_or_default();
        let opened = self.opener.open(header, &mut scratch[record.clone()]);
        let sorted = opened.and_then(|Opened { kind, len }| {
            self.sort(kind, &scratch[record.start..record.start + len])
        });
        self.scratch = Some(scratch);
        self.plain = record.start..record.start + sorted?;
        Ok(())
    }
}

impl Debug for Inbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbound")
            .field("opener", &self.opener)
            .field("ahead", &self.ahead)
            .field("sealed", &(self.start..self.end))
            .field("plain", &self.plain)
            .field("is_closed", &self.is_closed)
            .finish_non_exhaustive()
    }
}
