//! What the server saw: one record per request, for tests to count.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Records kept; the oldest go first. A benchmark would otherwise fill memory with them.
const MAX_RECORDS: usize = 1 << 16;

/// One request as it came in, and what was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Counts the connections of this server from 0.
    pub connection: u64,
    /// `GET`, `HEAD`, `PUT`, ..
    pub method: String,
    /// The path as it was on the wire, still percent-encoded.
    pub path: String,
    /// The query as it was on the wire, without the question mark.
    pub query: Option<String>,
    /// The `Range` header.
    pub range: Option<String>,
    /// The `If-Match` header.
    pub if_match: Option<String>,
    /// The status of the answer.
    pub status: u16,
    /// The `Content-Length` of the answer, in bytes.
    pub length_bytes: Option<u64>,
}

impl RequestRecord {
    /// Is this a listing of objects?
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.method == "GET"
            && self
                .query
                .as_deref()
                .is_some_and(|q| q.contains("list-type="))
    }
}

/// The records of one server.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Guards the records; held for one push or one clone.
    kept: Mutex<VecDeque<RequestRecord>>,
}

impl Records {
    pub(crate) fn push(&self, record: RequestRecord) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == MAX_RECORDS {
            kept.pop_front();
        }
        kept.push_back(record);
    }

    pub(crate) fn all(&self) -> Vec<RequestRecord> {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }

    pub(crate) fn clear(&self) {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}
