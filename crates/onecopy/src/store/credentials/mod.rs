//! Credentials: where they are looked for, and how one that is in use is kept, renewed and given up.
//!
//! Hops here: none. May import: nothing of the other rooms. Absent: what a credential is made of, and how requests are signed
//! with it; that is each store's own.

mod keep;
mod send;

pub(super) use keep::{Held, Keep, Kept};
pub(super) use send::{Trouble, context};
