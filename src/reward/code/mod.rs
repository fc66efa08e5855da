//! Python code as the guards see it: definitions, statements as token lists, comments, annotations.
//!
//! Built by one walk over the syntax tree, which is then dropped. Comments are not tokens and a string literal is one token, so
//! code that was commented out or wrapped in quotes counts as removed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use tree_sitter::Node;

use crate::digest::Digest;
use crate::python::digest_cache::{DigestCache, MemorySize};
use crate::python::syntax::parse_now;

mod escapes;
mod reader;

use reader::CodeReader;

/// The parsed code of a file.
#[derive(Debug, Clone, Default)]
pub struct Code {
    /// Whether the parser found an error.
    pub has_error: bool,
    /// Functions and classes.
    pub symbols: Vec<CodeSymbol>,
    /// Simple statements, and the headers of compound ones.
    pub statements: Vec<Statement>,
    /// Comments with their spans.
    pub comments: Vec<(Range<usize>, String)>,
    /// How often the code escapes the type checker.
    pub escapes: Escapes,
    /// Annotations by definition and slot; `None` where a slot is not annotated.
    pub slots: BTreeMap<(String, String), Option<String>>,
    /// Names and attributes that are assigned or declared.
    pub bindings: Vec<NameBinding>,
}

/// An assignment or declaration of a name or attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameBinding {
    /// The name; of an attribute without its object.
    pub name: String,
    /// The definition that contains it.
    pub symbol: String,
    /// Whether it is an attribute of `self` or `cls`.
    pub of_self: bool,
    /// Whether it has an annotation.
    pub is_annotated: bool,
    /// The kind of its value.
    pub value: BoundValue,
    /// The tokens of its value.
    pub tokens: Vec<String>,
}

/// The kind of value that a name is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundValue {
    /// None: it is only declared.
    Declared,
    /// A constant.
    Constant,
    /// An empty container.
    Empty,
    /// A computed value.
    Made,
}

/// A function or a class.
#[derive(Debug, Clone)]
pub struct CodeSymbol {
    /// The dotted name, relative to the module.
    pub name: String,
    /// Whether it is a class.
    pub is_class: bool,
    /// The identifiers in its base classes.
    pub bases: BTreeSet<String>,
    /// The last names of its base classes.
    pub parents: BTreeSet<String>,
    /// The whole definition, decorators included.
    pub span: Range<usize>,
    /// Whether its body does nothing.
    pub is_empty: bool,
    /// Whether no body is expected: abstract, overloaded, or in a protocol.
    pub is_declaration: bool,
    /// The last component of each decorator's name, with its span.
    pub decorators: Vec<(String, Range<usize>)>,
}

/// A simple statement, or the header of a compound one.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Its span, without the block.
    pub span: Range<usize>,
    /// Its span with its blocks.
    pub whole: Range<usize>,
    /// The definition that contains it.
    pub symbol: String,
    /// Its tokens; a string literal is one token, whatever its content.
    pub tokens: Vec<String>,
    /// The identifiers that it reads, without assigned names and annotations.
    pub uses: BTreeSet<String>,
    /// Its tokens without annotations; `None` where it has none.
    pub executable: Option<Vec<String>>,
    /// The texts of its string literals outside of annotations.
    pub literals: String,
    /// Every identifier in it.
    pub names: BTreeSet<String>,
    /// The kind of its syntax node.
    pub kind: String,
    /// Whether it is an expression whose value is not used.
    pub is_bare: bool,
    /// Whether it does nothing: `pass`, `...`, a literal, a `raise`, a `return` without a computed value.
    pub is_empty: bool,
    /// Whether it is inside `if TYPE_CHECKING`.
    pub is_typing_only: bool,
}

impl Statement {
    /// The tokens that are executed.
    pub(super) fn executed(&self) -> &[String] {
        self.executable.as_ref().unwrap_or(&self.tokens)
    }

    /// The names of the functions that it calls.
    pub(super) fn verbs(&self) -> Vec<&str> {
        let pairs = self.tokens.windows(2).filter(|pair| pair[1] == "(" && self.names.contains(&pair[0]));
        pairs.map(|pair| pair[0].as_str()).collect()
    }
}

/// How often code escapes the type checker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Escapes {
    /// `Any`, `cast`, type guards, and other unchecked types.
    pub casts: u32,
    /// `exec`, `getattr` and the like.
    pub dynamic: u32,
}

impl Code {
    /// Parses a text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let tree = parse_now(text);
        let root = tree.root_node();
        CodeReader::new(text).read(root)
    }

    /// As [`Self::parse`], cached by content: an edit leaves most files as they are, and many edits are judged against one base.
    #[must_use]
    pub fn of(text: &str) -> Arc<Self> {
        static CODES: DigestCache<Code> = DigestCache::new();
        CODES.get(Digest::of(text.as_bytes()), || Self::parse(text))
    }

    /// The name of the definition at an offset; empty for the module.
    #[must_use]
    pub fn symbol_at(&self, offset: usize) -> &str {
        let around = self.symbols.iter().filter(|symbol| symbol.span.contains(&offset));
        around.max_by_key(|symbol| symbol.name.len()).map_or("", |symbol| &symbol.name)
    }

    /// The statement at an offset, or the last one before it.
    #[must_use]
    pub fn statement_at(&self, offset: usize) -> Option<&Statement> {
        let holding = self.statements.iter().filter(|statement| statement.span.contains(&offset));
        holding
            .min_by_key(|statement| statement.span.len())
            .or_else(|| self.statements.iter().rfind(|statement| statement.span.start <= offset))
    }

    /// Whether there is a function or class of this name.
    #[must_use]
    pub fn has_symbol(&self, name: &str) -> bool {
        self.symbols.iter().any(|symbol| symbol.name == name)
    }
}

impl MemorySize for Code {
    fn memory_bytes(&self) -> usize {
        /// A token, or a name in a set, with its text.
        const WORD_BYTES: usize = 48;
        let words = |statement: &Statement| {
            let executable = statement.executable.as_ref().map_or(0, Vec::len);
            statement.tokens.len() + statement.uses.len() + statement.names.len() + executable
        };
        let words_of_bindings: usize = self.bindings.iter().map(|binding| binding.tokens.len()).sum();
        let all_words = self.statements.iter().map(words).sum::<usize>() + words_of_bindings;
        let literals: usize = self.statements.iter().map(|statement| statement.literals.len()).sum();
        let comments: usize = self.comments.iter().map(|(_, text)| text.len() + WORD_BYTES).sum();
        size_of::<Self>()
            + self.symbols.len() * (size_of::<CodeSymbol>() + 2 * WORD_BYTES)
            + self.statements.len() * (size_of::<Statement>() + 2 * WORD_BYTES)
            + self.bindings.len() * (size_of::<NameBinding>() + 2 * WORD_BYTES)
            + self.slots.len() * 4 * WORD_BYTES
            + all_words * WORD_BYTES
            + literals
            + comments
    }
}

/// The expression inside parentheses.
pub(super) fn inside(mut node: Node<'_>) -> Node<'_> {
    while node.kind() == "parenthesized_expression" {
        match node.named_child(0) {
            Some(inner) => node = inner,
            None => break,
        }
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_definitions() {
        let code = Code::parse(
            "import os\nclass A:\n    def f(self, x: int) -> str:\n        # c\n        if x:\n            return g(x)\n        return ''\n",
        );
        assert!(!code.has_error);
        let names: Vec<&str> = code.symbols.iter().map(|symbol| symbol.name.as_str()).collect();
        assert_eq!(names, ["A", "A.f"]);
        let tokens: Vec<String> =
            code.statements.iter().map(|statement| statement.tokens.join(" ")).collect();
        assert_eq!(
            tokens,
            [
                "import os",
                "class A :",
                "def f ( self , x : int ) - > str :".replace("- >", "->").as_str(),
                "if x :",
                "return g ( x )",
                "return \"\""
            ]
        );
        assert_eq!(code.slots[&("A.f".to_owned(), "return".to_owned())].as_deref(), Some("str"));
        assert_eq!(code.slots[&("A.f".to_owned(), "(self".to_owned())], None);
        assert_eq!(code.symbol_at(40), "A.f");
        assert_eq!(code.comments.len(), 1);
    }

    #[test]
    fn wrapped_code_is_no_code() {
        let code = Code::parse("def f():\n    \"\"\"\n    g(1)\n    \"\"\"\n");
        assert!(code.symbols[0].is_empty);
        assert!(code.statements.iter().all(|statement| !statement.names.contains("g")));
        assert!(!Code::parse("def f():\n    return g\n").symbols[0].is_empty);
    }

    #[test]
    fn escapes_are_counted_under_any_name() {
        let count = |text: &str| {
            let escapes = Code::parse(text).escapes;
            (escapes.casts, escapes.dynamic)
        };
        assert_eq!(count("from typing import Any\n"), (0, 0));
        assert_eq!(count("from typing import Any as T\nx: T = 1\n"), (1, 0));
        assert_eq!(count("import typing as ty\nx = ty.cast(ty.Any, 1)\n"), (2, 0));
        assert_eq!(count("x = frame.cast('int')\n"), (0, 0));
        assert_eq!(count("getattr(x, 'y')\nx.__dict__['y']\nexec('')\n"), (0, 3));
        assert_eq!(count("def __getattr__(name): ...\n"), (0, 1));
        assert_eq!(count("(lambda x: x.y)(z)\n"), (0, 1));
        assert_eq!(count("f(eval=1)\n"), (0, 0));
        assert_eq!(count("x = []  # type: list[Any]\n"), (1, 0));
        assert_eq!(count("from builtins import getattr as g\ng(x, 'y')\n"), (0, 1));
    }
}
