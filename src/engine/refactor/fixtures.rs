//! Parameters that pytest passes by name.

use std::sync::Arc;

use super::collision::Renaming;
use crate::engine::occurrences::is_fixture;
use crate::python::outline::Span;
use crate::python::roles::parameter_at;
use crate::workspace::files::Document;

/// The renamed parameter itself, if pytest passes it.
pub(super) fn own_parameter(renaming: &Renaming<'_>) -> Option<(Arc<Document>, Span)> {
    let (document, offset) = &renaming.definition;
    let parameter = parameter_at(&document.text, *offset)?;
    let passes = parameter.is_keyword
        && !matches!(renaming.old, "self" | "cls")
        && requests_fixtures(document.path.file_name(), &parameter.name, &parameter.decorators);
    passes.then(|| (document.clone(), *offset..*offset + renaming.old.len()))
}

/// Whether pytest calls a function of this file and passes fixtures by the names of its parameters.
fn requests_fixtures(file: &str, function: &str, decorators: &[String]) -> bool {
    let is_test_file = file.starts_with("test") || file.ends_with("_test.py") || file == "conftest.py";
    is_fixture(decorators) || (is_test_file && function.starts_with("test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_request_fixtures() {
        let fixture = ["pytest.fixture".to_owned()];
        assert!(requests_fixtures("help.py", "client", &fixture));
        assert!(requests_fixtures("help.py", "client", &["pytest_asyncio.fixture".to_owned()]));
        assert!(
            requests_fixtures("test_a.py", "test_b", &[]) && requests_fixtures("a_test.py", "test_b", &[])
        );
        assert!(
            !requests_fixtures("help.py", "test_connection", &[])
                && !requests_fixtures("test_a.py", "helper", &[])
        );
    }
}
