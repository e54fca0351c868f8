//! Objects in Azure Blob Storage.
//!
//! Hops here: none; reading is `ranged`, on the client of `http1`. May import: buffer, ledger. Absent: writing, and checksums:
//! Azure keeps an MD5 of a blob where its writer gave one, which ranges cannot be held against.
//!
//! | file | what it holds |
//! |---|---|
//! | `place` | containers and accounts, as URLs name them |
//! | `account`, `settings`, `signer` | who asks: settings, environment, credentials |
//! | `list` | listings |
//! | `meaning` | what a refusal says |

mod account;
mod list;
mod meaning;
mod place;
mod settings;
mod signer;

pub(super) use account::Account;
pub(super) use place::{Container, NamedAccount};

use http::{HeaderMap, HeaderValue, Method};

use super::credentials::Held;
use super::http1::{Answer, Client, Failure, Head, Request};
use super::origin::{self, Origin};
use super::s3::encode_key;
use super::{BoxFuture, Filled, Key, ListPage, ListRequest, Object, Store, Target, cloud, ranged};
use crate::error::Result;
use crate::ledger::{Ledger, OpenHop};
use crate::sync::Arc;
use meaning::Scene;

/// The version of the protocol that is spoken: names that XML cannot hold come encoded since 2021-02-12, and emulators know
/// this one.
const VERSION: &str = "2023-11-03";

/// The objects of one container.
#[derive(Debug)]
pub(super) struct AzureStore {
    account: Arc<Account>,
    container: Container,
}

/// What is asked of a container.
struct Ask<'a> {
    method: &'a Method,
    /// Behind the container: empty, or the encoded name with a slash in front.
    path: String,
    query: String,
    conditions: HeaderMap,
}

impl Container {
    /// The account that the URL names, where it names one.
    pub(super) fn account(&self) -> Option<&NamedAccount> {
        self.account.as_ref()
    }
}

impl AzureStore {
    pub(super) fn new(account: Arc<Account>, container: &Container) -> Self {
        Self {
            account,
            container: container.clone(),
        }
    }

    fn url(&self, key: &Key) -> String {
        format!("{}/{key}", self.container.shown)
    }

    pub(super) fn named(&self, key: &[u8]) -> Object {
        let key = Key::new(key);
        Object {
            url: self.url(&key).into(),
            key,
            version: None,
            len_bytes: None,
            etag: None,
            modified_unix: None,
        }
    }

    /// Asks, and once more with another token where the first one was refused. An answer that is no such refusal is returned
    /// with its body unread.
    async fn exchange(&self, ask: &Ask<'_>, ledger: Option<&Ledger>) -> Result<Answer, Failure> {
        let mut is_again = false;
        loop {
            let (request, held) = self.request(ask).await?;
            let answer = self.account.client.send(&request).await?;
            if answer.head.status != 401 {
                return Ok(answer);
            }
            let failure = self.understood(answer).await;
            let (Some(held), Some(signer), false) = (held, &self.account.signer, is_again) else {
                return Err(failure);
            };
            signer.refuse(&held);
            if let Some(ledger) = ledger {
                ledger.retried(failure.cause);
            }
            is_again = true;
        }
    }

    async fn request(
        &self,
        ask: &Ask<'_>,
    ) -> Result<
        (
            Request,
            Option<Arc<Held<reqsign_azure_storage::Credential>>>,
        ),
        Failure,
    > {
        let account = &self.account;
        let mut headers = cloud::headers();
        headers.insert("x-ms-version", HeaderValue::from_static(VERSION));
        headers.extend(ask.conditions.clone());
        let mut path_and_query = format!("{}/{}{}", account.base, self.container.name, ask.path);
        if !ask.query.is_empty() {
            path_and_query.push('?');
            path_and_query.push_str(&ask.query);
        }
        let mut request = Request {
            method: ask.method.clone(),
            endpoint: account.endpoint.clone(),
            path_and_query,
            headers,
            body: bytes::Bytes::new(),
        };
        let held = match &account.signer {
            Some(signer) => {
                let held = signer.credential().await?;
                signer.sign(&mut request, &held).await?;
                Some(held)
            }
            None => None,
        };
        Ok((request, held))
    }

    /// Reads a refusal to its end.
    async fn understood(&self, answer: Answer) -> Failure {
        let told = meaning::Told::of(&answer.head);
        // The text is a help, not a need: a refusal whose text is cut off is still a refusal.
        let text = answer.body.collect(cloud::MAX_LISTING).await;
        let signer = self.account.signer.as_ref();
        let scene = Scene {
            container: &self.container.name,
            is_anonymous: signer.is_none(),
            has_sas: signer.is_some_and(signer::Signer::has_sas),
            has_key: signer.is_some_and(signer::Signer::has_key),
        };
        meaning::read(&told, &text.unwrap_or_default(), &scene)
    }

    async fn list_once(&self, request: &ListRequest) -> Result<ListPage, Failure> {
        let ask = Ask {
            method: &Method::GET,
            path: String::new(),
            query: list::query(request),
            conditions: HeaderMap::new(),
        };
        let answer = self.exchange(&ask, None).await?;
        if answer.head.status != 200 {
            return Err(self.understood(answer).await);
        }
        let text = answer.body.collect(cloud::MAX_LISTING).await?;
        list::read_page(&text, request, |key| self.url(key))
    }
}

impl Origin for AzureStore {
    fn client(&self) -> &Client {
        &self.account.client
    }

    fn ask<'a>(
        &'a self,
        method: Method,
        object: &'a Object,
        conditions: HeaderMap,
        ledger: Option<&'a Ledger>,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let ask = Ask {
                method: &method,
                path: format!("/{}", encode_key(object.key.as_bytes())),
                query: String::new(),
                conditions,
            };
            if let (true, Some(ledger)) = (self.account.is_verifying, ledger) {
                ledger.note(
                    "objects in Azure Blob Storage were not held against a checksum: it keeps none \
                     that ranges can be held against",
                );
            }
            self.exchange(&ask, ledger).await
        })
    }

    fn is_disguised(&self, head: &Head, is_range_ignored: bool) -> bool {
        cloud::is_disguised(head, is_range_ignored)
    }

    fn refused<'a>(&'a self, _method: &'a Method, answer: Answer) -> BoxFuture<'a, Failure> {
        Box::pin(self.understood(answer))
    }
}

impl Store for AzureStore {
    fn object(&self, key: &[u8]) -> Option<Object> {
        Some(self.named(key))
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

    fn head<'a>(&'a self, object: &'a Object) -> BoxFuture<'a, Result<Object>> {
        Box::pin(origin::head(self, object))
    }

    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<ListPage>> {
        Box::pin(async move {
            let listed = cloud::persistently(self.client(), move || self.list_once(request));
            let url = || self.url(&request.prefix);
            listed
                .await
                .map_err(|failure| failure.into_error("list", url()))
        })
    }
}
