//! A key of the customer's, with which the store encrypts and decrypts an object (SSE-C).

use http::HeaderMap;
use md5::{Digest, Md5};
use reqsign_core::hash::{base64_decode, base64_encode};

use super::super::http1::{Endpoint, Failure};
use super::super::small_file;
use super::sign;
use crate::config::Secret;
use crate::error::{Error, ErrorKind, Result};

/// AES-256 is the only cipher of SSE-C.
const KEY_BYTES: usize = 32;

/// How a key is given.
const FORMS: &str =
    "give base64 of 32 bytes, file://path of a file with that, or fileb://path of the bytes";

const HEADERS: &str = "x-amz-server-side-encryption-customer-";

const SOURCE_HEADERS: &str = "x-amz-copy-source-server-side-encryption-customer-";

/// The key, as the headers want it.
pub(super) struct CustomerKey {
    key_base64: String,
    md5_base64: String,
}

impl std::fmt::Debug for CustomerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CustomerKey")
    }
}

impl CustomerKey {
    /// Reads base64, `file://` with base64 or `fileb://` with the bytes. No error shows any of it.
    pub(super) fn read(given: &Secret) -> Result<Self> {
        let odd = |target: &str, why: &str| {
            Error::new(ErrorKind::InvalidInput, "use the SSE-C key", target, why).with_help(FORMS)
        };
        let unread =
            |path: &str, error| Error::io("read the SSE-C key", path, error).with_help(FORMS);
        let text = given.0.as_str();
        let (target, bytes) = if let Some(path) = text.strip_prefix("fileb://") {
            let read = small_file::read(path);
            let bytes = read.map_err(|error| unread(path, error))?;
            (path, bytes)
        } else if let Some(path) = text.strip_prefix("file://") {
            let read = small_file::read_text(path);
            let text = read.map_err(|error| unread(path, error))?;
            let decoded = base64_decode(text.trim());
            (
                path,
                decoded.map_err(|_shows_it| odd(path, "it is not base64"))?,
            )
        } else {
            let decoded = base64_decode(text.trim());
            (
                "",
                decoded.map_err(|_shows_it| odd("", "it is not base64"))?,
            )
        };
        if bytes.len() != KEY_BYTES {
            let why = format!("it has {} bytes, not {KEY_BYTES}", bytes.len());
            return Err(odd(target, &why));
        }
        Ok(Self {
            key_base64: base64_encode(&bytes),
            md5_base64: base64_encode(&Md5::digest(&bytes)),
        })
    }

    /// Adds the headers. The key goes over TLS, or stays on this machine.
    pub(super) fn add(&self, headers: &mut HeaderMap, to: &Endpoint) -> Result<(), Failure> {
        self.add_as(HEADERS, headers, to)
    }

    /// Adds the headers that open the source of a copy within the store.
    pub(super) fn add_for_source(
        &self,
        headers: &mut HeaderMap,
        to: &Endpoint,
    ) -> Result<(), Failure> {
        self.add_as(SOURCE_HEADERS, headers, to)
    }

    fn add_as(
        &self,
        beginning: &str,
        headers: &mut HeaderMap,
        to: &Endpoint,
    ) -> Result<(), Failure> {
        if !(to.is_tls || is_loopback(&to.host)) {
            let why = "the SSE-C key would go over the network in the clear";
            return Err(Failure::new(ErrorKind::InvalidInput, "sse_c", why)
                .with_help("use an https:// endpoint"));
        }
        for (name, value) in [
            ("algorithm", "AES256"),
            ("key", &self.key_base64),
            ("key-md5", &self.md5_base64),
        ] {
            let name = http::HeaderName::try_from(format!("{beginning}{name}"));
            if let Ok(name) = name {
                headers.insert(name, sign::secret(value)?);
            }
        }
        Ok(())
    }
}

fn is_loopback(host: &str) -> bool {
    let is_address = |address: std::net::IpAddr| address.is_loopback();
    host == "localhost" || host.parse().is_ok_and(is_address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE64: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn headers(key: &CustomerKey, to: &str) -> Result<HeaderMap, Failure> {
        let mut headers = HeaderMap::new();
        let (to, _) = Endpoint::split(to).unwrap();
        key.add(&mut headers, &to).map(|()| headers)
    }

    #[test]
    fn all_three_forms_give_the_same_headers() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("raw"), (0..32).collect::<Vec<u8>>()).unwrap();
        std::fs::write(path("text"), format!("{BASE64}\n")).unwrap();
        for form in [
            BASE64.to_owned(),
            format!("fileb://{}", path("raw")),
            format!("file://{}", path("text")),
        ] {
            let key = CustomerKey::read(&Secret(form)).unwrap();
            let headers = headers(&key, "https://h").unwrap();
            let of = |name: &str| headers[&format!("{HEADERS}{name}")].to_str().unwrap();
            assert_eq!(of("algorithm"), "AES256");
            assert_eq!(of("key"), BASE64);
            // By Python's hashlib, of the bytes 0 to 31.
            assert_eq!(of("key-md5"), "tP/LI3N87DFaSk0aoqYgzg==");
            assert!(!format!("{key:?} {headers:?}").contains(BASE64));
        }
    }

    #[test]
    fn what_is_no_key_is_refused_and_never_shown() {
        for text in [
            "hush-hush",
            "aHVzaA==",
            "file:///nonexistent",
            "fileb:///dev/null",
        ] {
            let error = CustomerKey::read(&Secret(text.to_owned())).unwrap_err();
            let shown = format!("{error:#} {error:?}");
            assert!(
                !shown.contains("hush") && !shown.contains("aHVza"),
                "{shown}"
            );
        }
    }

    #[test]
    fn it_never_crosses_a_network_in_the_clear() {
        let key = CustomerKey::read(&Secret(BASE64.to_owned())).unwrap();
        for to in [
            "http://127.0.0.1:1",
            "http://[::1]:1",
            "http://localhost",
            "https://h",
        ] {
            assert!(headers(&key, to).is_ok(), "{to}");
        }
        for to in [
            "http://h",
            "http://10.0.0.1",
            "http://127.0.0.1.evil.example",
        ] {
            assert_eq!(headers(&key, to).unwrap_err().cause, "sse_c", "{to}");
        }
    }
}
