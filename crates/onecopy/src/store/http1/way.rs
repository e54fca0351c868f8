//! Whom a request went to, and by way of whom: for whoever reads of its failure.

use std::fmt;

use super::endpoint::Endpoint;
use super::proxy::Proxy;
use crate::error::ErrorKind;
use crate::sync::{Arc, AtomicBool, Ordering};

/// The way to an endpoint, and whether anything ever came back on it. A proxy's password is in no form of it.
#[derive(Debug)]
pub(in crate::store) struct Way {
    endpoint: Endpoint,
    proxy: Option<Arc<Proxy>>,
    has_answered: AtomicBool,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.proxy {
            Some(proxy) => write!(f, "{} (through the proxy {proxy})", self.endpoint),
            None => self.endpoint.fmt(f),
        }
    }
}

impl Way {
    pub(super) fn new(endpoint: Endpoint, proxy: Option<Arc<Proxy>>) -> Arc<Self> {
        Arc::new(Self {
            endpoint,
            proxy,
            has_answered: AtomicBool::new(false),
        })
    }

    /// Where it leads.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The proxy on it, if any.
    pub(super) fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_deref()
    }

    /// Notes that an answer came.
    pub(super) fn answered(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    /// Whether one ever did.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// `why` with the proxy named, where there is one and it does not say so itself.
    pub(super) fn told(&self, why: String) -> String {
        match self.proxy.as_ref().map(ToString::to_string) {
            Some(proxy) if !why.contains(&proxy) => format!("{why} (through the proxy {proxy})"),
            _ => why,
        }
    }

    /// What to do about a failure that says nothing of it itself.
    pub(super) fn advice(&self, kind: ErrorKind, cause: &str) -> Option<String> {
        let is_broken = matches!(
            cause,
            "closed" | "reset" | "connection" | "first_byte_timeout"
        );
        if is_broken && !self.has_answered() {
            let (ours, other) = if self.endpoint.is_tls {
                ("https", "http")
            } else {
                ("http", "https")
            };
            return Some(format!(
                "nothing has ever come from {self}: is it the right place, is it up, and does it want {other}:// rather \
                 than {ours}://?"
            ));
        }
        Some(match cause {
            "closed" | "reset" | "connection" => format!(
                "{self}, or something on the way there, breaks connections: try again later, and look for a proxy or \
                 firewall that cuts them; lower `connections` if it is too many of them"
            ),
            "short_body" => format!(
                "{self}, or something on the way there, ends answers early: look for a proxy, gateway or firewall with a \
                 limit of its own on their time or length"
            ),
            "stalled" | "slow" | "first_byte_timeout" | "late_first_byte" | "server_timeout" => {
                format!(
                    "{self}, or the network on the way there, is slower than it should be: try again later, or lower \
                     `connections`"
                )
            }
            "throttled" => {
                format!("{self} gives no more than it did: lower `connections`, or try again later")
            }
            "server_error" => format!(
                "the fault lies with {self}: try again later, and tell whoever runs it if it stays"
            ),
            "bad_answer" | "too_long" => format!(
                "check that {self} is the right place, and whether a proxy or gateway on the way alters answers"
            ),
            "changed" => "start again: it is another version by now".to_owned(),
            "no_such_range" => "look it up or list it anew: it may have become shorter".to_owned(),
            "denied" => format!("check the credentials and rights that are meant for {self}"),
            "wants_tls" => format!("say https:// rather than http:// for {self}"),
            "not_modified" => {
                format!("a cache or proxy on the way to {self} answers in its place: go round it")
            }
            "refused" | "status" | "redirect" | "redirects" => {
                format!("check that {self} is the right place for this, and knows such requests")
            }
            _ if kind == ErrorKind::Unreachable => {
                format!("is {self} right, and reachable from here?")
            }
            _ => return None,
        })
    }
}
