//! Members to samples. Whatever is wrong is an error, or, where the user asked for it, counted and passed over.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use super::hashed::Plain;
use super::names::{self, Named};
use super::tar::{DAMAGE_HELP, Damage, Entry, MISSING_EOF, Members};
use super::{Duplicates, Extent, Field, Pieces, Places, Sample, SampleOptions, left_out};
use crate::config::OnError;
use crate::error::{Error, ErrorKind, Printable, Result};
use crate::ledger::{Ledger, Lost};
use crate::sync::Arc;

/// The samples of one shard, read as its bytes come in.
///
/// A sample is given out as soon as the next header or the end is seen. After damage that leaves no way on, the sample
/// before it still comes, unless it is known that a member of it is missing; then the error, then nothing more. Where the
/// policy passes over it (`left_out.rs`), the ledger counts in place of the error, under the name of the cause: first one
/// sample where one is known to lack a member, then one shard, of which the rest is given up. An archive that ends between
/// two members without its end mark is counted as a warning (`missing_eof`), for nothing of it is known to be lost.
///
/// # Copies
///
/// None, but for members that cross two slices which are no neighbours: one, on `straddle`.
#[derive(Debug)]
pub struct SampleReader<I> {
    members: Members<I>,
    shard: Arc<str>,
    options: SampleOptions,
    ledger: Arc<Ledger>,
    current: Option<Open>,
    /// Of the fields of `current`.
    places: Places,
    /// A member whose header was read and which goes into `current`.
    due: Option<(Entry, String)>,
    /// An error to be given out after the sample before it.
    failed: Option<Error>,
    is_over: bool,
    has_members: bool,
    seen: HashSet<u64, Plain>,
    hasher: RandomState,
    usual_fields: usize,
}

/// The sample that is being put together.
#[derive(Debug)]
struct Open {
    sample: Sample,
    /// It will not be given out: that is counted, or the error is in `failed`.
    is_dropped: bool,
}

impl<I: Pieces> SampleReader<I> {
    /// Reads `shard` from `bytes`: its content in order, in pieces of any size. `len_bytes` is the length of the object
    /// as the store told it; fewer bytes are then an error, and so are more.
    pub fn new(
        shard: Arc<str>,
        len_bytes: Option<u64>,
        bytes: I,
        options: SampleOptions,
        ledger: &Arc<Ledger>,
    ) -> Self {
        Self::within(shard, Extent::WHOLE, len_bytes, bytes, options, ledger)
    }

    /// Reads a part of `shard`, whose `bytes` these are. Only a shard that is not compressed has parts.
    pub fn within(
        shard: Arc<str>,
        extent: Extent,
        len_bytes: Option<u64>,
        bytes: I,
        options: SampleOptions,
        ledger: &Arc<Ledger>,
    ) -> Self {
        let members = Members::new(
            bytes,
            Arc::clone(&shard),
            extent,
            len_bytes,
            options.ignore_zeros,
            ledger,
        );
        Self {
            members,
            shard,
            options,
            ledger: Arc::clone(ledger),
            current: None,
            places: Places::default(),
            due: None,
            failed: None,
            is_over: false,
            // What follows the last sample of a shard is no empty one.
            has_members: extent.start > 0,
            seen: HashSet::default(),
            hasher: RandomState::new(),
            usual_fields: 1,
        }
    }

    /// Whether the shard is compressed, so that its offsets are none of the object. Known from the first sample on.
    pub fn is_inflated(&self) -> bool {
        self.members.is_inflated()
    }

    /// The members behind the samples.
    pub(super) fn members(&mut self) -> &mut Members<I> {
        &mut self.members
    }

    /// Goes on to the next sample, or to the end.
    fn advance(&mut self) -> Result<Option<Sample>, Box<Damage>> {
        loop {
            if let Some((entry, field)) = self.due.take() {
                self.fill(entry, field)?;
                if self.failed.is_some() {
                    return Ok(None);
                }
            }
            let Some(entry) = self.members.next_entry()? else {
                if self.members.is_half_marked() {
                    self.warn(MISSING_EOF);
                }
                return Ok(self.end());
            };
            self.has_members = true;
            let before = self.place(entry);
            if before.is_some() || self.failed.is_some() {
                return Ok(before);
            }
        }
    }

    /// Finds the sample that a member belongs to; gives out the one before where a new one begins.
    fn place(&mut self, entry: Entry) -> Option<Sample> {
        let name = names::text(self.members.name());
        let (key, field) = match names::split(&name, self.options.key_rule) {
            Named::Aside(why) => {
                self.ledger.warned(why);
                return None;
            }
            Named::Field { key, field, odd } => {
                if let Some(odd) = odd {
                    self.ledger.warned(odd);
                }
                (key, field)
            }
        };
        let field = lower(field);
        if let Some(open) = &self.current
            && open.sample.key == key
        {
            self.due = Some((entry, field));
            return None;
        }
        let is_new = self.seen.insert(self.hasher.hash_one(key));
        let open = Open {
            sample: Sample {
                key: key.to_owned(),
                shard: Arc::clone(&self.shard),
                offset: entry.offset,
                end_offset: entry.offset,
                number: 0,
                source: 0,
                is_detached: false,
                fields: Vec::with_capacity(self.usual_fields),
            },
            is_dropped: false,
        };
        drop(name);
        let before = self.close();
        self.current = Some(open);
        self.places.clear();
        self.due = Some((entry, field));
        if !is_new {
            self.refuse(
                "key_again",
                entry.offset,
                ErrorKind::Corrupt,
                "comes back after other keys, so its sample is in pieces",
                "members of a sample must stand next to each other: pack with `tar --sort=name`",
            );
        }
        before
    }

    /// Puts a member's content into the current sample.
    fn fill(&mut self, entry: Entry, name: String) -> Result<(), Box<Damage>> {
        // What a sample holds of the stream reaches from its first header on, whatever lies between its members.
        let held = self
            .current
            .as_ref()
            .map_or(0, |open| entry.offset - open.sample.offset);
        if held.saturating_add(entry.size) > self.options.max_sample_bytes {
            let why = format!(
                "has a member {name:?} of {} bytes behind {held} bytes, where {} fit",
                entry.size, self.options.max_sample_bytes
            );
            self.refuse(
                "sample_too_large",
                entry.offset,
                ErrorKind::LimitReached,
                &why,
                "raise `memory`: three sixteenths of what each lane has of it may be one sample; use fewer `lanes`; or pack smaller members",
            );
        }
        let Some(open) = &mut self.current else {
            return Ok(());
        };
        let place = self
            .places
            .find(&open.sample.fields, |old| &old.name, &name);
        if place.is_some() {
            match self.options.duplicates {
                Duplicates::Error => self.refuse(
                    "duplicate_field",
                    entry.offset,
                    ErrorKind::Corrupt,
                    &format!("has the field {name:?} twice"),
                    "pack it without the double, or keep one of them: `duplicates=first` or `duplicates=last`",
                ),
                Duplicates::First => {
                    self.ledger.warned("duplicate_field");
                    return Ok(());
                }
                Duplicates::Last => self.ledger.warned("duplicate_field"),
            }
        }
        let Some(open) = self.current.as_mut().filter(|open| !open.is_dropped) else {
            return Ok(());
        };
        let bytes = match self.members.take(entry) {
            Ok(bytes) => bytes,
            Err(damage) => {
                self.lose_current(&damage, entry.offset, &name);
                return Err(damage);
            }
        };
        let field = Field {
            name,
            bytes,
            offset: entry.offset,
        };
        match place.and_then(|place| open.sample.fields.get_mut(place)) {
            Some(old) => *old = field,
            None => open.sample.fields.push(field),
        }
        open.sample.end_offset = self.members.end_offset();
        Ok(())
    }

    /// Marks the current sample as one that will not be given out, or fails.
    fn refuse(
        &mut self,
        cause: &'static str,
        offset: u64,
        kind: ErrorKind,
        why: &str,
        help: &'static str,
    ) {
        // One that is dropped already is told and counted once.
        let Some(open) = self.current.as_mut().filter(|open| !open.is_dropped) else {
            return;
        };
        let error = Error::new(
            kind,
            format!("read the sample {:?} at byte {offset} of", open.sample.key),
            &*self.shard,
            format!("key {:?} {why}", open.sample.key),
        )
        .with_help(help)
        .of_sample(&self.shard, &open.sample.key);
        open.is_dropped = true;
        // What is not given out holds no memory.
        open.sample.fields.clear();
        let on_error = &self.options.on_error;
        self.failed = left_out::leave_out(&self.ledger, on_error, Lost::Sample, cause, error).err();
    }

    /// Drops the current sample, a member of which is lost by damage that ends the shard.
    fn lose_current(&mut self, damage: &Damage, offset: u64, field: &str) {
        if damage.is_passed_over_by(&self.options.on_error) {
            let why = format!("lacks its field {field:?}: {}", damage.why());
            self.refuse(damage.cause(), offset, damage.kind(), &why, DAMAGE_HELP);
        } else {
            // The error is told for the shard.
            self.current = None;
        }
    }

    /// A clean end: what is open is whole.
    fn end(&mut self) -> Option<Sample> {
        self.is_over = true;
        if !self.has_members {
            self.warn("empty_shard");
        }
        self.close()
    }

    /// Ends the current sample, and gives it out unless it was dropped.
    fn close(&mut self) -> Option<Sample> {
        let open = self.current.take()?;
        if open.is_dropped {
            return None;
        }
        self.usual_fields = open.sample.fields.len();
        (!open.sample.fields.is_empty()).then_some(open.sample)
    }

    /// Damage that leaves no way on.
    fn give_up(&mut self, damage: Damage) -> Option<Sample> {
        self.is_over = true;
        if self.failed.is_some() {
            // What the damage did to a sample has ended the load.
            return self.close();
        }
        let (cause, is_harmless) = (damage.cause(), damage.costs_nothing_known());
        let last_good = self.members.last_good().map(names::text);
        let error = damage
            .into_error(&self.shard, last_good.as_deref())
            .of_shard(&self.shard);
        let (ledger, on_error) = (&self.ledger, &self.options.on_error);
        let passed = if is_harmless {
            left_out::take_all_the_same(ledger, on_error, cause, error)
        } else {
            left_out::leave_out(ledger, on_error, Lost::Shard, cause, error)
        };
        match passed {
            Ok(()) if is_harmless => self.end(),
            Ok(()) => self.close(),
            Err(error) => {
                self.failed = Some(error);
                self.close()
            }
        }
    }

    fn warn(&self, name: &str) {
        self.ledger.warned(name);
        if self.options.on_error == OnError::Warn {
            tracing::warn!("shard taken ({name}): {}", Printable(&self.shard));
        }
    }
}

impl<I: Pieces> Iterator for SampleReader<I> {
    type Item = Result<Sample>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(error) = self.failed.take() {
                self.is_over = true;
                self.current = None;
                return Some(Err(error));
            }
            if self.is_over {
                return None;
            }
            let sample = match self.advance() {
                Ok(sample) => sample,
                Err(damage) => self.give_up(*damage),
            };
            if let Some(sample) = sample {
                return Some(Ok(sample));
            }
        }
    }
}

/// In lower case, as WebDataset has field names.
fn lower(field: &str) -> String {
    if field.is_ascii() {
        field.to_ascii_lowercase()
    } else {
        field.to_lowercase()
    }
}
