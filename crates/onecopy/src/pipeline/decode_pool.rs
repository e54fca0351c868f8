//! Threads that run decode jobs.

use std::thread::JoinHandle;

use crate::batch::{Job, Scratch};
use crate::error::Result;
use crate::ledger::OpenHop;
use crate::sync::{channel, spawn};

/// Jobs that wait for a thread, per thread: enough that none idles between two samples.
const QUEUE_PER_THREAD: usize = 4;

/// Starts `threads` decoders. They end when the sender is dropped and the queue is empty.
///
/// # Errors
///
/// `LimitReached` where not all of them can be started; those that were then end.
pub(super) fn start(
    threads: usize,
    hop: &OpenHop,
) -> Result<(channel::Sender<Job>, Vec<JoinHandle<()>>)> {
    let (sender, receiver) = channel::bounded::<Job>(threads * QUEUE_PER_THREAD);
    let mut joins = Vec::with_capacity(threads);
    for number in 0..threads {
        let (receiver, hop) = (receiver.clone(), hop.clone());
        joins.push(spawn(format!("decode-{number}"), move || {
            let mut scratch = Scratch::default();
            for job in receiver {
                job.run(&hop, &mut scratch);
            }
        })?);
    }
    Ok((sender, joins))
}
