//! Renames and moves modules and packages: the files, and everything that imports them.
//!
//! No server does this over LSP without `workspace/willRenameFiles`, which Pyright does not offer. So the edit is made from the
//! imports ([`crate::python::module_move`]), and the server checks it in a copy of the workspace in which the files are moved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::CheckedEdit;
use super::checks::Checks;
use super::decisions::{DecidedPlaces, OpenPlace, decide};
use super::dependents::EditKind;
use super::rename_completeness::reasons;
use super::rename_edit::with_edits;
use super::{guards, names, nominal, planning, prepare, residue, speculate};
use crate::engine::blocking::blocking;
use crate::engine::completeness::{self, weaken};
use crate::engine::context::{HandlerOutput, RequestContext};
use crate::engine::failure::Failure;
use crate::engine::locations::preview;
use crate::engine::occurrences::Token;
use crate::model::edits::{CheckName, DocumentChange, FileOperation, TextEdit, WorkspaceEdit};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::{
    Completeness, CompletenessStatus, Facts, Provenance, Residue, Unresolved, UnresolvedOccurrence,
};
use crate::model::request::{CheckScope, is_module_path};
use crate::path::{AbsPath, is_python};
use crate::python::entry_points::{FILES, entry_points};
use crate::python::module_move::{FileRewrite, ModuleMove, rewrite};
use crate::python::occurrences::{TextOccurrence, occurrences};
use crate::python::outline::{Import, Imported, Outline, Span};
use crate::workspace::files::{DiskFiles, Document, FileKind, Files as _};
use crate::workspace::parallel::parallel_map;

/// The most files that a package may have to be moved.
const MAX_FILES: usize = 5_000;

/// Where a module is, and where it goes.
struct Move {
    names: ModuleMove,
    /// The files that move, with their new paths.
    files: BTreeMap<AbsPath, AbsPath>,
    /// What is in the way.
    taken: Vec<AbsPath>,
}

/// Answers `rename` of a module: `from` is its dotted name or its path, `to` the new one.
pub(super) async fn rename_module(
    cx: &RequestContext<'_>,
    from: &str,
    to: &str,
) -> Result<HandlerOutput, Failure> {
    let capabilities = prepare::capabilities(cx)?;
    let moved = Move::find(cx, from, to)?;
    let mut checks = Checks::new(cx.request, cx.settings);
    checks.pass(CheckName::Target, "the name means one module");
    names::check_identifiers(&mut checks, &moved.names.new);
    let taken: Vec<String> =
        moved.taken.iter().map(|path| cx.locations.paths.uri(path).to_string()).collect();
    let message = format!("`{}` exists already", moved.names.new);
    checks.fail_if_any(CheckName::Collision, taken, "nothing has the new name", &message);
    let rewrites = rewrites(cx, &moved).await?;
    let open: Vec<OpenPlace> = rewrites
        .iter()
        .flat_map(|(document, rewrite)| rewrite.open.iter().map(move |place| (document, place)))
        .map(|(document, (span, new))| OpenPlace {
            document: document.clone(),
            span: span.clone(),
            at: cx.locations.span(document, span.clone()).2,
            why: "a string or an expression spells the name",
            new_text: Some(new.clone()),
        })
        .collect();
    let mut facts = Facts::new(Provenance::Syntax);
    let linked = moved.files.keys().find_map(|file| cx.state.linked(file));
    facts.completeness = Some(verdict(cx, rewrites.len(), &open, linked.as_ref()));
    let decided = decide(cx, open, &[])?;
    check_completeness(cx, &mut checks, &rewrites, &decided, linked);
    let edit = workspace_edit(cx, &moved, &rewrites, &decided);
    let mut residue = mentions(cx, &moved, &rewrites);
    // In documents a module is named by its path, too.
    let path = moved.names.old.replace('.', "/");
    let names = std::iter::once(&moved.names.old).chain((path != moved.names.old).then_some(&path));
    for name in names {
        residue::add_documents(cx.settings, cx.state, &mut residue, name, &edit).await?;
    }
    let plan =
        planning::plan(cx, &mut checks, cx.locations.server_unit, &|planner| planner.workspace_edit(&edit))?;
    let planned = plan.unwrap_or_default();
    guards::check_files(cx.settings, cx.state, cx.request, &mut checks, &planned).await?;
    let mut diagnostics = None;
    if !planned.changes().is_empty() {
        let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
        let ModuleMove { old, new, .. } = &moved.names;
        let renamed = [(old.clone(), new.clone()), (last(old), last(new))];
        // A module that is imported under its new name is the same module.
        let kind = match cx.request.options.check {
            CheckScope::Affected => {
                let names = [renamed[1].0.as_str(), renamed[1].1.as_str()];
                EditKind::RenamesGlobal { names, may_match: nominal::may_match_module(cx, names).await? }
            }
            CheckScope::Importers => EditKind::Any,
        };
        diagnostics = Some(speculate::check(cx, &mut checks, &planned, kind, &renamed).await?);
    }
    let mut refactored = CheckedEdit::new(cx, Some(edit), planned, checks, diagnostics);
    refactored.edits.residue = Some(residue);
    Ok(HandlerOutput { facts, limits: None, capabilities, refactored: Some(refactored), error: None })
}

fn usage(message: String, hint: impl Into<String>) -> Failure {
    Failure::reported(ErrorBody::new(ErrorSymbol::Usage, message).hint(hint))
}

impl Move {
    fn find(cx: &RequestContext<'_>, from: &str, to: &str) -> Result<Self, Failure> {
        let (files, roots) = (&cx.state.files, &cx.state.inputs.roots);
        let root = cx.state.inputs.snapshot.root();
        let name = |text: &str| match is_module_path(text) {
            true if is_python(text) => roots.name_of(&root.join(text)),
            // A folder is the package in it.
            true => roots.name_of(&root.join(text.trim_end_matches('/')).join("__init__.py")),
            false => Some(text.to_owned()),
        };
        if is_module_path(from) && is_module_path(to) && is_python(from) != is_python(to) {
            let other = if is_python(from) { to } else { from };
            let has_suffix = other.rsplit('/').next().is_some_and(|last| last.contains('.'));
            let message = match has_suffix {
                true => format!("{other} is not the path of a Python file"),
                false => format!("one of {from} and {to} is a file, and the other is a folder"),
            };
            return Err(usage(message, "give both as files, PATH.py, or both as folders"));
        }
        let unknown = || {
            if is_module_path(from) && files.kind(&root.join(from)) == FileKind::File {
                if !is_python(from) {
                    return usage(format!("{from} is not a Python file"), "move it with git");
                }
                let message =
                    format!("{from} is no module that a statement can import: a part of its path is no name");
                return usage(message, "move the file with git, and change what loads it by hand");
            }
            let message = format!("no module of the workspace is {from}");
            let error = ErrorBody::new(ErrorSymbol::NotFound, message);
            Failure::reported(error.hint(match is_module_path(from) {
                true => "give the path of a module, or its dotted name, such as py://pkg.mod",
                false => "name a module of the workspace, or give the path of its file",
            }))
        };
        let old = name(from).ok_or_else(unknown)?;
        let module = roots
            .find(files, &old)
            .into_iter()
            .find(|module| {
                let mut own = [&module.source, &module.stub, &module.folder].into_iter().flatten();
                own.any(|path| cx.state.is_in_workspace(path))
            })
            .ok_or_else(unknown)?;
        let new =
            name(to).ok_or_else(|| usage(format!("{to} is not the path of a module"), "give PATH.py"))?;
        if new.is_empty() {
            return Err(usage("the new name is empty".to_owned(), "give another name"));
        }
        // A file has one name here, relative to the nearest root: `pkg.mod` in place of `src.pkg.mod`.
        let own = module.file().and_then(|file| roots.name_of(file)).unwrap_or_else(|| old.clone());
        let (old, new) = match old.strip_suffix(&own).filter(|root| root.ends_with('.')) {
            Some(root) => (own, new.strip_prefix(root).unwrap_or(&new).to_owned()),
            None => (old, new),
        };
        if new == old {
            return Err(usage(format!("the name is `{old}` already"), "give another name"));
        }
        if !new.contains('.') && old.contains('.') && !is_module_path(to) {
            let beside = old.rsplit_once('.').map_or("", |(package, _)| package);
            return Err(usage(
                format!("`{new}` would be a module outside of any package"),
                format!("give the whole name: {beside}.{new}"),
            ));
        }
        if new.starts_with(&format!("{old}.")) {
            let message = match from.ends_with("__init__.py") {
                true => format!("{from} is the package `{old}`, which cannot become a module in itself"),
                false => format!("`{old}` cannot be moved into itself"),
            };
            return Err(usage(message, "give another name"));
        }
        let mut moved = Self {
            names: ModuleMove { old, new, files: BTreeSet::new() },
            files: BTreeMap::new(),
            taken: Vec::new(),
        };
        moved.add_files(cx, &module)?;
        Ok(moved)
    }

    /// Adds the files of the module, with their new paths.
    fn add_files(
        &mut self,
        cx: &RequestContext<'_>,
        module: &crate::python::modules::Module,
    ) -> Result<(), Failure> {
        let files = &cx.state.files;
        let is_package = module.folder.is_some();
        let own: Vec<AbsPath> = [&module.source, &module.stub].into_iter().flatten().cloned().collect();
        let home = match &module.folder {
            Some(folder) => folder.clone(),
            None => own.first().map_or_else(|| cx.state.inputs.snapshot.root().clone(), AbsPath::parent),
        };
        // The folder of the import root: one up for each part of the name.
        let ups = self.names.old.split('.').count() - usize::from(!is_package);
        let root = (0..ups).fold(home.clone(), |folder, _| folder.parent());
        let parts: Vec<&str> = self.names.new.split('.').collect();
        let last = parts.last().copied().unwrap_or_default();
        let target = parts.iter().fold(root.clone(), |folder, part| folder.join(part));
        let parent = target.parent();
        if parent != root && files.kind(&parent) != FileKind::Folder {
            let uri = cx.locations.paths.uri(&parent);
            let hint = format!("create {uri}/__init__.py, which may be empty, and commit it first");
            return Err(usage(format!("the package {uri} does not exist"), hint));
        }
        let beside = |name: &str| parent.join(&format!("{}{name}", target.file_name()));
        self.taken = [target.clone(), beside(".py"), beside(".pyi")]
            .into_iter()
            .filter(|path| files.kind(path) != FileKind::Missing)
            .collect();
        // A package cannot have a submodule and a member of one name.
        let init = parent.join("__init__.py");
        let bound = files.read(&init).map(|document| {
            let outline = Outline::parse(&document.text);
            let defined =
                outline.definitions.iter().any(|found| found.parent.is_none() && found.name == *last);
            let imported = outline.imports.iter().any(|found| {
                found.parent.is_none() && found.bound == *last && !self.is_import_of_itself(found)
            });
            defined || imported
        });
        if bound.unwrap_or(false) {
            self.taken.push(init);
        }
        // A module that is installed, or of the standard library, would be hidden.
        let known = cx.state.inputs.roots.find(files, &self.names.new);
        let elsewhere = known.iter().filter_map(|module| module.file().cloned());
        self.taken.extend(elsewhere.filter(|path| !cx.state.is_in_workspace(path)));
        self.names.files = own.iter().cloned().collect();
        if is_package {
            self.names.files.insert(home.clone());
            let mut folders = vec![String::new()];
            while let Some(folder) = folders.pop() {
                let here = if folder.is_empty() { home.clone() } else { home.join(&folder) };
                // A linked folder may belong to other projects.
                if files.canonical(&here) != files.canonical(&home).join(&folder) && !folder.is_empty() {
                    return Err(usage(format!("{folder} in the package is a link"), "move it by hand first"));
                }
                if self.files.len() > MAX_FILES {
                    let message = format!("the package has more than {MAX_FILES} files");
                    return Err(usage(message, "move it with `git mv`, and apply an edit of the imports"));
                }
                for name in files.list(&here) {
                    let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                    match files.kind(&home.join(&path)) {
                        FileKind::Folder if name != "__pycache__" => folders.push(path),
                        FileKind::File => drop(self.files.insert(home.join(&path), target.join(&path))),
                        _ => {}
                    }
                }
            }
        } else {
            // A stub may be in another folder than its source.
            for path in own {
                let ending = if path.as_str().ends_with(".pyi") { ".pyi" } else { ".py" };
                let root = (0..ups).fold(path.parent(), |folder, _| folder.parent());
                let target = parts.iter().fold(root, |folder, part| folder.join(part));
                let name = format!("{}{ending}", target.file_name());
                self.files.insert(path, target.parent().join(&name));
            }
        }
        Ok(())
    }
}

impl Move {
    /// Whether an import of the new package binds the module that is moved: it is renamed with it.
    fn is_import_of_itself(&self, import: &Import) -> bool {
        let old = self.names.old.rsplit('.').next().unwrap_or_default();
        matches!(&import.what, Imported::Name(name) if name == old)
    }
}

/// What changes in each file that changes or has open places.
async fn rewrites(
    cx: &RequestContext<'_>,
    moved: &Move,
) -> Result<Vec<(Arc<Document>, FileRewrite)>, Failure> {
    let snapshot = &cx.state.inputs.snapshot;
    let leaf = moved.names.old.rsplit('.').next().unwrap_or_default();
    let with_name = cx.state.files_with_word(leaf).into_iter().map(|path| snapshot.absolute(&path));
    // Relative imports in files that move may lead elsewhere.
    let inside = moved.files.keys().filter(|path| is_python(path.as_str())).cloned();
    let paths: BTreeSet<AbsPath> = with_name.chain(inside).collect();
    let documents: Vec<Arc<Document>> =
        paths.iter().filter_map(|path| cx.state.files.read(path).ok()).collect();
    let (inputs, tape) = (cx.state.inputs.clone(), cx.state.tape.clone());
    let (names, threads) = (moved.names.clone(), cx.settings.threads);
    let found = blocking(move || {
        let files = DiskFiles::on(tape);
        parallel_map(&documents, threads, |document| {
            let rewrite = rewrite(&files, &inputs.roots, &document.path, &document.text, &names);
            (document.clone(), rewrite)
        })
    });
    let mut found = found.await?;
    found.extend(in_entry_points(cx, moved));
    found.retain(|(_, rewrite)| !rewrite.splices.is_empty() || !rewrite.open.is_empty());
    Ok(found)
}

/// Where comments and docstrings mention the old name.
fn mentions(cx: &RequestContext<'_>, moved: &Move, rewrites: &[(Arc<Document>, FileRewrite)]) -> Residue {
    let snapshot = &cx.state.inputs.snapshot;
    let old = &moved.names.old;
    let leaf = old.rsplit('.').next().unwrap_or_default();
    let package = &old[..old.len() - leaf.len()];
    let mut tokens = Vec::new();
    for path in cx.state.files_with_word(leaf) {
        let Ok(document) = cx.state.files.read(&snapshot.absolute(&path)) else { continue };
        let known = rewrites.iter().find(|(of, _)| of.path == document.path).map(|(_, rewrite)| rewrite);
        let is_known = |at: usize| {
            let spans = known.iter().flat_map(|rewrite| rewrite.splices.iter().chain(&rewrite.open));
            spans.into_iter().any(|(span, _)| span.start <= at && at < span.end)
        };
        let found = occurrences(&document.text, document.digest, leaf).into_iter();
        let is_mention = |one: &TextOccurrence| {
            !one.kind.is_token() && document.text[..one.start].ends_with(package) && !is_known(one.start)
        };
        tokens.extend(found.filter(is_mention).map(|one| Token::new(document.clone(), one.span(), one.kind)));
    }
    completeness::residue(cx, &tokens)
}

/// The entry points that name the module.
fn in_entry_points(cx: &RequestContext<'_>, moved: &Move) -> Vec<(Arc<Document>, FileRewrite)> {
    let root = cx.state.inputs.snapshot.root();
    let mut found = Vec::new();
    for name in FILES {
        let Ok(document) = cx.state.files.read(&root.join(name)) else { continue };
        let mut rewrite = FileRewrite::default();
        for entry in entry_points(&document.text) {
            let old = &document.text[entry.module.clone()];
            let new = moved.names.renamed(old);
            if new != old {
                rewrite.splices.push((entry.module, new));
            }
        }
        found.push((document, rewrite));
    }
    found
}

fn verdict(
    cx: &RequestContext<'_>,
    files: usize,
    open: &[OpenPlace],
    linked: Option<&String>,
) -> Completeness {
    let mut verdict = completeness::of_documents(cx, files, &completeness::unreadable(cx));
    let Completeness { status, reason, .. } = &mut verdict;
    weaken(status, reason, CompletenessStatus::Unknown, linked.cloned());
    weaken(status, reason, CompletenessStatus::Partial, (!open.is_empty()).then(|| reasons(open)));
    let items = open.iter().map(|place| {
        let (uri, range, at) = cx.locations.span(&place.document, place.span.clone());
        UnresolvedOccurrence {
            uri,
            range,
            at,
            kind: "string".to_owned(),
            receiver: None,
            reason: place.why.to_owned(),
            preview: preview(&place.document, range.start.line),
        }
    });
    verdict.unresolved =
        Unresolved { count: u32::try_from(open.len()).unwrap_or(u32::MAX), items: items.collect() };
    verdict
}

fn check_completeness(
    cx: &RequestContext<'_>,
    checks: &mut Checks<'_>,
    rewrites: &[(Arc<Document>, FileRewrite)],
    decided: &DecidedPlaces,
    linked: Option<String>,
) {
    let count: usize = rewrites.iter().map(|(_, rewrite)| rewrite.splices.len()).sum();
    let found = format!(
        "{} in {}",
        crate::text::plural(count, "place"),
        planning::files(rewrites.iter().filter(|(_, rewrite)| !rewrite.splices.is_empty()).count())
    );
    let unreadable = completeness::unreadable(cx);
    let passed = decided.open.is_empty() && unreadable.is_empty() && linked.is_none();
    let detail = match (passed, unreadable.is_empty()) {
        (true, _) => format!("{found}{}", decided.summary()),
        (false, true) if decided.open.is_empty() => {
            format!("{found}, not known to be complete: {}", linked.unwrap_or_default())
        }
        (false, true) => format!("{found}, not complete: {}", reasons(&decided.open)),
        (false, false) => format!("{found}, not complete: some files of the workspace cannot be read"),
    };
    if !decided.open.is_empty() && !decided.open.iter().any(OpenPlace::can_be_renamed) {
        checks.offer_exclude();
    }
    checks.completeness(passed, detail, decided.listed(cx), decided.decisions.clone());
}

/// Text edits first, at the old paths, then the moves.
fn workspace_edit(
    cx: &RequestContext<'_>,
    moved: &Move,
    rewrites: &[(Arc<Document>, FileRewrite)],
    decided: &DecidedPlaces,
) -> WorkspaceEdit {
    let mut edits: BTreeMap<AbsPath, Vec<TextEdit>> = BTreeMap::new();
    let mut add = |document: &Document, span: &Span, new: &str| {
        let range = document.lines.range(&document.text, span.clone(), cx.locations.server_unit).into();
        let edit = TextEdit { range, new_text: new.to_owned(), annotation_id: None };
        edits.entry(document.path.clone()).or_default().push(edit);
    };
    for (document, rewrite) in rewrites {
        rewrite.splices.iter().for_each(|(span, new)| add(document, span, new));
    }
    for place in &decided.included {
        add(&place.document, &place.span, place.new_text.as_deref().unwrap_or_default());
    }
    let empty = WorkspaceEdit { document_changes: Some(Vec::new()), ..WorkspaceEdit::default() };
    let mut edit = with_edits(empty, edits);
    let uri = |path: &AbsPath| crate::path::FileUri::from_path(path).as_str().to_owned();
    let moves = moved.files.iter().map(|(from, to)| {
        let (old_uri, new_uri) = (uri(from), uri(to));
        DocumentChange::Operation(FileOperation::Rename {
            old_uri,
            new_uri,
            options: None,
            annotation_id: None,
        })
    });
    edit.document_changes.get_or_insert_default().extend(moves);
    edit
}
