//! Which language servers lanser has profiles for.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A language server that lanser knows how to find, start and question.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ServerKind {
    /// Microsoft's Pyright.
    #[default]
    Pyright,
    /// The fork basedpyright.
    Basedpyright,
}

impl ServerKind {
    /// Every kind, in the order that `lanser server list` shows.
    pub const ALL: [Self; 2] = [Self::Pyright, Self::Basedpyright];

    /// The name on the command line, in configuration and in bundles.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pyright => "pyright",
            Self::Basedpyright => "basedpyright",
        }
    }

    /// Reads the name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
