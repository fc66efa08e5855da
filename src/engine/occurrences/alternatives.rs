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

/// The names that several imports of a module bind, one of them in a branch, by the files that were looked at.
#[derive(Debug, Default)]
pub(super) struct Alternatives {
    known: BTreeMap<AbsPath, BTreeSet<String>>,
}

impl Alternatives {
    /// Whether a name of the workspace may mean either class.
    pub(super) fn are(
        &mut self,
        cx: &RequestContext<'_>,
        classes: &Classes<'_>,
        one: &Class,
        other: &Class,
    ) -> bool {
        let (one_id, other_id) = (one.id(), other.id());
        let last = |module: &str| module.rsplit('.').next().unwrap_or_default().to_owned();
        let with_other: BTreeSet<AbsPath> = files_with(cx, &last(&other_id.module)).into_iter().collect();
        let with_both = files_with(cx, &last(&one_id.module));
        with_both.iter().filter(|path| with_other.contains(*path)).any(|path| {
            self.names_of(cx, path).iter().any(|name| {
                let leads_to = |class: &Class, qualified: &str| {
                    // The import is of the class, of one around it, or of its module.
                    let parts: Vec<&str> = qualified.split('.').collect();
                    let chains = (0..=parts.len())
                        .map(|from| std::iter::once(name.as_str()).chain(parts[from..].iter().copied()));
                    let (file, at) = (&class.document().path, class.name_span().start);
                    chains
                        .map(|chain| chain.map(str::to_owned).collect::<Vec<_>>())
                        .any(|chain| classes.resolves_to(path, &chain, file, at))
                };
                leads_to(one, &one_id.name) && leads_to(other, &other_id.name)
            })
        })
    }

    fn names_of(&mut self, cx: &RequestContext<'_>, path: &AbsPath) -> &BTreeSet<String> {
        self.known.entry(path.clone()).or_insert_with(|| {
            let Ok(document) = cx.state.files.read(path) else { return BTreeSet::new() };
            let is_indented = |line: &str| {
                let rest = line.trim_start();
                rest.len() < line.len() && (rest.starts_with("from ") || rest.starts_with("import "))
            };
            if !document.text.lines().any(is_indented) {
                return BTreeSet::new();
            }
            let outline = Outline::parse(&document.text);
            let mut bound: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
            for import in outline.imports_of(None).filter(|import| import.what != Imported::Star) {
                let (count, is_in_branch) = bound.entry(&import.bound).or_default();
                *count += 1;
                *is_in_branch |= import.branch.is_some();
            }
            let of_several =
                bound.into_iter().filter(|(_, (count, is_in_branch))| *count > 1 && *is_in_branch);
            of_several.map(|(name, _)| name.to_owned()).collect()
        })
    }
}
