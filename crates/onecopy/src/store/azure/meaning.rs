//! What Azure Blob Storage means when it says no, and what to do about it.

use std::time::Duration;

use super::super::credentials::Kept;
use super::super::http1::{Failure, Head, retry_after};
use super::super::{cloud, xml};
use crate::error::ErrorKind;

/// Where the refusal came up.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) container: &'a str,
    pub(super) is_anonymous: bool,
    /// Whether a SAS token went along.
    pub(super) has_sas: bool,
    /// Whether the request was signed with the account's key, which may do anything.
    pub(super) has_key: bool,
}

/// What the head of the answer told.
#[derive(Debug)]
pub(super) struct Told {
    status: u16,
    /// Azure says it in the head, too, so that a HEAD has it.
    code: Option<String>,
    retry_after: Option<Duration>,
}

impl Told {
    pub(super) fn of(head: &Head) -> Self {
        Self {
            status: head.status,
            code: head.header("x-ms-error-code").map(str::to_owned),
            retry_after: retry_after(head),
        }
    }
}

/// Reads the answer. The code decides; the status where there is none, as with proxies.
pub(super) fn read(told: &Told, text: &[u8], scene: &Scene<'_>) -> Failure {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let leaves = xml::leaves(text.trim_ascii_start()).unwrap_or_default();
    let is_code =
        |path: &[String]| matches!(path, [root, name] if root == "Error" && name == "Code");
    let written = leaves.iter().find(|(path, _)| is_code(path));
    let written = written.map_or("", |(_, text)| text);
    let code = cloud::code(told.code.as_deref().unwrap_or(written));
    let mut failure = by_code(code, scene).unwrap_or_else(|| by_status(told.status, code, scene));
    failure.retry_after = told.retry_after;
    failure
}

/// What `code` means; none for a code that is not known.
fn by_code(code: &str, scene: &Scene<'_>) -> Option<Failure> {
    use ErrorKind::{Changed, Denied, InvalidInput, NotFound, Throttled, Unreachable, Unsupported};
    let failure = |kind, cause, why: &str| Failure::new(kind, cause, why);
    let container = scene.container;
    Some(match code {
        "BlobNotFound" => failure(NotFound, "no_such_key", "the blob does not exist")
            .with_help("list what is there: onecopy ls; names are case-sensitive"),
        "ContainerNotFound" | "ContainerBeingDeleted" => {
            let why = format!("there is no container {container}");
            failure(NotFound, "no_such_bucket", &why)
                .with_help("check the container's name, and the account")
        }
        "ResourceNotFound" => {
            let why = "there is no such container or blob, or it is not public";
            failure(NotFound, "not_found", why).with_help(NAMES)
        }
        "AuthorizationPermissionMismatch"
        | "AuthorizationFailure"
        | "InsufficientAccountPermissions"
        | "UnauthorizedBlobOverwrite" => denied(scene),
        "AuthenticationFailed" if scene.is_anonymous => denied(scene),
        "AuthenticationFailed" => signature(scene),
        "InvalidAuthenticationInfo" => <reqsign_azure_storage::Credential as Kept>::expired(),
        "NoAuthenticationInformation" | "PublicAccessNotPermitted" => denied(scene),
        "KeyBasedAuthenticationNotPermitted" => {
            let why = "the account takes no keys and no SAS tokens";
            failure(Denied, "denied", why)
                .with_help("log in instead: az login, or a service principal")
        }
        "AuthorizationSourceIPMismatch"
        | "AuthorizationProtocolMismatch"
        | "AuthorizationServiceMismatch"
        | "AuthorizationResourceTypeMismatch" => out_of_scope(code),
        "AccountIsDisabled" => failure(Denied, "denied", "the account is disabled")
            .with_help("enable it in the Azure portal"),
        "BlobArchived" | "BlobBeingRehydrated" => {
            failure(Unsupported, "archived", "the blob is archived")
                .with_help("rehydrate it first, in the Azure portal or by az storage blob set-tier")
        }
        "ConditionNotMet" => failure(Changed, "changed", "it is another version"),
        "InvalidResourceName" | "OutOfRangeInput" | "InvalidUri" => {
            let why = format!("that is no name that a container or blob can have ({code})");
            failure(InvalidInput, "bucket_name", &why).with_help(NAMES)
        }
        "ServerBusy" | "TooManyRequests" => {
            failure(Throttled, "throttled", "the store asks for less")
        }
        "OperationTimedOut" => {
            let why = "the store took too long (OperationTimedOut)";
            failure(Unreachable, "server_timeout", why)
        }
        "InternalError" => {
            let why = "the store failed (InternalError)";
            failure(Unreachable, "server_error", why)
        }
        _ => return None,
    })
}

const NAMES: &str =
    "check container and name; container names have 3 to 63 lower-case letters, digits and hyphens";

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
        404 => {
            failure(NotFound, "not_found", "there is no such blob or container").with_help(NAMES)
        }
        401 | 403 => denied(scene),
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

/// The SAS token is good, but for something else.
fn out_of_scope(code: &str) -> Failure {
    let why = format!("the SAS token is not for this ({code})");
    Failure::new(ErrorKind::Denied, "denied", why)
        .with_help("make one for Blob storage, containers and objects, reading and listing")
}

/// The signature, or what stands in its place, is not good.
fn signature(scene: &Scene<'_>) -> Failure {
    let (why, help) = if scene.has_sas {
        let help = "it may have expired, or not be for this container: make a fresh one";
        ("the SAS token is not valid", help)
    } else {
        let help = "check that key and account belong together, and this machine's clock: signatures are good for 15 minutes";
        ("the signature is not valid", help)
    };
    Failure::new(ErrorKind::Denied, "signature", why).with_help(help)
}

fn denied(scene: &Scene<'_>) -> Failure {
    let container = scene.container;
    let help = if scene.is_anonymous {
        "the container is not public: leave out `no_sign_request` and give credentials".to_owned()
    } else if scene.has_sas {
        format!("make a SAS token with the rights to read and list (sp=rl) on {container}")
    } else if scene.has_key {
        "check that key and account belong together, and that the account's firewall lets this machine in"
            .to_owned()
    } else {
        format!(
            "grant the role Storage Blob Data Reader on {container}; Owner and Contributor do not \
             include it; or the account's firewall keeps this machine out"
        )
    };
    Failure::new(ErrorKind::Denied, "denied", "access denied").with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENE: Scene<'_> = Scene {
        container: "c",
        is_anonymous: false,
        has_sas: false,
        has_key: false,
    };

    fn refusal(status: u16, head: Option<&str>, text: &str, scene: &Scene<'_>) -> Failure {
        let told = Told {
            status,
            code: head.map(str::to_owned),
            retry_after: None,
        };
        read(&told, text.as_bytes(), scene)
    }

    #[test]
    fn every_code_has_its_own_kind_and_cause_in_head_and_text() {
        let cases = "404 BlobNotFound not_found no_such_key final
            404 ContainerNotFound not_found no_such_bucket final
            404 ResourceNotFound not_found not_found final
            403 AuthenticationFailed denied signature final
            403 AuthorizationPermissionMismatch denied denied final
            401 InvalidAuthenticationInfo denied expired_token final
            401 NoAuthenticationInformation denied denied final
            409 PublicAccessNotPermitted denied denied final
            409 BlobArchived unsupported archived final
            412 ConditionNotMet changed changed final
            400 InvalidResourceName invalid_input bucket_name final
            503 ServerBusy throttled throttled again
            500 OperationTimedOut unreachable server_timeout again
            500 InternalError unreachable server_error again
            418 Teapot unsupported refused final";
        for case in cases.lines() {
            let words: Vec<&str> = case.split_whitespace().collect();
            let status = words[0].parse().unwrap();
            let text = format!(
                "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{}</Code><Message>m</Message></Error>",
                words[1]
            );
            for failure in [
                refusal(status, Some(words[1]), "", &SCENE),
                refusal(status, None, &text, &SCENE),
            ] {
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
    }

    #[test]
    fn what_helps_depends_on_what_was_sent() {
        let anonymous = Scene {
            is_anonymous: true,
            ..SCENE
        };
        let sas = Scene {
            has_sas: true,
            ..SCENE
        };
        let key = Scene {
            has_key: true,
            ..SCENE
        };
        for (code, scene, word) in [
            ("AuthorizationFailure", &key, "belong together"),
            ("AuthorizationFailure", &SCENE, "Storage Blob Data Reader"),
            (
                "NoAuthenticationInformation",
                &anonymous,
                "`no_sign_request`",
            ),
            ("AuthenticationFailed", &anonymous, "`no_sign_request`"),
            ("AuthorizationFailure", &sas, "sp=rl"),
            ("AuthenticationFailed", &sas, "expired"),
            ("AuthenticationFailed", &SCENE, "clock"),
        ] {
            let help = refusal(403, Some(code), "", scene).help.unwrap();
            assert!(help.contains(word), "{code}: {help}");
        }
    }

    #[test]
    fn statuses_speak_where_there_is_no_code() {
        for (status, kind) in [
            (404, ErrorKind::NotFound),
            (401, ErrorKind::Denied),
            (403, ErrorKind::Denied),
            (429, ErrorKind::Throttled),
            (502, ErrorKind::Unreachable),
            (307, ErrorKind::Unsupported),
            (204, ErrorKind::Corrupt),
        ] {
            assert_eq!(
                refusal(status, None, "<html>", &SCENE).kind,
                kind,
                "{status}"
            );
        }
        let odd = refusal(418, Some("a b\u{1b}[31m"), "", &SCENE).why;
        assert!(!odd.contains('\u{1b}'), "{odd}");
    }
}
