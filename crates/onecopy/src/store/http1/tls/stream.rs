//! A TLS connection on its socket.

use std::io;
use std::mem;
use std::time::{Duration, Instant};

use rustls::{AlertDescription, ContentType};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::breach::Breach;
use super::control::key_update;
use super::inbound::Inbound;
use super::record::{CONTENT_MAX, Form};
use super::seal::Sealer;
use crate::ledger::OpenHop;
use crate::route::Hop;
use crate::store::http1::gap::Gap;

/// Content sealed before it is sent: four records, which stay in the cache.
const SEALED_AT_ONCE: usize = 4 * CONTENT_MAX;

/// The hops on which body bytes are counted.
#[derive(Debug)]
pub(in crate::store::http1) struct TlsHops {
    pub(in crate::store::http1) recv: OpenHop,
    pub(in crate::store::http1) open: OpenHop,
    pub(in crate::store::http1) copy: OpenHop,
}

/// What was encrypted to be sent.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::store) struct Sealed {
    pub(in crate::store) bytes: usize,
    pub(in crate::store) busy: Duration,
}

impl Sealed {
    /// Counts it beside `hop`, on which it was sent.
    pub(in crate::store) fn count(self, hop: &OpenHop) {
        if self.bytes > 0 {
            hop.beside(Hop::TlsSeal).moved(self.bytes, self.busy);
        }
    }
}

/// A TLS connection after its handshake.
///
/// A dropped read loses nothing where the next one goes on in the same memory: what came in is there or in the record buffer, and
/// only whole records are opened. What a dropped write left is sent before anything else.
#[derive(Debug)]
pub(in crate::store::http1) struct TlsStream {
    socket: TcpStream,
    inbound: Inbound,
    sealer: Sealer,
    /// Sealed bytes, `[sent, ..)` still to be sent.
    outgoing: Vec<u8>,
    sent: usize,
    /// Time in `recv` that is not counted yet.
    receiving: Duration,
    /// What was sealed and is not counted yet.
    sealed: Sealed,
    is_broken: bool,
}

impl TlsStream {
    pub(super) fn new(socket: TcpStream, inbound: Inbound, sealer: Sealer) -> Self {
        Self {
            socket,
            inbound,
            sealer,
            outgoing: Vec::new(),
            sent: 0,
            receiving: Duration::ZERO,
            sealed: Sealed::default(),
            is_broken: false,
        }
    }

    pub(in crate::store::http1) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Whether nothing came in that an idle connection may not bring, and there is key enough for one more exchange.
    /// Tickets and key updates are taken.
    pub(in crate::store::http1) fn is_quiet(&mut self) -> bool {
        let is_usable = !self.is_broken
            && self.outgoing.is_empty()
            && !self.inbound.is_nearly_spent()
            && (self.sealer.form() == Form::Tls13 || !self.sealer.is_nearly_spent());
        if !is_usable {
            return false;
        }
        loop {
            let settled = self.inbound.settle();
            if !matches!(self.checked(settled), Ok(true)) {
                return false;
            }
            match self.socket.try_read(self.inbound.space_for_head()) {
                Ok(len) if len > 0 => self.inbound.received(len),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.inbound.release();
                    return true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => return false,
            }
        }
    }

    /// Sends all of `bytes`.
    pub(in crate::store::http1) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.flush().await?;
        for burst in bytes.chunks(SEALED_AT_ONCE) {
            let start = Instant::now();
            for content in burst.chunks(CONTENT_MAX) {
                let sealed = self.seal(content);
                self.checked(sealed)?;
            }
            self.sealed.bytes += burst.len();
            self.sealed.busy += start.elapsed();
            self.flush().await?;
        }
        Ok(())
    }

    /// What was sealed since this was last asked.
    pub(in crate::store::http1) fn take_sealed(&mut self) -> Sealed {
        mem::take(&mut self.sealed)
    }

    /// Payload for whoever has no slab for it, at most the length of `into`; 0 at the end.
    pub(in crate::store::http1) async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let taken = self.inbound.take(into);
            let len = self.checked(taken)?;
            if len > 0 || self.inbound.is_closed() {
                self.inbound.release();
                return Ok(len);
            }
            self.recv(None).await?;
        }
    }

    /// Payload of what is there, straight into `gap` and at most `most` bytes; 0 at the end. The gap is moved on.
    ///
    /// # Copies
    ///
    /// As [`Inbound::open_into`] says.
    pub(in crate::store::http1) async fn read_into(
        &mut self,
        hops: &TlsHops,
        gap: &mut Gap<'_>,
        most: usize,
    ) -> io::Result<usize> {
        loop {
            let start = Instant::now();
            let opened = self.inbound.open_into(&hops.copy, gap, most);
            let opening = start.elapsed();
            let len = self.checked(opened)?;
            if len > 0 {
                hops.recv.moved(len, mem::take(&mut self.receiving));
                hops.open.moved(len, opening);
            }
            if len > 0 || self.inbound.is_closed() {
                self.inbound.release();
                return Ok(len);
            }
            self.recv(Some((&hops.copy, gap, most))).await?;
        }
    }

    /// One `recv`: into the gap where that is given, as far as whole records fit there, else into the record buffer. An end here
    /// was not announced: anybody on the way could have made it.
    async fn recv(&mut self, mut gap: Option<(&OpenHop, &mut Gap<'_>, usize)>) -> io::Result<()> {
        loop {
            let start = Instant::now();
            let space = match &mut gap {
                Some((hop, gap, most)) => self.inbound.space(hop, gap, *most),
                None => self.inbound.space_for_head(),
            };
            match self.socket.try_read(space) {
                Ok(0) => {
                    self.is_broken = true;
                    let why = "the connection ended without the farewell of TLS";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
                }
                Ok(len) => {
                    self.receiving += start.elapsed();
                    self.inbound.received(len);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.inbound.release();
                    self.socket.readable().await?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Seals one record of payload, and before it a change of our key where one is due.
    fn seal(&mut self, content: &[u8]) -> Result<(), Breach> {
        let is_asked = self.inbound.control().take_update_due();
        let is_due = self.sealer.form() == Form::Tls13 && self.sealer.is_nearly_spent();
        if is_asked || is_due {
            let message = key_update();
            self.sealer
                .seal(ContentType::Handshake, &message, &mut self.outgoing)?;
            self.sealer = self.inbound.session().next_to_seal()?;
        }
        self.sealer
            .seal(ContentType::ApplicationData, content, &mut self.outgoing)
    }

    async fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.outgoing.len() {
            match self.socket.write(&self.outgoing[self.sent..]).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                len => self.sent += len,
            }
        }
        self.outgoing.clear();
        self.sent = 0;
        Ok(())
    }

    /// Ends the connection where `result` is a breach, and says why to the other side.
    fn checked<T>(&mut self, result: Result<T, Breach>) -> io::Result<T> {
        if self.is_broken {
            return Err(io::ErrorKind::NotConnected.into());
        }
        result.map_err(|breach| {
            if let Some(alert) = breach.alert() {
                self.say(alert);
            }
            self.is_broken = true;
            breach.into()
        })
    }

    /// Sends an alert, if the socket takes it at once.
    fn say(&mut self, alert: AlertDescription) {
        const WARNING: u8 = 1;
        const FATAL: u8 = 2;
        if self.is_broken || !self.outgoing.is_empty() {
            return;
        }
        let level = if alert == AlertDescription::CloseNotify {
            WARNING
        } else {
            FATAL
        };
        let content = [level, alert.into()];
        let mut record = Vec::new();
        if self
            .sealer
            .seal(ContentType::Alert, &content, &mut record)
            .is_ok()
        {
            // The other side learns by the end of the connection, too.
            drop(self.socket.try_write(&record));
        }
    }
}

impl Drop for TlsStream {
    fn drop(&mut self) {
        self.say(AlertDescription::CloseNotify);
    }
}
