//! What pytest passes by name: fixtures to the tests and fixtures that have a parameter of that name. No server knows it.

use super::collision::Renaming;
use crate::orchestrator::ask::Asking;
use crate::orchestrator::completeness::Unclaimed;
use crate::resolve::occurrences::OccurrenceKind;
use crate::resolve::outline::Outline;
use crate::resolve::roles::{enclosing_call, parameter_at, takers};

/// What is given the name of a fixture as a string.
const BY_STRING: [&str; 2] = ["usefixtures", "getfixturevalue"];

/// Where pytest would still look for the old name: where it is asked for by tests and fixtures, when a fixture is renamed; the
/// parameter itself, when that is one that pytest passes.
pub(super) fn asked_for(
    asking: &Asking<'_>,
    renaming: &Renaming<'_>,
    unclaimed: &[Unclaimed],
) -> Vec<String> {
    let (document, offset) = &renaming.definition;
    let at = |token: &Unclaimed| asking.places.span(&token.document, token.span.clone()).2;
    if let Some(parameter) = parameter_at(&document.text, *offset) {
        let passes = parameter.is_keyword
            && !matches!(renaming.old, "self" | "cls")
            && is_asking(document.path.file_name(), &parameter.name, &parameter.decorators);
        let place = || asking.places.span(document, *offset..*offset + renaming.old.len()).2;
        return if passes { vec![place()] } else { Vec::new() };
    }
    let outline = Outline::parse(&document.text);
    let definition = outline.definitions.iter().find(|found| found.name_span.start == *offset);
    if !definition.is_some_and(|found| found.kind.is_function() && is_fixture(&found.decorators)) {
        return Vec::new();
    }
    let asks = |token: &&Unclaimed| match token.kind {
        OccurrenceKind::Identifier => {
            let text = &token.document.text;
            let is_it = |parameter: &crate::resolve::outline::Span| *parameter == token.span;
            let file = token.document.path.file_name();
            takers(text, renaming.old)
                .iter()
                .any(|taker| is_it(&taker.parameter) && is_asking(file, &taker.function, &taker.decorators))
        }
        OccurrenceKind::String => enclosing_call(&token.document.text, token.span.start)
            .is_some_and(|function| BY_STRING.contains(&function.as_str())),
        _ => false,
    };
    unclaimed.iter().filter(asks).map(at).collect()
}

fn is_fixture(decorators: &[String]) -> bool {
    decorators
        .iter()
        .any(|decorator| decorator.rsplit('.').next().is_some_and(|last| last.ends_with("fixture")))
}

/// Whether pytest calls a function of a file, with what its parameters name.
fn is_asking(file: &str, function: &str, decorators: &[String]) -> bool {
    let is_of_tests = file.starts_with("test") || file.ends_with("_test.py") || file == "conftest.py";
    is_fixture(decorators) || (is_of_tests && function.starts_with("test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_pytest_calls() {
        let fixture = ["pytest.fixture".to_owned()];
        assert!(is_asking("help.py", "client", &fixture));
        assert!(is_asking("help.py", "client", &["pytest_asyncio.fixture".to_owned()]));
        assert!(is_asking("test_a.py", "test_b", &[]) && is_asking("a_test.py", "test_b", &[]));
        assert!(!is_asking("help.py", "test_connection", &[]) && !is_asking("test_a.py", "helper", &[]));
    }
}
