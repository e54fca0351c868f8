//! What there is to load: looked up once, for one run or for many.

use tokio::runtime::{Handle, Runtime};

use super::indexed::Indexed;
use super::{Counted, Loader};
use crate::config::OnError;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::store::{Absent, Source, resolve_each};
use crate::sync::{Arc, Mutex, runtime_named};

/// The shards that URLs name, and what an index tells of them. Runs that share one look nothing up twice, read the versions that
/// were there when it was made, and share connections.
#[derive(Debug)]
pub struct Catalog {
    pub(super) sources: Vec<Source>,
    indexed: Option<Indexed>,
    counted: Option<Mutex<Counted>>,
    // The last to go: connections of the sources live on it.
    network: Arc<Network>,
}

impl Loader {
    /// Looks up what is there.
    ///
    /// # Errors
    ///
    /// What URLs, credentials, listing, index and configuration can meet; `Unsupported` for a mixture.
    pub fn catalog(self) -> Result<Arc<Catalog>> {
        if self.mixed.is_some() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "look up",
                "the data of a mixture",
                "each of its sources has a catalog of its own",
            )
            .with_help("look up the data of each loader before they are mixed"));
        }
        self.in_time(|loader, ledger| {
            let mut found = Self::look_up(&[&loader], &ledger)?;
            let found = found.pop();
            found.ok_or_else(|| Error::bug("look up the data", "there is no catalog"))
        })
    }

    /// The catalogs of `parts`, each the one that it was given, or a new one; what is asked for those is counted in `ledger`.
    pub(super) fn look_up(parts: &[&Self], ledger: &Arc<Ledger>) -> Result<Vec<Arc<Catalog>>> {
        if let Some(given) = parts.iter().map(|part| part.catalog.clone()).collect() {
            return Ok(given);
        }
        let network = Arc::new(Network::new()?);
        // Under one configuration they are found together, so that they share connections and stay within their number.
        let mut found: Vec<Option<Vec<Source>>> = vec![None; parts.len()];
        while let Some(first) = found.iter().position(Option::is_none) {
            let config = &parts[first].config;
            let is_alike =
                |at: &usize| found[*at].is_none() && parts[*at].config.store == config.store;
            let alike: Vec<usize> = (first..parts.len()).filter(is_alike).collect();
            let urls: Vec<&[String]> = alike.iter().map(|at| &parts[*at].urls[..]).collect();
            // A file that is not there is a lost shard as an object in S3 is, where one may be lost.
            let absent = match config.on_error {
                OnError::Raise => Absent::Refused,
                _ if config.max_skipped == Some(0) => Absent::Refused,
                OnError::Warn | OnError::Skip | OnError::Ask(_) => Absent::Kept,
            };
            let resolved = resolve_each(&urls, &config.store, absent, ledger);
            for (at, sources) in alike.into_iter().zip(network.wait_for(resolved)?) {
                found[at] = Some(sources);
            }
        }
        let found = parts.iter().zip(found.into_iter().flatten());
        found
            .map(|(part, sources)| part.catalog_of(sources, &network, ledger))
            .collect()
    }

    fn catalog_of(
        &self,
        sources: Vec<Source>,
        network: &Arc<Network>,
        ledger: &Ledger,
    ) -> Result<Arc<Catalog>> {
        if let Some(given) = &self.catalog {
            return Ok(Arc::clone(given));
        }
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
            network: Arc::clone(network),
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
