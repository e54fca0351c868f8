//! A store in front of a store: what it holds comes from the disk, and what it does not is written there on its way.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use tokio::sync::OnceCell;

use super::direct::SECTOR;
use super::entry::Entry;
use super::identity::Identity;
use super::pieces::{Part, Piece};
use super::tee::Tee;
use crate::buffer::{Slab, Slice, copy};
use crate::error::Result;
use crate::ledger::OpenHop;
use crate::route::Hop;
use crate::size::to_usize;
use crate::store::{
    BoxFuture, Filled, ListPage, ListRequest, Object, Pace, Store, Taker, Target, Writer,
};
use crate::sync::{Arc, Mutex, Threads};

/// Reads that wait for the disk at the same time, at most.
const THREADS: usize = 32;

/// So many objects are kept open: each takes three files.
const OPEN: usize = 32;

/// A store whose objects are kept on a disk as they are read.
///
/// Reads that hand their slabs over ([`Store::read_run`]) are cached: those of payload. All else goes to the store behind.
#[derive(Debug)]
pub struct Cached {
    behind: Arc<dyn Store>,
    folder: PathBuf,
    threads: Threads,
    tee: Tee,
    hop: OpenHop,
    /// Guards which objects are open, oldest first.
    open: Mutex<Opened>,
}

/// An object's files, once they are open; none where it is not cached.
type Cell = Arc<OnceCell<Option<Arc<Entry>>>>;

#[derive(Debug, Default)]
struct Opened {
    by_url: HashMap<Arc<str>, Cell>,
    order: VecDeque<Arc<str>>,
}

/// A range out of the cache, or the memory for it, unused.
enum Found {
    All(Slab),
    NotAll(Slab),
}

impl Cached {
    /// Keeps what is read from `behind` in `folder`. No more than `tee_bytes` wait to be written; memory of the pool is held by them.
    ///
    /// # Errors
    ///
    /// `LimitReached` where no thread can be started.
    pub fn new(
        behind: Arc<dyn Store>,
        folder: &Path,
        hop: &OpenHop,
        tee_bytes: usize,
    ) -> Result<Self> {
        Ok(Self {
            behind,
            folder: folder.to_owned(),
            threads: Threads::new("cache", THREADS),
            tee: Tee::new(hop, tee_bytes)?,
            hop: hop.clone(),
            open: Mutex::default(),
        })
    }

    /// The files of `object`; none where the disk will not have them, which is noted, or nobody says which version it is.
    async fn entry(&self, object: &Object) -> Result<Option<Arc<Entry>>> {
        let cell = self.open.lock().cell(&object.url);
        let entry = cell.get_or_try_init(async || {
            let is_known = object.etag.is_some() && object.len_bytes.is_some();
            let looked_up = match is_known {
                true => object.clone(),
                false => self.behind.head(object).await?,
            };
            let Some(identity) = Identity::of(&looked_up) else {
                self.hop
                    .ledger()
                    .note("objects without an ETag are not cached");
                return Ok(None);
            };
            let folder = self.folder.clone();
            let opened = self.threads.run(move || Entry::open(&folder, &identity));
            Ok(self.noted(opened.await?).map(Arc::new))
        });
        Ok(entry.await?.clone())
    }

    fn noted<T>(&self, done: std::io::Result<T>) -> Option<T> {
        let why = |error| {
            let folder = self.folder.display();
            let text =
                format!("the cache in {folder} is not used, and the data is streamed: {error}");
            self.hop.ledger().note(text);
        };
        done.map_err(why).ok()
    }

    /// Reads the range from `offset` on into `slab`, if all of it is held and is what was written.
    async fn find(&self, entry: &Arc<Entry>, offset: u64, slab: Slab) -> Result<Found> {
        let (entry, hop) = (Arc::clone(entry), self.hop.clone());
        let work = move || {
            let mut slab = slab;
            let found = find(&entry, &hop, offset, &mut slab);
            (found, slab)
        };
        let (found, slab) = self.threads.run(work).await?;
        match self.noted(found) {
            Some(true) => Ok(Found::All(slab)),
            _ => Ok(Found::NotAll(slab)),
        }
    }

    /// Reads `target` from the store behind, and has it written beside.
    async fn fetch(
        &self,
        (hop, entry): (&OpenHop, &Arc<Entry>),
        (object, offset): (&Object, u64),
        target: Target,
        taker: &mut dyn Taker,
    ) -> Result<Option<Filled>> {
        let mut teeing = Teeing {
            tee: &self.tee,
            entry,
            offset,
            taker,
        };
        let read = self
            .behind
            .read_run(hop, object, offset, target, &mut teeing);
        let filled = read.await?;
        let left: u64 = filled.target.iter().map(|slab| slab.len() as u64).sum();
        if left != filled.len_bytes {
            return Ok(Some(filled));
        }
        for slab in filled.target {
            teeing.full(&filled.object, slab.freeze());
        }
        Ok(None)
    }
}

impl Opened {
    fn cell(&mut self, url: &Arc<str>) -> Cell {
        if let Some(cell) = self.by_url.get(url) {
            return Arc::clone(cell);
        }
        if self.order.len() >= OPEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_url.remove(&oldest);
        }
        self.order.push_back(Arc::clone(url));
        Arc::clone(self.by_url.entry(Arc::clone(url)).or_default())
    }
}

/// The first `left` bytes of a target.
fn cut(target: Target, mut left: u64) -> Target {
    let mut cut = Vec::with_capacity(target.len());
    for mut slab in target {
        slab.truncate(to_usize(left));
        left -= slab.len() as u64;
        cut.push(slab);
    }
    cut.retain(|slab| !slab.is_empty());
    cut
}

/// Fills `into` from `offset` on, and says whether all of it is held and right.
fn find(entry: &Entry, hop: &OpenHop, offset: u64, into: &mut [u8]) -> std::io::Result<bool> {
    let wanted = offset..offset + into.len() as u64;
    let is_held = |parts: &[Part]| parts.iter().all(|part| matches!(part, Part::Held(..)));
    let mut parts = entry.parts(wanted.clone());
    if !is_held(&parts) {
        entry.refresh()?;
        parts = entry.parts(wanted.clone());
    }
    let cache = hop.ledger().cache();
    if !is_held(&parts) {
        cache.missed(into.len() as u64);
        return Ok(false);
    }
    for part in parts {
        let Part::Held(range, piece) = part else {
            continue;
        };
        let at = to_usize(range.start - offset);
        let len = to_usize(range.end - range.start);
        let place = &mut into[at..at + len];
        let is_right = if range == piece.range() {
            entry.read(hop, piece, place)?
        } else {
            let from = to_usize(range.start - piece.offset);
            part_of(entry, hop, piece, from, place)?
        };
        if !is_right {
            cache.damaged();
            cache.missed(into.len() as u64);
            return Ok(false);
        }
    }
    cache.hit(into.len() as u64);
    Ok(true)
}

/// Fills `into` with what follows byte `from` of a piece.
///
/// # Copies
///
/// One in user space, on `cache_part`: the piece is believed as a whole, so it is read whole, beside.
fn part_of(
    entry: &Entry,
    hop: &OpenHop,
    piece: Piece,
    from: usize,
    into: &mut [u8],
) -> std::io::Result<bool> {
    let mut beside = Slab::heap(piece.len as usize + SECTOR);
    let begin = beside.as_ptr().align_offset(SECTOR);
    let whole = &mut beside[begin..begin + piece.len as usize];
    let is_right = entry.read(hop, piece, whole)?;
    if is_right {
        let part = &whole[from..from + into.len()];
        copy::lay(&hop.beside(Hop::CachePart), part, into);
    }
    Ok(is_right)
}

/// Takes what the store behind brings, has it written, and hands it on.
#[derive(Debug)]
struct Teeing<'a> {
    tee: &'a Tee,
    entry: &'a Arc<Entry>,
    /// Of what comes next.
    offset: u64,
    taker: &'a mut dyn Taker,
}

impl Taker for Teeing<'_> {
    fn told(&mut self, object: &Object) {
        self.taker.told(object);
    }

    fn full(&mut self, object: &Object, bytes: Slice) {
        self.tee.offer(self.entry, self.offset, &bytes);
        self.offset += bytes.len() as u64;
        self.taker.full(object, bytes);
    }
}

impl Store for Cached {
    fn read_into<'a>(
        &'a self,
        hop: &'a OpenHop,
        object: &'a Object,
        offset: u64,
        target: Target,
    ) -> BoxFuture<'a, Result<Filled>> {
        self.behind.read_into(hop, object, offset, target)
    }

    fn read_run<'a>(
        &'a self,
        hop: &'a OpenHop,
        object: &'a Object,
        offset: u64,
        target: Target,
        taker: &'a mut dyn Taker,
    ) -> BoxFuture<'a, Result<Filled>> {
        Box::pin(async move {
            let Some(entry) = self.entry(object).await? else {
                let read = self.behind.read_run(hop, object, offset, target, taker);
                return read.await;
            };
            let Some(left) = entry.identity.len_bytes.checked_sub(offset) else {
                return self.behind.read_into(hop, object, offset, target).await;
            };
            let target = cut(target, left);
            let object = &entry.identity.described(object);
            let mut slabs = VecDeque::from(target);
            let mut missing = Vec::new();
            let mut at = offset;
            while let Some(slab) = slabs.pop_front() {
                let len = slab.len() as u64;
                let bytes = match self.find(&entry, at, slab).await? {
                    Found::NotAll(slab) => {
                        missing.push(slab);
                        None
                    }
                    Found::All(slab) => Some(slab.freeze()),
                };
                let is_run_over = bytes.is_some() || slabs.is_empty();
                if is_run_over && !missing.is_empty() {
                    let run = std::mem::take(&mut missing);
                    let run_bytes: u64 = run.iter().map(|slab| slab.len() as u64).sum();
                    let end = if bytes.is_some() { at } else { at + len };
                    let from = (object, end - run_bytes);
                    let fetched = self.fetch((hop, &entry), from, run, taker).await?;
                    if let Some(short) = fetched {
                        return Ok(short);
                    }
                }
                if let Some(bytes) = bytes {
                    taker.full(object, bytes);
                }
                at += len;
            }
            Ok(Filled {
                target: Vec::new(),
                len_bytes: 0,
                object: object.clone(),
            })
        })
    }

    fn pace(&self) -> Option<Pace> {
        self.behind.pace()
    }

    fn head<'a>(&'a self, object: &'a Object) -> BoxFuture<'a, Result<Object>> {
        self.behind.head(object)
    }

    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<ListPage>> {
        self.behind.list(request)
    }

    fn object(&self, key: &[u8]) -> Option<Object> {
        self.behind.object(key)
    }

    fn writer(&self) -> Option<&dyn Writer> {
        self.behind.writer()
    }
}
