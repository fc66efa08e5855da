//! The public JSON contract: plain data, no behaviour beyond constructors. `schemas/` is generated from it.

pub mod server;
