//! What becomes of a function or a class that is used as a value.

use super::super::context::RequestContext;
use super::offset_of;
use crate::lsp::LspLocation;
use crate::python::classes::Classes;
use crate::python::outline::Span;
use crate::python::usage::{TokenUse, Usage};
use crate::text::names::whole_names;
use crate::workspace::files::Files as _;

/// Whether what the places use is passed or assigned as a value somewhere in the workspace.
pub(super) fn is_passed<'p>(
    cx: &RequestContext<'_>,
    places: impl IntoIterator<Item = &'p LspLocation>,
) -> bool {
    let places: Vec<&LspLocation> = places.into_iter().collect();
    places.chunk_by(|a, b| a.path == b.path).any(|file| {
        if !cx.state.is_in_workspace(&file[0].path) {
            return false;
        }
        let Ok(document) = cx.state.files.read(&file[0].path) else { return false };
        let usage = Usage::of(&document.text);
        file.iter()
            .filter_map(|place| offset_of(cx, place))
            .any(|(_, offset)| matches!(usage.of_token(offset), TokenUse::Passed | TokenUse::Assigned(_)))
    })
}

/// Whether what the places use is made the attribute of an object under a name, perhaps inside something else, so that the object has it
/// in place of the method of its class: `x.name = MethodType(f, x)`. A class without such a method that does this to `self` replaces none.
pub(super) fn replaces_methods<'p>(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    places: impl IntoIterator<Item = &'p LspLocation>,
    name: &str,
) -> bool {
    let places: Vec<&LspLocation> = places.into_iter().collect();
    places.chunk_by(|a, b| a.path == b.path).any(|file| {
        if !cx.state.is_in_workspace(&file[0].path) {
            return false;
        }
        let Ok(document) = cx.state.files.read(&file[0].path) else { return false };
        // Most files are not parsed for this.
        let is_target = |span: Span| {
            document.text[..span.start].ends_with('.')
                && document.text[span.end..]
                    .trim_start()
                    .strip_prefix('=')
                    .is_some_and(|rest| !rest.starts_with('='))
        };
        whole_names(&document.text, name).any(is_target) && {
            let usage = Usage::of(&document.text);
            let replaces = |target: Span| {
                let around = usage.receiver(target.start).filter(|receiver| receiver.is_self);
                match around.and_then(|_| classes.around(&document.path, target.start)) {
                    Some(class) => classes.has_method(&class, name),
                    None => true,
                }
            };
            let is_kept = |offset| {
                usage.of_token(offset) == TokenUse::Passed
                    && usage.attribute_for(offset, name).is_some_and(replaces)
            };
            file.iter().filter_map(|place| offset_of(cx, place)).any(|(_, offset)| is_kept(offset))
        }
    })
}
