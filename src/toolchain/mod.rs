//! Finds, identifies and installs language servers, the Node.js that runs them, and the analyzers of `--with`.
//!
//! A server is always launched as `node langserver.index.js`, never through a wrapper script: a killed `pip` wrapper
//! leaves its node process behind, and the `pyright-langserver` that npm installs with basedpyright *is* basedpyright. So an
//! executable is only a hint: it is resolved to the package that it belongs to, and the `package.json` of that package
//! says what it is.
//!
//! [`find()`] only searches, [`ensure`] also installs what is missing into lanser's cache, and [`inventory()`] lists all
//! candidates for `doctor`. Everything is synchronous: async callers use a blocking thread.
//!
//! Not here: starting servers and talking to them (`lsp`), deciding whether a workspace is trusted, and uninstalling
//! (the folders of the cache are self-contained and can be deleted).

mod analyzer;
mod bundled_stubs;
mod child;
mod error;
mod event;
mod find;
mod follow;
mod install;
mod installer;
mod inventory;
mod node;
mod own_environment;
mod package;
mod pins;
mod program_cache;
mod request;
mod server_kinds;
mod store;

#[cfg(test)]
mod fixtures;

pub use analyzer::{
    InstallableAnalyzer, InstalledAnalyzer, ensure_analyzer, find_analyzer, install_analyzer,
};
pub use error::{SearchAttempt, Unavailable};
pub use event::InstallEvent;
pub use find::find;
pub use install::{ensure, install};
pub use inventory::{CandidateStatus, Inventory, NodeCandidate, ServerCandidate, inventory};
pub use node::{Node, faster_options};
pub use own_environment::default_server;
pub use package::{Package, program_digest};
pub use pins::{PINS, Pin};
pub use request::{FoundServer, ServerProgram, ServerSource, ToolchainRequest};
pub use server_kinds::{OLDEST_NODE, default_version, supported_versions};

use crate::path::AbsPath;

/// Verifies that the code of a server in lanser's cache, or in lanser's own Python environment, is that of the pinned version. Reads
/// some megabytes. Servers from elsewhere always pass. `cache` is lanser's cache folder.
///
/// # Errors
/// If the code differs or cannot be read.
pub fn verify(found: &FoundServer, cache: &AbsPath) -> Result<(), String> {
    let pin = Pin::of_server(PINS, found.kind, &found.version);
    let is_pinned = matches!(found.source, ServerSource::Cache | ServerSource::Environment);
    let Some(pin) = pin.filter(|_| is_pinned) else { return Ok(()) };
    let package = Package { kind: found.kind, version: found.version.clone(), root: found.package.clone() };
    match package.known_code(cache) {
        Ok(code) if pin.is_code(&code) => Ok(()),
        Ok(_) => Err(format!("the code of {} in {} is not what was installed", found.kind, found.package)),
        Err(error) => Err(format!("cannot read {}: {error}", found.package)),
    }
}
