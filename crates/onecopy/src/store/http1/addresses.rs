//! The addresses of one endpoint: resolved again and again, spread over, and left alone for a while where they fail.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tokio::time::Instant;

use super::endpoint::Endpoint;
use super::failure::Failure;
use crate::error::ErrorKind;
use crate::sync::{Arc, Mutex, Threads, check_files};

/// How long resolved addresses are used. S3 answers with other ones every few seconds, and connections should spread
/// over many of them.
const RESOLVED_FOR: Duration = Duration::from_secs(20);

/// How long an address that failed is asked last.
const REST: Duration = Duration::from_secs(30);

/// Connections of one address that break one after the other, without an answer between them, before it rests: any
/// connection may break once.
const STRIKES: u32 = 2;

#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// Guards the list; never held over an await.
    state: Mutex<State>,
    /// Held while the name is resolved: once for all who wait.
    resolving: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    list: Vec<SocketAddr>,
    resolved: Option<Instant>,
    known: HashMap<SocketAddr, Known>,
    turn: usize,
}

/// What is known of one address.
#[derive(Debug, Default)]
struct Known {
    connections: usize,
    strikes: u32,
    rests_since: Option<Instant>,
}

impl Known {
    fn is_resting(&self) -> bool {
        self.rests_since.is_some_and(|since| since.elapsed() < REST)
    }
}

/// A connection's place at its address: dropped with it.
#[derive(Debug)]
pub(super) struct Placed {
    addresses: Arc<Addresses>,
    address: SocketAddr,
}

impl Addresses {
    /// The addresses to try, in order: those that rest last, those with the fewest connections first, in turn where there
    /// are as many.
    pub(super) async fn order(&self, endpoint: &Endpoint) -> Result<Vec<SocketAddr>, Failure> {
        if let Ok(ip) = endpoint.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, endpoint.port)]);
        }
        self.refresh(endpoint).await?;
        let mut state = self.state.lock();
        if state.list.is_empty() {
            return Err(unresolved(endpoint, io::ErrorKind::NotFound.into()));
        }
        state.turn = state.turn.wrapping_add(1);
        let mut order = state.list.clone();
        let turn = state.turn % order.len();
        order.rotate_left(turn);
        order.sort_by_key(|address| {
            let known = state.known.get(address);
            known.map_or((false, 0), |known| (known.is_resting(), known.connections))
        });
        Ok(order)
    }

    async fn refresh(&self, endpoint: &Endpoint) -> Result<(), Failure> {
        if self.is_fresh() {
            return Ok(());
        }
        let has_old = !self.state.lock().list.is_empty();
        let _resolving = match self.resolving.try_lock() {
            Ok(resolving) => resolving,
            // Somebody is at it, and the old ones are good until then.
            Err(_busy) if has_old => return Ok(()),
            Err(_busy) => self.resolving.lock().await,
        };
        if self.is_fresh() {
            return Ok(());
        }
        let found = look_up(endpoint).await?;
        let mut state = self.state.lock();
        match found {
            Ok(found) => {
                state.list = interleave(found.into_iter());
                state.resolved = Some(Instant::now());
                // Names of clouds have thousands of addresses over time: only what still matters is remembered.
                let list = state.list.clone();
                state.known.retain(|address, known| {
                    known.connections > 0 || known.is_resting() || list.contains(address)
                });
                Ok(())
            }
            // A resolver that hiccups does not end a run whose addresses are known.
            Err(_) if has_old => Ok(()),
            Err(error) => Err(unresolved(endpoint, error)),
        }
    }

    fn is_fresh(&self) -> bool {
        let state = self.state.lock();
        state.resolved.is_some_and(|at| at.elapsed() < RESOLVED_FOR)
    }

    /// None of them answers: the next connection resolves the name anew.
    pub(super) fn forget(&self) {
        self.state.lock().resolved = None;
    }

    /// Asks an address last for a while.
    pub(super) fn rest(&self, address: SocketAddr) {
        tracing::debug!(%address, "an address failed and rests");
        let mut state = self.state.lock();
        let known = state.known.entry(address).or_default();
        known.rests_since = Some(Instant::now());
        known.strikes = 0;
    }

    /// Notes a new connection to an address.
    pub(super) fn place(self: &Arc<Self>, address: SocketAddr) -> Placed {
        self.state
            .lock()
            .known
            .entry(address)
            .or_default()
            .connections += 1;
        Placed {
            addresses: Arc::clone(self),
            address,
        }
    }
}

impl Placed {
    pub(super) fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    /// The connection broke, or brought nothing in time.
    pub(super) fn strike(&self) {
        let strikes = {
            let mut state = self.addresses.state.lock();
            let known = state.known.entry(self.address).or_default();
            known.strikes += 1;
            known.strikes
        };
        if strikes >= STRIKES {
            self.addresses.rest(self.address);
        }
    }

    /// The address does not answer at all.
    pub(super) fn rest(&self) {
        self.addresses.rest(self.address);
    }

    /// The address answered: what broke before was no habit. One that rests goes on doing so, because it may answer on old
    /// connections and let no new one in.
    pub(super) fn praise(&self) {
        let mut state = self.addresses.state.lock();
        let known = state.known.entry(self.address).or_default();
        known.strikes = 0;
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        let mut state = self.addresses.state.lock();
        if let Some(known) = state.known.get_mut(&self.address) {
            known.connections = known.connections.saturating_sub(1);
        }
    }
}

/// IPv4 and IPv6 in turn, so that one broken family costs one head start.
fn interleave(found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let (v4, v6): (Vec<_>, Vec<_>) = found.partition(SocketAddr::is_ipv4);
    let mut list = Vec::new();
    let (mut v4, mut v6) = (v4.into_iter(), v6.into_iter());
    loop {
        let before = list.len();
        for next in [v4.next(), v6.next()].into_iter().flatten() {
            if !list.contains(&next) {
                list.push(next);
            }
        }
        if list.len() == before && v4.len() == 0 && v6.len() == 0 {
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

/// Its settings, the list of hosts, and a socket for each server that is asked.
const FILES_OF_A_LOOK_UP: usize = 4;

fn unresolved(endpoint: &Endpoint, error: io::Error) -> Failure {
    // The resolver calls a name unknown, too, where it can open neither its settings nor a socket.
    if let Err(error) = check_files("a look-up of the name", FILES_OF_A_LOOK_UP) {
        return Failure::of_ours("no_files", error);
    }
    Failure::new(
        ErrorKind::Unreachable,
        "unresolved",
        format!("the name {} does not resolve", endpoint.host),
    )
    .with_source(error)
    .with_help("check the endpoint, the region and the bucket's name, and this machine's DNS")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The addresses of a name, as if they had been resolved just now.
    pub(in super::super) fn resolved(list: &[SocketAddr]) -> Arc<Addresses> {
        let addresses = Arc::default();
        resolve_to(&addresses, list);
        addresses
    }

    pub(in super::super) fn resolve_to(addresses: &Addresses, list: &[SocketAddr]) {
        addresses.state.lock().list = list.into();
        addresses.state.lock().resolved = Some(Instant::now());
    }

    pub(in super::super) fn address(placed: &Placed) -> SocketAddr {
        placed.address
    }

    pub(in super::super) fn named(port: u16) -> Endpoint {
        Endpoint {
            is_tls: false,
            host: "name.invalid".into(),
            port,
        }
    }

    fn three() -> [SocketAddr; 3] {
        ["127.0.0.1:1", "127.0.0.2:1", "127.0.0.3:1"].map(|text| text.parse().unwrap())
    }

    async fn first(addresses: &Addresses) -> SocketAddr {
        addresses.order(&named(1)).await.unwrap()[0]
    }

    #[test]
    fn families_take_turns() {
        let all = ["1.1.1.1:1", "2.2.2.2:1", "[::1]:1", "1.1.1.1:1"].map(|t| t.parse().unwrap());
        let list = interleave(all.into_iter());
        assert_eq!(list, [all[0], all[2], all[1]]);
    }

    #[tokio::test]
    async fn connections_go_where_the_fewest_are() {
        let addresses = resolved(&three());
        let mut firsts: Vec<SocketAddr> = Vec::new();
        for _ in 0..3 {
            firsts.push(first(&addresses).await);
        }
        firsts.sort();
        assert_eq!(firsts, three(), "in turn where none has any");
        let mut open = Vec::new();
        for _ in 0..9 {
            open.push(addresses.place(first(&addresses).await));
        }
        let count = |address| {
            open.iter()
                .filter(|placed| placed.address == address)
                .count()
        };
        assert_eq!(three().map(count), [3, 3, 3]);
        open.retain(|placed| placed.address != three()[1]);
        for _ in 0..3 {
            let placed = addresses.place(first(&addresses).await);
            assert_eq!(placed.address, three()[1]);
            open.push(placed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_fails_rests_and_comes_back() {
        let addresses = resolved(&three());
        addresses.rest(three()[0]);
        for _ in 0..3 {
            let order = addresses.order(&named(1)).await.unwrap();
            assert_eq!(order[2], three()[0], "last, but not left out");
        }
        // One break is nothing; two in a row are, and an answer between them makes them none.
        let placed = addresses.place(three()[1]);
        placed.strike();
        placed.praise();
        placed.strike();
        assert!(!addresses.state.lock().known[&three()[1]].is_resting());
        placed.strike();
        assert!(addresses.state.lock().known[&three()[1]].is_resting());
        assert_eq!(first(&addresses).await, three()[2]);
        placed.praise();
        assert!(addresses.state.lock().known[&three()[1]].is_resting());
        let is_resting = || addresses.state.lock().known[&three()[0]].is_resting();
        assert!(is_resting());
        tokio::time::sleep(REST).await;
        assert!(!is_resting());
    }

    #[tokio::test(start_paused = true)]
    async fn a_resolver_that_hiccups_ends_no_run() {
        let addresses = resolved(&three());
        addresses.forget();
        // `name.invalid` never resolves (RFC 6761).
        assert_eq!(addresses.order(&named(1)).await.unwrap().len(), 3);
    }
}
