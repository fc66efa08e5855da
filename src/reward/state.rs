//! The state of a bundle, and the reward of the step that leads to it.
//!
//! All inputs come from bundles, so a stored run gives the same rewards again, for any weights. Nothing is estimated: two
//! bundles are compared over the same files, and where one side is unknown the result is a reason instead of a number. An
//! unchanged state counts as known: a command that only reads the same content would have found the same diagnostics.

use std::collections::BTreeSet;

use super::formula::{self, StateValues};
use super::{environment_pin, fingerprint, saturation, scope_delta, visibility};
use crate::digest::{Digest, Score, canonical_digest};
use crate::model::analyzer::DiagnosticSource;
use crate::model::bundle::Bundle;
use crate::model::request::{Command, Request};
use crate::model::reward::{
    Components, EarlierDiagnostics, FileDiagnostics, FormulaWeights, Integrity, OutstandingDiagnostic,
    OutstandingReason, Preset, ProcessReward, RewardScope, RewardSource, RewardState, SourceCount,
    Supplement, Weights,
};
use crate::path::DocUri;

/// Diagnostics measured for a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeasuredDiagnostics {
    /// Before the bundle's own edit, over the same files; `None` when it edits nothing.
    pub before: Option<RewardScope>,
    /// Now, or after the bundle's edit.
    pub after: RewardScope,
    /// The integrity flags of the edit.
    pub integrity: Integrity,
}

/// A formula with its weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RewardFormula {
    /// The formula.
    pub preset: Preset,
    /// The weights.
    pub weights: Weights,
}

impl RewardFormula {
    /// A formula with its default weights.
    #[must_use]
    pub fn of(preset: Preset) -> Self {
        Self { preset, weights: formula::default_weights(preset) }
    }
}

impl Default for RewardFormula {
    fn default() -> Self {
        Self::of(Preset::default())
    }
}

/// The reward of a new bundle, as a step from its own state before the edit.
#[must_use]
pub fn of_bundle(bundle: &Bundle, measured: Option<MeasuredDiagnostics>) -> ProcessReward {
    let (scope, before, integrity) = match measured {
        Some(MeasuredDiagnostics { before, after, integrity }) => (Some(after), before, integrity),
        None => (None, None, Integrity::default()),
    };
    reward(bundle, RecordedScopes { scope, before, integrity }, None, None, &RewardFormula::default())
}

/// The reward of a stored bundle by any formula, as a step from `previous` or from its own state before the edit.
#[must_use]
pub fn recomputed(bundle: &Bundle, previous: Option<&Bundle>, formula: &RewardFormula) -> ProcessReward {
    // A supplement is valid only for the step that it was measured for.
    let stored = bundle.process_reward.as_ref();
    let mine =
        stored.filter(|stored| previous.is_some_and(|it| stored.previous_bundle_id == Some(it.bundle_id)));
    reward(
        bundle,
        recorded_scopes(bundle),
        previous,
        mine.and_then(|stored| stored.supplement.as_ref()),
        formula,
    )
}

/// Like [`recomputed`], with additional measurements for this step.
#[must_use]
pub fn supplemented(
    bundle: &Bundle,
    previous: &Bundle,
    supplement: &Supplement,
    formula: &RewardFormula,
) -> ProcessReward {
    reward(bundle, recorded_scopes(bundle), Some(previous), Some(supplement), formula)
}

/// Like [`recomputed`], where the files that only one of the two bundles covers could not be measured for the other one.
#[must_use]
pub fn unmeasured(bundle: &Bundle, previous: &Bundle, why: &str, formula: &RewardFormula) -> ProcessReward {
    let mut reward = recomputed(bundle, Some(previous), formula);
    if let Some(reason) = &mut reward.reason {
        *reason = format!("{reason}, {why}");
    }
    reward.digest = Some(reward_digest(bundle, &reward));
    reward
}

/// Files that only one of two bundles measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnmeasuredFiles {
    /// Files that the previous bundle did not measure.
    pub previous: BTreeSet<DocUri>,
    /// Files that this bundle did not measure.
    pub own: BTreeSet<DocUri>,
}

/// The files to measure so that a step gets a reward; `None` when that would not help or is not needed.
#[must_use]
pub fn unmeasured_files(
    bundle: &Bundle,
    previous: &Bundle,
    formula: &RewardFormula,
) -> Option<UnmeasuredFiles> {
    let (before, own) = (recorded_scopes(previous), recorded_scopes(bundle));
    let hopeless = error_of(bundle.meta.exit_code).is_none()
        || recomputed(bundle, Some(previous), formula).r.is_some()
        || formula.preset == Preset::Guarded
            && (unjudged_reason(previous, &before, bundle, &own).is_some()
                || own.integrity.config_changed > 0
                || environment_difference(previous, bundle).is_some());
    let files = |scope: &Option<RewardScope>| -> BTreeSet<DocUri> {
        let scope =
            scope.iter().flat_map(|scope| scope.files.iter().map(|file| &file.uri).chain(&scope.clean));
        scope.cloned().collect()
    };
    let (then, now) = (files(&before.scope), files(&own.scope));
    let missing = UnmeasuredFiles {
        previous: now.difference(&then).cloned().collect(),
        own: then.difference(&now).cloned().collect(),
    };
    (!hopeless && missing != UnmeasuredFiles::default()).then_some(missing)
}

/// The first difference between the environments of two bundles.
fn environment_difference(previous: &Bundle, bundle: &Bundle) -> Option<&'static str> {
    let environments = previous.environment.as_ref().zip(bundle.environment.as_ref());
    environments.and_then(|(a, b)| environment_pin::difference(a, b))
}

/// A scope with additional measurements.
fn extended(scope: Option<RewardScope>, more: &RewardScope) -> Option<RewardScope> {
    let mut all = scope.unwrap_or_default();
    all.files.extend(more.files.iter().cloned());
    all.clean.extend(more.clean.iter().cloned());
    Some(all)
}

/// The diagnostics that a bundle has recorded.
#[derive(Debug, Clone, Default)]
struct RecordedScopes {
    scope: Option<RewardScope>,
    before: Option<RewardScope>,
    integrity: Integrity,
}

/// The diagnostics that the reward of a stored bundle was computed from; `None` if it was computed from none.
#[must_use]
pub fn measured_for(bundle: &Bundle) -> Option<MeasuredDiagnostics> {
    let RecordedScopes { scope, before, integrity } = recorded_scopes(bundle);
    scope.map(|after| MeasuredDiagnostics { before, after, integrity })
}

fn recorded_scopes(bundle: &Bundle) -> RecordedScopes {
    bundle.process_reward.as_ref().map_or_else(RecordedScopes::default, |reward| {
        let scope = reward.state.scope.clone();
        let after = scope.clone().unwrap_or_default();
        let before = reward.before.as_ref().map(|before| scope_delta::restored(before, &after));
        RecordedScopes { scope, before, integrity: reward.integrity }
    })
}

/// 1 if the caller made an error, 0 if not, by the exit code; `None` when the fault is not the caller's, so that a busy
/// machine gives no training signal.
#[must_use]
pub const fn error_of(code: u8) -> Option<f64> {
    match code {
        0 | 1 => Some(0.0),
        2 | 3 | 4 | 70 | 71 | 72 | 75 | 77 | 78 => Some(1.0),
        _ => None,
    }
}

/// Whether a bundle failed for a reason outside its caller's control.
#[must_use]
pub const fn is_fault(bundle: &Bundle) -> bool {
    error_of(bundle.meta.exit_code).is_none()
}

/// Whether a step is about an edit. A question about something else leaves the readiness of an edit as it was.
fn concerns_safety(bundle: &Bundle) -> bool {
    let plans = |request: &Request| match request.cmd {
        Command::Rename | Command::Apply | Command::Check => true,
        Command::Actions => request.options.run.is_some(),
        _ => false,
    };
    bundle.edits.as_ref().is_some_and(|edits| !edits.safety.is_empty())
        || bundle.request.as_ref().is_some_and(plans)
}

/// Whether a step resolves a selector.
fn concerns_confidence(bundle: &Bundle) -> bool {
    bundle.request.as_ref().is_some_and(|request| request.selector.is_some())
}

/// S and A of the state that a bundle leads to: its own, or else those of the state that it started from.
fn readiness(bundle: &Bundle, started: (f64, f64)) -> (f64, f64) {
    let own = |concerned: bool, own: fn(&Bundle) -> f64, before: f64| {
        if concerned { rounded(own(bundle)).get() } else { before }
    };
    (own(concerns_safety(bundle), safety, started.0), own(concerns_confidence(bundle), confidence, started.1))
}

/// S and A as a stored bundle has recorded them, where they are not its own.
fn recorded_readiness(bundle: &Bundle) -> (f64, f64) {
    let state = bundle.process_reward.as_ref().map(|reward| &reward.state);
    readiness(bundle, state.map_or((0.0, 0.0), |state| (state.safety.get(), state.confidence.get())))
}

/// The share of safety checks that passed; 0 without an edit.
fn safety(bundle: &Bundle) -> f64 {
    let checks = bundle.edits.as_ref().map_or(&[][..], |edits| &edits.safety);
    let passed = u32::try_from(checks.iter().filter(|check| check.passed).count()).unwrap_or(u32::MAX);
    let all = u32::try_from(checks.len()).unwrap_or(u32::MAX);
    if all == 0 { 0.0 } else { f64::from(passed) / f64::from(all) }
}

/// The confidence of the selector's best target; 0 without one.
fn confidence(bundle: &Bundle) -> f64 {
    let Some(resolution) = &bundle.resolution else { return 0.0 };
    let best = resolution.resolved.as_ref().map(|resolved| resolved.confidence);
    best.or_else(|| resolution.disambiguation.first().map(|candidate| candidate.score))
        .map_or(0.0, Score::get)
}

/// The number of diagnostics of a scope, as a formula counts them. Hints (code grayed out in editors) are not counted.
#[must_use]
pub fn count(scope: &RewardScope, preset: Preset) -> f64 {
    match preset {
        Preset::Guarded => saturation::weight(scope),
        Preset::RlCsf | Preset::Pr => {
            let one =
                |counts: &crate::model::facts::Counts| counts.error + counts.warning + counts.information;
            f64::from(scope.files.iter().map(|file| one(&file.counts)).sum::<u32>())
        }
    }
}

/// Where the diagnostics of a bundle come from.
fn source_of(bundle: &Bundle) -> RewardSource {
    RewardSource::of(bundle.request.as_ref().map_or(&[][..], |request| &request.options.with))
}

/// The weight of each source in the number of diagnostics: an error is an error, whatever reports it.
pub(super) const SOURCE_WEIGHT: Score = Score::ONE;

/// The part of each source in the number of diagnostics; nothing when the language server is the only source.
fn source_counts(bundle: &Bundle, scope: Option<&RewardScope>, preset: Preset) -> Vec<SourceCount> {
    let with = bundle.request.as_ref().map_or(&[][..], |request| &request.options.with);
    let Some(scope) = scope.filter(|_| !with.is_empty()) else { return Vec::new() };
    let sources = std::iter::once(DiagnosticSource::Lsp).chain(with.iter().map(|kind| (*kind).into()));
    let counts = sources.map(|source| SourceCount {
        source,
        weight: SOURCE_WEIGHT,
        diagnostics: rounded(count_of(scope, source, preset)),
    });
    counts.collect()
}

/// The number of diagnostics of one source in a scope, as a formula counts them.
#[must_use]
pub fn count_of(scope: &RewardScope, source: DiagnosticSource, preset: Preset) -> f64 {
    let own = Some(source).filter(|source| *source != DiagnosticSource::Lsp);
    let files = scope.files.iter().map(|file| FileDiagnostics {
        fingerprints: file.fingerprints.iter().filter(|print| print.source == own).cloned().collect(),
        ..file.clone()
    });
    let mut part = RewardScope { files: files.collect(), ..RewardScope::default() };
    part.outstanding = scope.outstanding.iter().filter(|found| found.source == own).cloned().collect();
    match preset {
        Preset::Guarded => saturation::weight(&part),
        Preset::RlCsf | Preset::Pr => {
            let prints = part.files.iter().flat_map(|file| &file.fingerprints);
            f64::from(prints.map(|print| print.count).sum::<u32>())
        }
    }
}

/// Rounds like every number in a bundle, so that recomputing from a stored bundle gives the same result.
fn rounded(value: f64) -> Score {
    Score::new(value).unwrap_or_default()
}

fn reward(
    bundle: &Bundle,
    own: RecordedScopes,
    previous: Option<&Bundle>,
    supplement: Option<&Supplement>,
    formula: &RewardFormula,
) -> ProcessReward {
    let RewardFormula { preset, weights } = *formula;
    let error = error_of(bundle.meta.exit_code);
    let started = previous.map_or((0.0, 0.0), recorded_readiness);
    let (safe, sure) = readiness(bundle, started);
    let mut next = StateValues { diagnostics: None, safety: safe, confidence: sure, error };
    let mut then =
        StateValues { diagnostics: None, safety: started.0, confidence: started.1, error: Some(0.0) };
    if preset == Preset::Pr {
        // This formula pays for the step itself: nothing for checks that it does not make, nothing for ambiguity that it does
        // not have.
        next.safety = if concerns_safety(bundle) { safe } else { 0.0 };
        next.confidence = if concerns_confidence(bundle) { sure } else { 1.0 };
    }
    let before = previous.map(recorded_scopes);
    let pair = match (previous, &before) {
        (Some(previous), Some(before)) => match (unjudged_reason(previous, before, bundle, &own), supplement)
        {
            (Some(why), _) if preset == Preset::Guarded => Err(why.to_owned()),
            (_, None) => pair_of_scopes(previous, before, bundle, &own),
            (_, Some(more)) => {
                let then = RecordedScopes {
                    scope: extended(before.scope.clone(), &more.previous),
                    ..before.clone()
                };
                let now = RecordedScopes { scope: extended(own.scope.clone(), &more.own), ..own.clone() };
                pair_of_scopes(previous, &then, bundle, &now)
            }
        },
        _ => own_step(&own, weights.gamma == Score::ONE),
    };
    let mut notes = Vec::new();
    let mut reason = None;
    match &pair {
        Ok(pair) => {
            let (was, now) = (count(&pair.before, preset), count(&pair.after, preset));
            let change = if preset == Preset::Guarded { saturation::clipped(was - now) } else { was - now };
            if change != was - now {
                notes.push(format!(
                    "the change of {} is clipped to {}",
                    rounded(was - now).get(),
                    rounded(change).get()
                ));
            }
            then.diagnostics = Some(was);
            next.diagnostics = Some(was - change);
        }
        Err(why) => reason = Some(why.clone()),
    }
    let mut outcome = formula::step(preset, &weights, &then, &next);
    if preset == Preset::Guarded
        && bundle.edits.is_some()
        && let (Ok(pair), Components::Csf(parts)) = (&pair, &mut outcome.components)
    {
        parts.gone = Some(fingerprint::gone(&pair.before, &pair.after));
    }
    let guarded = previous.filter(|_| preset == Preset::Guarded);
    let skewed = guarded.and_then(|previous| environment_difference(previous, bundle));
    let changes_rules = preset == Preset::Guarded && own.integrity.config_changed > 0;
    let mut r = outcome.r;
    if r.is_some() {
        reason = None;
    }
    if error.is_none() {
        reason = Some(format!("exit code {} is not the caller's fault", bundle.meta.exit_code));
    }
    if let Some(what) = skewed {
        (r, reason) =
            (None, Some(format!("E/VERSION_SKEW: {what} differs from that of the previous bundle")));
    } else if changes_rules {
        (r, reason) = (None, Some("E/VERSION_SKEW: the edit changes the server's configuration".to_owned()));
    }
    if preset == Preset::Guarded && own.integrity.is_hard() && r.is_some_and(|r| r.get() > 0.0) {
        notes
            .push(format!("the reward of {} is capped to 0 by integrity flags", r.unwrap_or_default().get()));
        r = Some(Score::default());
    }
    // The safety of a planned edit pays only if the edit repairs something.
    let repairs = outcome.components.diag_delta().is_none_or(|change| change.get() > 0.0);
    if preset == Preset::Guarded && bundle.edits.is_some() && !repairs && r.is_some_and(|r| r.get() > 0.0) {
        notes.push(format!(
            "the reward of {} is capped to 0 because the edit repairs no diagnostic",
            r.unwrap_or_default().get()
        ));
        r = Some(Score::default());
    }
    let visible = pair.as_ref().is_ok_and(|pair| {
        let compared = fingerprint::compare(&pair.before, &pair.after);
        visibility::is_visible(&pair.before, &pair.after, &compared)
    });
    if preset == Preset::Guarded && pair.is_ok() && !visible {
        notes.push("the checker had nothing to see here".to_owned());
    }
    notes.insert(0, spelled_out(preset, &weights, &then, &next));
    let after = own.scope.clone().unwrap_or_default();
    let scope_count = own.scope.as_ref().map(|scope| rounded(count(scope, preset)));
    let mut made = ProcessReward {
        version: preset,
        previous_bundle_id: previous.map(|previous| previous.bundle_id),
        r,
        reason: reason.filter(|_| r.is_none()),
        components: outcome.components,
        state: RewardState {
            diagnostics: scope_count,
            safety: rounded(safe),
            confidence: rounded(sure),
            error: error.map(rounded),
            sources: source_counts(bundle, own.scope.as_ref(), preset),
            scope: own.scope,
        },
        before: own.before.as_ref().map(|before| scope_delta::delta(before, &after)),
        supplement: supplement.cloned(),
        visible,
        weights: FormulaWeights::of(preset, &weights),
        source: source_of(bundle),
        integrity: own.integrity,
        explanation: notes.join("; "),
        digest: None,
    };
    made.digest = Some(reward_digest(bundle, &made));
    made
}

/// The digest of a reward and the bundle that it belongs to.
fn reward_digest(bundle: &Bundle, reward: &ProcessReward) -> Digest {
    let blank = ProcessReward { digest: None, ..reward.clone() };
    digest_of(&(bundle.bundle_id, blank))
}

/// The digest of the diagnostics that a reward is computed from, for `meta.measured`.
#[must_use]
pub fn measured_digest(measured: &MeasuredDiagnostics) -> Digest {
    let MeasuredDiagnostics { before, after, integrity } = measured;
    let before = before.as_ref().map(|before| scope_delta::delta(before, after));
    recorded_digest(Some(after), before.as_ref(), *integrity)
}

fn recorded_digest(
    scope: Option<&RewardScope>,
    before: Option<&EarlierDiagnostics>,
    integrity: Integrity,
) -> Digest {
    digest_of(&(scope, before, integrity))
}

fn digest_of(value: &impl serde::Serialize) -> Digest {
    canonical_digest(value).expect("a reward is made of texts, small integers and finite numbers")
}

/// Checks that the reward of a stored bundle is the one that lanser computed: that its diagnostics are those in the hash of the
/// bundle, and that nothing else in it was changed.
///
/// # Errors
/// What does not match.
pub fn verify(bundle: &Bundle) -> Result<(), &'static str> {
    let Some(reward) = &bundle.process_reward else { return Ok(()) };
    let is_measured = reward.state.scope.is_some() || bundle.meta.measured.is_some();
    let measured = recorded_digest(reward.state.scope.as_ref(), reward.before.as_ref(), reward.integrity);
    if is_measured && bundle.meta.measured != Some(measured) {
        return Err("its diagnostics in processReward are not those that meta.measured is the digest of");
    }
    if reward.digest != Some(reward_digest(bundle, reward)) {
        return Err("its processReward does not match its digest");
    }
    Ok(())
}

/// Renews `meta.measured` of a bundle that a test has changed.
#[cfg(test)]
pub fn renew_measured(bundle: &mut Bundle) {
    let Some(reward) = &bundle.process_reward else { return };
    let scope = reward.state.scope.as_ref();
    bundle.meta.measured = scope.map(|_| recorded_digest(scope, reward.before.as_ref(), reward.integrity));
}

/// Renews the digest of the reward of a bundle that a test has changed.
#[cfg(test)]
pub fn renew_digest(bundle: &mut Bundle) {
    let Some(mut reward) = bundle.process_reward.take() else { return };
    reward.digest = Some(reward_digest(bundle, &reward));
    bundle.process_reward = Some(reward);
}

/// Two scopes over the same files.
struct ScopePair {
    before: RewardScope,
    after: RewardScope,
}

/// The scopes of a bundle on its own: an edit starts from the state before it; a read-only command changes nothing.
fn own_step(own: &RecordedScopes, undiscounted: bool) -> Result<ScopePair, String> {
    match (&own.before, &own.scope) {
        (Some(before), Some(after)) => Ok(ScopePair { before: before.clone(), after: after.clone() }),
        (None, Some(scope)) => Ok(ScopePair { before: scope.clone(), after: scope.clone() }),
        // The difference is 0 whatever the diagnostics are.
        (_, None) if undiscounted => {
            Ok(ScopePair { before: RewardScope::default(), after: RewardScope::default() })
        }
        (_, None) => Err("no diagnostics were measured".to_owned()),
    }
}

/// Why the change of the code between two bundles was not judged; `None` when it was. Bundles contain no code, so only
/// lanser's own edits are judged, and outstanding diagnostics of an edit are recorded only in its own bundle.
fn unjudged_reason(
    previous: &Bundle,
    before: &RecordedScopes,
    bundle: &Bundle,
    own: &RecordedScopes,
) -> Option<&'static str> {
    let (then, now) = (previous.environment.as_ref()?, bundle.environment.as_ref()?);
    if then.workspace == now.workspace {
        return None;
    }
    let was_written = previous.edits.as_ref().is_some_and(|edits| edits.transaction.is_some());
    if !was_written || own.before.is_none() {
        return Some(
            "the code changed between the bundles and the change was not judged; use `lanser score`",
        );
    }
    let is_unpaid = |one: &OutstandingDiagnostic| one.why != OutstandingReason::Replaced;
    let has_unpaid = before.scope.as_ref().is_some_and(|scope| scope.outstanding.iter().any(is_unpaid));
    (has_unpaid || before.integrity.is_hard())
        .then_some("the previous edit left diagnostics outstanding, which this bundle does not record; use `lanser score`")
}

/// The diagnostics of two bundles over the same files.
fn pair_of_scopes(
    previous: &Bundle,
    before: &RecordedScopes,
    bundle: &Bundle,
    own: &RecordedScopes,
) -> Result<ScopePair, String> {
    // What was replaced is paid by a share once; the next step starts without it.
    let pair = |before: &RewardScope, after: &RewardScope| {
        let mut before = before.clone();
        before.outstanding.retain(|one| one.why != OutstandingReason::Replaced);
        ScopePair { before, after: after.clone() }
    };
    if let (Some(then), Some(now)) = (&before.scope, &own.scope)
        && measured_files(then) == measured_files(now)
    {
        return Ok(pair(then, now));
    }
    // The workspace content is the same for both, or the later request was refused before anything was read.
    let same = match (&previous.environment, &bundle.environment) {
        (Some(then), Some(now)) => {
            then.workspace == now.workspace
                && then.config_digest == now.config_digest
                && previous.edits.as_ref().is_none_or(|edits| edits.transaction.is_none())
        }
        (_, None) => {
            bundle.error.is_some() && previous.edits.as_ref().is_none_or(|edits| edits.transaction.is_none())
        }
        (None, Some(_)) => false,
    };
    if same {
        match (before, own) {
            // The previous command only read, so what this one found before its edit was already true then.
            (
                RecordedScopes { before: None, .. },
                RecordedScopes { before: Some(start), scope: Some(now), .. },
            ) => {
                return Ok(pair(start, now));
            }
            // Neither edits: the same content has the same diagnostics.
            (RecordedScopes { before: None, .. }, RecordedScopes { before: None, .. }) => {
                let scope = before.scope.as_ref().or(own.scope.as_ref()).cloned().unwrap_or_default();
                return Ok(pair(&scope, &scope));
            }
            // The previous edit was only proposed, and this command reads the files on disk.
            (
                RecordedScopes { before: Some(disk), scope: Some(proposed), .. },
                RecordedScopes { before: None, .. },
            ) => {
                return Ok(pair(proposed, disk));
            }
            _ => {}
        }
    }
    let missing = |scope: Option<&RewardScope>, other: Option<&RewardScope>| {
        let known = scope.map(measured_files).unwrap_or_default();
        let wanted = other.map(measured_files).unwrap_or_default();
        wanted.difference(&known).next().cloned()
    };
    Err(match (&before.scope, &own.scope) {
        (None, _) => "the previous bundle measured no diagnostics".to_owned(),
        (_, None) => "this bundle measured no diagnostics".to_owned(),
        (then, now) => match missing(then.as_ref(), now.as_ref()) {
            Some(file) => format!("the previous bundle did not measure {file}"),
            None => {
                let file = missing(now.as_ref(), then.as_ref()).unwrap_or_default();
                format!("this bundle did not measure {file}")
            }
        },
    })
}

/// The files that a scope covers.
fn measured_files(scope: &RewardScope) -> BTreeSet<String> {
    let found = scope.files.iter().map(|file| &file.uri).chain(&scope.clean);
    found.map(ToString::to_string).collect()
}

/// The formula with its numbers filled in.
fn spelled_out(preset: Preset, weights: &Weights, then: &StateValues, next: &StateValues) -> String {
    let number = |value: f64| rounded(value).get().to_string();
    let known = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), number);
    let [diag, safe, sure, error, gamma] =
        [weights.diagnostics, weights.safety, weights.confidence, weights.error, weights.gamma]
            .map(|w| number(w.get()));
    let (d0, d1) = (known(then.diagnostics), known(next.diagnostics));
    let (s0, s1) = (number(then.safety), number(next.safety));
    let (a0, a1, e1) = (number(then.confidence), number(next.confidence), known(next.error));
    if preset == Preset::Pr {
        return format!(
            "{diag}·({d0} − {d1}) + {safe}·{} − {sure}·(1 − {a1})",
            if next.safety >= 1.0 { 1 } else { 0 }
        );
    }
    if weights.gamma == Score::ONE {
        format!("{diag}·({d0} − {d1}) + {safe}·({s1} − {s0}) + {sure}·({a1} − {a0}) − {error}·{e1}")
    } else {
        format!(
            "{gamma}·(−{diag}·{d1} + {safe}·{s1} + {sure}·{a1}) − (−{diag}·{d0} + {safe}·{s0} + {sure}·{a0}) − {error}·{e1}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(text: &str) -> Bundle {
        serde_json::from_str(text).unwrap()
    }

    /// A bundle with only these diagnostics.
    fn with(files: &[(&str, u32)], before: Option<&[(&str, u32)]>, exit: u8) -> Bundle {
        let mut made = bundle(include_str!("../../fixtures/schemas/valid/bundle-full.json"));
        made.resolution = None;
        made.error = None;
        made.meta.exit_code = exit;
        let scope = |files: &[(&str, u32)]| RewardScope {
            files: files
                .iter()
                .map(|(uri, errors)| FileDiagnostics {
                    uri: DocUri::parse(uri).unwrap(),
                    counts: crate::model::facts::Counts { error: *errors, ..Default::default() },
                    fingerprints: Vec::new(),
                })
                .collect(),
            ..RewardScope::default()
        };
        let measured = MeasuredDiagnostics {
            before: before.map(scope),
            after: scope(files),
            integrity: Integrity::default(),
        };
        made.process_reward = Some(of_bundle(&made, Some(measured)));
        made
    }

    fn other_content(mut made: Bundle) -> Bundle {
        if let Some(environment) = &mut made.environment {
            environment.workspace.digest = Digest::of(b"another");
        }
        made
    }

    #[test]
    fn a_step_needs_the_same_files_on_both_sides() {
        let r =
            |previous: &Bundle, next: &Bundle| recomputed(next, Some(previous), &RewardFormula::default());
        let first = with(&[("a.py", 5), ("b.py", 2)], None, 0);
        let second = other_content(with(&[("a.py", 2), ("b.py", 2)], None, 0));
        assert_eq!(r(&first, &second).r, Score::new(1.5));
        assert_eq!(r(&first, &second).previous_bundle_id, Some(first.bundle_id));
        let narrower = other_content(with(&[("a.py", 2)], None, 0));
        let reward = r(&first, &narrower);
        assert_eq!((reward.r, reward.components.diag_delta()), (None, None));
        assert_eq!(reward.reason.as_deref(), Some("this bundle did not measure b.py"));
        let without = RewardFormula {
            weights: Weights { diagnostics: Score::default(), ..RewardFormula::default().weights },
            ..RewardFormula::default()
        };
        assert_eq!(recomputed(&narrower, Some(&first), &without).r, Score::new(0.0));
    }

    #[test]
    fn an_edit_starts_from_the_state_before_it() {
        let edit = with(&[("a.py", 1)], Some(&[("a.py", 3)]), 0);
        assert_eq!(edit.process_reward.as_ref().unwrap().r, Score::new(1.0));
        // The previous bundle has the same content, so it would have found the same, whatever files it measured.
        let read = with(&[("b.py", 9)], None, 0);
        assert_eq!(recomputed(&edit, Some(&read), &RewardFormula::default()).r, Score::new(1.0));
    }

    #[test]
    fn a_proposed_edit_is_undone_by_reading_other_files() {
        let edit = with(&[("a.py", 1)], Some(&[("a.py", 3)]), 0);
        let read = with(&[("b.py", 9)], None, 0);
        assert_eq!(recomputed(&read, Some(&edit), &RewardFormula::default()).r, Score::new(-1.0));
        assert_eq!(recomputed(&other_content(read), Some(&edit), &RewardFormula::default()).r, None);
    }

    /// A bundle of a command without diagnostics.
    fn asked(cmd: Command, confidence: Option<f64>, checks: &[bool]) -> Bundle {
        let mut made = bundle(include_str!("../../fixtures/schemas/valid/bundle-rename.json"));
        let (mut resolution, mut edits) = (made.resolution.take(), made.edits.take());
        let mut request = Request::new(cmd, None, None, crate::model::request::Options::default());
        if let (Some(confidence), Some(resolution)) = (confidence, &mut resolution) {
            request.selector =
                Some(crate::selector::parse("py://m#f", crate::text::ColumnUnit::default()).unwrap());
            resolution.resolved.as_mut().unwrap().confidence = rounded(confidence);
            made.resolution = Some(resolution.clone());
        }
        if let Some(edits) = edits.as_mut().filter(|_| !checks.is_empty()) {
            let check = edits.safety[0].clone();
            let check = |passed: &bool| crate::model::edits::Check { passed: *passed, ..check.clone() };
            edits.safety = checks.iter().map(check).collect();
            edits.transaction = None;
            made.edits = Some(edits.clone());
        }
        made.request = Some(request);
        made.error = None;
        made.meta.exit_code = 0;
        made.process_reward = Some(of_bundle(&made, None));
        made
    }

    /// The rewards of a run of bundles.
    fn rewards(run: &[Bundle], preset: Preset) -> Vec<f64> {
        let mut rewards = super::super::run::RewardRun::new(RewardFormula::of(preset));
        run.iter().map(|bundle| rewards.next(bundle.clone()).r.unwrap().get()).collect()
    }

    #[test]
    fn another_question_leaves_readiness_and_confidence_as_they_were() {
        let rename = asked(Command::Rename, Some(1.0), &[true, true]);
        let diagnostics = asked(Command::Diagnostics, None, &[]);
        let definition = asked(Command::Definition, Some(1.0), &[]);
        let unsure = asked(Command::Definition, Some(0.6), &[]);
        let refused = asked(Command::Rename, Some(1.0), &[true, false]);
        let run =
            [rename.clone(), diagnostics.clone(), definition, rename.clone(), unsure, diagnostics, refused];
        assert_eq!(rewards(&run, Preset::RlCsf), [0.5, 0.0, 0.0, 0.0, -0.04, 0.0, -0.16]);
        // The first paper's formula pays for each step by itself, and a step without a selector has no ambiguity.
        assert_eq!(rewards(&run, Preset::Pr), [0.4, 0.0, 0.0, 0.4, -0.04, 0.0, 0.0]);
    }

    #[test]
    fn a_stored_bundle_keeps_what_it_did_not_change() {
        let rename = asked(Command::Rename, Some(1.0), &[true]);
        let mut diagnostics = asked(Command::Diagnostics, None, &[]);
        let formula = RewardFormula::default();
        diagnostics.process_reward = Some(recomputed(&diagnostics, Some(&rename), &formula));
        let state = &diagnostics.process_reward.as_ref().unwrap().state;
        assert_eq!((state.safety, state.confidence), (Score::ONE, Score::ONE));
        assert_eq!(recomputed(&rename, Some(&diagnostics), &formula).r, Score::new(0.0));
    }

    #[test]
    fn an_edited_state_is_noticed() {
        let mut made = with(&[("a.py", 5)], Some(&[("a.py", 7)]), 0);
        made.meta.measured = measured_for(&made).as_ref().map(measured_digest);
        assert_eq!(verify(&made), Ok(()));
        let scope = |bundle: &mut Bundle, errors: u32| {
            let reward = bundle.process_reward.as_mut().unwrap();
            reward.state.scope.as_mut().unwrap().files[0].counts.error = errors;
            reward.digest = None;
        };
        let mut edited = made.clone();
        scope(&mut edited, 2);
        // A caller that renews the digest of the reward still cannot change what the bundle's own hash covers.
        renew_digest(&mut edited);
        assert!(verify(&edited).unwrap_err().contains("meta.measured"));
        let mut edited = made.clone();
        edited.process_reward.as_mut().unwrap().state.safety = Score::ONE;
        edited.process_reward.as_mut().unwrap().r = Score::new(9.0);
        assert!(verify(&edited).unwrap_err().contains("digest"));
        made.process_reward = None;
        assert_eq!(verify(&made), Ok(()));
    }

    #[test]
    fn only_errors_of_the_caller_count() {
        for (exit, r) in [
            (0, Some(0.0)),
            (1, Some(0.0)),
            (3, Some(-0.5)),
            (77, Some(-0.5)),
            (64, None),
            (74, None),
            (10, None),
        ] {
            let reward = with(&[("a.py", 1)], None, exit).process_reward.unwrap();
            assert_eq!(reward.r.map(Score::get), r, "{exit}");
            assert_eq!(reward.reason.is_some(), r.is_none());
        }
    }

    #[test]
    fn a_changed_configuration_gives_no_guarded_reward() {
        let first = with(&[("a.py", 5)], None, 0);
        let mut second = other_content(with(&[("a.py", 0)], None, 0));
        second.environment.as_mut().unwrap().config_digest = Digest::of(b"off");
        let reward = recomputed(&second, Some(&first), &RewardFormula::of(Preset::Guarded));
        assert_eq!(reward.r, None);
        assert!(reward.reason.unwrap().contains("VERSION_SKEW"));
        assert!(recomputed(&second, Some(&first), &RewardFormula::default()).r.is_some());
    }
}
