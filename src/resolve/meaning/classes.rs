//! What a class statement tells of what is inherited from it.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::facts::{Class, Odd, Reference};
use super::reader::{Reader, is_typed};
use crate::resolve::syntax::{children, text_of};

/// Reads a class statement.
pub(super) fn read(reader: &Reader<'_>, class: Node<'_>) -> Class {
    // What a stub says needs no proof.
    if reader.is_stub {
        return Class { bases: Some(Vec::new()), decorators: Some(Vec::new()), odd: BTreeMap::new() };
    }
    let mut odd = class.child_by_field_name("body").map(|body| odd(reader, body)).unwrap_or_default();
    if has_builtin_base(reader, class) {
        odd.entry("__init__".to_owned()).or_insert(Odd::Guessed);
    }
    Class { bases: bases(reader, class), decorators: decorators(reader, class), odd }
}

/// The bases and the metaclass.
fn bases(reader: &Reader<'_>, class: Node<'_>) -> Option<Vec<Reference>> {
    let Some(given) = class.child_by_field_name("superclasses") else { return Some(Vec::new()) };
    let mut bases = Vec::new();
    for base in children(given).filter(|child| child.kind() != "comment") {
        let base = match base.kind() {
            "keyword_argument" => {
                let name = base.child_by_field_name("name")?;
                if text_of(name, reader.text) != "metaclass" {
                    continue;
                }
                base.child_by_field_name("value")?
            }
            "subscript" => base.child_by_field_name("value")?,
            _ => base,
        };
        bases.extend(reader.references(base)?);
    }
    // A function is no base.
    (!bases.contains(&Reference::Function)).then_some(bases)
}

/// Whether a class inherits from a builtin whose constructor looks at the types of what it is given.
fn has_builtin_base(reader: &Reader<'_>, class: Node<'_>) -> bool {
    let given = class.child_by_field_name("superclasses");
    given.into_iter().flat_map(children).any(|base| {
        let base = base.child_by_field_name("value").unwrap_or(base);
        let takes_anything = matches!(text_of(base, reader.text), "object" | "type" | "Exception");
        !takes_anything && reader.references(base).is_some_and(|found| found.contains(&Reference::Builtin))
    })
}

fn decorators(reader: &Reader<'_>, class: Node<'_>) -> Option<Vec<Reference>> {
    let decorated = class.parent().filter(|outer| outer.kind() == "decorated_definition");
    let mut all = Vec::new();
    for decorator in decorated.into_iter().flat_map(children).filter(|part| part.kind() == "decorator") {
        let made = decorator.named_child(0)?;
        all.extend(reader.references(made.child_by_field_name("function").unwrap_or(made))?);
    }
    // None of the builtins decorates classes.
    (!all.contains(&Reference::Builtin)).then_some(all)
}

/// The odd members of a class's body.
fn odd(reader: &Reader<'_>, body: Node<'_>) -> BTreeMap<String, Odd> {
    let mut found: BTreeMap<String, Odd> = BTreeMap::new();
    let mut note = |name: Option<Node<'_>>, odd| {
        if let Some(name) = name {
            let worst = found.entry(text_of(name, reader.text).to_owned()).or_insert(odd);
            *worst = odd.max(*worst);
        }
    };
    let mut stack = vec![body];
    while let Some(node) = stack.pop() {
        match node.kind() {
            "function_definition" => {
                let name = node.child_by_field_name("name");
                let list = node.child_by_field_name("parameters");
                let has = |odd: fn(Node<'_>) -> bool| list.is_some_and(|list| children(list).any(odd));
                match name.map(|name| text_of(name, reader.text)) {
                    // It would be a metaclass's answer to a call.
                    Some("__call__") => note(name, Odd::Changed),
                    Some("__new__") => note(name, Odd::Guessed),
                    Some("__init__") if has(|parameter| parameter.child_by_field_name("type").is_some()) => {
                        note(name, Odd::Guessed);
                    }
                    _ if has(|parameter| parameter.kind() == "default_parameter" && !is_typed(parameter)) => {
                        note(name, Odd::Guessed);
                    }
                    _ => {}
                }
            }
            "decorated_definition" => {
                let definition = node.child_by_field_name("definition");
                note(definition.and_then(|definition| definition.child_by_field_name("name")), Odd::Changed);
            }
            "class_definition" => note(node.child_by_field_name("name"), Odd::Changed),
            "assignment" => note(
                node.child_by_field_name("left").filter(|left| left.kind() == "identifier"),
                Odd::Changed,
            ),
            kind if kind.ends_with("_statement") || kind.ends_with("_clause") || kind == "block" => {
                stack.extend(children(node));
            }
            _ => {}
        }
    }
    found
}
