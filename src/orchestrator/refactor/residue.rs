//! Where an old name also stands in files that are no Python: documentation, configuration. These are listed and never edited.

use crate::model::facts::{Occurrence, Residue};
use crate::orchestrator::ask::Asking;
use crate::orchestrator::blocking;
use crate::orchestrator::failure::Failure;
use crate::path::DocUri;
use crate::tape::Door;
use crate::workspace::prose::lines_with_word;

/// What such an occurrence is called.
const KIND: &str = "document";

/// The most that are listed.
const LISTED: usize = 20;

/// Adds the places of other files to those of Python files.
pub(super) async fn add_documents(
    asking: &Asking<'_>,
    residue: &mut Residue,
    name: &str,
) -> Result<(), Failure> {
    let (root, word) = (asking.settings.root.clone(), name.to_owned());
    let tape = asking.state.tape.clone();
    let find =
        move || tape.ask(Door::Index, &("document", &word), || lines_with_word(&root, &word), Vec::new);
    let found = blocking(find).await?;
    if found.is_empty() {
        return Ok(());
    }
    let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
    residue.count += count;
    residue.kinds.insert(KIND.to_owned(), count);
    for (path, line, column) in found.into_iter().take(LISTED) {
        let at = format!("{}@L{line}:C{column}", DocUri::Workspace(path));
        residue.items.push(Occurrence { at, kind: KIND.to_owned() });
    }
    Ok(())
}
