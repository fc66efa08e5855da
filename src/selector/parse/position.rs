//! Selectors that name a line, a position or a range: `path@L1`, `path:1`, `path@L1:C2`, `path:1:2`, `path@R(1,2->3,4)`.

use std::ops::Range;

use super::{FORMS, SyntaxError, SyntaxResult, expect_end, next_boundary, number, symbol};
use crate::path::{AbsPath, DocUri, PYTHON_SUFFIXES, decode_percent};
use crate::selector::{CursorSpec, LineSpec, PositionSpec, RangeSpec};
use crate::text::ColumnUnit;

/// Reads `path@L1`, `path@L1:C2`, `path@R(1,2->3,4)`, `path:1` or `path:1:2`. A colon at the end is ignored: linters and `grep`
/// print one.
pub(super) fn position(body: &str, indexing: ColumnUnit) -> SyntaxResult<PositionSpec> {
    let ends_in_number = |text: &&str| text.ends_with(|c: char| c.is_ascii_digit());
    let body = body.strip_suffix(':').filter(ends_in_number).unwrap_or(body);
    if let Some(at) = end_before_message(body) {
        return Err(SyntaxError::new(at..body.len(), format!("the end of the selector: {}", &body[..at])));
    }
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
        if is_number(&body[at + 2..]) {
            let (line, _) = count(body, at + 2, "")?;
            return Ok(PositionSpec::Line(LineSpec { uri, line, doc_version: None }));
        }
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
    if let Some((path, _)) = body.rsplit_once(':').filter(|(_, line)| is_number(line)) {
        let (uri, from) = (uri(body, 0..path.len())?, path.len() + 1);
        let (line, _) = count(body, from, "")?;
        return Ok(PositionSpec::Line(LineSpec { uri, line, doc_version: None }));
    }
    let is_path = body.contains('/') || PYTHON_SUFFIXES.iter().any(|suffix| body.contains(suffix));
    let known = ["file://", "env://", "server://"].iter().any(|scheme| body.starts_with(scheme));
    match body.find("://") {
        Some(scheme) if !known => Err(SyntaxError::new(0..scheme + 3, FORMS)),
        _ if !is_path => Err(symbol::unknown_form(body)),
        _ => Err(SyntaxError::new(
            body.len()..body.len(),
            ":LINE, :LINE:COL, @R(LINE,COL->LINE,COL) or ::NAME after the path",
        )),
    }
}

/// The offset of the numbers in `path:1:2`, and the end of the path.
fn trailing_numbers(body: &str) -> Option<(usize, usize)> {
    let (rest, column) = body.rsplit_once(':')?;
    let (path, line) = rest.rsplit_once(':')?;
    (is_number(column) && is_number(line)).then_some((path.len() + 1, path.len()))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The end of the position in a line that another tool printed: `src/app.py:42:7: F401 unused`, `src/app.py:42:    x = 1`.
fn end_before_message(body: &str) -> Option<usize> {
    let path_end =
        PYTHON_SUFFIXES.iter().filter_map(|suffix| Some(body.find(&format!("{suffix}:"))? + suffix.len()));
    let mut at = path_end.min()?;
    let mut numbers = 0;
    while let Some(rest) = body[at..].strip_prefix(':').filter(|_| numbers < 2) {
        match rest.bytes().take_while(u8::is_ascii_digit).count() {
            0 => break,
            digits => at += 1 + digits,
        }
        numbers += 1;
    }
    let after = &body[at..];
    let is_message = numbers > 0 && after.len() > 1 && (after.starts_with(':') || after.starts_with(' '));
    // In a position as lanser prints it, a path has no space.
    let (_, last) = after.rsplit_once('@').unwrap_or_default();
    let is_position = !after.contains(' ') && (last.starts_with('L') || last.starts_with("R("));
    (is_message && !is_position).then_some(at)
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
