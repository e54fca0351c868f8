//! A folder of this machine, in the byte order of the full relative paths: the order in which S3 lists keys.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::entry::{Entry, Seen};
use super::{Filter, folder, names};
use crate::error::{Error, ErrorKind};

/// How a folder is walked.
#[derive(Debug, Clone, Default)]
pub(super) struct Walk {
    /// Links are taken for what they lead to.
    pub(super) is_following_links: bool,
    /// The folder is a target: what cannot be read is a hole in what is known, and links and the like are passed over.
    pub(super) is_target: bool,
    /// Folders below which nothing is meant are not entered: they may be large, far away, or not to be read.
    pub(super) filter: Filter,
}

/// One folder on the way down: its names in order, the next one first.
struct Level {
    /// Relative path of the folder, with its slash; empty for the top.
    relative: Vec<u8>,
    names: VecDeque<Name>,
    /// Device and inode, to know a link back to a folder above.
    identity: (u64, u64),
}

struct Name {
    /// For a folder with a slash at its end: `a.b` comes before `a/c`, and `a/c` before `a0`.
    bytes: Box<[u8]>,
    is_folder: bool,
}

/// A walk under way.
pub(super) struct Walker {
    root: PathBuf,
    how: Walk,
    levels: Vec<Level>,
}

impl Walker {
    /// Begins at `root`, which is followed where it is a link.
    pub(super) fn new(root: &Path, how: Walk) -> Result<Self, Error> {
        let root = if root.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            root.to_owned()
        };
        let mut walker = Self {
            root,
            how,
            levels: Vec::new(),
        };
        let top = walker.level(Vec::new()).map_err(|error| {
            let shown = walker.root.to_string_lossy().into_owned();
            Error::io("list", shown, error).with_help("check the path, and its rights")
        })?;
        walker.levels.push(top);
        Ok(walker)
    }

    fn path(&self, relative: &[u8]) -> PathBuf {
        self.root.join(OsStr::from_bytes(relative))
    }

    fn level(&self, relative: Vec<u8>) -> io::Result<Level> {
        let path = self.path(&relative);
        let metadata = fs::metadata(&path)?;
        let mut names = Vec::new();
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let is_folder = kind.is_dir()
                || kind.is_symlink() && self.how.is_following_links && entry.path().is_dir();
            let mut bytes = entry.file_name().as_bytes().to_owned();
            if is_folder {
                bytes.push(b'/');
            } else if folder::is_draft(&bytes) {
                continue;
            }
            names.push(Name {
                bytes: bytes.into(),
                is_folder,
            });
        }
        names.sort_unstable_by(|a, b| a.bytes.cmp(&b.bytes));
        Ok(Level {
            relative,
            names: names.into(),
            identity: (metadata.dev(), metadata.ino()),
        })
    }

    fn enter(&mut self, relative: Vec<u8>) -> Option<Seen> {
        if !self.how.filter.is_meant_below(&relative) {
            return Some(Seen::LeftOut);
        }
        let shown = self.path(&relative).to_string_lossy().into_owned();
        match self.level(relative.clone()) {
            Ok(level) => {
                if self
                    .levels
                    .iter()
                    .any(|above| above.identity == level.identity)
                {
                    let why = "it is a link to a folder above, and would go on without end";
                    let error = Error::new(ErrorKind::InvalidInput, "list", shown, why);
                    return Some(odd(relative, true, error));
                }
                self.levels.push(level);
                None
            }
            Err(error) => {
                let error = Error::io("list", shown, error);
                Some(odd(relative, true, error))
            }
        }
    }

    fn file(&self, relative: Vec<u8>) -> Option<Seen> {
        let path = self.path(&relative);
        let metadata = if self.how.is_following_links {
            fs::metadata(&path)
        } else {
            fs::symlink_metadata(&path)
        };
        match metadata {
            Ok(metadata) if metadata.is_file() => Some(Seen::Entry(describe(relative, &metadata))),
            // Of a target, a file that is gone by now was never there.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                (!self.how.is_target).then_some(Seen::Gone(relative))
            }
            Err(_) | Ok(_) if self.how.is_target => None,
            // With links not followed, passing them over is what was asked for.
            Ok(metadata) if metadata.is_symlink() => None,
            Ok(metadata) => {
                let why = "it is not an ordinary file";
                let shown = path.to_string_lossy();
                let error = Error::new(ErrorKind::InvalidInput, "read", shown, why);
                Some(odd(relative, metadata.is_dir(), error))
            }
            // A link to a folder that is not mounted looks like this, too.
            Err(error) => {
                let error = Error::io("read", path.to_string_lossy(), error);
                Some(odd(relative, true, error))
            }
        }
    }
}

const fn odd(relative: Vec<u8>, may_be_folder: bool, error: Error) -> Seen {
    Seen::Odd {
        relative,
        may_be_folder,
        error,
    }
}

fn describe(relative: Vec<u8>, metadata: &Metadata) -> Entry {
    Entry {
        relative,
        len_bytes: metadata.len(),
        modified_unix: Some(metadata.mtime()),
        object: None,
    }
}

impl Iterator for Walker {
    type Item = Seen;

    fn next(&mut self) -> Option<Seen> {
        loop {
            let level = self.levels.last_mut()?;
            let Some(name) = level.names.pop_front() else {
                self.levels.pop();
                continue;
            };
            let relative = [&level.relative[..], &name.bytes].concat();
            let seen = if name.is_folder {
                self.enter(relative)
            } else {
                self.file(relative)
            };
            if seen.is_some() {
                return seen;
            }
        }
    }
}

impl std::fmt::Debug for Walker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let here = self
            .levels
            .last()
            .map(|level| names::shown(&level.relative));
        write!(f, "Walker({} at {here:?})", self.root.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seen: Seen) -> String {
        match seen {
            Seen::Entry(entry) => String::from_utf8(entry.relative).unwrap(),
            Seen::LeftOut => "left out".to_owned(),
            Seen::Gone(relative) => format!("gone {}", names::shown(&relative)),
            Seen::Odd { relative, .. } => format!("odd {}", names::shown(&relative)),
        }
    }

    fn keys(root: &Path, is_following_links: bool) -> Vec<String> {
        let how = Walk {
            is_following_links,
            ..Walk::default()
        };
        Walker::new(root, how).unwrap().map(text).collect()
    }

    fn make(root: &Path, names: &[&str]) {
        for name in names {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
    }

    #[test]
    fn files_come_in_the_byte_order_of_their_whole_paths() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "a/b",
            "a.b",
            "a-b",
            "a0",
            "a b",
            "a/b.c/d",
            "a/b0",
            "B",
            "\u{fc}/x",
            "z/z/z/z",
            "!",
            "a!/x",
            "a/.hidden",
        ];
        make(folder.path(), &names);
        fs::create_dir(folder.path().join("empty")).unwrap();
        fs::write(folder.path().join(".onecopy-7-1.part"), "half").unwrap();
        let mut sorted: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        sorted.retain(|name| name != "a/b");
        sorted.push("a/b".to_owned());
        sorted.sort_unstable();
        assert_eq!(keys(folder.path(), true), sorted);
    }

    #[test]
    fn links_are_followed_or_passed_over_and_never_without_end() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        make(root, &["d/f"]);
        symlink("d", root.join("link")).unwrap();
        symlink("d/f", root.join("other")).unwrap();
        symlink("..", root.join("d/up")).unwrap();
        symlink("nowhere", root.join("dead")).unwrap();
        assert_eq!(keys(root, false), ["d/f"]);
        assert_eq!(
            keys(root, true),
            [
                "d/f",
                "odd d/up/",
                "odd dead",
                "link/f",
                "odd link/up/",
                "other"
            ]
        );
    }

    #[test]
    fn a_file_that_goes_between_its_listing_and_a_look_at_it_was_there() {
        for is_target in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            make(folder.path(), &["a", "b", "c"]);
            let how = Walk {
                is_target,
                ..Walk::default()
            };
            let mut walker = Walker::new(folder.path(), how).unwrap();
            assert_eq!(walker.next().map(text).unwrap(), "a");
            fs::remove_file(folder.path().join("b")).unwrap();
            let rest: Vec<String> = walker.map(text).collect();
            let wanted: &[&str] = if is_target { &["c"] } else { &["gone b", "c"] };
            assert_eq!(rest, wanted);
        }
    }

    #[test]
    fn a_folder_below_which_nothing_is_meant_is_not_entered() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), &["a", "d/f", "d/e/g.jpg"]);
        let walk = |rules: &[(bool, &str)]| {
            let mut filter = Filter::default();
            for (is_included, pattern) in rules {
                filter.add(*is_included, pattern).unwrap();
            }
            let how = Walk {
                filter,
                ..Walk::default()
            };
            let walker = Walker::new(folder.path(), how).unwrap();
            walker.map(text).collect::<Vec<_>>()
        };
        assert_eq!(walk(&[(false, "d/*")]), ["a", "left out"]);
        // Which files are meant is for others to say.
        assert_eq!(
            walk(&[(false, "d/*"), (true, "d/e/*")]),
            ["a", "d/e/g.jpg", "d/f"]
        );
    }

    #[test]
    fn a_missing_root_is_an_error() {
        let how = Walk {
            is_following_links: true,
            ..Walk::default()
        };
        let error = Walker::new(Path::new("/nonexistent/x"), how).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
