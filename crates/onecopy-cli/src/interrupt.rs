//! Ctrl-C: commands ask whether to stop; one that does not get to asking is left behind.

use std::time::Duration;

use onecopy::sync::{Arc, AtomicBool, Ordering, spawn};
use onecopy::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

/// How long a command may take to stop by itself. With what stands around it, the process ends
/// within a second.
const GRACE: Duration = Duration::from_millis(700);

/// Whether somebody pressed Ctrl-C.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// `Cancelled` once there was a Ctrl-C; called between two items of work.
    pub(crate) fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        Ok(())
    }

    /// The flag itself, for work of the engine that looks at it.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Runs `work` on a thread of its own, while this one waits for Ctrl-C.
    pub(crate) fn watch<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::io("start", "the watch over Ctrl-C", error))?;
        let (answer, mut answered) = oneshot::channel();
        spawn("command", move || {
            // Nobody listens once the grace is over.
            let _left_behind = answer.send(work());
        })?;
        let result = runtime.block_on(async {
            tokio::select! {
                result = &mut answered => return result,
                pressed = tokio::signal::ctrl_c() => if pressed.is_err() {
                    // Without a handler, Ctrl-C ends the process as it does any other.
                    return answered.await;
                }
            }
            self.0.store(true, Ordering::Relaxed);
            match tokio::time::timeout(GRACE, answered).await {
                Ok(Ok(Err(error))) => Ok(Err(error)),
                _ => Ok(Err(interrupted())),
            }
        });
        // The thread ends without an answer only by a panic, which has been printed.
        result.unwrap_or_else(|_panicked| Err(Error::bug("run the command", "it panicked")))
    }
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Cancelled, "finish", "", "interrupted")
}
