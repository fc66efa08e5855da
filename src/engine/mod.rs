//! The engine: turns a request into a sealed bundle. Only this module knows the order of the steps.
//!
//! A request is answered in *attempts*. An attempt works on one set of [`inputs`], everything that the answer depends
//! on besides the request: it looks the request up in the [`memo`], resolves the selector ([`request_state`]),
//! acquires a server that is synced to the inputs ([`pool`]) and queries it ([`navigation`], [`outline`],
//! [`call_hierarchy`], [`diagnose`]). Afterwards the inputs are scanned again. If they are unchanged, the answer is
//! returned; if not, the attempt is repeated on the new inputs. An engine that has answered before therefore
//! starts at once with the inputs that it knows: the one scan after the answer proves that it is fresh.
//!
//! The documents that matter to a request are open, and no document is open that a fresh server would not know. The
//! server always enumerates its files first, because the types that Pyright infers depend on the order in which it
//! learns of files.

mod absolute_paths;
mod agreement;
mod analyze;
mod answer;
mod blocking;
mod bundle_store;
mod call_hierarchy;
mod completeness;
mod concurrent;
mod context;
mod definition_cache;
mod diagnose;
mod dispatch;
mod failure;
mod implementations;
mod inputs;
mod installed_words;
mod instance;
mod library;
mod locations;
mod memo;
mod navigation;
mod occurrences;
mod opinion;
mod order_dependence;
mod other_server;
mod outline;
mod pool;
mod positions;
mod python_env;
mod refactor;
mod references;
mod report;
pub(crate) mod request_input;
mod request_state;
mod resolution;
mod reward;
mod run;
mod scan_throttle;
mod sealing;
mod server;
mod settings;
mod single_flight;
mod stub_sources;
pub mod traced;
mod type_hierarchy;
mod unresolved_imports;
mod unsaved;

pub use absolute_paths::AbsolutePaths;
pub use analyze::{AnalyzerReport, analyzer_report, find_analyzer, install_analyzer};
pub(crate) use blocking::abandoned_work_goes_on;
pub use bundle_store::stored_bundle;
pub(crate) use failure::cancelled;
pub use instance::Engine;
pub use library::{OpenError, Workspace, WorkspaceOptions};
pub(crate) use library::{cache_folder, processors, search_path};
pub use memo::verify_memo;
pub use python_env::{ConfigurationReport, PythonReport, configuration_report, python_report};
pub use refactor::write_files;
pub use report::{RunningServers, ServerReport};
pub use request_input::{read_selector, unknown_unit_error, validate_request};
pub(crate) use request_state::ONE_BASED;
pub use reward::{ScoreHead, ScoreLimits, ScoreService, StateSource, is_revision, score, supplement};
pub use scan_throttle::PendingGuard;
pub use server::{tell_progress, toolchain_request};
pub(crate) use settings::state_folder;
pub use settings::{Progress, Settings};
pub use traced::{Replay, ReplayedOperation};
pub use unsaved::{UnsavedTexts, UnsavedWorkspace};
