//! Compressed shards: gzip with any number of members, zstd with any number of frames, inflated as they come.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::time::Instant;

use flate2::bufread::MultiGzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

use super::bytes::Raw;
use crate::buffer::{Slab, Slice};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::sample::Pieces;
use crate::size::MIB;

/// What is filled before new memory is taken. Members that cross its end are copied once more, so it is far larger than
/// a usual member, and no larger than what a second-level cache nearly holds.
const CHUNK_BYTES: usize = MIB;

/// How a shard is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Gzip,
    Zstd,
}

impl Codec {
    /// Told from the first bytes.
    pub(super) fn of(magic: [u8; 4]) -> Option<Self> {
        match magic {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // A frame, or a skippable one, as pzstd begins with.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Some(Self::Zstd),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// The compressed slices, as the decoders want them.
struct Input<I> {
    raw: Raw<I>,
    current: Option<Slice>,
    at: usize,
    consumed: usize,
    /// Why the bytes did not come: an `io::Error` could not carry it unharmed.
    failed: Option<Error>,
}

impl<I: Pieces> BufRead for Input<I> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.current.as_ref().is_none_or(|now| self.at == now.len()) {
            self.at = 0;
            self.current = match self.raw.next() {
                Ok(next) => next,
                Err(error) => {
                    self.failed = Some(error);
                    return Err(io::Error::other("the bytes did not come"));
                }
            };
        }
        Ok(self.current.as_deref().map_or(&[], |now| &now[self.at..]))
    }

    fn consume(&mut self, len: usize) {
        self.at += len;
        self.consumed += len;
    }
}

impl<I: Pieces> Read for Input<I> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // Only the trait asks for this: the decoders take what they need from `fill_buf`.
        let mut from = self.fill_buf()?;
        let len = from.read(out)?;
        self.consume(len);
        Ok(len)
    }
}

enum Decoder<I> {
    Gzip(Box<MultiGzDecoder<Input<I>>>),
    Zstd(ZstdDecoder<'static, Input<I>>),
}

impl<I: Pieces> Decoder<I> {
    fn input(&mut self) -> &mut Input<I> {
        match self {
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zstd(decoder) => decoder.get_mut(),
        }
    }

    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(decoder) => decoder.read(out),
            Self::Zstd(decoder) => decoder.read(out),
        }
    }
}

/// Slices of the inflated bytes.
pub(super) struct Inflater<I> {
    codec: Codec,
    decoder: Decoder<I>,
    hop: OpenHop,
    /// What of the current chunk is still to be filled. Slices cut from one chunk are neighbours, so a member that came
    /// in several reads is whole again without a copy.
    rest: Slab,
    /// How many compressed bytes were charged to the hop.
    charged: usize,
}

impl<I: Pieces> Inflater<I> {
    pub(super) fn new(codec: Codec, raw: Raw<I>, hop: OpenHop) -> Result<Self> {
        let shard = raw.shard().to_string();
        let input = Input {
            raw,
            current: None,
            at: 0,
            consumed: 0,
            failed: None,
        };
        let decoder = match codec {
            Codec::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(input))),
            Codec::Zstd => Decoder::Zstd(
                ZstdDecoder::with_buffer(input)
                    .map_err(|error| Error::io("start the zstd decoder for", shard, error))?,
            ),
        };
        Ok(Self {
            codec,
            decoder,
            hop,
            rest: Slab::heap(0),
            charged: 0,
        })
    }

    /// The next piece of the inflated bytes.
    ///
    /// # Copies
    ///
    /// None; the compressed bytes are counted on the hop, which is a transform.
    pub(super) fn next(&mut self) -> Result<Option<Slice>> {
        if self.rest.is_empty() {
            self.rest = Slab::heap(CHUNK_BYTES);
        }
        let waited = self.decoder.input().raw.waited;
        let start = Instant::now();
        let outcome = self.decoder.read(&mut self.rest);
        let elapsed = start.elapsed();
        let input = self.decoder.input();
        let busy = elapsed.saturating_sub(input.raw.waited.saturating_sub(waited));
        // From the last charge on, and not from the start of this call: a gzip header is read when the decoder is made.
        self.hop.moved(input.consumed - self.charged, busy);
        self.charged = input.consumed;
        match outcome {
            Ok(0) => self.end(),
            Ok(len) => Ok(Some(self.rest.split_to(len).freeze())),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// The decoder says that it is done: so must the shard be.
    fn end(&mut self) -> Result<Option<Slice>> {
        let input = self.decoder.input();
        match input.fill_buf() {
            Ok([]) => Ok(None),
            Ok(_) => Err(Error::new(
                ErrorKind::Corrupt,
                format!("inflate ({}) of", self.codec.name()),
                &**input.raw.shard(),
                "other bytes follow the compressed ones",
            )),
            Err(error) => Err(self.explain(error)),
        }
    }

    fn explain(&mut self, error: io::Error) -> Error {
        let name = self.codec.name();
        let input = self.decoder.input();
        if let Some(failed) = input.failed.take() {
            return failed;
        }
        let (kind, why) = if error.kind() == io::ErrorKind::UnexpectedEof {
            (
                ErrorKind::Truncated,
                "the compressed stream is cut".to_owned(),
            )
        } else {
            (ErrorKind::Corrupt, error.to_string())
        };
        Error::new(
            kind,
            format!("inflate ({name}, up to byte {})", input.consumed),
            &**input.raw.shard(),
            why,
        )
        .with_help(format!(
            "check it with `{name} -t`, and write the shard again"
        ))
        .with_source(error)
    }
}

impl<I> fmt::Debug for Inflater<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inflater({})", self.codec.name())
    }
}
