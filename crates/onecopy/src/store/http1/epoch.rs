//! Half a second of an endpoint: after each the number of connections is thought over.

use std::time::Duration;

/// The length of an epoch: some ranges of 8 MiB at 50 MB/s pass in it, on each connection.
pub(super) const EPOCH: Duration = Duration::from_millis(500);

/// What one epoch brought.
#[derive(Debug, Clone, Copy)]
pub(super) struct Epoch {
    /// How long it was.
    pub(super) span: Duration,
    /// For how much of it requests waited for a connection. Where none waits (nobody asks, the memory is full, the consumer
    /// does not take), more connections could not bring more, so nothing is learnt.
    pub(super) full: Duration,
    /// Body bytes that came in, over all connections.
    pub(super) bytes: u64,
}

impl Epoch {
    /// Whether it tells anything of the number of connections.
    pub(super) fn is_telling(&self) -> bool {
        self.full.as_secs_f64() >= 0.8 * self.span.as_secs_f64()
    }
}
