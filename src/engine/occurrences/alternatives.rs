//! Classes of which one name may mean either, because several imports bind it:
//!
//! ```text
//! try:
//!     from fast import Parser
//! except ImportError:
//!     from slow import Parser
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::super::context::RequestContext;
use super::files_with;
use crate::path::AbsPath;
use crate::python::classes::{Class, Classes};
use crate::python::outline::{Imported, Outline};
use crate::workspace::files::Files as _;

/// The names that a module binds several times, once in a branch and once by an import, by the files that were looked at.
#[derive(Debug, Default)]
pub(super) struct Alternatives {
    known: BTreeMap<AbsPath, BTreeSet<String>>,
}

impl Alternatives {
    /// Whether a name of the workspace may mean either class, or classes that inherit from them.
    pub(super) fn are(
        &mut self,
        cx: &RequestContext<'_>,
        classes: &Classes<'_>,
        one: &Class,
        other: &Class,
    ) -> bool {
        let (one_id, other_id) = (one.id(), other.id());
        let last = |module: &str| module.rsplit('.').next().unwrap_or_default().to_owned();
        // Where both are imported, or both modules: a module may be imported from a package that re-exports its names.
        let named = [
            (last(&one_id.module), last(&other_id.module)),
            (one.name().to_owned(), other.name().to_owned()),
            (one.name().to_owned(), last(&other_id.module)),
            (last(&one_id.module), other.name().to_owned()),
        ];
        let mut files: BTreeSet<AbsPath> = BTreeSet::new();
        for (one, other) in named {
            let with_other: BTreeSet<AbsPath> = files_with(cx, &other).into_iter().collect();
            files.extend(files_with(cx, &one).into_iter().filter(|path| with_other.contains(path)));
        }
        files.iter().any(|path| {
            self.names_of(cx, path).iter().any(|name| {
                let leads_to = |class: &Class, chain: &[String]| {
                    let found = classes.resolve(path, chain);
                    let found = found.iter().filter_map(|(file, at)| classes.class_at(file, *at));
                    let id = class.id();
                    found.into_iter().any(|found| found.id() == id || classes.inherits(&found, &id))
                };
                // The import is of the class, of one around it, or of its module.
                let parts: Vec<&str> = one_id.name.split('.').collect();
                (0..=parts.len()).any(|from| {
                    let chain = std::iter::once(name.as_str()).chain(parts[from..].iter().copied());
                    let chain: Vec<String> = chain.map(str::to_owned).collect();
                    leads_to(one, &chain) && leads_to(other, &chain)
                })
            })
        })
    }

    fn names_of(&mut self, cx: &RequestContext<'_>, path: &AbsPath) -> &BTreeSet<String> {
        self.known.entry(path.clone()).or_insert_with(|| {
            let Ok(document) = cx.state.files.read(path) else { return BTreeSet::new() };
            if !["except", "else"].iter().any(|word| document.text.contains(word)) {
                return BTreeSet::new();
            }
            let outline = Outline::parse(&document.text);
            let imports = outline.imports_of(None).filter(|import| import.what != Imported::Star);
            let imports = imports.map(|import| (import.bound.as_str(), true, import.branch.is_some()));
            let definitions =
                outline.children(None).map(|(_, one)| (one.name.as_str(), false, one.branch.is_some()));
            let mut bound: BTreeMap<&str, (usize, bool, bool)> = BTreeMap::new();
            for (name, is_import, is_in_branch) in imports.chain(definitions) {
                let known = bound.entry(name).or_default();
                *known = (known.0 + 1, known.1 | is_import, known.2 | is_in_branch);
            }
            let is_one_of_several =
                |(_, known): &(&str, (usize, bool, bool))| known.0 > 1 && known.1 && known.2;
            bound.into_iter().filter(is_one_of_several).map(|(name, _)| name.to_owned()).collect()
        })
    }
}
