//! Facts of bundles in the form of the protocol: absolute URIs, and columns in the unit of the client.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lsp_types as lsp;
use serde_json::{Value, json};

use super::documents::{ClientPaths, OpenDocuments, width_of_mark};
use crate::engine::AbsolutePaths;
use crate::model::bundle::Bundle;
use crate::model::edits::{DocumentChange, LspRange, TextDocumentEdit, VersionedDocument, WorkspaceEdit};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::{Diagnostic, Location, Symbol};
use crate::model::request::Severity;
use crate::path::{AbsPath, DocUri};
use crate::text::{ColumnUnit, LineIndex, Range};
use crate::workspace::files::read_text;

/// Converts the locations of one bundle.
pub(super) struct LspConverter<'c> {
    pub(super) root: &'c AbsPath,
    /// The folders outside of the workspace, if the bundle refers to any.
    pub(super) outside: Option<AbsolutePaths>,
    pub(super) paths: &'c ClientPaths,
    /// The open documents.
    pub(super) open: &'c OpenDocuments,
    /// See [`OpenDocuments::without_mark`].
    pub(super) without_mark: &'c BTreeSet<AbsPath>,
    /// Whether the answer is about the files on the disk, whatever the text of open documents is.
    pub(super) from_disk: bool,
    /// The unit of the bundle's ranges.
    pub(super) from: ColumnUnit,
    /// The unit of the client.
    pub(super) to: ColumnUnit,
    /// The texts that were read.
    pub(super) texts: BTreeMap<AbsPath, Option<Arc<(String, LineIndex)>>>,
}

/// Why a bundle cannot be expressed in the protocol.
pub(super) fn not_expressible(message: String) -> ErrorBody {
    ErrorBody::new(ErrorSymbol::UnsupportedCap, message)
}

impl LspConverter<'_> {
    /// The path of a file.
    fn path(&self, uri: &DocUri) -> Result<AbsPath, ErrorBody> {
        match uri {
            DocUri::Workspace(path) => Ok(self.root.join(path.as_str())),
            DocUri::File(path) => Ok(path.clone()),
            DocUri::Env(_) | DocUri::Server(_) => self
                .outside
                .as_ref()
                .and_then(|outside| outside.path(uri))
                .ok_or_else(|| not_expressible(format!("the folder of {uri} is not known"))),
        }
    }

    fn uri(&self, path: &AbsPath) -> Result<lsp::Uri, ErrorBody> {
        self.paths.uri(path, self.open).ok_or_else(|| not_expressible(format!("{path} has no URI")))
    }

    /// A range in the columns of the client.
    fn range(&mut self, path: &AbsPath, range: Range) -> Result<lsp::Range, ErrorBody> {
        let mut range = range;
        // The start of a line is the same in every unit.
        if self.from != self.to && (range.start.column, range.end.column) != (0, 0) {
            let (from, to) = (self.from, self.to);
            let has_mark = self.without_mark.contains(path);
            let open = self.open.get(path).filter(|_| !self.from_disk && !has_mark);
            let text = self.texts.entry(path.clone()).or_insert_with(|| {
                let text = open.map(|open| open.text.to_string()).or_else(|| read_text(path))?;
                let lines = LineIndex::new(&text);
                Some(Arc::new((text, lines)))
            });
            let text =
                text.clone().ok_or_else(|| not_expressible(format!("{path} cannot be read any more")))?;
            let (text, lines) = &*text;
            let convert =
                |position| lines.offset(text, position, from).map(|at| lines.position(text, at, to));
            let both = convert(range.start).zip(convert(range.end));
            let (start, end) = both.ok_or_else(|| {
                ErrorBody::new(ErrorSymbol::ContentModified, format!("{path} changed while the request ran"))
            })?;
            range = Range::new(start, end);
        }
        if self.without_mark.contains(path) {
            for at in [&mut range.start, &mut range.end] {
                if at.line == 0 {
                    at.column = at.column.saturating_sub(width_of_mark(self.to));
                }
            }
        }
        let position = |at: crate::text::Position| lsp::Position::new(at.line, at.column);
        Ok(lsp::Range::new(position(range.start), position(range.end)))
    }

    pub(super) fn place(&mut self, uri: &DocUri, range: Range) -> Result<lsp::Location, ErrorBody> {
        let path = self.path(uri)?;
        Ok(lsp::Location::new(self.uri(&path)?, self.range(&path, range)?))
    }

    /// A range of a file.
    pub(super) fn range_in(&mut self, uri: &DocUri, range: Range) -> Result<lsp::Range, ErrorBody> {
        let path = self.path(uri)?;
        self.range(&path, range)
    }

    pub(super) fn locations(&mut self, found: &[Location]) -> Result<Vec<lsp::Location>, ErrorBody> {
        found.iter().map(|one| self.place(&one.uri, one.range)).collect()
    }

    /// A symbol as an item of a call hierarchy or, with the same members, of a type hierarchy.
    pub(super) fn hierarchy_item(&mut self, symbol: &Symbol) -> Result<lsp::CallHierarchyItem, ErrorBody> {
        let whole = self.place(&symbol.uri, symbol.range)?;
        let name = self.range_in(&symbol.uri, symbol.selection_range.unwrap_or(symbol.range))?;
        Ok(lsp::CallHierarchyItem {
            name: symbol.name.clone(),
            kind: symbol_kind(&symbol.symbol_kind),
            tags: None,
            detail: symbol.container.clone(),
            uri: whole.uri,
            range: whole.range,
            selection_range: name,
            data: None,
        })
    }

    /// The outline of one file: symbols in each other by their ranges.
    #[expect(deprecated, reason = "the member has to be set")]
    pub(super) fn outline(&mut self, symbols: &[Symbol]) -> Result<Vec<lsp::DocumentSymbol>, ErrorBody> {
        let mut sorted: Vec<&Symbol> = symbols.iter().collect();
        sorted.sort_by_key(|symbol| (symbol.range.start, std::cmp::Reverse(symbol.range.end)));
        let mut open: Vec<(Range, lsp::DocumentSymbol)> = Vec::new();
        let mut top = Vec::new();
        let close = |open: &mut Vec<(Range, lsp::DocumentSymbol)>, top: &mut Vec<_>| {
            let Some((_, done)) = open.pop() else { return };
            match open.last_mut() {
                Some((_, parent)) => parent.children.get_or_insert_default().push(done),
                None => top.push(done),
            }
        };
        for symbol in sorted {
            while open.last().is_some_and(|(outer, _)| outer.end < symbol.range.end) {
                close(&mut open, &mut top);
            }
            let name = symbol.selection_range.unwrap_or(symbol.range);
            let converted = lsp::DocumentSymbol {
                name: symbol.name.clone(),
                detail: None,
                kind: symbol_kind(&symbol.symbol_kind),
                tags: None,
                deprecated: None,
                range: self.range_in(&symbol.uri, symbol.range)?,
                selection_range: self.range_in(&symbol.uri, name)?,
                children: None,
            };
            open.push((symbol.range, converted));
        }
        while !open.is_empty() {
            close(&mut open, &mut top);
        }
        Ok(top)
    }

    /// Symbols as a flat list.
    #[expect(deprecated, reason = "the member has to be set")]
    pub(super) fn symbols(&mut self, symbols: &[Symbol]) -> Result<Vec<lsp::SymbolInformation>, ErrorBody> {
        let one = |symbol: &Symbol| {
            Ok(lsp::SymbolInformation {
                name: symbol.name.clone(),
                kind: symbol_kind(&symbol.symbol_kind),
                tags: None,
                deprecated: None,
                location: self.place(&symbol.uri, symbol.selection_range.unwrap_or(symbol.range))?,
                container_name: symbol.container.clone(),
            })
        };
        symbols.iter().map(one).collect()
    }

    pub(super) fn diagnostics(
        &mut self,
        items: &[Diagnostic],
        client: &ClientDiagnostics,
    ) -> Result<Vec<lsp::Diagnostic>, ErrorBody> {
        items.iter().map(|item| self.diagnostic(item, client)).collect()
    }

    fn diagnostic(
        &mut self,
        item: &Diagnostic,
        client: &ClientDiagnostics,
    ) -> Result<lsp::Diagnostic, ErrorBody> {
        let related: Result<Vec<_>, ErrorBody> = item
            .related
            .iter()
            .filter(|_| client.related)
            .map(|related| {
                let location = self.place(&related.location.uri, related.location.range)?;
                Ok(lsp::DiagnosticRelatedInformation { location, message: related.message.clone() })
            })
            .collect();
        let tag = |tag: &String| match tag.as_str() {
            _ if !client.tags => None,
            "unnecessary" => Some(lsp::DiagnosticTag::UNNECESSARY),
            "deprecated" => Some(lsp::DiagnosticTag::DEPRECATED),
            _ => None,
        };
        Ok(lsp::Diagnostic {
            range: self.range_in(&item.uri, item.range)?,
            severity: Some(match item.severity {
                Severity::Error => lsp::DiagnosticSeverity::ERROR,
                Severity::Warning => lsp::DiagnosticSeverity::WARNING,
                Severity::Information => lsp::DiagnosticSeverity::INFORMATION,
                Severity::Hint => lsp::DiagnosticSeverity::HINT,
            }),
            code: item.rule.clone().map(lsp::NumberOrString::String),
            source: Some("lanser".to_owned()),
            message: item.message.clone(),
            related_information: Some(related?).filter(|related| !related.is_empty()),
            tags: Some(item.tags.iter().filter_map(tag).collect()).filter(|tags: &Vec<_>| !tags.is_empty()),
            ..lsp::Diagnostic::default()
        })
    }

    /// An edit, for a client that supports these operations on files. The versions of open documents are set.
    pub(super) fn edit(&mut self, edit: &WorkspaceEdit, client: &ClientEdits) -> Result<Value, ErrorBody> {
        let mut edit = edit.clone();
        let mut failed = None;
        let parse =
            |uri: &str| DocUri::parse(uri).ok_or_else(|| not_expressible(format!("{uri} is not a URI")));
        if client.document_changes && edit.document_changes.is_none() {
            // This form has the versions of the documents, so that the client can refuse an edit of an older text.
            let document = |(uri, edits)| {
                let text_document = VersionedDocument { uri, version: None };
                DocumentChange::Edit(TextDocumentEdit { text_document, edits })
            };
            edit.document_changes =
                Some(std::mem::take(&mut edit.changes).into_iter().map(document).collect());
        }
        for (uri, edits) in &mut edit.changes {
            let path = self.path(&parse(uri)?)?;
            self.edits(&path, edits.iter_mut().map(|edit| &mut edit.range))?;
        }
        for change in edit.document_changes.iter_mut().flatten() {
            match change {
                DocumentChange::Edit(edit) => {
                    let path = self.path(&parse(&edit.text_document.uri)?)?;
                    self.edits(&path, edit.edits.iter_mut().map(|edit| &mut edit.range))?;
                    let open = self.open.get(&path).filter(|_| !self.from_disk);
                    let version = open.and_then(|open| u32::try_from(open.version).ok());
                    edit.text_document.version = version;
                }
                DocumentChange::Operation(_) if !client.operations => {
                    let message =
                        "the edit creates, renames or deletes files, which the client does not support";
                    return Err(not_expressible(message.to_owned()).hint("use `lanser rename --apply`"));
                }
                DocumentChange::Operation(_) => {}
            }
        }
        let mut edit = edit.with_uris(|uri| {
            let absolute = parse(uri).and_then(|uri| Ok(self.uri(&self.path(&uri)?)?.as_str().to_owned()));
            absolute.unwrap_or_else(|error| {
                failed = Some(error);
                String::new()
            })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        if !client.document_changes
            && let Some(changes) = edit.document_changes.take()
        {
            for change in changes {
                if let DocumentChange::Edit(one) = change {
                    edit.changes.entry(one.text_document.uri).or_default().extend(one.edits);
                }
            }
        }
        Ok(json!(edit))
    }

    fn edits<'e>(
        &mut self,
        path: &AbsPath,
        ranges: impl Iterator<Item = &'e mut LspRange>,
    ) -> Result<(), ErrorBody> {
        for range in ranges {
            let lsp::Range { start, end } = self.range(path, Range::from(*range))?;
            let position = |at: lsp::Position| crate::text::Position::new(at.line, at.character);
            *range = Range::new(position(start), position(end)).into();
        }
        Ok(())
    }
}

/// What of a diagnostic a client shows besides its message.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientDiagnostics {
    /// The places that it is also about.
    pub(super) related: bool,
    /// That code is unused or deprecated.
    pub(super) tags: bool,
}

/// What a client can do with edits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClientEdits {
    pub(super) document_changes: bool,
    /// Whether it creates, renames and deletes files.
    pub(super) operations: bool,
}

/// The unit of the ranges of a bundle.
pub(super) fn unit_of(bundle: &Bundle) -> ColumnUnit {
    let encoding = bundle.environment.as_ref().map(|environment| environment.position_encoding.as_str());
    encoding.and_then(ColumnUnit::parse).unwrap_or(ColumnUnit::Utf16)
}

/// A kind of symbol from its name in a bundle.
pub(super) fn symbol_kind(name: &str) -> lsp::SymbolKind {
    match name {
        "file" => lsp::SymbolKind::FILE,
        "module" | "import" => lsp::SymbolKind::MODULE,
        "namespace" => lsp::SymbolKind::NAMESPACE,
        "package" => lsp::SymbolKind::PACKAGE,
        "class" => lsp::SymbolKind::CLASS,
        "method" => lsp::SymbolKind::METHOD,
        "property" => lsp::SymbolKind::PROPERTY,
        "field" | "attribute" => lsp::SymbolKind::FIELD,
        "constructor" => lsp::SymbolKind::CONSTRUCTOR,
        "enum" => lsp::SymbolKind::ENUM,
        "interface" => lsp::SymbolKind::INTERFACE,
        "function" => lsp::SymbolKind::FUNCTION,
        "constant" => lsp::SymbolKind::CONSTANT,
        "enumMember" => lsp::SymbolKind::ENUM_MEMBER,
        "struct" => lsp::SymbolKind::STRUCT,
        "typeParameter" | "typeVariable" | "typeAlias" => lsp::SymbolKind::TYPE_PARAMETER,
        _ => lsp::SymbolKind::VARIABLE,
    }
}
