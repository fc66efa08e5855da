//! Analyzers: programs besides the language server that find diagnostics.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// A program besides the language server that finds diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AnalyzerKind {
    /// The parser and compiler of the Python interpreter; nothing is executed.
    Compile,
    /// Ruff's linter.
    Ruff,
    /// mypy.
    Mypy,
}

impl AnalyzerKind {
    /// Every kind, in the order in which they run.
    pub const ALL: [Self; 3] = [Self::Compile, Self::Ruff, Self::Mypy];

    /// The name on the command line, in configuration and in bundles.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Compile => "compile",
            Self::Ruff => "ruff",
            Self::Mypy => "mypy",
        }
    }

    /// Parses a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for AnalyzerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What reports a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticSource {
    /// The language server.
    Lsp,
    /// The parser and compiler of the Python interpreter.
    Compile,
    /// Ruff's linter.
    Ruff,
    /// mypy.
    Mypy,
}

impl DiagnosticSource {
    /// The name in bundles.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lsp => "lsp",
            Self::Compile => "compile",
            Self::Ruff => "ruff",
            Self::Mypy => "mypy",
        }
    }
}

impl From<AnalyzerKind> for DiagnosticSource {
    fn from(kind: AnalyzerKind) -> Self {
        match kind {
            AnalyzerKind::Compile => Self::Compile,
            AnalyzerKind::Ruff => Self::Ruff,
            AnalyzerKind::Mypy => Self::Mypy,
        }
    }
}

/// A source of diagnostics, and what it analyzed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceReport {
    /// The source.
    pub source: DiagnosticSource,
    /// The name of the program.
    pub tool: String,
    /// Its version.
    pub version: String,
    /// The digest of the configuration files that change its diagnostics, and of the options that lanser passes.
    #[serde(rename = "configDigest")]
    pub config_digest: Digest,
    /// The files that it analyzed.
    pub scope: AnalysisScope,
    /// Whether it analyzed all of them, and as configured.
    pub complete: bool,
    /// Why it is not complete; absent when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The files that an analyzer analyzes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AnalysisScope {
    /// The requested files.
    Requested,
    /// The files that the analyzer's own configuration selects; without a selection, those that it finds itself.
    Configured,
}
