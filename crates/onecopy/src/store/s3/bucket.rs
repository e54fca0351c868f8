//! What stands where a bucket's name is expected: a bucket, a directory bucket, an access point.

use super::aws;
use crate::error::{Error, ErrorKind, Result};

/// What objects are asked of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bucket {
    /// None of them: the service itself, which lists them.
    Service,
    /// A bucket, or the alias of an access point, which is used as one.
    Plain(String),
    /// A bucket of S3 Express One Zone, `name--usw2-az1--x-s3`.
    Directory { name: String, zone: String },
    /// An access point, named by its ARN.
    AccessPoint(AccessPoint),
}

/// The parts of an access point's ARN that its host name is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AccessPoint {
    pub(super) name: String,
    pub(super) account: String,
    pub(super) region: String,
    pub(super) kind: AccessPointKind,
}

/// Which service an access point belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AccessPointKind {
    Ordinary,
    ObjectLambda,
    Outpost(String),
}

impl Bucket {
    /// Reads what stands between `s3://` and the key.
    pub(super) fn read(name: &str) -> Result<Self> {
        if name.starts_with("arn:") {
            return AccessPoint::read(name).map(Self::AccessPoint);
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        // S3's names have 3 to 63 characters; other stores and old buckets of us-east-1 allow more.
        let is_name = (1..=255).contains(&name.len()) && name.bytes().all(is_plain);
        if !is_name || name.bytes().all(|byte| byte == b'.') {
            return Err(bad(
                ErrorKind::InvalidInput,
                name,
                "this is no bucket name",
                "write it like s3://bucket/key: letters, digits, dots and hyphens",
            ));
        }
        if name.ends_with("--ol-s3") || name.ends_with("--op-s3") {
            return Err(bad(
                ErrorKind::Unsupported,
                name,
                "aliases of Object Lambda and Outposts access points are not understood",
                "name the access point by its ARN: s3://arn:aws:..:accesspoint/name/key",
            ));
        }
        let zone = name
            .strip_suffix("--x-s3")
            .and_then(|rest| rest.rsplit_once("--"))
            .map(|(_, zone)| zone.to_owned());
        let name = name.to_owned();
        Ok(match zone {
            Some(zone) => Self::Directory { name, zone },
            None => Self::Plain(name),
        })
    }

    /// The service that requests are signed for.
    pub(super) fn service(&self) -> &'static str {
        match self {
            Self::Service | Self::Plain(_) => "s3",
            Self::Directory { .. } => "s3express",
            Self::AccessPoint(point) => match point.kind {
                AccessPointKind::Ordinary => "s3",
                AccessPointKind::ObjectLambda => "s3-object-lambda",
                AccessPointKind::Outpost(_) => "s3-outposts",
            },
        }
    }

    /// The region that its very name tells.
    pub(super) fn region(&self) -> Option<String> {
        match self {
            Self::Service | Self::Plain(_) => None,
            Self::Directory { zone, .. } => aws::region_of_zone(zone),
            Self::AccessPoint(point) => Some(point.region.clone()),
        }
    }
}

impl AccessPoint {
    /// `arn:aws:s3:eu-west-1:123456789012:accesspoint/name`, or with colons in place of the slashes.
    fn read(arn: &str) -> Result<Self> {
        let odd = || {
            bad(
                ErrorKind::InvalidInput,
                arn,
                "this ARN names no access point",
                "write it like s3://arn:aws:s3:eu-west-1:123456789012:accesspoint/name/key",
            )
        };
        let mut parts = arn.splitn(6, ':').skip(1);
        let mut part = || parts.next().ok_or_else(odd);
        let (partition, service, region, account, resource) =
            (part()?, part()?, part()?, part()?, part()?);
        let resource: Vec<&str> = resource.split(['/', ':']).collect();
        if region.is_empty() {
            return Err(bad(
                ErrorKind::Unsupported,
                arn,
                "multi-region access points need signatures over regions (SigV4A)",
                "name the bucket, or an access point of one region",
            ));
        }
        let (kind, name) = match (service, resource.as_slice()) {
            ("s3", ["accesspoint", name]) => (AccessPointKind::Ordinary, name),
            ("s3-object-lambda", ["accesspoint", name]) => (AccessPointKind::ObjectLambda, name),
            ("s3-outposts", ["outpost", id, "accesspoint", name]) => {
                (AccessPointKind::Outpost((*id).to_owned()), name)
            }
            _ => return Err(odd()),
        };
        let is_label = |text: &str| {
            (1..=63).contains(&text.len())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        let is_outpost = match &kind {
            AccessPointKind::Outpost(id) => is_label(id),
            _ => true,
        };
        let is_whole = is_label(name) && is_label(account) && is_outpost;
        if !partition.starts_with("aws") || !aws::is_region(region) || !is_whole {
            return Err(odd());
        }
        Ok(Self {
            name: (*name).to_owned(),
            account: account.to_owned(),
            region: region.to_owned(),
            kind,
        })
    }
}

fn bad(kind: ErrorKind, name: &str, why: &str, help: &str) -> Error {
    Error::new(kind, "use the bucket", format!("{name:?}"), why).with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let plain = |name: &str| Bucket::Plain(name.to_owned());
        for name in ["b", "a.b-c_D", "point-x1y2-s3alias", "x--s3", "--x-s3"] {
            assert_eq!(Bucket::read(name).unwrap(), plain(name));
        }
        assert_eq!(
            Bucket::read("data--usw2-az1--x-s3").unwrap(),
            Bucket::Directory {
                name: "data--usw2-az1--x-s3".to_owned(),
                zone: "usw2-az1".to_owned(),
            }
        );
    }

    #[test]
    fn arns_name_access_points() {
        let point = |arn: &str| match Bucket::read(arn) {
            Ok(Bucket::AccessPoint(point)) => (point.name, point.account, point.region, point.kind),
            other => panic!("{arn}: {other:?}"),
        };
        let parts = |name: &str, region: &str, kind| {
            (name.to_owned(), "123".to_owned(), region.to_owned(), kind)
        };
        assert_eq!(
            point("arn:aws:s3:eu-west-1:123:accesspoint/ap"),
            parts("ap", "eu-west-1", AccessPointKind::Ordinary)
        );
        assert_eq!(
            point("arn:aws-cn:s3:cn-north-1:123:accesspoint:ap"),
            parts("ap", "cn-north-1", AccessPointKind::Ordinary)
        );
        assert_eq!(
            point("arn:aws:s3-object-lambda:us-east-1:123:accesspoint/ap"),
            parts("ap", "us-east-1", AccessPointKind::ObjectLambda)
        );
        assert_eq!(
            point("arn:aws:s3-outposts:us-east-1:123:outpost/op-1/accesspoint/ap"),
            parts(
                "ap",
                "us-east-1",
                AccessPointKind::Outpost("op-1".to_owned())
            )
        );
    }

    #[test]
    fn what_is_no_bucket_is_refused_with_help() {
        for name in [
            "",
            "a/b",
            "a b",
            "a\r\nx: y",
            "..",
            "b@evil",
            "b:1",
            "arn:aws:s3:x",
            "arn:aws:s3:eu-west-1:123:bucket/x",
            "arn:aws:s3:eu-west-1:123:accesspoint/a.evil",
            "arn:aws:s3:evil.com/:123:accesspoint/a",
            "arn:aws:s3:eu-west-1::accesspoint/a",
            "arn:aws:s3::123:accesspoint/x.mrap",
            "arn:evil:s3:eu-west-1:123:accesspoint/a",
            "x--ol-s3",
        ] {
            assert!(Bucket::read(name).unwrap_err().help().is_some(), "{name:?}");
        }
    }
}
