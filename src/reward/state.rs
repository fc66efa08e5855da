//! The state of a bundle, and the reward of the step that leads to it.
//!
//! Everything comes out of bundles, so a stored run gives the same rewards again, for any weights. Nothing is guessed: two
//! bundles are compared over the same files, and where one side is not known there is no number but a reason. Known is also
//! what did not change: a command that only looked at the same content found the same diagnostics.

use std::collections::BTreeSet;

use super::formula::{self, Numbers};
use super::{earlier, environment_pin, fingerprint, saturation, visibility};
use crate::digest::Score;
use crate::model::bundle::Bundle;
use crate::model::reward::{
    Integrity, Preset, ProcessReward, RewardScope, RewardSource, RewardState, Supplement, Weights,
};
use crate::path::DocUri;

/// Diagnostics that were measured for a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Measured {
    /// Before its own edit, over the same files; `None` where it edits nothing.
    pub before: Option<RewardScope>,
    /// Now, or after its edit.
    pub after: RewardScope,
    /// What the edit does besides.
    pub integrity: Integrity,
}

/// By which formula, with which weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// The formula.
    pub preset: Preset,
    /// The weights.
    pub weights: Weights,
}

impl Terms {
    /// A formula with the weights that it has by itself.
    #[must_use]
    pub fn of(preset: Preset) -> Self {
        Self { preset, weights: formula::default_weights(preset) }
    }
}

impl Default for Terms {
    fn default() -> Self {
        Self::of(Preset::default())
    }
}

/// The reward of a bundle that was just made, as a step of its own.
#[must_use]
pub fn of_bundle(bundle: &Bundle, measured: Option<Measured>) -> ProcessReward {
    let (scope, before, integrity) = match measured {
        Some(Measured { before, after, integrity }) => (Some(after), before, integrity),
        None => (None, None, Integrity::default()),
    };
    reward(bundle, Recorded { scope, before, integrity }, None, None, &Terms::default())
}

/// The reward of a stored bundle as a step from another, or on its own, by any formula.
#[must_use]
pub fn recomputed(bundle: &Bundle, previous: Option<&Bundle>, terms: &Terms) -> ProcessReward {
    // What was measured for another step says nothing of this one.
    let told = bundle.process_reward.as_ref();
    let mine = told.filter(|told| previous.is_some_and(|it| told.previous_bundle_id == Some(it.bundle_id)));
    reward(bundle, recorded(bundle), previous, mine.and_then(|told| told.supplement.as_ref()), terms)
}

/// The same with what was measured besides for this step.
#[must_use]
pub fn supplemented(
    bundle: &Bundle,
    previous: &Bundle,
    supplement: &Supplement,
    terms: &Terms,
) -> ProcessReward {
    reward(bundle, recorded(bundle), Some(previous), Some(supplement), terms)
}

/// Files that only one of two bundles looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unmeasured {
    /// Those that the previous one did not look at.
    pub previous: BTreeSet<DocUri>,
    /// Those that this one did not look at.
    pub own: BTreeSet<DocUri>,
}

/// What would have to be measured so that a step has a reward; `None` when that would not help, or is not needed.
#[must_use]
pub fn unmeasured(bundle: &Bundle, previous: &Bundle, terms: &Terms) -> Option<Unmeasured> {
    let (before, own) = (recorded(previous), recorded(bundle));
    let hopeless = error_of(bundle.meta.exit_code).is_none()
        || recomputed(bundle, Some(previous), terms).r.is_some()
        || terms.preset == Preset::Guarded
            && (unjudged(previous, &before, bundle, &own).is_some()
                || own.integrity.config_changed > 0
                || skew(previous, bundle).is_some());
    let files = |scope: &Option<RewardScope>| -> BTreeSet<DocUri> {
        let scope =
            scope.iter().flat_map(|scope| scope.files.iter().map(|file| &file.uri).chain(&scope.clean));
        scope.cloned().collect()
    };
    let (then, now) = (files(&before.scope), files(&own.scope));
    let missing = Unmeasured {
        previous: now.difference(&then).cloned().collect(),
        own: then.difference(&now).cloned().collect(),
    };
    (!hopeless && missing != Unmeasured::default()).then_some(missing)
}

/// What differs between the environments of two bundles.
fn skew(previous: &Bundle, bundle: &Bundle) -> Option<&'static str> {
    let environments = previous.environment.as_ref().zip(bundle.environment.as_ref());
    environments.and_then(|(a, b)| environment_pin::difference(a, b))
}

/// A scope with what was measured besides.
fn with(scope: Option<RewardScope>, more: &RewardScope) -> Option<RewardScope> {
    let mut all = scope.unwrap_or_default();
    all.files.extend(more.files.iter().cloned());
    all.clean.extend(more.clean.iter().cloned());
    Some(all)
}

/// What a bundle has recorded of diagnostics.
#[derive(Debug, Clone, Default)]
struct Recorded {
    scope: Option<RewardScope>,
    before: Option<RewardScope>,
    integrity: Integrity,
}

fn recorded(bundle: &Bundle) -> Recorded {
    bundle.process_reward.as_ref().map_or_else(Recorded::default, |reward| {
        let scope = reward.state.scope.clone();
        let after = scope.clone().unwrap_or_default();
        let before = reward.before.as_ref().map(|before| earlier::whole(before, &after));
        Recorded { scope, before, integrity: reward.integrity }
    })
}

/// Whether the caller made an error, by the exit code; `None` when the fault is not the caller's: a busy machine must not teach
/// anything.
#[must_use]
pub const fn error_of(code: u8) -> Option<f64> {
    match code {
        0 | 1 => Some(0.0),
        2 | 3 | 4 | 70 | 71 | 72 | 75 | 77 | 78 => Some(1.0),
        _ => None,
    }
}

/// Whether a bundle tells of a fault that is not its caller's.
#[must_use]
pub const fn is_fault(bundle: &Bundle) -> bool {
    error_of(bundle.meta.exit_code).is_none()
}

/// The share of the safety checks that passed; 0 where nothing is prepared.
fn safety(bundle: &Bundle) -> f64 {
    let checks = bundle.edits.as_ref().map_or(&[][..], |edits| &edits.safety);
    let passed = u32::try_from(checks.iter().filter(|check| check.passed).count()).unwrap_or(u32::MAX);
    let all = u32::try_from(checks.len()).unwrap_or(u32::MAX);
    if all == 0 { 0.0 } else { f64::from(passed) / f64::from(all) }
}

/// The confidence of the selector's best place; 0 where there is none.
fn confidence(bundle: &Bundle) -> f64 {
    let Some(resolution) = &bundle.resolution else { return 0.0 };
    let best = resolution.resolved.as_ref().map(|resolved| resolved.confidence);
    best.or_else(|| resolution.disambiguation.first().map(|candidate| candidate.score))
        .map_or(0.0, Score::get)
}

/// How many diagnostics a scope holds, as a formula counts them. What is greyed out is no complaint.
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

/// Rounds as everything that is told is rounded, so that what is computed again from what was told is the same.
fn told(value: f64) -> Score {
    Score::new(value).unwrap_or_default()
}

fn reward(
    bundle: &Bundle,
    own: Recorded,
    previous: Option<&Bundle>,
    supplement: Option<&Supplement>,
    terms: &Terms,
) -> ProcessReward {
    let Terms { preset, weights } = *terms;
    let error = error_of(bundle.meta.exit_code);
    let (safe, sure) = (told(safety(bundle)).get(), told(confidence(bundle)).get());
    let mut next = Numbers { diagnostics: None, safety: safe, confidence: sure, error };
    let mut then = Numbers { diagnostics: None, safety: 0.0, confidence: 0.0, error: Some(0.0) };
    if let Some(previous) = previous {
        then.safety = told(safety(previous)).get();
        then.confidence = told(confidence(previous)).get();
    }
    let before = previous.map(recorded);
    let pair = match (previous, &before) {
        (Some(previous), Some(before)) => match (unjudged(previous, before, bundle, &own), supplement) {
            (Some(why), _) if preset == Preset::Guarded => Err(why.to_owned()),
            (_, None) => between(previous, before, bundle, &own),
            (_, Some(more)) => {
                let then = Recorded { scope: with(before.scope.clone(), &more.previous), ..before.clone() };
                let now = Recorded { scope: with(own.scope.clone(), &more.own), ..own.clone() };
                between(previous, &then, bundle, &now)
            }
        },
        _ => alone(&own, weights.gamma == Score::ONE),
    };
    let mut words = Vec::new();
    let mut reason = None;
    match &pair {
        Ok(pair) => {
            let (was, now) = (count(&pair.before, preset), count(&pair.after, preset));
            let change = if preset == Preset::Guarded { saturation::clipped(was - now) } else { was - now };
            if change != was - now {
                words.push(format!(
                    "the change of {} is clipped to {}",
                    told(was - now).get(),
                    told(change).get()
                ));
            }
            then.diagnostics = Some(was);
            next.diagnostics = Some(was - change);
        }
        Err(why) => reason = Some(why.clone()),
    }
    let guarded = previous.filter(|_| preset == Preset::Guarded);
    let skewed = guarded.and_then(|previous| skew(previous, bundle));
    let changes_rules = preset == Preset::Guarded && own.integrity.config_changed > 0;
    let outcome = formula::step(preset, &weights, &then, &next);
    let mut r = outcome.r;
    if r.is_some() {
        reason = None;
    }
    if error.is_none() {
        reason = Some(format!("exit code {} is no fault of the caller's", bundle.meta.exit_code));
    }
    if let Some(what) = skewed {
        (r, reason) = (None, Some(format!("E/VERSION_SKEW: {what} is another one")));
    } else if changes_rules {
        (r, reason) = (None, Some("E/VERSION_SKEW: the edit changes the server's configuration".to_owned()));
    }
    if preset == Preset::Guarded && own.integrity.is_hard() && r.is_some_and(|r| r.get() > 0.0) {
        words
            .push(format!("{} would be the reward, and integrity flags cap it", r.unwrap_or_default().get()));
        r = Some(Score::default());
    }
    // A safe plan for an edit is worth what the edit repairs.
    let repairs = outcome.components.diag_delta.is_none_or(|change| change.get() > 0.0);
    if preset == Preset::Guarded && bundle.edits.is_some() && !repairs && r.is_some_and(|r| r.get() > 0.0) {
        words.push(format!(
            "{} would be the reward, and the edit repairs nothing that the checker sees",
            r.unwrap_or_default().get()
        ));
        r = Some(Score::default());
    }
    let visible = pair.as_ref().is_ok_and(|pair| {
        let compared = fingerprint::compare(&pair.before, &pair.after);
        visibility::is_visible(&pair.before, &pair.after, &compared)
    });
    if preset == Preset::Guarded && pair.is_ok() && !visible {
        words.push("the checker had nothing to see here".to_owned());
    }
    words.insert(0, formula_in_words(preset, &weights, &then, &next));
    let after = own.scope.clone().unwrap_or_default();
    let scope_count = own.scope.as_ref().map(|scope| told(count(scope, preset)));
    ProcessReward {
        version: preset,
        previous_bundle_id: previous.map(|previous| previous.bundle_id),
        r,
        reason: reason.filter(|_| r.is_none()),
        components: outcome.components,
        state: RewardState {
            diagnostics: scope_count,
            safety: told(safe),
            confidence: told(sure),
            error: error.map(told),
            scope: own.scope,
        },
        before: own.before.as_ref().map(|before| earlier::shortened(before, &after)),
        supplement: supplement.cloned(),
        visible,
        weights,
        source: RewardSource::Lsp,
        integrity: own.integrity,
        explanation: words.join("; "),
    }
}

/// Two scopes over the same files.
struct Pair {
    before: RewardScope,
    after: RewardScope,
}

/// A step of its own: an edit starts from what was there before it; a question changes nothing.
fn alone(own: &Recorded, undiscounted: bool) -> Result<Pair, String> {
    match (&own.before, &own.scope) {
        (Some(before), Some(after)) => Ok(Pair { before: before.clone(), after: after.clone() }),
        (None, Some(scope)) => Ok(Pair { before: scope.clone(), after: scope.clone() }),
        // Nothing less nothing, whatever it is.
        (_, None) if undiscounted => {
            Ok(Pair { before: RewardScope::default(), after: RewardScope::default() })
        }
        (_, None) => Err("no diagnostics were measured".to_owned()),
    }
}

/// Why nobody looked at what happened to the code between two bundles: bundles hold no code, so that only lanser's own edits
/// are judged, and what one of them owes is told in its own bundle only.
fn unjudged(previous: &Bundle, before: &Recorded, bundle: &Bundle, own: &Recorded) -> Option<&'static str> {
    let (then, now) = (previous.environment.as_ref()?, bundle.environment.as_ref()?);
    if then.workspace == now.workspace {
        return None;
    }
    let was_written = previous.edits.as_ref().is_some_and(|edits| edits.transaction.is_some());
    if !was_written || own.before.is_none() {
        return Some("the code changed between the bundles and nobody judged how; `lanser score` does");
    }
    let owes = before.scope.as_ref().is_some_and(|scope| !scope.owed.is_empty());
    (owes || before.integrity.is_hard())
        .then_some("the edit before owes what it hid, which this bundle cannot tell; `lanser score` can")
}

/// The diagnostics of two bundles over the same files.
fn between(previous: &Bundle, before: &Recorded, bundle: &Bundle, own: &Recorded) -> Result<Pair, String> {
    let pair =
        |before: &RewardScope, after: &RewardScope| Pair { before: before.clone(), after: after.clone() };
    if let (Some(then), Some(now)) = (&before.scope, &own.scope)
        && covered(then) == covered(now)
    {
        return Ok(pair(then, now));
    }
    // What the files held when each was asked: the same, or a request that was refused before anything was looked at.
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
            // The one before was only asked, so what this one found before its edit was there then too.
            (Recorded { before: None, .. }, Recorded { before: Some(start), scope: Some(now), .. }) => {
                return Ok(pair(start, now));
            }
            // Neither edits: the same content has the same diagnostics.
            (Recorded { before: None, .. }, Recorded { before: None, .. }) => {
                let scope = before.scope.as_ref().or(own.scope.as_ref()).cloned().unwrap_or_default();
                return Ok(pair(&scope, &scope));
            }
            // What was proposed is given up again.
            (Recorded { before: Some(disk), scope: Some(proposed), .. }, Recorded { before: None, .. }) => {
                return Ok(pair(proposed, disk));
            }
            _ => {}
        }
    }
    let missing = |scope: Option<&RewardScope>, other: Option<&RewardScope>| {
        let known = scope.map(covered).unwrap_or_default();
        let wanted = other.map(covered).unwrap_or_default();
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

/// The files of a scope.
fn covered(scope: &RewardScope) -> BTreeSet<String> {
    let found = scope.files.iter().map(|file| &file.uri).chain(&scope.clean);
    found.map(ToString::to_string).collect()
}

/// The sum as it is worked out.
fn formula_in_words(preset: Preset, weights: &Weights, then: &Numbers, next: &Numbers) -> String {
    let number = |value: f64| told(value).get().to_string();
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

    /// A bundle that says nothing but this of diagnostics.
    fn with(files: &[(&str, u32)], before: Option<&[(&str, u32)]>, exit: u8) -> Bundle {
        let mut made = bundle(include_str!("../../fixtures/schemas/valid/bundle-full.json"));
        made.resolution = None;
        made.error = None;
        made.meta.exit_code = exit;
        let scope = |files: &[(&str, u32)]| RewardScope {
            files: files
                .iter()
                .map(|(uri, errors)| crate::model::reward::FileState {
                    uri: DocUri::parse(uri).unwrap(),
                    counts: crate::model::facts::Counts { error: *errors, ..Default::default() },
                    prints: Vec::new(),
                })
                .collect(),
            ..RewardScope::default()
        };
        let measured =
            Measured { before: before.map(scope), after: scope(files), integrity: Integrity::default() };
        made.process_reward = Some(of_bundle(&made, Some(measured)));
        made
    }

    fn other_content(mut made: Bundle) -> Bundle {
        if let Some(environment) = &mut made.environment {
            environment.workspace.digest = crate::digest::Digest::of(b"another");
        }
        made
    }

    #[test]
    fn steps_are_taken_over_the_same_files_or_not_at_all() {
        let r = |previous: &Bundle, next: &Bundle| recomputed(next, Some(previous), &Terms::default());
        let first = with(&[("a.py", 5), ("b.py", 2)], None, 0);
        let second = other_content(with(&[("a.py", 2), ("b.py", 2)], None, 0));
        assert_eq!(r(&first, &second).r, Score::new(1.5));
        assert_eq!(r(&first, &second).previous_bundle_id, Some(first.bundle_id));
        let narrower = other_content(with(&[("a.py", 2)], None, 0));
        let told = r(&first, &narrower);
        assert_eq!((told.r, told.components.diag_delta), (None, None));
        assert_eq!(told.reason.as_deref(), Some("this bundle did not measure b.py"));
        let without = Terms {
            weights: Weights { diagnostics: Score::default(), ..Terms::default().weights },
            ..Terms::default()
        };
        assert_eq!(recomputed(&narrower, Some(&first), &without).r, Score::new(0.0));
    }

    #[test]
    fn an_edit_starts_from_what_was_there_before_it() {
        let edit = with(&[("a.py", 1)], Some(&[("a.py", 3)]), 0);
        assert_eq!(edit.process_reward.as_ref().unwrap().r, Score::new(1.0));
        // Of the same content the one before it found the same, over whatever files.
        let read = with(&[("b.py", 9)], None, 0);
        assert_eq!(recomputed(&edit, Some(&read), &Terms::default()).r, Score::new(1.0));
    }

    #[test]
    fn what_was_only_proposed_is_given_up_by_a_look_at_other_files() {
        let edit = with(&[("a.py", 1)], Some(&[("a.py", 3)]), 0);
        let read = with(&[("b.py", 9)], None, 0);
        assert_eq!(recomputed(&read, Some(&edit), &Terms::default()).r, Score::new(-1.0));
        assert_eq!(recomputed(&other_content(read), Some(&edit), &Terms::default()).r, None);
    }

    #[test]
    fn only_the_caller_s_errors_count() {
        for (exit, r) in [
            (0, Some(0.0)),
            (1, Some(0.0)),
            (3, Some(-0.5)),
            (77, Some(-0.5)),
            (64, None),
            (74, None),
            (10, None),
        ] {
            let told = with(&[("a.py", 1)], None, exit).process_reward.unwrap();
            assert_eq!(told.r.map(Score::get), r, "{exit}");
            assert_eq!(told.reason.is_some(), r.is_none());
        }
    }

    #[test]
    fn another_configuration_is_no_reward_where_it_is_guarded() {
        let first = with(&[("a.py", 5)], None, 0);
        let mut second = other_content(with(&[("a.py", 0)], None, 0));
        second.environment.as_mut().unwrap().config_digest = crate::digest::Digest::of(b"off");
        let told = recomputed(&second, Some(&first), &Terms::of(Preset::Guarded));
        assert_eq!(told.r, None);
        assert!(told.reason.unwrap().contains("VERSION_SKEW"));
        assert!(recomputed(&second, Some(&first), &Terms::default()).r.is_some());
    }
}
