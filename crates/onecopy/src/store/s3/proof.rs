//! How a body is vouched for on its way to the store, and how long sending it kept a core busy.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::{Duration, Instant};

use md5::{Digest, Md5};
use reqsign_core::hash::{base64_encode, hex_sha256};

use super::super::Part;
use super::super::checksum::Sum;

/// What vouches for a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// A SHA-256 that is part of the signature.
    Sha256,
    /// A CRC64NVME that the store checks and keeps with the object.
    Crc64Nvme,
    /// The connection itself.
    Tls,
}

/// In hexadecimal digits, as a signature wants it.
pub(super) fn sha256(body: &[u8]) -> String {
    hex_sha256(body)
}

/// In base64, as `Content-MD5` wants it.
pub(super) fn md5(body: &[u8]) -> String {
    base64_encode(&Md5::digest(body))
}

/// The CRC64NVME of parts put together, where each has one.
pub(super) fn whole(parts: &[Part]) -> Option<Sum> {
    let mut sums = parts.iter().map(|part| part.crc64nvme.as_ref());
    let first = sums.next()??.clone();
    sums.try_fold(first, |whole, next| whole.joined(next?))
}

/// Runs `work`, and says how long it kept a core busy: system calls and encryption, and no waiting.
pub(super) async fn busy<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let mut work = pin!(work);
    let mut busy = Duration::ZERO;
    let done = poll_fn(|context| {
        let start = Instant::now();
        let polled = work.as_mut().poll(context);
        busy += start.elapsed();
        polled
    })
    .await;
    (done, busy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ETag;
    use crate::store::checksum::Algorithm;

    #[test]
    fn digests_are_written_as_the_service_writes_them() {
        assert!(sha256(b"").starts_with("e3b0c44298fc1c14"));
        assert_eq!(md5(b""), "1B2M2Y8AsgTpgAmY7PhCfg==");
    }

    #[test]
    fn parts_put_together_have_the_checksum_of_the_whole() {
        let part = |number, text: &[u8], is_known: bool| Part {
            number,
            etag: ETag("x".into()),
            len_bytes: text.len() as u64,
            crc64nvme: is_known.then(|| Sum::of(Algorithm::Crc64Nvme, text)),
        };
        let parts = [
            part(1, b"1234", true),
            part(2, b"", true),
            part(3, b"56789", true),
        ];
        // The check value of CRC-64/NVME.
        assert_eq!(whole(&parts).unwrap().base64(), "rosUhgp5mIg=");
        assert!(whole(&[part(1, b"1", true), part(2, b"2", false)]).is_none());
        assert!(whole(&[part(1, b"1", false), part(2, b"2", true)]).is_none());
        assert!(whole(&[]).is_none());
    }
}
