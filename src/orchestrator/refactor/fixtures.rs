//! Parameters that pytest passes by their name.

use super::collision::Renaming;
use crate::orchestrator::ask::Asking;
use crate::orchestrator::occurrences::is_fixture;
use crate::resolve::roles::parameter_at;

/// The renamed name itself, when it is a parameter that pytest passes.
pub(super) fn own_parameter(asking: &Asking<'_>, renaming: &Renaming<'_>) -> Option<String> {
    let (document, offset) = &renaming.definition;
    let parameter = parameter_at(&document.text, *offset)?;
    let passes = parameter.is_keyword
        && !matches!(renaming.old, "self" | "cls")
        && is_asking(document.path.file_name(), &parameter.name, &parameter.decorators);
    passes.then(|| asking.places.span(document, *offset..*offset + renaming.old.len()).2)
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
