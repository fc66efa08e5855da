//! The pytest fixtures of a file, and the parameters that pytest passes by name.
//!
//! The rules are those of pytest's documentation, "Fixture availability" and "Test discovery": a parameter of a test or of a
//! fixture is the fixture of its name that is nearest: in the class, in the module, in a `conftest.py` of the folder or of
//! one above. `@pytest.mark.parametrize` passes values in place of fixtures.

use std::collections::BTreeMap;
use std::sync::Arc;

use tree_sitter::Node;

use super::digest_cache::{DigestCache, MemorySize};
use super::outline::Span;
use super::syntax::{children, dotted, parse, preorder, text_of, unwrapped};
use crate::digest::Digest;
use crate::text::names::whole_names;
use crate::workspace::files::Document;

/// How a fixture provides its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixtureKind {
    /// It returns the value.
    Returned,
    /// It yields the value.
    Yielded,
    /// It returns the value from a coroutine.
    Awaited,
    /// It yields the value from an asynchronous generator.
    AsyncYielded,
}

/// A fixture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixture {
    /// The name by which parameters request it.
    pub name: String,
    /// The function.
    pub function: String,
    /// The function's name token.
    pub name_span: Span,
    /// The class that it is a method of.
    pub class: Option<String>,
    /// How it provides its value.
    pub kind: FixtureKind,
    /// The decorator's expression.
    pub decorator: Span,
}

/// A parameter that pytest passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedFixture {
    /// The parameter's name token.
    pub span: Span,
    /// The requested fixture.
    pub name: String,
    /// The function's name token.
    pub function: Span,
    /// The class that the function is a method of.
    pub class: Option<String>,
    /// An expression of the values that `parametrize` passes in place of a fixture.
    pub values: Option<String>,
    /// Where `parametrize` names the fixture, to which it passes values (`indirect`).
    pub named: Vec<Span>,
    /// Whether it has neither annotation nor default.
    pub is_bare: bool,
}

/// The fixtures of a file and their uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PytestFile {
    /// Its fixtures, in source order.
    pub fixtures: Vec<Fixture>,
    /// The parameters that pytest passes, in source order.
    pub requested: Vec<RequestedFixture>,
    /// The offset at which a statement can be inserted: after the docstring and `from __future__`.
    pub start: usize,
}

/// Whether pytest collects tests from a file of this name.
#[must_use]
pub fn is_test_file(name: &str) -> bool {
    (name.starts_with("test") && name.ends_with(".py")) || name.ends_with("_test.py") || name == "conftest.py"
}

/// Whether a file may have parameters that pytest passes: most files need not be parsed.
#[must_use]
pub fn may_request(file_name: &str, text: &str) -> bool {
    is_test_file(file_name) || text.contains("fixture")
}

/// Reads a document, or takes it from the cache.
#[must_use]
pub fn of(document: &Document) -> Arc<PytestFile> {
    static FILES: DigestCache<PytestFile> = DigestCache::new();
    let name = document.path.file_name();
    let key = [&[u8::from(is_test_file(name))][..], &document.digest.as_bytes()[..]];
    FILES.get(Digest::of_fields(key), || read(name, &document.text))
}

impl MemorySize for PytestFile {
    fn memory_bytes(&self) -> usize {
        /// The memory of the texts of one, about.
        const TEXTS_BYTES: usize = 64;
        size_of::<Self>()
            + self.fixtures.len() * (size_of::<Fixture>() + TEXTS_BYTES)
            + self.requested.len() * (size_of::<RequestedFixture>() + TEXTS_BYTES)
    }
}

/// Reads a file whose name is given.
#[must_use]
pub fn read(file_name: &str, text: &str) -> PytestFile {
    let tree = parse(text);
    let root = tree.root_node();
    let mut found = PytestFile { start: start(root, text), ..PytestFile::default() };
    let is_collected = is_test_file(file_name);
    preorder(root, |node| {
        if node.kind() == "function_definition" {
            function(node, text, is_collected, &mut found);
        }
        // Nested functions are neither tests nor fixtures.
        node.kind() != "function_definition"
    });
    found
}

fn function(node: Node<'_>, text: &str, is_collected: bool, found: &mut PytestFile) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let decorated = node.parent().filter(|parent| parent.kind() == "decorated_definition");
    let decorators: Vec<Node<'_>> = decorated
        .into_iter()
        .flat_map(children)
        .filter(|child| child.kind() == "decorator")
        .filter_map(|decorator| decorator.named_child(0))
        .collect();
    let class = class_of(decorated.unwrap_or(node), text);
    let fixture = decorators.iter().find(|decorator| {
        let named = decorator.child_by_field_name("function").unwrap_or(**decorator);
        dotted(named, text)
            .is_some_and(|name| name.rsplit('.').next().is_some_and(|last| last.ends_with("fixture")))
    });
    let function_name = text_of(name, text);
    let is_test = is_collected && function_name.starts_with("test");
    if let Some(decorator) = fixture {
        found.fixtures.push(Fixture {
            name: named(*decorator, text).unwrap_or_else(|| function_name.to_owned()),
            function: function_name.to_owned(),
            name_span: name.byte_range(),
            class: class.clone(),
            kind: kind_of(node, text),
            decorator: decorator.byte_range(),
        });
    } else if !is_test {
        return;
    }
    let marks: Vec<Node<'_>> = decorators.iter().filter_map(|mark| parametrize(*mark, text)).collect();
    let values = parametrized(&marks, text);
    let Some(list) = node.child_by_field_name("parameters") else { return };
    for (at, parameter) in children(list).filter(|child| child.kind() != "comment").enumerate() {
        let (token, is_bare) = match parameter.kind() {
            "identifier" => (Some(parameter), true),
            "typed_parameter" => (parameter.named_child(0), false),
            _ => (None, false),
        };
        let Some(token) = token.filter(|token| token.kind() == "identifier") else { continue };
        if at == 0 && class.is_some() {
            continue;
        }
        let requested = text_of(token, text);
        found.requested.push(RequestedFixture {
            span: token.byte_range(),
            name: requested.to_owned(),
            function: name.byte_range(),
            class: class.clone(),
            values: values.get(requested).cloned(),
            named: marks.iter().flat_map(|mark| named_indirectly(*mark, requested, text)).collect(),
            is_bare,
        });
    }
}

/// The name of the class that a function is directly in.
fn class_of(node: Node<'_>, text: &str) -> Option<String> {
    let class = node.parent()?.parent().filter(|class| class.kind() == "class_definition")?;
    class.child_by_field_name("name").map(|name| text_of(name, text).to_owned())
}

/// The name in `fixture(name="…")`.
fn named(decorator: Node<'_>, text: &str) -> Option<String> {
    let arguments = decorator.child_by_field_name("arguments")?;
    let given = children(arguments).find(|argument| {
        argument.kind() == "keyword_argument"
            && argument.child_by_field_name("name").is_some_and(|name| text_of(name, text) == "name")
    })?;
    string(given.child_by_field_name("value")?, text)
}

/// The content of a plain string.
fn string(node: Node<'_>, text: &str) -> Option<String> {
    let content = children(node).find(|child| child.kind() == "string_content");
    (node.kind() == "string").then(|| content.map(|content| text_of(content, text).to_owned())).flatten()
}

fn kind_of(function: Node<'_>, text: &str) -> FixtureKind {
    let is_async = text_of(function, text).starts_with("async");
    let mut yields = false;
    if let Some(body) = function.child_by_field_name("body") {
        preorder(body, |node| {
            yields |= node.kind() == "yield";
            !matches!(node.kind(), "function_definition" | "lambda" | "class_definition")
        });
    }
    match (is_async, yields) {
        (false, false) => FixtureKind::Returned,
        (false, true) => FixtureKind::Yielded,
        (true, false) => FixtureKind::Awaited,
        (true, true) => FixtureKind::AsyncYielded,
    }
}

/// The arguments of a decorator that is `parametrize`.
fn parametrize<'t>(decorator: Node<'t>, text: &str) -> Option<Node<'t>> {
    let called = dotted(decorator.child_by_field_name("function")?, text)?;
    let arguments = decorator.child_by_field_name("arguments")?;
    (called.rsplit('.').next() == Some("parametrize")).then_some(arguments)
}

/// The value of `indirect` among the arguments of `parametrize`: the names whose values are passed to fixtures.
fn indirect<'t>(arguments: Node<'t>, text: &str) -> Option<Node<'t>> {
    let mut arguments = children(arguments).filter(|argument| argument.kind() == "keyword_argument");
    let named = |argument: &Node<'_>| {
        argument.child_by_field_name("name").is_some_and(|name| text_of(name, text) == "indirect")
    };
    arguments.find(named)?.child_by_field_name("value").filter(|value| value.kind() != "false")
}

/// The arguments of `parametrize` without names.
fn positional<'t>(arguments: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    children(arguments).filter(|argument| !matches!(argument.kind(), "keyword_argument" | "comment"))
}

/// Where `parametrize` names a fixture to which it passes values.
fn named_indirectly(arguments: Node<'_>, name: &str, text: &str) -> Vec<Span> {
    let Some(indirect) = indirect(arguments, text) else { return Vec::new() };
    let listed = argument_names(indirect, text);
    if matches!(indirect.kind(), "list" | "tuple") && !listed.iter().any(|listed| listed == name) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for names in positional(arguments).next().into_iter().chain([indirect]) {
        preorder(names, |node| {
            if node.kind() == "string_content" {
                let spans = whole_names(text_of(node, text), name);
                found.extend(spans.map(|span| node.start_byte() + span.start..node.start_byte() + span.end));
            }
            true
        });
    }
    found
}

/// The values of each name that `parametrize` passes, as an expression of one of them.
fn parametrized(marks: &[Node<'_>], text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for arguments in marks {
        let indirect = indirect(*arguments, text);
        let is_passed_on = |name: &String| match indirect {
            Some(names) if matches!(names.kind(), "list" | "tuple") => {
                argument_names(names, text).contains(name)
            }
            Some(_) => true,
            None => false,
        };
        let mut positional = positional(*arguments);
        let (Some(names), values) = (positional.next(), positional.next()) else { continue };
        let names = argument_names(names, text);
        let values = values.map(unwrapped).filter(|values| matches!(values.kind(), "list" | "tuple"));
        for (at, name) in names.iter().enumerate().filter(|(_, name)| !is_passed_on(name)) {
            let items = values.into_iter().flat_map(children).filter(|item| item.kind() != "comment");
            let all: Option<Vec<&str>> = items.map(|item| value_at(item, at, names.len(), text)).collect();
            let expression = match all {
                Some(all) if !all.is_empty() => format!("[{}][0]", all.join(", ")),
                _ => String::new(),
            };
            found.insert(name.clone(), expression);
        }
    }
    found
}

fn argument_names(node: Node<'_>, text: &str) -> Vec<String> {
    if let Some(names) = string(node, text) {
        return names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    }
    children(node).filter_map(|item| string(item, text)).collect()
}

/// The text of one value of an item, which is the value itself, a tuple of values, or `pytest.param(…)` of them.
fn value_at<'t>(item: Node<'_>, at: usize, count: usize, text: &'t str) -> Option<&'t str> {
    let item = unwrapped(item);
    let callee = item.child_by_field_name("function").and_then(|function| dotted(function, text));
    let is_param = callee.is_some_and(|name| name.rsplit('.').next() == Some("param"));
    let parts: Vec<Node<'_>> = if is_param {
        let arguments = item.child_by_field_name("arguments")?;
        children(arguments).filter(|part| !matches!(part.kind(), "keyword_argument" | "comment")).collect()
    } else if count == 1 {
        vec![item]
    } else if matches!(item.kind(), "tuple" | "list") {
        children(item).filter(|part| part.kind() != "comment").collect()
    } else {
        return None;
    };
    parts.get(at).and_then(|part| text.get(part.byte_range()))
}

/// The offset of the first statement that is neither a docstring nor from `__future__`; the end of the text if there is no such
/// statement.
fn start(root: Node<'_>, text: &str) -> usize {
    let mut statements = children(root).filter(|child| child.kind() != "comment");
    let first = statements.find(|statement| {
        let is_string = statement.kind() == "expression_statement"
            && statement.named_child(0).is_some_and(|child| child.kind() == "string");
        !is_string && statement.kind() != "future_import_statement"
    });
    first.map_or(text.len(), |statement| statement.start_byte())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_and_their_uses() {
        let text = "\
'''doc'''
from __future__ import annotations
import pytest
@pytest.fixture(name='app')
def make_app(tmp_path): return App()
@pytest.fixture
async def client(app: App):
    yield app.client()
class TestIt:
    @pytest.fixture
    def own(self, app): return 1
    @pytest.mark.parametrize('a, b', [(A(), 1), pytest.param(B(), 2, id='x')])
    def test_it(self, own, a, b, c=1): ...
    def helper(self, own): ...
def test_two(app):
    def test_inner(app): ...
";
        let found = read("test_a.py", text);
        let fixtures: Vec<_> = found
            .fixtures
            .iter()
            .map(|one| (one.name.as_str(), one.function.as_str(), one.class.as_deref(), one.kind))
            .collect();
        assert_eq!(
            fixtures,
            [
                ("app", "make_app", None, FixtureKind::Returned),
                ("client", "client", None, FixtureKind::AsyncYielded),
                ("own", "own", Some("TestIt"), FixtureKind::Returned),
            ]
        );
        let requested: Vec<_> = found
            .requested
            .iter()
            .map(|one| (&text[one.function.clone()], one.name.as_str(), one.values.as_deref(), one.is_bare))
            .collect();
        assert_eq!(
            requested,
            [
                ("make_app", "tmp_path", None, true),
                ("client", "app", None, false),
                ("own", "app", None, true),
                ("test_it", "own", None, true),
                ("test_it", "a", Some("[A(), B()][0]"), true),
                ("test_it", "b", Some("[1, 2][0]"), true),
                ("test_two", "app", None, true),
            ]
        );
        assert!(text[found.start..].starts_with("import pytest"));
        assert_eq!(&text[found.fixtures[0].decorator.clone()], "pytest.fixture(name='app')");
        assert!(read("help.py", "def test_a(app): ...\n").requested.is_empty());
    }
}
