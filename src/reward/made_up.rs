//! A name that was missing and is there now, by name only: an attribute that is the same always, a class of its own for one
//! method, a constant beside the name that was meant.

use super::code::{Binding, Code, Statement, Symbol, Value};
use super::failing::{Failing, Kind};
use super::judge::Side;
use super::succession::are_near;

/// Whether what a statement of a file missed was made up.
pub(super) fn is(
    (base, head): (&Side<'_>, &Side<'_>),
    file: &str,
    statement: &Statement,
    failing: &Failing,
) -> bool {
    match failing.kind {
        Kind::Attribute => is_attribute(base, head, statement, &failing.name),
        Kind::Name => is_name((base, head), file, statement, &failing.name),
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
            !known(class)
                || binding.is_some_and(|one| is_hollow(class, one, statement) || is_slip(base, class, one))
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
    let is_enum = class.bases.iter().any(|base| base.contains("Enum") || base.contains("Flag"));
    match binding.value {
        Value::Made => false,
        // What is put into it makes it something.
        Value::Empty => !fills(statement, &binding.name),
        Value::Declared | Value::Constant => {
            none || !declares || binding.of_self || !(binding.is_annotated || is_enum)
        }
    }
}

/// Whether an attribute that is the same always is a slip of one that the class has.
fn is_slip(base: &Side<'_>, class: &Symbol, binding: &Binding) -> bool {
    let held = |one: &&Binding| one.symbol == class.name || (one.of_self && owner(&one.symbol) == class.name);
    let mut held = base.code.values().flat_map(|code| &code.bindings).filter(held);
    binding.value != Value::Made && held.any(|one| are_near(&one.name, &binding.name))
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

fn is_name((base, head): (&Side<'_>, &Side<'_>), file: &str, statement: &Statement, name: &str) -> bool {
    let reaches = |binding: &&Binding| {
        binding.name == name
            && !binding.of_self
            && (binding.symbol.is_empty() || binding.symbol == statement.symbol)
    };
    fn bindings<'s>(side: &'s Side<'_>) -> impl Iterator<Item = &'s Binding> {
        side.code.values().flat_map(|code| &code.bindings)
    }
    // An import for the type checker leaves nothing there when the code runs.
    let imports = |side: &Side<'_>, typing_only: bool| {
        let all = side.code.get(file).into_iter().flat_map(|code| &code.statements);
        let mut imports = all.filter(|found| found.kind.starts_with("import") && found.names.contains(name));
        imports.any(|found| found.is_typing_only == typing_only)
    };
    let runs = statement.kind != "function_definition" && statement.uses.contains(name);
    if runs && imports(head, true) && !imports(base, true) && !imports(head, false) {
        return true;
    }
    if bindings(base).any(|binding| reaches(&binding)) {
        return false;
    }
    // A parameter that has a value of its own, and that nobody needs to hand over.
    let optional = |found: &Statement| {
        found.kind == "function_definition"
            && found.symbol == statement.symbol
            && found.tokens.windows(2).any(|pair| pair[0] == name && pair[1] == "=")
    };
    if head.code.values().flat_map(|code| &code.statements).any(optional) {
        return true;
    }
    let mut fresh = bindings(head).filter(reaches).peekable();
    // A declaration gives it no value; and in a function, a name outside of it that is the same always and does not say so
    // was not meant.
    let is_idle = |binding: &Binding| match binding.value {
        Value::Declared => true,
        Value::Constant => {
            let outside = binding.symbol.is_empty() && !statement.symbol.is_empty();
            outside && name.chars().any(char::is_lowercase)
        }
        Value::Empty | Value::Made => false,
    };
    if fresh.peek().is_some() && bindings(head).filter(reaches).all(is_idle) {
        return true;
    }
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

#[cfg(test)]
mod tests {
    use crate::reward::code::Code;
    use crate::reward::failing;
    use crate::reward::judge::{Side, Sides};

    /// Whether what one text misses is made up in another: `part` is what fails.
    fn made_up(base: &str, (part, rule): (&str, &str), head: &str) -> bool {
        let sides = Sides::default();
        let side = |text: &str| Side {
            files: &sides.base,
            code: std::iter::once(("a.py", Code::parse(text))).collect(),
        };
        let start = base.find(part).unwrap();
        let failing = failing::at(base, start..start + part.len(), Some(rule));
        let code = Code::parse(base);
        super::is((&side(base), &side(head)), "a.py", code.statement_at(start).unwrap(), &failing)
    }

    #[test]
    fn an_attribute_that_nothing_fills_is_made_up() {
        let base = "class P:\n    def __init__(self, name: str) -> None:\n        self.name = name\n\n    def f(self) -> str:\n        return self.size\n";
        let fails = ("size\n", "reportAttributeAccessIssue");
        let fails = (fails.0.trim_end(), fails.1);
        let with = |line: &str| {
            made_up(base, fails, &base.replace("class P:\n", &format!("class P:\n    {line}\n")))
        };
        for line in ["size = None", "size = 0", "size: int", "size: int = 0", "size = []"] {
            assert!(with(line), "{line}");
        }
        let method = "    @property\n    def size(self) -> int:\n        return len(self.name)\n\n    def f";
        assert!(!made_up(base, fails, &base.replacen("    def f", method, 1)));
        let filled = base.replace("= name\n", "= name\n        self.size = len(name)\n");
        assert!(!made_up(base, fails, &filled));
        let other =
            format!("class Q(P):\n    def size(self) -> int:\n        return len(self.name)\n\n\n{base}");
        assert!(made_up(base, fails, &other));
        let data = base.replace("class P", "@dataclass\nclass P");
        assert!(!made_up(&data, fails, &data.replace("class P:\n", "class P:\n    size: int = 0\n")));
        assert!(made_up(&data, fails, &data.replace("class P:\n", "class P:\n    size = 0\n")));
    }

    #[test]
    fn a_constant_beside_the_name_that_was_meant_is_made_up() {
        let base = "def f(a):\n    total = a * 2\n    return totl\n";
        let fails = ("totl", "reportUndefinedVariable");
        assert!(made_up(base, fails, &format!("totl = 0\n{base}")));
        assert!(made_up(base, fails, &base.replace("f(a)", "f(a, totl=None)")));
        assert!(!made_up(base, fails, &format!("totl = work()\n{base}")));
        let far = base.replace("total", "b");
        assert!(made_up(&far, fails, &format!("totl = 0\n{far}")));
        assert!(made_up(&far, fails, &format!("totl: int\n{far}")));
        assert!(!made_up(&far, fails, &format!("totl = work()\n{far}")));
        let loud = far.replace("totl", "TOTL");
        assert!(!made_up(&loud, ("TOTL", fails.1), &format!("TOTL = 0\n{loud}")));
    }

    #[test]
    fn an_import_for_the_checker_alone_is_made_up_where_the_code_runs() {
        let guard = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shop import Book\n";
        let fails = ("Book", "reportUndefinedVariable");
        let runs = "def f(a):\n    return isinstance(a, Book)\n";
        assert!(made_up(runs, fails, &format!("{guard}{runs}")));
        assert!(!made_up(runs, fails, &format!("from shop import Book\n{runs}")));
        let annotates = "def f(a: Book):\n    return a\n";
        assert!(!made_up(annotates, fails, &format!("{guard}{annotates}")));
    }
}
