//! The start of a load, which looks at much that may never answer: files, lists, listings, indexes.

use tokio::runtime::Handle;

use super::route::is_local;
use super::{Catalog, Load, Loader, Order};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::pipeline::{Watch, Work};
use crate::store::list_file;
use crate::sync::{Arc, channel, spawn};

/// What a load begins with.
pub(super) struct Prepared {
    pub(super) work: Work,
    pub(super) order: Order,
    pub(super) catalogs: Vec<Arc<Catalog>>,
    pub(super) ledger: Arc<Ledger>,
}

impl Loader {
    /// Looks at what is there, and starts what is to be done about it by `start`.
    pub(super) fn start<T>(
        self,
        start: impl FnOnce(Work, &Handle) -> Result<T>,
    ) -> Result<Load<T>> {
        let prepared = self.in_time(|loader, ledger| loader.prepare(ledger))?;
        let first = prepared.catalogs.first();
        let first = first.ok_or_else(|| Error::bug("start a load", "nothing was looked up"))?;
        Ok(Load {
            output: start(prepared.work, first.network()?)?,
            order: prepared.order,
            ledger: prepared.ledger,
            _catalogs: prepared.catalogs,
        })
    }

    /// Runs `work` on a thread of its own, which is left behind where nothing moves for too long.
    pub(super) fn in_time<T: Send + 'static>(
        self,
        work: impl FnOnce(Self, Arc<Ledger>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if Handle::try_current().is_ok() {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "start a load",
                "",
                "this thread runs asynchronous tasks, which waiting for a load would block",
            )
            .with_help("start and read it on a thread of its own (tokio: spawn_blocking)"));
        }
        let ledger = self.ledger()?;
        // A list may name anything.
        let is_file = |url: &String| is_local(url) && list_file(url).is_none();
        let parts = self.parts();
        let mut named = parts
            .iter()
            .flat_map(|part| part.urls.iter().chain(&part.index));
        let is_local = named.all(is_file);
        let mut watch = Watch::new(&ledger, self.config.wait_limit_for(is_local));
        let (answer, answered) = channel::bounded(1);
        spawn("start", move || {
            // Nobody listens any more where it was left behind.
            let _unheard = answer.send(work(self, ledger));
        })?;
        let started = watch.recv(&answered, None)?;
        started
            .flatten()
            .unwrap_or_else(|| Err(Error::bug("start a load", "its thread panicked")))
    }
}
