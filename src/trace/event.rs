//! One line: written with its sum, read strictly.

use serde::Serialize;

use crate::digest::Digest;
use crate::model::trace::{Body, Event};

/// How many hexadecimal digits a sum has.
const SUM: usize = 16;

/// Why a line is no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is no JSON of an event.
    #[error("it is no event: {0}")]
    Json(String),
    /// Its sum is another one.
    #[error("its content is not what its sum says")]
    Sum,
    /// Its time and its sum do not stand where lanser writes them.
    #[error("it is not written as lanser writes it")]
    Spelling,
}

/// What a sum is taken of.
#[derive(Serialize)]
struct Summed<'e> {
    op: u64,
    seq: u64,
    #[serde(flatten)]
    body: &'e Body,
}

fn sum(op: u64, seq: u64, body: &Body) -> String {
    sum_of(serde_json::to_string(&Summed { op, seq, body }).expect("an event is plain data").as_bytes())
}

fn sum_of(text: &[u8]) -> String {
    let mut hex = Digest::of(text).to_hex();
    hex.truncate(SUM);
    hex
}

/// An event with its sum.
#[must_use]
pub fn event(op: u64, seq: u64, body: Body, time: Option<u64>) -> Event {
    let sum = sum(op, seq, &body);
    Event { op, seq, body, time, sum }
}

/// The line of an event, without the newline.
#[must_use]
pub fn line(event: &Event) -> String {
    serde_json::to_string(event).expect("an event is plain data")
}

/// Appends the line of an event to a text, without the newline; its sum.
pub(super) fn line_of(op: u64, seq: u64, body: &Body, time: Option<u64>, text: &mut String) -> String {
    let summed = serde_json::to_string(&Summed { op, seq, body }).expect("an event is plain data");
    let sum = sum_of(summed.as_bytes());
    text.push_str(summed.strip_suffix('}').unwrap_or(&summed));
    text.push_str(&tail(time, &sum));
    sum
}

/// What follows in a line on that of which the sum is taken.
fn tail(time: Option<u64>, sum: &str) -> String {
    match time {
        Some(time) => format!(",\"time\":{time},\"sum\":\"{sum}\"}}"),
        None => format!(",\"sum\":\"{sum}\"}}"),
    }
}

/// Reads a line without its newline. The sum is taken of the bytes as they are, so that none can change unnoticed, but for
/// those of `time`.
///
/// # Errors
/// See [`LineError`].
pub fn read(text: &[u8]) -> Result<Event, LineError> {
    let event = known(text)?;
    let summed = text.strip_suffix(tail(event.time, &event.sum).as_bytes()).ok_or(LineError::Spelling)?;
    if sum_of([summed, b"}"].concat().as_slice()) != event.sum {
        return Err(LineError::Sum);
    }
    Ok(event)
}

/// Reads a line that was read before.
///
/// # Errors
/// When it is none.
pub(super) fn known(text: &[u8]) -> Result<Event, LineError> {
    serde_json::from_slice(text).map_err(|error| LineError::Json(error.to_string()))
}
