//! Whole objects and files from one place to another: copies and syncs.
//!
//! ```text
//!  download   socket --recv--> slab --write_direct--> draft --rename--> file
//!  upload     file --read_direct--> slab --send--> socket
//!  relay      within the store, or socket --recv--> slab --send--> socket
//! ```
//!
//! Hops here: read, read_direct, write, write_direct; recv and send through the store. May import: store, buffer, ledger.
//! Absent: any printing, and any memory that payload passes through other than that of `memory`.
//!
//! | file | what it holds |
//! |---|---|
//! | `settings` | what is asked for and what is told |
//! | `shared`, `memory` | what all items share: limits, memory, counts |
//! | `entry`, `walk` | listings of buckets and folders, as streams in byte order |
//! | `filter`, `compare`, `checksum`, `replace`, `collide`, `names` | what is meant, what differs, what may give way, what cannot be a file |
//! | `open`, `pattern`, `target` | from what people write to places |
//! | `copy`, `sync` | which items there are |
//! | `job` | items, side by side |
//! | `depot` | small files that others read, for the rooms beside this one |
//! | `download`, `upload`, `relay`, `parts`, `delete` | one item |
//! | `file`, `folder` | the disk: O_DIRECT, drafts, no links followed |

mod checksum;
mod collide;
mod compare;
mod copy;
mod delete;
mod depot;
mod download;
mod entry;
mod file;
mod filter;
mod folder;
mod job;
mod memory;
mod names;
mod open;
mod parts;
mod pattern;
mod relay;
mod replace;
mod settings;
mod shared;
mod sync;
mod target;
mod upload;
mod walk;

use std::future::Future;
use std::time::Duration;

pub use compare::Compare;
pub(crate) use depot::Depot;
pub use filter::Filter;
pub use settings::{
    Action, CopyOrder, CopySettings, Item, Observer, Replace, Settings, Stop, Summary, SyncSettings,
};

use crate::error::Result;
use crate::store::shown_url;
use crate::sync::{Arc, runtime_named};
use shared::Shared;

/// How long threads may take to end after a stop; a command must end within a second of Ctrl-C.
const SHUTDOWN: Duration = Duration::from_millis(300);

/// Copies `sources` to `target`.
///
/// A source is an object (`s3://bucket/key`, `http(s)://..`), a file, `-` (standard input), a glob or braces, or with
/// `is_recursive` a prefix or folder. A target is an object, a file, or what ends in `/`, is a folder or a bucket: then
/// names are kept below it. One side at least is a store.
///
/// What cannot be copied is told to `observer` and counted; the rest goes on. A file appears under its name only once it is
/// whole; an object does so by S3's own promise.
///
/// # Errors
///
/// `InvalidInput` where the sources and the target do not fit each other, `NotFound` where nothing matches,
/// `Cancelled` after a stop, and whatever a listing can meet.
pub fn copy(
    sources: &[String],
    target: &str,
    settings: &Settings,
    how: &CopySettings,
    observer: &Arc<dyn Observer>,
    stop: &Stop,
) -> Result<Summary> {
    let order = CopyOrder {
        sources: sources.to_owned(),
        target: target.to_owned(),
    };
    let stop = stop.clone();
    let shared = Shared::new(order.shown(), settings.clone(), Arc::clone(observer), stop)?;
    block_on(&shared, copy::one(&shared, &order, how))
}

/// Carries out many copies as [`copy`] does one, side by side, over the same connections and in the same memory.
///
/// # Errors
///
/// `Cancelled` after a stop, and `InvalidInput` for settings that cannot be. An order that cannot be is told to `observer`
/// and counted as an item that failed, and the rest goes on.
pub fn copy_all(
    orders: &[CopyOrder],
    settings: &Settings,
    how: &CopySettings,
    observer: &Arc<dyn Observer>,
    stop: &Stop,
) -> Result<Summary> {
    let shown = match orders {
        [order] => order.shown(),
        orders => format!("{} copies", orders.len()),
    };
    let shared = Shared::new(shown, settings.clone(), Arc::clone(observer), stop.clone())?;
    block_on(&shared, copy::all(&shared, orders, how))
}

/// Makes `target` like `source`: copies what is missing or differs, and with `is_deleting` deletes what is not at the
/// source. Both are prefixes or folders, and one of them at least is in a store.
///
/// Deleting comes last. Nothing is deleted where a listing failed, where anything could not be read or any item failed (which
/// is told to `observer` as one more), where more than `max_delete` would go, or (without `max_delete`) where the source holds
/// nothing that is meant. What `filter` leaves out is neither copied nor deleted.
///
/// # Errors
///
/// As for [`copy`]; `InvalidInput` where both overlap, or the source is empty and all would go; `LimitReached` where too
/// much would be deleted, which leaves what was copied.
pub fn sync(
    source: &str,
    target: &str,
    settings: &Settings,
    how: &SyncSettings,
    observer: &Arc<dyn Observer>,
    stop: &Stop,
) -> Result<Summary> {
    let shared = Shared::new(
        shown_url(source).into_owned(),
        settings.clone(),
        Arc::clone(observer),
        stop.clone(),
    )?;
    block_on(&shared, async {
        let sides = open::sides(source, target, &shared.settings, &shared.ledger)?;
        sync::run(&shared, &sides, how).await
    })
}

fn block_on(shared: &Shared, work: impl Future<Output = Result<()>>) -> Result<Summary> {
    let runtime = runtime_named("transfer")?;
    let done = runtime.block_on(work);
    // Threads that write to the disk remove their drafts; one that waits for standard input must not keep a command that
    // was stopped.
    runtime.shutdown_timeout(SHUTDOWN);
    shared.finish_disk(SHUTDOWN);
    if let Err(error) = done {
        shared.ended();
        return Err(error);
    }
    Ok(shared.summary())
}
