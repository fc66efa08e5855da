//! Front ends on the engine: the [`session`], a background process that keeps a server running, and [`batch`], which answers
//! a stream of requests; [`mcp`] and [`lsp`], which answer clients of these protocols. [`watchdog`] ends a process whose main thread hangs.

pub mod batch;
pub mod lsp;
pub mod mcp;
pub mod session;
pub mod watchdog;
