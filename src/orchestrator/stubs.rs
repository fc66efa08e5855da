//! Places in libraries, told without what hangs on the files that a server happens to have read (see
//! [`crate::resolve::behind`]).

use super::ask::Asking;
use super::failure::Failure;
use super::query::position;
use super::state::Subject;
use crate::lsp::{Listing, Place};
use crate::path::AbsPath;
use crate::resolve::behind::{Behind, behind};
use crate::text::Range;

/// What stands between the code and the documentation of a hover.
const RULE: &str = "\n---\n";

/// Definitions, each the same whatever the server has read.
pub(super) async fn definitions(
    asking: &Asking<'_>,
    subject: &Subject,
    found: Listing<Place>,
) -> Result<Listing<Place>, Failure> {
    let is_library = |place: &&Place| !asking.state.is_in_workspace(&place.path);
    let Listing { mut items, mut skipped } = found;
    if !items.iter().any(|place| is_library(&place)) {
        return Ok(Listing { items, skipped });
    }
    // What is a place of such a stub is what the server has declared; of any other place it may have come by a guess.
    let guessed =
        items.iter().filter(is_library).any(|place| matches!(behind_place(asking, place), Behind::Source));
    if guessed && asking.server.client.capabilities().declaration {
        let declared =
            asking.questions().declaration(&subject.document.path, position(asking, subject)).await?;
        let certain =
            |place: &Place| !is_library(&place) || matches!(behind_place(asking, place), Behind::Source);
        if !declared.items.iter().all(certain) {
            (items, skipped) = (declared.items, declared.skipped);
        }
    }
    let mut told: Vec<Place> = items.into_iter().flat_map(|place| behind_or_itself(asking, place)).collect();
    told.sort();
    told.dedup();
    Ok(Listing { items: told, skipped })
}

/// A hover's text without documentation that the server may or may not have found.
///
/// # Errors
/// [`Failure::Unclean`] when only a server that was never asked anything can tell.
pub(super) fn hover(
    asking: &Asking<'_>,
    markdown: String,
    declared: &Listing<Place>,
) -> Result<String, Failure> {
    let mut doubtful = false;
    for place in declared.items.iter().filter(|place| !asking.state.is_in_workspace(&place.path)) {
        match behind_place(asking, place) {
            Behind::Source | Behind::Nothing { documented: true } => {}
            Behind::Nothing { documented: false } => doubtful = true,
            Behind::Twin(_) => {
                asking.require_pristine()?;
                return Ok(markdown);
            }
        }
    }
    let said = if doubtful { markdown.split(RULE).next().map(str::to_owned) } else { None };
    Ok(said.unwrap_or(markdown))
}

fn behind_place(asking: &Asking<'_>, place: &Place) -> Behind {
    let unit = asking.places.server_unit;
    behind(&asking.state.files, &asking.state.ground.roots, &place.path, |document| {
        document.lines.offset(&document.text, place.range.start, unit).unwrap_or(document.text.len())
    })
}

fn behind_or_itself(asking: &Asking<'_>, place: Place) -> Vec<Place> {
    if asking.state.is_in_workspace(&place.path) {
        return vec![place];
    }
    let Behind::Twin(found) = behind_place(asking, &place) else { return vec![place] };
    let unit = asking.places.server_unit;
    let at =
        |(document, span): (std::sync::Arc<crate::workspace::files::Document>, std::ops::Range<usize>)| {
            let position = |offset| document.lines.position(&document.text, offset, unit);
            let range = Range { start: position(span.start), end: position(span.end) };
            let path: AbsPath = document.path.clone();
            Place { path, range }
        };
    found.into_iter().map(at).collect()
}
