//! Sources that stand for what they match.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::entry::Place;
use super::open::Spot;
use super::settings::CopySettings;
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Glob, Key, expand_braces, has_glob, split_version, unescaped};
use crate::sync::Arc;

/// One name out of a source.
#[derive(Debug)]
pub(super) struct Name {
    /// As it is meant, without backslashes; a pattern as it is written.
    pub(super) text: String,
    /// Whether it stands for what it matches.
    pub(super) is_pattern: bool,
    /// The version that is meant, where `?versionId=..` names one.
    pub(super) version: Option<Arc<str>>,
}

/// The names that a source stands for. Where a file bears the very name, or with `is_raw`, it means itself. In an HTTP URL
/// `?` begins a query.
pub(super) fn expand(source: &str, how: &CopySettings) -> Result<Vec<Name>> {
    let plain = |text: &str| Name {
        text: text.to_owned(),
        is_pattern: false,
        version: None,
    };
    if how.is_raw || Path::new(source).exists() {
        return Ok(vec![plain(source)]);
    }
    if let Some((object, version)) = versioned(source) {
        let is_many = has_glob(object) || expand_braces(object)?.len() > 1;
        if is_many || object.ends_with('/') || how.is_recursive {
            let why = "a version belongs to one object";
            return Err(Error::new(ErrorKind::InvalidInput, "copy", source, why)
                .with_help("name the object: no prefix, no pattern, and not `recursive`"));
        }
        return Ok(vec![Name {
            version: Some(version.into()),
            ..plain(&unescaped(object))
        }]);
    }
    let is_http = is_of(source, "http") || is_of(source, "https");
    let names = expand_braces(source)?.into_iter().map(|text| {
        if has_glob(&text) && !is_http && !Path::new(&text).exists() {
            Name {
                text,
                is_pattern: true,
                version: None,
            }
        } else {
            plain(&unescaped(&text))
        }
    });
    Ok(names.collect())
}

/// Whether it is a URL with this scheme, whose case means nothing.
fn is_of(source: &str, scheme: &str) -> bool {
    let found = source.split_once("://");
    found.is_some_and(|(found, _)| found.eq_ignore_ascii_case(scheme))
}

/// The URL of an object, and the version of it that a source names.
pub(super) fn versioned(source: &str) -> Option<(&str, &str)> {
    let (object, version) = is_of(source, "s3").then(|| split_version(source))?;
    Some((object, version?))
}

/// A glob, taken apart where its listing begins.
pub(super) struct Pattern {
    glob: Glob,
    /// What stands before the folder that is listed, its slash included.
    folder: Vec<u8>,
    /// What every match goes on with behind it.
    beginning: Vec<u8>,
}

impl Pattern {
    pub(super) fn new(key: &[u8], name: &str) -> Result<Self> {
        let glob = Glob::new(&Key::new(key), name)?;
        let prefix = glob.prefix().as_bytes();
        let end = prefix
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |at| at + 1);
        let (folder, beginning) = prefix.split_at(end);
        let (folder, beginning) = (folder.into(), beginning.into());
        Ok(Self {
            glob,
            folder,
            beginning,
        })
    }

    /// The folder below which everything lies that can match.
    pub(super) fn below(&self, spot: &Spot) -> Spot {
        match spot {
            Spot::Bucket { store, .. } => Spot::Bucket {
                store: Arc::clone(store),
                key: self.folder.clone(),
            },
            _ => Spot::Path(PathBuf::from(std::ffi::OsStr::from_bytes(&self.folder))),
        }
    }

    /// What all keys that can match begin with.
    pub(super) fn listed(&self) -> Vec<u8> {
        [&self.folder[..], &self.beginning].concat()
    }

    /// Makes a listing ask for no more than what can match.
    pub(super) fn narrow(&self, place: &mut Place) {
        if let Place::Bucket { beginning, .. } = place {
            beginning.clone_from(&self.beginning);
        }
    }

    pub(super) fn is_match(&self, relative: &[u8]) -> bool {
        self.glob
            .is_match(&Key::new([&self.folder[..], relative].concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_case_of_a_scheme_means_nothing() {
        let name = |source| expand(source, &CopySettings::default()).unwrap().remove(0);
        for source in ["s3://b/k?versionId=v1", "S3://b/k?versionId=v1"] {
            assert_eq!(name(source).version.as_deref(), Some("v1"), "{source}");
        }
        for source in ["https://h/k?a=b", "HTTPS://h/k?a=b", "Http://h/*"] {
            assert!(!name(source).is_pattern, "{source}");
        }
        assert!(name("GS://b/k?").is_pattern);
        assert_eq!(name("gs://b/k?versionId=v1").version, None);
    }
}
