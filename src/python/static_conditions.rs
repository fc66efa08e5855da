//! Conditions that a server takes for granted: it reads one of their branches, and another run of the program may take the other one.
//!
//! They depend on the platform, the version of Python or `TYPE_CHECKING`, directly or through names of the workspace:
//!
//! ```text
//! WINDOWS = sys.platform == "win32"
//! if WINDOWS and terminal:
//! ```

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::syntax::{children, dotted, dotted_name, preorder, text_of, unwrapped};

/// What servers know before the program runs.
const KNOWN: [&str; 3] = ["sys.platform", "sys.version_info", "os.name"];

/// The name that servers take as true, wherever it is from.
const TYPE_CHECKING: &str = "TYPE_CHECKING";

/// Builtins that are known if their argument is.
const HANDING_ON: [&str; 5] = ["bool", "int", "len", "any", "all"];

/// A longer condition counts as one that servers know: its parts have conditions, too, and each is read as a whole.
const MAX_OPERANDS: usize = 200;

/// What decides whether servers know the value of an expression.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Knowledge {
    /// Whether they do.
    is_certain: bool,
    /// Or the names of which they have to know one.
    depends_on: BTreeSet<String>,
}

/// A name that gets a value which may be known, or a function that returns one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaybeConstant {
    /// The name.
    pub name: String,
    /// Whether other files can use it.
    pub is_shared: bool,
    /// Whether the value is known.
    pub value: Knowledge,
}

impl Knowledge {
    /// Whether servers know the value if they know those of some names.
    #[must_use]
    pub fn is_given_by(&self, names: &[&BTreeSet<String>]) -> bool {
        self.is_certain || self.depends_on.iter().any(|name| names.iter().any(|known| known.contains(name)))
    }

    /// That of one of several values.
    pub(super) fn or(mut self, other: Self) -> Self {
        self.is_certain |= other.is_certain;
        self.depends_on.extend(other.depends_on);
        self
    }

    /// Whether servers can know the value.
    pub(super) fn is_possible(&self) -> bool {
        self.is_certain || !self.depends_on.is_empty()
    }

    /// The number of bytes, roughly.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.depends_on.iter().map(|name| 64 + name.len()).sum::<usize>()
    }
}

/// What the names of a file stand for that it imports from modules with something known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownImports(BTreeMap<String, String>);

impl KnownImports {
    /// Those of a syntax tree.
    pub(super) fn of(root: Node<'_>, text: &str) -> Self {
        let own = |module: &str| (module.to_owned(), module.to_owned());
        let mut found: BTreeMap<String, String> = ["sys", "os"].map(own).into();
        for_each_import(root, text, |module, name, bound| {
            if ["sys", "os"].contains(&module) {
                let stands_for = if name.is_empty() { module.to_owned() } else { format!("{module}.{name}") };
                found.insert(bound.to_owned(), stands_for);
            }
        });
        Self(found)
    }

    /// What decides whether servers know the value of an expression.
    pub(super) fn knowledge(&self, expression: Node<'_>, text: &str) -> Knowledge {
        let (chains, is_cut) = operands(expression, text);
        let is_certain = is_cut || chains.iter().any(|chain| self.is_known(chain));
        // Of `compat.WINDOWS` the last name; what is before it is a module or an object.
        let names = chains.iter().filter(|_| !is_certain).filter_map(|chain| chain.rsplit('.').next());
        Knowledge { is_certain, depends_on: names.map(str::to_owned).collect() }
    }

    fn is_known(&self, chain: &str) -> bool {
        let (first, rest) = chain.split_once('.').map_or((chain, None), |(first, rest)| (first, Some(rest)));
        let is_platform = self.0.get(first).is_some_and(|stands_for| {
            let second = rest.and_then(|rest| rest.split('.').next());
            let qualified = second.map(|second| format!("{stands_for}.{second}"));
            KNOWN.iter().any(|known| known == stands_for || qualified.as_deref() == Some(*known))
        });
        is_platform || chain.split('.').any(|part| part == TYPE_CHECKING)
    }
}

/// Calls a function with the module, the imported name (empty for the module itself) and the bound name of each import.
fn for_each_import(root: Node<'_>, text: &str, mut visit: impl FnMut(&str, &str, &str)) {
    preorder(root, |node| {
        let is_from = node.kind() == "import_from_statement";
        if !is_from && node.kind() != "import_statement" {
            return true;
        }
        let module_node = node.child_by_field_name("module_name");
        let module = module_node.map_or_else(String::new, |module| dotted_name(module, text));
        for imported in children(node).filter(|child| Some(*child) != module_node) {
            let (name, alias) = match imported.kind() {
                "aliased_import" => {
                    (imported.child_by_field_name("name"), imported.child_by_field_name("alias"))
                }
                _ => (Some(imported), None),
            };
            let name = name.map_or_else(String::new, |name| dotted_name(name, text));
            let bound = alias.map_or(name.as_str(), |alias| text_of(alias, text));
            if is_from { visit(&module, &name, bound) } else { visit(&name, "", bound) }
        }
        false
    });
}

/// The names of a text whose values servers may know.
pub(super) fn constants_of(root: Node<'_>, text: &str, imports: &KnownImports) -> Vec<MaybeConstant> {
    let mut found = Vec::new();
    let mut add = |name: &str, is_shared: bool, value: Node<'_>| {
        // Other files ask for what is true or false, or has the name of a constant; `self.name = os.name` is neither.
        let is_shared = is_shared && (is_truth(value, text) || name.chars().all(|c| !c.is_lowercase()));
        let value = imports.knowledge(value, text);
        if value.is_possible() {
            found.push(MaybeConstant { name: name.to_owned(), is_shared, value });
        }
    };
    // With the name of the function around.
    let mut pending: Vec<(Node<'_>, Option<&str>)> = vec![(root, None)];
    while let Some((node, function)) = pending.pop() {
        let mut around = function;
        match node.kind() {
            "assignment" | "named_expression" => {
                let fields = if node.kind() == "assignment" { ["left", "right"] } else { ["name", "value"] };
                if let [Some(target), Some(value)] = fields.map(|field| node.child_by_field_name(field)) {
                    match target.kind() {
                        "identifier" => add(text_of(target, text), function.is_none(), value),
                        "attribute" => {
                            let name = target.child_by_field_name("attribute");
                            add(name.map_or("", |name| text_of(name, text)), false, value);
                        }
                        _ => {}
                    }
                }
            }
            "return_statement" => {
                if let (Some(function), Some(value)) = (function, children(node).next()) {
                    add(function, true, value);
                }
            }
            "function_definition" => {
                // With an annotated result, servers know no value.
                let is_annotated = node.child_by_field_name("return_type").is_some();
                let name = node.child_by_field_name("name").map_or("", |name| text_of(name, text));
                around = Some(if is_annotated { "" } else { name });
            }
            _ => {}
        }
        pending.extend(children(node).map(|child| (child, around)));
    }
    for_each_import(root, text, |_, name, bound| {
        if name != bound && !name.is_empty() {
            let value = Knowledge { is_certain: false, depends_on: [name.to_owned()].into() };
            found.push(MaybeConstant { name: bound.to_owned(), is_shared: true, value });
        }
    });
    found.extend(switches(root, text));
    found.retain(|constant| !constant.name.is_empty());
    found
}

/// Whether the value of an expression is true or false, as far as its form tells.
fn is_truth(value: Node<'_>, text: &str) -> bool {
    let value = unwrapped(value);
    match value.kind() {
        "comparison_operator" | "not_operator" => true,
        "boolean_operator" => value
            .child_by_field_name("left")
            .is_some_and(|left| matches!(unwrapped(left).kind(), "comparison_operator" | "not_operator")),
        "call" => {
            let function = value.child_by_field_name("function").map_or("", |called| text_of(called, text));
            ["startswith", "endswith", "bool"].iter().any(|end| function.ends_with(end))
        }
        _ => false,
    }
}

/// The names of constants that follow from some names whose values servers know, without these.
#[must_use]
pub fn names_given<'c>(
    constants: impl IntoIterator<Item = &'c MaybeConstant>,
    known: &BTreeSet<String>,
) -> BTreeSet<String> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    let mut depending: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut pending: Vec<&str> = Vec::new();
    for constant in constants {
        if constant.value.is_given_by(&[known]) {
            pending.push(&constant.name);
        }
        for name in &constant.value.depends_on {
            depending.entry(name).or_default().push(&constant.name);
        }
    }
    while let Some(name) = pending.pop() {
        if !known.contains(name) && found.insert(name) {
            pending.extend(depending.get(name).into_iter().flatten());
        }
    }
    found.into_iter().map(str::to_owned).collect()
}

/// Whether a text may have a condition that depends on what servers know, or a value. That is not so if it only decides what is
/// imported, or which tests are skipped.
#[must_use]
pub fn may_have_known(text: &str) -> bool {
    let has = |part: &str| text.contains(part);
    let is_imported = |module: &str, name: &str| {
        has(name) && (has(&format!("import {module} as ")) || has(&format!("from {module} import")))
    };
    let platform = if is_imported("sys", "platform") { "platform" } else { "sys.platform" };
    let known = [platform, "version_info", "os.name", TYPE_CHECKING];
    is_imported("os", "name") || may_ask(text, &known)
}

/// Whether a text may have a condition or a value that depends on names.
#[must_use]
pub fn may_ask(text: &str, names: &[&str]) -> bool {
    names.iter().any(|name| text.contains(name)) && !only_imports(text, names)
}

/// Whether parts of a text are only in imports, in marks of tests, and in the conditions of branches that only import.
fn only_imports(text: &str, parts: &[&str]) -> bool {
    let mut lines = text.lines().peekable();
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let is_import = |code: &str| {
        let is_one = ["from ", "import ", "#"].iter().any(|start| code.starts_with(start));
        is_one && !code.contains(';') || ["pass", "..."].contains(&code)
    };
    while let Some(line) = lines.next() {
        if !parts.iter().any(|part| line.contains(part)) {
            continue;
        }
        let code = line.trim();
        let is_mark = || code.starts_with('@') || code.contains("skipif(") && !code.contains(" if ");
        let is_renamed = code.contains(" as ");
        if (is_import(code) || code.trim_end_matches(',') == TYPE_CHECKING) && !is_renamed || is_mark() {
            continue;
        }
        if !code.starts_with("if ") || !code.ends_with(':') {
            return false;
        }
        loop {
            let mut is_in_parentheses = false;
            while let Some(inner) =
                lines.next_if(|next| next.trim().is_empty() || indentation(next) > indentation(line))
            {
                let code = inner.trim();
                if !code.is_empty() && !is_in_parentheses && !is_import(code) {
                    return false;
                }
                let is_comment = code.starts_with('#');
                is_in_parentheses =
                    !is_comment && (is_in_parentheses || code.contains('(')) && !code.contains(')');
            }
            // A comment may be before `else`, wherever it begins.
            while lines.next_if(|next| next.trim().is_empty() || next.trim().starts_with('#')).is_some() {}
            let next = lines.peek().map_or("", |next| next.trim());
            if !["else", "elif"].iter().any(|start| next.starts_with(start)) {
                break;
            }
            if !next.ends_with(':') {
                return false;
            }
            lines.next();
        }
    }
    true
}

/// Whether a text has a name that [`constants_of`] takes as a switch, and a condition that may depend on it.
#[must_use]
pub fn may_have_switch(text: &str) -> bool {
    let switches: BTreeSet<&str> = text.lines().filter_map(switch_in).collect();
    let is_asked = |line: &str| {
        let mut words = line.split(|c: char| c != '_' && !c.is_alphanumeric());
        words
            .clone()
            .any(|word| ["if", "elif", "while", "match", "assert", "and", "or", "not"].contains(&word))
            && words.any(|word| switches.contains(word))
    };
    // `Final` is a constant for other files, too.
    !switches.is_empty() && (text.contains("Final") || text.lines().any(is_asked))
}

/// The name in a line such as `DEBUG = False`.
fn switch_in(line: &str) -> Option<&str> {
    let is_letter = |c: char| c == '_' || c.is_alphanumeric();
    let (name, value) = line.split_once('=').filter(|_| line.starts_with(is_letter))?;
    let value = value.split('#').next()?.trim();
    let is_number = || !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let name = name.split(':').next()?.trim_end();
    (name.chars().all(is_letter) && (["True", "False", "None"].contains(&value) || is_number()))
        .then_some(name)
}

/// Names of a module that are bound once, to `True`, `False`, `None` or a number: `DEBUG = False`.
fn switches(root: Node<'_>, text: &str) -> Vec<MaybeConstant> {
    let mut bound: BTreeMap<&str, usize> = BTreeMap::new();
    preorder(root, |node| {
        let target = match node.kind() {
            "assignment" | "augmented_assignment" | "for_statement" => node.child_by_field_name("left"),
            "named_expression" => node.child_by_field_name("name"),
            _ => None,
        };
        if let Some(target) = target {
            *bound.entry(text_of(target, text)).or_default() += 1;
        }
        true
    });
    let statements = children(root).filter(|node| node.kind() == "expression_statement");
    let assignments = statements.flat_map(children).filter(|node| node.kind() == "assignment");
    assignments
        .filter_map(|assignment| {
            let name = text_of(assignment.child_by_field_name("left")?, text);
            let value = assignment.child_by_field_name("right")?;
            let is_literal = matches!(value.kind(), "true" | "false" | "none" | "integer");
            let is_final = assignment
                .child_by_field_name("type")
                .is_some_and(|annotation| text_of(annotation, text).contains("Final"));
            (is_literal && bound.get(name) == Some(&1)).then(|| MaybeConstant {
                name: name.to_owned(),
                is_shared: is_final,
                value: Knowledge { is_certain: true, depends_on: BTreeSet::new() },
            })
        })
        .collect()
}

/// The dotted names that an expression is computed from in a way in which servers compute, and whether some are missing because it
/// is longer than [`MAX_OPERANDS`].
fn operands(expression: Node<'_>, text: &str) -> (Vec<String>, bool) {
    let mut found = Vec::new();
    let mut pending = vec![expression];
    let mut visited = 0;
    while let Some(node) = pending.pop().map(unwrapped) {
        visited += 1;
        if visited > MAX_OPERANDS {
            return (found, true);
        }
        match node.kind() {
            "identifier" | "attribute" => match dotted(node, text) {
                Some(chain) => found.push(chain),
                // Of `sys.platform.lower().strip`, what is before the call.
                None => pending.extend(node.child_by_field_name("object")),
            },
            "subscript" => pending.extend(node.child_by_field_name("value")),
            "named_expression" => pending.extend(node.child_by_field_name("value")),
            "call" => {
                let function = node.child_by_field_name("function");
                let hands_on = function.is_some_and(|called| HANDING_ON.contains(&text_of(called, text)));
                if hands_on {
                    pending.extend(node.child_by_field_name("arguments").into_iter().flat_map(children));
                } else {
                    pending.extend(function);
                }
            }
            "comparison_operator"
            | "not_operator"
            | "boolean_operator"
            | "unary_operator"
            | "binary_operator"
            | "conditional_expression"
            | "parenthesized_expression" => pending.extend(children(node)),
            _ => {}
        }
    }
    (found, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::syntax::parse_now;

    fn known(text: &str) -> Vec<String> {
        let tree = parse_now(text);
        let all = constants_of(tree.root_node(), text, &KnownImports::of(tree.root_node(), text));
        names_given(&all, &BTreeSet::new()).into_iter().collect()
    }

    #[test]
    fn imports_for_type_checkers() {
        for (text, expected) in [
            (
                "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a import (\n        b,\n    )\n\n    import c\nx = 1\n",
                true,
            ),
            ("import typing as t\nif t.TYPE_CHECKING:\n    import c\n", true),
            ("if TYPE_CHECKING:\n    import c\nelse:\n    c = 1\n", false),
            ("if x.TYPE_CHECKING:\n    import c\nelse:\n    import d as c\nc = 1\n", true),
            ("from x import TYPE_CHECKING as T\n", false),
            ("@skipif(TYPE_CHECKING)\ndef f(): ...\n", true),
            ("if TYPE_CHECKING:\n    import c\n    x = c\n", false),
            ("if TYPE_CHECKING:\n    import c\n# no\nelse:\n    c = 1\n", false),
            ("if TYPE_CHECKING:\n    import c\nelse: c = 1\n", false),
            ("password = 1 if TYPE_CHECKING else 2\n", false),
            ("import sys; W = TYPE_CHECKING\n", false),
            ("if not TYPE_CHECKING: import c\n", false),
            ("while t.TYPE_CHECKING:\n    import c\n", false),
            ("X = TYPE_CHECKING\n", false),
        ] {
            assert_eq!(only_imports(text, &[TYPE_CHECKING]), expected, "{text}");
        }
    }

    #[test]
    fn names_that_servers_know() {
        for (text, expected) in [
            ("import sys\nW = sys.platform == 'win32'\nP = not W\n", &["P", "W"][..]),
            ("import sys as s\nW = s.platform.startswith('w')\n", &["W"]),
            ("from sys import platform as p\nW = p in ('a', 'b')\n", &["W"]),
            ("from os import name\nW = name == 'nt' and x\n", &["W"]),
            ("PY2 = sys.version_info[0] == 2\n", &["PY2"]),
            ("def windows():\n    return os.name == 'nt'\n", &["windows"]),
            ("def windows() -> bool:\n    return os.name == 'nt'\n", &[]),
            ("class C:\n    def __init__(self):\n        self.w = os.name == 'nt'\n", &["w"]),
            ("def f(): return self.name\n", &[]),
            ("W = os.name == 'nt'\nfrom compat import W as V\n", &["V", "W"]),
            ("DEBUG = False\n", &["DEBUG"]),
            ("found = False\nfor x in y:\n    found = True\n", &[]),
            ("path = join('a' if sys.platform else 'b')\n", &[]),
            ("w = self.platform.startswith('x')\nn = pos.name == 'a'\n", &[]),
            ("w = bool(os.name)\n", &["w"]),
        ] {
            assert_eq!(known(text), expected, "{text}");
        }
    }
}
