//! Resolves lines: to the name that a line defines, or else to the code on it.

use std::sync::Arc;

use tree_sitter::Tree;

use super::modules::ImportRoots;
use super::not_found::{NotFound, NotFoundReason};
use super::outline::Span;
use super::parsed_file::ParsedFile;
use super::position;
use super::scopes::Scopes;
use super::symbol::ResolveOutcome;
use super::syntax;
use crate::workspace::files::{Document, Files};

/// The names on a line.
enum LineNames {
    /// The line defines or binds these names.
    Bound(Vec<Span>),
    /// It binds none, and these are used on it.
    Used(Vec<Span>),
}

/// Resolves a 1-based line. If it defines exactly one name, that is the target; otherwise its code is, with an empty
/// `name_span` unless there is exactly one name on it.
#[must_use]
pub fn resolve_line(
    files: &dyn Files,
    roots: &ImportRoots,
    document: &Arc<Document>,
    line: u32,
) -> ResolveOutcome {
    let code = match code_on(document, line) {
        Ok(code) => code,
        Err(reason) => return ResolveOutcome::NotFound(NotFound::new(reason)),
    };
    let (span, name) = match names_in(document, &code) {
        LineNames::Bound(names) if names.len() == 1 => (names[0].clone(), names[0].clone()),
        LineNames::Used(names) if names.len() == 1 => (code, names[0].clone()),
        LineNames::Bound(_) | LineNames::Used(_) => (code.clone(), code.start..code.start),
    };
    ResolveOutcome::Found(Box::new(position::resolve_span(files, roots, document, span, Some(name))))
}

/// The names that a selector of a line can mean, in order: those that the line binds, or else those that it uses.
#[must_use]
pub fn names_on(document: &Document, line: u32) -> Vec<Span> {
    let Ok(code) = code_on(document, line) else { return Vec::new() };
    match names_in(document, &code) {
        LineNames::Bound(names) | LineNames::Used(names) => names,
    }
}

/// The code on a 1-based line, without the white space and the comment around it.
fn code_on(document: &Document, line: u32) -> Result<Span, NotFoundReason> {
    let (text, lines) = (&document.text, &document.lines);
    let missing = || NotFoundReason::Line { line, count: lines.line_count() };
    let whole = line.checked_sub(1).and_then(|line| lines.line_span(text, line)).ok_or_else(missing)?;
    let is_space = |c: char| c.is_whitespace() || c == '\u{feff}';
    let trimmed = |span: Span| {
        let inner = &text[span.clone()];
        let start = span.start + (inner.len() - inner.trim_start_matches(is_space).len());
        start..start + inner.trim_matches(is_space).len()
    };
    let mut code = trimmed(whole);
    let tree = syntax::parse(text);
    if !code.is_empty()
        && let Some(last) = tree.root_node().descendant_for_byte_range(code.end - 1, code.end)
        && last.kind() == "comment"
    {
        code = trimmed(code.start..last.start_byte().max(code.start));
    }
    if code.is_empty() { Err(NotFoundReason::NoCode { line }) } else { Ok(code) }
}

fn names_in(document: &Document, code: &Span) -> LineNames {
    let text = &document.text;
    let parsed = ParsedFile::of(document);
    let definitions =
        || parsed.outline.definitions.iter().filter(|definition| is_within(&definition.name_span, code));
    // A class or function, whatever else is on its line.
    if let Some(outer) = definitions().find(|definition| definition.signature.is_some()) {
        return LineNames::Bound(vec![outer.name_span.clone()]);
    }
    let tree = syntax::parse(text);
    let mut bound: Vec<Span> = definitions().map(|definition| definition.name_span.clone()).collect();
    let in_lambda = |name: &Span| {
        let mut node = tree.root_node().descendant_for_byte_range(name.start, name.end);
        while let Some(inner) = node.filter(|node| code.start <= node.start_byte()) {
            if inner.kind() == "lambda" {
                return true;
            }
            node = inner.parent();
        }
        false
    };
    bound.extend(Scopes::of_all(&tree, text).bound_within(code).into_iter().filter(|name| !in_lambda(name)));
    bound.extend(parsed.identifiers_in(code).filter(|name| is_attribute_target(&tree, name)));
    bound.sort_by_key(|name| name.start);
    bound.dedup();
    if !bound.is_empty() {
        return LineNames::Bound(distinct(text, bound));
    }
    let used = distinct(text, parsed.identifiers_in(code).collect());
    let others: Vec<Span> =
        used.iter().filter(|name| !matches!(&text[(*name).clone()], "self" | "cls")).cloned().collect();
    LineNames::Used(if others.is_empty() { used } else { others })
}

/// Whether a name is that of an attribute to which an assignment assigns: `x` of `a.x, b = 1, 2`.
fn is_attribute_target(tree: &Tree, name: &Span) -> bool {
    let token = tree.root_node().descendant_for_byte_range(name.start, name.end);
    let attribute = token.and_then(|token| {
        token.parent().filter(|parent| parent.child_by_field_name("attribute") == Some(token))
    });
    let Some(mut target) = attribute else { return false };
    while let Some(parent) = target.parent() {
        match parent.kind() {
            "pattern_list" | "tuple_pattern" | "list_pattern" => target = parent,
            kind => return kind == "assignment" && parent.child_by_field_name("left") == Some(target),
        }
    }
    false
}

fn is_within(span: &Span, outer: &Span) -> bool {
    outer.start <= span.start && span.end <= outer.end
}

/// The first token of each name.
fn distinct(text: &str, names: Vec<Span>) -> Vec<Span> {
    let mut seen = std::collections::BTreeSet::new();
    names.into_iter().filter(|name| seen.insert(text[name.clone()].to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::AbsPath;
    use crate::workspace::files::MemoryFiles;

    const TEXT: &str = "\
import os.path
from a import b as c, d

@decorate(1)
async def f(self, x: int = 1):  # f
    total = sum(y for y in x)
    self.size, n = 1, 2
    for item in total: pass
    with open(x) as handle:
        return sorted(handle, key=lambda k: k)
    print(
        total,
        item.name)

    # comment
    '''text'''
class C: z = 1
C.z = 2
if (w := f(1)): pass
";

    /// The selected text, and the names to choose from.
    fn line(number: u32) -> (String, Vec<String>) {
        let path = AbsPath::new("/w/a.py").unwrap();
        let files = MemoryFiles::new([("/w/a.py", TEXT)]);
        let document = files.read(&path).unwrap();
        let roots = ImportRoots::of_folder(AbsPath::new("/w").unwrap());
        let names = names_on(&document, number).into_iter().map(|span| TEXT[span].to_owned()).collect();
        match resolve_line(&files, &roots, &document, number) {
            ResolveOutcome::Found(target) => {
                let name = TEXT[target.name_span].to_owned();
                (if name.is_empty() { TEXT[target.span].to_owned() } else { name }, names)
            }
            ResolveOutcome::NotFound(near) => (near.reason.to_string(), names),
            ResolveOutcome::Ambiguous(_) => panic!("a line is one place"),
        }
    }

    #[test]
    fn lines_and_their_names() {
        for (number, selected, names) in [
            (1, "os", "os"),
            (2, "from a import b as c, d", "c d"),
            (3, "line 3 has no code", ""),
            (4, "decorate", "decorate"),
            (5, "f", "f"),
            (6, "total", "total"),
            (7, "self.size, n = 1, 2", "size n"),
            (8, "item", "item"),
            (9, "handle", "handle"),
            (10, "return sorted(handle, key=lambda k: k)", "sorted handle key k"),
            (11, "print", "print"),
            (12, "total", "total"),
            (13, "item.name)", "item name"),
            (15, "line 15 has no code", ""),
            (16, "'''text'''", ""),
            (17, "C", "C"),
            (18, "z", "z"),
            (19, "w", "w"),
            (99, "line 99 is out of range: the file has 20 lines", ""),
        ] {
            let names: Vec<&str> = names.split_whitespace().collect();
            assert_eq!(
                line(number),
                (selected.to_owned(), names.into_iter().map(str::to_owned).collect()),
                "{number}"
            );
        }
    }
}
