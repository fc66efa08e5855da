//! Paths of values in a JSON document: `$.meta.weights[2]`, in the notation of RFC 9535 (JSONPath).
//!
//! Keys that are not plain names are written as JSON strings: `$["a b"]`.

use std::fmt;

use serde_json::Value;

/// One step from a container to a value in it.
#[derive(Debug, Clone, Copy)]
pub(super) enum PathStep<'s> {
    /// A member of an object.
    Key(&'s str),
    /// An item of an array, counted from 0.
    Index(usize),
}

impl fmt::Display for PathStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Key(key) if is_plain(key) => write!(f, ".{key}"),
            Self::Key(key) => write!(f, "[{}]", Value::from(key)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn is_plain(key: &str) -> bool {
    !key.starts_with(|c: char| c.is_ascii_digit())
        && !key.is_empty()
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A path as a chain of borrowed steps on the call stack, so that walking a value allocates nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathTrail<'p> {
    last: Option<(&'p Self, PathStep<'p>)>,
    depth: usize,
}

impl<'p> PathTrail<'p> {
    /// The document itself, `$`.
    pub(super) const ROOT: Self = Self { last: None, depth: 0 };

    /// Appends a step.
    pub(super) const fn then(&'p self, step: PathStep<'p>) -> Self {
        Self { last: Some((self, step)), depth: self.depth + 1 }
    }

    /// The number of containers around the value.
    pub(super) const fn depth(&self) -> usize {
        self.depth
    }
}

impl fmt::Display for PathTrail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            None => f.write_str("$"),
            Some((parent, step)) => write!(f, "{parent}{step}"),
        }
    }
}

/// Formats a path from the root.
pub(super) fn from_root<'s>(steps: impl IntoIterator<Item = PathStep<'s>>) -> String {
    steps.into_iter().fold("$".to_owned(), |path, step| path + &step.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notation() {
        let steps = [
            PathStep::Key("meta"),
            PathStep::Key("a \"b\""),
            PathStep::Index(2),
            PathStep::Key(""),
            PathStep::Key("1"),
        ];
        assert_eq!(from_root(steps), r#"$.meta["a \"b\""][2][""]["1"]"#);
        let outer = PathTrail::ROOT.then(PathStep::Key("x"));
        let inner = outer.then(PathStep::Index(0));
        assert_eq!((inner.to_string(), inner.depth()), ("$.x[0]".to_owned(), 2));
    }
}
