//! Which items a copy has: objects and files named outright, below a prefix or folder, or matched by a pattern.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::collide::Collisions;
use super::entry::{Entry, Seen};
use super::folder::in_the_way;
use super::job::{From, Goal, Job, Origin, Runner};
use super::open::{self, Opener, Spot, as_folder};
use super::pattern::{Name, Pattern, expand};
use super::settings::{CopyOrder, CopySettings, Replace};
use super::shared::Shared;
use super::target::Target;
use super::{names, replace, sync};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Source, shown_url};
use crate::sync::Arc;

/// Carries out `order`; where it cannot be, that is the error.
pub(super) async fn one(shared: &Arc<Shared>, order: &CopyOrder, how: &CopySettings) -> Result<()> {
    run(shared, async |opener, runner| {
        carry_out(shared, order, how, (opener, runner)).await
    })
    .await
}

/// Carries out all `orders`, side by side; one that cannot be is an item that failed.
pub(super) async fn all(
    shared: &Arc<Shared>,
    orders: &[CopyOrder],
    how: &CopySettings,
) -> Result<()> {
    run(shared, async |opener, runner| {
        for order in orders {
            match carry_out(shared, order, how, (&mut *opener, &mut *runner)).await {
                Err(error) if !is_end(&error) => {
                    let target = shown_url(&order.target);
                    shared.refused(&order.shown(), Some(&target), error);
                }
                carried => carried?,
            }
        }
        Ok(())
    })
    .await
}

async fn run(
    shared: &Arc<Shared>,
    work: impl AsyncFnOnce(&mut Opener, &mut Runner) -> Result<()>,
) -> Result<()> {
    let mut opener = Opener::new(&shared.settings.store, &shared.ledger);
    let mut runner = Runner::new(shared);
    let copied = shared.until_stopped(work(&mut opener, &mut runner)).await;
    // What is under way is finished, or undone, whatever came of the rest.
    let finished = runner.finish().await;
    copied.and(finished)
}

fn is_end(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Bug | ErrorKind::Cancelled)
}

async fn carry_out(
    shared: &Arc<Shared>,
    order: &CopyOrder,
    how: &CopySettings,
    (opener, runner): (&mut Opener, &mut Runner),
) -> Result<()> {
    let target = &order.target;
    let mut names = Vec::new();
    for source in &order.sources {
        names.extend(expand(source, how)?);
    }
    let has_sets = how.is_recursive || names.iter().any(|name| name.is_pattern);
    let spot = opener.open(target)?;
    let goal = Target::new(spot, has_sets, names.len(), target, opener)?;
    let mut copy = Copy {
        shared,
        how,
        goal,
        runner,
        taken: (how.is_flat || names.len() > 1).then(Default::default),
    };
    let mut spots = Vec::with_capacity(names.len());
    for name in &names {
        let spot = opener.open(&name.text)?;
        // Patterns without ** stay within a folder, and find nothing of what is written below it.
        if name.is_pattern && name.text.contains("**") || how.is_recursive && !name.is_pattern {
            refuse_overlap(name, &spot, &copy.goal.goal, target)?;
        }
        spots.push(spot);
    }
    for (name, spot) in names.iter().zip(spots) {
        if let Err(error) = copy.source(name, spot, target).await {
            // What was asked for in a way that cannot be ends it all; what is missing is one item that failed.
            if is_end(&error) || error.kind() == ErrorKind::InvalidInput {
                return Err(error);
            }
            shared.refused(&shown_url(&name.text), None, error);
        }
    }
    Ok(())
}

/// Nothing must be read from where it is being written.
fn refuse_overlap(name: &Name, spot: &Spot, goal: &Goal, target: &str) -> Result<()> {
    let (Spot::Bucket { store, key }, Goal::Bucket { .. }) = (spot, goal) else {
        return Ok(());
    };
    let from = if name.is_pattern {
        Pattern::new(key, &name.text)?.listed()
    } else {
        as_folder(key)
    };
    open::apart((&**store, &from, &name.text), goal, target)
}

struct Copy<'a> {
    shared: &'a Arc<Shared>,
    how: &'a CopySettings,
    goal: Target,
    runner: &'a mut Runner,
    /// Names given out, where two sources could have one. A hash of each: 10 million are 160 MB and not the names.
    taken: Option<(HashSet<u64>, RandomState)>,
}

impl Copy<'_> {
    async fn source(&mut self, name: &Name, spot: Spot, target: &str) -> Result<()> {
        if let (Spot::Path(_), Goal::Folder(_)) = (&spot, &self.goal.goal) {
            return Err(open::both_here(&name.text, target));
        }
        let is_below = name.is_pattern || self.how.is_recursive;
        match spot {
            Spot::Standard => self.standard(target).await,
            Spot::Web { store, object } => {
                let key = object.key.as_bytes();
                let key = key.split(|byte| *byte == b'?').next().unwrap_or_default();
                let relative = names::split(key).1.to_owned();
                self.one(&Source { store, object }, relative).await
            }
            Spot::Path(path) if !is_below || path.is_file() => self.file(&name.text, path).await,
            Spot::Bucket { store, key } if !is_below => {
                if key.is_empty() || key.ends_with(b"/") {
                    return Err(needs_recursive(&name.text, "a prefix"));
                }
                let unnamed = || Error::bug("copy an object", "its store knows no keys");
                let mut object = store.object(&key).ok_or_else(unnamed)?;
                if let Some(version) = &name.version {
                    object.url = format!("{}?versionId={version}", object.url).into();
                    object.version = Some(Arc::clone(version));
                }
                let relative = names::split(&key).1.to_owned();
                self.one(&Source { store, object }, relative).await
            }
            spot => self.below(name, spot).await,
        }
    }

    async fn standard(&mut self, target: &str) -> Result<()> {
        let Some(name) = self
            .goal
            .name
            .clone()
            .filter(|_| !self.goal.goal.is_folder())
        else {
            let why = "standard input has no name of its own";
            return Err(
                Error::new(ErrorKind::InvalidInput, "copy to", shown_url(target), why)
                    .with_help("name the object: onecopy cp - s3://bucket/key"),
            );
        };
        let (target, to) = self.goal.goal.target(&name);
        let job = Job {
            from: From::Stdin,
            to: to?,
            source: "-".to_owned(),
            target,
            len_bytes: None,
        };
        self.runner.submit(job).await
    }

    /// One object, named outright. It is looked up here only where something hangs on it; else whoever copies it does so,
    /// beside others.
    async fn one(&mut self, source: &Source, relative: Vec<u8>) -> Result<()> {
        let is_looked_up = self.how.replace != Replace::Always || self.shared.settings.is_dry_run;
        let object = if is_looked_up {
            source.store.head(&source.object).await?
        } else {
            source.object.clone()
        };
        let entry = Entry {
            relative,
            len_bytes: object.len_bytes.unwrap_or(0),
            modified_unix: object.modified_unix,
            object: Some(object),
        };
        self.item(&Origin::Store(Arc::clone(&source.store)), &entry)
            .await
    }

    async fn file(&mut self, name: &str, path: PathBuf) -> Result<()> {
        let looked = path.clone();
        let input = self.shared.on_a_thread(move || {
            if looked.is_dir() {
                let shown = looked.to_string_lossy();
                return Err(needs_recursive(&shown, "a folder"));
            }
            super::file::Input::open(&looked)
        });
        let stamp = input.await?.stamp;
        let Some(last) = path.file_name() else {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "copy",
                name,
                "it names no file",
            ));
        };
        let entry = Entry {
            relative: last.as_bytes().into(),
            len_bytes: stamp.len_bytes,
            modified_unix: Some(stamp.modified_unix),
            object: None,
        };
        let above = path.parent().unwrap_or(Path::new("")).to_owned();
        self.item(&Origin::Folder(above), &entry).await
    }

    /// Everything below a prefix or folder, or what of it a pattern matches.
    async fn below(&mut self, name: &Name, spot: Spot) -> Result<()> {
        let is_pattern = name.is_pattern;
        let name = name.text.as_str();
        let pattern = if is_pattern {
            let key = match &spot {
                Spot::Path(path) => path.as_os_str().as_bytes(),
                Spot::Bucket { key, .. } => key,
                Spot::Web { .. } | Spot::Standard => b"",
            };
            Some(Pattern::new(key, name)?)
        } else {
            None
        };
        let spot = pattern
            .as_ref()
            .map_or_else(|| spot.clone(), |pattern| pattern.below(&spot));
        let (mut place, origin) = open::listed(spot, name, &self.shared.settings, false)?;
        if let Some(pattern) = &pattern {
            pattern.narrow(&mut place);
        }
        let mut entries = place.entries();
        let mut collisions = Collisions::new();
        let mut found = 0_u64;
        while let Some(seen) = entries.next().await? {
            let entry = match seen {
                Seen::Entry(entry) => entry,
                Seen::LeftOut | Seen::Gone(_) => {
                    found += 1;
                    continue;
                }
                Seen::Odd {
                    relative, error, ..
                } => {
                    if self.shared.settings.filter.is_odd_meant(&relative) {
                        self.shared.refused(&origin.shown(&relative), None, error);
                    }
                    continue;
                }
            };
            if pattern
                .as_ref()
                .is_some_and(|pattern| !pattern.is_match(&entry.relative))
            {
                continue;
            }
            found += 1;
            let is_folder = self.goal.goal.is_folder();
            let is_marker = names::is_folder_marker(&entry.relative, entry.len_bytes);
            if is_marker && (is_folder || entry.relative.is_empty())
                || !self.shared.settings.filter.is_meant(&entry.relative)
            {
                continue;
            }
            if !is_folder || self.how.is_flat {
                self.item(&origin, &entry).await?;
                continue;
            }
            let (free, impossible) = collisions.next(&entry.relative);
            for file in impossible {
                sync::refuse_collision(self.shared, &origin, &self.goal.goal, &file)?;
            }
            for (entry, ()) in free {
                self.item(&origin, &entry).await?;
            }
            collisions.hold(entry, ());
        }
        for (entry, ()) in collisions.end() {
            self.item(&origin, &entry).await?;
        }
        if found == 0 {
            let why = if pattern.is_some() {
                "nothing matches"
            } else {
                "there is nothing below it"
            };
            return Err(
                Error::new(ErrorKind::NotFound, "copy", shown_url(name), why).with_help(
                    "see what is there with onecopy ls; * stays within a folder, ** goes below",
                ),
            );
        }
        Ok(())
    }

    /// One item: where it goes, and whether it may.
    async fn item(&mut self, origin: &Origin, entry: &Entry) -> Result<()> {
        let relative = match &self.goal.name {
            Some(name) => name.clone(),
            None if self.how.is_flat => names::split(&entry.relative).1.to_owned(),
            None => entry.relative.clone(),
        };
        let (from, source) = origin.source(entry)?;
        let (target, to) = self.goal.goal.target(&relative);
        let to = match to.and_then(|to| self.take(&relative, &target).map(|()| to)) {
            Ok(to) => to,
            Err(error) => {
                self.shared.refused(&source, Some(&target), error);
                return Ok(());
            }
        };
        match replace::may_be(self.shared, self.how.replace, entry, &to).await {
            Ok(true) => {}
            Ok(false) => {
                self.shared.unchanged();
                return Ok(());
            }
            Err(error) => {
                self.shared.refused(&source, Some(&target), error);
                return Ok(());
            }
        }
        let len_bytes = Some(entry.len_bytes);
        let job = Job {
            from,
            to,
            source,
            target,
            len_bytes,
        };
        self.runner.submit(job).await
    }

    /// Two sources must not become one target: the second would replace the first.
    fn take(&mut self, relative: &[u8], target: &str) -> Result<()> {
        let Some((taken, hasher)) = &mut self.taken else {
            return Ok(());
        };
        if taken.insert(hasher.hash_one(relative)) {
            return Ok(());
        }
        Err(in_the_way(
            target,
            "another source has the same name there".to_owned(),
        ))
    }
}

fn needs_recursive(name: &str, what: &str) -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        "copy",
        shown_url(name),
        format!("it is {what}"),
    )
    .with_help("say `recursive` to copy everything below it")
}
