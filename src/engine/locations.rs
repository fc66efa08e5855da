//! Converts a server's locations to the locations of a bundle: portable URI, selector, source line.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::request_state::RequestState;
use crate::bundle::portable::PathMap;
use crate::lsp::results::LspLocation;
use crate::model::bundle::DualCoordinates;
use crate::model::facts::Location;
use crate::path::{AbsPath, DocUri};
use crate::selector::{CursorSpec, PositionSpec, RangeSpec, SymbolId};
use crate::text::{ColumnUnit, Position, Range};
use crate::workspace::files::{Document, Files};

/// The maximum length of the source line in a location, in characters.
const MAX_PREVIEW_LENGTH: usize = 240;

/// Builds locations for a bundle.
pub(super) struct LocationBuilder<'a> {
    pub(super) state: &'a RequestState,
    pub(super) files: &'a dyn Files,
    pub(super) paths: &'a PathMap,
    /// The unit of the server's columns.
    pub(super) server_unit: ColumnUnit,
    /// The unit of the caller's columns.
    pub(super) io_unit: ColumnUnit,
    /// Both coordinate systems of every location built so far, with `-v`.
    pub(super) dual: Option<Mutex<BTreeSet<DualCoordinates>>>,
}

impl LocationBuilder<'_> {
    /// The location for a server's location.
    pub(super) fn location(&self, place: &LspLocation) -> Location {
        let (uri, at, preview) = self.describe(&place.path, place.range);
        let symbol_id = self.symbol_id(&place.path, place.range);
        Location {
            uri,
            range: place.range,
            at,
            symbol_id,
            provenance: None,
            agreement: None,
            via: None,
            preview,
        }
    }

    /// The id of the workspace's definition whose name starts where the range starts.
    pub(super) fn symbol_id(&self, path: &AbsPath, range: Range) -> Option<SymbolId> {
        Some(self.definition_at(path, range)?.0)
    }

    /// The ID of the definition whose name is at a range, and the names of its scopes, joined by dots; `None` for those if it has none.
    pub(super) fn definition_at(&self, path: &AbsPath, range: Range) -> Option<(SymbolId, Option<String>)> {
        let uri = self.paths.uri(path);
        let document = self.files.read(path).ok()?;
        let offset = document.lines.offset(&document.text, range.start, self.server_unit)?;
        let definitions = self.state.definitions();
        let path = uri.workspace_path()?;
        let entry = definitions.entry(path, offset, "")?;
        let scopes = entry.chain.rsplit_once('.').map(|(scopes, _)| scopes.to_owned());
        Some((definitions.id(path, &entry), scopes))
    }

    /// URI, selector and source line of a range.
    pub(super) fn describe(&self, path: &AbsPath, range: Range) -> (DocUri, String, Option<String>) {
        let uri = self.paths.uri(path);
        let Ok(document) = self.files.read(path) else {
            // The file cannot be read any more, so the server's columns are used unconverted.
            let at = cursor_selector(
                &uri,
                range.start.line.saturating_add(1),
                range.start.column.saturating_add(1),
                self.server_unit,
            );
            return (uri, at, None);
        };
        let start = self.display(&document, range.start);
        self.record_dual(&uri, range, start, self.display(&document, range.end));
        let at = cursor_selector(&uri, start.0, start.1, self.io_unit);
        (uri, at, preview(&document, range.start.line))
    }

    /// A selector for a byte span of a document, and the span as the server would count it.
    pub(super) fn span(&self, document: &Document, span: std::ops::Range<usize>) -> (DocUri, Range, String) {
        let uri = self.paths.uri(&document.path);
        let range = document.lines.range(&document.text, span.clone(), self.server_unit);
        let show = |offset| document.lines.display(&document.text, offset, self.io_unit);
        let ((line, col), end) = (show(span.start), show(span.end));
        self.record_dual(&uri, range, (line, col), end);
        let at = cursor_selector(&uri, line, col, self.io_unit);
        (uri, range, at)
    }

    /// The range selector for a byte span of a document.
    pub(super) fn range_selector(&self, document: &Document, span: std::ops::Range<usize>) -> String {
        let show = |offset| document.lines.display(&document.text, offset, self.io_unit);
        let ((sl, sc), (el, ec)) = (show(span.start), show(span.end));
        let uri = self.paths.uri(&document.path);
        PositionSpec::Range(RangeSpec {
            uri,
            start: [sl, sc],
            end: [el, ec],
            indexing: self.io_unit,
            doc_version: None,
        })
        .to_string()
    }

    /// The coordinates that `-v` adds to the bundle.
    pub(super) fn into_dual(self) -> Vec<DualCoordinates> {
        self.dual
            .map(|dual| dual.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect())
            .unwrap_or_default()
    }

    fn display(&self, document: &Arc<Document>, position: Position) -> (u32, u32) {
        let offset = document.lines.offset(&document.text, position, self.server_unit);
        match offset {
            Some(offset) => document.lines.display(&document.text, offset, self.io_unit),
            // The server reports a line that the file does not have: passed on unconverted.
            None => (position.line.saturating_add(1), position.column.saturating_add(1)),
        }
    }

    fn record_dual(&self, uri: &DocUri, range: Range, start: (u32, u32), end: (u32, u32)) {
        if let Some(dual) = &self.dual {
            dual.lock().unwrap_or_else(PoisonError::into_inner).insert(DualCoordinates {
                uri: uri.clone(),
                server: [range.start.line, range.start.column, range.end.line, range.end.column],
                server_unit: self.server_unit,
                io: [start.0, start.1, end.0, end.1],
                io_unit: self.io_unit,
            });
        }
    }
}

/// The source line for a 0-based line number, truncated if it is very long.
pub(super) fn preview(document: &Document, line: u32) -> Option<String> {
    let text = document.lines.line_text(&document.text, line)?.trim_end();
    Some(match text.char_indices().nth(MAX_PREVIEW_LENGTH) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    })
}

fn cursor_selector(uri: &DocUri, line: u32, col: u32, indexing: ColumnUnit) -> String {
    PositionSpec::Cursor(CursorSpec { uri: uri.clone(), line, col, indexing, doc_version: None }).to_string()
}
