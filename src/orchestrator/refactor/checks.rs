//! The checks of one edit, recorded by name in one order, and the error that those become which fail.

use std::collections::BTreeMap;

use crate::model::edits::{Check, CheckName};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::{Dirt, Request};

/// How many places of one check are told.
const MOST_PLACES: usize = 20;

/// The checks that were made so far.
pub(super) struct Checks<'r> {
    request: &'r Request,
    made: Vec<Check>,
    /// What the error says besides, when a check is the first that fails.
    reasons: BTreeMap<CheckName, Reason>,
}

/// What the error of a failed check says, where it is not the usual.
#[derive(Debug, Clone, Default)]
pub(super) struct Reason {
    pub(super) symbol: Option<ErrorSymbol>,
    pub(super) data: Option<ErrorData>,
    pub(super) hint: Option<String>,
}

impl Reason {
    /// An error of this kind.
    pub(super) fn of(symbol: ErrorSymbol) -> Self {
        Self { symbol: Some(symbol), ..Self::default() }
    }

    /// An error that names files.
    pub(super) fn files(paths: Vec<String>) -> Self {
        Self { data: Some(ErrorData::Files { paths }), ..Self::default() }
    }

    /// The same with these facts.
    pub(super) fn data(mut self, data: ErrorData) -> Self {
        self.data = Some(data);
        self
    }

    /// The same with what to do.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl<'r> Checks<'r> {
    pub(super) const fn new(request: &'r Request) -> Self {
        Self { request, made: Vec::new(), reasons: BTreeMap::new() }
    }

    /// A check that found nothing wrong.
    pub(super) fn pass(&mut self, name: CheckName, detail: impl Into<String>) {
        self.record(name, true, detail.into(), Vec::new());
    }

    /// A check that found something wrong at these places.
    pub(super) fn fail(&mut self, name: CheckName, detail: impl Into<String>, places: Vec<String>) {
        self.record(name, false, detail.into(), places);
    }

    /// A check that found something wrong if there are such places.
    pub(super) fn none_of(&mut self, name: CheckName, places: Vec<String>, well: &str, wrong: &str) {
        if places.is_empty() {
            self.pass(name, well);
        } else {
            let count = places.len();
            self.fail(
                name,
                format!("{wrong}: {count} {}", if count == 1 { "place" } else { "places" }),
                places,
            );
        }
    }

    /// A check that found something wrong which the caller wants all the same.
    pub(super) fn give_up(&mut self, name: CheckName, detail: impl Into<String>, places: Vec<String>) {
        self.fail(name, detail, places);
        if let Some(made) = self.made.last_mut() {
            made.overridden = true;
        }
    }

    /// Makes a check that found nothing wrong one that did. Of one that failed, the first reason counts.
    pub(super) fn replace(&mut self, name: CheckName, detail: String, places: Vec<String>, reason: Reason) {
        let stopped = self.made.iter().any(|check| check.name == name && check.stops());
        if !stopped {
            self.made.retain(|check| check.name != name);
            self.record(name, false, detail, places);
            self.because(name, reason);
        }
    }

    /// Says more about a check.
    pub(super) fn note(&mut self, name: CheckName, words: &str) {
        for check in self.made.iter_mut().filter(|check| check.name == name) {
            check.detail.push_str(words);
        }
    }

    /// What the error says if this check is the first that fails.
    pub(super) fn because(&mut self, name: CheckName, reason: Reason) {
        self.reasons.insert(name, reason);
    }

    fn record(&mut self, name: CheckName, passed: bool, detail: String, mut places: Vec<String>) {
        places.truncate(MOST_PLACES);
        let overridden = !passed && self.is_given_up(name);
        self.made.push(Check { name, passed, overridden, detail, places });
    }

    fn is_given_up(&self, name: CheckName) -> bool {
        let guards = &self.request.options.guards;
        guards.given_up.contains(&name) || (name == CheckName::Git && guards.dirty == Dirt::All)
    }

    /// Whether a check found something wrong, given up or not.
    pub(super) fn failed(&self, name: CheckName) -> bool {
        self.made.iter().any(|check| check.name == name && !check.passed)
    }

    /// The checks in their order.
    pub(super) fn into_made(mut self) -> Vec<Check> {
        self.made.sort_by_key(|check| check.name);
        self.made
    }

    /// The error of the first check, in order, that stops the edit.
    pub(super) fn error(&self) -> Option<ErrorBody> {
        let mut stopping: Vec<&Check> = self.made.iter().filter(|check| check.stops()).collect();
        stopping.sort_by_key(|check| check.name);
        let first = *stopping.first()?;
        let reason = self.reasons.get(&first.name).cloned().unwrap_or_default();
        let symbol = reason.symbol.unwrap_or(match first.name {
            CheckName::Jail | CheckName::Filters => ErrorSymbol::Jail,
            CheckName::Content => ErrorSymbol::ApplyConflict,
            CheckName::Git => ErrorSymbol::DirtyWorktree,
            _ => ErrorSymbol::UnsafeEdit,
        });
        let mut message = format!("nothing was written: {}", first.detail);
        if let Some(others) = stopping.get(1..).filter(|others| !others.is_empty()) {
            let names: Vec<&str> = others.iter().map(|check| check.name.as_str()).collect();
            message = format!("{message}; failed as well: {}", names.join(", "));
        }
        let ways: Vec<&str> = stopping.iter().filter_map(|check| check.name.given_up_by()).collect();
        let hint = match (reason.hint, ways.len() == stopping.len(), first.name) {
            (Some(hint), ..) => hint,
            (None, true, CheckName::Git) if ways.len() == 1 => {
                "commit or stash the changes, or add --allow-dirty=elsewhere or --allow-dirty".to_owned()
            }
            (None, true, _) => {
                format!("look at the places; to write all the same, add {}", ways.join(" "))
            }
            (None, false, CheckName::Filters) => "the filters are --allow and --deny".to_owned(),
            (None, false, _) => "correct the edit".to_owned(),
        };
        let failed = ErrorData::Checks { failed: stopping.iter().map(|check| check.name).collect() };
        Some(ErrorBody::new(symbol, message).hint(hint).data(reason.data.unwrap_or(failed)))
    }
}
