//! The language servers that lanser supports.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of language server that lanser can find, start and query.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ServerKind {
    /// Microsoft's Pyright.
    #[default]
    Pyright,
    /// basedpyright, a fork of Pyright.
    Basedpyright,
    /// Astral's ty.
    Ty,
}

impl ServerKind {
    /// Every kind, in the order of `lanser server list`.
    pub const ALL: [Self; 3] = [Self::Pyright, Self::Basedpyright, Self::Ty];

    /// The name on the command line, in configuration and in bundles.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pyright => "pyright",
            Self::Basedpyright => "basedpyright",
            Self::Ty => "ty",
        }
    }

    /// The server as a value of `--server`: `pyright@1.1.406`, or `pyright` for the default version.
    #[must_use]
    pub fn spec(self, version: Option<&str>) -> String {
        match version {
            Some(version) => format!("{self}@{version}"),
            None => self.to_string(),
        }
    }

    /// The option for this server on a command line, if it is not the default.
    #[must_use]
    pub fn option(self, version: Option<&str>) -> Option<String> {
        let is_default = self == Self::default() && version.is_none();
        (!is_default).then(|| format!("--server {}", self.spec(version)))
    }

    /// Parses a name.
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
