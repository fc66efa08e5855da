//! lanser: facts about code, one deterministic bundle per question.

pub mod bundle;
mod cli;
pub mod digest;
pub mod lsp;
pub mod model;
pub mod orchestrator;
pub mod path;
pub mod resolve;
pub mod schema;
pub mod selector;
pub mod text;
pub mod toolchain;
pub mod workspace;

pub use cli::main;
