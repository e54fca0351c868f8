//! Holds what came against what was written.

use std::collections::{BTreeMap, HashSet};

use onecopy::batch::{Batch, Column, Tensor};
use onecopy::sample::Sample;
use onecopy::sample::decode::DType;

use super::dataset::{Dataset, Written};

const CHANNELS: usize = 3;

/// The account of the check.
#[derive(Debug)]
pub(super) struct Check<'a> {
    dataset: &'a Dataset,
    /// Keys that came in the current pass.
    seen: HashSet<&'a str>,
    /// Keys with a difference, in any pass.
    bad: HashSet<&'a str>,
    differences: Vec<String>,
}

impl<'a> Check<'a> {
    pub(super) fn new(dataset: &'a Dataset) -> Self {
        Self {
            dataset,
            seen: HashSet::new(),
            bad: HashSet::new(),
            differences: Vec::new(),
        }
    }

    /// Checks every field of `sample`, byte for byte.
    pub(super) fn sample(&mut self, sample: &Sample) {
        let Some((key, written)) = self.arrived(&sample.key) else {
            return;
        };
        if sample.fields.len() != written.len() {
            let (came, fields) = (sample.fields.len(), written.len());
            self.differs(key, format!("it came with {came} fields, not {fields}"));
        }
        for (name, written) in written {
            let came = sample.field(name).map(|field| fingerprint(&field.bytes));
            if came != Some(*written) {
                self.differs(key, format!("field {name} is not what was written"));
            }
        }
    }

    /// Checks labels, texts and pictures of `batch`.
    pub(super) fn batch(&mut self, batch: &Batch, size: usize) {
        for (row, key) in batch.keys.iter().enumerate() {
            let Some((key, written)) = self.arrived(key) else {
                continue;
            };
            let matches = |name: &str, came: Option<Written>| came.as_ref() == written.get(name);
            if !matches("cls", label(batch.column("cls"), row)) {
                self.differs(key, "the label is not what was written".to_owned());
            }
            if !matches("json", json(batch.column("json"), row)) {
                self.differs(key, "the json is not what was written".to_owned());
            }
            if !is_picture(batch, row, size) {
                self.differs(key, format!("the picture is blank or not {size} x {size}"));
            }
        }
    }

    /// Every key must have come by now.
    pub(super) fn end_pass(&mut self, how: &str) {
        let missing: Vec<&str> = self
            .dataset
            .keys()
            .filter(|key| !self.seen.contains(key))
            .collect();
        for key in missing {
            self.differs(key, format!("it never came {how}"));
        }
        self.seen.clear();
    }

    /// How many samples were right in all passes, and what was wrong with the others.
    pub(super) fn finish(self) -> (u64, Vec<String>) {
        let verified = self.dataset.samples() - self.bad.len() as u64;
        (verified, self.differences)
    }

    /// Notes that `key` came. Gives what was written under it, if anything.
    fn arrived(&mut self, key: &str) -> Option<(&'a str, &'a BTreeMap<String, Written>)> {
        let Some((key, written)) = self.dataset.sample(key) else {
            self.differences
                .push(format!("{key}: it was never written"));
            return None;
        };
        if !self.seen.insert(key) {
            self.differs(key, "it came twice".to_owned());
        }
        Some((key, written))
    }

    fn differs(&mut self, key: &'a str, how: String) {
        self.bad.insert(key);
        self.differences.push(format!("{key}: {how}"));
    }
}

fn fingerprint(bytes: &[u8]) -> Written {
    Written {
        len_bytes: bytes.len() as u64,
        crc32: crc32fast::hash(bytes),
    }
}

/// The label as the text that it was written as.
fn label(column: Option<&Column>, row: usize) -> Option<Written> {
    let Some(Column::Tensor(tensor)) = column else {
        return None;
    };
    let bytes = tensor.bytes.chunks_exact(size_of::<i64>()).nth(row)?;
    let label = i64::from_ne_bytes(bytes.try_into().ok()?);
    (tensor.dtype == DType::I64).then(|| fingerprint(label.to_string().as_bytes()))
}

fn json(column: Option<&Column>, row: usize) -> Option<Written> {
    match column {
        Some(Column::Json(items)) => items.get(row).map(|item| fingerprint(item)),
        _ => None,
    }
}

fn is_picture(batch: &Batch, row: usize, size: usize) -> bool {
    let Some(Column::Tensor(tensor)) = batch.column("jpg") else {
        return false;
    };
    tensor.shape == [batch.len, CHANNELS, size, size] && !is_blank(tensor, row, size)
}

/// Whether all pixels are the same.
fn is_blank(tensor: &Tensor, row: usize, size: usize) -> bool {
    let picture = tensor.bytes.chunks_exact(size * size * CHANNELS).nth(row);
    let mut pixels = picture.unwrap_or_default().chunks_exact(CHANNELS);
    let first = pixels.next();
    pixels.all(|pixel| Some(pixel) == first)
}
