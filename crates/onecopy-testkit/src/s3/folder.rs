//! Objects in a folder: `root/bucket/key`, plain files that other programs may have put there.

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::checksums::Checksums;
use super::kept_sums::KeptSums;
use super::store::{Attributes, Content, New, Object, Store, Summary, Visit};

/// Half-written objects lie here until they are whole; never listed.
const UNFINISHED: &str = ".onecopy-unfinished";

/// The store of a server with a folder.
///
/// ETags of objects that came through this server are those of S3; a file that was there before
/// has an opaque ETag made of its inode, time and size, because hashing gigabytes at the first
/// GET would be what a benchmark measures.
#[derive(Debug)]
pub(crate) struct FolderStore {
    root: PathBuf,
    /// Guards what a file cannot hold: ETag and attributes, valid while the stamp is the same.
    known: Mutex<HashMap<PathBuf, (Stamp, String, Attributes)>>,
    unfinished: AtomicU64,
    /// Checksums of files that were there before.
    sums: Option<KeptSums>,
}

/// Changes whenever the file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.len(),
            seconds: metadata.mtime(),
            nanoseconds: metadata.mtime_nsec(),
        }
    }

    fn etag(self) -> String {
        let Self {
            inode,
            size,
            seconds,
            nanoseconds,
        } = self;
        format!("{inode:x}-{seconds:x}.{nanoseconds:x}-{size:x}")
    }
}

impl FolderStore {
    /// Serves the folders below `root` as buckets.
    pub(crate) fn new(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        Ok(Self {
            root: root.canonicalize()?,
            known: Mutex::default(),
            unfinished: AtomicU64::new(0),
            sums: None,
        })
    }

    /// Gives files that were there before a checksum, too.
    pub(crate) fn summing(mut self, sums: KeptSums) -> Self {
        self.sums = Some(sums);
        self
    }

    fn bucket(&self, bucket: &str) -> io::Result<PathBuf> {
        Ok(self.root.join(plain(bucket)?))
    }

    fn path(&self, bucket: &str, key: &str) -> io::Result<PathBuf> {
        Ok(self.bucket(bucket)?.join(plain(key)?))
    }

    fn describe(&self, path: &Path, metadata: &fs::Metadata) -> (String, Attributes) {
        let stamp = Stamp::of(metadata);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(path) {
            Some((was, etag, attributes)) if *was == stamp => (etag.clone(), attributes.clone()),
            _ => (stamp.etag(), Attributes::default()),
        }
    }

    /// Tells the files below `folder` that are wanted, in order of bytes, and enters no folder in
    /// which there is none: a page of a listing costs what it holds.
    fn walk(folder: &Path, key: &str, wanted: Wanted<'_>, tell: Tell<'_>) -> Walked {
        let mut keys = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            let kind = entry.file_type()?;
            if kind.is_dir() || kind.is_symlink() && entry.path().is_dir() {
                // With the slash, `a.b` comes before `a/c`, and `a/c` before `a0`.
                keys.extend((name != UNFINISHED).then(|| format!("{key}{name}/")));
            } else {
                keys.push(format!("{key}{name}"));
            }
        }
        keys.sort_unstable();
        for below in keys {
            let path = folder.join(&below[key.len()..]);
            let flow = if below.ends_with('/') && wanted.is_below(&below) {
                Self::walk(&path, &below, wanted, tell)?
            } else if !below.ends_with('/') && wanted.is(&below) {
                tell(&below, &path)?
            } else {
                continue;
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

type Walked = io::Result<ControlFlow<()>>;
type Tell<'a> = &'a mut dyn FnMut(&str, &Path) -> Walked;

/// Which keys a walk tells.
#[derive(Debug, Clone, Copy)]
struct Wanted<'a> {
    prefix: &'a str,
    after: &'a str,
}

impl Wanted<'_> {
    fn is(self, key: &str) -> bool {
        key.starts_with(self.prefix) && (self.after.is_empty() || key > self.after)
    }

    /// Whether there may be wanted keys that begin with `folder`.
    fn is_below(self, folder: &str) -> bool {
        let leads = folder.starts_with(self.prefix) || self.prefix.starts_with(folder);
        leads && (folder > self.after || self.after.starts_with(folder))
    }
}

/// Refuses keys that a file system cannot keep apart, and those that would leave the folder.
fn plain(key: &str) -> io::Result<&Path> {
    let path = Path::new(key);
    let same = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
        && path
            .components()
            .map(|part| part.as_os_str().len() + 1)
            .sum::<usize>()
            == key.len() + 1;
    if same && !key.contains('\0') && path.components().all(|p| p.as_os_str() != UNFINISHED) {
        return Ok(path);
    }
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        "no file can bear this key",
    ))
}

/// Takes "there is no such file" for an answer.
fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(e),
    }
}

impl Store for FolderStore {
    fn buckets(&self) -> io::Result<Vec<(String, SystemTime)>> {
        let mut buckets = Vec::new();
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let name = entry.file_name();
            if let Some(name) = name
                .to_str()
                .filter(|n| *n != UNFINISHED && entry.path().is_dir())
            {
                buckets.push((name.to_owned(), entry.metadata()?.modified()?));
            }
        }
        buckets.sort();
        Ok(buckets)
    }

    fn has_bucket(&self, bucket: &str) -> bool {
        self.bucket(bucket).is_ok_and(|path| path.is_dir())
    }

    fn create_bucket(&self, bucket: &str) -> io::Result<bool> {
        match fs::create_dir(self.bucket(bucket)?) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn delete_bucket(&self, bucket: &str) -> io::Result<bool> {
        let path = self.bucket(bucket)?;
        let all = Wanted {
            prefix: "",
            after: "",
        };
        let found = Self::walk(&path, "", all, &mut |_, _| Ok(ControlFlow::Break(())))?;
        if found.is_continue() {
            // Only empty folders are left below it.
            fs::remove_dir_all(path)?;
        }
        Ok(found.is_continue())
    }

    fn find(&self, bucket: &str, key: &str) -> io::Result<Option<Object>> {
        // A key that no file can bear was never stored: that is "no such key", not a fault.
        let Ok(path) = self.path(bucket, key) else {
            return Ok(None);
        };
        let Some(metadata) = absent(fs::metadata(&path))?.filter(fs::Metadata::is_file) else {
            return Ok(None);
        };
        let (etag, attributes) = self.describe(&path, &metadata);
        Ok(Some(Object {
            size: metadata.len(),
            etag,
            modified: metadata.modified()?,
            attributes,
            content: Content::File(path),
        }))
    }

    fn checksums(&self, object: &Object) -> io::Result<Checksums> {
        let kept = &object.attributes.checksums;
        match (&self.sums, &object.content) {
            // The ETag changes whenever the bytes do.
            (Some(sums), Content::File(path)) if kept.is_empty() => sums.of(&object.etag, path),
            _ => Ok(kept.clone()),
        }
    }

    fn put(&self, bucket: &str, key: &str, body: New) -> io::Result<()> {
        let path = self.path(bucket, key)?;
        let aside = self.root.join(UNFINISHED);
        fs::create_dir_all(&aside)?;
        let number = self.unfinished.fetch_add(1, Ordering::Relaxed);
        let draft = aside.join(format!("{}-{number}", std::process::id()));
        fs::write(&draft, &body.bytes)?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let stamp = Stamp::of(&fs::metadata(&draft)?);
        fs::rename(&draft, &path)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(path, (stamp, body.etag, body.attributes));
        Ok(())
    }

    fn delete(&self, bucket: &str, key: &str) -> io::Result<()> {
        let Ok(path) = self.path(bucket, key) else {
            return Ok(());
        };
        absent(fs::remove_file(&path))?;
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&path);
        Ok(())
    }

    fn scan(&self, bucket: &str, prefix: &str, after: &str, visit: Visit<'_>) -> io::Result<()> {
        let root = self.bucket(bucket)?;
        let wanted = Wanted { prefix, after };
        let _ended = Self::walk(&root, "", wanted, &mut |key, path| {
            let Some(metadata) = absent(fs::metadata(path))? else {
                return Ok(ControlFlow::Continue(()));
            };
            let summary = || Summary {
                size: metadata.len(),
                etag: self.describe(path, &metadata).0,
                modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            };
            Ok(visit(key, &summary))
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_order_of_bytes_wherever_a_scan_begins() {
        let root = tempfile::tempdir().unwrap();
        let mut keys = [
            "a.b", "a/b", "a/b.c/d", "a/b0", "a0", "b", "b!/x", "\u{fc}/y",
        ];
        for key in keys {
            let path = root.path().join("bkt").join(key);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, key).unwrap();
        }
        keys.sort_unstable();
        let store = FolderStore::new(root.path()).unwrap();
        let scan = |prefix: &str, after: &str, most: usize| {
            let mut found = Vec::new();
            let mut visit = |key: &str, _: &dyn Fn() -> Summary| {
                found.push(key.to_owned());
                if found.len() == most {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            };
            store.scan("bkt", prefix, after, &mut visit).unwrap();
            found
        };
        for prefix in ["", "a", "a/", "a/b", "b", "b!/x", "zzz"] {
            let all: Vec<&str> = keys.into_iter().filter(|k| k.starts_with(prefix)).collect();
            assert_eq!(scan(prefix, "", usize::MAX), all, "{prefix}");
            for after in [
                "a", "a.b", "a/", "a/b", "a/b.c/", "a/b.c/d", "a/zz", "b", "zzz",
            ] {
                let rest: Vec<&str> = all.iter().copied().filter(|k| *k > after).collect();
                assert_eq!(scan(prefix, after, usize::MAX), rest, "{prefix} {after}");
                let two = rest.iter().copied().take(2).collect::<Vec<_>>();
                assert_eq!(scan(prefix, after, 2), two, "{prefix} {after}");
            }
        }
    }
}
