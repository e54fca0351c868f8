//! What a sample is made of, field by field.

use super::picture::Pool;
use crate::random::Random;

/// The element of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// Bytes.
    U8,
    /// Half precision, little end first; all values are finite.
    F16,
    /// Single precision, little end first, in [0, 1).
    F32,
}

impl Dtype {
    fn descr(self) -> &'static str {
        match self {
            Self::U8 => "|u1",
            Self::F16 => "<f2",
            Self::F32 => "<f4",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Jpg,
    Npy(Dtype, Vec<usize>),
    Json,
    Cls,
    Txt,
    Raw(usize),
}

/// One field of every sample: its name and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    name: String,
    kind: Kind,
}

impl Field {
    fn new(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
        }
    }

    /// `jpg`: a picture in the size of the maker.
    #[must_use]
    pub fn jpg() -> Self {
        Self::new("jpg", Kind::Jpg)
    }

    /// `npy`: an array of this shape.
    #[must_use]
    pub fn npy(dtype: Dtype, shape: &[usize]) -> Self {
        Self::new("npy", Kind::Npy(dtype, shape.to_vec()))
    }

    /// `json`: an object with the key, the class and a number.
    #[must_use]
    pub fn json() -> Self {
        Self::new("json", Kind::Json)
    }

    /// `cls`: a class below 1000, in decimal. The same as in `json`.
    #[must_use]
    pub fn cls() -> Self {
        Self::new("cls", Kind::Cls)
    }

    /// `txt`: a caption in UTF-8, not all of it ASCII.
    #[must_use]
    pub fn txt() -> Self {
        Self::new("txt", Kind::Txt)
    }

    /// `bin`: random bytes.
    #[must_use]
    pub fn raw(len_bytes: usize) -> Self {
        Self::new("bin", Kind::Raw(len_bytes))
    }

    /// The same field under another name, such as `left.jpg`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// What follows the key and the dot in the member's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_picture(&self) -> bool {
        self.kind == Kind::Jpg
    }

    /// The content of this field in sample `number`.
    pub(crate) fn content(&self, seed: u64, number: u64, key: &str, pool: &Pool) -> Vec<u8> {
        let mut random = Random::new(seed ^ crate::random::hash(&self.name), number);
        let class = Random::new(seed, number).below(1000);
        match &self.kind {
            Kind::Jpg => pool.picture(number, key),
            Kind::Npy(dtype, shape) => npy(*dtype, shape, &mut random),
            Kind::Json => {
                let score = random.below(1_000_000);
                format!(r#"{{"key": "{key}", "class": {class}, "score": {score}}}"#).into_bytes()
            }
            Kind::Cls => class.to_string().into_bytes(),
            Kind::Txt => caption(&mut random).into_bytes(),
            Kind::Raw(len_bytes) => {
                let mut bytes = vec![0; *len_bytes];
                random.fill(&mut bytes);
                bytes
            }
        }
    }
}

/// An array in the format of numpy, version 1.0: the data begins at a multiple of 64.
fn npy(dtype: Dtype, shape: &[usize], random: &mut Random) -> Vec<u8> {
    let mut text = String::new();
    for length in shape {
        text += &format!("{length}, ");
    }
    // One length keeps its comma, as a Python tuple does.
    let text = if shape.len() > 1 {
        text.trim_end_matches(", ")
    } else {
        text.trim_end()
    };
    let descr = dtype.descr();
    let mut head = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({text}), }}");
    let length = (10 + head.len() + 1).next_multiple_of(64) - 10;
    head.extend(std::iter::repeat_n(' ', length - head.len() - 1));
    head.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let length = u16::try_from(head.len()).unwrap_or(u16::MAX);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(head.as_bytes());
    let count = shape.iter().product();
    let start = bytes.len();
    match dtype {
        Dtype::U8 => {
            bytes.resize(start + count, 0);
            random.fill(&mut bytes[start..]);
        }
        Dtype::F16 => {
            bytes.resize(start + 2 * count, 0);
            random.fill(&mut bytes[start..]);
            // Without the top bit of the exponent, no pattern is infinite or no number.
            bytes[start..]
                .iter_mut()
                .skip(1)
                .step_by(2)
                .for_each(|byte| *byte &= 0xBF);
        }
        Dtype::F32 => (0..count).for_each(|_| bytes.extend(random.unit().to_le_bytes())),
    }
    bytes
}

fn caption(random: &mut Random) -> String {
    const WORDS: &[&str] = &[
        "a", "photo", "of", "the", "red", "bicycle", "under", "Bäume", "naïve", "犬", "near",
        "water", "🦀", "with", "two", "old", "houses", "and", "ещё", "light",
    ];
    let count = 4 + random.below(16);
    let words: Vec<_> = (0..count)
        .map(|_| WORDS[usize::try_from(random.below(WORDS.len() as u64)).unwrap_or(0)])
        .collect();
    words.join(" ")
}
