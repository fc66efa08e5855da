//! Anchors without a version: the snippet, its context hash, and what is most like it.

use super::past::snippets;
use super::{Answer, DOUBTFUL, Evidence, Located, Several, Way, World, decide, unreadable};
use crate::path::{AbsPath, WorkspacePath};
use crate::resolve::index::Entry;
use crate::resolve::near::{Near, Reason};
use crate::resolve::outline::{DefinitionKind, Span};
use crate::resolve::place;
use crate::resolve::relocate::anchor::{exact, head_of, heads, weight, windows};
use crate::resolve::relocate::side::is_compound;
use crate::resolve::relocate::{Features, Happened, module_likeness};
use crate::selector::{AnchorSpec, ContextHash};
use crate::text::words::words;
use crate::workspace::files::Document;
use std::sync::Arc;

/// Snippets with fewer names and literals stand by chance in many places.
const TELLING: usize = 4;
/// How many files are searched for a snippet that left its own.
const MAX_FILES: usize = 64;
/// By how many words the files are chosen.
const MAX_WORDS: usize = 12;

/// Locates an anchor.
pub(super) fn anchor(world: &World<'_>, spec: &AnchorSpec, path: Option<&AbsPath>) -> Answer {
    let read = path.map(|path| world.files.read(path));
    let Some(read) = read else {
        return Answer::NotFound(Near::because(Reason::Gone { reason: "no file is named".to_owned() }));
    };
    let missing = match read {
        Ok(document) => {
            if let Some(answer) = in_file(world, spec, &document) {
                return answer;
            }
            None
        }
        Err(error @ crate::workspace::files::ReadError::Missing { .. }) => Some(error),
        Err(error) => return unreadable(error),
    };
    elsewhere(world, spec, path, missing)
}

fn located(world: &World<'_>, document: &Arc<Document>, span: Span, evidence: Evidence) -> Located {
    let target = place::stretch(world.files, world.roots, document, span, None);
    Located { target, evidence }
}

/// Why a snippet that stands once, but in another context, is as likely another place.
fn doubt(text: &str, snippet: &str) -> Option<&'static str> {
    match head_of(snippet) {
        None => (weight(snippet) < TELLING).then_some("it is short and stands in another context"),
        // The head that is meant may be one that was edited.
        Some((name, is_class)) => (heads(text, snippet, &name, is_class).len() > 1)
            .then_some("it stands in another context, and the name is defined elsewhere in the file too"),
    }
}

/// The snippet in its own file; `None` when nothing there is like it.
fn in_file(world: &World<'_>, spec: &AnchorSpec, document: &Arc<Document>) -> Option<Answer> {
    let text = &document.text;
    let found = snippets(text, spec);
    let fits =
        |span: &Span| spec.hash.is_some() && ContextHash::of(text, span.clone(), spec.ctx) == spec.hash;
    let letters = exact(text, &spec.snippet).len();
    if let [span] = found.as_slice() {
        let same_letters = text.get(span.clone()) == Some(&spec.snippet);
        let mut evidence = match (fits(span), same_letters) {
            (true, _) if letters == 1 => {
                Evidence::certain(Way::Snippet, "the snippet stands here once, in the same context")
            }
            (true, _) => {
                let features = Features { proximity: 0.9, ..Features::SAME };
                Evidence::weighed(Way::Snippet, features, "of several the one in the same context")
            }
            (false, true) if spec.hash.is_none() => {
                let features = Features { proximity: 0.8, ..Features::SAME };
                Evidence::weighed(Way::Snippet, features, "the snippet stands here once")
            }
            (false, _) => {
                let features = Features { proximity: 0.0, ..Features::SAME };
                Evidence::weighed(Way::Snippet, features, "the snippet stands here once, in another context")
            }
        };
        if !evidence.certified
            && spec.hash.is_some()
            && !fits(span)
            && let Some(doubt) = doubt(text, &spec.snippet)
        {
            evidence = evidence.doubted(doubt);
            return Some(Answer::Ambiguous(vec![located(world, document, span.clone(), evidence)].into()));
        }
        return Some(Answer::Found(Box::new(located(world, document, span.clone(), evidence))));
    }
    if found.len() > 1 {
        let features = Features { proximity: 0.0, ..Features::SAME };
        let total = found.len();
        let all = found.into_iter().take(super::TOP).map(|span| {
            let mut evidence = Evidence::weighed(Way::Snippet, features, "the snippet stands here too");
            evidence.margin = 0.0;
            located(world, document, span, evidence)
        });
        return Some(Answer::Ambiguous(Several { places: all.collect(), total }));
    }
    let mut candidates = Vec::new();
    if let Some((name, is_class)) = head_of(&spec.snippet) {
        for (span, features) in heads(text, &spec.snippet, &name, is_class) {
            let way = Way::Since(Happened::SignatureChanged);
            let reason = format!("the head of {name} was edited");
            candidates.push(located(world, document, span, Evidence::weighed(way, features, reason)));
        }
    } else {
        for (span, features) in windows(text, &spec.snippet) {
            let way = Way::Since(Happened::Edited);
            let features = Features { proximity: 0.0, ..features };
            candidates.push(located(
                world,
                document,
                span,
                Evidence::weighed(way, features, "most like the snippet"),
            ));
        }
    }
    let none = || Near::because(Reason::Gone { reason: String::new() });
    match decide(candidates, none) {
        Answer::NotFound(_) => None,
        answer => Some(answer),
    }
}

/// The snippet in the other files of the workspace.
fn elsewhere(
    world: &World<'_>,
    spec: &AnchorSpec,
    path: Option<&AbsPath>,
    missing: Option<crate::workspace::files::ReadError>,
) -> Answer {
    let own = path.and_then(|path| world.relative(path));
    let from = own.as_ref().map(ToString::to_string).unwrap_or_default();
    let head = head_of(&spec.snippet);
    let mut candidates = Vec::new();
    for other in likely(world, spec, own.as_ref()) {
        let Ok(document) = world.files.read(&world.snapshot.absolute(&other)) else { continue };
        let module = module_likeness(&from, other.as_str());
        let way = Way::Since(Happened::Moved);
        let mut found: Vec<(Span, Features, &str)> = Vec::new();
        for span in snippets(&document.text, spec) {
            let same_context =
                spec.hash.is_some() && ContextHash::of(&document.text, span.clone(), spec.ctx) == spec.hash;
            let proximity = if same_context { 1.0 } else { 0.0 };
            found.push((
                span,
                Features { module, proximity, ..Features::SAME },
                "the snippet stands here now",
            ));
        }
        if let (true, Some((name, is_class))) = (found.is_empty(), &head) {
            for (span, features) in heads(&document.text, &spec.snippet, name, *is_class) {
                let features = Features { module, proximity: 0.0, ..features };
                found.push((span, features, "a definition of the same name"));
            }
        }
        for (span, features, reason) in found {
            let mut evidence = Evidence::weighed(way, features, reason);
            let weight = weight(&spec.snippet);
            let other_context = spec.hash.is_some() && evidence.features.is_none_or(|it| it.proximity < 1.0);
            // A few words in another file, and a name in another context, are as likely another thing.
            if (head.is_none() && weight < TELLING) || (other_context && weight <= TELLING) {
                evidence.score = evidence.score.min(DOUBTFUL);
            }
            candidates.push(located(world, &document, span, evidence));
        }
    }
    // One place in the whole workspace: its module's name does not have to be alike.
    if let [only] = candidates.as_mut_slice()
        && weight(&spec.snippet) >= TELLING
        && only.evidence.score > DOUBTFUL
    {
        only.evidence.score = only.evidence.score.max(0.76);
    }
    decide(candidates, || match missing {
        Some(error) => Near::because(Reason::Unreadable(error)),
        None => {
            let reason =
                "neither the snippet nor anything like it stands in the file or elsewhere".to_owned();
            Near::because(Reason::Gone { reason })
        }
    })
}

/// The other files that may hold the snippet: those that define the name whose head it is, or those that have all of its
/// words.
fn likely(world: &World<'_>, spec: &AnchorSpec, own: Option<&WorkspacePath>) -> Vec<WorkspacePath> {
    let others = |paths: &mut dyn Iterator<Item = WorkspacePath>| {
        paths.filter(|path| Some(path) != own).take(MAX_FILES).collect()
    };
    if let Some((name, is_class)) = head_of(&spec.snippet) {
        let is_it =
            |entry: &Entry| is_compound(entry.kind) && (entry.kind == DefinitionKind::Class) == is_class;
        let named = world.definitions().named(&name).into_iter().filter(|(_, entry)| is_it(entry));
        let mut paths: Vec<WorkspacePath> = named.map(|(path, _)| path).collect();
        paths.dedup();
        return others(&mut paths.into_iter());
    }
    let mut distinct: Vec<&[u8]> = words(spec.snippet.as_bytes()).filter(|word| word.len() > 2).collect();
    // Long words are rare, and the sooner no file is left the better.
    distinct.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    distinct.dedup();
    let mut holding: Option<Vec<WorkspacePath>> = None;
    for word in distinct.into_iter().filter_map(|word| std::str::from_utf8(word).ok()).take(MAX_WORDS) {
        let found = world.snapshot.files_with_word(word, world.threads, world.tape);
        let both = match holding.take() {
            None => found,
            // Both are in the order of the paths.
            Some(before) => before.into_iter().filter(|path| found.binary_search(path).is_ok()).collect(),
        };
        let is_nowhere = both.is_empty();
        holding = Some(both);
        if is_nowhere {
            break;
        }
    }
    // The next process need not read all files again.
    world.snapshot.keep_index();
    others(&mut holding.unwrap_or_default().into_iter())
}
