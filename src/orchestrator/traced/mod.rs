//! Recording operations, and making their bundles again from the record alone.
//!
//! Everything between the doors is the code that answers live; here is only what stands in for the workspace and the server
//! ([`replay()`]), and what is written down of them ([`record`]).

mod against;
mod library;
pub(super) mod record;
mod replay;
mod surroundings;

pub use against::{Difference, Live};
pub use library::{Again, Replay};
pub use replay::{Grounds, Replayed, replay};
