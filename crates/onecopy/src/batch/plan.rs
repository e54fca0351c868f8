//! What the consumer asked for.

use std::collections::BTreeMap;

use crate::sample::decode::Decoder;

/// Which fields of a sample are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Fields {
    /// All that are there; every sample of a batch must have the same.
    #[default]
    All,
    /// These, in this order. `jpg;png` takes the first that a sample has.
    Named(Vec<String>),
}

/// How samples become batches.
#[derive(Debug, Clone, Default)]
pub struct BatchPlan {
    /// Samples per batch; none gives single samples.
    pub size: Option<usize>,
    /// Leave out a last batch that is not full.
    pub is_dropping_last: bool,
    /// Which fields.
    pub fields: Fields,
    /// Decode fields by their names: pictures to RGB, npy to arrays, and so on. Else they stay bytes.
    pub is_decoding: bool,
    /// How pictures are decoded where `is_decoding` is set; none keeps them as bytes.
    pub pictures: Option<Decoder>,
    /// Fields decoded in a way of their own, by name.
    pub decoders: BTreeMap<String, Decoder>,
}

impl BatchPlan {
    /// How the field `name` is decoded; arrays of an archive as arrays.
    #[must_use]
    pub fn decoder(&self, name: &str) -> Decoder {
        if let Some(decoder) = self.own(name) {
            return decoder;
        }
        if !self.is_decoding {
            return Decoder::Raw;
        }
        match Decoder::for_field(name) {
            Decoder::Rgb { .. } => self.pictures.unwrap_or(Decoder::Raw),
            other => other,
        }
    }

    /// What was asked for this field, or for all fields with its last extension.
    fn own(&self, name: &str) -> Option<Decoder> {
        let extension = name.rsplit('.').next().unwrap_or(name);
        self.decoders
            .get(name)
            .or_else(|| self.decoders.get(extension))
            .copied()
    }

    /// Samples per block.
    #[must_use]
    pub fn block_len(&self) -> usize {
        self.size.unwrap_or(1)
    }
}
