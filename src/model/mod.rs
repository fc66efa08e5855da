//! The public JSON contract: plain data, no behaviour beyond constructors. `schemas/` is generated from it.
//!
//! Coordinates are the server's: 0-based, flat `[sL, sC, eL, eC]`, columns in `environment.positionEncoding`. The `at` of a
//! location is a selector (1-based, `--index-io` units) that can be given back to lanser.

pub mod batch;
pub mod bundle;
pub mod edits;
pub mod environment;
pub mod error;
pub mod facts;
pub mod request;
pub mod resolution;
pub mod reward;
pub mod server;
pub mod trace;

/// The version of the bundle format.
///
/// Changelog: 1.4 is the first that this program writes; earlier numbers belong to the papers it comes from.
pub const BUNDLE_VERSION: &str = "1.4";
