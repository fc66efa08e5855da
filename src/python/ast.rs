//! AST paths: resolves the steps of a path to a construct, and makes the steps for a span.
//!
//! A step selects among the nodes inside the previous step that are not inside a nested `class` or `def`, in source order. So
//! `[class=C]/[def=m]` finds a method under an `if` of the class, and the calls of a nested function do not change the
//! ordinals of the calls around it.

use tree_sitter::Node;

use super::outline::Span;
use super::syntax::{dotted, parse, preorder, text_of};
use crate::selector::{AstStep, Construct};

/// The construct that a path resolves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AstMatch {
    /// The whole construct; a definition is without its decorators.
    pub(crate) span: Span,
    /// The name token of a definition, else the first identifier in it, else its empty start.
    pub(crate) name_span: Span,
}

/// Why a path does not resolve to one construct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AstPathError {
    /// Nothing matches the step with this index.
    Missing(usize),
    /// Several constructs match.
    Ambiguous(Vec<AstMatch>),
}

/// Resolves the steps of a path, without its first step, which is the module.
pub(crate) fn follow(text: &str, steps: &[AstStep]) -> Result<AstMatch, AstPathError> {
    let tree = parse(text);
    let root = tree.root_node();
    let mut at = vec![root];
    for (number, step) in steps.iter().enumerate() {
        let next: Vec<Node<'_>> = at.iter().flat_map(|node| nodes_of_step(*node, step, text)).collect();
        if next.is_empty() {
            return Err(AstPathError::Missing(number));
        }
        at = next;
    }
    match at.as_slice() {
        [node] => Ok(found(*node, root, text)),
        several => {
            Err(AstPathError::Ambiguous(several.iter().map(|node| found(*node, root, text)).collect()))
        }
    }
}

fn found(node: Node<'_>, root: Node<'_>, text: &str) -> AstMatch {
    let span = if node == root { 0..text.len() } else { node.byte_range() };
    if node == root {
        return AstMatch { span, name_span: 0..0 };
    }
    let name = node.child_by_field_name("name").filter(|_| is_scope(node));
    let mut first = name;
    preorder(node, |part| {
        if first.is_none() && part.kind() == "identifier" {
            first = Some(part);
        }
        first.is_none()
    });
    let name_span = first.map_or(span.start..span.start, |name| name.byte_range());
    AstMatch { span, name_span }
}

fn is_scope(node: Node<'_>) -> bool {
    matches!(node.kind(), "class_definition" | "function_definition")
}

/// The nodes that a step selects under a node.
fn nodes_of_step<'t>(node: Node<'t>, step: &AstStep, text: &str) -> Vec<Node<'t>> {
    let mut all = matching_nodes(node, step.construct, step.name(), text);
    match step.ordinal() {
        None => all,
        Some(ordinal) => {
            let at = usize::try_from(ordinal).unwrap_or(usize::MAX) - 1;
            if at < all.len() { vec![all.swap_remove(at)] } else { Vec::new() }
        }
    }
}

/// The nodes of a construct, and with a name if one is given, under a node, in source order.
fn matching_nodes<'t>(node: Node<'t>, construct: Construct, name: Option<&str>, text: &str) -> Vec<Node<'t>> {
    let field = |name: &str| node.child_by_field_name(name).into_iter().collect::<Vec<_>>();
    match construct {
        Construct::Body if is_scope(node) => return field("body"),
        Construct::Params => return field("parameters"),
        Construct::Returns => return field("return_type"),
        Construct::Doc => return docstring(node, text).into_iter().collect(),
        // The own name of a definition.
        Construct::Name if name.is_none() && is_scope(node) => return field("name"),
        _ => {}
    }
    let mut all = Vec::new();
    let mut add = |part: Node<'t>| {
        if is_construct(part, construct) && name.is_none_or(|name| has_name(part, construct, name, text)) {
            all.push(part);
        }
    };
    if construct == Construct::Decorator
        && let Some(decorated) = node.parent().filter(|parent| parent.kind() == "decorated_definition")
    {
        let mut cursor = decorated.walk();
        decorated.named_children(&mut cursor).filter(|child| child.kind() == "decorator").for_each(add);
        return all;
    }
    if construct == Construct::Param {
        let parameters = node.child_by_field_name("parameters").unwrap_or(node);
        let mut cursor = parameters.walk();
        parameters.named_children(&mut cursor).for_each(add);
        return all;
    }
    preorder(node, |part| {
        if part == node {
            return true;
        }
        add(part);
        !is_scope(part)
    });
    all
}

fn is_construct(node: Node<'_>, construct: Construct) -> bool {
    let kind = node.kind();
    match construct {
        Construct::Module => kind == "module",
        Construct::Class => kind == "class_definition",
        Construct::Def => kind == "function_definition",
        Construct::Name => kind == "identifier",
        Construct::Param => matches!(
            kind,
            "identifier"
                | "typed_parameter"
                | "default_parameter"
                | "typed_default_parameter"
                | "list_splat_pattern"
                | "dictionary_splat_pattern"
        ),
        Construct::Params => kind == "parameters",
        Construct::Returns | Construct::Doc => false,
        Construct::Decorator => kind == "decorator",
        Construct::Body => kind == "block",
        Construct::Assign => matches!(kind, "assignment" | "augmented_assignment"),
        Construct::Call => kind == "call",
        Construct::Import => {
            matches!(kind, "import_statement" | "import_from_statement" | "future_import_statement")
        }
        Construct::If => kind == "if_statement",
        Construct::For => kind == "for_statement",
        Construct::While => kind == "while_statement",
        Construct::With => kind == "with_statement",
        Construct::Try => kind == "try_statement",
        Construct::Except => matches!(kind, "except_clause" | "except_group_clause"),
        Construct::Match => kind == "match_statement",
        Construct::Return => kind == "return_statement",
        Construct::Raise => kind == "raise_statement",
        Construct::Lambda => kind == "lambda",
        Construct::Comprehension => matches!(
            kind,
            "list_comprehension" | "set_comprehension" | "dictionary_comprehension" | "generator_expression"
        ),
        Construct::String => {
            let inner = node.parent().is_some_and(|parent| parent.kind() == "concatenated_string");
            kind == "concatenated_string" || (kind == "string" && !inner)
        }
    }
}

/// The name of a construct: of the definition, the callee, the assigned target, or the imported module.
fn name_of(node: Node<'_>, construct: Construct, text: &str) -> Option<String> {
    let of = |field: &str| node.child_by_field_name(field);
    match construct {
        Construct::Class | Construct::Def => of("name").map(|name| text_of(name, text).to_owned()),
        Construct::Name => Some(text_of(node, text).to_owned()),
        Construct::Call => of("function").and_then(|function| dotted(function, text)),
        Construct::Assign => of("left").and_then(|left| dotted(left, text)),
        Construct::Import => match of("module_name") {
            Some(module) => Some(text_of(module, text).split_whitespace().collect()),
            None => of("name")
                .and_then(|name| dotted_name(name.child_by_field_name("name").unwrap_or(name), text)),
        },
        Construct::Decorator => {
            let expression = node.named_child(0)?;
            let function = expression.child_by_field_name("function").unwrap_or(expression);
            dotted(function, text)
        }
        Construct::Param => {
            let mut found = None;
            preorder(node, |part| {
                if found.is_none() && part.kind() == "identifier" {
                    found = Some(text_of(part, text).to_owned());
                }
                found.is_none()
            });
            found
        }
        Construct::Except => {
            let first = node.named_child(0).filter(|child| child.kind() != "block")?;
            dotted(first.named_child(0).filter(|_| first.kind() == "as_pattern").unwrap_or(first), text)
        }
        _ => None,
    }
}

fn dotted_name(node: Node<'_>, text: &str) -> Option<String> {
    Some(text_of(node, text).split_whitespace().collect::<String>()).filter(|name| !name.is_empty())
}

fn has_name(node: Node<'_>, construct: Construct, name: &str, text: &str) -> bool {
    name_of(node, construct, text).as_deref() == Some(name)
}

fn docstring<'t>(node: Node<'t>, text: &str) -> Option<Node<'t>> {
    let block = if node.kind() == "module" { node } else { node.child_by_field_name("body")? };
    let mut cursor = block.walk();
    let first = block.named_children(&mut cursor).find(|child| child.kind() != "comment")?;
    let literal = first.named_child(0).filter(|_| first.kind() == "expression_statement")?;
    let plain = matches!(literal.kind(), "string" | "concatenated_string");
    let formatted = matches!(text.as_bytes().get(literal.start_byte())?, b'f' | b'F' | b'b' | b'B');
    (plain && !formatted && first.named_child_count() == 1).then_some(literal)
}

/// The steps of the smallest construct that contains a span, without the step of the module; `None` if only the module contains
/// it. A step has an ordinal only where it is needed.
pub(crate) fn path_of(text: &str, span: &Span) -> Option<Vec<AstStep>> {
    let tree = parse(text);
    let end = span.end.max(span.start + 1).min(text.len());
    let mut node = tree.root_node().descendant_for_byte_range(span.start.min(end), end)?;
    loop {
        let construct = Construct::ALL.iter().copied().find(|construct| {
            // The module has no step.
            *construct != Construct::Module && is_selected_by(node, *construct, text)
        });
        if let Some(construct) = construct
            && let Some(steps) = steps_to(node, construct, text)
        {
            return Some(steps);
        }
        node = node.parent()?;
    }
}

fn is_selected_by(node: Node<'_>, construct: Construct, text: &str) -> bool {
    let parent = node.parent();
    match construct {
        Construct::Doc => enclosing_scope(node).and_then(|scope| docstring(scope, text)) == Some(node),
        Construct::Returns => {
            parent.and_then(|parent| parent.child_by_field_name("return_type")) == Some(node)
        }
        Construct::Params => {
            node.kind() == "parameters" && parent.is_some_and(|parent| parent.kind() == "function_definition")
        }
        Construct::Param => {
            parent.is_some_and(|parent| parent.kind() == "parameters") && is_construct(node, Construct::Param)
        }
        Construct::Body => node.kind() == "block" && parent.is_some_and(is_scope),
        Construct::Decorator => node.kind() == "decorator",
        _ => is_construct(node, construct),
    }
}

/// The class, function or module around a node.
fn enclosing_scope(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = node.parent()?;
    if node.kind() == "decorator" {
        return at.child_by_field_name("definition");
    }
    while !is_scope(at) {
        match at.parent() {
            Some(parent) => at = parent,
            None => return Some(at),
        }
    }
    Some(at)
}

fn steps_to(node: Node<'_>, construct: Construct, text: &str) -> Option<Vec<AstStep>> {
    let scope = enclosing_scope(node)?;
    let mut steps = if scope.parent().is_none() {
        Vec::new()
    } else {
        let construct = if scope.kind() == "class_definition" { Construct::Class } else { Construct::Def };
        steps_to(scope, construct, text)?
    };
    let is_own_name =
        construct == Construct::Name && scope.child_by_field_name("name") == Some(node) && is_scope(scope);
    let name = name_of(node, construct, text).filter(|_| !is_own_name);
    let all = matching_nodes(scope, construct, name.as_deref(), text);
    let at = all.iter().position(|other| *other == node)?;
    let ordinal = if all.len() > 1 { u32::try_from(at + 1).ok() } else { None };
    steps.push(AstStep::new(construct, name, ordinal)?);
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selector::{PositionSpec, parse};
    use crate::text::ColumnUnit;

    const TEXT: &str = "'''doc'''\nimport os.path as p\nfrom . import x\nCONST = f(1)\nif CONST:\n    class C(B):\n        'cd'\n        @d.e(1)\n        def m(self, a: int = 1, *b, **c) -> T:\n            x = g(a)\n            x = g(b, h())\n            def n(): return g(0)\n            return [y for y in x]\n        def m(self): raise E('s' 't')\nf(2)\n";

    fn at(steps: &str) -> Result<String, AstPathError> {
        let spec = parse(&format!("ast://[module=m]/{steps}"), ColumnUnit::Codepoint).unwrap();
        let PositionSpec::Ast(spec) = spec else { panic!("{steps}") };
        follow(TEXT, &spec.path[1..]).map(|found| TEXT[found.span].to_owned())
    }

    #[test]
    fn paths_to_constructs() {
        for (steps, expected) in [
            ("doc", "'''doc'''"),
            ("[class=C]/doc", "'cd'"),
            ("[import=os.path]", "import os.path as p"),
            ("import[2]", "from . import x"),
            ("[assign=CONST]", "CONST = f(1)"),
            ("[call=f][2]", "f(2)"),
            ("[class=C]/[def=m][1]/params", "(self, a: int = 1, *b, **c)"),
            ("[class=C]/[def=m][1]/[param=a]", "a: int = 1"),
            ("[class=C]/[def=m][1]/param[4]", "**c"),
            ("[class=C]/[def=m][1]/returns", "T"),
            ("[class=C]/[def=m][1]/[decorator=d.e]", "@d.e(1)"),
            ("[class=C]/[def=m][1]/[call=g][2]", "g(b, h())"),
            ("[class=C]/[def=m][1]/call[3]", "h()"),
            ("[class=C]/[def=m][1]/[def=n]/call", "g(0)"),
            ("[class=C]/[def=m][1]/return/comprehension", "[y for y in x]"),
            ("[class=C]/[def=m][2]/raise/string", "'s' 't'"),
            ("[class=C]/[def=m][2]/body", "raise E('s' 't')"),
            ("if/[class=C]/name", "C"),
        ] {
            assert_eq!(at(steps).as_deref(), Ok(expected), "{steps}");
        }
        assert_eq!(at("[class=D]/[def=m]"), Err(AstPathError::Missing(0)));
        assert_eq!(at("[class=C]/[def=m][3]"), Err(AstPathError::Missing(1)));
        assert!(matches!(at("[class=C]/[def=m]"), Err(AstPathError::Ambiguous(all)) if all.len() == 2));
    }

    #[test]
    fn the_steps_of_every_span_resolve_to_a_construct_around_it() {
        let mut seen = std::collections::BTreeSet::new();
        for (offset, c) in TEXT.char_indices().filter(|(_, c)| !c.is_whitespace()) {
            let Some(steps) = path_of(TEXT, &(offset..offset + c.len_utf8())) else { continue };
            let found = follow(TEXT, &steps).unwrap_or_else(|broken| panic!("{steps:?}: {broken:?}"));
            assert!(found.span.contains(&offset), "{steps:?} at {offset}");
            seen.insert(steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("/"));
        }
        for expected in
            ["[class=C]/[def=m][1]/[name=x][1]", "[class=C]/name", "[class=C]/[def=m][1]/[param=a]", "doc"]
        {
            assert!(seen.contains(expected), "{expected} in {seen:#?}");
        }
    }
}
