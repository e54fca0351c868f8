//! Checksums of whole objects, as the store tells them and as the bytes that pass give them.

use aws_lc_rs::digest::{Context, SHA256};
use crc_fast::{CrcAlgorithm, Digest as Crc};
use http::HeaderMap;
use reqsign_core::hash::{base64_decode, base64_encode};

use super::crc_join::Polynomial;

/// How a checksum is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Crc64Nvme,
    Crc32C,
    Crc32,
    Sha256,
}

impl Algorithm {
    /// In the order of preference: those that join out of parts first, the strongest of them before all.
    const ALL: [Self; 4] = [Self::Crc64Nvme, Self::Crc32C, Self::Crc32, Self::Sha256];

    /// As the headers of S3 and the ledger have it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Crc64Nvme => "crc64nvme",
            Self::Crc32C => "crc32c",
            Self::Crc32 => "crc32",
            Self::Sha256 => "sha256",
        }
    }

    /// Whether the checksum of a whole can be made of those of its parts.
    pub(super) const fn joins(self) -> bool {
        self.crc().is_some()
    }

    const fn polynomial(self) -> Option<Polynomial> {
        match self {
            Self::Crc64Nvme => Some(Polynomial::CRC64_NVME),
            Self::Crc32C => Some(Polynomial::CRC32_C),
            Self::Crc32 => Some(Polynomial::CRC32),
            Self::Sha256 => None,
        }
    }

    const fn crc(self) -> Option<CrcAlgorithm> {
        match self {
            Self::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
            Self::Crc32C => Some(CrcAlgorithm::Crc32Iscsi),
            Self::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
            Self::Sha256 => None,
        }
    }

    const fn len_bytes(self) -> usize {
        match self {
            Self::Crc64Nvme => 8,
            Self::Crc32C | Self::Crc32 => 4,
            Self::Sha256 => 32,
        }
    }
}

/// The checksum that a store gives for the whole of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    pub(super) algorithm: Algorithm,
    value: Vec<u8>,
}

impl Checksum {
    /// Reads the `x-amz-checksum-..` headers. None where there is none for the whole object: one that was made of the
    /// checksums of its parts is another thing.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
        // Without a word on its type, that of an object which was written in parts may be made of those of its parts, and
        // not every store marks it so.
        let is_whole = match header("x-amz-checksum-type") {
            Some(kind) => kind.eq_ignore_ascii_case("FULL_OBJECT"),
            None => !header("etag").is_some_and(is_of_parts),
        };
        let mut all = Algorithm::ALL.into_iter().filter(|_| is_whole);
        all.find_map(|algorithm| {
            let text = header(&format!("x-amz-checksum-{}", algorithm.name()))?;
            // `..-7` is made of the checksums of seven parts; that is no base64 either.
            Self::read(algorithm, text)
        })
    }

    /// Reads one in base64; none for what is none of this kind.
    pub(super) fn read(algorithm: Algorithm, base64: &str) -> Option<Self> {
        let value = base64_decode(base64).ok()?;
        (value.len() == algorithm.len_bytes()).then_some(Self { algorithm, value })
    }

    /// Begins a sum of the same kind.
    #[must_use]
    pub fn begin(&self) -> Sum {
        Sum::new(self.algorithm)
    }

    /// Whether `sum`, over the whole object, is this one.
    pub(super) fn is(&self, sum: &Sum) -> bool {
        self.algorithm == sum.algorithm && self.value == sum.value()
    }
}

/// Whether an ETag is that of an object written in parts: `"..-7"`.
fn is_of_parts(etag: &str) -> bool {
    let number = etag.trim_end_matches('"').rsplit_once('-');
    number.is_some_and(|(_, count)| {
        !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A checksum over the bytes that have passed so far.
#[derive(Debug, Clone)]
pub struct Sum {
    algorithm: Algorithm,
    state: State,
    len_bytes: u64,
}

#[derive(Clone)]
enum State {
    /// With its tables of 300 bytes aside.
    Crc(Box<Crc>),
    Sha256(Context),
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("State")
    }
}

impl Sum {
    pub(super) fn new(algorithm: Algorithm) -> Self {
        let state = match algorithm.crc() {
            Some(crc) => State::Crc(Box::new(Crc::new(crc))),
            None => State::Sha256(Context::new(&SHA256)),
        };
        Self {
            algorithm,
            state,
            len_bytes: 0,
        }
    }

    /// The checksum of `bytes` alone.
    pub(super) fn of(algorithm: Algorithm, bytes: &[u8]) -> Self {
        let mut sum = Self::new(algorithm);
        sum.update(bytes);
        sum
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Takes the next bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Crc(crc) => crc.update(bytes),
            State::Sha256(sha) => sha.update(bytes),
        }
        self.len_bytes += bytes.len() as u64;
    }

    /// The checksum of these bytes with those of `next` behind them; none where the algorithm cannot tell.
    pub(super) fn joined(mut self, next: &Self) -> Option<Self> {
        let (State::Crc(first), State::Crc(more)) = (&self.state, &next.state) else {
            return None;
        };
        if self.algorithm != next.algorithm {
            return None;
        }
        let (crc, polynomial) = (self.algorithm.crc()?, self.algorithm.polynomial()?);
        let whole = polynomial.joined(first.finalize(), more.finalize(), next.len_bytes);
        let going_on = Crc::new_with_init_state(crc, whole ^ polynomial.ones());
        self.state = State::Crc(Box::new(going_on));
        self.len_bytes += next.len_bytes;
        Some(self)
    }

    /// The checksum of the bytes that have passed.
    #[must_use]
    pub fn checksum(&self) -> Checksum {
        Checksum {
            algorithm: self.algorithm,
            value: self.value(),
        }
    }

    /// The checksum as the headers of S3 have it.
    pub(super) fn base64(&self) -> String {
        base64_encode(&self.value())
    }

    /// The checksum, highest byte first.
    pub(super) fn value(&self) -> Vec<u8> {
        match &self.state {
            State::Crc(crc) => {
                let bytes = crc.finalize().to_be_bytes();
                bytes
                    .into_iter()
                    .skip(8 - self.algorithm.len_bytes())
                    .collect()
            }
            State::Sha256(sha) => sha.clone().finish().as_ref().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::http1::Head;
    use super::*;

    fn expected(lines: &str) -> Option<Checksum> {
        let text = format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n", lines.replace('\n', "\r\n"));
        Checksum::of(&Head::parse(text.as_bytes()).unwrap().unwrap().0.headers)
    }

    /// The check values of the catalogues ("123456789"), and SHA-256 by `sha256sum`, in base64.
    const CHECKS: [(Algorithm, &str); 4] = [
        (Algorithm::Crc64Nvme, "rosUhgp5mIg="),
        (Algorithm::Crc32C, "4waSgw=="),
        (Algorithm::Crc32, "y/Q5Jg=="),
        (
            Algorithm::Sha256,
            "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=",
        ),
    ];

    #[test]
    fn checksums_are_those_of_the_catalogues() {
        for (algorithm, base64) in CHECKS {
            let mut sum = Sum::new(algorithm);
            sum.update(b"1234");
            sum.update(b"");
            sum.update(b"56789");
            let header = format!("x-amz-checksum-{}: {base64}", algorithm.name());
            let expected = expected(&header).unwrap();
            assert!(expected.is(&sum), "{algorithm:?}");
            assert_eq!(sum.base64(), base64);
            sum.update(b"0");
            assert!(!expected.is(&sum), "{algorithm:?}");
        }
    }

    #[test]
    fn parts_join_to_the_whole_wherever_they_are_cut() {
        let bytes: Vec<u8> = (0..1000_u32).map(|at| (at * at).to_le_bytes()[1]).collect();
        for algorithm in Algorithm::ALL {
            let of = |bytes: &[u8]| Sum::of(algorithm, bytes);
            for cut in [0, 1, 7, 512, 999, 1000] {
                let joined = of(&bytes[..cut]).joined(&of(&bytes[cut..]));
                assert_eq!(joined.is_some(), algorithm.joins());
                if let Some(joined) = joined {
                    assert_eq!(joined.value(), of(&bytes).value(), "{algorithm:?} {cut}");
                    assert_eq!(joined.len_bytes(), 1000);
                    // What was joined goes on as any other.
                    let (mut joined, mut whole) = (joined, of(&bytes));
                    joined.update(&bytes[..33]);
                    whole.update(&bytes[..33]);
                    assert_eq!(joined.value(), whole.value(), "{algorithm:?} {cut}");
                }
            }
        }
    }

    #[test]
    fn only_checksums_of_whole_objects_count() {
        let name = |lines: &str| expected(lines).map(|expected| expected.algorithm.name());
        let crc = "x-amz-checksum-crc32: y/Q5Jg==";
        assert_eq!(name(crc), Some("crc32"));
        assert_eq!(
            name(&format!("{crc}\nx-amz-checksum-type: FULL_OBJECT")),
            Some("crc32")
        );
        assert_eq!(
            name(&format!("{crc}\nx-amz-checksum-crc64nvme: rosUhgp5mIg=")),
            Some("crc64nvme")
        );
        let parts = "etag: \"25f9e794323b453885f5181f1b624d0b-2\"";
        assert_eq!(
            name(&format!("{crc}\n{parts}\nx-amz-checksum-type: FULL_OBJECT")),
            Some("crc32")
        );
        for lines in [
            "etag: \"25f9e794323b453885f5181f1b624d0b\"",
            &format!("{crc}\nx-amz-checksum-type: COMPOSITE"),
            &format!("{crc}\netag: \"25f9e794323b453885f5181f1b624d0b-2\""),
            "x-amz-checksum-crc32: y/Q5Jg==-3",
            "x-amz-checksum-crc32: rosUhgp5mIg=",
            "x-amz-checksum-crc32: ???",
            "x-amz-checksum-md5: JfnnlDI7RTiF9RgfG2JNCw==",
        ] {
            assert_eq!(name(lines), None, "{lines}");
        }
    }
}
