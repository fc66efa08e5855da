//! What changes in a file when a module or package gets another dotted name: its imports, and the expressions and strings that
//! spell the name.
//!
//! Import statements are followed with [`ImportRoots`], as Python follows them. An import under an alias keeps its alias; one
//! without gets the new name, with the uses of the old one, unless the file has something of that name already.
//!
//! [`imports`] rewrites the statements, [`uses`] what spells the name elsewhere.

mod imports;
#[cfg(test)]
mod tests;
mod uses;

use std::collections::{BTreeMap, BTreeSet};

use super::modules::ImportRoots;
use super::outline::{Outline, Span};
use super::syntax::parse;
use crate::path::AbsPath;
use crate::workspace::files::Files;

/// A module that gets another name.
#[derive(Debug, Clone)]
pub struct ModuleMove {
    /// Its dotted name.
    pub old: String,
    /// The new one.
    pub new: String,
    /// Its own files: the source, the stub; for a package without `__init__.py`, the folder.
    pub files: BTreeSet<AbsPath>,
}

/// What changes in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileRewrite {
    /// Byte spans and their new texts, sorted, without overlaps.
    pub splices: Vec<(Span, String)>,
    /// Strings that spell the old name and may mean something else: the name in them, and the new one.
    pub open: Vec<(Span, String)>,
}

impl ModuleMove {
    /// The new name of a module: the module itself and what is in the package changes, others do not.
    #[must_use]
    pub fn renamed(&self, name: &str) -> String {
        match name.strip_prefix(&self.old) {
            Some(rest) if rest.is_empty() || rest.starts_with('.') => format!("{}{rest}", self.new),
            _ => name.to_owned(),
        }
    }

    /// The last part of the old name.
    fn leaf(&self) -> &str {
        last(&self.old)
    }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The part before the last dot; empty for a name without dots.
fn parent(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(parent, _)| parent)
}

fn join(package: &str, name: &str) -> String {
    match (package, name) {
        ("", one) | (one, "") => one.to_owned(),
        _ => format!("{package}.{name}"),
    }
}

/// A package, this many levels up.
fn up(package: &str, levels: usize) -> String {
    let mut name = package;
    for _ in 0..levels {
        name = parent(name);
    }
    name.to_owned()
}

/// What changes in a file. `text` is its content.
#[must_use]
pub fn rewrite(
    files: &dyn Files,
    roots: &ImportRoots,
    file: &AbsPath,
    text: &str,
    moved: &ModuleMove,
) -> FileRewrite {
    let name = roots.name_of(file).unwrap_or_default();
    let is_package = file.file_name().starts_with("__init__.py");
    let package = |name: &str| if is_package { name.to_owned() } else { parent(name).to_owned() };
    let mut rewriter = Rewriter {
        files,
        roots,
        file,
        text,
        moved,
        package: package(&name),
        new_package: package(&moved.renamed(&name)),
        tops: BTreeMap::new(),
        renamed: Vec::new(),
        found: FileRewrite::default(),
    };
    let tree = parse(text);
    rewriter.imports(tree.root_node());
    rewriter.uses(tree.root_node());
    let mut found = rewriter.found;
    found.splices.sort_by_key(|(span, _)| (span.start, span.end));
    found.splices.dedup();
    found
}

struct Rewriter<'r> {
    files: &'r dyn Files,
    roots: &'r ImportRoots,
    file: &'r AbsPath,
    text: &'r str,
    moved: &'r ModuleMove,
    /// The package of the file, before and after.
    package: String,
    new_package: String,
    /// The names that imports bind to modules above or at the moved one: by the token that binds it, the dotted name that
    /// it stands for as the file spells it.
    tops: BTreeMap<usize, String>,
    /// Names that imports bind to the moved module, by token, with the new name.
    renamed: Vec<(Span, String)>,
    found: FileRewrite,
}

impl Rewriter<'_> {
    fn splice(&mut self, span: Span, new: String) {
        if self.text[span.clone()] != new {
            self.found.splices.push((span, new));
        }
    }

    /// Whether an absolute name means the moved module in this file.
    fn is_moved(&self, name: &str) -> bool {
        last(name) == self.moved.leaf() && {
            let module = self.roots.import(self.files, name, self.file);
            module.is_some_and(|module| self.is_its_file(&module))
        }
    }

    fn is_its_file(&self, module: &super::modules::Module) -> bool {
        let own = [&module.source, &module.stub, &module.folder];
        own.into_iter().flatten().any(|path| self.moved.files.contains(path))
    }

    /// The new spelling of an absolute name that begins with the moved module: the file may spell the name from another root.
    fn respelled(&self, name: &str) -> Option<String> {
        let ends = name.match_indices('.').map(|(at, _)| at).chain([name.len()]);
        let end = ends.into_iter().find(|end| self.is_moved(&name[..*end]))?;
        let (spelled, rest) = name.split_at(end);
        let (old, new) = (&self.moved.old, &self.moved.new);
        let new = if let Some(head) = spelled.strip_suffix(old.as_str()) {
            format!("{head}{new}")
        } else {
            let extra = old.strip_suffix(spelled)?;
            new.strip_prefix(extra)?.to_owned()
        };
        Some(format!("{new}{rest}"))
    }

    /// A module as this file will spell it in a `from` import with this many dots, or without if that is not possible.
    fn relative(&self, level: usize, target: &str) -> String {
        let dots = ".".repeat(level);
        let depth = if self.new_package.is_empty() { 0 } else { self.new_package.split('.').count() };
        let base = up(&self.new_package, level - 1);
        if level > depth {
            return target.to_owned();
        }
        match target.strip_prefix(&base) {
            Some("") => dots,
            Some(rest) if rest.starts_with('.') => format!("{dots}{}", &rest[1..]),
            _ => target.to_owned(),
        }
    }

    /// Whether the file has a function `__getattr__`.
    fn has_getattr(&self) -> bool {
        let outline = Outline::parse(self.text);
        let definitions = &outline.definitions;
        definitions.iter().any(|found| found.parent.is_none() && found.name == "__getattr__")
    }

    /// Whether the file is the package that the moved module is in.
    fn is_in_home(&self) -> bool {
        self.package == parent(&self.moved.old) && self.file.file_name().starts_with("__init__.py")
    }
}
