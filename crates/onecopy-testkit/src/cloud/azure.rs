//! Azure Blob Storage, as an emulator serves it: the account is the first part of the path.

use super::answer::{self, Answer, Found, escape};
use super::objects::page;
use super::server::{Access, State};
use super::shared_key;
use crate::fault::request::Request;
use crate::s3_encode;

pub(crate) fn answer(request: &Request, state: &State) -> Answer {
    if request
        .header("x-ms-version")
        .is_none_or(|v| v < "2021-02-12")
    {
        return error(400, "InvalidHeaderValue");
    }
    if let Some(refusal) = refused(request, state) {
        return refusal;
    }
    let (account, rest) = request.place();
    if account != state.account {
        return error(400, "InvalidUri");
    }
    let (container, key) = rest.split_once('/').unwrap_or((&rest, ""));
    if !state.buckets.contains(container) {
        return error(404, "ContainerNotFound");
    }
    if key.is_empty() {
        return list(request, state, container);
    }
    let place = (container.to_owned(), key.to_owned());
    let Some(stored) = state.objects.get(&place) else {
        return error(404, "BlobNotFound");
    };
    match answer::object(request, stored) {
        Found::Changed => error(412, "ConditionNotMet"),
        Found::NoRange => {
            let told = format!("bytes */{}", stored.bytes.len());
            error(416, "InvalidRange").with("content-range", told)
        }
        Found::Bytes(answer) => answer
            .with("x-ms-blob-type", "BlockBlob")
            .with("x-ms-version", "2023-11-03"),
    }
}

fn refused(request: &Request, state: &State) -> Option<Answer> {
    let sent = request.header("authorization");
    match (&state.access, sent) {
        (Access::Anyone, _) => None,
        (Access::Sas(token), _) => {
            let has = |part: &str| {
                let (name, value) = part.split_once('=').unwrap_or((part, ""));
                request.parameter(name) == Some(value)
            };
            let is_right = token.split('&').all(has);
            (!is_right).then(|| error(403, "AuthenticationFailed"))
        }
        (_, None) => Some(error(401, "NoAuthenticationInformation")),
        (Access::Token(token), Some(sent)) => {
            let is_right = sent == format!("Bearer {token}");
            (!is_right).then(|| error(401, "InvalidAuthenticationInfo"))
        }
        (Access::Key(key), Some(sent)) => {
            let wanted = shared_key::authorization(request, &state.account, key);
            (Some(sent) != wanted.as_deref()).then(|| error(403, "AuthenticationFailed"))
        }
    }
}

pub(crate) fn error(status: u16, code: &str) -> Answer {
    let text = format!(
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code><Message>m\nTime:t</Message></Error>"
    );
    Answer::new(status, text)
        .with("content-type", "application/xml")
        .with("x-ms-error-code", code)
}

/// A name as the listing has it. XML cannot hold all that a name can.
fn name(name: &str) -> String {
    let is_odd = |c: char| c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}');
    if name.contains(is_odd) {
        return format!(
            "<Name Encoded=\"true\">{}</Name>",
            s3_encode(name).replace('+', "%20")
        );
    }
    format!("<Name>{}</Name>", escape(name))
}

fn list(request: &Request, state: &State, container: &str) -> Answer {
    let parameter = |name| request.parameter(name);
    if parameter("restype") != Some("container") || parameter("comp") != Some("list") {
        return error(400, "InvalidQueryParameterValue");
    }
    let prefix = parameter("prefix").unwrap_or_default();
    let from = (parameter("marker"), state.page_len);
    let delimiter = parameter("delimiter");
    let Some(page) = page(&state.objects, container, prefix, delimiter, from) else {
        return error(400, "OutOfRangeQueryParameterValue");
    };
    let mut text = format!(
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"http://h/\" \
         ContainerName=\"{container}\"><Prefix>{}</Prefix><Blobs>",
        escape(prefix)
    );
    for (key, stored) in page.objects {
        // Here the tag stands without its quotes.
        text.push_str(&format!(
            "<Blob>{}<Properties><Last-Modified>Sun, 06 Nov 1994 08:49:37 GMT</Last-Modified><Etag>{}</Etag>\
             <Content-Length>{}</Content-Length><Content-MD5 /><BlobType>BlockBlob</BlobType></Properties></Blob>",
            name(&key),
            stored.etag.trim_matches('"'),
            stored.bytes.len()
        ));
    }
    for prefix in page.prefixes {
        text.push_str(&format!("<BlobPrefix>{}</BlobPrefix>", name(&prefix)));
    }
    let next = page.next.unwrap_or_default();
    text.push_str(&format!(
        "</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>"
    ));
    Answer::new(200, text).with("content-type", "application/xml")
}
