//! Whether a renamed member can affect files in which neither name is written.
//!
//! In nominal types it cannot: every use of the member writes its name. Structural types (protocols, TypedDicts) can break
//! elsewhere: a call with an object that lost a member of a protocol, `Class(**typed_dict)` where a field was renamed. That needs
//! a structural type in which one of the names is written, in the workspace or in an installed package; or a class that is
//! structural itself. A class that inherits from several classes can lose or gain a conflict between them, in its own file.

use std::collections::BTreeSet;

use super::collision::{Renaming, class_of};
use crate::digest::Digest;
use crate::engine::blocking::blocking;
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::engine::implementations::files_with_computed_bases;
use crate::engine::inputs::Inputs;
use crate::engine::occurrences::files_with;
use crate::path::AbsPath;
use crate::python::classes::Classes;
use crate::python::hierarchy::Hierarchy;
use crate::python::outline::Outline;
use crate::tape::IoKind;
use crate::workspace::disk_cache::DiskCache;
use crate::workspace::files::{Files as _, canonical};
use crate::workspace::parallel::parallel_map;

/// The maximum size of the cache of searches in installed packages, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// With more files in the installed packages, they are not searched.
const MAX_FILES: usize = 100_000;

/// With more installed files in which one of the names is written, they are not read.
const MAX_CONTAINING: usize = 600;

/// The files of the subclasses, if nothing but these and the files in which one of the names is written can be affected.
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
    let containing: BTreeSet<AbsPath> = names.iter().flat_map(|name| files_with(cx, name)).collect();
    let is_structural = containing.iter().any(|path| is_in_structural_type(cx, &classes, path, names));
    let is_structural = is_structural || is_in_installed(cx, names).await?;
    Ok((!is_structural).then_some(below))
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
    for (document, offset) in renaming.definitions() {
        let (_, start) = class_of(&Outline::parse(&document.text), *offset)?;
        let class = classes.class_at(&document.path, start)?;
        let is_method =
            classes.defined_at(&document.path, *offset).is_some_and(|found| found.kind.is_function());
        // A field may be a parameter of a constructor that is made from it.
        if !is_method && !class.is_plain() || classes.may_be_structural(&class) {
            return None;
        }
        let found = classes.subclasses(&class, &|name| files_with(cx, name));
        let open = files_with_computed_bases(cx);
        if found.is_cut || !classes.computed_subclasses(&class, &found, &open, None).is_empty() {
            return None;
        }
        below.extend(found.classes.iter().map(|class| class.document().path.clone()));
    }
    Some(below)
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
    // `Point = TypedDict("Point", {"x": int})`
    let makes_typed_dict = text.contains("TypedDict(") || text.contains("TypedDict as ");
    makes_typed_dict
        || classes.in_file(path).iter().any(|class| {
            let statement = text.get(class.span().clone()).unwrap_or_default();
            let is_there = |name: &&str| statement.contains(*name) && class.has_in_shape(name);
            names.iter().any(is_there) && classes.may_be_structural(class)
        })
}

/// Whether one of the names may be written in a structural type of an installed package or of the server's stubs.
async fn is_in_installed(cx: &RequestContext<'_>, names: [&str; 2]) -> Result<bool, Failure> {
    let tape = &cx.state.tape;
    let containing = match tape.is_replaying() {
        true => None,
        false => {
            let (inputs, threads) = (cx.state.inputs.clone(), cx.settings.threads);
            let store =
                cx.settings.keep.then(|| DiskCache::new(cx.settings.cache.join("installed"), MAX_BYTES));
            let names = names.map(str::to_owned);
            blocking(move || installed_with(&inputs, &names, store.as_ref(), threads)).await?
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

/// The installed files in which one of the names is written. `None` if not all files can be searched.
fn installed_with(
    inputs: &Inputs,
    names: &[String; 2],
    store: Option<&DiskCache>,
    threads: usize,
) -> Option<Vec<AbsPath>> {
    // Names beyond ASCII can be written in several ways.
    let folders = inputs.installed_folders().filter(|_| names.iter().all(|name| name.is_ascii()))?;
    let group = inputs.packages_digest();
    let fields = folders.iter().map(AbsPath::as_str).chain(names.iter().map(String::as_str));
    let key = Digest::of_fields(fields.map(str::as_bytes));
    let known = store.and_then(|store| serde_json::from_slice(&store.get(&group, &key)?).ok());
    if let Some(known) = known {
        return Some(known);
    }
    let word = regex::bytes::Regex::new(&format!(r"(?-u)\b(?:{})\b", names.join("|"))).ok()?;
    let files = python_files(&folders)?;
    let contains = parallel_map(&files, threads, |path| {
        // What cannot be read is not known to lack the names.
        std::fs::read(path.as_path()).map_or(true, |bytes| word.is_match(&bytes))
    });
    let found: Vec<AbsPath> =
        files.into_iter().zip(contains).filter(|(_, contains)| *contains).map(|(path, _)| path).collect();
    if let (Some(store), Ok(json)) = (store, serde_json::to_vec(&found)) {
        store.put(&group, &key, |out| out.write_all(&json));
    }
    Some(found)
}

/// The Python files below folders, each once, with links followed. `None` if there are too many, or a folder cannot be listed.
fn python_files(folders: &[AbsPath]) -> Option<Vec<AbsPath>> {
    let mut pending = folders.to_vec();
    let (mut seen, mut files) = (BTreeSet::new(), BTreeSet::new());
    while let Some(folder) = pending.pop() {
        if !seen.insert(canonical(&folder)) {
            continue;
        }
        let entries = match std::fs::read_dir(folder.as_path()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.ok()?,
        };
        for entry in entries {
            let path = AbsPath::new(entry.ok()?.path().to_str()?).ok()?;
            let is_python = path.as_str().ends_with(".py") || path.as_str().ends_with(".pyi");
            // A link that leads nowhere is no file.
            match std::fs::metadata(path.as_path()) {
                Ok(metadata) if metadata.is_dir() => pending.push(path),
                Ok(_) if is_python => drop(files.insert(path)),
                _ => {}
            }
        }
        if files.len() > MAX_FILES {
            return None;
        }
    }
    Some(files.into_iter().collect())
}
