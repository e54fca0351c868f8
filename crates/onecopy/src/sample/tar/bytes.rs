//! The bytes of a tar, in order: the shard's own, or what gzip or zstd make of them, told by magic and not by name.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::inflate::{Codec, Inflater};
use crate::buffer::Slice;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::sample::{Extent, Pieces};
use crate::sync::Arc;

/// What the store gives, held against the length it promised.
#[derive(Debug)]
pub(super) struct Raw<I> {
    inner: I,
    shard: Arc<str>,
    len_bytes: Option<u64>,
    seen_bytes: u64,
    is_over: bool,
    /// Given again before anything else: what the look at the magic took out.
    held: VecDeque<Slice>,
    /// Whether it is a part of the shard, which may be empty.
    is_part: bool,
    /// How long `inner` made us wait, so that inflating is not charged for the network.
    pub(super) waited: Duration,
}

impl<I: Pieces> Raw<I> {
    fn new(inner: I, shard: Arc<str>, len_bytes: Option<u64>) -> Self {
        Self {
            inner,
            shard,
            len_bytes,
            seen_bytes: 0,
            is_over: false,
            held: VecDeque::new(),
            is_part: false,
            waited: Duration::ZERO,
        }
    }

    /// The next slice that is not empty.
    pub(super) fn next(&mut self) -> Result<Option<Slice>> {
        if let Some(slice) = self.held.pop_front() {
            return Ok(Some(slice));
        }
        while !self.is_over {
            let start = Instant::now();
            let next = self.inner.next_piece();
            self.waited += start.elapsed();
            match next {
                Some(Ok(slice)) if slice.is_empty() => {}
                Some(Ok(slice)) => {
                    self.seen_bytes += slice.len() as u64;
                    self.check_surplus()?;
                    return Ok(Some(slice));
                }
                Some(Err(error)) => {
                    self.is_over = true;
                    return Err(error);
                }
                None => {
                    self.is_over = true;
                    self.check_end()?;
                }
            }
        }
        Ok(None)
    }

    /// Passes over up to `len` bytes without reading them, and says over how many.
    fn pass_over(&mut self, len: u64) -> u64 {
        if self.is_over || !self.held.is_empty() {
            return 0;
        }
        let passed = self.inner.pass_over(len);
        self.seen_bytes += passed;
        passed
    }

    fn check_surplus(&mut self) -> Result<()> {
        match self.len_bytes {
            Some(len) if self.seen_bytes > len => {
                self.is_over = true;
                Err(Error::new(
                    ErrorKind::Changed,
                    "read",
                    &*self.shard,
                    format!("more bytes came than its {len}"),
                )
                .with_help("the object was replaced while it was read: start again"))
            }
            _ => Ok(()),
        }
    }

    fn check_end(&self) -> Result<()> {
        if self.seen_bytes == 0 && self.len_bytes.unwrap_or(0) == 0 && !self.is_part {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "read",
                &*self.shard,
                "the object is empty (0 bytes)",
            )
            .with_help("a tar has at least its end mark of 1024 bytes: write the shard again"));
        }
        match self.len_bytes {
            Some(len) if self.seen_bytes < len => Err(Error::new(
                ErrorKind::Truncated,
                format!("read bytes {}..{len} of", self.seen_bytes),
                &*self.shard,
                format!("the body ended after {} of {len} bytes", self.seen_bytes),
            )
            .with_help("read it again; if it stays so, write the shard again")),
            _ => Ok(()),
        }
    }

    /// Looks at the first bytes without taking them.
    fn magic(&mut self) -> Result<[u8; 4]> {
        let mut magic = [0_u8; 4];
        let mut len = 0;
        let mut taken = VecDeque::new();
        while len < magic.len() {
            let Some(slice) = self.next()? else { break };
            for &byte in slice.iter().take(magic.len() - len) {
                magic[len] = byte;
                len += 1;
            }
            taken.push_back(slice);
        }
        self.held = taken;
        Ok(magic)
    }

    pub(super) fn shard(&self) -> &Arc<str> {
        &self.shard
    }
}

/// The bytes of a tar, in order.
#[derive(Debug)]
pub(super) enum Bytes<I> {
    /// Nothing was looked at yet.
    Unknown(Raw<I>, OpenHop),
    /// The shard's own bytes.
    Plain(Raw<I>),
    /// The shard is compressed.
    Inflated(Box<Inflater<I>>),
    /// Over, or failed.
    Over,
}

impl<I: Pieces> Bytes<I> {
    /// The bytes in `extent` of an object of `len_bytes`. Only a tar that is not compressed has parts.
    pub(super) fn new(
        inner: I,
        shard: Arc<str>,
        extent: Extent,
        len_bytes: Option<u64>,
        inflate: OpenHop,
    ) -> Self {
        let end = extent.end.or(len_bytes);
        let mut raw = Raw::new(
            inner,
            shard,
            end.map(|end| end.saturating_sub(extent.start)),
        );
        raw.is_part = extent != Extent::WHOLE;
        if raw.is_part {
            Self::Plain(raw)
        } else {
            Self::Unknown(raw, inflate)
        }
    }

    /// The next slice that is not empty.
    pub(super) fn next(&mut self) -> Result<Option<Slice>> {
        loop {
            let next = match self {
                Self::Plain(raw) => raw.next(),
                Self::Inflated(inflater) => inflater.next(),
                Self::Over => return Ok(None),
                Self::Unknown(..) => {
                    self.look()?;
                    continue;
                }
            };
            if !matches!(next, Ok(Some(_))) {
                *self = Self::Over;
            }
            return next;
        }
    }

    /// Passes over up to `len` bytes without reading them, where they need not be inflated, and says over how many.
    pub(super) fn pass_over(&mut self, len: u64) -> u64 {
        match self {
            Self::Plain(raw) => raw.pass_over(len),
            Self::Unknown(..) | Self::Inflated(_) | Self::Over => 0,
        }
    }

    /// Whether the shard is compressed, as far as it was looked at.
    pub(super) fn is_inflated(&self) -> bool {
        matches!(self, Self::Inflated(_))
    }

    fn look(&mut self) -> Result<()> {
        if let Self::Unknown(mut raw, hop) = std::mem::replace(self, Self::Over) {
            *self = match Codec::of(raw.magic()?) {
                None => Self::Plain(raw),
                Some(codec) => Self::Inflated(Box::new(Inflater::new(codec, raw, hop)?)),
            };
        }
        Ok(())
    }
}
