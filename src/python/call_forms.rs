//! How functions can be called, to tell which calls an edit may break. A type checker says nothing about a call through an object
//! whose type it does not know.

use std::collections::BTreeMap;

use super::outline::{DefinitionKind, Outline};
use super::roles::parameter_list;
use super::syntax::{children, parse, text_of};

/// The parameters of a function, in order: `name`, `name=` with a default, `*name`, `**name`, `*` and `/`.
type Parameters = Vec<String>;

/// The parameters of the functions and methods of a text by their dotted names in the module. A name can have several definitions.
/// Overloads, properties and functions inside functions are left out.
#[must_use]
pub(crate) fn call_forms(text: &str) -> BTreeMap<String, Vec<Parameters>> {
    let (tree, outline) = (parse(text), Outline::parse(text));
    let mut found: BTreeMap<String, Vec<Parameters>> = BTreeMap::new();
    for (index, definition) in outline.definitions.iter().enumerate() {
        let is_callable = matches!(definition.kind, DefinitionKind::Function | DefinitionKind::Method);
        let around = std::iter::successors(definition.parent, |&parent| outline.definitions[parent].parent);
        let is_inner =
            around.map(|parent| &outline.definitions[parent]).any(|outer| outer.kind.is_function());
        if definition.is_decorated("overload") || !is_callable || is_inner {
            continue;
        }
        let Some(list) = parameter_list(&tree, definition.name_span.start) else { continue };
        let parameters = children(list).filter_map(|parameter| {
            let named = |end: &str| {
                parameter.child_by_field_name("name").map(|name| format!("{}{end}", text_of(name, text)))
            };
            match parameter.kind() {
                "comment" => None,
                "default_parameter" | "typed_default_parameter" => named("="),
                // `*args: int` has its pattern as a child.
                "typed_parameter" => parameter.named_child(0).map(|name| text_of(name, text).to_owned()),
                _ => Some(text_of(parameter, text).to_owned()),
            }
        });
        found.entry(outline.names(index).join(".")).or_default().push(parameters.collect());
    }
    found
}

/// Whether every call that fits the old parameters fits the new ones.
#[must_use]
pub(crate) fn fits(old: &Parameters, new: &Parameters) -> bool {
    let split = |all: &Parameters| {
        let at = all.iter().position(|one| one.starts_with('*')).unwrap_or(all.len());
        let (positional, others) = all.split_at(at);
        (positional.to_vec(), others.to_vec())
    };
    let ((old_positional, old_others), (new_positional, new_others)) = (split(old), split(new));
    let is_optional = |one: &String| one.ends_with('=') || one.starts_with('*');
    // A default may be added, and `/` removed.
    let is_same = |old: &String, new: &String| new == old || *new == format!("{old}=");
    let without_slash = |all: &[String]| all.iter().filter(|one| *one != "/").cloned().collect::<Vec<_>>();
    let slash = |all: &[String]| all.iter().position(|one| one == "/");
    let keeps_keywords = slash(&new_positional).is_none() || slash(&new_positional) == slash(&old_positional);
    let (old_positional, new_positional) = (without_slash(&old_positional), without_slash(&new_positional));
    let is_new = |one: &&String| !old_others.iter().any(|old| is_same(old, one));
    keeps_keywords
        && new_positional.len() >= old_positional.len()
        && old_positional.iter().zip(&new_positional).all(|(old, new)| is_same(old, new))
        && new_positional[old_positional.len()..].iter().all(is_optional)
        && old_others.iter().all(|old| new_others.iter().any(|new| is_same(old, new)))
        && new_others.iter().filter(is_new).all(is_optional)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_functions_and_methods() {
        let text = "\
def f(a, /, b: int, c=1, *args: int, d, e: str = '', **rest): # x
    def inner(z): ...
class A:
    async def m(self, *, k): ...
    @property
    def p(self): ...
@overload
def g(x: int): ...
def g(x): ...
";
        let found: Vec<_> = call_forms(text).into_iter().collect();
        let list = |text: &str| vec![text.split(' ').map(str::to_owned).collect::<Vec<_>>()];
        assert_eq!(
            found,
            [
                ("A.m".to_owned(), list("self * k")),
                ("f".to_owned(), list("a / b c= *args d e= **rest")),
                ("g".to_owned(), list("x")),
            ]
        );
    }

    #[test]
    fn optional_parameters_break_no_call() {
        let fits = |old: &str, new: &str| {
            let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
            fits(&list(old), &list(new))
        };
        for (old, new) in [
            ("a b", "a b c="),
            ("a", "a * k="),
            ("a *args", "a *args k= **rest"),
            ("", "a="),
            ("a b", "a b="),
            ("a / b", "a b"),
            ("* k", "* k="),
        ] {
            assert!(fits(old, new), "{old} -> {new}");
        }
        for (old, new) in [
            ("a b", "b a"),
            ("a", "a b"),
            ("a=", "a"),
            ("a", "x"),
            ("a", "a * k"),
            ("a **k", "a"),
            ("a b", "a / b"),
        ] {
            assert!(!fits(old, new), "{old} -> {new}");
        }
    }
}
