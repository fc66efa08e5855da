//! What becomes of a function or a class that is used as a value.

use std::sync::Arc;

use super::super::context::RequestContext;
use super::offset_of;
use super::symbol::SearchedSymbol;
use crate::lsp::LspLocation;
use crate::python::classes::Classes;
use crate::python::outline::Span;
use crate::python::usage::{Receiver, TokenUse, Usage};
use crate::python::value_use::ValueUse;
use crate::text::names::whole_names;
use crate::workspace::files::{Document, Files as _};

/// Whether the symbol, which the places use, is passed or assigned as a value somewhere in the workspace.
pub(super) fn is_passed<'p>(
    cx: &RequestContext<'_>,
    symbol: &SearchedSymbol,
    places: impl IntoIterator<Item = &'p LspLocation>,
) -> bool {
    if symbol.is_passed_to_decorator {
        return true;
    }
    let places: Vec<&LspLocation> = places.into_iter().collect();
    by_file(cx, &places).any(|(document, mut offsets)| {
        let usage = Usage::of(&document.text);
        // Also `getattr(x, "name")`.
        let is_looked_up = |offset: usize| {
            document.text[..offset].ends_with(['"', '\''])
                && matches!(usage.value_use(offset), ValueUse::Bound(_) | ValueUse::Escapes)
        };
        offsets.any(|offset| {
            matches!(usage.of_token(offset), TokenUse::Passed | TokenUse::Assigned(_)) || is_looked_up(offset)
        })
    })
}

/// Whether what the places use is made the attribute of an object under a name, perhaps inside something else, so that the object has it
/// in place of the method of its class: `x.name = MethodType(f, x)`, `setattr(x, "name", f)`. A class without such a method that does
/// this to `self` replaces none.
pub(super) fn replaces_methods<'p>(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    places: impl IntoIterator<Item = &'p LspLocation>,
    name: &str,
) -> bool {
    let places: Vec<&LspLocation> = places.into_iter().collect();
    by_file(cx, &places).any(|(document, mut offsets)| {
        let text = &document.text;
        // Most files are not parsed for this.
        let may_set = text.contains("setattr(");
        let is_target = |span: Span| {
            let value = text[span.end..].trim_start();
            let is_bound = value.starts_with('=') && !value.starts_with("==") || value.starts_with("in ");
            text[..span.start].ends_with('.') && is_bound
                || may_set && text[..span.start].ends_with(['"', '\''])
        };
        if !whole_names(text, name).any(is_target) {
            return false;
        }
        let usage = Usage::of(text);
        let replaces = |object: Receiver| {
            let class = Some(&object).filter(|object| object.is_self);
            let class = class.and_then(|object| classes.around(&document.path, object.span.start));
            class.is_none_or(|class| classes.has_method(&class, name))
        };
        offsets.any(|offset| {
            usage.of_token(offset) == TokenUse::Passed
                && usage.object_given(offset, name).is_some_and(replaces)
        })
    })
}

/// The files of the workspace with the offsets of the places in them. The places of a file stand together.
fn by_file<'p>(
    cx: &'p RequestContext<'_>,
    places: &'p [&'p LspLocation],
) -> impl Iterator<Item = (Arc<Document>, impl Iterator<Item = usize> + 'p)> {
    places
        .chunk_by(|a, b| a.path == b.path)
        .filter(|file| cx.state.is_in_workspace(&file[0].path))
        .filter_map(|file| {
            let document = cx.state.files.read(&file[0].path).ok()?;
            Some((document, file.iter().filter_map(|place| Some(offset_of(cx, place)?.1))))
        })
}
