//! Rule 3: suppressions that an edit adds are removed and the file is checked again; what they hid counts.

use std::collections::BTreeMap;
use std::ops::Range;

use super::code::Code;

/// Markers of suppression comments, in lower case and without white space.
const COMMENT_MARKERS: [&str; 14] = [
    "type:ignore",
    "pyright:",
    "basedpyright:",
    "noqa",
    "mypy:",
    "pylint:",
    "ruff:",
    "flake8:",
    "pyre-ignore",
    "pyre-fixme",
    "pytype:",
    "ty:ignore",
    "pyrefly:",
    "zuban:",
];
/// Decorators that suppress diagnostics.
const SUPPRESSING_DECORATORS: [&str; 2] = ["no_type_check", "no_type_check_decorator"];

/// A comment or decorator that suppresses diagnostics.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Suppression {
    span: Range<usize>,
    /// Its normalized text.
    text: String,
    /// The code before it on its line; empty when it has a line for itself.
    line: String,
    symbol: String,
}

/// Every marker and decorator contains one of these: a quick test.
const MARKER_PARTS: [&str; 10] =
    ["ignore", "pyre", "pyri", "noqa", "mypy", "lint", "ruff", "flake8", "pytype", "no_type_check"];

fn suppressions(text: &str) -> Vec<Suppression> {
    let lower = text.to_lowercase();
    if !MARKER_PARTS.iter().any(|part| lower.contains(part)) && !lower.contains("zuban") {
        return Vec::new();
    }
    let code = &Code::of(text);
    let line_of = |span: &Range<usize>| {
        let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        text[start..span.start].split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut found = Vec::new();
    for (span, comment) in &code.comments {
        let bare: String = comment.to_lowercase().split_whitespace().collect();
        if COMMENT_MARKERS.iter().any(|word| bare.contains(word)) {
            found.push(Suppression {
                span: span.clone(),
                text: bare,
                line: line_of(span),
                symbol: code.symbol_at(span.start).to_owned(),
            });
        }
    }
    for symbol in &code.symbols {
        for (name, span) in
            symbol.decorators.iter().filter(|(name, _)| SUPPRESSING_DECORATORS.contains(&name.as_str()))
        {
            found.push(Suppression {
                span: span.clone(),
                text: format!("@{name}"),
                line: String::new(),
                symbol: symbol.name.clone(),
            });
        }
    }
    found
}

/// The suppressions of each file of the head that the base does not have. One that follows different code than before is a new
/// one, unless its own line was edited.
#[must_use]
pub fn added<'t>(
    base: impl IntoIterator<Item = &'t str>,
    head: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> BTreeMap<String, Vec<Range<usize>>> {
    let mut old: Vec<Suppression> = base.into_iter().flat_map(suppressions).collect();
    let head: Vec<(&str, &str)> = head.into_iter().collect();
    let mut new: Vec<(&str, Suppression)> = Vec::new();
    for (name, text) in &head {
        new.extend(suppressions(text).into_iter().map(|one| (*name, one)));
    }
    let mut take = |same: &dyn Fn(&Suppression, &Suppression) -> bool| {
        new.retain(|(_, one)| match old.iter().position(|other| same(other, one)) {
            Some(at) => {
                old.remove(at);
                false
            }
            None => true,
        });
    };
    take(&|a, b| a.text == b.text && a.line == b.line && a.symbol == b.symbol);
    take(&|a, b| a.text == b.text && a.line == b.line);
    // The line itself was edited if its old code no longer occurs without the suppression.
    let occurs_unsuppressed = |line: &str| {
        head.iter().any(|(_, text)| {
            text.lines().any(|other| {
                let code = other.split('#').next().unwrap_or_default();
                code.split_whitespace().collect::<Vec<_>>().join(" ") == line
            })
        })
    };
    take(&|a, b| {
        a.text == b.text
            && a.symbol == b.symbol
            && !a.line.is_empty()
            && !b.line.is_empty()
            && !occurs_unsuppressed(&a.line)
    });
    let mut spans: BTreeMap<String, Vec<Range<usize>>> = BTreeMap::new();
    for (name, suppression) in new {
        spans.entry(name.to_owned()).or_default().push(suppression.span);
    }
    spans
}

/// The text with some spans replaced by spaces, so that all other positions stay the same.
#[must_use]
pub fn blanked(text: &str, spans: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut sorted: Vec<&Range<usize>> = spans.iter().collect();
    sorted.sort_by_key(|span| span.start);
    let mut at = 0;
    for span in sorted {
        let (start, end) = (span.start.max(at).min(text.len()), span.end.max(at).min(text.len()));
        out.push_str(&text[at..start]);
        // Character for character, so that columns stay the same in any unit.
        out.extend(text[start..end].chars().map(|c| if c == '\n' || c == '\r' { c } else { ' ' }));
        at = end;
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(base: &str, head: &str) -> usize {
        added([base], [("a", head)]).values().map(Vec::len).sum()
    }

    #[test]
    fn every_spelling_counts() {
        for comment in [
            "# type: ignore",
            "#type:ignore",
            "#  TYPE : ignore[attr]",
            "# type: ignore[a,b] # why",
            "# pyright: ignore",
            "# pyright:ignore[reportX]",
            "# why # type: ignore",
            "# noqa: F821",
            "# mypy: ignore-errors",
        ] {
            assert_eq!(count("x = y\n", &format!("x = y  {comment}\n")), 1, "{comment}");
            assert_eq!(count("x = y\n", &format!("{comment}\nx = y\n")), 1, "{comment}");
        }
        for header in ["# pyright: basic", "# pyright: strict, reportX=false", "# pyright: reportX=none"] {
            assert_eq!(count("x = y\n", &format!("{header}\nx = y\n")), 1, "{header}");
        }
        assert_eq!(count("def f(): g()\n", "import typing\n@typing.no_type_check\ndef f(): g()\n"), 1);
        assert_eq!(count("def f(): g()\n", "from typing import no_type_check as n\n@n\ndef f(): g()\n"), 1);
        assert_eq!(count("x = y\n", "x = y  # it ignores types\n"), 0);
        assert_eq!(count("x = y\n", "x = '# type: ignore'\n"), 0);
    }

    #[test]
    fn an_existing_suppression_is_not_added() {
        let base = "x = y  # type: ignore\nz = w\n";
        assert_eq!(count(base, base), 0);
        assert_eq!(count(base, "a = 1\nx = y # type:ignore\nz = w\n"), 0);
        // Its own line was edited.
        assert_eq!(count(base, "x = yy  # type: ignore\nz = w\n"), 0);
        // Moved to another line, or to the top, where it applies to the whole file.
        assert_eq!(count(base, "x = y\nz = w  # type: ignore\n"), 1);
        assert_eq!(count(base, "# type: ignore\nx = y\nz = w\n"), 1);
        assert_eq!(count(base, "x = y  # type: ignore\nz = w  # type: ignore\n"), 1);
        assert_eq!(count("x = y  # type: ignore[a]\n", "x = y  # type: ignore\n"), 1);
    }

    #[test]
    fn blanking_keeps_all_positions() {
        let text = "é = y  # é\nz\n";
        let at = text.find('#').unwrap();
        let blank = blanked(text, std::slice::from_ref(&(at..at + 4)));
        assert_eq!(blank, "é = y     \nz\n");
    }
}
