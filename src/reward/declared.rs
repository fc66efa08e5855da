//! Whether a failing expression that stays as it is was repaired, or only declared to be right: a definition without substance,
//! an annotation, a stub or a decorator satisfies a checker and changes nothing that runs.

use std::collections::{BTreeMap, BTreeSet};

use super::code::{BoundValue, Code, CodeSymbol, NameBinding, Statement};
use super::failing::FailureKind;
use super::fate::{FailingCode, Fate, are_near, is_misspelling, is_new};
use super::judge::SideCode;
use super::usage::{calls, work};

/// The fate of a failing expression whose statement is still there.
pub(super) fn fate(code: &FailingCode<'_>) -> Fate {
    let same =
        |found: &Statement| found.symbol == code.statement.symbol && found.tokens == code.statement.tokens;
    let mut same =
        code.head.seen().flat_map(|(_, code)| &code.statements).filter(|found| same(found)).peekable();
    if same.peek().is_some() && !same.any(|found| found.literals == code.statement.literals) {
        return Fate::InPlace;
    }
    if is_only_claimed(code) {
        return Fate::Declared;
    }
    let given = match code.failing.kind {
        FailureKind::Attribute => attribute(code),
        FailureKind::Name => name(code),
        FailureKind::Call if swallows(code) || is_only_let_in(code) => Some(Fate::Declared),
        _ => None,
    };
    given.unwrap_or_else(|| match (changes_anything(code.base, code.head), corrects(code.base, code.head)) {
        (true, _) => Fate::InPlace,
        (false, true) => Fate::Replaced,
        (false, false) => Fate::Declared,
    })
}

/// Whether the definition only got an `assert` about what fails, or a condition that no failing value asks for: it claims a
/// type, and changes no value.
fn is_only_claimed(code: &FailingCode<'_>) -> bool {
    let FailingCode { head, names, own, statement, failing, .. } = *code;
    let is_known = |new: &Statement| {
        own.statements.iter().any(|old| old.symbol == new.symbol && old.tokens == new.tokens)
    };
    let now = head.code.get(names.1).into_iter().flat_map(|code| &code.statements);
    let about: Vec<&Statement> = now
        .filter(|new| new.symbol == statement.symbol && !is_known(new))
        .filter(|new| new.names.iter().any(|name| failing.names.contains(name)))
        .collect();
    let holds_it = |test: &Statement| {
        let now = head.code.get(names.1).into_iter().flat_map(|code| &code.statements);
        now.filter(|found| found.tokens == statement.tokens)
            .any(|found| test.whole.contains(&found.span.start))
    };
    let is_test = |new: &Statement| {
        matches!(new.kind.as_str(), "if_statement" | "elif_clause" | "while_statement")
            && matches!(failing.kind, FailureKind::Operation | FailureKind::Call | FailureKind::Value)
            && !failing.is_optional
            && !failing.is_union
            && holds_it(new)
    };
    !about.is_empty() && about.iter().all(|new| new.kind == "assert_statement" || is_test(new))
}

/// Whether the function that is called takes more types than before, and computes nothing for them.
fn is_only_let_in(code: &FailingCode<'_>) -> bool {
    let FailingCode { base, head, failing, .. } = *code;
    head.code.iter().any(|(file, now)| {
        let Some(then) = base.code.get(file) else { return false };
        let of_callee = |symbol: &str| last(symbol) == failing.callee;
        let mut wider = now.slots.iter().filter(|((symbol, slot), annotation)| {
            let before = then.slots.get(&(symbol.clone(), slot.clone())).and_then(Option::as_ref);
            of_callee(symbol)
                && annotation
                    .as_ref()
                    .zip(before)
                    .is_some_and(|(now, then)| now != then && is_wider(now, then))
        });
        let computes = |symbol: &str| {
            let mut inside = now.statements.iter().filter(|new| new.symbol == symbol && !new.is_empty);
            inside.any(|new| {
                let is_header = new.kind.ends_with("_definition")
                    || matches!(new.kind.as_str(), "if_statement" | "elif_clause");
                let mut before = then.statements.iter();
                !is_header && !before.any(|old| old.symbol == symbol && old.tokens == new.tokens)
            })
        };
        wider.any(|((symbol, _), _)| !computes(symbol))
    })
}

/// The name of the enclosing definition.
fn owner(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(owner, _)| owner)
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// A definition of an attribute: its class, and the binding or the method.
struct AttributeDefinition<'s> {
    class: &'s CodeSymbol,
    code: &'s Code,
    binding: Option<&'s NameBinding>,
    method: Option<&'s CodeSymbol>,
}

/// The definitions of an attribute.
fn members<'s>(side: &'s SideCode<'_>, name: &'s str) -> Vec<AttributeDefinition<'s>> {
    let mut found = Vec::new();
    for code in side.code.values() {
        let class =
            |wanted: &str| code.symbols.iter().find(|symbol| symbol.is_class && symbol.name == wanted);
        for method in code.symbols.iter().filter(|symbol| last(&symbol.name) == name) {
            let class = class(owner(&method.name));
            found.extend(class.map(|class| AttributeDefinition {
                class,
                code,
                binding: None,
                method: Some(method),
            }));
        }
        for binding in code.bindings.iter().filter(|binding| binding.name == name) {
            let holder = if binding.of_self { owner(&binding.symbol) } else { &binding.symbol };
            found.extend(class(holder).map(|class| AttributeDefinition {
                class,
                code,
                binding: Some(binding),
                method: None,
            }));
        }
    }
    found
}

/// The fate of a missing attribute; `None` if no definition of it appeared.
fn attribute(code: &FailingCode<'_>) -> Option<Fate> {
    let FailingCode { base, head, statement, failing, .. } = *code;
    let name = failing.name.as_str();
    let old = members(base, name);
    // The attribute may have moved with its class to another name.
    if old.iter().any(|one| !head.code.values().any(|code| code.has_symbol(&one.class.name))) {
        return None;
    }
    let all = members(head, name);
    let fresh: Vec<&AttributeDefinition<'_>> =
        all.iter().filter(|one| !old.iter().any(|other| other.class.name == one.class.name)).collect();
    let is_real = |one: &&&AttributeDefinition<'_>| {
        base.code.values().any(|code| code.has_symbol(&one.class.name))
            && is_meant(base, one, name)
            && match (one.binding, one.method) {
                (Some(binding), _) => !is_hollow(one.class, binding, statement),
                (_, Some(method)) => method.is_class || computes(one.code, method),
                _ => false,
            }
    };
    match (fresh.is_empty(), fresh.iter().find(is_real)) {
        (true, _) => None,
        (false, Some(_)) => Some(Fate::Replaced),
        (false, None) => Some(Fate::Declared),
    }
}

/// Whether a member is not merely a misspelling of another one that its class has: it stands for that one, or there is none.
fn is_meant(base: &SideCode<'_>, member: &AttributeDefinition<'_>, name: &str) -> bool {
    let class = member.class;
    let is_constant = member.binding.is_some_and(|one| one.value == BoundValue::Constant);
    let is_same_value = |one: &NameBinding| member.binding.is_some_and(|own| own.tokens == one.tokens);
    let held =
        |one: &NameBinding| one.symbol == class.name || (one.of_self && owner(&one.symbol) == class.name);
    let mut near = base.code.values().flat_map(|code| {
        let bound = code.bindings.iter().filter(move |one| held(one)).map(|one| one.name.as_str());
        let methods = code.symbols.iter().filter(move |one| owner(&one.name) == class.name);
        let alike = code.bindings.iter().filter(move |one| {
            held(one) && one.name != name && is_constant && are_near(&one.name, name) && is_same_value(one)
        });
        bound
            .chain(methods.map(|one| last(&one.name)))
            .filter(move |other| is_misspelling(other, name))
            .chain(alike.map(|one| one.name.as_str()))
    });
    let uses = |other: &str| match (member.binding, member.method) {
        (Some(binding), _) => binding.tokens.iter().any(|token| token == other),
        (_, Some(method)) => member
            .code
            .statements
            .iter()
            .any(|found| method.span.contains(&found.span.start) && found.uses.contains(other)),
        _ => false,
    };
    let mut near = near.by_ref().peekable();
    near.peek().is_none() || near.any(uses)
}

/// Whether a function computes something from all that it is given.
fn computes(code: &Code, function: &CodeSymbol) -> bool {
    let inside = || {
        code.statements.iter().filter(|found| {
            function.span.contains(&found.span.start)
                && !found.kind.ends_with("_definition")
                && found.kind != "decorator"
        })
    };
    let slots = code.slots.keys().filter(|(symbol, _)| *symbol == function.name);
    let parameters =
        slots.filter_map(|(_, slot)| slot.strip_prefix('(')).map(|slot| slot.trim_start_matches('*'));
    let is_read = |name: &str| inside().any(|found| found.uses.contains(name));
    let does = |found: &Statement| {
        !found.is_empty && (calls(found) + work(found) > 0 || found.tokens.iter().any(|token| token == "."))
    };
    let mut parameters = parameters.filter(|name| !matches!(*name, "self" | "cls"));
    parameters.all(is_read) && inside().any(does)
}

/// Base classes whose bodies declare the attributes of their instances.
const DECLARING: [&str; 8] =
    ["Enum", "IntEnum", "StrEnum", "Flag", "NamedTuple", "TypedDict", "BaseModel", "Protocol"];

/// Whether the body of a class declares the attributes of its instances.
fn declares(class: &CodeSymbol) -> bool {
    class.decorators.iter().any(|(name, _)| matches!(name.as_str(), "dataclass" | "define"))
        || class.bases.iter().any(|base| DECLARING.contains(&base.as_str()))
}

/// Whether an attribute never gets a real value.
fn is_hollow(class: &CodeSymbol, binding: &NameBinding, statement: &Statement) -> bool {
    let none = binding.tokens.iter().map(String::as_str).eq(["None"]);
    let is_enum = class.bases.iter().any(|base| base.contains("Enum") || base.contains("Flag"));
    match binding.value {
        BoundValue::Made => false,
        // Filling the container gives it a real value.
        BoundValue::Empty => !fills(statement, &binding.name),
        BoundValue::Declared | BoundValue::Constant => {
            none || !declares(class) || binding.of_self || !(binding.is_annotated || is_enum)
        }
    }
}

/// Whether a statement adds something to the named container.
fn fills(statement: &Statement, name: &str) -> bool {
    let tokens = &statement.tokens;
    (0..tokens.len()).any(|at| {
        let next = |by: usize| tokens.get(at + by).map_or("", String::as_str);
        let method = next(1) == "."
            && matches!(next(2), "append" | "add" | "update" | "extend" | "insert" | "setdefault");
        let item = next(1) == "[" && statement.kind == "expression_statement" && !statement.is_bare;
        tokens[at] == name && (method || item)
    })
}

/// The fate of an undefined name; `None` if nothing was defined for it.
fn name(code: &FailingCode<'_>) -> Option<Fate> {
    let FailingCode { base, head, names, own, statement, failing, .. } = *code;
    let name = failing.name.as_str();
    // An import below `if TYPE_CHECKING` defines nothing at run time.
    let imports = |side: &SideCode<'_>, file: &str, typing_only: bool| {
        let all = side.code.get(file).into_iter().flat_map(|code| &code.statements);
        let mut imports = all.filter(|found| found.kind.starts_with("import") && found.names.contains(name));
        imports.any(|found| found.is_typing_only == typing_only)
    };
    if imports(head, names.1, false) {
        return None;
    }
    let runs = statement.executed().iter().any(|token| token == name);
    if imports(head, names.1, true) && !imports(base, names.0, true) {
        return runs.then_some(Fate::Declared);
    }
    let reaches = |one: &&NameBinding| {
        one.name == name && !one.of_self && (one.symbol.is_empty() || one.symbol == statement.symbol)
    };
    fn bindings<'s>(side: &'s SideCode<'_>) -> impl Iterator<Item = &'s NameBinding> {
        side.code.values().flat_map(|code| &code.bindings)
    }
    if bindings(base).any(|binding| reaches(&binding)) {
        return None;
    }
    let meant = |other: &str| is_misspelling(other.trim_start_matches('('), name);
    let near = own
        .statements
        .iter()
        .filter(|old| old.symbol == statement.symbol)
        .any(|old| old.names.iter().any(|other| meant(other)))
        || own.slots.keys().any(|(symbol, slot)| *symbol == statement.symbol && meant(slot));
    // A parameter with a default value, which no caller needs to pass.
    let optional = |found: &Statement| {
        found.kind == "function_definition"
            && found.symbol == statement.symbol
            && found.executed().windows(2).any(|pair| pair[0] == name && pair[1] == "=")
    };
    if head.code.values().flat_map(|code| &code.statements).any(optional) {
        return Some(Fate::Declared);
    }
    // A lower-case constant outside of the function was not what the function meant.
    let is_real = |one: &NameBinding| match one.value {
        BoundValue::Declared => false,
        BoundValue::Constant => one.symbol == statement.symbol || !name.chars().any(char::is_lowercase),
        BoundValue::Empty | BoundValue::Made => true,
    };
    let fresh: Vec<&NameBinding> = bindings(head).filter(reaches).collect();
    if !fresh.is_empty() {
        let real = fresh.iter().any(|one| is_real(one) && !(near && one.value != BoundValue::Made));
        return Some(if real { Fate::Replaced } else { Fate::Declared });
    }
    let defined = head.code.values().flat_map(|code| code.symbols.iter().map(move |one| (code, one)));
    let mut defined =
        defined.filter(|(_, one)| last(&one.name) == name && is_new(base, &one.name)).peekable();
    defined.peek()?;
    let real = !near && defined.any(|(code, one)| is_substantial(code, one));
    Some(if real { Fate::Replaced } else { Fate::Declared })
}

/// Whether a new function or class does anything.
pub(super) fn is_substantial(code: &Code, symbol: &CodeSymbol) -> bool {
    let is_method = |one: &&CodeSymbol| !one.is_class && owner(&one.name) == symbol.name;
    let is_error = || {
        symbol
            .bases
            .iter()
            .any(|base| base.ends_with("Error") || base == "Exception" || base.ends_with("Warning"))
    };
    if symbol.is_class {
        is_error() || declares(symbol) || code.symbols.iter().filter(is_method).any(|one| computes(code, one))
    } else {
        computes(code, symbol)
    }
}

/// Whether new statements use a new function or class that does nothing.
pub(super) fn uses_hollow(code: &FailingCode<'_>, taken: &[Statement]) -> bool {
    let FailingCode { base, head, statement, .. } = *code;
    let mut fresh = head.code.values().flat_map(|code| code.symbols.iter().map(move |one| (code, one)));
    fresh.any(|(code, one)| {
        let name = last(&one.name);
        // A function inside of this one has its names.
        !one.name.strip_prefix(&statement.symbol).is_some_and(|rest| rest.starts_with('.'))
            && !statement.names.contains(name)
            && taken.iter().any(|new| new.symbol != one.name && new.verbs().contains(&name))
            && is_new(base, &one.name)
            && !is_substantial(code, one)
    })
}

/// Whether the function that is called got parameters that it does not use.
fn swallows(code: &FailingCode<'_>) -> bool {
    let FailingCode { base, head, failing, .. } = *code;
    let is_callee = |symbol: &&CodeSymbol| {
        !symbol.is_class
            && (last(&symbol.name) == failing.callee
                || (last(&symbol.name) == "__init__" && last(owner(&symbol.name)) == failing.callee))
    };
    let slots = |side: &SideCode<'_>, symbol: &str| -> BTreeSet<String> {
        let all = side.code.values().flat_map(|code| code.slots.keys());
        all.filter(|(of, _)| of == symbol).map(|(_, slot)| slot.clone()).collect()
    };
    head.code.values().any(|code| {
        code.symbols.iter().filter(is_callee).any(|callee| {
            let (old, new) = (slots(base, &callee.name), slots(head, &callee.name));
            let mut added = new.difference(&old).filter_map(|slot| slot.strip_prefix('('));
            let inside = || {
                code.statements.iter().filter(|found| {
                    callee.span.contains(&found.span.start) && !found.kind.ends_with("_definition")
                })
            };
            !old.is_empty()
                && added.any(|name| !inside().any(|found| found.uses.contains(name.trim_start_matches('*'))))
        })
    })
}

/// Decorators of the standard library that change what a definition is.
const REAL_DECORATORS: [&str; 9] = [
    "property",
    "staticmethod",
    "classmethod",
    "dataclass",
    "cached_property",
    "contextmanager",
    "asynccontextmanager",
    "setter",
    "total_ordering",
];

/// Whether an edit changes anything that runs: not only annotations, declarations, imports for them, definitions that nothing
/// uses, or decorators.
fn changes_anything(base: &SideCode<'_>, head: &SideCode<'_>) -> bool {
    let names: BTreeSet<&str> = base.code.keys().chain(head.code.keys()).copied().collect();
    names.into_iter().any(|name| {
        let (old, new) = (executed(base, head, name), executed(head, base, name));
        old != new
    })
}

/// Whether an edit changes annotations, and none of them only to a type that allows more.
fn corrects(base: &SideCode<'_>, head: &SideCode<'_>) -> bool {
    let mut changed = head.code.iter().flat_map(|(name, code)| {
        let old = base.code.get(name).map(|code| &code.slots);
        code.slots.iter().filter_map(move |(slot, now)| Some((old?.get(slot)?.as_ref()?, now.as_ref()?)))
    });
    let mut changed = changed.by_ref().filter(|(then, now)| then != now).peekable();
    changed.peek().is_some() && !changed.any(|(then, now)| is_wider(now, then))
}

/// Whether an annotation names all types of another, and more.
fn is_wider(now: &str, then: &str) -> bool {
    let names = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| c != '_' && !c.is_alphanumeric());
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let (now, then) = (names(now), names(then));
    now.len() > then.len() && now.is_superset(&then) || now.contains("object") || now.contains("Any")
}

/// What runs in a file, by definition, each with its number of occurrences.
fn executed<'s>(
    side: &'s SideCode<'_>,
    other: &SideCode<'_>,
    name: &str,
) -> BTreeMap<(&'s str, &'s [String]), usize> {
    let mut counts = BTreeMap::new();
    let Some(code) = side.code.get(name) else { return counts };
    let runs: Vec<&Statement> = code
        .statements
        .iter()
        .filter(|found| runs(found, other.code.get(name).map(|code| &**code), other))
        .collect();
    let read: BTreeSet<&str> = runs
        .iter()
        .filter(|found| !is_import(found))
        .flat_map(|found| found.executed().iter().skip(usize::from(is_alias(found))))
        .map(String::as_str)
        .collect();
    let is_used = |found: &Statement| match found.tokens.iter().rposition(|token| token == "import") {
        Some(at) => {
            let mut bound = found.tokens[at + 1..].iter().filter(|token| found.names.contains(*token));
            bound.any(|token| read.contains(token.as_str()))
        }
        None => found.tokens.first().is_some_and(|token| read.contains(token.as_str())),
    };
    for found in runs {
        if !(is_import(found) || is_alias(found)) || is_used(found) {
            *counts.entry((found.symbol.as_str(), found.executed())).or_default() += 1;
        }
    }
    counts
}

/// Whether a statement runs, apart from the definitions that only new code or a decorator uses.
fn runs(found: &Statement, before: Option<&Code>, other: &SideCode<'_>) -> bool {
    let is_declaration = found.executed().len() < 2 && found.executable.is_some();
    let is_decorator =
        found.kind == "decorator" && !found.names.iter().any(|name| REAL_DECORATORS.contains(&name.as_str()));
    // Python calls a special method that a class gets.
    let is_special = last(&found.symbol).starts_with("__")
        && before.is_some_and(|code| code.has_symbol(owner(&found.symbol)));
    let is_unused = is_new(other, &found.symbol) && !is_special;
    let is_nothing = found.is_empty && found.is_bare || found.kind == "assert_statement";
    !(is_declaration || is_decorator || is_unused || is_nothing || found.is_typing_only)
}

fn is_import(found: &Statement) -> bool {
    found.kind.starts_with("import")
}

/// Whether a statement binds a name of the module.
fn is_alias(found: &Statement) -> bool {
    found.symbol.is_empty()
        && found.kind == "expression_statement"
        && found.executed().get(1).is_some_and(|token| token == "=")
}

#[cfg(test)]
mod tests {
    use crate::model::reward::OutstandingReason;
    use crate::reward::testing::outstanding;

    /// Whether the name that is missing in `base` is only declared in `head`; `part` is the expression that fails.
    fn declared(base: &str, (part, rule): (&str, &str), head: &str) -> bool {
        outstanding(base, (part, rule), head) == Some(OutstandingReason::Declared)
    }

    const P: &str = "class P:\n    def __init__(self, name: str) -> None:\n        self.name = name\n\n    def f(self) -> str:\n        return self.size\n";
    const SIZE: (&str, &str) = ("size", "reportAttributeAccessIssue");

    #[test]
    fn an_attribute_without_a_real_value_is_declared() {
        let with =
            |line: &str| declared(P, SIZE, &P.replace("class P:\n", &format!("class P:\n    {line}\n")));
        for line in ["size = None", "size = 0", "size: int", "size: int = 0", "size = []"] {
            assert!(with(line), "{line}");
        }
        let filled = P.replace("= name\n", "= name\n        self.size = len(name)\n");
        assert!(!declared(P, SIZE, &filled));
        let data = P.replace("class P", "@dataclass\nclass P");
        assert!(!declared(&data, SIZE, &data.replace("class P:\n", "class P:\n    size: int = 0\n")));
        assert!(declared(&data, SIZE, &data.replace("class P:\n", "class P:\n    size = 0\n")));
    }

    #[test]
    fn a_new_method_must_compute_something() {
        let with = |body: &str| {
            let method = format!("    def size(self, by: int = 1) -> int:\n        {body}\n\n    def f");
            declared(P, SIZE, &P.replacen("    def f", &method, 1))
        };
        assert!(!with("return len(self.name) * by"));
        for body in ["return 0", "return by", "return len(self.name)", "..."] {
            assert!(with(body), "{body}");
        }
        let misspelled = P.replace("self.size", "self.nmae");
        let alias = "    @property\n    def nmae(self) -> str:\n        return self.name\n\n    def f";
        let head = misspelled.replacen("    def f", alias, 1);
        // It stands for the name that was meant.
        assert!(!declared(&misspelled, ("nmae", SIZE.1), &head));
        let other =
            format!("class Q(P):\n    def size(self) -> int:\n        return len(self.name)\n\n\n{P}");
        assert!(declared(P, SIZE, &other));
    }

    #[test]
    fn a_constant_in_place_of_the_meant_name_is_declared() {
        let base = "def f(a):\n    total = a * 2\n    return totl\n";
        let fails = ("totl", "reportUndefinedVariable");
        assert!(declared(base, fails, &format!("totl = 0\n{base}")));
        assert!(declared(base, fails, &base.replace("f(a)", "f(a, totl=None)")));
        assert!(!declared(base, fails, &format!("totl = work()\n{base}")));
        let far = base.replace("total", "b");
        assert!(declared(&far, fails, &format!("totl = 0\n{far}")));
        assert!(declared(&far, fails, &format!("totl: int\n{far}")));
        assert!(!declared(&far, fails, &format!("totl = work()\n{far}")));
        let loud = far.replace("totl", "TOTL");
        assert!(!declared(&loud, ("TOTL", fails.1), &format!("TOTL = 0\n{loud}")));
        let call = "def f(a):\n    return work(a)\n";
        let fails = ("work", fails.1);
        assert!(declared(call, fails, &format!("def work(a):\n    return a\n\n{call}")));
        assert!(!declared(call, fails, &format!("def work(a):\n    return a * 2\n\n{call}")));
    }

    #[test]
    fn a_type_checking_import_of_a_name_used_at_run_time_is_declared() {
        let guard = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shop import Book\n";
        let fails = ("Book", "reportUndefinedVariable");
        let runs = "def f(a):\n    return isinstance(a, Book)\n";
        assert!(declared(runs, fails, &format!("{guard}{runs}")));
        assert!(!declared(runs, fails, &format!("from shop import Book\n{runs}")));
    }

    #[test]
    fn annotations_decorators_and_unused_parameters_repair_nothing() {
        let base = "def g(x: int) -> int:\n    return x\n\ndef f(x: str) -> int:\n    return g(x, 1)\n";
        let fails = ("g(x, 1)", "reportCallIssue");
        for head in [
            base.replace("x: int", "x: int | str"),
            format!("from typing import Union\n\n{}", base.replace("x: int", "x: Union[int, str]")),
            format!("def loose(h):\n    return h\n\n@loose\n{base}"),
            base.replace("x: int", "x: int, y: int = 0"),
        ] {
            assert!(declared(base, fails, &head), "{head}");
        }
        let used = base.replace("x: int", "x: int, y: int = 0").replace("return x\n", "return x + y\n");
        assert!(!declared(base, fails, &used));
        assert!(!declared(base, fails, &base.replace("return x\n", "return int(x)\n")));
    }
}
