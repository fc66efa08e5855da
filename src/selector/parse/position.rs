//! Selectors that name a position or range: `path@L1:C2`, `path:1:2`, `path@R(1,2->3,4)`.

use std::ops::Range;

use super::{FORMS, SyntaxError, SyntaxResult, expect_end, next_boundary, number};
use crate::path::{AbsPath, DocUri, decode_percent};
use crate::selector::{CursorSpec, PositionSpec, RangeSpec};
use crate::text::ColumnUnit;

/// Reads `path@L1:C2`, `path@R(1,2->3,4)` or `path:1:2`.
pub(super) fn position(body: &str, indexing: ColumnUnit) -> SyntaxResult<PositionSpec> {
    // `@R(` is part of the path if a path separator or `@L` follows.
    let is_range = |at: &usize| !body[*at..].contains('/') && !body[*at..].contains("@L");
    if let Some(at) = body.rfind("@R(").filter(is_range) {
        let uri = uri(body, 0..at)?;
        let (sl, next) = count(body, at + 3, ",")?;
        let (sc, next) = count(body, next, "->")?;
        let (el, next) = count(body, next, ",")?;
        let (ec, next) = count(body, next, ")")?;
        expect_end(body, next)?;
        if [el, ec] < [sl, sc] {
            return Err(SyntaxError::new(at + 3..body.len() - 1, "an end that is not before the start"));
        }
        return Ok(PositionSpec::Range(RangeSpec {
            uri,
            start: [sl, sc],
            end: [el, ec],
            indexing,
            doc_version: None,
        }));
    }
    if let Some(at) = body.rfind("@L") {
        let uri = uri(body, 0..at)?;
        let (line, next) = count(body, at + 2, ":C")?;
        let (col, next) = count(body, next, "")?;
        expect_end(body, next)?;
        return Ok(PositionSpec::Cursor(CursorSpec { uri, line, col, indexing, doc_version: None }));
    }
    if let Some((start, path_end)) = trailing_numbers(body) {
        let uri = uri(body, 0..path_end)?;
        let (line, next) = count(body, start, ":")?;
        let (col, next) = count(body, next, "")?;
        expect_end(body, next)?;
        return Ok(PositionSpec::Cursor(CursorSpec { uri, line, col, indexing, doc_version: None }));
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

/// The offset of the numbers in `path:1:2`, and the end of the path.
fn trailing_numbers(body: &str) -> Option<(usize, usize)> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, column) = body.rsplit_once(':')?;
    let (path, line) = rest.rsplit_once(':')?;
    (digits(column) && digits(line)).then_some((path.len() + 1, path.len()))
}

pub(super) fn uri(text: &str, span: Range<usize>) -> SyntaxResult<DocUri> {
    windows_path(&text[span.clone()]).or_else(|| DocUri::parse(&text[span.clone()])).ok_or_else(|| {
        let encoded = crate::path::encode_portable(&text[span.clone()]);
        let is_raw = encoded != text[span.clone()] && DocUri::parse(&encoded).is_some();
        let expected = match is_raw {
            true => format!("the path percent-encoded: {encoded}"),
            false => "a path inside the workspace, or file://, env:// or server://".to_owned(),
        };
        SyntaxError::new(span, expected)
    })
}

/// `C:\dir\x.py` and `c:/dir/x.py`, which are `file:///C:/dir/x.py`.
fn windows_path(text: &str) -> Option<DocUri> {
    let &[drive, b':', b'\\' | b'/', ..] = text.as_bytes() else { return None };
    if !drive.is_ascii_alphabetic() {
        return None;
    }
    let path = decode_percent(&text[1..])?.replace('\\', "/");
    let path = format!("/{}{path}", char::from(drive.to_ascii_uppercase()));
    AbsPath::new(path).ok().filter(|path| !path.as_str().contains('\0')).map(DocUri::File)
}

/// A 1-based number at `from`, followed by `then`.
fn count(text: &str, from: usize, then: &str) -> SyntaxResult<(u32, usize)> {
    let digits = text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let to = from + digits;
    let value = number(text, from..to, 1)?;
    if text[to..].starts_with(then) {
        return Ok((value, to + then.len()));
    }
    Err(SyntaxError::new(to..next_boundary(text, to), format!("`{then}`")))
}
