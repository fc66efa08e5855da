//! Front ends on the engine: the [`session`], a background process that keeps a server running, and [`batch`], which answers
//! a stream of requests. [`watchdog`] ends a process whose main thread hangs.

pub mod batch;
pub mod mcp;
pub mod session;
pub mod watchdog;
