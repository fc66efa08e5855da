//! Judges an edit: which diagnostics were repaired, and which only disappeared.
//!
//! The server's answers come in as diagnostics of both sides; everything else is read from the texts. A diagnostic that
//! disappeared stays outstanding unless the code it was about is still there, is reachable and readable, and was changed or is
//! used differently. Other suspicious changes are counted in [`super::integrity`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::code::Code;
use super::failing::FailingExpression;
use super::fate::{FailingCode, Fate, fate, still_there};
use super::fingerprint::{self, FileFingerprint, ScopeComparison};
use super::saturation::weight;
use super::{failing, integrity, reachability, scope_pin, syntax};
use crate::model::facts::Diagnostic;
use crate::model::request::Severity;
use crate::model::reward::{Integrity, OutstandingDiagnostic, OutstandingReason, RewardScope};
use crate::path::DocUri;
use crate::text::ColumnUnit;
use crate::workspace::files::Document;

/// A file on one side of the edit.
#[derive(Debug, Clone)]
pub struct FileView<'a> {
    /// Its content.
    pub document: &'a Document,
    /// The server's diagnostics, hints included.
    pub found: &'a [Diagnostic],
    /// The diagnostics without the suppressions that the edit adds; `None` where it adds none.
    pub bare: Option<&'a [Diagnostic]>,
    /// Whether the server analyzes it.
    pub seen: bool,
}

/// Both sides of an edit: every file that it touches, and the files in which it can have consequences.
#[derive(Debug, Clone, Default)]
pub struct EditSides<'a> {
    /// Before.
    pub base: BTreeMap<String, (DocUri, FileView<'a>)>,
    /// After.
    pub head: BTreeMap<String, (DocUri, FileView<'a>)>,
    /// How many configuration files of the server differ.
    pub config_changed: u32,
    /// The unit of columns.
    pub unit: ColumnUnit,
}

/// The judgment of an edit.
#[derive(Debug, Clone, Default)]
pub struct JudgedEdit {
    /// The diagnostics before.
    pub before: RewardScope,
    /// The diagnostics after, and those still outstanding.
    pub after: RewardScope,
    /// The integrity flags.
    pub integrity: Integrity,
    /// How the diagnostics of both sides compare.
    pub compared: ScopeComparison,
    /// Where expressions that failed before are still used, and no longer fail.
    pub repaired: Vec<RepairedPlace>,
}

/// A statement whose failing expression is still there, and no longer fails.
#[derive(Debug, Clone)]
pub struct RepairedPlace {
    /// The file after the edit.
    pub document: Document,
    /// The statement in it.
    pub span: Range<usize>,
    /// The expression.
    pub(super) failing: FailingExpression,
}

impl JudgedEdit {
    /// Whether the edit would be rewarded, judged by the texts alone.
    #[must_use]
    pub fn is_gain(&self) -> bool {
        weight(&self.after) < weight(&self.before) && !self.integrity.is_hard()
    }
}

/// One side with its code parsed.
pub(super) struct SideCode<'s> {
    pub(super) files: &'s BTreeMap<String, (DocUri, FileView<'s>)>,
    pub(super) code: BTreeMap<&'s str, Arc<Code>>,
}

impl<'s> SideCode<'s> {
    /// Parses the files of one side that matter: those that differ from the other side, and those with diagnostics.
    fn read(
        files: &'s BTreeMap<String, (DocUri, FileView<'s>)>,
        other: &BTreeMap<String, (DocUri, FileView<'_>)>,
    ) -> Self {
        let differs = |name: &str, view: &FileView<'_>| {
            other.get(name).is_none_or(|(_, other)| other.document.digest != view.document.digest)
        };
        let has_diagnostics = |view: &FileView<'_>| {
            view.bare.is_some()
                || view
                    .found
                    .iter()
                    .any(|item| item.severity > Severity::Hint || reachability::is_unreachable_hint(item))
        };
        let matters = files.iter().filter(|(name, (_, view))| {
            differs(name, view)
                || has_diagnostics(view)
                || other.get(*name).is_some_and(|(_, view)| has_diagnostics(view))
        });
        let code = matters.map(|(name, (_, view))| (name.as_str(), Code::of(&view.document.text)));
        Self { files, code: code.collect() }
    }

    pub(super) fn view(&self, name: &str) -> Option<&FileView<'s>> {
        self.files.get(name).map(|(_, view)| view)
    }

    /// The files that the server analyzes, with their code.
    pub(super) fn seen(&self) -> impl Iterator<Item = (&'s str, &Code)> {
        self.code
            .iter()
            .filter(|(name, _)| self.view(name).is_some_and(|view| view.seen))
            .map(|(name, code)| (*name, &**code))
    }
}

/// The byte offset at which a diagnostic begins.
pub(super) fn offset(view: &FileView<'_>, found: &Diagnostic, unit: ColumnUnit) -> usize {
    let Document { text, lines, .. } = view.document;
    lines.offset(text, found.range.start, unit).unwrap_or(text.len())
}

/// The byte range of a diagnostic.
fn span(view: &FileView<'_>, found: &Diagnostic, unit: ColumnUnit) -> Range<usize> {
    let Document { text, lines, .. } = view.document;
    let start = offset(view, found, unit);
    start..lines.offset(text, found.range.end, unit).unwrap_or(text.len()).max(start)
}

/// Judges an edit.
#[must_use]
pub fn judge(sides: &EditSides<'_>) -> JudgedEdit {
    let (base, head) = (SideCode::read(&sides.base, &sides.head), SideCode::read(&sides.head, &sides.base));
    let lineage = scope_pin::lineage(&base, &head);
    let symbol = |side: &SideCode<'_>, name: &str, view: &FileView<'_>, found: &Diagnostic| {
        side.code
            .get(name)
            .map_or_else(String::new, |code| code.symbol_at(offset(view, found, sides.unit)).to_owned())
    };
    let list = |side: &SideCode<'_>, bare: bool| -> Vec<(FileFingerprint, Diagnostic, String)> {
        let mut all = Vec::new();
        for (name, (_, view)) in side.files {
            let found = view.bare.filter(|_| bare).unwrap_or(view.found);
            for item in found.iter().filter(|item| item.severity > Severity::Hint) {
                let print = fingerprint::of(item, &symbol(side, name, view, item));
                let known = lineage
                    .iter()
                    .find(|(_, now)| now.as_str() == name)
                    .map_or(name.as_str(), |(then, _)| then.as_str());
                all.push(((known.to_owned(), print), item.clone(), name.clone()));
            }
        }
        all
    };
    let (before, after, bare) = (list(&base, false), list(&head, false), list(&head, true));
    let keys = |list: &[(FileFingerprint, Diagnostic, String)]| {
        list.iter().map(|(entry, ..)| entry.clone()).collect::<Vec<_>>()
    };
    let paired = fingerprint::pair(&keys(&before), &keys(&bare));
    let mut outstanding: Vec<OutstandingDiagnostic> = Vec::new();
    let hidden = fingerprint::pair(&keys(&bare), &keys(&after));
    for &at in &hidden.gone {
        let (entry, item, name) = &bare[at];
        outstanding.push(outstanding_diagnostic(&head, name, entry, item, OutstandingReason::Suppressed));
    }
    let mut repaired = Vec::new();
    for &at in &paired.gone {
        let (entry, item, name) = &before[at];
        let (fate, place) = what_became((sides, &base, &head), &lineage, name, item);
        repaired.extend(place);
        let why = match fate {
            Fate::InPlace => continue,
            Fate::Replaced => OutstandingReason::Replaced,
            Fate::Removed(why) => why,
            Fate::Declared => OutstandingReason::Declared,
        };
        outstanding.push(outstanding_diagnostic(&base, name, entry, item, why));
    }
    outstanding.sort_by(|a, b| (a.uri.to_string(), a).cmp(&(b.uri.to_string(), b)));
    let scope = |side: &SideCode<'_>, other: &SideCode<'_>| {
        let of = side.files.iter().map(|(name, (uri, view))| {
            let all = view.found.iter().map(|item| (item, symbol(side, name, view, item)));
            (uri.clone(), all.collect())
        });
        let missing = other.files.iter().filter(|(name, _)| !side.files.contains_key(*name));
        fingerprint::scope(of.chain(missing.map(|(_, (uri, _))| (uri.clone(), Vec::new()))))
    };
    let (was, mut now) = (scope(&base, &head), scope(&head, &base));
    let compared = fingerprint::compare(&was, &now);
    now.outstanding = outstanding;
    let mut flags = integrity::of(&base, &head, &lineage);
    flags.unreachable_added = reachability::added(&base, &head, sides.unit);
    flags.parse_errors = syntax::added(&base, &head);
    flags.files_removed = scope_pin::removed(&base, &head);
    flags.config_changed = sides.config_changed;
    JudgedEdit { before: was, after: now, integrity: flags, compared, repaired }
}

fn outstanding_diagnostic(
    side: &SideCode<'_>,
    name: &str,
    (_, print): &FileFingerprint,
    item: &Diagnostic,
    why: OutstandingReason,
) -> OutstandingDiagnostic {
    let uri = side.files.get(name).map_or_else(|| item.uri.clone(), |(uri, _)| uri.clone());
    OutstandingDiagnostic {
        uri,
        symbol: print.symbol.clone(),
        source: print.source,
        rule: print.rule.clone(),
        severity: item.severity,
        why,
    }
}

/// What became of the expression that a diagnostic of the base was about.
fn what_became(
    (sides, base, head): (&EditSides<'_>, &SideCode<'_>, &SideCode<'_>),
    lineage: &BTreeMap<String, String>,
    name: &str,
    item: &Diagnostic,
) -> (Fate, Option<RepairedPlace>) {
    let (Some(view), Some(code)) = (base.view(name), base.code.get(name)) else {
        return (Fate::InPlace, None);
    };
    let now = lineage.get(name).map_or(name, String::as_str);
    let stays = head.view(now).filter(|view| view.seen);
    let was_broken = item.rule.is_none() && syntax::is_broken(view, Some(code));
    let new_code = head.code.get(now).filter(|_| stays.is_some()).map(|code| &**code);
    if stays.is_some_and(|view| syntax::is_broken(view, new_code)) && !was_broken {
        return (Fate::Removed(OutstandingReason::SyntaxError), None);
    }
    if let Some(new_code) = new_code.filter(|_| was_broken) {
        // A file with syntax errors has no statements to look for, so most of its code must still be there.
        let tokens =
            |code: &Code| code.statements.iter().map(|statement| statement.tokens.len()).sum::<usize>();
        let is_less = tokens(new_code) * 10 < tokens(code) * 7;
        let fate = if is_less { Fate::Removed(OutstandingReason::CodeGone) } else { Fate::InPlace };
        return (fate, None);
    }
    let Some(statement) = code.statement_at(offset(view, item, sides.unit)) else {
        let is_gone = stays.is_none();
        return (if is_gone { Fate::Removed(OutstandingReason::FileGone) } else { Fate::InPlace }, None);
    };
    let span = span(view, item, sides.unit);
    let failing = failing::at(&view.document.text, span, (item.rule.as_deref(), &item.message));
    let failing_code =
        FailingCode { sides, base, head, names: (name, now), own: code, statement, failing: &failing };
    match fate(&failing_code) {
        Fate::Removed(OutstandingReason::CodeGone) if stays.is_none() => {
            (Fate::Removed(OutstandingReason::FileGone), None)
        }
        Fate::InPlace => {
            let place = still_there(&failing_code).and_then(|(file, span)| {
                let document = head.view(file)?.document.clone();
                Some(RepairedPlace { document, span, failing: failing.clone() })
            });
            (Fate::InPlace, place)
        }
        fate => (fate, None),
    }
}

#[cfg(test)]
mod tests {
    use crate::model::reward::OutstandingReason;
    use crate::reward::testing::Case;

    const BASE: &str = "def f(x, y):\n    a = x.count #! r\n    y.append(a)\n    return a\n";

    #[test]
    fn a_type_checking_import_repairs_nothing() {
        let base = "def f(a):\n    return isinstance(a, Book) #! reportUndefinedVariable\n";
        let mended = base.replace(" #! reportUndefinedVariable", "");
        let import = "from shop import Book\n";
        let other = format!("{import}b = Book()\n");
        let with = |head: String| Case::of(base, &head).base("b.py", &other).head("b.py", &other).drop();
        assert_eq!(with(format!("{import}{mended}")), 1.0);
        assert_eq!(with(format!("if TYPE_CHECKING:\n    {import}{mended}")), 0.0);
    }

    #[test]
    fn a_name_that_other_files_use_is_not_an_indirection() {
        let base = "def load(name):\n    rv = find(name)\n    if not value: #! reportUndefinedVariable\n        return rv\n";
        let mended = base.replace("value: #! reportUndefinedVariable", "rv:");
        let other = "def put(value):\n    return keep(value)\n";
        let alone = Case::of(base, &mended);
        assert_eq!(alone.drop(), 1.0);
        let beside = Case::of(base, &mended).base("b.py", other).head("b.py", other);
        assert_eq!(beside.drop(), 1.0, "the function was there before");
        let detour = Case::of(base, &mended).base("b.py", "").head("b.py", other);
        assert_eq!(detour.drop(), 0.0);
    }

    #[test]
    fn code_that_goes_or_becomes_nothing_is_outstanding() {
        for instead in [
            "",
            "    pass\n",
            "    # a = x.count\n",
            "    \"a = x.count\"\n",
            "    a = 1\n",
            "    a = ''\n",
            "    del x\n",
            "    ...\n",
        ] {
            let case = Case::of(BASE, &BASE.replace("    a = x.count #! r\n", instead));
            assert_eq!(case.drop(), 0.0, "{instead:?}");
            assert_eq!(case.judged().after.outstanding[0].why, OutstandingReason::CodeGone, "{instead:?}");
        }
    }

    #[test]
    fn changed_code_is_repaired() {
        for instead in [
            "    a = x.total\n",
            "    a = len(x)\n",
            "    a = x.counts\n",
            "    if x:\n        a = x.count\n",
            "    a = 0 if x is None else x.count\n",
        ] {
            let case = Case::of(BASE, &BASE.replace("    a = x.count #! r\n", instead));
            assert_eq!((case.drop(), case.judged().integrity.flags()), (1.0, vec![]), "{instead:?}");
        }
    }

    #[test]
    fn a_suppressed_diagnostic_stays_outstanding() {
        let case = Case::of(
            BASE,
            "def f(x, y):\n    a = x.count  # type: ignore #? r\n    y.append(a)\n    return a\n",
        );
        assert_eq!((case.drop(), case.judged().integrity.suppressions_added), (0.0, 1));
    }

    #[test]
    fn an_unused_import_may_be_removed() {
        let case = Case::of("import gone #! r\nx = 1\n", "x = 1\n");
        assert_eq!(case.drop(), 0.5);
        let used = Case::of("import gone #! r\nx = gone.f()\n", "x = 1\n");
        assert_eq!(used.drop(), 0.0);
        // A re-exported name counts as used.
        for base in ["from gone import y as y #! r\nx = 1\n", "import gone #! r\n__all__ = ['gone']\n"] {
            let head = base.split_once('\n').unwrap().1;
            assert_eq!(Case::of(base, head).drop(), 0.0, "{base}");
        }
        let package = |text| {
            Case::default().base("a/__init__.py", "import gone #! r\nx = 1\n").head("a/__init__.py", text)
        };
        assert_eq!(package("x = 1\n").drop(), 0.0);
    }

    const ASKED: &str = "def f(val, rows):\n    return val + rows #! reportOperatorIssue\n";

    #[test]
    fn a_value_assigned_to_an_unread_name_is_not_a_repair() {
        for body in [
            "_ = val + str(rows)\n    return True",
            "unused: str = val + str(rows)\n    return val",
            "a = val + str(rows)\n    b = a\n    return val",
            "a = b = val + str(rows)\n    return val",
            "a = val + str(rows)\n    del a\n    return val",
            "a = val + str(rows)\n    a\n    return val",
        ] {
            assert_eq!(Case::of(ASKED, &format!("def f(val, rows):\n    {body}\n")).drop(), 0.0, "{body}");
        }
        for body in [
            "a = val + str(rows)\n    return a",
            "a: str = val + str(rows)\n    b = a\n    return b",
            "a = val + str(rows)\n    def g():\n        return a\n    return g()",
        ] {
            assert_eq!(Case::of(ASKED, &format!("def f(val, rows):\n    {body}\n")).drop(), 1.0, "{body}");
        }
        // A name that was not read before need not be read after.
        let base = "def f(val):\n    a = val + 1 #! reportOperatorIssue\n";
        assert_eq!(Case::of(base, "def f(val):\n    a = val + str(1)\n").drop(), 1.0);
    }

    #[test]
    fn a_new_function_without_a_caller_is_not_a_repair() {
        let helper = "def _sum(val, rows):\n    return val + str(rows)\n";
        for body in ["return val", "_sum\n    return val", "_ = _sum(val, rows)\n    return val"] {
            let head = format!("{helper}def f(val, rows):\n    {body}\n");
            assert_eq!(Case::of(ASKED, &head).drop(), 0.0, "{body}");
        }
        let called = "def f(val, rows):\n    return _sum(val, rows)\n";
        assert_eq!(Case::of(ASKED, &format!("{helper}{called}")).drop(), 1.0);
        let turned = format!("{helper}def _all(val, rows):\n    return _sum(val, rows)\n");
        assert_eq!(Case::of(ASKED, &format!("{turned}{}", called.replace("_sum", "_all"))).drop(), 1.0);
        assert_eq!(Case::of(ASKED, &format!("{turned}def f(val, rows):\n    return val\n")).drop(), 0.0);
    }
}
