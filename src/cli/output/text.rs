//! Bundles as text: one line per location, `path:line:col`, then the source line. Every location is a valid selector.
//! If the output is truncated, the last line has the command that shows the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;

use clap::CommandFactory as _;

use super::budget::Budget;
use super::screen::{self, escape_for_terminal, quoted};
use super::{Printer, Style, calls, edits, lists};
use crate::bundle::page::continue_after;
use crate::cli::Cli;
use crate::model::analyzer::DiagnosticSource;
use crate::model::bundle::{Bundle, Limits, Status};
use crate::model::edits::{Transaction, TransactionState};
use crate::model::error::{ErrorBody, ErrorData};
use crate::model::facts::{
    Action, Completeness, CompletenessStatus, Diagnostic, Diagnostics, Facts, Hover, Location, Symbol,
    TypeEdge,
};
use crate::model::request::{Severity, TypeDirection};
use crate::model::resolution::{Candidate, Resolution, Resolved};
use crate::path::encode_portable;
use crate::text::{lines_without_notes, plural, shell_quote};

/// A bundle as text.
pub(super) struct BundleText {
    /// The answer.
    pub(super) answer: String,
    /// A warning before the answer.
    pub(super) warning: Option<String>,
    /// The error.
    pub(super) error: Option<String>,
}

/// Prints the answer on standard output, and warnings and the error on standard error.
pub(super) fn print(printer: &Printer, bundle: &Bundle) -> io::Result<()> {
    let text = render(printer, &screen::bundle_for_terminal(bundle));
    text.warning.iter().for_each(|warning| printer.complain(warning));
    screen::write(&text.answer)?;
    text.error.iter().for_each(|error| printer.complain(error));
    Ok(())
}

/// The text of a bundle.
pub(super) fn render(printer: &Printer, bundle: &Bundle) -> BundleText {
    let warning =
        (!bundle.warnings.is_empty()).then(|| format!("warning: {}", quoted(&bundle.warnings.join("; "))));
    // A partial answer, such as after a timeout, is shown together with its error, and so is an edit that is only planned.
    let has_preview = bundle.edits.as_ref().is_some_and(|edits| !edits.files.is_empty())
        && bundle.request.as_ref().is_some_and(|request| !request.writes());
    let late = bundle.error.as_ref().filter(|_| bundle.status == Status::Partial || has_preview);
    if let Some(error) = bundle.error.as_ref().filter(|_| late.is_none()) {
        let mut text = error_text(printer, bundle, error);
        if let Some(resolution) =
            bundle.resolution.as_ref().filter(|resolution| !resolution.disambiguation.is_empty())
        {
            text.push_str(&candidates(Links::of(bundle), &resolution.disambiguation));
        }
        return BundleText { answer: String::new(), warning, error: Some(text.trim_end().to_owned()) };
    }
    let error = late.map(|error| error_text(printer, bundle, error).trim_end().to_owned());
    let mut budget = Budget::new(printer.limit.is_none());
    error.iter().for_each(|error| budget.reserve(error));
    match (&bundle.facts, &bundle.resolution) {
        _ if bundle.edits.is_some() => {
            if let Some(edits) = &bundle.edits {
                edits::print(printer, bundle, edits, &mut budget);
            }
        }
        (Some(facts), resolution) if !is_empty(facts) => {
            let resolved = resolution.as_ref().and_then(|resolution| resolution.resolved.as_ref());
            if let Some(line) = resolved.map(uncertainty).filter(|line| !line.is_empty()) {
                budget.push(&line);
            }
            print_facts(printer, bundle, facts, &mut budget);
        }
        (_, Some(resolution)) => {
            let form = bundle.request.as_ref().and_then(|request| request.options.form);
            print_resolution(Links::of(bundle), resolution, form.is_some(), &mut budget);
        }
        _ => {}
    }
    BundleText { answer: budget.finish(), warning, error }
}

/// Whether there are no facts: `locate` has only a resolution.
const fn is_empty(facts: &Facts) -> bool {
    facts.definitions.is_none()
        && facts.declarations.is_none()
        && facts.type_definitions.is_none()
        && facts.implementations.is_none()
        && facts.references.is_none()
        && facts.hover.is_none()
        && facts.symbols.is_none()
        && facts.calls.is_none()
        && facts.types.is_none()
        && facts.diagnostics.is_none()
        && facts.renamable.is_none()
        && facts.actions.is_none()
        && facts.transactions.is_none()
}

fn print_facts(printer: &Printer, bundle: &Bundle, facts: &Facts, budget: &mut Budget) {
    let links = Links::of(bundle);
    let lists = [&facts.definitions, &facts.declarations, &facts.type_definitions];
    for locations in lists.into_iter().flatten() {
        list(printer, bundle, locations, budget, |item| Some(lists::definition(links, item)), "");
    }
    // The completeness of a list of which the length says how much was found.
    let verdict_on = |count: usize, what: &str| {
        let verdict = facts.completeness.as_ref();
        verdict.map_or_else(String::new, |verdict| completeness(printer, verdict, [plural(count, what)]))
    };
    if let Some(found) = &facts.implementations {
        let summary = verdict_on(found.len(), "implementation");
        list(printer, bundle, found, budget, |item| Some(lists::definition(links, item)), &summary);
    }
    if let Some(references) = &facts.references {
        let summary = facts.completeness.as_ref().map_or_else(String::new, |verdict| {
            let explained = verdict.explained.map_or(references.len(), |counts| counts.reference as usize);
            let overriding = verdict.explained.map_or(0, |counts| counts.overriding as usize);
            completeness(
                printer,
                verdict,
                lists::counts(explained, "reference", overriding, &facts.overrides),
            )
        });
        let mut last_reason = None;
        list(
            printer,
            bundle,
            &lists::items(facts, references),
            budget,
            |item| Some(item.text(links, &mut last_reason, lists::reference)),
            &summary,
        );
    }
    if let Some(found) = &facts.symbols {
        let inner = LocalNames::of(found, printer.verbose);
        let mut summary = match (found.is_empty(), inner.hidden(found)) {
            (true, _) => "no symbols".to_owned(),
            (false, 0) => String::new(),
            (false, hidden) => format!("parameters and local variables: {hidden}, shown with -v"),
        };
        let partial = |verdict: &&Completeness| verdict.status != CompletenessStatus::Complete;
        if let Some(reason) = facts.completeness.as_ref().filter(partial).and_then(|it| it.reason.as_ref()) {
            let _ = write!(summary, "{}not complete: {reason}", if summary.is_empty() { "" } else { "\n" });
        }
        list(
            printer,
            bundle,
            found,
            budget,
            |item| (!inner.hides(item)).then(|| symbol(links, item)),
            &summary,
        );
    }
    if let Some(found) = &facts.calls {
        let mut last_reason = None;
        list(
            printer,
            bundle,
            &lists::items(facts, found),
            budget,
            |item| Some(item.text(links, &mut last_reason, calls::call)),
            &calls::summary(printer, bundle, facts, found),
        );
    }
    if let Some(found) = &facts.types {
        let summary = verdict_on(found.len(), "class");
        list(printer, bundle, found, budget, |item| Some(type_edge(links, item)), &summary);
    }
    if let Some(found) = &facts.diagnostics {
        list(
            printer,
            bundle,
            &found.items,
            budget,
            |item| Some(diagnostic(links, item)),
            &diagnostics_summary(found),
        );
    }
    if let Some(found) = &facts.renamable {
        budget.push(&location(links, &found.location, &format!("{}: ", found.name)));
    }
    if let Some(found) = &facts.actions {
        let summary = if found.is_empty() { "no code actions here" } else { "" };
        list(printer, bundle, found, budget, |item| Some(action(item)), summary);
    }
    if let Some(found) = &facts.transactions {
        let summary = if found.is_empty() { "no transactions in this workspace" } else { "" };
        list(printer, bundle, found, budget, |item| Some(transaction(item)), summary);
    }
    // The signature of a definition is in its source line.
    if let Some(text) = facts.hover.as_ref().filter(|_| facts.definitions.is_none()) {
        hover(printer, text, budget);
    }
}

/// The parameters and local variables of functions, which the text output of `symbols` omits without `-v`.
struct LocalNames(Option<BTreeSet<(String, String)>>);

impl LocalNames {
    fn of(found: &[Symbol], verbose: bool) -> Self {
        let functions =
            found.iter().filter(|item| matches!(item.symbol_kind.as_str(), "function" | "method"));
        Self((!verbose).then(|| functions.map(|item| (item.uri.to_string(), qualified(item))).collect()))
    }

    fn hides(&self, item: &Symbol) -> bool {
        let inside = |functions: &BTreeSet<_>| {
            item.container
                .as_ref()
                .is_some_and(|outer| functions.contains(&(item.uri.to_string(), outer.clone())))
        };
        item.symbol_kind == "variable" && self.0.as_ref().is_some_and(inside)
    }

    fn hidden(&self, found: &[Symbol]) -> usize {
        found.iter().filter(|item| self.hides(item)).count()
    }
}

pub(super) fn qualified(item: &Symbol) -> String {
    match &item.container {
        Some(container) => format!("{container}.{}", item.name),
        None => item.name.clone(),
    }
}

pub(super) fn total(bundle: &Bundle, here: usize) -> usize {
    bundle.meta.limits.as_ref().map_or(here, |limits| limits.total as usize)
}

/// Prints what fits of a list, and the command that shows the rest.
fn list<T: serde::Serialize>(
    printer: &Printer,
    bundle: &Bundle,
    items: &[T],
    budget: &mut Budget,
    mut text: impl FnMut(&T) -> Option<String>,
    summary: &str,
) {
    let mut shown = 0;
    budget.reserve(summary);
    while shown < items.len() && text(&items[shown]).is_none_or(|text| budget.push(&text)) {
        shown += 1;
    }
    let unlimited = Limits {
        cap: u32::MAX,
        total: u32::try_from(items.len()).unwrap_or(u32::MAX),
        truncated: false,
        cursor: None,
    };
    let limits = bundle.meta.limits.as_ref().unwrap_or(&unlimited);
    if shown < items.len() || limits.truncated {
        let given = bundle.request.as_ref().and_then(|request| request.options.cursor.as_deref());
        let cursor = continue_after(items, limits, given, shown);
        let before = cursor.split_once('-').and_then(|(before, _)| before.parse().ok()).unwrap_or(shown);
        let left = (limits.total as usize).saturating_sub(before);
        budget.last(&format!("{left} more: {}", printer.next_command(&[("--cursor", &cursor)])));
    }
    // Last of all, so that the end of the output says how complete it is.
    if !summary.is_empty() {
        budget.last(&Style::Quiet.paint(summary));
    }
}

impl Printer {
    /// What shows all of an answer of at most `lines` lines.
    pub(super) fn whole(&self, lines: usize) -> String {
        match self.whole_is_in {
            Some(place) => format!("in {place}"),
            None => self.next_command(&[("--limit", &lines.to_string())]),
        }
    }

    /// A hint with its commands for the workspace that the command line names.
    pub(super) fn with_workspace(&self, hint: &str) -> String {
        let edit = || self.edit_argument().map_or_else(|| "EDIT".to_owned(), |edit| shell_quote(&edit));
        let hint = &match hint.contains("lanser apply EDIT") {
            true => hint.replace("lanser apply EDIT", &format!("lanser apply {}", edit())),
            false => hint.to_owned(),
        };
        let mut words = self.typed.iter();
        let named = words.find_map(|word| match word.as_str() {
            "-C" | "--workspace" => Some(None),
            word => word
                .strip_prefix("--workspace=")
                .or_else(|| word.strip_prefix("-C").map(|folder| folder.strip_prefix('=').unwrap_or(folder)))
                .map(Some),
        });
        match named.and_then(|value| value.or_else(|| words.next().map(String::as_str))) {
            Some(folder) => {
                let mut done = String::new();
                let mut parts = hint.split("lanser ");
                done.push_str(parts.next().unwrap_or_default());
                for part in parts {
                    let is_start = done.is_empty() || done.ends_with([' ', '`']);
                    done.push_str("lanser ");
                    if is_start && is_command(part) {
                        let _ = write!(done, "-C {} ", shell_quote(folder));
                    }
                    done.push_str(part);
                }
                done
            }
            None => hint.to_owned(),
        }
    }

    /// ` in FOLDER` where the repository around the workspace is not searched.
    pub(super) fn scope(&self) -> String {
        self.within.as_ref().map(|folder| format!(" in {}", quoted(folder))).unwrap_or_default()
    }

    /// The edit that `apply` was given on the command line.
    fn edit_argument(&self) -> Option<String> {
        let words = std::iter::once("lanser").chain(self.typed.iter().map(String::as_str));
        let parsed = Cli::command().try_get_matches_from(words).ok()?;
        let (_, apply) = parsed.subcommand()?;
        apply.try_get_one::<String>("edit").ok()?.cloned()
    }

    /// The command line as typed, with `options` added or replaced; a flag has an empty value.
    pub(super) fn next_command(&self, options: &[(&str, &str)]) -> String {
        let mut args: Vec<String> = Vec::new();
        // It is the default, and the next command may be the one that applies.
        let mut typed = self.typed.iter().filter(|word| *word != "--dry-run");
        while let Some(word) = typed.next() {
            match options.iter().find(|(name, _)| word == name || word.starts_with(&format!("{name}="))) {
                Some((name, value)) if word == name && !value.is_empty() => {
                    typed.next();
                }
                Some(_) => {}
                None => args.push(shell_quote(word)),
            }
        }
        for (name, value) in options {
            args.push(if value.is_empty() {
                (*name).to_owned()
            } else {
                format!("{name} {}", shell_quote(value))
            });
        }
        Style::Hint.paint((self.command_form)(&format!("lanser {}", args.join(" "))))
    }
}

/// Whether what follows the program's name is one of its commands, unlike in `start lanser in a folder` and after `-C`.
fn is_command(rest: &str) -> bool {
    let word = rest.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
    Cli::command().find_subcommand(word).is_some()
}

/// How locations are printed: the workspace root that terminal hyperlinks lead into, and the absolute paths of URIs. Links are
/// printed where colors are.
#[derive(Clone, Copy)]
pub(super) struct Links<'b> {
    root: Option<&'b str>,
    absolute: Option<&'b BTreeMap<String, String>>,
}

impl<'b> Links<'b> {
    /// No hyperlinks, and paths as in the bundle.
    pub(super) const fn none() -> Self {
        Self { root: None, absolute: None }
    }

    pub(super) fn of(bundle: &'b Bundle) -> Self {
        let volatile = &bundle.meta.volatile;
        Self { root: volatile.root.as_deref(), absolute: Some(&volatile.absolute) }
    }

    /// A location as compilers print it, with an absolute path if those are requested.
    fn location(self, at: &str) -> String {
        let path = at.rsplit_once('@').and_then(|(uri, place)| Some((self.absolute?.get(uri)?, place)));
        compiler_location(&path.map_or_else(|| at.to_owned(), |(path, place)| format!("{path}@{place}")))
    }

    /// A location in its color, with a hyperlink if its file is in the workspace.
    fn paint(self, at: &str) -> String {
        let text = Style::Path.paint(self.location(at));
        let path = at.split_once("@").map(|(uri, _)| uri).filter(|uri| !uri.contains("://"));
        match self.root.zip(path).filter(|_| screen::screen().is_styled) {
            Some((root, path)) => {
                let path = url_path(path);
                format!(
                    "\x1b]8;;file://{}/{path}\x1b\\{text}\x1b]8;;\x1b\\",
                    url_path(&encode_portable(root))
                )
            }
            None => text,
        }
    }
}

/// A portable path with its non-ASCII characters percent-encoded for a URL.
fn url_path(path: &str) -> String {
    let mut url = String::with_capacity(path.len());
    for c in path.chars() {
        match c.is_ascii() {
            true => url.push(c),
            false => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| {
                let _ = write!(url, "%{byte:02X}");
            }),
        }
    }
    url
}

/// `at` in the form that compilers print, if it is a plain cursor.
pub(super) fn compiler_location(at: &str) -> String {
    let (place, query) = at.split_once('?').map_or((at, ""), |(place, _)| (place, "?"));
    let found = place.rfind("@L").and_then(|from| {
        let (line, column) = place[from + 2..].split_once(":C")?;
        Some(format!("{}:{line}:{column}", &place[..from]))
    });
    // A column unit set with --index-io is set again when the location is used as a selector.
    found.filter(|_| query.is_empty() || at.contains("?indexing=")).unwrap_or_else(|| at.to_owned())
}

/// Line and column alone.
pub(super) fn position(at: &str) -> String {
    let location = compiler_location(at);
    let mut parts = location.rsplitn(3, ':');
    match (parts.next(), parts.next()) {
        (Some(column), Some(line)) if parts.next().is_some() => format!("{line}:{column}"),
        _ => location.clone(),
    }
}

pub(super) fn line(links: Links<'_>, at: &str, rest: &str) -> String {
    let (at, rest) = (links.paint(at), escape_for_terminal(rest));
    if rest.is_empty() { at } else { format!("{at}  {rest}") }
}

pub(super) fn location(links: Links<'_>, item: &Location, mark: &str) -> String {
    line(links, &item.at, &format!("{mark}{}", item.preview.as_deref().unwrap_or_default().trim()))
}

fn symbol(links: Links<'_>, item: &Symbol) -> String {
    line(links, &item.at, &format!("{} {}", item.symbol_kind, qualified(item)))
}

fn type_edge(links: Links<'_>, item: &TypeEdge) -> String {
    let (far, near) = match item.direction {
        TypeDirection::Supertypes => (&item.supertype, format!("base of {}", qualified(&item.subtype))),
        TypeDirection::Subtypes => (&item.subtype, format!("subclass of {}", qualified(&item.supertype))),
    };
    line(links, &far.at, &format!("{}, {near}", qualified(far)))
}

fn action(item: &Action) -> String {
    let kind = item.kind.as_deref().unwrap_or("action");
    let disabled = item.disabled.as_ref().map(|why| format!(", disabled: {why}")).unwrap_or_default();
    format!("{}. {} ({kind}{disabled})", item.number, item.title)
}

fn transaction(item: &Transaction) -> String {
    let state = match item.state {
        TransactionState::Applied => "applied",
        TransactionState::Undone => "undone",
        TransactionState::Damaged => {
            return format!("{}  damaged  {}", item.id, item.what.as_deref().unwrap_or_default());
        }
    };
    let what = item.what.as_deref().unwrap_or_default();
    format!("{}  {state}  {}  {what}", item.id, plural(item.files, "file"))
}

pub(super) fn diagnostic(links: Links<'_>, item: &Diagnostic) -> String {
    let severity = match item.severity {
        Severity::Error => Style::Error.paint("error"),
        Severity::Warning => Style::Warning.paint("warning"),
        Severity::Information | Severity::Hint => Style::Quiet.paint(item.severity.as_str()),
    };
    let source = item.source.filter(|source| *source != DiagnosticSource::Lsp).map(DiagnosticSource::as_str);
    let names: Vec<&str> = source.into_iter().chain(item.rule.as_deref()).collect();
    let rule = if names.is_empty() { String::new() } else { format!(" ({})", names.join(" ")) };
    // The notes are in the JSON form.
    let mut lines = lines_without_notes(&item.message).filter(|line| !line.trim().is_empty());
    let mut text =
        format!("{}  {severity}: {}{rule}\n", links.paint(&item.at), lines.next().unwrap_or_default());
    for more in lines {
        let _ = writeln!(text, "    {}", more.replace('\u{a0}', " ").trim());
    }
    if let Some(preview) = item.preview.as_deref().map(str::trim).filter(|preview| !preview.is_empty()) {
        let _ = writeln!(text, "    {}", escape_for_terminal(preview));
    }
    text
}

/// The last line of diagnostics, and why it may not be all.
pub(super) fn diagnostics_summary(found: &Diagnostics) -> String {
    let counts = &found.counts;
    let files = plural(found.files_checked, "file");
    let mut text = match &found.base {
        Some(base) => {
            let lists = [
                ("errors", counts.error, base.fixed.error, base.kept.error),
                ("warnings", counts.warning, base.fixed.warning, base.kept.warning),
                ("information", counts.information, base.fixed.information, base.kept.information),
            ];
            let shown = lists
                .into_iter()
                .filter(|(noun, new, fixed, kept)| *noun == "errors" || new + fixed + kept > 0);
            let parts: Vec<String> = shown
                .map(|(noun, new, fixed, kept)| {
                    format!("new {noun}: {new}, fixed: {fixed}, already there: {kept}")
                })
                .collect();
            let commit: String = base.commit.chars().take(SHORT_COMMIT).collect();
            format!("{} ({files} checked; base {commit})", parts.join("; "))
        }
        None => {
            let mut parts = vec![plural(counts.error, "error"), plural(counts.warning, "warning")];
            if counts.information > 0 {
                parts.push(format!("{} information", counts.information));
            }
            format!("{} in {files} checked", parts.join(", "))
        }
    };
    if let Some(caveat) = found.base.as_ref().and_then(|base| base.caveat.as_ref()) {
        let _ = write!(text, "\nthe base may not be exact: {caveat}");
    }
    for file in &found.not_checked {
        let _ = write!(text, "\nnot checked: {}: {}", file.uri, file.reason);
    }
    for source in &found.sources {
        if let Some(reason) = &source.reason {
            let _ = write!(text, "\n{} {} is not complete: {reason}", source.tool, source.version);
        }
    }
    text
}

/// How many digits of a commit ID are printed.
const SHORT_COMMIT: usize = 12;

/// The count and whether it is complete: `18 references, 26 unresolved (receiver type unknown): not complete`.
/// The summary of a list about whose completeness something is known; `counts` says how much is listed.
pub(super) fn completeness(
    printer: &Printer,
    verdict: &Completeness,
    counts: impl IntoIterator<Item = String>,
) -> String {
    let unresolved =
        (verdict.unresolved.count > 0).then(|| format!("{} unresolved", verdict.unresolved.count));
    let mut parts: Vec<String> = counts.into_iter().chain(unresolved).collect();
    let reason = verdict.reason.as_deref().unwrap_or_default();
    match verdict.status {
        CompletenessStatus::Complete => parts.push(format!("complete{}", printer.scope())),
        CompletenessStatus::Partial if parts.is_empty() => parts.push(format!("not complete: {reason}")),
        CompletenessStatus::Partial => return format!("{} ({reason}): not complete", parts.join(", ")),
        CompletenessStatus::Unknown => parts.push(format!("completeness unknown: {reason}")),
    }
    parts.join(", ")
}

fn hover(printer: &Printer, text: &Hover, budget: &mut Budget) {
    let lines: Vec<&str> = text.markdown.trim_end().lines().collect();
    let most = printer.limit.map_or(usize::MAX, |limit| limit as usize);
    let mut shown = 0;
    while shown < lines.len().min(most) && budget.push(&format!("{}\n", escape_for_terminal(lines[shown]))) {
        shown += 1;
    }
    if shown < lines.len() {
        let more = plural(lines.len() - shown, "more line");
        budget.last(&format!("{more}: {}", printer.whole(lines.len())));
    }
}

/// With `is_selector_only` (`locate --as`) the selector is printed on a line without anything else, to be copied.
fn print_resolution(links: Links<'_>, resolution: &Resolution, is_selector_only: bool, budget: &mut Budget) {
    if let Some(resolved) = &resolution.resolved {
        let text = if is_selector_only {
            format!("{}\n{}", escape_for_terminal(&resolved.at), uncertainty(resolved))
        } else {
            resolved_text(links, resolved)
        };
        budget.push(&text);
    }
}

fn resolved_text(links: Links<'_>, resolved: &Resolved) -> String {
    let mut text = String::new();
    for (number, source) in resolved.preview.lines().enumerate() {
        if number == 0 {
            let _ = writeln!(text, "{}", line(links, &resolved.at, source.trim()));
        } else {
            let _ = writeln!(text, "    {source}");
        }
    }
    if text.is_empty() {
        text = line(links, &resolved.at, "");
        text.push('\n');
    }
    if let (Some(name), Some(kind)) = (&resolved.qualname, &resolved.symbol_kind) {
        let _ = writeln!(text, "{kind} {name}");
    }
    for step in &resolved.evidence {
        let _ = writeln!(text, "  {} of {} at {}", step.step, step.to, links.location(&step.at));
    }
    text.push_str(&uncertainty(resolved));
    text
}

/// A line that explains why the resolution is uncertain; empty when it is certain.
fn uncertainty(resolved: &Resolved) -> String {
    match &resolved.relocation {
        Some(relocation) if !resolved.certified => {
            format!("not certain ({:.2}): {}\n", resolved.confidence.get(), relocation.reason)
        }
        _ => String::new(),
    }
}

fn candidates(links: Links<'_>, found: &[Candidate]) -> String {
    let mut text = String::new();
    for candidate in found {
        let what: String = [&candidate.symbol_kind, &candidate.qualname]
            .into_iter()
            .flatten()
            .map(|part| format!("{part} "))
            .collect();
        let place = Style::Path.paint(links.location(&candidate.at));
        let _ = writeln!(text, "  {place}  {what}({})", quoted(&candidate.reason));
        let _ = writeln!(text, "      {}", quoted(candidate.preview.trim()));
    }
    text
}

pub(super) fn error_text(printer: &Printer, bundle: &Bundle, error: &ErrorBody) -> String {
    let mut text =
        format!("{} {}: {}\n", Style::Error.paint("error:"), error.symbol.as_str(), quoted(&error.message));
    match &error.data {
        Some(ErrorData::Syntax { text: source, span: [start, end], .. }) => {
            let (start, end) = (*start as usize, *end as usize);
            let column = |to: usize| source.get(..to).unwrap_or(source).chars().count();
            let (before, width) = (column(start), column(end).saturating_sub(column(start)).max(1));
            let _ = writeln!(
                text,
                "  {}\n  {}{}",
                quoted(source),
                " ".repeat(before),
                Style::Error.paint("^".repeat(width))
            );
        }
        Some(ErrorData::Suggestions { selectors }) if !selectors.is_empty() => {
            let _ = writeln!(text, "did you mean:");
            for selector in selectors {
                let _ = writeln!(text, "  {}", quoted(selector));
            }
        }
        Some(ErrorData::Stderr { lines }) if !lines.is_empty() => {
            let _ = writeln!(text, "last lines of the server's stderr:");
            for line in lines {
                let _ = writeln!(text, "  {}", quoted(line));
            }
        }
        Some(ErrorData::Tried { attempts }) => {
            for attempt in attempts {
                let _ = writeln!(text, "  tried {attempt}");
            }
        }
        _ => {}
    }
    if let Some(edits) = &bundle.edits {
        text.push_str(&edits::checks(edits, &error.message));
    }
    if let Some(hint) = &error.hint {
        let _ = writeln!(text, "{} {}", Style::Hint.paint("hint:"), printer.with_workspace(hint));
    }
    text
}
