//! Where in a JSON document a value stands: `$.meta.weights[2]`, in the notation of RFC 9535 (JSONPath).
//!
//! Keys that are not plain names are written as JSON strings: `$["a b"]`.

use std::fmt;

use serde_json::Value;

/// One step down from a container to something in it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'s> {
    /// To a member of an object.
    Key(&'s str),
    /// To an item of an array, counted from 0.
    Index(usize),
}

impl fmt::Display for Step<'_> {
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

/// A path kept as a chain of borrowed steps on the call stack, so that walking a value allocates nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trail<'p> {
    last: Option<(&'p Self, Step<'p>)>,
    depth: usize,
}

impl<'p> Trail<'p> {
    /// The document itself, `$`.
    pub(super) const ROOT: Self = Self { last: None, depth: 0 };

    /// One step further.
    pub(super) const fn then(&'p self, step: Step<'p>) -> Self {
        Self { last: Some((self, step)), depth: self.depth + 1 }
    }

    /// How many containers are open around the value.
    pub(super) const fn depth(&self) -> usize {
        self.depth
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            None => f.write_str("$"),
            Some((parent, step)) => write!(f, "{parent}{step}"),
        }
    }
}

/// The path that some steps from the root make.
pub(super) fn from_root<'s>(steps: impl IntoIterator<Item = Step<'s>>) -> String {
    steps.into_iter().fold("$".to_owned(), |path, step| path + &step.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notation() {
        let steps = [Step::Key("meta"), Step::Key("a \"b\""), Step::Index(2), Step::Key(""), Step::Key("1")];
        assert_eq!(from_root(steps), r#"$.meta["a \"b\""][2][""]["1"]"#);
        let outer = Trail::ROOT.then(Step::Key("x"));
        let inner = outer.then(Step::Index(0));
        assert_eq!((inner.to_string(), inner.depth()), ("$.x[0]".to_owned(), 2));
    }
}
