//! onecopy: training data from object storage into memory of the device, in as few copies as the machine allows.

pub mod buffer;
pub mod config;
pub mod error;
pub mod ledger;
pub mod route;
pub mod sample;
pub mod size;
pub mod store;
pub mod sync;

pub use error::{Error, ErrorKind, Result};
