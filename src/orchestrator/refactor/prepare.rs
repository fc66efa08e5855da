//! `prepare-rename`: whether the server accepts a rename at a place.

use std::collections::BTreeMap;

use crate::lsp::{Place, Renamable as Offered};
use crate::model::facts::{Facts, Provenance, Renamable};
use crate::orchestrator::ask::{Answer, Asking};
use crate::orchestrator::failure::Failure;
use crate::orchestrator::query::{nothing_there, position};
use crate::orchestrator::state::Subject;

/// Answers `prepareRename`.
pub(in crate::orchestrator) async fn prepare(asking: &Asking<'_>) -> Result<Answer, Failure> {
    let capabilities = asking.require("prepareRename", asking.server.client.capabilities().prepare_rename)?;
    let subject = asking.state.subject()?;
    asking.open([subject.document.path.clone()])?;
    let offered = offered(asking, subject).await?.ok_or_else(|| nothing_there(asking, subject))?;
    let mut facts = Facts::new(Provenance::Lsp);
    let name = subject.name_span.clone().unwrap_or(subject.span.clone());
    let range = offered.range.unwrap_or_else(|| {
        subject.document.lines.range(&subject.document.text, name, asking.places.server_unit)
    });
    let place = Place { path: subject.document.path.clone(), range };
    let name = offered.placeholder.or_else(|| subject.name().map(str::to_owned)).unwrap_or_default();
    facts.renamable = Some(Renamable { name, location: asking.places.location(&place) });
    Ok(Answer { facts, limits: None, capabilities, refactored: None, error: None })
}

/// What the server offers to rename.
pub(super) async fn offered(asking: &Asking<'_>, subject: &Subject) -> Result<Option<Offered>, Failure> {
    let questions = asking.questions();
    Ok(questions.prepare_rename(&subject.document.path, position(asking, subject)).await?)
}

/// The capabilities of a rename.
pub(super) fn capabilities(asking: &Asking<'_>) -> Result<BTreeMap<String, bool>, Failure> {
    let offered = asking.server.client.capabilities();
    let mut capabilities = asking.require("rename", offered.rename)?;
    capabilities.insert("prepareRename".to_owned(), offered.prepare_rename);
    capabilities.extend(asking.require("diagnostic", offered.diagnostic)?);
    capabilities.extend(asking.require("references", offered.references)?);
    Ok(capabilities)
}
