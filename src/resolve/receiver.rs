//! Whether what a name means hangs on the type of something else.

use tree_sitter::Node;

use super::outline::Span;
use super::syntax::{self, text_of};

/// The names by which methods call what they were called on.
const OWN: [&str; 2] = ["self", "cls"];

/// Parents of a name that is only read there, wherever in them it stands.
const READING: [&str; 22] = [
    "argument_list",
    "assert_statement",
    "await",
    "binary_operator",
    "boolean_operator",
    "call",
    "comparison_operator",
    "conditional_expression",
    "dictionary_splat",
    "elif_clause",
    "if_statement",
    "interpolation",
    "list",
    "list_splat",
    "not_operator",
    "pair",
    "parenthesized_expression",
    "return_statement",
    "subscript",
    "tuple",
    "unary_operator",
    "while_statement",
];

/// Whether what a name token means hangs on an inferred type: an attribute's on that of its object, a keyword argument's on
/// that of the function. The object of `self.name` in a method is the class around it, for whose members nothing is
/// inferred, as long as nothing else is called `self` there. Of 2,000 such names in django and sympy each had one
/// definition, in any order of asking (Pyright 1.1.414).
#[must_use]
pub fn rests_on_types(text: &str, name: Span) -> bool {
    // What is in parentheses, or follows a backslash, goes on in the next line.
    let before = text[..name.start].trim_end_matches(|c: char| c.is_whitespace() || c == '\\');
    let after = text[name.end..].trim_start_matches(|c: char| c.is_whitespace() || c == '\\');
    match before.strip_suffix('.') {
        Some(before) => {
            let object = before.trim_end();
            !(OWN.iter().any(|own| object.ends_with(own)) && is_of_the_class_around(text, name))
        }
        None => after.starts_with('=') && !after.starts_with("=="),
    }
}

/// Whether an attribute's object is the first parameter of the method that it stands in, and nothing else.
fn is_of_the_class_around(text: &str, name: Span) -> bool {
    let tree = syntax::parse(text);
    let own = || {
        let token = tree.root_node().descendant_for_byte_range(name.start, name.end)?;
        let attribute = token.parent().filter(|parent| parent.kind() == "attribute")?;
        let object =
            attribute.child_by_field_name("object").filter(|object| object.kind() == "identifier")?;
        let function = enclosing(object)?;
        let parameters = function.child_by_field_name("parameters")?;
        let first = parameters.named_child(0).filter(|first| first.kind() == "identifier")?;
        let called = text_of(object, text);
        let is_own = text_of(first, text) == called && is_method(function, text);
        Some(is_own && !is_bound_anew(function, first, called, text))
    };
    own().unwrap_or(false)
}

/// The function that a node is in; `None` when that is a lambda, or there is none.
fn enclosing(node: Node<'_>) -> Option<Node<'_>> {
    let around = std::iter::successors(node.parent(), Node::parent);
    let mut functions =
        around.filter(|node| ["function_definition", "lambda", "class_definition"].contains(&node.kind()));
    functions.next().filter(|node| node.kind() == "function_definition")
}

/// Whether a function stands in a class, and is called on something.
fn is_method(function: Node<'_>, text: &str) -> bool {
    let mut outer = function.parent();
    if let Some(decorated) = outer.filter(|outer| outer.kind() == "decorated_definition") {
        let mut cursor = decorated.walk();
        let statics = decorated.named_children(&mut cursor).any(|child| {
            child.kind() == "decorator" && text_of(child, text).trim_end().ends_with("staticmethod")
        });
        if statics {
            return false;
        }
        outer = decorated.parent();
    }
    let class = outer.filter(|outer| outer.kind() == "block").and_then(|block| block.parent());
    class.is_some_and(|class| class.kind() == "class_definition")
}

/// Whether a name may be bound in a function other than as its first parameter: wherever it is not plainly read.
fn is_bound_anew(function: Node<'_>, first: Node<'_>, name: &str, text: &str) -> bool {
    let mut bound = false;
    syntax::preorder(function, |node| {
        if node.kind() == "identifier" && node != first && text_of(node, text) == name {
            bound |= !is_read(node);
        }
        !bound
    });
    bound
}

/// Whether a name is plainly read where it stands.
fn is_read(node: Node<'_>) -> bool {
    /// What binds all names in it.
    const BINDING: [&str; 3] = ["as_pattern_target", "case_pattern", "delete_statement"];
    if std::iter::successors(node.parent(), Node::parent).any(|around| BINDING.contains(&around.kind())) {
        return false;
    }
    let Some(parent) = node.parent() else { return false };
    let is = |field: &str| parent.child_by_field_name(field) == Some(node);
    match parent.kind() {
        // The attribute of that name is another thing.
        "attribute" => true,
        "assignment" | "for_statement" | "for_in_clause" => is("right"),
        "keyword_argument" => true,
        "expression_list" => parent.parent().is_some_and(|outer| outer.kind() == "return_statement"),
        kind => READING.contains(&kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> bool {
        let (before, after) = text.split_once('|').unwrap();
        let length = after.find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len());
        rests_on_types(&format!("{before}{after}"), before.len()..before.len() + length)
    }

    /// A statement in a method.
    fn in_method(statements: &str) -> bool {
        asked(&format!("class A:\n    def f(self, a):\n        {}\n", statements.replace('\n', "\n        ")))
    }

    #[test]
    fn what_hangs_on_a_type() {
        for text in ["a.|b", "f(|x=1)", "f().|b", "other . |b", "(a.\n  |b)", "a.\\\n  |b", "self.|b"] {
            assert!(asked(text), "{text}");
        }
        for text in ["|b", "f(|x == 1)", "import |a"] {
            assert!(!asked(text), "{text}");
        }
        for text in ["self.a.|b", "a.self.|b", "myself.|b", "(self).|b", "self().|b", "lambda self: self.|b"]
        {
            assert!(in_method(text), "{text}");
        }
        for text in [
            "self.|b",
            "x = -self . |b",
            "if a == self:\n    g(self, self=self).c = self.|b",
            "x = self\nself.|b",
        ] {
            assert!(!in_method(text), "{text}");
        }
    }

    #[test]
    fn a_self_that_is_bound_anew_may_be_anything() {
        for text in [
            "self = other()\nself.|b",
            "self: A = other()\nself.|b",
            "for self in x:\n    self.|b",
            "for a, self in x:\n    self.|b",
            "self, a = x\nself.|b",
            "(a, self) = x\nself.|b",
            "[a, *self] = x\nself.|b",
            "with g() as self:\n    self.|b",
            "with g() as (a, self):\n    self.|b",
            "if (self := g()):\n    self.|b",
            "[self.|b for a, self in x]",
            "match a:\n    case A(self):\n        self.|b",
            "match a:\n    case {'x': self}:\n        self.|b",
            "match a:\n    case [*self]:\n        self.|b",
            "match a:\n    case A() as self:\n        self.|b",
            "import x as self\nself.|b",
            "del self\nself.|b",
            "self += 1\nself.|b",
            "def g():\n    return self.|b",
        ] {
            assert!(in_method(text), "{text}");
        }
        assert!(asked("class A:\n    @staticmethod\n    def f(self):\n        self.|b\n"));
        assert!(asked("class A:\n    def f(self=None):\n        self.|b\n"));
        assert!(asked("class A:\n    def f(self: B):\n        self.|b\n"));
        assert!(asked("def f(self):\n    self.|b\n"));
        assert!(asked("class A:\n    def f(a, cls):\n        cls.|b\n"));
        assert!(!asked("class A:\n    @classmethod\n    def f(cls, a):\n        cls.|b\n"));
    }
}
