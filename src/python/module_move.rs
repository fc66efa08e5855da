//! What changes in a file when a module or package gets another dotted name: its imports, and the expressions and strings that
//! spell the name.
//!
//! Import statements are followed with [`ImportRoots`], as Python follows them. An import under an alias keeps its alias; one
//! without gets the new name, with the uses of the old one, unless the file has something of that name already.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::modules::ImportRoots;
use super::outline::{Outline, Span};
use super::scopes::Scopes;
use super::syntax::{children, dotted_name, parse, preorder, text_of};
use crate::path::AbsPath;
use crate::workspace::files::Files;

/// Functions whose first argument is the name of a module that they import.
const IMPORTING: [&str; 4] = ["import_module", "importorskip", "__import__", "find_spec"];

/// Functions whose first argument is the dotted name of something in a module.
const PATCHING: [&str; 3] = ["patch", "setattr", "delattr"];

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
    fn imports(&mut self, root: Node<'_>) {
        let mut statements = Vec::new();
        preorder(root, |node| {
            let is_import = matches!(node.kind(), "import_statement" | "import_from_statement");
            if is_import {
                statements.push(node);
            }
            !is_import
        });
        for statement in statements {
            if statement.kind() == "import_statement" {
                self.import(statement);
            } else {
                self.import_from(statement);
            }
        }
    }

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

    /// `import a.b, c.d as e`
    fn import(&mut self, statement: Node<'_>) {
        for entry in children(statement) {
            let (name, alias) = match entry.kind() {
                "aliased_import" => {
                    let Some(name) = entry.child_by_field_name("name") else { continue };
                    (name, entry.child_by_field_name("alias"))
                }
                "dotted_name" => (entry, None),
                _ => continue,
            };
            let spelled = dotted_name(name, self.text);
            if let Some(new) = self.respelled(&spelled) {
                self.splice(name.byte_range(), new);
            }
            match alias {
                Some(alias) => drop(self.tops.insert(alias.start_byte(), spelled)),
                None => {
                    let top = spelled.split('.').next().unwrap_or_default().to_owned();
                    self.tops.insert(name.start_byte(), top);
                }
            }
        }
    }

    /// `from ..a import b, c as d`
    fn import_from(&mut self, statement: Node<'_>) {
        let Some(module) = statement.child_by_field_name("module_name") else { return };
        let written: String = text_of(module, self.text).split_whitespace().collect();
        let level = written.bytes().take_while(|byte| *byte == b'.').count();
        let name = &written[level..];
        let absolute = if level > 0 { join(&up(&self.package, level - 1), name) } else { written.clone() };
        let mut cursor = statement.walk();
        let entries: Vec<Node<'_>> = statement.children_by_field_name("name", &mut cursor).collect();
        // The module itself, or one in the moved package.
        let new_module = self.new_module(level, &written, &absolute);
        if let Some(new) = &new_module {
            self.splice(module.byte_range(), new.clone());
        }
        let moved: Vec<(usize, String)> = entries
            .iter()
            .enumerate()
            .filter_map(|(at, entry)| Some((at, self.imported_name(level, &absolute, *entry)?)))
            .collect();
        let new_package = parent(&self.moved.new).to_owned();
        if new_package == parent(&self.moved.old) {
            for (at, binds) in moved {
                self.splice(entries[at].byte_range(), binds);
            }
        } else if !moved.is_empty() {
            self.split_import(statement, module, (level, &absolute), &entries, &moved);
        }
    }

    /// Moves names of a `from` import to an import from another package: the whole statement if all names move.
    fn split_import(
        &mut self,
        statement: Node<'_>,
        module: Node<'_>,
        (level, package): (usize, &str),
        entries: &[Node<'_>],
        moved: &[(usize, String)],
    ) {
        let new_package = parent(&self.moved.new).to_owned();
        let respelled = match level {
            _ if new_package.is_empty() => String::new(),
            0 => {
                let head = package.strip_suffix(parent(&self.moved.old)).unwrap_or_default();
                format!("{head}{new_package}")
            }
            _ => self.relative(level, &new_package),
        };
        let binds: Vec<&str> = moved.iter().map(|(_, binds)| binds.as_str()).collect();
        let line = match respelled.as_str() {
            "" => format!("import {}", binds.join(", ")),
            module => format!("from {module} import {}", binds.join(", ")),
        };
        if moved.len() == entries.len() {
            // The module was not respelled before: it is the parent of the moved one.
            self.found.splices.retain(|(span, _)| *span != module.byte_range());
            self.splice(statement.byte_range(), line);
            return;
        }
        let start = statement.start_byte();
        let indent_start = self.text[..start].rfind('\n').map_or(0, |end| end + 1);
        let indent = &self.text[indent_start..start];
        // Something may stand before it in the line: `if x: from a import b, c`.
        let is_first = indent.trim().is_empty();
        let inserted = if is_first { format!("{line}\n{indent}") } else { format!("{line}; ") };
        self.splice(start..start, inserted);
        let goes = |at: usize| moved.iter().any(|(index, _)| *index == at);
        for (at, entry) in entries.iter().enumerate().filter(|(at, _)| goes(*at)) {
            // The last ones go with the comma before them.
            let kept = (0..at).rev().find(|before| !goes(*before));
            let span = if (at..entries.len()).all(goes)
                && let Some(kept) = kept
            {
                let first = kept + 1;
                if at > first {
                    continue;
                }
                entries[kept].end_byte()..entries[entries.len() - 1].end_byte()
            } else {
                with_comma(self.text, &entry.byte_range())
            };
            self.splice(span, String::new());
        }
    }

    /// The new spelling of the module of a `from` import; `None` if it stays.
    fn new_module(&self, level: usize, written: &str, absolute: &str) -> Option<String> {
        if level == 0 {
            return self.respelled(written);
        }
        let target = self.moved.renamed(absolute);
        if target == absolute && self.new_package == self.package {
            return None;
        }
        let new = self.relative(level, &target);
        (new != written).then_some(new)
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

    /// One name of a `from` import, which may be the moved module: what the import binds then, `name` or `name as alias`.
    fn imported_name(&mut self, level: usize, package: &str, entry: Node<'_>) -> Option<String> {
        let (name_node, alias) = match entry.kind() {
            "aliased_import" => (entry.child_by_field_name("name")?, entry.child_by_field_name("alias")),
            _ => (entry, None),
        };
        let name = text_of(name_node, self.text);
        let bound = alias.unwrap_or(name_node);
        let full = join(package, name);
        if level > 0 || !full.is_empty() {
            self.tops.insert(bound.start_byte(), full.clone());
        }
        let is_it = match level {
            0 => self.is_moved(&full),
            _ => full == self.moved.old,
        };
        if !is_it {
            return None;
        }
        let new_name = last(&self.moved.new).to_owned();
        // Another import may bind the name where this one fails: `try: … except ImportError: …`.
        let outline = Outline::parse(self.text);
        let is_shared = outline.imports.iter().filter(|import| import.bound == name).count() > 1;
        let is_taken = new_name != name && (is_shared || has_name(self.text, &new_name));
        // `from . import old as old` in the module's package: it is the submodule that is exported.
        let is_exported = alias.is_some_and(|alias| text_of(alias, self.text) == name)
            && self.is_in_home()
            && parent(&self.moved.new) == parent(&self.moved.old);
        if is_exported && !is_taken {
            self.renamed.push((bound.byte_range(), new_name.clone()));
            return Some(format!("{new_name} as {new_name}"));
        }
        if alias.is_none() && !is_taken && new_name != name {
            self.renamed.push((name_node.byte_range(), new_name.clone()));
        }
        Some(match alias {
            Some(alias) => format!("{new_name} as {}", text_of(alias, self.text)),
            None if is_taken => format!("{new_name} as {name}"),
            None => new_name,
        })
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

    /// The expressions and strings that spell the old name.
    fn uses(&mut self, root: Node<'_>) {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        let text = self.text;
        for at in self.tops.keys() {
            let rest = &text[*at..];
            let end = rest.find(|c: char| !(c == '_' || c.is_alphanumeric())).unwrap_or(rest.len());
            names.insert(&rest[..end]);
        }
        let all: Vec<&str> = names.iter().copied().collect();
        let scopes = Scopes::of(text, &all);
        let mut identifiers = Vec::new();
        let mut strings = Vec::new();
        preorder(root, |node| {
            match node.kind() {
                "import_statement" | "import_from_statement" => return false,
                "identifier" if names.contains(text_of(node, text)) => identifiers.push(node),
                "string_content" => strings.push(node),
                _ => {}
            }
            true
        });
        for node in identifiers {
            let is_attribute =
                node.parent().is_some_and(|parent| parent.child_by_field_name("attribute") == Some(node));
            let is_keyword = node.parent().is_some_and(|parent| {
                parent.kind() == "keyword_argument" && parent.child_by_field_name("name") == Some(node)
            });
            if !is_attribute && !is_keyword {
                self.chain(node, &scopes);
            }
        }
        for node in strings {
            self.string(node);
        }
    }

    /// A dotted expression that begins with a name that an import binds.
    fn chain(&mut self, root: Node<'_>, scopes: &Scopes) {
        let bound = scopes.bound_by(root.start_byte()).unwrap_or_default();
        if let [only] = bound.as_slice()
            && let Some((_, new)) = self.renamed.iter().find(|(span, _)| span == only)
        {
            let new = new.clone();
            self.splice(root.byte_range(), new);
            return;
        }
        let Some(top) = bound.iter().find_map(|span| self.tops.get(&span.start)).cloned() else { return };
        let written = text_of(root, self.text).to_owned();
        let (mut node, mut spelled) = (root, top.clone());
        loop {
            // A name that is bound to the module itself, under an alias, stays.
            let is_spelled_out = top == written;
            let is_old = match is_spelled_out {
                true => self.is_moved(&spelled),
                false => node != root && spelled == self.moved.old,
            };
            if is_old {
                let new = match is_spelled_out {
                    true => self.respelled(&spelled),
                    false => {
                        let rest = self.moved.new.strip_prefix(&top).filter(|rest| rest.starts_with('.'));
                        rest.map(|rest| format!("{written}{rest}"))
                    }
                };
                match new {
                    Some(new) => self.splice(node.byte_range(), new),
                    None => self.found.open.push((node.byte_range(), self.moved.new.clone())),
                }
                return;
            }
            let Some(above) = node.parent().filter(|above| {
                above.kind() == "attribute" && above.child_by_field_name("object") == Some(node)
            }) else {
                return;
            };
            let Some(attribute) = above.child_by_field_name("attribute") else { return };
            spelled = join(&spelled, text_of(attribute, self.text));
            node = above;
        }
    }

    /// A string that spells the old name, or something in the module.
    fn string(&mut self, node: Node<'_>) {
        let content = text_of(node, self.text);
        let at = node.start_byte();
        if self.is_exported(node, content) {
            self.splice(node.byte_range(), last(&self.moved.new).to_owned());
            return;
        }
        if is_docstring(node) {
            return;
        }
        self.string_of_binding(node, content, at);
        let (old, new) = (self.moved.old.clone(), self.moved.new.clone());
        // `LAZY = {"old"}`, which the package imports when it is asked for the attribute.
        if content == self.moved.leaf() && old.contains('.') && self.is_in_home() && self.has_getattr() {
            self.found.open.push((node.byte_range(), last(&new).to_owned()));
            return;
        }
        // A string of dots is hardly the name of a package.
        if content.starts_with('.') && content.trim_start_matches('.').is_empty() {
            return;
        }
        if content.starts_with('.') {
            // A name relative to the package of the file, as `import_module` takes it.
            let level = content.bytes().take_while(|byte| *byte == b'.').count();
            let absolute = join(&up(&self.package, level - 1), &content[level..]);
            if absolute == old || absolute.starts_with(&format!("{old}.")) {
                let renamed = self.relative(level, &self.moved.renamed(&absolute));
                self.found.open.push((node.byte_range(), renamed));
            }
            return;
        }
        let is_word = |c: char| c == '_' || c == '.' || c.is_alphanumeric();
        for (start, _) in content.match_indices(old.as_str()) {
            let before = content[..start].chars().next_back();
            let rest = &content[start + old.len()..];
            let is_whole = !before.is_some_and(is_word)
                && !rest.chars().next().is_some_and(|c| c == '_' || c.is_alphanumeric());
            // A name without dots is a word like any other, unless it is the whole string or something follows it.
            let is_name = old.contains('.') || content == old || (start == 0 && rest.starts_with(['.', ':']));
            if !is_whole || !is_name {
                continue;
            }
            let span = at + start..at + start + old.len();
            let is_path = rest.starts_with('.') || old.contains('.');
            let certain = start == 0
                && (is_import_argument(node, self.text, is_path)
                    || (is_path && is_annotation(node, self.text)));
            match certain {
                true => self.splice(span, new.clone()),
                false => self.found.open.push((span, new.clone())),
            }
        }
    }

    /// An annotation that begins with a name that is renamed in this file.
    fn string_of_binding(&mut self, node: Node<'_>, content: &str, at: usize) {
        let first = content.split('.').next().unwrap_or_default();
        let renamed = self.renamed.iter().find(|(span, _)| self.text[span.clone()] == *first);
        let Some((_, new)) = renamed.cloned() else { return };
        if content.len() > first.len() && is_annotation(node, self.text) {
            self.splice(at..at + first.len(), new);
        }
    }

    /// Whether a string is the entry of the module in the `__all__` of its package.
    fn is_exported(&self, node: Node<'_>, content: &str) -> bool {
        content == self.moved.leaf()
            && self.is_in_home()
            && parent(&self.moved.new) == parent(&self.moved.old)
            && is_in_all(node, self.text)
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

/// Whether a word stands in a text.
fn has_name(text: &str, word: &str) -> bool {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(is_word)
            && !text[at + word.len()..].chars().next().is_some_and(is_word)
    })
}

/// An entry of a list with the comma after it, or before it if it is the last one.
fn with_comma(text: &str, span: &Span) -> Span {
    let after = &text[span.end..];
    let blank = after.len() - after.trim_start().len();
    if after[blank..].starts_with(',') {
        let rest = &after[blank + 1..];
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let end = span.end + blank + 1 + spaces;
        let line = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
        // An entry on a line of its own goes with its line.
        return match text[end..].starts_with('\n') && text[line..span.start].trim().is_empty() {
            true => line..end + 1,
            false => span.start..end,
        };
    }
    let before = text[..span.start].trim_end();
    match before.strip_suffix(',') {
        Some(kept) => kept.len()..span.end,
        None => span.clone(),
    }
}

/// Whether a string is the first argument of a function that imports what it names.
fn is_import_argument(content: Node<'_>, text: &str, is_path: bool) -> bool {
    let Some(string) = content.parent() else { return false };
    let Some(list) = string.parent().filter(|list| list.kind() == "argument_list") else { return false };
    let function = list.parent().and_then(|call| call.child_by_field_name("function"));
    let is_first = children(list).next() == Some(string);
    let name = function.map(|function| last(text_of(function, text)));
    is_first && name.is_some_and(|name| IMPORTING.contains(&name) || (is_path && PATCHING.contains(&name)))
}

/// Whether a string is an annotation, or a part of one.
fn is_annotation(content: Node<'_>, text: &str) -> bool {
    let mut node = content;
    while let Some(above) = node.parent() {
        match above.kind() {
            // `Literal["a.b"]` and `Annotated[T, "a.b"]` hold values.
            "subscript" | "generic_type"
                if ["Literal", "Annotated"].iter().any(|name| {
                    let head = text_of(above, text).split('[').next().unwrap_or_default();
                    last(head.trim()) == *name
                }) =>
            {
                return false;
            }
            "type" => return true,
            "call" | "module" | "block" => return false,
            _ => node = above,
        }
    }
    false
}

/// Whether a string is a statement by itself.
fn is_docstring(content: Node<'_>) -> bool {
    let string = content.parent().filter(|string| string.kind() == "string");
    let above = string.and_then(|string| string.parent());
    above.is_some_and(|above| above.kind() == "expression_statement")
}

/// Whether a string is in a list that is assigned to `__all__`.
fn is_in_all(content: Node<'_>, text: &str) -> bool {
    let mut node = content;
    while let Some(above) = node.parent() {
        match above.kind() {
            "assignment" | "augmented_assignment" => {
                return above
                    .child_by_field_name("left")
                    .is_some_and(|left| text_of(left, text) == "__all__");
            }
            "module" | "block" => return false,
            _ => node = above,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::files::MemoryFiles;
    use crate::workspace::server_config::ServerConfig;

    /// The file `path` with `text` after the move, among modules `pkg.old`, `pkg.sub.deep` and `other`, and its open strings.
    fn after(path: &str, text: &str, old: &str, new: &str) -> (String, usize) {
        let at = |path: &str| AbsPath::new(path).unwrap();
        let mut all = vec![
            ("/w/pkg/__init__.py", ""),
            ("/w/pkg/old.py", "x = 1\n"),
            ("/w/pkg/sub/__init__.py", ""),
            ("/w/pkg/sub/deep.py", ""),
            ("/w/other.py", ""),
        ];
        all.retain(|(known, _)| *known != path);
        all.push((path, text));
        let files = MemoryFiles::new(all);
        let roots = ImportRoots::new(&files, &at("/w"), &ServerConfig::default(), None, None);
        let module = roots.find(&files, old).remove(0);
        let own = [module.source, module.stub].into_iter().flatten().collect();
        let moved = ModuleMove { old: old.to_owned(), new: new.to_owned(), files: own };
        let found = rewrite(&files, &roots, &at(path), text, &moved);
        let mut out = text.to_owned();
        for (span, new) in found.splices.iter().rev() {
            out.replace_range(span.clone(), new);
        }
        (out, found.open.len())
    }

    #[test]
    fn a_new_last_name() {
        for (text, expected) in [
            ("import pkg.old\nprint(pkg.old.x, pkg.sub)\n", "import pkg.new\nprint(pkg.new.x, pkg.sub)\n"),
            ("import pkg.old as o\nprint(o.x)\n", "import pkg.new as o\nprint(o.x)\n"),
            ("from pkg.old import x\nprint(x)\n", "from pkg.new import x\nprint(x)\n"),
            ("from pkg import old\nprint(old.x, a.old)\n", "from pkg import new\nprint(new.x, a.old)\n"),
            ("from pkg import old as o, sub\n", "from pkg import new as o, sub\n"),
            ("from pkg import old\nnew = old.x\n", "from pkg import new as old\nnew = old.x\n"),
            ("import pkg\nprint(pkg.old.x)\n", "import pkg\nprint(pkg.new.x)\n"),
            ("import pkg as p\nprint(p.old.x)\n", "import pkg as p\nprint(p.new.x)\n"),
            (
                "def f():\n    from pkg import old\n    return old\ndef g(old): return old\n",
                "def f():\n    from pkg import new\n    return new\ndef g(old): return old\n",
            ),
            ("x: 'pkg.old.C'\ny: list['pkg.old.C']\n", "x: 'pkg.new.C'\ny: list['pkg.new.C']\n"),
            (
                "@mock.patch('pkg.old.x')\ndef f(): import_module('pkg.old')\n",
                "@mock.patch('pkg.new.x')\ndef f(): import_module('pkg.new')\n",
            ),
            ("import other, pkg.old\n", "import other, pkg.new\n"),
            ("from elsewhere import old\nold()\n", "from elsewhere import old\nold()\n"),
        ] {
            assert_eq!(after("/w/use.py", text, "pkg.old", "pkg.new"), (expected.to_owned(), 0));
        }
        // The idiom of stubs for what is exported; another alias stays.
        let stub = "from . import old as old\nold.x\n";
        let expected = "from . import new as new\nnew.x\n";
        assert_eq!(after("/w/pkg/__init__.pyi", stub, "pkg.old", "pkg.new"), (expected.to_owned(), 0));
        let elsewhere = "from pkg import old as old\n";
        let expected = "from pkg import new as old\n";
        assert_eq!(after("/w/use.py", elsewhere, "pkg.old", "pkg.new"), (expected.to_owned(), 0));
        let init = "from . import old\nfrom .old import x\n__all__ = ['old', 'x']\n";
        let expected = "from . import new\nfrom .new import x\n__all__ = ['new', 'x']\n";
        assert_eq!(after("/w/pkg/__init__.py", init, "pkg.old", "pkg.new"), (expected.to_owned(), 0));
        let deep = "from ..old import x\nfrom .. import old as o\nfrom ... import nothing\n";
        let expected = "from ..new import x\nfrom .. import new as o\nfrom ... import nothing\n";
        assert_eq!(after("/w/pkg/sub/deep.py", deep, "pkg.old", "pkg.new"), (expected.to_owned(), 0));
    }

    #[test]
    fn another_package() {
        for (text, expected) in [
            ("import pkg.old\nprint(pkg.old.x)\n", "import lib.new\nprint(lib.new.x)\n"),
            ("from pkg.old import x\n", "from lib.new import x\n"),
            ("from pkg import old\nprint(old.x)\n", "from lib import new\nprint(new.x)\n"),
            (
                "if 1:\n    from pkg import old as o, sub\n",
                "if 1:\n    from lib import new as o\n    from pkg import sub\n",
            ),
            ("from pkg import sub, old\nold\n", "from lib import new\nfrom pkg import sub\nnew\n"),
            (
                "from pkg import (\n    old,\n    sub,  # why\n)\n",
                "from lib import new\nfrom pkg import (\n    sub,  # why\n)\n",
            ),
            ("if 1: from pkg import old, sub\n", "if 1: from lib import new; from pkg import sub\n"),
            ("from pkg import old, old as o\nold, o\n", "from lib import new, new as o\nnew, o\n"),
            ("from pkg import sub, old, old as o\n", "from lib import new, new as o\nfrom pkg import sub\n"),
            ("from pkg import old, sub, old as o\n", "from lib import new, new as o\nfrom pkg import sub\n"),
            (
                "try:\n    import pkg.old, other\nexcept ImportError: pass\n",
                "try:\n    import lib.new, other\nexcept ImportError: pass\n",
            ),
        ] {
            assert_eq!(after("/w/use.py", text, "pkg.old", "lib.new"), (expected.to_owned(), 0));
        }
        let sub = "from ..old import x\nfrom .. import old\nold.x\n";
        let expected = "from lib.new import x\nfrom lib import new\nnew.x\n";
        assert_eq!(after("/w/pkg/sub/deep.py", sub, "pkg.old", "lib.new"), (expected.to_owned(), 0));
        // To the top, and below the old package.
        let up = after("/w/use.py", "from pkg import old\nold.x\n", "pkg.old", "new");
        assert_eq!(up.0, "import new\nnew.x\n");
        let down =
            after("/w/pkg/__init__.py", "from .old import x\nfrom . import old\n", "pkg.old", "pkg.sub.new");
        assert_eq!(down.0, "from .sub.new import x\nfrom .sub import new\n");
        // The moved module's own relative imports.
        let own = "from . import sub\nfrom .sub.deep import y\nfrom pkg import old\n";
        let expected = "from pkg import sub\nfrom pkg.sub.deep import y\nfrom lib import new\n";
        assert_eq!(after("/w/pkg/old.py", own, "pkg.old", "lib.new").0, expected);
    }

    #[test]
    fn packages_and_top_modules() {
        let inside = "from . import deep\nfrom .. import old\nimport pkg.sub.deep\nprint(pkg.sub.deep)\n";
        let expected = "from . import deep\nfrom .. import old\nimport pkg.part.deep\nprint(pkg.part.deep)\n";
        assert_eq!(after("/w/pkg/sub/__init__.py", inside, "pkg.sub", "pkg.part").0, expected);
        let user = "from pkg.sub.deep import z\nimport pkg.sub.deep as d\nfrom pkg import sub\nsub.deep\n";
        let expected =
            "from pkg.part.deep import z\nimport pkg.part.deep as d\nfrom pkg import part\npart.deep\n";
        assert_eq!(after("/w/use.py", user, "pkg.sub", "pkg.part").0, expected);
        let top = "import other\nimport pkg.old\nother.run(pkg.old.x)\nfrom other import y\n";
        let expected = "import another\nimport pkg.old\nanother.run(pkg.old.x)\nfrom another import y\n";
        assert_eq!(after("/w/use.py", top, "other", "another").0, expected);
    }

    #[test]
    fn other_strings_are_open() {
        let text = "APPS = ['pkg.old', 'pkg.old.C', 'pkg.older', 'old']\nwrite('pkg.old:main')\n'text with pkg.old'\nx = 'run = pkg.old:main'\n";
        assert_eq!(after("/w/use.py", text, "pkg.old", "pkg.new"), (text.to_owned(), 4));
        let lazy = "NAMES = {'x': (__spec__.parent, '.old')}\nimport_module('.old.x', __name__)\n";
        assert_eq!(after("/w/pkg/__init__.py", lazy, "pkg.old", "pkg.new"), (lazy.to_owned(), 2));
        // What the package's `__getattr__` imports.
        let lazy = "LAZY = {'old', 'x'}\ndef __getattr__(name): return import_module(f'.{name}', __name__)\n";
        assert_eq!(after("/w/pkg/__init__.py", lazy, "pkg.old", "pkg.new"), (lazy.to_owned(), 1));
        assert_eq!(after("/w/pkg/sub/__init__.py", lazy, "pkg.old", "pkg.new"), (lazy.to_owned(), 0));
        // Neither a dot nor another package's name.
        let dots = "host.startswith('.')\nf'.{x}'\n";
        assert_eq!(after("/w/pkg/sub/__init__.py", dots, "pkg.sub", "pkg.part"), (dots.to_owned(), 0));
        // A word without dots is hardly the name of a module.
        let words =
            "client.patch('other')\nx: Literal['other', 'a']\ny: Annotated[str, 'other']\nf('no other')\n";
        assert_eq!(after("/w/use.py", words, "other", "another"), (words.to_owned(), 3));
        assert_eq!(
            after("/w/use.py", "import_module('other')\n", "other", "another").0,
            "import_module('another')\n"
        );
    }

    #[test]
    fn annotations_and_fallbacks_of_imports() {
        let text = "from pkg import old\ndef f(c: 'old.C', d: 'old') -> 'list[old.C]': ...\n";
        let expected = "from pkg import new\ndef f(c: 'new.C', d: 'old') -> 'list[old.C]': ...\n";
        assert_eq!(after("/w/use.py", text, "pkg.old", "pkg.new").0, expected);
        let text =
            "try:\n    from pkg import old\nexcept ImportError:\n    from fallback import old\nold.x\n";
        let expected = text.replace("from pkg import old", "from pkg import new as old");
        assert_eq!(after("/w/use.py", text, "pkg.old", "pkg.new").0, expected);
    }
}
