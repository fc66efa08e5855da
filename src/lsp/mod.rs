//! A client of language servers over stdio.
//!
//! From the wire up: [`jsonrpc`] messages, [`codec`] frames, a [`connection`] of two channel ends, the server's
//! [`process`], and a [`client`] that pairs answers with [`questions`]. What is special about each server is data in
//! its [`profile`]. Upper layers see plain [`answer`]s; the one thing of the wire that they may hold is a
//! [`Connection`], which the trace layer records from and replays to.
//!
//! Every wait has an end: an answer, a deadline, a cancellation, the stream's end and the process's end are distinct
//! [`LspError`]s. Cancelling works also while the server is busy ([`cancellation`]), and no server outlives us
//! ([`process::exec_guarded`]).
//!
//! Deliberately absent: pushed diagnostics (they are pulled), progress (no token is ever handed out), file watching
//! (the workspace layer knows what changed), a restart (the orchestrator's decision).

pub mod answer;
mod callbacks;
pub mod cancellation;
pub mod capabilities;
pub mod client;
pub mod codec;
pub mod connection;
pub mod conversation;
mod convert;
pub mod documents;
pub mod error;
pub mod jsonrpc;
mod link;
mod pending;
pub mod process;
pub mod profile;
pub mod questions;
mod renewal;
pub mod stand_in;
pub mod tape;
#[cfg(test)]
mod tests;

pub use answer::{
    Call, CallItem, CodeAction, Diagnostic, DiagnosticTag, HoverText, Listing, Place, Related, Renamable,
    ServerCommand, Severity, Symbol, SymbolKind, WorkspaceSymbol,
};
pub use capabilities::Capabilities;
pub use client::{Client, InitializeOptions, Readiness, ServerIdentity};
pub use connection::Connection;
pub use conversation::{Conversation, Memory, Notes};
pub use documents::{ChangeKind, FileChange};
pub use error::LspError;
pub use process::{Exit, Launch, ServerProcess, exec_guarded, spawn};
pub use profile::{Profile, ServerSettings};
pub use questions::Questions;
pub use stand_in::StandIn;
