//! Detects fabricated definitions: a missing name that now exists without substance, such as a constant attribute, a class for
//! one method, or a constant in place of the name that was meant.

use super::code::{BoundValue, Code, CodeSymbol, NameBinding, Statement};
use super::failing::{FailingExpression, FailureKind};
use super::judge::SideCode;
use super::statement_fate::are_near;

/// Whether the definition that a statement missed was fabricated.
pub(super) fn is_fabricated(
    (base, head): (&SideCode<'_>, &SideCode<'_>),
    file: &str,
    statement: &Statement,
    failing: &FailingExpression,
) -> bool {
    match failing.kind {
        FailureKind::Attribute => is_attribute(base, head, statement, &failing.name),
        FailureKind::Name => is_name((base, head), file, statement, &failing.name),
        _ => false,
    }
}

/// The name of the enclosing definition.
fn owner(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(owner, _)| owner)
}

/// The classes that define an attribute, each with its binding; `None` for a method.
fn definitions<'s>(side: &'s SideCode<'_>, name: &'s str) -> Vec<(&'s CodeSymbol, Option<&'s NameBinding>)> {
    let mut found = Vec::new();
    for code in side.code.values() {
        let class =
            |wanted: &str| code.symbols.iter().find(|symbol| symbol.is_class && symbol.name == wanted);
        let named = |symbol: &&CodeSymbol| symbol.name.rsplit('.').next() == Some(name);
        let methods = code.symbols.iter().filter(named).filter_map(|symbol| class(owner(&symbol.name)));
        found.extend(methods.map(|class| (class, None)));
        for binding in code.bindings.iter().filter(|binding| binding.name == name) {
            let holder = if binding.of_self { owner(&binding.symbol) } else { &binding.symbol };
            found.extend(class(holder).map(|class| (class, Some(binding))));
        }
    }
    found
}

fn is_attribute(base: &SideCode<'_>, head: &SideCode<'_>, statement: &Statement, name: &str) -> bool {
    let (old, new) = (definitions(base, name), definitions(head, name));
    let known = |class: &CodeSymbol| base.code.values().any(|code| code.has_symbol(&class.name));
    let was = |class: &CodeSymbol| old.iter().any(|(other, _)| other.name == class.name);
    // The attribute may have moved with its class to another name.
    let renamed = old.iter().any(|(class, _)| !head.code.values().any(|code| code.has_symbol(&class.name)));
    let mut fresh = new.iter().filter(|(class, _)| !was(class)).peekable();
    !renamed
        && fresh.peek().is_some()
        && fresh.all(|(class, binding)| {
            !known(class)
                || binding
                    .is_some_and(|one| is_hollow(class, one, statement) || is_misspelling(base, class, one))
        })
}

/// Base classes whose bodies declare the attributes of their instances.
const DECLARING: [&str; 8] =
    ["Enum", "IntEnum", "StrEnum", "Flag", "NamedTuple", "TypedDict", "BaseModel", "Protocol"];

/// Whether an attribute never gets a real value.
fn is_hollow(class: &CodeSymbol, binding: &NameBinding, statement: &Statement) -> bool {
    let none = binding.tokens.iter().map(String::as_str).eq(["None"]);
    let declares = class.decorators.iter().any(|(name, _)| matches!(name.as_str(), "dataclass" | "define"))
        || class.bases.iter().any(|base| DECLARING.contains(&base.as_str()));
    let is_enum = class.bases.iter().any(|base| base.contains("Enum") || base.contains("Flag"));
    match binding.value {
        BoundValue::Made => false,
        // Filling the container gives it a real value.
        BoundValue::Empty => !fills(statement, &binding.name),
        BoundValue::Declared | BoundValue::Constant => {
            none || !declares || binding.of_self || !(binding.is_annotated || is_enum)
        }
    }
}

/// Whether a constant attribute is a misspelling of one that the class has.
fn is_misspelling(base: &SideCode<'_>, class: &CodeSymbol, binding: &NameBinding) -> bool {
    let held =
        |one: &&NameBinding| one.symbol == class.name || (one.of_self && owner(&one.symbol) == class.name);
    let mut held = base.code.values().flat_map(|code| &code.bindings).filter(held);
    binding.value != BoundValue::Made && held.any(|one| are_near(&one.name, &binding.name))
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

fn is_name(
    (base, head): (&SideCode<'_>, &SideCode<'_>),
    file: &str,
    statement: &Statement,
    name: &str,
) -> bool {
    let reaches = |binding: &&NameBinding| {
        binding.name == name
            && !binding.of_self
            && (binding.symbol.is_empty() || binding.symbol == statement.symbol)
    };
    fn bindings<'s>(side: &'s SideCode<'_>) -> impl Iterator<Item = &'s NameBinding> {
        side.code.values().flat_map(|code| &code.bindings)
    }
    // An import below `if TYPE_CHECKING` defines nothing at run time.
    let imports = |side: &SideCode<'_>, typing_only: bool| {
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
    // A parameter with a default value, which no caller needs to pass.
    let optional = |found: &Statement| {
        found.kind == "function_definition"
            && found.symbol == statement.symbol
            && found.tokens.windows(2).any(|pair| pair[0] == name && pair[1] == "=")
    };
    if head.code.values().flat_map(|code| &code.statements).any(optional) {
        return true;
    }
    let mut fresh = bindings(head).filter(reaches).peekable();
    // A declaration gives no value. A lower-case constant outside of the function was not what the function meant.
    let is_without_substance = |binding: &NameBinding| match binding.value {
        BoundValue::Declared => true,
        BoundValue::Constant => {
            let outside = binding.symbol.is_empty() && !statement.symbol.is_empty();
            outside && name.chars().any(char::is_lowercase)
        }
        BoundValue::Empty | BoundValue::Made => false,
    };
    if fresh.peek().is_some() && bindings(head).filter(reaches).all(is_without_substance) {
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
        && fresh.all(|binding| binding.value != BoundValue::Made)
        && base.code.values().any(meant)
}

#[cfg(test)]
mod tests {
    use crate::reward::code::Code;
    use crate::reward::failing;
    use crate::reward::judge::{EditSides, SideCode};

    /// Whether the name that is missing in `base` is fabricated in `head`; `part` is the expression that fails.
    fn fabricated(base: &str, (part, rule): (&str, &str), head: &str) -> bool {
        let sides = EditSides::default();
        let side = |text: &str| SideCode {
            files: &sides.base,
            code: std::iter::once(("a.py", Code::parse(text))).collect(),
        };
        let start = base.find(part).unwrap();
        let failing = failing::at(base, start..start + part.len(), Some(rule));
        let code = Code::parse(base);
        super::is_fabricated((&side(base), &side(head)), "a.py", code.statement_at(start).unwrap(), &failing)
    }

    #[test]
    fn an_attribute_without_a_real_value_is_fabricated() {
        let base = "class P:\n    def __init__(self, name: str) -> None:\n        self.name = name\n\n    def f(self) -> str:\n        return self.size\n";
        let fails = ("size\n", "reportAttributeAccessIssue");
        let fails = (fails.0.trim_end(), fails.1);
        let with = |line: &str| {
            fabricated(base, fails, &base.replace("class P:\n", &format!("class P:\n    {line}\n")))
        };
        for line in ["size = None", "size = 0", "size: int", "size: int = 0", "size = []"] {
            assert!(with(line), "{line}");
        }
        let method = "    @property\n    def size(self) -> int:\n        return len(self.name)\n\n    def f";
        assert!(!fabricated(base, fails, &base.replacen("    def f", method, 1)));
        let filled = base.replace("= name\n", "= name\n        self.size = len(name)\n");
        assert!(!fabricated(base, fails, &filled));
        let other =
            format!("class Q(P):\n    def size(self) -> int:\n        return len(self.name)\n\n\n{base}");
        assert!(fabricated(base, fails, &other));
        let data = base.replace("class P", "@dataclass\nclass P");
        assert!(!fabricated(&data, fails, &data.replace("class P:\n", "class P:\n    size: int = 0\n")));
        assert!(fabricated(&data, fails, &data.replace("class P:\n", "class P:\n    size = 0\n")));
    }

    #[test]
    fn a_constant_in_place_of_the_meant_name_is_fabricated() {
        let base = "def f(a):\n    total = a * 2\n    return totl\n";
        let fails = ("totl", "reportUndefinedVariable");
        assert!(fabricated(base, fails, &format!("totl = 0\n{base}")));
        assert!(fabricated(base, fails, &base.replace("f(a)", "f(a, totl=None)")));
        assert!(!fabricated(base, fails, &format!("totl = work()\n{base}")));
        let far = base.replace("total", "b");
        assert!(fabricated(&far, fails, &format!("totl = 0\n{far}")));
        assert!(fabricated(&far, fails, &format!("totl: int\n{far}")));
        assert!(!fabricated(&far, fails, &format!("totl = work()\n{far}")));
        let loud = far.replace("totl", "TOTL");
        assert!(!fabricated(&loud, ("TOTL", fails.1), &format!("TOTL = 0\n{loud}")));
    }

    #[test]
    fn a_type_checking_import_of_a_name_used_at_run_time_is_fabricated() {
        let guard = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shop import Book\n";
        let fails = ("Book", "reportUndefinedVariable");
        let runs = "def f(a):\n    return isinstance(a, Book)\n";
        assert!(fabricated(runs, fails, &format!("{guard}{runs}")));
        assert!(!fabricated(runs, fails, &format!("from shop import Book\n{runs}")));
        let annotates = "def f(a: Book):\n    return a\n";
        assert!(!fabricated(annotates, fails, &format!("{guard}{annotates}")));
    }
}
