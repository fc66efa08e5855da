//! Locates anchors without a version: by the snippet, its context hash, and similarity.

use super::past::snippet_spans;
use super::{
    Ambiguous, DOUBTFUL_SCORE, LocateOutcome, LocatedTarget, ResolutionEvidence, ResolveContext, ResolvedVia,
    decide, unreadable,
};
use crate::path::{AbsPath, WorkspacePath};
use crate::python::not_found::{NotFound, NotFoundReason};
use crate::python::outline::{DefinitionKind, Span};
use crate::python::position;
use crate::relocate::anchor::{exact, header_of, matching_headers, specificity, windows};
use crate::relocate::index::IndexEntry;
use crate::relocate::structure::is_compound;
use crate::relocate::{MatchFeatures, TargetChange, module_similarity};
use crate::selector::{AnchorSpec, ContextHash};
use crate::text::words::words;
use crate::workspace::files::Document;
use std::sync::Arc;

/// Snippets with fewer names and literals occur in many places by chance.
const MIN_SPECIFICITY: usize = 4;
/// The most files that are searched for a snippet that is not in its own file.
const MAX_FILES: usize = 64;
/// The most words of a snippet by which files are selected.
const MAX_WORDS: usize = 12;

/// Locates an anchor.
pub(super) fn anchor(cx: &ResolveContext<'_>, spec: &AnchorSpec, path: Option<&AbsPath>) -> LocateOutcome {
    let read = path.map(|path| cx.files.read(path));
    let Some(read) = read else {
        return LocateOutcome::NotFound(NotFound::new(NotFoundReason::Other {
            reason: "the selector names no file".to_owned(),
        }));
    };
    let missing = match read {
        Ok(document) => {
            if let Some(answer) = in_file(cx, spec, &document) {
                return answer;
            }
            None
        }
        Err(error @ crate::workspace::files::ReadError::Missing { .. }) => Some(error),
        Err(error) => return unreadable(error),
    };
    in_other_files(cx, spec, path, missing)
}

/// Whether an occurrence of a snippet has the context that the selector describes.
pub(super) fn has_context(text: &str, span: &Span, spec: &AnchorSpec) -> bool {
    spec.hash.is_some() && ContextHash::of(text, span.clone(), spec.ctx) == spec.hash
}

fn with_evidence(
    cx: &ResolveContext<'_>,
    document: &Arc<Document>,
    span: Span,
    evidence: ResolutionEvidence,
) -> LocatedTarget {
    let target = position::resolve_span(cx.files, cx.roots, document, span, None);
    LocatedTarget { target, evidence }
}

/// Why a snippet that occurs once, but in another context, may be a different target.
fn doubt(text: &str, snippet: &str) -> Option<&'static str> {
    match header_of(snippet) {
        None => {
            (specificity(snippet) < MIN_SPECIFICITY).then_some("it is short, and its context is different")
        }
        // The intended header may have been edited, so that this is another definition of the name.
        Some((name, is_class)) => (matching_headers(text, snippet, &name, is_class).len() > 1)
            .then_some("its context is different, and the file defines the name more than once"),
    }
}

/// Locates the snippet in its own file; `None` if nothing there is similar.
fn in_file(cx: &ResolveContext<'_>, spec: &AnchorSpec, document: &Arc<Document>) -> Option<LocateOutcome> {
    let text = &document.text;
    let found = snippet_spans(text, spec);
    let fits = |span: &Span| has_context(text, span, spec);
    let letters = exact(text, &spec.snippet).len();
    if let [span] = found.as_slice() {
        let same_letters = text.get(span.clone()) == Some(&spec.snippet);
        let mut evidence = match (fits(span), same_letters) {
            (true, _) if letters == 1 => ResolutionEvidence::certain(
                ResolvedVia::Snippet,
                "the snippet occurs once in the file, in the same context",
            ),
            (true, _) => {
                let features = MatchFeatures { proximity: 0.9, ..MatchFeatures::SAME };
                ResolutionEvidence::scored(
                    ResolvedVia::Snippet,
                    features,
                    "the one of several occurrences with the same context",
                )
            }
            (false, true) if spec.hash.is_none() => {
                let features = MatchFeatures { proximity: 0.8, ..MatchFeatures::SAME };
                ResolutionEvidence::scored(
                    ResolvedVia::Snippet,
                    features,
                    "the snippet occurs once in the file",
                )
            }
            (false, _) => {
                let features = MatchFeatures { proximity: 0.0, ..MatchFeatures::SAME };
                ResolutionEvidence::scored(
                    ResolvedVia::Snippet,
                    features,
                    "the snippet occurs once in the file, in another context",
                )
            }
        };
        if !evidence.certified
            && spec.hash.is_some()
            && !fits(span)
            && let Some(doubt) = doubt(text, &spec.snippet)
        {
            evidence = evidence.with_doubt(doubt);
            return Some(LocateOutcome::Ambiguous(
                vec![with_evidence(cx, document, span.clone(), evidence)].into(),
            ));
        }
        return Some(LocateOutcome::Found(Box::new(with_evidence(cx, document, span.clone(), evidence))));
    }
    if found.len() > 1 {
        let features = MatchFeatures { proximity: 0.0, ..MatchFeatures::SAME };
        let total = found.len();
        let all = found.into_iter().take(super::MAX_CANDIDATES).map(|span| {
            let mut evidence = ResolutionEvidence::scored(
                ResolvedVia::Snippet,
                features,
                "one of several occurrences of the snippet",
            );
            evidence.margin = 0.0;
            with_evidence(cx, document, span, evidence)
        });
        return Some(LocateOutcome::Ambiguous(Ambiguous { places: all.collect(), total }));
    }
    let mut candidates = Vec::new();
    if let Some((name, is_class)) = header_of(&spec.snippet) {
        for (span, features) in matching_headers(text, &spec.snippet, &name, is_class) {
            let via = ResolvedVia::Since(TargetChange::SignatureChanged);
            let reason = format!("the header of {name} was edited");
            candidates.push(with_evidence(
                cx,
                document,
                span,
                ResolutionEvidence::scored(via, features, reason),
            ));
        }
    } else {
        for (span, features) in windows(text, &spec.snippet) {
            let via = ResolvedVia::Since(TargetChange::Edited);
            let features = MatchFeatures { proximity: 0.0, ..features };
            candidates.push(with_evidence(
                cx,
                document,
                span,
                ResolutionEvidence::scored(via, features, "most similar to the snippet"),
            ));
        }
    }
    let none = || NotFound::new(NotFoundReason::Other { reason: String::new() });
    match decide(candidates, none) {
        LocateOutcome::NotFound(_) => None,
        answer => Some(answer),
    }
}

/// Locates the snippet in the other files of the workspace.
fn in_other_files(
    cx: &ResolveContext<'_>,
    spec: &AnchorSpec,
    path: Option<&AbsPath>,
    missing: Option<crate::workspace::files::ReadError>,
) -> LocateOutcome {
    let own = path.and_then(|path| cx.relative(path));
    let from = own.as_ref().map(ToString::to_string).unwrap_or_default();
    let head = header_of(&spec.snippet);
    let mut candidates = Vec::new();
    for other in candidate_files(cx, spec, own.as_ref()) {
        let Ok(document) = cx.files.read(&cx.snapshot.absolute(&other)) else { continue };
        let module = module_similarity(&from, other.as_str());
        let via = ResolvedVia::Since(TargetChange::Moved);
        let mut found: Vec<(Span, MatchFeatures, &str)> = Vec::new();
        for span in snippet_spans(&document.text, spec) {
            let same_context =
                spec.hash.is_some() && ContextHash::of(&document.text, span.clone(), spec.ctx) == spec.hash;
            let proximity = if same_context { 1.0 } else { 0.0 };
            found.push((
                span,
                MatchFeatures { module, proximity, ..MatchFeatures::SAME },
                "the snippet occurs in this file now",
            ));
        }
        if let (true, Some((name, is_class))) = (found.is_empty(), &head) {
            for (span, features) in matching_headers(&document.text, &spec.snippet, name, *is_class) {
                let features = MatchFeatures { module, proximity: 0.0, ..features };
                found.push((span, features, "a definition with the same name"));
            }
        }
        for (span, features, reason) in found {
            let mut evidence = ResolutionEvidence::scored(via, features, reason);
            let specificity = specificity(&spec.snippet);
            let other_context = spec.hash.is_some() && evidence.features.is_none_or(|it| it.proximity < 1.0);
            // A short snippet in another file, or a name in another context, is likely something else.
            if (head.is_none() && specificity < MIN_SPECIFICITY)
                || (other_context && specificity <= MIN_SPECIFICITY)
            {
                evidence.score = evidence.score.min(DOUBTFUL_SCORE);
            }
            candidates.push(with_evidence(cx, &document, span, evidence));
        }
    }
    // A single occurrence in the whole workspace is accepted even if the module paths are not similar.
    if let [only] = candidates.as_mut_slice()
        && specificity(&spec.snippet) >= MIN_SPECIFICITY
        && only.evidence.score > DOUBTFUL_SCORE
    {
        only.evidence.score = only.evidence.score.max(0.76);
    }
    decide(candidates, || match missing {
        Some(error) => NotFound::new(NotFoundReason::Unreadable(error)),
        None => {
            let reason =
                "neither the snippet nor similar text was found in the file or in other files".to_owned();
            NotFound::new(NotFoundReason::Other { reason })
        }
    })
}

/// The other files that may contain the snippet: those that define the name in its header, or those with all of its words.
fn candidate_files(
    cx: &ResolveContext<'_>,
    spec: &AnchorSpec,
    own: Option<&WorkspacePath>,
) -> Vec<WorkspacePath> {
    let others = |paths: &mut dyn Iterator<Item = WorkspacePath>| {
        paths.filter(|path| Some(path) != own).take(MAX_FILES).collect()
    };
    if let Some((name, is_class)) = header_of(&spec.snippet) {
        let is_it =
            |entry: &IndexEntry| is_compound(entry.kind) && (entry.kind == DefinitionKind::Class) == is_class;
        let named = cx.definitions().named(&name).into_iter().filter(|(_, entry)| is_it(entry));
        let mut paths: Vec<WorkspacePath> = named.map(|(path, _)| path).collect();
        paths.dedup();
        return others(&mut paths.into_iter());
    }
    let mut distinct: Vec<&[u8]> = words(spec.snippet.as_bytes()).filter(|word| word.len() > 2).collect();
    // Long words are rare, so that few files are left early.
    distinct.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    distinct.dedup();
    let mut holding: Option<Vec<WorkspacePath>> = None;
    for word in distinct.into_iter().filter_map(|word| std::str::from_utf8(word).ok()).take(MAX_WORDS) {
        let found = cx.snapshot.files_with_word(word, cx.threads, cx.tape);
        let both = match holding.take() {
            None => found,
            // Both lists are sorted by path.
            Some(before) => before.into_iter().filter(|path| found.binary_search(path).is_ok()).collect(),
        };
        let is_nowhere = both.is_empty();
        holding = Some(both);
        if is_nowhere {
            break;
        }
    }
    // Saves the index, so that the next process does not read all files again.
    cx.snapshot.save_index();
    others(&mut holding.unwrap_or_default().into_iter())
}
