//! The problems of an invalid document.

use std::fmt;

use crate::digest::{JsonPath, StrictJsonError};

/// The maximum number of problems listed for one document.
pub const MAX_PROBLEMS: usize = 20;

/// One problem of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path of the invalid value, as in `$.facts.references[2].uri`.
    pub path: String,
    /// What is wrong there.
    pub message: String,
    /// The line in the file and the column in bytes, both counted from 1; `None` if the path does not exist.
    pub position: Option<(usize, usize)>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some((line, column)) => {
                write!(f, "{} (line {line}, column {column}): {}", self.path, self.message)
            }
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// The problems of a document: at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The first problems, at most [`MAX_PROBLEMS`].
    pub listed: Vec<Problem>,
}

impl Problems {
    /// One problem of the document as a whole.
    pub(super) fn whole(message: impl Into<String>) -> Self {
        Self { listed: vec![Problem { path: "$".to_owned(), message: message.into(), position: None }] }
    }
}

impl From<StrictJsonError> for Problems {
    fn from(error: StrictJsonError) -> Self {
        let position = Some((error.line, error.column));
        Self {
            listed: vec![Problem {
                path: error.path.to_string(),
                message: error.fault.to_string(),
                position,
            }],
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.listed.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Collects the first problems.
#[derive(Debug)]
pub(super) struct Collector<'t> {
    text: &'t str,
    found: Problems,
}

impl<'t> Collector<'t> {
    /// Creates a collector for a text that is JSON.
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, found: Problems { listed: Vec::new() } }
    }

    /// Adds a problem.
    pub(super) fn add(&mut self, path: &JsonPath, message: impl Into<String>) {
        if self.found.listed.len() == MAX_PROBLEMS {
            return;
        }
        let position = path.position_in(self.text);
        self.found.listed.push(Problem { path: path.to_string(), message: message.into(), position });
    }

    /// The result.
    pub(super) fn finish(self) -> Result<(), Problems> {
        if self.found.listed.is_empty() { Ok(()) } else { Err(self.found) }
    }
}
