//! What decorators make of functions, and parameters whose type a decorator declares:
//! `def pass_context(f: Callable[Concatenate[Context, P], R]) -> …` passes a `Context` first, so the first parameter of what it
//! decorates is one. Pyright does not infer that into the function's body.

use std::sync::Arc;

use tree_sitter::Node;

use super::classes::DefinitionInfo;
use super::digest_cache::{DigestCache, MemorySize};
use super::outline::Span;
use super::syntax::{children, dotted, parse, preorder, text_of};
use crate::workspace::files::Document;

/// Decorators that return the function, or a function that only its callers call.
const PLAIN_DECORATORS: [&str; 17] = [
    "abstractmethod",
    "asynccontextmanager",
    "cache",
    "classmethod",
    "contextmanager",
    "deprecated",
    "final",
    "lru_cache",
    "no_type_check",
    "overload",
    "override",
    "runtime_checkable",
    "singledispatch",
    "singledispatchmethod",
    "staticmethod",
    "type_check_only",
    "wraps",
];

/// The first parameter of a decorated function, without annotation and default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecoratedParameter {
    /// The parameter's name.
    pub name: String,
    /// Its name token.
    pub span: Span,
    /// The function's name token.
    pub function: Span,
    /// The decorator that is applied first, as a dotted name.
    pub decorator: String,
}

impl DefinitionInfo {
    /// Whether all its decorators are known to leave to its callers when the function is called.
    #[must_use]
    pub fn has_only_plain_decorators(&self) -> bool {
        let is_plain = |name: &str| PLAIN_DECORATORS.contains(&name);
        self.decorators.iter().all(|name| name.rsplit('.').next().is_some_and(is_plain))
    }
}

/// The first parameters of a document's functions, as [`decorated_parameters`] finds them, perhaps from the cache.
#[must_use]
pub fn decorated_parameters_of(document: &Document) -> Arc<Vec<DecoratedParameter>> {
    static FOUND: DigestCache<Vec<DecoratedParameter>> = DigestCache::new();
    FOUND.get(document.digest, || decorated_parameters(&document.text))
}

impl MemorySize for Vec<DecoratedParameter> {
    fn memory_bytes(&self) -> usize {
        let texts = self.iter().map(|one| one.name.len() + one.decorator.len());
        self.len() * size_of::<DecoratedParameter>() + texts.sum::<usize>()
    }
}

/// The first parameters of the functions of a text that are decorated with a plain name, in the order of their places.
/// Methods are left out: their first parameter is the object.
#[must_use]
pub fn decorated_parameters(text: &str) -> Vec<DecoratedParameter> {
    if !text.contains('@') {
        return Vec::new();
    }
    let tree = parse(text);
    let mut found = Vec::new();
    preorder(tree.root_node(), |node| {
        if node.kind() == "decorated_definition" {
            found.extend(decorated_parameter(node, text));
        }
        true
    });
    found.sort_by_key(|parameter| parameter.span.start);
    found
}

fn decorated_parameter(decorated: Node<'_>, text: &str) -> Option<DecoratedParameter> {
    let function = decorated
        .child_by_field_name("definition")
        .filter(|definition| definition.kind() == "function_definition")?;
    let is_method = decorated
        .parent()
        .and_then(|block| block.parent())
        .is_some_and(|around| around.kind() == "class_definition");
    let innermost = children(decorated).filter(|child| child.kind() == "decorator").last()?;
    let decorator = dotted(innermost.named_child(0)?, text)?;
    let first =
        children(function.child_by_field_name("parameters")?).find(|child| child.kind() != "comment")?;
    (!is_method && first.kind() == "identifier").then(|| DecoratedParameter {
        name: text_of(first, text).to_owned(),
        span: first.byte_range(),
        function: function.child_by_field_name("name").map(|name| name.byte_range()).unwrap_or_default(),
        decorator,
    })
}

/// The type, as a dotted name, of the first argument with which a decorator's result calls the decorated function. `offset` is
/// where the decorator's own name token begins, in its definition.
#[must_use]
pub fn passed_type(text: &str, offset: usize) -> Option<String> {
    let tree = parse(text);
    let name = tree.root_node().descendant_for_byte_range(offset, offset + 1)?;
    let function = name.parent().filter(|parent| parent.kind() == "function_definition")?;
    let first =
        children(function.child_by_field_name("parameters")?).find(|child| child.kind() != "comment")?;
    first_argument(text_of(first.child_by_field_name("type")?, text))
}

/// Whether a function with decorators has its name token at an offset.
#[must_use]
pub fn is_decorated_function(text: &str, offset: usize) -> bool {
    // Most names need no parsing.
    let is_between = |c: char| c.is_whitespace() || c == '\\';
    if !text.get(..offset).is_some_and(|before| before.trim_end_matches(is_between).ends_with("def")) {
        return false;
    }
    let tree = parse(text);
    let name = tree.root_node().descendant_for_byte_range(offset, offset + 1);
    let function =
        name.and_then(|name| name.parent()).filter(|parent| parent.kind() == "function_definition");
    function
        .and_then(|function| function.parent())
        .is_some_and(|outer| outer.kind() == "decorated_definition")
}

/// `T` of `Callable[Concatenate[T, P], R]` and of `Callable[[T, …], R]`, if it is a dotted name.
fn first_argument(annotation: &str) -> Option<String> {
    let annotation = annotation.trim().trim_matches(['"', '\'']);
    let (callable, rest) = annotation.split_once('[')?;
    if callable.trim().rsplit('.').next() != Some("Callable") {
        return None;
    }
    let (list, rest) = rest.split_once('[')?;
    if !matches!(list.trim().rsplit('.').next(), Some("" | "Concatenate")) {
        return None;
    }
    let first = rest.split([',', ']']).next()?.trim().trim_matches(['"', '\'']);
    let is_name = |part: &str| {
        part.chars().next().is_some_and(|c| c == '_' || c.is_alphabetic())
            && part.chars().all(|c| c == '_' || c.is_alphanumeric())
    };
    first.split('.').all(is_name).then(|| first.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_parameters_and_their_types() {
        let text = "\
@command()
@pass_context
def f(ctx, x): ...
@c.pass_context
@option('--x')
def g(ctx): ...
class C:
    @pass_context
    def m(self): ...
    def n(self):
        @d.pass_obj
        def inner(obj): ...
";
        let found = decorated_parameters(text);
        let found: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.decorator.as_str())).collect();
        assert_eq!(found, [("ctx", "pass_context"), ("obj", "d.pass_obj")]);
        for (annotation, expected) in [
            ("Callable[Concatenate[Context, P], R]", Some("Context")),
            ("t.Callable[te.Concatenate[core.Context, P], R]", Some("core.Context")),
            ("\"Callable[[Context, int], None]\"", Some("Context")),
            ("Callable[[], None]", None),
            ("Callable[[list[int]], None]", None),
            ("Callable[..., Callable[[int], None]]", None),
            ("F", None),
        ] {
            let text = format!("def pass_context(f: {annotation}): ...");
            assert_eq!(passed_type(&text, 4).as_deref(), expected, "{annotation}");
        }
    }
}
