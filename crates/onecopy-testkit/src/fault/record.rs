//! What the fault server saw, for assertions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One request. It is recorded before the first byte of its answer leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRecord {
    /// Counts the connections of this server from 0.
    pub connection: u64,
    /// Counts the GETs of this key from 0.
    pub number: u64,
    /// `GET`, `HEAD`, `PUT`, ..
    pub method: String,
    /// The path as it was on the wire, still percent-encoded.
    pub path: String,
    /// The key, decoded; empty for a listing.
    pub key: String,
    /// The `Range` header.
    pub range: Option<String>,
    /// The `If-Match` header.
    pub if_match: Option<String>,
    /// Did it carry a signature?
    pub is_signed: bool,
    /// The status of the answer; 0 where none was sent.
    pub status: u16,
    /// Bytes of body given to the kernel so far.
    pub bytes_sent: u64,
}

/// The records of one server.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Guards the records; each has a counter that its connection still moves.
    kept: Mutex<Vec<(FaultRecord, Arc<AtomicU64>)>>,
}

/// Tests send thousands of requests, benchmarks millions: those beyond are not recorded.
const MAX_RECORDS: usize = 1 << 16;

impl Records {
    /// Keeps a record and gives the counter of its bytes.
    pub(crate) fn push(&self, record: FaultRecord) -> Arc<AtomicU64> {
        let sent = Arc::new(AtomicU64::new(0));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_RECORDS {
            kept.push((record, Arc::clone(&sent)));
        }
        sent
    }

    pub(crate) fn all(&self) -> Vec<FaultRecord> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let told = kept.iter().map(|(record, sent)| FaultRecord {
            bytes_sent: sent.load(Ordering::Acquire),
            ..record.clone()
        });
        told.collect()
    }
}
