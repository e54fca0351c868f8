//! A file that is read and written past the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use crate::ledger::OpenHop;
use crate::route::Hop;

/// What memory, offset and length have to be a multiple of: what disks ask for today, and tar files have anyway.
pub(super) const SECTOR: usize = 512;

/// The bytes of one object, at the offsets that they have in it.
#[derive(Debug)]
pub(super) struct DataFile {
    /// None where the file system does not take O_DIRECT.
    direct: Option<File>,
    /// For what does not lie on sector borders.
    plain: File,
}

impl DataFile {
    /// Opens the file at `path`, which is made where it is not there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let plain = options.open(path)?;
        let direct = options.custom_flags(libc::O_DIRECT).open(path);
        let direct = match direct {
            Ok(file) => Some(file),
            // tmpfs, and file systems over a network.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { direct, plain })
    }

    /// Whether the page cache is passed by.
    pub(super) fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Reads all of `into` from `offset` on.
    ///
    /// # Copies
    ///
    /// None on sector borders (`read_direct`); else, and for the last bytes of what ends between two, one by the kernel (`read`).
    pub(super) fn read(&self, hop: &OpenHop, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let whole = self.whole_sectors(offset, into.as_ptr(), into.len());
        let (front, back) = into.split_at_mut(whole);
        if let Some(file) = self.direct.as_ref().filter(|_| whole > 0) {
            let began = Instant::now();
            read_sectors(file, offset, front)?;
            hop.beside(Hop::ReadDirect).moved(whole, began.elapsed());
        }
        if !back.is_empty() {
            let began = Instant::now();
            self.plain.read_exact_at(back, offset + whole as u64)?;
            hop.beside(Hop::Read).moved(back.len(), began.elapsed());
        }
        hop.ledger().disk_read(into.len() as u64);
        Ok(())
    }

    /// Writes all of `bytes` from `offset` on.
    ///
    /// # Copies
    ///
    /// As [`DataFile::read`]: `write_direct`, and `write`.
    pub(super) fn write(&self, hop: &OpenHop, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let whole = self.whole_sectors(offset, bytes.as_ptr(), bytes.len());
        let (front, back) = bytes.split_at(whole);
        if let Some(file) = self.direct.as_ref().filter(|_| whole > 0) {
            let began = Instant::now();
            file.write_all_at(front, offset)?;
            hop.beside(Hop::WriteDirect).moved(whole, began.elapsed());
        }
        if !back.is_empty() {
            let began = Instant::now();
            self.plain.write_all_at(back, offset + whole as u64)?;
            hop.beside(Hop::Write).moved(back.len(), began.elapsed());
        }
        hop.ledger().disk_written(bytes.len() as u64);
        Ok(())
    }

    /// How many of the bytes lie in whole sectors, of the file and of memory alike, from their beginning on.
    fn whole_sectors(&self, offset: u64, memory: *const u8, len: usize) -> usize {
        let is_aligned =
            offset.is_multiple_of(SECTOR as u64) && memory.addr().is_multiple_of(SECTOR);
        if is_aligned && self.is_direct() {
            len / SECTOR * SECTOR
        } else {
            0
        }
    }
}

/// Fills `into`, which has whole sectors. The standard library's way would go on behind the end of a file that ends in a sector, and
/// hear that it may not.
fn read_sectors(file: &File, offset: u64, into: &mut [u8]) -> io::Result<()> {
    let mut at = 0;
    while at < into.len() {
        match file.read_at(&mut into[at..], offset + at as u64) {
            Ok(read) if read > 0 && read.is_multiple_of(SECTOR) => at += read,
            Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Slab;
    use crate::ledger::Ledger;

    fn bytes_of(hop: &OpenHop, of: Hop) -> u64 {
        let report = hop.ledger().report();
        let hops = report.hops.iter().filter(|line| line.hop == of.spec().name);
        hops.map(|line| line.bytes).sum()
    }

    #[test]
    fn whole_sectors_pass_the_page_cache_and_any_bytes_come_back() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file = DataFile::open(&folder.path().join("data")).unwrap();
        let hop = Ledger::unread().hop(Hop::Recv);
        let mut slab = Slab::heap(20_000);
        for (at, byte) in slab.iter_mut().enumerate() {
            *byte = u8::try_from(at % 251).unwrap();
        }
        let begin = slab.as_ptr().align_offset(SECTOR);
        let aligned = &slab[begin..begin + 10_000];
        file.write(&hop, 1024, aligned).unwrap();
        file.write(&hop, 100_003, aligned).unwrap();
        let mut back = Slab::heap(20_000);
        let begin = back.as_ptr().align_offset(SECTOR);
        for (offset, len) in [(1024, 10_000), (100_003, 10_000), (1536, 7), (1024, 512)] {
            let into = &mut back[begin..begin + len];
            into.fill(0);
            file.read(&hop, offset, into).unwrap();
            let from = usize::try_from(if offset == 1536 { 512 } else { 0_u64 }).unwrap();
            assert!(*into == aligned[from..from + len], "{offset}");
        }
        if file.is_direct() {
            assert_eq!(bytes_of(&hop, Hop::WriteDirect), 9728);
            assert_eq!(bytes_of(&hop, Hop::Write), 272 + 10_000);
            assert_eq!(bytes_of(&hop, Hop::ReadDirect), 9728 + 512);
        }
        let short = file.read(&hop, 200_000, &mut back[..10]).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
    }
}
