//! The loop below both services, and what a test may say to it.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufReader, BufWriter};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use bytes::Bytes;

use super::answer::Answer;
use super::objects::{Objects, Stored};
use super::{azure, google};
use crate::fault::request::Request;
use crate::random::hash;

/// Who may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    Anyone,
    /// Who sends this token.
    Token(String),
    /// Who signs with this key of the account, in base64 (Azure).
    Key(String),
    /// Who sends this SAS token, without anything percent-encoded in it (Azure).
    Sas(String),
}

/// One request, recorded before its answer leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudRecord {
    /// `GET` or `HEAD`.
    pub method: String,
    /// The path as it was on the wire, still percent-encoded.
    pub path: String,
    /// The parameters, decoded.
    pub query: Vec<(String, String)>,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The status of the answer.
    pub status: u16,
}

#[derive(Debug, Clone, Copy)]
enum Service {
    Google,
    Azure,
}

/// What is served, and how.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) access: Access,
    /// Of Azure.
    pub(crate) account: String,
    pub(crate) buckets: BTreeSet<String>,
    pub(crate) objects: Objects,
    /// Entries on a page of a listing.
    pub(crate) page_len: usize,
    /// Whether checksums are told wrong.
    pub(crate) is_lying: bool,
    refusals: VecDeque<(u16, String)>,
    records: Vec<CloudRecord>,
}

/// A service that is read; it stops when it is dropped.
#[derive(Debug)]
pub struct CloudServer {
    service: Service,
    address: SocketAddr,
    /// Guards everything that a test may change while the server runs.
    state: Arc<Mutex<State>>,
    is_stopped: Arc<AtomicBool>,
}

impl CloudServer {
    /// Google Cloud Storage at `bind` (`127.0.0.1:0` takes a free port).
    ///
    /// # Errors
    ///
    /// Where the port cannot be had.
    pub fn google(bind: &str, access: Access) -> io::Result<Self> {
        Self::start(Service::Google, bind, String::new(), access)
    }

    /// Azure Blob Storage with one account.
    ///
    /// # Errors
    ///
    /// As for [`Self::google`].
    pub fn azure(bind: &str, account: &str, access: Access) -> io::Result<Self> {
        Self::start(Service::Azure, bind, account.to_owned(), access)
    }

    fn start(service: Service, bind: &str, account: String, access: Access) -> io::Result<Self> {
        let listener = TcpListener::bind(bind)?;
        let server = Self {
            service,
            address: listener.local_addr()?,
            state: Arc::new(Mutex::new(State {
                access,
                account,
                buckets: BTreeSet::new(),
                objects: Objects::new(),
                page_len: 1000,
                is_lying: false,
                refusals: VecDeque::new(),
                records: Vec::new(),
            })),
            is_stopped: Arc::default(),
        };
        let (state, is_stopped) = (Arc::clone(&server.state), Arc::clone(&server.is_stopped));
        Builder::new()
            .name("testkit-cloud".to_owned())
            .spawn(move || {
                for stream in listener.incoming() {
                    if is_stopped.load(Ordering::Acquire) {
                        return;
                    }
                    let (Ok(stream), state) = (stream, Arc::clone(&state)) else {
                        continue;
                    };
                    let thread = Builder::new().name("testkit-cloud-connection".to_owned());
                    // An error is the client's going away; there is nobody left to tell.
                    drop(thread.spawn(move || drop(speak(&stream, service, &state))));
                }
            })?;
        Ok(server)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it is; for Azure with the account.
    #[must_use]
    pub fn endpoint(&self) -> String {
        match self.service {
            Service::Google => format!("http://{}", self.address),
            Service::Azure => format!("http://{}/{}", self.address, self.state().account),
        }
    }

    /// Puts an object, and its bucket where it is not there. Its ETag tells its bytes apart.
    pub fn put(&self, bucket: &str, key: &str, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        let sum = crc32fast::hash(&bytes);
        let etag = format!("\"0x{:X}{sum:08X}\"", hash(key));
        let mut state = self.state();
        state.buckets.insert(bucket.to_owned());
        let place = (bucket.to_owned(), key.to_owned());
        state.objects.insert(place, Stored { bytes, etag });
    }

    /// Makes a bucket.
    pub fn create_bucket(&self, bucket: &str) {
        self.state().buckets.insert(bucket.to_owned());
    }

    /// Says who may read from now on.
    pub fn set_access(&self, access: Access) {
        self.state().access = access;
    }

    /// Sets the number of entries on a page of a listing.
    pub fn set_page_len(&self, len: usize) {
        self.state().page_len = len;
    }

    /// Tells wrong checksums from now on, or right ones again.
    pub fn lie_about_checksums(&self, is_lying: bool) {
        self.state().is_lying = is_lying;
    }

    /// Refuses the next `count` requests with this status and code.
    pub fn refuse(&self, count: usize, status: u16, code: &str) {
        let refusal = (status, code.to_owned());
        self.state()
            .refusals
            .extend(std::iter::repeat_n(refusal, count));
    }

    /// All requests so far.
    #[must_use]
    pub fn records(&self) -> Vec<CloudRecord> {
        self.state().records.clone()
    }
}

impl Drop for CloudServer {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Release);
        // Wakes the thread that waits for connections, so that it sees it.
        drop(TcpStream::connect(self.address));
    }
}

fn speak(stream: &TcpStream, service: Service, state: &Mutex<State>) -> io::Result<()> {
    // Without it, the last segment of an answer waits for the client's delayed ACK.
    stream.set_nodelay(true)?;
    let (mut from, mut to) = (BufReader::new(stream), BufWriter::new(stream));
    while let Some(request) = Request::read(&mut from)? {
        let answer = answer(&request, service, state);
        answer.write(&mut to, request.method == "HEAD")?;
    }
    Ok(())
}

fn answer(request: &Request, service: Service, state: &Mutex<State>) -> Answer {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let refusal = state.refusals.pop_front();
    let answer = match (service, refusal) {
        (Service::Google, Some((status, code))) => google::error(status, &code),
        (Service::Azure, Some((status, code))) => azure::error(status, &code),
        (Service::Google, None) => google::answer(request, &state),
        (Service::Azure, None) => azure::answer(request, &state),
    };
    state.records.push(CloudRecord {
        method: request.method.clone(),
        path: request.path.clone(),
        query: request.query.clone(),
        headers: request.headers.clone(),
        status: answer.status,
    });
    answer
}
