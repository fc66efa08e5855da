//! The score of an episode in the shape that trainers read: a scalar, a dict of components, the same components as top-level
//! numbers, and the steps.

use serde::Serialize;

use super::formula::{self, StateValues};
use super::judge::JudgedEdit;
use super::saturation::{clipped, weight};
use super::state::{RewardFormula, SOURCE_WEIGHT, count, count_of};
use super::{fingerprint, visibility};
use crate::digest::Score;
use crate::model::analyzer::{AnalyzerKind, DiagnosticSource};
use crate::model::error::ErrorBody;
use crate::model::reward::{
    FormulaWeights, GoneDiagnostics, Integrity, OutstandingDiagnostic, Preset, RewardSource,
};

/// The score of one head against one base.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Episode {
    /// The schema of this object.
    pub schema: &'static str,
    /// The formula.
    pub preset: Preset,
    /// The head as the caller named it.
    pub head: String,
    /// The reward; `null` where it cannot be determined.
    pub reward: Option<Score>,
    /// Whether there is a reward.
    pub scored: bool,
    /// Why there is no reward.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The error when the head could not be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Reasons to doubt the score, as text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The parts that add up to the reward.
    pub reward_components: RewardParts,
    /// The same parts, for readers that do not look into nested objects.
    #[serde(flatten)]
    pub parts: RewardParts,
    /// The steps: one, from the base to the head.
    pub steps: Vec<EpisodeStep>,
    /// What became of the diagnostics that went; absent where the head could not be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<GoneDiagnostics>,
    /// The names of the integrity flags that are set.
    pub integrity_flags: Vec<&'static str>,
    /// The counts of all integrity flags.
    pub integrity: Integrity,
    /// Whether the checker could see any difference.
    pub visible: bool,
    /// Diagnostics that disappeared without being repaired.
    #[serde(rename = "outstanding", skip_serializing_if = "Vec::is_empty")]
    pub outstanding: Vec<OutstandingDiagnostic>,
    /// Where the diagnostics come from; absent when the language server is the only source.
    #[serde(skip_serializing_if = "RewardSource::is_lsp")]
    pub source: RewardSource,
    /// The part of each source in `prev` and `cur`; absent when the language server is the only source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<EpisodeSource>,
    /// The number of files that were compared.
    pub files: usize,
    /// The number of files that may be affected but were not compared.
    pub files_left_out: usize,
    /// The weights.
    pub weights: FormulaWeights,
}

/// The weighted parts of a reward; `null` where unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RewardParts {
    /// Diagnostics.
    pub diag: Option<Score>,
    /// Safety; always 0, because a score prepares no edit.
    pub safety: Option<Score>,
    /// Confidence; always 0, because a score resolves no selector.
    pub confidence: Option<Score>,
    /// An error of the caller.
    pub tool_error: Option<Score>,
    /// What integrity flags subtracted.
    pub integrity: Option<Score>,
}

/// The part of one source in the diagnostics of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EpisodeSource {
    /// The source.
    pub source: DiagnosticSource,
    /// Its weight.
    pub weight: Score,
    /// The number of its diagnostics before, as the formula counts them.
    pub prev: Score,
    /// The number of its diagnostics after.
    pub cur: Score,
}

/// A step of an episode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct EpisodeStep {
    /// Its number, from 1.
    pub t: u32,
    /// The reward.
    pub r: Option<Score>,
    /// The number of diagnostics before, as the formula counts them.
    pub prev: Option<Score>,
    /// The number of diagnostics after.
    pub cur: Option<Score>,
    /// How many appeared.
    pub new: u32,
    /// How many disappeared, outstanding ones included.
    pub fixed: u32,
    /// Whether the checker could see any difference.
    pub visible: bool,
}

/// The schema name of an episode.
pub const SCHEMA: &str = "lanser.episode.v1";

impl Episode {
    /// The score of a judged head.
    #[must_use]
    pub fn of(head: &str, judged: &JudgedEdit, files_left_out: usize, formula: &RewardFormula) -> Self {
        let RewardFormula { preset, weights } = *formula;
        let guarded = preset == Preset::Guarded;
        let (was, now) = (count(&judged.before, preset), count(&judged.after, preset));
        let change = if guarded { clipped(was - now) } else { was - now };
        let state = |diagnostics: f64| StateValues {
            diagnostics: Some(diagnostics),
            error: Some(0.0),
            ..unselected(preset)
        };
        let sum = formula::step(preset, &weights, &state(was), &state(was - change)).r;
        let capped = guarded && judged.integrity.is_hard() && sum.is_some_and(|sum| sum.get() > 0.0);
        let skewed = guarded && judged.integrity.config_changed > 0;
        let reward = if skewed {
            None
        } else if capped {
            Some(Score::default())
        } else {
            sum
        };
        let reason =
            skewed.then(|| "E/VERSION_SKEW: the head changes the server's configuration or stubs".to_owned());
        let taken = if capped { sum.map(|sum| -sum.get()) } else { Some(0.0) };
        let parts = RewardParts {
            diag: sum.filter(|_| !skewed),
            safety: Score::new(0.0),
            confidence: Score::new(0.0),
            tool_error: Score::new(0.0),
            integrity: taken.and_then(Score::new).filter(|_| !skewed),
        };
        let visible = visibility::is_visible(&judged.before, &judged.after, &judged.compared);
        let step = EpisodeStep {
            t: 1,
            r: reward,
            prev: Score::new(was),
            cur: Score::new(now),
            new: judged.compared.new,
            fixed: judged.compared.fixed,
            visible,
        };
        Self {
            schema: SCHEMA,
            preset,
            head: head.to_owned(),
            reward,
            scored: reward.is_some(),
            reason,
            error: None,
            warnings: Vec::new(),
            reward_components: parts,
            parts,
            steps: vec![step],
            gone: Some(fingerprint::gone(&judged.before, &judged.after)),
            integrity_flags: judged.integrity.flags().into_iter().map(|(name, _)| name).collect(),
            integrity: judged.integrity,
            visible,
            outstanding: judged.after.outstanding.clone(),
            source: RewardSource::Lsp,
            sources: Vec::new(),
            files: judged.after.files.len() + judged.after.clean.len(),
            files_left_out,
            weights: FormulaWeights::of(preset, &weights),
        }
    }

    /// Adds where the diagnostics come from, if there are analyzers besides the language server.
    #[must_use]
    pub fn with_sources(mut self, judged: &JudgedEdit, with: &[AnalyzerKind]) -> Self {
        self.source = RewardSource::of(with);
        if !with.is_empty() {
            let sources =
                std::iter::once(DiagnosticSource::Lsp).chain(with.iter().map(|kind| (*kind).into()));
            let count = |scope, source| Score::new(count_of(scope, source, self.preset)).unwrap_or_default();
            let parts = sources.map(|source| EpisodeSource {
                source,
                weight: SOURCE_WEIGHT,
                prev: count(&judged.before, source),
                cur: count(&judged.after, source),
            });
            self.sources = parts.collect();
        }
        self
    }

    /// The score of a head that could not be judged: by its author's fault (`fault` is 1), or for another reason (`None`).
    #[must_use]
    pub fn failed(head: &str, error: ErrorBody, fault: Option<f64>, formula: &RewardFormula) -> Self {
        let still = StateValues { diagnostics: Some(0.0), error: Some(0.0), ..unselected(formula.preset) };
        let reward =
            formula::step(formula.preset, &formula.weights, &still, &StateValues { error: fault, ..still }).r;
        let zero = reward.map(|_| Score::default());
        let parts =
            RewardParts { diag: zero, safety: zero, confidence: zero, tool_error: reward, integrity: zero };
        Self {
            schema: SCHEMA,
            preset: formula.preset,
            head: head.to_owned(),
            reward,
            scored: reward.is_some(),
            reason: Some(format!("{}: {}", error.symbol.as_str(), error.message)),
            error: Some(error),
            warnings: Vec::new(),
            reward_components: parts,
            parts,
            steps: vec![EpisodeStep { t: 1, r: reward, ..EpisodeStep::default() }],
            gone: None,
            integrity_flags: Vec::new(),
            integrity: Integrity::default(),
            visible: false,
            outstanding: Vec::new(),
            source: RewardSource::Lsp,
            sources: Vec::new(),
            files: 0,
            files_left_out: 0,
            weights: FormulaWeights::of(formula.preset, &formula.weights),
        }
    }
}

/// A state without a selector: the first paper's formula has nothing to punish then.
fn unselected(preset: Preset) -> StateValues {
    let confidence = if preset == Preset::Pr { 1.0 } else { 0.0 };
    StateValues { confidence, ..StateValues::default() }
}

/// The guarded count of diagnostics before the edit: how much there was to repair.
#[must_use]
pub fn weight_before(judged: &JudgedEdit) -> f64 {
    weight(&judged.before)
}
