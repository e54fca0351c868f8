//! The bytes of one connection.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::gap::Gap;
use crate::ledger::OpenHop;
use crate::route::Hop;

/// The hops on which what comes in is counted.
#[derive(Debug)]
pub(super) struct Hops {
    recv: OpenHop,
    pub(super) head_rest: OpenHop,
    tls_recv: OpenHop,
    tls_open: OpenHop,
    tls_copy: OpenHop,
}

impl Hops {
    pub(super) fn beside(hop: &OpenHop) -> Self {
        Self {
            recv: hop.beside(Hop::Recv),
            head_rest: hop.beside(Hop::HeadRest),
            tls_recv: hop.beside(Hop::TlsRecv),
            tls_open: hop.beside(Hop::TlsOpen),
            tls_copy: hop.beside(Hop::TlsCopy),
        }
    }

    /// Counts `len` body bytes that came in over a connection that is or is not TLS.
    pub(super) fn came_in(&self, is_tls: bool, len: usize, busy: Duration) {
        if is_tls {
            // The library does all three within one call, and decrypting is what takes the time. The record overhead
            // (22 bytes in 16 KiB) is not counted.
            self.tls_recv.moved(len, Duration::ZERO);
            self.tls_open.moved(len, busy);
            self.tls_copy.moved(len, Duration::ZERO);
        } else {
            self.recv.moved(len, busy);
        }
    }
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection, plain or TLS.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
}

impl Connection {
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self {
            stream: Stream::Plain(stream),
        }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self {
            stream: Stream::Tls(Box::new(stream)),
        }
    }

    pub(super) fn is_tls(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }

    /// Whether nothing came in while nothing was asked: neither the end nor stray bytes. Costs no system call where
    /// the runtime has seen no event. A TLS connection cannot be looked into without taking records out of order.
    pub(super) fn is_quiet(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => matches!(
                stream.try_read(&mut [0]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock
            ),
            Stream::Tls(_) => true,
        }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(bytes).await,
            Stream::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// One read of what is there, at most the length of `into`; 0 at the end. A TLS peer that goes without saying so
    /// is an error: anybody on the way could have cut the connection.
    pub(super) async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.read(into).await,
            Stream::Tls(stream) => stream.read(into).await,
        }
    }

    /// One read of what is there straight into `gap`, at most `most` bytes; 0 at the end.
    ///
    /// # Copies
    ///
    /// Plain: none in user space. TLS: one, within the library.
    pub(super) async fn read_into(
        &mut self,
        hops: &Hops,
        gap: &mut Gap<'_>,
        most: usize,
    ) -> io::Result<usize> {
        let (len, busy) = match &mut self.stream {
            Stream::Plain(stream) => recv_into(stream, gap, most).await?,
            Stream::Tls(stream) => open_into(stream, gap, most).await?,
        };
        hops.came_in(self.is_tls(), len, busy);
        gap.advance(len);
        Ok(len)
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

async fn open_into(
    stream: &mut TlsStream<TcpStream>,
    gap: &mut Gap<'_>,
    most: usize,
) -> io::Result<(usize, Duration)> {
    let mut busy = Duration::ZERO;
    let front = gap.front(most);
    let read = poll_fn(|context| {
        let start = Instant::now();
        let mut buffer = ReadBuf::new(front);
        let polled = Pin::new(&mut *stream).poll_read(context, &mut buffer);
        busy += start.elapsed();
        polled.map_ok(|()| buffer.filled().len())
    })
    .await;
    Ok((read?, busy))
}
