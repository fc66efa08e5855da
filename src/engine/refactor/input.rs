//! Parses an edit from the caller: LSP's `WorkspaceEdit` as JSON, a bundle that contains one, or a unified diff.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::checks::{CheckFailure, Checks};
use crate::digest::{Digest, strict_json};
use crate::edit::EditPlan;
use crate::edit::patch::{FilePatch, parse};
use crate::engine::context::RequestContext;
use crate::model::edits::{Check, CheckName, EditedFile, WorkspaceEdit};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::EditInput;
use crate::path::DocUri;
use crate::text::ColumnUnit;

/// An edit as it was parsed.
pub(in crate::engine) struct ParsedEdit {
    pub(in crate::engine) edit: Option<WorkspaceEdit>,
    pub(in crate::engine) patches: Vec<FilePatch>,
    /// The unit of its columns.
    pub(in crate::engine) unit: ColumnUnit,
    /// The digests of the files that it was made for, if it contains them; `None` for files that did not exist.
    pub(in crate::engine) known: BTreeMap<DocUri, Option<Digest>>,
    /// The checks that failed when it was planned.
    pub(in crate::engine) failed: Vec<Check>,
    /// The new name, if it is a rename, and the module if it moves one.
    pub(in crate::engine) new_name: Option<(Option<String>, String)>,
}

/// The members of a bundle that matter here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedBundle {
    #[serde(rename = "bundleId")]
    _bundle_id: Digest,
    request: Option<SavedRequest>,
    edits: Option<SavedEdits>,
    environment: Option<SavedEnvironment>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedRequest {
    new_name: Option<String>,
    #[serde(default)]
    options: SavedOptions,
}

#[derive(Default, Deserialize)]
struct SavedOptions {
    module: Option<String>,
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

/// Parses an edit. Columns count `unit`, unless the edit names another one.
///
/// # Errors
/// When it is in none of the three forms.
pub(in crate::engine) fn parse_edit(input: &EditInput, unit: ColumnUnit) -> Result<ParsedEdit, ErrorBody> {
    let wrong = |what: String| {
        ErrorBody::new(ErrorSymbol::Usage, format!("the edit cannot be parsed: {what}"))
            .hint("give a WorkspaceEdit as JSON, a bundle with edits, or a unified diff")
    };
    let content = input
        .content()
        .ok_or_else(|| wrong("it contains characters that do not represent bytes".to_owned()))?;
    let start = content.iter().find(|byte| !byte.is_ascii_whitespace());
    let none = BTreeMap::new();
    if start != Some(&b'{') {
        let patches = parse(&content).map_err(|error| wrong(error.to_string()))?;
        return Ok(ParsedEdit { edit: None, patches, unit, known: none, failed: Vec::new(), new_name: None });
    }
    let is_bundle = serde_json::from_slice::<SavedBundle>(&content);
    if let Ok(SavedBundle { request, edits, environment, .. }) = is_bundle {
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
        return Ok(ParsedEdit {
            known: known.collect(),
            edit: edits.workspace_edit,
            patches,
            unit: named.unwrap_or(unit),
            failed: edits.safety.into_iter().filter(|check| !check.passed).collect(),
            new_name: request.and_then(|request| Some((request.options.module, request.new_name?))),
        });
    }
    let edit: WorkspaceEdit = strict_json::from_slice(&content).map_err(|error| wrong(error.to_string()))?;
    if edit.document_changes.is_none() && edit.changes.is_empty() {
        return Err(wrong("it has neither `documentChanges` nor `changes`".to_owned()));
    }
    Ok(ParsedEdit {
        edit: Some(edit),
        patches: Vec::new(),
        unit,
        known: none,
        failed: Vec::new(),
        new_name: None,
    })
}

/// Records the failed checks of a rename that cannot be repeated from its edit alone. A check that was overridden
/// when the edit was planned is not overridden now; one that passed then is not recorded as passed.
pub(super) fn carry_over_failures(checks: &mut Checks<'_>, failed: Vec<Check>) {
    use CheckName::{
        Agreement, Collision, Completeness, Identifier, Overrides, PrepareRename, RoundTrip, Shadowing,
        Target,
    };
    for Check { name, detail, places, .. } in failed {
        match name {
            Target | PrepareRename | Identifier | Shadowing | Collision | Overrides | Completeness
            | Agreement | RoundTrip => checks.fail(name, format!("when it was planned: {detail}"), places),
            // These checks are repeated with the current contents.
            CheckName::Jail
            | CheckName::Filters
            | CheckName::Overlap
            | CheckName::Content
            | CheckName::Git
            | CheckName::Diagnostics => {}
        }
    }
}

/// Records whether the files are still those that the edit was made for.
pub(super) fn check_known(
    cx: &RequestContext<'_>,
    checks: &mut Checks<'_>,
    plan: &EditPlan,
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
        let path = cx.locations.paths.text(first);
        checks.replace(
            CheckName::Content,
            format!("{path} changed since the edit was planned"),
            changed.clone(),
            CheckFailure::of(ErrorSymbol::ContentModified)
                .data(ErrorData::Files { paths: changed })
                .hint("plan it again, or merge with --strategy 3way"),
        );
    }
}
