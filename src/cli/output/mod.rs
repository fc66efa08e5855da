//! Printing: answers on standard output, everything else on standard error.

mod budget;
mod calls;
mod edits;
mod fields;
mod github;
mod graph;
mod lists;
pub(crate) mod progress;
mod repository_path;
mod sarif;
mod sarif_run;
pub(crate) mod screen;
mod style;
mod text;

use std::io::{ErrorKind, Write};

use crate::bundle::seal::bundle_id;
use crate::cli::exit::ProgramExit;
use crate::model::bundle::Bundle;
use crate::model::error::ErrorSymbol;
use crate::serve::session::SessionResponse;

pub(crate) use fields::{find_unknown, select};
pub(crate) use progress::TerminalProgress;
pub(crate) use style::Style;

/// The form in which answers are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// One line of JSON.
    Json,
    /// Text for people and agents.
    Human,
    /// Diagnostics as SARIF 2.1.0.
    Sarif,
    /// Diagnostics as workflow commands of GitHub Actions.
    Github,
    /// Calls as a flowchart of Mermaid.
    Mermaid,
    /// Calls as a graph of Graphviz.
    Dot,
}

impl Format {
    /// Parses a value of `--format`.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "text" => Self::Human,
            "json" => Self::Json,
            "sarif" => Self::Sarif,
            "github" => Self::Github,
            "mermaid" => Self::Mermaid,
            "dot" => Self::Dot,
            _ => return None,
        })
    }

    /// Whether programs read it, so that errors are reported in it, too.
    pub(crate) const fn is_for_programs(self) -> bool {
        matches!(self, Self::Json | Self::Sarif | Self::Github)
    }
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
    /// Whether standard error is a terminal.
    pub(crate) stderr_is_terminal: bool,
    /// How a command to run next is named, for a caller that has no shell.
    pub(crate) command_form: fn(&str) -> String,
    /// Where a caller that cannot lift the budget of lines finds everything.
    pub(crate) whole_is_in: Option<&'static str>,
    /// The folder that was searched, if that is a part of a repository.
    pub(crate) within: Option<String>,
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
            command_form: str::to_owned,
            whole_is_in: None,
            within: None,
        }
    }

    /// Prints a bundle and returns the exit status.
    pub(crate) fn bundle(&self, bundle: &Bundle) -> ProgramExit {
        debug_assert_eq!(bundle_id(bundle).ok(), Some(bundle.bundle_id));
        let exit = ProgramExit::of(bundle.error.as_ref().map(|error| error.symbol), bundle.meta.exit_code);
        let printed = match self.format {
            Format::Json => self.json(bundle),
            Format::Human => text::print(self, bundle),
            Format::Sarif => sarif::print(bundle),
            Format::Github => github::print(bundle),
            Format::Mermaid => graph::print(self, bundle, graph::write_mermaid),
            Format::Dot => graph::print(self, bundle, graph::write_dot),
        };
        self.exit_after(printed, exit)
    }

    /// A bundle as the text that is printed for it, without colors.
    pub(crate) fn text(&self, bundle: &Bundle) -> String {
        let text = text::render(self, bundle);
        let parts = [text.warning.as_deref(), Some(text.answer.trim_end()), text.error.as_deref()];
        let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        anstream::adapter::strip_str(&parts.join("\n")).to_string()
    }

    /// Whether the bytes that a session sends can be printed unchanged.
    pub(crate) const fn prints_bytes(&self) -> bool {
        matches!(self.format, Format::Json) && self.fields.is_empty()
    }

    /// Prints the bytes of a session's response; see [`Self::prints_bytes`].
    pub(crate) fn reply(&self, reply: &SessionResponse) -> ProgramExit {
        let exit = ProgramExit::of(reply.symbol, reply.exit_code);
        let printed = screen::write_json(&reply.bundle);
        self.exit_after(printed, exit)
    }

    fn exit_after(&self, printed: std::io::Result<()>, exit: ProgramExit) -> ProgramExit {
        match printed {
            Ok(()) => exit,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => ProgramExit::ClosedPipe,
            Err(error) => {
                self.complain(&format!("error: cannot write the answer: {error}"));
                ProgramExit::Failed(ErrorSymbol::FsPermissions)
            }
        }
    }

    /// Prints a text that is the whole answer. Colors are stripped where there is no terminal.
    pub(crate) fn payload(&self, text: &str) -> ProgramExit {
        match screen::write(text) {
            Ok(()) => ProgramExit::Ok,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => ProgramExit::ClosedPipe,
            Err(error) => {
                self.complain(&format!("error: cannot write the answer: {error}"));
                ProgramExit::Failed(ErrorSymbol::FsPermissions)
            }
        }
    }

    /// Prints a value that is the whole answer as one line of JSON, or the parts of it that `--fields` selects.
    pub(crate) fn json_payload(&self, value: &impl serde::Serialize) -> ProgramExit {
        let value = serde_json::to_value(value).expect("reports are made of texts, numbers and lists");
        let is_unknown = |path: &&String| {
            let first = path.split('.').find(|part| !part.is_empty());
            first.is_some_and(|first| value.get(first).is_none() && value.is_object())
        };
        if let Some(path) = self.fields.iter().find(is_unknown) {
            let names = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            self.complain(&format!("error: E/USAGE: {}", fields::unknown_field(path, &[], names)));
            return ProgramExit::Failed(ErrorSymbol::Usage);
        }
        let value = if self.fields.is_empty() { value } else { select(&value, &self.fields) };
        self.payload(&format!("{value}\n"))
    }

    /// Prints a line on standard error. A failure to do so cannot be reported anywhere.
    #[expect(clippy::unused_self, reason = "all printing goes through a printer")]
    pub(crate) fn complain(&self, text: &str) {
        let _ = writeln!(anstream::stderr(), "{}", screen::message(text));
    }

    /// Shows the progress of long work: at a terminal, and not in JSON.
    pub(crate) fn progress(&self) -> std::sync::Arc<TerminalProgress> {
        let is_shown = self.stderr_is_terminal && self.format != Format::Json;
        std::sync::Arc::new(TerminalProgress::new(is_shown))
    }

    /// As [`Self::progress`], for commands that print while they work: at a terminal their output is the progress.
    pub(crate) fn streaming_progress(&self) -> std::sync::Arc<TerminalProgress> {
        let is_shown = !screen::screen().is_terminal;
        if is_shown { self.progress() } else { std::sync::Arc::new(TerminalProgress::new(false)) }
    }

    /// Prints one bundle of many, as a line of JSON.
    pub(crate) fn json_line(&self, bundle: &Bundle) -> ProgramExit {
        self.exit_after(self.json(bundle), ProgramExit::Ok)
    }

    fn json(&self, bundle: &Bundle) -> std::io::Result<()> {
        screen::write_json(&self.line(bundle)?)
    }

    /// An answer of a batch as one line of JSON, or the parts of it that `--fields` selects.
    pub(crate) fn line(&self, answer: &impl serde::Serialize) -> std::io::Result<Vec<u8>> {
        let mut line = if self.fields.is_empty() {
            serde_json::to_vec(answer)?
        } else {
            serde_json::to_vec(&select(&serde_json::to_value(answer)?, &self.fields))?
        };
        line.push(b'\n');
        Ok(line)
    }
}
