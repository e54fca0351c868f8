//! Which data these are.

use crate::sample::index::file_name;
use crate::store::Source;

/// The sources as one number: what they are called within their folder, and how long they are.
pub(super) fn dataset_of(sources: &[Source]) -> u64 {
    let mut all = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme);
    for Source { object, .. } in sources {
        all.update(file_name(&object.url).as_bytes());
        all.update(&[0]);
        all.update(&object.len_bytes.unwrap_or(0).to_le_bytes());
    }
    all.finalize()
}
