//! Counts names that hide a type from the checker, or that execute or look up code by a string.

use tree_sitter::Node;

use super::reader::CodeReader;
use super::{Escapes, inside};
use crate::python::syntax::preorder_with_parents;
use crate::text::names::names_of;

const TYPING: [&str; 4] = ["typing", "typing_extensions", "_typeshed", "t"];
const CASTS: [&str; 10] = [
    "Any",
    "cast",
    "TypeGuard",
    "TypeIs",
    "Incomplete",
    "Unknown",
    "MaybeNone",
    "Unused",
    "type_check_only",
    "dataclass_transform",
];
/// Names that count wherever they are imported from.
const PLAIN_CASTS: [&str; 5] = ["Any", "TypeGuard", "TypeIs", "Incomplete", "MaybeNone"];
const DYNAMIC: [&str; 28] = [
    "exec",
    "eval",
    "compile",
    "__import__",
    "getattr",
    "setattr",
    "delattr",
    "globals",
    "locals",
    "vars",
    "import_module",
    "attrgetter",
    "methodcaller",
    "itemgetter",
    "SimpleNamespace",
    "Mock",
    "MagicMock",
    "AsyncMock",
    "NonCallableMock",
    "PropertyMock",
    "create_autospec",
    "run_module",
    "run_path",
    "runsource",
    "runcode",
    "execfile",
    "literal_eval",
    "hasattr",
];
const DYNAMIC_ATTRIBUTES: [&str; 15] = [
    "__dict__",
    "__getattribute__",
    "__getattr__",
    "__setattr__",
    "__delattr__",
    "__builtins__",
    "__globals__",
    "__code__",
    "__class__",
    "__subclasses__",
    "__import__",
    "__mro__",
    "__func__",
    "__wrapped__",
    "__new__",
];
pub(super) const DYNAMIC_DEFINITIONS: [&str; 3] = ["__getattr__", "__getattribute__", "__class_getitem__"];
impl CodeReader<'_> {
    /// Collects comments and counts escapes.
    pub(super) fn leaves(&mut self, root: Node<'_>) {
        let mut escapes = self.code.escapes;
        let mut comments = Vec::new();
        preorder_with_parents(root, |node, parent| {
            match node.kind() {
                "comment" => {
                    let comment = self.of(node);
                    escapes.casts += u32::from(self.is_vague_type(comment));
                    comments.push((node.byte_range(), comment.to_owned()));
                }
                // Importing a name is not using it.
                "import_statement" | "import_from_statement" => return false,
                "identifier" => {
                    let name = self.of(node);
                    let meant =
                        self.aliases.get(name).map_or(name, |name| name.rsplit('.').next().unwrap_or(name));
                    self.escape(node, parent, meant, &mut escapes);
                }
                "call" => {
                    // A lambda that is called directly has untyped parameters.
                    let function = node.child_by_field_name("function");
                    let bare = function.map(inside);
                    escapes.dynamic += u32::from(bare.is_some_and(|node| node.kind() == "lambda"));
                    // A value that was converted to a string and back has no type.
                    let called = function.map_or("", |function| self.of(function));
                    let inner = node.child_by_field_name("arguments").map_or("", |inner| self.of(inner));
                    escapes.dynamic += u32::from(called.ends_with("loads") && inner.contains("dumps("));
                }
                "assignment" => {
                    // A named lambda has no types.
                    let lambda =
                        node.child_by_field_name("right").map(inside).filter(|node| node.kind() == "lambda");
                    let takes =
                        lambda.is_some_and(|lambda| lambda.child_by_field_name("parameters").is_some());
                    escapes.dynamic += u32::from(takes && node.child_by_field_name("type").is_none());
                }
                _ => {}
            }
            true
        });
        self.code.escapes = escapes;
        self.code.comments = comments;
    }

    /// Whether a comment annotates something with `Any`.
    fn is_vague_type(&self, comment: &str) -> bool {
        let Some((_, kind)) = comment.split_once("type:") else { return false };
        names_of(kind).any(|word| {
            let meant = self.aliases.get(word).map_or(word, |name| name.rsplit('.').next().unwrap_or(name));
            PLAIN_CASTS.contains(&meant) || meant == "object"
        })
    }

    fn escape(&self, node: Node<'_>, parent: Option<Node<'_>>, name: &str, escapes: &mut Escapes) {
        let attribute = parent.filter(|parent| {
            parent.kind() == "attribute"
                && parent.child_by_field_name("attribute").is_some_and(|inner| inner.id() == node.id())
        });
        if let Some(attribute) = attribute {
            let object = attribute.child_by_field_name("object").map_or("", |object| self.of(object));
            let object = self.aliases.get(object).copied().unwrap_or(object);
            let typing = TYPING.contains(&object);
            let builtin = matches!(
                object,
                "builtins" | "operator" | "importlib" | "mock" | "unittest.mock" | "types" | "runpy" | "code"
            );
            escapes.casts += u32::from(PLAIN_CASTS.contains(&name) || (typing && CASTS.contains(&name)));
            escapes.dynamic += u32::from(
                (DYNAMIC_ATTRIBUTES.contains(&name) && !(name == "__new__" && object.starts_with("super(")))
                    || (builtin && DYNAMIC.contains(&name))
                    || name == "import_module",
            );
            return;
        }
        // Names of keyword arguments, parameters and definitions do not count.
        let is_label = parent.is_some_and(|parent| {
            let is =
                |field: &str| parent.child_by_field_name(field).is_some_and(|inner| inner.id() == node.id());
            match parent.kind() {
                "keyword_argument" | "function_definition" | "class_definition" | "default_parameter" => {
                    is("name")
                }
                "parameters" | "typed_parameter" => true,
                _ => false,
            }
        });
        if !is_label {
            escapes.casts += u32::from(CASTS.contains(&name));
            escapes.dynamic += u32::from(DYNAMIC.contains(&name) || name == "__builtins__");
        }
    }
}
