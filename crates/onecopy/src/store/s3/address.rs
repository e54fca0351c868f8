//! Where a bucket is, and how a key is written in a request.

use std::fmt::Write;

use super::super::http1::Endpoint;
use crate::error::{Error, ErrorKind, Result};

/// Where the requests for a bucket go.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) endpoint: Endpoint,
    /// What precedes the key in a path: empty, or `/bucket`.
    pub(super) base: String,
}

impl Address {
    /// AWS by host name, where the certificate allows it; everything else by path, which works without any DNS.
    pub(super) fn of(
        bucket: &str,
        endpoint: Option<&(Endpoint, String)>,
        region: &str,
    ) -> Result<Self> {
        check_bucket(bucket)?;
        if let Some((endpoint, prefix)) = endpoint {
            let base = format!("{prefix}/{bucket}");
            return Ok(Self {
                endpoint: endpoint.clone(),
                base,
            });
        }
        let host = aws_host(region);
        // The wildcard certificate of AWS covers one label: a dotted bucket needs its name in the path.
        let (host, base) = if bucket.contains('.') || bucket.contains('_') {
            (host, format!("/{bucket}"))
        } else {
            (format!("{bucket}.{host}"), String::new())
        };
        Ok(Self {
            endpoint: at_aws(host),
            base,
        })
    }

    /// Where requests go that are for no bucket.
    pub(super) fn service(endpoint: Option<&(Endpoint, String)>, region: &str) -> Self {
        let (endpoint, base) = endpoint
            .cloned()
            .unwrap_or_else(|| (at_aws(aws_host(region)), String::new()));
        Self { endpoint, base }
    }
}

fn aws_host(region: &str) -> String {
    let domain = if region.starts_with("cn-") {
        "amazonaws.com.cn"
    } else {
        "amazonaws.com"
    };
    format!("s3.{region}.{domain}")
}

fn at_aws(host: String) -> Endpoint {
    Endpoint {
        is_tls: true,
        host,
        port: 443,
    }
}

fn check_bucket(bucket: &str) -> Result<()> {
    let bad = |kind, why: &str, help: &str| {
        Err(Error::new(kind, "use the bucket", format!("{bucket:?}"), why).with_help(help))
    };
    if bucket.starts_with("arn:") {
        return bad(
            ErrorKind::Unsupported,
            "access points are not supported yet",
            "name the bucket itself",
        );
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if bucket.is_empty() || bucket.len() > 255 || !bucket.bytes().all(is_plain) {
        return bad(
            ErrorKind::InvalidInput,
            "this is no bucket name",
            "write it like s3://bucket/key: letters, digits, dots and hyphens",
        );
    }
    if bucket.bytes().all(|byte| byte == b'.') {
        return bad(
            ErrorKind::InvalidInput,
            "this is no bucket name",
            "write it like s3://bucket/key",
        );
    }
    Ok(())
}

/// A key as the path of a request has it: every byte but the unreserved ones and `/` encoded, once (SigV4, "UriEncode").
pub(super) fn encode_key(key: &[u8]) -> String {
    encode(key, b"-._~/")
}

/// A value as the query of a request has it.
pub(super) fn encode_value(value: &[u8]) -> String {
    encode(value, b"-._~")
}

fn encode(bytes: &[u8], plain: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 16);
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || plain.contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing to a String cannot fail.
            let _always_ok = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aws_is_addressed_by_host_and_all_else_by_path() {
        let at = |bucket, endpoint: Option<&str>, region| {
            let endpoint = endpoint.map(|url| {
                let (endpoint, rest) = Endpoint::split(url).unwrap();
                (endpoint, rest.trim_end_matches('/').to_owned())
            });
            let address = Address::of(bucket, endpoint.as_ref(), region).unwrap();
            format!("{}{}", address.endpoint, address.base)
        };
        assert_eq!(
            at("b", None, "us-east-1"),
            "https://b.s3.us-east-1.amazonaws.com"
        );
        assert_eq!(
            at("b.c", None, "eu-west-1"),
            "https://s3.eu-west-1.amazonaws.com/b.c"
        );
        assert_eq!(
            at("b", None, "cn-north-1"),
            "https://b.s3.cn-north-1.amazonaws.com.cn"
        );
        assert_eq!(
            at("b", Some("http://127.0.0.1:9000"), "x"),
            "http://127.0.0.1:9000/b"
        );
        assert_eq!(at("b", Some("https://gate/s3/"), "x"), "https://gate/s3/b");
    }

    #[test]
    fn keys_are_encoded_once_and_never_normalised() {
        assert_eq!(encode_key(b"a//b/../c"), "a//b/../c");
        assert_eq!(
            encode_key(b"a b+c%20~'*[]?#&=;"),
            "a%20b%2Bc%2520~%27%2A%5B%5D%3F%23%26%3D%3B"
        );
        assert_eq!(encode_key("ü\n".as_bytes()), "%C3%BC%0A");
        assert_eq!(encode_value(b"a/b"), "a%2Fb");
    }

    #[test]
    fn odd_buckets_are_refused() {
        for bucket in [
            "",
            "a/b",
            "a b",
            "a\r\nx: y",
            "..",
            "b@evil",
            "arn:aws:s3:x",
        ] {
            assert!(
                Address::of(bucket, None, "us-east-1").is_err(),
                "{bucket:?}"
            );
        }
    }
}
