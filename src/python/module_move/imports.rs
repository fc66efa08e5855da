//! Import statements of a module that gets another name.

use tree_sitter::Node;

use super::{Rewriter, join, last, parent, up};
use crate::python::outline::{Outline, Span};
use crate::python::syntax::{children, dotted_name, preorder, text_of};

impl Rewriter<'_> {
    pub(super) fn imports(&mut self, root: Node<'_>) {
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
        if moved.len() == entries.len() {
            // The module was not respelled before: it is the parent of the moved one.
            self.found.splices.retain(|(span, _)| *span != module.byte_range());
            if respelled.is_empty() {
                let mut comments = String::new();
                for comment in children(statement).filter(|child| child.kind() == "comment") {
                    comments.push_str("  ");
                    comments.push_str(text_of(comment, self.text));
                }
                self.splice(statement.byte_range(), format!("import {}{comments}", binds.join(", ")));
            } else {
                self.splice(module.byte_range(), respelled);
                for (entry, (_, binds)) in entries.iter().zip(moved) {
                    self.splice(entry.byte_range(), binds.clone());
                }
            }
            return;
        }
        let mut line = match respelled.as_str() {
            "" => format!("import {}", binds.join(", ")),
            module => format!("from {module} import {}", binds.join(", ")),
        };
        let start = statement.start_byte();
        let indent_start = self.text[..start].rfind('\n').map_or(0, |end| end + 1);
        let indent = &self.text[indent_start..start];
        // Something may stand before it in the line: `if x: from a import b, c`.
        let is_first = indent.trim().is_empty();
        let has_parentheses = text_of(statement, self.text).contains('(');
        let goes = |at: usize| moved.iter().any(|(index, _)| *index == at);
        // Entries on lines of their own go with their lines, and the comments there go where they go.
        let own_lines: Option<Vec<(Span, &str)>> =
            moved.iter().map(|(at, _)| own_line(self.text, &entries[*at].byte_range())).collect();
        let own_lines = own_lines.filter(|_| has_parentheses && is_first);
        for (_, comment) in own_lines.iter().flatten().filter(|(_, comment)| !comment.is_empty()) {
            line.push_str("  ");
            line.push_str(comment);
        }
        let has_own_lines = own_lines.is_some();
        let mut removed: Vec<Span> = own_lines.into_iter().flatten().map(|(span, _)| span).collect();
        for (at, entry) in entries.iter().enumerate().filter(|(at, _)| !has_own_lines && goes(*at)) {
            // The last ones go with the comma before them.
            let kept = (0..at).rev().find(|before| !goes(*before));
            if let Some(kept) = kept.filter(|_| (at..entries.len()).all(goes)) {
                if at == kept + 1 {
                    removed.push(entries[kept].end_byte()..entries[entries.len() - 1].end_byte());
                }
            } else {
                removed.push(with_comma(self.text, &entry.byte_range()));
            }
        }
        let inserted = if is_first { format!("{line}\n{indent}") } else { format!("{line}; ") };
        self.splice(start..start, inserted);
        for span in removed {
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
        return span.start..end;
    }
    let before = text[..span.start].trim_end();
    match before.strip_suffix(',') {
        Some(kept) => kept.len()..span.end,
        None => span.clone(),
    }
}

/// The whole line of an entry that stands alone in it, with the comma, and the comment in it.
fn own_line<'t>(text: &'t str, entry: &Span) -> Option<(Span, &'t str)> {
    let start = text[..entry.start].rfind('\n')? + 1;
    let end = entry.end + text[entry.end..].find('\n')? + 1;
    let rest = text[entry.end..end].trim();
    let comment = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    let is_alone =
        text[start..entry.start].trim().is_empty() && (comment.is_empty() || comment.starts_with('#'));
    is_alone.then_some((start..end, comment))
}
