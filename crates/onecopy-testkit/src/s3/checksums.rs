//! The additional checksums of S3: claimed by a client, checked, kept, and told again.

use http::HeaderMap;
use s3s::checksum::ChecksumHasher;
use s3s::dto::Checksum;
use s3s::{S3Result, s3_error};

/// Checksums of a whole object, in base64 as S3 writes them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checksums(pub(crate) Checksum);

impl Checksums {
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == Checksum::default()
    }

    /// Computes the checksum that S3 gives to every new object of its own accord.
    pub(crate) fn of_own_accord(bytes: &[u8]) -> Self {
        let mut hasher = ChecksumHasher {
            crc64nvme: Some(s3s::crypto::Crc64Nvme::default()),
            ..Default::default()
        };
        hasher.update(bytes);
        Self(hasher.finalize())
    }

    /// Checks what the headers (and trailers) claim of a body; what they do not name is not kept.
    pub(crate) fn check(claims: &[&HeaderMap], bytes: &[u8]) -> S3Result<Self> {
        let claimed = |name: &str| {
            let name = format!("x-amz-checksum-{name}");
            claims
                .iter()
                .find_map(|map| map.get(&name)?.to_str().ok().map(str::to_owned))
        };
        let claimed = Checksum {
            checksum_crc32: claimed("crc32"),
            checksum_crc32c: claimed("crc32c"),
            checksum_crc64nvme: claimed("crc64nvme"),
            checksum_sha1: claimed("sha1"),
            checksum_sha256: claimed("sha256"),
            ..Default::default()
        };
        let mut hasher = ChecksumHasher {
            crc32: claimed.checksum_crc32.as_ref().map(|_| Default::default()),
            crc32c: claimed.checksum_crc32c.as_ref().map(|_| Default::default()),
            crc64nvme: claimed
                .checksum_crc64nvme
                .as_ref()
                .map(|_| Default::default()),
            sha1: claimed.checksum_sha1.as_ref().map(|_| Default::default()),
            sha256: claimed.checksum_sha256.as_ref().map(|_| Default::default()),
        };
        hasher.update(bytes);
        if hasher.finalize() != claimed {
            return Err(s3_error!(
                BadDigest,
                "the body does not have the checksum that was claimed"
            ));
        }
        Ok(Self(claimed))
    }
}
