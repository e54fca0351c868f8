//! What there is to load: looked up once, for one run or for many.

use tokio::runtime::{Handle, Runtime};

use super::indexed::Indexed;
use super::{Counted, Loader};
use crate::config::OnError;
use crate::error::{Error, Result};
use crate::ledger::Ledger;
use crate::store::{Absent, Source, resolve_with};
use crate::sync::{Arc, Mutex, runtime_named};

/// The shards that URLs name, and what an index tells of them. Runs that share one look nothing up twice, read the versions that
/// were there when it was made, and share connections.
#[derive(Debug)]
pub struct Catalog {
    pub(super) sources: Vec<Source>,
    indexed: Option<Indexed>,
    counted: Option<Mutex<Counted>>,
    // The last to go: connections of the sources live on it.
    network: Network,
}

impl Loader {
    /// Looks up what is there.
    ///
    /// # Errors
    ///
    /// What URLs, credentials, listing, index and configuration can meet.
    pub fn catalog(self) -> Result<Arc<Catalog>> {
        self.in_time(|loader, ledger| loader.look_up(&ledger))
    }

    /// The catalog that this was given, or a new one; what is asked for it is counted in `ledger`.
    pub(super) fn look_up(&self, ledger: &Arc<Ledger>) -> Result<Arc<Catalog>> {
        if let Some(catalog) = &self.catalog {
            return Ok(Arc::clone(catalog));
        }
        let network = Network::new()?;
        // A file that is not there is a lost shard as an object in S3 is, where one may be lost.
        let absent = match self.config.on_error {
            OnError::Raise => Absent::Refused,
            _ if self.config.max_skipped == Some(0) => Absent::Refused,
            OnError::Warn | OnError::Skip | OnError::Ask(_) => Absent::Kept,
        };
        let found = resolve_with(&self.urls, &self.config.store, absent, ledger);
        let sources = network.wait_for(found)?;
        let (indexed, counted) = match &self.index {
            None => (None, self.counted.clone()),
            Some(url) => {
                let rule = self.options.key_rule;
                let read = Indexed::read(url, &self.config.store, rule, &sources, ledger);
                let (indexed, counted) = network.wait_for(read)?;
                (Some(indexed), Some(counted))
            }
        };
        Ok(Arc::new(Catalog {
            sources,
            indexed,
            counted: counted.map(Mutex::new),
            network,
        }))
    }
}

impl Catalog {
    /// What is known of the samples so far.
    pub(super) fn counted(&self) -> Option<Counted> {
        self.counted.as_ref().map(|counted| counted.lock().clone())
    }

    /// Finds out where the samples of `shards` begin, where an index tells.
    pub(super) fn find_starts(&self, counted: &mut Counted, shards: &[usize]) -> Result<()> {
        let (Some(indexed), Some(kept)) = (&self.indexed, &self.counted) else {
            return Ok(());
        };
        let unknown = |shard: &usize| counted.starts.get(*shard).is_none_or(Option::is_none);
        let wanted: Vec<usize> = shards.iter().copied().filter(unknown).collect();
        self.network.wait_for(indexed.fill(counted, &wanted))?;
        let mut kept = kept.lock();
        for shard in wanted {
            kept.starts[shard].clone_from(&counted.starts[shard]);
        }
        Ok(())
    }

    pub(super) fn network(&self) -> Result<&Handle> {
        self.network.handle()
    }
}

/// The runtime, for the network only. Its end waits for nobody: a name look-up or a read of a dead disk may never come back.
#[derive(Debug)]
struct Network(Option<Runtime>);

impl Network {
    fn new() -> Result<Self> {
        runtime_named("net").map(|runtime| Self(Some(runtime)))
    }

    fn handle(&self) -> Result<&Handle> {
        let runtime = self.0.as_ref();
        let runtime = runtime.ok_or_else(|| Error::bug("use the network", "it was ended"))?;
        Ok(runtime.handle())
    }

    /// Waits on the calling thread, which must run no asynchronous tasks.
    fn wait_for<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.handle()?.block_on(work)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
