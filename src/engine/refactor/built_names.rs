//! Names that a program builds when it runs: `getattr(self, f"visit_{kind}")` reaches every method whose name begins with `visit_`.

use std::sync::Arc;

use super::collision::Renaming;
use crate::engine::context::RequestContext;
use crate::python::outline::Span;
use crate::workspace::files::{Document, Files as _};

/// What a file has in it that looks names up.
const LOOKUPS: [&str; 6] = ["getattr(", "hasattr(", "globals()", "vars(", "__dict__", "methodcaller("];

/// The strings that the beginning of the old name and something else are put together in, in files that look names up.
pub(super) fn prefixes(cx: &RequestContext<'_>, renaming: &Renaming<'_>) -> Vec<(Arc<Document>, Span)> {
    let snapshot = &cx.state.inputs.snapshot;
    let mut found = Vec::new();
    let ends = renaming.old.match_indices('_').map(|(at, _)| &renaming.old[..=at]);
    for prefix in ends.filter(|prefix| prefix.len() < renaming.old.len()) {
        for path in cx.state.files_with_word(prefix) {
            let Ok(document) = cx.state.files.read(&snapshot.absolute(&path)) else { continue };
            if LOOKUPS.iter().any(|lookup| document.text.contains(lookup)) {
                found.extend(built(&document.text, prefix).into_iter().map(|span| (document.clone(), span)));
            }
        }
    }
    found
}

/// The places where a string begins with a prefix and goes on with a value: `f"visit_{x}"`, `"visit_" + x`, `"visit_%s" % x`.
fn built(text: &str, prefix: &str) -> Vec<Span> {
    let quoted = text.match_indices(prefix).filter(|(at, _)| text[..*at].ends_with(['"', '\'']));
    let goes_on = |at: usize| {
        let rest = &text[at + prefix.len()..];
        let after_quote = rest.strip_prefix(['"', '\'']).map(str::trim_start);
        rest.starts_with(['{', '%']) || after_quote.is_some_and(|rest| rest.starts_with('+'))
    };
    quoted.filter(|(at, _)| goes_on(*at)).map(|(at, _)| at..at + prefix.len()).collect()
}

#[cfg(test)]
mod tests {
    use super::built;

    #[test]
    fn strings_that_are_put_together() {
        for (text, count) in [
            ("getattr(self, f'visit_{kind}')", 1),
            ("getattr(self, \"visit_\" + kind)", 1),
            ("getattr(self, 'visit_%s' % kind)", 1),
            ("getattr(self, 'visit_')", 0),
            ("getattr(self, 'visit_all')", 0),
            ("self.visit_{kind}", 0),
        ] {
            assert_eq!(built(text, "visit_").len(), count, "{text}");
        }
    }
}
