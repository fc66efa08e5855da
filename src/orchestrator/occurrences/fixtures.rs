//! Pytest's fixtures: which fixture a parameter means, and what a token is whose receiver is one.
//!
//! No server knows that pytest passes fixtures by name, so in a test `runner.invoke` leads nowhere. The value of the fixture
//! is given to the parameter as a default, in texts that are shown to the server in place of the files: Pyright infers the
//! type of a parameter without an annotation from its default. A fixture of another file is imported relative to the file,
//! its decorator is wrapped in a call of an unknown name, which Pyright ignores. Measured on click with Pyright 1.1.414:
//! 316 parameters, 75 references before and 450 with their types.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::ask::Asking;
use super::super::failure::Failure;
use super::leads::Leads;
use super::symbol::Symbol;
use super::{Evidence, Explanation, Token, WINDOW};
use crate::digest::Digest;
use crate::lsp::{Listing, Place};
use crate::model::facts::UseProvenance;
use crate::path::AbsPath;
use crate::resolve::classes::Classes;
use crate::resolve::occurrences::OccurrenceKind;
use crate::resolve::outline::{Imported, Outline};
use crate::resolve::pytest::{self, Fixture, FixtureKind, PytestFile, Requested};
use crate::resolve::usage::Usage;
use crate::text::{LineIndex, Range};
use crate::workspace::files::{Document, FileKind, Files as _};

/// Fixtures of pytest itself that are objects of its own classes.
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

/// The name that is prefixed to everything that is inserted.
const PREFIX: &str = "__lanser_fixture";

/// What a token is that is the name of a fixture's parameter, when the symbol is a fixture; `None` for any other token.
pub(super) fn requested(
    files: &mut PytestFiles<'_>,
    classes: &Classes<'_>,
    symbol: &Symbol,
    token: &Token,
) -> Option<Explanation> {
    let file = files.read(&token.document.path)?;
    let requested = file.requested.iter().find(|one| one.span == token.span)?.clone();
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

/// Asks once more about tokens that lead nowhere, with the fixtures of their files shown to the server.
pub(super) async fn resolve(
    leads: &Leads<'_>,
    open: Vec<(Token, String)>,
    is_late: bool,
) -> Result<(Vec<(Token, Explanation)>, bool), Failure> {
    let asking = leads.asking;
    let mut files = PytestFiles::new(asking);
    let mut explained = Vec::with_capacity(open.len());
    let mut asked = Vec::new();
    for (token, reason) in open {
        let unresolved = Explanation::Unresolved(reason);
        let is_attribute = token.kind == OccurrenceKind::Attribute;
        if is_attribute && files.is_own_fixture(&token, leads.classes) {
            explained.push((token, Explanation::Other));
        } else if is_attribute && !is_late && files.has_requests(&token.document.path) {
            asked.push((token, unresolved));
        } else {
            explained.push((token, unresolved));
        }
    }
    if asked.is_empty() {
        return Ok((explained, is_late));
    }
    let wanted: BTreeSet<AbsPath> = asked.iter().map(|(token, _)| token.document.path.clone()).collect();
    let overlays = Overlays::build(&mut files, leads.classes, wanted);
    overlays.show(asking)?;
    let answers = overlays.ask(leads, asked.clone()).await;
    overlays.hide(asking)?;
    let is_late = match answers {
        Ok(answers) => {
            explained.extend(answers);
            false
        }
        Err(failure) if asking.is_over(&failure) => {
            explained.extend(asked);
            true
        }
        Err(failure) => return Err(failure),
    };
    explained
        .sort_by(|(a, _), (b, _)| (&a.document.path, a.span.start).cmp(&(&b.document.path, b.span.start)));
    Ok((explained, is_late))
}

/// Where a name leads when the fixtures of its file are known; nothing when that file has none.
pub(in crate::orchestrator) async fn definition(
    asking: &Asking<'_>,
    document: &Arc<Document>,
    offset: usize,
) -> Result<Option<Listing<Place>>, Failure> {
    let classes = Classes::new(&asking.state.files, &asking.state.ground.roots);
    let mut files = PytestFiles::new(asking);
    if !files.has_requests(&document.path) {
        return Ok(None);
    }
    if asking.server.is_shared() {
        // Others would be asked with the texts that are shown.
        return Err(Failure::Company);
    }
    let overlays = Overlays::build(&mut files, &classes, BTreeSet::from([document.path.clone()]));
    overlays.show(asking)?;
    let at = overlays.position(asking, document, offset);
    let answer = asking.questions().definition(&document.path, at).await;
    overlays.hide(asking)?;
    Ok(Some(overlays.mapped(asking, answer?)))
}

/// The pytest side of files, each read once.
pub(super) struct PytestFiles<'p> {
    asking: &'p Asking<'p>,
    read: BTreeMap<AbsPath, Option<Arc<PytestFile>>>,
}

impl<'p> PytestFiles<'p> {
    pub(super) const fn new(asking: &'p Asking<'p>) -> Self {
        Self { asking, read: BTreeMap::new() }
    }

    fn read(&mut self, path: &AbsPath) -> Option<Arc<PytestFile>> {
        if let Some(known) = self.read.get(path) {
            return known.clone();
        }
        let document = self.asking.state.files.read(path).ok();
        let file = document.map(|document| Arc::new(pytest::read(path.file_name(), &document.text)));
        self.read.insert(path.clone(), file.clone());
        file
    }

    fn has_requests(&mut self, path: &AbsPath) -> bool {
        self.read(path).is_some_and(|file| file.requested.iter().any(|one| one.is_bare))
    }

    /// Whether the receiver of a token is a parameter for which pytest passes an object of its own.
    fn is_own_fixture(&mut self, token: &Token, classes: &Classes<'_>) -> bool {
        let usage = Usage::of(&token.document.text);
        let Some(name) = usage.receiver(token.span.start).and_then(|receiver| receiver.dotted) else {
            return false;
        };
        if !OWN_FIXTURES.contains(&name.as_str()) {
            return false;
        }
        let functions = usage.functions_around(token.span.start);
        let path = token.document.path.clone();
        let Some(file) = self.read(&path) else { return false };
        let requested =
            file.requested.iter().find(|one| one.name == name && functions.contains(&one.function));
        let Some(requested) = requested.cloned() else { return false };
        requested.values.is_none() && self.find(&path, &requested, classes).is_none()
    }

    /// The fixture that a parameter of a file means, and its file.
    fn find(
        &mut self,
        path: &AbsPath,
        requested: &Requested,
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
        let root = self.asking.state.ground.snapshot.root().clone();
        let mut folder = path.parent();
        while folder == root || folder.strip_prefix(&root).is_some() {
            let conftest = folder.join("conftest.py");
            if conftest != *path
                && self.asking.state.files.kind(&conftest) == FileKind::File
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
        requested: &Requested,
        is_other: &dyn Fn(&AbsPath, &Fixture) -> bool,
    ) -> Option<(AbsPath, Fixture)> {
        let file = self.read(path)?;
        let own = file.fixtures.iter().rev().find(|fixture| {
            fixture.name == requested.name && fixture.class.is_none() && is_other(path, fixture)
        });
        if let Some(fixture) = own {
            return Some((path.clone(), fixture.clone()));
        }
        let document = self.asking.state.files.read(path).ok()?;
        let outline = Outline::parse(&document.text);
        let import = outline.imports_of(None).find(|import| import.bound == requested.name)?;
        let Imported::Name(name) = &import.what else { return None };
        let (roots, files) = (&self.asking.state.ground.roots, &self.asking.state.files);
        let module = if import.level > 0 {
            roots.relative(files, import.level, &import.module, path)
        } else {
            roots.import(files, &import.module, path)
        };
        let from = module?.source.filter(|from| self.asking.state.is_in_workspace(from) && from != path)?;
        let file = self.read(&from)?;
        let fixture =
            file.fixtures.iter().find(|fixture| fixture.function == *name && fixture.class.is_none())?;
        Some((from, fixture.clone()))
    }
}

/// Texts with the fixtures given to parameters.
struct Overlays(BTreeMap<AbsPath, Overlay>);

/// A text with insertions.
struct Overlay {
    document: Arc<Document>,
    original: Arc<Document>,
    /// Where in the original something is inserted, and how many bytes, in order.
    insertions: Vec<(usize, usize)>,
}

impl Overlays {
    /// The texts of these files, and of the files of the fixtures that they ask for.
    fn build(files: &mut PytestFiles<'_>, classes: &Classes<'_>, wanted: BTreeSet<AbsPath>) -> Self {
        let mut found = BTreeMap::new();
        let mut queue: Vec<AbsPath> = wanted.into_iter().collect();
        while let Some(path) = queue.pop() {
            if found.contains_key(&path) {
                continue;
            }
            let Some(file) = files.read(&path) else { continue };
            let Ok(original) = files.asking.state.files.read(&path) else { continue };
            let mut imports: BTreeMap<String, String> = BTreeMap::new();
            let mut inserted: Vec<(usize, String)> = Vec::new();
            for requested in file.requested.iter().filter(|requested| requested.is_bare) {
                let value = match &requested.values {
                    Some(values) if values.is_empty() => None,
                    Some(values) => Some(values.clone()),
                    None => match files.find(&path, requested, classes) {
                        Some((from, fixture)) => {
                            let value = value_of(&path, &from, &fixture, &mut imports);
                            queue.push(from);
                            value
                        }
                        None if requested.name == "tmp_path" => {
                            let name = format!("{PREFIX}_path");
                            let statement = format!("from pathlib import Path as {name}");
                            imports.insert(name.clone(), statement);
                            Some(format!("{name}()"))
                        }
                        None => None,
                    },
                };
                if let Some(value) = value {
                    inserted.push((requested.span.end, format!("={value}")));
                }
            }
            for fixture in &file.fixtures {
                inserted.push((fixture.decorator.start, format!("{PREFIX}(")));
                inserted.push((fixture.decorator.end, ")".to_owned()));
            }
            if !imports.is_empty() {
                let statements: Vec<String> = imports.into_values().collect();
                let newline = if file.start == original.text.len() { "\n" } else { "" };
                inserted.push((file.start, format!("{newline}{}\n", statements.join("; "))));
            }
            inserted.sort_by_key(|(at, _)| *at);
            found.insert(path, Overlay::new(original, &inserted));
        }
        Self(found)
    }

    fn show(&self, asking: &Asking<'_>) -> Result<(), Failure> {
        self.0.values().try_for_each(|overlay| asking.server.open(&overlay.document))
    }

    fn hide(&self, asking: &Asking<'_>) -> Result<(), Failure> {
        self.0.values().try_for_each(|overlay| asking.server.open(&overlay.original))
    }

    fn position(&self, asking: &Asking<'_>, document: &Document, offset: usize) -> crate::text::Position {
        let unit = asking.places.server_unit;
        match self.0.get(&document.path) {
            Some(overlay) => {
                let shown = &overlay.document;
                shown.lines.position(&shown.text, overlay.shown_at(offset), unit)
            }
            None => document.lines.position(&document.text, offset, unit),
        }
    }

    async fn ask(
        &self,
        leads: &Leads<'_>,
        asked: Vec<(Token, Explanation)>,
    ) -> Result<Vec<(Token, Explanation)>, Failure> {
        let questions = leads.asking.last_questions();
        let mut found = Vec::with_capacity(asked.len());
        for window in asked.chunks(WINDOW) {
            let answers: Vec<_> = window
                .iter()
                .map(|(token, _)| {
                    let at = self.position(leads.asking, &token.document, token.span.start);
                    questions.definition(&token.document.path, at)
                })
                .collect();
            for ((token, unresolved), answer) in window.iter().zip(answers) {
                let listing = self.mapped(leads.asking, answer.await?);
                let explanation = if listing.items.is_empty() && listing.skipped == 0 {
                    unresolved.clone()
                } else {
                    match leads.led(token, &listing) {
                        Explanation::Reference(Evidence {
                            provenance: Some(UseProvenance::Definition),
                            via,
                            is_structural,
                        }) => {
                            let provenance = Some(UseProvenance::PytestFixture);
                            Explanation::Reference(Evidence { provenance, via, is_structural })
                        }
                        explanation => explanation,
                    }
                };
                found.push((token.clone(), explanation));
            }
        }
        Ok(found)
    }

    /// Places in the files as they are. What is in inserted text is nowhere.
    fn mapped(&self, asking: &Asking<'_>, mut listing: Listing<Place>) -> Listing<Place> {
        listing.items = listing
            .items
            .into_iter()
            .filter_map(|place| {
                let Some(overlay) = self.0.get(&place.path) else { return Some(place) };
                let unit = asking.places.server_unit;
                let shown = &overlay.document;
                let offset = |position| shown.lines.offset(&shown.text, position, unit);
                let start = overlay.original_at(offset(place.range.start)?)?;
                let end = overlay.original_at(offset(place.range.end)?)?;
                let original = &overlay.original;
                let position = |offset| original.lines.position(&original.text, offset, unit);
                let range = Range { start: position(start), end: position(end) };
                Some(Place { path: place.path, range })
            })
            .collect();
        listing
    }
}

impl Overlay {
    fn new(original: Arc<Document>, inserted: &[(usize, String)]) -> Self {
        let mut text = String::with_capacity(original.text.len() + 4096);
        let mut at = 0;
        let mut insertions = Vec::with_capacity(inserted.len());
        for (offset, more) in inserted {
            text.push_str(original.text.get(at..*offset).unwrap_or_default());
            text.push_str(more);
            insertions.push((*offset, more.len()));
            at = *offset;
        }
        text.push_str(original.text.get(at..).unwrap_or_default());
        let document = Document {
            path: original.path.clone(),
            encoding: original.encoding,
            digest: Digest::of(text.as_bytes()),
            lines: LineIndex::new(&text),
            text,
        };
        Self { document: Arc::new(document), original, insertions }
    }

    /// Where a byte of the original is in the shown text. What is inserted before a byte comes before it.
    fn shown_at(&self, offset: usize) -> usize {
        let before = self.insertions.iter().take_while(|(at, _)| *at <= offset);
        offset + before.map(|(_, length)| length).sum::<usize>()
    }

    /// Where a byte of the shown text is in the original; `None` for one that was inserted.
    fn original_at(&self, shown: usize) -> Option<usize> {
        let mut added = 0;
        for (at, length) in &self.insertions {
            if shown < at + added {
                break;
            }
            if shown < at + added + length {
                // The end of a name is where the insertion begins.
                return (shown == at + added).then_some(*at);
            }
            added += length;
        }
        Some(shown - added)
    }
}

/// An expression for the value of a fixture, to be written in a file.
fn value_of(
    path: &AbsPath,
    from: &AbsPath,
    fixture: &Fixture,
    imports: &mut BTreeMap<String, String>,
) -> Option<String> {
    let module = relative_module(path, from)?;
    let bound = fixture.class.as_ref().unwrap_or(&fixture.function);
    let name = format!("{PREFIX}_{}_{bound}", module.replace('.', "_"));
    imports.insert(name.clone(), format!("from {module} import {bound} as {name}"));
    let function = match &fixture.class {
        Some(_) => format!("{name}.{}", fixture.function),
        None => name,
    };
    // What is passed is unknown, and fits every parameter.
    let call = format!("{function}(*{PREFIX}_any)");
    Some(match fixture.kind {
        FixtureKind::Returned => call,
        FixtureKind::Yielded => format!("next({call})"),
        FixtureKind::Awaited => format!("(await {call})"),
        FixtureKind::AsyncYielded => format!("[{PREFIX}_x async for {PREFIX}_x in {call}][0]"),
    })
}

/// The module of a file as another file imports it, relative to its own folder; `None` where the way down is no package name.
fn relative_module(path: &AbsPath, from: &AbsPath) -> Option<String> {
    let mut dots = String::from(".");
    let mut folder = path.parent();
    loop {
        if let Some(rest) = from.strip_prefix(&folder) {
            let stem = rest.trim_start_matches('/').strip_suffix(".py")?;
            let parts: Vec<&str> = stem.split('/').collect();
            let is_name = |part: &&str| {
                let mut letters = part.chars();
                letters.next().is_some_and(|c| c == '_' || c.is_alphabetic())
                    && letters.all(|c| c == '_' || c.is_alphanumeric())
            };
            if !parts.iter().all(is_name) {
                return None;
            }
            let parts: Vec<&str> = parts.into_iter().filter(|part| *part != "__init__").collect();
            return Some(format!("{dots}{}", parts.join(".")));
        }
        let above = folder.parent();
        if above == folder {
            return None;
        }
        folder = above;
        dots.push('.');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Arc<Document> {
        Arc::new(Document::new(AbsPath::new("/w/test_a.py").unwrap(), text.as_bytes().to_vec()))
    }

    #[test]
    fn places_go_there_and_back() {
        let text = "def f(a, b): a.x\n";
        let inserted = [(0, "import y\n".to_owned()), (7, "=A()".to_owned()), (10, "=B()".to_owned())];
        let overlay = Overlay::new(document(text), &inserted);
        assert_eq!(overlay.document.text, "import y\ndef f(a=A(), b=B()): a.x\n");
        for (offset, _) in text.char_indices() {
            let shown = overlay.shown_at(offset);
            assert_eq!(overlay.document.text[shown..].chars().next(), text[offset..].chars().next());
            assert_eq!(overlay.original_at(shown), Some(offset), "{offset}");
        }
        let inside = overlay.document.text.find("A()").unwrap();
        assert_eq!(overlay.original_at(inside), None);
    }

    #[test]
    fn modules_are_named_from_where_they_are_imported() {
        let path = |name: &str| AbsPath::new(name).unwrap();
        let test = path("/w/tests/unit/test_a.py");
        for (from, expected) in [
            ("/w/tests/unit/conftest.py", Some(".conftest")),
            ("/w/tests/conftest.py", Some("..conftest")),
            ("/w/conftest.py", Some("...conftest")),
            ("/w/src/p/plugin.py", Some("...src.p.plugin")),
            ("/w/a-b/plugin.py", None),
        ] {
            assert_eq!(relative_module(&test, &path(from)).as_deref(), expected, "{from}");
        }
    }
}
