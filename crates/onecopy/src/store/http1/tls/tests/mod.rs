//! The record layer against peers that are made here, against rustls as a server, and against `openssl s_server`.
#![expect(
    clippy::disallowed_methods,
    reason = "made up to be compared, not payload"
)]

mod certificates;
mod fuzz;
mod openssl;
mod peer;
mod records;
mod refusals;
mod rustls_server;
mod sockets;
