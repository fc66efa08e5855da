//! Wraps expressions in `reveal_type(…)` without changing anything else.
//!
//! An expression that a condition narrows is only narrowed when it is not wrapped, so names, attributes and plain calls in
//! conditions are left alone.

use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::Node;

use crate::python::syntax::{children, parse_now, preorder};

/// The kind of a probed expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbedKind {
    Name,
    Attribute,
    Subscript,
    Call,
}

/// An expression that is wrapped.
#[derive(Debug)]
pub(super) struct ProbedExpression {
    /// Its offset in the instrumented text, where the server reports its type.
    pub(super) at: usize,
    /// Its span in the original text.
    pub(super) span: Range<usize>,
    pub(super) form: ProbedKind,
    /// Its text without white space.
    pub(super) text: String,
    /// Its last name; for a call, the name of the function.
    pub(super) name: String,
    /// The object that a method is called on.
    pub(super) object: String,
    /// The expression that it operates on: the function, object or container.
    pub(super) operand: Option<usize>,
    /// Its arguments.
    pub(super) inner: Vec<usize>,
    /// For a name bound by a loop or the like: the expression that it is bound to, if that is probed.
    pub(super) bound: Option<Option<usize>>,
}

/// Functions whose calls have a special meaning to checkers.
const SPECIAL: [&str; 16] = [
    "super",
    "type",
    "cast",
    "isinstance",
    "issubclass",
    "callable",
    "reveal_type",
    "TypeVar",
    "ParamSpec",
    "NewType",
    "NamedTuple",
    "namedtuple",
    "TypedDict",
    "Enum",
    "locals",
    "overload",
];

/// Generic classes of Python whose parameters a checker infers from the arguments only where they are called by name.
const GENERIC: [&str; 14] = [
    "list",
    "dict",
    "set",
    "frozenset",
    "tuple",
    "filter",
    "map",
    "zip",
    "enumerate",
    "reversed",
    "deque",
    "defaultdict",
    "Counter",
    "OrderedDict",
];

/// Nesting limit for expressions; deeper ones are skipped.
const MAX_EXPRESSION_DEPTH: usize = 200;

const WRAPPER_START: &str = "reveal_type(";

struct Wrapper<'t> {
    text: &'t str,
    /// The nesting depth of the current expression.
    depth: usize,
    marks: Vec<ProbedExpression>,
    /// Names bound by loops and the like.
    loose: BTreeMap<String, Option<usize>>,
}

/// Wraps the expressions of the statements in `wanted`; returns the text and the wrapped expressions.
pub(super) fn wrap(text: &str, wanted: &[Range<usize>]) -> (String, Vec<ProbedExpression>) {
    let tree = parse_now(text);
    let mut wrapper = Wrapper { text, depth: 0, marks: Vec::new(), loose: BTreeMap::new() };
    let mut starts: Vec<usize> = wanted.iter().map(|span| span.start).collect();
    starts.sort_unstable();
    let is_wanted = |node: Node<'_>| {
        starts.binary_search(&node.start_byte()).is_ok()
            && (node.kind().ends_with("_statement") || node.kind().ends_with("_clause"))
    };
    preorder(tree.root_node(), |node| {
        if is_wanted(node) {
            wrapper.statement(node);
        }
        true
    });
    let Wrapper { mut marks, .. } = wrapper;
    let text = instrumented(text, &mut marks);
    (text, marks)
}

/// The text with the marked expressions wrapped; sets `at` of each.
fn instrumented(text: &str, marks: &mut [ProbedExpression]) -> String {
    // At one offset: ends before beginnings, outer beginnings before inner ones, inner ends before outer ones.
    let mut events: Vec<(usize, bool, usize, usize)> = Vec::new();
    for (at, mark) in marks.iter().enumerate() {
        events.push((mark.span.start, true, usize::MAX - mark.span.end, at));
        events.push((mark.span.end, false, usize::MAX - mark.span.start, at));
    }
    events.sort_unstable();
    let (mut out, mut done) = (String::with_capacity(text.len() * 2), 0);
    for (place, begins, _, at) in events {
        out.push_str(&text[done..place]);
        done = place;
        if begins {
            out.push_str(WRAPPER_START);
            marks[at].at = out.len();
        } else {
            out.push(')');
        }
    }
    out.push_str(&text[done..]);
    out
}

impl Wrapper<'_> {
    fn of(&self, node: Node<'_>) -> String {
        self.text.get(node.byte_range()).unwrap_or_default().split_whitespace().collect()
    }

    /// Wraps the expressions of a statement, without its blocks.
    fn statement(&mut self, node: Node<'_>) {
        let field = |name: &str| node.child_by_field_name(name);
        match node.kind() {
            "if_statement" | "elif_clause" | "while_statement" => {
                if let Some(test) = field("condition") {
                    self.expression(test, true);
                }
            }
            "for_statement" => self.each(field("left"), field("right")),
            "with_statement" => preorder(node, |inner| {
                if inner.kind() == "with_item" {
                    self.item(inner);
                }
                inner.kind() == "with_statement" || inner.kind() == "with_clause"
            }),
            "assert_statement" => {
                for (number, inner) in named(node).into_iter().enumerate() {
                    self.expression(inner, number == 0);
                }
            }
            "return_statement" | "raise_statement" | "expression_statement" => {
                for inner in named(node) {
                    self.expression(inner, false);
                }
            }
            _ => {}
        }
    }

    /// An item of a `with` statement.
    fn item(&mut self, item: Node<'_>) {
        let Some(value) = item.child_by_field_name("value") else { return };
        if value.kind() == "as_pattern" {
            let parts = named(value);
            self.each(parts.get(1).copied(), parts.first().copied());
        } else {
            self.expression(value, false);
        }
    }

    /// Names bound to the items of an expression.
    fn each(&mut self, left: Option<Node<'_>>, right: Option<Node<'_>>) {
        let from = right.and_then(|right| self.expression(right, false));
        let Some(left) = left else { return };
        let mut names = Vec::new();
        preorder(left, |inner| {
            if inner.kind() == "identifier" {
                names.push(self.of(inner));
            }
            !matches!(inner.kind(), "attribute" | "subscript")
        });
        self.loose.extend(names.into_iter().map(|name| (name, from)));
    }

    fn mark(&mut self, node: Node<'_>, form: ProbedKind, operand: Option<usize>, inner: Vec<usize>) -> usize {
        let text = self.of(node);
        let last = match form {
            ProbedKind::Attribute => node.child_by_field_name("attribute"),
            ProbedKind::Call => node
                .child_by_field_name("function")
                .map(|function| function.child_by_field_name("attribute").unwrap_or(function)),
            ProbedKind::Name | ProbedKind::Subscript => None,
        };
        let name = last.map_or_else(|| text.clone(), |node| self.of(node));
        let object = last.filter(|_| form == ProbedKind::Call).and_then(|node| node.parent());
        let object = object.filter(|node| node.kind() == "attribute");
        let object = object.and_then(|node| node.child_by_field_name("object"));
        let object = object.map_or_else(String::new, |node| self.of(node));
        let bound = if form == ProbedKind::Name { self.loose.get(&name).copied() } else { None };
        self.marks.push(ProbedExpression {
            at: 0,
            span: node.byte_range(),
            form,
            text,
            name,
            object,
            operand,
            inner,
            bound,
        });
        self.marks.len() - 1
    }

    /// Wraps an expression and its parts; `tests` is whether it is a condition that narrows types.
    fn expression(&mut self, node: Node<'_>, tests: bool) -> Option<usize> {
        if self.depth == MAX_EXPRESSION_DEPTH {
            return None;
        }
        self.depth += 1;
        let mark = self.shallow(node, tests);
        self.depth -= 1;
        mark
    }

    fn shallow(&mut self, node: Node<'_>, tests: bool) -> Option<usize> {
        let field = |name: &str| node.child_by_field_name(name);
        match node.kind() {
            "identifier" => (!tests).then(|| self.mark(node, ProbedKind::Name, None, Vec::new())),
            "attribute" => {
                let object = field("object").and_then(|object| self.expression(object, tests));
                (!tests).then(|| self.mark(node, ProbedKind::Attribute, object, Vec::new()))
            }
            "subscript" => {
                let value = field("value").and_then(|value| self.expression(value, tests));
                let mut cursor = node.walk();
                let inside: Vec<Node<'_>> = node.children_by_field_name("subscript", &mut cursor).collect();
                if !tests {
                    for inner in inside {
                        self.expression(inner, false);
                    }
                }
                (!tests).then(|| self.mark(node, ProbedKind::Subscript, value, Vec::new()))
            }
            "call" => self.call(node, tests),
            "parenthesized_expression" => {
                named(node).first().and_then(|inner| self.expression(*inner, tests))
            }
            "boolean_operator" => {
                field("left").and_then(|left| self.expression(left, true));
                field("right").and_then(|right| self.expression(right, tests));
                None
            }
            "not_operator" => {
                field("argument").and_then(|inner| self.expression(inner, true));
                None
            }
            "conditional_expression" => {
                for (number, inner) in named(node).into_iter().enumerate() {
                    self.expression(inner, number == 1 || tests);
                }
                None
            }
            "comparison_operator" => {
                for inner in named(node) {
                    self.expression(inner, tests);
                }
                None
            }
            "assignment" => {
                let left = field("left")
                    .filter(|left| left.kind().ends_with("_pattern") || left.kind() == "pattern_list");
                if left.is_some() {
                    self.each(left, field("right"));
                    None
                } else {
                    field("right").and_then(|right| self.expression(right, false))
                }
            }
            "augmented_assignment" => field("right").and_then(|right| self.expression(right, false)),
            "named_expression" => field("value").and_then(|value| self.expression(value, false)),
            "lambda" => {
                let mut names = Vec::new();
                for parameter in field("parameters").map(named).unwrap_or_default() {
                    let name = if parameter.kind() == "identifier" {
                        Some(parameter)
                    } else {
                        parameter.child_by_field_name("name")
                    };
                    names.extend(name.map(|name| (self.of(name), None)));
                }
                self.loose.extend(names);
                field("body").and_then(|body| self.expression(body, false));
                None
            }
            "list_comprehension"
            | "set_comprehension"
            | "dictionary_comprehension"
            | "generator_expression" => {
                for clause in named(node).into_iter().filter(|inner| inner.kind() == "for_in_clause") {
                    self.each(clause.child_by_field_name("left"), clause.child_by_field_name("right"));
                }
                for clause in named(node).into_iter().filter(|inner| inner.kind() == "if_clause") {
                    named(clause).first().and_then(|test| self.expression(*test, true));
                }
                field("body").and_then(|body| self.expression(body, false));
                None
            }
            "keyword_argument" => field("value").and_then(|value| self.expression(value, false)),
            "interpolation" => field("expression").and_then(|inner| self.expression(inner, false)),
            "type" | "comment" | "string_content" | "format_specifier" => None,
            kind if kind.ends_with("_statement") || kind == "block" => None,
            _ => {
                for inner in named(node) {
                    self.expression(inner, false);
                }
                None
            }
        }
    }

    fn call(&mut self, node: Node<'_>, tests: bool) -> Option<usize> {
        let function = node.child_by_field_name("function")?;
        let is_name = function.kind() == "identifier";
        let is_special = is_name && SPECIAL.contains(&self.of(function).as_str());
        let is_generic = is_name && GENERIC.contains(&self.of(function).as_str());
        let of_super = self.of(function).starts_with("super(");
        let operand = if is_special || is_generic || of_super || (is_name && tests) {
            None
        } else {
            self.expression(function, false)
        };
        let before = self.marks.len();
        // An argument of a function in a condition may be narrowed by it.
        let inner: Vec<Node<'_>> = node
            .child_by_field_name("arguments")
            .map(|inner| if inner.kind() == "generator_expression" { vec![inner] } else { named(inner) })
            .unwrap_or_default();
        for argument in inner {
            self.expression(argument, is_special || (tests && is_name));
        }
        let handed: Vec<usize> = (before..self.marks.len()).collect();
        let is_bare = is_special || (tests && is_name);
        (!is_bare).then(|| self.mark(node, ProbedKind::Call, operand, handed))
    }
}

/// The named children of a node, without comments.
fn named(node: Node<'_>) -> Vec<Node<'_>> {
    children(node).filter(|inner| inner.kind() != "comment").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str) -> String {
        let code = crate::reward::code::Code::parse(text);
        let spans: Vec<_> = code.statements.iter().map(|statement| statement.span.clone()).collect();
        wrap(text, &spans).0.replace(WRAPPER_START, "?(")
    }

    #[test]
    fn values_are_wrapped() {
        assert_eq!(wrapped("x = a.b[c](d)\n"), "x = ?(?(?(?(a).b)[?(c)])(?(d)))\n");
        assert_eq!(wrapped("return f'{a.b}'\n"), "return f'{?(?(a).b)}'\n");
        assert_eq!(wrapped("x: T = [y for y in z if y]\n"), "x: T = [?(y) for y in ?(z) if y]\n");
        assert_eq!(wrapped("super().f(k=a)\n"), "?(super().f(k=?(a)))\n");
    }

    #[test]
    fn narrowing_conditions_are_not_wrapped() {
        assert_eq!(wrapped("if x.y is None:\n    pass\n"), "if x.y is None:\n    pass\n");
        assert_eq!(wrapped("assert isinstance(x, T)\n"), "assert isinstance(x, T)\n");
        assert_eq!(wrapped("return x.y(z) if x else None\n"), "return ?(?(?(x).y)(?(z))) if x else None\n");
        assert_eq!(wrapped("return x and x.y\n"), "return x and ?(?(x).y)\n");
        assert_eq!(
            wrapped("while (x := f(y)) is not None:\n    pass\n"),
            "while (x := ?(?(f)(?(y)))) is not None:\n    pass\n"
        );
    }

    #[test]
    fn each_mark_has_its_offset_in_the_instrumented_text() {
        let text = "x = é.b[0]\n";
        let code = crate::reward::code::Code::parse(text);
        let (woven, marks) = wrap(text, &[code.statements[0].span.clone()]);
        for mark in &marks {
            assert!(woven[..mark.at].ends_with(WRAPPER_START));
        }
        let places: Vec<&str> = marks.iter().map(|mark| mark.text.as_str()).collect();
        assert_eq!(places, ["é", "é.b", "é.b[0]"]);
    }

    #[test]
    fn nesting_above_the_limit_is_skipped() {
        let many = 50_000;
        let text = format!("x = a{}\n", " + a".repeat(many));
        let (_, marks) = wrap(&text, std::slice::from_ref(&(0..text.len())));
        assert!(!marks.is_empty() && marks.len() < MAX_EXPRESSION_DEPTH);
        let text = format!("x = {}a{}\n", "f(".repeat(many), ")".repeat(many));
        assert!(wrap(&text, std::slice::from_ref(&(0..text.len()))).1.len() <= 2 * MAX_EXPRESSION_DEPTH);
    }
}
