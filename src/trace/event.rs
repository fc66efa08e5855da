//! One line of a trace: writing it with its checksum, and reading it strictly.

use serde::Serialize;

use crate::model::trace::{Event, EventBody, checksum, checksum_of, line_end};

/// Why a line is not a valid event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is not the JSON of an event.
    #[error("the line is not a trace event: {0}")]
    Json(String),
    /// The checksum does not match.
    #[error("the checksum does not match the content")]
    Sum,
    /// `time` and `sum` are not written the way lanser writes them.
    #[error("the line is not in the form that lanser writes")]
    Form,
}

/// The part of an event that its checksum covers.
#[derive(Serialize)]
struct ChecksumInput<'e> {
    op: u64,
    seq: u64,
    #[serde(flatten)]
    body: &'e EventBody,
}

fn sum(op: u64, seq: u64, body: &EventBody) -> String {
    checksum_of(
        serde_json::to_string(&ChecksumInput { op, seq, body }).expect("an event is plain data").as_bytes(),
    )
}

/// An event with its checksum.
#[must_use]
pub fn event(op: u64, seq: u64, body: EventBody, time: Option<u64>) -> Event {
    let sum = sum(op, seq, &body);
    Event { op, seq, body, time, sum }
}

/// The line of an event, without the newline.
#[must_use]
pub fn line(event: &Event) -> String {
    serde_json::to_string(event).expect("an event is plain data")
}

/// Appends the line of an event to `text`, without the newline, and returns its checksum.
pub(super) fn line_of(op: u64, seq: u64, body: &EventBody, time: Option<u64>, text: &mut String) -> String {
    let summed = serde_json::to_string(&ChecksumInput { op, seq, body }).expect("an event is plain data");
    let sum = checksum_of(summed.as_bytes());
    text.push_str(summed.strip_suffix('}').unwrap_or(&summed));
    text.push_str(&line_end(time, &sum));
    sum
}

/// Reads a line without its newline. The checksum is computed over the bytes as they are, so that any changed byte is
/// noticed, except in `time`.
pub fn read(text: &[u8]) -> Result<Event, LineError> {
    let event = parse(text)?;
    match checksum(text, event.time, &event.sum) {
        Some(sum) if sum == event.sum => Ok(event),
        Some(_) => Err(LineError::Sum),
        None => Err(LineError::Form),
    }
}

/// Parses a line without verifying its checksum, for lines that were verified before.
///
/// # Errors
/// When the line is not the JSON of an event.
pub(super) fn parse(text: &[u8]) -> Result<Event, LineError> {
    serde_json::from_slice(text).map_err(|error| LineError::Json(error.to_string()))
}
