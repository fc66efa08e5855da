//! Targets that read Python source files: by themselves, and to relocate a selector from an old file to a new one.

use std::sync::Arc;

use lanser::ColumnUnit;
use lanser::internal::path::{AbsPath, WorkspacePath};
use lanser::internal::python::classes::Classes;
use lanser::internal::python::modules::ImportRoots;
use lanser::internal::python::occurrences::occurrences;
use lanser::internal::python::outline::{Definition, Outline};
use lanser::internal::python::scopes::Scopes;
use lanser::internal::python::symbol::{ResolveOutcome, resolve_symbol};
use lanser::internal::python::usage::Usage;
use lanser::internal::python::{decorated, entry_points, line, position, pytest, roles};
use lanser::internal::relocate::anchor::{header_of, matching_headers, same_tokens, windows};
use lanser::internal::relocate::index::{Index, OtherWorkspaceFiles};
use lanser::internal::relocate::{OldContent, OldTarget, RelocationOutcome, relocate};
use lanser::internal::workspace::files::{Document, Files as _, MemoryFiles};
use lanser::selector::{PositionSpec, parse};

use super::Seeds;
use crate::Random;
use crate::inputs::{file, mutated};

pub(super) fn relocation(random: &mut Random, seeds: &Seeds) {
    let sources = &seeds.sources;
    let old = file(random, sources);
    let new = if random.below(3) == 0 { file(random, sources) } else { mutated(random, &old) };
    let other = if random.below(2) == 0 { mutated(random, &old) } else { file(random, sources) };
    let boundary = |mut at: usize| {
        while !old.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = random.below(old.len() + 1);
    let end = (start + random.below(200)).min(old.len());
    let span = boundary(start)..boundary(end).max(boundary(start));
    let document = |path: &str, text: &str| {
        let path = AbsPath::new(path).expect("an absolute path");
        Arc::new(Document::new(path, text.as_bytes().to_vec()))
    };
    let path = |text: &str| WorkspacePath::new(text).expect("a workspace path");
    let (current, elsewhere) = (document("/a.py", &new), document("/b.py", &other));
    let index = Index::of_texts([(path("a.py"), new.as_str()), (path("b.py"), other.as_str())]);
    let own = path("a.py");
    let before = match random.below(3) {
        0 => OldContent::Unknown,
        1 => OldContent::Absent,
        _ => OldContent::Text(mutated(random, &other).into()),
    };
    let others = OtherWorkspaceFiles {
        index: &index,
        own: Some(&own),
        read: |_: &WorkspacePath| Some(elsewhere.clone()),
        before: |_: &WorkspacePath| Some(before.clone()),
    };
    let target = OldTarget { path: "a.py", text: &old, span: span.clone() };
    let current = Some(&current).filter(|_| random.below(5) > 0);
    match relocate(&target, current, &others) {
        RelocationOutcome::Found(place) => assert!(place.document.text.get(place.span).is_some()),
        RelocationOutcome::Ambiguous(places) => {
            assert!(places.into_iter().all(|place| place.document.text.get(place.span).is_some()));
        }
        RelocationOutcome::Gone { .. } => {}
    }
    let snippet = &old[span];
    for (found, _) in windows(&new, snippet) {
        assert!(new.get(found).is_some());
    }
    for found in same_tokens(&new, snippet) {
        assert!(new.get(found).is_some());
    }
    if let Some((name, is_class)) = header_of(snippet) {
        for (found, _) in matching_headers(&new, snippet, &name, is_class) {
            assert!(new.get(found).is_some());
        }
    }
}

/// Everything that is read from the syntax of a file has spans on character boundaries, and selectors of its definitions resolve to
/// places in the files.
pub(super) fn python(random: &mut Random, seeds: &Seeds) {
    let text = file(random, &seeds.sources);
    let other = if random.below(2) == 0 { mutated(random, &text) } else { file(random, &seeds.sources) };
    let stub = if random.below(3) == 0 { mutated(random, &text) } else { String::new() };
    let is_part = |what: &'static str| {
        let text = text.as_str();
        move |span: &std::ops::Range<usize>| {
            assert!(text.get(span.clone()).is_some(), "{what} has {span:?}, which is no part of {text:?}");
        }
    };

    let outline = Outline::parse(&text);
    for Definition { name_span, span, signature, body, doc, other_bases, value, .. } in &outline.definitions {
        [
            Some(name_span),
            Some(span),
            signature.as_ref(),
            body.as_ref(),
            doc.as_ref(),
            value.computed.as_ref(),
        ]
        .into_iter()
        .flatten()
        .chain(other_bases)
        .for_each(is_part("a definition"));
    }
    let names: Vec<&str> = outline.definitions.iter().map(|definition| definition.name.as_str()).collect();
    let name = if names.is_empty() { "x" } else { names[random.below(names.len())] };
    let document =
        Document::new(AbsPath::new("/w/a.py").expect("an absolute path"), text.clone().into_bytes());
    let found = occurrences(&document.text, document.digest, name);
    found.iter().for_each(|occurrence| is_part("an occurrence")(&occurrence.span()));

    let (scopes, usage) = (Scopes::of(&text, &[name, "self"]), Usage::of(&text));
    let bound: Vec<usize> = found.iter().map(|occurrence| occurrence.start).collect();
    scopes.collisions(&bound, "self").iter().for_each(|collision| is_part("a collision")(&collision.span));
    for _ in 0..4 {
        let at = match found.len() {
            0 => random.below(text.len() + 1),
            count => found[random.below(count)].start + random.below(2),
        };
        let at = (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let _ = usage.of_token(at);
        let _ = usage.assigned_call(at);
        usage.receiver(at).iter().for_each(|receiver| is_part("a receiver")(&receiver.span));
        usage.pattern_class(at).iter().for_each(is_part("a pattern"));
        let _ = scopes.at(at);
        scopes.bound_by(at).iter().flatten().for_each(is_part("a binding"));
        let _ = roles::parameter_at(&text, at);
        let _ = roles::overloaded_types(&text, at);
        roles::keywords_of(&text, at).iter().flatten().for_each(|(_, span)| is_part("a keyword")(span));
        roles::parameters_of(&text, at).iter().flatten().for_each(|(_, span)| is_part("a parameter")(span));
        roles::statement_of(&text, at).iter().for_each(is_part("a statement"));
        let _ = roles::object_of(&text, at);
        roles::callee_of(&text, at).iter().for_each(is_part("a callee"));
        let _ = roles::enclosing_call(&text, at);
        let _ = roles::enclosing_class(&text, at);
        let _ = decorated::passed_type(&text, at);
        position::token_at(&text, at).iter().for_each(is_part("a token"));
    }
    let _ = roles::functions_with_parameter(&text, name);
    let _ = decorated::decorated_parameters(&text);
    let _ = pytest::read("test_a.py", &text);
    let _ = entry_points::entry_points(&text);

    let files = MemoryFiles::new([
        ("/w/a.py", text.as_str()),
        ("/w/a.pyi", stub.as_str()),
        ("/w/b/__init__.py", other.as_str()),
    ]);
    let folder = AbsPath::new("/w").expect("an absolute path");
    let roots = ImportRoots::of_folder(folder.clone());
    let classes = Classes::new(&files, &roots);
    let path = folder.join("a.py");
    for definition in outline.definitions.iter().take(20) {
        let _ = classes.defined_at(&path, definition.name_span.start);
        if let Some(class) = classes.class_at(&path, definition.name_span.start) {
            let _ = classes.ancestors(&class);
            let _ = classes.has_unknown_base(&class);
            let _ = classes.subclasses(&class, &|_| vec![path.clone(), folder.join("b/__init__.py")]);
        }
    }
    if outline.definitions.is_empty() {
        return;
    }
    let chain = outline.names(random.below(outline.definitions.len())).join(".");
    let module = if random.below(4) == 0 { "b" } else { "a" };
    if let Ok(PositionSpec::Symbol(spec)) = parse(&format!("py://{module}#{chain}"), ColumnUnit::Codepoint) {
        let places = match resolve_symbol(&files, &roots, &spec) {
            ResolveOutcome::Found(place) => vec![*place],
            ResolveOutcome::Ambiguous(places) => places,
            ResolveOutcome::NotFound(_) => Vec::new(),
        };
        for place in places {
            assert!(place.document.text.get(place.span).is_some());
            assert!(place.document.text.get(place.name_span).is_some());
        }
    }
    let document = files.read(&path).expect("because the file is there");
    let number = u32::try_from(random.below(text.lines().count() + 2)).unwrap_or_default();
    let _ = line::resolve_line(&files, &roots, &document, number);
    line::names_on(&document, number).iter().for_each(is_part("a name of a line"));
}
