//! The files below a folder, one after the other: nothing is held but the names of the folders on the way down.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::file::{describe, failed};
use super::{Key, Object};
use crate::error::Result;

/// Folders below folders at most: what goes deeper is a loop of links.
const MAX_DEPTH: usize = 64;

/// Every file whose path begins with a prefix, in the byte order of the paths. A folder that cannot be read, or a file that
/// cannot be looked at, is an error in its place, and the rest goes on. A link that leads nowhere is no file.
#[derive(Debug)]
pub struct FilesBelow {
    prefix: Key,
    levels: Vec<Level>,
}

/// A folder on the way down.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) entries: std::vec::IntoIter<Entry>,
    /// Device and inode, to know a link back to a folder above.
    identity: (u64, u64),
}

/// What stands in a folder.
#[derive(Debug)]
pub(super) struct Entry {
    /// The whole path; that of a folder ends in a slash, as it does in the paths of what is below it.
    pub(super) path: Vec<u8>,
    pub(super) is_folder: bool,
}

impl FilesBelow {
    /// Begins at the folder part of `prefix`.
    ///
    /// # Errors
    ///
    /// Where that folder cannot be read.
    pub fn new(prefix: &Key) -> Result<Self> {
        Ok(Self {
            prefix: prefix.clone(),
            levels: vec![Level::of(folder_part(prefix.as_bytes()), prefix)?],
        })
    }

    /// Goes down into a folder, but not into one that it is in already: a link to it would go on without end.
    fn enter(&mut self, folder: &[u8]) -> Result<()> {
        let path = Path::new(OsStr::from_bytes(folder));
        if self.levels.len() > MAX_DEPTH {
            let too_deep = io::Error::other("folders within folders without end");
            return Err(failed("list", path, too_deep));
        }
        let level = Level::of(folder, &self.prefix)?;
        let is_above = |above: &Level| above.identity == level.identity;
        if !self.levels.iter().any(is_above) {
            self.levels.push(level);
        }
        Ok(())
    }
}

/// The path up to its last slash.
pub(super) fn folder_part(prefix: &[u8]) -> &[u8] {
    match prefix.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => &prefix[..=slash],
        None => b"",
    }
}

impl Level {
    /// What stands in `folder` and begins with `prefix`, in order. A folder's name sorts with its slash, so that the paths
    /// below it come where they belong.
    #[expect(clippy::disallowed_methods, reason = "paths, not payload")]
    pub(super) fn of(folder: &[u8], prefix: &Key) -> Result<Self> {
        let shown = if folder.is_empty() { b"." } else { folder };
        let at = Path::new(OsStr::from_bytes(shown));
        let unread = |error| failed("list", at, error);
        let metadata = fs::metadata(at).map_err(unread)?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(at).map_err(unread)? {
            let entry = entry.map_err(unread)?;
            let kind = entry.file_type().map_err(unread)?;
            let mut path = folder.to_vec();
            path.extend_from_slice(entry.file_name().as_bytes());
            // Of a link that cannot be followed it is told below whether that matters.
            let is_folder = kind.is_dir()
                || kind.is_symlink()
                    && fs::metadata(OsStr::from_bytes(&path)).is_ok_and(|found| found.is_dir());
            if is_folder {
                path.push(b'/');
            }
            let is_meant = path.starts_with(prefix.as_bytes())
                || is_folder && prefix.as_bytes().starts_with(&path);
            if is_meant {
                entries.push(Entry { path, is_folder });
            }
        }
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(Self {
            entries: entries.into_iter(),
            identity: (metadata.dev(), metadata.ino()),
        })
    }
}

/// The object that a path leads to; none where it leads nowhere, or to no ordinary file.
pub(super) fn look_at(path: &[u8]) -> Result<Option<Object>> {
    let path = Path::new(OsStr::from_bytes(path));
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(describe(path, &metadata))),
        Ok(_) => Ok(None),
        // Gone since its folder was read, or a link to nowhere, or to itself.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => Ok(None),
        Err(error) => Err(failed("look up", path, error)),
    }
}

impl Iterator for FilesBelow {
    type Item = Result<Object>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(entry) = self.levels.last_mut()?.entries.next() else {
                self.levels.pop();
                continue;
            };
            let found = if entry.is_folder {
                self.enter(&entry.path).map(|()| None)
            } else {
                look_at(&entry.path)
            };
            if let Some(found) = found.transpose() {
                return Some(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn make(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        folder
    }

    fn found(root: &Path, below: &str) -> Vec<String> {
        let root = format!("{}/", root.display());
        let files = FilesBelow::new(&Key::new(format!("{root}{below}"))).unwrap();
        files
            .map(|file| match file {
                Ok(object) => object.url.trim_start_matches(&root).to_owned(),
                Err(error) => format!("error {}", error.target().trim_start_matches(&root)),
            })
            .collect()
    }

    #[test]
    fn files_come_in_the_byte_order_of_their_paths() {
        let folder = make(&["a/b", "a.b", "a-b", "a0", "a/b.c/d", "z"]);
        let sorted = ["a-b", "a.b", "a/b", "a/b.c/d", "a0", "z"];
        assert_eq!(found(folder.path(), ""), sorted);
        assert_eq!(found(folder.path(), "a/"), ["a/b", "a/b.c/d"]);
        assert_eq!(found(folder.path(), "a/b."), ["a/b.c/d"]);
    }

    #[test]
    fn links_are_followed_but_neither_to_nowhere_nor_without_end() {
        let folder = make(&["d/f"]);
        let root = folder.path();
        symlink("d", root.join("link")).unwrap();
        symlink("..", root.join("d/up")).unwrap();
        symlink("nowhere", root.join("dead")).unwrap();
        symlink("itself", root.join("itself")).unwrap();
        assert_eq!(found(root, ""), ["d/f", "link/f"]);
    }

    #[test]
    fn what_goes_too_deep_is_an_error_in_its_place_and_the_rest_goes_on() {
        let folder = make(&["z", &format!("{}f", "d/".repeat(MAX_DEPTH + 1))]);
        let found = found(folder.path(), "");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("error d/d/"), "{found:?}");
        assert_eq!(found[1], "z");
    }
}
