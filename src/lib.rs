//! lanser answers questions about Python code with facts from a language server. Each answer is a deterministic,
//! content-hashed JSON *bundle*: the same content and the same request give the same bytes, on any machine with the same
//! toolchain, regardless of earlier requests.
//!
//! There are two ways to use it: the program `lanser`, and this library. [`Workspace`] opens a folder, takes typed requests, and
//! returns typed bundles, one at a time or concurrently. `examples/library.rs` is a complete program.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use lanser::model::request::{Command, Request};
//! use lanser::{Bundle, Workspace};
//!
//! let workspace = Workspace::open("path/to/project")?;
//! // One method for each command …
//! let hover: Bundle = workspace.hover("py://flask#Flask.route").await;
//! // … or a request, which can express everything that a line of a batch can.
//! let selector = lanser::selector::parse("src/app.py:42:7", Default::default())?;
//! let references: Bundle = workspace.ask(Request::about(Command::References, selector)).await;
//! println!("{} {}", hover.bundle_id, references.bundle_id);
//! workspace.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! How the program works is described in `docs/architecture.md`.

mod bundle;
mod cli;
mod digest;
mod edit;
mod engine;
mod lsp;
pub mod model;
mod path;
mod process;
mod python;
mod relocate;
mod reward;
mod schema;
pub mod selector;
mod serve;
mod tape;
mod text;
mod toolchain;
mod trace;
mod workspace;

pub use cli::main;
pub use engine::{
    OpenError, Progress, Replay, ReplayedOperation, RunningServers, ScoreHead, ServerReport, StateSource,
    Workspace, WorkspaceOptions,
};
pub use model::bundle::Bundle;
pub use model::request::Request;
pub use path::{AbsPath, WorkspacePath};
pub use reward::RewardFormula;
pub use reward::episode::Episode;
pub use text::ColumnUnit;
pub use workspace::snapshot::ChangeDetection;

/// The parts of the program, for its tests and measuring tools. They change with every commit.
#[doc(hidden)]
pub mod internal {
    macro_rules! parts {
        ($($part:ident)*) => {
            $(pub mod $part { pub use crate::$part::*; })*
        };
    }
    parts!(bundle digest edit engine lsp path python relocate reward schema serve tape text toolchain trace workspace);
}
