//! The ordered stream of shards' bytes, as the network fills them.

use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use crate::buffer::Slice;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Ledger, Wait};
use crate::store::Object;
use crate::sync::Arc;

/// What the fetcher announces, in the order of consumption.
#[derive(Debug)]
pub(super) enum Announced {
    /// A shard begins.
    Shard(Object),
    /// Its next range: requested already, there once the answer is.
    Range(oneshot::Receiver<Result<Slice>>),
    /// The shard ends.
    End,
    /// The shard cannot be read at all.
    Failed(Error),
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
    ledger: Arc<Ledger>,
}

impl Feed {
    pub(super) fn new(announced: mpsc::UnboundedReceiver<Announced>, ledger: &Arc<Ledger>) -> Self {
        Self {
            announced,
            ledger: Arc::clone(ledger),
        }
    }

    /// Waits for the next piece. None at the end of the last shard, or once the load was stopped.
    #[expect(
        clippy::should_implement_trait,
        reason = "it waits; an iterator would hide that"
    )]
    pub fn next(&mut self) -> Option<Piece> {
        let start = Instant::now();
        let piece = match self.announced.blocking_recv()? {
            Announced::Shard(object) => Piece::Shard(object),
            Announced::End => Piece::End,
            Announced::Failed(error) => Piece::Failed(error),
            Announced::Range(answer) => match answer.blocking_recv() {
                Ok(Ok(slice)) => {
                    self.ledger.delivered_bytes(slice.len() as u64);
                    Piece::Bytes(slice)
                }
                Ok(Err(error)) => Piece::Failed(error),
                // The task is gone: the load was stopped.
                Err(_gone) => return None,
            },
        };
        self.ledger.waited(Wait::Network, start.elapsed());
        Some(piece)
    }

    /// The bytes of the shard that has just begun. Whatever of them is not taken is passed over by [`Feed::pass_over`].
    pub fn shard(&mut self) -> ShardBytes<'_> {
        ShardBytes {
            feed: self,
            is_over: false,
            was_stopped: false,
        }
    }

    /// Passes over the rest of the current shard.
    pub fn pass_over(&mut self) {
        while let Some(piece) = self.next() {
            if matches!(piece, Piece::End) {
                return;
            }
        }
    }
}

/// The bytes of one shard, in order.
#[derive(Debug)]
pub struct ShardBytes<'a> {
    feed: &'a mut Feed,
    is_over: bool,
    was_stopped: bool,
}

impl ShardBytes<'_> {
    /// Passes over what was not taken. Says whether the load goes on.
    pub fn finish(mut self) -> bool {
        if !self.is_over {
            self.feed.pass_over();
            self.is_over = true;
        }
        !self.was_stopped
    }
}

impl Iterator for ShardBytes<'_> {
    type Item = Result<Slice>;

    fn next(&mut self) -> Option<Result<Slice>> {
        if self.is_over {
            return None;
        }
        match self.feed.next() {
            Some(Piece::Bytes(slice)) => Some(Ok(slice)),
            Some(Piece::Failed(error)) => Some(Err(error)),
            Some(Piece::End) => {
                self.is_over = true;
                None
            }
            Some(Piece::Shard(_)) => {
                Some(Err(Error::bug("read a shard", "the one before has no end")))
            }
            None => {
                self.is_over = true;
                self.was_stopped = true;
                Some(Err(Error::new(
                    ErrorKind::Cancelled,
                    "read a shard",
                    "",
                    "the load was stopped",
                )))
            }
        }
    }
}
