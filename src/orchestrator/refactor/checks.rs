//! The checks of one edit, recorded by name in one order, and the error that those become which fail.

use crate::model::edits::{Check, CheckName};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::{Dirt, Request};

/// How many places of one check are told.
const MOST_PLACES: usize = 20;

/// The checks that were made so far.
pub(super) struct Checks<'r> {
    request: &'r Request,
    made: Vec<Check>,
    /// Where an edit does not fit, for the error.
    data: Option<ErrorData>,
    /// The error that a check which is about files becomes, when it is not the usual one.
    symbol: Option<ErrorSymbol>,
}

impl<'r> Checks<'r> {
    pub(super) const fn new(request: &'r Request) -> Self {
        Self { request, made: Vec::new(), data: None, symbol: None }
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

    /// Makes a check that found nothing wrong one that did.
    pub(super) fn replace(&mut self, name: CheckName, detail: String, places: Vec<String>) {
        self.made.retain(|check| check.name != name);
        self.record(name, false, detail, places);
    }

    /// Says more about a check.
    pub(super) fn note(&mut self, name: CheckName, words: &str) {
        for check in self.made.iter_mut().filter(|check| check.name == name) {
            check.detail.push_str(words);
        }
    }

    /// Which files are in the way, for the error.
    pub(super) fn files(&mut self, paths: Vec<String>) {
        self.data.get_or_insert(ErrorData::Files { paths });
    }

    /// Says more of why the edit cannot be made.
    pub(super) fn because(&mut self, symbol: ErrorSymbol, data: Option<ErrorData>) {
        self.symbol = Some(symbol);
        self.data = data;
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
        let symbol = self.symbol.unwrap_or(match first.name {
            CheckName::Jail | CheckName::Filters => ErrorSymbol::Jail,
            CheckName::Content => ErrorSymbol::ApplyConflict,
            CheckName::Git => ErrorSymbol::DirtyWorktree,
            _ => ErrorSymbol::UnsafeEdit,
        });
        let names: Vec<&str> = stopping.iter().map(|check| check.name.as_str()).collect();
        let message = match stopping.as_slice() {
            [only] => format!("nothing was written: {}", only.detail),
            several => format!("nothing was written: {} checks failed ({})", several.len(), names.join(", ")),
        };
        let ways: Vec<&str> = stopping.iter().filter_map(|check| check.name.given_up_by()).collect();
        let body = ErrorBody::new(symbol, message);
        let body = match (ways.len() == stopping.len(), first.name) {
            (true, CheckName::Git) if ways.len() == 1 => {
                body.hint("commit or stash the changes, or add --allow-dirty=elsewhere or --allow-dirty")
            }
            (true, _) => {
                body.hint(format!("look at the places; to write all the same, add {}", ways.join(" ")))
            }
            (false, CheckName::Filters) => body.hint("the filters are --allow and --deny"),
            (false, _) => body.hint("correct the edit"),
        };
        let failed = ErrorData::Checks { failed: stopping.iter().map(|check| check.name).collect() };
        Some(body.data(self.data.clone().unwrap_or(failed)))
    }
}
