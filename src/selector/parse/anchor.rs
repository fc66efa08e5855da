//! Selectors that name a snippet: `anchor://src/app.py#"def%20route("`.

use super::{SyntaxError, SyntaxResult, next_boundary, position};
use crate::path::decode_percent;
use crate::selector::anchor::DEFAULT_CONTEXT;
use crate::selector::{AnchorSpec, PositionSpec};

const SCHEME: &str = "anchor://";

/// The selector without its options, and the offset of the options. The snippet is percent-encoded; `\"` and `\/` are read
/// too.
pub(super) fn anchor(text: &str) -> SyntaxResult<(PositionSpec, Option<usize>)> {
    let Some(hash) = text.find('#') else {
        return Err(SyntaxError::new(text.len()..text.len(), "`#` and a quoted snippet after the path"));
    };
    let uri = position::uri(text, SCHEME.len()..hash)?;
    let open = hash + 1;
    if !text[open..].starts_with('"') {
        return Err(SyntaxError::new(open..next_boundary(text, open), "`\"`"));
    }
    let mut raw = String::new();
    let mut at = open + 1;
    let close = loop {
        match text.as_bytes().get(at) {
            None => return Err(SyntaxError::new(text.len()..text.len(), "`\"` at the end of the snippet")),
            Some(b'"') => break at,
            Some(b'\\') if matches!(text.as_bytes().get(at + 1), Some(b'"' | b'/')) => {
                raw.push_str(&text[at + 1..at + 2]);
                at += 2;
            }
            Some(_) => {
                let next = next_boundary(text, at);
                raw.push_str(&text[at..next]);
                at = next;
            }
        }
    };
    let snippet = decode_percent(&raw).filter(|snippet| !snippet.is_empty()).ok_or_else(|| {
        SyntaxError::new(
            open..close + 1,
            "a snippet that is not empty, in which `%` begins two hexadecimal digits",
        )
    })?;
    let query = match text.as_bytes().get(close + 1) {
        None => None,
        Some(b'?') => Some(close + 2),
        Some(_) => {
            return Err(SyntaxError::new(
                close + 1..next_boundary(text, close + 1),
                "`?` or the end of the selector",
            ));
        }
    };
    let spec = AnchorSpec { uri, snippet, ctx: DEFAULT_CONTEXT, hash: None, doc_version: None };
    Ok((PositionSpec::Anchor(spec), query))
}
