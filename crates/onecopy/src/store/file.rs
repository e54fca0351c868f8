//! Files of this machine.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Instant;

use super::files_below::{FilesBelow, Level, folder_part, look_at};
use super::{BoxFuture, ETag, Filled, Key, ListPage, ListRequest, Object, Store, Target};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Await, Ledger, OpenAwait, OpenHop};
use crate::route::Hop;
use crate::size::to_usize;
use crate::sync::{Arc, Threads};

/// Files, by their paths: a key is a path, absolute or not.
///
/// The ETag of a file is its inode, size and time of last change, so that one which is written while it is read is
/// `Changed`.
#[derive(Debug)]
pub(super) struct FileStore {
    threads: Threads,
    /// Told what is under way: a file system that does not answer says nothing itself.
    ledger: Arc<Ledger>,
}

/// Reads that wait for disks at the same time, at most: the queue of an NVMe is deeper than that of anything else, and a
/// device gives its best rate with fewer.
const THREADS: usize = 64;

impl FileStore {
    pub(super) fn new(ledger: &Arc<Ledger>) -> Self {
        Self {
            threads: Threads::new("file", THREADS),
            ledger: Arc::clone(ledger),
        }
    }

    /// Tells that `path` is being looked at.
    pub(super) fn under_way(&self, path: impl fmt::Display) -> OpenAwait {
        self.ledger
            .awaits(Await::Disk, format_args!("a look at {path}"))
    }

    /// The object at `path`, of which nothing is known yet.
    pub(super) fn object(path: &Path) -> Object {
        Object {
            url: path.to_string_lossy().into(),
            key: Key::new(path.as_os_str().as_bytes()),
            version: None,
            len_bytes: None,
            etag: None,
            modified_unix: None,
        }
    }

    /// The object at `path`, looked up.
    pub(super) fn look_up(path: &Path) -> Result<Object> {
        let metadata = fs::metadata(path).map_err(|error| failed("look up", path, error))?;
        if !metadata.is_file() {
            return Err(no_file("look up", path, &metadata));
        }
        Ok(describe(path, &metadata))
    }
}

fn path_of(key: &Key) -> &Path {
    Path::new(OsStr::from_bytes(key.as_bytes()))
}

pub(super) fn describe(path: &Path, metadata: &Metadata) -> Object {
    Object {
        url: path.to_string_lossy().into(),
        key: Key::new(path.as_os_str().as_bytes()),
        version: None,
        len_bytes: Some(metadata.len()),
        etag: Some(etag(metadata)),
        modified_unix: Some(metadata.mtime()),
    }
}

fn etag(metadata: &Metadata) -> ETag {
    let tag = format!(
        "\"{:x}-{:x}-{:x}.{:09}\"",
        metadata.ino(),
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec()
    );
    ETag(tag.into())
}

pub(super) fn failed(doing: &str, path: &Path, error: io::Error) -> Error {
    let help = match error.kind() {
        io::ErrorKind::NotFound => "check the path, and that the disk is mounted",
        io::ErrorKind::PermissionDenied => "check the rights of the file and of the folders above",
        _ => return Error::io(doing, path.to_string_lossy(), error),
    };
    Error::io(doing, path.to_string_lossy(), error).with_help(help)
}

fn no_file(doing: &str, path: &Path, metadata: &Metadata) -> Error {
    let (why, help) = if metadata.is_dir() {
        (
            "it is a folder",
            "end the path with / to take the shards in it",
        )
    } else {
        (
            "it is not an ordinary file",
            "pipes and devices cannot be read in ranges",
        )
    };
    Error::new(ErrorKind::InvalidInput, doing, path.to_string_lossy(), why).with_help(help)
}

/// Opens a file for reading from front to back.
fn open(doing: &str, path: &Path) -> Result<(File, Metadata)> {
    let fail = |error| failed(doing, path, error);
    // Asked before opening: the opening of a pipe would wait for a writer.
    let metadata = fs::metadata(path).map_err(fail)?;
    if !metadata.is_file() {
        return Err(no_file(doing, path, &metadata));
    }
    let file = File::open(path).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    // Doubles the kernel's read-ahead; a refusal costs nothing but speed.
    let advice = nix::fcntl::PosixFadviseAdvice::POSIX_FADV_SEQUENTIAL;
    let _refusal = nix::fcntl::posix_fadvise(&file, 0, 0, advice);
    Ok((file, metadata))
}

/// A read, on a thread that may wait.
fn read(hop: &OpenHop, object: &Object, offset: u64, mut target: Target) -> Result<Filled> {
    let path = path_of(&object.key);
    let room: u64 = target.iter().map(|slab| slab.len() as u64).sum();
    let end = offset.saturating_add(room);
    let what = format_args!("bytes {offset}..{end} of {}", object.url);
    let _under_way = hop.ledger().awaits(Await::Disk, what);
    let doing = format!("read bytes {offset}..{end} of");
    let error = |kind, why: &str| Error::new(kind, doing.as_str(), &*object.url, why);
    let (file, before) = open("read", path)?;
    let tag = etag(&before);
    let is_other = object.etag.as_ref().is_some_and(|known| *known != tag);
    if is_other || object.len_bytes.is_some_and(|len| len != before.len()) {
        return Err(error(
            ErrorKind::Changed,
            "the file changed since it was looked up",
        ));
    }
    let Some(left) = before.len().checked_sub(offset) else {
        let why = format!("the file has only {} bytes", before.len());
        return Err(error(ErrorKind::InvalidInput, &why));
    };
    let want = to_usize(room.min(left));
    let hop = hop.beside(Hop::Read);
    let done = pread(&hop, &file, offset, &mut target, want);
    done.map_err(|cause| match cause.kind() {
        io::ErrorKind::UnexpectedEof => error(
            ErrorKind::Changed,
            "the file became shorter while it was read",
        ),
        _ => failed(&doing, path, cause),
    })?;
    hop.ledger().disk_read(want as u64);
    let after = file
        .metadata()
        .map_err(|cause| failed(&doing, path, cause))?;
    if etag(&after) != tag {
        return Err(error(
            ErrorKind::Changed,
            "the file changed while it was read",
        ));
    }
    let object = Object {
        url: Arc::clone(&object.url),
        ..describe(path, &before)
    };
    Ok(Filled {
        target,
        len_bytes: want as u64,
        object,
    })
}

/// Reads `want` bytes from `offset` on into the slabs, one after the other.
fn pread(
    hop: &OpenHop,
    file: &File,
    offset: u64,
    target: &mut Target,
    want: usize,
) -> io::Result<()> {
    let mut done = 0;
    for slab in target.iter_mut() {
        let len = slab.len().min(want - done);
        let mut at = 0;
        while at < len {
            let start = Instant::now();
            match file.read_at(&mut slab[at..len], offset + (done + at) as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    hop.moved(read, start.elapsed());
                    at += read;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        done += len;
    }
    Ok(())
}

/// Every file below the folder part of `prefix` whose path begins with it, in byte order.
fn list(request: &ListRequest, under_way: &OpenAwait) -> Result<ListPage> {
    let mut page = ListPage::default();
    let listing = format!("the listing of {}", request.prefix);
    under_way.begin(&listing);
    if !request.is_folded {
        let files = FilesBelow::new(&request.prefix)?;
        page.objects = files
            .inspect(|_found| under_way.begin(&listing))
            .collect::<Result<_>>()?;
        return Ok(page);
    }
    let folder = folder_part(request.prefix.as_bytes());
    for entry in Level::of(folder, &request.prefix)?.entries {
        if entry.is_folder {
            page.prefixes.push(Key::new(entry.path));
        } else {
            page.objects.extend(look_at(&entry.path)?);
        }
    }
    Ok(page)
}

impl Store for FileStore {
    fn read_into<'a>(
        &'a self,
        hop: &'a OpenHop,
        object: &'a Object,
        offset: u64,
        target: Target,
    ) -> BoxFuture<'a, Result<Filled>> {
        let (hop, object) = (hop.clone(), object.clone());
        let work = move || read(&hop, &object, offset, target);
        Box::pin(async { self.threads.run(work).await? })
    }

    fn head<'a>(&'a self, object: &'a Object) -> BoxFuture<'a, Result<Object>> {
        let (object, under_way) = (object.clone(), self.under_way(&object.url));
        let work = move || {
            let _until_its_end = under_way;
            let mut found = Self::look_up(path_of(&object.key))?;
            found.url = object.url;
            Ok(found)
        };
        Box::pin(async { self.threads.run(work).await? })
    }

    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<ListPage>> {
        let (request, under_way) = (request.clone(), self.ledger.place(Await::Disk));
        let work = move || list(&request, &under_way);
        Box::pin(async { self.threads.run(work).await? })
    }
}
