//! Positions as the server counts them, and the failure for a position where it finds nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::context::RequestContext;
use super::failure::Failure;
use super::request_state::RequestTarget;
use crate::lsp::{Listing, LspLocation, Profile};
use crate::model::request::Command;
use crate::path::AbsPath;
use crate::python::occurrences::{OccurrenceKind, occurrences};
use crate::python::outline::Span;
use crate::text::{Position, Range};
use crate::workspace::files::{Document, Files as _};

/// The target's position in the server's columns.
pub(super) fn position(cx: &RequestContext<'_>, target: &RequestTarget) -> Position {
    let document: &Arc<_> = &target.document;
    document.lines.position(&document.text, target.offset, cx.locations.server_unit)
}

/// The failure for a target for which the server returns nothing.
pub(super) fn no_result(cx: &RequestContext<'_>, target: &RequestTarget) -> Failure {
    let (_, _, at) = cx.locations.span(&target.document, target.offset..target.offset);
    let what = target.name().map_or_else(|| "the text".to_owned(), |name| format!("`{name}`"));
    let message = format!("{} has no {} for {what} at {at}", cx.settings.server, cx.request.cmd.as_str());
    let hint = match (target.name(), cx.request.cmd) {
        (None, _) => {
            "there is no identifier at this location; `lanser symbols PATH` lists the names of a file"
                .to_owned()
        }
        (Some(name), cmd) if searches_definition(cmd) && is_attribute(target, name) => format!(
            "the type of the receiver is unknown or has no `{name}`; annotate the receiver, or search with `lanser symbols --query {name}`"
        ),
        (Some(name), Command::Calls) if !is_attribute(target, name) => {
            "calls are those of functions and classes; `lanser refs` lists the uses of any name".to_owned()
        }
        (Some(_), _) => {
            "the server does not know this name; `lanser diag PATH` shows unresolved imports".to_owned()
        }
    };
    Failure::not_found(message, hint)
}

/// Whether an empty response of the server means that it does not know the definition of the name.
const fn searches_definition(cmd: Command) -> bool {
    use Command::{Declaration, Definition, Hover, Implementation, References, TypeHierarchy};
    matches!(cmd, Definition | Declaration | Implementation | References | Hover | TypeHierarchy)
}

/// Whether the target is the name after the dot of an attribute.
fn is_attribute(target: &RequestTarget, name: &str) -> bool {
    let (document, start) = (&target.document, target.name_span.as_ref().map(|span| span.start));
    occurrences(&document.text, document.digest, name)
        .iter()
        .any(|found| Some(found.start) == start && found.kind == OccurrenceKind::Attribute)
}

/// The distinct paths of a list of locations.
pub(super) fn distinct<'p>(locations: impl IntoIterator<Item = &'p LspLocation>) -> BTreeSet<&'p AbsPath> {
    locations.into_iter().map(|place| &place.path).collect()
}

/// The file of a place, and the place in bytes; `None` if the file cannot be read or has no such place.
pub(super) fn span_of(cx: &RequestContext<'_>, place: &LspLocation) -> Option<(Arc<Document>, Span)> {
    let document = cx.state.files.read(&place.path).ok()?;
    let offset = |position| document.lines.offset(&document.text, position, cx.locations.server_unit);
    let span = offset(place.range.start)?..offset(place.range.end)?;
    Some((document, span))
}

/// The definitions by their names alone.
pub(super) fn by_name(cx: &RequestContext<'_>, mut found: Listing<LspLocation>) -> Listing<LspLocation> {
    if Profile::of(cx.settings.server).defines_dotted {
        for place in &mut found.items {
            if let Some(range) = last_name(cx, place) {
                place.range = range;
            }
        }
    }
    found
}

/// The range of the last name of a dotted expression; `None` if the place is nothing like that.
fn last_name(cx: &RequestContext<'_>, place: &LspLocation) -> Option<Range> {
    if place.range.start.line != place.range.end.line {
        return None;
    }
    let (document, whole) = span_of(cx, place)?;
    let (before, name) = document.text.get(whole.clone())?.rsplit_once('.')?;
    let is_dotted = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_alphanumeric());
    let span = whole.start + before.len() + 1..whole.end;
    is_dotted.then(|| document.lines.range(&document.text, span, cx.locations.server_unit))
}
