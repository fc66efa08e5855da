//! What a statement does with names: operations on them, calls, values that are used and values that are not.

use std::collections::{BTreeMap, BTreeSet};

use super::code::{Code, Statement};
use super::fate::are_near;

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
pub(super) fn dead_stores(code: &Code, symbol: &str) -> BTreeSet<*const Statement> {
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

/// The part of a statement whose values are used: of an expression statement, the arguments of its call.
pub(super) fn handed_on(statement: &Statement) -> Option<Statement> {
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

/// On how many objects a statement accesses an attribute, or calls a function, of this name or of a similar one.
pub(super) fn requests(statement: &Statement, name: &str) -> usize {
    let tokens = &statement.tokens;
    let is_asked = |at: &usize| {
        let asked = *at > 0 && tokens[at - 1] == "." || tokens.get(at + 1).is_some_and(|next| next == "(");
        asked && !UNIVERSAL.contains(&tokens[*at].as_str()) && are_near(&tokens[*at], name)
    };
    let object = |at: usize| match at.checked_sub(2) {
        Some(before) if tokens[at - 1] == "." => tokens[before].as_str(),
        _ => "",
    };
    (0..tokens.len()).filter(is_asked).map(object).collect::<BTreeSet<&str>>().len()
}

/// The parameters of a statement's lambdas and the variables of its comprehensions.
pub(super) fn inner_names(statement: &Statement) -> BTreeSet<&str> {
    let mut inner = BTreeSet::new();
    let (mut end, mut before) = ("", "");
    for token in statement.tokens.iter().map(String::as_str) {
        match token {
            "lambda" => end = ":",
            "for" if statement.kind != "for_statement" => end = "in",
            token if token == end => end = "",
            // Not the default value of a parameter.
            token if !end.is_empty() && before != "=" && statement.names.contains(token) => {
                inner.insert(token);
            }
            _ => {}
        }
        before = token;
    }
    inner
}

/// How often a statement operates on the name: accesses an attribute or item, or passes it to a function that does not accept
/// any value.
pub(super) fn operations(statement: &Statement, name: &str) -> usize {
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

/// How many calls a statement has.
pub(super) fn calls(statement: &Statement) -> usize {
    let is_called = |before: &str| statement.names.contains(before) || matches!(before, ")" | "]");
    statement.tokens.windows(2).filter(|pair| pair[1] == "(" && is_called(&pair[0])).count()
}

/// How many `*` and `**` arguments a statement unpacks.
pub(super) fn splats(statement: &Statement) -> usize {
    let pairs = statement.tokens.windows(2);
    pairs
        .filter(|pair| matches!(pair[0].as_str(), "(" | ",") && matches!(pair[1].as_str(), "*" | "**"))
        .count()
}

const OPERATORS: [&str; 22] = [
    "+", "-", "*", "/", "//", "%", "**", "@", "|", "&", "^", "<<", ">>", "<", ">", "<=", ">=", "==", "!=",
    "in", "+=", "{",
];

/// Functions that convert a value without computing anything.
const CASTS: [&str; 9] = ["str", "int", "float", "bool", "bytes", "list", "tuple", "set", "len"];

/// The names that a statement binds: the targets of an assignment, of a loop, after `as`.
pub(super) fn targets(statement: &Statement) -> BTreeSet<&str> {
    let Statement { tokens, names, .. } = statement;
    let is_name = |token: &&str| names.contains(*token);
    let mut tokens = tokens.iter().map(String::as_str);
    let mut found = BTreeSet::new();
    match statement.kind.as_str() {
        "for_statement" => found.extend(tokens.take_while(|token| *token != "in").filter(is_name)),
        "with_statement" | "except_clause" => {
            while tokens.by_ref().any(|token| token == "as") {
                found.extend(tokens.next().filter(is_name));
            }
        }
        "expression_statement" if !statement.is_bare => {
            let (mut open, mut before) = (Vec::new(), "=");
            for token in tokens {
                match token {
                    "=" => found.extend(open.drain(..)),
                    "," | "*" | ")" | "]" => {}
                    "(" | "[" if matches!(before, "=" | "," | "(" | "[") => {}
                    token if is_name(&token) => open.push(token),
                    // A variable with an annotation.
                    ":" if found.is_empty() && open.len() == 1 => return open.into_iter().collect(),
                    _ => break,
                }
                before = token;
            }
        }
        _ => {}
    }
    found
}

/// How many names a statement unpacks a value into.
pub(super) fn unpacked(statement: &Statement) -> usize {
    let is_list =
        statement.kind == "expression_statement" && statement.tokens.get(1).is_some_and(|token| token == ",");
    if is_list { targets(statement).len() } else { 0 }
}

/// How much a statement computes: calls other than conversions, operators, subscripts, interpolated values.
pub(super) fn work(statement: &Statement) -> usize {
    let operators = statement.tokens.iter().filter(|token| OPERATORS.contains(&token.as_str())).count();
    let is_held = |before: &str| statement.names.contains(before) || matches!(before, ")" | "]");
    let subscripts = statement.tokens.windows(2).filter(|pair| pair[1] == "[" && is_held(&pair[0])).count();
    let casts = statement.verbs().into_iter().filter(|verb| CASTS.contains(verb)).count();
    calls(statement).saturating_sub(casts) + operators + subscripts
}

/// Names, and the variables that statements bind to something that is made of them.
pub(super) fn made_of<'t>(names: &'t BTreeSet<String>, taken: &'t [Statement]) -> BTreeSet<&'t str> {
    let mut users: BTreeMap<&str, Vec<&Statement>> = BTreeMap::new();
    for statement in taken {
        for name in &statement.uses {
            users.entry(name).or_default().push(statement);
        }
    }
    let mut made = BTreeSet::new();
    let mut open: Vec<&str> = names.iter().map(String::as_str).collect();
    while let Some(name) = open.pop() {
        if made.insert(name) {
            open.extend(users.remove(name).into_iter().flatten().flat_map(targets));
        }
    }
    made
}

/// Whether a statement calls a function that another does not call, and that not every value allows.
pub(super) fn calls_another(statement: &Statement, other: &Statement) -> bool {
    let known = other.verbs();
    let is_other = |verb: &&str| !known.contains(verb) && !UNIVERSAL.contains(verb) && !CASTS.contains(verb);
    statement.verbs().iter().any(is_other)
}

/// Whether a statement does something that not every value allows: 1 or 0.
pub(super) fn executes(statement: &Statement) -> usize {
    let verbs = statement.verbs();
    usize::from(
        !statement.is_empty && (verbs.is_empty() || verbs.iter().any(|verb| !UNIVERSAL.contains(verb))),
    )
}

/// The number of arguments in the first call of a function; `None` if it is not called.
pub(super) fn arguments(statement: &Statement, callee: &str) -> Option<usize> {
    let tokens = &statement.tokens;
    let at = (1..tokens.len()).find(|at| tokens[*at] == "(" && tokens[at - 1] == callee)?;
    let (mut depth, mut count, mut is_empty) = (0, 0, true);
    for token in &tokens[at..] {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            "," if depth == 1 => {
                count += usize::from(!is_empty);
                is_empty = true;
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
        is_empty &= token == "(" && depth == 1;
    }
    Some(count + usize::from(!is_empty))
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn names_are_bound_by_assignments_loops_and_clauses() {
        for (text, expected) in [
            ("a = b = f(c=1)", "a b"),
            ("a, *b = c", "a b"),
            ("a: int = b", "a"),
            ("a.b = c", ""),
            ("a[b] = c", ""),
            ("(a, [b]) = c", "a b"),
            ("a = (b, c)", "a"),
            ("a = f(b, c=d)", "a"),
            ("f(a=b)", ""),
            ("for a, b in c: pass", "a b"),
            ("with f(a) as b, g(c) as d: pass", "b d"),
        ] {
            let code = Code::parse(&format!("{text}\n"));
            let found: Vec<&str> = targets(&code.statements[0]).into_iter().collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn arguments_are_counted_at_the_top_level() {
        let count = |text: &str| arguments(&Code::parse(text).statements[0], "f");
        assert_eq!(count("f()\n"), Some(0));
        assert_eq!(count("x = g(f(a, (b, c), k=[1, 2],))\n"), Some(3));
        assert_eq!(count("g(f)\n"), None);
    }
}
