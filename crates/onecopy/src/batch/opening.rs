//! Which form the next block has, where samples of another form are left out and not an error.
//!
//! A block is laid out by two samples of one form, and never by one alone: else an odd sample that happens to be a block's
//! first would get all the good ones behind it left out. The block before counts as one of the two, so that in the normal
//! case nothing waits:
//!
//! ```text
//!  block before: A    next sample: A          -> a block of A, at once
//!  block before: A    next samples: B A       -> a block of A; B is left out
//!  block before: A    next samples: B B       -> a block of B: the data changed its form
//!  no block before    next samples: B A A     -> a block of A; B is left out
//!  no block before    next sample:  B, end    -> a block of B: there is nothing that it differs from
//!  block before: A    next sample:  B, end    -> B is left out
//! ```
//!
//! What is decided depends on the order of samples alone. Samples that wait are copied out of the pool, so that the bytes
//! behind them can come, however long it takes until two are alike.

use std::collections::VecDeque;

use super::form::Form;
use super::picked::Picked;
use crate::error::Error;
use crate::ledger::OpenHop;

/// The most samples that wait. Two neighbours of one form are found with two; more are for data in which odd samples
/// stand in a row, and a row of eight different ones is no data of one form.
const HELD: usize = 8;

/// Decides which form the next block has.
#[derive(Debug)]
pub struct Opening {
    /// The form of the block before.
    before: Option<Form>,
    /// Samples whose forms all differ, from each other and from the block before.
    held: VecDeque<(Picked, Form)>,
    held_bytes: usize,
    limit_bytes: usize,
}

/// What came of a sample.
#[derive(Debug, Default)]
pub struct Opened {
    /// The form of the block that now begins, and the samples that it begins with.
    pub block: Option<(Form, Vec<Picked>)>,
    /// A reason for each sample that is left out.
    pub odd: Vec<Error>,
}

impl Opened {
    /// A block laid out by its first sample, whatever comes after it.
    #[must_use]
    pub fn at_once(form: Form, first: Picked) -> Self {
        Self {
            block: Some((form, vec![first])),
            odd: Vec::new(),
        }
    }
}

impl Opening {
    /// For samples of which at most `limit_bytes` wait, or one, whatever its size.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            before: None,
            held: VecDeque::new(),
            held_bytes: 0,
            limit_bytes,
        }
    }

    /// Takes the next sample while no block is open. `hop` is `hold`.
    ///
    /// # Copies
    ///
    /// One in user space where the sample has to wait.
    pub fn take(&mut self, hop: &OpenHop, mut picked: Picked, form: Form) -> Opened {
        let mut known = self
            .before
            .iter()
            .chain(self.held.iter().map(|(_, form)| form));
        if let Some(known) = known.find(|known| **known == form) {
            return self.open(known.clone(), Some(picked));
        }
        let mut odd = Vec::new();
        while self.held.len() >= HELD
            || !self.held.is_empty() && self.held_bytes + picked.len_bytes() > self.limit_bytes
        {
            let Some((oldest, its)) = self.held.pop_front() else {
                break;
            };
            self.held_bytes -= oldest.len_bytes();
            odd.push(match &self.before {
                Some(before) => before.refusal(&oldest.sample, &its, "the batch before has"),
                None => form.refusal(&oldest.sample, &its, "a sample after it has"),
            });
        }
        self.held_bytes += picked.len_bytes();
        picked.detach(hop);
        self.held.push_back((picked, form));
        Opened { block: None, odd }
    }

    /// Ends the waiting, since there are no more samples.
    pub fn end(&mut self) -> Opened {
        let Some((_, first)) = self.held.front() else {
            return Opened::default();
        };
        let Some(before) = &self.before else {
            let first = first.clone();
            return self.open(first, None);
        };
        let odd = self
            .held
            .drain(..)
            .map(|(held, form)| before.refusal(&held.sample, &form, "the batch before has"))
            .collect();
        self.held_bytes = 0;
        Opened { block: None, odd }
    }

    fn open(&mut self, form: Form, last: Option<Picked>) -> Opened {
        let (mut samples, mut odd) = (Vec::new(), Vec::new());
        for (held, its) in self.held.drain(..) {
            if its == form {
                samples.push(held);
            } else {
                odd.push(form.refusal(&held.sample, &its, "its batch has"));
            }
        }
        samples.extend(last);
        self.held_bytes = 0;
        self.before = Some(form.clone());
        Opened {
            block: Some((form, samples)),
            odd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BatchPlan, Picked};
    use super::*;
    use crate::buffer::Slice;
    use crate::ledger::Ledger;
    use crate::route::Hop;
    use crate::sample::{Field, Sample};
    use crate::sync::Arc;

    /// A sample with one array of `len` bytes, and the form it has.
    fn sample(key: &str, len: usize) -> (Picked, Form) {
        let mut bytes = Vec::from(*b"\x93NUMPY\x02\x00");
        let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({len},), }}\n");
        bytes.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
        bytes.extend(header.bytes());
        bytes.resize(bytes.len() + len, 0);
        let sample = Sample {
            key: key.to_owned(),
            shard: Arc::from("a.tar"),
            offset: 512,
            end_offset: 1024,
            number: 0,
            source: 0,
            is_detached: false,
            fields: vec![Field {
                name: "npy".to_owned(),
                bytes: Slice::from_vec(bytes),
                offset: 512,
            }],
        };
        let plan = BatchPlan {
            is_decoding: true,
            ..BatchPlan::default()
        };
        let picked = Picked::new(&Ledger::unread().hop(Hop::Decode), &plan, sample).unwrap();
        let form = picked.form().unwrap();
        (picked, form)
    }

    fn keys(opened: &Opened) -> Vec<&str> {
        let samples = opened.block.iter().flat_map(|(_, samples)| samples);
        samples.map(|picked| &*picked.sample.key).collect()
    }

    #[test]
    fn what_is_left_out_is_named_with_shard_key_and_field() {
        let hop = Ledger::unread().hop(Hop::Hold);
        let mut opening = Opening::new(1 << 20);
        let mut take = |key, len| {
            let (picked, form) = sample(key, len);
            opening.take(&hop, picked, form)
        };
        assert!(take("odd", 7).block.is_none());
        assert!(take("one", 3).block.is_none());
        let opened = take("two", 3);
        assert_eq!(keys(&opened), ["one", "two"]);
        let text = opened.odd[0].to_string();
        for part in [
            "\"odd\"",
            "byte 512",
            "a.tar",
            "\"npy\"",
            "uint8 [7]",
            "its batch has uint8 [3]",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(take("last", 9).block.is_none());
        let opened = opening.end();
        let text = opened.odd[0].to_string();
        assert!(
            opened.block.is_none() && text.contains("the batch before has uint8 [3]"),
            "{text}"
        );
    }

    #[test]
    fn few_wait_and_nothing_that_waits_lies_where_it_came_in() {
        let hop = Ledger::unread().hop(Hop::Hold);
        for (limit_bytes, expected) in [(1 << 20, HELD), (250, 1), (0, 1)] {
            let mut opening = Opening::new(limit_bytes);
            let mut left_out = 0;
            for len in 100..120 {
                let (picked, form) = sample("odd", len);
                let came_in = picked.chosen[0].bytes.as_ptr();
                left_out += opening.take(&hop, picked, form).odd.len();
                let (held, _) = opening.held.back().unwrap();
                assert_ne!(held.chosen[0].bytes.as_ptr(), came_in);
                let held_bytes: usize = opening.held.iter().map(|(held, _)| held.len_bytes()).sum();
                assert_eq!(opening.held_bytes, held_bytes);
                assert!(held_bytes <= limit_bytes || opening.held.len() == 1);
            }
            assert_eq!((opening.held.len(), left_out), (expected, 20 - expected));
            assert_eq!(keys(&opening.end()).len(), 1);
        }
    }
}
