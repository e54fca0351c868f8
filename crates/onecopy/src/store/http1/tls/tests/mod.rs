//! The record layer against peers that are made here, against rustls as a server, and against `openssl s_server`.

mod fuzz;
mod openssl;
mod peer;
mod records;
mod refusals;
mod rustls_server;
