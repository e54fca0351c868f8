//! ListObjectsV2: the question and the answer.

use super::super::http1::Failure;
pub(super) use super::super::xml::leaves;
use super::super::{ETag, Key, ListPage, ListRequest, Object, dates};
use super::address::encode_value;

/// The query of a listing. Keys come back encoded, so that XML cannot spoil them.
pub(in crate::store) fn query(request: &ListRequest) -> String {
    let mut query = String::new();
    if let Some(page) = &request.page {
        query.push_str("continuation-token=");
        query.push_str(&encode_value(page.as_bytes()));
        query.push('&');
    }
    if request.is_folded {
        query.push_str("delimiter=%2F&");
    }
    query.push_str("encoding-type=url&list-type=2");
    if !request.prefix.as_bytes().is_empty() {
        query.push_str("&prefix=");
        query.push_str(&encode_value(request.prefix.as_bytes()));
    }
    query
}

/// Whether the answer is an error under a status that says otherwise.
pub(in crate::store) fn is_error(text: &[u8]) -> bool {
    let leaves = leaves(text.trim_ascii_start()).unwrap_or_default();
    leaves
        .last()
        .and_then(|(path, _)| path.first())
        .is_some_and(|root| root == "Error")
}

/// Reads one page. `url` says how an object is called.
pub(in crate::store) fn read_page(
    text: &[u8],
    request: &ListRequest,
    url: impl Fn(&Key) -> String,
) -> Result<ListPage, Failure> {
    let bad = |why: String| {
        Failure::corrupt(format!("the answer is no listing of a bucket: {why}"))
            .with_help("does the endpoint speak the protocol of this store (`endpoint_url`)?")
    };
    let leaves = leaves(text).map_err(bad)?;
    let root = leaves.last().and_then(|(path, _)| path.first());
    if root.is_none_or(|root| root != "ListBucketResult") {
        return Err(bad("it has another root".to_owned()));
    }
    let is_encoded = leaves
        .iter()
        .any(|(path, text)| path[1..] == ["EncodingType"] && text.eq_ignore_ascii_case("url"));
    let key = |text: &str| {
        if is_encoded {
            decode(text)
        } else {
            Key::new(text.as_bytes())
        }
    };
    let mut page = ListPage::default();
    let mut is_truncated = false;
    let mut object = Pending::default();
    for (path, text) in &leaves {
        let names: Vec<&str> = path[1..].iter().map(String::as_str).collect();
        match names.as_slice() {
            ["IsTruncated"] => is_truncated = text.trim() == "true",
            ["NextContinuationToken"] => page.next = Some(text.clone()),
            ["CommonPrefixes", "Prefix"] => page.prefixes.push(key(text)),
            ["Contents", "Key"] => object.key = Some(key(text)),
            ["Contents", "Size"] => {
                let size = text
                    .trim()
                    .parse()
                    .map_err(|_error| bad(format!("the size {text:?}")))?;
                object.len_bytes = Some(size);
            }
            ["Contents", "ETag"] if !text.is_empty() => {
                object.etag = Some(ETag(text.as_str().into()))
            }
            ["Contents", "LastModified"] => object.modified_unix = dates::from_iso(text.trim()),
            ["Contents"] => {
                let done = std::mem::take(&mut object);
                page.objects.push(
                    done.finish(&url)
                        .ok_or_else(|| bad("an object without a key".into()))?,
                );
            }
            _ => {}
        }
    }
    check_next(&mut page, is_truncated, request).map_err(bad)?;
    Ok(page)
}

/// Where the listing goes on: nowhere at its end, and never where it came from.
fn check_next(page: &mut ListPage, is_truncated: bool, asked: &ListRequest) -> Result<(), String> {
    if !is_truncated {
        page.next = None;
    } else if page.next.as_deref().is_none_or(str::is_empty) {
        return Err("it goes on, but does not say where".to_owned());
    } else if page.next == asked.page {
        return Err("its next page is this page again".to_owned());
    }
    Ok(())
}

#[derive(Default)]
struct Pending {
    key: Option<Key>,
    len_bytes: Option<u64>,
    etag: Option<ETag>,
    modified_unix: Option<i64>,
}

impl Pending {
    fn finish(self, url: impl Fn(&Key) -> String) -> Option<Object> {
        let key = self.key?;
        Some(Object {
            url: url(&key).into(),
            key,
            version: None,
            len_bytes: self.len_bytes,
            etag: self.etag,
            modified_unix: self.modified_unix,
        })
    }
}

/// `encoding-type=url`: percent-encoded, and a blank may be a plus.
fn decode(text: &str) -> Key {
    let text = text.replace('+', " ");
    Key::new(percent_encoding::percent_decode_str(&text).collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str, token: Option<&str>) -> Result<ListPage, Failure> {
        let request = ListRequest {
            prefix: Key::new(*b""),
            is_folded: false,
            page: token.map(str::to_owned),
        };
        read_page(text.as_bytes(), &request, |key| format!("s3://b/{key}"))
    }

    #[test]
    fn keys_come_back_byte_for_byte() {
        let text = "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\"><EncodingType>url</EncodingType>
            <Contents><Key>%20a+b%2Bc%0A%2F%2F%C3%BC%2520</Key><Size>7</Size><ETag>&quot;ab-2&quot;</ETag>
            <LastModified>1994-11-06T08:49:37.000Z</LastModified></Contents>
            <CommonPrefixes><Prefix>p%2F</Prefix></CommonPrefixes></ListBucketResult>";
        let page = page(text, None).unwrap();
        let object = &page.objects[0];
        assert_eq!(object.key.as_bytes(), " a b+c\n//ü%20".as_bytes());
        assert_eq!(object.etag, Some(ETag("\"ab-2\"".into())));
        assert_eq!(
            (object.len_bytes, object.modified_unix),
            (Some(7), Some(784_111_777))
        );
        assert_eq!(page.prefixes[0].as_bytes(), b"p/");
    }

    #[test]
    fn without_the_encoding_text_is_taken_as_it_stands() {
        let text =
            "<ListBucketResult><Contents><Key> a&amp;b+&#x41;%20 </Key><Size>0</Size></Contents>
            </ListBucketResult>";
        assert_eq!(
            page(text, None).unwrap().objects[0].key.as_bytes(),
            b" a&b+A%20 "
        );
    }

    #[test]
    fn pages_follow_each_other_and_never_in_a_circle() {
        let truncated = |token: &str| {
            format!("<ListBucketResult><IsTruncated>true</IsTruncated>{token}</ListBucketResult>")
        };
        let token = "<NextContinuationToken>a+/=</NextContinuationToken>";
        let first = page(&truncated(token), None).unwrap();
        assert!(first.objects.is_empty());
        assert_eq!(first.next.as_deref(), Some("a+/="));
        assert_eq!(
            page(&truncated(token), Some("a+/=")).unwrap_err().cause,
            "bad_answer"
        );
        assert_eq!(page(&truncated(""), None).unwrap_err().cause, "bad_answer");
        let last =
            format!("<ListBucketResult><IsTruncated>false</IsTruncated>{token}</ListBucketResult>");
        assert_eq!(page(&last, None).unwrap().next, None);
    }

    #[test]
    fn the_token_is_encoded_in_the_question() {
        let request = ListRequest {
            prefix: Key::new(*b"a b/"),
            is_folded: true,
            page: Some("x+/=".to_owned()),
        };
        assert_eq!(
            query(&request),
            "continuation-token=x%2B%2F%3D&delimiter=%2F&encoding-type=url&list-type=2&prefix=a%20b%2F"
        );
    }

    #[test]
    fn what_is_no_listing_is_an_error() {
        let bomb = "<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult><Contents><Key>&a;</Key></Contents></ListBucketResult>";
        for text in [
            "",
            "<html><body>hi</body></html>",
            "<ListBucketResult>",
            "{}",
            bomb,
            "<ListBucketResult><Contents></Contents></ListBucketResult>",
            "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        ] {
            assert_eq!(page(text, None).unwrap_err().cause, "bad_answer", "{text}");
        }
    }

    #[test]
    fn no_damage_makes_it_panic() {
        let text =
            "<?xml version=\"1.0\"?><ListBucketResult a=\"b\"><IsTruncated>true</IsTruncated>
            <Contents><Key>a&amp;b</Key><Size>1</Size><Owner/></Contents><!-- x --><![CDATA[y]]>
            </ListBucketResult>";
        let request = ListRequest {
            prefix: Key::new(*b""),
            is_folded: false,
            page: None,
        };
        for at in 0..text.len() {
            for byte in [0, b'<', b'>', b'/', b'&', b';', b' ', 0xff] {
                let mut damaged = text.as_bytes().to_owned();
                damaged[at] = byte;
                let _page = read_page(&damaged, &request, |_| String::new());
                let _page = read_page(&damaged[..at], &request, |_| String::new());
                let _is_error = is_error(&damaged);
            }
        }
    }
}
