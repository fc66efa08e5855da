//! Claims of a server that Python's scopes refute.
//!
//! In code that cannot run (a branch for another platform, statements after a `return`) Pyright 1.1.414 looks names up without
//! binding anything: a parameter, a local variable or an import of another module counts as a use of the module's name.

use std::collections::{BTreeMap, BTreeSet};

use super::super::context::RequestContext;
use super::offset_of;
use crate::lsp::LspLocation;
use crate::path::AbsPath;
use crate::python::classes::Classes;
use crate::python::outline::{Import, Imported};
use crate::python::scopes::{ScopeKind, Scopes};
use crate::python::usage::{TokenUse, Usage};
use crate::text::names::is_in_name;
use crate::workspace::parallel::parallel_map;

/// The claimed places of the workspace that are other variables than the ones that are defined at `accepted`, or imports of
/// something else.
pub(super) fn shadowed<'p>(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    claimed: impl Iterator<Item = &'p LspLocation>,
    accepted: &BTreeSet<(AbsPath, usize)>,
) -> BTreeSet<LspLocation> {
    let mut by_file: BTreeMap<&AbsPath, Vec<&LspLocation>> = BTreeMap::new();
    for place in claimed.filter(|place| cx.state.is_in_workspace(&place.path)) {
        by_file.entry(&place.path).or_default().push(place);
    }
    let files: Vec<Vec<&LspLocation>> = by_file.into_values().collect();
    let refuted = parallel_map(&files, cx.settings.threads, |places| {
        let places: Vec<(&LspLocation, usize)> =
            places.iter().filter_map(|place| Some((*place, offset_of(cx, place)?.1))).collect();
        let Some((document, _)) = places.first().and_then(|(place, _)| offset_of(cx, place)) else {
            return Vec::new();
        };
        let text = &document.text;
        let names: BTreeSet<&str> = places.iter().map(|(_, at)| name_at(text, *at)).collect();
        let scopes = Scopes::of(text, &names.into_iter().collect::<Vec<_>>());
        let (usage, path) = (Usage::of(text), &document.path);
        let variables = Variables { cx, classes, path, accepted, usage: &usage, scopes: &scopes };
        let another = places.into_iter().filter(|(_, at)| variables.is_another(*at));
        another.map(|(place, _)| place.clone()).collect()
    });
    refuted.into_iter().flatten().collect()
}

fn name_at(text: &str, at: usize) -> &str {
    text[at..].split(|c| !is_in_name(c)).next().unwrap_or_default()
}

/// The variables of one file.
pub(super) struct Variables<'v, 'f> {
    pub(super) cx: &'f RequestContext<'f>,
    pub(super) classes: &'f Classes<'f>,
    /// The file.
    pub(super) path: &'v AbsPath,
    /// The definitions of the symbol.
    pub(super) accepted: &'v BTreeSet<(AbsPath, usize)>,
    pub(super) usage: &'v Usage<'f>,
    /// Of the names that are asked about.
    pub(super) scopes: &'v Scopes,
}

impl Variables<'_, '_> {
    /// Whether the name that begins at an offset certainly is another variable, or imports something else.
    pub(super) fn is_another(&self, at: usize) -> bool {
        if let TokenUse::Imported(alias) = self.usage.of_token(at) {
            let bound = alias.map_or(at, |alias| alias.start);
            return self.usage.import_binding(bound).is_some_and(|import| self.is_of_another(&import));
        }
        let (Some(home), Some(bound)) = (self.scopes.home(at), self.scopes.bound_by(at)) else {
            return false;
        };
        if bound.is_empty()
            || bound.iter().any(|span| self.accepted.contains(&(self.path.clone(), span.start)))
        {
            return false;
        }
        let imports: Vec<Import> =
            bound.iter().filter_map(|span| self.usage.import_binding(span.start)).collect();
        if !imports.is_empty() {
            return imports.len() == bound.len() && imports.iter().all(|import| self.is_of_another(import));
        }
        match home {
            // Another assignment to the variable of the module may be the symbol's.
            ScopeKind::Module => false,
            // What the class has not bound yet is looked up in the module.
            ScopeKind::Class => bound.iter().any(|span| span.start <= at),
            ScopeKind::Function | ScopeKind::Comprehension => true,
        }
    }

    /// Whether an import certainly binds something else.
    fn is_of_another(&self, import: &Import) -> bool {
        let (files, roots) = (&self.cx.state.files, &self.cx.state.inputs.roots);
        let Imported::Name(name) = &import.what else { return import.what != Imported::Star };
        let module = roots.imported(files, import, self.path);
        let Some(file) = module.and_then(|module| module.file().cloned()) else { return false };
        let found = self.classes.resolve(&file, std::slice::from_ref(name));
        !found.is_empty() && !found.iter().any(|place| self.accepted.contains(place))
    }
}
