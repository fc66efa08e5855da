//! The workspace: the only module that touches the user's file system.
//!
//! [`root`] finds it, [`walk`] lists its Python files, [`snapshot`] knows their contents by digest and which of them hold
//! a word, [`files`] reads them, [`transaction`] changes them; [`git`] and [`history`] ask git; [`python`] and [`server_config`] read what else decides what a server sees. Absent: what a
//! selector means (`resolve`), what a server says (`lsp`).

pub(crate) mod cache_file;
pub mod configured;
pub mod contents;
mod distributions;
pub mod files;
pub mod git;
pub mod history;
pub mod kept;
pub(crate) mod parallel;
pub mod prose;
pub mod python;
pub mod root;
pub mod server_config;
pub mod snapshot;
pub mod transaction;
pub mod tree;
pub mod trust;
pub mod virtual_env;
pub mod walk;
mod word_index;
