//! The definitions of one Python file: their names, kinds and the spans of their parts.
//!
//! Resolving a name starts from an [`Outline`]. It is built by one walk over the statements of the syntax tree (see `walk`),
//! which is then dropped: trees are several times as large as their text. Parameters and the local variables of functions
//! are deliberately absent: no selector can name them.
//!
//! A file with syntax errors has an outline too. Statements next to an error are found as if the error were not there; text
//! that the parser could not read as a statement is missing, and `has_error` marks definitions that contain an error.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tree_sitter::Tree;

use super::digest_cache::{DigestCache, MemorySize};
use super::{recover, syntax, walk};
use crate::digest::Digest;

/// A byte range of a text, end exclusive.
pub type Span = Range<usize>;

/// The kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DefinitionKind {
    /// A whole file.
    Module,
    /// A class.
    Class,
    /// A function outside of a class.
    Function,
    /// A function in a class.
    Method,
    /// A function in a class that is read like an attribute, or one of its accessors.
    Property,
    /// A variable of a module.
    Variable,
    /// A variable of a class; a field of a dataclass is one.
    Field,
    /// An attribute that methods set on the instance.
    Attribute,
    /// A member of an enumeration.
    EnumMember,
    /// `type X = …` or `X: TypeAlias = …`.
    TypeAlias,
    /// A `TypeVar`, `ParamSpec` or `TypeVarTuple`.
    TypeVariable,
    /// A name that an import binds.
    Import,
}

impl DefinitionKind {
    /// The name in bundles and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Class => "class",
            Self::Function => "function",
            Self::Method => "method",
            Self::Property => "property",
            Self::Variable => "variable",
            Self::Field => "field",
            Self::Attribute => "attribute",
            Self::EnumMember => "enumMember",
            Self::TypeAlias => "typeAlias",
            Self::TypeVariable => "typeVariable",
            Self::Import => "import",
        }
    }

    /// Whether this is a `def` statement.
    #[must_use]
    pub const fn is_function(self) -> bool {
        matches!(self, Self::Function | Self::Method | Self::Property)
    }
}

/// One definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The name as it is written.
    pub name: String,
    /// The enclosing definition, as an index into [`Outline::definitions`].
    pub parent: Option<usize>,
    /// The kind.
    pub kind: DefinitionKind,
    /// The name token.
    pub name_span: Span,
    /// The whole statement without decorators; for a variable the name token.
    pub span: Span,
    /// From `def`, `class` or `async` to the colon, inclusive.
    pub signature: Option<Span>,
    /// The block.
    pub body: Option<Span>,
    /// The docstring literal, quotes included.
    pub doc: Option<Span>,
    /// Decorators as dotted names (`functools.cache`, `x.setter`), without arguments; empty for any other expression.
    pub decorators: Vec<String>,
    /// The bases of a class that are dotted names; a subscript (`Generic[T]`) counts as its value (`Generic`).
    pub bases: Vec<String>,
    /// The other bases of a class, such as calls.
    pub other_bases: Vec<Span>,
    /// The metaclass that a class names, as a dotted name.
    pub metaclass: Option<String>,
    /// What a variable is bound to.
    pub value: VariableValue,
    /// The innermost branch around it in its scope, as an index into [`Outline::branches`].
    pub branch: Option<usize>,
    /// Whether the parser found an error in it or in a statement around it.
    pub has_error: bool,
}

/// What a variable is bound to, as far as classes are concerned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VariableValue {
    /// The dotted names that it can be: one for `A = B`, two for `A = B if c else C`; a subscript (`A = B[int]`) counts as its
    /// value (`B`).
    pub names: Vec<String>,
    /// The expression, or a part of it, that is neither a name nor a literal. The variable itself if no value is written for it.
    pub computed: Option<Span>,
}

impl VariableValue {
    /// A value that only the program knows.
    #[must_use]
    pub const fn computed(span: Span) -> Self {
        Self { names: Vec::new(), computed: Some(span) }
    }

    /// The name, if it is nothing but one.
    #[must_use]
    pub fn alias(&self) -> Option<&str> {
        match self.names.as_slice() {
            [name] if self.computed.is_none() => Some(name),
            _ => None,
        }
    }
}

impl Definition {
    /// Whether a decorator has this last name: `overload` is one for `@typing.overload`.
    #[must_use]
    pub fn is_decorated(&self, name: &str) -> bool {
        self.decorators.iter().any(|decorator| decorator.rsplit('.').next() == Some(name))
    }

    /// Whether this is `@x.setter`, `@x.deleter` or `@x.getter` of an earlier `x`.
    #[must_use]
    pub fn is_accessor(&self) -> bool {
        self.kind.is_function()
            && self.decorators.iter().any(|decorator| {
                decorator.rsplit_once('.').is_some_and(|(of, role)| {
                    is_accessor_role(role) && of.rsplit('.').next() == Some(&self.name)
                })
            })
    }
}

pub(super) fn is_accessor_role(role: &str) -> bool {
    matches!(role, "setter" | "deleter" | "getter")
}

/// The kind of statement that opens a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchKind {
    /// `if`, with the truth of its condition where the server takes it as constant: `TYPE_CHECKING`.
    If(Option<bool>),
    /// `elif` or `else` of an `if`; false when an earlier condition is always true.
    Else(Option<bool>),
    /// The body of a `try`, or its `else`.
    Try,
    /// An `except` clause.
    Except,
    /// A `finally` clause, or the body of a `with`: always run.
    Always,
    /// The body of a loop, or its `else`.
    Loop,
    /// A `case` of a `match`.
    Case,
}

/// A block that is not run unconditionally in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The enclosing branch in the same scope.
    pub parent: Option<usize>,
    /// The kind of statement that opens it.
    pub kind: BranchKind,
    /// The clause's head, such as `if sys.version_info >= (3, 8)`.
    pub head: Span,
}

/// A name that an import statement binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The definition whose scope it is in; `None` for the module.
    pub parent: Option<usize>,
    /// The innermost branch around it.
    pub branch: Option<usize>,
    /// The number of leading dots.
    pub level: usize,
    /// The module after the dots, possibly empty.
    pub module: String,
    /// What is imported.
    pub what: Imported,
    /// The name that it binds; empty for `*`.
    pub bound: String,
    /// The token of that name: the alias, else the first part of the imported name.
    pub bound_span: Span,
}

/// What an import statement takes from a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imported {
    /// `import a.b`, which binds `a`.
    Top,
    /// `import a.b as c`.
    Module,
    /// `from m import name`.
    Name(String),
    /// `from m import *`.
    Star,
}

/// One entry of `__all__`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedName {
    /// The name.
    pub name: String,
    /// The string literal, quotes included.
    pub span: Span,
}

/// The statically known part of `__all__`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exports {
    /// The names, in the order they are added.
    pub names: Vec<ExportedName>,
    /// Modules whose `__all__` is added (`__all__ += sub.__all__`), as dotted names.
    pub from: Vec<String>,
    /// Whether it is only changed in ways that are understood.
    pub is_static: bool,
}

/// The definitions of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// In source order; a definition comes before those inside it.
    pub definitions: Vec<Definition>,
    /// In source order.
    pub imports: Vec<Import>,
    /// Referred to by definitions and imports.
    pub branches: Vec<Branch>,
    /// `__all__`, if the file has one.
    pub exports: Option<Exports>,
    /// The module's docstring literal.
    pub doc: Option<Span>,
    /// Whether the file has a syntax error.
    pub has_error: bool,
}

impl MemorySize for Outline {
    fn memory_bytes(&self) -> usize {
        /// The strings of a definition or an import, on average: its name, decorators and bases.
        const STRINGS_BYTES: usize = 64;
        size_of::<Self>()
            + self.definitions.len() * (size_of::<Definition>() + STRINGS_BYTES)
            + self.imports.len() * (size_of::<Import>() + STRINGS_BYTES)
            + self.branches.len() * size_of::<Branch>()
    }
}

impl Outline {
    /// The outline of a text. Never fails: see the module documentation on syntax errors.
    #[must_use]
    pub fn parse(text: &str) -> Arc<Self> {
        static OUTLINES: DigestCache<Outline> = DigestCache::new();
        OUTLINES.get(Digest::of(text.as_bytes()), || Self::of_tree(&syntax::parse(text), text))
    }

    /// The outline of a text that is parsed already.
    pub(super) fn of_tree(tree: &Tree, text: &str) -> Self {
        let outline = walk::outline(tree, text);
        if outline.has_error { recover::complete(outline, text) } else { outline }
    }

    /// The names from the module down to a definition.
    #[must_use]
    pub fn names(&self, index: usize) -> Vec<String> {
        let mut names = Vec::new();
        let mut at = Some(index);
        while let Some(definition) = at.and_then(|at| self.definitions.get(at)) {
            names.push(definition.name.clone());
            at = definition.parent;
        }
        names.reverse();
        names
    }

    /// The definitions directly inside `parent`, with their indices.
    pub fn children(&self, parent: Option<usize>) -> impl Iterator<Item = (usize, &Definition)> {
        self.definitions.iter().enumerate().filter(move |(_, definition)| definition.parent == parent)
    }

    /// The imports directly inside `parent`.
    pub fn imports_of(&self, parent: Option<usize>) -> impl Iterator<Item = &Import> {
        self.imports.iter().filter(move |import| import.parent == parent)
    }

    /// Whether the server takes this branch as unreachable (`if not TYPE_CHECKING`, or the `else` of `if TYPE_CHECKING`).
    #[must_use]
    pub fn is_unreachable(&self, branch: Option<usize>) -> bool {
        self.branch_chain(branch)
            .any(|branch| matches!(branch.kind, BranchKind::If(Some(false)) | BranchKind::Else(Some(false))))
    }

    /// A branch and its enclosing branches, innermost first.
    pub fn branch_chain(&self, branch: Option<usize>) -> impl Iterator<Item = &Branch> {
        let at = |index: Option<usize>| index.and_then(|index| self.branches.get(index));
        std::iter::successors(at(branch), move |branch| at(branch.parent))
    }

    /// The innermost class or function whose statement contains an offset.
    #[must_use]
    pub fn enclosing(&self, offset: usize) -> Option<usize> {
        self.definitions.iter().rposition(|definition| {
            definition.body.is_some() && definition.span.start <= offset && offset <= definition.span.end
        })
    }
}
