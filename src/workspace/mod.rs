//! The workspace: the only module that touches the user's file system.

pub mod files;
