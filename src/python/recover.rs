//! Recovers definitions that the parser loses after a syntax error.
//!
//! After one unclosed bracket the parser may lose the rest of a file, while a server continues at the next `def` or `class`. So
//! a text with an error is split where a statement must begin (a keyword at the start of a line, or a dedent, outside
//! triple-quoted strings), the parts are parsed one by one, and indentation determines the nesting. In a part that has an
//! error itself, the branches of definitions are lost.

use std::ops::Range;

use super::outline::{Definition, DefinitionKind, Outline, Span, VariableValue};
use super::{syntax, walk};

/// The outline of a text with an error.
pub(super) fn complete(whole: Outline, text: &str) -> Outline {
    let lines = lines(text);
    let mut result = Outline { has_error: true, doc: whole.doc.clone(), ..Outline::default() };
    for span in top_level_parts(&lines, text.len()) {
        let part = &text[span.clone()];
        let outline = parse(part);
        if outline.has_error {
            recover_part(&mut result, part, span.start);
        } else {
            append(&mut result, outline, &|at| at + span.start, None);
        }
    }
    result
}

fn parse(part: &str) -> Outline {
    walk::outline(&syntax::parse(part), part)
}

/// A line of code that begins outside a triple-quoted string.
struct CodeLine<'t> {
    start: usize,
    indent: usize,
    /// The text after the indentation.
    code: &'t str,
}

impl CodeLine<'_> {
    fn is_decorator(&self) -> bool {
        self.code.starts_with('@')
    }

    /// The name and its offset in a line such as `async def name(`.
    fn header(&self) -> Option<(Range<usize>, DefinitionKind)> {
        let rest = self.code.strip_prefix("async").filter(|rest| rest.starts_with([' ', '\t']));
        let rest = rest.map_or(self.code, str::trim_start);
        let (rest, kind) = match rest.strip_prefix("def") {
            Some(rest) => (rest, DefinitionKind::Function),
            None => (rest.strip_prefix("class")?, DefinitionKind::Class),
        };
        let name = rest.strip_prefix([' ', '\t'])?.trim_start();
        let length = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
        let start = self.start + self.indent + (self.code.len() - name.len());
        (length > 0).then_some((start..start + length, kind))
    }

    /// Whether a statement must begin here, at the start of the line.
    fn begins_statement(&self) -> bool {
        const KEYWORDS: [&str; 11] =
            ["def", "class", "async", "import", "from", "if", "for", "while", "try", "with", "match"];
        let word = self.code.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        let after = self.code[word.len()..].trim_start();
        self.is_decorator()
            || KEYWORDS.contains(&word)
            || (!word.is_empty() && after.starts_with('=') && !after.starts_with("=="))
    }

    fn closes_bracket(&self) -> bool {
        self.code.starts_with([')', ']', '}'])
    }
}

/// The lines that contain code and begin outside triple-quoted strings.
fn lines(text: &str) -> Vec<CodeLine<'_>> {
    let mut lines = Vec::new();
    let bytes = text.as_bytes();
    let mut quote: Option<u8> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if quote.is_none() {
            let code = line.trim_start_matches([' ', '\t', '\u{c}', '\u{feff}']);
            let indent = line.len() - code.len();
            let code = code.trim_end();
            if !code.is_empty() && !code.starts_with('#') {
                lines.push(CodeLine { start, indent, code });
            }
        }
        quote = quote_after(&bytes[start..start + line.len()], quote);
        start += line.len();
    }
    lines
}

/// The triple quote that is open after a line, given the one that is open before it.
fn quote_after(line: &[u8], mut quote: Option<u8>) -> Option<u8> {
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        let triple = line[at..].starts_with(&[byte; 3]);
        match (quote, byte) {
            (_, b'\\') => at += 1,
            (Some(open), _) if byte == open && triple => {
                quote = None;
                at += 2;
            }
            (None, b'"' | b'\'') if triple => {
                quote = Some(byte);
                at += 2;
            }
            (None, b'"' | b'\'') => {
                // A plain string ends on its line.
                at += 1;
                while line.get(at).is_some_and(|&inner| inner != byte) {
                    at += if line[at] == b'\\' { 2 } else { 1 };
                }
            }
            (None, b'#') => break,
            _ => {}
        }
        at += 1;
    }
    quote
}

/// Splits at the lines without indentation at which a statement begins; decorators stay with their definition.
fn top_level_parts(lines: &[CodeLine<'_>], end: usize) -> Vec<Range<usize>> {
    let mut starts = vec![0];
    let mut decorated = false;
    for line in lines.iter().filter(|line| line.indent == 0) {
        if line.begins_statement() && !decorated {
            starts.push(line.start);
        }
        decorated = line.is_decorator() || (decorated && !line.begins_statement());
    }
    starts.dedup();
    starts.push(end);
    starts.windows(2).map(|pair| pair[0]..pair[1]).filter(|part| !part.is_empty()).collect()
}

/// A definition whose body may continue on later lines.
struct OpenDefinition {
    indent: usize,
    index: usize,
}

/// Parses a part with an error in chunks: a chunk is one `def` or `class` without the nested ones.
fn recover_part(result: &mut Outline, part: &str, offset: usize) {
    let lines = lines(part);
    let mut open: Vec<OpenDefinition> = Vec::new();
    for (first, chunk) in chunks(&lines, part.len()) {
        let line = &lines[first];
        open.retain(|around| around.indent < line.indent);
        let parent = open.last().map(|around| around.index);
        let prefix = match parent.map(|index| result.definitions[index].kind) {
            Some(DefinitionKind::Class) => "class _:\n",
            Some(_) => "def _():\n",
            None if line.indent > 0 => "if _:\n",
            None => "",
        };
        let text = &part[chunk.clone()];
        let outline = parse(&format!("{prefix}{text}"));
        let shift = |at: usize| (at + chunk.start + offset).saturating_sub(prefix.len());
        let before = result.definitions.len();
        append(result, outline, &shift, parent.map(|index| (index, prefix.len())));
        let end = offset + chunk.start + text.trim_end().len();
        if let Some((name, kind)) =
            lines[first..].iter().find(|line| !line.is_decorator()).and_then(CodeLine::header)
            && chunk.contains(&name.start)
        {
            let name = name.start + offset..name.end + offset;
            let found = result.definitions[before..].iter().position(|d| d.name_span == name);
            let index = match found {
                Some(found) => before + found,
                None => {
                    let text = &part[name.start - offset..name.end - offset];
                    let start = line.start + line.indent + offset;
                    result.definitions.push(header_only(text, kind, name, start, parent, result));
                    result.definitions.len() - 1
                }
            };
            result.definitions[index].has_error = true;
            open.push(OpenDefinition { indent: line.indent, index });
        }
        for around in &open {
            let definition = &mut result.definitions[around.index];
            let start = definition.signature.as_ref().map_or(definition.name_span.end, |span| span.end);
            let body = definition.body.get_or_insert(start..end);
            body.end = body.end.max(end);
            definition.span.end = definition.span.end.max(end);
        }
    }
}

/// A definition of which only the header can be parsed.
fn header_only(
    name: &str,
    kind: DefinitionKind,
    name_span: Span,
    start: usize,
    parent: Option<usize>,
    outline: &Outline,
) -> Definition {
    let in_class = parent.is_some_and(|index| outline.definitions[index].kind == DefinitionKind::Class);
    let kind = if in_class && kind == DefinitionKind::Function { DefinitionKind::Method } else { kind };
    Definition {
        name: name.to_owned(),
        parent,
        kind,
        span: start..name_span.end,
        signature: Some(start..name_span.end),
        name_span,
        body: None,
        doc: None,
        decorators: Vec::new(),
        bases: Vec::new(),
        other_bases: Vec::new(),
        metaclass: None,
        value: VariableValue::default(),
        branch: None,
        has_error: true,
    }
}

/// The chunks of a part, each with the index of its first line.
fn chunks(lines: &[CodeLine<'_>], end: usize) -> Vec<(usize, Range<usize>)> {
    let mut firsts: Vec<usize> = Vec::new();
    let mut decorated = false;
    for (index, line) in lines.iter().enumerate() {
        let is_head = (line.is_decorator() || line.header().is_some()) && !decorated;
        let dedents = firsts.last().is_some_and(|&first| line.indent < lines[first].indent);
        if index == 0 || is_head || (dedents && !line.closes_bracket()) {
            firsts.push(index);
        }
        decorated = line.is_decorator() || (decorated && line.header().is_none());
    }
    let ends = firsts.iter().skip(1).map(|&index| lines[index].start).chain([end]);
    firsts.iter().zip(ends).map(|(&first, end)| (first, lines[first].start..end)).collect()
}

/// Adds the outline of a part. With `inside`, the part was parsed below a placeholder definition that ends at the given byte and
/// represents the definition with the given index.
fn append(
    result: &mut Outline,
    part: Outline,
    shift: &dyn Fn(usize) -> usize,
    inside: Option<(usize, usize)>,
) {
    let placeholders = usize::from(inside.is_some_and(|_| !part.definitions.is_empty()));
    let base = result.definitions.len();
    let branches = result.branches.len();
    let moved = |span: Span| shift(span.start)..shift(span.end);
    let parent = |parent: Option<usize>| match parent {
        Some(0) if placeholders == 1 => inside.map(|(index, _)| index),
        Some(index) => Some(index + base - placeholders),
        None => inside.map(|(index, _)| index),
    };
    let in_branch = |branch: Option<usize>| branch.map(|branch| branch + branches);
    for mut branch in part.branches {
        branch.parent = in_branch(branch.parent);
        branch.head = moved(branch.head);
        result.branches.push(branch);
    }
    for definition in part.definitions.into_iter().skip(placeholders) {
        // Each field by name, so that a new span cannot be left where the part has it.
        let Definition { name, kind, decorators, bases, metaclass, value, has_error, .. } = definition;
        let VariableValue { names, computed } = value;
        result.definitions.push(Definition {
            name,
            parent: parent(definition.parent),
            kind,
            name_span: moved(definition.name_span),
            span: moved(definition.span),
            signature: definition.signature.map(moved),
            body: definition.body.map(moved),
            doc: definition.doc.map(moved),
            decorators,
            bases,
            other_bases: definition.other_bases.into_iter().map(moved).collect(),
            metaclass,
            value: VariableValue { names, computed: computed.map(moved) },
            branch: in_branch(definition.branch),
            has_error,
        });
    }
    for mut import in part.imports {
        import.parent = parent(import.parent);
        import.branch = in_branch(import.branch);
        import.bound_span = moved(import.bound_span);
        result.imports.push(import);
    }
    if let Some(mut exports) = part.exports {
        for entry in &mut exports.names {
            entry.span = moved(entry.span.clone());
        }
        let all = result
            .exports
            .get_or_insert_with(|| super::outline::Exports { is_static: true, ..Default::default() });
        all.names.append(&mut exports.names);
        all.from.append(&mut exports.from);
        all.is_static &= exports.is_static;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_spans_and_what_all_is_known_to_be() {
        let read = "import base\n\n\
                    class Plain(base.A):\n    pass\n\n\
                    class Made(base.of('x'), base.C):\n    kind = base.of('kind')\n\n\
                    made = base.of('y')\n\n\
                    __all__ = ['Made']\n\
                    __all__ += base.names()\n\n";
        let lost = "def broken(:\n    x = (\n";
        let whole = Outline::parse(read);
        for text in [format!("{read}{lost}"), format!("{lost}\n{read}")] {
            let outline = Outline::parse(&text);
            assert!(outline.has_error);
            for expected in &whole.definitions {
                let found = outline.definitions.iter().find(|d| d.name == expected.name).expect("is found");
                let parts = |definition: &Definition, text: &str| -> Vec<String> {
                    [&definition.name_span, &definition.span]
                        .into_iter()
                        .chain(&definition.signature)
                        .chain(&definition.body)
                        .chain(&definition.other_bases)
                        .chain(&definition.value.computed)
                        .map(|span| text[span.clone()].to_owned())
                        .collect()
                };
                assert_eq!(parts(found, &text), parts(expected, read), "{}", expected.name);
            }
            assert!(!outline.exports.as_ref().expect("has `__all__`").is_static, "of {text}");
        }
    }
}
