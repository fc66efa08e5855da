//! Parses the string form.
//!
//! Besides the canonical spelling it accepts what other tools print: `path:LINE:COL` and `path:LINE`, also with a colon at the
//! end, `pkg.mod:Class.method`, the node ids of pytest, and Windows paths, which become `file:///C:/…`.

mod anchor;
mod ast;
mod position;
mod query;
mod symbol;

use std::ops::Range;

use super::{PositionSpec, SymbolId, SymidSpec};
use crate::text::ColumnUnit;

/// Why a text is not a selector, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}")]
pub struct SyntaxError {
    /// The bytes of the text that cannot be parsed; empty if something is missing there.
    pub span: Range<usize>,
    /// What is expected there.
    pub expected: String,
    /// Whether it is a unit of columns that lanser does not know.
    pub is_unknown_unit: bool,
}

impl SyntaxError {
    fn new(span: Range<usize>, expected: impl Into<String>) -> Self {
        Self { span, expected: expected.into(), is_unknown_unit: false }
    }

    fn unknown_unit(span: Range<usize>) -> Self {
        Self { is_unknown_unit: true, ..Self::new(span, ColumnUnit::EXPECTED) }
    }
}

type SyntaxResult<T> = Result<T, SyntaxError>;

const FORMS: &str = "path:LINE, path:LINE:COL, path@R(LINE,COL->LINE,COL), Class.method, pkg.mod.Class.method, \
     py://pkg.mod#Class.method, py://pkg.mod#function(parameter), tests/test_x.py::test_name, \
     ast://[module=pkg.mod]/[class=C], anchor://path#\"text\" or sym://ID";

/// Parses a selector. Columns count in `unit` unless the text has `?indexing=`.
///
/// # Errors
/// If the text is not a selector.
pub fn parse(text: &str, unit: ColumnUnit) -> SyntaxResult<PositionSpec> {
    let (mut spec, query) = if text.starts_with("anchor://") {
        anchor::anchor(text)?
    } else if let Some(path_end) = symbol::path_before_names(text) {
        symbol::name_in_file(text, path_end)?
    } else {
        let (body, query) = match text.find('?') {
            Some(at) => (&text[..at], Some(at + 1)),
            None => (text, None),
        };
        let spec = if let Some(rest) = body.strip_prefix("py://") {
            PositionSpec::Symbol(symbol::symbol(rest, "py://".len())?)
        } else if let Some(rest) = body.strip_prefix("ast://") {
            PositionSpec::Ast(ast::ast(rest, "ast://".len())?)
        } else if let Some(id) = body.strip_prefix("sym://") {
            let id = SymbolId::parse(id).ok_or_else(|| {
                SyntaxError::new("sym://".len()..body.len(), "a symbol id as printed in bundles")
            })?;
            PositionSpec::Symid(SymidSpec { id, doc_version: None })
        } else if let Some(spec) = symbol::plain_name(body) {
            spec
        } else {
            position::position(body, unit)?
        };
        (spec, query)
    };
    query::apply(text, query, &mut spec)?;
    Ok(spec)
}

fn number(text: &str, span: Range<usize>, least: u32) -> SyntaxResult<u32> {
    let digits = &text[span.clone()];
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse::<u32>() {
        Ok(value) if plain && value >= least => Ok(value),
        _ => {
            let to = if span.is_empty() { next_boundary(text, span.start) } else { span.end };
            let most = if plain { format!(" to {}", u32::MAX) } else { String::new() };
            Err(SyntaxError::new(span.start..to, format!("a number from {least}{most}")))
        }
    }
}

fn expect_end(text: &str, at: usize) -> SyntaxResult<()> {
    if at == text.len() { Ok(()) } else { Err(SyntaxError::new(at..text.len(), "the end of the selector")) }
}

fn next_boundary(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(at, |c| at + c.len_utf8())
}
