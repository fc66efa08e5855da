//! A name that was missing and is there now, by name only: an attribute that is the same always, a class of its own for one
//! method, a constant beside the name that was meant.

use super::code::{Binding, Code, Statement, Symbol, Value};
use super::failing::{Failing, Kind};
use super::judge::Side;
use super::succession::are_near;

/// Whether what a statement missed was made up.
pub(super) fn is(base: &Side<'_>, head: &Side<'_>, statement: &Statement, failing: &Failing) -> bool {
    match failing.kind {
        Kind::Attribute => is_attribute(base, head, statement, &failing.name),
        Kind::Name => is_name(base, head, statement, &failing.name),
        _ => false,
    }
}

/// The definition around another.
fn owner(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(owner, _)| owner)
}

/// The classes of a side that define an attribute, each with what it is bound to; a method is `None`.
fn definitions<'s>(side: &'s Side<'_>, name: &'s str) -> Vec<(&'s Symbol, Option<&'s Binding>)> {
    let mut found = Vec::new();
    for code in side.code.values() {
        let class =
            |wanted: &str| code.symbols.iter().find(|symbol| symbol.is_class && symbol.name == wanted);
        let named = |symbol: &&Symbol| symbol.name.rsplit('.').next() == Some(name);
        let methods = code.symbols.iter().filter(named).filter_map(|symbol| class(owner(&symbol.name)));
        found.extend(methods.map(|class| (class, None)));
        for binding in code.bindings.iter().filter(|binding| binding.name == name) {
            let holder = if binding.of_self { owner(&binding.symbol) } else { &binding.symbol };
            found.extend(class(holder).map(|class| (class, Some(binding))));
        }
    }
    found
}

fn is_attribute(base: &Side<'_>, head: &Side<'_>, statement: &Statement, name: &str) -> bool {
    let (old, new) = (definitions(base, name), definitions(head, name));
    let known = |class: &Symbol| base.code.values().any(|code| code.has_symbol(&class.name));
    let was = |class: &Symbol| old.iter().any(|(other, _)| other.name == class.name);
    // What a class that went defined may live in one of another name.
    let renamed = old.iter().any(|(class, _)| !head.code.values().any(|code| code.has_symbol(&class.name)));
    let mut fresh = new.iter().filter(|(class, _)| !was(class)).peekable();
    !renamed
        && fresh.peek().is_some()
        && fresh.all(|(class, binding)| {
            !known(class) || binding.is_some_and(|one| is_hollow(class, one, statement))
        })
}

/// Classes whose bodies declare what their instances are made with, or what there is.
const DECLARING: [&str; 8] =
    ["Enum", "IntEnum", "StrEnum", "Flag", "NamedTuple", "TypedDict", "BaseModel", "Protocol"];

/// Whether an attribute holds nothing that anything put there.
fn is_hollow(class: &Symbol, binding: &Binding, statement: &Statement) -> bool {
    let none = binding.tokens.iter().map(String::as_str).eq(["None"]);
    let declares = class.decorators.iter().any(|(name, _)| matches!(name.as_str(), "dataclass" | "define"))
        || class.bases.iter().any(|base| DECLARING.contains(&base.as_str()));
    match binding.value {
        Value::Made => false,
        // What is put into it makes it something.
        Value::Empty => !fills(statement, &binding.name),
        Value::Declared | Value::Constant => none || !declares || binding.of_self,
    }
}

/// Whether a statement puts something into what has a name.
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

fn is_name(base: &Side<'_>, head: &Side<'_>, statement: &Statement, name: &str) -> bool {
    let reaches = |binding: &&Binding| {
        binding.name == name
            && !binding.of_self
            && (binding.symbol.is_empty() || binding.symbol == statement.symbol)
    };
    fn bindings<'s>(side: &'s Side<'_>) -> impl Iterator<Item = &'s Binding> {
        side.code.values().flat_map(|code| &code.bindings)
    }
    if bindings(base).any(|binding| reaches(&binding)) {
        return false;
    }
    let mut fresh = bindings(head).filter(reaches).peekable();
    let meant = |code: &Code| {
        let inside = code.statements.iter().filter(|found| found.symbol == statement.symbol);
        let mut names = inside
            .flat_map(|found| &found.names)
            .chain(code.slots.keys().filter(|(symbol, _)| *symbol == statement.symbol).map(|(_, slot)| slot));
        names.any(|other| {
            other.trim_start_matches('(') != name && are_near(other.trim_start_matches('('), name)
        })
    };
    fresh.peek().is_some()
        && fresh.all(|binding| binding.value != Value::Made)
        && base.code.values().any(meant)
}
