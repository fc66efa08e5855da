//! Detects expressions whose type the checker lost: values that an edit passes through something that returns `Any`, such as a
//! container that is filled later, a lookup by name, or a conversion to a string and back.
//!
//! The expressions of an edit's new statements are wrapped in `reveal_type(…)`, which returns its argument and makes the server
//! report its type. An expression is a *source* if its type is unknown although the types of all its parts are known: the type
//! was lost right there. Unannotated code loses no types, since none are known.

mod wrap;

use std::collections::{BTreeMap, BTreeSet};

use super::code::{Code, NameBinding, Statement};
use super::failing::{FailingExpression, FailureKind};
use super::fate::are_near;
use super::judge::RepairedPlace;
use super::usage::targets;
use crate::text::names::{is_in_name, names_of};
use wrap::{ProbedExpression, ProbedKind};

/// A text in which expressions are wrapped in `reveal_type(…)`.
#[derive(Debug)]
pub struct Probe {
    /// The instrumented text.
    pub text: String,
    marks: Vec<ProbedExpression>,
    /// The statements whose expressions are probed.
    probed: Vec<ProbedStatement>,
    bases: Vec<Code>,
    /// The old statements by definition, without white space.
    written: BTreeMap<String, Vec<String>>,
    head: Code,
    /// Whether the code redefines `reveal_type`, so that the result cannot be trusted.
    is_unreliable: bool,
}

/// A statement whose expressions are probed.
#[derive(Debug, Clone)]
struct ProbedStatement {
    statement: Statement,
    /// Whether it is new; otherwise it only uses new code.
    is_new: bool,
    /// The expressions that failed in it before.
    failed: Vec<FailingExpression>,
}

/// Type names that carry no information.
const VAGUE: [&str; 2] = ["Unknown", "Any"];

/// Whether a type carries no information.
fn is_vague(kind: &str) -> bool {
    let mut parts = kind.split(" | ").filter(|part| *part != "None").peekable();
    parts.peek().is_some() && parts.all(|part| VAGUE.contains(&part))
}

impl Probe {
    /// The probe for `text`, the new version of `bases`, in which expressions at `repaired` no longer fail; `None` when there
    /// is nothing to probe.
    #[must_use]
    pub fn of(bases: &[&str], text: &str, repaired: &[&RepairedPlace]) -> Option<Self> {
        let mut written: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let read = |text: &&str| {
            let code = Code::parse(text);
            for old in &code.statements {
                let squeezed = squeezed(text.get(old.span.clone()).unwrap_or_default());
                written.entry(old.symbol.clone()).or_default().push(squeezed);
            }
            code
        };
        let bases: Vec<Code> = bases.iter().map(read).collect();
        let head = Code::parse(text);
        if head.has_error {
            return None;
        }
        let mut probed = statements_to_probe(&bases, &head);
        for place in repaired {
            let Some(at) = head.statements.iter().find(|found| found.span == place.span) else { continue };
            let known = probed.iter().position(|one| one.statement.span == place.span);
            let known = known.unwrap_or_else(|| {
                probed.push(ProbedStatement { statement: at.clone(), is_new: false, failed: Vec::new() });
                probed.len() - 1
            });
            probed[known].failed.push(place.failing.clone());
        }
        let wanted: Vec<_> = probed.iter().map(|one| one.statement.span.clone()).collect();
        let (text, marks) = wrap::wrap(text, &wanted);
        let is_unreliable = bases.iter().chain([&head]).any(redefines_reveal_type);
        (is_unreliable || !marks.is_empty()).then_some(Self {
            text,
            marks,
            probed,
            bases,
            written,
            head,
            is_unreliable,
        })
    }

    /// How many types were lost, given the server's messages and their byte offsets in the instrumented text.
    #[must_use]
    pub fn lost<'m>(&self, messages: impl IntoIterator<Item = (usize, &'m str)>) -> usize {
        let mut types: BTreeMap<usize, &str> = BTreeMap::new();
        for (at, message) in messages {
            let kind = message.strip_prefix("Type of ").and_then(|rest| rest.rsplit_once("\" is \""));
            if let Some((_, kind)) = kind {
                types.insert(at, kind.trim_end_matches('"'));
            }
        }
        let kinds: Vec<Option<&str>> = self.marks.iter().map(|mark| types.get(&mark.at).copied()).collect();
        let is_silent = kinds.iter().all(Option::is_none) && !self.is_silenced();
        let lost = (0..self.marks.len()).filter(|at| self.is_lost(*at, &kinds)).count();
        lost.max(usize::from(self.is_unreliable || is_silent))
    }

    /// Whether a `type: ignore` before all code silences the server. Whether that is new is checked by [`super::suppressions`].
    fn is_silenced(&self) -> bool {
        let code = self.head.statements.first().map_or(usize::MAX, |first| first.span.start);
        let mut above = self.head.comments.iter().filter(|(span, _)| span.start < code);
        above.any(|(_, text)| text.contains("type: ignore"))
    }

    fn is_lost(&self, at: usize, kinds: &[Option<&str>]) -> bool {
        let mark = &self.marks[at];
        let Some(probed) = self.probed.iter().find(|one| one.statement.span.contains(&mark.span.start))
        else {
            return false;
        };
        let silent = |mark: &usize| kinds[*mark].is_none();
        let of_place = |mark: &usize| probed.statement.span.contains(&self.marks[*mark].span.start);
        // The server does not report the types of code that cannot run.
        if !probed.failed.is_empty()
            && !self.is_silenced()
            && (0..kinds.len()).filter(of_place).all(|at| silent(&at))
        {
            return true;
        }
        let Some(kind) = kinds[at] else { return false };
        if probed.failed.iter().any(|failing| is_erased(mark, kind, kinds, failing)) {
            return true;
        }
        let operand = mark.operand.and_then(|operand| kinds[operand]);
        let of_module = operand.is_some_and(|kind| kind == "ModuleType" || kind.starts_with("ModuleType |"));
        if kind == "Never" || kind.contains("<subclass of ") || kind.contains("<callable subtype of ") {
            // The edit claims a type that no value has, or that only the claim made.
            return mark.form == ProbedKind::Name || mark.form == ProbedKind::Attribute;
        }
        if !is_vague(kind) || operand.is_some_and(is_vague) {
            return false;
        }
        if !probed.is_new {
            return mark.form == ProbedKind::Attribute && of_module;
        }
        if mark.bound.is_none() && self.only_renames(&probed.statement) {
            return false;
        }
        let symbol = &probed.statement.symbol;
        if mark.operand.is_some_and(|operand| self.was_open(symbol, operand, kinds)) {
            return false;
        }
        match mark.form {
            ProbedKind::Attribute => {
                of_module || self.is_assigned(&mark.name) || !self.is_known_attribute(&mark.name)
            }
            ProbedKind::Subscript => !self.was_there(symbol, &mark.text),
            ProbedKind::Call => {
                let fed = |inner: &usize| {
                    kinds[*inner].is_some_and(is_vague) || self.was_open(symbol, *inner, kinds)
                };
                !mark.inner.iter().any(fed)
                    && !self.was_there(symbol, &mark.text)
                    && !self.was_called(symbol, mark)
            }
            ProbedKind::Name => match &mark.bound {
                Some(from) => !from.is_some_and(|from| {
                    kinds[from].is_some_and(is_vague) || self.was_open(symbol, from, kinds)
                }),
                None => self.is_unknown_name(symbol, &mark.name),
            },
        }
    }

    /// Whether a part of an expression's type is unknown because that of an object is which the definition used before: what
    /// such an object holds had no type to lose.
    fn was_open(&self, symbol: &str, at: usize, kinds: &[Option<&str>]) -> bool {
        let mark = &self.marks[at];
        let is_open = |kind: &str| names_of(kind).any(|name| VAGUE.contains(&name));
        if !kinds[at].is_some_and(is_open) {
            return false;
        }
        let path = if mark.form == ProbedKind::Call { &mark.object } else { &mark.text };
        let last = path.rsplit('.').next().unwrap_or_default();
        let is_name = !last.is_empty() && last.chars().all(is_in_name);
        let was_used = is_name && self.is_written(symbol, path) && !self.is_bound_anew(symbol, last);
        let parts = mark.operand.into_iter().chain(mark.inner.iter().copied());
        was_used || parts.into_iter().any(|part| self.was_open(symbol, part, kinds))
    }

    /// Whether the edit binds a name of a definition, or an attribute of this name, to something else.
    fn is_bound_anew(&self, symbol: &str, name: &str) -> bool {
        let is_new = |one: &&NameBinding| {
            one.name == name
                && (one.of_self || one.symbol == symbol)
                && !self.bases.iter().any(|code| code.bindings.contains(one))
        };
        let binds = |new: &Statement| {
            let is_walrus = |pair: &[String]| pair[0] == name && pair[1] == ":=";
            targets(new).contains(name) || new.tokens.windows(2).any(is_walrus)
        };
        let new = self.probed.iter().filter(|one| one.is_new).map(|one| &one.statement);
        self.head.bindings.iter().any(|one| is_new(&one))
            || new.into_iter().any(|new| new.symbol == symbol && binds(new))
    }

    /// Whether a statement equals an old one except for one renamed name.
    fn only_renames(&self, statement: &Statement) -> bool {
        let mut old = self.bases.iter().flat_map(|code| &code.statements);
        old.any(|old| {
            let pairs = old.tokens.iter().zip(&statement.tokens);
            let other: Vec<_> = pairs.filter(|(a, b)| a != b).collect();
            old.symbol == statement.symbol
                && old.tokens.len() == statement.tokens.len()
                && other.len() == 1
                && other.iter().all(|(a, b)| old.names.contains(*a) && statement.names.contains(*b))
        })
    }

    /// Whether the definition had this expression before.
    fn was_there(&self, symbol: &str, text: &str) -> bool {
        self.written.get(symbol).into_iter().flatten().any(|old| old.contains(text))
    }

    /// Whether the definition had this name, or path of names, before.
    fn is_written(&self, symbol: &str, path: &str) -> bool {
        let path: Vec<&str> = path
            .split_inclusive('.')
            .flat_map(|part| match part.strip_suffix('.') {
                Some(name) => vec![name, "."],
                None => vec![part],
            })
            .collect();
        let has = |old: &Statement| {
            let mut windows = old.tokens.windows(path.len()).enumerate();
            windows.any(|(at, window)| window.iter().eq(&path) && (at == 0 || old.tokens[at - 1] != "."))
        };
        let mut old = self.bases.iter().flat_map(|code| &code.statements);
        old.any(|old| old.symbol == symbol && has(old))
    }

    /// Whether the definition called a function of this or a similar name on the same object before.
    fn was_called(&self, symbol: &str, mark: &ProbedExpression) -> bool {
        let mut old = self.bases.iter().flat_map(|code| &code.statements).filter(|old| old.symbol == symbol);
        let called = |old: &Statement| {
            old.tokens.iter().enumerate().any(|(at, token)| {
                let on = if at > 1 && old.tokens[at - 1] == "." { old.tokens[at - 2].as_str() } else { "" };
                old.tokens.get(at + 1).is_some_and(|next| next == "(")
                    && are_near(token, &mark.name)
                    && mark.object.rsplit('.').next() == Some(on)
            })
        };
        old.any(called)
    }

    /// Whether any object in the old texts has an attribute of this name.
    fn is_known_attribute(&self, name: &str) -> bool {
        let asks = |old: &Statement| old.tokens.windows(2).any(|pair| pair[0] == "." && pair[1] == name);
        self.bases.iter().any(|code| {
            let is_class = |of: &str| code.symbols.iter().any(|symbol| symbol.is_class && symbol.name == of);
            code.statements.iter().any(asks)
                || code.bindings.iter().any(|one| one.name == name && is_class(&one.symbol))
        })
    }

    /// Whether a new statement assigns this attribute on anything but `self`.
    fn is_assigned(&self, name: &str) -> bool {
        let new = self.probed.iter().filter(|one| one.is_new && one.statement.kind == "expression_statement");
        new.map(|one| &one.statement.tokens).any(|tokens| {
            let Some(end) = tokens.iter().position(|token| token == "=") else { return false };
            end > 2 && tokens[end - 1] == name && tokens[end - 2] == "." && !(end == 3 && tokens[0] == "self")
        })
    }

    /// The names that a definition used before, and its old and new parameters.
    fn names(&self, symbol: &str) -> BTreeSet<String> {
        let own = self.bases.iter().flat_map(|code| &code.statements).filter(|old| old.symbol == symbol);
        let slots = self.bases.iter().chain([&self.head]).flat_map(|code| code.slots.keys());
        let around = |of: &str| of == symbol || symbol.starts_with(&format!("{of}."));
        let parameters = slots.filter(|(of, _)| around(of)).filter_map(|(_, slot)| slot.strip_prefix('('));
        own.flat_map(|old| old.names.iter().cloned()).chain(parameters.map(str::to_owned)).collect()
    }

    /// Whether a name is neither a parameter of the definition nor one that it used before.
    fn is_unknown_name(&self, symbol: &str, name: &str) -> bool {
        let around = |of: &str| of == symbol || symbol.starts_with(&format!("{of}."));
        let bound =
            self.head.bindings.iter().any(|one| one.name == name && !one.of_self && around(&one.symbol));
        !bound && !self.names(symbol).contains(name)
    }
}

/// Whether the receiver, callee or operand of an expression that failed has no type any more. It had one: the checker does not
/// report an expression whose parts it does not know.
fn is_erased(
    mark: &ProbedExpression,
    kind: &str,
    kinds: &[Option<&str>],
    failing: &FailingExpression,
) -> bool {
    let operand = mark.operand.and_then(|operand| kinds[operand]);
    let takes_anything = |kind: &str| kind.contains("(*args, **kwargs)") || kind.contains("(...)");
    match failing.kind {
        FailureKind::Attribute => {
            mark.form == ProbedKind::Attribute && mark.name == failing.name && operand.is_some_and(is_vague)
        }
        FailureKind::Call => {
            mark.form == ProbedKind::Call
                && mark.name == failing.callee
                && operand.is_some_and(|kind| is_vague(kind) || takes_anything(kind))
        }
        FailureKind::Operation | FailureKind::Value => {
            mark.form == ProbedKind::Name && failing.names.contains(&mark.text) && is_vague(kind)
        }
        FailureKind::Name | FailureKind::Other => false,
    }
}

/// Whether a text binds the name `reveal_type`: as a definition, parameter, import or variable. Calls of it and its import
/// from `typing` do not count.
fn redefines_reveal_type(code: &Code) -> bool {
    let takes = |statement: &Statement| {
        let tokens: Vec<&str> = statement.tokens.iter().map(String::as_str).collect();
        let is_import = statement.kind == "import_from_statement"
            && matches!(tokens.get(1), Some(&("typing" | "typing_extensions")))
            && !tokens.contains(&"as");
        let place = |at: &usize| tokens[*at] == "reveal_type";
        !is_import
            && (0..tokens.len()).filter(place).any(|at| {
                let before = if at == 0 { "" } else { tokens[at - 1] };
                matches!(before, "def" | "class")
                    || (before != "." && tokens.get(at + 1).is_none_or(|next| *next != "("))
            })
    };
    let statements = code.statements.iter().filter(|statement| statement.names.contains("reveal_type"));
    statements.into_iter().any(takes)
}

/// The text without white space.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The statements to probe: new ones, and those that use a name that a new one binds or declares.
fn statements_to_probe(bases: &[Code], head: &Code) -> Vec<ProbedStatement> {
    let has_symbol = |symbol: &str| symbol.is_empty() || bases.iter().any(|code| code.has_symbol(symbol));
    let was = |statement: &Statement| {
        bases.iter().flat_map(|code| &code.statements).any(|old| {
            old.tokens == statement.tokens
                && (old.symbol == statement.symbol || !has_symbol(&statement.symbol))
        })
    };
    let (old, new): (Vec<&Statement>, Vec<&Statement>) = head.statements.iter().partition(|one| was(one));
    let mut bound_names: BTreeSet<(&str, &str)> = BTreeSet::new();
    for statement in &new {
        if statement.kind == "expression_statement" {
            let bound = statement
                .tokens
                .first()
                .filter(|_| statement.tokens.get(1).is_some_and(|token| token == "="));
            bound_names.extend(bound.map(|name| (statement.symbol.as_str(), name.as_str())));
        }
        if statement.names.contains("isinstance") || statement.names.contains("issubclass") {
            bound_names.extend(statement.uses.iter().map(|name| (statement.symbol.as_str(), name.as_str())));
        }
    }
    let uses = |statement: &Statement| {
        bound_names.iter().any(|(symbol, name)| {
            (symbol.is_empty() || *symbol == statement.symbol) && statement.uses.contains(*name)
        })
    };
    let make = |statement: &Statement, is_new: bool| ProbedStatement {
        statement: statement.clone(),
        is_new,
        failed: Vec::new(),
    };
    let users = old.into_iter().filter(|statement| uses(statement)).map(|one| make(one, false));
    new.into_iter().map(|one| make(one, true)).chain(users).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "def f(x: A | None) -> str:\n    return x.city\n";

    /// How many types are lost if these expressions have these types and all others are known.
    fn lost(base: &str, head: &str, types: &[(&str, &str)]) -> usize {
        let Some(probe) = Probe::of(&[base], head, &[]) else { return 0 };
        let messages: Vec<(usize, String)> = probe
            .marks
            .iter()
            .map(|mark| {
                let found = types.iter().find(|(text, _)| *text == mark.text).map_or("str", |(_, kind)| kind);
                (mark.at, format!("Type of \"{}\" is \"{found}\"", mark.text))
            })
            .collect();
        probe.lost(messages.iter().map(|(at, message)| (*at, message.as_str())))
    }

    #[test]
    fn a_type_is_lost_where_its_parts_are_known() {
        let head = "def f(x: A | None) -> str:\n    held = []\n    held.append(x)\n    return held[0].city\n";
        let types = [("held", "list[Unknown]"), ("held[0]", "Unknown"), ("held[0].city", "Unknown")];
        assert_eq!(lost(BASE, head, &types), 1);
        assert_eq!(lost(BASE, head, &[("held", "list[A]")]), 0);
        for made in
            ["(held) = []", "for held in [[]]:\n        pass", "if (held := []) is None:\n        pass"]
        {
            let head = head.replace("held = []", made);
            assert_eq!(lost(BASE, &head, &types), 1, "{made}");
        }
        // A type that was unknown before is not lost.
        let types = [("held", "Unknown"), ("held[0]", "Unknown"), ("held[0].city", "Unknown")];
        assert_eq!(lost(BASE, head, &types), 0);
    }

    #[test]
    fn what_an_untyped_container_holds_had_no_type_to_lose() {
        let base = "class C:\n    def f(self):\n        return list(self.kept.iteritems())\n";
        let held = [
            ("self.kept", "dict[Unknown, Unknown]"),
            ("self.kept.items()", "dict_items[Unknown, Unknown]"),
            ("k", "Unknown"),
            ("self.kept[k]", "Unknown"),
        ];
        let with = |line: &str| base.replace("return list(self.kept.iteritems())", line);
        assert_eq!(lost(base, &with("return [k for k in self.kept.items()]"), &held), 0);
        assert_eq!(lost(base, &with("return [self.kept[k] for k in self.kept]"), &held), 0);
        let both = [("both(self.kept,k)", "tuple[Unknown, int]"), ("a", "Unknown"), held[0]];
        assert_eq!(lost(base, &with("for a, b in both(self.kept, k):\n            return a"), &both), 0);
        let each = "for k in self.kept:\n            use(self.kept[k])";
        assert_eq!(lost(base, &with(each), &held), 0);
        let made = "self.kept = {}\n        return [k for k in self.kept.items()]";
        assert_eq!(lost(base, &with(made), &held), 1);
        let other = [("kept", held[0].1), ("kept.items()", held[1].1), held[2]];
        assert_eq!(lost(base, &with("kept = {}\n        return [k for k in kept.items()]"), &other), 1);
    }

    #[test]
    fn a_loop_variable_may_lose_its_type() {
        let head = "def f(x: A | None) -> str:\n    for y in every(x):\n        return y.city\n";
        assert_eq!(lost(BASE, head, &[("y", "Unknown"), ("y.city", "Unknown")]), 1);
        assert_eq!(
            lost(BASE, head, &[("every(x)", "Unknown"), ("y", "Unknown"), ("x", "Any"), ("y.city", "Any")]),
            0
        );
    }

    #[test]
    fn a_renamed_name_loses_no_type() {
        let base = "def f(x: str) -> str:\n    return json.laods(x)\n";
        assert_eq!(lost(base, &base.replace("laods", "loads"), &[("json.loads(x)", "Any")]), 0);
        let head = "def f(x: str) -> str:\n    return pickle.loads(raw(x))\n";
        assert_eq!(lost(base, head, &[("pickle.loads(raw(x))", "Any")]), 1);
    }

    #[test]
    fn any_and_unknown_are_vague() {
        assert!(is_vague("Any") && is_vague("Unknown | None"));
        assert!(!is_vague("str | Any") && !is_vague("None") && !is_vague("list[Any]"));
    }

    #[test]
    fn redefining_reveal_type_counts_as_a_lost_type() {
        let head = |line: &str| format!("{line}\ndef f(x: A | None) -> str:\n    return x.town\n");
        for line in [
            "def reveal_type(x): return x",
            "reveal_type = print",
            "from tools import reveal_type",
            "from tools import same as reveal_type",
            "for reveal_type in (): pass",
            "def g(reveal_type): pass",
            "class reveal_type: pass",
        ] {
            assert_eq!(lost(BASE, &head(line), &[]), 1, "{line}");
            assert_eq!(lost(&head(line), BASE, &[]), 1, "{line}");
        }
        for line in ["reveal_type(A)", "from typing import reveal_type", "x.reveal_type()"] {
            assert_eq!(lost(BASE, &head(line), &[]), 0, "{line}");
        }
        let probe = Probe::of(&[BASE], &head(""), &[]).unwrap();
        assert_eq!(probe.lost([]), 1);
        assert_eq!(Probe::of(&[BASE], &head("# type: ignore"), &[]).unwrap().lost([]), 0);
    }
}
