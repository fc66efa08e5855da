//! The reward of a step: a number computed from bundles alone, with everything that it was computed from.
//!
//! `processReward` is not hashed: it is computed from a bundle and refers to another one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::analyzer::{AnalyzerKind, DiagnosticSource};
use super::facts::Counts;
use super::request::Severity;
use crate::digest::{Digest, Score};
use crate::path::DocUri;

/// The reward of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessReward {
    /// The formula.
    pub version: Preset,
    /// The bundle that the step starts from; `null` when it starts from the state before this bundle's own edit.
    #[serde(rename = "previousBundleId")]
    pub previous_bundle_id: Option<Digest>,
    /// The reward; `null` when it cannot be computed.
    pub r: Option<Score>,
    /// Why `r` is `null`; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The components that `r` is the weighted sum of.
    pub components: Components,
    /// The state that the step leads to.
    pub state: RewardState,
    /// The diagnostics before this bundle's own edit, as the difference to `state.scope`; absent when nothing is
    /// edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<EarlierDiagnostics>,
    /// Diagnostics that were measured additionally for this step, in files that only one of the two bundles covers;
    /// absent when none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supplement: Option<Supplement>,
    /// Whether the checker reports anything in these files, before or after. If not, a reward of 0 carries no
    /// information.
    #[serde(default)]
    pub visible: bool,
    /// The weights of the formula.
    pub weights: FormulaWeights,
    /// Where the diagnostics come from.
    pub source: RewardSource,
    /// Properties of the edit that could be mistaken for a repair, with counts; empty when nothing is edited.
    pub integrity: Integrity,
    /// The reward explained in one line.
    pub explanation: String,
    /// The SHA-256 of the RFC 8785 form of `[bundleId, this object without digest]`. A reward that does not match is not used.
    /// Absent in bundles of format 1.5 and before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// A formula with its default weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Preset {
    /// The discounted difference of a potential over raw diagnostic counts.
    #[default]
    #[serde(rename = "rl-csf-v1")]
    RlCsf,
    /// The formula of the first paper.
    #[serde(rename = "pr-v1")]
    Pr,
    /// The discounted difference of a potential over guarded diagnostics.
    #[serde(rename = "rl-csf-guarded-v1")]
    Guarded,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 3] = [Self::RlCsf, Self::Pr, Self::Guarded];

    /// The name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RlCsf => "rl-csf-v1",
            Self::Pr => "pr-v1",
            Self::Guarded => "rl-csf-guarded-v1",
        }
    }

    /// Parses a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.as_str() == name)
    }
}

/// The weights of a formula; none is negative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// The weight of a diagnostic.
    #[serde(rename = "wD")]
    pub diagnostics: Score,
    /// The weight of safety.
    #[serde(rename = "wS")]
    pub safety: Score,
    /// The weight of confidence.
    #[serde(rename = "wA")]
    pub confidence: Score,
    /// The weight of an error of the caller.
    #[serde(rename = "wE")]
    pub error: Score,
    /// The discount factor.
    pub gamma: Score,
}

/// The weights under the names of their formula.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FormulaWeights {
    /// Of the two formulas over a potential.
    Csf(Weights),
    /// Of `pr-v1`.
    Pr(PrWeights),
}

impl FormulaWeights {
    /// The weights under the names of a formula.
    #[must_use]
    pub const fn of(preset: Preset, weights: &Weights) -> Self {
        match preset {
            Preset::RlCsf | Preset::Guarded => Self::Csf(*weights),
            Preset::Pr => Self::Pr(PrWeights {
                alpha: weights.diagnostics,
                beta: weights.safety,
                gamma: weights.confidence,
            }),
        }
    }
}

/// The weights of `pr-v1`; none is negative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrWeights {
    /// The weight of a diagnostic.
    pub alpha: Score,
    /// The weight of safety.
    pub beta: Score,
    /// The weight of ambiguity.
    pub gamma: Score,
}

/// The components that a reward is the weighted sum of, under the names of their formula. Each is `null` when it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Components {
    /// Of the two formulas over a potential.
    Csf(CsfComponents),
    /// Of `pr-v1`.
    Pr(PrComponents),
}

impl Components {
    /// The diagnostics (`D`) before the step minus those after it.
    #[must_use]
    pub const fn diag_delta(&self) -> Option<Score> {
        match self {
            Self::Csf(components) => components.diag_delta,
            Self::Pr(components) => components.diag_delta,
        }
    }
}

/// What became of the diagnostics that went, in numbers, by what became of the expressions that they were about. Diagnostics that
/// are only suppressed are in none of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoneDiagnostics {
    /// The same callee or receiver is still used for the same purpose, and now resolves.
    pub in_place: u32,
    /// Another expression took its role.
    pub replaced: u32,
    /// Its statement, branch or caller is gone or cannot run, or part of what it used was thrown away.
    pub removed: u32,
    /// Only a definition, annotation or stub appeared for it.
    pub declared: u32,
}

impl GoneDiagnostics {
    /// The nonzero counts, by what became of the expressions.
    #[must_use]
    pub fn counts(&self) -> Vec<(&'static str, u32)> {
        let all = [
            ("in place", self.in_place),
            ("replaced", self.replaced),
            ("removed", self.removed),
            ("declared", self.declared),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

/// The components of `rl-csf-v1` and `rl-csf-guarded-v1`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CsfComponents {
    /// The diagnostics (`D`) before the step minus those after it.
    pub diag_delta: Option<Score>,
    /// The safety (`S`) after the step minus that before it.
    pub safety_delta: Option<Score>,
    /// The confidence (`A`) after the step minus that before it.
    pub confidence_delta: Option<Score>,
    /// 1 if the caller made an error, else 0.
    pub tool_error: Option<Score>,
    /// What became of the diagnostics that went, of an edit under the guarded formula; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<GoneDiagnostics>,
}

/// The components of `pr-v1`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrComponents {
    /// The diagnostics before the step minus those after it.
    pub diag_delta: Option<Score>,
    /// 1 if the step checks an edit and every check passes, else 0.
    pub safety: Option<Score>,
    /// 1 minus the confidence of the selector's best target; 0 for a step without a selector.
    pub ambiguity_penalty: Option<Score>,
}

/// The state that a step leads to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RewardState {
    /// The diagnostics in the scope: their number, or their weight under the guarded formula; `null` when they were not
    /// measured.
    #[serde(rename = "D")]
    pub diagnostics: Option<Score>,
    /// The share of safety checks that passed, from 0 to 1. A step that checks no edit keeps the value of the step before it; 0
    /// when there is none.
    #[serde(rename = "S")]
    pub safety: Score,
    /// The confidence of the best candidate of the selector, from 0 to 1; 0 when there is no candidate. A step without a
    /// selector keeps the value of the step before it; 0 when there is none.
    #[serde(rename = "A")]
    pub confidence: Score,
    /// 1 if the caller made an error, else 0; `null` when the request failed for another reason.
    #[serde(rename = "E")]
    pub error: Option<Score>,
    /// The part of each source in `D`; absent when the language server is the only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceCount>,
    /// The files whose diagnostics were measured; `null` when none were.
    pub scope: Option<RewardScope>,
}

/// The part of one source in the number of diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceCount {
    /// The source.
    pub source: DiagnosticSource,
    /// Its weight.
    pub weight: Score,
    /// Its diagnostics, as the formula counts them.
    #[serde(rename = "D")]
    pub diagnostics: Score,
}

/// Files with their diagnostics as fingerprints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RewardScope {
    /// Files with diagnostics, sorted by path.
    pub files: Vec<FileDiagnostics>,
    /// Files without diagnostics, sorted by path.
    pub clean: Vec<DocUri>,
    /// Guarded formula: diagnostics that disappeared without being repaired, and still count. Absent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outstanding: Vec<OutstandingDiagnostic>,
}

/// The diagnostics of an earlier state, as the difference to a later one. Files that are not listed are the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EarlierDiagnostics {
    /// Files whose diagnostics were different, with the earlier ones, sorted by path.
    pub files: Vec<FileDiagnostics>,
    /// Files that had no diagnostics and have some later, or are not in the later state, sorted by path. Absent when
    /// empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clean: Vec<DocUri>,
    /// Files that are only in the later state, sorted by path. Absent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<DocUri>,
    /// Guarded formula: diagnostics that had disappeared without being repaired. Absent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outstanding: Vec<OutstandingDiagnostic>,
}

/// Diagnostics that were measured additionally so that two bundles can be compared over the same files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Supplement {
    /// In the state that the previous bundle leads to.
    pub previous: RewardScope,
    /// In the state that this bundle leads to.
    #[serde(rename = "current")]
    pub own: RewardScope,
}

/// A file with its diagnostics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileDiagnostics {
    /// The file.
    pub uri: DocUri,
    /// The number of diagnostics by severity.
    pub counts: Counts,
    /// The fingerprints of the diagnostics, without hints.
    pub fingerprints: Vec<DiagnosticFingerprint>,
}

/// What identifies a diagnostic independently of its position.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiagnosticFingerprint {
    /// The analyzer that reports it; absent for the language server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<DiagnosticSource>,
    /// The server's name of the rule; absent if it gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The first 16 hexadecimal digits of the digest of the message with normalized numbers.
    pub message: String,
    /// The dotted name of the enclosing definition; empty at module level.
    pub symbol: String,
    /// The severity.
    pub severity: Severity,
    /// The number of diagnostics with this fingerprint in the file.
    pub count: u32,
}

/// A diagnostic that disappeared without being repaired.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutstandingDiagnostic {
    /// The file.
    pub uri: DocUri,
    /// The dotted name of the definition that enclosed it; empty at module level.
    pub symbol: String,
    /// The analyzer that reported it; absent for the language server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<DiagnosticSource>,
    /// The source's name of the rule; absent if it gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The severity.
    pub severity: Severity,
    /// Why the diagnostic disappeared.
    #[serde(rename = "reason")]
    pub why: OutstandingReason,
}

/// Why a diagnostic disappeared without being repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutstandingReason {
    /// The file was deleted, or is no longer checked.
    FileGone,
    /// A comment or decorator suppresses it.
    Suppressed,
    /// The file has a syntax error.
    SyntaxError,
    /// The code is unreachable.
    Unreachable,
    /// The code was removed, or replaced by code that does less.
    CodeGone,
    /// Only a definition, annotation or stub appeared for it.
    Declared,
    /// Another expression took its role. It counts by a part of its weight.
    Replaced,
}

/// Where diagnostics come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RewardSource {
    /// A language server.
    #[default]
    #[serde(rename = "lsp")]
    Lsp,
    /// Analyzers.
    #[serde(rename = "compiler")]
    Compiler,
    /// Both.
    #[serde(rename = "compiler+lsp")]
    Both,
}

impl RewardSource {
    /// The source of diagnostics that were measured with these analyzers besides the language server.
    #[must_use]
    pub const fn of(with: &[AnalyzerKind]) -> Self {
        if with.is_empty() { Self::Lsp } else { Self::Both }
    }

    /// Whether the language server is the only source.
    #[must_use]
    pub const fn is_lsp(&self) -> bool {
        matches!(self, Self::Lsp)
    }
}

/// Properties of an edit that could be mistaken for a repair, with counts. A count of 0 is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Integrity {
    /// The number of comments and decorators added that suppress diagnostics.
    #[serde(skip_serializing_if = "is_zero")]
    pub suppressions_added: u32,
    /// The number of changed configuration files of the server.
    #[serde(skip_serializing_if = "is_zero")]
    pub config_changed: u32,
    /// The number of Python files that were removed or are no longer checked, and whose definitions are in no other
    /// file.
    #[serde(skip_serializing_if = "is_zero")]
    pub files_removed: u32,
    /// The number of spans of code that became unreachable.
    #[serde(skip_serializing_if = "is_zero")]
    pub unreachable_added: u32,
    /// The number of functions and classes that were removed and are in no other place.
    #[serde(skip_serializing_if = "is_zero")]
    pub symbols_removed: u32,
    /// The number of functions that lost their body, and of removed spans of code that had a diagnostic.
    #[serde(skip_serializing_if = "is_zero")]
    pub bodies_stubbed: u32,
    /// The number of stub files added, and of functions and declarations added without content.
    #[serde(skip_serializing_if = "is_zero")]
    pub stubs_added: u32,
    /// The number of annotations that were removed or became less specific, and of classes that lost a base class.
    #[serde(skip_serializing_if = "is_zero")]
    pub annotations_removed: u32,
    /// The number of uses of `Any`, casts and type guards added.
    #[serde(skip_serializing_if = "is_zero")]
    pub any_casts_added: u32,
    /// The number of expressions whose types the checker lost: of new code, or where a diagnostic was.
    #[serde(skip_serializing_if = "is_zero")]
    pub types_erased: u32,
    /// The number of uses added of code or names given as strings: `exec`, `getattr` and similar.
    #[serde(skip_serializing_if = "is_zero")]
    pub exec_added: u32,
    /// The number of edited test files.
    #[serde(skip_serializing_if = "is_zero")]
    pub tests_touched: u32,
    /// The number of files that can no longer be parsed as Python.
    #[serde(skip_serializing_if = "is_zero")]
    pub parse_errors: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Integrity {
    /// The nonzero counts, by name.
    #[must_use]
    pub fn flags(&self) -> Vec<(&'static str, u32)> {
        let all = [
            ("suppressions_added", self.suppressions_added),
            ("config_changed", self.config_changed),
            ("files_removed", self.files_removed),
            ("unreachable_added", self.unreachable_added),
            ("symbols_removed", self.symbols_removed),
            ("bodies_stubbed", self.bodies_stubbed),
            ("stubs_added", self.stubs_added),
            ("annotations_removed", self.annotations_removed),
            ("any_casts_added", self.any_casts_added),
            ("types_erased", self.types_erased),
            ("exec_added", self.exec_added),
            ("tests_touched", self.tests_touched),
            ("parse_errors", self.parse_errors),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// Whether a flag is set that limits the guarded reward to at most 0. `tests_touched` does not: tests are code too.
    #[must_use]
    pub fn is_hard(&self) -> bool {
        self.flags().iter().any(|(name, _)| *name != "tests_touched")
    }
}
