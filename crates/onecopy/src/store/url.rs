//! What people write to name objects.

use std::path::PathBuf;

use crate::error::{Error, ErrorKind, Result};

/// A URL or path, told apart by its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// `s3://bucket/key`, the key byte for byte: nothing in it is decoded.
    S3 { bucket: String, key: String },
    /// `http(s)://..`, whole.
    Http(String),
    /// `file:///path` or a bare path.
    File(PathBuf),
}

impl Place {
    /// Tells which of them `url` is.
    pub(super) fn read(url: &str) -> Result<Self> {
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
                let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
                Ok(Self::S3 {
                    bucket: bucket.to_owned(),
                    key: key.to_owned(),
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
            "gs" | "gcs" | "az" | "abfs" | "abfss" => {
                let help = "use s3://, http(s)://, file:// or a path; Google's store also speaks S3: \
                            --endpoint-url https://storage.googleapis.com with HMAC keys";
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

fn bad(url: &str, kind: ErrorKind, why: &str, help: &str) -> Error {
    Error::new(kind, "use the URL", shown(url), why).with_help(help)
}

/// A URL as it may be shown: a query may be a signature.
#[must_use]
pub fn shown(url: &str) -> &str {
    let is_http = url
        .get(..4)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"));
    if is_http {
        url.split('?').next().unwrap_or_default()
    } else {
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_apart() {
        let s3 = |bucket: &str, key: &str| Place::S3 {
            bucket: bucket.into(),
            key: key.into(),
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
        assert_eq!(
            Place::read("file://host/a").unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
    }
}
