//! What really happened: per hop bytes, calls and busy time; waits, retries, skips and fallbacks.
//!
//! Hops here: none moves; all are counted, each through an [`OpenHop`]. May import: route. Absent: any decision. The
//! ledger is told and never asked by the flow, but for two things: it counts no more that is left out than may be, because
//! whoever counts alone can hold a number to its limit exactly; and whoever has waited too long asks it what for ([`Await`]).

mod cache_count;
mod histogram;
mod hop_count;
mod map;
mod network;
mod open_hop;
mod pulse;
mod report;
mod running;
mod skipped;
mod sources;

pub use cache_count::CacheCount;
pub use histogram::Spread;
pub use network::{Connections, NetworkReport};
pub use open_hop::OpenHop;
pub use pulse::{Await, Awaited, OpenAwait};
pub use report::{CopiesPerByte, HopReport, Report, Retries, Waits};
pub use running::{Ledger, Wait};
pub use skipped::{Lost, Skipped};
pub use sources::SourceReport;
