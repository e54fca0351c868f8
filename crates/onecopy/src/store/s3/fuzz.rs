//! Whatever a server sends in place of a listing or an error: read without a panic, or refused.

use super::super::{Key, ListRequest};
use super::list;
use super::refusal::{self, Scene, Told};
use crate::fuzzing::fuzz;

#[test]
fn fuzz_listings() {
    let seeds: [&[u8]; 4] = [
        b"<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\"><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\
          <NextContinuationToken>a+/=</NextContinuationToken><Contents><Key>%20a+b%2Bc%0A</Key><Size>7</Size>\
          <ETag>&quot;ab-2&quot;</ETag><LastModified>1994-11-06T08:49:37.000Z</LastModified></Contents>\
          <CommonPrefixes><Prefix>p%2F</Prefix></CommonPrefixes></ListBucketResult>",
        b"<Error><Code>SlowDown</Code><Message>Please &lt;reduce&gt;</Message></Error>",
        b"<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>",
        b"<ListBucketResult><Contents><Key><![CDATA[a]]>&#x41;</Key><Size>0</Size></Contents></ListBucketResult>",
    ];
    let words: [&[u8]; 12] = [
        b"<",
        b">",
        b"</",
        b"/>",
        b"<Contents>",
        b"</Contents>",
        b"<Key>",
        b"&#0;",
        b"&#x110000;",
        b"<!DOCTYPE a [<!ENTITY b \"c\">]>",
        b"%",
        b"\xff",
    ];
    fuzz(&seeds, &words, |input| {
        let request = ListRequest {
            prefix: Key::new(*b""),
            is_folded: true,
            page: Some("a+/=".to_owned()),
        };
        if let Ok(page) = list::read_page(input, &request, |key| format!("s3://b/{key}")) {
            assert!(page.next != request.page || page.next.is_none());
        }
        let _is_error = list::is_error(input);
        for (is_head, is_anonymous) in [(false, false), (true, true)] {
            let scene = Scene {
                bucket: "b",
                endpoint: String::new(),
                region: "us-east-1",
                has_customer_key: is_head,
                is_head,
                is_anonymous,
            };
            let failure = refusal::read(Told::default(), input, &scene).failure;
            // What a server sends must not steer the terminal that shows it.
            let shown = failure
                .why
                .chars()
                .chain(failure.help.iter().flat_map(|help| help.chars()));
            assert!(!shown.into_iter().any(char::is_control), "{failure:?}");
        }
    });
}
