//! Stand-ins for the outside world, for the tests and the demo of onecopy.
//!
//! | module | what it stands in for |
//! |---|---|
//! | [`s3`] | an S3 service that behaves: signatures, listings, ranges, uploads |
//! | [`cloud`] | Google Cloud Storage and Azure Blob Storage, as far as they are read |
//! | [`fault`] | an S3 service that misbehaves by script, and a simulator of S3's timing |
//! | [`shards`] | a dataset: WebDataset tars with real JPEGs, the same for the same seed |
//! | [`tar`] | the tar writer below it, whose headers a test can damage |
//!
//! Everything is plain `std` on the outside: servers run on threads of their own and stop when
//! they are dropped, so that a synchronous test needs no runtime.
//!
//! Absent: any knowledge of the other crates of this workspace. A stand-in that shared code with
//! what it tests would share its mistakes.
#![expect(
    clippy::disallowed_methods,
    reason = "a stand-in server moves no payload of ours, so its copies are not counted"
)]

pub mod cloud;
pub mod fault;
mod random;
pub mod s3;
pub mod shards;
pub mod tar;

// Both servers write keys the way S3 does.
use s3::encode_key as s3_encode;
