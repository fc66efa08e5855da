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

pub mod bundle;
mod cli;
pub mod digest;
pub mod edit;
pub mod engine;
pub mod lsp;
pub mod model;
pub mod path;
pub mod python;
pub mod relocate;
pub mod reward;
pub mod schema;
pub mod selector;
pub mod serve;
pub mod tape;
pub mod text;
pub mod toolchain;
pub mod trace;
pub mod workspace;

pub use cli::main;
pub use engine::{OpenError, Replay, ReplayedOperation, Workspace, WorkspaceOptions};
pub use model::bundle::Bundle;
pub use model::request::Request;
