//! `actions`: what the server proposes to do at a place, and doing one of them.
//!
//! An action comes with its edit, or with an edit that the server fills in when it is asked again, or with a command that the
//! server runs, whose edits come back as its own requests. Pyright knows the command that puts imports in order and does not
//! propose it; here it is always proposed, last.

use std::collections::{BTreeMap, BTreeSet};

use super::Refactored;
use super::apply::checked;
use super::checks::Checks;
use super::planned;
use super::rename::target;
use crate::edit::target::of_uri;
use crate::lsp::{CodeAction, ServerCommand};
use crate::model::edits::{DocumentChange, TextDocumentEdit, VersionedDocument, WorkspaceEdit};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::facts::{Action, Facts, Provenance};
use crate::orchestrator::ask::{Answer, Asking};
use crate::orchestrator::failure::Failure;
use crate::text::Range;

/// The kind of the action that puts imports in order.
const ORGANIZE: &str = "source.organizeImports";

/// An action that can be run.
struct Offer {
    told: Action,
    from: Source,
}

enum Source {
    Server(Box<CodeAction>),
    Command(ServerCommand),
}

/// Answers `actions`.
pub(in crate::orchestrator) async fn actions(asking: &Asking<'_>) -> Result<Answer, Failure> {
    let offered = asking.server.client.capabilities();
    let mut capabilities = asking.require("codeAction", offered.code_action)?;
    capabilities.insert("executeCommand".to_owned(), offered.execute_command);
    capabilities.insert("resolveAction".to_owned(), offered.resolve_action);
    let subject = asking.state.subject()?;
    let document = &subject.document;
    asking.open([document.path.clone()])?;
    let range = document.lines.range(&document.text, subject.span.clone(), asking.places.server_unit);
    let offers = offers(asking, range).await?;
    let mut facts = Facts::new(Provenance::Lsp);
    let Some(wanted) = asking.request.options.run.as_deref() else {
        facts.actions = Some(offers.into_iter().map(|offer| offer.told).collect());
        return Ok(Answer { facts, limits: None, capabilities, refactored: None, error: None });
    };
    let offer = chosen(&offers, wanted).map_err(Failure::told)?;
    let edit = edit(asking, &offer.from).await?;
    if edit.document_changes.as_ref().map_or(edit.changes.is_empty(), Vec::is_empty) {
        let message = format!("the action {:?} edits nothing", offer.told.title);
        let error = ErrorBody::new(ErrorSymbol::NotFound, message);
        return Err(Failure::told(error.hint("`lanser actions SELECTOR` lists the others")));
    }
    let mut checks = Checks::new(asking.request);
    target(&mut checks, subject);
    let plan = planned::plan(asking, &mut checks, asking.places.server_unit, &|planner| {
        planner.workspace_edit(&edit)
    })?;
    facts.actions = Some(vec![offer.told.clone()]);
    let (_, refactored): (_, Refactored) = checked(asking, checks, Some(edit), plan).await?;
    Ok(Answer { facts, limits: None, capabilities, refactored: Some(refactored), error: None })
}

async fn offers(asking: &Asking<'_>, range: Range) -> Result<Vec<Offer>, Failure> {
    let subject = asking.state.subject()?;
    let path = &subject.document.path;
    let questions = asking.questions();
    let found = questions.diagnostics(path).await?.items;
    let touching: Vec<_> = found
        .into_iter()
        .filter(|found| found.range.touches(range.start) || range.touches(found.range.start))
        .collect();
    let kind = asking.request.options.action_kind.as_deref();
    let only: Vec<String> = kind.into_iter().map(str::to_owned).collect();
    let matches = |of: Option<&str>| {
        kind.is_none_or(|kind| of.is_some_and(|of| of == kind || of.starts_with(&format!("{kind}."))))
    };
    let mut offers: Vec<Offer> = Vec::new();
    let mut offer = |action: Action, from: Source| {
        let number = u32::try_from(offers.len() + 1).unwrap_or(u32::MAX);
        offers.push(Offer { told: Action { number, ..action }, from });
    };
    let mut organizes = false;
    for action in questions.code_actions(path, range, &touching, &only).await? {
        if matches(action.kind.as_deref()) {
            organizes |= action.kind.as_deref().is_some_and(|kind| kind.starts_with(ORGANIZE));
            let told = Action {
                number: 0,
                title: action.title.clone(),
                kind: action.kind.clone(),
                preferred: action.preferred,
                disabled: action.disabled.clone(),
            };
            offer(told, Source::Server(Box::new(action)));
        }
    }
    if asking.server.client.capabilities().execute_command && matches(Some(ORGANIZE)) && !organizes {
        let title = "Organize imports".to_owned();
        let kind = Some(ORGANIZE.to_owned());
        let told = Action { number: 0, title, kind, preferred: false, disabled: None };
        offer(told, Source::Command(ServerCommand::organize_imports(asking.settings.server, path)));
    }
    Ok(offers)
}

fn chosen<'o>(offers: &'o [Offer], wanted: &str) -> Result<&'o Offer, ErrorBody> {
    let number = wanted.parse::<u32>().ok();
    let is_it = |offer: &&Offer| Some(offer.told.number) == number || offer.told.title == wanted;
    let found = offers.iter().find(is_it).ok_or_else(|| {
        let titles =
            offers.iter().map(|offer| format!("{}. {}", offer.told.number, offer.told.title)).collect();
        ErrorBody::new(ErrorSymbol::NotFound, format!("there is no action {wanted:?} here"))
            .hint("`lanser actions SELECTOR` lists them")
            .data(ErrorData::Near { selectors: titles })
    })?;
    match &found.told.disabled {
        Some(reason) => {
            Err(ErrorBody::new(ErrorSymbol::NotFound, format!("the action cannot be run: {reason}")))
        }
        None => Ok(found),
    }
}

async fn edit(asking: &Asking<'_>, from: &Source) -> Result<WorkspaceEdit, Failure> {
    let questions = asking.questions();
    let (edit, command) = match from {
        Source::Command(command) => (None, Some(command.clone())),
        Source::Server(action) => {
            let mut action = (**action).clone();
            if action.may_be_resolved() && asking.server.client.capabilities().resolve_action {
                action = questions.resolve_action(&action).await?;
            }
            (action.edit, action.command)
        }
    };
    // The edit of an action comes before its command.
    let mut all: Vec<WorkspaceEdit> = edit.into_iter().collect();
    if let Some(command) = command {
        all.extend(questions.execute(&command).await?);
    }
    as_one(asking, all)
}

/// Several edits as one. The server does not see the first made before it wants the next, so whether the second edit of a file
/// is about the text before the first or after it is nowhere said: then there is no one edit.
fn as_one(asking: &Asking<'_>, mut all: Vec<WorkspaceEdit>) -> Result<WorkspaceEdit, Failure> {
    if all.len() <= 1 {
        return Ok(all.pop().unwrap_or_default());
    }
    let root = asking.state.ground.snapshot.root();
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
            let twice = asking.places.paths.text(twice);
            let message = format!("the action edits {twice} several times, one after the other");
            let error = ErrorBody::new(ErrorSymbol::UnsupportedCap, message)
                .hint("only actions that edit each file once are run; make this one in an editor");
            return Err(Failure::told(error));
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
