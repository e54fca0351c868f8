//! The ordered stream of shards' bytes, as the network fills them.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::watch::Watch;
use crate::buffer::Slice;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Ledger, Wait};
use crate::store::Object;
use crate::sync::{Arc, AtomicU64, Ordering};

/// What the fetcher announces, in the order of consumption.
#[derive(Debug)]
pub(super) enum Announced {
    /// A shard begins.
    Shard(Object),
    /// Its next range: requested already, there once the answer is. With it, how much memory was leased until its end,
    /// over the whole load.
    Range(oneshot::Receiver<Result<Slice>>, u64),
    /// The shard ends.
    End,
    /// The shard cannot be read at all.
    Failed(Error),
    /// There are no more shards.
    Finished,
}

/// What [`Feed::next`] gives.
#[derive(Debug)]
pub enum Piece {
    /// A shard begins.
    Shard(Object),
    /// The next bytes of the shard.
    Bytes(Slice),
    /// The shard ends.
    End,
    /// The shard cannot be read on; `End` follows.
    Failed(Error),
}

/// The receiving end.
#[derive(Debug)]
pub struct Feed {
    announced: mpsc::UnboundedReceiver<Announced>,
    /// Lets the fetcher begin one more pass.
    passes: mpsc::UnboundedSender<()>,
    leased: Arc<AtomicU64>,
    is_finished: bool,
    /// Which source the bytes are of, where there are several.
    source: usize,
    ledger: Arc<Ledger>,
    /// Where it is the consumer who waits here, and no stage on the consumer's behalf.
    watch: Option<(Watch, Handle)>,
}

impl Feed {
    pub(super) fn new(
        announced: mpsc::UnboundedReceiver<Announced>,
        passes: mpsc::UnboundedSender<()>,
        ledger: &Arc<Ledger>,
        source: usize,
    ) -> Self {
        // The second pass may be read ahead while the first one is taken.
        let _reads_no_pass = passes.send(());
        Self {
            announced,
            passes,
            leased: Arc::new(AtomicU64::new(0)),
            is_finished: false,
            source,
            ledger: Arc::clone(ledger),
            watch: None,
        }
    }

    /// The same for a consumer, who does not wait for ever.
    pub(super) fn watched(mut self, watch: Watch, runtime: &Handle) -> Self {
        self.watch = Some((watch, runtime.clone()));
        self
    }

    /// Waits for the next piece. None at the end of the last shard.
    ///
    /// # Errors
    ///
    /// `Cancelled` where the load was stopped, or its network task is gone: an end that nobody announced is none. For a
    /// consumer, what a wait of too long is.
    #[expect(
        clippy::should_implement_trait,
        reason = "it waits and may fail; an iterator would hide that"
    )]
    pub fn next(&mut self) -> Result<Option<Piece>> {
        if self.is_finished {
            return Ok(None);
        }
        let start = Instant::now();
        let announced = match &mut self.watch {
            None => self.announced.blocking_recv(),
            Some((watch, runtime)) => watch.until_ready(runtime, self.announced.recv())?,
        };
        let piece = match announced {
            None => return Err(stopped()),
            Some(Announced::Finished) => {
                self.is_finished = true;
                return Ok(None);
            }
            Some(Announced::Shard(object)) => Piece::Shard(object),
            Some(Announced::End) => Piece::End,
            Some(Announced::Failed(error)) => Piece::Failed(error),
            Some(Announced::Range(answer, leased_bytes)) => {
                self.leased.store(leased_bytes, Ordering::Relaxed);
                let answered = match &mut self.watch {
                    None => answer.blocking_recv(),
                    Some((watch, runtime)) => watch.until_ready(runtime, answer)?,
                };
                match answered {
                    Ok(Ok(slice)) => {
                        self.ledger.delivered_bytes(slice.len() as u64);
                        self.ledger
                            .delivered_bytes_of(self.source, slice.len() as u64);
                        Piece::Bytes(slice)
                    }
                    Ok(Err(error)) => Piece::Failed(error),
                    Err(_gone) => return Err(stopped()),
                }
            }
        };
        self.ledger.waited(Wait::Network, start.elapsed());
        Ok(Some(piece))
    }

    /// How much memory of the pool was leased, over the whole load, for everything up to the last piece. What is held
    /// back of the stream is measured by this and not by payload: it counts the unused ends of slabs, too.
    #[must_use]
    pub fn leased(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.leased)
    }
}

fn stopped() -> Error {
    Error::new(
        ErrorKind::Cancelled,
        "read the shards",
        "",
        "the load was stopped",
    )
}

/// The bytes of the shard that has just begun on a feed, in order.
#[derive(Debug, Clone)]
pub(super) struct ShardBytes(Rc<RefCell<Shard>>);

#[derive(Debug)]
struct Shard {
    feed: Feed,
    is_over: bool,
}

impl ShardBytes {
    /// Nothing, until [`ShardBytes::begin`].
    pub(super) fn new(feed: Feed) -> Self {
        Self(Rc::new(RefCell::new(Shard {
            feed,
            is_over: true,
        })))
    }

    /// Waits for the next shard. None where there are no more.
    ///
    /// # Errors
    ///
    /// As [`Feed::next`].
    pub(super) fn begin(&self) -> Result<Option<Object>> {
        let mut shard = self.0.borrow_mut();
        match shard.feed.next()? {
            None => Ok(None),
            Some(Piece::Shard(object)) => {
                shard.is_over = false;
                Ok(Some(object))
            }
            Some(Piece::Bytes(_) | Piece::End | Piece::Failed(_)) => Err(Error::bug(
                "read the shards",
                "bytes came outside of a shard",
            )),
        }
    }

    /// Lets the fetcher begin one more pass: one is taken, and one is read ahead, at most. Without that bound shards of no
    /// bytes, which take no memory, would be announced without end.
    pub(super) fn allow_pass(&self) {
        // It is gone where the load was stopped.
        let _stopped = self.0.borrow().feed.passes.send(());
    }

    /// Passes over what was not taken.
    ///
    /// # Errors
    ///
    /// As [`Feed::next`].
    pub(super) fn finish(&self) -> Result<()> {
        let mut shard = self.0.borrow_mut();
        while !shard.is_over {
            shard.is_over = matches!(shard.feed.next()?, None | Some(Piece::End));
        }
        Ok(())
    }
}

impl Iterator for ShardBytes {
    type Item = Result<Slice>;

    fn next(&mut self) -> Option<Result<Slice>> {
        let mut shard = self.0.borrow_mut();
        if shard.is_over {
            return None;
        }
        let next = shard.feed.next();
        shard.is_over = !matches!(next, Ok(Some(Piece::Bytes(_) | Piece::Failed(_))));
        match next {
            Ok(Some(Piece::Bytes(slice))) => Some(Ok(slice)),
            Ok(Some(Piece::End)) => None,
            Ok(Some(Piece::Failed(error))) | Err(error) => Some(Err(error)),
            Ok(Some(Piece::Shard(_)) | None) => {
                Some(Err(Error::bug("read a shard", "it has no end")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Await;

    #[test]
    fn a_consumer_does_not_wait_for_ever_and_hears_what_for() {
        let runtime = crate::sync::runtime_named("test").unwrap();
        let ledger = Ledger::unread();
        let limit = Some(std::time::Duration::from_millis(20));
        let watched = |announced| {
            let watch = Watch::new(&ledger, limit);
            Feed::new(announced, mpsc::unbounded_channel().0, &ledger, 0)
                .watched(watch, runtime.handle())
        };
        let (announce, announced) = mpsc::unbounded_channel();
        let mut feed = watched(announced);
        let disk = ledger.awaits(Await::Disk, "bytes 0..9 of a.tar");
        let error = feed.next().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert!(
            error.why().contains("waiting for bytes 0..9 of a.tar ("),
            "{error}"
        );
        drop(disk);
        // The same where the range was announced, and then never came.
        let (_answer, answered) = oneshot::channel();
        announce.send(Announced::Range(answered, 0)).unwrap();
        let error = feed.next().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Bug);
        assert!(
            error.why().contains("waiting for nothing that is known of"),
            "{error}"
        );
        let (answer, answered) = oneshot::channel();
        announce.send(Announced::Range(answered, 0)).unwrap();
        answer
            .send(Ok(crate::buffer::Slab::heap(3).freeze()))
            .unwrap();
        assert!(matches!(feed.next(), Ok(Some(Piece::Bytes(bytes))) if bytes.len() == 3));
    }

    #[test]
    fn an_end_that_nobody_announced_is_none() {
        let (announce, announced) = mpsc::unbounded_channel();
        let mut feed = Feed::new(announced, mpsc::unbounded_channel().0, &Ledger::unread(), 0);
        let (answer, receiver) = oneshot::channel();
        announce.send(Announced::Range(receiver, 1)).unwrap();
        drop(answer);
        assert_eq!(feed.next().unwrap_err().kind(), ErrorKind::Cancelled);
        drop(announce);
        assert_eq!(feed.next().unwrap_err().kind(), ErrorKind::Cancelled);
    }

    #[test]
    fn an_announced_end_is_one_for_good() {
        let (announce, announced) = mpsc::unbounded_channel();
        let mut feed = Feed::new(announced, mpsc::unbounded_channel().0, &Ledger::unread(), 0);
        announce.send(Announced::Finished).unwrap();
        drop(announce);
        assert!(feed.next().unwrap().is_none());
        assert!(feed.next().unwrap().is_none());
    }
}
