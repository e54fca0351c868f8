//! From addresses to a connection: a race over them, and TLS.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use super::addresses::{Addresses, Placed};
use super::connection::Connection;
use super::endpoint::Endpoint;
use super::failure::Failure;
use super::proxy::Proxy;
use super::tls::TlsConnector;
use crate::error::ErrorKind;
use crate::sync::Arc;

/// Head start of one address over the next (RFC 8305, 5: 250 ms).
const HEAD_START: Duration = Duration::from_millis(250);

/// A new connection to `endpoint`, by way of `proxy` where there is one, within `timeout` in all, and its place among the
/// addresses, which are the proxy's then.
pub(super) async fn connect(
    endpoint: &Endpoint,
    proxy: Option<&Proxy>,
    addresses: &Arc<Addresses>,
    tls: Option<&TlsConnector>,
    timeout: Duration,
) -> Result<(Connection, Placed), Failure> {
    let deadline = Instant::now() + timeout;
    let next = proxy.map_or(endpoint, Proxy::endpoint);
    let reached = async {
        let order = time::timeout_at(deadline, addresses.order(next)).await;
        let order = order.map_err(|_elapsed| too_slow(timeout))??;
        let (address, stream) = race(addresses, order, deadline)
            .await
            .map_err(|error| error.unwrap_or_else(|| too_slow(timeout)))?;
        tracing::trace!(%address, "connected");
        let placed = addresses.place(address);
        let secured = time::timeout_at(deadline, secure(stream, endpoint, proxy, tls)).await;
        let secured = secured.unwrap_or_else(|_elapsed| Err(too_slow(timeout)));
        // A wrong certificate is no fault of one address.
        secured
            .inspect_err(|failure| {
                if failure.is_worth_retrying {
                    placed.rest();
                }
            })
            .map(|connection| (connection, placed))
    };
    reached.await.map_err(|mut failure| {
        if failure.help.is_none() && failure.kind == ErrorKind::Unreachable {
            let what = proxy.map_or_else(String::new, |_| "the proxy ".to_owned());
            failure = failure.with_help(format!("is {what}{next} right, and reachable from here?"));
        }
        failure
    })
}

fn too_slow(timeout: Duration) -> Failure {
    let why = format!("no connection within {} ms", timeout.as_millis());
    Failure::new(ErrorKind::Unreachable, "connect_timeout", why)
}

async fn secure(
    mut stream: TcpStream,
    endpoint: &Endpoint,
    proxy: Option<&Proxy>,
    tls: Option<&TlsConnector>,
) -> Result<Connection, Failure> {
    // Requests are small and answers awaited: Nagle only delays them.
    stream.set_nodelay(true).map_err(Failure::connection)?;
    let Some(tls) = tls else {
        return Ok(Connection::plain(stream));
    };
    if let Some(proxy) = proxy {
        proxy.tunnel(&mut stream, endpoint).await?;
    }
    let name = ServerName::try_from(endpoint.host.clone()).map_err(|error| {
        Failure::new(
            ErrorKind::InvalidInput,
            "tls",
            "the host is no name TLS can check",
        )
        .with_source(error)
    })?;
    let stream = tls.connect(name, stream).await;
    let stream = stream.map_err(|error| handshake(error, endpoint))?;
    Ok(Connection::tls(stream))
}

/// The first of `order` that answers; each gets a head start over the next. One that fails rests, and so does one that
/// was overtaken although it began first: the next connection need not wait for it again. No failure is the deadline.
async fn race(
    addresses: &Addresses,
    order: Vec<SocketAddr>,
    deadline: Instant,
) -> Result<(SocketAddr, TcpStream), Option<Failure>> {
    let mut running = JoinSet::new();
    // In the order in which they began.
    let mut pending: Vec<SocketAddr> = Vec::new();
    let mut waiting = order.into_iter();
    let mut last = None;
    loop {
        if let Some(address) = waiting.next() {
            pending.push(address);
            running.spawn(async move { (address, TcpStream::connect(address).await) });
        } else if running.is_empty() {
            addresses.forget();
            return Err(Some(last.unwrap_or_else(|| {
                Failure::connection(io::ErrorKind::NotFound.into())
            })));
        }
        let next = if waiting.len() == 0 {
            deadline
        } else {
            deadline.min(Instant::now() + HEAD_START)
        };
        match time::timeout_at(next, running.join_next()).await {
            Ok(Some(Ok((address, Ok(stream))))) => {
                let overtaken = pending.iter().take_while(|began| **began != address);
                overtaken.for_each(|address| addresses.rest(*address));
                return Ok((address, stream));
            }
            Ok(Some(Ok((address, Err(error))))) => {
                pending.retain(|began| *began != address);
                if !Failure::is_our_own(&error) {
                    addresses.rest(address);
                }
                last = Some(Failure::connection(error));
            }
            Ok(_) => {}
            // An elapsed head start is no error: the next address is tried beside this one.
            Err(_elapsed) if Instant::now() < deadline => {}
            Err(_elapsed) => {
                pending.iter().for_each(|address| addresses.rest(*address));
                addresses.forget();
                return Err(None);
            }
        }
    }
}

/// A failed handshake: a bad certificate stays bad, everything else may pass.
fn handshake(error: io::Error, endpoint: &Endpoint) -> Failure {
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
        None => {
            let mut failure = Failure::connection(error);
            if matches!(failure.cause, "closed" | "reset") {
                failure.why.push_str(" in the middle of the TLS handshake");
                failure.help = Some(format!(
                    "does {endpoint} speak TLS? One that does not is called http:// rather than https://"
                ));
            }
            failure
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::addresses::tests::{address, named, resolved};
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    /// A port on which something listens on 127.0.0.1 and nothing on other addresses of loopback.
    fn listener() -> (std::net::TcpListener, u16) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[tokio::test]
    async fn an_address_that_refuses_costs_one_try_and_rests() {
        let (_listener, port) = listener();
        let at = |last: u8| SocketAddr::from(([127, 0, 0, last], port));
        let addresses = resolved(&[at(2), at(1), at(3)]);
        let mut open = Vec::new();
        for _ in 0..6 {
            let (_, placed) = connect(&named(port), None, &addresses, None, SOON)
                .await
                .unwrap();
            assert_eq!(address(&placed), at(1));
            open.push(placed);
        }
        // Although it has all the connections, it comes first: the others rest.
        assert_eq!(addresses.order(&named(port)).await.unwrap()[0], at(1));
    }

    #[tokio::test]
    async fn an_address_that_swallows_everything_is_overtaken_once_and_rests() {
        let (_listener, port) = listener();
        let good = SocketAddr::from(([127, 0, 0, 1], port));
        // TEST-NET-3 (RFC 5737) answers nobody; where the machine says so at once, it is refused instead.
        let hole = SocketAddr::from(([203, 0, 113, 1], port));
        let addresses = resolved(&[good, hole]);
        for _ in 0..4 {
            let (_, placed) = connect(&named(port), None, &addresses, None, SOON)
                .await
                .unwrap();
            assert_eq!(address(&placed), good);
        }
        assert_eq!(addresses.order(&named(port)).await.unwrap(), [good, hole]);
    }

    #[tokio::test]
    async fn where_none_answers_the_error_says_so_and_the_name_is_resolved_anew() {
        let (listener, port) = listener();
        drop(listener);
        let addresses = resolved(&[SocketAddr::from(([127, 0, 0, 1], port))]);
        let failure = connect(&named(port), None, &addresses, None, SOON)
            .await
            .unwrap_err();
        assert_eq!(failure.cause, "refused");
        assert!(failure.help.unwrap().contains("name.invalid"));
    }

    #[tokio::test]
    async fn a_family_of_addresses_that_leads_nowhere_does_not_matter() {
        let (_listener, port) = listener();
        let good = SocketAddr::from(([127, 0, 0, 1], port));
        // Nobody listens at the one, and the other (RFC 3849, for examples) answers nobody.
        let refuses = SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port));
        let hole = SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], port));
        let addresses = resolved(&[refuses, hole, good]);
        for _ in 0..3 {
            let reached = connect(&named(port), None, &addresses, None, SOON).await;
            assert_eq!(address(&reached.unwrap().1), good);
        }
    }

    #[tokio::test]
    #[ignore = "needs IPv6 on the loopback device"]
    async fn an_address_of_ipv6_alone_is_reached() {
        let listener = std::net::TcpListener::bind("[::1]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (endpoint, _) = Endpoint::split(&format!("http://[::1]:{port}")).unwrap();
        let addresses = Arc::<Addresses>::default();
        let reached = connect(&endpoint, None, &addresses, None, SOON).await;
        assert_eq!(address(&reached.unwrap().1), listener.local_addr().unwrap());
    }
}
