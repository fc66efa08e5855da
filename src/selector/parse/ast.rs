//! Selectors that name a construct: `ast://[module=pkg.mod]/[class=C]/[def=m]/call[2]`.

use super::{SyntaxError, SyntaxResult, next_boundary, number};
use crate::path::decode_percent;
use crate::selector::ast::names;
use crate::selector::{AstSpec, AstStep, Construct};

/// Reads the steps of `rest`, which starts at byte `offset` of the whole text.
pub(super) fn ast(rest: &str, offset: usize) -> SyntaxResult<AstSpec> {
    let mut path = Vec::new();
    let mut at = offset;
    for part in rest.split('/') {
        path.push(step(part, at)?);
        at += part.len() + 1;
    }
    Ok(AstSpec { path, doc_version: None })
}

/// Reads `[kind=name]` or `kind`, optionally followed by `[2]`. The only special characters are `[`, `]` and `=`; in a name
/// they are percent-encoded.
fn step(part: &str, offset: usize) -> SyntaxResult<AstStep> {
    let at = |index: usize| offset + index;
    let (word, name, mut next) = match part.strip_prefix('[') {
        None => {
            let end = part.find('[').unwrap_or(part.len());
            (0..end, None, end)
        }
        Some(_) => {
            let close = part.find(']').unwrap_or(part.len());
            let Some(equals) = part[..close].find('=') else {
                return Err(SyntaxError::new(at(close)..at(close), "`=` and a name"));
            };
            if close == part.len() {
                return Err(SyntaxError::new(at(close)..at(close), "`]`"));
            }
            (1..equals, Some(equals + 1..close), close + 1)
        }
    };
    let construct = Construct::parse(&part[word.clone()])
        .ok_or_else(|| SyntaxError::new(at(word.start)..at(word.end), names()))?;
    let name = match name {
        None => None,
        Some(span) => {
            let decoded = decode_percent(&part[span.clone()])
                .filter(|name| !name.is_empty() && !name.chars().any(char::is_control));
            Some(decoded.ok_or_else(|| SyntaxError::new(at(span.start)..at(span.end), "a name"))?)
        }
    };
    let mut ordinal = None;
    if let Some(digits) = part[next..].strip_prefix('[') {
        let from = next + 1;
        let close = from + digits.find(']').unwrap_or(digits.len());
        // The number is read from the step alone, so the span of an error is shifted to the whole text.
        let number = number(part, from..close, 1);
        ordinal =
            Some(number.map_err(|error| {
                SyntaxError::new(at(error.span.start)..at(error.span.end), error.expected)
            })?);
        if close == part.len() {
            return Err(SyntaxError::new(at(close)..at(close), "`]`"));
        }
        next = close + 1;
    }
    if next < part.len() {
        let end = next_boundary(part, next);
        return Err(SyntaxError::new(at(next)..at(end), "`/` and the next step, or `[<number>]`"));
    }
    AstStep::new(construct, name, ordinal)
        .ok_or_else(|| SyntaxError::new(at(0)..at(part.len()), "a name without control characters"))
}
