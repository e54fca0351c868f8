//! What Google Cloud Storage means when it says no, and what to do about it.

use std::time::Duration;

use super::super::http1::{Failure, Head, retry_after};
use super::super::{cloud, xml};
use super::signer::Signer;
use crate::error::ErrorKind;

/// Where the refusal came up.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) bucket: &'a str,
    pub(super) signer: Option<&'a Signer>,
}

/// What the head of the answer told.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) status: u16,
    retry_after: Option<Duration>,
}

impl Told {
    pub(super) fn of(head: &Head) -> Self {
        Self {
            status: head.status,
            retry_after: retry_after(head),
        }
    }
}

/// Reads the answer. The code decides; the status where there is none, as with HEAD, with proxies and with JSON.
pub(super) fn read(told: &Told, text: &[u8], scene: &Scene<'_>) -> Failure {
    let leaves = xml::leaves(text.trim_ascii_start()).unwrap_or_default();
    let is_code =
        |path: &[String]| matches!(path, [root, name] if root == "Error" && name == "Code");
    let code = leaves.iter().find(|(path, _)| is_code(path));
    let code = cloud::code(code.map_or("", |(_, text)| text));
    let mut failure = by_code(code, scene).unwrap_or_else(|| by_status(told.status, code, scene));
    failure.retry_after = told.retry_after;
    failure
}

/// What `code` means; none for a code that is not known.
fn by_code(code: &str, scene: &Scene<'_>) -> Option<Failure> {
    use ErrorKind::{Changed, Denied, InvalidInput, NotFound, Throttled, Unreachable};
    let failure = |kind, cause, why: &str| Failure::new(kind, cause, why);
    let bucket = scene.bucket;
    Some(match code {
        "NoSuchKey" => failure(NotFound, "no_such_key", "the object does not exist")
            .with_help("list what is there: onecopy ls; names are case-sensitive"),
        "NoSuchBucket" => {
            let why = format!("there is no bucket {bucket}");
            failure(NotFound, "no_such_bucket", &why)
                .with_help("check the bucket's name, and the endpoint (`endpoint_url`)")
        }
        "InvalidBucketName" => {
            let why = format!("{bucket} is no name that a bucket can have there");
            failure(InvalidInput, "bucket_name", &why)
                .with_help("bucket names have lower-case letters, digits, dots, - and _")
        }
        "AccessDenied" | "AccountProblem" => denied(scene),
        "AuthenticationRequired" | "InvalidSecurity" | "InvalidToken" | "ExpiredToken" => {
            unauthorised(scene)
        }
        "UserProjectMissing" => failure(Denied, "requester_pays", "the requester has to pay here")
            .with_help(
                "say `request_payer=requester`, and name the project that pays in \
                 GOOGLE_CLOUD_QUOTA_PROJECT",
            ),
        "UserProjectAccessDenied" | "UserProjectInvalid" | "UserProjectAccountProblem" => {
            let why = "the project that is to pay cannot be billed";
            failure(Denied, "requester_pays", why).with_help(
                "check GOOGLE_CLOUD_QUOTA_PROJECT, its billing account, and that you may use it \
                 (serviceusage.services.use)",
            )
        }
        "PreconditionFailed" => failure(Changed, "changed", "it is another version"),
        "SlowDown" | "ServiceUnavailable" | "TooManyRequests" => {
            failure(Throttled, "throttled", "the store asks for less")
        }
        "InternalError" => {
            let why = "the store failed (InternalError)";
            failure(Unreachable, "server_error", why)
        }
        "RequestTimeout" => failure(Unreachable, "server_timeout", "the store waited too long"),
        _ => return None,
    })
}

/// What the status means, where there is no code that is known.
fn by_status(status: u16, code: &str, scene: &Scene<'_>) -> Failure {
    use ErrorKind::{Changed, NotFound, Throttled, Unreachable, Unsupported};
    let said = if code.is_empty() {
        format!("status {status}")
    } else {
        format!("{status} {code}")
    };
    let failure = |kind, cause, why: &str| Failure::new(kind, cause, format!("{why} ({said})"));
    match status {
        404 => failure(NotFound, "not_found", "there is no such object or bucket")
            .with_help("check bucket and name; list what is there: onecopy ls"),
        401 => unauthorised(scene),
        403 => denied(scene),
        412 => failure(Changed, "changed", "it is another version"),
        408 => failure(Unreachable, "server_timeout", "the store waited too long"),
        429 | 503 => failure(Throttled, "throttled", "the store asks for less"),
        500 | 502 | 504 => failure(Unreachable, "server_error", "the store failed"),
        200..=299 => Failure::corrupt(format!("the store answered oddly ({said})")),
        300..=399 => failure(
            Unsupported,
            "redirect",
            "the store points elsewhere, which is given no credentials",
        )
        .with_help("check the endpoint (`endpoint_url`)"),
        _ => failure(Unsupported, "refused", "the store refused"),
    }
}

/// The token is not good. Without one, the bucket is not public.
fn unauthorised(scene: &Scene<'_>) -> Failure {
    if scene.signer.is_none() {
        return denied(scene);
    }
    <reqsign_google::Credential as super::super::credentials::Kept>::expired()
}

fn denied(scene: &Scene<'_>) -> Failure {
    let bucket = scene.bucket;
    let help = if scene.signer.is_none() {
        "the bucket is not public: leave out `no_sign_request` and give credentials".to_owned()
    } else {
        format!(
            "grant storage.objects.get and storage.objects.list on {bucket} (roles/storage.objectViewer); \
             if the requester pays, say `request_payer=requester`"
        )
    };
    // Without the right to list, Google says 403 for what does not exist.
    let why = "access denied, or there is no such object";
    Failure::new(ErrorKind::Denied, "denied", why).with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANONYMOUS: Scene<'_> = Scene {
        bucket: "b",
        signer: None,
    };

    fn refusal(status: u16, text: &str, scene: &Scene<'_>) -> Failure {
        let told = Told {
            status,
            retry_after: None,
        };
        read(&told, text.as_bytes(), scene)
    }

    #[test]
    fn every_code_has_its_own_kind_and_cause() {
        let cases = "404 NoSuchKey not_found no_such_key final
            404 NoSuchBucket not_found no_such_bucket final
            403 AccessDenied denied denied final
            401 AuthenticationRequired denied expired_token final
            400 UserProjectMissing denied requester_pays final
            412 PreconditionFailed changed changed final
            429 TooManyRequests throttled throttled again
            503 ServiceUnavailable throttled throttled again
            503 SlowDown throttled throttled again
            500 InternalError unreachable server_error again
            400 InvalidBucketName invalid_input bucket_name final
            418 Teapot unsupported refused final";
        let signer = Signer::new(&crate::config::StoreConfig::default());
        let scene = Scene {
            bucket: "b",
            signer: Some(&signer),
        };
        for case in cases.lines() {
            let words: Vec<&str> = case.split_whitespace().collect();
            let text = format!(
                "<?xml version='1.0'?><Error><Code>{}</Code></Error>",
                words[1]
            );
            let failure = refusal(words[0].parse().unwrap(), &text, &scene);
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
    fn statuses_speak_where_there_is_no_code() {
        let json = r#"{"error":{"code":404,"message":"x","errors":[{"reason":"notFound"}]}}"#;
        for (status, text, kind) in [
            (404, json, ErrorKind::NotFound),
            (404, "", ErrorKind::NotFound),
            (401, "", ErrorKind::Denied),
            (403, "<html>", ErrorKind::Denied),
            (429, "", ErrorKind::Throttled),
            (502, "<html>", ErrorKind::Unreachable),
            (307, "", ErrorKind::Unsupported),
            (204, "", ErrorKind::Corrupt),
        ] {
            assert_eq!(refusal(status, text, &ANONYMOUS).kind, kind, "{status}");
        }
    }

    #[test]
    fn who_reads_without_credentials_is_told_to_give_some() {
        for status in [401, 403] {
            let help = refusal(status, "", &ANONYMOUS).help.unwrap();
            assert!(help.contains("`no_sign_request`"), "{help}");
        }
    }

    #[test]
    fn no_damage_makes_it_panic_and_nothing_odd_is_repeated() {
        let text = "<Error><Code>Teapot</Code><Message>m</Message></Error>";
        for at in 0..text.len() {
            for byte in [0, b'<', b'/', b'&', b' ', 0xff] {
                let mut damaged = text.as_bytes().to_owned();
                damaged[at] = byte;
                let told = Told {
                    status: 418,
                    retry_after: None,
                };
                let why = read(&told, &damaged, &ANONYMOUS).why;
                assert!(!why.contains(['<', '&', '\0']), "{why}");
            }
        }
    }
}
