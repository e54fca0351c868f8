//! Which data these are.

use crate::sample::index::file_name;
use crate::sample::order::Choice;
use crate::store::Source;

/// The sources as one number: what they are called within their folder, how long they are, and which of their samples are read.
pub(super) fn dataset_of(sources: &[Source], choices: &[Choice]) -> u64 {
    let mut all = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme);
    for Source { object, .. } in sources {
        all.update(file_name(&object.url).as_bytes());
        all.update(&[0]);
        all.update(&object.len_bytes.unwrap_or(0).to_le_bytes());
    }
    choices
        .iter()
        .for_each(|choice| choice.tell(|bytes| all.update(bytes)));
    all.finalize()
}
