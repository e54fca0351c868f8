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
use reqsign_azure_storage::Credential;

use super::cloud::{self, Ask, Signed};
use super::http1::{Answer, Client, Failure, Head, Request};
use super::origin::{self, Origin};
use super::s3::encode_key;
use super::{
    BoxFuture, Filled, Key, ListPage, ListRequest, Object, Pace, Store, Taker, Target, ranged,
};
use crate::error::Result;
use crate::ledger::{Ledger, OpenHop};
use crate::sync::Arc;
use meaning::Scene;
use signer::Signer;

/// The version of the protocol that is spoken: names that XML cannot hold come encoded since 2021-02-12, and emulators know
/// this one.
const VERSION: &str = "2023-11-03";

/// The objects of one container.
#[derive(Debug)]
pub(super) struct AzureStore {
    account: Arc<Account>,
    container: Container,
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

    async fn exchange(&self, ask: &Ask<'_>, ledger: Option<&Ledger>) -> Result<Answer, Failure> {
        let client = &self.account.client;
        let keep = self.account.signer.as_ref().map(Signer::keep);
        let understood = |answer| self.understood(answer);
        cloud::exchange(client, keep, ledger, || self.request(ask), understood).await
    }

    async fn request(&self, ask: &Ask<'_>) -> Result<Signed<Credential>, Failure> {
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
        let (told, way) = (meaning::Told::of(&answer.head), answer.way());
        // The text is a help, not a need: a refusal whose text is cut off is still a refusal.
        let text = answer.body.collect(cloud::MAX_LISTING).await;
        let signer = self.account.signer.as_ref();
        let scene = Scene {
            container: &self.container.name,
            is_anonymous: signer.is_none(),
            has_sas: signer.is_some_and(Signer::has_sas),
            has_key: signer.is_some_and(Signer::has_key),
        };
        meaning::read(&told, &text.unwrap_or_default(), &scene).on(&way)
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
        let way = answer.way();
        let text = answer.body.collect(cloud::MAX_LISTING).await?;
        list::read_page(&text, request, |key| self.url(key)).map_err(|failure| failure.on(&way))
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

    fn read_run<'a>(
        &'a self,
        hop: &'a OpenHop,
        object: &'a Object,
        offset: u64,
        target: Target,
        taker: &'a mut dyn Taker,
    ) -> BoxFuture<'a, Result<Filled>> {
        let taker = Some(taker);
        Box::pin(ranged::read_run(self, hop, object, offset, target, taker))
    }

    fn pace(&self) -> Option<Pace> {
        Some(self.account.client.pace())
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
