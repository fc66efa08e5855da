//! Expressions whose type a server infers from a value that callers may replace: `client` after `client = client or Client()`, where
//! `client` is a parameter without a type, and `self.client` after `self.client = client or Client()`. Servers know that the
//! parameter can be anything, and still report the definitions of what is known.

use tree_sitter::Node;

use super::syntax::{children, text_of, unwrapped};

/// Whether an expression, which is used somewhere below `around`, is such a name or such an attribute of the object of a method.
pub(super) fn is_replaceable(expression: Node<'_>, around: Node<'_>, text: &str) -> bool {
    match expression.kind() {
        "identifier" => is_replaced_parameter(text_of(expression, text), around, text),
        "attribute" => {
            let object = expression.child_by_field_name("object").map(unwrapped);
            let name = expression.child_by_field_name("attribute");
            let (Some(object), Some(name)) = (object, name) else { return false };
            object.kind() == "identifier" && is_kept_parameter(object, text_of(name, text), text)
        }
        _ => false,
    }
}

/// Whether a name is a parameter without a type, and is inferred from its default or from what the function assigns to it.
fn is_replaced_parameter(name: &str, from: Node<'_>, text: &str) -> bool {
    let mut node = from;
    loop {
        if node.kind() == "function_definition"
            && let Some(parameter) = untyped_parameters(node, text).find(|(found, _)| *found == name)
        {
            let assigned = format!("{name} =");
            return parameter.1.is_some_and(is_made)
                || assigned_values(node, &assigned, text).next().is_some();
        }
        let Some(parent) = node.parent() else { return false };
        node = parent;
    }
}

/// Whether a method of the class around assigns one of its parameters without a type to an attribute of its object: as it is, or if
/// there is one.
fn is_kept_parameter(object: Node<'_>, attribute: &str, text: &str) -> bool {
    let mut node = object;
    let class = loop {
        let Some(parent) = node.parent() else { return false };
        node = parent;
        if node.kind() == "class_definition" {
            break node;
        }
    };
    let Some(body) = class.child_by_field_name("body") else { return false };
    let methods =
        children(body).map(|statement| statement.child_by_field_name("definition").unwrap_or(statement));
    let assigned = format!("{}.{attribute} =", text_of(object, text));
    methods.filter(|method| method.kind() == "function_definition").any(|method| {
        let mut values = assigned_values(method, &assigned, text).peekable();
        if values.peek().is_none() {
            return false;
        }
        let parameters: Vec<&str> = untyped_parameters(method, text).map(|(name, _)| name).collect();
        values.flat_map(choices).any(|value| parameters.contains(&value))
    })
}

/// The parameters of a function that have no type, with their defaults.
fn untyped_parameters<'t>(
    function: Node<'t>,
    text: &'t str,
) -> impl Iterator<Item = (&'t str, Option<Node<'t>>)> {
    let list = function.child_by_field_name("parameters");
    list.into_iter().flat_map(children).filter_map(move |parameter| match parameter.kind() {
        "identifier" => Some((text_of(parameter, text), None)),
        "default_parameter" => {
            let name = parameter.child_by_field_name("name")?;
            Some((text_of(name, text), parameter.child_by_field_name("value")))
        }
        _ => None,
    })
}

/// Whether a default is an object of which callers may pass another kind: the type of a literal says what is meant.
fn is_made(default: Node<'_>) -> bool {
    matches!(unwrapped(default).kind(), "call" | "identifier" | "attribute")
}

/// The values that lines of a function assign: what follows `target =` at the beginning of a line.
fn assigned_values<'t>(function: Node<'t>, target: &'t str, text: &'t str) -> impl Iterator<Item = &'t str> {
    text_of(function, text).lines().filter_map(move |line| {
        let value = line.trim_start().strip_prefix(target)?;
        (!value.starts_with('=')).then(|| value.trim())
    })
}

/// What a value may be, as it is written: `a` and `b` of `a or b`, and of `a if c else b`, with `c`.
fn choices(value: &str) -> impl Iterator<Item = &str> {
    value
        .split(" or ")
        .flat_map(|part| part.split(" else "))
        .flat_map(|part| part.split(" if "))
        .map(str::trim)
}
