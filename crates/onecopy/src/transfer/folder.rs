//! The target of downloads: folders that are entered one by one and never through a link, and files that appear under
//! their name only once they are whole.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::file::Output;
use super::names;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};

/// Files that are not whole yet begin and end like this. Each is locked (`flock`) while somebody writes it, so that one
/// left behind by a process that was killed is known by its lock being free.
const DRAFT: (&[u8], &[u8]) = (b".onecopy-", b".part");

/// Folders kept open. Keys come in order, so that neighbours share theirs.
pub(super) const OPEN_FOLDERS: usize = 64;

static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// A folder that is being written into.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    /// Guards the folders entered last, oldest first; held while one is entered, so that it is made once.
    recent: Mutex<VecDeque<(Vec<u8>, Arc<Folder>)>>,
}

/// One folder, held open.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    shown: String,
}

impl Root {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            recent: Mutex::new(VecDeque::new()),
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How `relative` is called.
    pub(super) fn shown(&self, relative: &[u8]) -> String {
        let path = self.path.as_os_str().as_bytes();
        let slash: &[u8] = if path.ends_with(b"/") || path.is_empty() {
            b""
        } else {
            b"/"
        };
        names::shown(&[path, slash, relative].concat())
    }

    /// The folder `relative`, made where it is missing and `is_made`; none where it is missing and not to be made.
    pub(super) fn enter(&self, relative: &[u8], is_made: bool) -> Result<Option<Arc<Folder>>> {
        let mut recent = self.recent.lock();
        if let Some(at) = recent.iter().position(|(known, _)| known == relative) {
            return Ok(recent.get(at).map(|(_, folder)| Arc::clone(folder)));
        }
        let fail = |error: io::Error| refused(&self.shown(relative), error);
        let Some(mut fd) = self.open(is_made).map_err(fail)? else {
            return Ok(None);
        };
        for name in relative
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
        {
            match enter(&fd, name, is_made).map_err(fail)? {
                Some(next) => fd = next,
                None => return Ok(None),
            }
        }
        let shown = self.shown(relative);
        let folder = Arc::new(Folder { fd, shown });
        if is_made {
            folder.sweep();
        }
        if recent.len() >= OPEN_FOLDERS {
            recent.pop_front();
        }
        recent.push_back((relative.into(), Arc::clone(&folder)));
        Ok(Some(folder))
    }

    /// The root itself may be a link: whoever named it meant where it leads.
    fn open(&self, is_made: bool) -> io::Result<Option<OwnedFd>> {
        let path: &Path = if self.path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &self.path
        };
        if is_made {
            std::fs::create_dir_all(path)?;
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        match nix::fcntl::open(path, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::ENOENT) if !is_made => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes the file `relative`; one that is gone is no error. A link is deleted, not what it leads to.
    pub(super) fn delete(&self, relative: &[u8]) -> Result<()> {
        let (folder, name) = names::split(relative);
        let Some(folder) = self.enter(folder, false)? else {
            return Ok(());
        };
        match unlinkat(&folder.fd, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(error) => Err(Error::io("delete", self.shown(relative), error.into())),
        }
    }
}

/// One step down, never through a link.
fn enter(fd: &OwnedFd, name: &[u8], is_made: bool) -> io::Result<Option<OwnedFd>> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let open = || openat(fd, name, flags, Mode::empty());
    match open() {
        Ok(next) => Ok(Some(next)),
        Err(Errno::ENOENT) if is_made => match mkdirat(fd, name, Mode::from_bits_truncate(0o777)) {
            Ok(()) | Err(Errno::EEXIST) => Ok(Some(open()?)),
            Err(error) => Err(error.into()),
        },
        Err(Errno::ENOENT) => Ok(None),
        Err(Errno::ELOOP | Errno::ENOTDIR) => {
            let name = names::shown(name);
            let what = match fstatat(fd, name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(status) if is(status.st_mode, SFlag::S_IFLNK) => "a symbolic link",
                _ => "a file",
            };
            Err(io::Error::other(format!(
                "{name} is {what} where a folder is needed"
            )))
        }
        Err(error) => Err(error.into()),
    }
}

fn is(mode: libc::mode_t, kind: SFlag) -> bool {
    mode & SFlag::S_IFMT.bits() == kind.bits()
}

fn refused(target: &str, error: io::Error) -> Error {
    let help = match error.kind() {
        io::ErrorKind::PermissionDenied => "check the rights of the folders above",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room on the disk, or choose another folder"
        }
        io::ErrorKind::FileTooLarge => {
            "raise the limit on the length of files (ulimit -f), or choose another file system"
        }
        io::ErrorKind::Other => {
            "remove or rename what is in the way; links are never followed out of the target"
        }
        _ => return Error::io("write", target, error),
    };
    Error::io("write", target, error).with_help(help)
}

impl Folder {
    /// Begins a file that will be called `name` and be `len` bytes long.
    pub(super) fn draft(self: &Arc<Self>, name: &[u8], len: u64) -> Result<Draft> {
        let slash = if self.shown.is_empty() || self.shown.ends_with('/') {
            ""
        } else {
            "/"
        };
        let shown = format!("{}{slash}{}", self.shown, names::shown(name));
        let fail = |error: io::Error| refused(&shown, error);
        self.check_free(name).map_err(fail)?;
        let (file, draft) = self.create().map_err(fail)?;
        // From here on the file goes away unless it is published.
        let mut begun = Draft {
            folder: Arc::clone(self),
            output: None,
            draft,
            name: name.into(),
            shown: shown.clone(),
            is_published: false,
        };
        begun.output = Some(Output::new(file, len).map_err(fail)?);
        Ok(begun)
    }

    /// A folder or a link in the place of the file is told before anything is fetched.
    fn check_free(&self, name: &[u8]) -> io::Result<()> {
        let what = match fstatat(&self.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(status) if is(status.st_mode, SFlag::S_IFREG) => return Ok(()),
            Ok(status) if is(status.st_mode, SFlag::S_IFDIR) => "a folder",
            Ok(status) if is(status.st_mode, SFlag::S_IFLNK) => "a symbolic link",
            Ok(_) => "no ordinary file",
            Err(Errno::ENOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        Err(io::Error::other(format!("there is {what} of that name")))
    }

    /// A new file with a name of its own, locked.
    fn create(&self) -> io::Result<(File, Vec<u8>)> {
        loop {
            let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
            let middle = format!("{}-{number}", std::process::id());
            let name = [DRAFT.0, middle.as_bytes(), DRAFT.1].concat();
            let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
            let file = match openat(&self.fd, &*name, flags, Mode::from_bits_truncate(0o666)) {
                Ok(fd) => File::from(fd),
                // Left behind by another process that once had our number.
                Err(Errno::EEXIST) => continue,
                Err(error) => return Err(error.into()),
            };
            // A file system without locks has no sweeping either: it would find every lock free.
            let _without_locks = file.lock();
            use std::os::unix::fs::MetadataExt;
            if file.metadata()?.nlink() > 0 {
                return Ok((file, name));
            }
            // Somebody swept it away between its making and its locking.
        }
    }

    /// Removes what processes that were killed left behind. Failing to is no failure: the next run tries again.
    fn sweep(&self) {
        use std::os::fd::AsRawFd;
        let Ok(entries) = std::fs::read_dir(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
        else {
            return;
        };
        for entry in entries.flatten() {
            if is_draft(entry.file_name().as_bytes()) {
                self.sweep_one(entry.file_name().as_bytes());
            }
        }
    }

    fn sweep_one(&self, name: &[u8]) {
        let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let Ok(fd) = openat(&self.fd, name, flags, Mode::empty()) else {
            return;
        };
        let file = File::from(fd);
        if file.try_lock().is_ok() && file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            let _gone_already = unlinkat(&self.fd, name, UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Whether a name is that of a file that is not whole yet: exactly as `create` makes them, because what bears one is
/// passed over and swept away.
pub(super) fn is_draft(name: &[u8]) -> bool {
    let inner = name.strip_prefix(DRAFT.0);
    let Some(inner) = inner.and_then(|rest| rest.strip_suffix(DRAFT.1)) else {
        return false;
    };
    let mut numbers = inner.split(|byte| *byte == b'-');
    let (process, number) = (numbers.next(), numbers.next());
    numbers.next().is_none()
        && process.is_some_and(|text| is_number(text, u32::MAX.into()))
        && number.is_some_and(|text| is_number(text, u64::MAX))
}

/// Whether `text` is what a number up to `most` is written as.
fn is_number(text: &[u8], most: u64) -> bool {
    let is_plain = text.iter().all(u8::is_ascii_digit) && (text == b"0" || !text.starts_with(b"0"));
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    is_plain && number.is_some_and(|number: u64| number <= most)
}

/// A file on its way, under a name of its own. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Draft {
    folder: Arc<Folder>,
    output: Option<Output>,
    draft: Vec<u8>,
    name: Vec<u8>,
    shown: String,
    is_published: bool,
}

impl Draft {
    /// The file to write into.
    pub(super) fn output(&self) -> Result<&Output> {
        let missing = || Error::bug("write a draft", "it has no file");
        self.output.as_ref().ok_or_else(missing)
    }

    /// An error of writing it.
    pub(super) fn failed(&self, error: io::Error) -> Error {
        refused(&self.shown, error)
    }

    /// Gives the file its length, its time and its name: all of it appears at once, in the place of what was there.
    pub(super) fn publish(
        mut self,
        len: u64,
        modified_unix: Option<i64>,
        is_synced: bool,
    ) -> Result<()> {
        let finished = self.output()?.finish(len, modified_unix, is_synced);
        finished.map_err(|error| self.failed(error))?;
        let fd = &self.folder.fd;
        let renamed = nix::fcntl::renameat(fd, &*self.draft, fd, &*self.name);
        renamed.map_err(|error| self.failed(error.into()))?;
        self.is_published = true;
        if is_synced {
            nix::unistd::fsync(fd).map_err(|error| self.failed(error.into()))?;
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_published {
            let _gone = unlinkat(&self.folder.fd, &*self.draft, UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// The kind of error that a target in the way is.
pub(super) fn in_the_way(target: &str, why: String) -> Error {
    Error::new(ErrorKind::InvalidInput, "write", target, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_made_here_is_a_draft() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let entered = root.enter(b"", true).unwrap().unwrap();
        let (_file, made) = entered.create().unwrap();
        assert!(is_draft(&made), "{}", names::shown(&made));
        for (name, wanted) in [
            (&b".onecopy-7-0.part"[..], true),
            (b".onecopy-4294967295-18446744073709551615.part", true),
            (b".onecopy-4294967296-0.part", false),
            (b".onecopy-1-18446744073709551616.part", false),
            (b".onecopy-x.part", false),
            (b".onecopy-7.part", false),
            (b".onecopy-7-.part", false),
            (b".onecopy--7.part", false),
            (b".onecopy-7-1-2.part", false),
            (b".onecopy-07-1.part", false),
            (b".onecopy-+7-1.part", false),
            (b".onecopy-7-1.part.gz", false),
            (b"x.onecopy-7-1.part", false),
            (b".onecopy-.part", false),
            (b".onecopy-notes.part", false),
        ] {
            assert_eq!(is_draft(name), wanted, "{}", names::shown(name));
        }
    }

    #[test]
    fn paths_have_one_slash_between_folder_and_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        for (root, relative, wanted) in [
            (path.to_owned(), &b""[..], format!("{path}/f")),
            (format!("{path}/"), b"", format!("{path}/f")),
            (path.to_owned(), b"d", format!("{path}/d/f")),
        ] {
            let entered = Root::new(root).enter(relative, true).unwrap().unwrap();
            assert_eq!(entered.draft(b"f", 1).unwrap().shown, wanted);
        }
        let here = Root::new("").enter(b"", false).unwrap().unwrap();
        assert_eq!(here.draft(b"f", 1).unwrap().shown, "f");
    }
}
