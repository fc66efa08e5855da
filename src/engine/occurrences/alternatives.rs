//! Classes of which one name may mean either, because several imports bind it:
//!
//! ```text
//! try:
//!     from fast import Parser
//! except ImportError:
//!     from slow import Parser
//! ```
//!
//! Looked for in files that have a word for another branch ([`CONDITIONS`]). There, a name may also get objects of different classes in
//! branches of which a server reads one (see [`branched_names`]).

use std::collections::BTreeMap;

use super::super::context::RequestContext;
use super::files_with;
use crate::path::AbsPath;
use crate::python::classes::{Class, Classes};
use crate::python::module_imports::may_import_again;
use crate::python::outline::{Imported, Outline};
use crate::python::static_branches::{BranchedName, branched_names};
use crate::workspace::files::{Document, Files as _};

/// The words of which a file has one that decides what it imports.
const CONDITIONS: [&str; 6] = ["except", "else", "TYPE_CHECKING", "version_info", "platform", "os"];

/// What may mean one of several classes.
#[derive(Debug, Default)]
pub(super) struct Alternatives {
    /// The names that a module binds several times, once in a branch and once by an import, with the files.
    imported: Vec<(AbsPath, String)>,
    /// What depends on the platform and the like, with the files.
    branched: Vec<(AbsPath, BranchedName)>,
}

impl Alternatives {
    /// Those of the workspace.
    pub(super) fn find(cx: &RequestContext<'_>) -> Self {
        let mut files: Vec<AbsPath> = CONDITIONS.iter().flat_map(|word| files_with(cx, word)).collect();
        files.sort();
        files.dedup();
        let mut found = Self::default();
        for path in files {
            let Ok(document) = cx.state.files.read(&path) else { continue };
            found.imported.extend(names_in(&document).into_iter().map(|name| (path.clone(), name)));
            found
                .branched
                .extend(branched_names(&document.text).into_iter().map(|name| (path.clone(), name)));
        }
        found
    }

    /// Whether a name of the workspace may mean either class, or classes that inherit from them.
    pub(super) fn are(&self, classes: &Classes<'_>, one: &Class, other: &Class) -> bool {
        let leads_to = |path: &AbsPath, class: &Class, chain: &[String]| {
            let found = classes.resolve(path, chain);
            let mut found = found.iter().filter_map(|(file, at)| classes.class_at(file, *at));
            let id = class.id();
            found.any(|found| found.id() == id || classes.inherits(&found, &id))
        };
        let mut branched = self
            .branched
            .iter()
            .flat_map(|(path, name)| name.alternatives().map(move |(first, second)| (path, first, second)));
        if branched.any(|(path, first, second)| leads_to(path, one, first) && leads_to(path, other, second)) {
            return true;
        }
        let qualified = one.id().name;
        // The import is of the class, of one around it, or of its module.
        let parts: Vec<&str> = qualified.split('.').collect();
        self.imported.iter().any(|(path, name)| {
            (0..=parts.len()).any(|from| {
                let chain = std::iter::once(name.as_str()).chain(parts[from..].iter().copied());
                let chain: Vec<String> = chain.map(str::to_owned).collect();
                leads_to(path, one, &chain) && leads_to(path, other, &chain)
            })
        })
    }
}

fn names_in(document: &Document) -> Vec<String> {
    if !may_import_again(&document.text) {
        return Vec::new();
    }
    let outline = Outline::parse(&document.text);
    let imports = outline.imports_of(None).filter(|import| import.what != Imported::Star);
    let imports = imports.map(|import| (import.bound.as_str(), true, import.branch.is_some()));
    let definitions = outline.children(None).map(|(_, one)| (one.name.as_str(), false, one.branch.is_some()));
    let mut bound: BTreeMap<&str, (usize, bool, bool)> = BTreeMap::new();
    for (name, is_import, is_in_branch) in imports.chain(definitions) {
        let known = bound.entry(name).or_default();
        *known = (known.0 + 1, known.1 | is_import, known.2 | is_in_branch);
    }
    let is_one_of_several = |(_, known): &(&str, (usize, bool, bool))| known.0 > 1 && known.1 && known.2;
    bound.into_iter().filter(is_one_of_several).map(|(name, _)| name.to_owned()).collect()
}
