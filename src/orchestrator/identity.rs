//! Symbol ids for the definitions that facts name.

use super::places::Places;
use super::state::State;
use crate::model::facts::Facts;
use crate::path::DocUri;
use crate::selector::SymbolId;
use crate::text::Range;

/// Gives every definition of the workspace that the facts name its identity.
pub(super) fn name(state: &State, places: &Places<'_>, facts: &mut Facts) {
    let id = |uri: &DocUri, range: Range| -> Option<SymbolId> {
        let path = uri.workspace_path()?;
        let document = places.files.read(&state.ground.snapshot.absolute(path)).ok()?;
        let offset = document.lines.offset(&document.text, range.start, places.server_unit)?;
        let index = state.index();
        index.entry(path, offset, "").map(|entry| index.id(path, entry))
    };
    let definitions = [&mut facts.definitions, &mut facts.declarations, &mut facts.implementations];
    for location in definitions.into_iter().flatten().flatten() {
        location.symbol_id = id(&location.uri, location.range);
    }
    for location in facts.references.iter_mut().flatten() {
        location.symbol_id = id(&location.uri, location.range);
    }
    for symbol in facts.symbols.iter_mut().flatten() {
        symbol.symbol_id = id(&symbol.uri, symbol.selection_range.unwrap_or(symbol.range));
    }
    for call in facts.calls.iter_mut().flatten() {
        for end in [&mut call.caller, &mut call.callee] {
            end.symbol_id = id(&end.uri, end.selection_range.unwrap_or(end.range));
        }
    }
}
