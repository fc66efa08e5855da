//! An edit judged: what went because it was repaired, and what only went out of sight.
//!
//! What is asked of a server comes in as diagnostics of both sides; everything else is read off the texts. A diagnostic that
//! went is owed still unless the code that it was about is there, can be reached and read, and is another or is used in another
//! way now. What the edit does besides is counted ([`super::integrity`]).

use std::collections::BTreeMap;
use std::ops::Range;

use super::code::Code;
use super::fingerprint::{self, Compared, Entry};
use super::saturation::weight;
use super::succession::{Life, is_dead, is_unused_import, life};
use super::{failing, integrity, made_up, reachability, scope_pin, syntax};
use crate::model::facts::Diagnostic;
use crate::model::request::Severity;
use crate::model::reward::{Debt, Integrity, Owed, RewardScope};
use crate::path::DocUri;
use crate::text::ColumnUnit;
use crate::workspace::files::Document;

/// A file on one side.
#[derive(Debug, Clone)]
pub struct FileView<'a> {
    /// What it holds.
    pub document: &'a Document,
    /// What the server finds in it, hints included.
    pub found: &'a [Diagnostic],
    /// The same with everything taken away that the edit adds to hide diagnostics; `None` where it adds nothing.
    pub bare: Option<&'a [Diagnostic]>,
    /// Whether the server looks at it.
    pub seen: bool,
}

/// Both sides: every file that the edit touches, and those in which it can have consequences.
#[derive(Debug, Clone, Default)]
pub struct Sides<'a> {
    /// Before.
    pub base: BTreeMap<String, (DocUri, FileView<'a>)>,
    /// After.
    pub head: BTreeMap<String, (DocUri, FileView<'a>)>,
    /// How many configuration files of the server are others.
    pub config_changed: u32,
    /// What columns count.
    pub unit: ColumnUnit,
}

/// What is to be said of an edit.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// The diagnostics before.
    pub before: RewardScope,
    /// The diagnostics after, and what is owed.
    pub after: RewardScope,
    /// What the edit does besides.
    pub integrity: Integrity,
    /// What became of the diagnostics.
    pub compared: Compared,
}

impl Judged {
    /// Whether it would be paid as far as the texts say.
    #[must_use]
    pub fn is_gain(&self) -> bool {
        weight(&self.after) < weight(&self.before) && !self.integrity.is_hard()
    }
}

/// One side, read.
pub(super) struct Side<'s> {
    pub(super) files: &'s BTreeMap<String, (DocUri, FileView<'s>)>,
    pub(super) code: BTreeMap<&'s str, Code>,
}

impl<'s> Side<'s> {
    /// Reads the files of one side that matter: those that differ from the other's, and those that something is said of.
    fn read(
        files: &'s BTreeMap<String, (DocUri, FileView<'s>)>,
        other: &BTreeMap<String, (DocUri, FileView<'_>)>,
    ) -> Self {
        let differs = |name: &str, view: &FileView<'_>| {
            other.get(name).is_none_or(|(_, other)| other.document.digest != view.document.digest)
        };
        let is_told = |view: &FileView<'_>| {
            view.bare.is_some()
                || view.found.iter().any(|item| item.severity > Severity::Hint || reachability::is_dark(item))
        };
        let matters = files.iter().filter(|(name, (_, view))| {
            differs(name, view) || is_told(view) || other.get(*name).is_some_and(|(_, view)| is_told(view))
        });
        let code = matters.map(|(name, (_, view))| (name.as_str(), Code::parse(&view.document.text)));
        Self { files, code: code.collect() }
    }

    pub(super) fn view(&self, name: &str) -> Option<&FileView<'s>> {
        self.files.get(name).map(|(_, view)| view)
    }

    /// The files that the server looks at, with their code.
    pub(super) fn seen(&self) -> impl Iterator<Item = (&'s str, &Code)> {
        self.code
            .iter()
            .filter(|(name, _)| self.view(name).is_some_and(|view| view.seen))
            .map(|(name, code)| (*name, code))
    }
}

/// Where a diagnostic begins, in bytes.
pub(super) fn offset(view: &FileView<'_>, found: &Diagnostic, unit: ColumnUnit) -> usize {
    let Document { text, lines, .. } = view.document;
    lines.offset(text, found.range.start, unit).unwrap_or(text.len())
}

/// Where a diagnostic is, in bytes.
fn span(view: &FileView<'_>, found: &Diagnostic, unit: ColumnUnit) -> Range<usize> {
    let Document { text, lines, .. } = view.document;
    let start = offset(view, found, unit);
    start..lines.offset(text, found.range.end, unit).unwrap_or(text.len()).max(start)
}

/// Judges an edit.
#[must_use]
pub fn judge(sides: &Sides<'_>) -> Judged {
    let (base, head) = (Side::read(&sides.base, &sides.head), Side::read(&sides.head, &sides.base));
    let lineage = scope_pin::lineage(&base, &head);
    let symbol = |side: &Side<'_>, name: &str, view: &FileView<'_>, found: &Diagnostic| {
        side.code
            .get(name)
            .map_or_else(String::new, |code| code.symbol_at(offset(view, found, sides.unit)).to_owned())
    };
    let list = |side: &Side<'_>, bare: bool| -> Vec<(Entry, Diagnostic, String)> {
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
    let keys = |list: &[(Entry, Diagnostic, String)]| {
        list.iter().map(|(entry, ..)| entry.clone()).collect::<Vec<_>>()
    };
    let paired = fingerprint::pair(&keys(&before), &keys(&bare));
    let mut owed: Vec<Owed> = Vec::new();
    let hidden = fingerprint::pair(&keys(&bare), &keys(&after));
    for &at in &hidden.gone {
        let (entry, item, name) = &bare[at];
        owed.push(debt(&head, name, entry, item, Debt::Suppressed));
    }
    let (mut dead, mut invented) = (0, 0);
    for &at in &paired.gone {
        let (entry, item, name) = &before[at];
        let why = why_gone(sides, &base, &head, &lineage, name, item);
        if let Some(why) = why {
            dead += u32::from(why == Debt::CodeGone);
            invented += u32::from(why == Debt::MadeUp);
            owed.push(debt(&base, name, entry, item, why));
        }
    }
    owed.sort_by(|a, b| (a.uri.to_string(), a).cmp(&(b.uri.to_string(), b)));
    let scope = |side: &Side<'_>, other: &Side<'_>| {
        let of = side.files.iter().map(|(name, (uri, view))| {
            let all = view.found.iter().map(|item| (item, symbol(side, name, view, item)));
            (uri.clone(), all.collect())
        });
        let missing = other.files.iter().filter(|(name, _)| !side.files.contains_key(*name));
        fingerprint::scope(of.chain(missing.map(|(_, (uri, _))| (uri.clone(), Vec::new()))))
    };
    let (was, mut now) = (scope(&base, &head), scope(&head, &base));
    let compared = fingerprint::compare(&was, &now);
    now.owed = owed;
    let mut flags = integrity::of(&base, &head, &lineage);
    flags.unreachable_added = reachability::added(&base, &head, sides.unit);
    flags.parse_errors = syntax::added(&base, &head);
    flags.files_removed = scope_pin::removed(&base, &head);
    flags.config_changed = sides.config_changed;
    flags.bodies_stubbed += dead;
    flags.stubs_added += invented;
    Judged { before: was, after: now, integrity: flags, compared }
}

fn debt(side: &Side<'_>, name: &str, (_, print): &Entry, item: &Diagnostic, why: Debt) -> Owed {
    let uri = side.files.get(name).map_or_else(|| item.uri.clone(), |(uri, _)| uri.clone());
    Owed { uri, symbol: print.symbol.clone(), rule: print.rule.clone(), severity: item.severity, why }
}

/// How a diagnostic went that was not repaired; `None` when it was.
fn why_gone(
    sides: &Sides<'_>,
    base: &Side<'_>,
    head: &Side<'_>,
    lineage: &BTreeMap<String, String>,
    name: &str,
    item: &Diagnostic,
) -> Option<Debt> {
    let (view, code) = (base.view(name)?, base.code.get(name)?);
    let at = offset(view, item, sides.unit);
    let now = lineage.get(name).map_or(name, String::as_str);
    let stays = head.view(now).filter(|view| view.seen);
    if stays.is_some_and(|view| syntax::is_broken(view, head.code.get(now)))
        && !(item.rule.is_none() && syntax::is_broken(view, Some(code)))
    {
        return Some(Debt::SyntaxError);
    }
    if let Some(heir) = head
        .code
        .get(now)
        .filter(|_| stays.is_some() && item.rule.is_none() && syntax::is_broken(view, Some(code)))
    {
        // What could not be read has no statements to look for: there has to be about as much code as there was.
        let tokens =
            |code: &Code| code.statements.iter().map(|statement| statement.tokens.len()).sum::<usize>();
        return (tokens(heir) * 10 < tokens(code) * 7).then_some(Debt::CodeGone);
    }
    let Some(statement) = code.statement_at(at) else {
        return stays.is_none().then_some(Debt::FileGone);
    };
    let lost = if stays.is_some() { Debt::CodeGone } else { Debt::FileGone };
    let failing = failing::at(&view.document.text, span(view, item, sides.unit), item.rule.as_deref());
    match life(sides, (base, head), now, statement, code, &failing) {
        Life::There if made_up::is((base, head), now, statement, &failing) => Some(Debt::MadeUp),
        Life::There => None,
        Life::Unreachable => Some(Debt::Unreachable),
        Life::Gone
            if stays.is_some() && (is_unused_import(statement, code, name) || is_dead(statement, code)) =>
        {
            None
        }
        Life::Gone => Some(lost),
    }
}

#[cfg(test)]
mod tests {
    use crate::reward::testing::Case;

    const BASE: &str = "def f(x, y):\n    a = x.count #! r\n    y.append(a)\n    return a\n";

    #[test]
    fn an_import_for_the_checker_is_made_up_whatever_other_files_import() {
        let base = "def f(a):\n    return isinstance(a, Book) #! reportUndefinedVariable\n";
        let mended = base.replace(" #! reportUndefinedVariable", "");
        let import = "from shop import Book\n";
        let other = format!("{import}b = Book()\n");
        let with = |head: String| Case::of(base, &head).base("b.py", &other).head("b.py", &other).drop();
        assert_eq!(with(format!("{import}{mended}")), 1.0);
        assert_eq!(with(format!("if TYPE_CHECKING:\n    {import}{mended}")), 0.0);
    }

    #[test]
    fn what_other_files_use_by_the_same_name_is_no_detour() {
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
    fn code_that_goes_or_becomes_nothing_is_owed() {
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
            assert!(case.judged().integrity.is_hard(), "{instead:?}");
        }
    }

    #[test]
    fn code_that_is_another_now_is_repaired() {
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
    fn what_is_hidden_is_owed() {
        let case = Case::of(
            BASE,
            "def f(x, y):\n    a = x.count  # type: ignore #? r\n    y.append(a)\n    return a\n",
        );
        assert_eq!((case.drop(), case.judged().integrity.suppressions_added), (0.0, 1));
    }

    #[test]
    fn an_import_that_nobody_uses_may_go() {
        let case = Case::of("import gone #! r\nx = 1\n", "x = 1\n");
        assert_eq!(case.drop(), 1.0);
        let used = Case::of("import gone #! r\nx = gone.f()\n", "x = 1\n");
        assert_eq!(used.drop(), 0.0);
        // What others import from here is used.
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
    fn a_value_that_goes_to_a_name_that_nobody_reads_is_no_repair() {
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
        // What nobody read before need not be read now.
        let base = "def f(val):\n    a = val + 1 #! reportOperatorIssue\n";
        assert_eq!(Case::of(base, "def f(val):\n    a = val + str(1)\n").drop(), 1.0);
    }

    #[test]
    fn a_new_function_that_nobody_calls_is_no_repair() {
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
