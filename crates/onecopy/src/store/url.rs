//! What people write to name objects.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

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
            "gs" | "gcs" | "az" | "abfs" | "abfss" => {
                let help = if scheme.to_ascii_lowercase().starts_with('g') {
                    "use s3://: Google's store speaks it, too, with \
                     `endpoint_url=https://storage.googleapis.com` and HMAC keys"
                } else {
                    "use s3://, http(s)://, file:// or a path"
                };
                let why = format!("{scheme}:// comes in a later version");
                Err(bad(url, ErrorKind::Unsupported, &why, help))
            }
            _ => {
                let help = "use s3://, http(s)://, file:// or a path";
                let why = format!("the scheme {scheme}:// is not known");
                Err(bad(url, ErrorKind::Unsupported, &why, help))
            }
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

/// A URL as it may be shown: a query may be a signature, and before an `@` in the host's place stand a name and its
/// password. Only in keys of S3 and in paths is `?` a letter like others; whatever the scheme, known or not, no other is
/// trusted with that.
#[must_use]
pub fn shown(url: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Cow::Borrowed(url);
    };
    let scheme_is = |name: &str| scheme.eq_ignore_ascii_case(name);
    if scheme_is("file") || scheme_is("file+escaped") {
        return Cow::Borrowed(url);
    }
    let cut = if scheme_is("s3") {
        rest
    } else {
        rest.split(['?', '#']).next().unwrap_or_default()
    };
    let host_len = cut.find('/').unwrap_or(cut.len());
    let (host, path) = cut.split_at(host_len);
    match host.rsplit_once('@') {
        Some((_secret, host)) => Cow::Owned(format!("{scheme}://{host}{path}")),
        None => Cow::Borrowed(
            url.get(..scheme.len() + "://".len() + cut.len())
                .unwrap_or(scheme),
        ),
    }
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
        assert_eq!(
            Place::read("gs://b/a").unwrap_err().kind(),
            ErrorKind::Unsupported
        );
        assert_eq!(Place::read("").unwrap_err().kind(), ErrorKind::InvalidInput);
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
    fn secrets_in_urls_are_not_shown_whatever_the_scheme() {
        for (url, as_shown) in [
            ("https://h/a.tar?sig=hush", "https://h/a.tar"),
            ("HTTP://h/a?b?hush", "HTTP://h/a"),
            ("http://h/a#hush?hush", "http://h/a"),
            ("http://u:hush@h:80/a@b?hush", "http://h:80/a@b"),
            ("http://u@hush@h", "http://h"),
            ("ftp://u:hush@h/a?hush", "ftp://h/a"),
            ("gs://b/a?sig=hush", "gs://b/a"),
            ("httpx://h?hush", "httpx://h"),
            ("s3://u:hush@b/a@b?c#d", "s3://b/a@b?c#d"),
            ("s3://b/a?versionId=1", "s3://b/a?versionId=1"),
            ("file:///a@b?c", "file:///a@b?c"),
            ("a?b", "a?b"),
            ("http", "http"),
            ("://?hush", "://"),
            ("", ""),
        ] {
            assert_eq!(shown(url), as_shown, "{url}");
        }
        for url in ["ftp://u:hush@h/a?hush", "az://h/a?hush"] {
            let error = Place::read(url).unwrap_err();
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
                    let _place = Place::read(&format!("s3://{a}{b}{c}"));
                    let _other = Place::read(&format!("{a}{b}://{c}"));
                }
            }
        }
    }
}
