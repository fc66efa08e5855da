//! Cursors and ranges: from a line and a column to the place, the token there, and what it defines.

use std::sync::Arc;

use super::lookup::Lookup;
use super::modules::ImportRoots;
use super::near::{Near, Reason};
use super::outline::Span;
use super::reading::Reading;
use super::symbol::{Outcome, Target};
use crate::selector::{CursorSpec, ModuleName, QualName, RangeSpec};
use crate::text::ColumnUnit;
use crate::workspace::files::{Document, Files};

/// The target of a cursor: the identifier at or touching it, else the empty place itself.
#[must_use]
pub fn cursor(
    files: &dyn Files,
    roots: &ImportRoots,
    document: &Arc<Document>,
    spec: &CursorSpec,
) -> Outcome {
    match offset(document, spec.line, spec.col, spec.indexing) {
        Ok(offset) => {
            let reading = Reading::of(document);
            let span = reading.identifier_at(offset).unwrap_or(offset..offset);
            Outcome::Found(Box::new(target(files, roots, document, &reading, span.clone(), span)))
        }
        Err(reason) => Outcome::NotFound(Near::because(reason)),
    }
}

/// The target of a range: the stretch itself. Servers are asked at the first identifier in it, or else at its start.
#[must_use]
pub fn range(files: &dyn Files, roots: &ImportRoots, document: &Arc<Document>, spec: &RangeSpec) -> Outcome {
    let at = |[line, column]: [u32; 2]| offset(document, line, column, spec.indexing);
    match (at(spec.start), at(spec.end)) {
        (Ok(start), Ok(end)) => {
            let reading = Reading::of(document);
            let name_span = reading.first_identifier(&(start..end)).unwrap_or(start..start);
            Outcome::Found(Box::new(target(files, roots, document, &reading, start..end, name_span)))
        }
        (Err(reason), _) | (_, Err(reason)) => Outcome::NotFound(Near::because(reason)),
    }
}

/// The target of a stretch that is known in bytes: the stretch itself, asked about at `name`, or else at the identifier that
/// it is or begins with.
#[must_use]
pub fn stretch(
    files: &dyn Files,
    roots: &ImportRoots,
    document: &Arc<Document>,
    span: Span,
    name: Option<Span>,
) -> Target {
    let reading = Reading::of(document);
    let empty = || reading.identifier_at(span.start).filter(|_| span.is_empty());
    let name_span =
        name.or_else(|| reading.first_identifier(&span)).or_else(empty).unwrap_or(span.start..span.start);
    target(files, roots, document, &reading, span, name_span)
}

/// The identifier token that contains an offset, or else begins or ends at it; `None` in white space, keywords,
/// operators, strings and comments. An identifier in the braces of an f-string is one.
#[must_use]
pub fn token_at(text: &str, offset: usize) -> Option<Span> {
    Reading::new(text).identifier_at(offset)
}

/// The byte offset of a 1-based line and column.
fn offset(document: &Document, line: u32, column: u32, unit: ColumnUnit) -> Result<usize, Reason> {
    let (text, lines) = (&document.text, &document.lines);
    if let Some(offset) = lines.from_display(text, line, column, unit) {
        return Ok(offset);
    }
    match line.checked_sub(1).and_then(|line| lines.line_span(text, line)) {
        Some(span) => {
            let (_, last) = lines.display(text, span.end, unit);
            Err(Reason::Column { line, column, last })
        }
        None => Err(Reason::Line { line, count: lines.line_count() }),
    }
}

fn target(
    files: &dyn Files,
    roots: &ImportRoots,
    document: &Arc<Document>,
    reading: &Reading,
    span: Span,
    name_span: Span,
) -> Target {
    let outline = &reading.outline;
    let named = outline.definitions.iter().position(|definition| definition.name_span == name_span);
    let definition = named.map(|index| &outline.definitions[index]);
    let names = named.map(|index| outline.names(index));
    let module = roots.name_of(&document.path);
    let stub = module.as_ref().zip(names.as_ref()).and_then(|(module, names)| {
        let mut seen = roots.find(files, module).into_iter();
        let module = seen.find(|module| module.source.as_ref() == Some(&document.path))?;
        Lookup::new(files, roots).stub_place(&module, &document.path, names)
    });
    let module = module.and_then(|module| ModuleName::new(&module));
    Target {
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

    fn resolve(text: &str, selector: &str) -> Outcome {
        let path = AbsPath::new("/w/a.py").unwrap();
        let files = MemoryFiles::new([("/w/a.py", text), ("/w/a.pyi", "class A: ...\n")]);
        let document = files.read(&path).unwrap();
        let roots = ImportRoots::of_folder(AbsPath::new("/w").unwrap());
        match parse(selector, ColumnUnit::Codepoint).unwrap() {
            PositionSpec::Cursor(spec) => cursor(&files, &roots, &document, &spec),
            PositionSpec::Range(spec) => range(&files, &roots, &document, &spec),
            _ => panic!("not a place"),
        }
    }

    fn at(text: &str, selector: &str) -> (String, Option<String>) {
        match resolve(text, selector) {
            Outcome::Found(target) => {
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
    fn a_definition_has_its_place_in_the_stub() {
        match resolve("x = 1\nclass A: pass\n", "a.py:2:7") {
            Outcome::Found(target) => {
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
    fn places_that_do_not_exist() {
        for (selector, message) in [
            ("a.py:9:1", "there is no line 9: the file has 2"),
            ("a.py:1:6", "there is no column 6 in line 1: the last is 5"),
        ] {
            match resolve("a='😀\n", selector) {
                Outcome::NotFound(near) => assert_eq!(near.reason.to_string(), message),
                other => panic!("{other:?}"),
            }
        }
    }
}
