//! The wanted fields out of a sample.

use super::plan::{BatchPlan, Fields};
use crate::buffer::Slice;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::sample::decode::{Decoder, npz_members};
use crate::sample::{Places, Sample};

/// A wanted field of a sample.
#[derive(Debug)]
pub(super) struct Chosen {
    /// The column that it goes to.
    pub(super) column: String,
    /// How it is decoded: told by the field that the sample has, and not by the list of alternatives.
    pub(super) decoder: Decoder,
    pub(super) bytes: Slice,
}

/// The wanted fields of `sample`, in order, each under the name of its column. An npz field becomes one entry for each
/// of its arrays, named `<field>/<array>`.
pub(super) fn select(hop: &OpenHop, plan: &BatchPlan, sample: &Sample) -> Result<Vec<Chosen>> {
    let mut chosen = Vec::new();
    match &plan.fields {
        Fields::All => {
            for field in &sample.fields {
                push(
                    hop,
                    plan,
                    sample,
                    &field.name,
                    &field.name,
                    &field.bytes,
                    &mut chosen,
                )?;
            }
        }
        Fields::Named(names) => {
            let mut places = Places::default();
            let mut find = |one: &str| {
                let place = places.find(&sample.fields, |field| &field.name, one.trim())?;
                sample.fields.get(place)
            };
            for name in names {
                let Some(field) = name.split(';').find_map(&mut find) else {
                    return Err(missing(sample, name));
                };
                push(
                    hop,
                    plan,
                    sample,
                    name,
                    &field.name,
                    &field.bytes,
                    &mut chosen,
                )?;
            }
        }
    }
    Ok(chosen)
}

fn push(
    hop: &OpenHop,
    plan: &BatchPlan,
    sample: &Sample,
    column: &str,
    field: &str,
    bytes: &Slice,
    chosen: &mut Vec<Chosen>,
) -> Result<()> {
    let decoder = plan.decoder(field);
    if !matches!(decoder, Decoder::Npz) {
        chosen.push(Chosen {
            column: column.to_owned(),
            decoder,
            bytes: bytes.clone(),
        });
        return Ok(());
    }
    let members = npz_members(hop, bytes).map_err(|error| of_field(sample, field, &error))?;
    for (array, bytes) in members {
        chosen.push(Chosen {
            column: format!("{column}/{array}"),
            decoder: Decoder::Npy,
            bytes,
        });
    }
    Ok(())
}

/// Says in which sample and field a decoder's complaint arose.
pub(super) fn of_field(sample: &Sample, field: &str, error: &Error) -> Error {
    let told = Error::new(
        error.kind(),
        format!("{} field {field:?} of", error.doing()),
        name_of(sample),
        error.why(),
    )
    .of_sample(&sample.shard, &sample.key);
    match error.help() {
        Some(help) => told.with_help(help),
        None => told.with_help(
            "leave such samples out with `on_error=skip`, or repack the shard without it",
        ),
    }
}

/// The sample as an error names it.
pub(super) fn name_of(sample: &Sample) -> String {
    format!(
        "sample {:?} at byte {} of {}",
        sample.key, sample.offset, sample.shard
    )
}

/// Names an error shows; a sample may have a hundred thousand fields.
const NAMES_SHOWN: usize = 20;

/// Names as an error shows them.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names = names.fuse();
    let shown: Vec<&str> = names.by_ref().take(NAMES_SHOWN).collect();
    let shown = shown.join(", ");
    match names.count() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn missing(sample: &Sample, name: &str) -> Error {
    let present = listed(sample.fields.iter().map(|field| &*field.name));
    Error::new(
        ErrorKind::NotFound,
        format!("find field {name:?} in"),
        name_of(sample),
        format!("it has only {present}"),
    )
    .of_sample(&sample.shard, &sample.key)
    .with_help("name alternatives as \"jpg;png\", or leave such samples out with `on_error=skip`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Ledger;
    use crate::route::Hop;
    use crate::sample::Field;
    use crate::sync::Arc;

    #[test]
    fn a_hundred_thousand_fields_are_found_by_name_and_listed_in_few_words() {
        const FIELDS: usize = 100_000;
        let sample = Sample {
            key: "a".to_owned(),
            shard: Arc::from("a.tar"),
            offset: 0,
            end_offset: 512,
            number: 0,
            source: 0,
            is_detached: false,
            fields: (0..FIELDS)
                .map(|part| Field {
                    name: format!("part{part}"),
                    bytes: Slice::empty(),
                    offset: 0,
                })
                .collect(),
        };
        let hop = Ledger::unread().hop(Hop::Decode);
        let mut plan = BatchPlan {
            fields: Fields::Named(
                (0..FIELDS)
                    .rev()
                    .map(|part| format!("x;part{part}"))
                    .collect(),
            ),
            ..BatchPlan::default()
        };
        let chosen = select(&hop, &plan, &sample).unwrap();
        assert_eq!(chosen.len(), FIELDS);
        assert_eq!(chosen[0].column, "x;part99999");
        plan.fields = Fields::Named(vec!["jpg".to_owned()]);
        let error = select(&hop, &plan, &sample).unwrap_err().to_string();
        assert!(error.contains("part19 and 99980 more"), "{error}");
    }
}
