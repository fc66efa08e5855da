//! An edit judged: what went because it was repaired, and what only went out of sight.
//!
//! What is asked of a server comes in as diagnostics of both sides; everything else is read off the texts. A diagnostic that
//! went is owed still unless the code that it was about is there, can be reached and read, and is another or is used in another
//! way now. What the edit does besides is counted ([`super::integrity`]).

use std::collections::{BTreeMap, BTreeSet};

use super::code::{Code, Statement};
use super::fingerprint::{self, Compared, Entry};
use super::{integrity, reachability, scope_pin, syntax};
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
    let mut dead = 0;
    for &at in &paired.gone {
        let (entry, item, name) = &before[at];
        let why = why_gone(sides, &base, &head, &lineage, name, item);
        if let Some(why) = why {
            dead += u32::from(why == Debt::CodeGone);
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
    match life(sides, head, now, statement, code) {
        Life::There => None,
        Life::Unreachable => Some(Debt::Unreachable),
        Life::Gone if is_unused_import(statement, code) && stays.is_some() => None,
        Life::Gone => Some(lost),
    }
}

enum Life {
    There,
    Unreachable,
    Gone,
}

/// What became of a statement of the base.
fn life(sides: &Sides<'_>, head: &Side<'_>, file: &str, statement: &Statement, base: &Code) -> Life {
    let mut unreachable = false;
    let mut successors: Vec<&Statement> = Vec::new();
    let own = head.code.get(file).filter(|_| head.view(file).is_some_and(|view| view.seen));
    let stays = own.is_some_and(|code| statement.symbol.is_empty() || code.has_symbol(&statement.symbol));
    let last = statement.symbol.rsplit('.').next().unwrap_or_default();
    for (name, code) in head.seen() {
        let Some(view) = head.view(name) else { continue };
        let dark = reachability::ranges(view, sides.unit);
        for found in &code.statements {
            let same = found.tokens == statement.tokens;
            let home = match (stays, name == file) {
                (true, own) => own && found.symbol == statement.symbol,
                (false, _) => !last.is_empty() && found.symbol.rsplit('.').next() == Some(last),
            };
            if !same && !home {
                continue;
            }
            if dark.iter().any(|dark| dark.contains(&found.span.start)) {
                unreachable |= same;
            } else if same {
                return Life::There;
            } else {
                successors.push(found);
            }
        }
    }
    let known = |found: &Statement| {
        base.statements.iter().any(|old| old.symbol == statement.symbol && old.tokens == found.tokens)
    };
    let own = base.statements.iter().filter(|old| old.symbol == statement.symbol);
    // What a head names besides its parameters are types.
    let own = own.filter(|old| old.kind != "function_definition");
    let parameters = base.slots.keys().filter(|(symbol, _)| *symbol == statement.symbol);
    let parameters = parameters.filter_map(|(_, slot)| slot.strip_prefix('('));
    let names: BTreeSet<&str> =
        own.flat_map(|old| old.names.iter().map(String::as_str)).chain(parameters).collect();
    let succeeded = |found: &&&Statement| !known(found) && succeeds(found, statement, &names);
    let heirs: Vec<&Statement> = successors.iter().filter(succeeded).copied().collect();
    if heirs.is_empty() && unreachable {
        Life::Unreachable
    } else if heirs.is_empty() || is_laundered(statement, &heirs, head, base) {
        Life::Gone
    } else {
        Life::There
    }
}

/// Whether what a statement used is used by a new function instead that knows nothing of the types of its parameters.
fn is_laundered(old: &Statement, heirs: &[&Statement], head: &Side<'_>, base: &Code) -> bool {
    let kept = |name: &&String| heirs.iter().any(|heir| heir.uses.contains(*name));
    let lost: Vec<&String> = old.uses.iter().filter(|name| !kept(name)).collect();
    head.seen().any(|(_, code)| {
        let untyped = |symbol: &str| {
            let slots = code.slots.iter().filter(|((of, slot), _)| {
                of == symbol && slot.starts_with('(') && !matches!(slot.as_str(), "(self" | "(cls")
            });
            let mut slots = slots.peekable();
            slots.peek().is_some() && slots.any(|(_, annotation)| annotation.is_none())
        };
        let fresh = code.symbols.iter().filter(|symbol| !symbol.is_class && !base.has_symbol(&symbol.name));
        let fresh: Vec<&str> =
            fresh.map(|symbol| symbol.name.as_str()).filter(|name| untyped(name)).collect();
        let inside = code.statements.iter().filter(|found| fresh.contains(&found.symbol.as_str()));
        inside
            .filter(|found| found.kind != "function_definition")
            .any(|found| lost.iter().any(|name| found.uses.contains(*name)))
    })
}

/// Whether a new statement can be what an old one became: it does something, with what the old one did it with. `known` are the
/// names that the definition used before.
fn succeeds(new: &Statement, old: &Statement, known: &BTreeSet<&str>) -> bool {
    if new.is_typing_only && !old.is_typing_only {
        return false;
    }
    if new.is_empty {
        return old.is_empty && new.kind == old.kind;
    }
    let is_import = matches!(old.kind.as_str(), "import_statement" | "import_from_statement");
    if !old.uses.is_empty() && new.uses.is_empty() && !is_import {
        return false;
    }
    let is_less = old.uses.difference(&new.uses).next().is_some() && new.uses.is_subset(&old.uses);
    if is_less && constants(new) > constants(old) {
        return false;
    }
    let alike = |a: &str, b: &str| are_alike(a, b);
    let share = |ours: &[&str], theirs: &[&str]| ours.iter().any(|a| theirs.iter().any(|b| alike(a, b)));
    let all = |statement: &Statement| {
        statement.names.iter().any(|name| old.names.iter().any(|other| alike(name, other)))
    };
    if old.names.is_empty() {
        return new.kind == old.kind;
    }
    if old.kind == "expression_statement" && new.kind == old.kind {
        // Whatever is done instead, it is done to the same thing or by the same name.
        let first = |statement: &'_ Statement| {
            statement.tokens.iter().find(|token| statement.names.contains(*token)).cloned()
        };
        let same = first(old).zip(first(new)).is_some_and(|(a, b)| alike(&a, &b));
        return same || share(&old.verbs(), &new.verbs());
    }
    all(new) || (new.kind == old.kind && new.uses.iter().any(|name| known.contains(name.as_str())))
}

/// How many constants a statement has, empty lists and the like among them.
fn constants(statement: &Statement) -> usize {
    let is_constant = |token: &&String| {
        matches!(token.as_str(), "\"\"" | "True" | "False" | "None")
            || token.starts_with(|c: char| c.is_ascii_digit())
    };
    let is_empty = |pair: &&[String]| matches!((pair[0].as_str(), pair[1].as_str()), ("[", "]") | ("{", "}"));
    statement.tokens.iter().filter(is_constant).count() + statement.tokens.windows(2).filter(is_empty).count()
}

/// Whether one name is a misspelling of the other, more or less.
fn are_alike(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    a.len().min(b.len()) >= 3 && common(&a, &b) * 10 >= (a.len() + b.len()) * 3
}

/// Whether an import binds nothing that anything uses.
fn is_unused_import(statement: &Statement, code: &Code) -> bool {
    let is_import =
        |found: &Statement| matches!(found.kind.as_str(), "import_statement" | "import_from_statement");
    is_import(statement)
        && !statement.tokens.iter().any(|token| token == "*")
        && !code
            .statements
            .iter()
            .any(|found| !is_import(found) && !found.names.is_disjoint(&statement.names))
}

/// The length of the longest common subsequence.
fn common(a: &[char], b: &[char]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for &x in a {
        let mut diagonal = 0;
        for (at, &y) in b.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if x == y { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use crate::reward::testing::Case;

    const BASE: &str = "def f(x, y):\n    a = x.count #! r\n    y.append(a)\n    return a\n";

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
    }
}
