//! Where a bucket is, and how a key is written in a request.

use std::fmt::Write;
use std::net::IpAddr;

use super::super::http1::Endpoint;
use super::aws;
use super::bucket::{AccessPoint, AccessPointKind, Bucket};
use crate::config::AddressingStyle;
use crate::error::{Error, ErrorKind, Result};

/// How a configuration wants buckets to be addressed.
#[derive(Debug, Clone, Default)]
pub(super) struct Addressing {
    /// An endpoint that was given, and the path below which buckets lie there.
    pub(super) endpoint: Option<(Endpoint, String)>,
    pub(super) style: AddressingStyle,
    /// AWS's hosts that are reached over IPv6 too.
    pub(super) is_dual_stack: bool,
    /// AWS's hosts with validated cryptography.
    pub(super) is_fips: bool,
}

/// Where the requests for a bucket go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) endpoint: Endpoint,
    /// What precedes the key in a path: empty, or `/bucket`.
    pub(super) base: String,
}

impl Addressing {
    /// AWS by host name, where DNS and its certificate allow it; a given endpoint by path, which works without any
    /// DNS. As with the AWS tools.
    pub(super) fn address(&self, bucket: &Bucket, region: &str) -> Result<Address> {
        match &self.endpoint {
            Some((endpoint, prefix)) => self.at_endpoint(bucket, endpoint, prefix),
            None => Ok(self.at_aws(bucket, region)),
        }
    }

    fn at_endpoint(&self, bucket: &Bucket, endpoint: &Endpoint, prefix: &str) -> Result<Address> {
        let (name, is_virtual) = match bucket {
            Bucket::Plain(name) | Bucket::Directory { name, .. } => {
                (name.clone(), self.style == AddressingStyle::Virtual)
            }
            Bucket::Service => {
                return Ok(Address {
                    endpoint: endpoint.clone(),
                    base: prefix.to_owned(),
                });
            }
            // An access point has no path of its own.
            Bucket::AccessPoint(point) => (point_label(point), true),
        };
        if !is_virtual {
            return Ok(Address {
                endpoint: endpoint.clone(),
                base: format!("{prefix}/{name}"),
            });
        }
        if endpoint.host.parse::<IpAddr>().is_ok() {
            let why = "an IP address cannot carry the name of a bucket in front";
            return Err(
                Error::new(ErrorKind::InvalidInput, "reach", name, why).with_help(
                    "give `endpoint_url` with a host name, or say `addressing_style=path`",
                ),
            );
        }
        Ok(Address {
            endpoint: Endpoint {
                host: format!("{name}.{}", endpoint.host),
                ..endpoint.clone()
            },
            base: prefix.to_owned(),
        })
    }

    fn at_aws(&self, bucket: &Bucket, region: &str) -> Address {
        let fips = if self.is_fips { "-fips" } else { "" };
        let dual = if self.is_dual_stack { ".dualstack" } else { "" };
        let suffix = aws::suffix(region);
        let (host, base) = match bucket {
            Bucket::Service => {
                let host = format!("s3{fips}{dual}.{region}.{suffix}");
                (host, String::new())
            }
            Bucket::Plain(name) => {
                let host = format!("s3{fips}{dual}.{region}.{suffix}");
                let is_virtual = match self.style {
                    AddressingStyle::Auto => is_label(name),
                    AddressingStyle::Virtual => true,
                    AddressingStyle::Path => false,
                };
                if is_virtual {
                    (format!("{name}.{host}"), String::new())
                } else {
                    (host, format!("/{name}"))
                }
            }
            Bucket::Directory { name, zone } => {
                let host = format!("{name}.s3express{fips}-{zone}{dual}.{region}.{suffix}");
                (host, String::new())
            }
            Bucket::AccessPoint(point) => {
                let service = match &point.kind {
                    AccessPointKind::Ordinary => format!("s3-accesspoint{fips}{dual}"),
                    AccessPointKind::ObjectLambda => format!("s3-object-lambda{fips}"),
                    AccessPointKind::Outpost(id) => format!("{id}.s3-outposts{fips}{dual}"),
                };
                let host = format!("{}.{service}.{region}.{suffix}", point_label(point));
                (host, String::new())
            }
        };
        let endpoint = Endpoint {
            is_tls: true,
            host,
            port: 443,
        };
        Address { endpoint, base }
    }

    /// The same bucket in another region; none where requests must not go there: its credentials are good for an
    /// endpoint that was given and for AWS's own, within a partition.
    pub(super) fn moved(&self, bucket: &Bucket, from: &str, to: &str) -> Option<Addressing> {
        let Some((endpoint, prefix)) = &self.endpoint else {
            let is_allowed = aws::is_region(to) && aws::suffix(from) == aws::suffix(to);
            return is_allowed.then(|| self.clone());
        };
        let mut moved = self.clone();
        let host = aws::Host::read(&endpoint.host).filter(|host| host.is_bare);
        if let (Some(host), Bucket::Plain(_)) = (host, bucket) {
            // AWS's own endpoint was given, that of another region.
            if !aws::is_region(to) || aws::suffix(host.region) != aws::suffix(to) {
                return None;
            }
            let aws = Addressing {
                style: AddressingStyle::Path,
                endpoint: None,
                ..self.clone()
            };
            let endpoint = Endpoint {
                host: aws.at_aws(bucket, to).endpoint.host,
                ..endpoint.clone()
            };
            moved.endpoint = Some((endpoint, prefix.clone()));
        }
        Some(moved)
    }
}

/// Whether AWS's wildcard certificate covers it as a host name: one label, by the rules of DNS.
fn is_label(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (3..=63).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

fn point_label(point: &AccessPoint) -> String {
    format!("{}-{}", point.name, point.account)
}

/// A key as the path of a request has it: every byte but the unreserved ones and `/` encoded, once (SigV4, "UriEncode").
pub(in crate::store) fn encode_key(key: &[u8]) -> String {
    encode(key, b"-._~/")
}

/// A value as the query of a request has it.
pub(in crate::store) fn encode_value(value: &[u8]) -> String {
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

    fn given(url: &str) -> Option<(Endpoint, String)> {
        let (endpoint, rest) = Endpoint::split(url).unwrap();
        Some((endpoint, rest.trim_end_matches('/').to_owned()))
    }

    fn at(addressing: &Addressing, bucket: &str, region: &str) -> String {
        let bucket = Bucket::read(bucket).unwrap();
        let address = addressing.address(&bucket, region).unwrap();
        format!("{}{}", address.endpoint, address.base)
    }

    #[test]
    fn aws_is_addressed_by_host_where_dns_and_its_certificate_allow_it() {
        let aws = Addressing::default();
        let long = "b".repeat(64);
        for (bucket, region, wanted) in [
            ("bkt", "us-east-1", "https://bkt.s3.us-east-1.amazonaws.com"),
            ("b.c", "eu-west-1", "https://s3.eu-west-1.amazonaws.com/b.c"),
            ("B_c", "eu-west-1", "https://s3.eu-west-1.amazonaws.com/B_c"),
            ("-bc", "eu-west-1", "https://s3.eu-west-1.amazonaws.com/-bc"),
            (
                &long,
                "eu-west-1",
                &format!("https://s3.eu-west-1.amazonaws.com/{long}"),
            ),
            (
                "bkt",
                "cn-north-1",
                "https://bkt.s3.cn-north-1.amazonaws.com.cn",
            ),
            (
                "bkt",
                "us-gov-east-1",
                "https://bkt.s3.us-gov-east-1.amazonaws.com",
            ),
            (
                "ap-x-s3alias",
                "eu-west-1",
                "https://ap-x-s3alias.s3.eu-west-1.amazonaws.com",
            ),
            (
                "d--usw2-az1--x-s3",
                "us-west-2",
                "https://d--usw2-az1--x-s3.s3express-usw2-az1.us-west-2.amazonaws.com",
            ),
            (
                "arn:aws:s3:eu-west-1:123:accesspoint/ap",
                "eu-west-1",
                "https://ap-123.s3-accesspoint.eu-west-1.amazonaws.com",
            ),
            (
                "arn:aws:s3-object-lambda:eu-west-1:123:accesspoint/ap",
                "eu-west-1",
                "https://ap-123.s3-object-lambda.eu-west-1.amazonaws.com",
            ),
            (
                "arn:aws:s3-outposts:eu-west-1:123:outpost/op-1/accesspoint/ap",
                "eu-west-1",
                "https://ap-123.op-1.s3-outposts.eu-west-1.amazonaws.com",
            ),
        ] {
            assert_eq!(at(&aws, bucket, region), wanted);
        }
    }

    #[test]
    fn styles_and_kinds_of_hosts_are_a_choice() {
        let with = |style, is_dual_stack, is_fips| Addressing {
            endpoint: None,
            style,
            is_dual_stack,
            is_fips,
        };
        use AddressingStyle::{Auto, Path, Virtual};
        for (addressing, bucket, wanted) in [
            (
                with(Path, false, false),
                "bkt",
                "https://s3.eu-west-1.amazonaws.com/bkt",
            ),
            (
                with(Virtual, false, false),
                "b.c",
                "https://b.c.s3.eu-west-1.amazonaws.com",
            ),
            (
                with(Auto, true, false),
                "bkt",
                "https://bkt.s3.dualstack.eu-west-1.amazonaws.com",
            ),
            (
                with(Auto, true, true),
                "arn:aws:s3:eu-west-1:1:accesspoint/ap",
                "https://ap-1.s3-accesspoint-fips.dualstack.eu-west-1.amazonaws.com",
            ),
        ] {
            assert_eq!(at(&addressing, bucket, "eu-west-1"), wanted);
        }
    }

    #[test]
    fn a_given_endpoint_is_addressed_by_path_unless_told_otherwise() {
        let mut custom = Addressing {
            endpoint: given("https://gate:9/s3/"),
            ..Addressing::default()
        };
        assert_eq!(at(&custom, "b", "x"), "https://gate:9/s3/b");
        assert_eq!(
            at(&custom, "arn:aws:s3:eu-west-1:1:accesspoint/ap", "x"),
            "https://ap-1.gate:9/s3"
        );
        custom.style = AddressingStyle::Virtual;
        assert_eq!(at(&custom, "b", "x"), "https://b.gate:9/s3");
        custom.endpoint = given("http://127.0.0.1:9000");
        let bucket = Bucket::read("b").unwrap();
        let error = custom.address(&bucket, "x").unwrap_err();
        assert!(error.help().unwrap().contains("`addressing_style=path`"));
    }

    #[test]
    fn a_bucket_moves_within_aws_or_stays_where_it_was_looked_for() {
        let moved = |endpoint: Option<&str>, from, to: &str| {
            let addressing = Addressing {
                endpoint: endpoint.and_then(given),
                ..Addressing::default()
            };
            let bucket = Bucket::read("bkt").unwrap();
            let moved = addressing.moved(&bucket, from, to)?;
            Some(at(&moved, "bkt", to))
        };
        let aws = |text: &str| Some(text.to_owned());
        assert_eq!(
            moved(None, "us-east-1", "eu-west-1"),
            aws("https://bkt.s3.eu-west-1.amazonaws.com")
        );
        let one = Some("https://s3.us-east-1.amazonaws.com");
        assert_eq!(
            moved(one, "us-east-1", "eu-west-1"),
            aws("https://s3.eu-west-1.amazonaws.com/bkt")
        );
        let own = Some("http://127.0.0.1:9000");
        assert_eq!(
            moved(own, "us-east-1", "mine"),
            aws("http://127.0.0.1:9000/bkt")
        );
        for (endpoint, to) in [
            (None, "cn-north-1"),
            (one, "cn-north-1"),
            (None, "evil.com/"),
            (None, ""),
            (one, "x@evil.com"),
        ] {
            assert_eq!(moved(endpoint, "us-east-1", to), None, "{to}");
        }
    }

    #[test]
    fn keys_are_encoded_once_and_never_normalised() {
        assert_eq!(encode_key(b"a//b/../c"), "a//b/../c");
        assert_eq!(
            encode_key(b"a b+c%20~'*[]?#&=;"),
            "a%20b%2Bc%2520~%27%2A%5B%5D%3F%23%26%3D%3B"
        );
        assert_eq!(encode_key("ü\n".as_bytes()), "%C3%BC%0A");
        assert_eq!(encode_key(b"\xff\x00\x80"), "%FF%00%80");
        assert_eq!(encode_value(b"a/b"), "a%2Fb");
    }
}
