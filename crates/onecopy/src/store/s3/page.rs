//! Answers that S3 never gives: web pages, and what servers say when TLS and plain HTTP meet.

use super::super::http1::{Failure, Head};
use super::super::origin;
use super::refusal::{Scene, Told};
use crate::error::ErrorKind;

/// Whether the answer with this head calls itself a success and is none. Objects of S3 have an ETag; error texts and pages
/// of proxies have none. A page may still have one where a login page is a file: then it is told by what S3 never does,
/// which is to pass over a range and to say nothing in headers of its own.
pub(super) fn is_disguised(head: &Head, is_range_ignored: bool) -> bool {
    let kind = head.header("content-type").unwrap_or_default();
    let is_page = kind.contains("html");
    if origin::etag(head).is_none() {
        return is_page || kind.contains("xml");
    }
    let is_own = |name: &http::HeaderName| {
        let name = name.as_str();
        name.starts_with("x-amz") || name.starts_with("x-goog") || name == "accept-ranges"
    };
    is_page && is_range_ignored && !head.headers.keys().any(is_own)
}

/// Whether the text is a web page. What it is called proves nothing: some stores call all they say HTML.
pub(super) fn is_page(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let begins = |with: &str| {
        let start = text.get(..with.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
    };
    begins("<!doctype html") || begins("<html")
}

/// What a web page in place of an answer means.
pub(super) fn failure(told: &Told, scene: &Scene<'_>) -> Failure {
    let (status, endpoint) = (told.status, &scene.endpoint);
    let why = format!("HTML came from {endpoint} instead of an S3 answer (status {status})");
    Failure::corrupt(why).with_help(help(scene))
}

/// What to do where `endpoint` sends web pages.
pub(super) fn help(scene: &Scene<'_>) -> String {
    let endpoint = &scene.endpoint;
    format!(
        "is {endpoint} S3 at all? Check `endpoint_url`, and whether a proxy or a login page answers in its place"
    )
}

/// What it means where plain HTTP was spoken to a port that wants TLS: nginx, Go's servers and Apache say so.
pub(super) fn wants_tls(text: &[u8], scene: &Scene<'_>) -> Option<Failure> {
    let said = String::from_utf8_lossy(text);
    let is_said = [
        "plain HTTP request was sent to HTTPS port",
        "HTTP request to an HTTPS server",
        "plain HTTP to an SSL-enabled server port",
    ]
    .iter()
    .any(|words| said.contains(words));
    let endpoint = scene.endpoint.strip_prefix("http://").filter(|_| is_said)?;
    let why = format!("http://{endpoint} speaks TLS, and plain HTTP was spoken to it");
    Some(
        Failure::new(ErrorKind::Unreachable, "wants_tls", why)
            .final_now()
            .with_help(format!("say `endpoint_url=https://{endpoint}`")),
    )
}
