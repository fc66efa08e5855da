//! lanser: facts about code, one deterministic bundle per question.

pub mod bundle;
pub mod digest;
pub mod lsp;
pub mod model;
pub mod path;
pub mod resolve;
pub mod schema;
pub mod selector;
pub mod text;
pub mod toolchain;
pub mod workspace;
