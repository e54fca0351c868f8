//! Runs a route: stages, bounded queues, stop and join.
//!
//! ```text
//!  fetch (tokio) --pieces, in order--> sample thread --jobs--> decode threads --reports--> whoever calls next()
//!        ^                                   |                                                  |
//!        +-- slabs of the pool <-------------+ slices dropped                                   |
//!                                            ^---- budget of batch memory <---------------------+
//! ```
//!
//! Why it cannot deadlock: ranges are leased in the order of consumption, so the next byte's memory was granted before any
//! later byte's; the shuffle holds at most half the pool; samples that wait for one of their form are copied out of it;
//! decode jobs need no memory of the pool to finish; batch memory beyond the budget is granted to the first block in flight whatever its size.
//!
//! Hops here: none of its own. May import: all of the flow. Absent: URLs, defaults, and any format.

mod budget;
mod crew;
mod cutter;
mod decode_pool;
mod feed;
mod fetch;
mod lane;
mod lengths;
mod passes;
mod plain;
mod run_len;
mod running;
mod runs;
mod sample_stage;
mod spots;
mod stretch;
mod turns;
mod watch;

pub use feed::{Feed, Piece};
pub use passes::Steps;
pub use plain::{Buffers, Samples};
pub use running::{Batches, Next, Work};
pub use spots::{Spots, Standing};
pub use stretch::{LaneWork, Spot, Stretch, Take};
pub use turns::{Again, Draws, Rounds, Turns};
pub(crate) use watch::Watch;
