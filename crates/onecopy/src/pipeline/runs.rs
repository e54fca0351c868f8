//! Ranges to requests: neighbouring ranges whose memory is there are asked for together, in a *run*, once a connection is
//! about to be free. Each range is handed on as soon as it is full.

use std::collections::VecDeque;
use std::pin::pin;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;

use super::run_len::{FIRST_BYTES, Facts};
use crate::buffer::{Slab, Slice};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::store::{ETag, Filled, Object, Pace, Source, Taker};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};

/// For so many connections there is one run more, which waits for whichever is free first: none idles while the next run is
/// made up, and one that waits tells that more connections could be used.
const CONNECTIONS_PER_SPARE: usize = 8;

/// One range whose memory is there.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) lane: usize,
    pub(super) shard: Arc<Shard>,
    pub(super) offset: u64,
    pub(super) target: Slab,
    pub(super) answer: Answer,
    /// What is left to be asked for from here on, over the whole load, as far as lengths are known.
    pub(super) left_bytes: u64,
}

/// Where a range is waited for.
pub(super) type Answer = oneshot::Sender<Result<Slice>>;

/// What the ranges of a shard have in common.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) source: Source,
    pub(super) len_bytes: u64,
    /// Guards the version that the first answer told.
    pub(super) version: Mutex<Option<ETag>>,
}

/// Makes up runs, and keeps those that are on their way.
#[derive(Debug)]
pub(super) struct Runs {
    hop: OpenHop,
    range_bytes: usize,
    /// Whether a run may be longer than a range.
    is_joining: bool,
    /// Of each lane its ranges, in the order of consumption; each with a number that says when it was asked for.
    waiting: Vec<VecDeque<(u64, Asked)>>,
    /// How many bytes of each were asked the store for.
    begun_bytes: Vec<u64>,
    asked: u64,
    tasks: JoinSet<()>,
    open: Arc<Open>,
}

/// Memory of ranges that is leased and not yet full.
#[derive(Debug, Default)]
pub(super) struct Open {
    bytes: AtomicU64,
    less: Notify,
}

impl Open {
    pub(super) fn add(&self, len: usize) {
        self.bytes.fetch_add(len as u64, Ordering::Relaxed);
    }

    fn filled(&self, len: u64) {
        self.bytes.fetch_sub(len, Ordering::Relaxed);
        self.less.notify_waiters();
    }

    /// Waits until more memory can be of use to the store of `shard`.
    pub(super) async fn until_wanted(&self, shard: &Shard, range_bytes: usize) {
        let wanted = || {
            let pace = shard.source.store.pace()?;
            Some(facts(pace, range_bytes).open_bytes())
        };
        self.until_below(wanted).await;
    }

    /// Waits until less is open than `wanted` tells, where it tells anything. It always comes to that: what is open fills.
    async fn until_below(&self, wanted: impl Fn() -> Option<u64>) {
        loop {
            // It listens before it looks, so that nothing that fills in between is missed.
            let mut less = pin!(self.less.notified());
            less.as_mut().enable();
            let is_below = |wanted| self.bytes.load(Ordering::Relaxed) < wanted;
            if wanted().is_none_or(is_below) {
                return;
            }
            less.await;
        }
    }
}

impl Runs {
    pub(super) fn new(hop: OpenHop, range_bytes: usize, is_joining: bool, open: Arc<Open>) -> Self {
        Self {
            hop,
            range_bytes,
            is_joining,
            waiting: Vec::new(),
            begun_bytes: Vec::new(),
            asked: 0,
            tasks: JoinSet::new(),
            open,
        }
    }

    /// Reads what comes in by `asked`, and ends once all of it is there. Dropping it stops the reads.
    pub(super) async fn run(mut self, mut asked: mpsc::UnboundedReceiver<Asked>) {
        let mut is_open = true;
        while is_open || !self.tasks.is_empty() {
            tokio::select! {
                range = asked.recv(), if is_open => match range {
                    Some(range) => self.wait(range),
                    None => is_open = false,
                },
                Some(_ended) = self.tasks.join_next() => {}
            }
            while let Ok(range) = asked.try_recv() {
                self.wait(range);
            }
            while self.tasks.try_join_next().is_some() {}
            while self.has_room() {
                self.start();
            }
        }
    }

    fn wait(&mut self, range: Asked) {
        let lane = range.lane;
        if self.waiting.len() <= lane {
            self.waiting.resize_with(lane + 1, VecDeque::new);
            self.begun_bytes.resize(lane + 1, 0);
        }
        self.waiting[lane].push_back((self.asked, range));
        self.asked += 1;
    }

    /// The lane of the range that was asked for first. A lane that has begun comes before those that have not, until it has as
    /// much as a first run brings: the second of its slabs may have been ready late, and the first batch waits for both.
    fn next_lane(&self) -> Option<usize> {
        let lanes = self.waiting.iter().zip(&self.begun_bytes).enumerate();
        let asked = lanes.filter_map(|(lane, (ranges, &begun))| {
            let is_fed = begun == 0 || begun >= FIRST_BYTES;
            Some((is_fed, ranges.front()?.0, lane))
        });
        asked.min().map(|(_, _, lane)| lane)
    }

    /// Whether the next run can begin, or wait for a connection.
    fn has_room(&self) -> bool {
        let lane = self.next_lane();
        let next = lane.and_then(|lane| self.waiting[lane].front());
        next.is_some_and(|(_, next)| {
            let pace = next.shard.source.store.pace();
            pace.is_none_or(|pace| {
                let spare = pace.connections.div_ceil(CONNECTIONS_PER_SPARE);
                self.tasks.len() < pace.connections + spare
            })
        })
    }

    /// Begins the next run.
    fn start(&mut self) {
        let Some(lane) = self.next_lane() else {
            return;
        };
        let Some((_, first)) = self.waiting[lane].pop_front() else {
            return;
        };
        let pace = first.shard.source.store.pace();
        let most = pace
            .filter(|_| self.is_joining)
            .map_or(0, |pace| self.facts(&first, pace).run_bytes());
        let (shard, offset) = (Arc::clone(&first.shard), first.offset);
        let mut end = offset + first.target.len() as u64;
        let mut target = vec![first.target];
        let mut answers = VecDeque::from([(end - offset, first.answer)]);
        while let Some((asked, next)) = self.waiting[lane].pop_front() {
            let len = next.target.len() as u64;
            let is_neighbour = Arc::ptr_eq(&next.shard, &shard) && next.offset == end;
            if !is_neighbour || end + len - offset > most {
                self.waiting[lane].push_front((asked, next));
                break;
            }
            end += len;
            target.push(next.target);
            answers.push_back((len, next.answer));
        }
        self.begun_bytes[lane] += end - offset;
        let hop = self.hop.clone();
        let handing = Handing {
            shard,
            answers,
            open: Arc::clone(&self.open),
        };
        self.tasks.spawn(handing.read(hop, offset, target));
    }

    fn facts(&self, next: &Asked, pace: Pace) -> Facts {
        Facts {
            leased_bytes: self.open.bytes.load(Ordering::Relaxed),
            left_bytes: next.left_bytes,
            object_bytes: next.shard.len_bytes - next.offset,
            lane_bytes: self.begun_bytes[next.lane],
            ..facts(pace, self.range_bytes)
        }
    }
}

/// What is known of the store alone.
fn facts(pace: Pace, range_bytes: usize) -> Facts {
    Facts {
        first_byte: pace.first_byte,
        bytes_per_second: pace.bytes_per_second,
        connections: pace.connections,
        range_bytes: range_bytes as u64,
        leased_bytes: 0,
        left_bytes: 0,
        object_bytes: 0,
        lane_bytes: 0,
    }
}

/// Hands the ranges of one run to those who wait for them.
#[derive(Debug)]
struct Handing {
    shard: Arc<Shard>,
    /// Of the ranges that are missing, with their lengths.
    answers: VecDeque<(u64, Answer)>,
    open: Arc<Open>,
}

impl Handing {
    async fn read(mut self, hop: OpenHop, offset: u64, target: Vec<Slab>) {
        let shard = Arc::clone(&self.shard);
        let mut object = shard.source.object.clone();
        object.etag = shard.version.lock().clone();
        let wanted = target.iter().map(|slab| slab.len() as u64).sum();
        let store = &shard.source.store;
        let read = store.read_run(&hop, &object, offset, target, &mut self);
        match read.await.and_then(|filled| whole(filled, offset, wanted)) {
            Ok(filled) => {
                for slab in filled.target {
                    self.full(&filled.object, slab.freeze());
                }
            }
            Err(error) => self.fail(error),
        }
    }

    fn answer(&mut self, result: Result<Slice>) {
        if let Some((len, answer)) = self.answers.pop_front() {
            self.open.filled(len);
            // A reader that passes over the rest of a shard does not listen: fine.
            let _passed_over = answer.send(result);
        }
    }

    /// Nothing more comes. The first range that is missing tells why; nobody reads on behind it.
    fn fail(&mut self, error: Error) {
        let (kind, target) = (error.kind(), Arc::clone(&self.shard.source.object.url));
        self.answer(Err(error));
        while !self.answers.is_empty() {
            let why = "the bytes before these could not be read";
            self.answer(Err(Error::new(kind, "read", &*target, why)));
        }
    }
}

impl Taker for Handing {
    fn full(&mut self, object: &Object, bytes: Slice) {
        let checked = same_version(&self.shard.version, object);
        self.answer(checked.map(|()| bytes));
    }
}

/// Holds the version of one range against the first one seen.
fn same_version(version: &Mutex<Option<ETag>>, object: &Object) -> Result<()> {
    let mut first = version.lock();
    match (&*first, &object.etag) {
        (Some(first), Some(now)) if first != now => Err(Error::new(
            ErrorKind::Changed,
            "read",
            &*object.url,
            "the object was replaced while it was being read",
        )
        .with_help("start again: the new version is read from its beginning")),
        // The form that answers have is the one that can be sent back.
        (_, Some(now)) => {
            *first = Some(now.clone());
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A run that must be whole: what was not handed over must be full.
pub(super) fn whole(filled: Filled, offset: u64, wanted: u64) -> Result<Filled> {
    let left: u64 = filled.target.iter().map(|slab| slab.len() as u64).sum();
    if filled.len_bytes == left {
        return Ok(filled);
    }
    let came = wanted - left + filled.len_bytes;
    Err(Error::new(
        ErrorKind::Truncated,
        format!("read bytes {offset}..{} of", offset + wanted),
        &*filled.object.url,
        format!("only {came} bytes came"),
    ))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use crate::store::Key;

    fn tagged(tag: &str) -> Object {
        Object {
            url: "s3://bucket/key".into(),
            key: Key::new(*b"key"),
            version: None,
            len_bytes: None,
            etag: Some(ETag(tag.into())),
            modified_unix: None,
        }
    }

    #[tokio::test]
    async fn memory_is_waited_for_until_what_is_open_fills() {
        let open = Open::default();
        open.until_below(|| Some(1)).await;
        open.add(20);
        open.until_below(|| None).await;
        let mut waiting = pin!(open.until_below(|| Some(10)));
        for filled in [5, 5] {
            let is_over = tokio::select! {
                biased;
                () = &mut waiting => true,
                () = std::future::ready(()) => false,
            };
            assert!(!is_over);
            open.filled(filled);
        }
        // What fills before anybody waits is not missed either.
        open.filled(1);
        waiting.await;
    }

    #[test]
    fn a_tag_that_a_listing_gave_without_quotes_is_the_same_and_gives_way_to_that_of_the_answers() {
        let version = Mutex::new(Some(ETag("abc-2".into())));
        same_version(&version, &tagged("\"abc-2\"")).unwrap();
        assert_eq!(&*version.lock().clone().unwrap().0, "\"abc-2\"");
        let error = same_version(&version, &tagged("\"abc-3\"")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Changed);
    }
}
