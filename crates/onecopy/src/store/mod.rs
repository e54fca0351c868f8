//! Objects to buffers: URLs, listing, signing, and ranged reads straight into slabs.
//!
//! Hops here: recv, head_rest, tls_recv, tls_open, tls_copy, tls_seal, read, send. May import: buffer, ledger. Absent: any
//! knowledge of tar or samples, and any buffer of its own that payload passes through, but for what a response head or a TLS record
//! brings along, which is counted.
//!
//! | file | what it holds |
//! |---|---|
//! | `url`, `shown`, `url_list`, `braces`, `glob`, `escape`, `resolve`, `opener`, `stores`, `pages` | from what people write to objects and their stores |
//! | `s3/`, `gcs/`, `azure/`, `http`, `file` | the stores |
//! | `credentials/`, `cloud`, `xml` | what stores with accounts have in common |
//! | `pace` | what reading is like just now |
//! | `write` | what stores that can be written to promise |
//! | `files_below`, `stdin` | what `file` has beside single files |
//! | `object`, `dates` | what is known of an object, and how servers write times |
//! | `whole` | small objects, at once |
//! | `small_file` | profiles, keys and certificates, read with a limit |
//! | `origin`, `ranged`, `retry`, `checksum`, `crc_join` | what is common to stores on HTTP: asking, believing, asking again |
//! | `http1/` | our own HTTP client, which reads bodies into slabs |

mod azure;
mod braces;
mod checksum;
mod cloud;
mod crc_join;
mod credentials;
mod dates;
mod escape;
mod file;
mod files_below;
mod gcs;
mod glob;
mod http;
mod http1;
mod object;
mod opener;
mod origin;
mod pace;
mod pages;
mod ranged;
mod resolve;
mod retry;
mod s3;
mod shown;
mod small_file;
mod stdin;
mod stores;
mod url;
mod url_list;
mod whole;
mod write;
mod xml;

pub use checksum::{Checksum, Sum};
pub use escape::{has_glob, unescaped};
pub use files_below::FilesBelow;
pub use glob::Glob;
pub(crate) use http1::files_left;
pub use object::{ETag, Key, Object};
pub use opener::{Named, Opener, open_store, open_store_counted};
pub use pace::Pace;
pub use pages::Pages;
pub use resolve::{Absent, expand_braces, is_pattern, resolve, resolve_each, resolve_with};
pub use s3::{Bucket, list_buckets};
pub use shown::{behind_listed, shown as shown_url};
pub use stdin::stdin;
pub(crate) use stores::OneKind;
pub use url::split_bucket;
pub(crate) use url::{check as check_url, split_version};
pub(crate) use url_list::list_file;
pub(crate) use whole::{read_front, read_whole};
pub use write::{Attributes, CopySource, Part, Refused, Stored, Upload, Writer};

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use crate::buffer::{Slab, Slice};
use crate::error::Result;
use crate::ledger::OpenHop;
use crate::sync::Arc;

/// How we introduce ourselves to servers.
const USER_AGENT: &str = concat!("onecopy/", env!("CARGO_PKG_VERSION"));

/// A boxed future: what the methods of a store trait object return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Memory for a read: one or more slabs, filled one after the other.
pub type Target = Vec<Slab>;

/// A finished read.
#[derive(Debug)]
pub struct Filled {
    /// The memory, handed back; the first `len_bytes` are the object's.
    pub target: Target,
    /// How many bytes were filled: the whole target, or fewer where the object ends within it.
    pub len_bytes: u64,
    /// The object with what the answer told: its length and ETag are now known.
    pub object: Object,
}

/// Whoever takes what a read brings before the read is over.
pub trait Taker: Send + Debug {
    /// The object as an answer tells it, before any byte of that answer is there. Once for every answer that brings a range.
    fn told(&mut self, object: &Object) {
        let _nothing_to_learn = object;
    }

    /// The first slab of the target that was not handed over yet, full. From now on it is read only, by whoever holds a part.
    fn full(&mut self, object: &Object, bytes: Slice);
}

/// One page of a listing.
#[derive(Debug, Default)]
pub struct ListPage {
    /// Objects in the order of the store.
    pub objects: Vec<Object>,
    /// Common prefixes, where a delimiter was given.
    pub prefixes: Vec<Key>,
    /// Where the next page begins; none at the end.
    pub next: Option<String>,
}

/// What is to be listed.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// Only keys that begin with these bytes.
    pub prefix: Key,
    /// Fold keys that go on past the next `/` into a common prefix.
    pub is_folded: bool,
    /// The `next` of the page before.
    pub page: Option<String>,
}

/// A place that holds objects. One suite (`tests/store_conformance.rs`) tests every implementation.
pub trait Store: Send + Sync + Debug {
    /// Reads bytes from `offset` on into `target`, from the network or the disk straight into it.
    ///
    /// Reads exactly as many bytes as the target holds, or up to the end of the object where that comes first; the
    /// answer tells which. An `offset` past the end is `InvalidInput`; one at the end fills nothing. Where
    /// `object.len_bytes` or `object.etag` is known, an object with another one is `Changed`. Where the length is
    /// known, an empty rest costs no request, and an object that fits from 0 on is read by a plain GET.
    ///
    /// Retries by kind of error, resumes in the middle of a body at the exact offset, and gives up with the last cause
    /// once the tries or the budget are spent. Dropping the future stops the read and gives the memory back.
    ///
    /// `hop` is the hop that the store's kind of read counts on; others are opened beside it.
    ///
    /// # Copies
    ///
    /// None in user space, but for `head_rest` and, over TLS, `tls_copy`: well below a hundredth of a range of 8 MiB.
    ///
    /// # Errors
    ///
    /// Every kind but `Device`; the text names the object and the bytes.
    fn read_into<'a>(
        &'a self,
        hop: &'a OpenHop,
        object: &'a Object,
        offset: u64,
        target: Target,
    ) -> BoxFuture<'a, Result<Filled>>;

    /// Reads as [`Store::read_into`] does, in one request where nothing goes wrong, and hands the slabs of the target over
    /// one by one as they become full. What was not handed over is in the answer: the last slab, and all of them where they
    /// count only together (an object that is read whole and held against its checksum).
    ///
    /// # Copies
    ///
    /// As [`Store::read_into`].
    ///
    /// # Errors
    ///
    /// As [`Store::read_into`]; what was handed over before is right.
    fn read_run<'a>(
        &'a self,
        hop: &'a OpenHop,
        object: &'a Object,
        offset: u64,
        target: Target,
        taker: &'a mut dyn Taker,
    ) -> BoxFuture<'a, Result<Filled>> {
        let _all_at_the_end = taker;
        self.read_into(hop, object, offset, target)
    }

    /// What reading is like just now. None where it waits for no network.
    fn pace(&self) -> Option<Pace> {
        None
    }

    /// Looks an object up without reading it.
    ///
    /// # Errors
    ///
    /// `NotFound`, `Denied`, and what a request can meet.
    fn head<'a>(&'a self, object: &'a Object) -> BoxFuture<'a, Result<Object>>;

    /// One page of a listing, in the store's own order.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a store that cannot list (plain HTTP), `NotFound`, `Denied`, and what a request can meet.
    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<ListPage>>;

    /// The object at `key`, of which nothing else is known; none where the store has more than one way to write a key (files
    /// and web servers).
    fn object(&self, _key: &[u8]) -> Option<Object> {
        None
    }

    /// The writing side of the store, where it has one.
    fn writer(&self) -> Option<&dyn Writer> {
        None
    }
}

/// An object and the store that holds it.
#[derive(Debug, Clone)]
pub struct Source {
    /// Where to read it.
    pub store: Arc<dyn Store>,
    /// What to read.
    pub object: Object,
}
