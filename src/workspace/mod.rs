//! The workspace: the only module that touches the user's file system.
//!
//! [`root`] finds it, [`walk`] lists its Python files, [`snapshot`] knows their contents by digest and which of them hold
//! a word, [`files`] reads them. Absent: what a selector means (`resolve`), what a server says (`lsp`).

mod cache_file;
pub mod files;
mod parallel;
pub mod root;
pub mod snapshot;
pub mod walk;
mod word_index;
