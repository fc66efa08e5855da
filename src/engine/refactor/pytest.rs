//! Names that pytest and pluggy use: the parameters of tests, fixtures and hooks, and the hooks themselves.

use std::sync::Arc;

use super::collision::Renaming;
use crate::engine::occurrences::{CALLED_AS_HOOK, is_fixture, is_hook};
use crate::python::outline::{Outline, Span};
use crate::python::roles::parameter_at;
use crate::workspace::files::Document;

/// The renamed definition itself if a framework uses its name, with the reason.
pub(super) fn own_name(renaming: &Renaming<'_>) -> Option<(Arc<Document>, Span, &'static str)> {
    let (document, offset) = &renaming.definition;
    let span = *offset..*offset + renaming.old.len();
    let why = if let Some(parameter) = parameter_at(&document.text, *offset) {
        let is_passed = parameter.is_keyword
            && !matches!(renaming.old, "self" | "cls")
            && is_called(document.path.file_name(), &parameter.name, &parameter.decorators);
        is_passed.then_some("pytest passes it by name")
    } else {
        let outline = Outline::parse(&document.text);
        let own = outline.definitions.iter().find(|definition| definition.name_span == span);
        let is_hook = own.is_some_and(|own| own.kind.is_function() && is_hook(&own.name, &own.decorators));
        is_hook.then_some(CALLED_AS_HOOK)
    };
    why.map(|why| (document.clone(), span, why))
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
}
