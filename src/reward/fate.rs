//! What became of the expression that a diagnostic was about, once the diagnostic is gone.
//!
//! One question decides whether an edit repaired anything: is the same callee or receiver still used for the same purpose
//! ([`Fate::InPlace`]), did another expression take its role ([`Fate::Replaced`]), is it gone ([`Fate::Removed`]), or was only
//! something declared for it ([`Fate::Declared`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::code::{BoundValue, Code, CodeSymbol, NameBinding, Statement};
use super::declared;
use super::failing::{FailingExpression, FailureKind};
use super::judge::{EditSides, SideCode};
use super::lost::{gone, is_made_conditional, is_only_converted, is_used, loses_inputs, throws_away};
use super::reachability;
use super::usage::{
    arguments, calls, calls_another, dead_stores, executes, handed_on, inner_names, is_dead,
    is_unused_import, made_of, operations, requests, splats, unpacked, work,
};
use crate::model::reward::OutstandingReason;

/// What became of a failing expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The same callee or receiver is still used for the same purpose, and now resolves.
    InPlace,
    /// Another expression took its role.
    Replaced,
    /// Its statement, branch or caller is gone, or can no longer run; or part of what it used was thrown away.
    Removed(OutstandingReason),
    /// Only a definition, annotation or stub appeared for it.
    Declared,
}

const GONE: Fate = Fate::Removed(OutstandingReason::CodeGone);

/// An edit, with one failing expression of it.
pub(super) struct FailingCode<'c> {
    pub(super) sides: &'c EditSides<'c>,
    pub(super) base: &'c SideCode<'c>,
    pub(super) head: &'c SideCode<'c>,
    /// The file before and after.
    pub(super) names: (&'c str, &'c str),
    /// The code of the file before.
    pub(super) own: &'c Code,
    /// The statement that contains the expression.
    pub(super) statement: &'c Statement,
    pub(super) failing: &'c FailingExpression,
}

/// The statements of the head that can have taken the place of a statement.
struct Successors<'c> {
    /// Whether the statement is still there, as often as before.
    is_there: bool,
    /// Whether it is still there with other annotations.
    is_annotated: bool,
    /// Whether it is only there where it cannot run.
    is_unreachable: bool,
    /// New statements of the same definition.
    here: Vec<&'c Statement>,
    /// The same, and those of new definitions that they use.
    fresh: Vec<&'c Statement>,
}

/// What became of the failing expression.
pub(super) fn fate(code: &FailingCode<'_>) -> Fate {
    let found = successors(code);
    // An annotation that fails is repaired by another annotation.
    let is_executed = match code.failing.kind {
        FailureKind::Name => code.statement.executed().contains(&code.failing.name),
        kind => kind != FailureKind::Other,
    };
    if found.is_there || (found.is_annotated && is_executed) {
        return if loses_inputs(code) { GONE } else { declared::fate(code) };
    }
    if found.here.is_empty() && found.is_unreachable {
        return Fate::Removed(OutstandingReason::Unreachable);
    }
    let is_dead = is_dead(code.statement, code.own);
    if found.here.is_empty() && (is_dead || is_unused_import(code.statement, code.own, code.names.0)) {
        return Fate::Replaced;
    }
    // A value that was used is not replaced by one that is not used.
    let used = |new: &&Statement| match new.kind.as_str() {
        "assert_statement" => None,
        _ if code.statement.is_bare => Some((*new).clone()),
        _ => handed_on(new),
    };
    let taken: Vec<Statement> = found.fresh.iter().filter_map(used).collect();
    if taken.is_empty()
        || is_passed_through_helper(code.statement, &found.here, code.head, code.base)
        || is_made_conditional(code, &found.here)
    {
        return GONE;
    }
    let fate = role(code, &taken);
    if matches!(fate, Fate::InPlace | Fate::Replaced) && declared::uses_hollow(code, &taken) {
        return Fate::Declared;
    }
    fate
}

/// Where the statement of a failing expression still is: the file and the span.
pub(super) fn still_there<'c>(code: &FailingCode<'c>) -> Option<(&'c str, Range<usize>)> {
    let FailingCode { head, statement, .. } = *code;
    let all = head.seen().flat_map(|(name, code)| code.statements.iter().map(move |found| (name, found)));
    let mut same = all.filter(|(_, found)| found.tokens == statement.tokens);
    same.find(|(_, found)| found.symbol == statement.symbol).map(|(name, found)| (name, found.span.clone()))
}

/// Finds the successors of a statement.
fn successors<'c>(code: &FailingCode<'c>) -> Successors<'c> {
    let FailingCode { sides, base, head, names, own, statement, .. } = *code;
    let (mut is_unreachable, mut there) = (false, 0);
    let mut all: Vec<&Statement> = Vec::new();
    let now = head.code.get(names.1).filter(|_| head.view(names.1).is_some_and(|view| view.seen));
    let stays = now.is_some_and(|code| statement.symbol.is_empty() || code.has_symbol(&statement.symbol));
    let last = statement.symbol.rsplit('.').next().unwrap_or_default();
    for (name, code) in head.seen() {
        let Some(view) = head.view(name) else { continue };
        let dark = reachability::ranges(view, sides.unit);
        for found in &code.statements {
            let same = found.tokens == statement.tokens;
            let home = match (stays, name == names.1) {
                (true, here) => here && (found.symbol == statement.symbol || is_new(base, &found.symbol)),
                (false, here) => !last.is_empty() && (here || found.symbol.rsplit('.').next() == Some(last)),
            };
            if !same && !home {
                continue;
            }
            if dark.iter().any(|dark| dark.contains(&found.span.start)) {
                is_unreachable |= same;
            } else if same && !(is_new(base, &found.symbol) && has_untyped_parameters(code, &found.symbol)) {
                there += 1;
            } else if !found.is_typing_only || statement.is_typing_only {
                all.push(found);
            }
        }
    }
    let were = base.seen().flat_map(|(_, code)| &code.statements);
    let is_annotated = all.iter().any(|found| {
        found.symbol == statement.symbol
            && found.kind == statement.kind
            && found.executed() == statement.executed()
    });
    let is_there = there > 0 && there >= were.filter(|found| found.tokens == statement.tokens).count();
    let known = |found: &Statement| {
        own.statements
            .iter()
            .any(|old| (!stays || old.symbol == statement.symbol) && old.tokens == found.tokens)
    };
    let unread = new_dead_stores(statement, own, head);
    let fresh: Vec<&Statement> = all
        .into_iter()
        .filter(|found| !known(found) && !unread.contains(&std::ptr::from_ref(*found)))
        .collect();
    let at_home = |found: &&&Statement| !stays || found.symbol == statement.symbol;
    let here: Vec<&Statement> = fresh.iter().filter(at_home).copied().collect();
    let reached = reached(&here, head, |symbol| is_new(base, symbol));
    let fresh =
        fresh.iter().filter(|found| at_home(found) || reached.contains(&found.symbol)).copied().collect();
    Successors { is_there, is_annotated, is_unreachable, here, fresh }
}

/// Whether new statements play the role of the failing expression. Nothing that the rest of its statement used may be lost.
fn role(code: &FailingCode<'_>, taken: &[Statement]) -> Fate {
    let FailingCode { statement: old, failing, .. } = *code;
    if failing.is_optional && is_only_converted(taken, failing) {
        return GONE;
    }
    let sum = |count: &dyn Fn(&Statement) -> usize| taken.iter().map(count).sum::<usize>();
    let uses = |name: &String| is_used(taken, name);
    let handed = !failing.handed.is_empty() && failing.handed.iter().all(uses) && sum(&executes) > 0;
    let in_place = match failing.kind {
        FailureKind::Attribute => {
            let on = |statement: &Statement| operations(statement, &failing.object);
            let before: usize = gone(code).map(on).sum();
            let asks = |statement: &Statement| requests(statement, &failing.name);
            let is_imported = || {
                let imports = |side: &Code, name: &String| {
                    let mut imports = side.statements.iter().filter(|one| one.kind.starts_with("import"));
                    imports.any(|one| one.names.contains(name))
                };
                taken.iter().any(|new| new.uses.contains(&failing.name))
                    && code.head.code.get(code.names.1).is_some_and(|now| imports(now, &failing.name))
                    && !imports(code.own, &failing.name)
                    && imports(code.own, &failing.object)
            };
            let still = !failing.object.is_empty()
                && sum(&on) >= before.max(1)
                && (!failing.is_called || sum(&work) >= work(old).min(1));
            // What a call returns may come from somewhere else; a name that may be `None` is still needed.
            let of_call = || old.verbs().contains(&failing.object.as_str());
            let is_used_still = || failing.object.is_empty() || of_call() || is_used(taken, &failing.object);
            let is_kept = sum(&asks) >= asks(old).max(1) && is_used_still();
            let is_received = !failing.is_optional || is_used_still();
            is_received
                && (is_kept || still || is_imported())
                && (!failing.is_called || failing.handed.iter().all(uses))
        }
        FailureKind::Name => {
            old.kind.starts_with("import")
                || taken.iter().any(|new| new.uses.iter().any(|name| are_near(name, &failing.name)))
        }
        FailureKind::Call => match call(code, taken) {
            GONE => return GONE,
            fate => fate == Fate::InPlace,
        },
        FailureKind::Operation => {
            let inner = inner_names(old);
            let needed = |name: &&String| old.uses.contains(*name) && !inner.contains(name.as_str());
            let mut operands = failing.names.iter().filter(needed);
            operands.all(uses) && sum(&work) + sum(&unpacked) >= work(old)
        }
        FailureKind::Value => {
            !is_of_any_size(old, taken, failing)
                && value(code, taken)
                && (!failing.calls || sum(&work) >= work(old).min(1))
        }
        FailureKind::Other => {
            let alike =
                |new: &Statement| new.names.iter().filter(|name| old.names.contains(*name)).count() * 2;
            let is_import = old.kind.starts_with("import");
            // An import of less than before gives nothing that failed; one of the same names may be of another package.
            let is_less =
                |new: &Statement| new.names.len() < old.names.len() && new.names.is_subset(&old.names);
            let gives = |new: &Statement| {
                if is_import {
                    new.kind.starts_with("import") && !is_less(new)
                } else {
                    new.kind == old.kind && alike(new) >= old.names.len()
                }
            };
            taken.iter().any(gives)
        }
    };
    let replaced = match failing.kind {
        FailureKind::Attribute => {
            handed && (!failing.is_called || sum(&work) >= work(old).min(1))
                || !failing.is_optional && in_place && sum(&calls) > 0
        }
        FailureKind::Name => {
            fills(code, taken) || (work(old) > 0 && sum(&work) >= work(old) && is_new_use(old, taken))
        }
        FailureKind::Call => {
            // A method may become an operation on its object, such as `rows[at:at] = [row]`.
            let is_operation = || {
                let on = |statement: &Statement| operations(statement, &failing.object);
                sum(&on) > 0 && sum(&work) >= work(old)
            };
            handed && (sum(&calls) >= calls(old) || is_operation())
        }
        FailureKind::Value => is_another_value(code, taken),
        FailureKind::Other if old.kind.starts_with("import") => is_needless(code),
        // Another function may take all of it.
        FailureKind::Operation => taken.iter().any(|new| {
            let is_handed = |name: &String| !failing.names.contains(name) || operations(new, name) > 0;
            new.kind == old.kind
                && calls_another(new, old)
                && old.uses.iter().all(|name| new.uses.contains(name) && is_handed(name))
        }),
        FailureKind::Other => false,
    };
    match (in_place, replaced) {
        (true, _) if !throws_away(code, taken, false) => Fate::InPlace,
        (_, true) if failing.kind == FailureKind::Value || !throws_away(code, taken, true) => Fate::Replaced,
        _ => GONE,
    }
}

/// Whether the names that an import failed to give have other definitions now, or were not used in the file.
fn is_needless(code: &FailingCode<'_>) -> bool {
    let FailingCode { base, head, names, own, statement, failing, .. } = *code;
    // A misspelled import is needed under the name that was meant.
    let is_used = |name: &&str| {
        let is_meant = |used: &String| used == name || is_misspelling(used, name);
        let used = |one: &Statement| !one.kind.starts_with("import") && one.names.iter().any(is_meant);
        own.statements.iter().any(used)
    };
    let is_defined = |name: &&str| {
        is_new(base, name)
            && head.code.get(names.1).is_some_and(|now| {
                let binds = |one: &NameBinding| {
                    one.symbol.is_empty()
                        && one.name == **name
                        && one.value == BoundValue::Made
                        && one.tokens.len() > 1
                };
                let defines = |one: &CodeSymbol| one.name == **name && declared::is_substantial(now, one);
                now.symbols.iter().any(defines) || now.bindings.iter().any(binds)
            })
    };
    let bound = imported(statement);
    let failed: Vec<&str> = bound.iter().copied().filter(|name| failing.names.contains(*name)).collect();
    // Without its module an import gives none of its names.
    let needed = if failed.is_empty() { bound } else { failed };
    needed.iter().all(|name| is_defined(name) || !is_used(name))
}

/// The names that an import binds.
fn imported(statement: &Statement) -> Vec<&str> {
    let tokens: Vec<&str> = statement.tokens.iter().map(String::as_str).collect();
    let start = tokens.iter().position(|token| *token == "import").map_or(0, |at| at + 1);
    let parts = tokens[start..].split(|token| *token == ",");
    let bound = parts.filter_map(|part| {
        let renamed = part.iter().position(|token| *token == "as").and_then(|at| part.get(at + 1));
        renamed.or_else(|| part.iter().find(|token| statement.names.contains(**token))).copied()
    });
    bound.collect()
}

/// Whether new statements use a name that the old one did not.
fn is_new_use(old: &Statement, taken: &[Statement]) -> bool {
    taken.iter().any(|new| new.uses.difference(&old.uses).next().is_some())
}

/// Whether a failing call is still made, with everything that was passed to it.
fn call(code: &FailingCode<'_>, taken: &[Statement]) -> Fate {
    let FailingCode { statement: old, failing, .. } = *code;
    if taken.iter().any(|new| splats(new) > splats(old)) {
        return GONE;
    }
    let near = |new: &Statement| {
        new.verbs().into_iter().find(|verb| are_near(verb, &failing.callee)).map(str::to_owned)
    };
    // What makes a tuple of any number of values is not a call with the missing one.
    let is_made = |one: &Statement| one.verbs().contains(&"_make");
    if !is_made(old) && taken.iter().any(is_made) {
        return GONE;
    }
    let made = taken.iter().filter_map(|new| arguments(new, &near(new)?)).max();
    let uses = |name: &String| is_used(taken, name);
    let before = arguments(old, &failing.callee).unwrap_or(0);
    let others = old.uses.iter().all(uses);
    let times = |all: &mut dyn Iterator<Item = &Statement>| {
        let verbs = all.flat_map(|one| one.verbs().into_iter().map(str::to_owned).collect::<Vec<_>>());
        verbs.filter(|verb| are_near(verb, &failing.callee)).count()
    };
    if made.is_some() && times(&mut taken.iter()) < times(&mut std::iter::once(old)) {
        return GONE;
    }
    let is_callable = failing.is_optional || failing.is_union || !failing.is_value;
    match made {
        // It is called as before, though it cannot be.
        Some(_) if !is_callable && taken.iter().any(|new| new.verbs().contains(&failing.callee.as_str())) => {
            GONE
        }
        None if failing.is_value && uses(&failing.callee) && failing.handed.iter().all(uses) => Fate::InPlace,
        None if failing.callee.is_empty() && others => Fate::InPlace,
        None => Fate::Replaced,
        Some(_) if failing.is_superfluous => Fate::InPlace,
        Some(count) if count < before && failing.is_argument => GONE,
        Some(_) if !failing.is_argument || failing.names.iter().all(uses) => Fate::InPlace,
        // Another argument: it must come from somewhere.
        Some(_) if is_new_use(old, taken) => Fate::InPlace,
        Some(_) => GONE,
    }
}

/// Whether a value of the wrong type is still computed from the same.
fn value(code: &FailingCode<'_>, taken: &[Statement]) -> bool {
    let FailingCode { statement: old, failing, .. } = *code;
    let yields = |one: &Statement| one.tokens.first().is_some_and(|token| token == "yield");
    let returns = |one: &Statement| one.kind == "return_statement" || yields(one);
    let is_of_kind = |new: &Statement| {
        new.kind == old.kind
            || returns(new) && (returns(old) || gone(code).any(|other| other.kind == new.kind))
    };
    let gives = |new: &Statement| new.tokens.len() > 1 && is_of_kind(new);
    if failing.names.is_empty() {
        return taken.iter().any(|new| gives(new) || new.kind == "raise_statement");
    }
    let made = made_of(&failing.names, taken);
    taken.iter().any(|new| gives(new) && new.uses.iter().any(|name| made.contains(name.as_str())))
}

/// Whether a value with too many or too few parts was made one of any number of parts.
fn is_of_any_size(old: &Statement, taken: &[Statement], failing: &FailingExpression) -> bool {
    const CONVERSIONS: [&str; 8] = ["tuple", "list", "iter", "sorted", "map", "filter", "reversed", "set"];
    let converts = |one: &Statement| {
        let end = one.tokens.iter().rposition(|token| token == "=" || token == "return");
        let value: Vec<&str> =
            one.tokens.iter().skip(end.map_or(0, |at| at + 1)).map(String::as_str).collect();
        match value.as_slice() {
            [name, "(", ..] if CONVERSIONS.contains(name) => true,
            ["[" | "(", inside @ ..] => {
                inside.first() == Some(&"*")
                    || inside.windows(2).any(|pair| pair[0] == "," && pair[1] == "*")
                    || inside.contains(&"for")
            }
            _ => false,
        }
    };
    failing.is_size && !converts(old) && taken.iter().any(converts)
}

/// Whether a value of the wrong type that nothing was computed for was replaced by another value.
fn is_another_value(code: &FailingCode<'_>, taken: &[Statement]) -> bool {
    let FailingCode { own, statement: old, failing, .. } = *code;
    let does_more = || {
        let inside = own.statements.iter().filter(|other| other.symbol == old.symbol);
        inside.filter(|other| other.kind != "function_definition" && other.tokens != old.tokens).count() > 0
    };
    let is_truth = |new: &Statement| matches!(new.tokens.get(1).map(String::as_str), Some("True" | "False"));
    // A value that is made of nothing, such as a new object, is not what the function returned.
    let is_value = |new: &Statement| {
        let called = new.verbs();
        is_truth(new) || (!new.is_empty && new.uses.iter().any(|name| !called.contains(&name.as_str())))
    };
    !failing.calls
        && failing.names.len() < 2
        && taken.iter().any(|new| new.kind == old.kind && is_value(new))
        && does_more()
}

/// Whether an expression that was not there before stands where an undefined name stood, or the values that the name would have
/// had.
fn fills(code: &FailingCode<'_>, taken: &[Statement]) -> bool {
    let FailingCode { own, statement: old, failing, .. } = *code;
    let around: Vec<&String> = old.tokens.iter().filter(|token| **token != failing.name).collect();
    let filled = |new: &Statement| {
        let mut rest = around.iter();
        let mut next = rest.next();
        for token in &new.tokens {
            if next.is_some_and(|wanted| *wanted == token) {
                next = rest.next();
            }
        }
        next.is_none() && new.uses.difference(&old.uses).next().is_some()
    };
    let mut bound =
        own.bindings.iter().filter(|one| one.symbol == old.symbol && one.name == failing.name).peekable();
    taken.iter().any(filled)
        || bound.peek().is_some()
            && bound.all(|one| {
                !one.tokens.is_empty()
                    && taken.iter().any(|new| new.kind == old.kind && new.tokens.ends_with(&one.tokens))
            })
}

/// The new definitions that statements use, directly or through each other.
fn reached(from: &[&Statement], head: &SideCode<'_>, is_new: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let mut inside: BTreeMap<&str, Vec<&Statement>> = BTreeMap::new();
    for found in head.seen().flat_map(|(_, code)| &code.statements) {
        inside.entry(&found.symbol).or_default().push(found);
    }
    let mut named: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for symbol in inside.keys().copied().filter(|symbol| is_new(symbol)) {
        let (around, last) = symbol.rsplit_once('.').unwrap_or(("", symbol));
        // Using a class uses the methods that Python calls implicitly.
        let is_special = last.starts_with("__") && last.ends_with("__");
        let by = if is_special { around.rsplit('.').next().unwrap_or_default() } else { last };
        named.entry(by).or_default().push(symbol);
    }
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Statement> = from.to_vec();
    while let Some(found) = open.pop() {
        // A bare name as a statement is not a use.
        if found.is_bare && found.is_empty {
            continue;
        }
        // The header of a definition is not a use of it.
        let own = found.symbol.rsplit('.').next().filter(|_| found.kind.ends_with("_definition"));
        for name in found.uses.iter().filter(|name| Some(name.as_str()) != own) {
            for symbol in named.remove(name.as_str()).unwrap_or_default() {
                reached.insert(symbol.to_owned());
                open.extend(inside.get(symbol).into_iter().flatten());
            }
        }
    }
    reached
}

/// The dead stores of the head; if the statement was one in the base already, they are ignored.
fn new_dead_stores(old: &Statement, own: &Code, head: &SideCode<'_>) -> BTreeSet<*const Statement> {
    if old.is_bare || dead_stores(own, &old.symbol).contains(&std::ptr::from_ref(old)) {
        return BTreeSet::new();
    }
    let mut all = BTreeSet::new();
    for (_, code) in head.seen() {
        for symbol in code.symbols.iter().filter(|symbol| !symbol.is_class) {
            all.append(&mut dead_stores(code, &symbol.name));
        }
    }
    all
}

/// Whether the base has no definition of this name.
pub(super) fn is_new(base: &SideCode<'_>, symbol: &str) -> bool {
    !symbol.is_empty() && !base.code.values().any(|code| code.has_symbol(symbol))
}

/// Whether a function has a parameter without an annotation.
fn has_untyped_parameters(code: &Code, symbol: &str) -> bool {
    let slots = code.slots.iter().filter(|((of, slot), _)| {
        of == symbol && slot.starts_with('(') && !matches!(slot.as_str(), "(self" | "(cls")
    });
    slots.into_iter().any(|(_, annotation)| annotation.is_none())
}

/// Whether the names that a statement used are now used only by a new helper with untyped parameters.
fn is_passed_through_helper(
    old: &Statement,
    replacements: &[&Statement],
    head: &SideCode<'_>,
    base: &SideCode<'_>,
) -> bool {
    let kept = |name: &&String| replacements.iter().any(|replacement| replacement.uses.contains(*name));
    let lost: Vec<&String> = old.uses.iter().filter(|name| !kept(name)).collect();
    head.seen().any(|(_, code)| {
        let fresh = code.symbols.iter().filter(|symbol| !symbol.is_class && is_new(base, &symbol.name));
        let fresh: Vec<&str> = fresh
            .map(|symbol| symbol.name.as_str())
            .filter(|name| has_untyped_parameters(code, name))
            .collect();
        let inside = code.statements.iter().filter(|found| fresh.contains(&found.symbol.as_str()));
        inside
            .filter(|found| found.kind != "function_definition")
            .any(|found| lost.iter().any(|name| found.uses.contains(*name)))
    })
}

/// Whether two names are equal or one may be a misspelling of the other.
pub(super) fn are_near(a: &str, b: &str) -> bool {
    let (x, y): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    a == b || (x.len().min(y.len()) >= 3 && common(&x, &y) * 20 >= (x.len() + y.len()) * 6)
}

/// Whether one name is another with a letter missing, added, changed or moved.
pub(super) fn is_misspelling(a: &str, b: &str) -> bool {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let mut letters: BTreeMap<char, i64> = BTreeMap::new();
    a.chars().for_each(|c| *letters.entry(c).or_default() += 1);
    b.chars().for_each(|c| *letters.entry(c).or_default() -= 1);
    let (more, less) =
        letters.values().fold((0, 0), |(more, less), count| (more + count.max(&0), less - count.min(&0)));
    a != b && a.len().min(b.len()) >= 3 && more <= 1 && less <= 1
}

/// The longest name that is compared for similarity, in characters: the work grows with the product of the lengths.
const MAX_NAME_CHARS: usize = 64;

/// The length of the longest common subsequence; 0 for names above the limit, unless they are equal.
fn common(a: &[char], b: &[char]) -> usize {
    if a.len().max(b.len()) > MAX_NAME_CHARS {
        return if a == b { a.len() } else { 0 };
    }
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
    use super::*;
    use crate::reward::testing::{outstanding, outstanding_with};

    /// What becomes of `part` of a line, which fails by a rule, when the line is replaced.
    fn became(old: &str, fails: (&str, &str), new: &str) -> Option<OutstandingReason> {
        let text = |line: &str| format!("def f(val, rows, other):\n    {}\n", line.replace('\n', "\n    "));
        outstanding(&text(old), fails, &text(new))
    }

    const GONE: Option<OutstandingReason> = Some(OutstandingReason::CodeGone);
    const REPLACED: Option<OutstandingReason> = Some(OutstandingReason::Replaced);

    #[test]
    fn a_failing_attribute_is_used_in_place_or_replaced() {
        let old = "return val.lowr() not in rows";
        let fails = ("lowr", "reportAttributeAccessIssue");
        for new in
            ["return val.lower() not in rows", "return lower(val) not in rows", "return val[0] in rows"]
        {
            assert_eq!(became(old, fails, new), None, "{new}");
        }
        for new in [
            "return not other",
            "return val is None and other",
            "return other or bool(val)",
            "return str(val) in rows",
            "val.lower()\nreturn other",
            "print(val.lower())\nreturn other",
            "return val.lower()",
            "return val not in rows",
        ] {
            assert_eq!(became(old, fails, new), GONE, "{new}");
        }
        let each = "for row in rows:\n    if row.note:\n        val.append(row.note.strip())";
        let note = ("strip", "reportOptionalMemberAccess");
        assert_eq!(became("return [row.note.strip() for row in rows]", note, each), None);
        let both = "return max(val.values) - val.minimum()";
        let fails = ("minimum", "reportAttributeAccessIssue");
        assert_eq!(became(both, fails, "return max(val.values)"), GONE);
        assert_eq!(became(both, fails, "return max(val.values) - min(val.values)"), None);
        let update = ("updaet", "reportAttributeAccessIssue");
        assert_eq!(became("val.updaet(rows)\nreturn val", update, "return {**other, **rows}"), REPLACED);
    }

    #[test]
    fn a_failing_call_is_still_made_with_all_arguments() {
        let fails = ("'2'", "reportArgumentType");
        let old = "return scale('2', list(rows))";
        assert_eq!(became(old, fails, "return scale(2, list(rows))"), None);
        assert_eq!(became(old, fails, "return scale(2, rows)"), None);
        assert_eq!(became(old, fails, "return scale(list(rows))"), GONE);
        assert_eq!(became(old, fails, "return list(rows)"), GONE);
        assert_eq!(became(old, fails, "return scale(*other)"), GONE);
        let fails = ("other", "reportArgumentType");
        let old = "return scale(rows, val.of(1)) or scale(other.part)";
        let fails_later = ("other.part", fails.1);
        assert_eq!(became(old, fails_later, "return scale(rows, val.of(1)) or scale(2)"), GONE);
        let old = "val.write([row.key for row in rows])";
        let fails = ("[row.key for row in rows]", "reportArgumentType");
        assert_eq!(became(old, fails, "val.exists()"), GONE);
    }

    #[test]
    fn a_failing_operation_keeps_its_operands() {
        let fails = ("val + other", "reportOperatorIssue");
        for new in ["return val + (other or 0)", "return f'{val}{other}'", "return sum([val, other])"] {
            assert_eq!(became("return val + other", fails, new), None, "{new}");
        }
        for new in ["return val", "return val and other"] {
            assert_eq!(became("return val + other", fails, new), GONE, "{new}");
        }
    }

    #[test]
    fn an_undefined_name_is_replaced_by_another_or_by_its_value() {
        let fails = ("totl", "reportUndefinedVariable");
        assert_eq!(became("return totl + 2", fails, "return total + 2"), None);
        assert_eq!(became("return totl + 2", fails, "return len(rows) * val + 2"), REPLACED);
        assert_eq!(became("return totl + 2", fails, "return other"), GONE);
        assert_eq!(became("return totl + 2", fails, "return 2"), GONE);
        assert_eq!(became("return totl + val", fails, "return val"), GONE);
    }

    #[test]
    fn each_use_of_an_attribute_counts_on_its_own_object() {
        let fails = ("count", "reportOptionalMemberAccess");
        let old = "return val.count - other.count";
        assert_eq!(became(old, fails, "return 0 if val is None else 0 - other.count"), GONE);
        assert_eq!(became(old, fails, "return 0 if val is None else val.count - other.count"), None);
        let fails = ("iteritems", "reportAttributeAccessIssue");
        assert_eq!(became("return val.iteritems()", fails, "return iter(())"), GONE);
        assert_eq!(became("return val.iteritems()", fails, "return iter(val.items())"), None);
        let twice = "if val.count() and val.count() != 1:\n    rows.append(val)";
        let once = "number = (val.count or int)()\nif number and number != 1:\n    rows.append(val)";
        assert_eq!(became(twice, ("count", "reportOptionalMemberAccess"), once), None);
        let other = "from os import name\nreturn name";
        assert_eq!(became("return val.name", ("name", fails.1), other), GONE);
        let base = "import old\n\ndef f(x):\n    return isinstance(x, old.Mapping)\n";
        let head = "from old.new import Mapping\n\ndef f(x):\n    return isinstance(x, Mapping)\n";
        assert_eq!(outstanding(base, ("Mapping", fails.1), head), None);
    }

    #[test]
    fn the_parameter_of_a_lambda_may_get_another_name() {
        let fails = ("row[2]", "reportIndexIssue");
        let old = "rows.sort(key=lambda row: row[2])";
        let new = "def first(pair):\n    return pair[0]\n\nrows.sort(key=first)";
        assert_eq!(became(old, fails, "rows.sort(key=lambda pair: pair[0])"), None);
        assert_eq!(became(old, fails, "rows.sort()"), GONE);
        assert_eq!(became(old, fails, new), None);
    }

    #[test]
    fn an_import_of_less_repairs_nothing() {
        let base = "from url import parse, unprase\n\ndef f(x):\n    return unparse(parse(x))\n";
        let fails = ("unprase", "reportAttributeAccessIssue");
        let less = base.replace(", unprase", "");
        assert_eq!(outstanding(base, fails, &less.replace("unparse(parse(x))", "x")), GONE);
        assert_eq!(outstanding(base, fails, &base.replace("unprase", "unparse")), None);
        let unused = base.replace("unparse(parse(x))", "parse(x)");
        assert_eq!(outstanding(&unused, fails, &less), REPLACED);
        let base = "from servise import load\n\ndef f(path):\n    return load(path)\n";
        let fails = ("servise", "reportMissingImports");
        let line = "from servise import load";
        for (new, expected) in [
            ("from .servise import load", None),
            ("from service import load", None),
            ("load = dict", GONE),
            ("def load(path):\n    return path", GONE),
        ] {
            assert_eq!(outstanding(base, fails, &base.replace(line, new)), expected, "{new}");
        }
    }

    #[test]
    fn a_value_is_computed_from_the_same() {
        let fails = ("str(val)", "reportReturnType");
        assert_eq!(became("return str(val)", fails, "return int(val)"), None);
        assert_eq!(became("return str(val)", fails, "return 0"), GONE);
        assert_eq!(became("x = rows\nreturn done", ("done", fails.1), "x = rows\nreturn True"), REPLACED);
        let fails = ("val.read()", fails.1);
        let through = "text = val.read()\nfirst, rest = text\nreturn first";
        assert_eq!(became("return val.read()", fails, through), None);
        assert_eq!(became("return val.read()", fails, "text = val.read()\nreturn other"), GONE);
        assert_eq!(became("yield val.read()", fails, "for text in val.read():\n    yield text"), None);
        assert_eq!(became("yield val.read()", fails, "return val.read()"), None);
        let split = "_, text = val.read()\nreturn text";
        assert_eq!(became(split, fails, "return val.read()[1]"), None);
        assert_eq!(became(split, fails, "return other"), GONE);
    }

    #[test]
    fn a_loop_variable_may_get_the_name_that_was_used() {
        let old = "for row, end in rows:\n    val.append(row + ending)\n    other(end)";
        let new = old.replace("end in", "ending in").replace("(end)", "(ending)");
        assert_eq!(became(old, ("ending", "reportUndefinedVariable"), &new), None);
    }

    #[test]
    fn all_operands_may_go_to_another_function() {
        let fails = ("val - 1", "reportOperatorIssue");
        let old = "return f\"{other} {val[0]}-{val - 1}/{rows}\"";
        assert_eq!(
            became(old, fails, "start, stop = val\nreturn f\"{other} {start}-{stop - 1}/{rows}\""),
            None
        );
        assert_eq!(became(old, fails, "return Span(other, val, rows)"), REPLACED);
        assert_eq!(became(old, fails, "return f\"{other} {rows}\""), GONE);
        let sum = ("val + other", "reportOperatorIssue");
        assert_eq!(became("return val + other", sum, "return bool(val and other)"), GONE);
        assert_eq!(became("return val + other", sum, "log(val, other)\nreturn rows"), GONE);
        let fails = ("key", "reportArgumentType");
        let old = "val.insert(key, other)";
        assert_eq!(became(old, fails, "val[other:other] = [key]"), REPLACED);
        assert_eq!(became(old, fails, "val[other:other] = []"), GONE);
    }

    #[test]
    fn a_value_that_may_be_none_is_still_needed() {
        let fails = ("strip", "reportOptionalMemberAccess");
        let old = "key = val.name.strip() + rows.strip()\nreturn key";
        assert_eq!(became(old, fails, "key = rows.strip()\nreturn key"), GONE);
        assert_eq!(became(old, fails, "key = str(val.name) + rows.strip()\nreturn key"), GONE);
        assert_eq!(became(old, fails, "key = f'{val.name}' + rows.strip()\nreturn key"), GONE);
        assert_eq!(
            became(old, fails, "name = val.name or ''\nkey = name.strip() + rows.strip()\nreturn key"),
            None
        );
        assert_eq!(became("return rows.get(val).strip()", fails, "return rows[val].strip()"), None);
    }

    #[test]
    fn a_claim_is_not_a_repair() {
        let fails = ("val.size", "reportReturnType");
        let declared = Some(OutstandingReason::Declared);
        assert_eq!(became("return val.size", fails, "assert val.size\nreturn val.size"), declared);
        assert_eq!(became("return val.size", fails, "if not val.size:\n    return 0\nreturn val.size"), None);
        let fails = ("val + rows", "reportOperatorIssue");
        let old = "if other:\n    return val + rows\nreturn other";
        let new = "if other and rows is None:\n    return val + rows\nreturn other";
        assert_eq!(became(old, fails, new), declared);
    }

    #[test]
    fn code_that_always_ran_is_not_made_conditional() {
        let fails = ("val.write(rows)", "reportArgumentType");
        let old = "val.write(rows)";
        assert_eq!(became(old, fails, "val.write(other * rows)"), None);
        assert_eq!(became(old, fails, "if other < 0:\n    val.write(other * rows)"), GONE);
        assert_eq!(
            became(old, fails, "if other:\n    val.write(other * rows)\nelse:\n    val.write('')"),
            None
        );
    }

    #[test]
    fn an_input_that_is_no_longer_read_is_lost() {
        let fails = ("key", "reportPossiblyUnbound");
        let old = "if other:\n    key = val.of(rows)\nreturn key + 1";
        assert_eq!(became(old, ("key + 1", fails.1), "key = val.of(rows)\nreturn key + 1"), GONE);
        let kept = "key = val.of(rows) if other else 0\nreturn key + 1";
        assert_eq!(became(old, ("key + 1", fails.1), kept), None);
    }

    #[test]
    fn what_cannot_be_called_is_used_as_a_value() {
        let base = "def f(val):\n    return val.is_open()\n";
        let fails = ("val.is_open()", "reportCallIssue");
        let message = "Object of type \"bool\" is not callable";
        let became = |new: &str| outstanding_with(base, fails, message, &base.replace(fails.0, new));
        assert_eq!(became("val.is_open"), None);
        assert_eq!(became("callable(val.is_open) and val.is_open()"), GONE);
        assert_eq!(became("True"), GONE);
    }

    #[test]
    fn a_statement_in_an_untyped_helper_is_not_the_same() {
        let base = "def f(val: str | None):\n    return val.size\n";
        let head = "def g(val):\n    return val.size\n\ndef f(val: str | None):\n    return g(val)\n";
        assert_eq!(outstanding(base, ("size", "reportOptionalMemberAccess"), head), GONE);
    }

    #[test]
    fn names_above_the_limit_are_not_misspellings() {
        let long = "a".repeat(100_000);
        assert!(are_near(&long, &long));
        assert!(!are_near(&long, &format!("{long}b")));
        assert!(are_near("lowr", "lower"));
        assert!(is_misspelling("nmae", "name") && is_misspelling("totl", "total"));
        assert!(!is_misspelling("minimum", "maximum") && !is_misspelling("name", "name"));
    }
}
