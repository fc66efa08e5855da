//! Why a selector was not found, with suggestions of selectors that may have been meant.

use super::lookup::Lookup;
use super::modules::Module;
use super::outline::DefinitionKind;
use crate::path::{AbsPath, is_python};
use crate::selector::{Identifier, PositionSpec, QualName, Role, SymbolSpec};
use crate::text::words::words;
use crate::workspace::files::{FileKind, Files, ReadError};

/// The most suggestions.
pub(crate) const MAX_SUGGESTIONS: usize = 5;
/// How many bytes of the other files in the module's folder are searched for the name.
const MAX_SEARCHED_BYTES: usize = 4 * 1024 * 1024;

/// Why a selector was not found.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NotFoundReason {
    /// No module has this name.
    #[error("module {module} not found")]
    Module {
        /// The name.
        module: String,
    },
    /// The module exists but has no such name.
    #[error("module {module} has no {name}")]
    Name {
        /// The module.
        module: String,
        /// The name, with the names of its parents.
        name: String,
    },
    /// An attribute of a definition that is not a class.
    #[error("{name} is a {}, and the attributes of its value depend on its type: select {member} in the class that defines it", kind.as_str())]
    Instance {
        /// The definition.
        name: String,
        /// The attribute.
        member: String,
        /// The kind of the definition.
        kind: DefinitionKind,
    },
    /// A name in a function: a parameter, a local variable, or undefined.
    #[error(
        "function {name} has no nested function or class {member}; its parts are def, sig, body and doc, a parameter is `{name}(NAME)`, and local variables have no symbolic selector"
    )]
    Local {
        /// The function.
        name: String,
        /// The requested name in it.
        member: String,
    },
    /// A name is imported from a module that cannot be found.
    #[error("{name} is imported from a module that cannot be found")]
    UnresolvedImport {
        /// The name.
        name: String,
    },
    /// The definition has no such part.
    #[error("the {} {name} has no {}", kind.as_str(), role.as_str())]
    Role {
        /// The definition.
        name: String,
        /// The kind of the definition.
        kind: DefinitionKind,
        /// The part.
        role: Role,
    },
    /// The function has no such parameter.
    #[error("{function} has no parameter {name}: {}", listed(names))]
    Parameter {
        /// The function.
        function: String,
        /// The requested parameter.
        name: String,
        /// The parameters that it has.
        names: Vec<String>,
    },
    /// A parameter was requested of a definition that is not a function.
    #[error("{name} is a {}, and only a function has parameters", kind.as_str())]
    NotAFunction {
        /// The definition.
        name: String,
        /// The kind of the definition.
        kind: DefinitionKind,
    },
    /// No module and no definition of the workspace has this name.
    #[error("no definition of the workspace has this name")]
    Unqualified,
    /// The requested overload does not exist.
    #[error("overload {wanted} of {name} not found: it has {}, counted from 0", crate::text::plural(*.count, "overload"))]
    Overload {
        /// The function.
        name: String,
        /// The requested overload.
        wanted: u32,
        /// The number of overloads, including the implementation.
        count: usize,
    },
    /// A folder without `__init__.py`: a module without definitions.
    #[error("{module} is a namespace package: it has no file")]
    NoFile {
        /// The name of the package.
        module: String,
    },
    /// Resolving takes more imports, aliases and bases than the limits allow.
    #[error("cannot resolve {name}: it takes too many imports, aliases and base classes")]
    TooDeep {
        /// The name.
        name: String,
    },
    /// The target existed in another revision, or nothing matches the selector.
    #[error("{reason}")]
    Other {
        /// The details.
        reason: String,
    },
    /// The file exists but cannot be read.
    #[error(transparent)]
    Unreadable(ReadError),
    /// The file has fewer lines.
    #[error("line {line} is out of range: the file has {count} lines")]
    Line {
        /// The 1-based line.
        line: u32,
        /// The number of lines.
        count: usize,
    },
    /// The line is blank or a comment.
    #[error("line {line} has no code")]
    NoCode {
        /// The 1-based line.
        line: u32,
    },
    /// The line has fewer columns.
    #[error("column {column} is out of range: the last column of line {line} is {last}")]
    Column {
        /// The 1-based line.
        line: u32,
        /// The 1-based column.
        column: u32,
        /// The column after the line's last character.
        last: u32,
    },
}

/// A selector was not found: the reason, and suggestions.
#[derive(Debug, Clone)]
pub struct NotFound {
    /// The reason.
    pub reason: NotFoundReason,
    /// Selectors of similar names that exist, the likeliest first, at most five.
    pub suggestions: Vec<String>,
}

impl NotFound {
    /// A reason for which no other name can be suggested.
    #[must_use]
    pub fn new(reason: NotFoundReason) -> Self {
        Self { reason, suggestions: Vec::new() }
    }

    /// The definition was found, but not the requested part of it: suggests parameters.
    pub(super) fn part(spec: &SymbolSpec, reason: NotFoundReason) -> Self {
        let select = |names: &[String], param: &str| {
            let qualname = QualName::new(spec.qualname.module.clone(), names.to_vec())?;
            let param = Some(Identifier::new(param)?);
            let spec =
                SymbolSpec { qualname, param, role: Role::Def, overload: spec.overload, doc_version: None };
            Some(PositionSpec::Symbol(spec).to_string())
        };
        let names = spec.qualname.names();
        let suggestions = match (&reason, &spec.param) {
            (NotFoundReason::Parameter { names: known, name, .. }, _) => {
                let alike = known.iter().filter_map(|other| Some((dissimilarity(name, other)?, other)));
                best(
                    Vec::new(),
                    alike.filter_map(|(score, other)| Some((score, select(names, other)?))).collect(),
                )
            }
            (NotFoundReason::NotAFunction { kind: DefinitionKind::Class, .. }, Some(param)) => {
                let initializer: Vec<String> = names.iter().cloned().chain(["__init__".to_owned()]).collect();
                select(&initializer, param.as_str()).into_iter().collect()
            }
            _ => Vec::new(),
        };
        Self { reason, suggestions }
    }

    /// The module was not found: suggests similar modules of the same package.
    pub(super) fn module(lookup: &Lookup<'_>, spec: &SymbolSpec) -> Self {
        let wanted = spec.qualname.module.as_str();
        let names = spec.qualname.names().join(".");
        let mut suggestions = Vec::new();
        let parts: Vec<&str> = wanted.split('.').collect();
        let known = (1..parts.len()).rev().find_map(|count| {
            let name = parts[..count].join(".");
            lookup.roots.find(lookup.files, &name).into_iter().next().map(|module| (count, module))
        });
        // `py://m.C#f` for `py://m#C.f`.
        if let Some((count, module)) = &known {
            let inside = parts[*count..].join(".");
            let trail = super::lookup::Trail::default();
            if !lookup.in_module(module, parts[*count], &trail).is_empty() {
                suggestions.push(format!("py://{}#{inside}.{names}", module.name));
            }
        }
        let (prefix, part, folders): (String, &str, Vec<AbsPath>) = match known {
            Some((count, module)) => {
                (format!("{}.", module.name), parts[count], module.folder.into_iter().collect())
            }
            None => (String::new(), parts[0], lookup.roots.all_roots().cloned().collect()),
        };
        let mut scored: Vec<(usize, String)> = Vec::new();
        for folder in folders {
            for entry in lookup.files.list(&folder) {
                let name = entry.strip_suffix(".py").or(entry.strip_suffix(".pyi")).unwrap_or(&entry);
                let is_module = name != entry || lookup.files.kind(&folder.join(&entry)) == FileKind::Folder;
                if let Some(score) = dissimilarity(part, name).filter(|_| is_module) {
                    let rest = parts[prefix.matches('.').count() + 1..].iter();
                    let rest: String = rest.map(|part| format!(".{part}")).collect();
                    let module = format!("{prefix}{name}{rest}");
                    if !lookup.roots.find(lookup.files, &module).is_empty() {
                        scored.push((score, format!("py://{module}#{names}")));
                    }
                }
            }
        }
        Self {
            reason: NotFoundReason::Module { module: wanted.to_owned() },
            suggestions: best(suggestions, scored),
        }
    }

    /// The module was found, but the name was not: suggests similar names in it, and the same name in the files of its folder.
    /// `alternatives` are the names that exist where the chain of names breaks off.
    pub(super) fn name(
        lookup: &Lookup<'_>,
        spec: &SymbolSpec,
        modules: &[Module],
        alternatives: Vec<String>,
        reason: NotFoundReason,
    ) -> Self {
        let wanted = spec.qualname.names().join(".");
        let last = spec.qualname.last();
        let mut scored: Vec<(usize, String)> = Vec::new();
        for name in alternatives {
            let member = name.rsplit('.').next().unwrap_or_default();
            if let Some(score) = dissimilarity(last, member) {
                scored.push((score, format!("py://{}#{name}", spec.qualname.module)));
            }
        }
        for module in modules {
            let Some(Ok(source)) = module.file().map(|file| lookup.source(module, file)) else { continue };
            for (index, definition) in source.outline.definitions.iter().enumerate() {
                let name = source.outline.names(index).join(".");
                let by_last = dissimilarity(last, &definition.name).map(|score| score + 1);
                if let Some(score) = dissimilarity(&wanted, &name).into_iter().chain(by_last).min() {
                    scored.push((score, format!("py://{}#{name}", module.name)));
                }
            }
            for import in source.outline.imports_of(None).filter(|import| !import.bound.is_empty()) {
                if let Some(score) = dissimilarity(&wanted, &import.bound) {
                    scored.push((score, format!("py://{}#{}", module.name, import.bound)));
                }
            }
            if let Some(file) = module.file() {
                in_siblings(lookup, file, last, &mut scored);
            }
        }
        Self { reason, suggestions: best(Vec::new(), scored) }
    }
}

/// Adds the definitions of exactly this name in the other files of a folder.
fn in_siblings(lookup: &Lookup<'_>, file: &AbsPath, name: &str, scored: &mut Vec<(usize, String)>) {
    let folder = file.parent();
    let mut left = MAX_SEARCHED_BYTES;
    for entry in lookup.files.list(&folder) {
        let path = folder.join(&entry);
        if !entry.ends_with(".py") || path == *file {
            continue;
        }
        let Ok(document) = lookup.files.read(&path) else { continue };
        let Some(rest) = left.checked_sub(document.text.len()) else { break };
        left = rest;
        if !words(document.text.as_bytes()).any(|word| word == name.as_bytes()) {
            continue;
        }
        let Some(module) = lookup.roots.name_of(&path) else { continue };
        let outline = super::outline::Outline::parse(&document.text);
        for (index, definition) in outline.definitions.iter().enumerate() {
            if definition.name == name {
                scored.push((3, format!("py://{module}#{}", outline.names(index).join("."))));
            }
        }
    }
}

/// The Python files beside a path that does not exist, and with `and_folders` the folders, that it may mean: their names, the
/// likeliest first, at most five.
pub(crate) fn near_files(missing: &AbsPath, files: &dyn Files, and_folders: bool) -> Vec<String> {
    let (name, folder) = (missing.file_name(), missing.parent());
    let is_folder = |name: &String| and_folders && files.kind(&folder.join(name)) == FileKind::Folder;
    let is_hidden = |other: &String| other.starts_with('.') && !name.starts_with('.');
    let in_folder = files.list(&folder).into_iter();
    let in_folder = in_folder
        .filter(|other| other != name && !is_hidden(other) && (is_python(other) || is_folder(other)));
    // A path without the encoding of its name.
    let encoded = crate::path::encode_portable(name);
    let stem = |name: &str| name.split('.').next().unwrap_or_default().to_lowercase();
    let wanted = stem(name);
    let score = |other: &String| {
        let other_stem = stem(other);
        let is_part = !wanted.is_empty()
            && !other_stem.is_empty()
            && (other_stem.contains(&wanted) || wanted.contains(&other_stem));
        let alike = || dissimilarity(&wanted, &other_stem).or_else(|| is_part.then_some(usize::MAX));
        if *other == encoded { Some(0) } else { alike() }
    };
    best(Vec::new(), in_folder.filter_map(|other| Some((score(&other)?, other))).collect())
}

fn best(first: Vec<String>, mut scored: Vec<(usize, String)>) -> Vec<String> {
    scored.sort();
    let mut suggestions = first;
    for (_, selector) in scored {
        if !suggestions.contains(&selector) {
            suggestions.push(selector);
        }
    }
    suggestions.truncate(MAX_SUGGESTIONS);
    suggestions
}

/// The parameters of a function, for a message.
fn listed(names: &[String]) -> String {
    if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) }
}

/// How much two names differ, 0 if they are equal; `None` if one is unlikely to be a misspelling of the other.
pub(crate) fn dissimilarity(wanted: &str, name: &str) -> Option<usize> {
    if wanted == name {
        return Some(0);
    }
    if wanted.eq_ignore_ascii_case(name) {
        return Some(1);
    }
    let limit = (wanted.chars().count() / 3).clamp(1, 4);
    let prefix =
        wanted.len() >= 3 && (name.starts_with(wanted) || (name.len() >= 3 && wanted.starts_with(name)));
    match distance(&wanted.to_lowercase(), &name.to_lowercase(), limit) {
        Some(distance) => Some(1 + distance),
        None => prefix.then_some(2 + limit),
    }
}

/// The edit distance of two names (insertions, deletions, replacements and swaps of neighbors); `None` above a limit.
fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut rows: [Vec<usize>; 3] = [vec![0; b.len() + 1], (0..=b.len()).collect(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        rows[2][0] = i;
        for j in 1..=b.len() {
            let replaced = rows[1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut cost = replaced.min(rows[1][j] + 1).min(rows[2][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                cost = cost.min(rows[0][j - 2] + 1);
            }
            rows[2][j] = cost;
        }
        if rows[2].iter().min().is_none_or(|least| *least > limit) {
            return None;
        }
        rows.rotate_left(1);
    }
    Some(rows[1][b.len()]).filter(|distance| *distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", Some(0)),
            ("route", "routes", Some(1)),
            ("route", "rotue", Some(1)),
            ("route", "root", Some(2)),
            ("route", "view", None),
        ] {
            assert_eq!(distance(a, b, 2), expected, "{a} {b}");
            assert_eq!(distance(b, a, 2), expected, "{b} {a}");
        }
    }

    #[test]
    fn similar_names() {
        assert!(dissimilarity("x", "y").is_some());
        assert_eq!(dissimilarity("get", "put"), None);
        assert!(dissimilarity("get_adapter", "get_adaptor").is_some());
        assert!(dissimilarity("Session", "session").is_some());
    }
}
