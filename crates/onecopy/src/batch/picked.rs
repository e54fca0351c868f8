//! A sample on its way to a block: nothing but what is wanted of it.

use super::form::{ColumnPlan, Form, layout_of};
use super::plan::BatchPlan;
use super::select::{self, Chosen};
use crate::buffer::copy;
use crate::error::Result;
use crate::ledger::OpenHop;
use crate::sample::Sample;

/// A sample whose wanted fields are taken out; it holds no memory for the others.
#[derive(Debug)]
pub struct Picked {
    /// Who it is; its fields are gone.
    pub(super) sample: Sample,
    pub(super) chosen: Vec<Chosen>,
}

impl Picked {
    /// Takes the wanted fields out of `sample`. `hop` is `decode`; deflated arrays are inflated beside it.
    ///
    /// # Errors
    ///
    /// `NotFound` where a wanted field is missing; what an archive of arrays can meet.
    pub fn new(hop: &OpenHop, plan: &BatchPlan, mut sample: Sample) -> Result<Self> {
        let chosen = select::select(hop, plan, &sample)?;
        sample.fields = Vec::new();
        Ok(Self { sample, chosen })
    }

    /// See [`Sample::number`].
    #[must_use]
    pub fn number(&self) -> u64 {
        self.sample.number
    }

    /// What a block of samples like this one would be, from the headers of its fields.
    ///
    /// # Errors
    ///
    /// Where a header does not parse, naming sample and field.
    pub fn form(&self) -> Result<Form> {
        let column = |one: &Chosen| {
            let value = one
                .decoder
                .probe(&one.bytes)
                .map_err(|error| select::of_field(&self.sample, &one.column, &error))?;
            Ok(ColumnPlan {
                name: one.column.clone(),
                decoder: one.decoder,
                layout: layout_of(value),
            })
        };
        let columns = self.chosen.iter().map(column).collect::<Result<Vec<_>>>()?;
        Ok(Form::new(columns))
    }

    /// The bytes of all wanted fields together.
    pub(super) fn len_bytes(&self) -> usize {
        self.chosen.iter().map(|one| one.bytes.len()).sum()
    }

    /// Moves the fields into ordinary memory, so that what they lie in can be filled again. `hop` is `hold`.
    ///
    /// # Copies
    ///
    /// One in user space.
    pub(super) fn detach(&mut self, hop: &OpenHop) {
        for one in &mut self.chosen {
            one.bytes = copy::assemble(hop, std::slice::from_ref(&one.bytes));
        }
    }
}
