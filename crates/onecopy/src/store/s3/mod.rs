//! Objects in S3, and in whatever else speaks its protocol.
//!
//! Hops here: none of its own; reading is `ranged`, on the client of `http1`. May import: buffer, ledger. Absent: any
//! normalising of keys. They are raw bytes, percent-encoded once, on the wire as in the signature.

mod account;
mod address;
mod buckets;
#[cfg(test)]
mod fuzz;
mod list;
mod profile;
mod refusal;
mod send;
mod signer;

pub(super) use account::Account;
pub use buckets::{Bucket, list_buckets};

use http::{HeaderMap, HeaderValue, Method, header};

use super::http1::{Answer, Client, Failure, Head, Request};
use super::origin::{self, Origin};
use super::retry::Retry;
use super::{BoxFuture, Filled, Key, ListPage, ListRequest, Object, Store, Target, ranged};
use crate::error::Result;
use crate::ledger::OpenHop;
use crate::sync::Arc;
use address::Address;

/// Listings and error texts longer than this are refused: 1000 keys of 1024 bytes, each byte encoded as three, are
/// some 4 MiB.
const MAX_LISTING: usize = 16 << 20;

/// The objects of one bucket.
#[derive(Debug)]
pub(super) struct S3Store {
    account: Arc<Account>,
    address: Address,
    bucket: String,
}

impl S3Store {
    pub(super) fn new(account: Arc<Account>, bucket: &str) -> Result<Self> {
        let address = Address::of(bucket, account.endpoint(), account.region())?;
        Ok(Self {
            account,
            address,
            bucket: bucket.to_owned(),
        })
    }

    /// The object at `key`, of which nothing else is known yet.
    pub(super) fn object(&self, key: &[u8]) -> Object {
        let key = Key::new(key);
        Object {
            url: self.url(&key).into(),
            key,
            len_bytes: None,
            etag: None,
            modified_unix: None,
        }
    }

    fn url(&self, key: &Key) -> String {
        format!("s3://{}/{key}", self.bucket)
    }

    async fn signed(&self, method: Method, path: &str, query: &str) -> Result<Request, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(super::USER_AGENT),
        );
        if self.account.is_requester_paying() {
            headers.insert("x-amz-request-payer", HeaderValue::from_static("requester"));
        }
        let path = format!("{}{path}", self.address.base);
        let path_and_query = if query.is_empty() {
            path
        } else {
            format!("{path}?{query}")
        };
        let request = Request {
            method,
            endpoint: self.address.endpoint.clone(),
            path_and_query,
            headers,
            body: bytes::Bytes::new(),
        };
        self.account.sign(request).await
    }

    fn scene(&self, method: &Method) -> refusal::Scene<'_> {
        refusal::Scene {
            bucket: &self.bucket,
            region: self.account.region(),
            is_head: method == Method::HEAD,
            is_anonymous: self.account.is_anonymous(),
        }
    }

    async fn list_once(&self, request: &ListRequest) -> Result<ListPage, Failure> {
        let query = list::query(request);
        let path = if self.address.base.is_empty() {
            "/"
        } else {
            ""
        };
        let asked = self.signed(Method::GET, path, &query).await?;
        let answer = self.account.client().send(&asked).await?;
        if answer.head.status != 200 {
            return Err(self.refused(&Method::GET, answer).await);
        }
        let told = refusal::Told::of(&answer.head);
        let text = answer.body.collect(MAX_LISTING).await?;
        if list::is_error(&text) {
            // Some stores begin an answer before they know that they cannot give it.
            return Err(refusal::read(told, &text, &self.scene(&Method::GET)).failure);
        }
        list::read_page(&text, request, |key| self.url(key))
    }
}

impl Origin for S3Store {
    fn client(&self) -> &Client {
        self.account.client()
    }

    fn request<'a>(
        &'a self,
        method: Method,
        object: &'a Object,
    ) -> BoxFuture<'a, Result<Request, Failure>> {
        Box::pin(async move {
            let path = format!("/{}", address::encode_key(object.key.as_bytes()));
            self.signed(method, &path, "").await
        })
    }

    /// Objects of S3 have an ETag; error texts and pages of proxies have none.
    fn is_disguised(&self, head: &Head) -> bool {
        let is_text = |kind: &str| kind.contains("xml") || kind.contains("html");
        origin::etag(head).is_none() && head.header("content-type").is_some_and(is_text)
    }

    fn refused<'a>(&'a self, method: &'a Method, answer: Answer) -> BoxFuture<'a, Failure> {
        Box::pin(async move {
            let scene = self.scene(method);
            let (head, asked) = (refusal::Told::of(&answer.head), answer.asked);
            // The text is a help, not a need: a refusal whose text is cut off is still a refusal.
            let text = answer.body.collect(MAX_LISTING).await.unwrap_or_default();
            let refusal = refusal::read(head, &text, &scene);
            if refusal.is_credential_old {
                self.account.forget_credential(asked).await;
            }
            refusal.failure
        })
    }
}

impl Store for S3Store {
    fn read_into<'a>(
        &'a self,
        hop: &'a OpenHop,
        object: &'a Object,
        offset: u64,
        target: Target,
    ) -> BoxFuture<'a, Result<Filled>> {
        Box::pin(ranged::read_into(self, hop, object, offset, target))
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
