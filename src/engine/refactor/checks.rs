//! The checks of one edit, recorded by name in a fixed order, and the error for those that fail.

use std::collections::{BTreeMap, BTreeSet};

use super::next_command::next_command;
use crate::engine::settings::Settings;
use crate::model::edits::{Check, CheckName, PlaceDecision};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::{Command, DirtyPolicy, Request};

/// How many places to report per check. Of those that the caller has to decide about, all are reported.
const MAX_PLACES: usize = 20;

/// The checks so far.
pub(super) struct Checks<'r> {
    request: &'r Request,
    checks: Vec<Check>,
    /// The error to report if a check is the first that fails, where it is not the default.
    failures: BTreeMap<CheckName, CheckFailure>,
    /// The failed checks that stop `--apply` before the server is asked.
    early: BTreeSet<CheckName>,
    /// Whether `--family` would rename what keeps the old name.
    offers_family: bool,
    /// Whether none of the open places can be renamed.
    offers_exclude: bool,
    /// Whether git can record the changes that it reports.
    offers_commit: bool,
    /// Whether only files have uncommitted changes that the edit does not change.
    offers_elsewhere: bool,
    /// Whether `--check importers` would compare the files that were left out.
    offers_importers: bool,
    /// The option for a server other than the default.
    server: Option<String>,
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
    pub(super) fn new(request: &'r Request, settings: &Settings) -> Self {
        Self {
            request,
            checks: Vec::new(),
            failures: BTreeMap::new(),
            early: BTreeSet::new(),
            offers_family: false,
            offers_exclude: false,
            offers_commit: false,
            offers_elsewhere: false,
            offers_importers: false,
            server: settings.server.option(settings.server_version.as_deref()),
        }
    }

    /// Checks that were made before.
    pub(super) fn with(
        request: &'r Request,
        settings: &Settings,
        checks: impl Iterator<Item = Check>,
    ) -> Self {
        Self { checks: checks.collect(), ..Self::new(request, settings) }
    }

    /// Records that a check passed.
    pub(super) fn pass(&mut self, name: CheckName, detail: impl Into<String>) {
        self.record(name, true, detail.into(), Vec::new());
    }

    /// Records that a check failed at these places.
    pub(super) fn fail(&mut self, name: CheckName, detail: impl Into<String>, places: Vec<String>) {
        self.record(name, false, detail.into(), places);
    }

    /// Records that a check stops `--apply` before the server is asked, so that its error precedes all others.
    pub(super) fn stops_early(&mut self, name: CheckName) {
        self.early.insert(name);
    }

    /// Records that `--family` would rename what keeps the old name.
    pub(super) fn offer_family(&mut self) {
        self.offers_family = true;
    }

    /// Records that none of the open places can be renamed, so that they can only be left.
    pub(super) fn offer_exclude(&mut self) {
        self.offers_exclude = true;
    }

    /// Records that git can record what it reports.
    pub(super) fn offer_commit(&mut self) {
        self.offers_commit = true;
    }

    /// Records that only other files than those of the edit have uncommitted changes.
    pub(super) fn offer_elsewhere(&mut self) {
        self.offers_elsewhere = true;
    }

    /// Records that affected files were left out which a rename can compare, too; returns whether it is a rename.
    pub(super) fn offer_all_importers(&mut self) -> bool {
        self.offers_importers = self.request.cmd == Command::Rename;
        self.offers_importers
    }

    /// Records whether every place is accounted for: the source lines of the places, and what the caller decided about others.
    pub(super) fn completeness(
        &mut self,
        passed: bool,
        detail: String,
        open: (Vec<String>, Vec<String>),
        decisions: Vec<PlaceDecision>,
    ) {
        let (places, previews) = open;
        self.record(CheckName::Completeness, passed, detail, places);
        if let Some(check) = self.checks.last_mut() {
            check.previews = previews;
            check.decisions = decisions;
        }
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
        if name != CheckName::Completeness {
            places.truncate(MAX_PLACES);
        }
        let overridden = !passed && self.is_overridden(name);
        self.checks.push(Check {
            name,
            passed,
            overridden,
            detail,
            places,
            previews: Vec::new(),
            decisions: Vec::new(),
        });
    }

    fn is_overridden(&self, name: CheckName) -> bool {
        let guards = &self.request.options.guards;
        guards.overrides.contains(&name) || (name == CheckName::Git && guards.dirty == DirtyPolicy::All)
    }

    /// The checks, sorted.
    pub(super) fn into_sorted(mut self) -> Vec<Check> {
        self.checks.sort_by_key(|check| check.name);
        self.checks
    }

    /// The error for the first check, in order, that stops the edit.
    pub(super) fn error(&self) -> Option<ErrorBody> {
        let mut stopping: Vec<&Check> = self.checks.iter().filter(|check| check.stops()).collect();
        stopping.sort_by_key(|check| (!self.early.contains(&check.name), check.name));
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
        let hint = failure.hint.unwrap_or_else(|| self.hint(&stopping));
        let failed = ErrorData::Checks { failed: stopping.iter().map(|check| check.name).collect() };
        Some(ErrorBody::new(symbol, message).hint(hint).data(failure.data.unwrap_or(failed)))
    }

    fn next_command(&self, more: &[&str]) -> String {
        next_command(self.request, self.server.as_deref(), more)
    }

    /// What to do about checks that stop the edit, with the command that goes on.
    fn hint(&self, stopping: &[&Check]) -> String {
        // What else fails is mostly a consequence of a family that is renamed in part.
        if self.offers_family && stopping.iter().any(|check| check.name == CheckName::Overrides) {
            return format!("to rename all of them: {}", self.next_command(&["--family"]));
        }
        let lacks_files = |check: &&Check| self.offers_importers && check.name == CheckName::Diagnostics;
        let (incomplete, stopping): (Vec<&Check>, Vec<&Check>) =
            stopping.iter().partition(|check| lacks_files(check));
        if stopping.is_empty() {
            return format!("to compare all of them: {}", self.next_command(&["--check importers"]));
        }
        let is_alone = stopping.len() == 1;
        let mut options: Vec<&str> = incomplete.iter().map(|_| "--check importers").collect();
        for check in &stopping {
            options.push(match (check.name, check.name.override_option()) {
                (CheckName::Completeness, _) if !check.places.is_empty() && self.offers_exclude => {
                    "--exclude unresolved"
                }
                (CheckName::Completeness, _) if !check.places.is_empty() => "--include unresolved",
                (CheckName::Git, _) if self.offers_elsewhere => "--allow-dirty=elsewhere",
                (_, Some(option)) => option,
                (CheckName::Filters, None) => return "adjust --allow and --deny, or the edit".to_owned(),
                (CheckName::Jail, None) if self.request.cmd == Command::Rename => {
                    // No folder has the files of a server or an interpreter.
                    let is_foreign = |check: &&Check| {
                        let mut texts = check.places.iter().chain([&check.detail]);
                        check.name == CheckName::Target
                            || texts.any(|text| text.contains("server://") || text.contains("env://"))
                    };
                    return match stopping.iter().any(is_foreign) {
                        true => "name something that the workspace defines",
                        false => "start lanser in a folder that has all of these files (`-C DIR`)",
                    }
                    .to_owned();
                }
                (_, None) => return "correct the edit".to_owned(),
            });
        }
        let command = self.next_command(&options);
        let anyway = if self.request.options.apply { "to apply the edit anyway" } else { "to go on anyway" };
        let is_taken = |check: &&Check| matches!(check.name, CheckName::Collision | CheckName::Shadowing);
        if stopping.iter().any(is_taken) {
            return format!("choose another name; {anyway}: {command}");
        }
        match stopping[0].name {
            CheckName::Git if is_alone && self.offers_commit => {
                format!("commit or stash the changes; {anyway}: {command}")
            }
            // Nothing brings an ignored file back but `undo`.
            CheckName::Git if is_alone => format!("{anyway}: {command}"),
            CheckName::Completeness if is_alone && self.offers_exclude => {
                format!("no rename changes these places; to leave them as they are: {command}")
            }
            CheckName::Completeness if is_alone && !stopping[0].places.is_empty() => format!(
                "decide about each place with --include or --exclude PATH:LINE:COL; to rename all of them, too: {command}"
            ),
            CheckName::Identifier => "choose another name".to_owned(),
            _ if is_alone && stopping[0].places.is_empty() => format!("{anyway}: {command}"),
            _ if is_alone => format!("review the places; {anyway}: {command}"),
            _ => format!("review each failed check; {anyway}: {command}"),
        }
    }
}
