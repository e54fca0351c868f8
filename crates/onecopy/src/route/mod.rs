//! The words that the rest of the engine speaks: places, hops, routes.
//!
//! Hops here: none moves; all are defined. May import: nothing. Absent: any state. This room is constants and enums.

mod hop;
mod place;
#[expect(
    clippy::module_inception,
    reason = "the room `route` holds the word `Route`"
)]
mod route;

pub use hop::{Hop, HopSpec, Kind, Mover, Space};
pub use place::Place;
pub use route::{Fallback, Route, RouteWish};
