//! Files of this machine, read and written from slabs: past the page cache where the file system allows it.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Instant;

use nix::fcntl::OFlag;
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};

use crate::buffer::Slab;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::route::Hop;
use crate::size::{MIB, PAGE, to_usize, whole_pages};
use crate::sync::{AtomicBool, Ordering};

/// Files from this size on go past the page cache. Smaller ones fit one write, which the kernel puts on the disk when it
/// suits it; past the page cache every one of them would wait for the disk.
pub(super) const DIRECT_FROM: u64 = 8 * MIB as u64;

/// What identifies the state of a file: one that is written while it is read shows another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    pub(super) len_bytes: u64,
    pub(super) modified_unix: i64,
    modified_nanos: i64,
}

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not an ordinary file"));
        }
        Ok(Self {
            inode: metadata.ino(),
            len_bytes: metadata.len(),
            modified_unix: metadata.mtime(),
            modified_nanos: metadata.mtime_nsec(),
        })
    }
}

/// Opens `name` once more for O_DIRECT, where the file system takes that.
pub(super) fn open_direct(file: &File, flags: OFlag) -> Option<File> {
    use std::os::fd::AsRawFd;
    // By the descriptor and not by its name: whatever is called that by now, it is the same file.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = flags | OFlag::O_DIRECT | OFlag::O_CLOEXEC;
    let fd = nix::fcntl::open(path.as_str(), flags, nix::sys::stat::Mode::empty()).ok()?;
    Some(File::from(fd))
}

/// A file that is read.
#[derive(Debug)]
pub(super) struct Input {
    file: File,
    direct: Option<File>,
    /// Whether O_DIRECT was refused by a read: some file systems take the flag and not the read.
    is_refused: AtomicBool,
    pub(super) stamp: Stamp,
    shown: String,
}

impl Input {
    /// Opens the file at `path`.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let shown = path.to_string_lossy().into_owned();
        let fail = |error| Error::io("read", &shown, error);
        // Asked before opening: the opening of a pipe would wait for a writer.
        if !std::fs::metadata(path).map_err(fail)?.is_file() {
            let why = "it is not an ordinary file";
            return Err(Error::new(ErrorKind::InvalidInput, "read", shown, why));
        }
        let file = File::open(path).map_err(fail)?;
        let stamp = Stamp::of(&file).map_err(fail)?;
        let direct = if stamp.len_bytes >= DIRECT_FROM {
            open_direct(&file, OFlag::O_RDONLY)
        } else {
            None
        };
        Ok(Self {
            file,
            direct,
            is_refused: AtomicBool::new(false),
            stamp,
            shown,
        })
    }

    /// Whether bytes come past the page cache.
    pub(super) fn is_direct(&self) -> bool {
        self.direct.is_some() && !self.is_refused.load(Ordering::Relaxed)
    }

    /// Reads `want` bytes from `offset` on, a multiple of the page size, to the front of `slab`, which holds them
    /// rounded up to whole pages.
    ///
    /// # Copies
    ///
    /// None by a CPU past the page cache; one in the kernel through it.
    pub(super) fn read(
        &self,
        hop: &OpenHop,
        slab: &mut Slab,
        offset: u64,
        want: usize,
    ) -> Result<()> {
        let mut at = 0;
        if let Some(direct) = &self.direct
            && !self.is_refused.load(Ordering::Relaxed)
        {
            let hop = hop.beside(Hop::ReadDirect);
            let whole = whole_pages(want);
            match read_all(direct, &mut slab[..whole], offset, PAGE, want) {
                Ok((read, busy)) => {
                    at = read.min(want);
                    hop.moved(at, busy);
                    hop.ledger().disk_read(at as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.is_refused.store(true, Ordering::Relaxed);
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
        if at < want {
            let hop = hop.beside(Hop::Read);
            let from = offset + at as u64;
            let rest = &mut slab[at..want];
            let len = rest.len();
            let read = read_all(&self.file, rest, from, 1, len);
            let (read, busy) = read.map_err(|error| self.failed(error))?;
            hop.moved(read, busy);
            hop.ledger().disk_read(read as u64);
            at += read;
        }
        if at < want {
            return Err(self.changed("it became shorter while it was read"));
        }
        Ok(())
    }

    /// `Changed` where the file is not as it was when it was opened.
    pub(super) fn check(&self) -> Result<()> {
        let now = Stamp::of(&self.file).map_err(|error| self.failed(error))?;
        if now != self.stamp {
            return Err(self.changed("it was written while it was read"));
        }
        Ok(())
    }

    fn changed(&self, why: &str) -> Error {
        Error::new(ErrorKind::Changed, "read", &self.shown, why)
            .with_help("try again once nobody writes it")
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::io("read", &self.shown, error)
    }
}

/// Reads until `into` is full, `want` bytes are there or the file ends. A read that ends between two multiples of
/// `align` was the last one: the next would begin where none may.
fn read_all(
    file: &File,
    into: &mut [u8],
    offset: u64,
    align: usize,
    want: usize,
) -> io::Result<(usize, std::time::Duration)> {
    let start = Instant::now();
    let mut at = 0;
    while at < want {
        match file.read_at(&mut into[at..], offset + at as u64) {
            Ok(0) => break,
            Ok(read) => at += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if at % align != 0 {
            break;
        }
    }
    Ok((at, start.elapsed()))
}

/// A file that is written, from any number of threads.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) file: File,
    direct: Option<File>,
    is_refused: AtomicBool,
}

impl Output {
    /// Takes a new, empty file that will be `len` bytes long. Reserves its blocks, so that a full disk is found out
    /// before anything is fetched.
    pub(super) fn new(file: File, len: u64) -> io::Result<Self> {
        let direct = if len >= DIRECT_FROM {
            open_direct(&file, OFlag::O_WRONLY)
        } else {
            None
        };
        if len >= DIRECT_FROM {
            reserve(&file, len)?;
        }
        Ok(Self {
            file,
            direct,
            is_refused: AtomicBool::new(false),
        })
    }

    /// Whether bytes go past the page cache.
    pub(super) fn is_direct(&self) -> bool {
        self.direct.is_some() && !self.is_refused.load(Ordering::Relaxed)
    }

    /// Writes the first `len` bytes of `slab` at `offset`, a multiple of the page size. Past the page cache it writes
    /// whole pages, the last of which may reach past the end: [`Output::finish`] cuts that off.
    ///
    /// # Copies
    ///
    /// None by a CPU past the page cache; one in the kernel through it.
    pub(super) fn write(
        &self,
        hop: &OpenHop,
        slab: &[u8],
        offset: u64,
        len: usize,
    ) -> io::Result<()> {
        if let Some(direct) = &self.direct
            && !self.is_refused.load(Ordering::Relaxed)
        {
            let start = Instant::now();
            match direct.write_all_at(&slab[..whole_pages(len)], offset) {
                Ok(()) => {
                    hop.beside(Hop::WriteDirect).moved(len, start.elapsed());
                    hop.ledger().disk_written(len as u64);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.is_refused.store(true, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        let start = Instant::now();
        self.file.write_all_at(&slab[..len], offset)?;
        hop.beside(Hop::Write).moved(len, start.elapsed());
        hop.ledger().disk_written(len as u64);
        Ok(())
    }

    /// Gives the file its length and its time, and with `is_synced` waits until the disk has it.
    pub(super) fn finish(
        &self,
        len: u64,
        modified_unix: Option<i64>,
        is_synced: bool,
    ) -> io::Result<()> {
        if self.direct.is_some() {
            self.file.set_len(len)?;
        }
        if let Some(seconds) = modified_unix.and_then(system_time) {
            self.file.set_modified(seconds)?;
        }
        if is_synced {
            self.file.sync_all()?;
        }
        Ok(())
    }
}

fn system_time(unix: i64) -> Option<std::time::SystemTime> {
    let distance = std::time::Duration::from_secs(unix.unsigned_abs());
    if unix < 0 {
        std::time::UNIX_EPOCH.checked_sub(distance)
    } else {
        std::time::UNIX_EPOCH.checked_add(distance)
    }
}

/// Reserves blocks where the file system can; one that cannot finds out later that it is full.
fn reserve(file: &File, len: u64) -> io::Result<()> {
    if let Ok(found) = fstatfs(file) {
        let block = u64::try_from(found.block_size()).unwrap_or(1);
        // File systems reserve block by block, and would take what others need before they find that it is too little.
        if found.blocks() > 0 && found.blocks_free().saturating_mul(block) < len {
            return Err(io::ErrorKind::StorageFull.into());
        }
        // Memory has no blocks to lay out, and there reserving costs as much as writing.
        if found.filesystem_type() == TMPFS_MAGIC {
            return Ok(());
        }
    }
    let Ok(len) = i64::try_from(len) else {
        return Err(io::ErrorKind::FileTooLarge.into());
    };
    match nix::fcntl::fallocate(file, nix::fcntl::FallocateFlags::empty(), 0, len) {
        Ok(()) => Ok(()),
        Err(error @ (nix::errno::Errno::ENOSPC | nix::errno::Errno::EFBIG)) => Err(error.into()),
        Err(_cannot) => Ok(()),
    }
}

/// A range of a file as memory sees it.
pub(super) fn range_len(offset: u64, end: u64, most: usize) -> usize {
    most.min(to_usize(end - offset))
}
