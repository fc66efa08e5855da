//! Definitions whose names are used without being written: pytest and pluggy pass parameters and call hooks by name, decorators name
//! parameters as options, `auto()` makes the value of an enum's member of its name, and attrs takes a private field by a keyword.

use std::sync::Arc;

use super::collision::Renaming;
use crate::engine::context::RequestContext;
use crate::engine::occurrences::{CALLED_AS_HOOK, is_fixture, is_hook};
use crate::python::outline::{Definition, Outline, Span};
use crate::python::roles::parameter_at;
use crate::text::names::is_in_name;
use crate::workspace::files::Document;

/// Bases of enums whose `auto()` counts.
const COUNTING: [&str; 9] =
    ["Enum", "IntEnum", "Flag", "IntFlag", "ReprEnum", "int", "str", "object", "float"];

/// What makes an attrs class, with or without its module.
const ATTRS: [&str; 7] =
    ["define", "frozen", "mutable", "attrs", "attr.s", "attr.dataclass", "attr.attributes"];

/// The renamed definition itself if something uses its name without writing it, with the reason.
pub(super) fn own_name(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
) -> Option<(Arc<Document>, Span, &'static str)> {
    let (document, offset) = &renaming.definition;
    let span = *offset..*offset + renaming.old.len();
    let why = if let Some(parameter) = parameter_at(&document.text, *offset) {
        let is_passed = parameter.is_keyword
            && !matches!(renaming.old, "self" | "cls")
            && is_called(document.path.file_name(), &parameter.name, &parameter.decorators);
        let decorators = parameter.decorated.and_then(|span| document.text.get(span)).unwrap_or_default();
        match () {
            () if is_passed => Some("pytest passes it by name"),
            () if parameter.is_keyword && is_option(decorators, renaming.old) => {
                Some("a decorator names it in a string")
            }
            () => None,
        }
    } else {
        let outline = Outline::parse(&document.text);
        let own = outline.definitions.iter().find(|definition| definition.name_span == span);
        let is_hook = own.is_some_and(|own| own.kind.is_function() && is_hook(&own.name, &own.decorators));
        let class = renaming.class().and_then(|(_, at)| class_at(&outline, at));
        let statement = document.text[span.end..].lines().next().unwrap_or_default();
        match class {
            _ if is_hook => Some(CALLED_AS_HOOK),
            Some(class) if is_value_of_name(&outline, class, statement) => {
                Some("`auto()` makes its value of its name")
            }
            Some(class) => {
                let keyword = renaming.old.trim_start_matches('_');
                let is_keyword = keyword != renaming.old
                    && keyword != renaming.new.trim_start_matches('_')
                    && is_attrs(&outline.definitions[class].decorators)
                    && is_field(statement);
                (is_keyword && !cx.state.files_with_word(keyword).is_empty())
                    .then_some("attrs takes its value by a keyword without the underscore")
            }
            None => None,
        }
    };
    why.map(|why| (document.clone(), span, why))
}

fn class_at(outline: &Outline, name: usize) -> Option<usize> {
    outline.definitions.iter().position(|definition| definition.name_span.start == name)
}

/// Whether a member of an enum is assigned an `auto()` that may be its name: in a `StrEnum`, and where a class says what it gives.
fn is_value_of_name(outline: &Outline, class: usize, statement: &str) -> bool {
    let value = statement.trim_start().strip_prefix('=').unwrap_or_default().trim_start();
    let called = value.split_once('(').map(|(called, _)| called.trim_end());
    called.is_some_and(|called| called.rsplit('.').next() == Some("auto")) && !counts(outline, class, 0)
}

/// Whether the `auto()` of an enum counts, as far as its file tells.
fn counts(outline: &Outline, class: usize, depth: usize) -> bool {
    const MAX_DEPTH: usize = 10;
    let is_own = outline.children(Some(class)).any(|(_, member)| member.name == "_generate_next_value_");
    let base_counts = |base: &String| {
        let named = |(_, one): &(usize, &Definition)| one.name == *base;
        match outline.children(None).find(named) {
            Some((index, _)) => depth < MAX_DEPTH && counts(outline, index, depth + 1),
            None => base.rsplit('.').next().is_some_and(|last| COUNTING.contains(&last)),
        }
    };
    !is_own && outline.definitions[class].bases.iter().all(base_counts)
}

fn is_attrs(decorators: &[String]) -> bool {
    decorators.iter().any(|decorator| {
        let called = decorator.split('(').next().unwrap_or_default().trim();
        let is_it = |known: &&str| called == *known || called.ends_with(&format!(".{known}"));
        ATTRS.iter().any(is_it)
    })
}

/// Whether the rest of a line after a name declares a field whose keyword is made of its name.
fn is_field(statement: &str) -> bool {
    statement.trim_start().starts_with([':', '='])
        && !statement.contains("alias")
        && !statement.contains("ClassVar")
}

/// Whether a string in decorators names a parameter: `@click.option("--user-name")`, `@click.argument("user_name")`.
fn is_option(decorators: &str, name: &str) -> bool {
    let dashed = format!("--{}", name.replace('_', "-"));
    let ends = |rest: &str| !rest.starts_with(|c: char| c == '-' || is_in_name(c));
    decorators.match_indices(&dashed).any(|(at, _)| ends(&decorators[at + dashed.len()..]))
        || ['"', '\''].iter().any(|quote| decorators.contains(&format!("{quote}{name}{quote}")))
}

/// Whether a function of this file is called with arguments by the names of its parameters.
fn is_called(file: &str, function: &str, decorators: &[String]) -> bool {
    let is_test_file = file.starts_with("test") || file.ends_with("_test.py") || file == "conftest.py";
    is_fixture(decorators) || is_hook(function, decorators) || (is_test_file && function.starts_with("test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_are_called_by_name() {
        let fixture = ["pytest.fixture".to_owned()];
        assert!(is_called("help.py", "client", &fixture));
        assert!(is_called("help.py", "client", &["pytest_asyncio.fixture".to_owned()]));
        assert!(is_called("test_a.py", "test_b", &[]) && is_called("a_test.py", "test_b", &[]));
        assert!(is_called("plugin.py", "pytest_configure", &[]));
        assert!(is_called("plugin.py", "started", &["hooks.hookimpl".to_owned()]));
        assert!(!is_called("help.py", "test_connection", &[]) && !is_called("test_a.py", "helper", &[]));
    }

    #[test]
    fn values_that_are_made_of_names() {
        for (text, expected) in [
            ("class C(StrEnum):\n    A = auto()", true),
            ("class C(enum.StrEnum):\n    A = enum.auto()", true),
            ("class C(StrEnum):\n    A = 'a'", false),
            ("class C(Enum):\n    A = auto()", false),
            ("class C(str, enum.Enum):\n    A = auto()", false),
            (
                "class B(Enum):\n    def _generate_next_value_(name, *_): return name\nclass C(B):\n    A = auto()",
                true,
            ),
            ("class B(Enum): ...\nclass C(B):\n    A = auto()", false),
            ("class C(Unknown):\n    A = auto()", true),
            ("class C(C):\n    A = auto()", true),
        ] {
            let outline = Outline::parse(text);
            let class = outline.definitions.iter().position(|one| one.name == "C").expect("a class");
            let statement = text.rsplit_once("A").expect("a member").1;
            assert_eq!(is_value_of_name(&outline, class, statement), expected, "{text}");
        }
    }

    #[test]
    fn options_of_decorators() {
        for (text, expected) in [
            ("@click.option('--user-name', default=1)", true),
            ("@click.argument(\"user_name\")", true),
            ("@click.option('-u/--no-u', '--user-name/--no-user-name')", true),
            ("@click.option('--user-name-file')", false),
            ("@click.option('--user', help='the user_name')", false),
        ] {
            assert_eq!(is_option(text, "user_name"), expected, "{text}");
        }
    }

    #[test]
    fn fields_of_attrs() {
        assert!(is_attrs(&["define".to_owned()]) && is_attrs(&["attr.s(auto_attribs=True)".to_owned()]));
        assert!(!is_attrs(&["dataclass".to_owned()]) && !is_attrs(&["dataclasses.dataclass".to_owned()]));
        assert!(is_field(": str = \"a\"") && is_field(" = attr.ib()"));
        assert!(!is_field(": str = field(alias=\"x\")") && !is_field("(self): ..."));
    }
}
