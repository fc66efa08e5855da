//! Rule 5: diagnostics of code that became unreachable stay outstanding. A server reports such code by hints.

use std::collections::BTreeMap;
use std::ops::Range;

use super::judge::{FileView, SideCode};
use crate::model::facts::Diagnostic;
use crate::model::request::Severity;
use crate::text::ColumnUnit;

/// Whether a diagnostic marks unreachable code.
pub(super) fn is_unreachable_hint(item: &Diagnostic) -> bool {
    item.severity == Severity::Hint
        && item.tags.iter().any(|tag| tag == "unnecessary")
        // The same tag marks unused names ("… is not accessed").
        && !item.message.contains("accessed")
}

/// The byte ranges of a file that the server reports as unreachable.
pub(super) fn ranges(view: &FileView<'_>, unit: ColumnUnit) -> Vec<Range<usize>> {
    let document = view.document;
    let offset =
        |position| document.lines.offset(&document.text, position, unit).unwrap_or(document.text.len());
    let hints = view.bare.unwrap_or(view.found).iter().filter(|item| is_unreachable_hint(item));
    hints.map(|item| offset(item.range.start)..offset(item.range.end)).collect()
}

/// How many statements of the base became unreachable.
pub(super) fn added(base: &SideCode<'_>, head: &SideCode<'_>, unit: ColumnUnit) -> u32 {
    let reachability = |side: &SideCode<'_>| {
        let mut counts: BTreeMap<Vec<String>, (i64, i64)> = BTreeMap::new();
        for (name, code) in side.seen() {
            let Some(view) = side.view(name) else { continue };
            let ranges = ranges(view, unit);
            for statement in code.statements.iter().filter(|statement| !statement.is_empty) {
                let hidden = ranges.iter().any(|range| range.contains(&statement.span.start));
                let (reachable, unreachable) = counts.entry(statement.tokens.clone()).or_default();
                *(if hidden { unreachable } else { reachable }) += 1;
            }
        }
        counts
    };
    let (before, after) = (reachability(base), reachability(head));
    let lost = after.iter().filter(|(tokens, (reachable, unreachable))| {
        let (was_reachable, was_unreachable) = before.get(*tokens).copied().unwrap_or_default();
        *unreachable > was_unreachable && *reachable < was_reachable
    });
    u32::try_from(lost.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use crate::reward::testing::Case;

    const BASE: &str = "def f(x):\n    y = g(x) #! r\n    return y\n";

    #[test]
    fn unreachable_code_keeps_its_diagnostics_outstanding() {
        for head in [
            "def f(x):\n    raise E\n    y = g(x) #~\n    return y #~\n",
            "def f(x):\n    if False:\n        y = g(x) #~\n    return 0\n",
        ] {
            let case = Case::of(BASE, head);
            assert_eq!(case.drop(), 0.0);
            assert!(case.judged().integrity.unreachable_added > 0);
        }
    }

    #[test]
    fn code_that_was_unreachable_before_is_not_counted() {
        let base = "def f(x):\n    y = g(x) #! r\n    return y\n    z = 1 #~\n";
        let case = Case::of(base, "def f(x):\n    y = g(x, 1)\n    return y\n    z = 1 #~\n");
        assert_eq!((case.drop(), case.judged().integrity.unreachable_added), (1.0, 0));
    }
}
