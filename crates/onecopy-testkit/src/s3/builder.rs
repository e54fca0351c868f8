//! The server as tests and the command hold it: built, started, asked, stopped.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::{Builder, JoinHandle};

use bytes::Bytes;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::service::S3ServiceBuilder;
use s3s::{S3Result, s3_error};
use tokio::sync::oneshot;

use super::checksums::Checksums;
use super::folder::FolderStore;
use super::kept_sums::KeptSums;
use super::memory::MemoryStore;
use super::multipart::Uploads;
use super::record::{Records, RequestRecord};
use super::serve::{Shared, serve};
use super::service::Api;
use super::store::{Attributes, Content, New, Store};
use super::tls::make_identity;

/// How a server is to be; [`S3Server::builder`] makes one with the defaults.
#[derive(Debug, Clone)]
pub struct S3Builder {
    access_key: String,
    secret_key: String,
    anonymous: bool,
    region: String,
    bind: String,
    root: Option<PathBuf>,
    sums: Option<PathBuf>,
    tls: bool,
}

impl S3Builder {
    /// The one pair of keys that signatures are checked with; the default is
    /// `onecopy` and `onecopy-secret`.
    #[must_use]
    pub fn credentials(mut self, access_key: &str, secret_key: &str) -> Self {
        access_key.clone_into(&mut self.access_key);
        secret_key.clone_into(&mut self.secret_key);
        self
    }

    /// Lets requests without a signature through; those with one are checked all the same.
    #[must_use]
    pub fn anonymous(mut self, allowed: bool) -> Self {
        self.anonymous = allowed;
        self
    }

    /// The region that signatures must be made for; the default is `us-east-1`.
    #[must_use]
    pub fn region(mut self, region: &str) -> Self {
        region.clone_into(&mut self.region);
        self
    }

    /// The address to listen on; the default is `127.0.0.1:0`, a free port of loopback.
    #[must_use]
    pub fn bind(mut self, address: &str) -> Self {
        address.clone_into(&mut self.bind);
        self
    }

    /// Serves the folders below `root` as buckets and the files in them as objects.
    /// The default is memory.
    #[must_use]
    pub fn folder(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Gives files of the folder that did not come through this server a CRC64NVME, too: computed when
    /// it is first asked for, and kept in `file` for the next server.
    #[must_use]
    pub fn sums(mut self, file: impl Into<PathBuf>) -> Self {
        self.sums = Some(file.into());
        self
    }

    /// Speaks HTTPS, with a certificate of an authority made for this server.
    #[must_use]
    pub fn tls(mut self, tls: bool) -> Self {
        self.tls = tls;
        self
    }

    /// Starts the server on a thread of its own.
    ///
    /// # Errors
    /// If the address cannot be bound, the folder cannot be opened, or no thread can be had.
    pub fn start(self) -> io::Result<S3Server> {
        let store: Arc<dyn Store> = match (&self.root, &self.sums) {
            (Some(root), Some(file)) => {
                Arc::new(FolderStore::new(root)?.summing(KeptSums::new(file)?))
            }
            (Some(root), None) => Arc::new(FolderStore::new(root)?),
            (None, _) => Arc::new(MemoryStore::default()),
        };
        let uploads = Arc::new(Uploads::default());
        let identity = if self.tls {
            Some(make_identity()?)
        } else {
            None
        };
        let (acceptor, ca_pem) = identity.map(|i| (i.acceptor, i.ca_pem)).unzip();
        let api = Api {
            store: Arc::clone(&store),
            uploads: Arc::clone(&uploads),
            region: self.region.clone(),
        };
        let mut service = S3ServiceBuilder::new(api);
        service.set_auth(Keys {
            access_key: self.access_key,
            secret_key: self.secret_key,
        });
        service.set_access(Gate {
            anonymous: self.anonymous,
        });
        let records = Arc::new(Records::default());
        let shared = Arc::new(Shared {
            service: service.build(),
            records: Arc::clone(&records),
            region: self.region,
            acceptor,
            connections: AtomicU64::new(0),
        });
        let listener = TcpListener::bind(&self.bind)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = Builder::new()
            .name("testkit-s3".to_owned())
            .spawn(move || {
                // The listener was bound before; what fails here shows as a refused connection.
                drop(runtime.block_on(serve(listener, shared, stopped)));
            })?;
        let running = Running {
            stop: Some(stop),
            thread: Some(thread),
        };
        Ok(S3Server {
            address,
            ca_pem,
            store,
            uploads,
            records,
            running,
        })
    }
}

/// The one pair of keys.
struct Keys {
    access_key: String,
    secret_key: String,
}

#[async_trait::async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        if access_key == self.access_key {
            return Ok(SecretKey::from(self.secret_key.clone()));
        }
        Err(s3_error!(InvalidAccessKeyId))
    }
}

/// Who may do what: everybody with the keys, and others if the server is open.
struct Gate {
    anonymous: bool,
}

#[async_trait::async_trait]
impl S3Access for Gate {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        if self.anonymous || context.credentials().is_some() {
            return Ok(());
        }
        Err(s3_error!(AccessDenied, "Access Denied"))
    }
}

/// The thread of a server; dropping it stops and joins.
struct Running {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server's thread has been printed where it happened.
            drop(thread.join());
        }
    }
}

/// A running S3 server; it stops when it is dropped.
pub struct S3Server {
    address: SocketAddr,
    ca_pem: Option<String>,
    store: Arc<dyn Store>,
    uploads: Arc<Uploads>,
    records: Arc<Records>,
    /// Kept for its drop.
    #[expect(dead_code, reason = "it stops the thread when the server is dropped")]
    running: Running,
}

impl fmt::Debug for S3Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Server")
            .field("endpoint", &self.endpoint())
            .finish_non_exhaustive()
    }
}

impl S3Server {
    /// A server to be: on a free port of loopback, in memory, with the keys `onecopy` and
    /// `onecopy-secret`.
    #[must_use]
    pub fn builder() -> S3Builder {
        S3Builder {
            access_key: "onecopy".to_owned(),
            secret_key: "onecopy-secret".to_owned(),
            anonymous: false,
            region: "us-east-1".to_owned(),
            bind: "127.0.0.1:0".to_owned(),
            root: None,
            sums: None,
            tls: false,
        }
    }

    /// The URL that clients are given, such as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        let scheme = if self.ca_pem.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}", self.address)
    }

    /// The address that the server listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The certificate to trust, in PEM; none without TLS.
    #[must_use]
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// Makes a bucket; false if it was there.
    ///
    /// # Errors
    /// If the folder below cannot be made.
    pub fn create_bucket(&self, bucket: &str) -> io::Result<bool> {
        self.store.create_bucket(bucket)
    }

    /// Puts an object past the network, with the MD5 of the bytes as its ETag and a CRC64NVME.
    /// The bytes are shared, not copied, by a server in memory.
    ///
    /// # Errors
    /// If the bucket is missing, or no file can bear the key.
    pub fn put(&self, bucket: &str, key: &str, bytes: impl Into<Bytes>) -> io::Result<()> {
        let bytes = bytes.into();
        let checksums = Checksums::of_own_accord(&bytes);
        self.store.put(
            bucket,
            key,
            New::simple(
                bytes,
                Attributes {
                    checksums,
                    ..Default::default()
                },
            ),
        )
    }

    /// Puts an object past the network that is read only with the key whose MD5 this is, in base64
    /// (SSE-C). The bytes are kept as they are.
    ///
    /// # Errors
    /// If the bucket is missing, or no file can bear the key.
    pub fn put_locked(
        &self,
        bucket: &str,
        key: &str,
        bytes: impl Into<Bytes>,
        customer_key_md5: &str,
    ) -> io::Result<()> {
        let bytes = bytes.into();
        let attributes = Attributes {
            checksums: Checksums::of_own_accord(&bytes),
            customer_key_md5: Some(customer_key_md5.to_owned()),
            ..Default::default()
        };
        self.store.put(bucket, key, New::simple(bytes, attributes))
    }

    /// Gets an object past the network; None if it is not there.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn get(&self, bucket: &str, key: &str) -> io::Result<Option<Bytes>> {
        Ok(
            match self.store.find(bucket, key)?.map(|object| object.content) {
                None => None,
                Some(Content::Memory(bytes)) => Some(bytes),
                Some(Content::File(path)) => Some(Bytes::from(std::fs::read(path)?)),
            },
        )
    }

    /// The ETag of an object, in quotes as on the wire; None if it is not there.
    ///
    /// # Errors
    /// If the folder below cannot be read.
    pub fn etag(&self, bucket: &str, key: &str) -> io::Result<Option<String>> {
        Ok(self
            .store
            .find(bucket, key)?
            .map(|object| format!("\"{}\"", object.etag)))
    }

    /// Removes an object past the network.
    ///
    /// # Errors
    /// If its file cannot be removed.
    pub fn delete(&self, bucket: &str, key: &str) -> io::Result<()> {
        self.store.delete(bucket, key)
    }

    /// Uploads in parts that were begun, but neither completed nor aborted.
    #[must_use]
    pub fn open_uploads(&self) -> usize {
        self.uploads.open()
    }

    /// The requests that were answered so far, oldest first; the last 65 536 are kept.
    #[must_use]
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.records.all()
    }

    /// How many requests with this method are among [`Self::requests`].
    #[must_use]
    pub fn count(&self, method: &str) -> usize {
        self.records
            .all()
            .iter()
            .filter(|record| record.method == method)
            .count()
    }

    /// Forgets the requests so far.
    pub fn forget_requests(&self) {
        self.records.clear();
    }
}
