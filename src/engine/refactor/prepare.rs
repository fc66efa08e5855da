//! `prepare-rename`: whether the server accepts a rename at a location.

use std::collections::BTreeMap;

use crate::engine::context::{HandlerOutput, RequestContext};
use crate::engine::failure::Failure;
use crate::engine::positions::{no_result, position};
use crate::engine::request_state::RequestTarget;
use crate::lsp::{LspLocation, RenameTarget};
use crate::model::facts::{Facts, Provenance, Renamable};

/// Answers `prepareRename`.
pub(in crate::engine) async fn prepare(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let capabilities = cx.require("prepareRename", cx.server.client.capabilities().prepare_rename)?;
    let subject = cx.state.target()?;
    cx.open([subject.document.path.clone()])?;
    let offered = offered(cx, subject).await?.ok_or_else(|| no_result(cx, subject))?;
    let mut facts = Facts::new(Provenance::Lsp);
    let name = subject.name_span.clone().unwrap_or(subject.span.clone());
    let range = offered.range.unwrap_or_else(|| {
        subject.document.lines.range(&subject.document.text, name, cx.locations.server_unit)
    });
    let place = LspLocation { path: subject.document.path.clone(), range };
    let name = offered.placeholder.or_else(|| subject.name().map(str::to_owned)).unwrap_or_default();
    facts.renamable = Some(Renamable { name, location: cx.locations.location(&place) });
    Ok(HandlerOutput { facts, limits: None, capabilities, refactored: None, error: None })
}

/// The server's answer to `prepareRename`.
pub(super) async fn offered(
    cx: &RequestContext<'_>,
    subject: &RequestTarget,
) -> Result<Option<RenameTarget>, Failure> {
    let requests = cx.requests();
    Ok(requests.prepare_rename(&subject.document.path, position(cx, subject)).await?)
}

/// The capabilities that a rename needs.
pub(super) fn capabilities(cx: &RequestContext<'_>) -> Result<BTreeMap<String, bool>, Failure> {
    let offered = cx.server.client.capabilities();
    let mut capabilities = cx.require("rename", offered.rename)?;
    capabilities.insert("prepareRename".to_owned(), offered.prepare_rename);
    capabilities.extend(cx.require("diagnostic", offered.diagnostic)?);
    capabilities.extend(cx.require("references", offered.references)?);
    Ok(capabilities)
}
