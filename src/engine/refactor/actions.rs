//! `actions`: lists the server's code actions at a location, and runs one of them.
//!
//! An action comes with its edit, or the server adds the edit in `codeAction/resolve`, or the action has a command
//! that the server executes, whose edits arrive as `workspace/applyEdit` requests. Pyright has a command that
//! organizes imports and does not propose it; here it is always listed, last.

use std::collections::{BTreeMap, BTreeSet};

use super::CheckedEdit;
use super::apply::run_checks;
use super::checks::Checks;
use super::planning;
use super::rename::check_target;
use crate::edit::target::of_uri;
use crate::engine::context::{HandlerOutput, RequestContext};
use crate::engine::failure::Failure;
use crate::lsp::{CodeAction, LspCommand};
use crate::model::edits::{DocumentChange, TextDocumentEdit, VersionedDocument, WorkspaceEdit};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::facts::{Action, Facts, Provenance};
use crate::text::Range;

/// The kind of the action that organizes imports.
const ORGANIZE_IMPORTS: &str = "source.organizeImports";

/// An action that can be run.
struct RunnableAction {
    action: Action,
    source: ActionSource,
}

enum ActionSource {
    Server(Box<CodeAction>),
    Command(LspCommand),
}

/// Answers `actions`.
pub(in crate::engine) async fn actions(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let offered = cx.server.client.capabilities();
    let mut capabilities = cx.require("codeAction", offered.code_action)?;
    capabilities.insert("executeCommand".to_owned(), offered.execute_command);
    capabilities.insert("resolveAction".to_owned(), offered.resolve_action);
    let subject = cx.state.target()?;
    let document = &subject.document;
    cx.open([document.path.clone()])?;
    let range = document.lines.range(&document.text, subject.span.clone(), cx.locations.server_unit);
    let offers = runnable_actions(cx, range).await?;
    let mut facts = Facts::new(Provenance::Lsp);
    let Some(wanted) = cx.request.options.run.as_deref() else {
        facts.actions = Some(offers.into_iter().map(|offer| offer.action).collect());
        return Ok(HandlerOutput { facts, limits: None, capabilities, refactored: None, error: None });
    };
    let offer = find_action(&offers, wanted).map_err(Failure::reported)?;
    let edit = edit_of(cx, &offer.source).await?;
    if edit.document_changes.as_ref().map_or(edit.changes.is_empty(), Vec::is_empty) {
        let message = format!("the action {:?} edits nothing", offer.action.title);
        let error = ErrorBody::new(ErrorSymbol::NotFound, message);
        return Err(Failure::reported(error.hint("`lanser actions SELECTOR` lists the others")));
    }
    let mut checks = Checks::new(cx.request, cx.settings);
    check_target(&mut checks, subject);
    let plan =
        planning::plan(cx, &mut checks, cx.locations.server_unit, &|planner| planner.workspace_edit(&edit))?;
    facts.actions = Some(vec![offer.action.clone()]);
    let (_, refactored): (_, CheckedEdit) = run_checks(cx, checks, Some(edit), plan, &[]).await?;
    Ok(HandlerOutput { facts, limits: None, capabilities, refactored: Some(refactored), error: None })
}

async fn runnable_actions(cx: &RequestContext<'_>, range: Range) -> Result<Vec<RunnableAction>, Failure> {
    let subject = cx.state.target()?;
    let path = &subject.document.path;
    let requests = cx.requests();
    let found = requests.diagnostics(path).await?.items;
    let touching: Vec<_> = found
        .into_iter()
        .filter(|found| found.range.touches(range.start) || range.touches(found.range.start))
        .collect();
    let kind = cx.request.options.action_kind.as_deref();
    let only: Vec<String> = kind.into_iter().map(str::to_owned).collect();
    let matches = |of: Option<&str>| {
        kind.is_none_or(|kind| of.is_some_and(|of| of == kind || of.starts_with(&format!("{kind}."))))
    };
    let mut offers: Vec<RunnableAction> = Vec::new();
    let mut offer = |action: Action, source: ActionSource| {
        let number = u32::try_from(offers.len() + 1).unwrap_or(u32::MAX);
        offers.push(RunnableAction { action: Action { number, ..action }, source });
    };
    let mut organizes = false;
    for action in requests.code_actions(path, range, &touching, &only).await? {
        if matches(action.kind.as_deref()) {
            organizes |= action.kind.as_deref().is_some_and(|kind| kind.starts_with(ORGANIZE_IMPORTS));
            let listed = Action {
                number: 0,
                title: action.title.clone(),
                kind: action.kind.clone(),
                preferred: action.preferred,
                disabled: action.disabled.clone(),
            };
            offer(listed, ActionSource::Server(Box::new(action)));
        }
    }
    if cx.server.client.capabilities().execute_command && matches(Some(ORGANIZE_IMPORTS)) && !organizes {
        let title = "Organize imports".to_owned();
        let kind = Some(ORGANIZE_IMPORTS.to_owned());
        let listed = Action { number: 0, title, kind, preferred: false, disabled: None };
        offer(listed, ActionSource::Command(LspCommand::organize_imports(cx.settings.server, path)));
    }
    Ok(offers)
}

fn find_action<'o>(offers: &'o [RunnableAction], wanted: &str) -> Result<&'o RunnableAction, ErrorBody> {
    let number = wanted.parse::<u32>().ok();
    let is_wanted =
        |offer: &&RunnableAction| Some(offer.action.number) == number || offer.action.title == wanted;
    let found = offers.iter().find(is_wanted).ok_or_else(|| {
        let titles =
            offers.iter().map(|offer| format!("{}. {}", offer.action.number, offer.action.title)).collect();
        ErrorBody::new(ErrorSymbol::NotFound, format!("no action {wanted:?} at this location"))
            .hint("`lanser actions SELECTOR` lists them")
            .data(ErrorData::Suggestions { selectors: titles })
    })?;
    match &found.action.disabled {
        Some(reason) => {
            Err(ErrorBody::new(ErrorSymbol::NotFound, format!("the action cannot be run: {reason}")))
        }
        None => Ok(found),
    }
}

async fn edit_of(cx: &RequestContext<'_>, source: &ActionSource) -> Result<WorkspaceEdit, Failure> {
    let requests = cx.requests();
    let (edit, command) = match source {
        ActionSource::Command(command) => (None, Some(command.clone())),
        ActionSource::Server(action) => {
            let mut action = (**action).clone();
            if action.may_be_resolved() && cx.server.client.capabilities().resolve_action {
                action = requests.resolve_action(&action).await?;
            }
            (action.edit, action.command)
        }
    };
    // By LSP, the edit of an action is applied before its command.
    let mut all: Vec<WorkspaceEdit> = edit.into_iter().collect();
    if let Some(command) = command {
        all.extend(requests.execute(&command).await?);
    }
    merge_edits(cx, all)
}

/// Combines several edits. The server does not see the first applied before it sends the next, so it is undefined
/// whether a second edit of the same file refers to the text before or after the first; such edits are refused.
fn merge_edits(cx: &RequestContext<'_>, mut all: Vec<WorkspaceEdit>) -> Result<WorkspaceEdit, Failure> {
    if all.len() <= 1 {
        return Ok(all.pop().unwrap_or_default());
    }
    let root = cx.state.inputs.snapshot.root();
    let name = |uri: &str| of_uri(root, uri).map_or_else(|_| uri.to_owned(), |path| path.to_string());
    let mut seen = BTreeSet::new();
    let mut changes = Vec::new();
    let mut annotations = BTreeMap::new();
    for edit in all {
        let mut files = BTreeSet::new();
        let edit = edit.with_uris(|uri| {
            files.insert(name(uri));
            uri.to_owned()
        });
        if let Some(twice) = files.iter().find(|file| seen.contains(*file)) {
            let twice = cx.locations.paths.text(twice);
            let message = format!("the action edits {twice} in several steps");
            let error = ErrorBody::new(ErrorSymbol::UnsupportedCap, message)
                .hint("only actions that edit each file once are supported; run this one in an editor");
            return Err(Failure::reported(error));
        }
        seen.extend(files);
        changes.extend(edit.document_changes.unwrap_or_else(|| {
            let document = |(uri, edits)| {
                let text_document = VersionedDocument { uri, version: None };
                DocumentChange::Edit(TextDocumentEdit { text_document, edits })
            };
            edit.changes.into_iter().map(document).collect()
        }));
        for (id, annotation) in edit.change_annotations {
            annotations.entry(id).or_insert(annotation);
        }
    }
    Ok(WorkspaceEdit {
        document_changes: Some(changes),
        change_annotations: annotations,
        ..Default::default()
    })
}
