//! Reading an edit that a caller brings: LSP's `WorkspaceEdit` as JSON, a bundle that holds one, or a unified diff.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::checks::{Checks, Reason};
use crate::digest::{Digest, strict_json};
use crate::edit::Plan;
use crate::edit::patch::{FilePatch, parse};
use crate::model::edits::{Check, CheckName, EditedFile, WorkspaceEdit};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::EditInput;
use crate::orchestrator::ask::Asking;
use crate::path::DocUri;
use crate::text::ColumnUnit;

/// An edit as it was read.
pub(in crate::orchestrator) struct Input {
    pub(in crate::orchestrator) edit: Option<WorkspaceEdit>,
    pub(in crate::orchestrator) patches: Vec<FilePatch>,
    /// What its columns count.
    pub(in crate::orchestrator) unit: ColumnUnit,
    /// What the files held for which it was made, where it says so; `None` for files that were not there.
    pub(in crate::orchestrator) known: BTreeMap<DocUri, Option<Digest>>,
    /// What was found wrong with it when it was planned.
    pub(in crate::orchestrator) failed: Vec<Check>,
}

/// A bundle, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Saved {
    #[serde(rename = "bundleId")]
    _bundle_id: Digest,
    edits: Option<SavedEdits>,
    environment: Option<SavedEnvironment>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedEdits {
    workspace_edit: Option<WorkspaceEdit>,
    diff: String,
    files: Vec<EditedFile>,
    safety: Vec<Check>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedEnvironment {
    position_encoding: String,
}

/// Reads an edit. Columns count `unit`, unless it says otherwise.
///
/// # Errors
/// When it is neither.
pub(in crate::orchestrator) fn read(given: &EditInput, unit: ColumnUnit) -> Result<Input, ErrorBody> {
    let wrong = |what: String| {
        ErrorBody::new(ErrorSymbol::Usage, format!("the edit cannot be read: {what}"))
            .hint("give a WorkspaceEdit as JSON, a bundle with edits, or a unified diff")
    };
    let content =
        given.content().ok_or_else(|| wrong("it holds characters that stand for no byte".to_owned()))?;
    let start = content.iter().find(|byte| !byte.is_ascii_whitespace());
    let none = BTreeMap::new();
    if start != Some(&b'{') {
        let patches = parse(&content).map_err(|error| wrong(error.to_string()))?;
        return Ok(Input { edit: None, patches, unit, known: none, failed: Vec::new() });
    }
    let is_bundle = serde_json::from_slice::<Saved>(&content);
    if let Ok(Saved { edits, environment, .. }) = is_bundle {
        let edits = edits.ok_or_else(|| wrong("the bundle has no edits".to_owned()))?;
        let named = environment.and_then(|environment| ColumnUnit::parse(&environment.position_encoding));
        let known = edits
            .files
            .iter()
            .map(|file| (file.from.clone().unwrap_or_else(|| file.uri.clone()), file.before));
        let patches = match &edits.workspace_edit {
            Some(_) => Vec::new(),
            None => parse(edits.diff.as_bytes()).map_err(|error| wrong(error.to_string()))?,
        };
        return Ok(Input {
            known: known.collect(),
            edit: edits.workspace_edit,
            patches,
            unit: named.unwrap_or(unit),
            failed: edits.safety.into_iter().filter(|check| !check.passed).collect(),
        });
    }
    let edit: WorkspaceEdit = strict_json::from_slice(&content).map_err(|error| wrong(error.to_string()))?;
    if edit.document_changes.is_none() && edit.changes.is_empty() {
        return Err(wrong("it has neither `documentChanges` nor `changes`".to_owned()));
    }
    Ok(Input { edit: Some(edit), patches: Vec::new(), unit, known: none, failed: Vec::new() })
}

/// Records again what was found wrong with a rename when it was planned and cannot be seen from the edit. What was given up then
/// is not given up by that; what passed then is not claimed now.
pub(super) fn carry(checks: &mut Checks<'_>, failed: Vec<Check>) {
    use CheckName::{
        Collision, Completeness, Identifier, Overrides, PrepareRename, RoundTrip, Shadowing, Target,
    };
    for Check { name, detail, places, .. } in failed {
        match name {
            Target | PrepareRename | Identifier | Shadowing | Collision | Overrides | Completeness
            | RoundTrip => checks.fail(name, format!("when it was planned: {detail}"), places),
            // These are made anew, for what the files hold now.
            CheckName::Jail
            | CheckName::Filters
            | CheckName::Overlap
            | CheckName::Content
            | CheckName::Git
            | CheckName::Diagnostics => {}
        }
    }
}

/// Records whether the files still are those for which the edit was made.
pub(super) fn check_known(
    asking: &Asking<'_>,
    checks: &mut Checks<'_>,
    plan: &Plan,
    known: &BTreeMap<DocUri, Option<Digest>>,
) {
    let mut changed = Vec::new();
    for change in plan.changes() {
        let uri = DocUri::Workspace(change.from.clone().unwrap_or_else(|| change.path.clone()));
        let now = change.before.as_ref().map(|original| Digest::of(&original.bytes));
        if known.get(&uri).is_some_and(|then| *then != now) {
            changed.push(uri.to_string());
        }
    }
    if let Some(first) = changed.first() {
        let path = asking.places.paths.text(first);
        checks.replace(
            CheckName::Content,
            format!("{path} changed since the edit was planned"),
            changed.clone(),
            Reason::of(ErrorSymbol::ContentModified)
                .data(ErrorData::Files { paths: changed })
                .hint("plan it again, or merge with --strategy 3way"),
        );
    }
}
