//! Classes of which one name may mean either, because several imports bind it:
//!
//! ```text
//! try:
//!     from fast import Parser
//! except ImportError:
//!     from slow import Parser
//! ```
//!
//! Looked for in files that have a word for another branch ([`CONDITIONS`]).

use std::collections::BTreeMap;

use super::super::context::RequestContext;
use super::files_with;
use crate::path::AbsPath;
use crate::python::classes::{Class, Classes};
use crate::python::module_imports::may_import_again;
use crate::python::outline::{Imported, Outline};
use crate::workspace::files::Files as _;

/// The words of which a file has one that decides what it imports.
const CONDITIONS: [&str; 4] = ["except", "else", "TYPE_CHECKING", "version_info"];

/// The names that a module binds several times, once in a branch and once by an import, with the files.
#[derive(Debug)]
pub(super) struct Alternatives(Vec<(AbsPath, String)>);

impl Alternatives {
    /// Those of the workspace.
    pub(super) fn find(cx: &RequestContext<'_>) -> Self {
        let mut files: Vec<AbsPath> = CONDITIONS.iter().flat_map(|word| files_with(cx, word)).collect();
        files.sort();
        files.dedup();
        let named = |path: AbsPath| {
            names_in(cx, &path).into_iter().map(move |name| (path.clone(), name)).collect::<Vec<_>>()
        };
        Self(files.into_iter().flat_map(named).collect())
    }

    /// Whether a name of the workspace may mean either class, or classes that inherit from them.
    pub(super) fn are(&self, classes: &Classes<'_>, one: &Class, other: &Class) -> bool {
        let qualified = one.id().name;
        // The import is of the class, of one around it, or of its module.
        let parts: Vec<&str> = qualified.split('.').collect();
        self.0.iter().any(|(path, name)| {
            let leads_to = |class: &Class, chain: &[String]| {
                let found = classes.resolve(path, chain);
                let mut found = found.iter().filter_map(|(file, at)| classes.class_at(file, *at));
                let id = class.id();
                found.any(|found| found.id() == id || classes.inherits(&found, &id))
            };
            (0..=parts.len()).any(|from| {
                let chain = std::iter::once(name.as_str()).chain(parts[from..].iter().copied());
                let chain: Vec<String> = chain.map(str::to_owned).collect();
                leads_to(one, &chain) && leads_to(other, &chain)
            })
        })
    }
}

fn names_in(cx: &RequestContext<'_>, path: &AbsPath) -> Vec<String> {
    let document = cx.state.files.read(path).ok().filter(|document| may_import_again(&document.text));
    let Some(document) = document else { return Vec::new() };
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
