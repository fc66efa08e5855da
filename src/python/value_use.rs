//! What becomes of the value of a name: whether it is called where the name stands, or may be called from elsewhere.

use tree_sitter::Node;

use super::outline::Span;
use super::usage::{Usage, imported, last_name, paired_target, whole_value};

/// What becomes of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueUse {
    /// It is called: as a callee or a decorator.
    Called,
    /// It is bound to other names and to nothing else: their last name tokens.
    Bound(Vec<Span>),
    /// It is passed, returned, stored: what gets it may call it.
    Escapes,
    /// It is passed to what only looks at it, if it is a class: `isinstance(x, C)`, `except (C, D)`, `dict[str, C]`, `C | None`.
    OnlyNamed,
    /// It is subscripted, and the result is called: `Box[int](1)` makes an instance of `Box`.
    Subscripted,
    /// An attribute or an item of it is read.
    Before,
    /// Nothing: the name is imported, defined, assigned, deleted, an annotation, a base class, a condition, or compared.
    Unused,
}

/// Attributes of a function through which it is called.
const CALLING_ATTRIBUTES: [&str; 4] = ["__call__", "__get__", "__func__", "__wrapped__"];

/// Functions that make no instance of a class that they are given.
const ONLY_NAME_CLASSES: [&str; 22] = [
    "assertIsInstance",
    "assertNotIsInstance",
    "assertRaises",
    "assertRaisesRegex",
    "assertWarns",
    "cast",
    "delattr",
    "dir",
    "getattr",
    "hasattr",
    "id",
    "isinstance",
    "issubclass",
    "raises",
    "repr",
    "setattr",
    "str",
    "super",
    "suppress",
    "type",
    "TypeVar",
    "vars",
];

impl Usage<'_> {
    /// What becomes of the value of the name token at an offset, of `x.name` where it is an attribute, and of `getattr(x, "name")`.
    /// Nothing for other strings.
    #[must_use]
    pub fn value_use(&self, offset: usize) -> ValueUse {
        let Some(token) = self.token(offset).or_else(|| self.looked_up(offset)) else {
            return ValueUse::Unused;
        };
        if imported(token).is_some() {
            return ValueUse::Unused;
        }
        self.use_of(token)
    }

    fn use_of(&self, value: Node<'_>) -> ValueUse {
        let (node, is_choice) = whole_value(value);
        let is_condition = |parent: Node<'_>, node| parent.named_child(1) == Some(node);
        let Some(parent) = node.parent() else { return ValueUse::Unused };
        let is = |field: &str| parent.child_by_field_name(field) == Some(node);
        match parent.kind() {
            "call" if is("function") && !is_choice => ValueUse::Called,
            "decorator" => ValueUse::Called,
            "attribute" => {
                let name = parent.child_by_field_name("attribute");
                let is_calling = name.is_some_and(|name| {
                    self.text.get(name.byte_range()).is_some_and(|name| CALLING_ATTRIBUTES.contains(&name))
                });
                if is_calling { ValueUse::Escapes } else { ValueUse::Before }
            }
            "assignment" if is("right") => bound(parent),
            "named_expression" if is("value") => {
                let name = parent.child_by_field_name("name");
                match self.use_of(parent) {
                    ValueUse::Unused | ValueUse::Before => {
                        ValueUse::Bound(name.map(|name| name.byte_range()).into_iter().collect())
                    }
                    used => used,
                }
            }
            "expression_list" | "tuple" if paired_target(parent, node).is_some() => {
                ValueUse::Bound(paired_target(parent, node).into_iter().collect())
            }
            "augmented_assignment" | "assignment" | "for_statement" | "for_in_clause" if is("left") => {
                ValueUse::Unused
            }
            "pattern_list" | "tuple_pattern" | "list_pattern" | "delete_statement" | "as_pattern_target" => {
                ValueUse::Unused
            }
            "expression_list"
                if parent.parent().is_some_and(|around| around.kind() == "delete_statement") =>
            {
                ValueUse::Unused
            }
            // The bases of a class are written as arguments.
            "argument_list" if parent.parent().is_some_and(|around| around.kind() == "class_definition") => {
                ValueUse::Unused
            }
            _ if is("name") || is("condition") => ValueUse::Unused,
            _ if is_part_of_annotation(parent) => ValueUse::Unused,
            "subscript" if is("value") && is_callee(parent) => ValueUse::Subscripted,
            "subscript" if is("value") => ValueUse::Before,
            // A class that is raised is called.
            "raise_statement" if parent.named_child(0) == Some(node) => ValueUse::Called,
            // `case C(name=pattern)`: the pattern may bind it to a name.
            "keyword_pattern" if parent.named_child(0) == Some(node) => {
                let pattern = self.text.get(node.end_byte()..parent.end_byte()).unwrap_or_default();
                let pattern = pattern.trim_start_matches(|c: char| c == '=' || c.is_whitespace());
                if pattern == "_" { ValueUse::Unused } else { ValueUse::Escapes }
            }
            "conditional_expression" if is_condition(parent, node) => ValueUse::Unused,
            "type"
            | "generic_type"
            | "union_type"
            | "member_type"
            | "constrained_type"
            | "type_parameter"
            | "typed_parameter"
            | "parameters"
            | "lambda_parameters"
            | "dotted_name"
            | "aliased_import"
            | "global_statement"
            | "nonlocal_statement"
            | "expression_statement"
            | "comparison_operator"
            | "assert_statement"
            | "not_operator"
            | "with_item"
            | "interpolation"
            | "case_pattern"
            | "class_pattern"
            | "keyword_pattern"
            | "except_clause"
            | "module" => ValueUse::Unused,
            _ if self.is_only_named(node) => ValueUse::OnlyNamed,
            _ => ValueUse::Escapes,
        }
    }

    /// Whether what gets the value does not call it, if it is a class.
    fn is_only_named(&self, value: Node<'_>) -> bool {
        let mut node = value;
        while let Some(parent) = node.parent() {
            match parent.kind() {
                "tuple" | "list" | "parenthesized_expression" | "binary_operator" | "keyword_argument" => {
                    node = parent;
                }
                "except_clause" | "except_group_clause" => return true,
                "subscript" => {
                    // An item that is assigned has it as its key.
                    let target = parent.parent().and_then(|around| around.child_by_field_name("left"));
                    return parent.child_by_field_name("value") != Some(node) && target != Some(parent);
                }
                "argument_list" => {
                    let function = parent.parent().and_then(|call| call.child_by_field_name("function"));
                    let name = function.and_then(|function| self.text.get(function.byte_range()));
                    let last = name.and_then(|name| name.rsplit('.').next());
                    return last.is_some_and(|last| ONLY_NAME_CLASSES.contains(&last));
                }
                _ => return false,
            }
        }
        false
    }

    /// Whether the name at an offset is given to `getattr` as a string.
    #[must_use]
    pub fn is_looked_up(&self, offset: usize) -> bool {
        self.looked_up(offset).is_some()
    }

    /// The call of `getattr` that is given the name at an offset as a string.
    fn looked_up(&self, offset: usize) -> Option<Node<'_>> {
        let mut string = self.tree.root_node().descendant_for_byte_range(offset, offset)?;
        while string.kind() != "string" {
            string = string.parent().filter(|node| node.kind().starts_with("string"))?;
        }
        let arguments = string.parent().filter(|node| node.kind() == "argument_list")?;
        let call = arguments.parent().filter(|node| node.kind() == "call")?;
        let function = call.child_by_field_name("function")?;
        let is_getattr = self.text.get(function.byte_range()) == Some("getattr");
        (is_getattr && arguments.named_child(1) == Some(string)).then_some(call)
    }
}

/// Whether an expression is an operand or an item of an annotation: `Callable[[C], D | None]`.
fn is_part_of_annotation(mut node: Node<'_>) -> bool {
    while matches!(node.kind(), "binary_operator" | "list" | "parenthesized_expression" | "subscript") {
        let Some(around) = node.parent() else { return false };
        node = around;
    }
    node.kind() == "type"
}

fn is_callee(mut node: Node<'_>) -> bool {
    while let Some(around) = node.parent().filter(|around| around.kind() == "parenthesized_expression") {
        node = around;
    }
    node.parent().is_some_and(|call| call.child_by_field_name("function") == Some(node))
}

/// The use of the value of an assignment: bound to names only, or stored elsewhere, too.
fn bound(assignment: Node<'_>) -> ValueUse {
    let mut names = Vec::new();
    let mut at = Some(assignment);
    while let Some(node) = at.filter(|node| node.kind() == "assignment") {
        match node.child_by_field_name("left").and_then(last_name) {
            Some(name) => names.push(name.byte_range()),
            None => return ValueUse::Escapes,
        }
        at = node.parent();
    }
    ValueUse::Bound(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn use_of(text: &str) -> (String, ValueUse) {
        let at = text.find('§').unwrap();
        let text = text.replace('§', "");
        let found = Usage::of(&text).value_use(at);
        (text, found)
    }

    #[test]
    fn values_that_are_called_or_given_away() {
        for text in [
            "§f(1)",
            "(a.§f)(1)",
            "@§f\ndef g(): pass",
            "@a.§f\nclass G: pass",
            "with §f(): pass",
            "await §f()",
        ] {
            assert_eq!(use_of(text).1, ValueUse::Called, "{text}");
        }
        for text in [
            "g(§f)",
            "g(k=a.§f)",
            "[§f for _ in x]",
            "{§f: 1}",
            "{1: §f}",
            "{§f: 1 for _ in x}",
            "d[§f] = 1",
            "d[1] = §f",
            "h = d[1] = §f",
            "a += §f",
            "§f | b",
            "match §f:\n case c: c()",
            "match x:\n case C(§f=g): g()",
            "match x:\n case C(§f=(g as h)): h()",
            "§f.__call__()",
            "(§f or g)()",
            "lambda: §f",
            "def g(k=§f): pass",
            "def g():\n return §f",
        ] {
            assert_eq!(use_of(text).1, ValueUse::Escapes, "{text}");
        }
    }

    #[test]
    fn values_that_are_bound_or_not_used() {
        for (text, names) in [
            ("g = §f", vec!["g"]),
            ("a.g = h = §f", vec!["h", "g"]),
            ("g = §f if c else h", vec!["g"]),
            ("g, h = x, §f", vec!["h"]),
            ("(g := §f)", vec!["g"]),
        ] {
            let (plain, ValueUse::Bound(spans)) = use_of(text) else { panic!("{text}") };
            let found: Vec<_> = spans.into_iter().map(|span| plain[span].to_owned()).collect();
            assert_eq!(found, names, "{text}");
        }
        for text in [
            "def §f(): pass",
            "from m import §f",
            "x: §f",
            "x: §C[int]",
            "x: list[§C | None]",
            "def g(k: m.§C[int] | None): pass",
            "def g() -> dict[str, §C]: pass",
            "x: Callable[[§C], D | None]",
            "x: D | dict[str, §C]",
            "class C(§f): pass",
            "g(§f=1)",
            "from m import f as §g",
            "if §f: pass",
            "x = 1 if §f else 2",
            "§f == g",
            "f'{§f}'",
            "§f",
            "'§f'",
            "a.§f = 1",
            "a.§f += 1",
            "del a.§f",
            "for a.§f in x: pass",
            "a.§f, b = x",
            "match x:\n case C(§f=_): pass",
        ] {
            assert_eq!(use_of(text).1, ValueUse::Unused, "{text}");
        }
        for text in [
            "isinstance(x, §C)",
            "isinstance(x, (D, m.§C))",
            "typing.cast(§C, x)",
            "with pytest.raises((§C, D)): pass",
            "try: pass\nexcept (§C, D): pass",
            "x = dict[str, §C]",
            "x = Callable[[§C], D]",
            "x = list[§C | None]",
            "isinstance(x, §C | D)",
        ] {
            assert_eq!(use_of(text).1, ValueUse::OnlyNamed, "{text}");
        }
        assert_eq!(use_of("§f.cache_clear()").1, ValueUse::Before);
        for (text, expected) in [
            ("§C[int](1)", ValueUse::Subscripted),
            ("(§C[int])(1)", ValueUse::Subscripted),
            ("§C[int]", ValueUse::Before),
            ("raise §C", ValueUse::Called),
            ("(h := §f)()", ValueUse::Called),
            ("g(h := §f)", ValueUse::Escapes),
            ("getattr(x, '§f')(1)", ValueUse::Called),
            ("g(getattr(x, '§f', None))", ValueUse::Escapes),
            ("hasattr(x, '§f')", ValueUse::Unused),
            ("getattr('§f', x)", ValueUse::Unused),
        ] {
            assert_eq!(use_of(text).1, expected, "{text}");
        }
    }
}
