//! The files whose diagnostics an edit can affect.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::digest::Digest;
use crate::edit::EditPlan;
use crate::engine::blocking::blocking;
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::engine::inputs::Inputs;
use crate::model::request::CheckScope;
use crate::path::{AbsPath, WorkspacePath};
use crate::python::module_imports::{ModuleImports, WantedModules, imports_of};
use crate::python::passed_on::{aliases_of, is_import_passed_on, is_module_passed_on};
use crate::tape::{IoKind, Tape};
use crate::workspace::files::{DiskFiles, Files as _};
use crate::workspace::parallel::parallel_map;
use crate::workspace::scripts::is_code;

/// How many files to compare besides the edited ones, unless the caller wants all. The server checks each of them twice.
const MAX_OTHER_FILES: usize = 120;

/// The files whose diagnostics are compared.
pub(in crate::engine) struct AffectedFiles {
    /// The edited Python files, under their new names, then the others; each group in order.
    pub(in crate::engine) files: Vec<AbsPath>,
    /// How many more files could be affected.
    pub(in crate::engine) left_out: usize,
    /// Importers that cannot be affected, sorted.
    pub(in crate::engine) unaffected: Vec<AbsPath>,
}

/// What an edit changes, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) enum EditKind<'e> {
    /// Anything.
    Any,
    /// The first name becomes the second, and any importer of an edited module may depend on it: members of classes and
    /// parameters decide which types fit each other, also in files that mention neither name.
    Renames([&'e str; 2]),
    /// The first name becomes the second in every reference, and it is a member that only files in which one of the names is
    /// written depend on, and these files.
    RenamesNominal([&'e str; 2], &'e BTreeSet<AbsPath>),
    /// The first name becomes the second in every reference, and it is a name of a module or a function. The program is the
    /// same under another name, so diagnostics can only change where one of the names is written, where the names of an edited
    /// module are imported with `*`, and, if `may_match` and a module is passed on as an object somewhere, where one is imported: it
    /// may have to match a protocol that has one of the names.
    RenamesGlobal { names: [&'e str; 2], may_match: bool },
    /// The parameter of a function has another name, in every call, and only these files depend on it.
    RenamesParameter(&'e BTreeSet<AbsPath>),
    /// A local variable has another name. Diagnostics can only change in its file.
    RenamesLocal,
}

/// The files that an edit can affect: the edited ones, those that import an edited one, those in which a renamed name is written.
/// If there are too many, they are taken in this order: importers that contain the first name, other importers, other files.
pub(in crate::engine) async fn affected(
    cx: &RequestContext<'_>,
    plan: &EditPlan,
    kind: EditKind<'_>,
) -> Result<AffectedFiles, Failure> {
    let snapshot = &cx.state.inputs.snapshot;
    let root = snapshot.root();
    let was_code = |path: &WorkspacePath| path.is_python() || snapshot.files().contains_key(path);
    let has_code = |path: &WorkspacePath, after: &Vec<u8>| was_code(path) || is_code(path.as_str(), after);
    let edited: Vec<AbsPath> = plan
        .changes()
        .iter()
        .filter(|change| change.after.as_ref().is_some_and(|after| has_code(&change.path, after)))
        .map(|change| root.join(change.path.as_str()))
        .collect();
    let touched: Vec<AbsPath> =
        plan.paths().filter(|path| was_code(path)).map(|path| root.join(path.as_str())).collect();
    let names: Vec<String> = match kind {
        EditKind::Any | EditKind::RenamesLocal | EditKind::RenamesParameter(_) => Vec::new(),
        EditKind::Renames(names)
        | EditKind::RenamesGlobal { names, .. }
        | EditKind::RenamesNominal(names, _) => names.map(str::to_owned).to_vec(),
    };
    let is_global = matches!(kind, EditKind::RenamesGlobal { .. });
    let may_match = matches!(kind, EditKind::RenamesGlobal { may_match: true, .. });
    let only = match kind {
        EditKind::RenamesNominal(_, also) | EditKind::RenamesParameter(also) => Some(also.clone()),
        EditKind::RenamesGlobal { .. } => Some(BTreeSet::new()),
        EditKind::Any | EditKind::Renames(_) | EditKind::RenamesLocal => None,
    };
    if matches!(kind, EditKind::RenamesLocal) {
        return Ok(AffectedFiles { files: edited, left_out: 0, unaffected: Vec::new() });
    }
    // The type of a member may reach a file through any chain of imports.
    let follows_all = matches!(kind, EditKind::Renames(_));
    let max_files = match cx.request.options.check {
        CheckScope::Affected => MAX_OTHER_FILES,
        CheckScope::Importers => usize::MAX / 4,
    };
    let (inputs, tape) = (cx.state.inputs.clone(), cx.state.tape.clone());
    let search = Search { inputs, tape, threads: cx.settings.threads, max_files };
    let found = blocking(move || {
        let containing: Vec<Vec<AbsPath>> = names.iter().map(|name| search.files_with(name)).collect();
        let mut importers = search.importers(&touched, follows_all);
        let mut unaffected = Vec::new();
        if let Some(mut affected) = only {
            affected.extend(containing.iter().flatten().cloned());
            if is_global {
                affected.extend(
                    importers.iter().filter(|(_, imported)| imported.star).map(|(path, _)| path.clone()),
                );
            }
            if may_match {
                affected.extend(search.passing_on(&touched, &importers));
            }
            let all = std::mem::take(&mut importers).into_iter().map(|(path, _)| path);
            let (kept, others): (Vec<AbsPath>, Vec<AbsPath>) = all.partition(|path| affected.remove(path));
            unaffected = others;
            let kept = kept.into_iter().chain(affected);
            return (rank(kept.collect(), containing), unaffected);
        }
        (rank(importers.into_iter().map(|(path, _)| path).collect(), containing), unaffected)
    });
    let (others, mut unaffected) = found.await?;
    let mut seen: BTreeSet<AbsPath> = plan.paths().map(|path| root.join(path.as_str())).collect();
    let others: Vec<AbsPath> = others.into_iter().filter(|path| seen.insert(path.clone())).collect();
    let left_out = others.len().saturating_sub(max_files);
    let mut others: Vec<AbsPath> = others.into_iter().take(max_files).collect();
    others.sort();
    unaffected.sort();
    Ok(AffectedFiles { files: edited.into_iter().chain(others).collect(), left_out, unaffected })
}

/// What files are searched in.
struct Search {
    inputs: Arc<Inputs>,
    tape: Tape,
    threads: usize,
    max_files: usize,
}

impl Search {
    fn files_with(&self, word: &str) -> Vec<AbsPath> {
        let snapshot = &self.inputs.snapshot;
        let paths = snapshot.files_with_word(word, self.threads, &self.tape);
        paths.into_iter().map(|path| snapshot.absolute(&path)).collect()
    }

    /// The files that import one of the modules, also through others. `all`: through any module, not only through
    /// packages and `*`, which re-export names.
    fn importers(&self, touched: &[AbsPath], all: bool) -> Vec<(AbsPath, ModuleImports)> {
        let (files, roots) = (DiskFiles::on(self.tape.clone()), &self.inputs.roots);
        let mut importers: Vec<(AbsPath, ModuleImports)> = Vec::new();
        let mut known: BTreeSet<AbsPath> = touched.iter().cloned().collect();
        let mut modules = touched.to_vec();
        // Through packages that re-export names, or any module. Each round finds other files, so that it ends.
        loop {
            let mut candidates = BTreeSet::new();
            for module in &modules {
                candidates.extend(self.files_with(&self.last_name(module)));
                // `from . import x` does not name the package.
                if is_init(module) {
                    candidates.extend(self.beside(module));
                }
            }
            let candidates: Vec<AbsPath> =
                candidates.into_iter().filter(|path| !known.contains(path)).collect();
            let wanted = WantedModules::new(&modules);
            let imported =
                parallel_map(&candidates, self.threads, |path| imports_of(&files, roots, path, &wanted));
            let found: Vec<(AbsPath, ModuleImports)> =
                candidates.into_iter().zip(imported).filter(|(_, imported)| imported.any).collect();
            known.extend(found.iter().map(|(path, _)| path.clone()));
            let re_exports =
                |(path, imported): &&(AbsPath, ModuleImports)| all || is_init(path) || imported.star;
            modules = found.iter().filter(re_exports).map(|(path, _)| path.clone()).collect();
            importers.extend(found);
            if modules.is_empty() || importers.len() > 4 * self.max_files {
                return importers;
            }
        }
    }

    /// The files in which a module may be passed on as an object: wherever one of the names that the modules have in some file is used
    /// otherwise than before a dot. None if no file that imports something under one of these names, or under that of a package above,
    /// passes it on: then no other value is one of the modules. Otherwise they may be in any file that imports them in some way.
    fn passing_on(&self, touched: &[AbsPath], importers: &[(AbsPath, ModuleImports)]) -> BTreeSet<AbsPath> {
        let mut names: BTreeSet<String> = touched.iter().map(|module| self.last_name(module)).collect();
        for (path, imported) in importers {
            names.extend(imported.aliases.iter().cloned());
            if imported.star {
                names.insert(self.last_name(path));
            }
        }
        names.remove("");
        let root = self.inputs.snapshot.root();
        let relative = |path: AbsPath| path.strip_prefix(root).map(str::to_owned);
        let live = || self.passing_on_now(touched, names.clone()).into_iter().map(relative).collect();
        let found: Option<Vec<String>> =
            self.tape.query_rare(IoKind::Guard, &("modules passed on", &names), live);
        match found {
            Some(found) => found.iter().map(|path| root.join(path)).collect(),
            // Of a trace of an earlier version.
            None => self.using(&names, is_module_passed_on),
        }
    }

    fn passing_on_now(&self, touched: &[AbsPath], mut names: BTreeSet<String>) -> BTreeSet<AbsPath> {
        self.add_aliases(&mut names);
        let packages = |module: &AbsPath| {
            let mut parts = self.name_parts(module);
            parts.pop();
            parts
        };
        let mut with_packages: BTreeSet<String> = touched.iter().flat_map(packages).collect();
        self.add_aliases(&mut with_packages);
        with_packages.extend(names.iter().cloned());
        if self.using(&with_packages, is_import_passed_on).is_empty() {
            return BTreeSet::new();
        }
        let mut found = self.using(&names, is_module_passed_on);
        found.extend(self.importers(touched, true).into_iter().map(|(path, _)| path));
        found
    }

    /// Adds the names under which others are imported, also in several steps.
    fn add_aliases(&self, names: &mut BTreeSet<String>) {
        let files = DiskFiles::on(self.tape.clone());
        names.remove("");
        let mut pending: Vec<String> = names.iter().cloned().collect();
        while let Some(name) = pending.pop() {
            let found = parallel_map(&self.files_with(&name), self.threads, |path| {
                files.read(path).map(|file| aliases_of(&file.text, &name)).unwrap_or_default()
            });
            pending.extend(found.into_iter().flatten().filter(|alias| names.insert(alias.clone())));
        }
    }

    /// The files that use one of the names in a certain way.
    fn using(&self, names: &BTreeSet<String>, is_use: fn(&str, Digest, &str) -> bool) -> BTreeSet<AbsPath> {
        let files = DiskFiles::on(self.tape.clone());
        let mut found: BTreeSet<AbsPath> = BTreeSet::new();
        for name in names {
            let candidates: Vec<AbsPath> =
                self.files_with(name).into_iter().filter(|path| !found.contains(path)).collect();
            let used = parallel_map(&candidates, self.threads, |path| {
                files.read(path).is_ok_and(|file| is_use(&file.text, file.digest, name))
            });
            found.extend(candidates.into_iter().zip(used).filter(|(_, is_it)| *is_it).map(|(path, _)| path));
        }
        found
    }

    fn last_name(&self, module: &AbsPath) -> String {
        self.name_parts(module).pop().unwrap_or_default()
    }

    fn name_parts(&self, module: &AbsPath) -> Vec<String> {
        let name = self.inputs.roots.name_of(module).unwrap_or_default();
        name.split('.').map(str::to_owned).collect()
    }

    /// The Python files in the folder of a file.
    fn beside(&self, file: &AbsPath) -> Vec<AbsPath> {
        let folder = file.parent();
        let snapshot = &self.inputs.snapshot;
        let all = snapshot.files().keys().map(|path| snapshot.absolute(path));
        all.filter(|path| path.parent() == folder).collect()
    }
}

fn is_init(path: &AbsPath) -> bool {
    path.file_name().starts_with("__init__.py")
}

/// Sorts files by importance: importers first, among them those with the first word, then files with earlier words.
fn rank(importers: Vec<AbsPath>, containing: Vec<Vec<AbsPath>>) -> Vec<AbsPath> {
    let first: BTreeSet<&AbsPath> = containing.first().into_iter().flatten().collect();
    let (mut order, others): (Vec<AbsPath>, Vec<AbsPath>) =
        importers.into_iter().partition(|path| first.contains(path));
    order.extend(others);
    order.extend(containing.iter().flatten().cloned());
    let mut seen = BTreeSet::new();
    order.retain(|path| seen.insert(path.clone()));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn importers_come_first() {
        let at = |names: &str| -> Vec<AbsPath> {
            names.split_whitespace().map(|name| AbsPath::new(format!("/w/{name}")).unwrap()).collect()
        };
        let ranked = rank(at("a m z"), vec![at("b m y z"), at("a c m")]);
        assert_eq!(ranked, at("m z a b y c"));
    }
}
