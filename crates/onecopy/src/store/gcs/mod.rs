//! Objects in Google Cloud Storage, by its XML API.
//!
//! Hops here: none; reading is `ranged`, on the client of `http1`. May import: buffer, ledger. Absent: writing. Listings are
//! those of S3, word for word, and so its reader is used.
//!
//! | file | what it holds |
//! |---|---|
//! | `account`, `signer` | who asks: settings, environment, tokens |
//! | `meaning` | what a refusal says |

mod account;
mod meaning;
mod signer;

pub(super) use account::Account;

use http::{HeaderMap, HeaderValue, Method, header};
use reqsign_google::Credential;

use super::checksum::{Algorithm, Checksum, Sum};
use super::cloud::{self, Ask, Signed};
use super::http1::{Answer, Client, Failure, Head, Request};
use super::origin::{self, Origin};
use super::s3::{Sums, Told, encode_key, list};
use super::{
    BoxFuture, Filled, Key, ListPage, ListRequest, Object, Pace, Store, Taker, Target, ranged,
};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Ledger, OpenHop};
use crate::sync::Arc;
use meaning::Scene;
use signer::Signer;

/// The objects of one bucket.
#[derive(Debug)]
pub(super) struct GcsStore {
    account: Arc<Account>,
    bucket: String,
    sums: Sums,
}

impl GcsStore {
    /// The bucket that is written so in a URL.
    pub(super) fn new(account: Arc<Account>, bucket: &str) -> Result<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_name = (1..=222).contains(&bucket.len()) && bucket.bytes().all(is_plain);
        if !is_name || bucket.bytes().all(|byte| byte == b'.') {
            let (target, why) = (format!("gs://{bucket}"), "this is no bucket name");
            return Err(
                Error::new(ErrorKind::InvalidInput, "use the bucket", target, why)
                    .with_help("write it like gs://bucket/name: letters, digits, dots, - and _"),
            );
        }
        Ok(Self {
            account,
            bucket: bucket.to_owned(),
            sums: Sums::default(),
        })
    }

    fn url(&self, key: &Key) -> String {
        format!("gs://{}/{key}", self.bucket)
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
        // Objects that are kept compressed come as they are kept, and not unpacked without their length.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        if let Some(project) = &account.project {
            headers.insert("x-goog-user-project", project.clone());
        }
        headers.extend(ask.conditions.clone());
        let held = match &account.signer {
            Some(signer) => {
                let held = signer.credential().await?;
                Signer::sign(&held, &account.endpoint, &mut headers)?;
                Some(held)
            }
            None => None,
        };
        let mut path_and_query = format!("{}/{}{}", account.base, self.bucket, ask.path);
        if !ask.query.is_empty() {
            path_and_query.push('?');
            path_and_query.push_str(&ask.query);
        }
        let request = Request {
            method: ask.method.clone(),
            endpoint: account.endpoint.clone(),
            path_and_query,
            headers,
            body: bytes::Bytes::new(),
        };
        Ok((request, held))
    }

    /// The answer that tells why a HEAD was refused: it has no text, so the first byte is asked for in its place.
    async fn reason(&self, ask: Ask<'_>, refusal: Answer) -> Result<Answer, Failure> {
        let ask = Ask {
            method: &Method::GET,
            conditions: origin::range(0, 1),
            ..ask
        };
        let answer = self.exchange(&ask, None).await?;
        Ok(if answer.head.status < 300 {
            refusal
        } else {
            answer
        })
    }

    /// Reads a refusal to its end.
    async fn understood(&self, answer: Answer) -> Failure {
        let (told, way) = (meaning::Told::of(&answer.head), answer.way());
        // The text is a help, not a need: a refusal whose text is cut off is still a refusal.
        let text = answer.body.collect(cloud::MAX_LISTING).await;
        meaning::read(&told, &text.unwrap_or_default(), &self.scene()).on(&way)
    }

    fn scene(&self) -> Scene<'_> {
        Scene {
            bucket: &self.bucket,
            signer: self.account.signer.as_ref(),
        }
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
        let (told, way) = (meaning::Told::of(&answer.head), answer.way());
        let text = answer.body.collect(cloud::MAX_LISTING).await?;
        if list::is_error(&text) {
            return Err(meaning::read(&told, &text, &self.scene()).on(&way));
        }
        list::read_page(&text, request, |key| self.url(key)).map_err(|failure| failure.on(&way))
    }

    /// Every answer with bytes of an object tells the checksum of the whole.
    fn note(&self, object: &Object, head: &Head) {
        if self.account.is_verifying && matches!(head.status, 200 | 206) {
            let etag = origin::etag(head);
            let seen = Object {
                etag: etag.clone(),
                ..object.clone()
            };
            let expected = crc32c(head);
            self.sums.note(&seen, Told { expected, etag });
        }
    }
}

/// The CRC32C of the whole object, which stands in `x-goog-hash` beside other checksums.
fn crc32c(head: &Head) -> Option<Checksum> {
    let values = head.headers.get_all("x-goog-hash").into_iter();
    let mut sums = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','));
    let base64 = sums.find_map(|sum| sum.trim().strip_prefix("crc32c="))?;
    Checksum::read(Algorithm::Crc32C, base64)
}

/// Refuses bytes that are not those that the store keeps: then neither lengths nor checksums nor ranges hold.
fn check_encoding(head: &Head) -> Result<(), Failure> {
    let stored = head.header("x-goog-stored-content-encoding");
    let is_gzip = |text: Option<&str>| text.is_some_and(|text| text.contains("gzip"));
    if !matches!(head.status, 200 | 206)
        || stored.is_none()
        || is_gzip(stored) == is_gzip(head.header("content-encoding"))
    {
        return Ok(());
    }
    let why = "the store, or a proxy, packed or unpacked the object on the way (gzip)";
    Err(Failure::new(ErrorKind::Unsupported, "transcoded", why)
        .with_help("give the object Cache-Control: no-transform, or store it without gzip"))
}

impl Origin for GcsStore {
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
            let answer = self.exchange(&ask, ledger).await?;
            if method == Method::HEAD && matches!(answer.head.status, 400 | 403) {
                return self.reason(ask, answer).await;
            }
            check_encoding(&answer.head).map_err(|failure| failure.on(&answer.way()))?;
            self.note(object, &answer.head);
            Ok(answer)
        })
    }

    fn is_disguised(&self, head: &Head, is_range_ignored: bool) -> bool {
        cloud::is_disguised(head, is_range_ignored)
    }

    fn summing<'a>(
        &'a self,
        _object: &'a Object,
        _ledger: &'a Ledger,
    ) -> BoxFuture<'a, Option<Algorithm>> {
        let algorithm = self.account.is_verifying.then_some(Algorithm::Crc32C);
        Box::pin(std::future::ready(algorithm))
    }

    fn expected(&self, head: &Head) -> Option<Checksum> {
        crc32c(head).filter(|_| self.account.is_verifying)
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

    fn refused<'a>(&'a self, _method: &'a Method, answer: Answer) -> BoxFuture<'a, Failure> {
        Box::pin(self.understood(answer))
    }
}

impl Store for GcsStore {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &str) -> Head {
        let text = format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n", lines.replace('\n', "\r\n"));
        Head::parse(text.as_bytes()).unwrap().unwrap().0
    }

    #[test]
    fn the_crc32c_is_found_beside_other_checksums() {
        for (lines, is_there) in [
            ("x-goog-hash: crc32c=4waSgw==", true),
            (
                "x-goog-hash: crc32c=4waSgw==,md5=JfnnlDI7RTiF9RgfG2JNCw==",
                true,
            ),
            (
                "x-goog-hash: md5=JfnnlDI7RTiF9RgfG2JNCw==\nx-goog-hash: crc32c=4waSgw==",
                true,
            ),
            ("x-goog-hash: md5=JfnnlDI7RTiF9RgfG2JNCw==", false),
            ("x-goog-hash: crc32c=4waSgw", false),
            ("x-goog-hash: crc32c=rosUhgp5mIg=", false),
            ("a: b", false),
        ] {
            assert_eq!(crc32c(&head(lines)).is_some(), is_there, "{lines}");
        }
    }

    #[test]
    fn only_bytes_as_they_are_stored_are_taken() {
        let stored = "x-goog-stored-content-encoding";
        for (lines, is_fine) in [
            ("a: b".to_owned(), true),
            (format!("{stored}: identity"), true),
            (format!("{stored}: gzip\ncontent-encoding: gzip"), true),
            (format!("{stored}: gzip"), false),
            (format!("{stored}: identity\ncontent-encoding: gzip"), false),
        ] {
            assert_eq!(check_encoding(&head(&lines)).is_ok(), is_fine, "{lines}");
        }
    }

    #[test]
    fn buckets_have_names() {
        let config = crate::config::StoreConfig::default();
        let client = Arc::new(Client::new(&config));
        let account = Arc::new(Account::new(client, &config).unwrap());
        for (bucket, is_one) in [
            ("bkt", true),
            ("my_bucket.example.com", true),
            ("", false),
            ("..", false),
            ("a b", false),
            ("a?b", false),
        ] {
            let store = GcsStore::new(Arc::clone(&account), bucket);
            assert_eq!(store.is_ok(), is_one, "{bucket}");
        }
    }
}
