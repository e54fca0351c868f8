//! The pieces of an exchange: a body written, a head read, and what broke meanwhile.

use std::io;
use std::time::Duration;

use tokio::time;

use super::failure::Failure;
use super::head::{Head, MAX_HEAD};
use super::pool::Lease;
use crate::error::ErrorKind;

/// What is read on top where a head is longer than the guess: a few digits more, seldom a whole header.
const HEAD_STEP: usize = 64;

/// Interim answers before the final one, at most: a 100 and a few early hints are usual.
const MOST_INTERIM: usize = 32;

/// A body is written in pieces of this size, each of which must be taken within the time for a stall.
const BODY_PIECE: usize = 256 << 10;

/// How long a server that stopped taking a body may need to say why.
const EARLY_ANSWER: Duration = Duration::from_secs(1);

/// An exchange that broke, and whether the other side had not yet answered a byte.
pub(super) struct Broken {
    pub(super) failure: Failure,
    pub(super) is_untouched: bool,
}

impl Broken {
    pub(super) fn io(error: io::Error, is_untouched: bool) -> Self {
        Self {
            failure: Failure::connection(error),
            is_untouched,
        }
    }
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            is_untouched: false,
        }
    }
}

/// Writes a body from where it lies, piece by piece, so that a slow line is told from a stalled one.
///
/// # Copies
///
/// None in user space: over TLS it is encrypted (`tls_seal`) into a buffer of some records, which the kernel takes it from.
pub(super) async fn send_body(
    lease: &mut Lease,
    body: &[u8],
    stall: Duration,
) -> Result<(), Broken> {
    for piece in body.chunks(BODY_PIECE) {
        match time::timeout(stall, lease.connection.write(piece)).await {
            Ok(written) => written.map_err(|error| Broken::io(error, true))?,
            Err(_elapsed) => {
                let why = format!("the other side took no bytes for {} ms", stall.as_millis());
                return Err(Failure::new(ErrorKind::Unreachable, "stalled", why).into());
            }
        }
    }
    Ok(())
}

/// A server that refuses a body may say so before it has read all of it, and close. What it said tells more than the
/// broken connection; that is not used again, since nobody knows how much of the body the server will still read.
pub(super) async fn early_answer(
    lease: &mut Lease,
    broken: Broken,
) -> Result<(Head, Vec<u8>), Broken> {
    match time::timeout(EARLY_ANSWER, read_head(lease)).await {
        Ok(Ok((mut head, rest))) => {
            let close = http::HeaderValue::from_static("close");
            head.headers.insert(http::header::CONNECTION, close);
            Ok((head, rest))
        }
        _ => Err(broken),
    }
}

/// Reads up to the end of a final head. What came along of the body is returned with it: hardly ever more than a few
/// bytes, because only as much is read as the head before was long.
pub(super) async fn read_head(lease: &mut Lease) -> Result<(Head, Vec<u8>), Broken> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut step = lease.pool().head_guess();
    let mut has_bytes = false;
    let mut interim = 0;
    loop {
        let start = bytes.len();
        bytes.resize(start + step, 0);
        let read = lease.connection.read(&mut bytes[start..]).await;
        let len = read.map_err(|error| Broken::io(error, !has_bytes))?;
        if len == 0 {
            return Err(Broken::io(io::ErrorKind::UnexpectedEof.into(), !has_bytes));
        }
        has_bytes = true;
        bytes.truncate(start + len);
        step = (step - len).max(HEAD_STEP);
        while let Some((head, len)) = Head::parse(&bytes)? {
            let rest = bytes.split_off(len);
            if !head.is_interim() {
                let is_read = matches!(head.status, 200 | 206);
                lease.pool().answered(is_read.then_some(len));
                return Ok((head, rest));
            }
            if head.status == 101 {
                return Err(Failure::corrupt("the server switched to another protocol").into());
            }
            interim += 1;
            if interim > MOST_INTERIM {
                let why =
                    format!("more than {MOST_INTERIM} interim answers (1xx) came and no final one");
                return Err(Failure::corrupt(why).into());
            }
            bytes = rest;
            step = lease.pool().head_guess();
        }
        if bytes.len() >= MAX_HEAD {
            let why = format!("the head of the answer is longer than {MAX_HEAD} bytes");
            return Err(Failure::corrupt(why).into());
        }
    }
}
