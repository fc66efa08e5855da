//! What a server makes of every occurrence of a name, in a form that does not depend on the server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::engine::context::RequestContext;
use crate::engine::occurrences::{Elsewhere, Evidence, Explained};
use crate::engine::positions::span_of;
use crate::lsp::LspLocation;
use crate::model::environment::OtherTool;
use crate::model::facts::{Location, UseProvenance};
use crate::model::request::Request;
use crate::path::DocUri;
use crate::python::classes::Classes;
use crate::text::{ColumnUnit, Range};

/// What the other server is asked.
#[derive(Debug, Clone, Serialize)]
pub(in crate::engine) struct Question {
    pub(super) request: Request,
    /// Further definitions that count as the same symbol, by file and byte offset.
    pub(in crate::engine) family: Vec<(DocUri, usize)>,
    /// The unit of columns in the locations of definitions.
    pub(super) unit: ColumnUnit,
}

/// The answer of the other server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::engine) struct Opinion {
    pub(super) tool: Option<OtherTool>,
    /// The digest of what the answer depends on. Not recorded: only the memo needs it.
    #[serde(skip)]
    pub(super) inputs: Option<Digest>,
    /// What it makes of occurrences, sorted by place.
    pub(super) occurrences: Vec<OccurrenceOpinion>,
    pub(super) definitions: Vec<DefinitionOpinion>,
}

/// What a server makes of one occurrence.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OccurrenceOpinion {
    pub(super) uri: DocUri,
    /// The name, in bytes.
    pub(super) span: (usize, usize),
    pub(super) claim: Claim,
}

/// What an occurrence is for a server, and for lanser's rules about its answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Claim {
    /// The symbol.
    Reference { provenance: Option<UseProvenance>, via: Option<String>, structural: bool },
    /// Another symbol, to which the server resolves it; whether nothing else is possible.
    Defined { name: String, certain: bool },
    /// Not the symbol, by a rule.
    Otherwise,
    /// Not known; the reason.
    Unresolved(String),
}

/// A definition that a server reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct DefinitionOpinion {
    /// The name, in bytes.
    pub(super) span: (usize, usize),
    /// Module and qualified name; `None` if no definition in a module or class is there.
    pub(super) symbol: Option<String>,
    pub(super) location: Location,
}

impl Opinion {
    /// The identity of the server, and the digest of what its answer depends on.
    pub(in crate::engine) const fn source(&self) -> (Option<&OtherTool>, Option<Digest>) {
        (self.tool.as_ref(), self.inputs)
    }

    /// What the server of a context makes of every occurrence.
    pub(in crate::engine) fn of_occurrences(cx: &RequestContext<'_>, explained: &Explained) -> Self {
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
        Self { occurrences: occurrences.collect(), ..Self::default() }
    }

    /// The definitions that the server of a context reports, with columns in a unit.
    pub(in crate::engine) fn of_definitions(
        cx: &RequestContext<'_>,
        places: &[LspLocation],
        question: &Question,
    ) -> Self {
        let definitions = places.iter().filter_map(|place| {
            let (document, span) = span_of(cx, place)?;
            let range = document.lines.range(&document.text, span.clone(), question.unit);
            let location = Location { range, ..cx.locations.location(place) };
            let symbol = symbol_at(cx, place);
            Some(DefinitionOpinion { span: (span.start, span.end), symbol, location })
        });
        Self { definitions: definitions.collect(), ..Self::default() }
    }
}

/// The module and qualified name of the definition at a place.
pub(super) fn symbol_at(cx: &RequestContext<'_>, place: &LspLocation) -> Option<String> {
    let (document, span) = span_of(cx, place)?;
    let roots = &cx.state.inputs.roots;
    let module = roots.name_of_any(&document.path)?;
    if place.range == Range::default() {
        return Some(module);
    }
    let defined = Classes::new(&cx.state.files, roots).defined_at(&document.path, span.start)?;
    Some(format!("{module}.{}", defined.qualname.join(".")))
}
