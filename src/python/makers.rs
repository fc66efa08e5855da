//! The methods and properties that an object comes from, as the syntax of one file shows it: `make` for `x` after `x = self.make()`.

use tree_sitter::Node;

use super::outline::Span;
use super::syntax::{children, preorder, text_of, unwrapped};
use super::usage::Usage;

/// Builtins that give what their arguments have.
const HANDING_ON: [&str; 13] = [
    "enumerate",
    "filter",
    "frozenset",
    "iter",
    "list",
    "max",
    "min",
    "next",
    "reversed",
    "set",
    "sorted",
    "tuple",
    "zip",
];

impl Usage<'_> {
    /// The names of the methods and properties of which the object before the dot of an attribute may be the value, or a part of it:
    /// of `self.make().x`, and of `x` after `x = await self.make()`, `for x in self.make()`, `with self.make() as x`.
    #[must_use]
    pub fn makers(&self, offset: usize) -> Vec<Span> {
        let mut found = Vec::new();
        let Some(attribute) = self.token(offset).and_then(|token| token.parent()) else { return found };
        let mut pending: Vec<Node<'_>> = attribute.child_by_field_name("object").into_iter().collect();
        // The names that were looked at, so that `x = x.next` ends.
        let mut known: Vec<&str> = Vec::new();
        while let Some(expression) = pending.pop().map(unwrapped) {
            match expression.kind() {
                "call" => {
                    let Some(function) = expression.child_by_field_name("function").map(unwrapped) else {
                        continue;
                    };
                    if let Some(name) = function.child_by_field_name("attribute") {
                        found.push(name.byte_range());
                    } else if HANDING_ON.contains(&text_of(function, self.text)) {
                        pending.extend(
                            expression.child_by_field_name("arguments").into_iter().flat_map(children),
                        );
                    }
                }
                "attribute" | "identifier" => {
                    found.extend(expression.child_by_field_name("attribute").map(|name| name.byte_range()));
                    let name = text_of(expression, self.text);
                    if !known.contains(&name) {
                        known.push(name);
                        pending.extend(self.bound_to(expression, name));
                    }
                }
                "subscript" => pending.extend(expression.child_by_field_name("value")),
                "await" | "boolean_operator" | "conditional_expression" | "named_expression" => {
                    pending.extend(children(expression));
                }
                _ => {}
            }
        }
        found.sort_by_key(|span| span.start);
        found.dedup();
        found
    }

    /// What is bound to a name in the function around it, or to an attribute (`self.x`) in the class around it.
    fn bound_to<'n>(&self, of: Node<'n>, name: &str) -> Vec<Node<'n>> {
        let kind = if of.kind() == "attribute" { "class_definition" } else { "function_definition" };
        let mut scope = of;
        while let Some(parent) = scope.parent().filter(|_| scope.kind() != kind) {
            scope = parent;
        }
        let mut found = Vec::new();
        preorder(scope, |node| {
            let (target, value) = match node.kind() {
                "assignment" => match node.child_by_field_name("type") {
                    None => (node.child_by_field_name("left"), node.child_by_field_name("right")),
                    Some(_) => (None, None),
                },
                "for_statement" | "for_in_clause" => {
                    (node.child_by_field_name("left"), node.child_by_field_name("right"))
                }
                "named_expression" => (node.child_by_field_name("name"), node.child_by_field_name("value")),
                "as_pattern" => (node.child_by_field_name("alias"), node.named_child(0)),
                _ => (None, None),
            };
            if let (Some(target), Some(value)) = (target, value)
                && self.has_target(target, name)
            {
                found.push(value);
            }
            true
        });
        found
    }

    fn has_target(&self, target: Node<'_>, name: &str) -> bool {
        let mut pending = vec![target];
        while let Some(target) = pending.pop() {
            match target.kind() {
                "identifier" | "attribute" if text_of(target, self.text) == name => return true,
                "pattern_list"
                | "tuple_pattern"
                | "list_pattern"
                | "list_splat_pattern"
                | "as_pattern_target"
                | "tuple"
                | "parenthesized_expression" => pending.extend(children(target)),
                _ => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_receiver_comes_from() {
        for (text, expected) in [
            ("self.make().§go()", vec!["make"]),
            ("self.thing.§go()", vec!["thing"]),
            ("make().§go()", vec![]),
            ("def f(self):\n    x = self.make()\n    x.§go()", vec!["make"]),
            ("def f(self):\n    x, _ = await self.make()\n    x.§go()", vec!["make"]),
            ("def f(self):\n    x: A = self.make()\n    x.§go()", vec![]),
            ("def f(self):\n    for _, x in enumerate(self.make()): x.§go()", vec!["make"]),
            ("def f(self): return [x.§go() for x in self.make()]", vec!["make"]),
            ("def f(self):\n    with self.make() as x: x.§go()", vec!["make"]),
            ("def f(self):\n    x = (self.make() or self.other)[0]\n    x.§go()", vec!["make", "other"]),
            ("def f(self):\n    if x := self.make(): x.§go()", vec!["make"]),
            ("def f(x):\n    x = x.next()\n    x.§go()", vec!["next"]),
            (
                "class A:\n    def a(self): self.x = self.make()\n    def b(self): self.x.§go()",
                vec!["make", "x"],
            ),
            ("def g():\n    x = a.make()\ndef f(x): x.§go()", vec![]),
        ] {
            let at = text.find('§').expect("a mark");
            let text = text.replace('§', "");
            let found = Usage::of(&text).makers(at);
            let mut found: Vec<&str> = found.iter().map(|span| &text[span.clone()]).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{text}");
        }
    }
}
