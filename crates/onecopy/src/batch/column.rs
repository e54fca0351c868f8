//! What the consumer receives.

use crate::buffer::Slice;
use crate::sample::decode::{DType, TensorLayout};
use crate::sync::Arc;

/// Values of one shape and type, one after the other.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// The element type, in the machine's byte order.
    pub dtype: DType,
    /// Elements along each axis; the first axis is the batch where the batch is one.
    pub shape: Vec<usize>,
    /// Elements from one index to the next along each axis. Pictures are `[.., 3, H, W]` over bytes laid out `H, W, 3`.
    pub strides: Vec<usize>,
    /// The memory: page-aligned, shared, freed into the recycler with its last holder.
    pub bytes: Slice,
}

impl Tensor {
    /// `samples` values of `layout` in `bytes`; none leaves the batch axis out.
    #[must_use]
    pub fn new(layout: &TensorLayout, samples: Option<usize>, bytes: Slice) -> Self {
        let inner = &layout.shape;
        let mut strides = vec![1_usize; inner.len()];
        if layout.is_channels_last && inner.len() == 3 {
            let (channels, width) = (inner[0], inner[2]);
            strides = vec![1, width * channels, channels];
        } else {
            for axis in (1..inner.len()).rev() {
                // An axis of length 0 makes strides meaningless, and may stand beside lengths beyond all memory.
                strides[axis - 1] = strides[axis].wrapping_mul(inner[axis]);
            }
        }
        let mut shape = inner.clone();
        if let Some(samples) = samples {
            strides.insert(0, inner.iter().fold(1, |all, len| all.wrapping_mul(*len)));
            shape.insert(0, samples);
        }
        Self {
            dtype: layout.dtype,
            shape,
            strides,
            bytes,
        }
    }
}

/// The values of one field.
#[derive(Debug, Clone)]
pub enum Column {
    /// Numbers.
    Tensor(Tensor),
    /// Bytes as they are in the shard, one value per sample.
    Bytes(Vec<Slice>),
    /// UTF-8, checked, one value per sample.
    Text(Vec<Slice>),
    /// JSON text, checked, one value per sample; parsed by whoever wants the values. In UTF-8 unless the shard has it
    /// otherwise (UTF-16 or UTF-32, told by a mark or by zeros as in RFC 4627, section 3).
    Json(Vec<Slice>),
}

/// Samples, collated.
#[derive(Debug, Clone)]
pub struct Batch {
    /// How many samples.
    pub len: usize,
    /// Whether tensors have a batch axis; else this is one sample.
    pub is_batched: bool,
    /// The samples' keys.
    pub keys: Vec<String>,
    /// The shards they come from.
    pub shards: Vec<Arc<str>>,
    /// Which sources they come from, where there are several.
    pub sources: Vec<usize>,
    /// So many samples were read up to the last one here, those that were left out included.
    pub end: u64,
    /// The fields, in the order asked for, or in the order of the first sample.
    pub columns: Vec<(String, Column)>,
}

impl Batch {
    /// The column called `name`.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns
            .iter()
            .find(|(column, _)| column == name)
            .map(|(_, column)| column)
    }

    /// Bytes of memory that the batch holds.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.columns
            .iter()
            .map(|(_, column)| match column {
                Column::Tensor(tensor) => tensor.bytes.len(),
                Column::Bytes(items) | Column::Text(items) | Column::Json(items) => {
                    items.iter().map(|item| item.len()).sum()
                }
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_channels_first_over_channels_last_memory() {
        let layout = TensorLayout {
            dtype: DType::U8,
            shape: vec![3, 4, 5],
            is_channels_last: true,
            is_fortran: false,
        };
        let tensor = Tensor::new(&layout, Some(2), Slice::empty());
        assert_eq!(tensor.shape, [2, 3, 4, 5]);
        assert_eq!(tensor.strides, [60, 1, 15, 3]);
    }

    #[test]
    fn arrays_are_row_major() {
        let layout = TensorLayout {
            dtype: DType::F32,
            shape: vec![2, 3],
            is_channels_last: false,
            is_fortran: false,
        };
        assert_eq!(Tensor::new(&layout, None, Slice::empty()).strides, [3, 1]);
        assert_eq!(
            Tensor::new(&layout, Some(7), Slice::empty()).strides,
            [6, 3, 1]
        );
    }
}
