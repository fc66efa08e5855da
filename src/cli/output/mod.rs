//! What the program prints: the payload on standard output, everything else on standard error.

mod budget;
mod edits;
mod fields;
mod human;
pub(crate) mod progress;
pub(crate) mod screen;
mod style;
mod uses;

use std::io::{ErrorKind, Write};

use crate::bundle::seal::bundle_id;
use crate::cli::exit::Exit;
use crate::model::bundle::Bundle;
use crate::model::error::ErrorSymbol;
use crate::orchestrator::session::Reply;

pub(crate) use fields::{select, unknown};
pub(crate) use progress::Progress;
pub(crate) use style::Style;

/// In which form answers are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// One line of JSON.
    Json,
    /// Text for people and agents.
    Human,
}

/// Writes answers.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    pub(crate) format: Format,
    /// `--fields`; empty means everything.
    pub(crate) fields: Vec<String>,
    /// `--limit`, which lifts the default budget of lines.
    pub(crate) limit: Option<u32>,
    /// `--verbose`.
    pub(crate) verbose: bool,
    /// The command line as typed, for the command that continues a cut list.
    pub(crate) typed: Vec<String>,
    /// Whether a person watches standard error.
    pub(crate) stderr_is_terminal: bool,
}

impl Printer {
    /// A printer without options.
    pub(crate) const fn new(format: Format, stderr_is_terminal: bool) -> Self {
        Self {
            format,
            fields: Vec::new(),
            limit: None,
            verbose: false,
            typed: Vec::new(),
            stderr_is_terminal,
        }
    }

    /// Prints a bundle and tells how the program ends.
    pub(crate) fn bundle(&self, bundle: &Bundle) -> Exit {
        debug_assert_eq!(bundle_id(bundle).ok(), Some(bundle.bundle_id));
        let exit = Exit::of(bundle.error.as_ref().map(|error| error.symbol), bundle.meta.exit_code);
        let printed = match self.format {
            Format::Json => self.json(bundle),
            Format::Human => human::print(self, bundle),
        };
        self.ended(printed, exit)
    }

    /// Whether bundles are printed as the bytes that a session sends.
    pub(crate) const fn prints_bytes(&self) -> bool {
        matches!(self.format, Format::Json) && self.fields.is_empty()
    }

    /// Prints a bundle as the bytes that it is; see [`Self::prints_bytes`].
    pub(crate) fn reply(&self, reply: &Reply) -> Exit {
        let exit = Exit::of(reply.symbol, reply.exit_code);
        let printed = screen::write_json(&reply.bundle);
        self.ended(printed, exit)
    }

    fn ended(&self, printed: std::io::Result<()>, exit: Exit) -> Exit {
        match printed {
            Ok(()) => exit,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Exit::ClosedPipe,
            Err(error) => {
                self.complain(&format!("error: cannot write the answer: {error}"));
                Exit::Failed(ErrorSymbol::FsPermissions)
            }
        }
    }

    /// Prints a text that is the whole answer; its colours go where there is no terminal.
    pub(crate) fn payload(&self, text: &str) -> Exit {
        match screen::write(text) {
            Ok(()) => Exit::Ok,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Exit::ClosedPipe,
            Err(error) => {
                self.complain(&format!("error: cannot write the answer: {error}"));
                Exit::Failed(ErrorSymbol::FsPermissions)
            }
        }
    }

    /// Prints a value that is the whole answer as one line of JSON, or the parts of it that `--fields` names.
    pub(crate) fn json_payload(&self, value: &impl serde::Serialize) -> Exit {
        let value = serde_json::to_value(value).expect("reports are made of texts, numbers and lists");
        let lacks = |path: &&String| {
            let first = path.split('.').find(|part| !part.is_empty());
            first.is_some_and(|first| value.get(first).is_none() && value.is_object())
        };
        if let Some(path) = self.fields.iter().find(lacks) {
            let names = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            self.complain(&format!("error: E/USAGE: {}", fields::no_such(path, &[], names)));
            return Exit::Failed(ErrorSymbol::Usage);
        }
        let value = if self.fields.is_empty() { value } else { select(&value, &self.fields) };
        self.payload(&format!("{value}\n"))
    }

    /// Prints a line on standard error. Nobody can be told when that fails.
    #[expect(clippy::unused_self, reason = "whoever prints has a printer")]
    pub(crate) fn complain(&self, text: &str) {
        let _ = writeln!(anstream::stderr(), "{}", screen::message(text));
    }

    /// Who is told of long work.
    pub(crate) fn progress(&self) -> std::sync::Arc<Progress> {
        std::sync::Arc::new(Progress::new(self.stderr_is_terminal))
    }

    /// Prints a bundle as a line of JSON, one of many.
    pub(crate) fn json_line(&self, bundle: &Bundle) -> Exit {
        self.ended(self.json(bundle), Exit::Ok)
    }

    fn json(&self, bundle: &Bundle) -> std::io::Result<()> {
        screen::write_json(&self.line(bundle)?)
    }

    /// A bundle as one line of JSON, or the parts of it that `--fields` names.
    pub(crate) fn line(&self, bundle: &Bundle) -> std::io::Result<Vec<u8>> {
        let mut line = if self.fields.is_empty() {
            serde_json::to_vec(bundle)?
        } else {
            serde_json::to_vec(&select(&serde_json::to_value(bundle)?, &self.fields))?
        };
        line.push(b'\n');
        Ok(line)
    }
}
