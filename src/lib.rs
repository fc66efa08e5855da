//! lanser answers questions about code with facts from a language server. Each answer is one deterministic,
//! content-hashed JSON bundle: the same content and the same question give the same bytes, on any machine with the same
//! toolchain, whatever was asked before.
//!
//! The program `lanser` is one face of it, [`Workspace`] the other: a folder that is opened, asked typed requests, and answers
//! with typed bundles, alone or many at a time. `examples/library.rs` is a program that runs.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use lanser::model::request::{Command, Request};
//! use lanser::{Bundle, Workspace};
//!
//! let workspace = Workspace::open("path/to/project")?;
//! // By the name of the question …
//! let hover: Bundle = workspace.hover("py://flask#Flask.route").await;
//! // … or as a request, which says everything that a line of a batch can say.
//! let selector = lanser::selector::parse("src/app.py:42:7", Default::default())?;
//! let uses: Bundle = workspace.ask(Request::about(Command::References, selector)).await;
//! println!("{} {}", hover.bundle_id, uses.bundle_id);
//! workspace.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Where things live
//!
//! A `crate::` import only points down (a test holds this):
//!
//! | layer | module | owns |
//! |---|---|---|
//! | 7 | `cli` | arguments, environment, printing, exit codes; one file for each verb in `cli/commands` |
//! | 6 | [`orchestrator`] | the order of steps; the only place that knows it |
//! | 5 | [`schema`] | JSON schemas generated from the types, and validation |
//! | 5 | [`trace`] | traces on disk: written whole, read one operation at a time, damage found |
//! | 4 | [`resolve`] | what a selector means: tree-sitter over files, import roots, re-exports, bases; relocation between two states |
//! | 4 | [`lsp`] | talking to a server: framing, connection, process, client, profiles |
//! | 4 | [`toolchain`] | finding, identifying and installing servers and Node.js |
//! | 4 | [`edit`] | edits as values: workspace edits, unified diffs, plans, previews |
//! | 4 | [`bundle`] | from facts to a sealed bundle: portable paths, order, pages, hash |
//! | 4 | [`reward`] | what a step is worth: the formulas, and the guards against what only looks like a repair |
//! | 3 | [`workspace`] | the user's files: walk, snapshot, word index, contents, Python environment, server configuration, git, and changing them all or not at all |
//! | 2 | [`model`] | the public JSON contract as plain types |
//! | 1 | [`selector`] | the selector language: grammar and printing |
//! | 1 | [`tape`] | what passes through the doors of one operation, for record and replay |
//! | 0 | [`text`], [`path`], [`digest`] | coordinates and decoding; paths and URIs; canonical JSON and hashes |
//!
//! The six modules of layer 4 never import each other.
//!
//! # The way of one request: `lanser refs py://flask#Flask.route`
//!
//! 1. `cli/commands/navigate.rs` turns the arguments into a typed [`model::request::Request`]; a selector that cannot be
//!    read ends here, with a caret under the place. From here on everything happens in the workspace's *session*, a
//!    process in the background that keeps its server ([`orchestrator::session`]), or in this one when there is none.
//! 2. [`orchestrator::Orchestrator::run`] makes an attempt on a *ground*: a [`workspace::snapshot::Snapshot`] of every
//!    Python file by digest, the Python environment, the server's configuration. At first a survey takes it, while
//!    [`toolchain::ensure`] finds or installs the server and [`lsp::Client::initialize`] starts it; later it is presumed
//!    to be the last one. The memo may know the answer. Else the selector is resolved to a name token, by
//!    [`resolve::symbol`] or, where it was made from another state or says less than a name, by [`resolve::locate`]; one
//!    that leads nowhere is told without waiting for the server. A server that is running is told what changed, or is
//!    started anew.
//! 3. The server enumerates its files ([`lsp::Client::ready`]); then every file that holds the name is opened, in the order
//!    of paths, whatever the server's configuration includes; then the question is asked. A session whose server said it
//!    before on the same ground does not ask again ([`lsp::conversation`]).
//! 4. Places become locations: portable URI, selector, source line. What the server did not claim is counted
//!    ([`model::facts::Completeness`]).
//! 5. The ground is surveyed again. When it is another one, the attempt is repeated on that; when it changes under an
//!    attempt twice, it is `E/CONTENT_MODIFIED`.
//! 6. [`bundle::seal::seal`] hashes the bundle; `cli/output` prints it and its error, if any, becomes the exit code.
//!
//! # The way of an edit: `lanser rename py://m#f g --apply`
//!
//! The same way up to the question. Then, in [`orchestrator`]'s `refactor`: the server proposes an edit, which is made in
//! thought to the contents of the ground ([`edit::plan`]); every check is recorded; the edited texts are shown to the server as
//! open documents and compared. When the ground has proved the same and no check stops it, the plan is written
//! ([`workspace::transaction`]).
//!
//! # Invariants
//!
//! - No absolute path, clock, process id or host name is in the hash domain of a bundle.
//! - What a question finds on its server is a function of ground and request: what else is open there, no fresh server
//!   would answer from otherwise. The server enumerates before any document is opened.
//! - Every wait has an end, and no server outlives its caller, also when that is killed.
//! - A session never makes an answer worse: whatever is wrong with it, its caller answers by itself.
//! - A workspace's own files never name a program to run, and never loosen a guard.
//! - Nothing is written but by a transaction, after every check, when the workspace is what was checked.
//! - What cannot be proved complete is not called complete.

pub mod bundle;
mod cli;
pub mod digest;
pub mod edit;
pub mod lsp;
pub mod model;
pub mod orchestrator;
pub mod path;
pub mod resolve;
pub mod reward;
pub mod schema;
pub mod selector;
pub mod tape;
pub mod text;
pub mod toolchain;
pub mod trace;
pub mod workspace;

pub use cli::main;
pub use model::bundle::Bundle;
pub use model::request::Request;
pub use orchestrator::{Again, OpenError, Replay, Workspace, WorkspaceOptions};
