//! What the samples of one block have in common.

use super::select::{self, Chosen};
use crate::buffer::Slice;
use crate::error::{Error, ErrorKind};
use crate::sample::Sample;
use crate::sample::decode::{DType, Decoder, TensorLayout, Value};
use crate::sync::Arc;

/// What one column of a block holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Layout {
    /// Slots of equal size.
    Tensor(TensorLayout),
    /// Values of any length.
    Items(Items),
}

/// What values of any length mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Items {
    Bytes,
    Text,
    Json,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ColumnPlan {
    pub(super) name: String,
    pub(super) decoder: Decoder,
    pub(super) layout: Layout,
}

/// The columns of a block: their names, how each is decoded and how it is laid out. Two forms are equal where they have
/// the same columns, in whatever order.
#[derive(Debug, Clone)]
pub struct Form {
    columns: Arc<Vec<ColumnPlan>>,
    /// The columns' places in the order of their names.
    by_name: Arc<Vec<usize>>,
}

impl Form {
    pub(super) fn new(columns: Vec<ColumnPlan>) -> Self {
        let by_name = places_by_name(&columns, |column| &column.name);
        Self {
            columns: Arc::new(columns),
            by_name: Arc::new(by_name),
        }
    }

    pub(super) fn columns(&self) -> &Arc<Vec<ColumnPlan>> {
        &self.columns
    }

    /// The values in the order of the columns; as they came where they are not those of the columns. Nothing here grows
    /// faster than n log n with the number of fields, which is up to whoever wrote the shard.
    pub(super) fn in_order(&self, chosen: Vec<Chosen>) -> Result<Vec<Slice>, Vec<Chosen>> {
        if chosen.len() != self.columns.len() {
            return Err(chosen);
        }
        let is_for = |one: &Chosen, plan: &ColumnPlan| {
            one.column == plan.name && one.decoder == plan.decoder
        };
        if chosen
            .iter()
            .zip(&*self.columns)
            .all(|(one, plan)| is_for(one, plan))
        {
            return Ok(chosen.into_iter().map(|one| one.bytes).collect());
        }
        let from = places_by_name(&chosen, |one| &one.column);
        let is_same = from
            .iter()
            .zip(&*self.by_name)
            .all(|(&at, &to)| is_for(&chosen[at], &self.columns[to]));
        if !is_same {
            return Err(chosen);
        }
        let mut moves: Vec<(usize, usize)> = self.by_name.iter().copied().zip(from).collect();
        moves.sort_unstable();
        Ok(moves
            .into_iter()
            .map(|(_, at)| chosen[at].bytes.clone())
            .collect())
    }

    /// Why `sample`, which is of the form `other`, is left out, where `whose` ("its batch has") is of this one.
    pub(super) fn refusal(&self, sample: &Sample, other: &Self, whose: &str) -> Error {
        let pairs = || self.by_name.iter().zip(&*other.by_name);
        let is_same = self.columns.len() == other.columns.len()
            && pairs().all(|(&one, &two)| {
                let (one, two) = (&self.columns[one], &other.columns[two]);
                one.name == two.name && one.decoder == two.decoder
            });
        let unequal = pairs().find_map(|(&one, &two)| {
            match (&self.columns[one].layout, &other.columns[two].layout) {
                (Layout::Tensor(wanted), Layout::Tensor(found)) if wanted != found => {
                    Some(select::of_field(
                        sample,
                        &self.columns[one].name,
                        &unequal(wanted, found, whose),
                    ))
                }
                _ => None,
            }
        });
        match unequal {
            Some(error) if is_same => error,
            _ => self.other_fields(sample, other.columns.iter().map(|one| &*one.name), whose),
        }
    }

    /// Why a sample with the fields `names` is left out.
    pub(super) fn other_fields<'a>(
        &self,
        sample: &Sample,
        names: impl Iterator<Item = &'a str>,
        whose: &str,
    ) -> Error {
        let own = self.columns.iter().map(|plan| &*plan.name);
        Error::new(
            ErrorKind::NotFound,
            "batch",
            select::name_of(sample),
            format!(
                "its fields are {}, where {whose} {}",
                select::listed(names),
                select::listed(own)
            ),
        )
        .of_sample(&sample.shard, &sample.key)
        .with_help("name the fields you want: `fields=jpg,cls`")
    }
}

impl PartialEq for Form {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.columns, &other.columns)
            || self.columns.len() == other.columns.len()
                && self
                    .by_name
                    .iter()
                    .zip(&*other.by_name)
                    .all(|(&one, &two)| self.columns[one] == other.columns[two])
    }
}

/// The places of `items` in the order of their names; those of one name stay in order.
fn places_by_name<T>(items: &[T], name: impl Fn(&T) -> &String) -> Vec<usize> {
    let mut places: Vec<usize> = (0..items.len()).collect();
    places.sort_by(|&one, &two| name(&items[one]).cmp(name(&items[two])));
    places
}

/// How a value lies in its column.
pub(super) fn layout_of(value: Value) -> Layout {
    match value {
        // Decoders write row-major, whatever the file holds.
        Value::Tensor(layout) => Layout::Tensor(TensorLayout {
            is_fortran: false,
            ..layout
        }),
        Value::Int => Layout::Tensor(TensorLayout {
            dtype: DType::I64,
            shape: Vec::new(),
            is_channels_last: false,
            is_fortran: false,
        }),
        Value::Text => Layout::Items(Items::Text),
        Value::Json => Layout::Items(Items::Json),
        Value::Bytes(_) => Layout::Items(Items::Bytes),
    }
}

/// Why a value of the layout `found` has no place where `whose` ("its batch has") is `wanted`.
pub(super) fn unequal(wanted: &TensorLayout, found: &TensorLayout, whose: &str) -> Error {
    let show = |layout: &TensorLayout| format!("{} {:?}", layout.dtype.name(), layout.shape);
    Error::new(
        ErrorKind::InvalidInput,
        "batch",
        "",
        format!("it is {}, where {whose} {}", show(found), show(wanted)),
    )
    .with_help("give pictures one size (`size=224`), or take single samples instead of batches")
}
