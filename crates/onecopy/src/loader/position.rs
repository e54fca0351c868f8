//! Where an epoch goes on, as a value and as a text that a state can hold.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;

use crate::error::{Error, ErrorKind};
use crate::pipeline::{Spot, Standing};
use crate::sample::order::LANES_MAX;
use crate::size::to_usize;

/// Where an epoch goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// Behind so many samples of the epoch, those of all ranks together: where samples are counted.
    Samples(u64),
    /// Where each lane of this process stands, and which is next: where they are not.
    Spots {
        /// The lanes.
        lanes: Vec<Spot>,
        /// Whose turn it is.
        next: usize,
    },
    /// The same of several sources.
    Mixed {
        /// The lanes, source by source.
        lanes: Vec<Spot>,
        /// Whose turn it is among those of each source.
        next: Vec<usize>,
        /// How many samples were given, which says what source is drawn next.
        given: u64,
    },
}

impl From<Standing> for Position {
    fn from(standing: Standing) -> Self {
        let Standing { lanes, next, given } = standing;
        match given {
            Some(given) => Self::Mixed { lanes, next, given },
            None => Self::Spots {
                next: next.first().copied().unwrap_or(0),
                lanes,
            },
        }
    }
}

/// Tar's unit, in which offsets mostly are.
const BLOCK: u64 = 512;

/// In what the place in a shard is counted.
const BLOCKS: u64 = 0;
const BYTES: u64 = 1;
const SAMPLES: u64 = 2;

impl fmt::Display for Position {
    /// The number of samples; or, for lanes, `NEXT:` (of several sources `GIVEN;NEXT,NEXT,..:`) and in base64 the spots, of five
    /// numbers each, of seven bits a byte, the lowest first, and a CRC32 of all of it. Lanes go on side by side, so all numbers but
    /// the place in the shard are differences to the lane before.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Samples(samples) => write!(f, "{samples}"),
            Self::Spots { lanes, next } => write_spots(f, &next.to_string(), lanes),
            Self::Mixed { lanes, next, given } => {
                let next: Vec<String> = next.iter().map(usize::to_string).collect();
                write_spots(f, &format!("{given};{}", next.join(",")), lanes)
            }
        }
    }
}

fn write_spots(f: &mut fmt::Formatter<'_>, head: &str, lanes: &[Spot]) -> fmt::Result {
    let (mut bytes, mut before) = (Vec::new(), Spot::default());
    for spot in lanes {
        let (unit, place) = place(spot);
        put(&mut bytes, (step(before.stretch, spot.stretch) << 2) | unit);
        put(&mut bytes, place);
        put(&mut bytes, step(before.window, spot.window));
        put(&mut bytes, step(before.len, spot.len));
        put(&mut bytes, step(before.given, spot.given));
        before = *spot;
    }
    bytes.extend(sum_of(&bytes, head).to_le_bytes());
    write!(f, "{head}:{}", BASE64.encode(bytes))
}

impl FromStr for Position {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let Some((head, lanes)) = text.split_once(':') else {
            return Ok(Self::Samples(number(text)?));
        };
        let lanes = spots(head, lanes)?;
        let Some((given, next)) = head.split_once(';') else {
            let next = to_usize(number(head)?);
            let is_whole = next < lanes.len();
            return is_whole
                .then_some(Self::Spots { lanes, next })
                .ok_or_else(bad);
        };
        let next = next.split(',').map(|one| number(one).map(to_usize));
        let next = next.collect::<Result<Vec<_>, _>>()?;
        let each = lanes.len() / next.len();
        let is_whole = lanes.len().is_multiple_of(next.len()) && next.iter().all(|at| *at < each);
        let given = number(given)?;
        let mixed = Self::Mixed { lanes, next, given };
        is_whole.then_some(mixed).ok_or_else(bad)
    }
}

/// A number in the one form that we write.
fn number(text: &str) -> Result<u64, Error> {
    let number: u64 = text.parse().map_err(|_error| bad())?;
    let is_ours = number.to_string() == text;
    is_ours.then_some(number).ok_or_else(bad)
}

fn spots(head: &str, lanes: &str) -> Result<Vec<Spot>, Error> {
    let bytes = BASE64.decode(lanes).map_err(|_error| bad())?;
    let (bytes, sum) = bytes.split_last_chunk::<4>().ok_or_else(bad)?;
    if sum_of(bytes, head) != u32::from_le_bytes(*sum) {
        return Err(bad());
    }
    let mut numbers = Numbers(bytes);
    let (mut lanes, mut before) = (Vec::new(), Spot::default());
    while !numbers.0.is_empty() {
        let (first, place) = (numbers.take()?, numbers.take()?);
        let (offset, skip) = match first % 4 {
            BLOCKS => (place.checked_mul(BLOCK).ok_or_else(bad)?, 0),
            BYTES => (place, 0),
            SAMPLES => (0, place),
            _ => return Err(bad()),
        };
        before = Spot {
            stretch: stepped(before.stretch, first / 4)?,
            offset,
            skip,
            window: stepped(before.window, numbers.take()?)?,
            len: stepped(before.len, numbers.take()?)?,
            given: stepped(before.given, numbers.take()?)?,
        };
        lanes.push(before);
    }
    let is_possible = |spot: &Spot| spot.given <= spot.len;
    if lanes.len() as u64 > LANES_MAX || !lanes.iter().all(is_possible) {
        return Err(bad());
    }
    Ok(lanes)
}

/// Where in a shard a window begins: in blocks, in bytes, or, where it is compressed, in samples.
const fn place(spot: &Spot) -> (u64, u64) {
    if spot.skip > 0 {
        return (SAMPLES, spot.skip);
    }
    if spot.offset.is_multiple_of(BLOCK) {
        return (BLOCKS, spot.offset / BLOCK);
    }
    (BYTES, spot.offset)
}

/// How far it is from one number to another: even forwards, odd backwards, and small where it is not far.
const fn step(from: u64, to: u64) -> u64 {
    let by = to.wrapping_sub(from).cast_signed();
    ((by << 1) ^ (by >> 63)).cast_unsigned()
}

/// Where a step leads.
fn stepped(from: u64, step: u64) -> Result<u64, Error> {
    let by = (step >> 1).cast_signed() ^ -(step & 1).cast_signed();
    from.checked_add_signed(by).ok_or_else(bad)
}

fn sum_of(bytes: &[u8], head: &str) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(head.as_bytes());
    sum.update(bytes);
    sum.finalize()
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = (number % 128) as u8;
        number /= 128;
        bytes.push(if number > 0 { low + 128 } else { low });
        if number == 0 {
            return;
        }
    }
}

struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn take(&mut self) -> Result<u64, Error> {
        let mut number = 0_u64;
        for shift in (0..56).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or_else(bad)?;
            self.0 = rest;
            number |= u64::from(byte % 128) << shift;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(bad())
    }
}

fn bad() -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        "go on from",
        "a state",
        "its position is damaged",
    )
    .with_help("begin the epoch again, or take an older state")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spots() -> impl Strategy<Value = Spot> {
        let numbers = (
            0..1_u64 << 20,
            0..1_u64 << 40,
            0..1_u64 << 20,
            0..9999_u64,
            0..9999_u64,
        );
        (numbers, 0..3_usize).prop_map(|((stretch, place, window, len, given), kind)| Spot {
            stretch,
            offset: [place / BLOCK * BLOCK, place, 0][kind],
            skip: [0, 0, place][kind],
            window,
            len: len.max(given),
            given,
        })
    }

    proptest! {
        #[test]
        fn a_position_is_what_its_text_says(lanes in prop::collection::vec(spots(), 1..80), at in 0..80_usize, samples in any::<u64>()) {
            let next = at % lanes.len();
            let mixed = Position::Mixed { lanes: [&lanes[..], &lanes[..]].concat(), next: vec![next, 0], given: samples };
            for position in [Position::Spots { lanes, next }, Position::Samples(samples), mixed] {
                prop_assert_eq!(position.to_string().parse::<Position>().unwrap(), position);
            }
        }

        #[test]
        fn no_text_is_too_odd_to_be_refused(text in "([0-9]{0,3};)?[0-9]{0,3}(,[0-9])?:?[A-Za-z0-9+/]{0,40}") {
            if let Ok(position) = text.parse::<Position>() {
                prop_assert_eq!(position.to_string().parse::<Position>().unwrap(), position);
            }
        }
    }

    #[test]
    fn sixty_four_lanes_of_large_shards_take_less_than_a_kilobyte() {
        // What else a state says: seed, epoch, lanes, windows, batch, and what the data were.
        const REST: usize = 250;
        // Lanes that have drifted apart: anywhere in a shard of a gigabyte, in windows that memory has made shorter.
        let spot = |lane: u64| Spot {
            stretch: 150 + lane * 7 % 3,
            offset: lane * 698_761_003 % 1_000_000_000 / BLOCK * BLOCK,
            skip: 0,
            window: 1000 + lane * 37 % 101,
            len: 157 - lane * 11 % 20,
            given: 90 + lane * 5 % 40,
        };
        let lanes: Vec<Spot> = (0..64).map(spot).collect();
        let text = Position::Spots { lanes, next: 63 }.to_string();
        assert!(text.len() + REST < 1000, "{}", text.len());
    }
}
