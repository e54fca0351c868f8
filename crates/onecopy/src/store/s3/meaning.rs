//! What S3's codes and statuses mean, in words, and what to do about them.

use super::super::http1::Failure;
use super::keep;
use super::page;
use super::refusal::{Scene, Told};
use crate::error::ErrorKind;

/// What `code` means; none for a code that is not known.
pub(super) fn by_code(code: &str, told: &Told, scene: &Scene<'_>) -> Option<Failure> {
    use ErrorKind::{Changed, Denied, InvalidInput, NotFound, Throttled, Unreachable, Unsupported};
    let failure = |kind, cause, why: &str| Failure::new(kind, cause, why);
    let failure = match code {
        "NoSuchKey" | "MethodNotAllowed" if told.is_delete_marker => deleted(),
        "NoSuchVersion" => failure(
            NotFound,
            "no_such_version",
            "there is no such version of it",
        )
        .with_help("list the versions: aws s3api list-object-versions"),
        "NoSuchKey" => failure(NotFound, "no_such_key", "the object does not exist")
            .with_help("list what is there: onecopy ls; keys are case-sensitive"),
        "NoSuchBucket" => {
            let why = format!("there is no bucket {}", scene.bucket);
            Failure::new(NotFound, "no_such_bucket", why)
                .with_help("check the bucket's name, and the endpoint (`endpoint_url`)")
        }
        "InvalidBucketName" => {
            let why = format!("{} is no name that a bucket can have there", scene.bucket);
            Failure::new(InvalidInput, "bucket_name", why)
                .with_help("check the bucket's name: lower-case letters, digits, dots and hyphens")
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
        "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" => keep::expired(),
        "RequestTimeTooSkewed" | "RequestExpired" | "RequestInTheFuture" => {
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

/// What the status means, where there is no code that is known; `is_page` where a web page came in place of words of S3's.
pub(super) fn by_status(code: &str, told: &Told, scene: &Scene<'_>, is_page: bool) -> Failure {
    let mut failure = plainly(code, told, scene);
    // What is no success keeps the kind that its status has, so that it is asked again, or not, as ever. A HEAD has no page to
    // show: there its type proves nothing.
    match told.status {
        200..=299 if is_page => failure = page::failure(told, scene),
        _ if is_page && !scene.is_head => {
            let endpoint = &scene.endpoint;
            failure.why = format!(
                "{}; HTML came from {endpoint} instead of an S3 answer",
                failure.why
            );
            if !failure.is_worth_retrying {
                failure.help = Some(page::help(scene));
            }
        }
        _ => {}
    }
    failure
}

fn plainly(code: &str, told: &Told, scene: &Scene<'_>) -> Failure {
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
        301 | 302 | 303 | 307 | 308 | 400 if is_elsewhere => wrong_region(told, scene),
        // S3's own redirects; one without a place, a code and a region is of somebody else, but for its 301 to a HEAD.
        301 | 307 | 308 if told.elsewhere.is_some() || !code.is_empty() || told.status == 301 => {
            wrong_region(told, scene)
        }
        304 => failure(
            Unsupported,
            "not_modified",
            "the store says that the object has not changed, which nobody asked",
        ),
        300..=399 => redirect(told, scene, &said),
        404 | 405 if told.is_delete_marker => deleted(),
        404 => failure(NotFound, "not_found", "there is no such object or bucket")
            .with_help("check bucket and key"),
        403 if code.is_empty() => denied(scene),
        401 | 403 => failure(Denied, "denied", "access denied"),
        412 => failure(Changed, "changed", "it is another version"),
        416 => failure(Unsupported, "no_such_range", "the object has no such bytes")
            .with_help("look it up or list it anew: it may have become shorter"),
        408 => failure(Unreachable, "server_timeout", "the store waited too long"),
        429 | 503 => failure(Throttled, "throttled", "the store asks for less"),
        // From 520 on: what proxies of Cloudflare say, which stand before some stores.
        500 | 502 | 504 | 520..=530 => failure(Unreachable, "server_error", "the store failed"),
        200..=299 => Failure::corrupt(format!("the store answered oddly ({said})")),
        400 if told.is_about_keys || scene.has_customer_key || code.contains("Encryption") => {
            failure(Unsupported, "refused", "the store refused").with_help(
                "an object that is encrypted with a key of yours (SSE-C) needs `sse_c_key`, and no \
             other object takes one",
            )
        }
        _ => failure(Unsupported, "refused", "the store refused"),
    }
}

/// A redirect that is none of S3's: those name a region.
fn redirect(told: &Told, scene: &Scene<'_>, said: &str) -> Failure {
    let whither = match &told.elsewhere {
        Some(elsewhere) => format!(" to {elsewhere}, which is given no credentials"),
        None => String::new(),
    };
    let why = format!("the answer is a redirect{whither} ({said})");
    Failure::new(ErrorKind::Unsupported, "redirect", why).with_help(page::help(scene))
}

fn denied(scene: &Scene<'_>) -> Failure {
    let bucket = scene.bucket;
    let (why, help) = if scene.is_anonymous {
        let help = "the bucket is not public: leave out `no_sign_request` and give credentials";
        ("access denied", help.to_owned())
    } else if scene.has_customer_key {
        let help = format!(
            "check that `sse_c_key` is the key of this object; grant s3:GetObject on {bucket}/*"
        );
        ("access denied", help)
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

/// The version asked for, or the newest, is a delete marker.
fn deleted() -> Failure {
    Failure::new(ErrorKind::NotFound, "deleted", "the object was deleted")
        .with_help("an older version may be there still: name it with ?versionId=..")
}

fn wrong_region(told: &Told, scene: &Scene<'_>) -> Failure {
    let (bucket, ours) = (scene.bucket, scene.region);
    let named = told.region.as_deref();
    let other = named.filter(|region| *region != ours);
    let why = match (other, &told.elsewhere) {
        (None, Some(elsewhere)) => {
            format!("the store points to {elsewhere}, which is given no credentials")
        }
        _ => format!("the bucket {bucket} is not in the region {ours}"),
    };
    let failure = Failure::new(ErrorKind::InvalidInput, "wrong_region", why);
    match other {
        Some(right) => failure.with_help(format!("it is in {right}: say `region={right}`")),
        None => {
            failure.with_help("say the region of the bucket with `region`, or check `endpoint_url`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::refusal::read;
    use super::*;

    const SCENE: Scene<'_> = Scene {
        bucket: "b",
        region: "us-east-1",
        endpoint: String::new(),
        is_head: false,
        is_anonymous: false,
        has_customer_key: false,
    };

    #[test]
    fn a_name_that_no_bucket_can_have_is_told_as_such() {
        let scene = Scene {
            bucket: "Odd_Name",
            ..SCENE
        };
        let failure = by_code("InvalidBucketName", &Told::default(), &scene).unwrap();
        assert_eq!(failure.kind, ErrorKind::InvalidInput);
        assert!(failure.why.contains("Odd_Name"), "{}", failure.why);
        assert!(failure.help.unwrap().contains("lower-case"));
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
    fn a_key_of_the_customer_is_thought_of_where_it_may_be_the_reason() {
        let with = Scene {
            has_customer_key: true,
            ..SCENE
        };
        let stored = "The object was stored using a form of Server Side Encryption. The correct parameters must be \
                      provided to retrieve the object.";
        let other = "Requests specifying Server Side Encryption with Customer provided keys must provide an \
                     appropriate secret key.";
        for (status, code, message, scene, wanted) in [
            (403, "AccessDenied", "", &with, true),
            (403, "", "", &with, true),
            (403, "AccessDenied", "", &SCENE, false),
            (400, "InvalidRequest", stored, &SCENE, true),
            (400, "InvalidArgument", other, &SCENE, true),
            (400, "InvalidEncryptionAlgorithmError", "", &SCENE, true),
            (
                400,
                "InvalidArgument",
                "Encryption with aws:kms is not known",
                &SCENE,
                false,
            ),
            (400, "", "", &with, true),
            (
                400,
                "InvalidRequest",
                "Missing required header",
                &SCENE,
                false,
            ),
            (
                400,
                "KeyTooLongError",
                "Your key is too long",
                &SCENE,
                false,
            ),
            (400, "", "", &SCENE, false),
            (418, "", "", &SCENE, false),
        ] {
            let told = Told {
                status,
                ..Told::default()
            };
            let text = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
            let help = read(told, text.as_bytes(), scene).failure.help;
            let is_named = help.is_some_and(|help| help.contains("`sse_c_key`"));
            assert_eq!(is_named, wanted, "{status} {code}");
        }
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
