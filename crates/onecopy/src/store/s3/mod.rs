//! Objects in S3, and in whatever else speaks its protocol.
//!
//! Hops here: send; reading is `ranged`, on the client of `http1`. May import: buffer, ledger. Absent: any
//! normalising of keys. They are raw bytes, percent-encoded once, on the wire as in the signature.
//!
//! | file | what it holds |
//! |---|---|
//! | `account`, `profile` | who asks: settings, environment, profile |
//! | `bucket`, `address`, `aws`, `home` | what is asked: kinds of buckets, their hosts, and how a region is learned |
//! | `signer`, `half`, `keep`, `session`, `sign` | credentials and signatures |
//! | `customer_key` | SSE-C |
//! | `asking`, `refusal`, `meaning`, `page` | a request, and what a refusal says: about asking again, and to people |
//! | `sums` | checksums of objects that are read in ranges |
//! | `list`, `buckets` | listings of objects, and of buckets |
//! | `write`, `asked`, `proof`, `write_xml`, `delete` | writing: the requests, what vouches for a body, the documents |

mod account;
mod address;
mod asked;
mod asking;
mod aws;
mod bucket;
mod buckets;
mod customer_key;
mod delete;
#[cfg(test)]
mod fuzz;
mod half;
mod home;
mod keep;
pub(super) mod list;
mod meaning;
mod page;
mod profile;
mod proof;
mod refusal;
mod session;
mod sign;
mod signer;
mod sums;
mod write;
mod write_xml;

pub(super) use account::Account;
pub(super) use address::{encode_key, encode_value};
pub use buckets::{Bucket, list_buckets};

use http::{HeaderMap, Method};

use super::checksum::{Algorithm, Checksum, Sum};
use super::http1::{Answer, Client, Failure, Head};
use super::origin::{self, Origin};
use super::retry::Retry;
use super::{
    BoxFuture, Filled, Key, ListPage, ListRequest, Object, Pace, Store, Taker, Target, Writer,
    ranged,
};
use crate::error::{ErrorKind, Result};
use crate::ledger::{Ledger, OpenHop};
use crate::sync::Arc;
use asking::{Ask, With};
use home::Home;
use keep::Keep;
pub(super) use sums::{Sums, Told};

/// Listings and error texts longer than this are refused: 1000 keys of 1024 bytes, each byte encoded as three, are
/// some 4 MiB.
const MAX_LISTING: usize = 16 << 20;

/// The objects of one bucket.
#[derive(Debug)]
pub(super) struct S3Store {
    account: Arc<Account>,
    home: Home,
    bucket: String,
    /// The session of a directory bucket.
    session: Option<Keep>,
    sums: Sums,
}

impl S3Store {
    /// The bucket, or access point, that is written so in a URL.
    pub(super) fn new(account: Arc<Account>, bucket: &str) -> Result<Self> {
        let read = bucket::Bucket::read(bucket)?;
        let has_sessions =
            matches!(read, bucket::Bucket::Directory { .. }) && account.has_sessions();
        let home = Home::new(read, account.addressing(), account.region())?;
        Ok(Self {
            account,
            home,
            bucket: bucket.to_owned(),
            session: has_sessions.then(|| Keep::new(session::MARGIN)),
            sums: Sums::default(),
        })
    }

    /// The object at `key`, of which nothing else is known yet.
    pub(super) fn object(&self, key: &[u8], version: Option<&str>) -> Object {
        let key = Key::new(key);
        let mut url = self.url(&key);
        if let Some(version) = version {
            url.push_str("?versionId=");
            url.push_str(version);
        }
        Object {
            url: url.into(),
            key,
            version: version.map(Arc::from),
            len_bytes: None,
            etag: None,
            modified_unix: None,
        }
    }

    fn url(&self, key: &Key) -> String {
        format!("s3://{}/{key}", self.bucket)
    }

    fn told(&self, head: &Head) -> Told {
        Told {
            expected: Origin::expected(self, head),
            etag: origin::etag(head),
        }
    }

    async fn list_once(&self, request: &ListRequest) -> Result<ListPage, Failure> {
        let query = list::query(request);
        let ask = Ask::new(Method::GET, String::new(), query, With::Session);
        let answer = self.exchange(&ask, &HeaderMap::new(), None).await?;
        if answer.head.status != 200 {
            return Err(self.refused(&Method::GET, answer).await);
        }
        let (told, way) = (refusal::Told::of(&answer.head), answer.way());
        let text = answer.body.collect(MAX_LISTING).await?;
        self.check_text(told, &text, &Method::GET)
            .and_then(|()| list::read_page(&text, request, |key| self.url(key)))
            .map_err(|failure| failure.on(&way))
    }
}

impl Origin for S3Store {
    fn client(&self) -> &Client {
        self.account.client()
    }

    fn ask<'a>(
        &'a self,
        method: Method,
        object: &'a Object,
        conditions: HeaderMap,
        ledger: Option<&'a Ledger>,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let path = format!("/{}", address::encode_key(object.key.as_bytes()));
            let version = object.version.as_deref();
            let query = version.map_or(String::new(), version_query);
            let ask = Ask::new(method, path, query, With::Object);
            self.exchange(&ask, &conditions, ledger).await
        })
    }

    fn is_disguised(&self, head: &Head, is_range_ignored: bool) -> bool {
        page::is_disguised(head, is_range_ignored)
    }

    fn summing<'a>(
        &'a self,
        object: &'a Object,
        ledger: &'a Ledger,
    ) -> BoxFuture<'a, Option<Algorithm>> {
        Box::pin(async move {
            if !self.account.is_verifying() {
                return None;
            }
            // What it tells is noted by `found`.
            let mut failed = None;
            let look_up = async { failed = origin::head(self, object).await.err() };
            let told = self.sums.told(object, look_up).await;
            // Where there is nothing to look up, reading will tell; where it only cannot be looked up, nobody else would.
            if failed.is_some_and(|error| error.kind() != ErrorKind::NotFound) {
                ledger.warned("checksum_unknown");
            }
            let algorithm = told.expected?.algorithm;
            if !algorithm.joins() {
                let name = algorithm.name();
                ledger.note(format!(
                    "objects that were read in ranges were not held against their {name}: \
                     it cannot be made of those of ranges"
                ));
                return None;
            }
            Some(algorithm)
        })
    }

    fn found(&self, object: &Object, head: &Head) {
        if self.account.is_verifying() {
            self.sums.note(object, self.told(head));
        }
    }

    fn expected(&self, head: &Head) -> Option<Checksum> {
        Checksum::of(&head.headers).filter(|_| self.account.is_verifying())
    }

    fn passed(
        &self,
        object: &Object,
        offset: u64,
        sum: Sum,
        ledger: &Ledger,
    ) -> Result<(), Failure> {
        self.sums.hold(object, offset, sum, ledger)
    }

    fn refused<'a>(&'a self, method: &'a Method, answer: Answer) -> BoxFuture<'a, Failure> {
        Box::pin(async move {
            self.understood(method, answer, &self.home.place())
                .await
                .failure
        })
    }
}

fn version_query(version: &str) -> String {
    format!("versionId={}", address::encode_value(version.as_bytes()))
}

impl Store for S3Store {
    fn object(&self, key: &[u8]) -> Option<Object> {
        Some(self.object(key, None))
    }

    fn writer(&self) -> Option<&dyn Writer> {
        Some(self)
    }

    fn read_into<'a>(
        &'a self,
        hop: &'a OpenHop,
        object: &'a Object,
        offset: u64,
        target: Target,
    ) -> BoxFuture<'a, Result<Filled>> {
        Box::pin(ranged::read_into(self, hop, object, offset, target))
    }

    fn read_run<'a>(
        &'a self,
        hop: &'a OpenHop,
        object: &'a Object,
        offset: u64,
        target: Target,
        taker: &'a mut dyn Taker,
    ) -> BoxFuture<'a, Result<Filled>> {
        Box::pin(ranged::read_run(
            self,
            hop,
            object,
            offset,
            target,
            Some(taker),
        ))
    }

    fn pace(&self) -> Option<Pace> {
        Some(self.account.client().pace())
    }

    fn head<'a>(&'a self, object: &'a Object) -> BoxFuture<'a, Result<Object>> {
        Box::pin(origin::head(self, object))
    }

    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<ListPage>> {
        Box::pin(async move {
            let mut retry = Retry::new(self.client());
            loop {
                match self.list_once(request).await {
                    Ok(page) => {
                        retry.succeeded();
                        return Ok(page);
                    }
                    Err(failure) => {
                        let next = retry.after(failure).await;
                        next.map_err(|failure| {
                            failure.into_error("list", self.url(&request.prefix))
                        })?;
                    }
                }
            }
        })
    }
}
