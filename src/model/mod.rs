//! The public JSON contract: plain data with constructors only. `schemas/` is generated from these types.
//!
//! Names of members: a member that the papers on lanser name keeps that name (`bundleId`, `processReward`, `symbolId`,
//! `docVersion`, `newName`, `workspaceEdit`, …), and a member of an LSP structure keeps LSP's name (everything inside of a
//! `WorkspaceEdit`, and `selectionRange`). Every other member is snake_case. So a field gets an explicit `rename` only
//! for a name of the first two kinds; no type outside of LSP's own has `rename_all` for its members.
//!
//! Coordinates are the server's: 0-based, flat `[sL, sC, eL, eC]`, columns in `environment.positionEncoding`. The `at` of a
//! location is a selector (1-based, `--index-io` units) that lanser accepts as input.

pub mod analyzer;
pub mod batch;
pub mod bundle;
pub mod edits;
pub mod environment;
pub mod error;
pub mod facts;
mod object;
pub mod recorded_bundle;
pub mod request;
pub mod resolution;
pub mod reward;
pub mod server;
pub mod trace;

/// The version of the bundle format.
///
/// Changelog:
/// - 1.4: the first version that this program wrote. Earlier numbers belong to the papers that the format comes from.
/// - 1.5: one casing for member names, and plain names: see `CHANGELOG.md`. Documents of 1.4 are not read.
/// - 1.6: `meta.sorting_keys` names the members; `resolution.original` is the selector as given; `facts.hover` with definitions;
///   `partialResult` and `cancellable` in `capabilities`; `meta.measured` and `processReward.digest`; pr-v1 has its own names.
pub const BUNDLE_VERSION: &str = "1.6";
