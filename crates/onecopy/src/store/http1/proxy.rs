//! Proxies, as the environment names them.

use std::fmt;

use percent_encoding::percent_decode_str;
use reqsign_core::hash::base64_encode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::USER_AGENT;
use super::endpoint::Endpoint;
use super::failure::Failure;
use super::head::Head;
use super::no_proxy::NoProxy;
use crate::config::Variables;
use crate::error::ErrorKind;
use crate::sync::Arc;

/// The answer to CONNECT is a line and a few headers.
const MAX_ANSWER: usize = 16 << 10;

const HOW: &str = "write it like http://host:3128 or http://user:password@host:3128";

/// What the environment says of proxies: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, in small letters or
/// capitals; where both are set the small ones win, as with curl.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    http: Option<Named>,
    https: Option<Named>,
    none_for: NoProxy,
}

/// A proxy by the variable that names it, or why it cannot be one.
type Named = Result<Arc<Proxy>, (String, String)>;

impl Proxies {
    pub(super) fn read(variables: &Variables) -> Self {
        let find = |name: &str| {
            let capitals = name.to_ascii_uppercase();
            let small = variables.get(name).map(|value| (name.to_owned(), value));
            small.or_else(|| variables.get(&capitals).map(|value| (capitals, value)))
        };
        let proxy = |name: &str| {
            let (name, value) = find(name).or_else(|| find("all_proxy"))?;
            Some(Proxy::read(&value).map(Arc::new).map_err(|why| (name, why)))
        };
        Self {
            http: proxy("http_proxy"),
            https: proxy("https_proxy"),
            none_for: find("no_proxy").map_or_else(NoProxy::default, |list| NoProxy::read(&list.1)),
        }
    }

    /// The proxy on the way to `endpoint`, if any.
    pub(super) fn toward(&self, endpoint: &Endpoint) -> Result<Option<Arc<Proxy>>, Failure> {
        let named = if endpoint.is_tls {
            &self.https
        } else {
            &self.http
        };
        match named {
            Some(_) if self.none_for.covers(endpoint) => Ok(None),
            Some(Ok(proxy)) => Ok(Some(Arc::clone(proxy))),
            // The value may hold a password: it is not shown.
            Some(Err((name, why))) => {
                let why = format!("{name} names no proxy that can be used: {why}");
                Err(Failure::new(ErrorKind::InvalidInput, "proxy", why).with_help(HOW))
            }
            None => Ok(None),
        }
    }
}

/// A proxy that is spoken to in plain HTTP. Neither form of it shows a password.
pub(super) struct Proxy {
    endpoint: Endpoint,
    /// The value of `Proxy-Authorization`.
    authorization: Option<String>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("endpoint", &self.endpoint)
            .field("has_authorization", &self.authorization.is_some())
            .finish()
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)
    }
}

impl Proxy {
    fn read(value: &str) -> Result<Self, String> {
        let (scheme, rest) = value
            .trim()
            .split_once("://")
            .unwrap_or(("http", value.trim()));
        match scheme.to_ascii_lowercase().as_str() {
            "http" => {}
            "https" => return Err("proxies are spoken to in plain HTTP only".to_owned()),
            scheme if scheme.starts_with("socks") => {
                return Err("SOCKS is not spoken here".to_owned());
            }
            _ => return Err("its scheme is not http".to_owned()),
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, _path) = rest.split_at(end);
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let url = format!("http://{host}");
        // Why, and not the whole error: that shows the URL.
        let endpoint = Endpoint::split(&url).map_err(|error| error.why().to_owned())?;
        let endpoint = endpoint.0;
        let authorization = user.map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            let decode = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
            let pair = [decode(name), decode(password)].join(&b':');
            format!("Basic {}", base64_encode(&pair))
        });
        Ok(Self {
            endpoint,
            authorization,
        })
    }

    /// Where it is.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The line that it wants among the headers, with its end; empty where it wants none.
    pub(super) fn header(&self) -> String {
        let value = self.authorization.as_ref();
        value.map_or_else(String::new, |value| {
            format!("proxy-authorization: {value}\r\n")
        })
    }

    /// What a 407 means.
    pub(super) fn wants_credentials(&self) -> Failure {
        let why = if self.authorization.is_some() {
            format!("the proxy {self} does not accept our user name and password (407)")
        } else {
            format!("the proxy {self} wants a user name and password (407)")
        };
        Failure::new(ErrorKind::Denied, "proxy_denied", why)
            .with_help(HOW)
            .final_now()
    }

    /// Asks for a way through to `endpoint`. After that the stream leads there.
    pub(super) async fn tunnel(
        &self,
        stream: &mut TcpStream,
        endpoint: &Endpoint,
    ) -> Result<(), Failure> {
        let to = endpoint.host_and_port();
        let text = format!(
            "CONNECT {to} HTTP/1.1\r\nhost: {to}\r\nuser-agent: {USER_AGENT}\r\n{}\r\n",
            self.header()
        );
        let written = stream.write_all(text.as_bytes()).await;
        written.map_err(Failure::connection)?;
        let head = self.answer(stream).await?;
        match head.status {
            200..=299 => Ok(()),
            407 => Err(self.wants_credentials()),
            status => {
                let why = format!("the proxy {self} gives no way to {to} (status {status})");
                Err(match status {
                    // It could not get there, or has too much to do: that may pass.
                    408 | 429 | 500..=599 => {
                        Failure::new(ErrorKind::Unreachable, "proxy_failed", why)
                    }
                    _ => Failure::new(ErrorKind::Denied, "proxy_denied", why).final_now(),
                }
                .with_help("ask whoever runs the proxy to allow it, or name the host in NO_PROXY"))
            }
        }
    }

    /// Reads the answer to CONNECT up to its end and no further: what follows is the tunnel's.
    async fn answer(&self, stream: &mut TcpStream) -> Result<Head, Failure> {
        let mut bytes = Vec::new();
        while bytes.len() < MAX_ANSWER {
            // Byte by byte, because the head's length is not known: some hundred bytes, once per connection.
            let byte = stream.read_u8().await.map_err(Failure::connection)?;
            bytes.push(byte);
            if !bytes.ends_with(b"\n\r\n") && !bytes.ends_with(b"\n\n") {
                continue;
            }
            match Head::parse(&bytes)? {
                Some((head, _)) if head.is_interim() => bytes.clear(),
                Some((head, _)) => return Ok(head),
                None => {}
            }
        }
        Err(Failure::corrupt(format!(
            "the proxy {self} answers without end"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toward(variables: &[(&str, &str)], url: &str) -> Result<Option<String>, Failure> {
        let proxies = Proxies::read(&Variables::only(variables.iter().copied()));
        let proxy = proxies.toward(&Endpoint::split(url).unwrap().0)?;
        Ok(proxy.map(|proxy| format!("{proxy} {}", proxy.header().trim_end())))
    }

    #[test]
    fn each_scheme_has_its_variable_and_small_letters_win() {
        let [http, https, all] = [
            ("HTTP_PROXY", "http://a:1"),
            ("HTTPS_PROXY", "http://b:2"),
            ("ALL_PROXY", "http://c:3"),
        ];
        let small = ("http_proxy", "http://d:4/");
        for (variables, url, expected) in [
            (vec![], "http://h", None),
            (vec![http], "http://h", Some("http://a:1 ")),
            (vec![http], "https://h", None),
            (vec![http, https], "https://h", Some("http://b:2 ")),
            (vec![http, all], "https://h", Some("http://c:3 ")),
            (vec![http, small], "http://h", Some("http://d:4 ")),
            (vec![http, ("NO_PROXY", "h")], "http://h", None),
            (
                vec![http, ("no_proxy", "x"), ("NO_PROXY", "h")],
                "http://h",
                Some("http://a:1 "),
            ),
            (vec![all], "http://169.254.169.254/latest", None),
            (vec![("HTTP_PROXY", "a:1")], "http://h", Some("http://a:1 ")),
            (vec![("HTTP_PROXY", "a")], "http://h", Some("http://a ")),
            (vec![("HTTP_PROXY", "")], "http://h", None),
        ] {
            assert_eq!(
                toward(&variables, url).unwrap().as_deref(),
                expected,
                "{variables:?}"
            );
        }
    }

    #[test]
    fn names_and_passwords_are_sent_and_never_shown() {
        let variables = [("HTTP_PROXY", "http://us%20er:p%40s:s@proxy:8080")];
        let shown = toward(&variables, "http://h").unwrap().unwrap();
        // printf 'us er:p@s:s' | base64
        assert_eq!(
            shown,
            "http://proxy:8080 proxy-authorization: Basic dXMgZXI6cEBzOnM="
        );
        let proxies = Proxies::read(&Variables::only(variables));
        let text = format!("{proxies:?}");
        assert!(!text.contains("p@s") && !text.contains("dXMg"), "{text}");
        let proxy = proxies.toward(&Endpoint::split("http://h").unwrap().0);
        let failure = proxy.unwrap().unwrap().wants_credentials();
        assert!(
            failure.why.contains("http://proxy:8080") && !failure.why.contains("p@s"),
            "{}",
            failure.why
        );
    }

    #[test]
    fn what_is_no_proxy_is_named_by_its_variable_and_not_shown() {
        for value in [
            "https://me:secret@p",
            "socks5://me:secret@p",
            "ftp://secret",
            "http://me:secret@",
            "http://me:secret@host:99999",
            "http://me:secret/@host",
        ] {
            let failure = toward(&[("https_proxy", value)], "https://h").unwrap_err();
            assert_eq!(failure.kind, ErrorKind::InvalidInput);
            assert!(failure.why.starts_with("https_proxy "), "{}", failure.why);
            assert!(!format!("{failure:?}").contains("secret"), "{value}");
            // Who is not asked through it does not mind.
            assert!(toward(&[("https_proxy", value)], "http://h").is_ok());
        }
    }
}
