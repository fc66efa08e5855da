//! Decides from one file whether an expression is an object of a package outside the workspace that is not installed.
//!
//! A server knows nothing of such an object, but the file shows where it comes from: `zstandard.ZstdDecompressor()` is not an
//! object of the workspace. Imports, assignments, annotations, attributes of `self` and calls of classes (names that begin
//! with a capital letter) are followed. What such an object contains or returns may be anything that was passed to it, and
//! is unknown, unless nothing was passed: `zstandard.ZstdDecompressor().decompressobj()`.

use std::sync::Arc;

use tree_sitter::Node;

use super::outline::{Import, Imported, Outline};
use super::scopes::Scopes;
use super::syntax::{children, parse, preorder, text_of, unwrapped};

/// The most steps that are followed.
const MAX_DEPTH: usize = 12;

/// What an expression evaluates to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpressionKind {
    /// `None`, which does not count.
    NoneValue,
    /// A module, or a function of one.
    Module,
    Class,
    Instance,
    /// An instance that was created without arguments, or what a method of one returns when called without arguments.
    Fresh,
    Unknown,
}

/// Whether the receiver at a span is an object of a foreign package. `is_foreign` returns whether an import is of a package that is
/// neither installed nor part of the workspace.
#[must_use]
pub fn is_foreign_object(
    text: &str,
    receiver: &std::ops::Range<usize>,
    is_foreign: &dyn Fn(&Import) -> bool,
) -> bool {
    let tree = parse(text);
    let Some(node) = tree.root_node().descendant_for_byte_range(receiver.start, receiver.end) else {
        return false;
    };
    let classifier =
        ExpressionClassifier { text, root: tree.root_node(), outline: Outline::parse(text), is_foreign };
    matches!(
        classifier.classify(node, 0),
        ExpressionKind::Instance | ExpressionKind::Fresh | ExpressionKind::Class | ExpressionKind::Module
    )
}

struct ExpressionClassifier<'o> {
    text: &'o str,
    root: Node<'o>,
    outline: Arc<Outline>,
    is_foreign: &'o dyn Fn(&Import) -> bool,
}

impl<'o> ExpressionClassifier<'o> {
    fn classify(&self, node: Node<'o>, depth: usize) -> ExpressionKind {
        if depth > MAX_DEPTH {
            return ExpressionKind::Unknown;
        }
        let depth = depth + 1;
        let node = unwrapped(node);
        match node.kind() {
            "none" => ExpressionKind::NoneValue,
            "identifier" => self.of_name(node, depth),
            "attribute" => self.of_attribute(node, depth),
            "call" => {
                let Some(function) = node.child_by_field_name("function").map(unwrapped) else {
                    return ExpressionKind::Unknown;
                };
                let has_arguments =
                    node.child_by_field_name("arguments").is_none_or(|all| all.named_child_count() > 0);
                // A method call on an object that is created in the same expression.
                let object = function.child_by_field_name("object").map(unwrapped);
                let is_fresh = object
                    .filter(|object| object.kind() == "call")
                    .is_some_and(|object| self.classify(object, depth) == ExpressionKind::Fresh);
                match self.classify(function, depth) {
                    ExpressionKind::Class if has_arguments => ExpressionKind::Instance,
                    ExpressionKind::Class => ExpressionKind::Fresh,
                    _ if is_fresh && !has_arguments => ExpressionKind::Fresh,
                    _ => ExpressionKind::Unknown,
                }
            }
            "await" => {
                node.named_child(0).map_or(ExpressionKind::Unknown, |inner| self.classify(inner, depth))
            }
            "conditional_expression" => {
                let (first, last) = (node.named_child(0), node.named_child(2));
                union([first, last].into_iter().flatten().map(|part| self.classify(part, depth)))
            }
            "boolean_operator" => union(children(node).map(|part| self.classify(part, depth))),
            _ => ExpressionKind::Unknown,
        }
    }

    fn of_attribute(&self, node: Node<'o>, depth: usize) -> ExpressionKind {
        let (Some(object), Some(name)) =
            (node.child_by_field_name("object").map(unwrapped), node.child_by_field_name("attribute"))
        else {
            return ExpressionKind::Unknown;
        };
        if object.kind() == "identifier" && text_of(object, self.text) == "self" {
            return self.of_self_attribute(node, text_of(name, self.text), depth);
        }
        match self.classify(object, depth) {
            ExpressionKind::Module if is_capitalized(text_of(name, self.text)) => ExpressionKind::Class,
            ExpressionKind::Module => ExpressionKind::Module,
            _ => ExpressionKind::Unknown,
        }
    }

    /// `self.name`: all values that the class assigns to it.
    fn of_self_attribute(&self, node: Node<'o>, name: &str, depth: usize) -> ExpressionKind {
        let mut class = Some(node);
        while let Some(at) = class.filter(|at| at.kind() != "class_definition") {
            class = at.parent();
        }
        let Some(class) = class else { return ExpressionKind::Unknown };
        let mut assigned = Vec::new();
        preorder(class, |node| {
            if node.kind() == "assignment"
                && let Some(target) = node.child_by_field_name("left")
                && target.kind() == "attribute"
                && target.child_by_field_name("attribute").is_some_and(|own| text_of(own, self.text) == name)
            {
                assigned.push(node);
            }
            true
        });
        union(assigned.into_iter().map(|assignment| self.of_assignment(assignment, depth)))
    }

    fn of_assignment(&self, assignment: Node<'o>, depth: usize) -> ExpressionKind {
        match (assignment.child_by_field_name("type"), assignment.child_by_field_name("right")) {
            (Some(annotation), _) => self.of_annotation(annotation, depth),
            (None, Some(value)) => self.classify(value, depth),
            (None, None) => ExpressionKind::Unknown,
        }
    }

    /// An object of the annotated class.
    fn of_annotation(&self, annotation: Node<'o>, depth: usize) -> ExpressionKind {
        match self.classify(unwrapped(annotation), depth) {
            ExpressionKind::Class => ExpressionKind::Instance,
            _ => ExpressionKind::Unknown,
        }
    }

    /// A name: all its bindings.
    fn of_name(&self, node: Node<'o>, depth: usize) -> ExpressionKind {
        let name = text_of(node, self.text);
        let bound = Scopes::of(self.text, &[name]).bound_by(node.start_byte()).unwrap_or_default();
        union(bound.into_iter().map(|span| {
            if let Some(import) = self.outline.imports.iter().find(|import| import.bound_span == span) {
                return self.of_import(import);
            }
            let Some(token) = self.root.descendant_for_byte_range(span.start, span.end) else {
                return ExpressionKind::Unknown;
            };
            self.of_binding(token, depth)
        }))
    }

    fn of_import(&self, import: &Import) -> ExpressionKind {
        if !(self.is_foreign)(import) {
            return ExpressionKind::Unknown;
        }
        match &import.what {
            Imported::Name(name) if is_capitalized(name) => ExpressionKind::Class,
            Imported::Star => ExpressionKind::Unknown,
            _ => ExpressionKind::Module,
        }
    }

    fn of_binding(&self, token: Node<'o>, depth: usize) -> ExpressionKind {
        let Some(parent) = token.parent() else { return ExpressionKind::Unknown };
        let is = |field: &str| parent.child_by_field_name(field) == Some(token);
        match parent.kind() {
            "assignment" if is("left") => self.of_assignment(parent, depth),
            "named_expression" => parent
                .child_by_field_name("value")
                .map_or(ExpressionKind::Unknown, |value| self.classify(value, depth)),
            "typed_parameter" | "typed_default_parameter" => parent
                .child_by_field_name("type")
                .map_or(ExpressionKind::Unknown, |annotation| self.of_annotation(annotation, depth)),
            // `with x as y`
            "as_pattern_target" => parent
                .parent()
                .and_then(|pattern| pattern.named_child(0))
                .map_or(ExpressionKind::Unknown, |value| self.classify(value, depth)),
            _ => ExpressionKind::Unknown,
        }
    }
}

fn is_capitalized(name: &str) -> bool {
    name.trim_start_matches('_').chars().next().is_some_and(char::is_uppercase)
}

/// The kind of an expression that may be any of several.
fn union(kinds: impl Iterator<Item = ExpressionKind>) -> ExpressionKind {
    let mut found = ExpressionKind::NoneValue;
    for kind in kinds {
        found = match (found, kind) {
            (ExpressionKind::NoneValue, kind) | (kind, ExpressionKind::NoneValue) => kind,
            (found, kind) if found == kind => found,
            (ExpressionKind::Fresh, ExpressionKind::Instance)
            | (ExpressionKind::Instance, ExpressionKind::Fresh) => ExpressionKind::Instance,
            _ => return ExpressionKind::Unknown,
        };
    }
    if found == ExpressionKind::NoneValue { ExpressionKind::Unknown } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_foreign(text: &str) -> bool {
        let (source, end) = (text.replace('§', ""), text.find('§').unwrap());
        let start = source[..end].rfind([' ', '\n', '(']).map_or(0, |at| at + 1);
        is_foreign_object(&source, &(start..end), &|import| import.module == "far")
    }

    #[test]
    fn objects_of_packages_that_are_not_installed() {
        for text in [
            "import far\nx = far.Thing()\nx§.run",
            "import far\nfar.Thing§.run",
            "from far import Thing as T\nx = T().more()\nx§.run",
            "import far\ndef f(x: far.Thing):\n x§.run",
            "import far\nclass C:\n def __init__(self):\n  self.a = None\n  self.a = far.Thing()\n def m(self):\n  self.a§.run",
            "import far\nwith far.Open() as x:\n x§.run",
            "import far\nx = far.Thing() if a else None\nx§.run",
        ] {
            assert!(is_foreign(text), "{text}");
        }
        for text in [
            "import near\nx = near.Thing()\nx§.run",
            "import far\nx = far.make()\nx§.run",
            "import far\nx = far.Thing(a).get()\nx§.run",
            "import far\ndef f(x: far.Thing):\n x.part§.run",
            "import far\nx = far.Thing()\nx['a']§.run",
            "import far\nx = far.Thing()\nx = y\nx§.run",
            "import far\ndef f(x):\n x§.run",
            "import far\nclass C:\n def m(self, a):\n  self.a = a\n  self.a§.run",
            "import far\nx = None\nx§.run",
        ] {
            assert!(!is_foreign(text), "{text}");
        }
    }
}
