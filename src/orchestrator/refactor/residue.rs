//! Finds an old name in files other than Python: documentation, configuration. These are listed and never edited.

use crate::model::facts::{Occurrence, Residue};
use crate::orchestrator::failure::Failure;
use crate::orchestrator::request_state::RequestState;
use crate::orchestrator::{Settings, blocking};
use crate::path::DocUri;
use crate::tape::IoKind;
use crate::workspace::text_search::find_in_text_files;

/// The kind of such an occurrence.
const KIND: &str = "document";

/// How many to list.
const MAX_LISTED: usize = 20;

/// Removes the occurrences in other files.
pub(super) fn remove_documents(residue: &mut Residue) {
    residue.count -= residue.kinds.remove(KIND).unwrap_or_default();
    residue.items.retain(|item| item.kind != KIND);
}

/// Adds the occurrences in other files to those in Python files.
pub(super) async fn add_documents(
    settings: &Settings,
    state: &RequestState,
    residue: &mut Residue,
    name: &str,
) -> Result<(), Failure> {
    let (root, word) = (settings.root.clone(), name.to_owned());
    let tape = state.tape.clone();
    let find = move || {
        tape.query(IoKind::Index, &("document", &word), || find_in_text_files(&root, &word), Vec::new)
    };
    let found = blocking(find).await?;
    if found.is_empty() {
        return Ok(());
    }
    let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
    residue.count += count;
    residue.kinds.insert(KIND.to_owned(), count);
    for (path, line, column) in found.into_iter().take(MAX_LISTED) {
        let at = format!("{}@L{line}:C{column}", DocUri::Workspace(path));
        residue.items.push(Occurrence { at, kind: KIND.to_owned() });
    }
    Ok(())
}
