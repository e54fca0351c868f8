//! ListBuckets: the buckets that an account has.

use std::collections::HashSet;

use http::{HeaderMap, Method};

use super::super::http1::{Client, Failure};
use super::super::{dates, retry::Retry};
use super::address::encode_value;
use super::asking::{Ask, With};
use super::home::Home;
use super::sums::Sums;
use super::{Account, MAX_LISTING, S3Store, list, refusal};
use crate::config::StoreConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Arc;

/// A bucket of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// What follows `s3://`.
    pub name: String,
    /// When it was made, in seconds since the epoch; some stores say when it was last changed instead.
    pub created_unix: Option<i64>,
    /// Where it is, where the store says so.
    pub region: Option<String>,
}

/// Lists the buckets of the account that `config` names, in the order of the store.
///
/// # Errors
///
/// `InvalidInput` for a configuration that cannot be; `Denied` without credentials or the right `s3:ListAllMyBuckets`;
/// and what a request can meet.
pub async fn list_buckets(config: &StoreConfig) -> Result<Vec<Bucket>> {
    let account = Arc::new(Account::new(Arc::new(Client::new(config)), config)?);
    let service = S3Store::service(account)?;
    let mut buckets = Vec::new();
    let mut pages = HashSet::new();
    let mut next: Option<String> = None;
    loop {
        let page = service.bucket_page(next.as_deref()).await?;
        buckets.extend(page.buckets);
        let Some(token) = page.next else {
            return Ok(buckets);
        };
        if !pages.insert(token.clone()) {
            let why = "the server lists the same page again and again";
            return Err(Error::new(
                ErrorKind::Corrupt,
                "list the buckets at",
                service.service_url(),
                why,
            )
            .with_help("does the endpoint speak S3?"));
        }
        next = Some(token);
    }
}

/// One page of buckets.
#[derive(Debug, Default)]
struct Page {
    buckets: Vec<Bucket>,
    next: Option<String>,
}

impl S3Store {
    /// The service itself, which is no bucket: it has no objects, and lists buckets.
    fn service(account: Arc<Account>) -> Result<Self> {
        Ok(Self {
            home: Home::new(
                super::bucket::Bucket::Service,
                account.addressing(),
                account.region(),
            )?,
            account,
            bucket: String::new(),
            session: None,
            sums: Sums::default(),
        })
    }

    fn service_url(&self) -> String {
        let address = &self.home.place().address;
        format!("{}{}", address.endpoint, address.base)
    }

    async fn bucket_page(&self, token: Option<&str>) -> Result<Page> {
        let mut retry = Retry::new(self.account.client());
        loop {
            match self.bucket_page_once(token).await {
                Ok(page) => {
                    retry.succeeded();
                    return Ok(page);
                }
                Err(failure) => {
                    let next = retry.after(failure).await;
                    next.map_err(|failure| {
                        failure.into_error("list the buckets at", self.service_url())
                    })?;
                }
            }
        }
    }

    async fn bucket_page_once(&self, token: Option<&str>) -> Result<Page, Failure> {
        let query = token.map_or_else(String::new, |token| {
            format!("continuation-token={}", encode_value(token.as_bytes()))
        });
        let ask = Ask::new(Method::GET, "/".to_owned(), query, With::Account);
        let asked = self.exchange(&ask, &HeaderMap::new(), None).await;
        let answer = asked.map_err(|failure| self.about_buckets(failure))?;
        if answer.head.status != 200 {
            let failure = super::Origin::refused(self, &Method::GET, answer).await;
            return Err(self.about_buckets(failure));
        }
        let (told, way) = (refusal::Told::of(&answer.head), answer.way());
        let text = answer.body.collect(MAX_LISTING).await?;
        self.check_text(told, &text, &Method::GET)
            .map_err(|failure| self.about_buckets(failure))
            .and_then(|()| read_page(&text))
            .map_err(|failure| failure.on(&way))
    }

    /// A refusal speaks of a bucket or an object; here there is none.
    fn about_buckets(&self, mut failure: Failure) -> Failure {
        const NAME_ONE: &str = "name the bucket that you want: s3://bucket/";
        match failure.cause {
            "wrong_region" | "redirect" if self.account.signer().is_none() => {
                // AWS sends whoever does not sign to a web page.
                failure.kind = ErrorKind::Denied;
                failure.why =
                    "an account has a list of buckets, and the request names none".to_owned();
                failure.with_help(format!(
                    "leave out `no_sign_request` and give credentials, or {NAME_ONE}"
                ))
            }
            "wrong_region" => {
                let region = self.account.region();
                failure.why = format!("the endpoint is not in the region {region}");
                failure
            }
            "denied" if self.account.signer().is_none() => failure.with_help(format!(
                "leave out `no_sign_request` and give credentials, or {NAME_ONE}"
            )),
            "denied" => failure.with_help(format!("grant s3:ListAllMyBuckets, or {NAME_ONE}")),
            "not_found" | "refused" => {
                failure.why = format!("the endpoint lists no buckets: {}", failure.why);
                failure.with_help(format!("check `endpoint_url`, or {NAME_ONE}"))
            }
            _ => failure,
        }
    }
}

fn read_page(text: &[u8]) -> Result<Page, Failure> {
    let bad = |why: String| {
        Failure::corrupt(format!("the list of buckets is not what S3 sends: {why}"))
            .with_help("does the endpoint speak S3?")
    };
    let leaves = list::leaves(text).map_err(bad)?;
    let root = leaves.last().and_then(|(path, _)| path.first());
    if root.is_none_or(|root| root != "ListAllMyBucketsResult") {
        return Err(bad("it has another root".to_owned()));
    }
    let mut page = Page::default();
    let mut open = (None, None, None);
    for (path, text) in leaves {
        let names: Vec<&str> = path.iter().skip(1).map(String::as_str).collect();
        match names.as_slice() {
            ["ContinuationToken"] if !text.is_empty() => page.next = Some(text),
            ["Buckets", "Bucket", "Name"] if !text.is_empty() => open.0 = Some(text),
            ["Buckets", "Bucket", "CreationDate"] => open.1 = dates::from_iso(text.trim()),
            ["Buckets", "Bucket", "BucketRegion"] if !text.is_empty() => open.2 = Some(text),
            ["Buckets", "Bucket"] => {
                let (name, created_unix, region) = std::mem::take(&mut open);
                page.buckets.push(Bucket {
                    name: name.ok_or_else(|| bad("a bucket without a name".to_owned()))?,
                    created_unix,
                    region,
                });
            }
            _ => {}
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_read_with_what_the_store_tells_of_them() {
        let text = "<?xml version=\"1.0\"?><ListAllMyBucketsResult xmlns=\"x\"><Owner><ID>o</ID></Owner><Buckets>
            <Bucket><Name>a.b</Name><CreationDate>1994-11-06T08:49:37.000Z</CreationDate>
            <BucketRegion>eu-west-3</BucketRegion></Bucket><Bucket><Name>c</Name></Bucket></Buckets>
            <ContinuationToken>x+/=</ContinuationToken></ListAllMyBucketsResult>";
        let page = read_page(text.as_bytes()).unwrap();
        let bucket = |name: &str, created_unix, region: Option<&str>| Bucket {
            name: name.to_owned(),
            created_unix,
            region: region.map(str::to_owned),
        };
        assert_eq!(
            page.buckets,
            [
                bucket("a.b", Some(784_111_777), Some("eu-west-3")),
                bucket("c", None, None)
            ]
        );
        assert_eq!(page.next.as_deref(), Some("x+/="));
        let none =
            read_page(b"<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>").unwrap();
        assert!(none.buckets.is_empty() && none.next.is_none());
    }

    #[test]
    fn what_is_no_list_of_buckets_is_an_error() {
        for text in [
            "",
            "<html>hi</html>",
            "<ListBucketResult></ListBucketResult>",
            "<ListAllMyBucketsResult>",
            "<ListAllMyBucketsResult><Buckets><Bucket><Name/></Bucket></Buckets></ListAllMyBucketsResult>",
        ] {
            assert_eq!(
                read_page(text.as_bytes()).unwrap_err().cause,
                "bad_answer",
                "{text}"
            );
        }
    }
}
