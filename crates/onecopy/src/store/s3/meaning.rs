//! What S3's codes and statuses mean, in words, and what to do about them.

use super::super::http1::Failure;
use super::keep;
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

/// What the status means, where there is no code that is known.
pub(super) fn by_status(code: &str, told: &Told, scene: &Scene<'_>) -> Failure {
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
        404 | 405 if told.is_delete_marker => deleted(),
        404 => failure(NotFound, "not_found", "there is no such object or bucket")
            .with_help("check bucket and key"),
        403 if code.is_empty() => denied(scene),
        401 | 403 => failure(Denied, "denied", "access denied"),
        412 => failure(Changed, "changed", "it is another version"),
        408 => failure(Unreachable, "server_timeout", "the store waited too long"),
        429 | 503 => failure(Throttled, "throttled", "the store asks for less"),
        500 | 502 | 504 => failure(Unreachable, "server_error", "the store failed"),
        200..=299 => Failure::corrupt(format!("the store answered oddly ({said})")),
        // What stores say of a missing, needless or odd SSE-C key, and of little else that is asked here.
        400 => failure(Unsupported, "refused", "the store refused").with_help(
            "an object that is encrypted with a key of yours (SSE-C) needs `sse_c_key`, and no \
             other object takes one",
        ),
        _ => failure(Unsupported, "refused", "the store refused"),
    }
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
    use super::*;

    #[test]
    fn a_name_that_no_bucket_can_have_is_told_as_such() {
        let scene = Scene {
            bucket: "Odd_Name",
            region: "r",
            is_head: false,
            is_anonymous: false,
            has_customer_key: false,
        };
        let failure = by_code("InvalidBucketName", &Told::default(), &scene).unwrap();
        assert_eq!(failure.kind, ErrorKind::InvalidInput);
        assert!(failure.why.contains("Odd_Name"), "{}", failure.why);
        let help = failure.help.unwrap();
        assert!(
            help.contains("lower-case") && !help.contains("sse_c_key"),
            "{help}"
        );
    }
}
