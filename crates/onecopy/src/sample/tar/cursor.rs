//! A place in the bytes of a tar, from which blocks and members are taken without a copy where they lie in one slice.

use super::bytes::Bytes;
use super::header;
use crate::buffer::{Slice, copy};
use crate::error::Result;
use crate::ledger::OpenHop;
use crate::sample::Pieces;
use crate::size::to_usize;

/// Tar's unit: headers are one block, members fill whole ones.
pub(super) const BLOCK: usize = 512;

/// How much of what was asked for was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Got {
    /// All of it.
    All,
    /// The bytes ended after this many, 0 included.
    Only(u64),
}

/// A place in the bytes of a tar.
#[derive(Debug)]
pub(super) struct Cursor<I> {
    bytes: Bytes<I>,
    current: Option<Slice>,
    at: usize,
    position: u64,
    is_inflated: bool,
    straddle: OpenHop,
    /// The last block that was asked for, where it crossed two slices.
    crossing: [u8; BLOCK],
    is_crossing: bool,
}

impl<I: Pieces> Cursor<I> {
    /// A place at the front of `bytes`, which stand in the tar from `position` on.
    pub(super) fn new(bytes: Bytes<I>, position: u64, straddle: OpenHop) -> Self {
        Self {
            bytes,
            current: None,
            at: 0,
            position,
            is_inflated: false,
            straddle,
            crossing: [0; BLOCK],
            is_crossing: false,
        }
    }

    /// Whether the bytes are inflated ones, as far as they were read.
    pub(super) fn is_inflated(&self) -> bool {
        self.is_inflated
    }

    /// Where in the tar it is.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The bytes that lie ready, after fetching more where there are none. Empty at the end only.
    fn ready(&mut self) -> Result<&[u8]> {
        if self.current.as_ref().is_none_or(|now| self.at == now.len()) {
            // Let go first: the next slice may need the memory of this one.
            self.current = None;
            self.at = 0;
            self.current = self.bytes.next()?;
            self.is_inflated |= self.bytes.is_inflated();
        }
        Ok(self.current.as_deref().map_or(&[], |now| &now[self.at..]))
    }

    fn advance(&mut self, len: usize) {
        self.at += len;
        self.position += len as u64;
    }

    /// Takes one block, which [`Cursor::block`] then shows.
    ///
    /// A block lies in the slice it came in; one that crosses slices is put together, which is no payload.
    pub(super) fn take_block(&mut self) -> Result<Got> {
        self.is_crossing = false;
        if self.ready()?.len() >= BLOCK {
            self.advance(BLOCK);
            return Ok(Got::All);
        }
        self.is_crossing = true;
        let mut filled = 0;
        while filled < BLOCK {
            let ready = self.ready()?;
            let len = ready.len().min(BLOCK - filled);
            if len == 0 {
                self.crossing[filled..].fill(0);
                return Ok(Got::Only(filled as u64));
            }
            let now = self.current.as_deref().unwrap_or(&[]);
            #[expect(
                clippy::disallowed_methods,
                reason = "tar header, 512 bytes, not payload"
            )]
            self.crossing[filled..filled + len].copy_from_slice(&now[self.at..self.at + len]);
            self.advance(len);
            filled += len;
        }
        Ok(Got::All)
    }

    /// The block that was taken last.
    pub(super) fn block(&self) -> &[u8; BLOCK] {
        if !self.is_crossing
            && let Some(now) = &self.current
            && let Some(block) = now[..self.at].last_chunk()
        {
            return block;
        }
        &self.crossing
    }

    /// Takes the next `len` bytes.
    ///
    /// # Copies
    ///
    /// None where they lie in one slice or in neighbours of one run; else one per byte, counted on `straddle`.
    pub(super) fn take(&mut self, len: u64) -> Result<Result<Slice, u64>> {
        let ready = self.ready()?.len();
        if to_usize(len) <= ready
            && let Some(now) = &self.current
        {
            let part = now.slice(self.at..self.at + to_usize(len));
            self.advance(part.len());
            return Ok(Ok(part));
        }
        if len == 0 {
            return Ok(Ok(Slice::empty()));
        }
        self.take_apart(to_usize(len))
    }

    /// Takes what lies in several slices: glued where they are neighbours, else put together piece by piece in memory of
    /// its own. Until the first stranger comes, what is glued is held while the next slice is waited for.
    fn take_apart(&mut self, len: usize) -> Result<Result<Slice, u64>> {
        let mut glued: Option<Slice> = None;
        let mut apart: Option<Vec<u8>> = None;
        let mut got = 0;
        while got < len {
            let ready = self.ready()?.len().min(len - got);
            let Some(now) = self.current.as_ref().filter(|_| ready > 0) else {
                return Ok(Err(got as u64));
            };
            let part = now.slice(self.at..self.at + ready);
            if let Some(whole) = &mut apart {
                copy::append(&self.straddle, &part, whole);
            } else {
                match glued.as_ref().map(|before| before.join(&part)) {
                    None => glued = Some(part),
                    Some(Some(joined)) => glued = Some(joined),
                    Some(None) => {
                        // Not zeroed first: it is filled at once.
                        let mut whole = Vec::with_capacity(len);
                        if let Some(before) = glued.take() {
                            copy::append(&self.straddle, &before, &mut whole);
                        }
                        copy::append(&self.straddle, &part, &mut whole);
                        apart = Some(whole);
                    }
                }
            }
            self.advance(ready);
            got += ready;
        }
        Ok(Ok(match apart {
            Some(whole) => Slice::from_vec(whole),
            None => glued.unwrap_or_else(Slice::empty),
        }))
    }

    /// Passes over `len` bytes.
    pub(super) fn skip(&mut self, len: u64) -> Result<Got> {
        let mut left = len;
        while left > 0 {
            if self.current.as_ref().is_none_or(|now| self.at == now.len()) {
                let passed = self.bytes.pass_over(left);
                self.position += passed;
                left -= passed;
                if left == 0 {
                    break;
                }
            }
            let ready = self.ready()?.len();
            if ready == 0 {
                return Ok(Got::Only(len - left));
            }
            let step = ready.min(to_usize(left));
            self.advance(step);
            left -= step as u64;
        }
        Ok(Got::All)
    }

    /// Passes over zeros up to the end, and says where other bytes begin if there are any.
    pub(super) fn skip_zeros(&mut self) -> Result<Option<u64>> {
        loop {
            let ready = self.ready()?;
            let len = ready.len();
            if len == 0 {
                return Ok(None);
            }
            if !header::is_zero(ready) {
                let zeros = ready.iter().take_while(|&&byte| byte == 0).count();
                return Ok(Some(self.position + zeros as u64));
            }
            self.advance(len);
        }
    }
}
