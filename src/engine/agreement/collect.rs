//! Collects the opinion of the server of a context.

use std::collections::BTreeMap;

use crate::engine::context::RequestContext;
use crate::engine::occurrences::{Elsewhere, Evidence, Explained, symbol_at};
use crate::engine::opinion::{Claim, DefinitionOpinion, OccurrenceOpinion, Opinion, Question};
use crate::engine::positions::span_of;
use crate::lsp::LspLocation;
use crate::model::facts::Location;
use crate::path::DocUri;
use crate::python::classes::Classes;

/// How the server of a context explains every occurrence.
pub(in crate::engine) fn opinion_on_occurrences(cx: &RequestContext<'_>, explained: &Explained) -> Opinion {
    let mut found: BTreeMap<(DocUri, usize), (usize, Claim)> = BTreeMap::new();
    let uri = |path| cx.locations.paths.uri(path);
    for ((path, start), (end, elsewhere)) in &explained.elsewhere {
        let claim = match elsewhere {
            Elsewhere::Defined(definition) => {
                Claim::Defined { name: definition.name.clone(), certain: definition.is_certain }
            }
            Elsewhere::Other | Elsewhere::Text | Elsewhere::Related => Claim::Otherwise,
        };
        found.insert((uri(path), *start), (*end, claim));
    }
    for one in &explained.unresolved {
        let key = (uri(&one.token.document.path), one.token.span.start);
        found.insert(key, (one.token.span.end, Claim::Unresolved(one.reason.clone())));
    }
    for (place, evidence) in &explained.references {
        if !cx.state.is_in_workspace(&place.path) || explained.declarations.contains(place) {
            continue;
        }
        let Some((_, span)) = span_of(cx, place) else { continue };
        let Evidence { provenance, via, is_structural } = evidence.clone();
        let claim = Claim::Reference { provenance, via, structural: is_structural };
        found.insert((uri(&place.path), span.start), (span.end, claim));
    }
    let occurrences = found.into_iter().map(|((uri, start), (end, claim))| OccurrenceOpinion {
        uri,
        span: (start, end),
        claim,
    });
    Opinion { occurrences: occurrences.collect(), ..Opinion::default() }
}

/// The definitions that the server of a context reports, with columns in a unit.
pub(in crate::engine) fn opinion_on_definitions(
    cx: &RequestContext<'_>,
    places: &[LspLocation],
    question: &Question,
) -> Opinion {
    let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
    let definitions = places.iter().filter_map(|place| {
        let (document, span) = span_of(cx, place)?;
        let range = document.lines.range(&document.text, span.clone(), question.unit);
        let location = Location { range, ..cx.locations.location(place) };
        let symbol = symbol_at(cx, &classes, place);
        Some(DefinitionOpinion { span: (span.start, span.end), symbol, location })
    });
    Opinion { definitions: definitions.collect(), ..Opinion::default() }
}
