//! One store per endpoint and bucket, so that everything read from it shares its connections.

use std::collections::HashMap;

use super::file::FileStore;
use super::http::HttpStore;
use super::http1::{Client, Endpoint};
use super::s3::{Account, S3Store};
use super::url::Place;
use super::{Object, Store};
use crate::config::StoreConfig;
use crate::error::Result;
use crate::ledger::Ledger;
use crate::sync::Arc;

/// The stores opened so far under one configuration.
#[derive(Debug)]
pub(super) struct Stores {
    client: Arc<Client>,
    config: StoreConfig,
    account: Option<Arc<Account>>,
    buckets: HashMap<String, Arc<S3Store>>,
    servers: HashMap<Endpoint, Arc<HttpStore>>,
    files: Arc<FileStore>,
}

impl Stores {
    pub(super) fn new(config: &StoreConfig, ledger: &Arc<Ledger>) -> Self {
        Self {
            client: Arc::new(Client::new(config).counting_on(ledger)),
            config: config.clone(),
            account: None,
            buckets: HashMap::new(),
            servers: HashMap::new(),
            files: Arc::new(FileStore::default()),
        }
    }

    /// The store of `place`, and the object that it names there, of which nothing is known yet.
    pub(super) fn open(&mut self, place: &Place) -> Result<(Arc<dyn Store>, Object)> {
        match place {
            Place::S3 {
                bucket,
                key,
                version,
            } => {
                let store = self.bucket(bucket)?;
                let object = store.object(key.as_bytes(), version.as_deref());
                Ok((store, object))
            }
            Place::Http(url) => {
                let (endpoint, rest) = Endpoint::split(url)?;
                let client = Arc::clone(&self.client);
                let server = self.servers.entry(endpoint.clone());
                let store = server.or_insert_with(|| Arc::new(HttpStore::new(client, endpoint)));
                let object = store.object(rest);
                let store: Arc<HttpStore> = Arc::clone(store);
                Ok((store, object))
            }
            Place::File(path) => {
                let files: Arc<FileStore> = Arc::clone(&self.files);
                Ok((files, FileStore::object(path)))
            }
        }
    }

    fn bucket(&mut self, bucket: &str) -> Result<Arc<S3Store>> {
        if let Some(store) = self.buckets.get(bucket) {
            return Ok(Arc::clone(store));
        }
        let account = match &self.account {
            Some(account) => Arc::clone(account),
            None => {
                let made = Arc::new(Account::new(Arc::clone(&self.client), &self.config)?);
                self.account = Some(Arc::clone(&made));
                made
            }
        };
        let store = Arc::new(S3Store::new(account, bucket)?);
        self.buckets.insert(bucket.to_owned(), Arc::clone(&store));
        Ok(store)
    }
}
