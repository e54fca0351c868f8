//! Records as they come in, opened straight into slabs. Knows no socket: bytes are put into [`Inbound::space`].

use std::fmt::{self, Debug};
use std::ops::Range;

use rustls::ContentType;

use super::breach::Breach;
use super::control::{Control, Outlook};
use super::open::{Key, Opened, Opener};
use super::record::{HEADER_LEN, Header, RECORD_MAX};
use super::scratch::Scratches;
use super::session::Session;
use crate::buffer::copy;
use crate::ledger::OpenHop;
use crate::store::http1::gap::Gap;

/// The receiving half of a connection.
///
/// ```text
///  scratch   | done | plain | done | sealed: whole records, and the beginning of one | space |
///                   opened in place  ^start                                          ^end
/// ```
pub(super) struct Inbound {
    opener: Opener,
    session: Box<dyn Session>,
    control: Control,
    scratches: Scratches,
    /// The record buffer; none while nothing is in it.
    scratch: Option<Box<[u8]>>,
    /// Sealed bytes, `[start, end)` of the scratch.
    start: usize,
    end: usize,
    /// Payload that was opened where it lay and is still to be taken.
    plain: Range<usize>,
    /// Length of the last record: the next is most likely as long.
    stride: usize,
    is_closed: bool,
    /// What was found behind payload that had to be handed out first.
    breach: Option<Breach>,
}

impl Inbound {
    /// Goes on where the handshake ended: `sealed` of `scratch` came in and was not looked at.
    pub(super) fn new(
        key: Key,
        session: Box<dyn Session>,
        scratches: Scratches,
        scratch: Box<[u8]>,
        sealed: Range<usize>,
    ) -> Self {
        Self {
            opener: Opener::new(key),
            session,
            control: Control::default(),
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

    /// Where to put what comes in next. Never empty, as long as all plain bytes were taken before.
    ///
    /// It ends where a record should end if all are as long as the last: then nothing is left to be moved to the front.
    ///
    /// # Copies
    ///
    /// Where records differ in length, the beginning of one may have to be moved: one copy in user space, counted on
    /// `hop` where there is one.
    pub(super) fn space(&mut self, hop: Option<&OpenHop>) -> &mut [u8] {
        let header = self.header().ok().flatten();
        let record_len = header.map_or(self.stride, |header| header.record_len());
        let scratches = &self.scratches;
        let scratch = self.scratch.get_or_insert_with(|| scratches.lease());
        if self.start == self.end || self.start + record_len > scratch.len() {
            to_front(hop, scratch, self.start..self.end);
            self.end -= self.start;
            self.start = 0;
        }
        let records = (scratch.len() - self.start) / record_len;
        let limit = self.start + records * record_len;
        &mut scratch[self.end..limit]
    }

    /// Notes that the first `len` bytes of the space were filled.
    pub(super) fn received(&mut self, len: usize) {
        self.end += len;
    }

    /// Hands the record buffer on where nothing is in it.
    pub(super) fn release(&mut self) {
        if self.is_empty()
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
    /// None, but for a record that does not fit into the gap's next slab as a whole: it is opened where it lies and
    /// copied, counted on `hop`. In TLS 1.3 that is the last one of a body, whose type and padding have no room.
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
        let Some(header) = self.whole()? else {
            return Ok(None);
        };
        let Some(out) = gap.front(most).get_mut(..header.inner_len) else {
            self.open_in_place(&header)?;
            return Ok(Some(0));
        };
        let len = self.open_straight(&header, out)?;
        gap.advance(len);
        Ok(Some(len))
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

    /// Opens one record where it lies, if a whole one is there.
    fn open_next(&mut self) -> Result<bool, Breach> {
        let Some(header) = self.whole()? else {
            return Ok(false);
        };
        self.open_in_place(&header)?;
        Ok(true)
    }

    /// The header of the next record, once that is there.
    fn header(&self) -> Result<Option<Header>, Breach> {
        let sealed = self.bytes(self.start..self.end);
        let Some(header) = sealed.first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        self.opener.form().header(*header).map(Some)
    }

    /// The header of the next record, once all of the record is there. None where nothing follows.
    fn whole(&mut self) -> Result<Option<Header>, Breach> {
        if let Some(breach) = self.breach.take() {
            return Err(breach);
        }
        if self.is_closed {
            return Ok(None);
        }
        let header = self.header()?;
        Ok(header.filter(|header| header.record_len() <= self.end - self.start))
    }

    fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.scratch.as_deref().map_or(&[], |bytes| &bytes[range])
    }

    fn open_straight(&mut self, header: &Header, out: &mut [u8]) -> Result<usize, Breach> {
        let payload = self.pass(header);
        let scratch = self.scratch.as_deref().unwrap_or_default();
        let opened = self.opener.open_into(header, &scratch[payload], out)?;
        let Opened { kind, len } = opened;
        if kind == ContentType::ApplicationData {
            self.control.payload(len)?;
            return Ok(len);
        }
        self.is_closed =
            self.control
                .take(kind, &out[..len], &mut self.opener, self.session.as_mut())?
                == Outlook::Closed;
        Ok(0)
    }

    fn open_in_place(&mut self, header: &Header) -> Result<(), Breach> {
        let payload = self.pass(header);
        let scratch = self.scratch.as_deref_mut().unwrap_or_default();
        let (kind, content) = self
            .opener
            .open_in_place(header, &mut scratch[payload.clone()])?;
        let content = payload.start + content.start..payload.start + content.end;
        if kind == ContentType::ApplicationData {
            self.control.payload(content.len())?;
            self.plain = content;
            return Ok(());
        }
        let scratch = self.scratch.as_deref().unwrap_or_default();
        self.is_closed = self.control.take(
            kind,
            &scratch[content],
            &mut self.opener,
            self.session.as_mut(),
        )? == Outlook::Closed;
        Ok(())
    }

    /// Steps over the next record; gives the place of its payload.
    fn pass(&mut self, header: &Header) -> Range<usize> {
        let payload = self.start + HEADER_LEN..self.start + header.record_len();
        self.start = payload.end;
        self.stride = header.record_len();
        payload
    }
}

impl Debug for Inbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbound")
            .field("opener", &self.opener)
            .field("sealed", &(self.start..self.end))
            .field("plain", &self.plain)
            .field("is_closed", &self.is_closed)
            .finish_non_exhaustive()
    }
}

fn to_front(hop: Option<&OpenHop>, scratch: &mut [u8], sealed: Range<usize>) {
    if sealed.is_empty() || sealed.start == 0 {
        return;
    }
    match hop {
        Some(hop) => copy::shift(hop, scratch, sealed, 0),
        #[expect(
            clippy::disallowed_methods,
            reason = "part of a head or a small answer, not payload"
        )]
        None => scratch.copy_within(sealed, 0),
    }
}
