//! Where a copy goes.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::job::Goal;
use super::open::{self, Opener, Spot, as_folder};
use crate::error::{Error, ErrorKind, Result};
use crate::store::shown_url;

/// Where things go, and whether they keep their names there.
pub(super) struct Target {
    pub(super) goal: Goal,
    /// The name for a single item, where the target is no folder.
    pub(super) name: Option<Vec<u8>>,
}

impl Target {
    pub(super) fn new(
        spot: Spot,
        has_sets: bool,
        count: usize,
        shown: &str,
        opener: &mut Opener,
    ) -> Result<Self> {
        let (goal, name) = match spot {
            Spot::Bucket { store, .. } if store.writer().is_none() => {
                return Err(open::no_target(shown));
            }
            Spot::Bucket { store, key } => {
                let is_folder = key.is_empty() || key.ends_with(b"/") || has_sets;
                let (prefix, name) = if is_folder {
                    (as_folder(&key), None)
                } else {
                    (Vec::new(), Some(key))
                };
                (Goal::Bucket { store, prefix }, name)
            }
            Spot::Path(path) => {
                let bytes = path.as_os_str().as_bytes();
                let is_folder = bytes.ends_with(b"/") || has_sets || path.is_dir();
                let (root, name) = if is_folder {
                    (path.clone(), None)
                } else {
                    let above = path.parent().unwrap_or(Path::new("")).to_owned();
                    let name = path.file_name().map(|name| name.as_bytes().to_owned());
                    (above, name)
                };
                (Goal::Folder(opener.root(root)), name)
            }
            Spot::Web { .. } | Spot::Standard => return Err(open::no_target(shown)),
        };
        if name.is_some() && count > 1 {
            let why = "it is one name for several things";
            return Err(
                Error::new(ErrorKind::InvalidInput, "copy to", shown_url(shown), why)
                    .with_help("end it with / to put them below it"),
            );
        }
        Ok(Self { goal, name })
    }
}
