//! Sessions: an [`Orchestrator`](super::Orchestrator) in a process of its own, asked over a Unix socket, so that a server
//! that has read the workspace once is there for the next question.
//!
//! A *caller* ([`caller`]) looks for the session of its [`key`] in the user's runtime folder ([`place`]) and starts one
//! when there is none: it binds the socket itself, under a lock, and hands it on, so that a second caller can already wait
//! in its backlog. The session is two processes ([`daemon`]): a *supervisor* that only waits, and the session proper
//! ([`service`]), each of which cleans up after the other. What they say to each other is in [`wire`]; how a user sees and
//! ends sessions in [`control`].
//!
//! A session never makes an answer worse than none would: whatever is wrong with it, the caller answers by itself.
//!
//! Deliberately absent: descriptors of sessions in files that somebody has to believe. A session lives when a process holds
//! the lock in its folder, and it can be asked when somebody listens on its socket; nothing else counts.

mod caller;
mod control;
mod daemon;
mod key;
mod place;
mod service;
mod wire;

pub use caller::{Caller, Reply, Trouble};
pub use control::{Seen, list, stop};
pub use daemon::{SESSION_COMMAND, run};
pub use key::Terms;
pub use place::Place;
pub use wire::Status;

use std::time::Duration;

/// The most sessions that one user has at once.
const MAX_SESSIONS: usize = 8;

/// A session that says nothing for so long may be stopped, and it is looked at.
const HELLO: Duration = Duration::from_secs(1);
