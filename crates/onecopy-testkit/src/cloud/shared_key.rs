//! Shared Key authorization, after "Authorize with Shared Key" of Azure's REST reference.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::fault::request::Request;

/// The headers that are signed by their place and not by their name.
const BY_PLACE: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

/// What `Authorization` must be; none where the key is no base64.
pub(crate) fn authorization(request: &Request, account: &str, key: &str) -> Option<String> {
    let key = BASE64_STANDARD.decode(key).ok()?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let signature = hmac::sign(&key, string_to_sign(request, account).as_bytes());
    let signature = BASE64_STANDARD.encode(signature.as_ref());
    Some(format!("SharedKey {account}:{signature}"))
}

fn string_to_sign(request: &Request, account: &str) -> String {
    let mut text = format!("{}\n", request.method);
    for name in BY_PLACE {
        let value = request.header(name).unwrap_or_default();
        let is_nothing = name == "content-length" && value == "0";
        text.push_str(if is_nothing { "" } else { value });
        text.push('\n');
    }
    let mut headers: Vec<&(String, String)> = request
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("x-ms-"))
        .collect();
    headers.sort();
    for (name, value) in headers {
        text.push_str(&format!("{name}:{value}\n"));
    }
    text.push_str(&format!("/{account}{}", request.path));
    let mut query: Vec<(String, &String)> = request
        .query
        .iter()
        .map(|(name, value)| (name.to_lowercase(), value))
        .collect();
    query.sort();
    for (name, value) in query {
        text.push_str(&format!("\n{name}:{value}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the REST reference ("Shared Key format for 2009-09-19 and later"), and the signature of its text by
    /// `openssl dgst -sha256 -hmac key`.
    #[test]
    fn the_text_is_that_of_the_reference() {
        let pairs = |text: &str| {
            let pair = |line: &str| {
                let (name, value) = line.split_once('=').unwrap();
                (name.to_owned(), value.to_owned())
            };
            text.split('|').map(pair).collect::<Vec<_>>()
        };
        let request = Request {
            method: "GET".into(),
            path: "/mycontainer".into(),
            query: pairs("restype=container|comp=metadata|timeout=20"),
            headers: pairs("x-ms-version=2015-02-21|x-ms-date=Fri, 26 Jun 2015 23:39:12 GMT"),
            body: Vec::new(),
        };
        let text = string_to_sign(&request, "myaccount");
        assert_eq!(
            text,
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n\
             /myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
        );
        let made = authorization(&request, "myaccount", "a2V5").unwrap();
        assert_eq!(
            made,
            "SharedKey myaccount:WM6PIVHYgxCEsyR7/qzf8xFpP0IqD5n1ky7LYLMZ/9g="
        );
    }
}
