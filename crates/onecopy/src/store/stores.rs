//! One store per endpoint and bucket, so that everything read from it shares its connections.

use std::collections::HashMap;
use std::path::Path;

use super::azure::{self, AzureStore, Container};
use super::file::FileStore;
use super::gcs::{self, GcsStore};
use super::http::HttpStore;
use super::http1::{Client, Endpoint};
use super::s3::{Account, S3Store};
use super::url::Place;
use super::{Object, Store};
use crate::config::StoreConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::sync::Arc;

/// The stores opened so far under one configuration.
#[derive(Debug)]
pub(super) struct Stores {
    client: Arc<Client>,
    config: StoreConfig,
    kind: OneKind,
    account: Option<Arc<Account>>,
    buckets: HashMap<String, Arc<S3Store>>,
    google: Option<Arc<gcs::Account>>,
    google_buckets: HashMap<String, Arc<GcsStore>>,
    azure: HashMap<Option<azure::NamedAccount>, Arc<azure::Account>>,
    containers: HashMap<Container, Arc<AzureStore>>,
    servers: HashMap<Endpoint, Arc<HttpStore>>,
    files: Arc<FileStore>,
}

impl Stores {
    pub(super) fn new(config: &StoreConfig, ledger: &Arc<Ledger>) -> Self {
        Self {
            client: Arc::new(Client::new(config).counting_on(ledger)),
            config: config.clone(),
            kind: OneKind::new(config),
            account: None,
            buckets: HashMap::new(),
            google: None,
            google_buckets: HashMap::new(),
            azure: HashMap::new(),
            containers: HashMap::new(),
            servers: HashMap::new(),
            files: Arc::new(FileStore::new(ledger)),
        }
    }

    /// Looks at a file, which takes as long as its file system likes.
    pub(super) fn look_at<T>(&self, path: &Path, look: impl FnOnce(&Path) -> T) -> T {
        let _under_way = self.files.under_way(path.display());
        look(path)
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
            Place::Gcs { bucket, key } => {
                let store = self.google_bucket(bucket)?;
                let object = store.named(key.as_bytes());
                Ok((store, object))
            }
            Place::Azure { container, key } => {
                let store = self.container(container)?;
                let object = store.named(key.as_bytes());
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
        self.kind.take("s3")?;
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

    fn google_bucket(&mut self, bucket: &str) -> Result<Arc<GcsStore>> {
        if let Some(store) = self.google_buckets.get(bucket) {
            return Ok(Arc::clone(store));
        }
        self.kind.take("gs")?;
        let account = match &self.google {
            Some(account) => Arc::clone(account),
            None => {
                let made = gcs::Account::new(Arc::clone(&self.client), &self.config)?;
                Arc::clone(self.google.insert(Arc::new(made)))
            }
        };
        let store = Arc::new(GcsStore::new(account, bucket)?);
        self.google_buckets
            .insert(bucket.to_owned(), Arc::clone(&store));
        Ok(store)
    }

    fn container(&mut self, container: &Container) -> Result<Arc<AzureStore>> {
        if let Some(store) = self.containers.get(container) {
            return Ok(Arc::clone(store));
        }
        self.kind.take("az")?;
        let named = container.account();
        let account = match self.azure.get(&named.cloned()) {
            Some(account) => Arc::clone(account),
            None => {
                let client = Arc::clone(&self.client);
                let made = Arc::new(azure::Account::new(client, &self.config, named)?);
                self.azure.insert(named.cloned(), Arc::clone(&made));
                made
            }
        };
        let store = Arc::new(AzureStore::new(account, container));
        self.containers
            .insert(container.clone(), Arc::clone(&store));
        Ok(store)
    }
}

/// Sees to it that an endpoint that was given outright is that of one kind of store: what is meant for one would be sent to
/// another, and with it the credentials.
#[derive(Debug)]
pub(crate) struct OneKind {
    is_given: bool,
    first: Option<String>,
}

impl OneKind {
    pub(crate) fn new(config: &StoreConfig) -> Self {
        Self {
            is_given: config.endpoint_url.is_some(),
            first: None,
        }
    }

    /// Takes the next one, by its scheme.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where there was one of another kind before.
    pub(crate) fn take(&mut self, scheme: &str) -> Result<()> {
        let kind = match scheme.to_ascii_lowercase().as_str() {
            "gs" | "gcs" => "gs",
            "az" | "azure" | "abfs" | "abfss" => "az",
            _ => "s3",
        };
        let first = self.first.get_or_insert_with(|| kind.to_owned());
        if !self.is_given || first == kind {
            return Ok(());
        }
        let what = format!("{first}:// and {kind}:// at once");
        let why = "both would be asked for at the one endpoint that was given";
        Err(
            Error::new(ErrorKind::InvalidInput, "use", what, why).with_help(
                "leave out `endpoint_url`; each kind has a variable of its own: AWS_ENDPOINT_URL_S3, \
                 STORAGE_EMULATOR_HOST, AZURE_STORAGE_ENDPOINT",
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_endpoint_is_that_of_one_kind_of_store() {
        let mut config = StoreConfig {
            is_anonymous: true,
            variables: crate::config::Variables::only([("AZURE_STORAGE_ACCOUNT", "acc")]),
            ..StoreConfig::default()
        };
        let open = |config: &StoreConfig| {
            let mut stores = Stores::new(config, &Ledger::unread());
            let urls = ["s3://b/k", "gs://b/k", "az://c/k"];
            urls.map(|url| stores.open(&Place::read(url).unwrap()).is_ok())
        };
        assert_eq!(open(&config), [true; 3]);
        config.endpoint_url = Some("http://127.0.0.1:1".into());
        assert_eq!(open(&config), [true, false, false]);
    }
}
