//! Determines what happened to a statement: whether it still exists, what replaced it, and whether the replacement does the same.

use std::collections::{BTreeMap, BTreeSet};

use super::code::{Code, Statement};
use super::failing::{FailingExpression, FailureKind};
use super::judge::{EditSides, SideCode};
use super::reachability;

/// What happened to a statement.
pub(super) enum StatementFate {
    /// It still exists, or a replacement does the same.
    There,
    /// It exists but is unreachable.
    Unreachable,
    /// It is gone, or its replacement does less.
    Gone,
}

/// The fate of a statement of the base in which something failed.
pub(super) fn statement_fate(
    sides: &EditSides<'_>,
    (base, head): (&SideCode<'_>, &SideCode<'_>),
    file: &str,
    statement: &Statement,
    own: &Code,
    failing: &FailingExpression,
) -> StatementFate {
    let (mut unreachable, mut there) = (false, 0);
    let mut successors: Vec<&Statement> = Vec::new();
    let code = head.code.get(file).filter(|_| head.view(file).is_some_and(|view| view.seen));
    let stays = code.is_some_and(|code| statement.symbol.is_empty() || code.has_symbol(&statement.symbol));
    let last = statement.symbol.rsplit('.').next().unwrap_or_default();
    for (name, code) in head.seen() {
        let Some(view) = head.view(name) else { continue };
        let dark = reachability::ranges(view, sides.unit);
        for found in &code.statements {
            let same = found.tokens == statement.tokens;
            let home = match (stays, name == file) {
                (true, here) => here && (found.symbol == statement.symbol || is_new(base, &found.symbol)),
                (false, _) => !last.is_empty() && found.symbol.rsplit('.').next() == Some(last),
            };
            if !same && !home {
                continue;
            }
            if dark.iter().any(|dark| dark.contains(&found.span.start)) {
                unreachable |= same;
            } else if same {
                there += 1;
            } else {
                successors.push(found);
            }
        }
    }
    let were = base.seen().flat_map(|(_, code)| &code.statements);
    if there > 0 && there >= were.filter(|found| found.tokens == statement.tokens).count() {
        return StatementFate::There;
    }
    let known = |found: &Statement| {
        own.statements.iter().any(|old| old.symbol == statement.symbol && old.tokens == found.tokens)
    };
    let unread = new_dead_stores(statement, own, head);
    let fresh = successors.into_iter().filter(|found| !known(found));
    let fresh: Vec<&Statement> =
        fresh.filter(|found| !unread.contains(&std::ptr::from_ref(*found))).collect();
    let at_home = |found: &&&Statement| !stays || found.symbol == statement.symbol;
    let here: Vec<&Statement> = fresh.iter().filter(at_home).copied().collect();
    let reached = reached(&here, head, |symbol| is_new(base, symbol));
    let fresh: Vec<&Statement> =
        fresh.iter().filter(|found| at_home(found) || reached.contains(&found.symbol)).copied().collect();
    if is_another_value(statement, &here, own, failing) || is_returned_instead(statement, &here, own, failing)
    {
        return StatementFate::There;
    }
    let names = names(statement, own);
    let replacements: Vec<&Statement> =
        here.iter().filter(|found| succeeds(found, statement, &names)).copied().collect();
    if replacements.is_empty() && unreachable {
        StatementFate::Unreachable
    } else if replacements.is_empty()
        || is_passed_through_helper(statement, &replacements, head, base)
        || !does(statement, &fresh, failing)
    {
        StatementFate::Gone
    } else {
        StatementFate::There
    }
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

/// The names that a statement binds if it does nothing else: `name = …`, `name: T = …`, `name = other = …`.
fn bound_names(statement: &Statement) -> Vec<&str> {
    let tokens = &statement.tokens;
    if statement.kind != "expression_statement" || statement.is_bare {
        return Vec::new();
    }
    let is_name = |at: usize| tokens.get(at).is_some_and(|token| statement.names.contains(token));
    let is = |at: usize, wanted: &str| tokens.get(at).is_some_and(|token| token == wanted);
    if is_name(0) && is(1, ":") && tokens.iter().any(|token| token == "=") {
        return vec![tokens[0].as_str()];
    }
    let targets = (0..tokens.len()).step_by(2).take_while(|at| is_name(*at) && is(at + 1, "="));
    targets.map(|at| tokens[at].as_str()).collect()
}

/// The dead stores of a function: statements that only bind names which nothing but other dead stores reads.
fn dead_stores(code: &Code, symbol: &str) -> BTreeSet<*const Statement> {
    if !code.symbols.iter().any(|found| found.name == symbol && !found.is_class) {
        return BTreeSet::new();
    }
    let below = format!("{symbol}.");
    let near =
        code.statements.iter().filter(|found| found.symbol == symbol || found.symbol.starts_with(&below));
    // A bare expression or a `del` does not read a name.
    let reads = |found: &&Statement| {
        !(found.kind == "delete_statement" && found.is_empty) && handed_on(found).is_some()
    };
    let readers: Vec<&Statement> = near.filter(reads).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in readers.iter().flat_map(|found| found.uses.iter()) {
        *counts.entry(name).or_default() += 1;
    }
    let mut binders: BTreeMap<&str, Vec<&Statement>> = BTreeMap::new();
    for found in readers.iter().filter(|found| found.symbol == symbol) {
        for name in bound_names(found) {
            binders.entry(name).or_default().push(found);
        }
    }
    let is_dead_store = |found: &Statement, counts: &BTreeMap<&str, usize>| {
        let others =
            |name: &&str| counts.get(name).copied().unwrap_or(0) > usize::from(found.uses.contains(*name));
        !bound_names(found).iter().any(others)
    };
    let mut dead_stores = BTreeSet::new();
    let mut open: Vec<&Statement> = binders.values().flatten().copied().collect();
    while let Some(found) = open.pop() {
        if is_dead_store(found, &counts) && dead_stores.insert(std::ptr::from_ref(found)) {
            for name in &found.uses {
                counts.entry(name).and_modify(|count| *count -= 1);
                open.extend(binders.get(name.as_str()).into_iter().flatten());
            }
        }
    }
    dead_stores
}

/// Whether the base has no definition of this name.
fn is_new(base: &SideCode<'_>, symbol: &str) -> bool {
    !symbol.is_empty() && !base.code.values().any(|code| code.has_symbol(symbol))
}

/// The names that the definition around a statement uses. Names in its header other than parameters are types.
fn names<'c>(statement: &Statement, own: &'c Code) -> BTreeSet<&'c str> {
    let inside = own.statements.iter().filter(|old| old.symbol == statement.symbol);
    let inside = inside.filter(|old| old.kind != "function_definition");
    let parameters = own.slots.keys().filter(|(symbol, _)| *symbol == statement.symbol);
    let parameters = parameters.filter_map(|(_, slot)| slot.strip_prefix('('));
    inside.flat_map(|old| old.names.iter().map(String::as_str)).chain(parameters).collect()
}

/// Whether a value of the wrong type was replaced by another value. It was not computed, so nothing is lost; but the function
/// must do something else besides.
fn is_another_value(old: &Statement, fresh: &[&Statement], own: &Code, failing: &FailingExpression) -> bool {
    let does_more = || {
        let inside = own.statements.iter().filter(|other| other.symbol == old.symbol);
        inside.filter(|other| other.kind != "function_definition" && other.tokens != old.tokens).count() > 0
    };
    failing.kind == FailureKind::Value
        && old.kind == "return_statement"
        && !failing.calls
        && fresh.iter().any(|new| {
            let is_truth = matches!(new.tokens.get(1).map(String::as_str), Some("True" | "False"));
            let is_value = new.tokens.len() > 1 && (!new.is_empty || is_truth || failing.names.is_empty());
            (new.kind == old.kind && is_value) || (new.kind == "raise_statement" && failing.names.is_empty())
        })
        && does_more()
}

/// Whether the value that the name would have had is returned where it was bound.
fn is_returned_instead(
    old: &Statement,
    fresh: &[&Statement],
    own: &Code,
    failing: &FailingExpression,
) -> bool {
    let bound = own.bindings.iter().filter(|one| one.symbol == old.symbol && one.name == failing.name);
    let mut bound = bound.peekable();
    failing.kind == FailureKind::Name
        && old.kind == "return_statement"
        && bound.peek().is_some()
        && bound.all(|one| {
            let ends = |new: &&&Statement| new.kind == old.kind && new.tokens.ends_with(&one.tokens);
            !one.tokens.is_empty() && fresh.iter().any(|new| ends(&new))
        })
}

/// Operations that work on any value, and therefore do not repair an operation that failed.
const UNIVERSAL: [&str; 19] = [
    "bool",
    "callable",
    "dir",
    "format",
    "hasattr",
    "hash",
    "id",
    "isinstance",
    "issubclass",
    "object",
    "print",
    "repr",
    "str",
    "type",
    "Exception",
    "ValueError",
    "TypeError",
    "RuntimeError",
    "AttributeError",
];

/// Whether the new statements do the same with the failing expression as the old one.
fn does(old: &Statement, fresh: &[&Statement], failing: &FailingExpression) -> bool {
    // A value that was used is not replaced by a value that is not used.
    let taken: Vec<Statement> = fresh
        .iter()
        .filter_map(|new| if old.is_bare { Some((*new).clone()) } else { handed_on(new) })
        .collect();
    let sum = |count: &dyn Fn(&Statement) -> usize| taken.iter().map(count).sum::<usize>();
    let uses = |name: &str| taken.iter().any(|new| new.uses.contains(name));
    match failing.kind {
        FailureKind::Attribute => {
            let kept = || taken.iter().any(|new| asks(new, &failing.name));
            let on = |statement: &Statement| operations(statement, &failing.object);
            let handed = || {
                !failing.handed.is_empty()
                    && failing.handed.iter().all(|name| uses(name))
                    && taken.iter().any(|new| !is_universal(new) && !new.is_empty)
            };
            kept() || (!failing.object.is_empty() && sum(&on) >= on(old).max(1)) || handed()
        }
        FailureKind::Name => {
            let named = || taken.iter().any(|new| new.uses.iter().any(|name| are_near(name, &failing.name)));
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
            old.kind.starts_with("import") || named() || taken.iter().any(filled)
        }
        FailureKind::Call => {
            let kept =
                || taken.iter().any(|new| new.verbs().iter().any(|verb| are_near(verb, &failing.callee)));
            let splat = taken.iter().any(|new| splats(new) > splats(old));
            let handed = || failing.handed.iter().all(|name| uses(name));
            let others = || old.uses.iter().all(|name| uses(name));
            let does_as_much =
                || if failing.callee.is_empty() { others() } else { handed() && sum(&calls) >= calls(old) };
            !splat && (kept() || does_as_much())
        }
        FailureKind::Operation => old.uses.iter().all(|name| uses(name)) && sum(&work) >= work(old),
        FailureKind::Value => !failing.calls || sum(&work) > 0,
        FailureKind::Other => true,
    }
}

/// The part of a statement whose values are used: of an expression statement, the arguments of its call.
fn handed_on(statement: &Statement) -> Option<Statement> {
    if !statement.is_bare {
        return Some(statement.clone());
    }
    let from = statement.tokens.iter().position(|token| token == "(")?;
    if from == 0 || UNIVERSAL.contains(&statement.tokens[from - 1].as_str()) {
        return None;
    }
    let tokens = statement.tokens[from + 1..].to_vec();
    let uses = statement.uses.iter().filter(|name| tokens.contains(name)).cloned().collect();
    Some(Statement { tokens, uses, ..statement.clone() })
}

/// Whether a statement accesses an attribute or calls a function of this name, or of a similar one.
fn asks(statement: &Statement, name: &str) -> bool {
    let tokens = &statement.tokens;
    (0..tokens.len()).any(|at| {
        let asked = at > 0 && tokens[at - 1] == "." || tokens.get(at + 1).is_some_and(|next| next == "(");
        asked && !UNIVERSAL.contains(&tokens[at].as_str()) && are_near(&tokens[at], name)
    })
}

/// How often a statement operates on the name: accesses an attribute or item, or passes it to a function that does not accept
/// any value.
fn operations(statement: &Statement, name: &str) -> usize {
    let tokens = &statement.tokens;
    let mut open: Vec<&str> = Vec::new();
    let mut count = 0;
    for (at, token) in tokens.iter().enumerate() {
        let before = if at == 0 { "" } else { tokens[at - 1].as_str() };
        match token.as_str() {
            "(" if statement.names.contains(before) || before == ")" || before == "]" => open.push(before),
            "(" | "[" | "{" => open.push(""),
            ")" | "]" | "}" => {
                open.pop();
            }
            _ if token == name => {
                let next = tokens.get(at + 1).map_or("", String::as_str);
                let around = open.last().copied().unwrap_or_default();
                let handed = !around.is_empty() && !UNIVERSAL.contains(&around) && next != "=";
                count += usize::from(matches!(next, "." | "[") || handed);
            }
            _ => {}
        }
    }
    count
}

/// Whether all functions that a statement calls accept any value.
fn is_universal(statement: &Statement) -> bool {
    let verbs = statement.verbs();
    !verbs.is_empty() && verbs.iter().all(|verb| UNIVERSAL.contains(verb))
}

/// How many calls a statement has.
fn calls(statement: &Statement) -> usize {
    let is_called = |before: &str| statement.names.contains(before) || matches!(before, ")" | "]");
    statement.tokens.windows(2).filter(|pair| pair[1] == "(" && is_called(&pair[0])).count()
}

/// How many `*` and `**` arguments a statement unpacks.
fn splats(statement: &Statement) -> usize {
    let pairs = statement.tokens.windows(2);
    pairs
        .filter(|pair| matches!(pair[0].as_str(), "(" | ",") && matches!(pair[1].as_str(), "*" | "**"))
        .count()
}

const OPERATORS: [&str; 22] = [
    "+", "-", "*", "/", "//", "%", "**", "@", "|", "&", "^", "<<", ">>", "<", ">", "<=", ">=", "==", "!=",
    "in", "+=", "{",
];

/// How much a statement computes: calls, operators, subscripts, interpolated values.
fn work(statement: &Statement) -> usize {
    let operators = statement.tokens.iter().filter(|token| OPERATORS.contains(&token.as_str())).count();
    let is_held = |before: &str| statement.names.contains(before) || matches!(before, ")" | "]");
    let subscripts = statement.tokens.windows(2).filter(|pair| pair[1] == "[" && is_held(&pair[0])).count();
    calls(statement) + operators + subscripts
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
        let untyped = |symbol: &str| {
            let slots = code.slots.iter().filter(|((of, slot), _)| {
                of == symbol && slot.starts_with('(') && !matches!(slot.as_str(), "(self" | "(cls")
            });
            let mut slots = slots.peekable();
            slots.peek().is_some() && slots.any(|(_, annotation)| annotation.is_none())
        };
        let fresh = code.symbols.iter().filter(|symbol| !symbol.is_class && is_new(base, &symbol.name));
        let fresh: Vec<&str> =
            fresh.map(|symbol| symbol.name.as_str()).filter(|name| untyped(name)).collect();
        let inside = code.statements.iter().filter(|found| fresh.contains(&found.symbol.as_str()));
        inside
            .filter(|found| found.kind != "function_definition")
            .any(|found| lost.iter().any(|name| found.uses.contains(*name)))
    })
}

/// Whether a new statement can be a replacement of an old one: it does something, using what the old one used. `known` are the
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
    if is_less && constants(new) > constants(old) && work(new) < work(old) {
        return false;
    }
    let alike = |a: &str, b: &str| are_alike(a, b);
    let share = |ours: &[&str], treplacements: &[&str]| {
        ours.iter().any(|a| treplacements.iter().any(|b| alike(a, b)))
    };
    let all = |statement: &Statement| {
        statement.names.iter().any(|name| old.names.iter().any(|other| alike(name, other)))
    };
    if old.names.is_empty() {
        return new.kind == old.kind;
    }
    if old.kind == "expression_statement" && new.kind == old.kind {
        // It must act on the same object, or call a function of the same name.
        let first = |statement: &'_ Statement| {
            statement.tokens.iter().find(|token| statement.names.contains(*token)).cloned()
        };
        let same = first(old).zip(first(new)).is_some_and(|(a, b)| alike(&a, &b));
        return same || share(&old.verbs(), &new.verbs());
    }
    all(new) || (new.kind == old.kind && new.uses.iter().any(|name| known.contains(name.as_str())))
}

/// How many constants a statement contains, including empty containers.
fn constants(statement: &Statement) -> usize {
    let is_constant = |token: &&String| {
        matches!(token.as_str(), "\"\"" | "True" | "False" | "None")
            || token.starts_with(|c: char| c.is_ascii_digit())
    };
    let is_empty = |pair: &&[String]| matches!((pair[0].as_str(), pair[1].as_str()), ("[", "]") | ("{", "}"));
    statement.tokens.iter().filter(is_constant).count() + statement.tokens.windows(2).filter(is_empty).count()
}

/// Whether two names are roughly similar.
fn are_alike(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    a.len().min(b.len()) >= 3 && common(&a, &b) * 10 >= (a.len() + b.len()) * 3
}

/// Whether two names are equal or one may be a misspelling of the other.
pub(super) fn are_near(a: &str, b: &str) -> bool {
    let (x, y): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    a == b || (x.len().min(y.len()) >= 3 && common(&x, &y) * 20 >= (x.len() + y.len()) * 6)
}

/// Whether a statement has no visible effect: it calls nothing, and its value is not used or goes to a name that is not read.
pub(super) fn is_dead(statement: &Statement, code: &Code) -> bool {
    let quiet = statement.kind == "expression_statement"
        && calls(statement) == 0
        && !statement.tokens.iter().any(|token| matches!(token.as_str(), "await" | "yield" | "+=" | ":="));
    let unread = |name: &str| {
        let below = format!("{}.", statement.symbol);
        let near = |found: &&Statement| found.symbol == statement.symbol || found.symbol.starts_with(&below);
        !code.statements.iter().filter(near).any(|found| found.uses.contains(name))
    };
    let is_function = code.symbols.iter().any(|symbol| symbol.name == statement.symbol && !symbol.is_class);
    let bound =
        statement.tokens.first().filter(|_| statement.tokens.get(1).is_some_and(|token| token == "="));
    quiet && (statement.is_bare || (is_function && bound.is_some_and(|name| unread(name))))
}

/// Whether an import is unused, both in the file and by importers of the file.
pub(super) fn is_unused_import(statement: &Statement, code: &Code, file: &str) -> bool {
    let is_import =
        |found: &Statement| matches!(found.kind.as_str(), "import_statement" | "import_from_statement");
    let tokens = &statement.tokens;
    // `import x as x` marks a re-export.
    let is_handed_on = (1..tokens.len().saturating_sub(1)).any(|at| {
        tokens[at] == "as" && tokens[at - 1] == tokens[at + 1] && (at < 2 || tokens[at - 2] != ".")
    });
    is_import(statement)
        && !is_handed_on
        && file.rsplit('/').next() != Some("__init__.py")
        && !code.statements.iter().any(|found| found.names.contains("__all__"))
        && !tokens.iter().any(|token| token == "*")
        && !code
            .statements
            .iter()
            .any(|found| !is_import(found) && !found.names.is_disjoint(&statement.names))
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
    use crate::reward::failing;

    /// Whether the replacement of a line does the same; `part` is the expression that fails in it.
    fn done(old: &str, (part, rule): (&str, &str), new: &str) -> bool {
        let text = |line: &str| format!("def f(val, rows, other):\n    {}\n", line.replace('\n', "\n    "));
        let (base, head) = (text(old), text(new));
        let start = base.find(part).unwrap();
        let failing = failing::at(&base, start..start + part.len(), Some(rule));
        let (base, head) = (Code::parse(&base), Code::parse(&head));
        let fresh: Vec<&Statement> = head.statements[1..].iter().collect();
        does(&base.statements[1], &fresh, &failing)
    }

    #[test]
    fn a_failing_attribute_is_replaced_by_another_operation() {
        let old = "return val.lowr() not in rows";
        let fails = ("lowr", "reportAttributeAccessIssue");
        for new in
            ["return val.lower() not in rows", "return lower(val) not in rows", "return val[0] in rows"]
        {
            assert!(done(old, fails, new), "{new}");
        }
        for new in [
            "return not other",
            "return val is None and other",
            "return other or bool(val)",
            "return str(val) in rows",
            "return hasattr(val, 'lowr')",
            "val.lower()\nreturn other",
            "print(val.lower())\nreturn other",
        ] {
            assert!(!done(old, fails, new), "{new}");
        }
        // The call uses the values that are passed to it.
        let each = "for row in rows:\n    if row.note:\n        val.append(row.note.strip())";
        assert!(done(
            "return [row.note.strip() for row in rows]",
            ("strip", "reportOptionalMemberAccess"),
            each
        ));
        let both = "return max(val.values) - val.minimum()";
        assert!(!done(both, ("minimum", "reportAttributeAccessIssue"), "return max(val.values)"));
        assert!(done(
            both,
            ("minimum", "reportAttributeAccessIssue"),
            "return max(val.values) - min(val.values)"
        ));
    }

    #[test]
    fn a_failing_call_is_still_made() {
        let fails = ("'2'", "reportArgumentType");
        let old = "return scale('2', list(rows))";
        assert!(done(old, fails, "return scale(2, list(rows))"));
        assert!(done(old, fails, "return scale(2, rows)"));
        assert!(!done(old, fails, "return list(rows)"));
        assert!(!done(old, fails, "return scale(*other)"));
        let old = "val.write([row.key for row in rows])";
        let fails = ("[row.key for row in rows]", "reportArgumentType");
        assert!(done(old, fails, "for row in rows:\n    other.print(row.key)"));
        assert!(!done(old, fails, "val.exists()"));
    }

    #[test]
    fn a_failing_operation_keeps_its_operands() {
        let fails = ("val + other", "reportOperatorIssue");
        for new in ["return val + (other or 0)", "return f'{val}{other}'", "return sum([val, other])"] {
            assert!(done("return val + other", fails, new), "{new}");
        }
        for new in ["return val", "return val and other"] {
            assert!(!done("return val + other", fails, new), "{new}");
        }
    }

    #[test]
    fn an_undefined_name_is_replaced_by_another_or_by_its_value() {
        let fails = ("totl", "reportUndefinedVariable");
        assert!(done("return totl + 2", fails, "return total + 2"));
        assert!(done("return totl + 2", fails, "return len(rows) * val + 2"));
        assert!(!done("return totl + 2", fails, "return other"));
        assert!(!done("return totl + 2", fails, "return 2"));
    }

    #[test]
    fn an_unread_value_is_dead() {
        let dead = |text: &str| {
            let code = Code::parse(text);
            is_dead(&code.statements[1], &code)
        };
        assert!(dead("def f(x):\n    y = x.size\n    return x\n"));
        assert!(dead("def f(x):\n    x.size\n"));
        assert!(!dead("def f(x):\n    y = x.size\n    return y\n"));
        assert!(!dead("def f(x):\n    y = x.size()\n"));
        assert!(!dead("x = 1\ny = x.size\n"));
    }

    #[test]
    fn names_above_the_limit_are_not_misspellings() {
        let long = "a".repeat(100_000);
        assert!(are_near(&long, &long) && are_alike(&long, &long));
        assert!(!are_near(&long, &format!("{long}b")) && !are_alike(&long, &format!("{long}b")));
        assert!(are_near("lowr", "lower"));
    }
}
