//! rustls as the server, over real sockets: each cipher in each version.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream as StdStream};
use std::thread::JoinHandle;
use std::time::Duration;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rustls::crypto::aws_lc_rs;
use rustls::{CipherSuite, HandshakeKind, ProtocolVersion, ServerConfig, ServerConnection};
use rustls_pki_types::{PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::fuzz::{damage, rounds};
use super::peer::noise;
use crate::buffer::Slab;
use crate::ledger::Ledger;
use crate::route::Hop;
use crate::store::http1::gap::Gap;
use crate::store::http1::tls::breach::Breach;
use crate::store::http1::tls::handshake::TlsConnector;
use crate::store::http1::tls::stream::{TlsHops, TlsStream};
use crate::store::http1::tls::trust::{Trust, provider};
use crate::sync::{self, Arc};

const SUITES: [CipherSuite; 6] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS13_AES_256_GCM_SHA384,
    CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
];

/// No wait of these tests may be longer than this.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Our side, which offers nothing but `suite`, if one is named.
pub(super) fn connector(suite: Option<CipherSuite>) -> TlsConnector {
    let trust = Trust {
        ca_bundle: None,
        is_unverified: true,
    };
    let mut provider = provider();
    provider
        .cipher_suites
        .retain(|offered| suite.is_none_or(|suite| offered.suite() == suite));
    TlsConnector::new(trust.config(provider).unwrap())
}

fn server_config() -> ServerConfig {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.send_tls13_tickets = 3;
    config.ticketer = aws_lc_rs::Ticketer::new().unwrap();
    config
}

/// The server's side of one connection.
struct Served {
    tls: ServerConnection,
    socket: StdStream,
}

impl Served {
    fn write(&mut self, bytes: &[u8]) {
        self.tls.writer().write_all(bytes).unwrap();
        self.flush();
    }

    fn flush(&mut self) {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket).unwrap();
        }
    }

    /// What is still to be sent, sealed.
    fn sealed(&mut self) -> Vec<u8> {
        let mut sealed = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut sealed).unwrap();
        }
        sealed
    }

    fn read(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        rustls::Stream::new(&mut self.tls, &mut self.socket)
            .read_exact(&mut bytes)
            .unwrap();
        bytes
    }

    fn say_goodbye(mut self) {
        self.tls.send_close_notify();
        self.flush();
    }
}

/// Lets `serve` speak on each of `count` connections; gives where to connect to.
fn serve<T: Send + 'static>(
    config: ServerConfig,
    count: usize,
    mut serve: impl FnMut(Served) -> T + Send + 'static,
) -> (std::net::SocketAddr, JoinHandle<Vec<T>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = Arc::new(config);
    let thread = sync::spawn("test-server", move || {
        (0..count)
            .map(|_| {
                let (socket, _) = listener.accept().unwrap();
                socket.set_nodelay(true).unwrap();
                socket.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut tls = ServerConnection::new(Arc::clone(&config)).unwrap();
                tls.set_buffer_limit(None);
                serve(Served { tls, socket })
            })
            .collect()
    });
    (address, thread.unwrap())
}

pub(super) async fn connect(
    connector: &TlsConnector,
    address: std::net::SocketAddr,
) -> io::Result<TlsStream> {
    let socket = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    timeout(PATIENCE, connector.connect(name, socket))
        .await
        .unwrap()
}

fn hops() -> TlsHops {
    let ledger = Ledger::unread();
    TlsHops {
        recv: ledger.hop(Hop::TlsRecv),
        open: ledger.hop(Hop::TlsOpen),
        copy: ledger.hop(Hop::TlsCopy),
    }
}

pub(super) async fn read_exact(stream: &mut TlsStream, len: usize) -> io::Result<Vec<u8>> {
    let mut slabs = [Slab::heap(len / 3), Slab::heap(len - len / 3)];
    let mut gap = Gap::new(&mut slabs, 0, len);
    let hops = hops();
    while gap.left() > 0 {
        let read = stream.read_into(&hops, &mut gap, usize::MAX);
        if timeout(PATIENCE, read).await.unwrap()? == 0 {
            break;
        }
    }
    let filled = gap.filled();
    let bytes = [&slabs[0][..], &slabs[1][..]].concat();
    Ok(bytes[..filled].to_vec())
}

#[tokio::test]
async fn each_cipher_of_each_version_carries_both_ways_over_key_updates() {
    for suite in SUITES {
        let (address, server) = serve(server_config(), 1, |mut served| {
            let request = served.read(100_000);
            let body = noise(1 << 20);
            let is_tls13 = served.tls.protocol_version() == Some(ProtocolVersion::TLSv1_3);
            for (number, part) in body.chunks(70_001).enumerate() {
                if is_tls13 && number % 4 == 2 {
                    served.tls.refresh_traffic_keys().unwrap();
                }
                served.write(part);
            }
            let second = served.read(20);
            served.write(b"the end");
            let agreed = served.tls.negotiated_cipher_suite().unwrap().suite();
            served.say_goodbye();
            (request, second, agreed)
        });
        let connector = connector(Some(suite));
        let mut stream = connect(&connector, address).await.unwrap();
        stream.write(&noise(100_000)).await.unwrap();
        let body = read_exact(&mut stream, 1 << 20).await.unwrap();
        assert_eq!(body, noise(1 << 20), "{suite:?}");
        stream.write(b"twenty bytes of text").await.unwrap();
        assert_eq!(read_exact(&mut stream, 100).await.unwrap(), b"the end");
        assert_eq!(stream.read(&mut [0; 9]).await.unwrap(), 0, "a clean end");
        assert!(!stream.is_quiet());
        let (request, second, agreed) = server.join().unwrap().pop().unwrap();
        assert_eq!(request, noise(100_000));
        assert_eq!(second, b"twenty bytes of text");
        assert_eq!(agreed, suite);
    }
}

#[tokio::test]
async fn aes_128_is_what_a_server_gets_that_heeds_our_order() {
    let mut config = server_config();
    config.ignore_client_order = false;
    let (address, server) = serve(config, 1, |mut served| {
        served.read(1);
        served.tls.negotiated_cipher_suite().unwrap().suite()
    });
    let mut stream = connect(&connector(None), address).await.unwrap();
    stream.write(b"x").await.unwrap();
    assert_eq!(
        server.join().unwrap(),
        [CipherSuite::TLS13_AES_128_GCM_SHA256]
    );
}

#[tokio::test]
async fn the_next_connection_resumes_with_a_ticket() {
    for suite in [SUITES[0], SUITES[3]] {
        let (address, server) = serve(server_config(), 3, |mut served| {
            served.read(1);
            served.write(b"x");
            let kind = served.tls.handshake_kind();
            served.say_goodbye();
            kind
        });
        let connector = connector(Some(suite));
        for _ in 0..3 {
            let mut stream = connect(&connector, address).await.unwrap();
            stream.write(b"x").await.unwrap();
            assert_eq!(read_exact(&mut stream, 1).await.unwrap(), b"x");
        }
        let kinds = server.join().unwrap();
        assert_eq!(kinds[0], Some(HandshakeKind::Full));
        assert_eq!(kinds[1], Some(HandshakeKind::Resumed), "{suite:?}");
        assert_eq!(kinds[2], Some(HandshakeKind::Resumed), "{suite:?}");
    }
}

#[tokio::test]
async fn an_end_without_goodbye_is_an_error() {
    for suite in [SUITES[0], SUITES[3]] {
        let (address, server) = serve(server_config(), 1, |mut served| {
            served.read(1);
            served.write(b"so far");
        });
        let mut stream = connect(&connector(Some(suite)), address).await.unwrap();
        stream.write(b"x").await.unwrap();
        let mut bytes = [0; 100];
        assert_eq!(stream.read(&mut bytes).await.unwrap(), 6);
        let error = stream.read(&mut bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(stream.read(&mut bytes).await.is_err());
        server.join().unwrap();
    }
}

#[tokio::test]
async fn payload_right_behind_the_handshake_is_not_lost() {
    let mut config = server_config();
    config.send_half_rtt_data = true;
    let (address, server) = serve(config, 1, |mut served| {
        // Until our first flight is due: the other side has not said that it is done.
        while !served.tls.wants_write() {
            served.tls.read_tls(&mut served.socket).unwrap();
            served.tls.process_new_packets().unwrap();
        }
        served.write(b"spoken first");
        assert!(served.tls.is_handshaking());
        assert_eq!(served.read(4), b"then");
    });
    let mut stream = connect(&connector(None), address).await.unwrap();
    assert_eq!(read_exact(&mut stream, 12).await.unwrap(), b"spoken first");
    stream.write(b"then").await.unwrap();
    server.join().unwrap();
}

#[tokio::test]
async fn a_dropped_connection_says_goodbye_and_a_forged_record_is_answered() {
    let (address, server) = serve(server_config(), 2, |mut served| {
        let is_forging = served.read(1) == b"f";
        if is_forging {
            let forged = [&[23, 3, 3, 0, 40][..], &[7; 40]].concat();
            served.socket.write_all(&forged).unwrap();
        }
        let mut stream = rustls::Stream::new(&mut served.tls, &mut served.socket);
        stream.read(&mut [0; 1]).map_err(|error| error.to_string())
    });
    let connector = connector(None);
    let mut stream = connect(&connector, address).await.unwrap();
    stream.write(b"g").await.unwrap();
    drop(stream);
    let mut stream = connect(&connector, address).await.unwrap();
    stream.write(b"f").await.unwrap();
    let error = stream.read(&mut [0; 9]).await.unwrap_err();
    assert!(Breach::is_in(&error), "{error}");
    assert!(!stream.is_quiet());
    assert!(stream.read(&mut [0; 9]).await.is_err());
    drop(stream);
    let [good, forged] = server.join().unwrap().try_into().unwrap();
    assert_eq!(good, Ok(0));
    let alert = forged.unwrap_err();
    assert!(alert.contains("BadRecordMac"), "{alert}");
}

#[tokio::test]
async fn a_dropped_read_loses_nothing() {
    let (go_on, may_go_on) = sync::channel::bounded::<()>(0);
    let (address, server) = serve(server_config(), 1, move |mut served| {
        served.read(1);
        served.tls.writer().write_all(&noise(50_000)).unwrap();
        let sealed = served.sealed();
        for piece in sealed.chunks(7000) {
            may_go_on.recv().unwrap();
            served.socket.write_all(piece).unwrap();
        }
        served.read(1);
    });
    let mut stream = connect(&connector(None), address).await.unwrap();
    stream.write(b"x").await.unwrap();
    let mut slabs = [Slab::heap(50_000)];
    let mut gap = Gap::new(&mut slabs, 0, 50_000);
    let hops = hops();
    let mut drops = 0;
    while gap.left() > 0 {
        let read = stream.read_into(&hops, &mut gap, usize::MAX);
        if timeout(Duration::from_millis(5), read).await.is_err() {
            drops += 1;
            // Whether the server waits for this or is still at the piece before: the read was dropped.
            let _is_waiting = go_on.try_send(());
        }
    }
    assert!(drops >= 8, "{drops}");
    assert_eq!(&slabs[0][..], noise(50_000));
    stream.write(b"x").await.unwrap();
    server.join().unwrap();
}

#[tokio::test]
async fn an_idle_connection_is_quiet_until_something_comes() {
    let (go_on, may_go_on) = sync::channel::unbounded::<()>();
    let (address, server) = serve(server_config(), 1, move |mut served| {
        served.read(1);
        served.write(b"answer");
        served.read(1);
        // A key update is nothing to worry about; a byte is.
        served.tls.refresh_traffic_keys().unwrap();
        served.write(b"more");
        may_go_on.recv().unwrap();
        served.write(b"!");
        may_go_on.recv().unwrap();
    });
    let mut stream = connect(&connector(None), address).await.unwrap();
    for wanted in [&b"answer"[..], b"more"] {
        stream.write(b"x").await.unwrap();
        assert_eq!(read_exact(&mut stream, wanted.len()).await.unwrap(), wanted);
        assert!(stream.is_quiet());
    }
    go_on.send(()).unwrap();
    let noticed = async {
        while stream.is_quiet() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, noticed).await.unwrap();
    go_on.send(()).unwrap();
    server.join().unwrap();
}

/// Damage to what a server says during the handshake.
#[tokio::test]
async fn fuzz_handshakes() {
    let runtime = tokio::runtime::Handle::current();
    let work = move || {
        rounds(60, |seed| {
            let (address, server) = serve(server_config(), 1, move |mut served| {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                while !served.tls.wants_write() {
                    let read = served.tls.read_tls(&mut served.socket);
                    if !matches!(read, Ok(len) if len > 0) {
                        return;
                    }
                    served.tls.process_new_packets().unwrap();
                }
                let mut sealed = served.sealed();
                damage(&mut random, &mut sealed);
                // The other side may have gone by now.
                drop(served.socket.write_all(&sealed));
                drop(served.socket.shutdown(std::net::Shutdown::Write));
                while matches!(served.socket.read(&mut [0; 4096]), Ok(len) if len > 0) {}
            });
            let suite = SUITES[usize::try_from(seed).unwrap_or(0) % SUITES.len()];
            runtime.block_on(async {
                let connector = connector(Some(suite));
                if let Ok(mut stream) = connect(&connector, address).await {
                    let mut bytes = [0; 9];
                    let read = stream.read(&mut bytes);
                    assert!(timeout(PATIENCE, read).await.unwrap().is_err(), "{seed}");
                }
            });
            server.join().unwrap();
        });
    };
    tokio::task::spawn_blocking(work).await.unwrap();
}
