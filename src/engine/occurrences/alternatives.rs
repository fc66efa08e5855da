//! Classes of which one name may mean either, because several imports bind it:
//!
//! ```text
//! try:
//!     from fast import Parser
//! except ImportError:
//!     from slow import Parser
//! ```
//!
//! or because it gets objects of different classes in branches of which a server reads one (see [`ValuesInBranches`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::context::RequestContext;
use super::files_with;
use crate::path::AbsPath;
use crate::python::classes::{Class, ClassId, Classes};
use crate::python::module_imports::may_import_again;
use crate::python::outline::{Imported, Outline};
use crate::python::static_branches::{Bound, NO_BRANCH, ValueInBranch, ValueOrigin, ValuesInBranches};
use crate::python::static_conditions::{may_ask, may_have_known, may_have_switch, names_given};
use crate::workspace::files::{Document, Files as _};
use crate::workspace::parallel::parallel_map;

/// The words of which a file has one that decides what it imports, or what a name means.
const CONDITIONS: [&str; 7] = ["except", "else", "if", "TYPE_CHECKING", "version_info", "platform", "os"];

/// How many names are looked up for what they mean; a workspace that needs more has any class for any other one.
const MAX_LOOKUPS: usize = 200_000;

/// What may mean one of several classes.
#[derive(Debug, Default)]
pub(super) struct Alternatives {
    /// The names that a module binds several times, once in a branch and once by an import, with the files.
    imported: Vec<(AbsPath, String)>,
    /// What gets values in several branches: the classes that are named in each, with the branch.
    branched: Vec<BTreeMap<FileBranch, Vec<Class>>>,
    /// Whether not everything was looked at.
    is_cut: bool,
}

/// A branch of a file; `None` for code that all servers read.
type FileBranch = Option<(AbsPath, usize)>;

impl Alternatives {
    /// Those of the workspace.
    pub(super) fn find(cx: &RequestContext<'_>, classes: &Classes<'_>) -> Self {
        let mut files: Vec<AbsPath> = CONDITIONS.iter().flat_map(|word| files_with(cx, word)).collect();
        files.sort();
        files.dedup();
        let read = parallel_map(&files, cx.settings.threads, |path| {
            let document = cx.state.files.read(path).ok()?;
            let may_decide = may_have_known(&document.text) || may_have_switch(&document.text);
            Some((names_in(&document), may_decide))
        });
        let mut found = Self::default();
        let mut deciding = BTreeSet::new();
        for (path, (names, may_decide)) in
            files.iter().zip(read).filter_map(|(path, read)| Some((path, read?)))
        {
            found.imported.extend(names.into_iter().map(|name| (path.clone(), name)));
            if may_decide {
                deciding.insert(path.clone());
            }
        }
        let (mut search, asking) = ValueSearch::new(cx, classes, deciding);
        found.branched = asking.iter().flat_map(|path| search.groups(path)).collect();
        found.is_cut = search.is_cut;
        found
    }

    /// Whether a name of the workspace may mean either class, or classes that inherit from them.
    pub(super) fn are(&self, classes: &Classes<'_>, one: &Class, other: &Class) -> bool {
        if self.is_cut {
            return true;
        }
        let leads = |found: &[Class], id: &ClassId| found.iter().any(|class| classes.inherits(class, id));
        let (one_id, other_id) = (one.id(), other.id());
        let is_either = |branches: &BTreeMap<FileBranch, Vec<Class>>| {
            let has = |found: &Vec<Class>| [leads(found, &one_id), leads(found, &other_id)];
            let has: Vec<(bool, [bool; 2])> =
                branches.iter().map(|(branch, found)| (branch.is_some(), has(found))).collect();
            // Two branches with both classes are no alternatives: a server that reads one knows both.
            let differ = |one: &(bool, [bool; 2]), other: &(bool, [bool; 2])| {
                one.1[0] && other.1[1] && !(one.0 && other.0 && one.1[1] && other.1[0])
            };
            let pairs = has.iter().enumerate().flat_map(|(at, one)| {
                let others = has.iter().enumerate().filter(move |(other, _)| *other != at);
                others.map(move |(_, other)| (one, other))
            });
            pairs.into_iter().any(|(one, other)| differ(one, other))
        };
        if self.branched.iter().any(is_either) {
            return true;
        }
        let qualified = one.id().name;
        // The import is of the class, of one around it, or of its module.
        let parts: Vec<&str> = qualified.split('.').collect();
        self.imported.iter().any(|(path, name)| {
            (0..=parts.len()).any(|from| {
                let chain = std::iter::once(name.as_str()).chain(parts[from..].iter().copied());
                let chain: Vec<String> = chain.map(str::to_owned).collect();
                let leads_to = |class: &Class| {
                    let found = classes.resolve(path, &chain);
                    let mut found = found.iter().filter_map(|(file, at)| classes.class_at(file, *at));
                    found.any(|found| classes.inherits(&found, &class.id()))
                };
                leads_to(one) && leads_to(other)
            })
        })
    }
}

/// A search for what gets values in several branches.
struct ValueSearch<'s> {
    cx: &'s RequestContext<'s>,
    classes: &'s Classes<'s>,
    /// The names whose values servers may know, in any file.
    constants: BTreeSet<String>,
    /// What was read of files.
    files: BTreeMap<AbsPath, Arc<ValuesInBranches>>,
    /// What dotted names of files mean.
    resolved: BTreeMap<(AbsPath, String), Arc<Vec<Meant>>>,
    lookups: usize,
    is_cut: bool,
}

impl<'s> ValueSearch<'s> {
    /// A search with what is known in any file, of files that decide something; returns these and those that may ask for it.
    fn new(
        cx: &'s RequestContext<'s>,
        classes: &'s Classes<'s>,
        mut pending: BTreeSet<AbsPath>,
    ) -> (Self, BTreeSet<AbsPath>) {
        let constants = BTreeSet::new();
        let mut search = Self {
            cx,
            classes,
            constants,
            files: BTreeMap::new(),
            resolved: BTreeMap::new(),
            lookups: 0,
            is_cut: false,
        };
        let mut asking = BTreeSet::new();
        while !pending.is_empty() {
            let files: Vec<AbsPath> = pending.iter().cloned().collect();
            let read = parallel_map(&files, cx.settings.threads, |path| values_in(cx, path));
            search.files.extend(files.into_iter().zip(read));
            asking.append(&mut pending);
            // A name may be known by others, in files that were not read.
            let shared = search.files.values().flat_map(|values| &values.constants);
            let constants = names_given(shared.filter(|one| one.is_shared), &search.constants);
            let new: Vec<&str> = constants.iter().map(String::as_str).collect();
            pending = new.iter().flat_map(|name| files_with(cx, name)).collect();
            pending.retain(|path| {
                let document = cx.state.files.read(path);
                !asking.contains(path) && document.is_ok_and(|document| may_ask(&document.text, &new))
            });
            search.constants.extend(constants);
        }
        (search, asking)
    }

    fn values(&mut self, path: &AbsPath) -> Arc<ValuesInBranches> {
        let values = self.files.entry(path.clone()).or_insert_with(|| values_in(self.cx, path));
        self.is_cut |= values.is_cut;
        values.clone()
    }

    /// The branches of a file of which a server reads one, by the numbers of its branches.
    fn fixed(&mut self, path: &AbsPath) -> Vec<FileBranch> {
        let values = self.values(path);
        let own = names_given(&values.constants, &self.constants);
        let fixed = values.fixed_branches(&[&self.constants, &own]);
        fixed.into_iter().map(|branch| (branch != NO_BRANCH).then(|| (path.clone(), branch))).collect()
    }

    /// What gets values in several branches of a file.
    fn groups(&mut self, path: &AbsPath) -> Vec<BTreeMap<FileBranch, Vec<Class>>> {
        let fixed = self.fixed(path);
        let mut found = Vec::new();
        if fixed.iter().all(Option::is_none) {
            return found;
        }
        let above = std::cell::OnceCell::new();
        for (bound, values) in &self.values(path).values {
            let mut all: Vec<(AbsPath, FileBranch, &ValueInBranch)> =
                values.iter().map(|value| (path.clone(), fixed[value.branch].clone(), value)).collect();
            let is_inherited = matches!(bound, Bound::Attribute(_)) && all.iter().any(|one| one.1.is_some());
            let above = if is_inherited { above.get_or_init(|| self.above(path)).as_slice() } else { &[] };
            for (path, fixed, above) in above {
                let values = above.values.get(bound).into_iter().flatten();
                all.extend(values.map(|value| (path.clone(), fixed[value.branch].clone(), value)));
            }
            if all.iter().all(|(_, branch, _)| *branch == all[0].1) {
                continue;
            }
            let mut by_branch: BTreeMap<FileBranch, Vec<(AbsPath, &ValueInBranch)>> = BTreeMap::new();
            for (path, branch, value) in all {
                by_branch.entry(branch).or_default().push((path, value));
            }
            let branches: BTreeMap<FileBranch, Vec<Class>> =
                by_branch.into_iter().map(|(branch, values)| (branch, self.classes_of(&values))).collect();
            if branches.values().any(|classes| !classes.is_empty()) {
                found.push(branches);
            }
        }
        found
    }

    /// The files from which the classes of a file inherit, with their branches and values.
    fn above(&mut self, path: &AbsPath) -> Vec<(AbsPath, Vec<FileBranch>, Arc<ValuesInBranches>)> {
        let classes = self.classes.in_file(path);
        let above = classes.iter().flat_map(|class| self.classes.ancestors(class));
        let files: BTreeSet<AbsPath> = above.map(|class| class.document().path.clone()).collect();
        let files = files.into_iter().filter(|file| file != path && self.cx.state.is_in_workspace(file));
        let files: Vec<AbsPath> = files.collect();
        files.into_iter().map(|file| (file.clone(), self.fixed(&file), self.values(&file))).collect()
    }

    /// The classes that values of files may be, or be objects of.
    fn classes_of(&mut self, values: &[(AbsPath, &ValueInBranch)]) -> Vec<Class> {
        let mut found: BTreeMap<ClassId, Class> = BTreeMap::new();
        let mut known: BTreeSet<(AbsPath, String, ValueOrigin)> = BTreeSet::new();
        // By their addresses, which stay as long as the search does.
        let mut seen: BTreeSet<*const ValueInBranch> = BTreeSet::new();
        let mut lists: BTreeSet<*const ValueInBranch> = BTreeSet::new();
        let mut pending: Vec<(AbsPath, String, ValueOrigin)> = Vec::new();
        let mut push = |pending: &mut Vec<_>, path: &AbsPath, value: &ValueInBranch| {
            if seen.insert(std::ptr::from_ref(value)) {
                let of = |one: &ValueOrigin| (path.clone(), value.scope.clone(), one.clone());
                pending.extend(value.origins.iter().map(of));
            }
        };
        values.iter().for_each(|(path, value)| push(&mut pending, path, value));
        while let Some(next) = pending.pop() {
            if !known.insert(next.clone()) {
                continue;
            }
            self.lookups += 1;
            if self.lookups > MAX_LOOKUPS {
                self.is_cut = true;
                break;
            }
            let (path, scope, one) = next;
            let own = self.values(&path);
            let (name, arguments) = match &one {
                ValueOrigin::Name(name) => (name, None),
                ValueOrigin::Call(name, arguments) => (name, Some(*arguments)),
                ValueOrigin::Expression(at) => {
                    own.at(*at).for_each(|value| push(&mut pending, &path, value));
                    continue;
                }
            };
            let mut is_known = false;
            let is_plain = !name.contains('.');
            if is_plain {
                for values in own.of(&scope, name) {
                    is_known = true;
                    if lists.insert(values.as_ptr()) {
                        values.iter().for_each(|value| push(&mut pending, &path, value));
                    }
                }
            }
            for meant in self.named(&path, &scope, name).iter() {
                match meant {
                    Meant::Class(class) => {
                        is_known = true;
                        found.insert(class.id(), class.clone());
                    }
                    Meant::Function(file, result) => {
                        let values = self.values(file);
                        for value in values.values.get(result).into_iter().flatten() {
                            is_known = true;
                            push(&mut pending, file, value);
                        }
                    }
                }
            }
            if !is_plain && !is_known {
                for values in own.of(&scope, name) {
                    is_known = true;
                    if lists.insert(values.as_ptr()) {
                        values.iter().for_each(|value| push(&mut pending, &path, value));
                    }
                }
            }
            if !is_known {
                let arguments = arguments.into_iter().flat_map(|at| own.at(at));
                arguments.for_each(|value| push(&mut pending, &path, value));
            }
        }
        found.into_values().collect()
    }

    /// The classes and functions of the workspace that a dotted name means in a function, and the class before its last dot.
    fn named(&mut self, path: &AbsPath, scope: &str, name: &str) -> Arc<Vec<Meant>> {
        let (cx, classes) = (self.cx, self.classes);
        // `self` is another one in each function.
        let is_self = ["self", "cls"].contains(&name);
        let key = (path.clone(), if is_self { format!("{scope}.") } else { name.to_owned() });
        let resolve = || {
            if is_self {
                let class: Vec<String> = scope.split('.').map(str::to_owned).collect();
                let around = class.split_last().map_or(&[][..], |(_, around)| around);
                return classes.named(path, around).into_iter().map(|at| (path.clone(), at)).collect();
            }
            let parts: Vec<String> = name.split('.').map(str::to_owned).collect();
            let mut found = classes.resolve(path, &parts);
            if let Some((_, before)) = parts.split_last().filter(|(_, before)| !before.is_empty()) {
                let above = classes.resolve(path, before);
                found.extend(above.into_iter().filter(|(file, at)| classes.class_at(file, *at).is_some()));
            }
            found.retain(|(file, _)| cx.state.is_in_workspace(file));
            found
        };
        let meant = |(file, at): (AbsPath, usize)| match classes.class_at(&file, at) {
            Some(class) => Some(Meant::Class(class)),
            None => classes
                .defined_at(&file, at)
                .map(|defined| Meant::Function(file, Bound::Result(defined.qualname.join(".")))),
        };
        let found = self.resolved.entry(key);
        found.or_insert_with(|| Arc::new(resolve().into_iter().filter_map(meant).collect())).clone()
    }
}

/// What a name means in the workspace.
enum Meant {
    Class(Class),
    /// A function of a file, by its results.
    Function(AbsPath, Bound),
}

fn values_in(cx: &RequestContext<'_>, path: &AbsPath) -> Arc<ValuesInBranches> {
    let document = cx.state.files.read(path);
    document.map(|document| ValuesInBranches::of_document(&document)).unwrap_or_default()
}

/// The names that a module binds several times, once in a branch and once by an import.
fn names_in(document: &Document) -> Vec<String> {
    if !may_import_again(&document.text) {
        return Vec::new();
    }
    let outline = Outline::parse(&document.text);
    let imports = outline.imports_of(None).filter(|import| import.what != Imported::Star);
    let imports = imports.map(|import| (import.bound.as_str(), true, import.branch.is_some()));
    let definitions = outline.children(None).map(|(_, one)| (one.name.as_str(), false, one.branch.is_some()));
    let mut bound: BTreeMap<&str, (usize, bool, bool)> = BTreeMap::new();
    for (name, is_import, is_in_branch) in imports.chain(definitions) {
        let known = bound.entry(name).or_default();
        *known = (known.0 + 1, known.1 | is_import, known.2 | is_in_branch);
    }
    let is_one_of_several = |(_, known): &(&str, (usize, bool, bool))| known.0 > 1 && known.1 && known.2;
    bound.into_iter().filter(is_one_of_several).map(|(name, _)| name.to_owned()).collect()
}
