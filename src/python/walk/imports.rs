//! Import statements and `__all__`.

use tree_sitter::Node;

use super::super::outline::{ExportedName, Import, Imported};
use super::super::syntax::{dotted, text_of, unwrapped};
use super::{BlockKind, OutlineBuilder, WalkContext};

impl<'t> OutlineBuilder<'t> {
    pub(super) fn import(&mut self, node: Node<'t>, context: WalkContext) {
        let from = node.child_by_field_name("module_name");
        let (level, module) = from.map_or((0, String::new()), |from| self.module_reference(from));
        for child in self.children(node) {
            if Some(child) == from {
                continue;
            }
            let (name, alias) = match child.kind() {
                "wildcard_import" => {
                    self.outline.imports.push(Import {
                        parent: context.parent,
                        branch: context.branch,
                        level,
                        module: module.clone(),
                        what: Imported::Star,
                        bound: String::new(),
                        bound_span: child.byte_range(),
                    });
                    continue;
                }
                "dotted_name" => (child, None),
                "aliased_import" => {
                    let Some(name) = child.child_by_field_name("name") else { continue };
                    (name, child.child_by_field_name("alias"))
                }
                _ => continue,
            };
            let Some(first) = name.named_child(0) else { continue };
            let path = self.dotted_name(name);
            let token = alias.unwrap_or(first);
            let (module, what) = if from.is_some() {
                (module.clone(), Imported::Name(path))
            } else if alias.is_some() {
                (path, Imported::Module)
            } else {
                (path, Imported::Top)
            };
            self.outline.imports.push(Import {
                parent: context.parent,
                branch: context.branch,
                level,
                module,
                what,
                bound: text_of(token, self.text).to_owned(),
                bound_span: token.byte_range(),
            });
        }
    }

    /// The dots and the name of `from ..a.b import`.
    fn module_reference(&mut self, node: Node<'t>) -> (usize, String) {
        if node.kind() != "relative_import" {
            return (0, self.dotted_name(node));
        }
        let (mut level, mut name) = (0, String::new());
        for part in self.children(node) {
            match part.kind() {
                "import_prefix" => level = text_of(part, self.text).matches('.').count(),
                _ => name = self.dotted_name(part),
            }
        }
        (level, name)
    }

    fn dotted_name(&mut self, node: Node<'t>) -> String {
        let parts = self.children(node);
        let parts: Vec<_> = parts.into_iter().map(|part| text_of(part, self.text)).collect();
        parts.join(".")
    }

    /// `__all__.extend([…])`, `.append("x")` and `.remove("x")`.
    pub(super) fn exports_call(&mut self, call: Node<'t>, context: WalkContext) {
        if context.scope != BlockKind::Module {
            return;
        }
        let (Some(function), Some(arguments)) =
            (call.child_by_field_name("function"), call.child_by_field_name("arguments"))
        else {
            return;
        };
        let Some(name) = dotted(function, self.text) else { return };
        let argument = arguments.named_child(0);
        match name.as_str() {
            "__all__.extend" => self.extend_exports(argument, true),
            "__all__.append" => {
                let entry = argument.and_then(|argument| self.exported(argument));
                let exports = self.outline.exports.get_or_insert_default();
                match entry {
                    Some(entry) => exports.names.push(entry),
                    None => exports.is_static = false,
                }
            }
            "__all__.remove" => {
                let entry = argument.and_then(|argument| self.exported(argument));
                let exports = self.outline.exports.get_or_insert_default();
                match entry {
                    Some(entry) => exports.names.retain(|other| other.name != entry.name),
                    None => exports.is_static = false,
                }
            }
            _ => {}
        }
    }

    /// Reads a value that is assigned or added to `__all__`: lists and tuples of strings, `sub.__all__`, and sums of them.
    pub(super) fn extend_exports(&mut self, value: Option<Node<'t>>, keep: bool) {
        let mut exports = if keep { self.outline.exports.take() } else { None }.unwrap_or_default();
        if !keep {
            exports.is_static = true;
        }
        let mut stack: Vec<Node<'t>> = value.into_iter().collect();
        while let Some(part) = stack.pop() {
            let part = unwrapped(part);
            match part.kind() {
                "list" | "tuple" | "expression_list" => {
                    for item in self.children(part) {
                        match item.kind() {
                            "comment" => {}
                            "list_splat" => stack.extend(item.named_child(0)),
                            _ => match self.exported(item) {
                                Some(entry) => exports.names.push(entry),
                                None => exports.is_static = false,
                            },
                        }
                    }
                }
                "binary_operator" => {
                    stack.extend(part.child_by_field_name("right"));
                    stack.extend(part.child_by_field_name("left"));
                }
                _ => {
                    match dotted(part, self.text).as_deref().and_then(|name| name.strip_suffix(".__all__")) {
                        Some(module) => exports.from.push(module.to_owned()),
                        None => exports.is_static = false,
                    }
                }
            }
        }
        self.outline.exports = Some(exports);
    }

    /// The entry for a plain string literal.
    fn exported(&self, literal: Node<'t>) -> Option<ExportedName> {
        let literal = unwrapped(literal);
        if literal.kind() != "string" || literal.named_child_count() != 3 {
            return None;
        }
        let content = literal.named_child(1).filter(|content| content.kind() == "string_content")?;
        Some(ExportedName { name: text_of(content, self.text).to_owned(), span: literal.byte_range() })
    }
}
