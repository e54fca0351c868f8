//! Sessions of directory buckets (S3 Express One Zone).
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_scripted;
use onecopy::config::{StoreConfig, Variables};
use onecopy::sync::{Arc, AtomicUsize, Ordering};
use store_scripted::{
    Server, Then, error, open, raw, read_source, read_url, serve, serve_with, signed, whole,
};

/// A directory bucket: a session for each time that one is asked for, good for objects while `good` says so.
fn express(good: Arc<AtomicUsize>, life_seconds: i64) -> Server {
    let opened = AtomicUsize::new(0);
    serve_with(move |request| {
        if request.starts_with("GET /data--usw2-az1--x-s3/?session ") {
            let number = opened.fetch_add(1, Ordering::Relaxed) + 1;
            let text = format!(
                "<CreateSessionResult><Credentials><SessionToken>S{number}</SessionToken>\
                 <SecretAccessKey>hush</SecretAccessKey><AccessKeyId>ID{number}</AccessKeyId>\
                 <Expiration>{}</Expiration></Credentials></CreateSessionResult>",
                iso(life_seconds)
            );
            let head = format!("HTTP/1.1 200 OK\nContent-Length: {}", text.len());
            return Some((raw(&head, text.as_bytes()), Then::Keep));
        }
        let token = format!(
            "x-amz-s3session-token: S{}\r\n",
            good.load(Ordering::Relaxed)
        );
        let scope = "/us-west-2/s3express/aws4_request";
        Some(if request.contains(&token) && request.contains(scope) {
            whole()
        } else {
            error("400 Bad Request", "ExpiredToken")
        })
    })
}

/// A time so many seconds from now.
fn iso(seconds: i64) -> String {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let at = i64::try_from(now.as_secs()).unwrap() + seconds;
    let days = at.div_euclid(86400);
    let of_day = at.rem_euclid(86400);
    // Days to a date of the Gregorian calendar (H. Hinnant, "chrono-compatible low-level date algorithms").
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[tokio::test]
async fn a_directory_bucket_is_read_in_a_session_that_is_opened_once_and_renewed() {
    let good = Arc::new(AtomicUsize::new(1));
    let server = express(Arc::clone(&good), 300);
    let config = StoreConfig {
        variables: Variables::only([
            ("AWS_ACCESS_KEY_ID", "AKIAKEY"),
            ("AWS_SECRET_ACCESS_KEY", "hush"),
            ("AWS_SESSION_TOKEN", "from-sts"),
        ]),
        ..signed(&server)
    };
    let source = open("s3://data--usw2-az1--x-s3/k", &config);
    for _ in 0..3 {
        read_source(&server, &source, 0, &[4096])
            .await
            .assert_bytes(0, 1000);
    }
    // It ends early.
    good.store(2, Ordering::Relaxed);
    let outcome = read_source(&server, &source, 0, &[4096]).await;
    outcome.assert_bytes(0, 1000);
    let sessions: Vec<usize> = (0..outcome.requests.len())
        .filter(|at| outcome.requests[*at].1.contains("?session "))
        .collect();
    assert_eq!(sessions, [0, 5]);
    assert_eq!(outcome.header(0, "x-amz-security-token"), Some("from-sts"));
    assert!(
        outcome
            .header(0, "authorization")
            .unwrap()
            .contains("/s3express/")
    );
    assert_eq!(outcome.header(1, "x-amz-security-token"), None);
}

#[tokio::test]
async fn a_session_is_renewed_before_its_end() {
    // Each has less life than it takes to be used twice.
    let good = Arc::new(AtomicUsize::new(1));
    let server = express(Arc::clone(&good), 30);
    let source = open("s3://data--usw2-az1--x-s3/k", &signed(&server));
    read_source(&server, &source, 0, &[4096])
        .await
        .assert_bytes(0, 1000);
    good.store(2, Ordering::Relaxed);
    let outcome = read_source(&server, &source, 0, &[4096]).await;
    outcome.assert_bytes(0, 1000);
    assert!(outcome.retries().is_empty());
}

#[tokio::test]
async fn a_directory_bucket_is_read_without_a_session_where_that_is_asked_for() {
    let server = serve(vec![whole()]);
    let config = StoreConfig {
        variables: Variables::only([
            ("AWS_ACCESS_KEY_ID", "AKIAKEY"),
            ("AWS_SECRET_ACCESS_KEY", "hush"),
            ("AWS_SESSION_TOKEN", "from-sts"),
            ("AWS_S3_DISABLE_EXPRESS_SESSION_AUTH", "true"),
        ]),
        ..signed(&server)
    };
    let outcome = read_url(&server, &config, "s3://data--usw2-az1--x-s3/k").await;
    outcome.assert_bytes(0, 1000);
    assert_eq!(outcome.header(0, "x-amz-security-token"), Some("from-sts"));
}
