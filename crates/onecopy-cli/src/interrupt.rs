//! Ctrl-C, SIGTERM and SIGHUP: commands ask whether to stop; one that does not get to asking is left behind.

use std::task::Poll;
use std::time::Duration;

use onecopy::sync::{Arc, AtomicBool, Mutex, Ordering, runtime_here, spawn};
use onecopy::{Error, ErrorKind, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::Exit;

/// How long a command may take to stop by itself. With what stands around it, the process ends
/// within a second.
const GRACE: Duration = Duration::from_millis(700);

/// Whether somebody pressed Ctrl-C, or ended the command by another signal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    is_set: Arc<AtomicBool>,
    /// Guards which signal it was; held to set and to read it.
    exit: Arc<Mutex<Option<Exit>>>,
}

impl Interrupt {
    /// `Cancelled` once there was a signal; called between two items of work.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        Ok(())
    }

    /// The flag itself, for work of the engine that looks at it.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_set)
    }

    /// `exit`, with the signal that interrupted where one did.
    pub(crate) fn name(&self, exit: Exit) -> Exit {
        match exit {
            Exit::Interrupted => self.exit.lock().unwrap_or(exit),
            _ => exit,
        }
    }

    /// Runs `work` on a thread of its own, while this one waits for signals.
    pub(crate) fn watch<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let runtime = runtime_here("the watch over Ctrl-C")?;
        let mut signals = {
            let _context = runtime.enter();
            Signals::watched()
        };
        let (answer, mut answered) = oneshot::channel();
        spawn("command", move || {
            // Nobody listens once the grace is over.
            let _left_behind = answer.send(work());
        })?;
        let result = runtime.block_on(async {
            tokio::select! {
                result = &mut answered => return result,
                exit = signals.first() => *self.exit.lock() = Some(exit),
            }
            self.is_set.store(true, Ordering::Relaxed);
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

/// The signals that end a command, and as what.
struct Signals(Vec<(Signal, Exit)>);

impl Signals {
    /// Begins to watch. One that cannot be watched ends the process as it does any other.
    fn watched() -> Self {
        // Nobody needs to hear it, but where somebody listens, a file that grows past `ulimit -f` is an error of the write
        // and not the end of the process.
        let _too_large_a_file = signal(SignalKind::from_raw(nix::libc::SIGXFSZ));
        let mut kinds = vec![
            (SignalKind::interrupt(), Exit::Interrupted),
            (SignalKind::terminate(), Exit::Terminated),
        ];
        // Whoever started the command with nohup wants it to outlive the terminal.
        if !is_hangup_ignored() {
            kinds.push((SignalKind::hangup(), Exit::HungUp));
        }
        let watched = kinds
            .into_iter()
            .filter_map(|(kind, exit)| Some((signal(kind).ok()?, exit)));
        Self(watched.collect())
    }

    /// Waits for the first of them.
    async fn first(&mut self) -> Exit {
        std::future::poll_fn(|context| {
            for (signal, exit) in &mut self.0 {
                if signal.poll_recv(context) == Poll::Ready(Some(())) {
                    return Poll::Ready(*exit);
                }
            }
            Poll::Pending
        })
        .await
    }
}

fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit is that of signal 1, which is SIGHUP.
    mask.is_some_and(|mask| mask & 1 == 1)
}
