//! An S3 server in process: protocol and signatures by `s3s`, storage in memory or in a folder.
//!
//! It keeps to what S3 documents (quoted ETags, 206 with an exact `Content-Range`, 412, 304, 416,
//! `NoSuchBucket` told from `NoSuchKey`, opaque continuation tokens), because a client that is
//! tested against a lenient server is not tested. Bodies leave memory as slices of the stored
//! object, so that the server is not what a benchmark measures.
//!
//! Absent: versions, ACLs, encryption, lifecycle. Faults live in [`crate::fault`].

mod builder;
mod checksums;
mod download;
mod folder;
mod kept_sums;
mod list_verbs;
mod listing;
mod memory;
mod multipart;
mod record;
mod serve;
mod service;
mod store;
mod tls;
mod upload;

pub use builder::{S3Builder, S3Server};
pub use record::RequestRecord;

pub(crate) use listing::encode as encode_key;
