//! Checks that the references of the new name are exactly those of the old one, at their new positions.

use std::collections::{BTreeMap, BTreeSet};

use super::checks::Checks;
use super::exports::ReorderedExports;
use super::family::DefinitionSite;
use super::speculate::EditOverlay;
use crate::edit::text::{Splice, map_offset};
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::lsp::LspLocation;
use crate::model::edits::CheckName;
use crate::path::AbsPath;
use crate::workspace::files::{Document, Files};

/// References before and after an edit.
pub(super) struct RoundTrip<'r> {
    pub(super) splices: &'r BTreeMap<AbsPath, Vec<Splice>>,
    /// The renamed definitions, each at a place that the server accepts.
    pub(super) definitions: &'r [DefinitionSite],
    /// Their references before the edit.
    pub(super) references: &'r BTreeSet<LspLocation>,
    /// Lists in which the name stands at another place afterwards.
    pub(super) reordered: &'r [ReorderedExports],
}

impl RoundTrip<'_> {
    /// Requests the references of the new name where those of the old one were requested, and compares them. The server
    /// must have been shown the edited texts.
    pub(super) async fn check(
        &self,
        cx: &RequestContext<'_>,
        checks: &mut Checks<'_>,
        overlay: &EditOverlay<'_>,
    ) -> Result<(), Failure> {
        let Self { splices, definitions: requested, references, reordered } = *self;
        let unit = cx.locations.server_unit;
        let nothing = Vec::new();
        let of = |path: &AbsPath| splices.get(path).unwrap_or(&nothing);
        let shift = |path: &AbsPath, before: &Document, offset: usize| {
            let after = overlay.read(path).ok()?;
            Some(
                after
                    .lines
                    .position(&after.text, map_offset(of(path), offset), unit)
                    .min(after_end(&after, unit)),
            )
            .filter(|_| before.text.len() >= offset)
        };
        let mut expected = BTreeSet::new();
        let is_reordered = |path: &AbsPath, offset: usize| {
            reordered.iter().any(|(list, span)| list == path && span.contains(&offset))
        };
        // An installed copy of the package, or one that uses it, is not edited.
        let is_here = |path: &AbsPath| cx.state.is_in_workspace(path);
        for place in references.iter().filter(|place| is_here(&place.path)) {
            let Ok(before) = cx.state.files.read(&place.path) else { continue };
            let offset = before.lines.offset(&before.text, place.range.start, unit);
            let offset = offset.filter(|offset| !is_reordered(&place.path, *offset));
            expected.extend(
                offset
                    .and_then(|offset| shift(&place.path, &before, offset))
                    .map(|at| (place.path.clone(), at)),
            );
        }
        let mut found = BTreeSet::new();
        for (document, offset) in requested {
            let Some(position) = shift(&document.path, document, *offset) else { return Ok(()) };
            let claimed = cx.requests().references(&document.path, position, true).await?;
            found.extend(claimed.items.into_iter().map(|place| (place.path, place.range.start)));
        }
        // The same lists after the edit.
        found.retain(|(path, start): &(AbsPath, crate::text::Position)| {
            if !is_here(path) {
                return false;
            }
            let after = overlay.read(path).ok();
            let offset = after.as_ref().and_then(|after| after.lines.offset(&after.text, *start, unit));
            !reordered.iter().any(|(list, span)| {
                let now = map_offset(of(path), span.start)..map_offset(of(path), span.end);
                list == path && offset.is_some_and(|offset| now.contains(&offset))
            })
        });
        // Where the new name was written on purpose, the server only confirms what it did not know before.
        let is_written = |(path, start): &&(AbsPath, crate::text::Position)| {
            let after = overlay.read(path).ok();
            let offset = after.as_ref().and_then(|after| after.lines.offset(&after.text, *start, unit));
            of(path).iter().any(|splice| Some(map_offset(of(path), splice.span.start)) == offset)
        };
        let lost = expected.difference(&found);
        let gained = found.difference(&expected).filter(|place| !is_written(place));
        let (lost, gained): (Vec<_>, Vec<_>) = (lost.collect(), gained.collect());
        if lost.is_empty() && gained.is_empty() {
            checks.pass(
                CheckName::RoundTrip,
                format!(
                    "the server reports the same {} for the new name as for the old one",
                    crate::text::plural(expected.len(), "reference")
                ),
            );
            return Ok(());
        }
        let at = |(path, start): &&(AbsPath, crate::text::Position)| {
            let uri = cx.locations.paths.uri(path);
            format!("{uri}@L{}:C{}", start.line.saturating_add(1), start.column.saturating_add(1))
        };
        let detail = format!(
            "the new name loses {} and gains {}",
            crate::text::plural(lost.len(), "reference"),
            gained.len()
        );
        checks.fail(CheckName::RoundTrip, detail, lost.iter().chain(&gained).map(at).collect());
        Ok(())
    }
}

fn after_end(document: &Document, unit: crate::text::ColumnUnit) -> crate::text::Position {
    document.lines.position(&document.text, document.text.len(), unit)
}
