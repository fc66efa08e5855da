//! Selectors that name a snippet: `anchor://src/app.py#"def%20route("`, also as a shell passes them on, without the quotes.

use std::ops::Range;

use super::{SyntaxError, SyntaxResult, next_boundary, position};
use crate::path::decode_percent;
use crate::selector::anchor::DEFAULT_CONTEXT;
use crate::selector::{AnchorSpec, PositionSpec};

const SCHEME: &str = "anchor://";

/// What the options of an anchor begin with.
const OPTIONS: [&str; 3] = ["ctx=", "hash=", "v="];

/// The selector without its options, and the offset of the options. The snippet is percent-encoded; `\"` and `\/` are read
/// too. A snippet without quotes ends at the last `?` that options follow.
pub(super) fn anchor(text: &str) -> SyntaxResult<(PositionSpec, Option<usize>)> {
    let Some(hash) = text.find('#') else {
        return Err(SyntaxError::new(text.len()..text.len(), "`#` and a quoted snippet after the path"));
    };
    let uri = position::uri(text, SCHEME.len()..hash)?;
    let open = hash + 1;
    let (raw, span, query) = match text.as_bytes().get(open) {
        None => return Err(SyntaxError::new(open..open, "a snippet")),
        Some(b'"') => quoted(text, open)?,
        Some(_) => unquoted(text, open),
    };
    let snippet = decode_percent(&raw).filter(|snippet| !snippet.is_empty()).ok_or_else(|| {
        SyntaxError::new(span, "a snippet that is not empty, in which `%` begins two hexadecimal digits")
    })?;
    let spec = AnchorSpec { uri, snippet, ctx: DEFAULT_CONTEXT, hash: None, doc_version: None };
    Ok((PositionSpec::Anchor(spec), query))
}

/// A snippet as it is written, its span, and the offset of the options.
type WrittenSnippet = (String, Range<usize>, Option<usize>);

/// A snippet in quotes, the first of which is at `open`.
fn quoted(text: &str, open: usize) -> SyntaxResult<WrittenSnippet> {
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
    Ok((raw, open..close + 1, query))
}

/// A snippet without quotes.
fn unquoted(text: &str, open: usize) -> WrittenSnippet {
    let has_options = |(at, _): &(usize, &str)| OPTIONS.iter().any(|name| text[at + 1..].starts_with(name));
    let end = text[open..]
        .rmatch_indices('?')
        .map(|(at, mark)| (open + at, mark))
        .find(has_options)
        .map(|(at, _)| at);
    let span = open..end.unwrap_or(text.len());
    (text[span.clone()].to_owned(), span, end.map(|end| end + 1))
}
