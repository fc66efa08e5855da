//! What a class statement tells of the class.

use tree_sitter::Node;

use super::facts::{Bound, Class, Constructor, Member, Reference, hash_of};
use super::reader::{Reader, is_constant};
use crate::python::syntax::{self, children, text_of};

/// Reads a class statement.
pub(super) fn read(reader: &Reader<'_>, class: Node<'_>) -> Class {
    let (bases, metaclass) = (bases(reader, class), metaclass(reader, class));
    let is_builtins = has_builtin_base(reader, class);
    let members = if is_builtins { None } else { members(reader, class) };
    let own =
        class.child_by_field_name("body").map_or(Constructor::Changed, |body| constructor(reader, body));
    let inherited = if is_builtins { Constructor::Typed } else { Constructor::Plain };
    let is_generic = class.child_by_field_name("type_parameters").is_some()
        || given(class).any(|base| base.kind() == "subscript");
    Class {
        bases,
        metaclass,
        decorators: decorators(reader, class),
        // What a stub says of it needs no proof.
        constructor: if reader.is_stub { Constructor::New } else { own.max(inherited) },
        is_generic,
        members,
    }
}

fn bases(reader: &Reader<'_>, class: Node<'_>) -> Option<Vec<Reference>> {
    let mut bases = Vec::new();
    for base in given(class).filter(|base| base.kind() != "keyword_argument") {
        let subscripted = (base.kind() == "subscript").then(|| base.child_by_field_name("value")).flatten();
        bases.extend(reader.references(subscripted.unwrap_or(base))?);
    }
    // A function is no base.
    (!bases.iter().any(is_no_class)).then_some(bases)
}

fn metaclass(reader: &Reader<'_>, class: Node<'_>) -> Option<Vec<Reference>> {
    let mut found = Vec::new();
    for argument in given(class).filter(|argument| argument.kind() == "keyword_argument") {
        if text_of(argument.child_by_field_name("name")?, reader.text) == "metaclass" {
            found.extend(reader.references(argument.child_by_field_name("value")?)?);
        }
    }
    (!found.iter().any(is_no_class)).then_some(found)
}

const fn is_no_class(reference: &Reference) -> bool {
    matches!(reference, Reference::Function | Reference::Display)
}

/// The names that the body binds.
fn members(reader: &Reader<'_>, class: Node<'_>) -> Option<Vec<(u64, Member)>> {
    let names = reader.bound_in(class.child_by_field_name("body")?);
    let member = |tokens: Option<Vec<Node<'_>>>| match reader.bound_by(tokens, Reader::alias) {
        bound if bound.contains(&Bound::Unknown) => Member::Unknown,
        bound if bound.iter().all(|bound| matches!(bound, Bound::Function | Bound::Typed)) => {
            Member::Function
        }
        mut bound if bound.len() == 1 => {
            bound.pop().map_or(Member::Unknown, |bound| Member::Bound(Box::new(bound)))
        }
        _ => Member::Unknown,
    };
    let mut members: Vec<_> =
        names.into_iter().map(|(name, tokens)| (hash_of(name), member(tokens))).collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    Some(members)
}

/// What stands between the parentheses of a class statement.
fn given(class: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let list = class.child_by_field_name("superclasses");
    list.into_iter().flat_map(children).filter(|child| child.kind() != "comment")
}

/// Whether a class inherits from a builtin whose constructor looks at the types of what it is given.
fn has_builtin_base(reader: &Reader<'_>, class: Node<'_>) -> bool {
    given(class).any(|base| {
        let base = base.child_by_field_name("value").unwrap_or(base);
        let takes_anything = matches!(text_of(base, reader.text), "object" | "type" | "Exception");
        !takes_anything && reader.references(base).is_some_and(|found| found.contains(&Reference::Builtin))
    })
}

/// The decorators. What one that is called makes hangs on what it is given.
fn decorators(reader: &Reader<'_>, class: Node<'_>) -> Option<Vec<Reference>> {
    let decorated = class.parent().filter(|outer| outer.kind() == "decorated_definition");
    let mut all = Vec::new();
    for decorator in decorated.into_iter().flat_map(children).filter(|part| part.kind() == "decorator") {
        let made = children(decorator).find(|part| part.kind() != "comment")?;
        let mut given = made.child_by_field_name("arguments").into_iter().flat_map(children);
        // In a stub that the server ships, none of them matters.
        given
            .all(|one| reader.is_stub || is_constant(one.child_by_field_name("value").unwrap_or(one)))
            .then_some(())?;
        all.extend(reader.references(made.child_by_field_name("function").unwrap_or(made))?);
    }
    // None of the builtins decorates classes.
    (!all.contains(&Reference::Builtin)).then_some(all)
}

/// What the body of a class says of how its instances are made, or those of a class whose metaclass it is.
fn constructor(reader: &Reader<'_>, body: Node<'_>) -> Constructor {
    let mut found = Constructor::Plain;
    syntax::preorder(body, |node| {
        let name = node.child_by_field_name("name");
        let said = |name: Option<Node<'_>>| name.map(|name| text_of(name, reader.text));
        match node.kind() {
            "function_definition" => {
                let decorated = node.parent().is_some_and(|outer| outer.kind() == "decorated_definition");
                let list = node.child_by_field_name("parameters");
                let is_typed = list.is_some_and(|list| {
                    children(list).any(|parameter| parameter.child_by_field_name("type").is_some())
                });
                found = found.max(match said(name) {
                    Some("__init__" | "__new__" | "__call__") if decorated => Constructor::Changed,
                    Some("__call__") => Constructor::Changed,
                    Some("__new__") => Constructor::New,
                    Some("__init__") if is_typed => Constructor::Typed,
                    _ => Constructor::Plain,
                });
                false
            }
            "class_definition" | "lambda" => {
                if matches!(said(name), Some("__init__" | "__new__" | "__call__")) {
                    found = Constructor::Changed;
                }
                false
            }
            // Whatever else such a name stands in may bind it.
            "identifier" if matches!(text_of(node, reader.text), "__init__" | "__new__" | "__call__") => {
                found = Constructor::Changed;
                false
            }
            _ => true,
        }
    });
    found
}
