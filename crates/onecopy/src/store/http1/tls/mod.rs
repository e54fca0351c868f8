//! TLS whose decryption is the move: rustls shakes hands, and records are opened here, straight into their slab.
//!
//! ```text
//!  socket --recv--> record buffer (small, reused while warm) --AEAD open--> slab
//!                        |                                                     (tls_open)
//!                        +-- opened in place, where it does not fit the slab --> copied there (tls_copy)
//! ```
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
//! | `open`, `seal` | keys in use: one record opened, one record sealed |
//! | `session` | what rustls goes on doing: next keys, tickets |
//! | `control` | what is no payload: alerts, tickets, key updates |
//! | `scratch` | record buffers |
//! | `inbound` | records into slabs, without a socket |
//! | `stream` | all of it on a socket |
//! | `breach` | why a connection is given up |
//!
//! Hops here: tls_recv, tls_open, tls_copy, tls_seal. May import: buffer, ledger. Absent: HTTP.

mod breach;
mod control;
mod handshake;
mod inbound;
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
