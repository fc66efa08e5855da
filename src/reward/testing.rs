//! Test edits: texts of both sides with markers for the diagnostics of a server.

use std::collections::BTreeMap;

use super::judge::{EditSides, FileView, JudgedEdit, judge};
use super::saturation::weight;
use crate::model::facts::Diagnostic;
use crate::model::request::Severity;
use crate::model::reward::OutstandingReason;
use crate::path::{AbsPath, DocUri};
use crate::text::{Position, Range};
use crate::workspace::files::Document;

/// A file: its text, its diagnostics, and its diagnostics without suppressions.
struct CaseFile {
    document: Document,
    found: Vec<Diagnostic>,
    bare: Option<Vec<Diagnostic>>,
}

/// An edit.
#[derive(Default)]
pub(super) struct Case {
    base: BTreeMap<String, CaseFile>,
    head: BTreeMap<String, CaseFile>,
}

fn diagnostic(
    path: &str,
    lines: (u32, u32),
    severity: Severity,
    rule: Option<&str>,
    message: &str,
) -> Diagnostic {
    let tags = if severity == Severity::Hint { vec!["unnecessary".to_owned()] } else { Vec::new() };
    Diagnostic {
        uri: DocUri::parse(path).unwrap(),
        range: Range::new(Position::new(lines.0, 4), Position::new(lines.1, 40)),
        at: String::new(),
        source: None,
        severity,
        rule: rule.map(str::to_owned),
        message: message.to_owned(),
        symbol: None,
        tags,
        related: Vec::new(),
        preview: None,
    }
}

/// Reads the markers at the ends of lines: `#! rule` is an error, `#? rule` a suppressed error, `#~` unreachable code, and `#!`
/// alone a syntax error. The markers are not part of the text.
fn read(path: &str, marked: &str) -> CaseFile {
    let (mut text, mut found, mut hidden) = (String::new(), Vec::new(), Vec::new());
    for (number, line) in marked.lines().enumerate() {
        let number = u32::try_from(number).unwrap();
        let error = |rule: &str| {
            let rule = Some(rule).filter(|rule| !rule.is_empty());
            let message = if rule.is_none() { "Expected expression" } else { "wrong" };
            diagnostic(path, (number, number), Severity::Error, rule, message)
        };
        let (code, mark) = line
            .rsplit_once(" #")
            .filter(|(_, rest)| rest.starts_with(['!', '?', '~']))
            .unwrap_or((line, ""));
        match mark.split_at(mark.len().min(1)) {
            ("!", rule) => found.push(error(rule.trim())),
            ("?", rule) => hidden.push(error(rule.trim())),
            ("~", _) => {
                found.push(diagnostic(path, (number, number), Severity::Hint, None, "Code is unreachable"));
            }
            _ => {}
        }
        text.push_str(code);
        text.push('\n');
    }
    let bare = (!hidden.is_empty()).then(|| found.iter().chain(&hidden).cloned().collect());
    let document = Document::new(AbsPath::new(format!("/w/{path}")).unwrap(), text.into_bytes());
    CaseFile { document, found, bare }
}

impl Case {
    /// An edit of one file.
    pub(super) fn of(base: &str, head: &str) -> Self {
        Self::default().base("a.py", base).head("a.py", head)
    }

    pub(super) fn base(mut self, path: &str, text: &str) -> Self {
        self.base.insert(path.to_owned(), read(path, text));
        self
    }

    pub(super) fn head(mut self, path: &str, text: &str) -> Self {
        self.head.insert(path.to_owned(), read(path, text));
        self
    }

    pub(super) fn judged(&self) -> JudgedEdit {
        let side = |files: &'_ BTreeMap<String, CaseFile>| -> Vec<String> { files.keys().cloned().collect() };
        let mut sides = EditSides::default();
        for path in side(&self.base) {
            sides.base.insert(path.clone(), (DocUri::parse(&path).unwrap(), view(&path, &self.base[&path])));
        }
        for path in side(&self.head) {
            sides.head.insert(path.clone(), (DocUri::parse(&path).unwrap(), view(&path, &self.head[&path])));
        }
        judge(&sides)
    }

    /// How much lower the guarded count is after the edit.
    pub(super) fn drop(&self) -> f64 {
        let judged = self.judged();
        weight(&judged.before) - weight(&judged.after)
    }
}

/// Why the diagnostic of an edit is outstanding that reports `part` of `base` by a rule; `None` if it is repaired in place.
pub(super) fn outstanding(base: &str, fails: (&str, &str), head: &str) -> Option<OutstandingReason> {
    outstanding_with(base, fails, "wrong", head)
}

/// The same for a diagnostic with a message.
pub(super) fn outstanding_with(
    base: &str,
    (part, rule): (&str, &str),
    message: &str,
    head: &str,
) -> Option<OutstandingReason> {
    let mut case = Case::of(base, head);
    let at = base.find(part).unwrap();
    let line = u32::try_from(base[..at].matches('\n').count()).unwrap();
    let column = u32::try_from(at - base[..at].rfind('\n').map_or(0, |at| at + 1)).unwrap();
    let mut found = diagnostic("a.py", (line, line), Severity::Error, Some(rule), message);
    let end = column + u32::try_from(part.len()).unwrap();
    found.range = Range::new(Position::new(line, column), Position::new(line, end));
    case.base.get_mut("a.py").unwrap().found.push(found);
    case.judged().after.outstanding.first().map(|one| one.why)
}

fn view<'f>(path: &str, file: &'f CaseFile) -> FileView<'f> {
    FileView {
        document: &file.document,
        found: &file.found,
        bare: file.bare.as_deref(),
        seen: super::scope_pin::is_checked_name(path),
    }
}
