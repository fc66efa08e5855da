//! Makes locations in libraries independent of the files that a server happens to have read (see
//! [`crate::python::stub_source`]).

use super::context::RequestContext;
use super::failure::Failure;
use super::positions::position;
use super::request_state::RequestTarget;
use crate::lsp::{Listing, LspLocation};
use crate::path::AbsPath;
use crate::python::stub_source::{StubSource, stub_source};
use crate::text::Range;

/// The separator between the code and the documentation of a hover.
const SEPARATOR: &str = "\n---\n";

/// Definitions that do not depend on the files that the server has read.
pub(super) async fn definitions(
    cx: &RequestContext<'_>,
    target: &RequestTarget,
    found: Listing<LspLocation>,
) -> Result<Listing<LspLocation>, Failure> {
    let is_library = |place: &&LspLocation| !cx.state.is_in_workspace(&place.path);
    let Listing { mut items, mut skipped } = found;
    if !items.iter().any(|place| is_library(&place)) {
        return Ok(Listing { items, skipped });
    }
    // A location in a stub without a source is what the server has declared; any other location may be a guess.
    let guessed = items
        .iter()
        .filter(is_library)
        .any(|place| matches!(stub_source_of(cx, place), StubSource::OwnModule));
    if guessed && cx.server.client.capabilities().declaration {
        let declared = cx.requests().declaration(&target.document.path, position(cx, target)).await?;
        let certain = |place: &LspLocation| {
            !is_library(&place) || matches!(stub_source_of(cx, place), StubSource::OwnModule)
        };
        if !declared.items.iter().all(certain) {
            (items, skipped) = (declared.items, declared.skipped);
        }
    }
    let mut resolved: Vec<LspLocation> =
        items.into_iter().flat_map(|place| source_or_itself(cx, place)).collect();
    resolved.sort();
    resolved.dedup();
    Ok(Listing { items: resolved, skipped })
}

/// A hover's text without documentation that the server may or may not have found.
///
/// # Errors
/// [`Failure::NeedsFreshServer`] if only a server that has not answered any request gives a reliable text.
pub(super) fn hover(
    cx: &RequestContext<'_>,
    markdown: String,
    declared: &Listing<LspLocation>,
) -> Result<String, Failure> {
    let mut is_uncertain = false;
    for place in declared.items.iter().filter(|place| !cx.state.is_in_workspace(&place.path)) {
        match stub_source_of(cx, place) {
            StubSource::OwnModule | StubSource::Unknown { documented: true } => {}
            StubSource::Unknown { documented: false } => is_uncertain = true,
            StubSource::PurePython(_) => {
                cx.require_fresh()?;
                return Ok(markdown);
            }
        }
    }
    let shortened = if is_uncertain { markdown.split(SEPARATOR).next().map(str::to_owned) } else { None };
    Ok(shortened.unwrap_or(markdown))
}

fn stub_source_of(cx: &RequestContext<'_>, place: &LspLocation) -> StubSource {
    let unit = cx.locations.server_unit;
    stub_source(&cx.state.files, &cx.state.inputs.roots, &place.path, |document| {
        document.lines.offset(&document.text, place.range.start, unit).unwrap_or(document.text.len())
    })
}

fn source_or_itself(cx: &RequestContext<'_>, place: LspLocation) -> Vec<LspLocation> {
    if cx.state.is_in_workspace(&place.path) {
        return vec![place];
    }
    let StubSource::PurePython(found) = stub_source_of(cx, &place) else { return vec![place] };
    let unit = cx.locations.server_unit;
    let at =
        |(document, span): (std::sync::Arc<crate::workspace::files::Document>, std::ops::Range<usize>)| {
            let position = |offset| document.lines.position(&document.text, offset, unit);
            let range = Range { start: position(span.start), end: position(span.end) };
            let path: AbsPath = document.path.clone();
            LspLocation { path, range }
        };
    found.into_iter().map(at).collect()
}
