//! Several loaders as one.

use super::{Loader, Mix};
use crate::batch::Fields;
use crate::error::{Error, ErrorKind, Result};
use crate::sample::order::Mixture;
use crate::sync::Arc;

/// What a mixture is made of.
#[derive(Debug)]
pub(super) struct Mixed {
    pub(super) parts: Vec<Loader>,
    pub(super) weights: Vec<f64>,
    pub(super) how: Mix,
}

/// Mixes the samples of `loaders`, each of which was opened, given an index, shuffled or cut down to a part, and no more; what
/// follows is said of the whole. URLs, store, index, shuffle, choices, and how shards are read are each loader's own.
///
/// # Errors
///
/// `InvalidInput` where there is none, where more was said of one, where they differ in what is the whole's, or where a weight is
/// not positive and finite.
pub fn mix(loaders: impl IntoIterator<Item = Loader>, how: Mix) -> Result<Loader> {
    let parts: Vec<Loader> = loaders.into_iter().collect();
    let Some(first) = parts.first() else {
        return Err(refused("there is none").with_help("give one loader at least"));
    };
    for (at, part) in parts.iter().enumerate() {
        part.check_part(at)?;
        if let Some(name) = first.difference(part) {
            return Err(refused(format!(
                "loader {at} (counted from 0) has another {name} than the first one"
            ))
            .with_help(format!(
                "give all loaders the same {name}: it is one for the whole"
            )));
        }
    }
    let weights = how.weights.clone();
    let weights = weights.unwrap_or_else(|| vec![1.0; parts.len()]);
    if weights.len() != parts.len() {
        return Err(refused(format!(
            "{} weights are given for {} loaders",
            weights.len(),
            parts.len()
        ))
        .with_help("give one for each"));
    }
    Mixture::new(&weights, how.seed, 0)?;
    let mut whole = first.clone();
    whole.urls = parts.iter().flat_map(|part| part.urls.clone()).collect();
    (whole.shuffle, whole.counted, whole.index, whole.catalog) = (None, None, None, None);
    whole.choices = Vec::new();
    whole.mixed = Some(Arc::new(Mixed {
        parts,
        weights,
        how,
    }));
    Ok(whole)
}

impl Loader {
    /// The loaders that this is made of: itself, where it is no mixture.
    pub(super) fn parts(&self) -> Vec<&Self> {
        match &self.mixed {
            Some(mixed) => mixed.parts.iter().collect(),
            None => vec![self],
        }
    }

    /// Whether samples are counted: then those that are dropped are not even read.
    pub(super) fn is_counted(&self) -> bool {
        let parts = self.parts();
        parts
            .iter()
            .all(|part| part.counted.is_some() || part.index.is_some())
    }

    /// Refuses what can be said of the whole only.
    fn check_part(&self, at: usize) -> Result<()> {
        if self.mixed.is_some() {
            return Err(
                refused(format!("loader {at} (counted from 0) is a mixture itself"))
                    .with_help("mix all loaders at once, with their weights multiplied"),
            );
        }
        let plan = &self.plan;
        let is_plain = plan.size.is_none()
            && plan.fields == Fields::All
            && !plan.is_decoding
            && plan.decoders.is_empty()
            && self.limit.is_none()
            && self.position.is_none();
        if is_plain {
            return Ok(());
        }
        Err(refused(format!(
            "of loader {at} (counted from 0) more is said than what it reads"
        ))
        .with_help("decode, choose fields, batch and limit after they are mixed"))
    }

    /// The name of a setting of the whole that `other` has otherwise.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        let (one, two) = (&self.config, &other.config);
        let connections = |loader: &Self| loader.config.store.limits.connections;
        [
            ("`memory`", one.memory_bytes == two.memory_bytes),
            ("length of ranges", one.range_bytes == two.range_bytes),
            ("`decode_threads`", one.decode_threads == two.decode_threads),
            ("`on_error`", one.on_error == two.on_error),
            ("`max_skipped`", one.max_skipped == two.max_skipped),
            ("`wait_limit`", one.wait_limit == two.wait_limit),
            ("`route`", one.route == two.route),
            ("`connections`", connections(self) == connections(other)),
            (
                "`lanes`",
                (self.lanes, self.groups) == (other.lanes, other.groups),
            ),
            ("`steps_per_epoch`", self.steps == other.steps),
            ("`device`", self.device == other.device),
            ("`world_size`", self.part == other.part),
            ("epoch", self.epoch == other.epoch),
        ]
        .into_iter()
        .find_map(|(name, is_same)| (!is_same).then_some(name))
    }
}

pub(super) fn refused(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidInput, "mix", "the loaders", why.into())
}
