//! The hash of a bundle.

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

/// The name of the way in which `bundleId` is made.
pub const HASHING: &str = "sha256-jcs-v1";

/// Everything that a bundle says, before it is hashed.
#[derive(Debug, Clone)]
pub struct Draft {
    /// What was asked.
    pub request: Option<Request>,
    /// Where the selector is.
    pub resolution: Option<Resolution>,
    /// What is true.
    pub facts: Option<Facts>,
    /// What would be, or was, written.
    pub edits: Option<Edits>,
    /// What it was computed with.
    pub environment: Option<Environment>,
    /// What the server offered.
    pub capabilities: BTreeMap<String, bool>,
    /// Why there is no answer.
    pub error: Option<ErrorBody>,
    /// What may make the answer another one than the caller expects.
    pub warnings: Vec<String>,
    /// By what numbers places were weighed, where some were.
    pub relocation: Option<RelocationRules>,
    /// Whether the list was cut.
    pub limits: Option<Limits>,
    /// Whether the answer is known not to be whole for another reason than `limits`.
    pub partial: bool,
}

impl Draft {
    /// A draft that says only why there is no answer.
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
            partial: false,
        }
    }
}

/// The hash domain: rule 1 of the bundle format names these parts.
#[derive(Serialize)]
struct Domain<'b> {
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
    limits: &'b Option<Limits>,
}

/// Makes a bundle out of a draft.
///
/// # Errors
/// When a value has no canonical form, which is a defect of lanser.
pub fn seal(draft: Draft) -> Result<Bundle, CanonicalError> {
    let is_late = draft.error.as_ref().is_some_and(|error| error.symbol == ErrorSymbol::LsTimeout);
    let status = match (&draft.error, draft.partial) {
        // What was known when the time ended.
        (Some(_), true) if is_late && draft.facts.is_some() => Status::Partial,
        (Some(_), _) => Status::Error,
        (None, true) => Status::Partial,
        (None, false) => Status::Ok,
    };
    let meta = Meta {
        exit_code: exit_code(draft.error.as_ref(), draft.facts.as_ref()),
        sorting_keys: ["uri", "sL", "sC", "eL", "eC"].map(str::to_owned).to_vec(),
        hashing: Hashing { algo: HASHING.to_owned() },
        relocation: draft.relocation,
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

/// The exit code that an error and facts ask for: the error's own, 1 for a verdict that fails, else 0.
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

/// The digest that a bundle's content has, whatever its `bundleId` says.
///
/// # Errors
/// When a value has no canonical form.
pub fn bundle_id(bundle: &Bundle) -> Result<Digest, CanonicalError> {
    let domain = Domain {
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
            limits: &bundle.meta.limits,
        },
    };
    canonical_digest(&domain)
}
