//! Who is spoken to.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// A host and port, with or without TLS.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::store) struct Endpoint {
    pub(in crate::store) is_tls: bool,
    /// A name or an address; an IPv6 address without its brackets.
    pub(in crate::store) host: String,
    pub(in crate::store) port: u16,
}

impl Endpoint {
    /// Cuts `http(s)://host[:port]` off the front of `url`; the rest is returned as it stands.
    pub(in crate::store) fn split(url: &str) -> Result<(Self, &str)> {
        let bad = |why: &str| {
            Error::new(
                ErrorKind::InvalidInput,
                "read the URL",
                // A URL may carry a signature in its query: only what precedes it is shown.
                url.split(['?', '#']).next().unwrap_or_default(),
                why,
            )
            .with_help("write it like http://host:9000/path or https://host/path")
        };
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| bad("it has no scheme"))?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(bad("the scheme is neither http nor https")),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.contains('@') {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "read the URL",
                format!("{scheme}://.."),
                "it carries a user name or password",
            )
            .with_help("put access rights into the query (a signed URL), or use s3://"));
        }
        let (host, port) = split_port(authority).map_err(|why| bad(&why))?;
        let is_plain = |c: char| c.is_ascii_graphic() && !"<>\"\\^`{|}%".contains(c);
        if host.is_empty() || !host.chars().all(is_plain) {
            return Err(bad("the host is empty or contains odd characters"));
        }
        let port = port.unwrap_or(if is_tls { 443 } else { 80 });
        let host = host.to_ascii_lowercase();
        Ok((Self { is_tls, host, port }, rest))
    }

    /// `host` or `host:port`, as the `Host` header has it: the port only where it is not the usual one.
    pub(in crate::store) fn authority(&self) -> String {
        let usual = if self.is_tls { 443 } else { 80 };
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == usual {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }

    /// `host:port`, as CONNECT wants it.
    pub(super) fn host_and_port(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// `http` or `https`.
    pub(in crate::store) fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.authority())
    }
}

/// Host and port of an authority, or why it has none.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest
            .split_once(']')
            .ok_or("the address has no closing bracket")?;
        match after.strip_prefix(':') {
            Some(port) => (host, port),
            None if after.is_empty() => (host, ""),
            None => return Err("behind the address in brackets stands no port".to_owned()),
        }
    } else {
        authority.split_once(':').unwrap_or((authority, ""))
    };
    if port.is_empty() {
        return Ok((host, None));
    }
    if port.contains(':') {
        return Err("it has several colons: an IPv6 address stands in brackets".to_owned());
    }
    // What stands there is not shown: it may be half of a password.
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("the port is no number".to_owned());
    }
    match port.parse() {
        Ok(number) if number > 0 => Ok((host, Some(number))),
        _ => Err("the port is none of 1 to 65535".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_host_and_port_off_the_front() {
        let (endpoint, rest) = Endpoint::split("https://Example.com/a//b?x=1").unwrap();
        assert_eq!(endpoint.to_string(), "https://example.com");
        assert_eq!((endpoint.port, rest), (443, "/a//b?x=1"));
        let (endpoint, rest) = Endpoint::split("http://[::1]:9000").unwrap();
        assert_eq!(endpoint.authority(), "[::1]:9000");
        assert_eq!(rest, "");
    }

    #[test]
    fn refuses_what_is_no_endpoint_and_shows_no_secret() {
        for url in [
            "a",
            "ftp://x/",
            "http://",
            "http://h:x/",
            "http://h:99999/",
            "http://h:0/",
            "http://[::1",
            "http://[::1]x",
            "http://::1:9000",
            "http://a b/",
        ] {
            assert_eq!(
                Endpoint::split(url).unwrap_err().kind(),
                ErrorKind::InvalidInput,
                "{url}"
            );
        }
        for (url, why) in [
            ("http://h:abc", "the port is no number"),
            ("http://h:99999", "the port is none of 1 to 65535"),
            ("http://h:0", "the port is none of 1 to 65535"),
            ("http://::1:9000", "an IPv6 address stands in brackets"),
            ("http://[::1", "no closing bracket"),
            ("h:9000", "it has no scheme"),
        ] {
            let error = Endpoint::split(url).unwrap_err();
            assert!(error.why().contains(why), "{error:#}");
            assert!(
                error.help().unwrap().contains("http://host:9000"),
                "{error:#}"
            );
        }
        let error = Endpoint::split("http://me:secret@host/").unwrap_err();
        assert!(!format!("{error:#}").contains("secret"));
        let error = Endpoint::split("http:///a?X-Amz-Signature=abc").unwrap_err();
        assert!(!format!("{error:#}").contains("abc"));
    }
}
