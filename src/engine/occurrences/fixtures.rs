//! Pytest's fixtures: which fixture a parameter means, and what a token is whose receiver is such a parameter.
//!
//! Servers do not know that pytest passes fixtures by name, so in a test `runner.invoke` has no definition. [`super::overlays`]
//! shows the server what the parameter is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::context::RequestContext;
use super::super::failure::Failure;
use super::explainer::Explainer;
use super::overlays::{self, Overlays};
use super::symbol::SearchedSymbol;
use super::{Evidence, Explanation, Token};
use crate::engine::positions::by_name;
use crate::lsp::{Listing, LspLocation};
use crate::model::facts::UseProvenance;
use crate::path::AbsPath;
use crate::python::classes::Classes;
use crate::python::decorated::decorated_parameters_of;
use crate::python::occurrences::OccurrenceKind;
use crate::python::outline::{Imported, Outline};
use crate::python::pytest::{self, Fixture, PytestFile, RequestedFixture};
use crate::python::usage::Usage;
use crate::workspace::files::{Document, FileKind, Files as _};

/// Built-in fixtures whose values are objects of pytest's classes.
const OWN_FIXTURES: [&str; 14] = [
    "monkeypatch",
    "capsys",
    "capfd",
    "capsysbinary",
    "capfdbinary",
    "caplog",
    "recwarn",
    "pytester",
    "testdir",
    "tmp_path_factory",
    "tmpdir_factory",
    "cache",
    "record_property",
    "pytestconfig",
];

/// What a token is that is the name of a fixture's parameter, or that names it in `parametrize`, when the symbol is a fixture; `None` for any other token.
pub(super) fn requested(
    files: &mut PytestFiles<'_>,
    classes: &Classes<'_>,
    symbol: &SearchedSymbol,
    token: &Token,
) -> Option<Explanation> {
    let file = files.read(&token.document.path)?;
    let is_it = |one: &&RequestedFixture| one.span == token.span || one.named.contains(&token.span);
    let requested = file.requested.iter().find(is_it)?.clone();
    if requested.values.is_some() {
        return Some(Explanation::Other);
    }
    let found = files.find(&token.document.path, &requested, classes);
    Some(match found {
        Some((path, fixture)) if symbol.definitions.contains(&(path.clone(), fixture.name_span.start)) => {
            Explanation::Reference(Evidence::rule(UseProvenance::FixtureRequest))
        }
        Some(_) => Explanation::Other,
        // It may come from a plugin, or be imported in a way that is not followed.
        None => Explanation::Unresolved("which fixture pytest passes is unknown".to_owned()),
    })
}

/// Asks again about tokens without a definition, with overlays that give parameters their types. `untyped` says of files that were
/// read before whether they have such parameters.
pub(super) async fn resolve(
    explainer: &Explainer<'_>,
    open: Vec<(Token, String)>,
    untyped: BTreeMap<AbsPath, bool>,
    is_late: bool,
) -> Result<(Vec<(Token, Explanation)>, bool), Failure> {
    let cx = explainer.cx;
    let mut files = PytestFiles { untyped, ..PytestFiles::new(cx) };
    let mut explained = Vec::with_capacity(open.len());
    let mut asked = Vec::new();
    for (token, reason) in open {
        let unresolved = Explanation::Unresolved(reason);
        let is_attribute = token.kind == OccurrenceKind::Attribute;
        if is_attribute && files.is_own_fixture(&token, explainer.classes) {
            explained.push((token, Explanation::Other));
        } else if is_attribute && !is_late && files.has_untyped_parameters(&token.document.path) {
            asked.push((token, unresolved));
        } else {
            explained.push((token, unresolved));
        }
    }
    if asked.is_empty() {
        return Ok((explained, is_late));
    }
    if !cx.server.exclude_others() {
        // Concurrent requests would see the overlays.
        return Err(Failure::NeedsExclusiveServer);
    }
    let wanted: BTreeSet<AbsPath> = asked.iter().map(|(token, _)| token.document.path.clone()).collect();
    let overlays = Overlays::build(&mut files, explainer.classes, wanted);
    overlays.show(cx)?;
    let answers = overlays.ask(explainer, asked.clone()).await;
    overlays.hide(cx)?;
    cx.server.admit_others();
    let is_late = match answers {
        Ok(answers) => {
            explained.extend(answers);
            false
        }
        Err(failure) if cx.is_past_deadline(&failure) => {
            explained.extend(asked);
            true
        }
        Err(failure) => return Err(failure),
    };
    explained
        .sort_by(|(a, _), (b, _)| (&a.document.path, a.span.start).cmp(&(&b.document.path, b.span.start)));
    Ok((explained, is_late))
}

/// The definition of a name when parameters of its file have types from overlays, and the source of those types. `None` if the
/// file has no such parameters.
pub(in crate::engine) async fn definition(
    cx: &RequestContext<'_>,
    document: &Arc<Document>,
    offset: usize,
) -> Result<Option<(Listing<LspLocation>, UseProvenance)>, Failure> {
    let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
    let mut files = PytestFiles::new(cx);
    if !files.has_untyped_parameters(&document.path) {
        return Ok(None);
    }
    if !cx.server.exclude_others() {
        // Concurrent requests would see the overlays.
        return Err(Failure::NeedsExclusiveServer);
    }
    let overlays = Overlays::build(&mut files, &classes, BTreeSet::from([document.path.clone()]));
    overlays.show(cx)?;
    let at = overlays.position(cx, document, offset);
    let answer = cx.requests().definition(&document.path, at).await;
    overlays.hide(cx)?;
    cx.server.admit_others();
    Ok(Some((by_name(cx, overlays.mapped(cx, answer?)), overlays::provenance(document, offset))))
}

/// The pytest side of files.
pub(super) struct PytestFiles<'p> {
    cx: &'p RequestContext<'p>,
    /// Whether a file has parameters for which an overlay may know a type.
    untyped: BTreeMap<AbsPath, bool>,
}

impl<'p> PytestFiles<'p> {
    pub(super) const fn new(cx: &'p RequestContext<'p>) -> Self {
        Self { cx, untyped: BTreeMap::new() }
    }

    pub(super) fn read(&self, path: &AbsPath) -> Option<Arc<PytestFile>> {
        self.document(path).map(|document| pytest::of(&document))
    }

    /// Whether a file has parameters for which [`super::overlays`] may know a type.
    pub(super) fn has_untyped_parameters(&mut self, path: &AbsPath) -> bool {
        if let Some(known) = self.untyped.get(path) {
            return *known;
        }
        let has_some = self.document(path).is_some_and(|document| {
            pytest::may_request(path.file_name(), &document.text)
                && self.read(path).is_some_and(|file| file.requested.iter().any(|one| one.is_bare))
                || !decorated_parameters_of(&document).is_empty()
        });
        self.untyped.insert(path.clone(), has_some);
        has_some
    }

    pub(super) fn document(&self, path: &AbsPath) -> Option<Arc<Document>> {
        self.cx.state.files.read(path).ok()
    }

    /// Whether the receiver of a token is a parameter for which pytest passes a built-in object.
    fn is_own_fixture(&mut self, token: &Token, classes: &Classes<'_>) -> bool {
        let Some(name) = token.receiver().and_then(|receiver| receiver.dotted.clone()) else {
            return false;
        };
        if !OWN_FIXTURES.contains(&name.as_str()) {
            return false;
        }
        let usage = Usage::of(&token.document.text);
        let functions = usage.enclosing_functions(token.span.start);
        let path = token.document.path.clone();
        let Some(file) = self.read(&path) else { return false };
        let requested =
            file.requested.iter().find(|one| one.name == name && functions.contains(&one.function));
        let Some(requested) = requested.cloned() else { return false };
        requested.values.is_none() && self.find(&path, &requested, classes).is_none()
    }

    /// The fixture that a parameter of a file means, and its file.
    pub(super) fn find(
        &mut self,
        path: &AbsPath,
        requested: &RequestedFixture,
        classes: &Classes<'_>,
    ) -> Option<(AbsPath, Fixture)> {
        // A fixture that asks for its own name means the one that it takes the place of.
        let is_other =
            |file: &AbsPath, fixture: &Fixture| file != path || fixture.name_span != requested.function;
        let file = self.read(path)?;
        let named = |file: &PytestFile, class: Option<&str>| {
            let all = file.fixtures.iter().rev();
            all.filter(|fixture| fixture.name == requested.name && fixture.class.as_deref() == class)
                .cloned()
                .collect::<Vec<_>>()
        };
        if let Some(class) = &requested.class {
            let own = named(&file, Some(class)).into_iter().find(|fixture| is_other(path, fixture));
            if let Some(fixture) = own {
                return Some((path.clone(), fixture));
            }
            let class = classes.class_named(path, class);
            for above in class.iter().flat_map(|class| classes.ancestors(class)) {
                let place = above.document().path.clone();
                let Some(inherited) = self.read(&place) else { continue };
                if let Some(fixture) = named(&inherited, Some(above.name())).into_iter().next() {
                    return Some((place, fixture));
                }
            }
        }
        if let Some(found) = self.of_module(path, requested, &is_other) {
            return Some(found);
        }
        let root = self.cx.state.inputs.snapshot.root().clone();
        let mut folder = path.parent();
        while folder == root || folder.strip_prefix(&root).is_some() {
            let conftest = folder.join("conftest.py");
            if conftest != *path
                && self.cx.state.files.kind(&conftest) == FileKind::File
                && let Some(found) = self.of_module(&conftest, requested, &is_other)
            {
                return Some(found);
            }
            if folder == root {
                break;
            }
            folder = folder.parent();
        }
        None
    }

    /// The fixture of a module: defined there, or imported.
    fn of_module(
        &mut self,
        path: &AbsPath,
        requested: &RequestedFixture,
        is_other: &dyn Fn(&AbsPath, &Fixture) -> bool,
    ) -> Option<(AbsPath, Fixture)> {
        let file = self.read(path)?;
        let own = file.fixtures.iter().rev().find(|fixture| {
            fixture.name == requested.name && fixture.class.is_none() && is_other(path, fixture)
        });
        if let Some(fixture) = own {
            return Some((path.clone(), fixture.clone()));
        }
        let document = self.cx.state.files.read(path).ok()?;
        let outline = Outline::parse(&document.text);
        let import = outline.imports_of(None).find(|import| import.bound == requested.name)?;
        let Imported::Name(name) = &import.what else { return None };
        let (roots, files) = (&self.cx.state.inputs.roots, &self.cx.state.files);
        let module = roots.imported(files, import, path)?;
        let from = module.source.filter(|from| self.cx.state.is_in_workspace(from) && from != path)?;
        let file = self.read(&from)?;
        let fixture =
            file.fixtures.iter().find(|fixture| fixture.function == *name && fixture.class.is_none())?;
        Some((from, fixture.clone()))
    }
}
