//! The bytes of one connection.

use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::gap::Gap;
use super::low_water::LowWater;
use super::tls::{Sealed, TlsHops, TlsStream};
use crate::ledger::OpenHop;
use crate::route::Hop;

/// The hops on which what comes in is counted.
#[derive(Debug)]
pub(super) struct Hops {
    recv: OpenHop,
    pub(super) head_rest: OpenHop,
    tls: TlsHops,
}

impl Hops {
    pub(super) fn beside(hop: &OpenHop) -> Self {
        Self {
            recv: hop.beside(Hop::Recv),
            head_rest: hop.beside(Hop::HeadRest),
            tls: TlsHops {
                recv: hop.beside(Hop::TlsRecv),
                open: hop.beside(Hop::TlsOpen),
                copy: hop.beside(Hop::TlsCopy),
            },
        }
    }

    /// Counts `len` body bytes that came in by way of memory of our own; the way out of that is `head_rest`.
    pub(super) fn came_with_a_head(&self, is_tls: bool, len: usize) {
        if is_tls {
            self.tls.recv.moved(len, Duration::ZERO);
            self.tls.open.moved(len, Duration::ZERO);
            self.tls.copy.moved(len, Duration::ZERO);
        } else {
            self.recv.moved(len, Duration::ZERO);
        }
    }
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

/// A connection, plain or TLS.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    low_water: LowWater,
}

impl Connection {
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self {
            stream: Stream::Plain(stream),
            low_water: LowWater::new(),
        }
    }

    pub(super) fn tls(stream: TlsStream) -> Self {
        Self {
            stream: Stream::Tls(Box::new(stream)),
            low_water: LowWater::new(),
        }
    }

    pub(super) fn is_tls(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }

    /// Whether nothing came in while nothing was asked: neither the end nor stray bytes. Costs no system call where
    /// the runtime has seen no event.
    pub(super) fn is_quiet(&mut self) -> bool {
        match &mut self.stream {
            Stream::Plain(stream) => matches!(
                stream.try_read(&mut [0]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock
            ),
            Stream::Tls(stream) => stream.is_quiet(),
        }
    }

    /// The bytes that were encrypted since this was last asked, and the time that took.
    pub(super) fn take_sealed(&mut self) -> Sealed {
        match &mut self.stream {
            Stream::Plain(_) => Sealed::default(),
            Stream::Tls(stream) => stream.take_sealed(),
        }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(bytes).await,
            Stream::Tls(stream) => stream.write(bytes).await,
        }
    }

    /// One read of what is there, at most the length of `into`; 0 at the end. A TLS peer that goes without saying so
    /// is an error: anybody on the way could have cut the connection.
    pub(super) async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Heads and small answers, whatever the last body left: any byte ends the wait.
        self.await_bytes(0);
        match &mut self.stream {
            Stream::Plain(stream) => stream.read(into).await,
            Stream::Tls(stream) => stream.read(into).await,
        }
    }

    /// Lets the next waits wait for many of `left` bytes, or for any.
    fn await_bytes(&mut self, left: usize) {
        let socket = match &self.stream {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.socket(),
        };
        self.low_water.set(socket, left);
    }

    /// One read of what is there straight into `gap`, at most `most` bytes; 0 at the end. The gap is moved on. A wait that
    /// `is_late` ends with any byte.
    ///
    /// # Copies
    ///
    /// Plain: none in user space. TLS: none, but for records that do not fit (`tls_copy`).
    pub(super) async fn read_into(
        &mut self,
        hops: &Hops,
        gap: &mut Gap<'_>,
        most: usize,
        is_late: bool,
    ) -> io::Result<usize> {
        self.await_bytes(if is_late { 0 } else { most.min(gap.left()) });
        match &mut self.stream {
            Stream::Plain(stream) => {
                let (len, busy) = recv_into(stream, gap, most).await?;
                hops.recv.moved(len, busy);
                gap.advance(len);
                Ok(len)
            }
            Stream::Tls(stream) => stream.read_into(&hops.tls, gap, most).await,
        }
    }
}

async fn recv_into(
    stream: &TcpStream,
    gap: &mut Gap<'_>,
    most: usize,
) -> io::Result<(usize, Duration)> {
    loop {
        let start = Instant::now();
        let received = if gap.is_split(most) {
            stream.try_read_vectored(&mut gap.slices(most))
        } else {
            stream.try_read(gap.front(most))
        };
        match received {
            Ok(len) => return Ok((len, start.elapsed())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.readable().await?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    /// A body that came all at once is never waited for again: what it left must not delay the head behind it.
    #[tokio::test]
    async fn a_short_answer_is_not_waited_for_longer_after_a_long_body() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = crate::sync::spawn("test-server", move || {
            let (mut socket, _) = listener.accept().unwrap();
            socket.read_exact(&mut [0; 3]).unwrap();
            socket.write_all(b"short").unwrap();
            socket
        });
        let mut connection = Connection::plain(TcpStream::connect(address).await.unwrap());
        connection.await_bytes(1 << 20);
        connection.write(b"ask").await.unwrap();
        let mut answer = [0; 9];
        let read = connection.read(&mut answer);
        let read = tokio::time::timeout(Duration::from_secs(20), read).await;
        assert_eq!(read.expect("an answer").unwrap(), 5);
        drop(server.unwrap().join());
    }
}
