//! A client of language servers over stdio.
//!
//! From the wire up: [`jsonrpc`] messages, [`codec`] frames, a [`connection`] of two channel ends, the server's
//! [`process`], and a [`client`] that sends [`requests`] and pairs responses with them. What differs between servers
//! is data in a [`profile`]. Upper layers see the plain types of [`results`]; of the wire they only handle a
//! [`Connection`], which the trace layer records from and replays to.
//!
//! Messages are written with the types of `lsp_types` and read by parsers of lanser's own, which forgive more.
//!
//! Every wait ends: a response, a timeout, a cancellation, the end of the stream and the end of the process are
//! distinct [`LspError`]s. Cancellation works also while the server is busy ([`cancellation`]), and no server
//! outlives lanser ([`crate::process::guard`]).
//!
//! Left out on purpose: pushed diagnostics (they are pulled), progress (no token is ever sent), file watching (the
//! workspace layer knows what changed), restarts (the engine decides).

pub mod cancellation;
pub mod capabilities;
pub mod client;
pub mod codec;
pub mod connection;
mod convert;
pub mod documents;
mod endpoint;
pub mod error;
pub mod jsonrpc;
mod pending;
pub mod process;
pub mod profile;
pub mod python_shim;
pub mod recording;
pub mod requests;
mod reset;
pub mod results;
mod server_requests;
#[cfg(test)]
mod tests;
mod wire;

pub use capabilities::Capabilities;
pub use client::{Client, InitializeOptions, Readiness, ServerIdentity};
pub use connection::Connection;
pub use documents::{ChangeKind, FileChange};
pub use error::LspError;
pub use process::{Launch, ProcessExit, ServerProcess, spawn};
pub use profile::{Profile, ServerSettings};
pub use python_shim::PythonShim;
pub use requests::LspRequests;
pub use results::{
    CodeAction, DiagnosticTag, HoverText, Listing, LspCall, LspCallItem, LspCommand, LspDiagnostic,
    LspLocation, LspSeverity, LspSymbol, RelatedLocation, RenameTarget, SymbolKind, WorkspaceSymbol,
};
