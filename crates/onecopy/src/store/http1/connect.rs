//! From a name to a connection: resolution, a race over the addresses, TLS.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time;
use tokio_rustls::TlsConnector;

use super::connection::Connection;
use super::endpoint::Endpoint;
use super::failure::Failure;
use crate::error::ErrorKind;
use crate::sync::{Mutex, Threads};

/// How long resolved addresses are used. S3 answers with other ones every few seconds, and connections should spread
/// over many of them.
const RESOLVED_FOR: Duration = Duration::from_secs(20);

/// How long an address that failed is asked last.
const REST: Duration = Duration::from_secs(30);

/// Head start of one address over the next (RFC 8305, 5: 250 ms).
const HEAD_START: Duration = Duration::from_millis(250);

/// The addresses of one endpoint.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// Guards the list; never held over an await.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    list: Vec<SocketAddr>,
    resolved: Option<Instant>,
    resting: HashMap<SocketAddr, Instant>,
    turn: usize,
}

impl Addresses {
    /// The addresses to try, in order: another one first at every call, resting ones last.
    async fn order(&self, endpoint: &Endpoint) -> Result<Vec<SocketAddr>, Failure> {
        if let Ok(ip) = endpoint.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, endpoint.port)]);
        }
        let is_fresh = {
            let state = self.state.lock();
            state.resolved.is_some_and(|at| at.elapsed() < RESOLVED_FOR)
        };
        if !is_fresh {
            let found = look_up(endpoint).await?;
            let mut state = self.state.lock();
            match found {
                Ok(found) => {
                    state.list = interleave(found.into_iter());
                    state.resolved = Some(Instant::now());
                }
                // A resolver that hiccups does not end a run whose addresses are known.
                Err(_) if !state.list.is_empty() => {}
                Err(error) => return Err(unresolved(endpoint, error)),
            }
        }
        let mut state = self.state.lock();
        if state.list.is_empty() {
            return Err(unresolved(endpoint, io::ErrorKind::NotFound.into()));
        }
        state.turn = state.turn.wrapping_add(1);
        let mut order = state.list.clone();
        let turn = state.turn % order.len();
        order.rotate_left(turn);
        state.resting.retain(|_, since| since.elapsed() < REST);
        order.sort_by_key(|address| state.resting.contains_key(address));
        Ok(order)
    }

    fn rest(&self, address: SocketAddr) {
        self.state.lock().resting.insert(address, Instant::now());
    }
}

/// IPv4 and IPv6 in turn, so that one broken family costs one head start.
fn interleave(found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let (v4, v6): (Vec<_>, Vec<_>) = found.partition(SocketAddr::is_ipv4);
    let mut list = Vec::new();
    let (mut v4, mut v6) = (v4.into_iter(), v6.into_iter());
    loop {
        let before = list.len();
        list.extend(v4.next());
        list.extend(v6.next());
        if list.len() == before {
            list.dedup();
            return list;
        }
    }
}

/// Asks the system's resolver, which may take its time, on a thread of its own. `LimitReached` where there is none.
async fn look_up(endpoint: &Endpoint) -> Result<io::Result<Vec<SocketAddr>>, Failure> {
    let (host, port) = (endpoint.host.clone(), endpoint.port);
    let ask = move || Ok((host.as_str(), port).to_socket_addrs()?.collect());
    // One look-up every 20 s at most: a thread of its own costs nothing beside it.
    Threads::new("names", 1)
        .run(ask)
        .await
        .map_err(|error| Failure::of_ours("no_thread", error))
}

fn unresolved(endpoint: &Endpoint, error: io::Error) -> Failure {
    Failure::new(
        ErrorKind::Unreachable,
        "unresolved",
        format!("the name {} does not resolve", endpoint.host),
    )
    .with_source(error)
    .with_help("check the endpoint, the region and the bucket's name, and this machine's DNS")
}

/// A new connection to `endpoint`, within `timeout` in all.
pub(super) async fn connect(
    endpoint: &Endpoint,
    addresses: &Addresses,
    tls: Option<&TlsConnector>,
    timeout: Duration,
) -> Result<Connection, Failure> {
    let connecting = async {
        let order = addresses.order(endpoint).await?;
        let stream = race(addresses, order).await?;
        // Requests are small and answers awaited: Nagle only delays them.
        stream.set_nodelay(true).map_err(Failure::connection)?;
        let Some(tls) = tls else {
            return Ok(Connection::plain(stream));
        };
        let name = ServerName::try_from(endpoint.host.clone()).map_err(|error| {
            Failure::new(
                ErrorKind::InvalidInput,
                "tls",
                "the host is no name TLS can check",
            )
            .with_source(error)
        })?;
        let stream = tls.connect(name, stream).await.map_err(handshake)?;
        Ok(Connection::tls(stream))
    };
    let result = match time::timeout(timeout, connecting).await {
        Ok(result) => result,
        Err(_elapsed) => Err(Failure::new(
            ErrorKind::Unreachable,
            "connect_timeout",
            format!("no connection within {} ms", timeout.as_millis()),
        )),
    };
    result.map_err(|mut failure| {
        if failure.help.is_none() && failure.kind == ErrorKind::Unreachable {
            failure = failure.with_help(format!("is {endpoint} right, and reachable from here?"));
        }
        failure
    })
}

/// The first of `order` that answers; each gets a head start over the next.
async fn race(addresses: &Addresses, order: Vec<SocketAddr>) -> Result<TcpStream, Failure> {
    let mut running = JoinSet::new();
    let mut waiting = order.into_iter();
    let mut last = None;
    loop {
        if let Some(address) = waiting.next() {
            running.spawn(async move { (address, TcpStream::connect(address).await) });
        } else if running.is_empty() {
            return Err(last.unwrap_or_else(|| Failure::connection(io::ErrorKind::NotFound.into())));
        }
        let done = if waiting.len() == 0 {
            running.join_next().await
        } else {
            // An elapsed head start is no error: the next address is tried beside this one.
            time::timeout(HEAD_START, running.join_next())
                .await
                .ok()
                .flatten()
        };
        match done {
            Some(Ok((_, Ok(stream)))) => return Ok(stream),
            Some(Ok((address, Err(error)))) => {
                addresses.rest(address);
                last = Some(Failure::connection(error));
            }
            Some(Err(_)) | None => {}
        }
    }
}

/// A failed handshake: a bad certificate stays bad, everything else may pass.
fn handshake(error: io::Error) -> Failure {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(why)) => {
            let why = format!("the certificate is not trusted: {why}");
            Failure::new(ErrorKind::Unreachable, "certificate", why)
                .final_now()
                .with_source(error)
                .with_help("name the right certificates with `ca_bundle`; `no_verify_ssl` turns the check off")
        }
        Some(rustls::Error::InvalidMessage(_)) => Failure::new(
            ErrorKind::Unreachable,
            "tls",
            "the other side does not speak TLS",
        )
        .final_now()
        .with_source(error)
        .with_help("is the endpoint http:// rather than https://?"),
        Some(_) => Failure::new(
            ErrorKind::Unreachable,
            "tls",
            format!("TLS failed: {error}"),
        )
        .with_source(error),
        None => Failure::connection(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let all = ["1.1.1.1:1", "2.2.2.2:1", "[::1]:1"].map(|text| text.parse().unwrap());
        let list = interleave(all.into_iter());
        assert_eq!(list, [all[0], all[2], all[1]]);
    }

    #[tokio::test]
    async fn connections_spread_and_failed_addresses_rest() {
        let endpoint = Endpoint {
            is_tls: false,
            host: "name.invalid".into(),
            port: 1,
        };
        let list: Vec<SocketAddr> = ["127.0.0.1:1", "127.0.0.2:1", "127.0.0.3:1"]
            .map(|text| text.parse().unwrap())
            .into();
        let addresses = Addresses::default();
        addresses.state.lock().list = list.clone();
        addresses.state.lock().resolved = Some(Instant::now());
        let mut firsts = Vec::new();
        for _ in 0..3 {
            firsts.push(addresses.order(&endpoint).await.unwrap()[0]);
        }
        firsts.sort();
        assert_eq!(firsts, list);
        addresses.rest(list[0]);
        for _ in 0..3 {
            assert_eq!(addresses.order(&endpoint).await.unwrap()[2], list[0]);
        }
    }
}
