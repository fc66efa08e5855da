//! Whether an expression is an object of a package outside the workspace that is not installed, as far as its file tells.
//!
//! Of such an object a server knows nothing, but where it comes from is written in the file: `zstandard.ZstdDecompressor()`
//! is no object of the workspace. Followed are imports, assignments, annotations, attributes of `self` and calls of classes
//! (names that begin with a capital letter). What such an object holds or returns may be anything that it was given, and is
//! unknown, unless it was given nothing: `zstandard.ZstdDecompressor().decompressobj()`.

use tree_sitter::Node;

use super::outline::{Import, Imported, Outline};
use super::scopes::Scopes;
use super::syntax::{children, parse, preorder, text_of, unwrapped};

/// How many steps are followed.
const MAX_DEPTH: usize = 12;

/// What an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `None`, which says nothing.
    Nothing,
    /// A module, or a function of one.
    Module,
    Class,
    Instance,
    /// An instance that was made without arguments, or what a method of one returns without any.
    Fresh,
    Unknown,
}

/// Whether the receiver that ends at an offset is an object of a foreign package. `is_foreign` says whether an import is of a
/// package that is neither installed nor part of the workspace.
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
    let origin = Origin { text, root: tree.root_node(), outline: Outline::parse(text), is_foreign };
    matches!(origin.of(node, 0), Kind::Instance | Kind::Fresh | Kind::Class | Kind::Module)
}

struct Origin<'o> {
    text: &'o str,
    root: Node<'o>,
    outline: Outline,
    is_foreign: &'o dyn Fn(&Import) -> bool,
}

impl<'o> Origin<'o> {
    fn of(&self, node: Node<'o>, depth: usize) -> Kind {
        if depth > MAX_DEPTH {
            return Kind::Unknown;
        }
        let depth = depth + 1;
        let node = unwrapped(node);
        match node.kind() {
            "none" => Kind::Nothing,
            "identifier" => self.of_name(node, depth),
            "attribute" => self.of_attribute(node, depth),
            "call" => {
                let Some(function) = node.child_by_field_name("function").map(unwrapped) else {
                    return Kind::Unknown;
                };
                let is_given =
                    node.child_by_field_name("arguments").is_none_or(|all| all.named_child_count() > 0);
                // A method of an object that is made right here.
                let object = function.child_by_field_name("object").map(unwrapped);
                let is_fresh = object
                    .filter(|object| object.kind() == "call")
                    .is_some_and(|object| self.of(object, depth) == Kind::Fresh);
                match self.of(function, depth) {
                    Kind::Class if is_given => Kind::Instance,
                    Kind::Class => Kind::Fresh,
                    _ if is_fresh && !is_given => Kind::Fresh,
                    _ => Kind::Unknown,
                }
            }
            "await" => node.named_child(0).map_or(Kind::Unknown, |inner| self.of(inner, depth)),
            "conditional_expression" => {
                let (first, last) = (node.named_child(0), node.named_child(2));
                all([first, last].into_iter().flatten().map(|part| self.of(part, depth)))
            }
            "boolean_operator" => all(children(node).map(|part| self.of(part, depth))),
            _ => Kind::Unknown,
        }
    }

    fn of_attribute(&self, node: Node<'o>, depth: usize) -> Kind {
        let (Some(object), Some(name)) =
            (node.child_by_field_name("object").map(unwrapped), node.child_by_field_name("attribute"))
        else {
            return Kind::Unknown;
        };
        if object.kind() == "identifier" && text_of(object, self.text) == "self" {
            return self.of_own(node, text_of(name, self.text), depth);
        }
        match self.of(object, depth) {
            Kind::Module if is_capitalized(text_of(name, self.text)) => Kind::Class,
            Kind::Module => Kind::Module,
            _ => Kind::Unknown,
        }
    }

    /// `self.name`: everything that the class assigns to it.
    fn of_own(&self, node: Node<'o>, name: &str, depth: usize) -> Kind {
        let mut class = Some(node);
        while let Some(at) = class.filter(|at| at.kind() != "class_definition") {
            class = at.parent();
        }
        let Some(class) = class else { return Kind::Unknown };
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
        all(assigned.into_iter().map(|assignment| self.of_assignment(assignment, depth)))
    }

    fn of_assignment(&self, assignment: Node<'o>, depth: usize) -> Kind {
        match (assignment.child_by_field_name("type"), assignment.child_by_field_name("right")) {
            (Some(annotation), _) => self.of_annotation(annotation, depth),
            (None, Some(value)) => self.of(value, depth),
            (None, None) => Kind::Unknown,
        }
    }

    /// An object of an annotated class.
    fn of_annotation(&self, annotation: Node<'o>, depth: usize) -> Kind {
        match self.of(unwrapped(annotation), depth) {
            Kind::Class => Kind::Instance,
            _ => Kind::Unknown,
        }
    }

    /// A name: everything that binds it.
    fn of_name(&self, node: Node<'o>, depth: usize) -> Kind {
        let name = text_of(node, self.text);
        let bound = Scopes::of(self.text, &[name]).bound_by(node.start_byte()).unwrap_or_default();
        all(bound.into_iter().map(|span| {
            if let Some(import) = self.outline.imports.iter().find(|import| import.bound_span == span) {
                return self.of_import(import);
            }
            let Some(token) = self.root.descendant_for_byte_range(span.start, span.end) else {
                return Kind::Unknown;
            };
            self.of_binding(token, depth)
        }))
    }

    fn of_import(&self, import: &Import) -> Kind {
        if !(self.is_foreign)(import) {
            return Kind::Unknown;
        }
        match &import.what {
            Imported::Name(name) if is_capitalized(name) => Kind::Class,
            Imported::Star => Kind::Unknown,
            _ => Kind::Module,
        }
    }

    fn of_binding(&self, token: Node<'o>, depth: usize) -> Kind {
        let Some(parent) = token.parent() else { return Kind::Unknown };
        let is = |field: &str| parent.child_by_field_name(field) == Some(token);
        match parent.kind() {
            "assignment" if is("left") => self.of_assignment(parent, depth),
            "named_expression" => {
                parent.child_by_field_name("value").map_or(Kind::Unknown, |value| self.of(value, depth))
            }
            "typed_parameter" | "typed_default_parameter" => parent
                .child_by_field_name("type")
                .map_or(Kind::Unknown, |annotation| self.of_annotation(annotation, depth)),
            // `with x as y`
            "as_pattern_target" => parent
                .parent()
                .and_then(|pattern| pattern.named_child(0))
                .map_or(Kind::Unknown, |value| self.of(value, depth)),
            _ => Kind::Unknown,
        }
    }
}

fn is_capitalized(name: &str) -> bool {
    name.trim_start_matches('_').chars().next().is_some_and(char::is_uppercase)
}

/// What several possibilities are together.
fn all(kinds: impl Iterator<Item = Kind>) -> Kind {
    let mut found = Kind::Nothing;
    for kind in kinds {
        found = match (found, kind) {
            (Kind::Nothing, kind) | (kind, Kind::Nothing) => kind,
            (found, kind) if found == kind => found,
            (Kind::Fresh, Kind::Instance) | (Kind::Instance, Kind::Fresh) => Kind::Instance,
            _ => return Kind::Unknown,
        };
    }
    if found == Kind::Nothing { Kind::Unknown } else { found }
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
