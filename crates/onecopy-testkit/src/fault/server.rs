//! The fault server as tests hold it: started, scripted, asked, stopped.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use bytes::Bytes;

use super::answer::{Answer, Content, Target};
use super::body::Pattern;
use super::connection::Connection;
use super::listing::{Listing, page, parse};
use super::profile::{Profile, TokenBucket};
use super::record::{FaultRecord, Records};
use super::request::Request;
use super::script::{Fault, Script, size};
use super::stop::Stop;
use crate::random::{hash, mix};

/// What is served and how: written by the test, read by every connection.
#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Target>,
    scripts: HashMap<String, Script>,
    listings: HashMap<String, Listing>,
    /// GETs so far, by key.
    asked: HashMap<String, u64>,
}

/// What the server and its connections share.
#[derive(Debug)]
pub(crate) struct Core {
    /// Guards everything that a test may change while the server runs.
    state: Mutex<State>,
    pub(crate) records: Records,
    pub(crate) stop: Stop,
    pub(crate) profile: Profile,
    tokens: TokenBucket,
    /// When the first GET came.
    first_get: OnceLock<Instant>,
}

/// Reads a key of the form `<script>/<size>[/anything]`.
fn scripted(key: &str) -> Option<(&str, u64)> {
    let (script, rest) = key.split_once('/')?;
    Some((script, size(rest.split('/').next()?)?))
}

fn pattern_target(key: &str, size: u64) -> Target {
    let etag = format!("{:016x}{:016x}", hash(key), mix(size));
    Target {
        size,
        etag,
        content: Content::Pattern(Pattern::new(key)),
    }
}

impl Core {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object behind a key: one that was put, one that was listed, one that its key describes.
    pub(crate) fn find(&self, bucket: &str, key: &str) -> Option<Target> {
        let state = self.state();
        if let Some(target) = state.objects.get(key) {
            return Some(target.clone());
        }
        let listed = state.listings.get(bucket).and_then(|listing| {
            listing
                .keys
                .iter()
                .find(|(name, ..)| name == key)
                .map(|(_, size, _)| *size)
        });
        let size = listed.or_else(|| scripted(key).map(|(_, size)| size))?;
        Some(pattern_target(key, size))
    }

    /// The number of this request of the key, and its faults. Only GETs count.
    pub(crate) fn faults(&self, request: &Request, key: &str) -> io::Result<(u64, Vec<Fault>)> {
        let mut state = self.state();
        let is_get = request.method == "GET";
        let asked = state.asked.entry(key.to_owned()).or_default();
        let number = *asked;
        *asked += u64::from(is_get);
        let script = match state.scripts.get(key) {
            Some(script) => script.clone(),
            None if state.objects.contains_key(key) => Script::default(),
            None => scripted(key).map_or(Ok(Script::default()), |(script, _)| script.parse())?,
        };
        // What is limited to some GETs is not for other methods, and does not count them.
        Ok((
            number,
            script.at(if is_get { number } else { u64::MAX - 1 }),
        ))
    }

    /// Whether the profile has a GET refused that comes now.
    pub(crate) fn refuses(&self) -> bool {
        let first = self.first_get.get_or_init(Instant::now);
        !self.tokens.take() || self.profile.refuses(first.elapsed())
    }

    pub(crate) fn put(&self, key: &str, bytes: Bytes) {
        let target = bytes_target(bytes);
        self.state().objects.insert(key.to_owned(), target);
    }

    /// One page of the bucket: of the listing that was put, or of all objects that were.
    pub(crate) fn list(&self, bucket: &str, request: &Request) -> Answer {
        let state = self.state();
        let mut listing = state.listings.get(bucket).cloned().unwrap_or_default();
        if listing.keys.is_empty() {
            let told =
                |(key, target): (&String, &Target)| (key.clone(), target.size, target.etag.clone());
            listing.keys = state.objects.iter().map(told).collect();
        }
        match page(&listing, bucket, request) {
            Some(xml) => Answer::text(200, "application/xml", xml),
            None => Answer::error(500, None),
        }
    }
}

fn bytes_target(bytes: Bytes) -> Target {
    let size = bytes.len() as u64;
    let etag = format!("{:08x}{size:x}", crc32fast::hash(&bytes));
    Target {
        size,
        etag,
        content: Content::Bytes(bytes),
    }
}

/// A running fault server; it stops when it is dropped, whatever its connections are doing.
pub struct FaultServer {
    address: SocketAddr,
    core: Arc<Core>,
    acceptor: Option<JoinHandle<()>>,
}

impl fmt::Debug for FaultServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultServer")
            .field("endpoint", &self.endpoint())
            .finish_non_exhaustive()
    }
}

impl FaultServer {
    /// Starts a server on a free port of loopback, without delays.
    ///
    /// # Errors
    /// If no port or thread can be had.
    pub fn start() -> io::Result<Self> {
        Self::start_with("127.0.0.1:0", Profile::instant())
    }

    /// Starts a server with the timing of a profile.
    ///
    /// # Errors
    /// If the address cannot be bound, or no thread can be had.
    pub fn start_with(bind: &str, profile: Profile) -> io::Result<Self> {
        let listener = TcpListener::bind(bind)?;
        let address = listener.local_addr()?;
        let core = Arc::new(Core {
            state: Mutex::default(),
            records: Records::default(),
            stop: Stop::default(),
            tokens: TokenBucket::new(profile.requests_per_second),
            first_get: OnceLock::new(),
            profile,
        });
        let shared = Arc::clone(&core);
        let acceptor = Builder::new()
            .name("testkit-fault".to_owned())
            .spawn(move || accept(&listener, &shared))?;
        Ok(Self {
            address,
            core,
            acceptor: Some(acceptor),
        })
    }

    /// The URL that clients are given, such as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address that the server listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves these bytes under this key, in every bucket. The bytes are shared, not copied.
    pub fn put(&self, key: &str, bytes: impl Into<Bytes>) {
        self.core.put(key, bytes.into());
    }

    /// Serves a file under this key, in every bucket. It is read as it is asked for, so it may be of any size, and must not
    /// change.
    ///
    /// # Errors
    /// If the file cannot be looked at.
    pub fn put_file(&self, key: &str, path: &Path) -> io::Result<()> {
        let size = std::fs::metadata(path)?.len();
        let target = Target {
            size,
            etag: format!("{:016x}{:016x}", hash(&path.to_string_lossy()), mix(size)),
            content: Content::File(path.into()),
        };
        self.core.state().objects.insert(key.to_owned(), target);
        Ok(())
    }

    /// Scripts a key, and counts its requests from 0 again.
    ///
    /// # Errors
    /// `InvalidInput` for a word that is none.
    pub fn script(&self, key: &str, script: &str) -> io::Result<()> {
        let script = script.parse()?;
        let mut state = self.core.state();
        state.asked.remove(key);
        state.scripts.insert(key.to_owned(), script);
        Ok(())
    }

    /// Lists these keys and sizes for a bucket; a GET of one gives a body as [`super::fill`] does.
    pub fn put_listing(&self, bucket: &str, keys: Vec<(String, u64)>) {
        let told = |(key, size): (String, u64)| {
            let etag = pattern_target(&key, size).etag;
            (key, size, etag)
        };
        let mut state = self.core.state();
        state.listings.entry(bucket.to_owned()).or_default().keys =
            keys.into_iter().map(told).collect();
    }

    /// Scripts the listing of a bucket: `sametoken`, `emptypage`, `duplicates`, `notoken`,
    /// `failpage=2`, parted by commas.
    ///
    /// # Errors
    /// `InvalidInput` for a word that is none.
    pub fn script_listing(&self, bucket: &str, script: &str) -> io::Result<()> {
        let faults = parse(script)?;
        self.core
            .state()
            .listings
            .entry(bucket.to_owned())
            .or_default()
            .faults = faults;
        Ok(())
    }

    /// The requests that came in so far, oldest first; the first 65 536 are kept.
    #[must_use]
    pub fn requests(&self) -> Vec<FaultRecord> {
        self.core.records.all()
    }

    /// How many requests with this method are among [`Self::requests`].
    #[must_use]
    pub fn count(&self, method: &str) -> usize {
        self.core
            .records
            .all()
            .iter()
            .filter(|record| record.method == method)
            .count()
    }
}

impl Drop for FaultServer {
    fn drop(&mut self) {
        self.core.stop.set();
        // The acceptor waits in accept(); a connection wakes it. If none can be made, the
        // listener is gone, and so is the thread.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            // A panic of the thread has been printed where it happened.
            drop(acceptor.join());
        }
    }
}

/// Accepts until the server stops, then closes all sockets and waits for their threads.
fn accept(listener: &TcpListener, core: &Arc<Core>) {
    // Weak, so that a connection alone decides when its socket closes: a reset needs that.
    let mut open: Vec<(Weak<TcpStream>, JoinHandle<()>)> = Vec::new();
    for (number, socket) in listener.incoming().enumerate() {
        if core.stop.is_set() {
            break;
        }
        open.retain(|(_, thread)| !thread.is_finished());
        let Ok(socket) = socket else { continue };
        let socket = Arc::new(socket);
        let weak = Arc::downgrade(&socket);
        let connection = Connection {
            core: Arc::clone(core),
            socket,
            number: number as u64,
        };
        let thread = Builder::new()
            .name(format!("testkit-fault-{number}"))
            .spawn(move || {
                // An error is the client's going away; there is nobody left to tell.
                drop(connection.run());
            });
        if let Ok(thread) = thread {
            open.push((weak, thread));
        }
    }
    for (socket, _) in &open {
        if let Some(socket) = socket.upgrade() {
            // Ends reads and writes that are under way; a failure means that it is closed.
            drop(socket.shutdown(Shutdown::Both));
        }
    }
    for (_, thread) in open {
        drop(thread.join());
    }
}
