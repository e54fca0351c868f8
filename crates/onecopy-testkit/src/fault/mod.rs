//! An S3 service that misbehaves by script, on bare TCP, so that it can break HTTP itself.
//!
//! What happens to `GET /bucket/<script>/<size>/anything` is written in the key: the script is a
//! list of faults (see [`Script`]), the size is the object's (`1000`, `8MiB`), and the body is a
//! function of key and offset ([`fill`]), so that any wrong byte is found without files. A test
//! may as well put its own bytes ([`FaultServer::put`]) and script them
//! ([`FaultServer::script`]). With a [`Profile`] it is a simulator of S3's timing.
//!
//! Signatures are not checked and the bucket's name is ignored for objects.

mod answer;
mod body;
mod connection;
mod listing;
mod profile;
mod record;
pub(crate) mod request;
mod script;
mod server;
mod stop;

pub use body::{Pattern, body_byte, fill};
pub use profile::Profile;
pub use record::FaultRecord;
pub use script::Script;
pub use server::FaultServer;
