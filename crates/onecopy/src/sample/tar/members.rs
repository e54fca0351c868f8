//! The members of a tar, one header at a time, and the promise that none is lost unseen.
//!
//! Python's `tarfile`, and so every loader built on it, ends without a word at the first header that it cannot read, at
//! a block of zeros, and at a cut between two members. Here the only clean end is the end-of-archive mark with nothing
//! but zeros behind it. An archive that just stops between two members is damage: nobody can tell a writer that never
//! closed it from a cut. Half a mark is taken with a counted warning: nothing but the other half can have stood behind it.
//! `bytes.rs` holds the length against what the store promised.

use super::super::Extent;
use super::bytes::Bytes;
use super::cursor::{BLOCK, Cursor, Got};
use super::damage::Damage;
use super::entry::{Entry, Passed};
use super::extended;
use super::header::{self, BadHeader};
use super::not_a_tar::not_a_tar;
use super::pax::{self, Pax};
use crate::buffer::Slice;
use crate::ledger::Ledger;
use crate::route::Hop;
use crate::sample::Pieces;
use crate::sync::Arc;

type Result<T> = std::result::Result<T, Box<Damage>>;

/// What extended headers say about the next member.
#[derive(Debug, Default)]
struct Extended {
    long_name: Option<Vec<u8>>,
    pax: Option<Pax>,
    offset: Option<u64>,
}

/// The members of a tar, in order.
#[derive(Debug)]
pub(in crate::sample) struct Members<I> {
    cursor: Cursor<I>,
    ledger: Arc<Ledger>,
    ignore_zeros: bool,
    /// Where it is to end between two members.
    ends_at: Option<u64>,
    /// Content and padding of the member before that are still to be passed over.
    content_left: u64,
    padding_left: u64,
    /// From the last `g` header; for members that say nothing themselves.
    default_size: Option<u64>,
    name: Vec<u8>,
    /// The last member that was taken or passed over whole.
    last_good: Vec<u8>,
    has_last_good: bool,
    has_end_mark: bool,
    /// The archive ended with a part of the end mark.
    is_half_marked: bool,
    /// The block taken last is a header that was not looked at yet.
    has_block: bool,
    is_over: bool,
    /// Members that were taken from a source without contents.
    passed: Vec<Passed>,
}

impl<I: Pieces> Members<I> {
    /// The members in `extent` of an object of `len_bytes`.
    pub(in crate::sample) fn new(
        inner: I,
        shard: Arc<str>,
        extent: Extent,
        len_bytes: Option<u64>,
        ignore_zeros: bool,
        ledger: &Arc<Ledger>,
    ) -> Self {
        let bytes = Bytes::new(inner, shard, extent, len_bytes, ledger.hop(Hop::Inflate));
        Self {
            cursor: Cursor::new(bytes, extent.start, ledger.hop(Hop::Straddle)),
            ends_at: extent.end,
            ledger: Arc::clone(ledger),
            ignore_zeros,
            content_left: 0,
            padding_left: 0,
            default_size: None,
            name: Vec::new(),
            last_good: Vec::new(),
            has_last_good: false,
            has_end_mark: false,
            is_half_marked: false,
            has_block: false,
            is_over: false,
            passed: Vec::new(),
        }
    }

    /// The name of the entry given last.
    pub(in crate::sample) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The name of the last member that was read whole.
    pub(in crate::sample) fn last_good(&self) -> Option<&[u8]> {
        self.has_last_good.then_some(&*self.last_good)
    }

    /// Whether the archive ended with a part of the end mark only.
    pub(in crate::sample) fn is_half_marked(&self) -> bool {
        self.is_half_marked
    }

    /// Whether the tar is compressed, as far as that is known yet.
    pub(in crate::sample) fn is_inflated(&self) -> bool {
        self.cursor.is_inflated()
    }

    /// Where the entry that was taken last ends, padding included.
    pub(in crate::sample) fn end_offset(&self) -> u64 {
        self.cursor.position() + self.padding_left
    }

    /// The members that were taken since the last call, where the source has no contents ([`Pieces::HAS_CONTENT`]).
    pub(in crate::sample) fn take_passed(&mut self) -> Vec<Passed> {
        std::mem::take(&mut self.passed)
    }

    /// Whether a reader may begin at any member: not where the tar is compressed, or where a header at its front gives
    /// members that follow their size.
    pub(in crate::sample) fn may_begin_anywhere(&self) -> bool {
        !self.cursor.is_inflated() && self.default_size.is_none()
    }

    /// The next regular member. Its content is passed over unless it is taken.
    pub(in crate::sample) fn next_entry(&mut self) -> Result<Option<Entry>> {
        let mut extended = Extended::default();
        while !self.is_over {
            let Some(offset) = self.next_header(&extended)? else {
                break;
            };
            let header =
                header::parse(self.cursor.block()).map_err(|bad| self.bad_header(bad, offset))?;
            let start = *extended.offset.get_or_insert(offset);
            self.has_end_mark = false;
            match header.typeflag {
                b'L' => {
                    let name = self.extended_body(header.size, offset)?;
                    extended.long_name = Some(header::until_nul(&name).into());
                }
                b'K' => drop(self.extended_body(header.size, offset)?),
                b'x' | b'X' => extended.pax = Some(self.pax_body(header.size, offset)?),
                b'g' => {
                    let global = self.pax_body(header.size, offset)?;
                    self.default_size = global.size.or(self.default_size);
                }
                b'S' | b'M' => return Err(Damage::unsupported(header.typeflag, offset)),
                flag => {
                    let (pax, name) = (extended.pax.take(), extended.long_name.take());
                    if pax.as_ref().is_some_and(|pax| pax.is_sparse) {
                        return Err(Damage::unsupported(b'S', offset));
                    }
                    self.name_entry(pax.as_ref(), name);
                    let size = pax.and_then(|pax| pax.size).or(self.default_size);
                    let size = size.unwrap_or(header.size);
                    if let Some(entry) = self.member(flag, start, size) {
                        return Ok(Some(entry));
                    }
                    extended = Extended::default();
                }
            }
        }
        self.is_over = true;
        Ok(None)
    }

    /// Takes the content of the entry given last.
    ///
    /// # Copies
    ///
    /// None, unless it crosses two slices that are no neighbours.
    pub(in crate::sample) fn take(&mut self, entry: Entry) -> Result<Slice> {
        self.content_left = 0;
        if !I::HAS_CONTENT {
            return self.pass(entry);
        }
        match self.cursor.take(entry.size)? {
            Ok(bytes) => {
                self.note_good();
                Ok(bytes)
            }
            Err(got) => Err(self.cut(entry.size, got)),
        }
    }

    /// Passes over the content of the entry given last, and notes where it lies.
    fn pass(&mut self, entry: Entry) -> Result<Slice> {
        let offset = self.cursor.position();
        if let Got::Only(got) = self.cursor.skip(entry.size)? {
            return Err(self.cut(entry.size, got));
        }
        self.note_good();
        let passed = Passed::new(&self.name, offset, entry.size);
        self.passed.push(passed);
        Ok(Slice::empty())
    }

    /// Takes blocks up to the next header, and says where it is. None at a clean end.
    fn next_header(&mut self, extended: &Extended) -> Result<Option<u64>> {
        if self.has_block {
            self.has_block = false;
            return Ok(Some(self.cursor.position() - BLOCK as u64));
        }
        self.pass_over()?;
        loop {
            let offset = self.cursor.position();
            let got = self.cursor.take_block()?;
            let block = self.cursor.block();
            let is_zero = block[0] == 0 && header::is_zero(block);
            if got == Got::All && !is_zero {
                return Ok(Some(offset));
            }
            if extended.offset.is_some() {
                return Err(Damage::truncated(
                    offset,
                    "the member that an extended header announces is missing",
                ));
            }
            match got {
                Got::Only(0) if self.has_end_mark || self.ends_at == Some(offset) => {
                    return Ok(None);
                }
                Got::Only(0) => return Err(Damage::missing_eof(offset)),
                Got::Only(len) => return self.part_of_header(offset, len).map(|()| None),
                Got::All => {
                    if !self.goes_on_behind_zeros(offset)? {
                        return Ok(None);
                    }
                    if self.has_block {
                        self.has_block = false;
                        return Ok(Some(self.cursor.position() - BLOCK as u64));
                    }
                }
            }
        }
    }

    /// One block of zeros was taken at `offset`: whether members may follow.
    fn goes_on_behind_zeros(&mut self, offset: u64) -> Result<bool> {
        let got = self.cursor.take_block()?;
        if header::is_zero(self.cursor.block()) {
            if got != Got::All {
                // Half a mark: simple writers end so, and nothing is missing.
                self.is_half_marked = !self.has_end_mark;
                return Ok(false);
            }
            self.has_end_mark = true;
            if self.ignore_zeros {
                return Ok(true);
            }
            return match self.cursor.skip_zeros()? {
                None => Ok(false),
                Some(at) => {
                    Err(
                        Damage::corrupt("data_after_end", at, "data after the end-of-archive mark")
                            .with_help("put one archive into each shard; archives joined by cat end where the first of them does"),
                    )
                }
            };
        }
        if self.ignore_zeros && got == Got::All {
            self.has_block = true;
            return Ok(true);
        }
        Err(Damage::corrupt(
            "zeros_in_the_middle",
            offset,
            "a block of zeros in the middle of the archive",
        )
        .with_help("the shard was damaged or put together from parts: write it again"))
    }

    /// The archive ends with a part of a block.
    fn part_of_header(&mut self, offset: u64, len: u64) -> Result<()> {
        let block = self.cursor.block();
        if header::is_zero(block) {
            self.is_half_marked = !self.has_end_mark;
            return Ok(());
        }
        if offset == 0
            && let Some(damage) = not_a_tar(&block[..usize::try_from(len).unwrap_or(BLOCK)])
        {
            return Err(damage);
        }
        Err(Damage::truncated(
            offset,
            format!("the header is cut: {len} of {BLOCK} bytes"),
        ))
    }

    fn bad_header(&self, bad: BadHeader, offset: u64) -> Box<Damage> {
        if offset == 0
            && let Some(damage) = not_a_tar(self.cursor.block())
        {
            return damage;
        }
        match bad {
            BadHeader::Checksum => {
                Damage::corrupt("bad_header_checksum", offset, "bad header checksum")
            }
            BadHeader::Size => Damage::corrupt("bad_header_size", offset, "the size is no number"),
        }
    }

    /// Passes over what is left of the member before.
    fn pass_over(&mut self) -> Result<()> {
        let content = std::mem::take(&mut self.content_left);
        if content > 0 {
            if let Got::Only(got) = self.cursor.skip(content)? {
                return Err(self.cut(content, got));
            }
            self.note_good();
        }
        let padding = std::mem::take(&mut self.padding_left);
        if padding > 0
            && let Got::Only(got) = self.cursor.skip(padding)?
        {
            let position = self.cursor.position();
            return Err(Damage::truncated(
                position,
                format!("the padding of a member is cut: {got} of {padding} bytes"),
            ));
        }
        Ok(())
    }

    fn cut(&self, size: u64, got: u64) -> Box<Damage> {
        let name = super::super::names::text(&self.name);
        Damage::truncated(
            self.cursor.position(),
            format!("member {name:?} is cut: {got} of {size} bytes"),
        )
    }

    fn note_good(&mut self) {
        self.last_good.clone_from(&self.name);
        self.has_last_good = true;
    }

    fn name_entry(&mut self, pax: Option<&Pax>, long_name: Option<Vec<u8>>) {
        let pax_name = pax.and_then(|pax| pax.path.clone());
        match pax_name.or(long_name) {
            Some(name) => self.name = name,
            None => header::name_into(self.cursor.block(), &mut self.name),
        }
    }

    /// An entry for a regular file; anything else is passed over, with its content where it has one.
    fn member(&mut self, flag: u8, offset: u64, size: u64) -> Option<Entry> {
        // In v7 a directory is a file with a slash behind its name.
        let is_directory = flag == 0 && self.name.ends_with(b"/");
        match flag {
            0 | b'0' | b'7' if !is_directory => {}
            // Links, devices, directories and fifos have no content, whatever the size field says.
            b'1' | b'2' => {
                self.ledger.warned("link_member");
                return None;
            }
            0 | b'3'..=b'6' => return None,
            _ => {
                self.ledger.warned("special_member");
                self.announce(size);
                return None;
            }
        }
        self.announce(size);
        Some(Entry { offset, size })
    }

    fn announce(&mut self, size: u64) {
        self.content_left = size;
        self.padding_left = padding(size);
    }

    fn pax_body(&mut self, size: u64, offset: u64) -> Result<Pax> {
        let body = self.extended_body(size, offset)?;
        pax::parse(&body)
            .ok_or_else(|| Damage::corrupt("bad_extended_header", offset, "malformed PAX records"))
    }

    fn extended_body(&mut self, size: u64, offset: u64) -> Result<Slice> {
        let body = extended::body(&mut self.cursor, size, offset)?;
        self.padding_left = padding(size);
        Ok(body)
    }
}

/// What fills the last block of `size` bytes.
fn padding(size: u64) -> u64 {
    let block = BLOCK as u64;
    (block - size % block) % block
}
