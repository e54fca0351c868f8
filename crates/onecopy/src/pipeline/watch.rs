//! Whoever waits for a load, and the end of its patience.
//!
//! There is one for each load, held by its consumer: everything else that waits in a load (stages for each other, lanes for
//! memory, requests for answers) waits on the consumer's behalf, and comes to its end when the consumer lets the load go.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Await, Awaited, Ledger};
use crate::sync::{Arc, channel};

/// How often it is looked whether anything has moved.
const BEAT: Duration = Duration::from_secs(1);

/// After so long it is said, once, what is waited for: longer than a store takes to answer, unless something is wrong.
const TELL_AFTER: Duration = Duration::from_secs(30);

/// Sees whether anything moves while the consumer waits. Time in which nobody waits does not count, nor does time in which
/// this process was stopped.
#[derive(Debug)]
pub(crate) struct Watch {
    ledger: Arc<Ledger>,
    /// For how long nothing may move; none is for ever.
    limit: Option<Duration>,
    beat: Duration,
    /// What [`Ledger::stirs`] said last.
    seen: u64,
    /// For how long nothing has moved while somebody waited.
    still: Duration,
    has_told: bool,
}

impl Watch {
    pub(crate) fn new(ledger: &Arc<Ledger>, limit: Option<Duration>) -> Self {
        // Short limits are kept as exactly as long ones.
        let beat = limit.map_or(BEAT, |limit| BEAT.min(limit / 4));
        Self {
            ledger: Arc::clone(ledger),
            limit,
            beat: beat.max(Duration::from_millis(1)),
            seen: ledger.stirs(),
            still: Duration::ZERO,
            has_told: false,
        }
    }

    /// Waits by `wait`, which gives nothing where it is not over by the time that it is given. None at the `deadline`.
    ///
    /// # Errors
    ///
    /// As [`Watch::look`].
    pub(crate) fn until<T>(
        &mut self,
        deadline: Option<Instant>,
        mut wait: impl FnMut(Instant) -> Option<T>,
    ) -> Result<Option<T>> {
        loop {
            let begun = Instant::now();
            let beat = begun + self.beat;
            let end = deadline.map_or(beat, |deadline| deadline.min(beat));
            if let Some(got) = wait(end) {
                return Ok(Some(got));
            }
            self.look(begun.elapsed())?;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(None);
            }
        }
    }

    /// Waits for what comes in by `channel`: none within where that is at its end. None at the `deadline`.
    ///
    /// # Errors
    ///
    /// As [`Watch::look`].
    pub(crate) fn recv<T>(
        &mut self,
        channel: &channel::Receiver<T>,
        deadline: Option<Instant>,
    ) -> Result<Option<Option<T>>> {
        self.until(deadline, |end| match channel.recv_deadline(end) {
            Ok(got) => Some(Some(got)),
            Err(channel::RecvTimeoutError::Disconnected) => Some(None),
            Err(channel::RecvTimeoutError::Timeout) => None,
        })
    }

    /// Waits for what `future` gives.
    ///
    /// # Errors
    ///
    /// As [`Watch::look`].
    pub(crate) fn until_ready<T>(
        &mut self,
        runtime: &Handle,
        future: impl Future<Output = T>,
    ) -> Result<T> {
        let mut future = pin!(future);
        let got = self.until(None, |end| {
            let within = async { tokio::time::timeout_at(end.into(), &mut future).await };
            runtime.block_on(within).ok()
        })?;
        got.ok_or_else(|| Error::bug("wait", "a wait without an end came to one"))
    }

    /// Takes note that somebody waited for so long, in vain.
    ///
    /// # Errors
    ///
    /// `Unreachable` where nothing has moved for too long, and a disk or a store is waited for; `LimitReached` where it is
    /// the caller that is waited for, or a decoder.
    fn look(&mut self, waited: Duration) -> Result<()> {
        let now = self.ledger.stirs();
        if std::mem::replace(&mut self.seen, now) != now {
            self.still = Duration::ZERO;
            return Ok(());
        }
        // A wait that took longer than it should have was not one in which anything could have moved.
        self.still += waited.min(2 * self.beat);
        if self.limit.is_some_and(|limit| self.still >= limit) {
            return Err(self.too_long());
        }
        if self.still >= TELL_AFTER && !std::mem::replace(&mut self.has_told, true) {
            let note = format!(
                "nothing moved for {}, waiting for {}",
                shown(self.still),
                told(&self.ledger.awaited())
            );
            tracing::warn!("{note}");
            self.ledger.note(note);
        }
        Ok(())
    }

    fn too_long(&self) -> Error {
        let awaited = self.ledger.awaited();
        let still = shown(self.still);
        let why = format!("nothing moved for {still}, waiting for {}", told(&awaited));
        let (kind, help) = match awaited.first().map(|one| one.kind) {
            Some(Await::Answer) => (
                ErrorKind::LimitReached,
                "let the function return; where it has to take that long, raise `wait_limit`",
            ),
            Some(Await::Decoder) => (
                ErrorKind::LimitReached,
                "look at that sample; where it has to take that long, raise `wait_limit`",
            ),
            Some(Await::Disk) => (
                ErrorKind::Unreachable,
                "see whether that path can be read at all: a mount whose server is gone never answers; where it has to take that long, raise `wait_limit`",
            ),
            Some(Await::Request) => (
                ErrorKind::Unreachable,
                "see whether the store can be reached; where it has to take that long, raise `wait_limit`",
            ),
            Some(Await::Memory) => (
                ErrorKind::LimitReached,
                "the caller holds all of it: let go of samples before the next ones are taken, or raise `memory`",
            ),
            None => return Error::bug("go on with the load", why),
        };
        Error::new(kind, "go on with", "the load", why).with_help(help)
    }
}

/// What is waited for, in words: the first of what explains most, and how much more there is of its kind.
fn told(awaited: &[Awaited]) -> String {
    let Some(first) = awaited.first() else {
        return "nothing that is known of".to_owned();
    };
    let time = shown(first.time);
    let alike = awaited.iter().filter(|one| one.kind == first.kind).count();
    match alike {
        1 => format!("{} ({time})", first.what),
        more => format!("{} ({time}; and {} more)", first.what, more - 1),
    }
}

fn shown(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    fn never(_end: Instant) -> Option<()> {
        std::thread::yield_now();
        None
    }

    #[test]
    fn what_explains_most_is_told_with_its_kind_and_how_much_more_there_is() {
        let ledger = Ledger::unread();
        let mut open = Vec::new();
        for (kind, what, error, told) in [
            (Await::Memory, "memory", ErrorKind::LimitReached, "memory ("),
            (Await::Request, "r1", ErrorKind::Unreachable, "r1 ("),
            (
                Await::Request,
                "r2",
                ErrorKind::Unreachable,
                "; and 1 more)",
            ),
            (Await::Disk, "d1", ErrorKind::Unreachable, "d1 ("),
            (Await::Decoder, "s1", ErrorKind::LimitReached, "s1 ("),
            (Await::Answer, "a1", ErrorKind::LimitReached, "a1 ("),
        ] {
            open.push(ledger.awaits(kind, what));
            let failed = Watch::new(&ledger, Some(SHORT)).until(None, never);
            let failed = failed.unwrap_err();
            assert_eq!(failed.kind(), error);
            assert!(failed.why().contains(told), "{failed}");
            assert!(failed.help().unwrap().contains('`'), "{failed:?}");
        }
    }

    #[test]
    fn what_moves_is_waited_for_and_time_in_which_nobody_waits_is_free() {
        let ledger = Ledger::unread();
        let mut watch = Watch::new(&ledger, Some(SHORT));
        let mut looks = 0;
        // Much longer than the limit, by the watch's own count: each look finds that something moved.
        let waited = watch.until(None, |_| {
            looks += 1;
            ledger.retried("reset");
            (looks > 100).then_some(looks)
        });
        assert_eq!(waited.unwrap(), Some(101));
        // The process was stopped for an hour, or the consumer was away: neither is a wait.
        watch.look(Duration::ZERO).unwrap();
        watch.look(Duration::from_hours(1)).unwrap();
        assert!(watch.until(None, never).is_err());
    }

    #[test]
    fn what_is_waited_for_is_noted_once_where_it_takes_long_and_without_a_limit_that_is_all() {
        let ledger = Ledger::unread();
        let _disk = ledger.awaits(Await::Disk, "bytes 0..9 of a.tar");
        let mut watch = Watch::new(&ledger, None);
        for _ in 0..1000 {
            watch.look(BEAT).unwrap();
        }
        let notes = ledger.report().notes;
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(
            notes[0].starts_with("nothing moved for 30 s, waiting for bytes 0..9 of a.tar"),
            "{notes:?}"
        );
    }
}
