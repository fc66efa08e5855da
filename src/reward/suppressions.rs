//! Rule 3: what an edit adds to hide diagnostics is taken away and the file is checked again; what it hid counts.

use std::collections::BTreeMap;
use std::ops::Range;

use super::code::Code;

/// Words that hide diagnostics when a comment has them, white space taken out and in lower case.
const WORDS: [&str; 14] = [
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
/// Decorators that do.
const DECORATORS: [&str; 2] = ["no_type_check", "no_type_check_decorator"];

/// Something that hides diagnostics.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Directive {
    span: Range<usize>,
    /// What it says.
    says: String,
    /// The code of its line, when it stands behind some: it is about that only.
    line: String,
    symbol: String,
}

/// A part of every word and decorator: a text without any of these hides nothing.
const PARTS: [&str; 10] =
    ["ignore", "pyre", "pyri", "noqa", "mypy", "lint", "ruff", "flake8", "pytype", "no_type_check"];

fn directives(text: &str) -> Vec<Directive> {
    let lower = text.to_lowercase();
    if !PARTS.iter().any(|part| lower.contains(part)) && !lower.contains("zuban") {
        return Vec::new();
    }
    let code = &Code::parse(text);
    let line_of = |span: &Range<usize>| {
        let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        text[start..span.start].split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut found = Vec::new();
    for (span, comment) in &code.comments {
        let bare: String = comment.to_lowercase().split_whitespace().collect();
        if WORDS.iter().any(|word| bare.contains(word)) {
            found.push(Directive {
                span: span.clone(),
                says: bare,
                line: line_of(span),
                symbol: code.symbol_at(span.start).to_owned(),
            });
        }
    }
    for symbol in &code.symbols {
        for (name, span) in symbol.decorators.iter().filter(|(name, _)| DECORATORS.contains(&name.as_str())) {
            found.push(Directive {
                span: span.clone(),
                says: format!("@{name}"),
                line: String::new(),
                symbol: symbol.name.clone(),
            });
        }
    }
    found
}

/// What every text of the head has that the base has not, by file. One that stands behind other code than before is another,
/// unless it is its own line that was edited.
#[must_use]
pub fn added<'t>(
    base: impl IntoIterator<Item = &'t str>,
    head: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> BTreeMap<String, Vec<Range<usize>>> {
    let mut old: Vec<Directive> = base.into_iter().flat_map(directives).collect();
    let head: Vec<(&str, &str)> = head.into_iter().collect();
    let mut new: Vec<(&str, Directive)> = Vec::new();
    for (name, text) in &head {
        new.extend(directives(text).into_iter().map(|one| (*name, one)));
    }
    let mut take = |same: &dyn Fn(&Directive, &Directive) -> bool| {
        new.retain(|(_, one)| match old.iter().position(|other| same(other, one)) {
            Some(at) => {
                old.remove(at);
                false
            }
            None => true,
        });
    };
    take(&|a, b| a.says == b.says && a.line == b.line && a.symbol == b.symbol);
    take(&|a, b| a.says == b.says && a.line == b.line);
    // The line itself was edited: then its old code stands nowhere without what hid its diagnostics.
    let stands_bare = |line: &str| {
        head.iter().any(|(_, text)| {
            text.lines().any(|other| {
                let code = other.split('#').next().unwrap_or_default();
                code.split_whitespace().collect::<Vec<_>>().join(" ") == line
            })
        })
    };
    take(&|a, b| {
        a.says == b.says
            && a.symbol == b.symbol
            && !a.line.is_empty()
            && !b.line.is_empty()
            && !stands_bare(&a.line)
    });
    let mut spans: BTreeMap<String, Vec<Range<usize>>> = BTreeMap::new();
    for (name, directive) in new {
        spans.entry(name.to_owned()).or_default().push(directive.span);
    }
    spans
}

/// A text with stretches of it made blank, so that everything else stays where it is.
#[must_use]
pub fn blanked(text: &str, spans: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut sorted: Vec<&Range<usize>> = spans.iter().collect();
    sorted.sort_by_key(|span| span.start);
    let mut at = 0;
    for span in sorted {
        let (start, end) = (span.start.max(at).min(text.len()), span.end.max(at).min(text.len()));
        out.push_str(&text[at..start]);
        // Where it is one character for another, columns stay what they are, whatever they count.
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
    fn one_that_was_there_is_none_that_came() {
        let base = "x = y  # type: ignore\nz = w\n";
        assert_eq!(count(base, base), 0);
        assert_eq!(count(base, "a = 1\nx = y # type:ignore\nz = w\n"), 0);
        // Its own line was edited.
        assert_eq!(count(base, "x = yy  # type: ignore\nz = w\n"), 0);
        // It went to another line, or to the top, where it is about everything.
        assert_eq!(count(base, "x = y\nz = w  # type: ignore\n"), 1);
        assert_eq!(count(base, "# type: ignore\nx = y\nz = w\n"), 1);
        assert_eq!(count(base, "x = y  # type: ignore\nz = w  # type: ignore\n"), 1);
        assert_eq!(count("x = y  # type: ignore[a]\n", "x = y  # type: ignore\n"), 1);
    }

    #[test]
    fn what_is_blanked_keeps_every_place() {
        let text = "é = y  # é\nz\n";
        let at = text.find('#').unwrap();
        let blank = blanked(text, std::slice::from_ref(&(at..at + 4)));
        assert_eq!(blank, "é = y     \nz\n");
    }
}
