//! One step of a report.

use super::html::{Html, number, signed};
use crate::digest::Score;
use crate::model::bundle::Bundle;
use crate::model::facts::Diagnostic;
use crate::model::reward::{Components, GoneDiagnostics, OutstandingReason};
use crate::reward::episode::Episode;
use crate::reward::run::RunStep;

/// Said of a step whose diagnostics cannot tell anything.
const NOT_VISIBLE: &str = "The checker had nothing to see here.";

/// How much of a diff is shown; the rest is counted.
const MAX_DIFF_LINES: usize = 1000;
const MAX_LINE_CHARS: usize = 1000;

/// How many diagnostics are listed; the rest is counted.
const MAX_DIAGNOSTICS: usize = 50;

/// A step of a run, or a head that was scored.
#[derive(Debug, Default)]
pub(crate) struct ReportStep {
    /// Its number or name.
    pub(crate) label: String,
    /// What was requested, in a few words.
    pub(crate) request: String,
    /// Its reward; `None` where there is none.
    pub(crate) reward: Option<f64>,
    /// Why there is no reward, or what is wrong.
    pub(crate) reason: Option<String>,
    /// The number of diagnostics before, as the formula counts them.
    pub(crate) before: Option<f64>,
    /// The number of diagnostics after.
    pub(crate) after: Option<f64>,
    /// The components of the reward, by name.
    pub(crate) parts: Vec<(&'static str, f64)>,
    /// The integrity flags.
    pub(crate) flags: Vec<&'static str>,
    /// Other facts, one per line: the bundle, warnings, what became of diagnostics.
    pub(crate) notes: Vec<String>,
    /// Diagnostics that went, and those that are new.
    pub(crate) resolved: Vec<String>,
    /// Diagnostics that are new.
    pub(crate) introduced: Vec<String>,
    /// The edit; `None` where it is not known.
    pub(crate) diff: Option<String>,
}

impl ReportStep {
    /// What a bundle says about a step, without its reward.
    pub(crate) fn of_bundle(bundle: &Bundle) -> Self {
        let request = bundle.request.as_ref().map(|request| {
            let selector = request.original.clone();
            let selector =
                selector.or_else(|| bundle.resolution.as_ref()?.resolved.as_ref().map(|it| it.at.clone()));
            let words = [Some(request.cmd.as_str().to_owned()), selector, request.new_name.clone()];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        });
        let mut notes = vec![format!("bundle {}", bundle.bundle_id)];
        let error = bundle.error.as_ref();
        notes.extend(error.map(|error| format!("{}: {}", error.symbol.as_str(), error.message)));
        notes.extend(bundle.warnings.iter().map(|warning| format!("warning: {warning}")));
        let edits = bundle.edits.as_ref();
        let failed = edits.iter().flat_map(|edits| &edits.safety).filter(|check| !check.passed);
        notes.extend(failed.map(|check| format!("check {} failed: {}", check.name.as_str(), check.detail)));
        let changes = edits.and_then(|edits| edits.diagnostics.as_ref());
        let lines = |diagnostics: &[Diagnostic]| {
            let line = |found: &Diagnostic| format!("{} {}", found.at, found.message);
            diagnostics.iter().map(line).collect()
        };
        Self {
            request: request.unwrap_or_else(|| "a request that could not be parsed".to_owned()),
            notes,
            introduced: changes.map(|changes| lines(&changes.introduced)).unwrap_or_default(),
            resolved: changes.map(|changes| lines(&changes.resolved)).unwrap_or_default(),
            diff: edits.map(|edits| edits.diff.clone()),
            ..Self::default()
        }
    }

    /// The step with its reward.
    pub(crate) fn with_reward(self, step: &RunStep) -> Self {
        let parts = match &step.components {
            Components::Csf(parts) => vec![
                ("diagnostics", parts.diag_delta),
                ("safety", parts.safety_delta),
                ("confidence", parts.confidence_delta),
                ("error", parts.tool_error),
            ],
            Components::Pr(parts) => vec![
                ("diagnostics", parts.diag_delta),
                ("safety", parts.safety),
                ("ambiguity", parts.ambiguity_penalty),
            ],
        };
        let gone = match &step.components {
            Components::Csf(parts) => parts.gone,
            Components::Pr(_) => None,
        };
        let (before, after) = step.diagnostics;
        let mut notes = self.notes;
        notes.extend(gone_note(gone));
        notes.extend((!step.visible).then(|| NOT_VISIBLE.to_owned()));
        Self {
            label: format!("step {}", step.t),
            reward: step.r.map(Score::get),
            reason: step.reason.clone(),
            before: before.map(Score::get),
            after: after.map(Score::get),
            parts: known(parts),
            flags: step.integrity_flags.clone(),
            notes,
            ..self
        }
    }

    /// A head that was scored.
    pub(crate) fn of_episode(episode: &Episode, diff: Option<String>) -> Self {
        let step = episode.steps.first().copied().unwrap_or_default();
        let parts = &episode.reward_components;
        let mut notes: Vec<String> = gone_note(episode.gone).into_iter().collect();
        notes.extend(episode.outstanding.iter().map(|one| {
            let rule = one.rule.as_deref().unwrap_or("a diagnostic");
            format!("outstanding: {} {} in {}: {}", one.uri, rule, one.symbol, words(one.why))
        }));
        notes.extend(episode.warnings.iter().map(|warning| format!("warning: {warning}")));
        notes.extend((episode.scored && !episode.visible).then(|| NOT_VISIBLE.to_owned()));
        Self {
            label: episode.head.clone(),
            request: String::new(),
            reward: episode.reward.filter(|_| episode.scored).map(Score::get),
            reason: episode.reason.clone(),
            before: step.prev.map(Score::get),
            after: step.cur.map(Score::get),
            parts: known(vec![
                ("diagnostics", parts.diag),
                ("safety", parts.safety),
                ("confidence", parts.confidence),
                ("error", parts.tool_error),
                ("integrity", parts.integrity),
            ]),
            flags: episode.integrity_flags.clone(),
            notes,
            diff,
            ..Self::default()
        }
    }

    /// Writes the step, closed except for its first line.
    pub(super) fn write(&self, html: &mut Html, index: usize) {
        html.raw("<details id=\"step-").text(&index.to_string()).raw("\"><summary><span class=\"reward ");
        html.raw(match self.reward {
            None => "none",
            Some(reward) if reward > 0.0 => "plus",
            Some(reward) if reward < 0.0 => "minus",
            Some(_) => "zero",
        });
        html.raw("\">").text(&self.reward.map_or_else(|| "none".to_owned(), signed)).raw("</span> <b>");
        html.text(&self.label).raw("</b> <span class=\"what\">").text(&self.request).raw("</span>");
        if let (Some(before), Some(after)) = (self.before, self.after) {
            html.raw(" <span class=\"count\">")
                .text(&number(before))
                .raw(" → ")
                .text(&number(after))
                .raw("</span>");
        }
        for flag in &self.flags {
            html.raw(" <span class=\"flag\">").text(flag).raw("</span>");
        }
        html.raw("</summary>\n");
        if let Some(reason) = &self.reason {
            html.raw("<p class=\"reason\">").text(reason).raw("</p>\n");
        }
        let parts: Vec<String> =
            self.parts.iter().map(|(name, value)| format!("{name} {}", signed(*value))).collect();
        if !parts.is_empty() {
            html.raw("<p>").text(&parts.join(", ")).raw("</p>\n");
        }
        for note in &self.notes {
            html.raw("<p class=\"note\">").text(note).raw("</p>\n");
        }
        list(html, "New diagnostics", &self.introduced);
        list(html, "Diagnostics that are gone", &self.resolved);
        match self.diff.as_deref().filter(|diff| !diff.is_empty()) {
            Some(diff) => write_diff(html, diff),
            None => {
                html.raw("<p class=\"note\">There is no diff of this step.</p>\n");
            }
        }
        html.raw("</details>\n");
    }
}

/// The parts that are known.
fn known(parts: Vec<(&'static str, Option<Score>)>) -> Vec<(&'static str, f64)> {
    parts.into_iter().filter_map(|(name, value)| Some((name, value?.get()))).collect()
}

/// Why a diagnostic is outstanding.
const fn words(why: OutstandingReason) -> &'static str {
    match why {
        OutstandingReason::FileGone => "its file is gone",
        OutstandingReason::Suppressed => "suppressed",
        OutstandingReason::SyntaxError => "its file has a syntax error",
        OutstandingReason::Unreachable => "its code is unreachable",
        OutstandingReason::CodeGone => "its code is gone",
        OutstandingReason::Declared => "only declared",
        OutstandingReason::Replaced => "another expression took its role",
    }
}

/// What became of the diagnostics that went.
fn gone_note(gone: Option<GoneDiagnostics>) -> Option<String> {
    let counts: Vec<String> =
        gone?.counts().into_iter().map(|(fate, count)| format!("{count} {fate}")).collect();
    (!counts.is_empty()).then(|| format!("diagnostics that went: {}", counts.join(", ")))
}

fn list(html: &mut Html, title: &'static str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    html.raw("<h3>").raw(title).raw("</h3>\n<ul>\n");
    for item in items.iter().take(MAX_DIAGNOSTICS) {
        html.raw("<li>").text(item).raw("</li>\n");
    }
    if items.len() > MAX_DIAGNOSTICS {
        html.raw("<li>… and ").text(&(items.len() - MAX_DIAGNOSTICS).to_string()).raw(" more</li>\n");
    }
    html.raw("</ul>\n");
}

/// The diff, with its lines in colors.
fn write_diff(html: &mut Html, diff: &str) {
    html.raw("<pre tabindex=\"0\">");
    let mut lines = diff.lines();
    for line in lines.by_ref().take(MAX_DIFF_LINES) {
        let class = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd', b'i', b'f', b'f', ..] => Some("<b>"),
            [b'+', ..] => Some("<ins>"),
            [b'-', ..] => Some("<del>"),
            [b'@', ..] => Some("<i>"),
            _ => None,
        };
        html.raw(class.unwrap_or_default());
        match line.char_indices().nth(MAX_LINE_CHARS) {
            Some((at, _)) => html.text(&line[..at]).raw("…"),
            None => html.text(line),
        };
        html.raw(match class {
            Some("<b>") => "</b>\n",
            Some("<ins>") => "</ins>\n",
            Some("<del>") => "</del>\n",
            Some(_) => "</i>\n",
            None => "\n",
        });
    }
    html.raw("</pre>\n");
    let more = lines.count();
    if more > 0 {
        html.raw("<p class=\"note\">… and ").text(&more.to_string()).raw(" more lines</p>\n");
    }
}
