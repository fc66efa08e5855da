//! Answers the requests of a client: each is a request of the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use lsp_types as lsp;
use lsp_types::request::{self as methods, Request as Method};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::convert::{LspConverter, not_expressible, unit_of};
use super::documents::{OpenDocuments, width_of_mark};
use super::{LspServer, codes, failed, of_body, read};
use crate::engine::{AbsolutePaths, UnsavedTexts};
use crate::lsp::jsonrpc::ResponseError;
use crate::model::bundle::Bundle;
use crate::model::edits::CheckName;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::{Completeness, CompletenessStatus, Facts, Location};
use crate::model::request::{Command, Direction, DirtyPolicy, Options, Request, Severity, TypeDirection};
use crate::path::{AbsPath, DocUri, FileUri, WorkspacePath};
use crate::selector::{CursorSpec, PositionSpec, RangeSpec};
use crate::text::{LineIndex, plural};
use crate::workspace::files::read_text;

/// How often a request is repeated because a file was saved meanwhile.
const MAX_ATTEMPTS: u32 = 3;

/// How many places a message names.
const MAX_PLACES: usize = 5;

/// The notification about an answer that may not be complete. Clients ignore notifications that begin with `$/` and that they do
/// not know.
const COMPLETENESS: &str = "$/lanser/completeness";

pub(super) type Canceled<'c> = Pin<&'c mut (dyn Future<Output = ()> + Send)>;
pub(super) type LspOutcome = Result<Value, ResponseError>;

/// A request with the documents that were open when it came.
pub(super) struct RequestHandler<'a> {
    server: &'a LspServer,
    open: &'a OpenDocuments,
    /// See [`OpenDocuments::without_mark`].
    without_mark: BTreeSet<AbsPath>,
}

impl LspServer {
    /// Answers a request about the documents that were open when it came.
    pub(super) async fn answer(
        &self,
        method: &str,
        params: Value,
        open: OpenDocuments,
        canceled: Canceled<'_>,
    ) -> LspOutcome {
        let handler = self.handler(&open).await;
        let answer = handler.dispatch(method, params, canceled).await?;
        let now = self.documents().clone();
        // A document that was only opened or saved changes nothing.
        if now != open && self.unsaved(&now).await != self.unsaved(&open).await {
            return Err(failed(codes::CONTENT_MODIFIED, "a document changed while the request ran"));
        }
        Ok(answer)
    }

    async fn handler<'a>(&'a self, open: &'a OpenDocuments) -> RequestHandler<'a> {
        let documents = open.clone();
        let without_mark = tokio::task::spawn_blocking(move || documents.without_mark()).await;
        RequestHandler { server: self, open, without_mark: without_mark.unwrap_or_default() }
    }

    /// The path by which the engine knows a document. Blocking.
    pub(super) fn path_of(&self, uri: &lsp::Uri) -> Result<AbsPath, ResponseError> {
        let path = FileUri::parse_path(uri.as_str());
        let path = path.map_err(|error| failed(codes::INVALID_PARAMS, &error.to_string()))?;
        let real = self.paths.real(&path);
        let root = &self.workspace.engine.settings.root;
        if real.strip_prefix(root).is_none()
            && self.others.iter().any(|folder| path.strip_prefix(folder).is_some())
        {
            let message = format!("{path} is in another folder than {root}, the only one that is served");
            return Err(failed(codes::REQUEST_FAILED, &message));
        }
        Ok(real)
    }

    /// The unsaved texts among open documents.
    async fn unsaved(&self, open: &OpenDocuments) -> UnsavedTexts {
        if self.workspace.from_disk {
            return UnsavedTexts::new();
        }
        let (open, root) = (open.clone(), self.workspace.engine.settings.root.clone());
        tokio::task::spawn_blocking(move || open.unsaved(&root)).await.unwrap_or_default()
    }

    pub(super) async fn diagnostics_of(
        &self,
        path: &AbsPath,
        open: &OpenDocuments,
        canceled: Canceled<'_>,
    ) -> Result<Vec<lsp::Diagnostic>, ResponseError> {
        self.handler(open).await.diagnostics(path, canceled).await
    }
}

impl RequestHandler<'_> {
    async fn dispatch(&self, method: &str, params: Value, canceled: Canceled<'_>) -> LspOutcome {
        match method {
            methods::GotoDefinition::METHOD => self.places(Command::Definition, params, canceled).await,
            methods::GotoDeclaration::METHOD => self.places(Command::Declaration, params, canceled).await,
            methods::GotoTypeDefinition::METHOD => {
                self.places(Command::TypeDefinition, params, canceled).await
            }
            methods::GotoImplementation::METHOD => {
                self.places(Command::Implementation, params, canceled).await
            }
            methods::References::METHOD => self.references(read(params)?, canceled).await,
            methods::HoverRequest::METHOD => self.hover(read(params)?, canceled).await,
            methods::DocumentSymbolRequest::METHOD => self.outline(read(params)?, canceled).await,
            methods::WorkspaceSymbolRequest::METHOD => self.search(read(params)?, canceled).await,
            methods::CallHierarchyPrepare::METHOD => self.hierarchy_root(read(params)?, None, canceled).await,
            methods::CallHierarchyIncomingCalls::METHOD => {
                let params: lsp::CallHierarchyIncomingCallsParams = read(params)?;
                self.calls(Direction::Incoming, &params.item, canceled).await
            }
            methods::CallHierarchyOutgoingCalls::METHOD => {
                let params: lsp::CallHierarchyOutgoingCallsParams = read(params)?;
                self.calls(Direction::Outgoing, &params.item, canceled).await
            }
            methods::TypeHierarchyPrepare::METHOD => {
                let class = Some(lsp::SymbolKind::CLASS);
                self.hierarchy_root(read(params)?, class, canceled).await
            }
            methods::TypeHierarchySupertypes::METHOD => {
                let params: lsp::TypeHierarchySupertypesParams = read(params)?;
                self.types(TypeDirection::Supertypes, &params.item, canceled).await
            }
            methods::TypeHierarchySubtypes::METHOD => {
                let params: lsp::TypeHierarchySubtypesParams = read(params)?;
                self.types(TypeDirection::Subtypes, &params.item, canceled).await
            }
            methods::PrepareRenameRequest::METHOD => self.prepare_rename(&read(params)?, canceled).await,
            methods::Rename::METHOD => self.rename(read(params)?, canceled).await,
            methods::CodeActionRequest::METHOD => self.actions(read(params)?, canceled).await,
            methods::CodeActionResolveRequest::METHOD => self.resolve(read(params)?, canceled).await,
            methods::DocumentDiagnosticRequest::METHOD => {
                let params: lsp::DocumentDiagnosticParams = read(params)?;
                let items =
                    self.diagnostics(&self.server.path_of(&params.text_document.uri)?, canceled).await?;
                Ok(json!({"kind": "full", "items": items}))
            }
            _ => Err(failed(codes::METHOD_NOT_FOUND, &format!("{method} is not supported"))),
        }
    }

    /// Runs a request. The answer is about the text of the client.
    pub(super) async fn run(
        &self,
        request: Request,
        mut canceled: Canceled<'_>,
    ) -> Result<Bundle, ResponseError> {
        let workspace = &self.server.workspace;
        if let Some(path) = self.open.with_two_texts().filter(|_| !workspace.from_disk) {
            let uris = self.open.of(path).map(|document| document.uri.as_str()).collect::<Vec<_>>();
            let message =
                format!("{path} is open with different texts: {}; save or close one", uris.join(", "));
            return Err(failed(codes::REQUEST_FAILED, &message));
        }
        for _ in 0..MAX_ATTEMPTS {
            let unsaved = self.server.unsaved(self.open).await;
            let mut bundle = match unsaved.is_empty() {
                true => workspace.engine.run(request.clone(), canceled.as_mut()).await,
                false => {
                    let unsaved = Arc::new(unsaved.clone());
                    let mut bundle = self.server.copy.run(request.clone(), unsaved, canceled.as_mut()).await;
                    let hint = bundle.error.as_mut().and_then(|error| error.hint.as_mut());
                    if let Some(hint) = hint.filter(|hint| hint.contains("lanser ")) {
                        *hint = "save the changed documents and ask again for the command that goes on: it reads what is on the disk"
                            .to_owned();
                    }
                    bundle
                }
            };
            if workspace.guards.dirty == DirtyPolicy::None {
                // That was allowed for the client, which applies the edit itself.
                let hint = bundle.error.as_mut().and_then(|error| error.hint.as_mut());
                hint.into_iter().for_each(|hint| *hint = hint.replace(" --allow-dirty ", " "));
            }
            let is_canceled =
                bundle.error.as_ref().is_some_and(|error| error.symbol == ErrorSymbol::RequestCancelled);
            if is_canceled || self.server.unsaved(self.open).await == unsaved {
                return Ok(bundle);
            }
        }
        Err(failed(codes::CONTENT_MODIFIED, "files of open documents changed while the request ran"))
    }

    /// Runs a request whose error is the answer.
    pub(super) async fn facts(
        &self,
        request: Request,
        canceled: Canceled<'_>,
    ) -> Result<(Bundle, Arc<Facts>), ResponseError> {
        let bundle = self.run(request, canceled).await?;
        match (&bundle.error, &bundle.facts) {
            (None, Some(facts)) => {
                let facts = facts.clone();
                Ok((bundle, facts))
            }
            (Some(error), _) => Err(of_body(error)),
            (None, None) => Err(failed(codes::REQUEST_FAILED, "the answer has no facts")),
        }
    }

    /// As [`Self::facts`]; `None` where there is nothing at the position.
    pub(super) async fn facts_if_any(
        &self,
        request: Request,
        canceled: Canceled<'_>,
    ) -> Result<Option<(Bundle, Arc<Facts>)>, ResponseError> {
        let has_position = request.selector.is_some();
        let bundle = self.run(request, canceled).await?;
        // A position that is in no file, or in none that can be read, is an error.
        let is_found = bundle.resolution.as_ref().is_some_and(|resolution| resolution.resolved.is_some());
        match (&bundle.error, &bundle.facts) {
            (Some(error), _) if error.symbol == ErrorSymbol::NotFound && (is_found || !has_position) => {
                Ok(None)
            }
            (Some(error), _) => Err(of_body(error)),
            (None, facts) => {
                let facts = facts.clone();
                Ok(facts.map(|facts| (bundle, facts)))
            }
        }
    }

    pub(super) fn request(&self, cmd: Command, selector: Option<PositionSpec>) -> Request {
        let workspace = &self.server.workspace;
        let mut options =
            Options { index_io: self.server.client.unit, scope: workspace.scope, ..Options::default() };
        if cmd.edits() {
            options.guards = workspace.guards.clone();
            // The client applies the edit, and can undo it.
            options.guards.dirty = DirtyPolicy::All;
        }
        Request::new(cmd, selector.map(Into::into), None, options)
    }

    pub(super) fn request_at(
        &self,
        cmd: Command,
        at: &lsp::TextDocumentPositionParams,
    ) -> Result<Request, ResponseError> {
        let path = self.server.path_of(&at.text_document.uri)?;
        Ok(self.request(cmd, Some(self.cursor(DocUri::File(path), at.position))))
    }

    /// A position of the client as a line and a column in the file, counted from 1.
    fn place_in(&self, uri: &DocUri, at: lsp::Position) -> [u32; 2] {
        let root = &self.server.workspace.engine.settings.root;
        let path = match uri {
            DocUri::File(path) => Some(path.clone()),
            DocUri::Workspace(path) => Some(root.join(path.as_str())),
            DocUri::Env(_) | DocUri::Server(_) => None,
        };
        let unit = self.server.client.unit;
        let beyond = [at.line.saturating_add(1), at.character.saturating_add(1)];
        let Some(path) = path else { return beyond };
        let is_without_mark = self.without_mark.contains(&path);
        let open = self.open.get(&path).filter(|_| !self.server.workspace.from_disk && !is_without_mark);
        let text: Option<Arc<str>> = match open {
            Some(open) => Some(open.text.clone()),
            None => read_text(&path).map(Into::into),
        };
        let Some(text) = text else { return beyond };
        // Places in selectors do not count a byte order mark, and positions do where the client has it.
        let counts_mark = at.line == 0 && !is_without_mark && text.starts_with('\u{feff}');
        let hidden = if counts_mark { width_of_mark(unit) } else { 0 };
        let lines = LineIndex::new(&text);
        let Some(line) = lines.line_span(&text, at.line) else { return beyond };
        // "If the character value is greater than the line length it defaults back to the line length" (LSP 3.17, Position).
        let (_, end) = lines.display(&text, line.end, unit);
        [at.line.saturating_add(1), at.character.saturating_sub(hidden).saturating_add(1).min(end)]
    }

    pub(super) fn cursor(&self, uri: DocUri, at: lsp::Position) -> PositionSpec {
        let [line, col] = self.place_in(&uri, at);
        PositionSpec::Cursor(CursorSpec {
            uri,
            line,
            col,
            indexing: self.server.client.unit,
            doc_version: None,
        })
    }

    /// Converts the locations of a bundle.
    pub(super) async fn converter(&self, bundle: &Bundle) -> LspConverter<'_> {
        let settings = &self.server.workspace.engine.settings;
        let text = serde_json::to_string(&bundle.facts).unwrap_or_default();
        let outside = match text.contains("env://") || text.contains("server://") {
            true => {
                let settings = settings.clone();
                tokio::task::spawn_blocking(move || AbsolutePaths::of(&settings)).await.ok()
            }
            false => None,
        };
        LspConverter {
            root: &settings.root,
            outside,
            paths: &self.server.paths,
            open: self.open,
            without_mark: &self.without_mark,
            from_disk: self.server.workspace.from_disk,
            from: unit_of(bundle),
            to: self.server.client.unit,
            texts: BTreeMap::new(),
        }
    }

    async fn places(&self, cmd: Command, params: Value, canceled: Canceled<'_>) -> LspOutcome {
        let params: lsp::TextDocumentPositionParams = read(params)?;
        let request = self.request_at(cmd, &params)?;
        let answered = self.facts_if_any(request, canceled).await?;
        let Some((bundle, facts)) = answered else { return Ok(Value::Null) };
        let found = match cmd {
            Command::Definition => &facts.definitions,
            Command::Declaration => &facts.declarations,
            Command::TypeDefinition => &facts.type_definitions,
            _ => &facts.implementations,
        };
        let found: &[Location] = found.as_deref().unwrap_or_default();
        let mut converter = self.converter(&bundle).await;
        let found = converter.locations(found).map_err(|error| of_body(&error))?;
        self.report(&facts, &params, found.len(), &mut converter)?;
        Ok(json!(found))
    }

    async fn references(&self, params: lsp::ReferenceParams, canceled: Canceled<'_>) -> LspOutcome {
        let mut request = self.request_at(Command::References, &params.text_document_position)?;
        request.options.exclude_declaration = !params.context.include_declaration;
        let (bundle, facts) = self.facts(request, canceled).await?;
        let mut converter = self.converter(&bundle).await;
        let found = facts.references.as_deref().unwrap_or_default();
        let found = converter.locations(found).map_err(|error| of_body(&error))?;
        self.report(&facts, &params.text_document_position, found.len(), &mut converter)?;
        Ok(json!(found))
    }

    /// Tells the client that an answer may be incomplete. An empty answer that may be incomplete is an error.
    pub(super) fn report(
        &self,
        facts: &Facts,
        at: &lsp::TextDocumentPositionParams,
        found: usize,
        converter: &mut LspConverter<'_>,
    ) -> Result<(), ResponseError> {
        let Some(completeness) = &facts.completeness else { return Ok(()) };
        let is_complete = completeness.status == CompletenessStatus::Complete;
        if is_complete {
            return Ok(());
        }
        let message = incomplete(completeness, found);
        if found == 0 {
            let mut error = failed(codes::REQUEST_FAILED, &message);
            error.data = Some(json!({"completeness": completeness}));
            return Err(error);
        }
        let items = &completeness.unresolved.items;
        let unresolved: Result<Vec<_>, ErrorBody> = items
            .iter()
            .map(|item| {
                let place = converter.place(&item.uri, item.range)?;
                Ok(json!({"uri": place.uri, "range": place.range, "reason": item.reason}))
            })
            .collect();
        let params = json!({
            "textDocument": at.text_document,
            "position": at.position,
            "status": completeness.status,
            "reason": completeness.reason,
            "unresolved": unresolved.map_err(|error| of_body(&error))?,
        });
        self.server.notify(COMPLETENESS, params);
        let params = lsp::ShowMessageParams { typ: lsp::MessageType::WARNING, message };
        self.server.notify("window/showMessage", json!(params));
        Ok(())
    }

    async fn hover(&self, params: lsp::HoverParams, canceled: Canceled<'_>) -> LspOutcome {
        let at = params.text_document_position_params;
        let request = self.request_at(Command::Hover, &at)?;
        let Some((bundle, facts)) = self.facts_if_any(request, canceled).await? else {
            return Ok(Value::Null);
        };
        let Some(hover) = &facts.hover else { return Ok(Value::Null) };
        let path = self.server.path_of(&at.text_document.uri)?;
        let mut converter = self.converter(&bundle).await;
        let range = hover.range.map(|range| converter.range_in(&DocUri::File(path), range)).transpose();
        let value = hover.markdown.clone();
        let contents =
            lsp::HoverContents::Markup(lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value });
        Ok(json!(lsp::Hover { contents, range: range.map_err(|error| of_body(&error))? }))
    }

    async fn outline(&self, params: lsp::DocumentSymbolParams, canceled: Canceled<'_>) -> LspOutcome {
        let mut request = self.request(Command::Symbols, None);
        request.options.paths = vec![self.workspace_path(&self.server.path_of(&params.text_document.uri)?)?];
        let (bundle, facts) = self.facts(request, canceled).await?;
        let symbols = facts.symbols.as_deref().unwrap_or_default();
        let mut converter = self.converter(&bundle).await;
        let converted = match self.server.client.trees {
            true => converter.outline(symbols).map(|tree| json!(tree)),
            false => converter.symbols(symbols).map(|list| json!(list)),
        };
        converted.map_err(|error| of_body(&error))
    }

    async fn search(&self, params: lsp::WorkspaceSymbolParams, canceled: Canceled<'_>) -> LspOutcome {
        let mut request = self.request(Command::Symbols, None);
        // An empty query requests all symbols.
        request.options.query = Some(params.query).filter(|query| !query.trim().is_empty());
        let Some((bundle, facts)) = self.facts_if_any(request, canceled).await? else { return Ok(json!([])) };
        let symbols = facts.symbols.as_deref().unwrap_or_default();
        let found = self.converter(&bundle).await.symbols(symbols);
        Ok(json!(found.map_err(|error| of_body(&error))?))
    }

    async fn prepare_rename(
        &self,
        at: &lsp::TextDocumentPositionParams,
        canceled: Canceled<'_>,
    ) -> LspOutcome {
        let request = self.request_at(Command::PrepareRename, at)?;
        let Some((bundle, facts)) = self.facts_if_any(request, canceled).await? else {
            return Ok(Value::Null);
        };
        let Some(renamable) = &facts.renamable else { return Ok(Value::Null) };
        let range = self.converter(&bundle).await.range_in(&renamable.location.uri, renamable.location.range);
        let range = range.map_err(|error| of_body(&error))?;
        let placeholder = renamable.name.clone();
        Ok(json!(lsp::PrepareRenameResponse::RangeWithPlaceholder { range, placeholder }))
    }

    async fn rename(&self, params: lsp::RenameParams, canceled: Canceled<'_>) -> LspOutcome {
        let mut request = self.request_at(Command::Rename, &params.text_document_position)?;
        request.new_name = Some(params.new_name);
        request.options.family = self.server.workspace.family;
        self.edit(request, canceled).await
    }

    /// The edit of a request, if no check prevents it.
    async fn edit(&self, request: Request, canceled: Canceled<'_>) -> LspOutcome {
        let bundle = self.run(request, canceled).await?;
        self.edit_of(&bundle).await
    }

    async fn edit_of(&self, bundle: &Bundle) -> LspOutcome {
        let edits = bundle.edits.as_ref();
        if let Some(error) = &bundle.error {
            let mut error = of_body(error);
            let stopping = || edits.into_iter().flat_map(|edits| &edits.safety).filter(|check| check.stops());
            let places: Vec<&str> = stopping().flat_map(|check| &check.places).map(String::as_str).collect();
            if !places.is_empty() {
                error.message = format!("{}\nat: {}", error.message, first_places(&places, places.len()));
            }
            if !self.server.workspace.family && stopping().any(|check| check.name == CheckName::Overrides) {
                error.message.push_str("\n`lanser lsp --rename-family` renames related methods, too");
            }
            return Err(error);
        }
        let mut checks = edits.into_iter().flat_map(|edits| &edits.safety);
        if let Some(check) = checks.find(|check| check.stops()) {
            return Err(failed(codes::REQUEST_FAILED, &check.detail));
        }
        let edit = edits.and_then(|edits| edits.workspace_edit.as_ref());
        let edit = edit.ok_or_else(|| of_body(&not_expressible("there is no edit".to_owned())))?;
        let mut converter = self.converter(bundle).await;
        converter.edit(edit, &self.server.client.edits).map_err(|error| of_body(&error))
    }

    fn range_request(&self, path: AbsPath, range: lsp::Range) -> Request {
        let uri = DocUri::File(path);
        let (start, end) = (self.place_in(&uri, range.start), self.place_in(&uri, range.end));
        let range = RangeSpec { uri, start, end, indexing: self.server.client.unit, doc_version: None };
        self.request(Command::Actions, Some(PositionSpec::Range(range)))
    }

    async fn actions(&self, params: lsp::CodeActionParams, mut canceled: Canceled<'_>) -> LspOutcome {
        let path = self.server.path_of(&params.text_document.uri)?;
        let mut found = Vec::new();
        let mut only = params.context.only.unwrap_or_default();
        only.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        let kinds: Vec<Option<String>> = match only.as_slice() {
            [] => vec![None],
            kinds => kinds.iter().map(|kind| Some(kind.as_str().to_owned())).collect(),
        };
        for kind in kinds {
            let mut request = self.range_request(path.clone(), params.range);
            request.options.action_kind.clone_from(&kind);
            let Some((_, facts)) = self.facts_if_any(request, canceled.as_mut()).await? else { continue };
            for action in facts.actions.iter().flatten() {
                let data = ActionData {
                    uri: params.text_document.uri.clone(),
                    range: params.range,
                    kind: kind.clone(),
                    number: action.number,
                    title: action.title.clone(),
                };
                found.push(lsp::CodeAction {
                    title: action.title.clone(),
                    kind: action.kind.clone().map(lsp::CodeActionKind::from),
                    is_preferred: action.preferred.then_some(true),
                    disabled: action.disabled.clone().map(|reason| lsp::CodeActionDisabled { reason }),
                    data: Some(json!(data)),
                    ..lsp::CodeAction::default()
                });
            }
        }
        if self.server.client.resolves {
            return Ok(json!(found));
        }
        let mut whole = Vec::new();
        for action in found {
            // An action that edits nothing, or whose edit is refused, is not offered.
            if let Ok(action) = self.resolve(action, canceled.as_mut()).await {
                whole.push(action);
            }
        }
        Ok(json!(whole))
    }

    async fn resolve(&self, action: lsp::CodeAction, canceled: Canceled<'_>) -> LspOutcome {
        let data: ActionData = read(action.data.clone().unwrap_or_default())?;
        let mut request = self.range_request(self.server.path_of(&data.uri)?, data.range);
        (request.options.action_kind, request.options.run) = (data.kind, Some(data.number.to_string()));
        let bundle = self.run(request.clone(), canceled).await?;
        let titles = bundle.facts.as_ref().and_then(|facts| facts.actions.as_ref());
        if let (None, Some([ran, ..])) = (&bundle.error, titles.map(Vec::as_slice))
            && ran.title != data.title
        {
            return Err(failed(codes::CONTENT_MODIFIED, "the actions have changed"));
        }
        let mut resolved = json!(action);
        resolved["edit"] = self.edit_of(&bundle).await?;
        Ok(resolved)
    }

    async fn diagnostics(
        &self,
        path: &AbsPath,
        canceled: Canceled<'_>,
    ) -> Result<Vec<lsp::Diagnostic>, ResponseError> {
        let mut request = self.request(Command::Diagnostics, None);
        request.options.paths = vec![self.workspace_path(path)?];
        request.options.severity = Some(Severity::Hint);
        let (bundle, facts) = self.facts(request, canceled).await?;
        let Some(found) = &facts.diagnostics else { return Ok(Vec::new()) };
        if let [not_checked, ..] = found.not_checked.as_slice() {
            return Err(failed(codes::REQUEST_FAILED, &not_checked.reason));
        }
        let shown = &self.server.client.diagnostics;
        self.converter(&bundle).await.diagnostics(&found.items, shown).map_err(|error| of_body(&error))
    }

    fn workspace_path(&self, path: &AbsPath) -> Result<WorkspacePath, ResponseError> {
        let root = &self.server.workspace.engine.settings.root;
        path.strip_prefix(root).and_then(WorkspacePath::new).ok_or_else(|| {
            failed(codes::REQUEST_FAILED, &format!("{path} is outside of the workspace {root}"))
        })
    }
}

/// Identifies a code action for `codeAction/resolve`.
#[derive(Serialize, Deserialize)]
struct ActionData {
    uri: lsp::Uri,
    range: lsp::Range,
    kind: Option<String>,
    number: u32,
    title: String,
}

/// The first places, and how many others there are of `count`.
fn first_places(places: &[&str], count: usize) -> String {
    let first = &places[..places.len().min(MAX_PLACES)];
    match count.saturating_sub(first.len()) {
        0 => first.join(", "),
        more => format!("{}, and {more} more", first.join(", ")),
    }
}

/// Says what is missing from an answer.
fn incomplete(completeness: &Completeness, found: usize) -> String {
    let unresolved = &completeness.unresolved;
    let mut message = format!("{} found", plural(found, "place"));
    if unresolved.count > 0 {
        let places: Vec<&str> = unresolved.items.iter().map(|item| item.at.as_str()).collect();
        message =
            format!("{message}; these may be others: {}", first_places(&places, unresolved.count as usize));
    }
    match &completeness.reason {
        Some(reason) => format!("{message} (not complete: {reason})"),
        None => format!("{message} (not complete)"),
    }
}
