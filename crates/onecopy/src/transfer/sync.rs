//! A target is made like a source: both are listed in the same order, and compared as the listings come in.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::collide::Collisions;
use super::compare::Verdict;
use super::delete::{self, Doomed};
use super::entry::{Entries, Entry, Place, Seen};
use super::job::{Goal, Job, Origin, Runner};
use super::names;
use super::open::as_folder;
use super::settings::{Action, SyncSettings};
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

impl Sides {
    /// Whether one of them is a folder, which needs no objects that stand for folders.
    const fn has_folder(&self) -> bool {
        matches!(self.origin, Origin::Folder(_)) || self.goal.is_folder()
    }
}

/// One side as it is read: the next entry that is meant, looked at before it is taken.
struct Side {
    entries: Entries,
    next: Option<Entry>,
    /// The first thing below or behind which there may be entries that nobody saw.
    hole: Option<String>,
    /// Files that went while they were listed.
    gone: HashSet<Vec<u8>>,
    /// Entries that are meant, without the empty ones that stand for folders.
    meant: u64,
}

struct Sync<'a> {
    shared: &'a Arc<Shared>,
    sides: &'a Sides,
    settings: &'a SyncSettings,
    runner: Runner,
    collisions: Collisions<Decision>,
    /// None where nothing is to be deleted.
    doomed: Option<Doomed>,
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
        doomed: settings.is_deleting.then(Doomed::new).transpose()?,
    };
    let compared = shared
        .until_stopped(sync.compare(&mut source, &mut target))
        .await;
    let Sync { runner, doomed, .. } = sync;
    // What is under way is finished, or undone, whatever became of the listings.
    let finished = runner.finish().await;
    compared.and(finished)?;
    if source.meant == 0 {
        tracing::warn!("the source is empty, or all of it is left out: is its name right?");
    }
    match doomed {
        Some(doomed) if doomed.count > 0 => {
            finish_deleting(shared, sides, settings, doomed, (&source, &target)).await
        }
        _ => Ok(()),
    }
}

/// Deletes what is not at the source, unless something speaks against it.
async fn finish_deleting(
    shared: &Arc<Shared>,
    sides: &Sides,
    settings: &SyncSettings,
    doomed: Doomed,
    (source, target): (&Side, &Side),
) -> Result<()> {
    let refusal = |why: &str, help: &str| {
        Error::new(ErrorKind::InvalidInput, "delete below", &sides.shown, why).with_help(help)
    };
    // What is not at the target by now may be there under its old name, and nowhere else.
    let failed = shared.failed();
    let hole = source.hole.as_ref().or(target.hole.as_ref());
    let why = match hole {
        Some(hole) => Some(format!(
            "{hole} could not be read, and nobody knows what it holds"
        )),
        None if failed == 1 => Some("1 item failed".to_owned()),
        None if failed > 1 => Some(format!("{failed} items failed")),
        None => None,
    };
    if let Some(why) = why {
        let error = refusal(
            &why,
            "nothing was deleted; put that right or exclude it, and sync again",
        );
        shared.done(Action::Delete, &sides.shown, None, &Err(error));
        return Ok(());
    }
    if source.meant == 0 && settings.max_delete.is_none() {
        let why = "the source is empty, or all of it is left out, and everything would go";
        let help = "check the source; if it is right, say how many with `max_delete`";
        return Err(refusal(why, help));
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
                (None, Some(to)) => {
                    if let Some(doomed) = &mut self.doomed
                        && !source.gone.contains(&to.relative)
                    {
                        doomed.add(&to.relative)?;
                    }
                }
                (None, None) => {}
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
                match checksum::is_same(self.shared, self.sides, &entry, &target).await {
                    Ok(is_same) => !is_same,
                    Err(error) if error.kind() == ErrorKind::Bug => return Err(error),
                    Err(error) => {
                        let (_, source) = self.sides.origin.source(&entry)?;
                        let (target, _) = self.sides.goal.target(&entry.relative);
                        self.shared.refused(&source, Some(&target), error);
                        return Ok(());
                    }
                }
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
    fn new(entries: Entries) -> Self {
        Self {
            entries,
            next: None,
            hole: None,
            gone: HashSet::new(),
            meant: 0,
        }
    }

    /// Makes `next` the next entry that is meant, unless there is one already.
    async fn look(&mut self, shared: &Shared, sides: &Sides, is_source: bool) -> Result<()> {
        let filter = &shared.settings.filter;
        while self.next.is_none() {
            match self.entries.next().await? {
                None => return Ok(()),
                Some(Seen::Entry(entry)) => {
                    let is_marker = names::is_folder_marker(&entry.relative, entry.len_bytes);
                    // That of a prefix itself stands for no folder below it.
                    let is_passed = is_marker && (sides.has_folder() || entry.relative.is_empty());
                    if is_passed || !filter.is_meant(&entry.relative) {
                        continue;
                    }
                    self.meant += u64::from(!is_marker);
                    self.next = Some(entry);
                }
                Some(Seen::LeftOut) => {}
                Some(Seen::Gone(relative)) => {
                    if filter.is_meant(&relative) {
                        self.meant += 1;
                        self.gone.insert(relative);
                    }
                }
                Some(Seen::Odd {
                    relative,
                    may_be_folder,
                    error,
                }) => {
                    let shown = if is_source {
                        sides.origin.shown(&relative)
                    } else {
                        sides.goal.target(&relative).0
                    };
                    let is_told = filter.is_odd_meant(&relative);
                    let is_hole =
                        is_told || may_be_folder && filter.is_meant_below(&as_folder(&relative));
                    if is_hole && self.hole.is_none() {
                        self.hole = Some(shown.clone());
                    }
                    if is_told {
                        shared.refused(&shown, None, error);
                    }
                }
            }
        }
        Ok(())
    }
}
