//! Our own HTTP/1.1 client: it reads a body straight into the slabs it is meant for.
//!
//! Hops here: recv, head_rest, tls_recv, tls_open, tls_copy, tls_seal, send. May import: buffer, ledger. Absent: any knowledge of
//! what is asked for, or of retries beyond the free one for a connection that died while it was idle.
//!
//! | file | what it holds |
//! |---|---|
//! | `endpoint` | who is spoken to |
//! | `client`, `request` | one request, one answer |
//! | `pool` | connections of one endpoint: those in use and the idle ones |
//! | `gate`, `climb`, `epoch` | how many there may be: a fair queue before a limit, and the limit as measured |
//! | `files` | how many sockets this process may open |
//! | `recent`, `patience` | what requests are like, and when one of them is given up |
//! | `tokens` | what may be done only so often |
//! | `addresses` | name resolution, spreading, addresses that rest |
//! | `connect` | TCP, TLS |
//! | `tls` | handshakes by rustls, records received into slabs and opened there |
//! | `proxy`, `no_proxy` | the way through a proxy, and for whom there is none |
//! | `wire` | a body written, a head read |
//! | `connection` | the bytes: write, read, read into slabs |
//! | `low_water` | how many bytes a wait waits for |
//! | `head` | the head of an answer |
//! | `body`, `chunked` | what follows it |
//! | `gap` | what of a target is still to be filled |
//! | `way` | whom a request went to, for whoever reads of its failure |
//! | `failure` | what went wrong, and whether asking again may help |

mod addresses;
mod body;
mod chunked;
mod client;
mod climb;
mod connect;
mod connection;
mod endpoint;
mod epoch;
mod failure;
mod files;
#[cfg(test)]
mod fuzz;
mod gap;
mod gate;
mod head;
mod low_water;
mod no_proxy;
mod patience;
mod pool;
mod proxy;
mod recent;
mod request;
mod tls;
mod tokens;
mod way;
mod wire;

pub(super) use body::Body;
pub(super) use client::{Answer, Client};
pub(super) use endpoint::Endpoint;
pub(super) use failure::Failure;
pub(crate) use files::files_left;
pub(super) use gap::Gap;
pub(super) use head::{Head, retry_after};
pub(super) use request::Request;
