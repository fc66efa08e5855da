//! Resolves cursors and ranges: from a line and a column to the token there and the definition that it names.

use std::sync::Arc;

use super::lookup::Lookup;
use super::modules::ImportRoots;
use super::not_found::{NotFound, NotFoundReason};
use super::outline::Span;
use super::parsed_file::ParsedFile;
use super::symbol::{ResolveOutcome, ResolvedTarget};
use crate::selector::{CursorSpec, ModuleName, QualName, RangeSpec};
use crate::text::ColumnUnit;
use crate::workspace::files::{Document, Files};

/// Resolves a cursor to the identifier at it or touching it, else to the empty span at it.
#[must_use]
pub fn resolve_cursor(
    files: &dyn Files,
    roots: &ImportRoots,
    document: &Arc<Document>,
    spec: &CursorSpec,
) -> ResolveOutcome {
    match offset(document, spec.line, spec.col, spec.indexing) {
        Ok(offset) => {
            let parsed = ParsedFile::of(document);
            let span = parsed.identifier_at(offset).unwrap_or(offset..offset);
            ResolveOutcome::Found(Box::new(target(files, roots, document, &parsed, span.clone(), span)))
        }
        Err(reason) => ResolveOutcome::NotFound(NotFound::new(reason)),
    }
}

/// Resolves a range to its span. Requests to the server use the first identifier in it, else its start.
#[must_use]
pub fn resolve_range(
    files: &dyn Files,
    roots: &ImportRoots,
    document: &Arc<Document>,
    spec: &RangeSpec,
) -> ResolveOutcome {
    let at = |[line, column]: [u32; 2]| offset(document, line, column, spec.indexing);
    match (at(spec.start), at(spec.end)) {
        (Ok(start), Ok(end)) => {
            let parsed = ParsedFile::of(document);
            let name_span = parsed.first_identifier(&(start..end)).unwrap_or(start..start);
            ResolveOutcome::Found(Box::new(target(files, roots, document, &parsed, start..end, name_span)))
        }
        (Err(reason), _) | (_, Err(reason)) => ResolveOutcome::NotFound(NotFound::new(reason)),
    }
}

/// The target of a span that is known in bytes. Requests to the server use `name`, else the first identifier in the span, else
/// the identifier at an empty span.
#[must_use]
pub fn resolve_span(
    files: &dyn Files,
    roots: &ImportRoots,
    document: &Arc<Document>,
    span: Span,
    name: Option<Span>,
) -> ResolvedTarget {
    let parsed = ParsedFile::of(document);
    let empty = || parsed.identifier_at(span.start).filter(|_| span.is_empty());
    let name_span =
        name.or_else(|| parsed.first_identifier(&span)).or_else(empty).unwrap_or(span.start..span.start);
    target(files, roots, document, &parsed, span, name_span)
}

/// The identifier token that contains an offset, or else begins or ends at it; `None` in white space, keywords,
/// operators, strings and comments. Identifiers in the braces of an f-string count.
#[must_use]
pub fn token_at(text: &str, offset: usize) -> Option<Span> {
    ParsedFile::new(text).identifier_at(offset)
}

/// The byte offset of a 1-based line and column.
fn offset(document: &Document, line: u32, column: u32, unit: ColumnUnit) -> Result<usize, NotFoundReason> {
    let (text, lines) = (&document.text, &document.lines);
    if let Some(offset) = lines.from_display(text, line, column, unit) {
        return Ok(offset);
    }
    match line.checked_sub(1).and_then(|line| lines.line_span(text, line)) {
        Some(span) => {
            let (_, last) = lines.display(text, span.end, unit);
            Err(NotFoundReason::Column { line, column, last })
        }
        None => Err(NotFoundReason::Line { line, count: lines.line_count() }),
    }
}

fn target(
    files: &dyn Files,
    roots: &ImportRoots,
    document: &Arc<Document>,
    parsed: &ParsedFile,
    span: Span,
    name_span: Span,
) -> ResolvedTarget {
    let outline = &parsed.outline;
    let named = outline.definitions.iter().position(|definition| definition.name_span == name_span);
    let definition = named.map(|index| &outline.definitions[index]);
    let names = named.map(|index| outline.names(index));
    let module = roots.name_of(&document.path);
    let stub = module.as_ref().zip(names.as_ref()).and_then(|(module, names)| {
        let mut seen = roots.find(files, module).into_iter();
        let module = seen.find(|module| module.source.as_ref() == Some(&document.path))?;
        Lookup::new(files, roots).stub_location(&module, &document.path, names)
    });
    let module = module.and_then(|module| ModuleName::new(&module));
    ResolvedTarget {
        document: document.clone(),
        span,
        name_span,
        kind: definition.map(|definition| definition.kind),
        qualname: names.zip(module).and_then(|(names, module)| QualName::new(module, names)),
        via: Vec::new(),
        declarations: Vec::new(),
        conditions: Vec::new(),
        stub,
        has_error: definition.is_some_and(|definition| definition.has_error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::AbsPath;
    use crate::selector::{PositionSpec, parse};
    use crate::workspace::files::MemoryFiles;

    fn resolve(text: &str, selector: &str) -> ResolveOutcome {
        let path = AbsPath::new("/w/a.py").unwrap();
        let files = MemoryFiles::new([("/w/a.py", text), ("/w/a.pyi", "class A: ...\n")]);
        let document = files.read(&path).unwrap();
        let roots = ImportRoots::of_folder(AbsPath::new("/w").unwrap());
        match parse(selector, ColumnUnit::Codepoint).unwrap() {
            PositionSpec::Cursor(spec) => resolve_cursor(&files, &roots, &document, &spec),
            PositionSpec::Range(spec) => resolve_range(&files, &roots, &document, &spec),
            _ => panic!("not a position"),
        }
    }

    fn at(text: &str, selector: &str) -> (String, Option<String>) {
        match resolve(text, selector) {
            ResolveOutcome::Found(target) => {
                (text[target.name_span].to_owned(), target.qualname.map(|name| name.to_string()))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tokens_at_and_touching_a_cursor() {
        let text = "class A:\n    def méth(self): return self.b+f'{x}'  # c\n";
        for (selector, token, name) in [
            ("a.py:1:7", "A", Some("a:A")),
            ("a.py:1:8", "A", Some("a:A")),
            ("a.py:1:1", "", None),
            ("a.py:2:9", "méth", Some("a:A.méth")),
            ("a.py:2:13", "méth", Some("a:A.méth")),
            ("a.py:2:28", "self", None),
            ("a.py:2:33", "b", None),
            ("a.py:2:34", "b", None),
            ("a.py:2:38", "x", None),
            ("a.py:2:44", "", None),
            ("a.py:3:1", "", None),
        ] {
            assert_eq!(at(text, selector), (token.to_owned(), name.map(str::to_owned)), "{selector}");
        }
    }

    #[test]
    fn a_definition_has_its_location_in_the_stub() {
        match resolve("x = 1\nclass A: pass\n", "a.py:2:7") {
            ResolveOutcome::Found(target) => {
                let stub = target.stub.unwrap();
                assert_eq!(stub.document.path.as_str(), "/w/a.pyi");
                assert_eq!(stub.name_span, 6..7);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_identifier_of_a_range() {
        let text = "x = (1 + abc) * d\n";
        assert_eq!(at(text, "a.py@R(1,5->1,18)").0, "abc");
        assert_eq!(at(text, "a.py@R(1,5->1,7)").0, "");
    }

    #[test]
    fn positions_out_of_range() {
        for (selector, message) in [
            ("a.py:9:1", "line 9 is out of range: the file has 2 lines"),
            ("a.py:1:6", "column 6 is out of range: the last column of line 1 is 5"),
        ] {
            match resolve("a='😀\n", selector) {
                ResolveOutcome::NotFound(not_found) => assert_eq!(not_found.reason.to_string(), message),
                other => panic!("{other:?}"),
            }
        }
    }
}
