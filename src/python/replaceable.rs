//! Expressions whose type a server infers from a value that callers may replace: `client` after `client = client or Client()`, where
//! `client` is a parameter without a type, and `self.client` after `self.client = client or Client()`. Servers know that the
//! parameter can be anything, and still report the definitions of what is known.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::syntax::{children, preorder, text_of, unwrapped};

/// The replaceable names and attributes of a text, found in one pass. Functions and classes are known by their first byte.
pub(super) struct Replaceable<'t> {
    /// The parameters by function.
    parameters: BTreeMap<(usize, &'t str), ParameterType>,
    /// Attributes to which a method assigns a parameter without a type, as it is or if there is one: the class, the object, the
    /// attribute.
    kept: BTreeSet<(usize, &'t str, &'t str)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ParameterType {
    /// By an annotation.
    Declared,
    /// Nothing says it.
    Unknown,
    /// From a default or an assignment.
    Inferred,
}

impl<'t> Replaceable<'t> {
    pub(super) fn of(root: Node<'_>, text: &'t str) -> Self {
        let mut found = Self { parameters: BTreeMap::new(), kept: BTreeSet::new() };
        // A function comes before what is assigned in it.
        preorder(root, |node| {
            match node.kind() {
                "function_definition" => found.add_parameters(node, text),
                "assignment" if node.child_by_field_name("type").is_none() => {
                    found.add_assignment(node, text);
                }
                _ => {}
            }
            true
        });
        found
    }

    /// Whether an expression is such a name or attribute, or what one of them has or makes: `meta.build()` after `meta=DEFAULT`.
    pub(super) fn has(&self, expression: Node<'_>, text: &'t str) -> bool {
        match expression.kind() {
            "identifier" => {
                let key = self.parameter(expression, text_of(expression, text));
                key.is_some_and(|key| self.parameters[&key] == ParameterType::Inferred)
            }
            "attribute" => {
                let attribute = object_and_name(expression, text);
                let class = around(expression, "class_definition").next();
                let key =
                    class.zip(attribute).map(|(class, (object, name))| (class.start_byte(), object, name));
                key.is_some_and(|key| self.kept.contains(&key)) || self.is_of_replaceable(expression, text)
            }
            "call" => expression.child_by_field_name("function").is_some_and(|function| {
                let function = unwrapped(function);
                match function.kind() {
                    "attribute" => self.is_of_replaceable(function, text),
                    _ => self.has(function, text),
                }
            }),
            _ => false,
        }
    }

    fn is_of_replaceable(&self, attribute: Node<'_>, text: &'t str) -> bool {
        attribute.child_by_field_name("object").is_some_and(|object| self.has(unwrapped(object), text))
    }

    /// The parameter that a name at a node means: that of the innermost function that has one.
    fn parameter(&self, node: Node<'_>, name: &'t str) -> Option<(usize, &'t str)> {
        let mut keys = around(node, "function_definition").map(|function| (function.start_byte(), name));
        keys.find(|key| self.parameters.contains_key(key))
    }

    fn add_parameters(&mut self, function: Node<'_>, text: &'t str) {
        for parameter in function.child_by_field_name("parameters").into_iter().flat_map(children) {
            let (name, kind) = match parameter.kind() {
                "identifier" => (Some(parameter), ParameterType::Unknown),
                "default_parameter" => {
                    let default = parameter.child_by_field_name("value");
                    let is_inferred = default.is_some_and(is_made);
                    let kind = if is_inferred { ParameterType::Inferred } else { ParameterType::Unknown };
                    (parameter.child_by_field_name("name"), kind)
                }
                "typed_default_parameter" => (parameter.child_by_field_name("name"), ParameterType::Declared),
                "typed_parameter" => (children(parameter).next(), ParameterType::Declared),
                _ => continue,
            };
            if let Some(name) = name {
                self.parameters.insert((function.start_byte(), text_of(name, text)), kind);
            }
        }
    }

    fn add_assignment(&mut self, assignment: Node<'_>, text: &'t str) {
        let Some(target) = assignment.child_by_field_name("left") else { return };
        if target.kind() == "identifier" {
            let name = text_of(target, text);
            if let Some(key) = self.parameter(assignment, name)
                && self.parameters[&key] == ParameterType::Unknown
            {
                self.parameters.insert(key, ParameterType::Inferred);
            }
            return;
        }
        let Some((object, name)) = object_and_name(target, text) else { return };
        let function = around(assignment, "function_definition").next();
        let class = around(assignment, "class_definition").next();
        let (Some(function), Some(class)) = (function, class) else { return };
        let mut value = assignment.child_by_field_name("right");
        // `a = b = value`
        while let Some(inner) = value.filter(|value| value.kind() == "assignment") {
            value = inner.child_by_field_name("right");
        }
        let is_parameter = |name: Node<'_>| {
            let kind = self.parameters.get(&(function.start_byte(), text_of(name, text)));
            kind.is_some_and(|kind| *kind != ParameterType::Declared)
        };
        let is_made_by_one = |value: Node<'_>| self.has(unwrapped(value), text);
        if value.is_some_and(|value| any_choice(value, &is_parameter) || is_made_by_one(value)) {
            self.kept.insert((class.start_byte(), object, name));
        }
    }
}

/// The nodes of a kind around a node, innermost first.
fn around<'n>(node: Node<'n>, kind: &'static str) -> impl Iterator<Item = Node<'n>> {
    std::iter::successors(node.parent(), Node::parent).filter(move |node| node.kind() == kind)
}

/// `x` and `name` of `x.name`.
fn object_and_name<'t>(attribute: Node<'_>, text: &'t str) -> Option<(&'t str, &'t str)> {
    let object = unwrapped(attribute.child_by_field_name("object")?);
    let name = attribute.child_by_field_name("attribute")?;
    (object.kind() == "identifier").then(|| (text_of(object, text), text_of(name, text)))
}

/// Whether a default is an object of which callers may pass another kind: the type of a literal says what is meant.
fn is_made(default: Node<'_>) -> bool {
    matches!(unwrapped(default).kind(), "call" | "identifier" | "attribute")
}

/// Whether one of the names that a value may be is as requested: `a` and `b` of `a or b`, and of `a if c else b`.
fn any_choice(value: Node<'_>, is_it: &dyn Fn(Node<'_>) -> bool) -> bool {
    let mut pending = vec![value];
    while let Some(value) = pending.pop().map(unwrapped) {
        match value.kind() {
            "identifier" if is_it(value) => return true,
            "boolean_operator" => pending.extend(children(value)),
            // The second child is the condition.
            "conditional_expression" => {
                pending
                    .extend(children(value).enumerate().filter(|(at, _)| *at != 1).map(|(_, child)| child));
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::python::usage::Usage;

    #[test]
    fn receivers_that_callers_may_replace() {
        for (text, expected) in [
            ("def f(x=None):\n    x = x or A()\n    x.§go()", true),
            ("def f(x=None):\n    x = y = (\n        A()\n    )\n    def g():\n        x.§go()", true),
            ("def f(x=A()): x.§go()", true),
            ("def f(x=','): x.§go()", false),
            ("def f(x): x.§go()", false),
            ("def f(x=D): x.a.make(1).§go()", true),
            ("def f(x): x.a.make(1).§go()", false),
            ("def f(x=D): A(x).§go()", false),
            ("class C:\n    def a(self, x=D): self.x = x.make()\n    def b(self): self.x.§go()", true),
            ("class C:\n    def a(self, x: D = D): self.x = x.make()\n    def b(self): self.x.§go()", false),
            ("def f(x: A = None):\n    x = x or A()\n    x.§go()", false),
            ("def f(x=None):\n    def g(x: A):\n        x = A()\n        x.§go()", false),
            ("def f():\n    x = A()\n    x.§go()", false),
            ("def f(x):\n    x == 1\n    h(x=1)\n    x.§go()", false),
            (
                "class C:\n    def a(self, x=None): self.x = x if x else A()\n    def b(self): self.x.§go()",
                true,
            ),
            (
                "class C:\n    def a(self, x): self.x = (x\n        or A())\n    def b(self): self.x.§go()",
                true,
            ),
            (
                "class C:\n    @d\n    def a(self, x): self.x = self.y = x\n    def b(self): self.y.§go()",
                true,
            ),
            ("class C:\n    def a(self, x): self.x = A(x)\n    def b(self): self.x.§go()", false),
            (
                "class C:\n    def a(self, x): self.x = A() if x else B()\n    def b(self): self.x.§go()",
                false,
            ),
            ("class C:\n    def a(self, x): self.x: A = x or A()\n    def b(self): self.x.§go()", false),
            ("class C:\n    def a(self, x: A): self.x = x or A()\n    def b(self): self.x.§go()", false),
        ] {
            let (text, at) = (text.replace('§', ""), text.find('§').unwrap());
            assert_eq!(Usage::of(&text).receiver(at).unwrap().is_replaceable, expected, "{text}");
        }
    }
}
