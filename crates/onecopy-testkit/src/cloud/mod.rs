//! Google Cloud Storage (its XML API) and Azure Blob Storage, as far as objects are listed and read.
//!
//! Both keep to what their documentation says where a client could go wrong: Google's quoted ETags and `x-goog-hash`, Azure's
//! bare ETags in listings and quoted ones in answers, codes in `x-ms-error-code`, names that XML cannot hold. Tokens, SAS tokens
//! and shared keys are checked; the signature is made here by another library than in the client.
//!
//! Absent: writing, versions, leases, everything about accounts.

mod answer;
mod azure;
mod google;
mod objects;
mod server;
mod shared_key;

pub use server::{Access, CloudRecord, CloudServer};
