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
//! The rest of this page is a map of the code for contributors.
//!
//! # Bird's-eye view
//!
//! On the highest level, lanser takes a *request* (a command, a *selector* that names a place in the code, options) and produces a
//! sealed *bundle*. In between it resolves the selector by syntax alone, starts or reuses a language server, queries it, and
//! converts the responses into portable facts. For an edit it also plans the changes, checks them, and writes them in one
//! transaction.
//!
//! An answer depends on the request and on its *inputs*: the snapshot of all Python files, the Python environment, the server's
//! configuration, and the server itself. Nothing else may influence it. Most of the design follows from this rule: inputs are
//! scanned before and after a request, state of the server that depends on earlier requests is reset, and paths and clocks are kept
//! out of the hash.
//!
//! # Code map
//!
//! The code is one crate. Its modules form layers; a `crate::` import only points to a lower layer, which a test enforces
//! (`tests/it/layering.rs`). The six modules of layer 4 never import each other.
//!
//! | layer | module | content |
//! |---|---|---|
//! | 7 | `cli` | arguments, environment, printing, exit codes; one file per command in `cli/commands` |
//! | 6 | [`orchestrator`] | the engine: how a request is answered, step by step |
//! | 5 | [`schema`] | JSON schemas generated from the types, and validation |
//! | 5 | [`trace`] | traces on disk: writing, reading one operation at a time, detecting damage |
//! | 4 | [`resolve`] | selectors: tree-sitter over files, import roots, re-exports, base classes; relocation between revisions |
//! | 4 | [`lsp`] | the language server protocol: framing, connection, process, client, server profiles |
//! | 4 | [`toolchain`] | finding, identifying and installing language servers and Node.js |
//! | 4 | [`edit`] | edits as values: workspace edits, unified diffs, plans, previews |
//! | 4 | [`bundle`] | building a sealed bundle from facts: portable paths, order, pages, hash |
//! | 4 | [`reward`] | the reward of a step: formulas, and guards against edits that only hide an error |
//! | 3 | [`workspace`] | the user's files: walk, snapshot, word index, Python environment, server configuration, git, transactions |
//! | 2 | [`model`] | the public JSON format as plain types |
//! | 1 | [`selector`] | the selector language: grammar and printing |
//! | 1 | [`tape`] | the recorded I/O of one operation, for record and replay |
//! | 0 | [`text`], [`path`], [`digest`] | coordinates and decoding; paths and URIs; canonical JSON and hashes |
//!
//! ## Where to look
//!
//! | question | file or folder |
//! |---|---|
//! | What happens to a request, in which order? | `orchestrator/mod.rs`, `orchestrator/answer.rs` (the attempt loop), `orchestrator/ask.rs` (the dispatch to handlers) |
//! | How is a command answered? | `orchestrator/navigation.rs`, `references.rs`, `call_hierarchy.rs`, `outline.rs`, `diagnose.rs` |
//! | What does an answer depend on? | `orchestrator/inputs.rs` |
//! | When is a list of references complete? | `orchestrator/completeness.rs`, `orchestrator/occurrences` |
//! | How do edits work? | `orchestrator/refactor` (plan and checks), [`workspace::transaction`] (writing) |
//! | Which server process answers? | `orchestrator/pool`, `orchestrator/order_dependence.rs` |
//! | How does the background process work? | [`orchestrator::session`] |
//! | How are many requests run? | [`orchestrator::batch`] |
//! | How is an operation recorded and replayed? | [`tape`], [`orchestrator::traced`], [`trace`] |
//! | How is a selector resolved? | [`resolve`] |
//! | What is in a bundle? | [`model`] |
//! | How are rewards computed? | [`reward`], `orchestrator/reward` (the measurements) |
//!
//! # The path of a request: `lanser refs py://flask#Flask.route`
//!
//! 1. `cli/commands/navigate.rs` turns the arguments into a [`model::request::Request`]. A selector with a syntax error is
//!    reported here, with a caret below the error. The request is sent to the workspace's *session*, a background process that
//!    keeps the server running ([`orchestrator::session`]). If no session can be used, it is answered in this process.
//! 2. [`orchestrator::Orchestrator::run`] makes an *attempt* on one set of inputs. For the first request the inputs are
//!    scanned, while [`toolchain::ensure`] finds or installs the server and [`lsp::Client::initialize`] starts it; later requests
//!    presume that the inputs of the last scan still hold.
//! 3. The *memo*, an on-disk cache of bundles by inputs and request, may have the answer. Otherwise the selector is resolved to a
//!    name token: by [`resolve::symbol`], or by [`resolve::locate`] if it refers to another revision or does not give a name.
//!    A selector that resolves to nothing is reported without waiting for the server.
//! 4. A running server is synced: the changed files are announced, or it is restarted. It enumerates its files
//!    ([`lsp::Client::ready`]). Every file that contains the name is opened, in the order of paths, whatever the server's
//!    configuration includes. Then the request is sent.
//! 5. The response is converted to locations: portable URI, selector, source line. Occurrences that the server did not return are
//!    explained one by one, and those that cannot be explained are counted ([`model::facts::Completeness`]).
//! 6. The inputs are scanned again. If they have changed, the attempt is repeated on the new inputs. If they change during an
//!    attempt twice, the error is `E/CONTENT_MODIFIED`.
//! 7. [`bundle::seal::seal`] hashes the bundle, `cli/output` prints it, and its error, if any, determines the exit code.
//!
//! # The path of an edit: `lanser rename py://m#f g --apply`
//!
//! Steps 1 to 4 are the same. Then, in `orchestrator/refactor`, the server proposes an edit, which is applied in memory to the
//! contents of the snapshot ([`edit::plan`]). All checks run, and each result is recorded. The edited texts are shown to the server as
//! open documents, and its diagnostics and references are compared with those before. If no check fails and the second scan finds the
//! inputs unchanged, the plan is written ([`workspace::transaction`]).
//!
//! # Invariants
//!
//! - The hash of a bundle covers no absolute path, clock, process id or host name.
//! - The server's answer to a request is a function of inputs and request. No document is open that could make the answer differ
//!   from a fresh server's, and the server enumerates its files before any document is opened.
//! - Every wait ends: with a response, a timeout, a cancellation, or the end of the process. No server outlives its caller, even if
//!   the caller is killed.
//! - A session never makes an answer worse: if anything is wrong with it, the caller computes the answer itself.
//! - Files of the workspace never name a program to run, and never relax a guard.
//! - Files are written only by a transaction, after all checks, if the workspace is still in the state that was checked.
//! - An answer is called complete only if that is proved.

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
pub use orchestrator::{OpenError, Replay, ReplayedOperation, Workspace, WorkspaceOptions};
