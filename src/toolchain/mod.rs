//! Language servers and the Node.js that runs them: found, identified and, if need be, installed.
//!
//! A server is always launched as `node langserver.index.js`, never through a wrapper script: a killed `pip` wrapper
//! leaves its node behind, and the `pyright-langserver` that npm puts beside a basedpyright *is* basedpyright. So an
//! executable is only a hint: it is followed to the package that it belongs to, and that package is taken for what
//! its own `package.json` says.
//!
//! [`find()`] only looks; [`ensure`] installs into lanser's cache what is missing; [`inventory()`] tells about every place,
//! for `doctor`. All of it is synchronous: callers inside a runtime put it on a blocking thread.
//!
//! Deliberately absent: starting servers and talking to them (`lsp`), deciding whether a workspace is trusted, and
//! removing what was installed (the folders of the cache are self-contained and can be deleted).

mod child;
mod error;
mod find;
mod follow;
mod install;
mod installer;
mod inventory;
mod node;
mod node_versions;
mod package;
mod pins;
mod profile;
mod progress;
mod request;
mod store;

#[cfg(test)]
mod fake;

pub use error::{Attempt, Unavailable};
pub use find::find;
pub use install::{ensure, install};
pub use inventory::{Inventory, NodePlace, Place, Standing, inventory};
pub use node::Node;
pub use package::Package;
pub use pins::{PINS, Pin};
pub use profile::{OLDEST_NODE, default_version, supported_versions};
pub use progress::Progress;
pub use request::{Found, Request, Source};

/// Whether the code of a server in lanser's cache is that of the pinned version. Reads some megabytes.
///
/// # Errors
/// With what is wrong; nothing is of a server that the user brought.
pub fn verify(found: &Found) -> Result<(), String> {
    let pin = Pin::of_server(PINS, found.kind, &found.version);
    let Some(pin) = pin.filter(|_| found.source == Source::Cache) else { return Ok(()) };
    let package = Package { kind: found.kind, version: found.version.clone(), root: found.package.clone() };
    match package.code_digest() {
        Ok(code) if pin.is_code(&code) => Ok(()),
        Ok(_) => Err(format!("the code of {} in {} is not what was installed", found.kind, found.package)),
        Err(error) => Err(format!("{} cannot be read: {error}", found.package)),
    }
}
