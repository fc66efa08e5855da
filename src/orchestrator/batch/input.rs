//! The lines of a batch: found in a stream, read strictly, made into requests. On a thread of its own, since a read of
//! standard input cannot be given up.

use std::io::{self, BufReader, Read};

use serde::Deserialize;
use tokio::sync::mpsc;

use super::super::written::{checked, read_selector};
use crate::digest::strict_json;
use crate::model::batch::{BatchLine, BatchRequest, Cancellation, RequestId, WrittenSelector};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Options, Request};
use crate::text::BoundedLines;
use crate::text::bounded_lines::MAX_LINE;

/// How many lines are read before they are taken.
const AHEAD: usize = 8;

/// What a batch's requests have in common: makes what the command line says of all of them out of what a line says.
pub type Completing = Box<dyn Fn(&Request) -> Result<Options, ErrorBody> + Send>;

/// A line that was read.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Counted from 1.
    pub(super) line: u64,
    /// Its length.
    pub(super) bytes: usize,
    pub(super) says: Says,
}

/// What a line says.
#[derive(Debug)]
pub(super) enum Says {
    Ask(Box<Asked>),
    Cancel(RequestId),
    /// Nothing that can be read.
    Wrong(Option<RequestId>, Box<ErrorBody>),
}

/// A request, ready to be asked.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: Option<RequestId>,
    /// Seconds.
    pub(super) timeout: Option<u32>,
    pub(super) request: Request,
}

/// Reads a stream to its end, or until nobody takes the lines any more.
pub(super) fn start(
    stream: Box<dyn Read + Send>,
    completing: Completing,
) -> io::Result<mpsc::Receiver<io::Result<Incoming>>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    std::thread::Builder::new().name("batch input".to_owned()).spawn(move || {
        let mut lines = BoundedLines::new(BufReader::with_capacity(64 << 10, stream), MAX_LINE);
        loop {
            let fits = match lines.advance() {
                Ok(None) => return,
                fits => fits,
            };
            let number = lines.number();
            let line = match number {
                // Some editors and shells write one.
                1 => lines.line().strip_prefix(BYTE_ORDER_MARK).unwrap_or(lines.line()),
                _ => lines.line(),
            };
            let incoming = match fits {
                Ok(Some(true)) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Ok(fits) => Ok(Incoming {
                    line: number,
                    bytes: line.len(),
                    says: if fits == Some(true) { read(line, number, &completing) } else { too_long(number) },
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

/// How a text in UTF-8 may begin.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

fn too_long(number: u64) -> Says {
    let message = format!("line {number} is longer than {MAX_LINE} bytes");
    Says::Wrong(None, Box::new(ErrorBody::new(ErrorSymbol::Usage, message).hint("one request is one line")))
}

/// Reads a line.
fn read(line: &[u8], number: u64, completing: &Completing) -> Says {
    // A list would be read as an object's members in their order.
    if !is_object(line) {
        let error = no_request(number, "it is no JSON object", &snippet(line, 0));
        return Says::Wrong(None, Box::new(error));
    }
    let line = match strict_json::from_slice::<BatchLine>(line) {
        Ok(line) => line,
        Err(error) => {
            let fault = error.fault.to_string();
            // The place is told in words of our own.
            let fault = fault.rfind(" at line ").map_or(fault.as_str(), |at| &fault[..at]);
            let place = if error.path == "$" { String::new() } else { format!("{}: ", error.path) };
            let why = format!("{place}{fault}, at column {}", error.column);
            let error = no_request(number, &why, &snippet(line, error.column.saturating_sub(1)));
            return Says::Wrong(id_of(line), Box::new(error));
        }
    };
    match line {
        BatchLine::Cancel(Cancellation { cancel }) => Says::Cancel(cancel),
        BatchLine::Request(request) => {
            let id = request.id.clone();
            match asked(*request, completing) {
                Ok(asked) => Says::Ask(Box::new(asked)),
                Err(error) => Says::Wrong(id, Box::new(error)),
            }
        }
    }
}

fn asked(written: BatchRequest, completing: &Completing) -> Result<Asked, ErrorBody> {
    let BatchRequest { id, timeout, cmd, selector, new_name, options } = written;
    let mut request = Request { cmd, selector: None, new_name, options };
    request.options = completing(&request)?;
    request.selector = match selector {
        Some(WrittenSelector::Text(text)) => {
            let read = read_selector(&text, request.options.index_io);
            Some(read.map_err(|error| of_files(cmd, &text, error))?)
        }
        Some(WrittenSelector::Spec(spec)) => Some(spec),
        None => None,
    };
    Ok(Asked { id, timeout, request: checked(request)? })
}

/// What is asked of files is often given a file for a selector.
fn of_files(cmd: Command, text: &str, error: ErrorBody) -> ErrorBody {
    match cmd {
        Command::Symbols | Command::Diagnostics => error.hint(format!(
            "files are given as {}",
            serde_json::json!({"cmd": cmd, "options": {"paths": [text]}})
        )),
        _ => error,
    }
}

fn no_request(number: u64, why: &str, snippet: &str) -> ErrorBody {
    ErrorBody::new(ErrorSymbol::Usage, format!("line {number} is no request: {why}: {snippet}")).hint(
        "a line is {\"id\":1,\"cmd\":\"definition\",\"selector\":\"src/app.py:42:7\"}, with the long name of a command; \
         `lanser schema export --only batch` prints all that it may say",
    )
}

/// The part of a line around a byte.
fn snippet(line: &[u8], at: usize) -> String {
    /// How many characters are shown before the place, and from there on.
    const AROUND: usize = 32;
    let text = String::from_utf8_lossy(line);
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let (before, after) = text.split_at(at);
    let cut = before.char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
    let stop = after.char_indices().nth(AROUND).map_or(after.len(), |(at, _)| at);
    let (open, close) = (if cut > 0 { "…" } else { "" }, if stop < after.len() { "…" } else { "" });
    format!("{open}{}{}{close}", &before[cut..], &after[..stop])
}

fn is_object(line: &[u8]) -> bool {
    line.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// The name that a line which is no request gives itself all the same.
fn id_of(line: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Named {
        id: Option<RequestId>,
    }
    strict_json::from_slice::<Named>(line).ok()?.id
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let stream = Cursor::new("\u{feff}{}\n\u{feff}{}\n");
        let mut receiver = start(Box::new(stream), Box::new(|request| Ok(request.options.clone()))).unwrap();
        let mut why = || match receiver.blocking_recv().unwrap().unwrap().says {
            Says::Wrong(_, error) => error.message,
            _ => panic!("neither is a request"),
        };
        assert!(why().contains("missing field"), "read as an object");
        assert!(why().contains("it is no JSON object"));
    }

    fn says(line: &str) -> Says {
        read(line.as_bytes(), 3, &(Box::new(|request: &Request| Ok(request.options.clone())) as Completing))
    }

    #[test]
    fn what_cannot_be_asked_is_told_with_its_name() {
        for (line, id, why) in [
            (
                r#"{"id":1,"cmd":"hoover"}"#,
                Some(RequestId::Number(1)),
                "line 3 is no request: $.cmd: unknown variant `hoover`",
            ),
            (
                r#"{"id":"a","cmd":"rename","selector":"a.py:1:1"}"#,
                Some(RequestId::Text("a".to_owned())),
                "needs a new name",
            ),
            (r#"{"cmd":"hover","selector":"py://"}"#, None, "cannot be read"),
            (r#"{"cmd":"calls","selector":"a.py:1:1"}"#, None, "needs a direction"),
            (r#"{"cmd":"hover"}"#, None, "needs a selector"),
            (r#"{"cmd":"undo","selector":"a.py:1:1"}"#, None, "takes no selector"),
            (r#"{"cmd":"symbols","options":{"limit":0}}"#, None, "out of bounds"),
            ("nonsense", None, "line 3 is no request: it is no JSON object: nonsense"),
            ("{cmd: 1}", None, "line 3 is no request: key must be a string, at column 2: {cmd: 1}"),
            (r#"{"id":3,"cmd":"hover","#, None, "at column 22: {\"id\":3"),
        ] {
            let Says::Wrong(told, error) = says(line) else { panic!("{line}") };
            assert_eq!(told, id, "{line}");
            assert!(error.message.contains(why), "{line}: {}", error.message);
            assert!(!error.message.contains(" at line "), "{line}: {}", error.message);
        }
    }

    #[test]
    fn a_long_line_is_shown_where_it_is_wrong() {
        let line = format!("{{\"{}\": nonsense{}", "ü".repeat(100), "x".repeat(100));
        let Says::Wrong(_, error) = says(&line) else { panic!("it is no request") };
        let shown = error.message.rsplit(": ").next().unwrap();
        assert!(error.message.contains(&format!("…{}", "ü".repeat(20))), "{}", error.message);
        assert!(shown.starts_with("nonsense") && shown.ends_with("x…") && shown.len() < 80, "{shown}");
        assert_eq!(snippet("üüü".as_bytes(), 3), "üüü");
        assert_eq!(snippet(b"\xff", 9), "\u{fffd}");
    }

    #[test]
    fn a_line_says_what_the_command_line_would() {
        let Says::Ask(asked) = says(
            r#"{"id":2,"timeout":9,"cmd":"diagnostics","options":{"severity":"information","paths":["b","a","b"]}}"#,
        ) else {
            panic!("it is a request");
        };
        assert_eq!((asked.id, asked.timeout), (Some(RequestId::Number(2)), Some(9)));
        assert_eq!(asked.request.options.severity, None);
        let paths: Vec<&str> = asked.request.options.paths.iter().map(|path| path.as_str()).collect();
        assert_eq!(paths, ["a", "b"]);
        assert!(matches!(says(r#"{"cancel":2}"#), Says::Cancel(RequestId::Number(2))));
    }
}
