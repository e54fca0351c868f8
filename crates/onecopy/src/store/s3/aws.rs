//! How AWS names its hosts: partitions, regions, zones.

/// The DNS suffixes of the partitions, by what their regions begin with (botocore's `partitions.json`).
const PARTITIONS: [(&str, &str); 6] = [
    ("cn-", "amazonaws.com.cn"),
    ("us-iso-", "c2s.ic.gov"),
    ("us-isob-", "sc2s.sgov.gov"),
    ("us-isof-", "csp.hci.ic.gov"),
    ("eu-isoe-", "cloud.adc-e.uk"),
    ("eusc-", "amazonaws.eu"),
];

/// The suffix of all others, GovCloud among them.
const COMMERCIAL: &str = "amazonaws.com";

/// The DNS suffix of the partition that `region` belongs to.
pub(super) fn suffix(region: &str) -> &'static str {
    PARTITIONS
        .iter()
        .find(|(start, _)| region.starts_with(start))
        .map_or(COMMERCIAL, |(_, suffix)| suffix)
}

/// Whether `text` can be a region in a host name of AWS, so that no odd answer can lead anywhere else.
pub(super) fn is_region(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte != b'-');
    text.len() <= 32
        && text.bytes().all(is_plain)
        && is_end(text.bytes().next())
        && is_end(text.bytes().last())
}

/// What the name of one of S3's own hosts tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Host<'a> {
    pub(super) region: &'a str,
    /// Whether nothing stands before it: no bucket, no access point.
    pub(super) is_bare: bool,
}

impl<'a> Host<'a> {
    /// Reads `s3.eu-west-1.amazonaws.com`, `b.s3.dualstack.eu-west-1.amazonaws.com`, `b.s3-eu-west-1.amazonaws.com`,
    /// `s3.amazonaws.com`; none for what is no host of S3.
    pub(super) fn read(host: &'a str) -> Option<Self> {
        let suffixes = PARTITIONS.iter().map(|(_, suffix)| *suffix);
        let labels = suffixes
            .chain([COMMERCIAL])
            .find_map(|suffix| host.strip_suffix(suffix)?.strip_suffix('.'))?;
        let (before, last) = labels.rsplit_once('.').unwrap_or(("", labels));
        let is_service = |label: &str| label == "s3" || label == "s3-fips";
        if is_service(last) {
            // The name from before there were regions.
            return Some(Self {
                region: "us-east-1",
                is_bare: before.is_empty(),
            });
        }
        if let Some(region) = last.strip_prefix("s3-").filter(|text| is_region(text)) {
            return Some(Self {
                region,
                is_bare: before.is_empty(),
            });
        }
        let before = before.strip_suffix(".dualstack").unwrap_or(before);
        let (bucket, service) = before.rsplit_once('.').unwrap_or(("", before));
        (is_service(service) && is_region(last)).then_some(Self {
            region: last,
            is_bare: bucket.is_empty(),
        })
    }
}

/// The region of a zone: `usw2-az1` lies in us-west-2, `apne1-az4` in ap-northeast-1, a local zone such as
/// `usw2-lax1-az1` in us-west-2. None for a name of another make.
pub(super) fn region_of_zone(zone: &str) -> Option<String> {
    let name = zone.split('-').next()?;
    let number = name.find(|c: char| c.is_ascii_digit())?;
    let (letters, number) = name.split_at(number);
    let (area, direction) = letters.split_at_checked(2)?;
    let (gov, direction) = match direction.strip_prefix('g') {
        Some(rest) => ("gov-", rest),
        None => ("", direction),
    };
    let direction = match direction {
        "n" => "north",
        "s" => "south",
        "e" => "east",
        "w" => "west",
        "c" => "central",
        "ne" => "northeast",
        "nw" => "northwest",
        "se" => "southeast",
        "sw" => "southwest",
        _ => return None,
    };
    let region = format!("{area}-{gov}{direction}-{number}");
    is_region(&region).then_some(region)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_has_its_suffix() {
        for (region, wanted) in [
            ("us-east-1", "amazonaws.com"),
            ("us-gov-west-1", "amazonaws.com"),
            ("cn-northwest-1", "amazonaws.com.cn"),
            ("us-iso-east-1", "c2s.ic.gov"),
            ("us-isob-east-1", "sc2s.sgov.gov"),
            ("eusc-de-east-1", "amazonaws.eu"),
        ] {
            assert_eq!(suffix(region), wanted, "{region}");
        }
    }

    #[test]
    fn hosts_of_s3_are_read_and_all_others_are_none() {
        let read = |host| Host::read(host).map(|host| (host.region, host.is_bare));
        for (host, region, is_bare) in [
            ("s3.amazonaws.com", "us-east-1", true),
            ("b.s3.amazonaws.com", "us-east-1", false),
            ("s3.eu-west-1.amazonaws.com", "eu-west-1", true),
            ("a.b.s3.eu-west-1.amazonaws.com", "eu-west-1", false),
            ("b.s3-us-west-2.amazonaws.com", "us-west-2", false),
            ("s3-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1", true),
            ("s3.dualstack.ap-south-1.amazonaws.com", "ap-south-1", true),
            ("b.s3.cn-north-1.amazonaws.com.cn", "cn-north-1", false),
        ] {
            assert_eq!(read(host), Some((region, is_bare)), "{host}");
        }
        for host in [
            "amazonaws.com",
            "evil.com",
            "s3.eu-west-1.amazonaws.com.evil.com",
            "s3.eu-west-1.evilamazonaws.com",
            "sqs.eu-west-1.amazonaws.com",
            "s3.-.amazonaws.com",
            "",
        ] {
            assert_eq!(read(host), None, "{host}");
        }
    }

    #[test]
    fn zones_tell_their_region() {
        for (zone, region) in [
            ("use1-az4", Some("us-east-1")),
            ("usw2-az1", Some("us-west-2")),
            ("apne1-az4", Some("ap-northeast-1")),
            ("aps1-az1", Some("ap-south-1")),
            ("euc1-az2", Some("eu-central-1")),
            ("usgw1-az1", Some("us-gov-west-1")),
            ("usw2-lax1-az1", Some("us-west-2")),
            ("az1", None),
            ("", None),
            ("ü1-az1", None),
        ] {
            assert_eq!(region_of_zone(zone).as_deref(), region, "{zone}");
        }
    }
}
