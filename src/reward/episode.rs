//! An episode's score in the shape that trainers read: a scalar, a dict of components, the components again as top-level numbers,
//! and the steps.

use serde::Serialize;

use super::formula::{self, Numbers};
use super::judge::Judged;
use super::saturation::{clipped, weight};
use super::state::{Terms, count};
use super::visibility;
use crate::digest::Score;
use crate::model::error::ErrorBody;
use crate::model::reward::{Integrity, Owed, Preset, Weights};

/// The score of one head against one base.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Episode {
    /// The form of this object.
    pub schema: &'static str,
    /// The formula.
    pub preset: Preset,
    /// The head as it was named.
    pub head: String,
    /// The reward; `null` where nothing honest can be said.
    pub reward: Option<Score>,
    /// Whether there is one.
    pub scored: bool,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What went wrong where the head could not be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// What makes the score doubtful, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What the reward is the sum of.
    pub reward_components: Parts,
    /// The parts again, for those who do not look into dicts.
    #[serde(flatten)]
    pub parts: Parts,
    /// The steps: one, from the base to the head.
    pub steps: Vec<EpisodeStep>,
    /// What the edit does besides.
    pub integrity_flags: Vec<&'static str>,
    /// How often each.
    pub integrity: Integrity,
    /// Whether the checker had anything to see.
    pub visible: bool,
    /// Diagnostics that went without being repaired.
    #[serde(rename = "outstanding", skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<Owed>,
    /// How many files were compared.
    pub files: usize,
    /// How many more could have been affected.
    pub files_left_out: usize,
    /// The weights.
    pub weights: Weights,
}

/// What a reward is the sum of, weighted. `null` where it cannot be said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Parts {
    /// Diagnostics.
    pub diag: Option<Score>,
    /// Safety: nothing is prepared here.
    pub safety: Option<Score>,
    /// Confidence: no selector is resolved here.
    pub confidence: Option<Score>,
    /// An error of the caller's.
    pub tool_error: Option<Score>,
    /// What integrity flags took away.
    pub integrity: Option<Score>,
}

/// A step of an episode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct EpisodeStep {
    /// Its number.
    pub t: u32,
    /// The reward.
    pub r: Option<Score>,
    /// The diagnostics before, as the formula counts them.
    pub prev: Option<Score>,
    /// The diagnostics after.
    pub cur: Option<Score>,
    /// How many came.
    pub new: u32,
    /// How many went, owed ones among them.
    pub fixed: u32,
    /// Whether the checker had anything to see.
    pub visible: bool,
}

/// The form of an episode.
pub const SCHEMA: &str = "lanser.episode.v1";

impl Episode {
    /// The score of a head that was judged.
    #[must_use]
    pub fn of(head: &str, judged: &Judged, left_out: usize, terms: &Terms) -> Self {
        let Terms { preset, weights } = *terms;
        let guarded = preset == Preset::Guarded;
        let (was, now) = (count(&judged.before, preset), count(&judged.after, preset));
        let change = if guarded { clipped(was - now) } else { was - now };
        let state = |diagnostics: f64| Numbers {
            diagnostics: Some(diagnostics),
            error: Some(0.0),
            ..Numbers::default()
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
        let parts = Parts {
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
            integrity_flags: judged.integrity.flags().into_iter().map(|(name, _)| name).collect(),
            integrity: judged.integrity,
            visible,
            owed: judged.after.owed.clone(),
            files: judged.after.files.len() + judged.after.clean.len(),
            files_left_out: left_out,
            weights,
        }
    }

    /// A head that could not be judged: by the fault of who made it (`fault` is 1), or by another one (`None`).
    #[must_use]
    pub fn failed(head: &str, error: ErrorBody, fault: Option<f64>, terms: &Terms) -> Self {
        let still = Numbers { diagnostics: Some(0.0), error: Some(0.0), ..Numbers::default() };
        let reward =
            formula::step(terms.preset, &terms.weights, &still, &Numbers { error: fault, ..still }).r;
        let zero = reward.map(|_| Score::default());
        let parts = Parts { diag: zero, safety: zero, confidence: zero, tool_error: reward, integrity: zero };
        Self {
            schema: SCHEMA,
            preset: terms.preset,
            head: head.to_owned(),
            reward,
            scored: reward.is_some(),
            reason: Some(format!("{}: {}", error.symbol.as_str(), error.message)),
            error: Some(error),
            warnings: Vec::new(),
            reward_components: parts,
            parts,
            steps: vec![EpisodeStep { t: 1, r: reward, ..EpisodeStep::default() }],
            integrity_flags: Vec::new(),
            integrity: Integrity::default(),
            visible: false,
            owed: Vec::new(),
            files: 0,
            files_left_out: 0,
            weights: terms.weights,
        }
    }
}

/// The guarded weight of what was there before; for those who want to know how much there was to see.
#[must_use]
pub fn debt_before(judged: &Judged) -> f64 {
    weight(&judged.before)
}
