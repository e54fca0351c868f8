//! What moves and what is under way: told by whoever does it, asked by nobody but who has waited too long.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::{Duration, Instant};

use super::Ledger;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};

/// Something that was begun elsewhere and whose end is waited for. What explains why nothing moves comes before what only
/// follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Await {
    /// The caller's function, which was asked what to do about an error.
    Answer,
    /// A decoder, at work on a sample.
    Decoder,
    /// A call to the file system, which has no time limit of its own.
    Disk,
    /// A request; what it waits for has limits of its own.
    Request,
    /// Memory of the pool, all of which is held.
    Memory,
}

/// What one thread or task is at. Dropping it says that it came to its end.
#[derive(Debug)]
pub struct OpenAwait {
    pulse: Arc<Pulse>,
    number: u64,
    place: Arc<Place>,
}

/// What is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    /// What kind of thing.
    pub kind: Await,
    /// What, in words that follow `for`: `bytes 0..512 of a.tar`.
    pub what: String,
    /// For how long.
    pub time: Duration,
}

#[derive(Debug)]
struct Place {
    kind: Await,
    /// Guards what is done there; held to write it down or to read it.
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    /// None while nothing is done.
    since: Option<Instant>,
    what: String,
}

/// Shared by a ledger and those beside it, so that whatever moves is seen.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    stirs: AtomicU64,
    numbers: AtomicU64,
    /// Guards the list of what is open; held to enter, to leave or to read it.
    open: Mutex<BTreeMap<u64, Arc<Place>>>,
}

impl Pulse {
    pub(super) fn stir(&self) {
        self.stirs.fetch_add(1, Ordering::Relaxed);
    }
}

impl Ledger {
    /// Tells a place at which something will be under way now and then.
    #[must_use]
    pub fn place(&self, kind: Await) -> OpenAwait {
        let pulse = Arc::clone(self.pulse());
        let place = Arc::new(Place {
            kind,
            now: Mutex::default(),
        });
        let number = pulse.numbers.fetch_add(1, Ordering::Relaxed);
        pulse.open.lock().insert(number, Arc::clone(&place));
        OpenAwait {
            pulse,
            number,
            place,
        }
    }

    /// Tells what is under way from now on, in words that follow `for`.
    #[must_use]
    pub fn awaits(&self, kind: Await, what: impl fmt::Display) -> OpenAwait {
        let open = self.place(kind);
        open.begin(what);
        open
    }

    /// A number that is another one once anything has moved: bytes, requests, tries, what is under way.
    #[must_use]
    pub fn stirs(&self) -> u64 {
        self.pulse().stirs.load(Ordering::Relaxed)
    }

    /// What is under way: what explains most, and then the longest, comes first.
    #[must_use]
    pub fn awaited(&self) -> Vec<Awaited> {
        let open = self.pulse().open.lock();
        let mut awaited: Vec<Awaited> = open
            .values()
            .filter_map(|place| {
                let now = place.now.lock();
                Some(Awaited {
                    kind: place.kind,
                    what: now.what.clone(),
                    time: now.since?.elapsed(),
                })
            })
            .collect();
        awaited.sort_by_key(|one| (one.kind, std::cmp::Reverse(one.time)));
        awaited
    }
}

impl OpenAwait {
    /// Something is under way here from now on.
    pub fn begin(&self, what: impl fmt::Display) {
        self.pulse.stir();
        let mut now = self.place.now.lock();
        now.since = Some(Instant::now());
        now.what.clear();
        // A text takes whatever is written.
        let _never_fails = write!(now.what, "{what}");
    }

    /// Nothing is, for now.
    pub fn end(&self) {
        self.place.now.lock().since = None;
    }
}

impl Drop for OpenAwait {
    fn drop(&mut self) {
        self.pulse.open.lock().remove(&self.number);
        self.pulse.stir();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_is_told_until_its_end_and_the_cause_before_what_follows_from_it() {
        let ledger = Ledger::unread();
        let before = ledger.stirs();
        let memory = ledger.awaits(Await::Memory, "memory");
        let first = ledger.awaits(Await::Disk, "the first");
        let second = ledger.unread_beside().awaits(Await::Disk, "the second");
        let decoder = ledger.place(Await::Decoder);
        let told = |ledger: &Ledger| -> Vec<String> {
            let awaited = ledger.awaited();
            awaited.into_iter().map(|one| one.what).collect()
        };
        assert_eq!(told(&ledger), ["the first", "the second", "memory"]);
        decoder.begin(format_args!("sample {}", 7));
        assert_eq!(told(&ledger)[0], "sample 7");
        decoder.end();
        drop((first, memory));
        assert_eq!(told(&ledger), ["the second"]);
        drop((second, decoder));
        assert!(told(&ledger).is_empty());
        assert!(ledger.stirs() > before);
    }
}
