//! TLS without a copy: rustls shakes hands, and records are received into their slab and opened there.
//!
//! ```text
//!  socket --recv--> slab, ahead of its place --AEAD open--> its place, a few bytes before          (tls_recv, tls_open)
//!     |                                            ^ moved there: a record that came along with a head     (tls_copy)
//!     +-----recv--> record buffer --AEAD open--> record buffer --> slab: heads, and the last record of a slab  (tls_copy)
//! ```
//!
//! A record is longer than its content, so the content always lands before the record's own bytes, and where the next content
//! goes was opened by then. The cipher reads what `recv` just wrote, while the core's cache holds it.
//!
//! rustls checks certificates, agrees on keys, and hands them over (`rustls::kernel`); it goes on keeping tickets and
//! deriving the keys of a key update. Everything else of the record layer is here: RFC 8446 (TLS 1.3) section 5, and
//! RFC 5246 (TLS 1.2) section 6 with the AEAD ciphers of RFC 5288 and RFC 7905.
//!
//! What a record says is used only after it was authenticated. Anything that the protocol does not allow at its place
//! is a [`Breach`], after which nothing more is read from the connection.
//!
//! | file | what it holds |
//! |---|---|
//! | `trust` | which certificates count, which ciphers are offered |
//! | `handshake` | from a TCP connection to keys |
//! | `record` | the form of a record: header, lengths, nonce |
//! | `key` | a key, and what is counted under it |
//! | `open`, `seal` | one record opened, one record sealed |
//! | `session` | what rustls goes on doing: next keys, tickets |
//! | `control` | what is no payload: alerts, tickets, key updates |
//! | `scratch` | record buffers |
//! | `ahead` | sealed bytes that lie in the slab |
//! | `inbound` | records into slabs, without a socket |
//! | `stream` | all of it on a socket |
//! | `breach` | why a connection is given up |
//!
//! Hops here: tls_recv, tls_open, tls_copy, tls_seal. May import: buffer, ledger. Absent: HTTP.

mod ahead;
mod breach;
mod control;
mod handshake;
mod inbound;
mod key;
mod open;
mod record;
mod scratch;
mod seal;
mod session;
mod stream;
#[cfg(test)]
mod tests;
mod trust;

pub(super) use breach::Breach;
pub(super) use handshake::TlsConnector;
pub(in crate::store) use stream::Sealed;
pub(super) use stream::{TlsHops, TlsStream};
pub(in crate::store) use trust::Trust;
