//! Whether a renamed member can affect files in which neither name is written.
//!
//! In nominal types it cannot: every use of the member writes its name. Structural types (protocols, TypedDicts) can break
//! elsewhere: a call with an object that lost a member of a protocol, `Class(**typed_dict)` where a field was renamed. That needs
//! a structural type in which one of the names is written, in the workspace or in an installed package; or a class that is
//! structural itself. A class that inherits from several classes can lose or gain a conflict between them, in its own file.
//!
//! The field of a dataclass is also a parameter of its constructor. Where that must match another callable (`create = Item` in place of a
//! method, two functions for one `ParamSpec`), the class is passed on as an object.

use std::collections::BTreeSet;

use super::collision::{Renaming, class_of};
use super::installed_words;
use crate::engine::blocking::blocking;
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::engine::implementations::files_with_computed_bases;
use crate::engine::occurrences::files_with;
use crate::path::AbsPath;
use crate::python::classes::Classes;
use crate::python::computed_bases::may_take_type_of_object;
use crate::python::hierarchy::Hierarchy;
use crate::python::outline::Outline;
use crate::python::passed_on::{is_class_passed_on, passes_types_on};
use crate::tape::IoKind;
use crate::workspace::files::{Document, Files as _};

/// With more installed files in which one of the names is written, they are not read.
const MAX_CONTAINING: usize = 600;

/// The files of the subclasses and of what may be one, if nothing but these and the files in which one of the names is written can be
/// affected.
pub(super) async fn files_of_subclasses(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
    around: &Hierarchy,
) -> Result<Option<BTreeSet<AbsPath>>, Failure> {
    let names = [renaming.old, renaming.new];
    // Leading underscores, capitals and dunders mean something to a type checker.
    let form = |name: &str| (name.starts_with('_'), name.starts_with("__"), name.to_uppercase() == name);
    let keeps_form = form(renaming.old) == form(renaming.new) && !renaming.old.starts_with("__");
    if !keeps_form || !renames_all_around(renaming, around) {
        return Ok(None);
    }
    let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
    let Some(below) = below_nominal(cx, renaming, &classes) else { return Ok(None) };
    Ok((!is_in_any_structural_type(cx, &classes, names).await?).then_some(below))
}

/// Whether a module that has a name may have to match a structural type with that name: then the types of files in which neither
/// name is written can depend on it.
pub(super) async fn may_match_module(cx: &RequestContext<'_>, names: [&str; 2]) -> Result<bool, Failure> {
    let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
    is_in_any_structural_type(cx, &classes, names).await
}

/// Whether one of the names may be written in a structural type, of the workspace or of an installed package.
async fn is_in_any_structural_type(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    names: [&str; 2],
) -> Result<bool, Failure> {
    let containing: BTreeSet<AbsPath> = names.iter().flat_map(|name| files_with(cx, name)).collect();
    let is_here = containing.iter().any(|path| is_in_structural_type(cx, classes, path, names));
    Ok(is_here || is_in_installed(cx, names).await?)
}

/// Whether all classes around the renamed members are known, and every member with one of the names there is renamed.
fn renames_all_around(renaming: &Renaming<'_>, around: &Hierarchy) -> bool {
    let renamed: BTreeSet<(&AbsPath, usize)> =
        renaming.definitions().map(|(document, offset)| (&document.path, *offset)).collect();
    let mut members = around.members.values().flatten();
    !around.is_cut
        && around.unknown.is_empty()
        && members.all(|member| renamed.contains(&(&member.document.path, member.name_span.start)))
}

/// The files of the subclasses of the classes of the renamed members, if none of these may be structural.
fn below_nominal(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
    classes: &Classes<'_>,
) -> Option<BTreeSet<AbsPath>> {
    let mut below = BTreeSet::new();
    let mut constructed = BTreeSet::new();
    for (document, offset) in renaming.definitions() {
        let (_, start) = class_of(&Outline::parse(&document.text), *offset)?;
        let class = classes.class_at(&document.path, start)?;
        let is_method =
            classes.defined_at(&document.path, *offset).is_some_and(|found| found.kind.is_function());
        if classes.may_be_structural(&class) {
            return None;
        }
        let found = classes.subclasses(&class, &|name| files_with(cx, name));
        if found.is_cut {
            return None;
        }
        let open = files_with_computed_bases(cx);
        let computed = classes.computed_subclasses(&class, &found, &open, None);
        // A field may be a parameter of a constructor that is made from it.
        if !is_method && !class.is_plain() && !classes.is_enumeration(&class) {
            // If the class itself is passed on nowhere, which is asked below, a computed base is it only by the class of an object.
            if renaming.old.starts_with('_') || computed.iter().any(may_take_type_of_object) {
                return None;
            }
            constructed.extend(found.classes.iter().chain([&class]).map(|class| class.name().to_owned()));
        }
        below.extend(found.classes.iter().map(|class| class.document().path.clone()));
        // What may be a subclass is checked as one.
        below.extend(computed.iter().map(|class| class.document.path.clone()));
    }
    below.extend(passing_on(cx, &constructed)?);
    Some(below)
}

/// The files in which the constructors of classes may have to match another callable, with the names of its parameters: where the class
/// of an object is passed on as an object. `None` if one of the classes itself is.
fn passing_on(cx: &RequestContext<'_>, classes: &BTreeSet<String>) -> Option<BTreeSet<AbsPath>> {
    let in_files = |name: &str, is_it: &dyn Fn(&Document) -> bool| -> BTreeSet<AbsPath> {
        let with_name = files_with(cx, name).into_iter();
        with_name.filter(|path| cx.state.files.read(path).is_ok_and(|file| is_it(&file))).collect()
    };
    for class in classes {
        let found = in_files(class, &|file| is_class_passed_on(&file.text, file.digest, class));
        if !found.is_empty() {
            return None;
        }
    }
    let mut found = BTreeSet::new();
    for name in ["type", "__class__"].iter().filter(|_| !classes.is_empty()) {
        found.extend(in_files(name, &|file| passes_types_on(&file.text, file.digest)));
    }
    Some(found)
}

/// Whether one of the names is written in a structural type of a file, which may be any type that cannot be followed.
fn is_in_structural_type(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    path: &AbsPath,
    names: [&str; 2],
) -> bool {
    let Ok(document) = cx.state.files.read(path) else { return true };
    let text: &str = &document.text;
    (makes_typed_dict(text) && names.iter().any(|name| is_written_as_key(text, name)))
        || classes.in_file(path).iter().any(|class| {
            let statement = text.get(class.span().clone()).unwrap_or_default();
            let is_there = |name: &&str| statement.contains(*name) && class.has_in_shape(name);
            names.iter().any(is_there) && classes.may_be_structural(class)
        })
}

/// `Point = TypedDict("Point", {"x": int})`
fn makes_typed_dict(text: &str) -> bool {
    text.contains("TypedDict(") || text.contains("TypedDict as ")
}

/// Whether a name stands in quotes, or as a keyword.
fn is_written_as_key(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        (before.ends_with(['"', '\'']) && after.starts_with(['"', '\'']))
            || after.trim_start().strip_prefix('=').is_some_and(|rest| !rest.starts_with('='))
    })
}

/// Whether one of the names may be written in a structural type of an installed package or of the server's stubs.
async fn is_in_installed(cx: &RequestContext<'_>, names: [&str; 2]) -> Result<bool, Failure> {
    let tape = &cx.state.tape;
    let containing = match tape.is_replaying() {
        true => None,
        false => {
            let (inputs, threads) = (cx.state.inputs.clone(), cx.settings.threads);
            let store = cx.settings.keep.then(|| installed_words::store(&cx.settings.cache));
            let names = names.map(str::to_owned);
            blocking(move || installed_words::installed_with(&inputs, &names, store.as_ref(), threads))
                .await?
        }
    };
    let containing = containing.filter(|found| found.len() <= MAX_CONTAINING);
    let decide = || {
        let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
        containing
            .is_none_or(|found| found.iter().any(|path| is_in_structural_type(cx, &classes, path, names)))
    };
    Ok(tape.query(IoKind::Guard, &("structural", names), decide, || true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_typed_dicts() {
        for text in ["TypedDict('P', {'x': int})", "TypedDict(\"P\", {\"x\": int})", "TypedDict('P', x=int)"]
        {
            assert!(makes_typed_dict(text) && is_written_as_key(text, "x"), "{text}");
        }
        for text in ["def x(): ...", "x == 1", "'box'", "m.x"] {
            assert!(!is_written_as_key(text, "x"), "{text}");
        }
    }
}
