//! The evidence of a resolution: each step from the requested name to its definition.

use super::outline::Span;
use crate::path::AbsPath;

/// What a step follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResolutionStepKind {
    /// An import that names it.
    Import,
    /// `import *`.
    StarImport,
    /// A base class, or the metaclass.
    Inherited,
    /// `A = B`.
    Alias,
    /// A submodule, taken as an attribute of its package.
    Submodule,
    /// An import whose module cannot be found; the import itself is the answer.
    UnresolvedImport,
}

impl ResolutionStepKind {
    /// The name in bundles.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Import => "import",
            Self::StarImport => "starImport",
            Self::Inherited => "inherited",
            Self::Alias => "alias",
            Self::Submodule => "submodule",
            Self::UnresolvedImport => "unresolvedImport",
        }
    }
}

/// One step from the requested name to its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolutionStep {
    /// What was followed.
    pub kind: ResolutionStepKind,
    /// The file that contains it.
    pub file: AbsPath,
    /// The token that binds the name, or the name of the class that has the base.
    pub span: Span,
    /// What it leads to: `flask.app`, or `flask.sansio.scaffold:Scaffold`.
    pub to: String,
}
