//! Which files may have classes with computed bases: decided once for each state of the workspace.

use super::context::RequestContext;
use crate::path::{AbsPath, WorkspacePath};
use crate::python::computed_bases::{self, FileHeads};
use crate::tape::IoKind;
use crate::text::decode_source;
use crate::workspace::files::read_bytes;
use crate::workspace::parallel::parallel_map;

/// The files of the workspace that may have classes with computed bases.
pub(super) fn files_with_computed_bases(cx: &RequestContext<'_>) -> Vec<AbsPath> {
    let snapshot = &cx.state.inputs.snapshot;
    let find = || {
        let files: Vec<&WorkspacePath> = snapshot.files().keys().collect();
        let heads = parallel_map(&files, cx.settings.threads, |path| {
            let bytes = read_bytes(&snapshot.absolute(path)).unwrap_or_default();
            FileHeads::of(&decode_source(bytes).text)
        });
        let selected = computed_bases::files_with_computed_bases(&heads);
        selected.into_iter().map(|index| files[index].clone()).collect::<Vec<WorkspacePath>>()
    };
    let known = || cx.state.inputs.computed_bases.get_or_init(find).clone();
    let found = cx.state.tape.query(IoKind::Index, &"files with computed bases", known, Vec::new);
    found.iter().map(|path| snapshot.absolute(path)).collect()
}
