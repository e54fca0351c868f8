//! A target is made like a source: both are listed in the same order, and compared as the listings come in.

use std::cmp::Ordering;

use super::collide::Collisions;
use super::compare::Verdict;
use super::delete::{self, Doomed};
use super::entry::{Entries, Entry, Place, Seen};
use super::job::{Goal, Job, Origin, Runner};
use super::names;
use super::settings::SyncSettings;
use super::shared::Shared;
use super::{checksum, folder};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Arc;

/// Both sides of a sync.
#[derive(Debug)]
pub(super) struct Sides {
    pub(super) source: Place,
    pub(super) origin: Origin,
    pub(super) target: Place,
    pub(super) goal: Goal,
    /// How the target is called.
    pub(super) shown: String,
}

/// One side as it is read: the next entry that is meant, looked at before it is taken.
struct Side {
    entries: Entries,
    next: Option<Entry>,
    /// Whether there may be entries that nobody saw.
    has_hole: bool,
    seen: u64,
}

struct Sync<'a> {
    shared: &'a Arc<Shared>,
    sides: &'a Sides,
    settings: &'a SyncSettings,
    runner: Runner,
    collisions: Collisions<Decision>,
    doomed: Doomed,
}

/// What is to become of an entry of the source.
enum Decision {
    Copy,
    /// Its bytes must be held against those of this entry.
    Look(Entry),
    Leave,
}

/// Runs the sync.
pub(super) async fn run(
    shared: &Arc<Shared>,
    sides: &Sides,
    settings: &SyncSettings,
) -> Result<()> {
    let mut source = Side::new(sides.source.entries());
    let mut target = Side::new(sides.target.entries());
    let mut sync = Sync {
        shared,
        sides,
        settings,
        runner: Runner::new(shared),
        collisions: Collisions::new(),
        doomed: Doomed::new()?,
    };
    let compared = shared
        .until_stopped(sync.compare(&mut source, &mut target))
        .await;
    let Sync { runner, doomed, .. } = sync;
    // What is under way is finished, or undone, whatever became of the listings.
    let finished = runner.finish().await;
    compared.and(finished)?;
    if source.seen == 0 {
        tracing::warn!("the source is empty: is its name right?");
    }
    finish_deleting(shared, sides, settings, doomed, (&source, &target)).await
}

/// Deletes what is not at the source, unless something speaks against it.
async fn finish_deleting(
    shared: &Arc<Shared>,
    sides: &Sides,
    settings: &SyncSettings,
    doomed: Doomed,
    (source, target): (&Side, &Side),
) -> Result<()> {
    if doomed.count == 0 {
        return Ok(());
    }
    let refuse = |why: &str, help: &str| {
        let error = Error::new(ErrorKind::InvalidInput, "delete below", &sides.shown, why);
        Err(error.with_help(help))
    };
    if source.has_hole || target.has_hole {
        let why = "a part of the source or of the target could not be listed";
        return refuse(why, "see the errors above; nothing was deleted");
    }
    if source.seen == 0 && settings.max_delete.is_none() {
        let why = "the source is empty, and everything would go";
        return refuse(
            why,
            "check the source; if it is right, say how many with `max_delete`",
        );
    }
    delete::check(doomed.count, settings.max_delete, &sides.shown)?;
    doomed.run(shared, &sides.goal).await
}

impl Sync<'_> {
    async fn compare(&mut self, source: &mut Side, target: &mut Side) -> Result<()> {
        loop {
            source.look(self.shared, self.sides, true).await?;
            target.look(self.shared, self.sides, false).await?;
            let order = match (&source.next, &target.next) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(from), Some(to)) => from.relative.cmp(&to.relative),
            };
            let from = source.next.take_if(|_| order != Ordering::Greater);
            let to = target.next.take_if(|_| order != Ordering::Less);
            match (from, to) {
                (Some(from), None) => self.decide(from, Decision::Copy).await?,
                (Some(from), Some(to)) => {
                    let decision = match self.settings.compare.judge(&from, &to) {
                        Verdict::Same => Decision::Leave,
                        Verdict::Differs => Decision::Copy,
                        Verdict::Unknown => Decision::Look(to),
                    };
                    self.decide(from, decision).await?;
                }
                (None, Some(to)) if self.settings.is_deleting => self.doomed.add(&to.relative)?,
                (None, _) => {}
            }
        }
        for (entry, decision) in self.collisions.end() {
            self.act(entry, decision).await?;
        }
        Ok(())
    }

    /// In a folder a file may stand in the way of a folder, which only the keys behind it tell.
    async fn decide(&mut self, entry: Entry, decision: Decision) -> Result<()> {
        if !self.sides.goal.is_folder() {
            return self.act(entry, decision).await;
        }
        let (free, impossible) = self.collisions.next(&entry.relative);
        for (entry, decision) in free {
            self.act(entry, decision).await?;
        }
        for file in impossible {
            refuse_collision(self.shared, &self.sides.origin, &self.sides.goal, &file)?;
        }
        self.collisions.hold(entry, decision);
        Ok(())
    }

    async fn act(&mut self, entry: Entry, decision: Decision) -> Result<()> {
        let is_copied = match decision {
            Decision::Copy => true,
            Decision::Leave => false,
            Decision::Look(target) => {
                !checksum::is_same(self.shared, self.sides, &entry, &target).await?
            }
        };
        if !is_copied {
            self.shared.unchanged();
            return Ok(());
        }
        submit(
            self.shared,
            &mut self.runner,
            &self.sides.origin,
            &self.sides.goal,
            &entry,
        )
        .await
    }
}

/// Hands an entry to the runner, or says why it cannot be copied.
pub(super) async fn submit(
    shared: &Arc<Shared>,
    runner: &mut Runner,
    origin: &Origin,
    goal: &Goal,
    entry: &Entry,
) -> Result<()> {
    let (from, source) = origin.source(entry)?;
    let (target, to) = goal.target(&entry.relative);
    match to {
        Ok(to) => {
            let len_bytes = Some(entry.len_bytes);
            let job = Job {
                from,
                to,
                source,
                target,
                len_bytes,
            };
            runner.submit(job).await
        }
        Err(error) => {
            shared.refused(&source, Some(&target), error);
            Ok(())
        }
    }
}

/// Says that a key is a file and a folder at once.
pub(super) fn refuse_collision(
    shared: &Shared,
    origin: &Origin,
    goal: &Goal,
    file: &Entry,
) -> Result<()> {
    let (_, source) = origin.source(file)?;
    let (target, _) = goal.target(&file.relative);
    let name = names::shown(&file.relative);
    let why = format!("there are keys below {name}/ too, and no file can be a folder");
    shared.refused(&source, Some(&target), folder::in_the_way(&target, why));
    Ok(())
}

impl Side {
    const fn new(entries: Entries) -> Self {
        Self {
            entries,
            next: None,
            has_hole: false,
            seen: 0,
        }
    }

    /// Makes `next` the next entry that is meant, unless there is one already.
    async fn look(&mut self, shared: &Shared, sides: &Sides, is_source: bool) -> Result<()> {
        while self.next.is_none() {
            match self.entries.next().await? {
                None => return Ok(()),
                Some(Seen::Entry(entry)) => {
                    self.seen += 1;
                    let is_marker = is_source
                        && sides.goal.is_folder()
                        && names::is_folder_marker(&entry.relative, entry.len_bytes);
                    if !is_marker && shared.settings.filter.is_meant(&entry.relative) {
                        self.next = Some(entry);
                    }
                }
                Some(Seen::Odd {
                    relative,
                    is_hole,
                    error,
                }) => {
                    self.has_hole |= is_hole;
                    if is_source && shared.settings.filter.is_meant(&relative) || is_hole {
                        let shown = sides.origin.shown(&relative);
                        shared.refused(&shown, None, error);
                    }
                }
            }
        }
        Ok(())
    }
}
