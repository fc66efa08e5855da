//! The checks of one edit, recorded by name in a fixed order, and the error for those that fail.

use std::collections::BTreeMap;

use crate::model::edits::{Check, CheckName};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::{DirtyPolicy, Request};

/// How many places to report per check.
const MAX_PLACES: usize = 20;

/// The checks so far.
pub(super) struct Checks<'r> {
    request: &'r Request,
    checks: Vec<Check>,
    /// The error to report if a check is the first that fails, where it is not the default.
    failures: BTreeMap<CheckName, CheckFailure>,
}

/// The error of a failed check, where it is not the default.
#[derive(Debug, Clone, Default)]
pub(super) struct CheckFailure {
    pub(super) symbol: Option<ErrorSymbol>,
    pub(super) data: Option<ErrorData>,
    pub(super) hint: Option<String>,
}

impl CheckFailure {
    /// An error with this symbol.
    pub(super) fn of(symbol: ErrorSymbol) -> Self {
        Self { symbol: Some(symbol), ..Self::default() }
    }

    /// An error that lists files.
    pub(super) fn files(paths: Vec<String>) -> Self {
        Self { data: Some(ErrorData::Files { paths }), ..Self::default() }
    }

    /// Sets the data.
    pub(super) fn data(mut self, data: ErrorData) -> Self {
        self.data = Some(data);
        self
    }

    /// Sets the hint.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl<'r> Checks<'r> {
    pub(super) const fn new(request: &'r Request) -> Self {
        Self { request, checks: Vec::new(), failures: BTreeMap::new() }
    }

    /// Records that a check passed.
    pub(super) fn pass(&mut self, name: CheckName, detail: impl Into<String>) {
        self.record(name, true, detail.into(), Vec::new());
    }

    /// Records that a check failed at these places.
    pub(super) fn fail(&mut self, name: CheckName, detail: impl Into<String>, places: Vec<String>) {
        self.record(name, false, detail.into(), places);
    }

    /// Records that a check failed if there are places, else that it passed.
    pub(super) fn fail_if_any(&mut self, name: CheckName, places: Vec<String>, passed: &str, failed: &str) {
        if places.is_empty() {
            self.pass(name, passed);
        } else {
            let count = places.len();
            self.fail(name, format!("{failed}: {}", crate::text::plural(count, "place")), places);
        }
    }

    /// Records a failed check that the caller has overridden by another option.
    pub(super) fn fail_overridden(
        &mut self,
        name: CheckName,
        detail: impl Into<String>,
        places: Vec<String>,
    ) {
        self.fail(name, detail, places);
        if let Some(check) = self.checks.last_mut() {
            check.overridden = true;
        }
    }

    /// Replaces a passed check by a failed one. If the check has stopped the edit already, its first reason stays.
    pub(super) fn replace(
        &mut self,
        name: CheckName,
        detail: String,
        places: Vec<String>,
        failure: CheckFailure,
    ) {
        let stopped = self.checks.iter().any(|check| check.name == name && check.stops());
        if !stopped {
            self.checks.retain(|check| check.name != name);
            self.record(name, false, detail, places);
            self.set_failure(name, failure);
        }
    }

    /// Appends to the detail of a check.
    pub(super) fn append_detail(&mut self, name: CheckName, text: &str) {
        for check in self.checks.iter_mut().filter(|check| check.name == name) {
            check.detail.push_str(text);
        }
    }

    /// Sets the error to report if this check is the first that fails.
    pub(super) fn set_failure(&mut self, name: CheckName, failure: CheckFailure) {
        self.failures.insert(name, failure);
    }

    fn record(&mut self, name: CheckName, passed: bool, detail: String, mut places: Vec<String>) {
        places.truncate(MAX_PLACES);
        let overridden = !passed && self.is_overridden(name);
        self.checks.push(Check { name, passed, overridden, detail, places });
    }

    fn is_overridden(&self, name: CheckName) -> bool {
        let guards = &self.request.options.guards;
        guards.overrides.contains(&name) || (name == CheckName::Git && guards.dirty == DirtyPolicy::All)
    }

    /// Whether a check failed, overridden or not.
    pub(super) fn failed(&self, name: CheckName) -> bool {
        self.checks.iter().any(|check| check.name == name && !check.passed)
    }

    /// The checks, sorted.
    pub(super) fn into_sorted(mut self) -> Vec<Check> {
        self.checks.sort_by_key(|check| check.name);
        self.checks
    }

    /// The error for the first check, in order, that stops the edit.
    pub(super) fn error(&self) -> Option<ErrorBody> {
        let mut stopping: Vec<&Check> = self.checks.iter().filter(|check| check.stops()).collect();
        stopping.sort_by_key(|check| check.name);
        let first = *stopping.first()?;
        let failure = self.failures.get(&first.name).cloned().unwrap_or_default();
        let symbol = failure.symbol.unwrap_or(match first.name {
            CheckName::Jail | CheckName::Filters => ErrorSymbol::Jail,
            CheckName::Content => ErrorSymbol::ApplyConflict,
            CheckName::Git => ErrorSymbol::DirtyWorktree,
            _ => ErrorSymbol::UnsafeEdit,
        });
        let mut message = format!("nothing was written: {}", first.detail);
        if let Some(others) = stopping.get(1..).filter(|others| !others.is_empty()) {
            let names: Vec<&str> = others.iter().map(|check| check.name.as_str()).collect();
            message = format!("{message}; also failed: {}", names.join(", "));
        }
        let options: Vec<(CheckName, &str)> =
            stopping.iter().filter_map(|check| Some((check.name, check.name.override_option()?))).collect();
        let hint = match (failure.hint, options.len() == stopping.len(), first.name) {
            (Some(hint), ..) => hint,
            (None, true, CheckName::Git) if options.len() == 1 => {
                "commit or stash the changes, or add --allow-dirty=elsewhere or --allow-dirty".to_owned()
            }
            (None, true, _) => match options.as_slice() {
                [(_, option)] => format!("review the places; to apply the edit anyway, add {option}"),
                options => {
                    let overrides: Vec<String> = options
                        .iter()
                        .map(|(name, option)| format!("{option} ({})", name.as_str()))
                        .collect();
                    format!("review each failed check before overriding it: {}", overrides.join(", "))
                }
            },
            (None, false, CheckName::Filters) => "adjust --allow and --deny, or the edit".to_owned(),
            (None, false, _) => "correct the edit".to_owned(),
        };
        let failed = ErrorData::Checks { failed: stopping.iter().map(|check| check.name).collect() };
        Some(ErrorBody::new(symbol, message).hint(hint).data(failure.data.unwrap_or(failed)))
    }
}
