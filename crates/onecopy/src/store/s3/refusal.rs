//! What S3 means when it says no.

use std::time::Duration;

use super::super::dates;
use super::super::http1::{Endpoint, Failure, Head, retry_after};
use super::aws::Host;
use super::list;
use super::meaning::{by_code, by_status};
use super::page;

/// Where the refusal came up.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) bucket: &'a str,
    pub(super) region: &'a str,
    /// Who was asked.
    pub(super) endpoint: String,
    pub(super) is_head: bool,
    pub(super) is_anonymous: bool,
    /// Whether a key of the customer's went along.
    pub(super) has_customer_key: bool,
}

/// What the head of the answer told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) status: u16,
    pub(super) region: Option<String>,
    /// Where the store points to: scheme, host and port, and nothing that could be a secret.
    pub(super) elsewhere: Option<Endpoint>,
    /// The store's time, in seconds since the epoch.
    pub(super) date: Option<i64>,
    pub(super) is_delete_marker: bool,
    /// Whether the answer calls itself a web page.
    pub(super) is_html: bool,
    /// Whether its words are about encryption with a key of the customer's.
    pub(super) is_about_keys: bool,
    pub(super) retry_after: Option<Duration>,
}

impl Told {
    pub(super) fn of(head: &Head) -> Self {
        Self {
            status: head.status,
            region: head.header("x-amz-bucket-region").map(str::to_owned),
            elsewhere: head.header("location").and_then(endpoint),
            date: head.header("date").and_then(dates::from_http),
            is_delete_marker: head.header("x-amz-delete-marker") == Some("true"),
            is_html: head
                .header("content-type")
                .is_some_and(|kind| kind.contains("html")),
            is_about_keys: false,
            retry_after: retry_after(head),
        }
    }
}

/// The endpoint of a URL, or of a host alone.
fn endpoint(text: &str) -> Option<Endpoint> {
    let url = if text.contains("://") {
        text.to_owned()
    } else {
        format!("https://{text}")
    };
    Endpoint::split(&url).ok().map(|(endpoint, _)| endpoint)
}

/// Whether a message speaks of SSE-C, as S3 and others do in so many words.
fn is_about_keys(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    // Keys that the store itself keeps are another matter.
    !message.contains("kms")
        && ["encrypt", "sse-c", "customer provided", "customer-provided"]
            .iter()
            .any(|word| message.contains(word))
}

/// A refusal, understood.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) failure: Failure,
    pub(super) cure: Option<Cure>,
}

/// What another signature would have to take into account.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cure {
    /// The bucket is in this region.
    Region(String),
    /// The credential is past its time: another one may do.
    Credential,
    /// This is the store's time, in seconds since the epoch.
    Time(i64),
}

/// Whether an answer with this status may be cured by asking anew.
pub(super) fn is_curable(status: u16) -> bool {
    matches!(status, 301 | 302 | 307 | 308 | 400 | 401 | 403)
}

/// A region is signed for and shown: plain text only. Stores of all makes name theirs, so no more is asked.
fn is_region(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(is_plain)
}

/// Reads the answer. The code decides; the status where there is none, as with HEAD and with proxies.
pub(super) fn read(mut told: Told, text: &[u8], scene: &Scene<'_>) -> Refusal {
    let mut code = String::new();
    let mut elsewhere = None;
    for (path, text) in list::leaves(text.trim_ascii_start()).unwrap_or_default() {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match names.as_slice() {
            ["Error", "Code"] => code = text,
            ["Error", "Message"] => told.is_about_keys = is_about_keys(&text),
            ["Error", "Region"] if !text.is_empty() => told.region = Some(text),
            ["Error", "Endpoint"] => elsewhere = endpoint(&text),
            ["Error", "ServerTime"] => told.date = dates::from_iso(&text).or(told.date),
            _ => {}
        }
    }
    told.elsewhere = elsewhere.or(told.elsewhere);
    told.region = told.region.filter(|region| is_region(region));
    if told.region.is_none() {
        let host = told.elsewhere.as_ref().map(|at| at.host.as_str());
        told.region = host.and_then(Host::read).map(|host| host.region.to_owned());
    }
    // The code goes into a message: a well-formed one only.
    if code.len() > 64 || !code.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        code.clear();
    }
    let is_page = code.is_empty() && (told.is_html || page::is_page(text));
    let mut failure = by_code(&code, &told, scene)
        .or_else(|| page::wants_tls(text, scene).filter(|_| code.is_empty()))
        .unwrap_or_else(|| by_status(&code, &told, scene, is_page));
    failure.retry_after = told.retry_after;
    let cure = match failure.cause {
        "wrong_region" => told.region.map(Cure::Region),
        "expired_token" => Some(Cure::Credential),
        // Some stores only say that a signature of another hour does not match.
        "clock" | "signature" => told.date.map(Cure::Time),
        _ => None,
    };
    Refusal { failure, cure }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn refusal(status: u16, code: &str, scene: &Scene<'_>) -> Refusal {
        let text = format!(
            " \n<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>m</Message><Region>eu-west-3</Region></Error>"
        );
        read(
            Told {
                status,
                ..Told::default()
            },
            text.as_bytes(),
            scene,
        )
    }

    const SCENE: Scene<'_> = Scene {
        bucket: "b",
        region: "us-east-1",
        is_head: false,
        is_anonymous: false,
        has_customer_key: false,
        endpoint: String::new(),
    };

    #[test]
    fn every_code_has_its_own_kind_and_cause() {
        let cases = "404 NoSuchKey not_found no_such_key final
            404 NoSuchBucket not_found no_such_bucket final
            403 AccessDenied denied denied final
            403 SignatureDoesNotMatch denied signature final
            403 InvalidAccessKeyId denied unknown_key final
            403 RequestTimeTooSkewed denied clock again
            400 ExpiredToken denied expired_token final
            404 NoSuchVersion not_found no_such_version final
            301 PermanentRedirect invalid_input wrong_region final
            400 AuthorizationHeaderMalformed invalid_input wrong_region final
            503 SlowDown throttled throttled again
            500 InternalError unreachable server_error again
            400 RequestTimeout unreachable server_timeout again
            403 InvalidObjectState unsupported archived final
            412 PreconditionFailed changed changed final
            418 Teapot unsupported refused final";
        for case in cases.lines() {
            let words: Vec<&str> = case.split_whitespace().collect();
            let failure = refusal(words[0].parse().unwrap(), words[1], &SCENE).failure;
            let again = if failure.is_worth_retrying {
                "again"
            } else {
                "final"
            };
            assert_eq!(
                [failure.kind.name(), failure.cause, again],
                words[2..],
                "{case}"
            );
        }
    }

    #[test]
    fn the_right_region_is_named() {
        for (status, code) in [
            (301, "PermanentRedirect"),
            (400, "AuthorizationHeaderMalformed"),
        ] {
            let help = refusal(status, code, &SCENE).failure.help.unwrap();
            assert!(help.contains("`region=eu-west-3`"), "{help}");
        }
        let told = Told {
            status: 400,
            region: Some("eu-west-3".into()),
            ..Told::default()
        };
        let failure = read(
            told,
            b"",
            &Scene {
                is_head: true,
                ..SCENE
            },
        )
        .failure;
        assert!(failure.help.unwrap().contains("eu-west-3"));
    }

    #[test]
    fn cures_are_what_the_answer_tells() {
        let head = |lines: &str| {
            let text = format!("HTTP/1.1 {}\r\n\r\n", lines.replace('\n', "\r\n"));
            Told::of(&Head::parse(text.as_bytes()).unwrap().unwrap().0)
        };
        let region = |name: &str| Some(Cure::Region(name.to_owned()));
        let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT";
        for (lines, text, wanted) in [
            (
                "301 M\nx-amz-bucket-region: eu-west-3",
                "",
                region("eu-west-3"),
            ),
            (
                "307 T\nLocation: https://bkt.s3-us-west-2.amazonaws.com/k?secret=1",
                "",
                region("us-west-2"),
            ),
            (
                "301 M",
                "<Error><Code>PermanentRedirect</Code><Endpoint>b.s3.eu-west-1.amazonaws.com</Endpoint></Error>",
                region("eu-west-1"),
            ),
            (
                "400 B",
                "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-3</Region></Error>",
                region("eu-west-3"),
            ),
            (
                "400 B\nx-amz-bucket-region: eu-west-3",
                "",
                region("eu-west-3"),
            ),
            ("400 B\nx-amz-bucket-region: us-east-1", "", None),
            ("307 T\nLocation: https://evil.example/k", "", None),
            (
                "400 B",
                "<Error><Code>ExpiredToken</Code></Error>",
                Some(Cure::Credential),
            ),
            (
                &format!("403 F\n{date}"),
                "<Error><Code>RequestTimeTooSkewed</Code></Error>",
                Some(Cure::Time(784_111_777)),
            ),
            (
                &format!("403 F\n{date}"),
                "<Error><Code>RequestExpired</Code><ServerTime>1994-11-06T08:49:38Z</ServerTime></Error>",
                Some(Cure::Time(784_111_778)),
            ),
            (
                &format!("403 F\n{date}"),
                "<Error><Code>AccessDenied</Code></Error>",
                None,
            ),
        ] {
            let refusal = read(head(lines), text.as_bytes(), &SCENE);
            assert_eq!(refusal.cure, wanted, "{lines} {text}");
        }
    }

    #[test]
    fn a_redirect_elsewhere_is_named_without_its_query() {
        let told = Told {
            status: 307,
            elsewhere: endpoint("https://evil.example:8443/k?X-Amz-Signature=abc"),
            ..Told::default()
        };
        let why = read(told, b"", &SCENE).failure.why;
        assert!(
            why.contains("https://evil.example:8443") && !why.contains("abc"),
            "{why}"
        );
    }

    #[test]
    fn a_delete_marker_is_said_to_be_one() {
        for (status, code) in [
            (404, "NoSuchKey"),
            (405, "MethodNotAllowed"),
            (404, ""),
            (405, ""),
        ] {
            let told = Told {
                status,
                is_delete_marker: true,
                ..Told::default()
            };
            let text = format!("<Error><Code>{code}</Code></Error>");
            let failure = read(told, text.as_bytes(), &SCENE).failure;
            assert_eq!(
                (failure.cause, failure.kind),
                ("deleted", ErrorKind::NotFound)
            );
        }
    }

    #[test]
    fn no_damage_makes_it_panic() {
        let text = "<Error><Code>RequestExpired</Code><Region>r</Region><Endpoint>b.s3.r.amazonaws.com</Endpoint>\
                    <ServerTime>1994-11-06T08:49:38Z</ServerTime></Error>";
        for at in 0..text.len() {
            for byte in [0, b'<', b'/', b'&', b'@', b':', b'-', 0xff] {
                let mut damaged = text.as_bytes().to_owned();
                damaged[at] = byte;
                for status in [301, 400, 403] {
                    let told = Told {
                        status,
                        ..Told::default()
                    };
                    let _refusal = read(told, &damaged, &SCENE);
                }
            }
        }
    }
}
