//! Whether the references of the new name are exactly those of the old one, moved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::checks::Checks;
use super::speculate::Overlay;
use crate::edit::text::{Splice, moved};
use crate::lsp::Place;
use crate::model::edits::CheckName;
use crate::orchestrator::ask::Asking;
use crate::orchestrator::failure::Failure;
use crate::path::AbsPath;
use crate::workspace::files::{Document, Files};

/// Asks for the references of the new name where the old one was asked about, and compares. The server is shown the edited
/// texts.
pub(super) async fn check(
    asking: &Asking<'_>,
    checks: &mut Checks<'_>,
    overlay: &Overlay<'_>,
    splices: &BTreeMap<AbsPath, Vec<Splice>>,
    asked: (&Arc<Document>, usize),
    references: &[Place],
) -> Result<(), Failure> {
    let unit = asking.places.server_unit;
    let nothing = Vec::new();
    let of = |path: &AbsPath| splices.get(path).unwrap_or(&nothing);
    let shift = |path: &AbsPath, before: &Document, offset: usize| {
        let after = overlay.read(path).ok()?;
        Some(after.lines.position(&after.text, moved(of(path), offset), unit).min(after_end(&after, unit)))
            .filter(|_| before.text.len() >= offset)
    };
    let Some(position) = shift(&asked.0.path, asked.0, asked.1) else { return Ok(()) };
    let mut expected = BTreeSet::new();
    for place in references {
        let Ok(before) = asking.state.files.read(&place.path) else { continue };
        let offset = before.lines.offset(&before.text, place.range.start, unit);
        expected.extend(
            offset.and_then(|offset| shift(&place.path, &before, offset)).map(|at| (place.path.clone(), at)),
        );
    }
    let found = asking.questions().references(&asked.0.path, position, true).await?;
    let found: BTreeSet<_> = found.items.into_iter().map(|place| (place.path, place.range.start)).collect();
    let lost = expected.difference(&found);
    let gained = found.difference(&expected);
    let (lost, gained): (Vec<_>, Vec<_>) = (lost.collect(), gained.collect());
    if lost.is_empty() && gained.is_empty() {
        checks.pass(
            CheckName::RoundTrip,
            format!("the new name has the {} references of the old one", found.len()),
        );
        return Ok(());
    }
    let at = |(path, start): &&(AbsPath, crate::text::Position)| {
        let uri = asking.places.paths.uri(path);
        format!("{uri}@L{}:C{}", start.line + 1, start.column + 1)
    };
    let detail = format!("the new name loses {} references and gains {}", lost.len(), gained.len());
    checks.fail(CheckName::RoundTrip, detail, lost.iter().chain(&gained).map(at).collect());
    Ok(())
}

fn after_end(document: &Document, unit: crate::text::ColumnUnit) -> crate::text::Position {
    document.lines.position(&document.text, document.text.len(), unit)
}
