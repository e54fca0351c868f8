//! What people write to name objects.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::azure::Container;
use super::shown::{shown, split_signature};
use crate::error::{Error, ErrorKind, Result};

/// A URL or path, told apart by its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// `s3://bucket/key`, the key byte for byte: nothing in it is decoded. `?versionId=..` at its end names a version.
    S3 {
        bucket: String,
        key: String,
        version: Option<String>,
    },
    /// `gs://bucket/name`, byte for byte.
    Gcs { bucket: String, key: String },
    /// `az://container/name`, `abfss://container@account.dfs.core.windows.net/name`, byte for byte.
    Azure { container: Container, key: String },
    /// `http(s)://..`, whole.
    Http(String),
    /// `file:///path`, a bare path, or `file+escaped:///path`, in which `%FF` is a byte: for names that are no UTF-8.
    File(PathBuf),
}

impl Place {
    /// Tells which of them `url` is.
    pub(super) fn read(url: &str) -> Result<Self> {
        if let Some(command) = url.strip_prefix("pipe:") {
            return Err(no_command(command));
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            if url.is_empty() {
                return Err(bad(
                    url,
                    ErrorKind::InvalidInput,
                    "it is empty",
                    "name an object",
                ));
            }
            return Ok(Self::File(PathBuf::from(url)));
        };
        match scheme.to_ascii_lowercase().as_str() {
            "s3" => {
                let (bucket, key) = split_bucket(rest);
                let (key, version) = split_version(key);
                let is_pattern = key.contains(['*', '?', '[']);
                if version.is_some() && (key.is_empty() || key.ends_with('/') || is_pattern) {
                    let (why, help) = (
                        "a version belongs to one object",
                        "name the object: no prefix, and none of * ? [",
                    );
                    return Err(bad(url, ErrorKind::InvalidInput, why, help));
                }
                Ok(Self::S3 {
                    bucket: bucket.to_owned(),
                    key: key.to_owned(),
                    version: version.map(str::to_owned),
                })
            }
            "http" | "https" => Ok(Self::Http(url.to_owned())),
            "file" => {
                // file://host/path names another machine; only this one's files can be read.
                let path = rest.strip_prefix("localhost").unwrap_or(rest);
                if !path.starts_with('/') {
                    let help = "write file:///absolute/path, or the bare path";
                    return Err(bad(
                        url,
                        ErrorKind::InvalidInput,
                        "it names another host",
                        help,
                    ));
                }
                Ok(Self::File(PathBuf::from(path)))
            }
            "file+escaped" => {
                let bytes = percent_decode_str(rest).collect::<Vec<u8>>();
                Ok(Self::File(PathBuf::from(OsString::from_vec(bytes))))
            }
            "gs" | "gcs" => {
                let (bucket, key) = split_bucket(rest);
                let (bucket, key) = (bucket.to_owned(), key.to_owned());
                Ok(Self::Gcs { bucket, key })
            }
            "az" | "azure" | "abfs" | "abfss" => {
                if let (_, Some(_sas)) = split_signature(rest) {
                    let why = "it carries a SAS token";
                    let help =
                        "put the token into AZURE_STORAGE_SAS_TOKEN, or use the https:// URL";
                    return Err(bad(url, ErrorKind::InvalidInput, why, help));
                }
                let (container, key) = split_bucket(rest);
                let container = Container::read(scheme, container)?;
                let key = key.to_owned();
                Ok(Self::Azure { container, key })
            }
            _ => {
                let help = "use s3://, gs://, az://, http(s)://, file:// or a path";
                let why = format!("the scheme {scheme}:// is not known");
                Err(bad(url, ErrorKind::Unsupported, &why, help))
            }
        }
    }
}

/// Refuses what cannot be a URL.
pub(crate) fn check(url: &str) -> Result<()> {
    Place::read(url).map(drop)
}

impl Place {
    /// The key, or the prefix, where there is one that can be listed.
    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::S3 { key, .. } | Self::Gcs { key, .. } | Self::Azure { key, .. } => Some(key),
            Self::Http(_) | Self::File(_) => None,
        }
    }
}

/// Refuses a command in place of a URL, as webdataset takes them. The command is not shown: there may be a key in it.
fn no_command(command: &str) -> Error {
    let program = command.split_whitespace().next().unwrap_or_default();
    let object = command
        .split_whitespace()
        .map(|word| word.trim_matches(['\'', '"']))
        .find(|word| word.contains("://") && !word.starts_with('-'));
    let help = match object {
        Some(object) => format!("write what it reads instead: {}", shown(object)),
        None => "write what it reads instead: s3://bucket/key, http(s)://, a path".to_owned(),
    };
    let why = "it is a command, and onecopy runs none: it reads objects itself";
    let target = format!("pipe:{program} ..");
    Error::new(ErrorKind::Unsupported, "use the URL", target, why).with_help(help)
}

/// The bucket and the key of what stands behind `s3://`. The ARN of an access point has slashes of its own.
#[must_use]
pub fn split_bucket(rest: &str) -> (&str, &str) {
    let point = "accesspoint";
    let name_at = match rest.find(point) {
        Some(at) if rest.starts_with("arn:") => rest.len().min(at + point.len() + 1),
        _ => 0,
    };
    match rest.get(name_at..).and_then(|name| name.find('/')) {
        Some(len) => {
            let (bucket, key) = rest.split_at(name_at + len);
            (bucket, key.strip_prefix('/').unwrap_or(key))
        }
        None => (rest, ""),
    }
}

/// The key, and the version that its end names. What no store gives out as a version is part of the key.
pub(crate) fn split_version(key: &str) -> (&str, Option<&str>) {
    let is_version = |text: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        (1..=1024).contains(&text.len()) && text.bytes().all(is_plain)
    };
    match key.rsplit_once("?versionId=") {
        Some((key, version)) if is_version(&version) => (key, Some(version)),
        _ => (key, None),
    }
}

fn bad(url: &str, kind: ErrorKind, why: &str, help: &str) -> Error {
    Error::new(kind, "use the URL", shown(url), why).with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_path_may_hold_any_bytes() {
        let read = Place::read("file+escaped:///a%FF%20%25/{b}%").unwrap();
        let bytes = OsString::from_vec(Vec::from(*b"/a\xff %/{b}%"));
        assert_eq!(read, Place::File(PathBuf::from(bytes)));
    }

    #[test]
    fn the_end_of_a_key_names_a_version() {
        let read = |url| match Place::read(url).unwrap() {
            Place::S3 { key, version, .. } => (key, version),
            other => panic!("{other:?}"),
        };
        for (url, key, version) in [
            ("s3://b/k?versionId=3HL4kqt.J_-x", "k", Some("3HL4kqt.J_-x")),
            ("s3://b/k?versionId=null", "k", Some("null")),
            ("s3://b/k?versionId=", "k?versionId=", None),
            ("s3://b/k?versionId=a b", "k?versionId=a b", None),
            ("s3://b/k?versionid=1", "k?versionid=1", None),
        ] {
            assert_eq!(
                read(url),
                (key.to_owned(), version.map(str::to_owned)),
                "{url}"
            );
        }
    }

    #[test]
    fn a_version_of_many_objects_is_refused() {
        for url in [
            "s3://b?versionId=1",
            "s3://b/?versionId=1",
            "s3://b/p/?versionId=1",
            "s3://b/a?b?versionId=1",
            "s3://b/*.tar?versionId=1",
        ] {
            let read = Place::read(url);
            let is_bucket = url == "s3://b?versionId=1";
            // That one is a bucket's name, which is refused as such.
            assert_eq!(read.is_ok(), is_bucket, "{url}");
        }
    }

    #[test]
    fn an_access_point_ends_after_its_name() {
        let read = |url: &str| match Place::read(url).unwrap() {
            Place::S3 { bucket, key, .. } => (bucket, key),
            other => panic!("{other:?}"),
        };
        let point = "arn:aws:s3:eu-west-1:1:accesspoint/ap";
        let outpost = "arn:aws:s3-outposts:eu-west-1:1:outpost/op-1/accesspoint/ap";
        for (url, bucket, key) in [
            (format!("s3://{point}/a//b"), point, "a//b"),
            (
                format!("s3://{outpost}/accesspoint/k"),
                outpost,
                "accesspoint/k",
            ),
            (format!("s3://{point}"), point, ""),
            (
                "s3://arn:aws:s3:x:1:accesspoint".to_owned(),
                "arn:aws:s3:x:1:accesspoint",
                "",
            ),
            ("s3://b/accesspoint/k".to_owned(), "b", "accesspoint/k"),
        ] {
            assert_eq!(read(&url), (bucket.to_owned(), key.to_owned()), "{url}");
        }
    }

    #[test]
    fn forms_are_told_apart() {
        let s3 = |bucket: &str, key: &str| Place::S3 {
            bucket: bucket.into(),
            key: key.into(),
            version: None,
        };
        assert_eq!(
            Place::read("s3://b/a//b%20c?#").unwrap(),
            s3("b", "a//b%20c?#")
        );
        assert_eq!(Place::read("s3://b//lead").unwrap(), s3("b", "/lead"));
        assert_eq!(Place::read("s3://b").unwrap(), s3("b", ""));
        assert_eq!(
            Place::read("file:///a/b").unwrap(),
            Place::File("/a/b".into())
        );
        assert_eq!(
            Place::read("a/b.tar").unwrap(),
            Place::File("a/b.tar".into())
        );
        let gcs = |bucket: &str, key: &str| Place::Gcs {
            bucket: bucket.into(),
            key: key.into(),
        };
        assert_eq!(Place::read("gs://b//a?#%20").unwrap(), gcs("b", "/a?#%20"));
        assert_eq!(Place::read("GCS://b").unwrap(), gcs("b", ""));
        assert_eq!(Place::read("").unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn containers_are_named_with_and_without_their_account() {
        for (url, key) in [
            ("az://c/a//b%20?#", "a//b%20?#"),
            ("azure://c", ""),
            ("abfs://c/k", "k"),
            ("abfss://c@acc.dfs.core.windows.net/a/b@c", "a/b@c"),
            ("az://c/?/sv=1", "?/sv=1"),
        ] {
            let place = Place::read(url).unwrap();
            assert!(matches!(place, Place::Azure { .. }), "{url}");
            assert_eq!(place.key(), Some(key), "{url}");
        }
        let error = Place::read("az://c/k?sv=1&sp=r&SIG=hush").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.help().unwrap().contains("AZURE_STORAGE_SAS_TOKEN"));
        assert!(!format!("{error:#}").contains("hush"), "{error:#}");
    }

    #[test]
    fn commands_are_refused_with_what_to_write_instead() {
        for (command, instead) in [
            (
                "pipe:aws s3 cp s3://b/train-{000..9}.tar -",
                "s3://b/train-{000..9}.tar",
            ),
            (
                "pipe:aws s3 cp --endpoint-url=http://h 's3://b/a.tar' -",
                "s3://b/a.tar",
            ),
            (
                "pipe:curl -H 'Key: hush' -s -L https://h/a.tar?sig=hush",
                "https://h/a.tar",
            ),
            ("pipe:cat /data/a.tar", "a path"),
            ("pipe:", "a path"),
        ] {
            let error = Place::read(command).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{command}");
            assert!(error.help().unwrap().contains(instead), "{error:?}");
            assert!(!format!("{error:#}").contains("hush"), "{error:?}");
        }
    }

    #[test]
    fn what_names_nothing_here_is_refused() {
        assert_eq!(
            Place::read("file://host/a").unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
    }

    #[test]
    fn no_text_makes_it_panic() {
        let odd = [
            "",
            "arn:",
            "accesspoint",
            "/",
            ":",
            "ü",
            "?versionId=",
            "\0",
            "s3://",
            "%",
        ];
        for a in odd {
            for b in odd {
                for c in odd {
                    for scheme in ["s3", "gs", "abfs"] {
                        let _place = Place::read(&format!("{scheme}://{a}{b}{c}"));
                    }
                    let _other = Place::read(&format!("{a}{b}://{c}"));
                }
            }
        }
    }
}
