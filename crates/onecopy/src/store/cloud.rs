//! What the stores of Google and Microsoft have in common beside `origin`.

use http::{HeaderMap, HeaderValue, Method, header};

use super::credentials::{Held, Keep, Kept};
use super::http1::{Answer, Client, Endpoint, Failure, Head, Request};
use super::origin;
use super::retry::Retry;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::sync::Arc;

/// Listings and error texts longer than this are refused: 5000 names of 1024 characters, each of which takes up to nine
/// bytes, are some 45 MiB.
pub(super) const MAX_LISTING: usize = 64 << 20;

/// What is asked of a bucket or container.
pub(super) struct Ask<'a> {
    pub(super) method: &'a Method,
    /// Behind the bucket: empty, or the encoded name with a slash in front.
    pub(super) path: String,
    pub(super) query: String,
    pub(super) conditions: HeaderMap,
}

/// A request, and the credential that is in it.
pub(super) type Signed<C> = (Request, Option<Arc<Held<C>>>);

/// The headers of every request.
pub(super) fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    let agent = HeaderValue::from_static(super::USER_AGENT);
    headers.insert(header::USER_AGENT, agent);
    headers
}

/// A header's value that no debug output shows.
pub(super) fn secret(text: &str) -> Result<HeaderValue, Failure> {
    let mut value = HeaderValue::from_str(text).map_err(|_shows_it| {
        let why = "the credential has characters in it that no header can have";
        Failure::new(ErrorKind::InvalidInput, "sign", why)
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Refuses to send what anybody who sees it could use to an endpoint that is spoken to in the clear.
pub(super) fn check_privacy(to: &Endpoint, what: &'static str) -> Result<(), Failure> {
    let is_address = |address: std::net::IpAddr| address.is_loopback();
    let is_loopback = to.host == "localhost" || to.host.parse().is_ok_and(is_address);
    if to.is_tls || is_loopback {
        return Ok(());
    }
    let why = format!("{what} would go over the network in the clear");
    Err(Failure::new(ErrorKind::InvalidInput, "in_the_clear", why).with_help(
        "use an https:// endpoint; a stand-in that checks nothing is read with `no_sign_request`",
    ))
}

/// Whether the answer with this head calls itself a success and is none. Objects have an ETag; error texts and pages of
/// proxies have none. A login page that is a file may have one: then it is told by its passing over a range and its saying
/// nothing in headers of the store's own.
pub(super) fn is_disguised(head: &Head, is_range_ignored: bool) -> bool {
    let kind = head.header("content-type").unwrap_or_default();
    let is_page = kind.contains("html");
    if origin::etag(head).is_none() {
        return is_page || kind.contains("xml");
    }
    let is_own = |name: &http::HeaderName| {
        let name = name.as_str();
        name.starts_with("x-goog") || name.starts_with("x-ms-") || name == "accept-ranges"
    };
    is_page && is_range_ignored && !head.headers.keys().any(is_own)
}

/// Asks, and once more with another credential where the first one was refused. An answer that is no such refusal is returned
/// with its body unread.
pub(super) async fn exchange<C: Kept, R, U>(
    client: &Client,
    keep: Option<&Keep<C>>,
    ledger: Option<&Ledger>,
    request: impl Fn() -> R,
    understood: impl Fn(Answer) -> U,
) -> Result<Answer, Failure>
where
    R: Future<Output = Result<Signed<C>, Failure>>,
    U: Future<Output = Failure>,
{
    let mut is_again = false;
    loop {
        let (request, held) = request().await?;
        let answer = client.send(&request).await?;
        if answer.head.status != 401 {
            return Ok(answer);
        }
        let failure = understood(answer).await;
        let (Some(held), Some(keep), false) = (held, keep, is_again) else {
            return Err(failure);
        };
        keep.refuse(&held);
        if let Some(ledger) = ledger {
            ledger.retried(failure.cause);
        }
        is_again = true;
    }
}

/// The answer of a store to `ask`, which is asked again as far as its failures allow.
pub(super) async fn persistently<T, F>(client: &Client, ask: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut retry = Retry::new(client);
    loop {
        match ask().await {
            Ok(answer) => {
                retry.succeeded();
                return Ok(answer);
            }
            Err(failure) => retry.after(failure).await?,
        }
    }
}

/// Text that servers send goes into messages only where it looks like a code.
pub(super) fn code(text: &str) -> &str {
    let is_code = text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_code { text } else { "" }
}

/// An endpoint and the path that everything lies below, without a slash at its end.
pub(super) fn read_endpoint(url: &str) -> Result<(Endpoint, String)> {
    let (endpoint, rest) = Endpoint::split(url)?;
    let base = rest.split(['?', '#']).next().unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    if !base.bytes().all(is_plain) {
        let why = "its path has odd characters in it";
        let target = endpoint.to_string();
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "use the endpoint",
            target,
            why,
        ));
    }
    Ok((endpoint, base.trim_end_matches('/').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_in_the_clear_to_this_machine_only() {
        for (url, is_fine) in [
            ("https://h", true),
            ("http://127.0.0.1:1", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("http://h", false),
            ("http://localhost.evil.example", false),
        ] {
            let endpoint = Endpoint::split(url).unwrap().0;
            let checked = check_privacy(&endpoint, "the token");
            assert_eq!(checked.is_ok(), is_fine, "{url}");
        }
    }

    #[test]
    fn pages_are_told_from_objects() {
        for (lines, is_range_ignored, is_page) in [
            ("content-type: text/html", false, true),
            ("content-type: application/xml", false, true),
            ("content-type: text/html\netag: \"a\"", false, false),
            ("content-type: text/html\netag: \"a\"", true, true),
            (
                "content-type: text/html\netag: \"a\"\nx-ms-version: 1",
                true,
                false,
            ),
            ("content-type: text/plain", true, false),
        ] {
            let text = format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n", lines.replace('\n', "\r\n"));
            let head = Head::parse(text.as_bytes()).unwrap().unwrap().0;
            assert_eq!(is_disguised(&head, is_range_ignored), is_page, "{lines}");
        }
    }

    #[test]
    fn what_is_no_code_is_not_repeated() {
        for (text, shown) in [("SlowDown", "SlowDown"), ("a b", ""), ("", "")] {
            assert_eq!(code(text), shown);
        }
        assert_eq!(code(&"x".repeat(65)), "");
    }

    #[test]
    fn endpoints_keep_their_path() {
        let base = |url| read_endpoint(url).map(|(_, base)| base);
        assert_eq!(
            base("http://h:1/devstoreaccount1/").unwrap(),
            "/devstoreaccount1"
        );
        assert_eq!(base("http://h?a=b").unwrap(), "");
        assert_eq!(
            base("http://h/a b").unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
    }
}
