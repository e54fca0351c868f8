//! Checksums of files that were there before the server was: computed once, and kept in a file.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use s3s::checksum::ChecksumHasher;
use s3s::dto::Checksum;

use super::checksums::Checksums;

/// Read from a file at once: it stays in the cache while it is summed up.
const PIECE_BYTES: usize = 256 << 10;

/// The CRC64NVME of files, by a mark that changes whenever the file does.
///
/// The first one who asks for that of a file waits until all of it is read. The file it is kept in
/// has one line for each, `MARK SUM`, so a benchmark that starts a server for each run pays once.
#[derive(Debug)]
pub(crate) struct KeptSums {
    file: PathBuf,
    /// Guards what the file holds, and the writing of it.
    known: Mutex<HashMap<String, String>>,
}

impl KeptSums {
    /// Reads what `file` holds; it need not be there yet.
    pub(crate) fn new(file: &Path) -> io::Result<Self> {
        let text = match std::fs::read_to_string(file) {
            Err(e) if e.kind() == ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let known = text.lines().filter_map(|line| line.split_once(' '));
        let known = known.map(|(mark, sum)| (mark.to_owned(), sum.to_owned()));
        Ok(Self {
            file: file.to_owned(),
            known: Mutex::new(known.collect()),
        })
    }

    /// The checksum of the file at `path`, whose mark is `mark`.
    pub(crate) fn of(&self, mark: &str, path: &Path) -> io::Result<Checksums> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sum) = known.get(mark) {
            return Ok(checksums(sum));
        }
        let sum = computed(path)?;
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file)?;
        file.write_all(format!("{mark} {sum}\n").as_bytes())?;
        known.insert(mark.to_owned(), sum.clone());
        Ok(checksums(&sum))
    }
}

fn checksums(sum: &str) -> Checksums {
    Checksums(Checksum {
        checksum_crc64nvme: Some(sum.to_owned()),
        ..Default::default()
    })
}

fn computed(path: &Path) -> io::Result<String> {
    let mut hasher = ChecksumHasher {
        crc64nvme: Some(s3s::crypto::Crc64Nvme::default()),
        ..Default::default()
    };
    let mut file = File::open(path)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            len => hasher.update(&piece[..len]),
        }
    }
    let sum = hasher.finalize().checksum_crc64nvme;
    sum.ok_or_else(|| io::Error::other("no checksum came of it"))
}
