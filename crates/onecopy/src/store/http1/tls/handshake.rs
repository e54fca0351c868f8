//! From a TCP connection to keys: rustls speaks, until nothing but payload is left to be said.

use std::io;
use std::ops::Range;

use rustls::ClientConfig;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls_pki_types::ServerName;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::inbound::Inbound;
use super::key::Secret;
use super::open::Opener;
use super::record::{CONTENT_MAX, HEADER_LEN};
use super::scratch::Scratches;
use super::seal::Sealer;
use super::session::Agreed;
use super::stream::TlsStream;
use crate::sync::Arc;

/// A record of a handshake at most: TLS 1.2 lets a cipher add 2048 bytes.
const HANDSHAKE_RECORD_MAX: usize = HEADER_LEN + CONTENT_MAX + 2048;

/// Shakes hands for one client: its settings, and the tickets that servers gave it.
#[derive(Debug, Clone)]
pub(in crate::store::http1) struct TlsConnector {
    config: Arc<ClientConfig>,
    scratches: Scratches,
}

impl TlsConnector {
    pub(super) fn new(config: ClientConfig) -> Self {
        Self {
            config: Arc::new(config),
            scratches: Scratches::default(),
        }
    }

    /// Shakes hands with `name` over `socket`. What rustls found wrong is the inner error of an `InvalidData`.
    pub(in crate::store::http1) async fn connect(
        &self,
        name: ServerName<'static>,
        socket: TcpStream,
    ) -> io::Result<TlsStream> {
        let connection = UnbufferedClientConnection::new(Arc::clone(&self.config), name);
        let mut shaking = Shaking {
            connection: connection.map_err(refused)?,
            socket,
            scratch: self.scratches.lease(),
            kept: 0..0,
            end: 0,
            outgoing: Vec::new(),
        };
        shaking.run().await?;
        shaking.finish(&self.scratches)
    }
}

/// A handshake.
///
/// rustls is given one record after the other, never more than it needs: whatever follows the last record of the
/// handshake is sealed with keys that are ours, and rustls must not open it.
struct Shaking {
    connection: UnbufferedClientConnection,
    socket: TcpStream,
    scratch: Box<[u8]>,
    /// What rustls was given and has not let go of.
    kept: Range<usize>,
    /// Where the received bytes end.
    end: usize,
    outgoing: Vec<u8>,
}

/// What a step of rustls asks for.
enum Next {
    Step,
    Send,
    Feed,
    Done,
    Fail(io::Error),
}

impl Shaking {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            match self.step() {
                Next::Step => {}
                Next::Send => self.send().await?,
                Next::Feed => self.feed().await?,
                Next::Done => return self.send().await,
                Next::Fail(error) => {
                    self.say_why();
                    return Err(error);
                }
            }
        }
    }

    fn step(&mut self) -> Next {
        let given = &mut self.scratch[self.kept.clone()];
        let UnbufferedStatus { discard, state, .. } = self.connection.process_tls_records(given);
        let next = match state {
            Ok(ConnectionState::EncodeTlsData(data)) => match encode(data, &mut self.outgoing) {
                Ok(()) => Next::Step,
                Err(error) => Next::Fail(io::Error::other(error)),
            },
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                Next::Send
            }
            Ok(ConnectionState::BlockedHandshake) => Next::Feed,
            Ok(ConnectionState::WriteTraffic(_)) => Next::Done,
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                Next::Fail(io::ErrorKind::UnexpectedEof.into())
            }
            Ok(state) => Next::Fail(refused(rustls::Error::General(format!(
                "{state:?} in the middle of a handshake"
            )))),
            Err(error) => Next::Fail(refused(error)),
        };
        self.kept.start += discard;
        next
    }

    /// Gives rustls one more record, and receives until there is one.
    async fn feed(&mut self) -> io::Result<()> {
        if self.kept.start == self.end {
            (self.kept, self.end) = (0..0, 0);
        }
        loop {
            if let Some(end) = self.next_end() {
                self.kept.end = end;
                return Ok(());
            }
            let space = &mut self.scratch[self.end..];
            if space.is_empty() {
                return Err(refused(rustls::Error::General(format!(
                    "the handshake is longer than {} bytes",
                    self.scratch.len()
                ))));
            }
            self.socket.readable().await?;
            match self.socket.try_read(space) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.end += len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Where the next record ends, once all of it is there. What cannot be a record is given to rustls at once, to be
    /// refused.
    fn next_end(&self) -> Option<usize> {
        let at = self.kept.end;
        let sealed = &self.scratch[at..self.end];
        let &[kind, major, _, high, low, ..] = sealed else {
            return None;
        };
        let len = HEADER_LEN + usize::from(u16::from_be_bytes([high, low]));
        let is_record = (20..=23).contains(&kind) && major == 3 && len <= HANDSHAKE_RECORD_MAX;
        if !is_record {
            return Some(self.end);
        }
        (sealed.len() >= len).then_some(at + len)
    }

    async fn send(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.outgoing).await?;
        self.outgoing.clear();
        Ok(())
    }

    /// Sends the alert that rustls has ready after an error, if the socket takes it at once.
    fn say_why(&mut self) {
        self.outgoing.clear();
        // Without anything to send, rustls would look at what it refused once more.
        while self.connection.wants_write() && matches!(self.step(), Next::Step) {}
        // The other side learns by the end of the connection, too.
        drop(self.socket.try_write(&self.outgoing));
    }

    /// Takes the keys over.
    fn finish(self, scratches: &Scratches) -> io::Result<TlsStream> {
        if !self.kept.is_empty() {
            return Err(refused(rustls::Error::General(
                "bytes are left over from the handshake".to_owned(),
            )));
        }
        let (secrets, connection) = self
            .connection
            .dangerous_into_kernel_connection()
            .map_err(refused)?;
        let session = Agreed::new(connection);
        let (is_tls13, limit) = (session.is_tls13(), session.limit());
        let (opened, secrets_rx) = secrets.rx;
        let (sealed, secrets_tx) = secrets.tx;
        let opener = Opener::new(&Secret::read(&secrets_rx, is_tls13, (opened, limit))?)?;
        let sealer = Sealer::new(&Secret::read(&secrets_tx, is_tls13, (sealed, limit))?)?;
        let inbound = Inbound::new(
            opener,
            Box::new(session),
            scratches.clone(),
            self.scratch,
            self.kept.end..self.end,
        );
        Ok(TlsStream::new(self.socket, inbound, sealer))
    }
}

/// Appends what rustls has to say to `outgoing`.
fn encode(
    mut data: EncodeTlsData<'_, ClientConnectionData>,
    outgoing: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let at = outgoing.len();
    if let Err(EncodeError::InsufficientSize(needed)) = data.encode(&mut []) {
        outgoing.resize(at + needed.required_size, 0);
        data.encode(&mut outgoing[at..])?;
    }
    Ok(())
}

fn refused(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
