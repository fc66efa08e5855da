//! Imports that bind the renamed name beside its own definition: `try: from lib import f`, `except ImportError: def f(): ...`.
//! The other module keeps its name, so that the import gets an alias.

use std::collections::BTreeMap;

use super::collision::Renaming;
use super::exports::{ReorderedExports, remove_within};
use super::rename_edit::with_edits;
use crate::engine::context::RequestContext;
use crate::model::edits::{TextEdit, WorkspaceEdit};
use crate::path::AbsPath;
use crate::python::classes::Classes;
use crate::python::outline::{Import, Imported, Outline};
use crate::python::scopes::Scopes;
use crate::workspace::files::{Document, Files as _};

/// Gives an alias to each import of another symbol that binds the old name in a scope whose binding is renamed. Returns where the
/// name stands at another place afterwards.
pub(super) fn with_aliases(
    cx: &RequestContext<'_>,
    mut edit: WorkspaceEdit,
    renaming: &Renaming<'_>,
) -> (WorkspaceEdit, Vec<ReorderedExports>) {
    let (old, new) = (renaming.old, renaming.new);
    let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
    let mut aliased = Vec::new();
    let mut more: BTreeMap<AbsPath, Vec<TextEdit>> = BTreeMap::new();
    for (path, splices) in renaming.splices {
        let Ok(document) = cx.state.files.read(path) else { continue };
        let outline = Outline::parse(&document.text);
        let mut foreign = outline
            .imports
            .iter()
            .filter(|import| is_plain(import, &document.text, old))
            .filter(|import| !may_be_symbol(cx, &classes, &document, import, renaming))
            .peekable();
        if foreign.peek().is_none() {
            continue;
        }
        let scopes = Scopes::of(&document.text, &[old]);
        let bindings: Vec<_> =
            splices.iter().filter_map(|splice| scopes.bound_by(splice.span.start)).flatten().collect();
        for import in foreign.filter(|import| bindings.contains(&import.bound_span)) {
            let span = import.bound_span.clone();
            let range = document.lines.range(&document.text, span.clone(), cx.locations.server_unit);
            remove_within(&mut edit, cx, path, range);
            let new_text = format!("{old} as {new}");
            more.entry(path.clone()).or_default().push(TextEdit {
                range: range.into(),
                new_text,
                annotation_id: None,
            });
            aliased.push((path.clone(), span));
        }
    }
    (with_edits(edit, more), aliased)
}

/// Whether an import binds a name without an alias: `from m import name`, `import name`.
fn is_plain(import: &Import, text: &str, name: &str) -> bool {
    let imports_it = match &import.what {
        Imported::Name(of) => of == name,
        Imported::Top => import.module == name,
        Imported::Module | Imported::Star => false,
    };
    imports_it && import.bound == name && !text[..import.bound_span.start].trim_end().ends_with(" as")
}

/// Whether an import may lead to the renamed symbol.
fn may_be_symbol(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    document: &Document,
    import: &Import,
    renaming: &Renaming<'_>,
) -> bool {
    let is_it = |path: &AbsPath, offset: usize| {
        renaming.definitions().any(|(document, at)| document.path == *path && *at == offset)
    };
    let (roots, files) = (&cx.state.inputs.roots, &cx.state.files);
    let module = roots.imported(files, import, &document.path);
    if let Some(file) = module.as_ref().and_then(|module| module.file()) {
        // In the file itself the name leads to all of its bindings.
        return *file == document.path
            || classes.resolve(file, &[renaming.old.to_owned()]).iter().any(|(path, at)| is_it(path, *at));
    }
    // A module under a name that is not found from here.
    let last = import.module.rsplit('.').next().unwrap_or_default();
    import.level > 0
        || renaming.definitions().any(|(document, _)| {
            let own = roots.name_of_any(&document.path);
            own.is_some_and(|own| own.split('.').any(|part| part == last))
        })
}
