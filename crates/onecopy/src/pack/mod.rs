//! Indexes of shards: how many samples each has and where they begin, found in their headers.
//!
//! ```text
//!  shards --run--> one task each --scan--> entry, .idx --kept--> index.json
//!                     |
//!                     +-- headers: ranges where headers are; what lies between is not read where it is long
//! ```
//!
//! Hops here: none of its own; recv, read and send through the stores. May import: transfer (for files that appear whole), store,
//! sample, buffer, ledger. Absent: any knowledge of tar, which is `sample`'s: the reader of samples counts, and is given no
//! contents.
//!
//! | file | what it holds |
//! |---|---|
//! | `settings` | what is asked for and what is told |
//! | `layout` | which files the index is made of, and how shards are called in it |
//! | `headers` | the bytes of a shard, but for what nobody looks at |
//! | `run` | all shards, side by side |
//! | `kept` | what is finished, kept for the next start |

mod headers;
mod kept;
mod layout;
mod run;
mod settings;

use std::time::Duration;

pub use settings::{IndexObserver, IndexSettings, IndexSummary};

use crate::error::Result;
use crate::ledger::Ledger;
use crate::route::Route;
use crate::store::shown_url;
use crate::sync::{Arc, runtime_named};
use crate::transfer::Stop;

/// How long threads may take to end after a stop; a command must end within a second of Ctrl-C.
const SHUTDOWN: Duration = Duration::from_millis(300);

/// Writes the index of the shards that `urls` name: `index.json` with what each shard holds, in the form of wids, and beside it
/// for each shard a `.idx` with where its samples begin, in the form of DALI.
///
/// Only headers are read where members are long. A shard that cannot be indexed is told to `observer` and counted, and the rest
/// goes on; `index.json` is then left as it was. Whatever ends the work early, what is finished is kept in `index.json.part`,
/// and the next call takes it over, as it takes over from `index.json` what is about shards that are still the same.
///
/// # Errors
///
/// `NotFound` where nothing matches; `InvalidInput` where the shards have no folder in common and none was given, where two
/// of them would share a `.idx`, or where another file than an index of onecopy's is called `index.json`; `Unsupported` where
/// nothing can be written; `Cancelled` after a stop; and whatever listing and writing can meet.
pub fn index(
    urls: &[String],
    settings: &IndexSettings,
    observer: &Arc<dyn IndexObserver>,
    stop: &Stop,
) -> Result<IndexSummary> {
    let shown: Vec<_> = urls.iter().map(|url| shown_url(url)).collect();
    let ledger = Ledger::open(shown.join(" "), Route::Stream, "index");
    let runtime = runtime_named("index")?;
    let work = run::Work::new(settings, runtime.handle(), &ledger, observer, stop);
    let done = runtime.block_on(work.run(urls));
    drop(work);
    runtime.shutdown_timeout(SHUTDOWN);
    done
}
