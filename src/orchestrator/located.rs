//! Where a selector is, in the words of a bundle: the place in the form that is asked for, and what speaks for it.

use super::places::{Places, preview};
use super::state::{State, Subject};
use crate::digest::Score;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Form, Options};
use crate::model::resolution::{
    Candidate, Features, Hop, Relocation, RelocationRules, Resolution, Resolved, Via,
};
use crate::path::WorkspacePath;
use crate::resolve::locate::{Evidence, Located, Way};
use crate::resolve::relocate::{self, Happened, score};
use crate::resolve::symbol::{self, Outcome};
use crate::resolve::{form, hop};
use crate::selector::{
    AnchorSpec, DocVersion, PositionSpec, QualName, Role, SymbolId, SymbolSpec, SymidSpec,
};

/// The place of a selector.
pub(super) fn resolved(state: &State, subject: &Subject, places: &Places<'_>, options: &Options) -> Resolved {
    let document = &subject.document;
    let (uri, range, mut at) = places.span(document, subject.span.clone());
    let is_name = subject.name_span.as_ref() == Some(&subject.span);
    if !is_name && !subject.span.is_empty() {
        at = places.stretch(document, subject.span.clone());
    }
    let symbol_id = uri.workspace_path().and_then(|path| symbol_id(state, subject, path));
    if let Some(form) = options.form {
        at = in_form(form, state, subject, places, symbol_id.as_ref()).unwrap_or(at);
    }
    let lines = options.preview.unwrap_or(1);
    Resolved {
        uri,
        range,
        at,
        qualname: subject.definition.as_ref().map(|(name, _)| name.clone()),
        symbol_kind: subject.definition.as_ref().map(|(_, kind)| (*kind).to_owned()),
        symbol_id,
        doc_version: document.digest,
        via: via(subject.evidence.way),
        evidence: subject.hops.iter().map(|hop| step(hop, places)).collect(),
        confidence: number(subject.evidence.score),
        certified: subject.evidence.certified,
        relocation: weighed(&subject.evidence),
        preview: (range.start.line..range.start.line.saturating_add(lines))
            .map_while(|line| preview(document, line))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

/// The identity of the definition that a subject is.
fn symbol_id(state: &State, subject: &Subject, path: &WorkspacePath) -> Option<SymbolId> {
    let (qualname, _) = subject.definition.as_ref()?;
    let chain = QualName::parse(qualname)?.names().join(".");
    let offset = subject.name_span.as_ref()?.start;
    let definitions = state.definitions();
    definitions.entry(path, offset, &chain).map(|entry| definitions.id(path, &entry))
}

/// The form that is asked for, where the place has none of that form.
pub(super) fn missing_form(state: &State, places: &Places<'_>, options: &Options) -> Option<ErrorBody> {
    let form = options.form?;
    let subject = state.subject().ok()?;
    let path = places.paths.uri(&subject.document.path);
    let id = path.workspace_path().and_then(|path| symbol_id(state, subject, path));
    if in_form(form, state, subject, places, id.as_ref()).is_some() {
        return None;
    }
    let at = if subject.span.is_empty() {
        places.span(&subject.document, subject.span.clone()).2
    } else {
        places.stretch(&subject.document, subject.span.clone())
    };
    if form == Form::Py
        && let Some(twins) = same_name(state, subject)
    {
        let error = ErrorBody::new(
            ErrorSymbol::NotFound,
            format!("{at} has no name of its own: {} stands for {} definitions", twins.0, twins.1),
        );
        return Some(error.hint("`--as ast`, `--as sym` and `--as cursor` tell just this one"));
    }
    let what = match form {
        Form::Py => "is no definition of the workspace and no part of one",
        Form::Sym => "is not the name of a definition of the workspace",
        Form::Ast => "is no construct of its own",
        Form::Cursor | Form::Anchor => "is empty, or too long to be quoted",
    };
    let error = ErrorBody::new(ErrorSymbol::NotFound, format!("{at} {what}"));
    Some(error.hint("`--as cursor` tells any place, `--as anchor` any stretch that is not very long"))
}

/// A selector of another form for the same place; `None` when the place has none.
fn in_form(
    form: Form,
    state: &State,
    subject: &Subject,
    places: &Places<'_>,
    id: Option<&SymbolId>,
) -> Option<String> {
    let document = &subject.document;
    let spec = match form {
        Form::Cursor => return Some(places.span(document, subject.span.clone()).2),
        Form::Py => {
            let (qualname, _) = subject.definition.as_ref()?;
            let qualname = QualName::parse(qualname)?;
            PositionSpec::Symbol(named(state, subject, &qualname)?)
        }
        // An id is a definition's, and of no part of it.
        Form::Sym if subject.name_span.as_ref() != Some(&subject.span) => return None,
        Form::Sym => {
            // What merely its number tells from its twins is known by the content that it is in.
            let version = id?.ordinal.map(|_| DocVersion::Content(document.digest));
            PositionSpec::Symid(SymidSpec { id: id?.clone(), doc_version: version })
        }
        Form::Ast => {
            let module = subject.module.clone().or_else(|| {
                places.paths.uri(&document.path).workspace_path().map(|path| path.as_str().to_owned())
            });
            let mut path = form::ast(&document.text, &subject.span, &module?)?;
            if !form::is_exact(&document.text, &subject.span, &path) {
                return None;
            }
            // A number among constructs says little once the code has changed; the content that it was counted in says all.
            if path.path.iter().any(|step| step.ordinal().is_some()) {
                path.doc_version = Some(DocVersion::Content(document.digest));
            }
            PositionSpec::Ast(path)
        }
        Form::Anchor => {
            let uri = places.paths.uri(&document.path);
            let (snippet, ctx, hash) = form::snippet(&document.text, &subject.span)?;
            PositionSpec::Anchor(AnchorSpec { uri, snippet, ctx, hash: Some(hash), doc_version: None })
        }
    };
    Some(spec.to_string())
}

/// How many overloads of a name are looked at.
const MOST_OVERLOADS: u32 = 16;

/// The name of a place, with the part and the overload that it is; `None` when the name leads elsewhere.
fn named(state: &State, subject: &Subject, qualname: &QualName) -> Option<SymbolSpec> {
    let roles = [Role::Def, Role::Sig, Role::Body, Role::Doc];
    let overloads = std::iter::once(None).chain((0..MOST_OVERLOADS).map(Some));
    overloads.flat_map(|overload| roles.map(|role| (overload, role))).find_map(|(overload, role)| {
        let spec = SymbolSpec { qualname: qualname.clone(), role, overload, doc_version: None };
        let found = match symbol::symbol(&state.files, &state.ground.roots, &spec) {
            Outcome::Found(found) => found,
            Outcome::Ambiguous(_) | Outcome::NotFound(_) => return None,
        };
        (found.document.path == subject.document.path && found.span == subject.span).then_some(spec)
    })
}

/// The name of a definition that is not the only one of that name, and how many bear it.
fn same_name(state: &State, subject: &Subject) -> Option<(String, usize)> {
    let (name, _) = subject.definition.as_ref()?;
    let qualname = QualName::parse(name)?;
    let spec = SymbolSpec { qualname, role: Role::Def, overload: None, doc_version: None };
    match symbol::symbol(&state.files, &state.ground.roots, &spec) {
        Outcome::Ambiguous(all) => Some((spec_name(&spec), all.len())),
        Outcome::Found(_) | Outcome::NotFound(_) => None,
    }
}

fn spec_name(spec: &SymbolSpec) -> String {
    PositionSpec::Symbol(spec.clone()).to_string()
}

/// One of several places that a selector could mean.
pub(super) fn candidate(located: &Located, places: &Places<'_>) -> Candidate {
    let Located { target, evidence } = located;
    let span = if target.name_span.is_empty() { target.span.clone() } else { target.name_span.clone() };
    let (uri, range, at) = places.span(&target.document, span);
    Candidate {
        uri,
        range,
        at,
        qualname: target.qualname.as_ref().map(ToString::to_string).unwrap_or_default(),
        symbol_kind: target.kind.map_or("unknown", |kind| kind.as_str()).to_owned(),
        score: number(evidence.score),
        features: evidence.features.as_ref().map(features),
        reason: evidence.reason.clone(),
        preview: preview(&target.document, range.start.line).unwrap_or_default(),
    }
}

fn step(hop: &hop::Hop, places: &Places<'_>) -> Hop {
    // The file was read when the step was taken.
    let at = places.files.read(&hop.file).map(|document| places.span(&document, hop.span.clone()).2);
    Hop { step: hop.kind.as_str().to_owned(), at: at.unwrap_or_default(), to: hop.to.clone() }
}

const fn via(way: Way) -> Via {
    match way {
        Way::Coordinates => Via::Coordinates,
        Way::Name => Via::Name,
        Way::Path => Via::Ast,
        Way::Snippet => Via::Anchor,
        Way::Structure => Via::Structure,
        Way::Since(Happened::Unchanged) => Via::Unchanged,
        Way::Since(Happened::Shifted) => Via::Shifted,
        Way::Since(Happened::Edited) => Via::Edited,
        Way::Since(Happened::SignatureChanged) => Via::SignatureChanged,
        Way::Since(Happened::Moved) => Via::Moved,
        Way::Since(Happened::Renamed) => Via::Renamed,
        Way::Since(Happened::Split) => Via::Split,
        Way::Since(Happened::Merged) => Via::Merged,
    }
}

/// What was weighed; nothing for what the words of the selector say by themselves.
fn weighed(evidence: &Evidence) -> Option<Relocation> {
    if evidence.certified && matches!(evidence.way, Way::Coordinates | Way::Name | Way::Path) {
        return None;
    }
    Some(Relocation {
        features: evidence.features.as_ref().map(features),
        score: number(evidence.score),
        margin: number(evidence.margin),
        reason: evidence.reason.clone(),
    })
}

fn features(features: &relocate::Features) -> Features {
    Features {
        ast: number(features.ast),
        module: number(features.module),
        token_jaccard: number(features.token_jaccard),
        proximity: number(features.proximity),
    }
}

fn number(value: f64) -> Score {
    Score::new(value).unwrap_or(Score::ONE)
}

/// By what numbers the places of a resolution were weighed, where some were.
pub(super) fn rules_of(resolution: Option<&Resolution>) -> Option<RelocationRules> {
    let resolution = resolution?;
    let weighed = resolution.resolved.as_ref().is_some_and(|resolved| resolved.relocation.is_some())
        || resolution.disambiguation.iter().any(|candidate| candidate.features.is_some());
    let [ast, module, token_jaccard, proximity] = score::WEIGHTS.map(number);
    weighed.then(|| RelocationRules {
        weights: Features { ast, module, token_jaccard, proximity },
        tau: number(score::THRESHOLD),
        delta: number(score::MARGIN),
        floor: number(score::FLOOR),
        k: score::GRAM,
        w: score::WINDOW,
        normalisation: score::NORMALISATION.to_owned(),
    })
}
