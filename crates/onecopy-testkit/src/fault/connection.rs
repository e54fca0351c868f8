//! One connection: read a request, decide, wait, send, and break what is to be broken.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::answer::{Answer, object};
use super::record::FaultRecord;
use super::request::Request;
use super::script::Fault;
use super::server::Core;

/// Sent at once where nothing limits the rate.
const CHUNK_BYTES: u64 = 256 << 10;

/// A limited rate is kept in steps of this: 50 a second are smooth enough and cost nothing.
const STEP: Duration = Duration::from_millis(20);

/// A rate that fell behind is made up for within this: a timer that is late by some steps costs no bytes, and a client that
/// did not read for longer gets no more at once than a link would have kept for it.
const CATCH_UP: Duration = Duration::from_millis(50);

/// How a connection ends.
enum End {
    /// It may bear another request.
    Open,
    Closed,
}

pub(crate) struct Connection {
    pub(crate) core: Arc<Core>,
    pub(crate) socket: Arc<TcpStream>,
    pub(crate) number: u64,
}

impl Connection {
    /// Serves requests until either side has had enough. Errors are the client's going away.
    pub(crate) fn run(&self) -> io::Result<()> {
        self.socket.set_nodelay(true)?;
        let mut reader = BufReader::new(&*self.socket);
        let mut served = 0;
        while !self.core.stop.is_set() {
            let Some(request) = Request::read(&mut reader)? else {
                break;
            };
            served += 1;
            if let End::Closed = self.serve(&request, served)? {
                break;
            }
        }
        Ok(())
    }

    fn serve(&self, request: &Request, served: u64) -> io::Result<End> {
        let (bucket, key) = request.place();
        let (number, mut faults) = match self.core.faults(request, &key) {
            Ok(found) => found,
            Err(e) => (
                0,
                vec![Fault::Status(400), Fault::Code(format!("BadScript: {e}"))],
            ),
        };
        let profile = &self.core.profile;
        if request.method == "GET" && self.core.refuses() {
            faults = vec![Fault::Status(503)];
        }
        let mut answer = self.decide(request, (&bucket, &key), number, &faults);
        let closes = faults
            .iter()
            .any(|f| matches!(f, Fault::CloseAfter(n) if served >= *n))
            || (profile.close_after > 0 && served >= profile.close_after)
            || request
                .header("connection")
                .is_some_and(|c| c.eq_ignore_ascii_case("close"));
        if closes {
            answer.set("Connection", "close".to_owned());
            answer.is_last = true;
        }
        answer.is_last |= faults.contains(&Fault::Http10);
        let hangs = faults.contains(&Fault::Hang);
        let status = if hangs { 0 } else { answer.status };
        let sent = self.record(request, key, number, status);
        if hangs {
            return Ok(self.fall_silent());
        }
        self.core.stop.wait(profile.first_byte(self.number, served));
        for fault in &faults {
            if let Fault::FirstByte(time) = fault {
                self.core.stop.wait(*time);
            }
        }
        self.send_head(&answer, &faults)?;
        if request.method == "HEAD" {
            return Ok(self.end(&answer));
        }
        self.send_body(&answer, &faults, &sent)
    }

    fn decide(
        &self,
        request: &Request,
        (bucket, key): (&str, &str),
        number: u64,
        faults: &[Fault],
    ) -> Answer {
        match (request.method.as_str(), self.core.find(bucket, key)) {
            ("PUT", _) => {
                self.core.put(key, request.body.clone().into());
                Answer::text(200, "application/xml", "")
            }
            ("GET", _) if key.is_empty() => self.core.list(bucket, request),
            ("GET" | "HEAD", Some(target)) => object(request, &target, number, faults),
            ("GET" | "HEAD", None) => {
                let scripted = faults.iter().any(|fault| matches!(fault, Fault::Status(_)));
                let status = if scripted { 400 } else { 404 };
                let code = faults.iter().find_map(|f| match f {
                    Fault::Code(code) => Some(code.as_str()),
                    _ => None,
                });
                Answer::error(status, code)
            }
            _ => Answer::error(405, Some("MethodNotAllowed")),
        }
    }

    fn record(&self, request: &Request, key: String, number: u64, status: u16) -> Arc<AtomicU64> {
        let header = |name| request.header(name).map(str::to_owned);
        self.core.records.push(FaultRecord {
            connection: self.number,
            number,
            method: request.method.clone(),
            path: request.path.clone(),
            key,
            range: header("range"),
            if_match: header("if-match"),
            is_signed: request.header("authorization").is_some(),
            status,
            bytes_sent: 0,
        })
    }

    fn send_head(&self, answer: &Answer, faults: &[Fault]) -> io::Result<()> {
        let mut socket = &*self.socket;
        if faults.contains(&Fault::Continue) {
            socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            socket.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")?;
        }
        let head = answer.head(if faults.contains(&Fault::Http10) {
            "1.0"
        } else {
            "1.1"
        });
        if faults.contains(&Fault::SplitHead) {
            // Without Nagle's algorithm each write is a segment of its own.
            return head
                .as_bytes()
                .iter()
                .try_for_each(|byte| socket.write_all(&[*byte]));
        }
        socket.write_all(head.as_bytes())
    }

    /// Sends the body in pieces, up to where a fault strikes.
    fn send_body(&self, answer: &Answer, faults: &[Fault], sent: &AtomicU64) -> io::Result<End> {
        let (start, end) = answer.range;
        let strikes =
            |fault: &&Fault| matches!(fault, Fault::Cut(_) | Fault::Reset(_) | Fault::Stall(_));
        // Errors come whole: what strikes a body strikes the object's.
        let strike = faults
            .iter()
            .find(strikes)
            .filter(|_| matches!(answer.status, 200 | 206));
        let last = match strike {
            Some(Fault::Cut(at) | Fault::Reset(at) | Fault::Stall(at)) => end.min(start + at),
            _ => end,
        };
        let flip = faults.iter().find_map(|f| {
            if let Fault::Flip(at) = f {
                Some(start + at)
            } else {
                None
            }
        });
        let chunked = answer
            .headers
            .iter()
            .any(|(name, _)| *name == "Transfer-Encoding");
        let mut pace = self.pace(faults);
        let mut buffer = Vec::new();
        let mut at = start;
        while at < last {
            let piece = pace.piece().min(last - at);
            let bytes = answer.content.take(at, piece, &mut buffer)?;
            sent.fetch_add(piece, Ordering::AcqRel);
            self.send_piece(
                bytes,
                chunked,
                flip.filter(|f| (at..at + piece).contains(f)),
                at,
            )?;
            at += piece;
            pace.wait(&self.core, piece);
        }
        let mut socket = &*self.socket;
        match strike {
            Some(Fault::Reset(_)) => {
                // A close with data still to be lingered for zero seconds is an RST.
                SockRef::from(socket).set_linger(Some(Duration::ZERO))?;
                return Ok(End::Closed);
            }
            Some(Fault::Stall(_)) => return Ok(self.fall_silent()),
            Some(_) => {
                socket.shutdown(Shutdown::Write)?;
                return Ok(End::Closed);
            }
            None => {}
        }
        if chunked {
            socket.write_all(b"0\r\nX-Trailer: told late\r\n\r\n")?;
        }
        Ok(self.end(answer))
    }

    fn send_piece(
        &self,
        bytes: &[u8],
        chunked: bool,
        flip: Option<u64>,
        at: u64,
    ) -> io::Result<()> {
        let mut socket = &*self.socket;
        if chunked {
            socket.write_all(format!("{:x};name=value\r\n", bytes.len()).as_bytes())?;
        }
        match flip.and_then(|flip| usize::try_from(flip - at).ok()) {
            Some(flip) => {
                socket.write_all(&bytes[..flip])?;
                socket.write_all(&[bytes[flip] ^ 1])?;
                socket.write_all(&bytes[flip + 1..])?;
            }
            None => socket.write_all(bytes)?,
        }
        if chunked {
            socket.write_all(b"\r\n")?;
        }
        Ok(())
    }

    fn end(&self, answer: &Answer) -> End {
        if !answer.is_last {
            return End::Open;
        }
        // FIN behind the last byte; a failure means that the client closed first.
        drop(self.socket.shutdown(Shutdown::Write));
        End::Closed
    }

    /// Says nothing more until the client goes away or the server stops.
    fn fall_silent(&self) -> End {
        let mut byte = [0];
        // A shutdown from either side ends the read.
        while matches!((&*self.socket).read(&mut byte), Ok(1)) {}
        End::Closed
    }

    fn pace(&self, faults: &[Fault]) -> Pace {
        let scripted = faults.iter().find_map(|f| {
            if let Fault::Rate(rate) = f {
                Some(*rate)
            } else {
                None
            }
        });
        let rate = match scripted {
            Some(rate) => Some(whole(rate)),
            None => self.core.profile.connection_rate(self.number),
        };
        Pace {
            rate,
            due: Instant::now(),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a rate needs no more than 52 bits"
)]
fn whole(value: u64) -> f64 {
    value as f64
}

/// Keeps to a rate by sending a little and waiting.
struct Pace {
    /// In bytes per second; None is unlimited.
    rate: Option<f64>,
    due: Instant,
}

impl Pace {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to what fits, and never below zero"
    )]
    fn piece(&self) -> u64 {
        let step = |rate: f64| ((rate * STEP.as_secs_f64()) as u64).clamp(1, CHUNK_BYTES);
        self.rate.map_or(CHUNK_BYTES, step)
    }

    /// Waits until the bytes that were sent are due. Time that was lost is made up for within
    /// [`CATCH_UP`] only.
    fn wait(&mut self, core: &Core, bytes: u64) {
        let Some(rate) = self.rate else { return };
        self.due = self.next(Instant::now(), bytes, rate);
        core.stop.wait_until(self.due);
    }

    /// When `bytes` that were sent by `now` are due.
    fn next(&self, now: Instant, bytes: u64, rate: f64) -> Instant {
        let kept = self.due.max(now.checked_sub(CATCH_UP).unwrap_or(now));
        kept + Duration::from_secs_f64(whole(bytes) / rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_timers_cost_no_bytes_and_a_pause_gives_none_away() {
        let began = Instant::now();
        let mut pace = Pace {
            rate: Some(50e6),
            due: began,
        };
        // Each piece of 5 ms is sent, and each timer is late by 40 ms.
        let step = Duration::from_millis(5);
        for number in 1..=100 {
            let late = pace.due + Duration::from_millis(40);
            pace.due = pace.next(late, 250_000, 50e6);
            assert_eq!(pace.due, began + number * step);
        }
        // Nobody read for a second: all but the last of it is gone.
        let now = pace.due + Duration::from_secs(1);
        pace.due = pace.next(now, 250_000, 50e6);
        assert_eq!(pace.due, now - CATCH_UP + step);
    }
}
