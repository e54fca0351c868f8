//! Checksums of objects that are read in ranges: what the store gives, and how much of it has passed.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::sync::OnceLock;

use super::super::checksum::{Checksum, Sum};
use super::super::http1::Failure;
use super::super::{ETag, Key, Object, origin};
use crate::ledger::Ledger;
use crate::sync::{Arc, Mutex};

/// Objects whose checksums are remembered. An entry takes some 300 bytes, and one that is dropped costs a look-up.
const MOST_OBJECTS: usize = 16 << 10;

/// What a look-up told.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct Told {
    pub(in crate::store) expected: Option<Checksum>,
    /// The version that it is the checksum of.
    pub(in crate::store) etag: Option<ETag>,
}

/// How a piece changed what is known of an object.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// More of it is to come, or it says nothing about what is expected.
    Open,
    /// All bytes have passed, and they are what the store has.
    Right,
    /// All bytes have passed, and they are not.
    Wrong,
}

/// The checksums of one bucket's objects.
#[derive(Debug, Default)]
pub(in crate::store) struct Sums {
    /// Guards the table; held for a look or a change only.
    table: Mutex<Table>,
}

type Name = (Key, Option<Arc<str>>);

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<Name, Arc<Entry>>,
    /// Oldest first.
    order: VecDeque<Name>,
}

/// One object.
#[derive(Debug, Default)]
struct Entry {
    told: OnceLock<Told>,
    /// Held while it is looked up, so that all ranges wait for one look-up.
    looking: tokio::sync::Mutex<()>,
    /// Guards the pieces that have passed, by where they begin. Neighbours are one.
    pieces: Mutex<BTreeMap<u64, Sum>>,
}

impl Sums {
    /// What the store says of `object`, asked once for all ranges of a version by `look_up`, which notes it. Nothing
    /// where that fails: then nothing is asked again.
    pub(super) async fn told(&self, object: &Object, look_up: impl Future<Output = ()>) -> Told {
        let entry = self.entry(object);
        if let Some(told) = entry.told.get() {
            return told.clone();
        }
        let _one_at_a_time = entry.looking.lock().await;
        if entry.told.get().is_none() {
            look_up.await;
        }
        entry.told.get_or_init(Told::default).clone()
    }

    /// Notes what a look-up told.
    pub(in crate::store) fn note(&self, object: &Object, told: Told) {
        // Another request may have noted it in the meantime: the same.
        let _was_there = self.entry(object).told.set(told);
    }

    /// Takes in the sum of a piece, counts the object as verified where that was the last one and all of it is right, and fails
    /// where it is wrong.
    pub(in crate::store) fn hold(
        &self,
        object: &Object,
        offset: u64,
        sum: Sum,
        ledger: &Ledger,
    ) -> Result<(), Failure> {
        let algorithm = sum.algorithm();
        match self.passed(object, offset, sum) {
            Outcome::Open => Ok(()),
            Outcome::Right => {
                ledger.verified(algorithm.name());
                Ok(())
            }
            Outcome::Wrong => Err(origin::wrong_bytes(algorithm)),
        }
    }

    /// Notes that the bytes of `sum` have passed, which begin at `offset`.
    fn passed(&self, object: &Object, offset: u64, sum: Sum) -> Outcome {
        let entry = self.entry(object);
        let Some(told) = entry.told.get() else {
            return Outcome::Open;
        };
        let (Some(expected), Some(len)) = (&told.expected, object.len_bytes) else {
            return Outcome::Open;
        };
        let mut pieces = entry.pieces.lock();
        lay(&mut pieces, offset, sum);
        let is_whole = pieces.get(&0).is_some_and(|sum| sum.len_bytes() == len);
        if !is_whole {
            return Outcome::Open;
        }
        // The next reading of it begins anew.
        let all = std::mem::take(&mut *pieces);
        if all.get(&0).is_some_and(|sum| expected.is(sum)) {
            Outcome::Right
        } else {
            Outcome::Wrong
        }
    }

    /// The entry of `object`: a new one where it has another version than the one that was asked about.
    fn entry(&self, object: &Object) -> Arc<Entry> {
        let name = (object.key.clone(), object.version.clone());
        let mut table = self.table.lock();
        if let Some(entry) = table.entries.get(&name) {
            let known = entry.told.get().and_then(|told| told.etag.as_ref());
            let is_same = match (known, &object.etag) {
                (Some(known), Some(now)) => bare(known) == bare(now),
                _ => true,
            };
            if is_same {
                return Arc::clone(entry);
            }
        } else {
            table.order.push_back(name.clone());
        }
        if table.order.len() > MOST_OBJECTS
            && let Some(oldest) = table.order.pop_front()
        {
            table.entries.remove(&oldest);
        }
        let entry = Arc::new(Entry::default());
        table.entries.insert(name, Arc::clone(&entry));
        entry
    }
}

fn bare(tag: &ETag) -> &str {
    tag.0.trim_start_matches("W/").trim_matches('"')
}

/// Lays a piece among the others and joins it with its neighbours. One that overlaps others was read before.
fn lay(pieces: &mut BTreeMap<u64, Sum>, offset: u64, sum: Sum) {
    let end = offset.saturating_add(sum.len_bytes());
    if sum.len_bytes() == 0 || pieces.range(offset..end).next().is_some() {
        return;
    }
    let mut at = offset;
    let mut whole = sum;
    let before = pieces.range(..offset).next_back();
    if let Some((from, before)) = before.map(|(from, sum)| (*from, sum.clone())) {
        let before_end = from.saturating_add(before.len_bytes());
        if before_end > offset {
            return;
        }
        if before_end == offset
            && let Some(joined) = before.joined(&whole)
        {
            pieces.remove(&from);
            (at, whole) = (from, joined);
        }
    }
    if let Some(joined) = pieces
        .get(&end)
        .and_then(|after| whole.clone().joined(after))
    {
        pieces.remove(&end);
        whole = joined;
    }
    pieces.insert(at, whole);
}

#[cfg(test)]
mod tests {
    use super::super::super::checksum::Algorithm;
    use super::super::super::http1::Head;
    use super::*;

    const BYTES: &[u8] = b"123456789";

    fn object(etag: Option<&str>) -> Object {
        Object {
            url: "s3://b/k".into(),
            key: Key::new(*b"k"),
            version: None,
            len_bytes: Some(BYTES.len() as u64),
            etag: etag.map(|text| ETag(text.into())),
            modified_unix: None,
        }
    }

    fn told(base64: &str, etag: &str) -> Told {
        let text = format!("HTTP/1.1 200 OK\r\nx-amz-checksum-crc32: {base64}\r\n\r\n");
        let head = Head::parse(text.as_bytes()).unwrap().unwrap().0;
        Told {
            expected: Checksum::of(&head.headers),
            etag: Some(ETag(etag.into())),
        }
    }

    fn piece(from: usize, to: usize) -> Sum {
        let mut sum = Sum::new(Algorithm::Crc32);
        sum.update(&BYTES[from..to]);
        sum
    }

    fn outcomes(sums: &Sums, pieces: &[(usize, usize)]) -> Vec<Outcome> {
        let object = object(Some("\"a\""));
        pieces
            .iter()
            .map(|(from, to)| sums.passed(&object, *from as u64, piece(*from, *to)))
            .collect()
    }

    #[test]
    fn ranges_in_any_order_and_more_than_once_make_the_whole() {
        use Outcome::{Open, Right};
        let sums = Sums::default();
        sums.note(&object(None), told("y/Q5Jg==", "\"a\""));
        for pieces in [
            &[(0, 3), (3, 6), (6, 9)][..],
            &[(6, 9), (0, 3), (3, 6)],
            &[(3, 6), (3, 6), (0, 3), (2, 5), (6, 9)],
            &[(0, 9)],
        ] {
            let outcomes = outcomes(&sums, pieces);
            let (last, before) = outcomes.split_last().unwrap();
            assert_eq!(*last, Right, "{pieces:?}");
            assert!(before.iter().all(|outcome| *outcome == Open), "{pieces:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_what_the_store_has_are_wrong() {
        let sums = Sums::default();
        sums.note(&object(None), told("y/Q5Jw==", "\"a\""));
        assert_eq!(outcomes(&sums, &[(0, 9)]), [Outcome::Wrong]);
    }

    #[test]
    fn another_version_begins_anew_and_nothing_told_proves_nothing() {
        let sums = Sums::default();
        sums.note(&object(None), told("y/Q5Jg==", "\"a\""));
        assert_eq!(outcomes(&sums, &[(0, 3)]), [Outcome::Open]);
        let other = object(Some("\"b\""));
        assert_eq!(sums.passed(&other, 3, piece(3, 9)), Outcome::Open);
        sums.note(&other, Told::default());
        assert_eq!(sums.passed(&other, 0, piece(0, 9)), Outcome::Open);
    }

    #[tokio::test]
    async fn all_ranges_wait_for_one_look_up() {
        let sums = Arc::new(Sums::default());
        let looked_up = Arc::new(crate::sync::AtomicUsize::new(0));
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (sums, looked_up) = (Arc::clone(&sums), Arc::clone(&looked_up));
            running.spawn(async move {
                let look_up = async {
                    tokio::task::yield_now().await;
                    looked_up.fetch_add(1, crate::sync::Ordering::Relaxed);
                    sums.note(&object(None), told("y/Q5Jg==", "\"a\""));
                };
                sums.told(&object(None), look_up).await.expected.is_some()
            });
        }
        while let Some(is_told) = running.join_next().await {
            assert!(is_told.unwrap());
        }
        assert_eq!(looked_up.load(crate::sync::Ordering::Relaxed), 1);
        let mut other = object(None);
        other.key = Key::new(*b"other");
        assert!(sums.told(&other, async {}).await.expected.is_none());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let sums = Sums::default();
        for at in 0..MOST_OBJECTS + 100 {
            let mut object = object(None);
            object.key = Key::new(at.to_string());
            sums.note(&object, told("y/Q5Jg==", "\"a\""));
        }
        let table = sums.table.lock();
        assert_eq!(table.entries.len(), MOST_OBJECTS);
        assert_eq!(table.order.len(), MOST_OBJECTS);
    }
}
