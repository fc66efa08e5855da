//! Sessions: an [`Engine`](crate::engine::Engine) in a background process, reached over a Unix socket, so that a
//! server that has read the workspace once is still running for the next request.
//!
//! A *client* ([`client`]) looks for the session of its [`key`] in the user's runtime folder ([`runtime_dir`]). When no
//! session runs, the client starts one: it binds the socket itself, under a lock, and passes it on, so that a second
//! client can already wait in its backlog. A session is two processes ([`daemon`]): a *supervisor* that only waits, and
//! the *service* ([`service`]); each cleans up after the other. [`wire`] is the protocol between client and service;
//! [`control`] lists and stops sessions.
//!
//! A session never makes an answer worse: when anything is wrong with it, the client answers in its own process.
//!
//! There are no files that describe sessions and could be out of date. A session is alive while a process holds the
//! lock in the session's folder, and reachable while its socket accepts connections; nothing else counts.

mod client;
pub(super) mod control;
mod daemon;
mod key;
mod runtime_dir;
mod service;
mod wire;

pub use client::{SessionClient, SessionError, SessionResponse};
pub use control::{SessionInfo, list, stop};
pub use daemon::{SESSION_COMMAND, run};
pub use key::SessionOptions;
pub use runtime_dir::RuntimeDir;
pub use wire::SessionStatus;

use std::time::Duration;

/// How many sessions one user may have at a time.
const MAX_SESSIONS: usize = 8;

/// How long to wait for one reply. A session that sends nothing for so long is checked for being stopped (`SIGSTOP`).
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);
