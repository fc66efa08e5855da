//! Expressions and strings that spell the name of a module that gets another one.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::{Rewriter, join, last, parent, up};
use crate::python::scopes::Scopes;
use crate::python::syntax::{children, preorder, text_of};

/// Functions whose first argument is the name of a module that they import.
const IMPORTING: [&str; 4] = ["import_module", "importorskip", "__import__", "find_spec"];

/// Functions whose first argument is the dotted name of something in a module.
const PATCHING: [&str; 3] = ["patch", "setattr", "delattr"];

impl Rewriter<'_> {
    /// The expressions and strings that spell the old name.
    pub(super) fn uses(&mut self, root: Node<'_>) {
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
        if let Some(name) = relative_name(content) {
            // As `import_module` takes it.
            let level = content.len() - name.len();
            let absolute = join(&up(&self.package, level - 1), name);
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

/// The name after the dots of a string that is the name of a module relative to a package. Dots alone are hardly one.
fn relative_name(content: &str) -> Option<&str> {
    let name = content.trim_start_matches('.');
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c == '_' || c.is_alphanumeric());
    (name.len() < content.len() && name.split('.').all(is_part)).then_some(name)
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
