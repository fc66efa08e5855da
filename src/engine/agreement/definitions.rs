//! Merges the definitions that two servers report.

use crate::engine::context::RequestContext;
use crate::engine::occurrences::symbol_at;
use crate::engine::opinion::{DefinitionOpinion, Opinion};
use crate::engine::positions::span_of;
use crate::lsp::LspLocation;
use crate::model::facts::{Agreement, Location, UseProvenance};
use crate::path::DocUri;
use crate::python::classes::Classes;
use crate::workspace::files::Files as _;

/// Adds to each location which server reports it, and the locations that only the other server reports. `found` are the main
/// server's, each with its place.
pub(in crate::engine) fn merge_definitions(
    cx: &RequestContext<'_>,
    found: Vec<(LspLocation, Location)>,
    opinion: &Opinion,
) -> Vec<Location> {
    let (main, other) = (cx.settings.server, cx.request.options.agree.unwrap_or_default());
    let mut is_matched = vec![false; opinion.definitions.len()];
    let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
    // Two import roots may have modules of the same name.
    let is_twin = |place: &LspLocation, theirs: &DefinitionOpinion| {
        let is_of_server = |uri: &DocUri| matches!(uri, DocUri::Server(_));
        if is_of_server(&cx.locations.paths.uri(&place.path)) || is_of_server(&theirs.location.uri) {
            return true;
        }
        let Some(path) = cx.locations.paths.absolute(&theirs.location.uri) else { return false };
        classes.stub_or_source(&place.path).as_ref() == Some(&path)
            || classes.stub_or_source(&path).as_ref() == Some(&place.path)
    };
    let mut merged = Vec::new();
    for (place, location) in found {
        let symbol = symbol_at(cx, &classes, &place);
        let start = span_of(cx, &place).map(|(_, span)| span.start);
        let is_same = |theirs: &DefinitionOpinion| match theirs.location.uri == location.uri {
            true => start == Some(theirs.span.0),
            // A stub and its source, or the stubs that each server has.
            false => symbol.is_some() && symbol == theirs.symbol && is_twin(&place, theirs),
        };
        let mut agreement = Agreement::from(main);
        for (theirs, is_matched) in opinion.definitions.iter().zip(&mut is_matched) {
            if is_same(theirs) {
                (agreement, *is_matched) = (Agreement::Both, true);
            }
        }
        merged.push(Location { agreement: Some(agreement), ..location });
    }
    let only_theirs = opinion.definitions.iter().zip(is_matched).filter(|(_, is_matched)| !is_matched);
    merged.extend(only_theirs.map(|(theirs, _)| Location {
        agreement: Some(other.into()),
        provenance: Some(theirs.location.provenance.unwrap_or(UseProvenance::OtherServer)),
        ..local(cx, theirs)
    }));
    merged
}

/// The other server's location as this server's context describes it; as it is if its file is the other server's own.
fn local(cx: &RequestContext<'_>, theirs: &DefinitionOpinion) -> Location {
    let own = || {
        if matches!(theirs.location.uri, DocUri::Server(_)) {
            return None;
        }
        let path = cx.locations.paths.absolute(&theirs.location.uri)?;
        let document = cx.state.files.read(&path).ok()?;
        let is_place = document.text.get(theirs.span.0..theirs.span.1).is_some();
        let range =
            document.lines.range(&document.text, theirs.span.0..theirs.span.1, cx.locations.server_unit);
        (is_place && range == theirs.location.range)
            .then(|| cx.locations.location(&LspLocation { path, range }))
    };
    own().unwrap_or_else(|| theirs.location.clone())
}
