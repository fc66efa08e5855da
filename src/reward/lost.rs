//! What an edit throws away along with a failing expression: names that nothing uses any more, the case of `None`, a path that
//! always ran.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use super::code::{Code, Statement};
use super::failing::{FailingExpression, FailureKind};
use super::fate::{FailingCode, are_near, is_misspelling, is_new};
use super::usage::targets;

/// The statements of the same definition that are gone, the failing one included.
pub(super) fn gone<'c>(code: &FailingCode<'c>) -> impl Iterator<Item = &'c Statement> {
    let FailingCode { head, names, own, statement, .. } = *code;
    let now = head.code.get(names.1);
    let is_gone = move |old: &&Statement| {
        let mut all = now.into_iter().flat_map(|code| &code.statements);
        !all.any(|new| new.symbol == old.symbol && new.tokens == old.tokens)
    };
    own.statements.iter().filter(|old| old.symbol == statement.symbol).filter(is_gone)
}

/// Functions that only convert or inspect a value; a repair may do without them.
const CONVERSIONS: [&str; 27] = [
    "str",
    "int",
    "float",
    "bool",
    "bytes",
    "list",
    "dict",
    "set",
    "tuple",
    "frozenset",
    "len",
    "repr",
    "iter",
    "next",
    "sorted",
    "sum",
    "min",
    "max",
    "any",
    "all",
    "range",
    "enumerate",
    "zip",
    "format",
    "join",
    "isinstance",
    "super",
];

/// Whether new statements use a name, or can do without it.
pub(super) fn is_used(taken: &[Statement], name: &str) -> bool {
    let is_near = |new: &Statement| new.uses.iter().any(|other| are_near(other, name));
    CONVERSIONS.contains(&name) || taken.iter().any(|new| new.uses.contains(name) || is_near(new))
}

/// Whether what may be `None` is only passed to functions that take any value.
pub(super) fn is_only_converted(taken: &[Statement], failing: &FailingExpression) -> bool {
    let names: Vec<&String> = match failing.kind {
        FailureKind::Attribute => vec![&failing.object],
        _ => failing.names.iter().collect(),
    };
    let mut is_found = false;
    for statement in taken {
        let tokens: Vec<&str> = statement.tokens.iter().map(String::as_str).collect();
        for at in (0..tokens.len()).filter(|at| names.iter().any(|name| name.as_str() == tokens[*at])) {
            let is_step = |first: usize| tokens.get(first) == Some(&".");
            let (mut start, mut end) = (at, at + 1);
            while start >= 2 && is_step(start - 1) {
                start -= 2;
            }
            while is_step(end) {
                end += 2;
            }
            let before = |by: usize| start.checked_sub(by).map_or("", |at| tokens[at]);
            let is_text = before(1) == "{" && matches!(tokens.get(end), Some(&("}" | "!" | ":")));
            let is_call = before(1) == "(" && matches!(before(2), "str" | "repr" | "format");
            if !(is_text || is_call && tokens.get(end) == Some(&")")) {
                return false;
            }
            is_found = true;
        }
    }
    is_found
}

/// Whether code that the edit took out of a definition read one of its parameters, or in the definition that fails a name from
/// outside, which the definition no longer reads.
pub(super) fn loses_inputs(code: &FailingCode<'_>) -> bool {
    let FailingCode { base, head, statement, .. } = *code;
    let reads = |found: &Statement, name: &String| {
        let tokens = &found.tokens;
        let is_input = |at: usize| {
            tokens[at] == *name
                && (at == 0 || tokens[at - 1] != ".")
                && tokens.get(at + 1).is_none_or(|next| next != "(")
        };
        found.uses.contains(name) && (0..tokens.len()).any(is_input)
    };
    let is_code =
        |found: &&Statement| !found.kind.ends_with("_definition") && !found.kind.starts_with("import");
    base.code.iter().any(|(file, own)| {
        let Some(now) = head.code.get(file) else { return false };
        let within =
            |new: &Statement, symbol: &str| new.symbol.starts_with(symbol) || is_new(base, &new.symbol);
        let is_gone = |old: &&Statement| {
            now.has_symbol(&old.symbol)
                && !now.statements.iter().any(|new| new.symbol == old.symbol && new.tokens == old.tokens)
        };
        // Most files have no statement that is gone.
        let locals = LazyCell::new(|| {
            let mut locals: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
            for one in &own.statements {
                locals.entry(&one.symbol).or_default().extend(targets(one));
            }
            locals
        });
        own.statements.iter().filter(is_code).filter(is_gone).any(|old| {
            let slot = |name: &String| (old.symbol.clone(), format!("({name}"));
            let is_local = |name: &String| {
                locals.get(old.symbol.as_str()).is_some_and(|names| names.contains(name.as_str()))
            };
            let is_outside = |name: &String| {
                old.symbol == statement.symbol && !is_local(name) && !own.slots.contains_key(&slot(name))
            };
            let mut lost = old.uses.iter().filter(|name| reads(old, name)).filter(|name| {
                let mut inside = now.statements.iter().filter(is_code).filter(|new| within(new, &old.symbol));
                !inside.any(|new| new.uses.iter().any(|other| other == *name || is_misspelling(other, name)))
            });
            lost.any(|name| now.slots.contains_key(&slot(name)) || is_outside(name))
        })
    })
}

/// Whether the new code only runs under a condition that nothing about the failure asks for, with nothing for the other case.
pub(super) fn is_made_conditional(code: &FailingCode<'_>, here: &[&Statement]) -> bool {
    let FailingCode { head, names, failing, .. } = *code;
    fn is_test(found: &Statement) -> bool {
        found.kind == "if_statement"
    }
    if failing.is_optional
        || failing.is_union
        || failing.kind == FailureKind::Other
        || gone(code).any(is_test)
    {
        return false;
    }
    let Some(now) = head.code.get(names.1) else { return false };
    // `if a > b: c = a` may stand for `c = max(a, b)`.
    let old = code.statement;
    let chooses = old.verbs().iter().any(|verb| matches!(*verb, "max" | "min"));
    let computes = |test: &Statement| {
        let only =
            |name: &&String| !here.iter().any(|found| found.span != test.span && found.uses.contains(*name));
        failing.kind == FailureKind::Name
            && chooses
            && old.uses.intersection(&test.uses).any(|name| only(&name))
    };
    here.iter().filter(|found| is_test(found) && !computes(found)).any(|test| {
        let inside =
            |found: &Statement| found.span.start > test.span.end && test.whole.contains(&found.span.start);
        let mut others = now.statements.iter().filter(|found| inside(found));
        let has_else = others.any(|found| matches!(found.kind.as_str(), "else_clause" | "elif_clause"));
        let mut work = here.iter().filter(|found| !is_test(found)).peekable();
        !has_else && work.peek().is_some() && work.all(|found| inside(found))
    })
}

/// Whether something that the statement used besides the failing expression is used by none of the new ones.
pub(super) fn throws_away(code: &FailingCode<'_>, taken: &[Statement], is_replaced: bool) -> bool {
    let FailingCode { head, names, own, statement: old, failing, .. } = *code;
    let parts = |name: &String| match failing.kind {
        FailureKind::Call => failing.is_argument && failing.names.contains(name) || failing.callee == *name,
        FailureKind::Value => failing.callee == *name,
        _ => failing.names.contains(name) || is_replaced && failing.chain.contains(name),
    };
    let attributes: BTreeSet<&String> =
        old.tokens.windows(2).filter(|pair| pair[0] == ".").map(|pair| &pair[1]).collect();
    let called = old.verbs();
    let now = head.code.get(names.1).map(|code| &**code);
    let is_input = |name: &String| {
        let slot = (old.symbol.clone(), format!("({name}"));
        let is_bound =
            |code: &Code| code.bindings.iter().any(|one| one.symbol == old.symbol && one.name == *name);
        attributes.contains(name)
            || called.contains(&name.as_str())
            || own.slots.contains_key(&slot)
            || (is_bound(own) && now.is_some_and(is_bound))
    };
    old.uses.iter().any(|name| !is_used(taken, name) && !parts(name) && is_input(name))
}
