//! Reading the string form.
//!
//! Besides the canonical spelling, `path:LINE:COL` is read (what compilers print and what lanser prints for people).

use std::ops::Range;

use super::{
    CursorSpec, ModuleName, PositionSpec, QualName, RangeSpec, Role, SymbolSpec, name::is_identifier,
};
use crate::path::DocUri;
use crate::text::ColumnUnit;

/// Why a text is no selector, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}")]
pub struct SyntaxError {
    /// The bytes of the text that cannot be read; empty when something is missing there.
    pub span: Range<usize>,
    /// What could stand there.
    pub expected: String,
}

impl SyntaxError {
    fn new(span: Range<usize>, expected: impl Into<String>) -> Self {
        Self { span, expected: expected.into() }
    }
}

type Parsed<T> = Result<T, SyntaxError>;

const FORMS: &str = "a selector: path@L<line>:C<column>, path:<line>:<column>, path@R(<line>,<column>-><line>,<column>) \
     or py://<module>#<name>";

/// Reads a selector. Columns count in `unit` unless the text says otherwise with `?indexing=`.
///
/// # Errors
/// When the text is not in the language.
pub fn parse(text: &str, unit: ColumnUnit) -> Parsed<PositionSpec> {
    let (body, query) = match text.find('?') {
        Some(at) => (&text[..at], Some(at + 1)),
        None => (text, None),
    };
    if let Some(rest) = body.strip_prefix("py://") {
        let mut symbol = symbolic(rest, body.len() - rest.len())?;
        for option in options(text, query)? {
            match option.key {
                "overload" => symbol.overload = Some(number(text, option.value, 0)?),
                _ => return Err(option.unknown("overload=<number>")),
            }
        }
        return Ok(PositionSpec::Symbol(symbol));
    }
    let mut spec = place(body, unit)?;
    for option in options(text, query)? {
        if option.key != "indexing" {
            return Err(option.unknown("indexing=utf-8|utf-16|codepoint"));
        }
        let unit = ColumnUnit::parse(&text[option.value.clone()])
            .ok_or_else(|| SyntaxError::new(option.value.clone(), "utf-8, utf-16 or codepoint"))?;
        match &mut spec {
            PositionSpec::Cursor(cursor) => cursor.indexing = unit,
            PositionSpec::Range(range) => range.indexing = unit,
            PositionSpec::Symbol(_) => {}
        }
    }
    Ok(spec)
}

/// `path@L1:C2`, `path@R(1,2->3,4)` or `path:1:2`.
fn place(body: &str, indexing: ColumnUnit) -> Parsed<PositionSpec> {
    if let Some(at) = body.rfind("@R(") {
        let uri = uri(body, 0..at)?;
        let (sl, next) = count(body, at + 3, ",")?;
        let (sc, next) = count(body, next, "->")?;
        let (el, next) = count(body, next, ",")?;
        let (ec, next) = count(body, next, ")")?;
        end(body, next)?;
        if [el, ec] < [sl, sc] {
            return Err(SyntaxError::new(at + 3..body.len() - 1, "an end that is not before the start"));
        }
        return Ok(PositionSpec::Range(RangeSpec { uri, start: [sl, sc], end: [el, ec], indexing }));
    }
    if let Some(at) = body.rfind("@L") {
        let uri = uri(body, 0..at)?;
        let (line, next) = count(body, at + 2, ":C")?;
        let (col, next) = count(body, next, "")?;
        end(body, next)?;
        return Ok(PositionSpec::Cursor(CursorSpec { uri, line, col, indexing }));
    }
    if let Some((start, path_end)) = trailing_numbers(body) {
        let uri = uri(body, 0..path_end)?;
        let (line, next) = count(body, start, ":")?;
        let (col, next) = count(body, next, "")?;
        end(body, next)?;
        return Ok(PositionSpec::Cursor(CursorSpec { uri, line, col, indexing }));
    }
    let known = ["file://", "env://", "server://"].iter().any(|scheme| body.starts_with(scheme));
    match body.find("://") {
        Some(scheme) if !known => Err(SyntaxError::new(0..scheme + 3, FORMS)),
        _ if body.is_empty() => Err(SyntaxError::new(0..0, FORMS)),
        _ => Err(SyntaxError::new(
            body.len()..body.len(),
            "@L<line>:C<column>, :<line>:<column> or @R(…) after the path",
        )),
    }
}

/// Where the numbers of `path:1:2` begin and the path ends.
fn trailing_numbers(body: &str) -> Option<(usize, usize)> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, column) = body.rsplit_once(':')?;
    let (path, line) = rest.rsplit_once(':')?;
    (digits(column) && digits(line)).then_some((path.len() + 1, path.len()))
}

fn uri(text: &str, span: Range<usize>) -> Parsed<DocUri> {
    DocUri::parse(&text[span.clone()])
        .ok_or_else(|| SyntaxError::new(span, "a path inside the workspace, or file://, env:// or server://"))
}

/// A 1-based number at `from`, followed by `then`.
fn count(text: &str, from: usize, then: &str) -> Parsed<(u32, usize)> {
    let digits = text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let to = from + digits;
    let value = number(text, from..to, 1)?;
    if text[to..].starts_with(then) {
        return Ok((value, to + then.len()));
    }
    Err(SyntaxError::new(to..next_boundary(text, to), format!("`{then}`")))
}

fn number(text: &str, span: Range<usize>, least: u32) -> Parsed<u32> {
    let digits = &text[span.clone()];
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // `usize` columns are kept within what JSON and every server can carry.
    match digits.parse::<u32>() {
        Ok(value) if plain && value >= least && value <= i32::MAX.unsigned_abs() => Ok(value),
        _ => {
            let to = if span.is_empty() { next_boundary(text, span.start) } else { span.end };
            Err(SyntaxError::new(span.start..to, format!("a number from {least}")))
        }
    }
}

fn end(text: &str, at: usize) -> Parsed<()> {
    if at == text.len() { Ok(()) } else { Err(SyntaxError::new(at..text.len(), "the end of the selector")) }
}

fn next_boundary(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(at, |c| at + c.len_utf8())
}

/// `pkg.mod#Class.method:role`, which begins at byte `offset` of the whole text.
fn symbolic(rest: &str, offset: usize) -> Parsed<SymbolSpec> {
    let Some(hash) = rest.find('#') else {
        let at = offset + rest.len();
        return Err(SyntaxError::new(at..at, "`#` and a name after the module"));
    };
    identifiers(&rest[..hash], offset, &['.'], "a module name such as pkg.mod")?;
    let mut names = &rest[hash + 1..];
    let start = offset + hash + 1;
    let mut role = Role::Def;
    if let Some((before, last)) = names.rsplit_once(':')
        && let Some(found) = Role::parse(last)
    {
        (names, role) = (before, found);
    }
    identifiers(names, start, &['.', ':'], "a name such as Class.method")?;
    let names = names.split(['.', ':']).map(str::to_owned).collect();
    let qualname = ModuleName::new(&rest[..hash])
        .and_then(|module| QualName::new(module, names))
        .expect("both parts were checked to be identifiers");
    Ok(SymbolSpec { qualname, role, overload: None })
}

fn identifiers(text: &str, offset: usize, separators: &[char], expected: &str) -> Parsed<()> {
    let mut at = offset;
    for part in text.split(separators) {
        if !is_identifier(part) {
            return Err(SyntaxError::new(at..at + part.len(), expected));
        }
        at += part.len() + 1;
    }
    Ok(())
}

/// One `key=value` of a query.
struct QueryOption<'t> {
    key: &'t str,
    key_span: Range<usize>,
    value: Range<usize>,
}

impl QueryOption<'_> {
    fn unknown(&self, expected: &str) -> SyntaxError {
        SyntaxError::new(self.key_span.clone(), expected)
    }
}

fn options(text: &str, query: Option<usize>) -> Parsed<Vec<QueryOption<'_>>> {
    let Some(mut at) = query else { return Ok(Vec::new()) };
    let mut options: Vec<QueryOption<'_>> = Vec::new();
    for part in text[at..].split('&') {
        let key_end = part.find('=').ok_or_else(|| SyntaxError::new(at..at + part.len(), "key=value"))?;
        let option = QueryOption {
            key: &part[..key_end],
            key_span: at..at + key_end,
            value: at + key_end + 1..at + part.len(),
        };
        if options.iter().any(|earlier| earlier.key == option.key) {
            return Err(option.unknown("each key once"));
        }
        options.push(option);
        at += part.len() + 1;
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::path::{AbsPath, WorkspacePath};

    fn canonical(text: &str) -> String {
        parse(text, ColumnUnit::Codepoint).unwrap_or_else(|error| panic!("{text}: {error:?}")).to_string()
    }

    fn caret(text: &str) -> String {
        let error = parse(text, ColumnUnit::Codepoint).unwrap_err();
        let width = text[error.span.clone()].chars().count().max(1);
        format!("{}{}", " ".repeat(text[..error.span.start].chars().count()), "^".repeat(width))
    }

    #[test]
    fn canonical_spellings() {
        for (text, expected) in [
            ("src/app.py@L42:C7", "src/app.py@L42:C7"),
            ("./src/app.py:42:7", "src/app.py@L42:C7"),
            ("src/app.py@R(42,7->44,1)", "src/app.py@R(42,7->44,1)"),
            ("a@L1:C1/b.py@L1:C2?indexing=utf-16", "a@L1:C1/b.py@L1:C2?indexing=utf-16"),
            ("a b#.py:1:1?indexing=codepoint", "a%20b%23.py@L1:C1"),
            ("py://pkg.mod#Class.method:body", "py://pkg.mod#Class.method:body"),
            ("py://m#C:m:def", "py://m#C.m"),
            ("py://m#C:body:def", "py://m#C.body"),
            ("py://m#f?overload=0", "py://m#f?overload=0"),
            ("/etc/x.py:1:1", "file:///etc/x.py@L1:C1"),
            ("env://lib/python3/os.py:1:1", "env://lib/python3/os.py@L1:C1"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
            assert_eq!(canonical(expected), expected);
        }
    }

    #[test]
    fn the_caret_is_under_the_place() {
        for (text, expected) in [
            ("src/app.py", "          ^"),
            ("src/app.py@L0:C1", "            ^"),
            ("src/app.py@L1:C", "               ^"),
            ("src/app.py@L1;C1", "             ^"),
            ("src/app.py@R(1,1->1)", "                   ^"),
            ("a.py@R(2,1->1,1)", "       ^^^^^^^^"),
            ("../x.py:1:1", "^^^^^^^"),
            ("gopher://x", "^^^^^^^^^"),
            ("py://pkg.mod", "            ^"),
            ("py://pkg..mod#f", "         ^"),
            ("py://m#1f", "       ^^"),
            ("py://m#f?overlord=1", "         ^^^^^^^^"),
            ("py://m#f?overload=x", "                  ^"),
            ("a.py:1:1?indexing=utf-7", "                  ^^^^^"),
        ] {
            assert_eq!(caret(text), expected, "{text}");
        }
    }

    fn name() -> impl Strategy<Value = String> {
        prop_oneof!["[a-z_][a-z0-9_]{0,5}", "(body|def|sig|doc|é1|名)"]
    }

    fn uri() -> impl Strategy<Value = DocUri> {
        let path = prop::collection::vec("[-a-z@#%?\" :()é名.,>]{1,6}", 1..4)
            .prop_map(|parts| parts.join("/"))
            .prop_filter_map("a workspace path", |path| WorkspacePath::new(&path));
        prop_oneof![
            path.clone().prop_map(DocUri::Workspace),
            path.clone().prop_map(|path| DocUri::Env(path.to_string())),
            path.clone().prop_map(|path| DocUri::Server(path.to_string())),
            path.prop_map(|path| DocUri::File(AbsPath::new(format!("/{path}")).unwrap())),
        ]
        // `x://` at the start of a workspace path reads as a scheme; such a folder cannot be named relatively.
        .prop_filter("no scheme inside", |uri| match uri {
            DocUri::Workspace(path) => !path.as_str().contains("://") && !path.as_str().starts_with("file:"),
            _ => true,
        })
    }

    fn unit() -> impl Strategy<Value = ColumnUnit> {
        prop_oneof![Just(ColumnUnit::Utf8), Just(ColumnUnit::Utf16), Just(ColumnUnit::Codepoint)]
    }

    fn spec() -> impl Strategy<Value = PositionSpec> {
        let count = 1..100_000_u32;
        let cursor = (uri(), count.clone(), count.clone(), unit()).prop_map(|(uri, line, col, indexing)| {
            PositionSpec::Cursor(CursorSpec { uri, line, col, indexing })
        });
        let range = (uri(), [count.clone(), count.clone()], [count.clone(), count], unit()).prop_map(
            |(uri, a, b, indexing)| {
                PositionSpec::Range(RangeSpec { uri, start: a.min(b), end: a.max(b), indexing })
            },
        );
        let role = prop_oneof![Just(Role::Def), Just(Role::Sig), Just(Role::Body), Just(Role::Doc)];
        let symbol = (
            prop::collection::vec(name(), 1..4),
            prop::collection::vec(name(), 1..4),
            role,
            prop::option::of(0..9_u32),
        )
            .prop_map(|(module, names, role, overload)| {
                let qualname = QualName::new(ModuleName::new(&module.join(".")).unwrap(), names).unwrap();
                PositionSpec::Symbol(SymbolSpec { qualname, role, overload })
            });
        prop_oneof![cursor, range, symbol]
    }

    proptest! {
        #[test]
        fn parse_is_the_inverse_of_print(spec in spec()) {
            let text = spec.to_string();
            prop_assert_eq!(parse(&text, ColumnUnit::Codepoint).unwrap(), spec.clone(), "{}", text);
            let json = serde_json::to_string(&spec).unwrap();
            prop_assert_eq!(serde_json::from_str::<PositionSpec>(&json).unwrap(), spec);
        }

        #[test]
        fn print_is_canonical_and_nothing_panics(text in "\\PC{0,30}|(py://|a\\.py)?[a-z@LRC0-9:#.,()>?=&-]{0,24}") {
            match parse(&text, ColumnUnit::Codepoint) {
                Ok(spec) => {
                    let printed = spec.to_string();
                    prop_assert_eq!(parse(&printed, ColumnUnit::Codepoint).unwrap().to_string(), printed);
                }
                Err(error) => prop_assert!(text.get(error.span.clone()).is_some(), "{:?} in {:?}", error.span, text),
            }
        }
    }
}
