//! What S3 means when it says no.

use std::time::Duration;

use super::super::http1::{Failure, Head, retry_after};
use super::list;
use crate::error::ErrorKind;

/// Where the refusal came up.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) bucket: &'a str,
    pub(super) region: &'a str,
    pub(super) is_head: bool,
    pub(super) is_anonymous: bool,
}

/// What the head of the answer told.
#[derive(Debug, Default)]
pub(super) struct Told {
    status: u16,
    region: Option<String>,
    retry_after: Option<Duration>,
}

impl Told {
    pub(super) fn of(head: &Head) -> Self {
        Self {
            status: head.status,
            region: head.header("x-amz-bucket-region").map(str::to_owned),
            retry_after: retry_after(head),
        }
    }
}

/// A refusal, understood.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) failure: Failure,
    /// The credential is past its time: another one may do.
    pub(super) is_credential_old: bool,
}

/// Reads the answer. The code decides; the status where there is none, as with HEAD and with proxies.
pub(super) fn read(mut told: Told, text: &[u8], scene: &Scene<'_>) -> Refusal {
    let mut code = String::new();
    for (path, text) in list::leaves(text.trim_ascii_start()).unwrap_or_default() {
        match path
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .as_slice()
        {
            ["Error", "Code"] => code = text,
            ["Error", "Region"] if !text.is_empty() => told.region = Some(text),
            _ => {}
        }
    }
    // The code goes into a message: a well-formed one only.
    if code.len() > 64 || !code.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        code.clear();
    }
    let mut failure =
        by_code(&code, &told, scene).unwrap_or_else(|| by_status(&code, &told, scene));
    failure.retry_after = told.retry_after;
    let is_credential_old = matches!(code.as_str(), "ExpiredToken" | "TokenRefreshRequired");
    if is_credential_old {
        // Once with a fresh credential, and no more often.
        failure.is_worth_retrying = true;
        failure.most_tries = Some(2);
    }
    Refusal {
        failure,
        is_credential_old,
    }
}

fn by_code(code: &str, told: &Told, scene: &Scene<'_>) -> Option<Failure> {
    use ErrorKind::{Changed, Denied, NotFound, Throttled, Unreachable, Unsupported};
    let failure = |kind, cause, why: &str| Failure::new(kind, cause, why);
    let failure = match code {
        "NoSuchKey" => failure(NotFound, "no_such_key", "the object does not exist")
            .with_help("list what is there: onecopy ls; keys are case-sensitive"),
        "NoSuchBucket" => {
            let why = format!("there is no bucket {}", scene.bucket);
            Failure::new(NotFound, "no_such_bucket", why)
                .with_help("check the bucket's name, and the endpoint (`endpoint_url`)")
        }
        "AccessDenied" | "AllAccessDisabled" => denied(scene),
        "SignatureDoesNotMatch" => failure(Denied, "signature", "the signature does not match")
            .with_help(
                "the secret key does not belong to the access key, or a proxy alters requests",
            ),
        "InvalidAccessKeyId" | "InvalidToken" | "InvalidClientTokenId" => {
            failure(Denied, "unknown_key", "the access key is not known here")
                .with_help("check the access key, and that it belongs to this endpoint")
        }
        "ExpiredToken" | "TokenRefreshRequired" => {
            failure(Denied, "expired_token", "the credentials have expired")
                .with_help("log in again (aws sso login), or set fresh keys and session token")
        }
        "RequestTimeTooSkewed" => {
            let mut skewed = failure(Denied, "clock", "this machine's clock is wrong")
                .with_help("set the clock: signatures are good for 15 minutes");
            // A request that waited long in a queue is not late again; a wrong clock stays wrong.
            skewed.is_worth_retrying = true;
            skewed.most_tries = Some(3);
            skewed
        }
        "AuthorizationHeaderMalformed"
        | "PermanentRedirect"
        | "TemporaryRedirect"
        | "IllegalLocationConstraintException" => wrong_region(told, scene),
        "InvalidObjectState" => {
            failure(Unsupported, "archived", "the object is archived (Glacier)")
                .with_help("restore it first: aws s3api restore-object")
        }
        "PreconditionFailed" => failure(Changed, "changed", "it is another version"),
        "SlowDown" | "ServiceUnavailable" | "TooManyRequests" | "RequestLimitExceeded" => {
            failure(Throttled, "throttled", "the store asks for less")
        }
        "InternalError" => failure(
            Unreachable,
            "server_error",
            "the store failed (InternalError)",
        ),
        "RequestTimeout" => failure(Unreachable, "server_timeout", "the store waited too long"),
        _ => return None,
    };
    Some(failure)
}

fn by_status(code: &str, told: &Told, scene: &Scene<'_>) -> Failure {
    use ErrorKind::{Changed, Denied, NotFound, Throttled, Unreachable, Unsupported};
    let status = told.status;
    let said = if code.is_empty() {
        format!("status {status}")
    } else {
        format!("{status} {code}")
    };
    let failure = |kind, cause, why: &str| Failure::new(kind, cause, format!("{why} ({said})"));
    let is_elsewhere = told
        .region
        .as_deref()
        .is_some_and(|region| region != scene.region);
    match status {
        300..=399 => wrong_region(told, scene),
        400 if is_elsewhere => wrong_region(told, scene),
        404 => failure(NotFound, "not_found", "there is no such object or bucket")
            .with_help("check bucket and key"),
        403 if code.is_empty() => denied(scene),
        401 | 403 => failure(Denied, "denied", "access denied"),
        412 => failure(Changed, "changed", "it is another version"),
        408 => failure(Unreachable, "server_timeout", "the store waited too long"),
        429 | 503 => failure(Throttled, "throttled", "the store asks for less"),
        500 | 502 | 504 => failure(Unreachable, "server_error", "the store failed"),
        200..=299 => Failure::corrupt(format!("the store answered oddly ({said})")),
        _ => failure(Unsupported, "refused", "the store refused"),
    }
}

fn denied(scene: &Scene<'_>) -> Failure {
    let bucket = scene.bucket;
    let (why, help) = if scene.is_anonymous {
        let help = "the bucket is not public: leave out `no_sign_request` and give credentials";
        ("access denied", help.to_owned())
    } else if scene.is_head {
        // Without ListBucket S3 says 403 for what does not exist, and a HEAD has no text to tell more.
        let help = format!("grant s3:GetObject on {bucket}/* and s3:ListBucket on {bucket}");
        ("access denied, or there is no such object", help)
    } else {
        let help = format!(
            "grant s3:GetObject on {bucket}/* and s3:ListBucket on {bucket}; if the requester pays, \
             say `request_payer=requester`"
        );
        ("access denied", help)
    };
    Failure::new(ErrorKind::Denied, "denied", why).with_help(help)
}

fn wrong_region(told: &Told, scene: &Scene<'_>) -> Failure {
    let (bucket, ours) = (scene.bucket, scene.region);
    let is_region = |text: &&str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let why = format!("the bucket {bucket} is not in the region {ours}");
    let failure = Failure::new(ErrorKind::InvalidInput, "wrong_region", why);
    match told.region.as_deref().filter(is_region) {
        Some(right) => failure.with_help(format!("it is in {right}: say `region={right}`")),
        None => {
            failure.with_help("say the region of the bucket with `region`, or check `endpoint_url`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    };

    #[test]
    fn every_code_has_its_own_kind_and_cause() {
        let cases = "404 NoSuchKey not_found no_such_key final
            404 NoSuchBucket not_found no_such_bucket final
            403 AccessDenied denied denied final
            403 SignatureDoesNotMatch denied signature final
            403 InvalidAccessKeyId denied unknown_key final
            403 RequestTimeTooSkewed denied clock again
            400 ExpiredToken denied expired_token again
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
            retry_after: None,
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
    fn a_head_that_is_denied_says_that_the_object_may_be_missing() {
        let told = Told {
            status: 403,
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
        assert!(failure.why.contains("or there is no such object"));
    }

    #[test]
    fn statuses_speak_where_there_is_no_code() {
        for (status, is_worth_retrying) in [
            (429, true),
            (500, true),
            (502, true),
            (503, true),
            (504, true),
            (404, false),
            (403, false),
            (412, false),
            (204, false),
            (405, false),
        ] {
            let told = Told {
                status,
                ..Told::default()
            };
            let failure = read(told, b"<html>bad gateway", &SCENE).failure;
            assert_eq!(failure.is_worth_retrying, is_worth_retrying, "{status}");
        }
    }
}
