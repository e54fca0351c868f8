//! Threads that run decode jobs.

use super::crew::Crew;
use crate::batch::{Job, Scratch};
use crate::error::Result;
use crate::ledger::{Await, OpenHop};
use crate::sync::channel;

/// Jobs that wait for a thread, per thread: enough that none idles between two samples.
const QUEUE_PER_THREAD: usize = 4;

/// Starts `threads` decoders. They end when the sender is dropped and the queue is empty.
///
/// # Errors
///
/// `LimitReached` where not all of them can be started; those that were then end.
pub(super) fn start(
    crew: &mut Crew,
    threads: usize,
    hop: &OpenHop,
) -> Result<channel::Sender<Job>> {
    let (sender, receiver) = channel::bounded::<Job>(threads * QUEUE_PER_THREAD);
    for number in 0..threads {
        let (receiver, hop) = (receiver.clone(), hop.clone());
        crew.start(format!("decode-{number}"), move || {
            let mut scratch = Scratch::default();
            let place = hop.ledger().place(Await::Decoder);
            for job in receiver {
                let sample = job.sample();
                place.begin(format_args!("sample {} of {}", sample.key, sample.shard));
                job.run(&hop, &mut scratch);
                place.end();
            }
        })?;
    }
    Ok(sender)
}
