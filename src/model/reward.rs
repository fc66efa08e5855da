//! The reward of a step: a number made of bundles alone, with everything that it was made of.
//!
//! `processReward` is outside of the hash: it is computed from a bundle and names another one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::Counts;
use super::request::Severity;
use crate::digest::{Digest, Score};
use crate::path::DocUri;

/// The reward of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProcessReward {
    /// The formula.
    pub version: Preset,
    /// The bundle that the step starts from; `null` when it starts from what this one itself says of before.
    pub previous_bundle_id: Option<Digest>,
    /// The reward; `null` where nothing honest can be said.
    pub r: Option<Score>,
    /// Why `r` is `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What `r` is the weighted sum of.
    pub components: Components,
    /// The state that the step leads to.
    pub state: RewardState,
    /// The diagnostics before this bundle's own edit, where they are others than in `state.scope`; absent where nothing is edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Earlier>,
    /// What was measured besides for this step, in files that one of the two bundles did not look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supplement: Option<Supplement>,
    /// Whether the checker had anything to see: where it had not, a reward of 0 says nothing.
    #[serde(default)]
    pub visible: bool,
    /// The weights.
    pub weights: Weights,
    /// Where the diagnostics come from.
    pub source: RewardSource,
    /// What the edit does besides, that could pass for a repair; empty where nothing is edited.
    pub integrity: Integrity,
    /// The same in words.
    pub explanation: String,
}

/// A formula with its default weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Preset {
    /// Differences of a potential over raw counts.
    #[default]
    #[serde(rename = "rl-csf-v1")]
    RlCsf,
    /// The first paper's formula.
    #[serde(rename = "pr-v1")]
    Pr,
    /// Differences of a potential over guarded diagnostics.
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

    /// Reads a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.as_str() == name)
    }
}

/// The weights of a formula; none is negative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Of a diagnostic.
    #[serde(rename = "wD")]
    pub diagnostics: Score,
    /// Of safety.
    #[serde(rename = "wS")]
    pub safety: Score,
    /// Of confidence.
    #[serde(rename = "wA")]
    pub confidence: Score,
    /// Of an error.
    #[serde(rename = "wE")]
    pub error: Score,
    /// The discount.
    pub gamma: Score,
}

/// What a reward is the weighted sum of. `null` where it cannot be said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Components {
    /// How many diagnostics went.
    pub diag_delta: Option<Score>,
    /// How much safer an edit is prepared.
    pub safety_delta: Option<Score>,
    /// How much surer the selector's place is.
    pub confidence_delta: Option<Score>,
    /// Whether the caller made an error.
    pub tool_error: Option<Score>,
}

/// The state of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RewardState {
    /// The diagnostics over the scope: their number, or their guarded weight; `null` where none were measured.
    #[serde(rename = "D")]
    pub diagnostics: Option<Score>,
    /// The share of the safety checks that passed; 0 where nothing is prepared.
    #[serde(rename = "S")]
    pub safety: Score,
    /// The confidence of the selector's best place; 0 where there is none.
    #[serde(rename = "A")]
    pub confidence: Score,
    /// Whether the caller made an error; `null` when the fault is not the caller's.
    #[serde(rename = "E")]
    pub error: Option<Score>,
    /// The files over which diagnostics were measured; `null` where none were.
    pub scope: Option<RewardScope>,
}

/// Files with their diagnostics as fingerprints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RewardScope {
    /// Files with diagnostics, in the order of their paths.
    pub files: Vec<FileState>,
    /// Files without any, in the order of their paths.
    pub clean: Vec<DocUri>,
    /// What is owed besides under the guarded formula: diagnostics that went without being repaired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<Owed>,
}

/// Diagnostics of an earlier state, where they are others than those of a later one. Files that are not named were the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    /// Files that had diagnostics, others than later, in the order of their paths.
    pub files: Vec<FileState>,
    /// Files that had none and have some later, or are no part of the later state, in the order of their paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clean: Vec<DocUri>,
    /// Files that are part of the later state only, in the order of their paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<DocUri>,
    /// What was owed besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<Owed>,
}

/// What was measured for a step from one bundle to another so that both are compared over the same files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Supplement {
    /// In the state that the previous bundle leads to.
    pub previous: RewardScope,
    /// In the state that this one leads to.
    pub own: RewardScope,
}

/// A file with its diagnostics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileState {
    /// The file.
    pub uri: DocUri,
    /// Numbers by severity.
    pub counts: Counts,
    /// What they are, hints left out.
    pub prints: Vec<Fingerprint>,
}

/// What a diagnostic is, wherever it stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// The server's rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The digest of its message with numbers normalised, 16 hexadecimal digits.
    pub message: String,
    /// The definition that it stands in, as a dotted name; empty for the module.
    pub symbol: String,
    /// How bad.
    pub severity: Severity,
    /// How often.
    pub count: u32,
}

/// A diagnostic that went without being repaired.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Owed {
    /// The file.
    pub uri: DocUri,
    /// The definition that it stood in.
    pub symbol: String,
    /// The server's rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How bad.
    pub severity: Severity,
    /// How it went.
    pub why: Debt,
}

/// How a diagnostic went without being repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Debt {
    /// Its file is gone, or out of the checker's sight.
    FileGone,
    /// A comment or decorator hides it.
    Suppressed,
    /// Its file cannot be read as Python.
    SyntaxError,
    /// Its code is never reached now.
    Unreachable,
    /// Its code is gone.
    CodeGone,
    /// What was missing was made up: it is there by name only.
    MadeUp,
}

/// Where the diagnostics come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RewardSource {
    /// A language server.
    #[default]
    #[serde(rename = "lsp")]
    Lsp,
    /// A compiler.
    #[serde(rename = "compiler")]
    Compiler,
    /// Both.
    #[serde(rename = "compiler+lsp")]
    Both,
}

/// What an edit does that could pass for a repair: how often each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Integrity {
    /// Comments and decorators that hide diagnostics.
    #[serde(skip_serializing_if = "is_zero")]
    pub suppressions_added: u32,
    /// Configuration files of the server.
    #[serde(skip_serializing_if = "is_zero")]
    pub config_changed: u32,
    /// Python files that went, or went out of sight, and whose definitions live nowhere else.
    #[serde(skip_serializing_if = "is_zero")]
    pub files_removed: u32,
    /// Stretches of code that are never reached.
    #[serde(skip_serializing_if = "is_zero")]
    pub unreachable_added: u32,
    /// Functions and classes that went and live nowhere else.
    #[serde(skip_serializing_if = "is_zero")]
    pub symbols_removed: u32,
    /// Functions that lost their body, or code that had a diagnostic and went.
    #[serde(skip_serializing_if = "is_zero")]
    pub bodies_stubbed: u32,
    /// Stub files, and functions and declarations without substance.
    #[serde(skip_serializing_if = "is_zero")]
    pub stubs_added: u32,
    /// Annotations that went or became vaguer.
    #[serde(skip_serializing_if = "is_zero")]
    pub annotations_removed: u32,
    /// `Any`, casts and type guards.
    #[serde(skip_serializing_if = "is_zero")]
    pub any_casts_added: u32,
    /// Code that is run or looked up by a text: `exec`, `getattr` and the like.
    #[serde(skip_serializing_if = "is_zero")]
    pub exec_added: u32,
    /// Test files that were edited.
    #[serde(skip_serializing_if = "is_zero")]
    pub tests_touched: u32,
    /// Files that cannot be read as Python any more.
    #[serde(skip_serializing_if = "is_zero")]
    pub parse_errors: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Integrity {
    /// The flags that are set, by name, with how often.
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
            ("exec_added", self.exec_added),
            ("tests_touched", self.tests_touched),
            ("parse_errors", self.parse_errors),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// Whether one is set that caps the guarded reward at 0. A test that was edited does not: tests are code too.
    #[must_use]
    pub fn is_hard(&self) -> bool {
        self.flags().iter().any(|(name, _)| *name != "tests_touched")
    }
}
