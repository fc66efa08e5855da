//! The resolution of a selector in a bundle: its location in the requested form, and the evidence for it.

use super::locations::{LocationBuilder, preview};
use super::request_state::{RequestState, RequestTarget, SelectorOutcome};
use crate::bundle::portable::PathMap;
use crate::digest::Score;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Options, Request, SelectorForm};
use crate::model::resolution::{
    Candidate, DecidingCommit, EvidenceStep, Features, Relocation, RelocationRules, RelocationVia,
    Resolution, Resolved, Via,
};
use crate::path::{AbsPath, WorkspacePath};
use crate::python::outline::Outline;
use crate::python::symbol::{self, ResolveOutcome};
use crate::python::{parsed_file, position, roles, step};
use crate::relocate::locate::{LocatedTarget, MAX_CANDIDATES, ResolutionEvidence, ResolvedVia};
use crate::relocate::selector_forms;
use crate::relocate::trail::TrailStep;
use crate::relocate::{self, TargetChange, score};
use crate::selector::{
    AnchorSpec, DocVersion, Identifier, PositionSpec, QualName, Role, SymbolId, SymbolSpec, SymidSpec,
};
use crate::text::ColumnUnit;
use crate::workspace::files::{DiskFiles, Files as _};

/// Reads and parses the file that a selector probably means, for the cache of parsed files. Blocking.
pub(super) fn parse_ahead(selector: &PositionSpec, root: &AbsPath) {
    let files = DiskFiles::new();
    let read = |path: &AbsPath| files.read(path).ok();
    if let Some(uri) = selector.uri() {
        let path = PathMap::new().workspace(root.clone()).absolute(uri);
        if let Some(document) = path.as_ref().and_then(read) {
            parsed_file::parse_ahead(&document);
        }
    } else if let PositionSpec::Symbol(spec) = selector {
        // Which folders modules are imported from is not known yet; these are the usual ones.
        let stem = spec.qualname.module.as_str().replace('.', "/");
        let places = ["", "src/"]
            .into_iter()
            .flat_map(|folder| ["", "/__init__"].map(|end| root.join(&format!("{folder}{stem}{end}.py"))));
        if let Some(document) = places.into_iter().find_map(|path| read(&path)) {
            let _ = Outline::parse(&document.text);
        }
    }
}

impl RequestState {
    /// The resolution for the bundle, in the default coordinates of LSP.
    pub(super) fn resolution(&self, request: &Request) -> Option<Resolution> {
        let locations = LocationBuilder {
            state: self,
            files: &self.files,
            paths: &self.inputs.paths,
            server_unit: ColumnUnit::Utf16,
            io_unit: request.options.index_io,
            dual: None,
        };
        self.resolution_in(request, &locations)
    }

    /// The resolution for the bundle, in the coordinates of `locations`.
    pub(super) fn resolution_in(
        &self,
        request: &Request,
        locations: &LocationBuilder<'_>,
    ) -> Option<Resolution> {
        request.selector.as_ref()?;
        let mut resolution = Resolution {
            original: request.original(),
            resolved: None,
            disambiguation: Vec::new(),
            candidates: None,
            ambiguous: false,
        };
        match self.resolved.as_ref()? {
            SelectorOutcome::Found(target) => {
                resolution.resolved = Some(resolved(self, target, locations, &request.options));
            }
            SelectorOutcome::Ambiguous(targets) => {
                resolution.ambiguous = true;
                resolution.candidates = Some(u32::try_from(targets.total).unwrap_or(u32::MAX));
                resolution.disambiguation =
                    targets.places.iter().take(MAX_CANDIDATES).map(|one| candidate(one, locations)).collect();
            }
            SelectorOutcome::Failed(_) => {}
        }
        Some(resolution)
    }
}

/// The location that a selector resolved to.
pub(super) fn resolved(
    state: &RequestState,
    target: &RequestTarget,
    locations: &LocationBuilder<'_>,
    options: &Options,
) -> Resolved {
    let document = &target.document;
    let (uri, range, mut at) = locations.span(document, target.span.clone());
    let is_name = target.name_span.as_ref() == Some(&target.span);
    if !is_name && !target.span.is_empty() {
        at = locations.range_selector(document, target.span.clone());
    }
    let symbol_id = uri.workspace_path().and_then(|path| symbol_id(state, target, path));
    if let Some(form) = options.form {
        at = in_form(form, state, target, locations, symbol_id.as_ref()).unwrap_or(at);
    }
    let lines = options.preview.unwrap_or(1);
    Resolved {
        uri,
        range,
        at,
        qualname: target.definition.as_ref().map(|(name, _)| name.clone()),
        symbol_kind: target.definition.as_ref().map(|(_, kind)| (*kind).to_owned()),
        symbol_id,
        doc_version: document.digest,
        via: via(target.evidence.via),
        evidence: target.steps.iter().map(|hop| step(hop, locations)).collect(),
        confidence: score_of(target.evidence.score),
        certified: target.evidence.certified,
        relocation: relocation(&target.evidence),
        preview: (range.start.line..range.start.line.saturating_add(lines))
            .map_while(|line| preview(document, line))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

/// The id of the target, if it is a definition.
fn symbol_id(state: &RequestState, target: &RequestTarget, path: &WorkspacePath) -> Option<SymbolId> {
    let (qualname, _) = target.definition.as_ref()?;
    let chain = QualName::parse(qualname)?.names().join(".");
    let offset = target.name_span.as_ref()?.start;
    let definitions = state.definitions();
    definitions.entry(path, offset, &chain).map(|entry| definitions.id(path, &entry))
}

/// An error if the target cannot be expressed in the requested form.
pub(super) fn missing_form(
    state: &RequestState,
    locations: &LocationBuilder<'_>,
    options: &Options,
) -> Option<ErrorBody> {
    let form = options.form?;
    let target = state.target().ok()?;
    let path = locations.paths.uri(&target.document.path);
    let id = path.workspace_path().and_then(|path| symbol_id(state, target, path));
    if in_form(form, state, target, locations, id.as_ref()).is_some() {
        return None;
    }
    let at = if target.span.is_empty() {
        locations.span(&target.document, target.span.clone()).2
    } else {
        locations.range_selector(&target.document, target.span.clone())
    };
    if form == SelectorForm::Py
        && let Some(shared_name) = same_name(state, target)
    {
        let error = ErrorBody::new(
            ErrorSymbol::NotFound,
            format!("{at} has no unique name: {} matches {} definitions", shared_name.0, shared_name.1),
        );
        return Some(error.hint("use `--as ast`, `--as sym` or `--as cursor`, which identify a single one"));
    }
    let what = match form {
        SelectorForm::Py => "is neither a definition of the workspace nor a part or a parameter of one",
        SelectorForm::Sym => "is not the name of a definition of the workspace",
        SelectorForm::Ast => "is not a single syntactic construct",
        SelectorForm::Cursor | SelectorForm::Anchor => "is empty, or too long to be quoted",
    };
    let error = ErrorBody::new(ErrorSymbol::NotFound, format!("{at} {what}"));
    Some(error.hint("`--as cursor` can express any location, `--as anchor` any short span of text"))
}

/// A selector of another form for the same target; `None` if it cannot be expressed in that form.
fn in_form(
    form: SelectorForm,
    state: &RequestState,
    target: &RequestTarget,
    locations: &LocationBuilder<'_>,
    id: Option<&SymbolId>,
) -> Option<String> {
    let document = &target.document;
    let spec = match form {
        SelectorForm::Cursor => return Some(locations.span(document, target.span.clone()).2),
        SelectorForm::Py => {
            let spec = match target.definition.as_ref() {
                Some((qualname, _)) => named(state, target, &QualName::parse(qualname)?, None)?,
                None => parameter(state, target)?,
            };
            PositionSpec::Symbol(spec)
        }
        // An id identifies a definition, not a part of it.
        SelectorForm::Sym if target.name_span.as_ref() != Some(&target.span) => return None,
        SelectorForm::Sym => {
            // An ordinal that distinguishes definitions of one name is only valid with the content in which it was
            // counted.
            let version = id?.ordinal.map(|_| DocVersion::Content(document.digest));
            PositionSpec::Symid(SymidSpec { id: id?.clone(), doc_version: version })
        }
        SelectorForm::Ast => {
            let module = target.module.clone().or_else(|| {
                locations.paths.uri(&document.path).workspace_path().map(|path| path.as_str().to_owned())
            });
            let mut path = selector_forms::ast(&document.text, &target.span, &module?)?;
            if !selector_forms::is_exact(&document.text, &target.span, &path) {
                return None;
            }
            // An ordinal among constructs is only reliable with the content in which it was counted.
            if path.path.iter().any(|step| step.ordinal().is_some()) {
                path.doc_version = Some(DocVersion::Content(document.digest));
            }
            PositionSpec::Ast(path)
        }
        SelectorForm::Anchor => {
            let uri = locations.paths.uri(&document.path);
            let (snippet, ctx, hash) = selector_forms::snippet(&document.text, &target.span)?;
            PositionSpec::Anchor(AnchorSpec { uri, snippet, ctx, hash: Some(hash), doc_version: None })
        }
    };
    Some(spec.to_string())
}

/// At most this many overloads of a name are tried.
const MAX_OVERLOADS: u32 = 16;

/// The symbol selector of a target, with the role and the overload; `None` if it resolves elsewhere.
fn named(
    state: &RequestState,
    target: &RequestTarget,
    qualname: &QualName,
    param: Option<&Identifier>,
) -> Option<SymbolSpec> {
    let roles = [Role::Def, Role::Sig, Role::Body, Role::Doc];
    let overloads = std::iter::once(None).chain((0..MAX_OVERLOADS).map(Some));
    overloads.flat_map(|overload| roles.map(|role| (overload, role))).find_map(|(overload, role)| {
        let spec = SymbolSpec {
            qualname: qualname.clone(),
            param: param.cloned(),
            role,
            overload,
            doc_version: None,
        };
        let found = match symbol::resolve_symbol(&state.files, &state.inputs.roots, &spec) {
            ResolveOutcome::Found(found) => found,
            ResolveOutcome::Ambiguous(_) | ResolveOutcome::NotFound(_) => return None,
        };
        (found.document.path == target.document.path && found.span == target.span).then_some(spec)
    })
}

/// The symbol selector of a parameter, by its function.
fn parameter(state: &RequestState, target: &RequestTarget) -> Option<SymbolSpec> {
    let name = target.name_span.clone()?;
    let function = roles::parameter_at(&target.document.text, name.start)?.function?;
    let (files, roots) = (&state.files, &state.inputs.roots);
    let function = position::resolve_span(files, roots, &target.document, function.clone(), Some(function));
    let param = Identifier::new(target.document.text.get(name)?)?;
    named(state, target, &function.qualname?, Some(&param))
}

/// The name that several definitions share, and their number; `None` if the name is unique.
fn same_name(state: &RequestState, target: &RequestTarget) -> Option<(String, usize)> {
    let (name, _) = target.definition.as_ref()?;
    let qualname = QualName::parse(name)?;
    let spec = SymbolSpec { qualname, param: None, role: Role::Def, overload: None, doc_version: None };
    match symbol::resolve_symbol(&state.files, &state.inputs.roots, &spec) {
        ResolveOutcome::Ambiguous(all) => Some((spec_name(&spec), all.len())),
        ResolveOutcome::Found(_) | ResolveOutcome::NotFound(_) => None,
    }
}

fn spec_name(spec: &SymbolSpec) -> String {
    PositionSpec::Symbol(spec.clone()).to_string()
}

/// One of several candidates for a selector.
pub(super) fn candidate(located: &LocatedTarget, locations: &LocationBuilder<'_>) -> Candidate {
    let LocatedTarget { target, evidence } = located;
    let span = if target.name_span.is_empty() { target.span.clone() } else { target.name_span.clone() };
    let (uri, range, at) = locations.span(&target.document, span);
    Candidate {
        uri,
        range,
        at,
        qualname: target.qualname.as_ref().map(ToString::to_string),
        symbol_kind: target.kind.map(|kind| kind.as_str().to_owned()),
        score: score_of(evidence.score),
        features: evidence.features.as_ref().map(features),
        reason: evidence.reason.clone(),
        preview: preview(&target.document, range.start.line).unwrap_or_default(),
    }
}

fn step(hop: &step::ResolutionStep, locations: &LocationBuilder<'_>) -> EvidenceStep {
    // The file was read when the step was taken.
    let at = locations.files.read(&hop.file).map(|document| locations.span(&document, hop.span.clone()).2);
    EvidenceStep { step: hop.kind.as_str().to_owned(), at: at.unwrap_or_default(), to: hop.to.clone() }
}

const fn via(way: ResolvedVia) -> Via {
    match way {
        ResolvedVia::Coordinates => Via::Coordinates,
        ResolvedVia::Name => Via::Name,
        ResolvedVia::Path => Via::Ast,
        ResolvedVia::Snippet => Via::Anchor,
        ResolvedVia::Structure => Via::Structure,
        ResolvedVia::Since(TargetChange::Unchanged) => Via::Unchanged,
        ResolvedVia::Since(TargetChange::Shifted) => Via::Shifted,
        ResolvedVia::Since(TargetChange::Edited) => Via::Edited,
        ResolvedVia::Since(TargetChange::SignatureChanged) => Via::SignatureChanged,
        ResolvedVia::Since(TargetChange::Moved) => Via::Moved,
        ResolvedVia::Since(TargetChange::Renamed) => Via::Renamed,
        ResolvedVia::Since(TargetChange::Split) => Via::Split,
        ResolvedVia::Since(TargetChange::Merged) => Via::Merged,
    }
}

/// The scores of a relocation; `None` for a selector that was resolved exactly as written.
fn relocation(evidence: &ResolutionEvidence) -> Option<Relocation> {
    if evidence.certified
        && matches!(evidence.via, ResolvedVia::Coordinates | ResolvedVia::Name | ResolvedVia::Path)
    {
        return None;
    }
    Some(Relocation {
        features: evidence.features.as_ref().map(features),
        score: score_of(evidence.score),
        margin: score_of(evidence.margin),
        reason: evidence.reason.clone(),
        via: evidence.followed_history.then_some(RelocationVia::History),
        commits: evidence.trail.iter().map(deciding_commit).collect(),
    })
}

fn deciding_commit(step: &TrailStep) -> DecidingCommit {
    DecidingCommit {
        commit: step.by.clone(),
        via: via(ResolvedVia::Since(step.change)),
        score: score_of(step.score()),
        reason: step.reason.clone(),
    }
}

fn features(features: &relocate::MatchFeatures) -> Features {
    Features {
        ast: score_of(features.ast),
        module: score_of(features.module),
        token_jaccard: score_of(features.token_jaccard),
        proximity: score_of(features.proximity),
    }
}

fn score_of(value: f64) -> Score {
    Score::new(value).unwrap_or(Score::ONE)
}

/// The weights and thresholds behind the scores of a resolution, if it has any.
pub(super) fn rules_of(resolution: Option<&Resolution>) -> Option<RelocationRules> {
    let resolution = resolution?;
    let is_relocated = resolution.resolved.as_ref().is_some_and(|resolved| resolved.relocation.is_some())
        || resolution.disambiguation.iter().any(|candidate| candidate.features.is_some());
    let [ast, module, token_jaccard, proximity] = score::WEIGHTS.map(score_of);
    is_relocated.then(|| RelocationRules {
        weights: Features { ast, module, token_jaccard, proximity },
        tau: score_of(score::THRESHOLD),
        delta: score_of(score::MARGIN),
        floor: score_of(score::MIN_CANDIDATE_SCORE),
        k: score::GRAM_TOKENS,
        w: score::WINDOW_GRAMS,
        normalization: score::NORMALIZATION.to_owned(),
    })
}
