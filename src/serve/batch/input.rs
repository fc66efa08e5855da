//! Reads the lines of a batch from a stream, parses them strictly and turns them into requests. Runs on a separate
//! thread, because a read of standard input cannot be canceled.

use std::io::{self, BufReader, Read};

use serde::Deserialize;
use tokio::sync::mpsc;

use super::answer::BatchAnswer;
use crate::digest::strict_json;
use crate::engine::request_input::{read_selector, unknown_unit, validate_request};
use crate::engine::{Engine, ScoreHead, StateSource};
use crate::model::analyzer::AnalyzerKind;
use crate::model::batch::{
    BatchLine, BatchRequest, Cancellation, HeadInput, RequestId, ScoreLine, SelectorInput,
};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, GivenSelector, Options, Request, module_of_selector};
use crate::model::reward::Preset;
use crate::reward::RewardFormula;
use crate::reward::episode::Episode;
use crate::text::BoundedLines;
use crate::text::bounded_lines::MAX_LINE_BYTES;

/// How many lines are read ahead.
const READ_AHEAD: usize = 8;

/// Completes lines with what applies to the whole batch.
pub trait LineDefaults: Send {
    /// The options of a line, with those of the command line merged in.
    ///
    /// # Errors
    /// If they exclude each other.
    fn options(&self, request: &Request) -> Result<Options, ErrorBody>;

    /// The state that a name means, as on the command line.
    ///
    /// # Errors
    /// If it means none, or several.
    fn state(&self, name: &str) -> Result<StateSource, ErrorBody>;

    /// The formula for a preset, or by default.
    fn formula(&self, preset: Option<Preset>) -> RewardFormula;

    /// The analyzers of a line with a head.
    fn analyzers(&self, named: Vec<AnalyzerKind>) -> Vec<AnalyzerKind>;
}

/// A line of the input.
#[derive(Debug)]
pub(super) struct InputLine {
    /// The 1-based line number.
    pub(super) line: u64,
    /// The length of the line.
    pub(super) bytes: usize,
    pub(super) content: LineContent,
}

/// The content of a line.
#[derive(Debug)]
pub(super) enum LineContent {
    Job(Option<RequestId>, Job),
    Cancel(RequestId),
    /// A line that is not valid, with its id if that can be parsed.
    Invalid(Option<RequestId>, Box<ErrorBody>),
}

/// What a line asks for.
#[derive(Debug, Clone)]
pub(super) enum Job {
    Request(Box<ParsedRequest>),
    Score(Box<ParsedScore>),
}

/// A request that is ready to run.
#[derive(Debug, Clone)]
pub(super) struct ParsedRequest {
    /// In seconds.
    pub(super) timeout: Option<u32>,
    pub(super) request: Request,
}

/// A head that is ready to be scored.
#[derive(Debug, Clone)]
pub(super) struct ParsedScore {
    /// In seconds.
    pub(super) timeout: Option<u32>,
    pub(super) base: StateSource,
    pub(super) head: ScoreHead,
    pub(super) formula: RewardFormula,
    pub(super) with: Vec<AnalyzerKind>,
}

impl Job {
    /// Whether it writes to the workspace.
    pub(super) fn writes(&self) -> bool {
        match self {
            Self::Request(parsed) => parsed.request.writes(),
            Self::Score(_) => false,
        }
    }

    /// The answer if it was not run.
    pub(super) fn refused(self, engine: &Engine, error: ErrorBody) -> BatchAnswer {
        match self {
            Self::Request(parsed) => engine.refused(parsed.request, error).into(),
            Self::Score(parsed) => Episode::failed(&parsed.head.name, error, None, &parsed.formula).into(),
        }
    }
}

/// Reads a stream to its end, or until the receiver is dropped.
pub(super) fn start(
    stream: Box<dyn Read + Send>,
    defaults: Box<dyn LineDefaults>,
) -> io::Result<mpsc::Receiver<io::Result<InputLine>>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    std::thread::Builder::new().name("batch input".to_owned()).spawn(move || {
        let mut lines = BoundedLines::new(BufReader::with_capacity(64 << 10, stream), MAX_LINE_BYTES);
        loop {
            let fits = match lines.advance() {
                Ok(None) => return,
                fits => fits,
            };
            let number = lines.number();
            let line = match number {
                // Some editors and shells write a byte order mark.
                1 => lines.line().strip_prefix(BYTE_ORDER_MARK).unwrap_or(lines.line()),
                _ => lines.line(),
            };
            let incoming = match fits {
                Ok(Some(true)) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Ok(fits) => Ok(InputLine {
                    line: number,
                    bytes: line.len(),
                    content: if fits == Some(true) {
                        parse_line(line, number, &*defaults)
                    } else {
                        too_long(number)
                    },
                }),
                Err(error) => Err(error),
            };
            let broken = incoming.is_err();
            if sender.blocking_send(incoming).is_err() || broken {
                return;
            }
        }
    })?;
    Ok(receiver)
}

/// A byte order mark in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

fn too_long(number: u64) -> LineContent {
    let message = format!("line {number} is longer than {MAX_LINE_BYTES} bytes");
    LineContent::Invalid(
        None,
        Box::new(ErrorBody::new(ErrorSymbol::Usage, message).hint("write each request on one line")),
    )
}

/// Parses a line.
fn parse_line(line: &[u8], number: u64, defaults: &dyn LineDefaults) -> LineContent {
    // serde would read an array as the members of the struct, in order.
    if !is_object(line) {
        let error = invalid_request(number, "it is not a JSON object", &snippet(line, 0));
        return LineContent::Invalid(None, Box::new(error));
    }
    let line = match strict_json::from_slice::<BatchLine>(line) {
        Ok(line) => line,
        Err(error) => {
            if let Some(error) = unknown_unit(line) {
                return LineContent::Invalid(id_of(line), Box::new(error));
            }
            let fault = error.fault.to_string();
            // The position is replaced by the column.
            let fault = fault.rfind(" at line ").map_or(fault.as_str(), |at| &fault[..at]);
            let place = if error.path == crate::digest::JsonPath::default() {
                String::new()
            } else {
                format!("{}: ", error.path)
            };
            let reason = format!("{place}{fault}, at column {}", error.column);
            let error = invalid_request(number, &reason, &snippet(line, error.column.saturating_sub(1)));
            return LineContent::Invalid(id_of(line), Box::new(error));
        }
    };
    match line {
        BatchLine::Cancel(Cancellation { cancel }) => LineContent::Cancel(cancel),
        BatchLine::Request(request) => {
            let id = request.id.clone();
            match parse_request(*request, defaults) {
                Ok(parsed) => LineContent::Job(id, Job::Request(Box::new(parsed))),
                Err(error) => LineContent::Invalid(id, Box::new(error)),
            }
        }
        BatchLine::Score(line) => {
            let id = line.id.clone();
            LineContent::Job(id, Job::Score(Box::new(parse_score(*line, defaults))))
        }
    }
}

/// A state that is not found is reported with the score that it prevents.
fn parse_score(line: ScoreLine, defaults: &dyn LineDefaults) -> ParsedScore {
    let ScoreLine { id: _, timeout, base, head, preset, with } = line;
    let state =
        |name: &str| defaults.state(name).unwrap_or_else(|error| StateSource::Missing(Box::new(error)));
    let head = match head {
        HeadInput::Diff(text) => {
            ScoreHead { name: "diff".to_owned(), source: StateSource::Edit(text.into_bytes()) }
        }
        HeadInput::Files(files) => {
            ScoreHead { name: "files".to_owned(), source: StateSource::Contents(files) }
        }
        HeadInput::State(name) => ScoreHead { source: state(&name), name },
    };
    let base = state(base.as_deref().unwrap_or("HEAD"));
    ParsedScore { timeout, base, head, formula: defaults.formula(preset), with: defaults.analyzers(with) }
}

fn parse_request(written: BatchRequest, defaults: &dyn LineDefaults) -> Result<ParsedRequest, ErrorBody> {
    let BatchRequest { id: _, timeout, cmd, mut selector, new_name, mut options } = written;
    if cmd == Command::Rename && options.module.is_none() {
        let is_module = |given: &SelectorInput| match given {
            SelectorInput::Text(text) => module_of_selector(text).is_some(),
            SelectorInput::Spec(_) => false,
        };
        if let Some(SelectorInput::Text(module)) = selector.take_if(|given| is_module(given)) {
            options.module = Some(module);
        }
    }
    let options = defaults.options(&Request::new(cmd, None, new_name.clone(), options))?;
    let selector = match selector {
        Some(SelectorInput::Text(text)) => {
            let read = read_selector(&text, options.index_io);
            let spec = read.map_err(|error| with_paths_hint(cmd, &text, error))?;
            Some(GivenSelector::parsed(spec, &text))
        }
        Some(SelectorInput::Spec(spec)) => Some(spec.into()),
        None => None,
    };
    let request = Request::new(cmd, selector, new_name, options);
    Ok(ParsedRequest { timeout, request: validate_request(request)? })
}

/// Adds a hint to requests about files, which are often given a path as selector.
fn with_paths_hint(cmd: Command, text: &str, error: ErrorBody) -> ErrorBody {
    match cmd {
        Command::Symbols | Command::Diagnostics => error.hint(format!(
            "files go to `paths`: {}",
            serde_json::json!({"cmd": cmd, "options": {"paths": [text]}})
        )),
        _ => error,
    }
}

fn invalid_request(number: u64, reason: &str, snippet: &str) -> ErrorBody {
    ErrorBody::new(ErrorSymbol::Usage, format!("line {number} is not a valid request: {reason}: {snippet}")).hint(
        "a line is {\"id\":1,\"cmd\":\"definition\",\"selector\":\"src/app.py:42:7\"}, where \"cmd\" is the name of a command; \
         `lanser schema export --only batch` prints its schema",
    )
}

/// The part of a line around a byte offset.
fn snippet(line: &[u8], at: usize) -> String {
    /// The number of characters before the offset, and after it.
    const CONTEXT_CHARS: usize = 32;
    let text = String::from_utf8_lossy(line);
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let (before, after) = text.split_at(at);
    let cut = before.char_indices().rev().nth(CONTEXT_CHARS - 1).map_or(0, |(at, _)| at);
    let stop = after.char_indices().nth(CONTEXT_CHARS).map_or(after.len(), |(at, _)| at);
    let (open, close) = (if cut > 0 { "…" } else { "" }, if stop < after.len() { "…" } else { "" });
    format!("{open}{}{}{close}", &before[cut..], &after[..stop])
}

fn is_object(line: &[u8]) -> bool {
    line.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// The id of an invalid line, if it can be parsed.
fn id_of(line: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct IdOnly {
        id: Option<RequestId>,
    }
    strict_json::from_slice::<IdOnly>(line).ok()?.id
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::reward::default_weights;

    /// Lines as they are.
    struct Unchanged;

    impl LineDefaults for Unchanged {
        fn options(&self, request: &Request) -> Result<Options, ErrorBody> {
            Ok(request.options.clone())
        }

        fn state(&self, name: &str) -> Result<StateSource, ErrorBody> {
            Ok(StateSource::Revision(name.to_owned()))
        }

        fn formula(&self, preset: Option<Preset>) -> RewardFormula {
            let preset = preset.unwrap_or(Preset::Guarded);
            RewardFormula { preset, weights: default_weights(preset) }
        }

        fn analyzers(&self, named: Vec<AnalyzerKind>) -> Vec<AnalyzerKind> {
            named
        }
    }

    #[test]
    fn a_byte_order_mark_is_stripped_from_the_first_line() {
        let stream = Cursor::new("\u{feff}{}\n\u{feff}{}\n");
        let mut receiver = start(Box::new(stream), Box::new(Unchanged)).unwrap();
        let mut reason = || match receiver.blocking_recv().unwrap().unwrap().content {
            LineContent::Invalid(_, error) => error.message,
            _ => panic!("neither is a request"),
        };
        assert!(reason().contains("missing field"), "read as an object");
        assert!(reason().contains("it is not a JSON object"));
    }

    fn content_of(line: &str) -> LineContent {
        parse_line(line.as_bytes(), 3, &Unchanged)
    }

    #[test]
    fn invalid_lines_are_reported_with_their_id() {
        for (line, id, reason) in [
            (
                r#"{"id":1,"cmd":"hoover"}"#,
                Some(RequestId::Number(1)),
                "line 3 is not a valid request: $.cmd: unknown variant `hoover`",
            ),
            (
                r#"{"id":"a","cmd":"rename","selector":"a.py:1:1"}"#,
                Some(RequestId::Text("a".to_owned())),
                "needs a new name",
            ),
            (r#"{"cmd":"hover","selector":"py://"}"#, None, "cannot be parsed"),
            (r#"{"cmd":"hover"}"#, None, "needs a selector"),
            (r#"{"cmd":"undo","selector":"a.py:1:1"}"#, None, "does not take a selector"),
            (
                r#"{"cmd":"symbols","selector":"a.py:1:1","options":{"query":"f"}}"#,
                None,
                "a query is for the whole workspace",
            ),
            (r#"{"cmd":"symbols","options":{"limit":0}}"#, None, "out of bounds"),
            ("nonsense", None, "line 3 is not a valid request: it is not a JSON object: nonsense"),
            ("{cmd: 1}", None, "line 3 is not a valid request: key must be a string, at column 2: {cmd: 1}"),
            (r#"{"id":3,"cmd":"hover","#, None, "at column 22: {\"id\":3"),
        ] {
            let LineContent::Invalid(found_id, error) = content_of(line) else { panic!("{line}") };
            assert_eq!(found_id, id, "{line}");
            assert!(error.message.contains(reason), "{line}: {}", error.message);
            assert!(!error.message.contains(" at line "), "{line}: {}", error.message);
        }
    }

    #[test]
    fn errors_in_long_lines_show_the_place() {
        let line = format!("{{\"{}\": nonsense{}", "ü".repeat(100), "x".repeat(100));
        let LineContent::Invalid(_, error) = content_of(&line) else { panic!("it is not a request") };
        let shown = error.message.rsplit(": ").next().unwrap();
        assert!(error.message.contains(&format!("…{}", "ü".repeat(20))), "{}", error.message);
        assert!(shown.starts_with("nonsense") && shown.ends_with("x…") && shown.len() < 80, "{shown}");
        assert_eq!(snippet("üüü".as_bytes(), 3), "üüü");
        assert_eq!(snippet(b"\xff", 9), "\u{fffd}");
    }

    #[test]
    fn requests_are_normalized_like_the_command_line() {
        let LineContent::Job(id, Job::Request(parsed)) = content_of(
            r#"{"id":2,"timeout":9,"cmd":"diagnostics","options":{"severity":"information","paths":["b","a","b"]}}"#,
        ) else {
            panic!("it is a request");
        };
        assert_eq!((id, parsed.timeout), (Some(RequestId::Number(2)), Some(9)));
        assert_eq!(parsed.request.options.severity, None);
        let paths: Vec<&str> = parsed.request.options.paths.iter().map(|path| path.as_str()).collect();
        assert_eq!(paths, ["a", "b"]);
        assert!(matches!(content_of(r#"{"cancel":2}"#), LineContent::Cancel(RequestId::Number(2))));
    }
}
