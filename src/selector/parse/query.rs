//! The options after `?`.

use std::ops::Range;

use super::{SyntaxError, SyntaxResult, number};
use crate::path::decode_percent;
use crate::selector::{ContextHash, DocVersion, PositionSpec};
use crate::text::ColumnUnit;

/// One `key=value` of a query.
struct QueryOption<'t> {
    key: &'t str,
    key_span: Range<usize>,
    value: Range<usize>,
}

/// Applies the options that start at byte `query` of `text` to a selector.
pub(super) fn apply(text: &str, query: Option<usize>, spec: &mut PositionSpec) -> SyntaxResult<()> {
    for option in options(text, query)? {
        let value = option.value.clone();
        let wrong = |expected: &str| SyntaxError::new(value.clone(), expected);
        match (option.key, &mut *spec) {
            ("v", spec) => {
                let version = decode_percent(&text[value.clone()]).and_then(|text| DocVersion::parse(&text));
                let version = version.ok_or_else(|| wrong("sha256:<64 digits> or git:<revision>"))?;
                spec.set_doc_version(Some(version));
            }
            ("overload", PositionSpec::Symbol(symbol)) => {
                symbol.overload = Some(number(text, option.value, 0)?);
            }
            ("overload", PositionSpec::Name(name)) => name.overload = Some(number(text, option.value, 0)?),
            ("ctx", PositionSpec::Anchor(anchor)) => anchor.ctx = number(text, option.value, 0)?,
            ("hash", PositionSpec::Anchor(anchor)) => {
                let hash = ContextHash::parse(&text[value.clone()]);
                anchor.hash = Some(hash.ok_or_else(|| wrong("sha1:<40 digits>"))?);
            }
            ("indexing", PositionSpec::Cursor(_) | PositionSpec::Range(_)) => {
                let unit = ColumnUnit::parse(&text[value.clone()])
                    .ok_or_else(|| SyntaxError::unknown_unit(value.clone()))?;
                match spec {
                    PositionSpec::Cursor(cursor) => cursor.indexing = unit,
                    PositionSpec::Range(range) => range.indexing = unit,
                    _ => {}
                }
            }
            (_, spec) => return Err(SyntaxError::new(option.key_span, known_options(spec))),
        }
    }
    Ok(())
}

/// The options of a kind of selector.
const fn known_options(spec: &PositionSpec) -> &'static str {
    match spec {
        PositionSpec::Cursor(_) | PositionSpec::Range(_) => {
            "indexing=utf-8|utf-16|codepoint|utf-32 or v=<version>"
        }
        PositionSpec::Symbol(_) | PositionSpec::Name(_) => "overload=<number> or v=<version>",
        PositionSpec::Anchor(_) => "ctx=<number>, hash=sha1:<digits> or v=<version>",
        PositionSpec::Line(_) | PositionSpec::Ast(_) | PositionSpec::Symid(_) => "v=<version>",
    }
}

fn options(text: &str, query: Option<usize>) -> SyntaxResult<Vec<QueryOption<'_>>> {
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
            return Err(SyntaxError::new(option.key_span, "each key once"));
        }
        options.push(option);
        at += part.len() + 1;
    }
    Ok(options)
}
