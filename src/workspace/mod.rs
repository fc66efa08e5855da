//! The workspace: the only module that touches the user's files.
//!
//! - [`root`] finds the workspace's folder, [`walk`] lists its Python files, and [`snapshot`] records them by content
//!   digest, with an index of the words in them. [`files`] reads them, and [`transaction`] writes them.
//! - [`git`], [`history`] and [`commits`] read the git repository around it; [`states`] are successive states of the files.
//! - [`python`], [`virtual_env`] and [`server_config`] read what else determines a server's answers: the Python
//!   environment and the server's configuration.
//!
//! Not here: resolving selectors (`resolve`) and talking to servers (`lsp`).

pub(crate) mod cache_file;
pub(crate) mod code_folders;
pub mod commits;
pub mod content_store;
pub mod disk_cache;
mod distributions;
pub mod file_tree;
pub mod files;
pub mod git;
pub mod history;
pub mod include_filter;
pub(crate) mod parallel;
pub mod python;
pub mod root;
pub mod scripts;
pub mod search_path;
pub mod server_config;
pub mod snapshot;
pub mod states;
pub mod text_search;
pub mod transaction;
pub mod trust;
mod ty_config;
pub mod virtual_env;
pub mod walk;
mod word_index;
