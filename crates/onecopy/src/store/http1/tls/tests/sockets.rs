//! A rustls server and our client on a real socket.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream as StdStream};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::{CipherSuite, ServerConfig, ServerConnection};
use rustls_pki_types::{PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::buffer::Slab;
use crate::ledger::Ledger;
use crate::route::Hop;
use crate::store::http1::gap::Gap;
use crate::store::http1::tls::handshake::TlsConnector;
use crate::store::http1::tls::stream::{TlsHops, TlsStream};
use crate::store::http1::tls::trust::{Trust, provider};
use crate::sync::{self, Arc};

pub(super) const SUITES: [CipherSuite; 6] = [
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

pub(super) fn server_config() -> ServerConfig {
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
pub(super) struct Served {
    pub(super) tls: ServerConnection,
    pub(super) socket: StdStream,
}

impl Served {
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.tls.writer().write_all(bytes).unwrap();
        self.flush();
    }

    fn flush(&mut self) {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket).unwrap();
        }
    }

    /// What is still to be sent, sealed.
    pub(super) fn sealed(&mut self) -> Vec<u8> {
        let mut sealed = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut sealed).unwrap();
        }
        sealed
    }

    pub(super) fn read(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        rustls::Stream::new(&mut self.tls, &mut self.socket)
            .read_exact(&mut bytes)
            .unwrap();
        bytes
    }

    pub(super) fn say_goodbye(mut self) {
        self.tls.send_close_notify();
        self.flush();
    }
}

/// Lets `serve` speak on each of `count` connections; gives where to connect to.
pub(super) fn serve<T: Send + 'static>(
    config: ServerConfig,
    count: usize,
    mut serve: impl FnMut(Served) -> T + Send + 'static,
) -> (SocketAddr, JoinHandle<Vec<T>>) {
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
    address: SocketAddr,
) -> io::Result<TlsStream> {
    let socket = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    timeout(PATIENCE, connector.connect(name, socket))
        .await
        .unwrap()
}

pub(super) fn hops() -> TlsHops {
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
