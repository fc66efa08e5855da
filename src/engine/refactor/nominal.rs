//! Whether a renamed member can affect files in which neither name is written.
//!
//! In nominal types it cannot: every use of the member writes its name. Structural types can break elsewhere: a call with an object
//! that lost a member of a protocol, `Class(**typed_dict)` where a field was renamed. That needs a structural type in which one of the
//! names is written, in the workspace or in an installed package; or a class that is structural itself. A TypedDict meets a class only
//! where it is unpacked, so the files that do so are compared. A class that inherits from several classes can lose or gain a conflict
//! between them, in its own file.
//!
//! The field of a dataclass is also a parameter of its constructor. Where that must match another callable (`create = Item` in place of a
//! method, two functions for one `ParamSpec`), the class is passed on as an object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::collision::{Renaming, class_of};
use crate::engine::blocking::blocking;
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::engine::implementations::{computed_subclasses, files_with_computed_bases};
use crate::engine::occurrences::files_with;
use crate::path::{AbsPath, WorkspacePath};
use crate::python::classes::{Class, Classes, StructuralForms};
use crate::python::computed_bases::may_take_type_of_object;
use crate::python::hierarchy::Hierarchy;
use crate::python::modules::ImportRoots;
use crate::python::outline::Outline;
use crate::python::passed_on::{is_class_passed_on, is_function_passed_on, passes_types_on, unpacks_into};
use crate::python::roles::parameter_at;
use crate::tape::{IoKind, Tape};
use crate::workspace::files::{DiskFiles, Document, Files};

/// With more installed files in which one of the names is written, they are not read.
const MAX_CONTAINING: usize = 600;

/// What a function with `dataclass_transform`, or one that describes a field, says by the names of its parameters.
const OF_DATACLASSES: [&str; 16] = [
    "alias",
    "converter",
    "default",
    "default_factory",
    "eq",
    "factory",
    "frozen",
    "hash",
    "init",
    "kw_only",
    "match_args",
    "order",
    "repr",
    "slots",
    "unsafe_hash",
    "weakref_slot",
];

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
    let Some(Below { mut files, constructed }) = below_nominal(cx, renaming, &classes) else {
        return Ok(None);
    };
    let forms = structural_types_with(cx, &classes, names).await?;
    if forms.typed_dict && !constructed.is_empty() {
        files.extend(unpacking_into(cx, &constructed));
    }
    Ok((!forms.protocol).then_some(files))
}

/// The files that the parameter of a function of a module can affect, if each definition that is renamed is one: those in which the
/// function's name is written, since nothing passes the function on as an object, not even to a decorator, so that only its calls depend on
/// its parameters. `None` if another file may be affected.
pub(super) async fn files_of_calls(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
) -> Result<Option<BTreeSet<AbsPath>>, Failure> {
    let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
    let function = |(document, offset): (Arc<Document>, usize)| {
        let parameter = parameter_at(&document.text, offset)?;
        let found = classes.defined_at(&document.path, parameter.function?.start)?;
        let is_plain = parameter.decorators.iter().all(|name| name.rsplit('.').next() == Some("overload"));
        (found.qualname.len() == 1 && is_plain).then_some(parameter.name)
    };
    let functions: Option<BTreeSet<String>> = renaming.definitions().cloned().map(function).collect();
    let Some(functions) = functions else { return Ok(None) };
    if [renaming.old, renaming.new].iter().any(|name| OF_DATACLASSES.contains(name)) {
        return Ok(None);
    }
    let snapshot = &cx.state.inputs.snapshot;
    let with_calls = || {
        let is_passed_on = |name: &String| {
            !files_where(cx, name, &|file| is_function_passed_on(&file.text, file.digest, name)).is_empty()
        };
        let files = || -> BTreeSet<WorkspacePath> {
            functions.iter().flat_map(|name| cx.state.files_with_word(name).to_vec()).collect()
        };
        (!functions.iter().any(is_passed_on)).then(files)
    };
    let found = cx.state.tape.query_rare(IoKind::Guard, &("files with calls", &functions), with_calls);
    let Some(found) = found else { return Ok(None) };
    // A module that is passed on may have to match a protocol with a method that has the parameter.
    for name in &functions {
        if may_match_module(cx, [name, name]).await? {
            return Ok(None);
        }
    }
    Ok(Some(found.iter().map(|path| snapshot.absolute(path)).collect()))
}

/// Whether a module that has a name may have to match a structural type with that name: then the types of files in which neither
/// name is written can depend on it.
pub(super) async fn may_match_module(cx: &RequestContext<'_>, names: [&str; 2]) -> Result<bool, Failure> {
    let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
    Ok(structural_types_with(cx, &classes, names).await?.protocol)
}

/// In which structural types, of the workspace or of an installed package, one of the names may be the name of a member.
async fn structural_types_with(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    names: [&str; 2],
) -> Result<StructuralForms, Failure> {
    let containing: BTreeSet<AbsPath> = names.iter().flat_map(|name| files_with(cx, name)).collect();
    let here =
        forms_in(&cx.state.files, classes, containing.iter(), names, |class| classes.structural_forms(class));
    Ok(if here == StructuralForms::ANY { here } else { here.or(forms_in_installed(cx, names).await?) })
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

/// What is below the classes of renamed members.
struct Below {
    /// The files of the subclasses and of what may be one, and those in which the constructors may have to match another callable.
    files: BTreeSet<AbsPath>,
    /// The names of the classes that may have a renamed field as a parameter of the constructor.
    constructed: BTreeSet<String>,
}

/// What is below the classes of the renamed members, if none of these may be structural.
fn below_nominal(cx: &RequestContext<'_>, renaming: &Renaming<'_>, classes: &Classes<'_>) -> Option<Below> {
    let mut below = BTreeSet::new();
    let mut constructed = BTreeSet::new();
    for (document, offset) in renaming.definitions() {
        let (_, start) = class_of(&Outline::parse(&document.text), *offset)?;
        let class = classes.class_at(&document.path, start)?;
        let is_method =
            classes.defined_at(&document.path, *offset).is_some_and(|found| found.kind.is_function());
        if classes.structural_forms(&class).any() {
            return None;
        }
        let found = classes.subclasses(&class, &|name| files_with(cx, name));
        if found.is_cut {
            return None;
        }
        let open = files_with_computed_bases(cx);
        let computed = computed_subclasses(cx, classes, (&class, &found), &open, None);
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
    Some(Below { files: below, constructed })
}

/// The files in which the constructors of classes may have to match another callable, with the names of its parameters: where the class
/// of an object is passed on as an object. `None` if one of the classes itself is.
fn passing_on(cx: &RequestContext<'_>, classes: &BTreeSet<String>) -> Option<BTreeSet<AbsPath>> {
    for class in classes {
        let found = files_where(cx, class, &|file| is_class_passed_on(&file.text, file.digest, class));
        if !found.is_empty() {
            return None;
        }
    }
    let mut found = BTreeSet::new();
    for name in ["type", "__class__"].iter().filter(|_| !classes.is_empty()) {
        found.extend(files_where(cx, name, &|file| passes_types_on(&file.text, file.digest)));
    }
    Some(found)
}

/// The files in which a dictionary may be unpacked into the arguments of one of the constructors.
fn unpacking_into(cx: &RequestContext<'_>, classes: &BTreeSet<String>) -> BTreeSet<AbsPath> {
    // Other functions that lead to the constructor of a class that is not named.
    let others = ["cls", "type", "__class__", "__init__", "replace", "_replace", "__replace__"];
    let names = || classes.iter().map(String::as_str).chain(others);
    let unpacks =
        |file: &Document| unpacks_into(&file.text, &|function| names().any(|name| name == function));
    names().flat_map(|name| files_where(cx, name, &unpacks)).collect()
}

/// The files with a name for which a condition holds.
fn files_where(cx: &RequestContext<'_>, name: &str, is_it: &dyn Fn(&Document) -> bool) -> BTreeSet<AbsPath> {
    let with_name = files_with(cx, name).into_iter();
    with_name.filter(|path| cx.state.files.read(path).is_ok_and(|file| is_it(&file))).collect()
}

/// In which structural types of files one of the names is the name of a member. What cannot be followed may be any.
fn forms_in<'p>(
    files: &dyn Files,
    classes: &Classes<'_>,
    paths: impl Iterator<Item = &'p AbsPath>,
    names: [&str; 2],
    forms_of: impl Fn(&Class) -> StructuralForms,
) -> StructuralForms {
    let mut forms = StructuralForms::default();
    for path in paths {
        let Ok(document) = files.read(path) else { return StructuralForms::ANY };
        let text: &str = &document.text;
        forms.typed_dict |= makes_typed_dict(text) && names.iter().any(|name| is_written_as_key(text, name));
        for class in classes.in_file(path) {
            let statement = text.get(class.span().clone()).unwrap_or_default();
            if names.iter().any(|name| statement.contains(name) && class.has(name)) {
                forms = forms.or(forms_of(&class));
            }
        }
        if forms == StructuralForms::ANY {
            break;
        }
    }
    forms
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

/// In which structural types of an installed package or of the server's stubs one of the names may be the name of a member.
async fn forms_in_installed(cx: &RequestContext<'_>, names: [&str; 2]) -> Result<StructuralForms, Failure> {
    let tape = &cx.state.tape;
    let mut containing = None;
    if !tape.is_replaying() {
        let (inputs, threads) = (cx.state.inputs.clone(), cx.settings.threads);
        let (snapshot_tape, names) = (tape.clone(), names.map(str::to_owned));
        let cache = cx.settings.keep.then(|| cx.settings.cache.clone());
        let search = move || {
            let installed = inputs.installed_words(cache.as_ref(), threads);
            let is_here =
                |word: &str| !inputs.snapshot.files_with_word(word, threads, &snapshot_tape).is_empty();
            let found = installed.files_with(&names.each_ref().map(String::as_str))?;
            Some(reachable(found, &inputs.roots, &is_here, &|word| installed.files_with(&[word])))
        };
        containing = blocking(search).await?;
    }
    let containing = containing.filter(|found| found.len() <= MAX_CONTAINING);
    let decide = || {
        // Only the result is recorded, and not all that it was decided from.
        let files = DiskFiles::on(Tape::off());
        let classes = Classes::new(&files, &cx.state.inputs.roots);
        let of_installed = |class: &Class| classes.structural_forms_of_installed(class);
        let forms = containing.map(|found| forms_in(&files, &classes, found.iter(), names, of_installed));
        forms.unwrap_or(StructuralForms::ANY)
    };
    Ok(tape.query(IoKind::Guard, &("structural forms", names), decide, || StructuralForms::ANY))
}

/// The files without the bundled stubs of packages that nothing can import: neither the workspace nor an installed package writes their
/// names, nor does a bundled stub of a package that can be imported. Of the hundreds of bundled packages a project has few.
fn reachable(
    files: Vec<AbsPath>,
    roots: &ImportRoots,
    is_here: &dyn Fn(&str) -> bool,
    installed: &dyn Fn(&str) -> Option<Vec<AbsPath>>,
) -> Vec<AbsPath> {
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    let is_reachable = |package: &str| {
        let mut seen = BTreeSet::from([package.to_owned()]);
        let mut queue = vec![package.to_owned()];
        while let Some(package) = queue.pop() {
            if is_here(&package) {
                return true;
            }
            let Some(importers) = installed(&package) else { return true };
            for file in importers.iter().filter(|file| !roots.is_shipped(file)) {
                let Some(importer) = roots.bundled_package(file) else { return true };
                if seen.insert(importer.to_owned()) {
                    queue.push(importer.to_owned());
                }
            }
        }
        false
    };
    let mut is_kept = |file: &AbsPath| {
        let Some(package) = roots.bundled_package(file) else { return true };
        *known.entry(package.to_owned()).or_insert_with(|| is_reachable(package))
    };
    files.into_iter().filter(|file| is_kept(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::files::MemoryFiles;
    use crate::workspace::server_config::ServerConfig;

    #[test]
    fn bundled_stubs_count_if_something_can_import_them() {
        let at = |path: &str| AbsPath::new(path).unwrap();
        let memory = MemoryFiles::new([("/w/m.py", "")]);
        let config = ServerConfig::default();
        let roots = ImportRoots::new(&memory, &at("/w"), &config, None, Some(at("/ts")));
        let stub = |name: &str| at(&format!("/ts/stubs/{name}/{name}/x.pyi"));
        let importers = |name: &str| match name {
            // They import each other, and only the standard library names them.
            "a" => Some(vec![stub("a"), stub("b"), at("/ts/stdlib/re.pyi")]),
            "b" => Some(vec![stub("a")]),
            "installed" => Some(vec![at("/e/other.py")]),
            "used" => Some(vec![stub("here")]),
            "unknown" => None,
            _ => Some(Vec::new()),
        };
        let names = ["a", "b", "here", "installed", "used", "unknown"];
        let mut files: Vec<AbsPath> = names.map(stub).to_vec();
        files.push(at("/ts/stdlib/re.pyi"));
        let kept = reachable(files, &roots, &|name| name == "here", &importers);
        let mut expected: Vec<AbsPath> = names[2..].iter().map(|name| stub(name)).collect();
        expected.push(at("/ts/stdlib/re.pyi"));
        assert_eq!(kept, expected);
    }

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
