//! Files that are small by their nature (certificates, profiles, keys), read with a limit all the same: a name may be that
//! of a device without an end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// No bundle of certificates comes near.
const MOST_BYTES: u64 = 16 << 20;

/// Reads the whole of a small file; one that is longer than 16 MiB is an error.
#[expect(clippy::disallowed_methods, reason = "a file of settings, not payload")]
pub(super) fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(MOST_BYTES + 1);
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let why = "it is longer than 16 MiB: this is another file than is meant";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// The same as text.
pub(super) fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_not_text| io::Error::new(io::ErrorKind::InvalidData, "it is no text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_an_end_is_an_error_and_a_file_is_read() {
        let error = read("/dev/zero").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "key = 1\n").unwrap();
        assert_eq!(read_text(file.path()).unwrap(), "key = 1\n");
        std::fs::write(file.path(), [0xff]).unwrap();
        let error = read_text(file.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
