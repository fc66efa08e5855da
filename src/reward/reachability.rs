//! Rule 5: code that existed and is never reached now keeps its debt. A server tells such code as hints.

use std::collections::BTreeMap;
use std::ops::Range;

use super::judge::{FileView, Side};
use crate::model::facts::Diagnostic;
use crate::model::request::Severity;
use crate::text::ColumnUnit;

/// Whether a diagnostic says that code is never reached.
pub(super) fn is_dark(item: &Diagnostic) -> bool {
    item.severity == Severity::Hint
        && item.tags.iter().any(|tag| tag == "unnecessary")
        // A name that nobody uses is another matter.
        && !item.message.contains("accessed")
}

/// The stretches of a file that the server says are never reached, in bytes.
pub(super) fn ranges(view: &FileView<'_>, unit: ColumnUnit) -> Vec<Range<usize>> {
    let document = view.document;
    let offset =
        |position| document.lines.offset(&document.text, position, unit).unwrap_or(document.text.len());
    let dark = view.bare.unwrap_or(view.found).iter().filter(|item| is_dark(item));
    dark.map(|item| offset(item.range.start)..offset(item.range.end)).collect()
}

/// How many statements of the base stand in code that is never reached now, and did not before.
pub(super) fn added(base: &Side<'_>, head: &Side<'_>, unit: ColumnUnit) -> u32 {
    let dark = |side: &Side<'_>| {
        let mut counts: BTreeMap<Vec<String>, (i64, i64)> = BTreeMap::new();
        for (name, code) in side.seen() {
            let Some(view) = side.view(name) else { continue };
            let ranges = ranges(view, unit);
            for statement in code.statements.iter().filter(|statement| !statement.is_empty) {
                let hidden = ranges.iter().any(|range| range.contains(&statement.span.start));
                let (lit, unlit) = counts.entry(statement.tokens.clone()).or_default();
                *(if hidden { unlit } else { lit }) += 1;
            }
        }
        counts
    };
    let (before, after) = (dark(base), dark(head));
    let lost = after.iter().filter(|(tokens, (lit, unlit))| {
        let (was_lit, was_unlit) = before.get(*tokens).copied().unwrap_or_default();
        *unlit > was_unlit && *lit < was_lit
    });
    u32::try_from(lost.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use crate::reward::testing::Case;

    const BASE: &str = "def f(x):\n    y = g(x) #! r\n    return y\n";

    #[test]
    fn what_is_never_reached_is_owed() {
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
    fn what_never_was_reached_is_nobody_s_fault() {
        let base = "def f(x):\n    y = g(x) #! r\n    return y\n    z = 1 #~\n";
        let case = Case::of(base, "def f(x):\n    y = g(x, 1)\n    return y\n    z = 1 #~\n");
        assert_eq!((case.drop(), case.judged().integrity.unreachable_added), (1.0, 0));
    }
}
