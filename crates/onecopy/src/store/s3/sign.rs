//! AWS's signature, version 4, over the very bytes that go over the wire.
//!
//! The key chain and its hashes are reqsign's. The canonical request is made here, because reqsign decodes each path
//! as UTF-8 (keys are bytes), signs whatever header is there (proxies alter some), and takes the time of this machine
//! as it is (a wrong clock can be learned from the store).

use aws_lc_rs::{digest, hmac};
use http::header::{AUTHORIZATION, HeaderName};
use http::{HeaderValue, Method};
use reqsign_aws_v4::{Credential, EMPTY_STRING_SHA256};
use reqsign_core::hash::hmac_sha256;
use reqsign_core::time::Timestamp;

use super::super::http1::{Failure, Request};
use crate::error::ErrorKind;

const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const CONTENT_HASH: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// Canonical requests are some 400 bytes long.
const USUAL_CANONICAL: usize = 512;

/// What a signature is good for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    /// The header that carries a session token.
    pub(super) token_header: &'static str,
}

/// The header of tokens from STS, IMDS and the like.
pub(super) const SECURITY_TOKEN: &str = "x-amz-security-token";

/// The header of tokens of an S3 Express session.
pub(super) const SESSION_TOKEN: &str = "x-amz-s3session-token";

/// A key derived for one day, region and service: four hashes that most requests have in common; and the second of the last
/// request in words, which small objects have in common, too.
#[derive(Clone)]
pub(super) struct DayKey {
    access_key_id: String,
    secret_access_key: String,
    region: String,
    service: String,
    date: String,
    /// `date/region/service/aws4_request`
    scope: String,
    key: hmac::Key,
    now: Timestamp,
    time: String,
}

impl DayKey {
    fn derive(credential: &Credential, scope: Scope<'_>, now: Timestamp) -> Self {
        let date = now.format_date();
        let secret = format!("AWS4{}", credential.secret_access_key);
        let mut key = hmac_sha256(secret.as_bytes(), date.as_bytes());
        for part in [scope.region, scope.service, "aws4_request"] {
            key = hmac_sha256(&key, part.as_bytes());
        }
        Self {
            access_key_id: credential.access_key_id.clone(),
            secret_access_key: credential.secret_access_key.clone(),
            region: scope.region.to_owned(),
            service: scope.service.to_owned(),
            scope: format!("{date}/{}/{}/aws4_request", scope.region, scope.service),
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            date,
            now,
            time: now.format_iso8601(),
        }
    }

    /// Whether it is the key for this, whatever the time of the day, which is noted.
    fn fits(&mut self, credential: &Credential, scope: Scope<'_>, now: Timestamp) -> bool {
        if self.now != now {
            if self.date != now.format_date() {
                return false;
            }
            (self.now, self.time) = (now, now.format_iso8601());
        }
        self.region == scope.region
            && self.service == scope.service
            && self.access_key_id == credential.access_key_id
            && self.secret_access_key == credential.secret_access_key
    }
}

/// Adds date, payload hash, token and signature to the headers of `request`. `kept` is the key used last, to be used
/// again where it fits.
///
/// Host, content headers and everything that begins with `x-amz-` are signed.
pub(super) fn sign(
    request: &mut Request,
    credential: &Credential,
    scope: Scope<'_>,
    now: Timestamp,
    kept: &mut Option<DayKey>,
) -> Result<(), Failure> {
    if !kept
        .as_mut()
        .is_some_and(|key| key.fits(credential, scope, now))
    {
        *kept = None;
    }
    let key = kept.get_or_insert_with(|| DayKey::derive(credential, scope, now));
    let headers = &mut request.headers;
    headers.insert(DATE, value(&key.time)?);
    if !headers.contains_key(CONTENT_HASH) {
        let is_empty = matches!(request.method, Method::GET | Method::HEAD | Method::DELETE);
        let hash = if is_empty {
            EMPTY_STRING_SHA256
        } else {
            "UNSIGNED-PAYLOAD"
        };
        headers.insert(CONTENT_HASH, HeaderValue::from_static(hash));
    }
    if let Some(token) = &credential.session_token {
        headers.insert(scope.token_header, secret(token)?);
    }
    let (canonical, names) = canonical(request)?;
    let hash = digest::digest(&digest::SHA256, canonical.as_bytes());
    let parts = [
        "AWS4-HMAC-SHA256",
        &key.time,
        &key.scope,
        &hex(hash.as_ref()),
    ];
    let signature = hmac::sign(&key.key, parts.join("\n").as_bytes());
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={names}, Signature={}",
        credential.access_key_id,
        key.scope,
        hex(signature.as_ref())
    );
    let authorization = secret(&authorization)?;
    request.headers.insert(AUTHORIZATION, authorization);
    Ok(())
}

/// The canonical request, and the names of the headers in it. Path and query are encoded already, as the rule wants
/// it: once, and never normalised.
fn canonical(request: &Request) -> Result<(String, String), Failure> {
    let (path, query) = match request.path_and_query.split_once('?') {
        Some((path, query)) => (path, query),
        None => (request.path_and_query.as_str(), ""),
    };
    let mut text = String::with_capacity(USUAL_CANONICAL);
    for part in [request.method.as_str(), "\n", path, "\n"] {
        text.push_str(part);
    }
    let mut pairs: Vec<(&str, &str)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    pairs.sort_unstable();
    for (number, (name, value)) in pairs.iter().enumerate() {
        let and = if number == 0 { "" } else { "&" };
        for part in [and, name, "=", value] {
            text.push_str(part);
        }
    }
    text.push('\n');
    let authority = request.endpoint.authority();
    let mut lines = vec![("host", authority.as_str())];
    for (name, value) in &request.headers {
        let name = name.as_str();
        if name.starts_with("x-amz-") || name == "content-type" || name == "content-md5" {
            lines.push((name, value.to_str().map_err(|_not_text| cannot(name))?));
        }
    }
    // Values of one name stay in their order.
    lines.sort_by_key(|(name, _)| *name);
    let mut names = String::new();
    for same in lines.chunk_by(|one, other| one.0 == other.0) {
        for (number, (name, value)) in same.iter().enumerate() {
            text.push_str(if number == 0 { name } else { "" });
            text.push(if number == 0 { ':' } else { ',' });
            for (number, word) in value.split_ascii_whitespace().enumerate() {
                text.push_str(if number == 0 { "" } else { " " });
                text.push_str(word);
            }
        }
        text.push('\n');
        names.push_str(if names.is_empty() { "" } else { ";" });
        names.push_str(same[0].0);
    }
    let hash = request.headers.get(CONTENT_HASH);
    let hash = hash.and_then(|value| value.to_str().ok()).unwrap_or("");
    for part in ["\n", &names, "\n", hash] {
        text.push_str(part);
    }
    Ok((text, names))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    let pairs = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)]);
    pairs.collect()
}

fn value(text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(text).map_err(|_shows_nothing| cannot("credentials"))
}

/// A header value that no debug output shows.
pub(super) fn secret(text: &str) -> Result<HeaderValue, Failure> {
    let mut value = value(text)?;
    value.set_sensitive(true);
    Ok(value)
}

fn cannot(what: &str) -> Failure {
    let why = format!("the request cannot be signed: odd characters in {what}");
    Failure::new(ErrorKind::InvalidInput, "sign", why)
}

#[cfg(test)]
mod tests {
    use super::super::super::http1::Endpoint;
    use super::*;
    use http::HeaderMap;
    use reqsign_aws_v4::RequestSigner;
    use reqsign_core::{Context, SignRequest};

    fn request(method: Method, url: &str) -> Request {
        let (endpoint, rest) = Endpoint::split(url).unwrap();
        Request {
            method,
            endpoint,
            path_and_query: rest.to_owned(),
            headers: HeaderMap::new(),
            body: bytes::Bytes::new(),
        }
    }

    fn credential(token: Option<&str>) -> Credential {
        Credential {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: token.map(str::to_owned),
            expires_in: None,
        }
    }

    const SCOPE: Scope<'_> = Scope {
        region: "us-east-1",
        service: "s3",
        token_header: SECURITY_TOKEN,
    };

    fn signature(request: &Request) -> &str {
        let text = request.headers["authorization"].to_str().unwrap();
        text.split_once("Signature=").unwrap().1
    }

    #[test]
    fn signs_as_the_examples_in_the_documentation_of_s3() {
        // "Signature Calculations for the Authorization Header", Amazon S3 API Reference.
        let now: Timestamp = "2013-05-24T00:00:00Z".parse().unwrap();
        let mut kept = None;
        for (query, wanted) in [
            (
                "lifecycle",
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
            (
                "prefix=J&max-keys=2",
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ] {
            let url = format!("https://examplebucket.s3.amazonaws.com/?{query}");
            let mut request = request(Method::GET, &url);
            sign(&mut request, &credential(None), SCOPE, now, &mut kept).unwrap();
            assert_eq!(signature(&request), wanted, "{query}");
        }
    }

    #[tokio::test]
    async fn signs_as_reqsign_does_where_that_can() {
        let credential = credential(Some("to/ken=="));
        for url in [
            "https://b.s3.eu-west-1.amazonaws.com/a//b/../c",
            "http://127.0.0.1:9000/b/a%20b%2Bc%2520~%27%2A%C3%BC?list-type=2&continuation-token=x%2B%2F%3D",
            "https://h/?session",
        ] {
            let mut ours = request(Method::GET, url);
            ours.headers
                .insert("x-amz-request-payer", HeaderValue::from_static("requester"));
            let mut theirs = http::Request::get(url)
                .header("x-amz-request-payer", "requester")
                .header("x-amz-content-sha256", EMPTY_STRING_SHA256)
                .body(())
                .unwrap()
                .into_parts()
                .0;
            let signer = RequestSigner::new("s3", "us-east-1");
            signer
                .sign_request(&Context::new(), &mut theirs, Some(&credential), None)
                .await
                .unwrap();
            let time = theirs.headers["x-amz-date"].to_str().unwrap();
            let iso = format!(
                "{}-{}-{}:{}:{}",
                &time[..4],
                &time[4..6],
                &time[6..11],
                &time[11..13],
                &time[13..]
            );
            let now: Timestamp = iso.parse().unwrap();
            sign(&mut ours, &credential, SCOPE, now, &mut None).unwrap();
            assert_eq!(
                ours.headers["authorization"], theirs.headers["authorization"],
                "{url}"
            );
        }
    }

    #[test]
    fn a_kept_key_is_used_only_for_its_day_region_service_and_access_key() {
        let days = ["2013-05-24T00:00:00Z", "2013-05-25T00:00:00Z"];
        let mut other = credential(None);
        other.access_key_id = "other".to_owned();
        other.secret_access_key = "else".to_owned();
        let mut kept = None;
        for day in days {
            for region in ["us-east-1", "eu-west-1"] {
                for service in ["s3", "s3express"] {
                    for credential in [&credential(None), &other] {
                        let scope = Scope {
                            region,
                            service,
                            ..SCOPE
                        };
                        let now = day.parse().unwrap();
                        let mut warm = request(Method::GET, "https://h/k");
                        let mut cold = warm.clone();
                        sign(&mut warm, credential, scope, now, &mut kept).unwrap();
                        sign(&mut cold, credential, scope, now, &mut None).unwrap();
                        assert_eq!(signature(&warm), signature(&cold));
                    }
                }
            }
        }
    }

    #[test]
    fn secrets_show_in_no_debug_output() {
        let mut request = request(Method::GET, "https://h/k");
        let now = Timestamp::now();
        sign(
            &mut request,
            &credential(Some("hush")),
            SCOPE,
            now,
            &mut None,
        )
        .unwrap();
        let shown = format!("{request:?}");
        assert!(
            !shown.contains("hush") && !shown.contains("Signature="),
            "{shown}"
        );
    }
}
