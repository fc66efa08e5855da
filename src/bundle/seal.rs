//! Seals bundles: sets the status and the exit code, and hashes the content.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::digest::{CanonicalError, Digest, canonical_digest};
use crate::model::BUNDLE_VERSION;
use crate::model::bundle::{Bundle, Hashing, Limits, Meta, Status, Volatile};
use crate::model::edits::Edits;
use crate::model::environment::Environment;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::{Facts, Verdict};
use crate::model::request::Request;
use crate::model::resolution::{RelocationRules, Resolution};

/// The algorithm of `bundleId`.
pub const HASHING: &str = "sha256-jcs-v1";

/// The content of a bundle before it is hashed.
#[derive(Debug, Clone)]
pub struct BundleDraft {
    /// The request.
    pub request: Option<Request>,
    /// The location of the selector.
    pub resolution: Option<Resolution>,
    /// The facts.
    pub facts: Option<Facts>,
    /// The edits, planned or written.
    pub edits: Option<Edits>,
    /// The environment of the computation.
    pub environment: Option<Environment>,
    /// The capabilities of the server.
    pub capabilities: BTreeMap<String, bool>,
    /// The error.
    pub error: Option<ErrorBody>,
    /// Reasons why the answer may differ from what the caller expects.
    pub warnings: Vec<String>,
    /// The parameters of relocation, if it was used.
    pub relocation: Option<RelocationRules>,
    /// The limits of the list, and whether it was truncated.
    pub limits: Option<Limits>,
    /// The digest of the diagnostics that were measured for the reward.
    pub measured: Option<Digest>,
    /// Whether the answer is incomplete for a reason other than `limits`.
    pub partial: bool,
}

impl BundleDraft {
    /// A draft with an error and no answer.
    #[must_use]
    pub const fn failed(request: Option<Request>, error: ErrorBody) -> Self {
        Self {
            request,
            resolution: None,
            facts: None,
            edits: None,
            environment: None,
            capabilities: BTreeMap::new(),
            error: Some(error),
            warnings: Vec::new(),
            relocation: None,
            limits: None,
            measured: None,
            partial: false,
        }
    }
}

impl From<Bundle> for BundleDraft {
    /// The draft that the bundle was made from.
    fn from(bundle: Bundle) -> Self {
        Self {
            request: bundle.request,
            resolution: bundle.resolution,
            facts: bundle.facts.map(Arc::unwrap_or_clone),
            edits: bundle.edits,
            environment: bundle.environment,
            capabilities: bundle.capabilities,
            error: bundle.error,
            warnings: bundle.warnings,
            relocation: bundle.meta.relocation,
            limits: bundle.meta.limits,
            measured: bundle.meta.measured,
            partial: bundle.status == Status::Partial,
        }
    }
}

/// The parts of a bundle that are hashed: rule 1 of the bundle format.
#[derive(Serialize)]
struct HashedParts<'b> {
    request: &'b Option<Request>,
    resolution: &'b Option<Resolution>,
    facts: Option<&'b Facts>,
    edits: &'b Option<Edits>,
    environment: &'b Option<Environment>,
    capabilities: &'b BTreeMap<String, bool>,
    error: &'b Option<ErrorBody>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'b [String],
    meta: HashedMeta<'b>,
}

/// `meta` without `volatile`.
#[derive(Serialize)]
struct HashedMeta<'b> {
    exit_code: u8,
    sorting_keys: &'b [String],
    hashing: &'b Hashing,
    relocation: &'b Option<RelocationRules>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Digest>,
    limits: &'b Option<Limits>,
}

/// Makes a bundle from a draft.
///
/// # Errors
/// If a value has no canonical form, which is a bug in lanser.
pub fn seal(draft: BundleDraft) -> Result<Bundle, CanonicalError> {
    let is_late = draft.error.as_ref().is_some_and(|error| error.symbol == ErrorSymbol::LsTimeout);
    let status = match (&draft.error, draft.partial) {
        // A timeout with the facts that were known by then.
        (Some(_), true) if is_late && draft.facts.is_some() => Status::Partial,
        (Some(_), _) => Status::Error,
        (None, true) => Status::Partial,
        (None, false) => Status::Ok,
    };
    let meta = Meta {
        exit_code: exit_code(draft.error.as_ref(), draft.facts.as_ref()),
        sorting_keys: ["uri", "range[0]", "range[1]", "range[2]", "range[3]"].map(str::to_owned).to_vec(),
        hashing: Hashing { algo: HASHING.to_owned() },
        relocation: draft.relocation,
        measured: draft.measured,
        limits: draft.limits,
        volatile: Volatile::default(),
    };
    let mut bundle = Bundle {
        version: BUNDLE_VERSION.to_owned(),
        bundle_id: Digest::from_bytes([0; 32]),
        status,
        request: draft.request,
        resolution: draft.resolution,
        facts: draft.facts.map(Arc::new),
        edits: draft.edits,
        process_reward: None,
        environment: draft.environment,
        capabilities: draft.capabilities,
        error: draft.error,
        warnings: draft.warnings,
        meta,
    };
    bundle.bundle_id = bundle_id(&bundle)?;
    Ok(bundle)
}

/// The exit code for an error and facts: the code of the error, 1 for a failed verdict, else 0.
#[must_use]
pub fn exit_code(error: Option<&ErrorBody>, facts: Option<&Facts>) -> u8 {
    let of_list = |facts: &Facts| facts.diagnostics.as_ref()?.verdict;
    let verdict = facts.and_then(|facts| facts.verdict.or_else(|| of_list(facts)));
    match (error, verdict) {
        (Some(error), _) => error.code,
        (None, Some(Verdict::Fail)) => 1,
        (None, Some(Verdict::Pass) | None) => 0,
    }
}

/// Computes the digest of a bundle's content, ignoring its `bundleId`.
///
/// # Errors
/// If a value has no canonical form.
pub fn bundle_id(bundle: &Bundle) -> Result<Digest, CanonicalError> {
    let parts = HashedParts {
        request: &bundle.request,
        resolution: &bundle.resolution,
        facts: bundle.facts.as_deref(),
        edits: &bundle.edits,
        environment: &bundle.environment,
        capabilities: &bundle.capabilities,
        error: &bundle.error,
        warnings: &bundle.warnings,
        meta: HashedMeta {
            exit_code: bundle.meta.exit_code,
            sorting_keys: &bundle.meta.sorting_keys,
            hashing: &bundle.meta.hashing,
            relocation: &bundle.meta.relocation,
            measured: bundle.meta.measured,
            limits: &bundle.meta.limits,
        },
    };
    canonical_digest(&parts)
}
