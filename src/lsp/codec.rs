//! Frames on a byte stream: header lines, an empty line, a JSON body of `Content-Length` bytes (LSP 3.17, "Base
//! Protocol").
//!
//! Header names are case-insensitive, the space after the colon may be missing, unknown headers are ignored. A body
//! that contains half of a surrogate pair (`"\ud800"`, which JavaScript writes and JSON forbids) is read with U+FFFD
//! in its place, so that the stream can go on. Everything else that is not a frame is an error, and after an error
//! the stream is unusable.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

use super::jsonrpc::Message;

/// The longest body that is accepted.
pub const MAX_BODY_BYTES: usize = 256 << 20;

/// How much to read at once.
pub(super) const READ_BYTES: usize = 64 << 10;

/// The capacity above which an empty buffer is released.
const MAX_KEPT_BUFFER_BYTES: usize = 4 * READ_BYTES;

/// The longest header line that is accepted.
const MAX_HEADER_BYTES: usize = 4096;

/// How many of the offending bytes an error shows.
const EXCERPT_BYTES: usize = 120;

/// Why a stream cannot be decoded any further.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CodecError {
    /// The pipe failed.
    #[error("the pipe failed: {0}")]
    Io(Arc<io::Error>),
    /// A line where a header should be.
    #[error("{0:?} is not a header line")]
    Header(String),
    /// The headers ended without a length.
    #[error("a frame has no Content-Length")]
    NoLength,
    /// The length is not a number, or two of them differ.
    #[error("{0:?} is not a length")]
    Length(String),
    /// The length is above [`MAX_BODY_BYTES`].
    #[error("a frame of {0} bytes is longer than {MAX_BODY_BYTES}")]
    TooLong(usize),
    /// `Content-Type` names another encoding than UTF-8.
    #[error("the content type {0:?} is not UTF-8")]
    ContentType(String),
    /// The body is not a JSON-RPC message.
    #[error("the body of a frame is not a JSON-RPC message ({reason}): {excerpt:?}")]
    Body {
        /// The error of the JSON parser.
        reason: String,
        /// The start of the body.
        excerpt: String,
        /// Whether it is JSON.
        is_json: bool,
    },
    /// The stream ended inside a frame.
    #[error("the stream ended inside a frame, after {0:?}")]
    Truncated(String),
}

impl From<io::Error> for CodecError {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

/// Reads and writes frames.
#[derive(Debug, Default)]
pub struct Codec {
    state: DecoderState,
    /// Whether the stream goes on after a body that is no message.
    skips_bodies: bool,
}

impl Codec {
    /// A codec that goes on after a body that is no message: its frame was read.
    pub(super) fn that_skips_bodies() -> Self {
        Self { skips_bodies: true, ..Self::default() }
    }

    /// Whether the stream can be decoded further after an error.
    pub(super) const fn goes_on_after(&self, error: &CodecError) -> bool {
        self.skips_bodies && matches!(error, CodecError::Body { .. })
    }
}

#[derive(Debug)]
enum DecoderState {
    Headers { started: bool, length: Option<usize> },
    Body(usize),
}

impl Default for DecoderState {
    fn default() -> Self {
        Self::Headers { started: false, length: None }
    }
}

impl Decoder for Codec {
    type Item = Message;
    type Error = CodecError;

    fn decode(&mut self, source: &mut BytesMut) -> Result<Option<Message>, CodecError> {
        while let DecoderState::Headers { started, length } = &mut self.state {
            let Some(end) = source.iter().take(MAX_HEADER_BYTES).position(|&byte| byte == b'\n') else {
                // A line this long cannot be a header, and its end may never come.
                let too_long = source.len() >= MAX_HEADER_BYTES;
                return if too_long { Err(CodecError::Header(excerpt(source))) } else { Ok(None) };
            };
            let line = source.split_to(end + 1);
            let line = line.trim_ascii_end();
            *started = true;
            if line.is_empty() {
                self.state = DecoderState::Body(length.ok_or(CodecError::NoLength)?);
            } else if let Some(found) = header(line)? {
                if length.is_some_and(|earlier| earlier != found) {
                    return Err(CodecError::Length(excerpt(line)));
                }
                *length = Some(found);
            }
        }
        let DecoderState::Body(length) = self.state else { return Ok(None) };
        if source.len() < length {
            // Growing step by step takes up to three times the memory for a moment. The next read needs READ_BYTES
            // more.
            source.reserve(length - source.len() + READ_BYTES);
            return Ok(None);
        }
        let read = body(source.split_to(length).freeze());
        if read.is_err() && self.skips_bodies {
            self.state = DecoderState::default();
        }
        let message = read?;
        if source.is_empty() && length.max(source.capacity()) > MAX_KEPT_BUFFER_BYTES {
            // Otherwise the rest of the buffer would keep a long message's memory until the next read.
            *source = BytesMut::new();
        }
        self.state = DecoderState::default();
        Ok(Some(message))
    }

    fn decode_eof(&mut self, source: &mut BytesMut) -> Result<Option<Message>, CodecError> {
        if let Some(message) = self.decode(source)? {
            return Ok(Some(message));
        }
        let between_frames = matches!(self.state, DecoderState::Headers { started: false, .. });
        if between_frames && source.is_empty() {
            Ok(None)
        } else {
            Err(CodecError::Truncated(excerpt(source)))
        }
    }
}

impl Encoder<&Message> for Codec {
    type Error = CodecError;

    fn encode(&mut self, message: &Message, target: &mut BytesMut) -> Result<(), CodecError> {
        let body = serde_json::to_vec(message).map_err(io::Error::from)?;
        target.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        target.extend_from_slice(&body);
        Ok(())
    }
}

/// Parses a header line; the length, if it is `Content-Length`.
fn header(line: &[u8]) -> Result<Option<usize>, CodecError> {
    let not_a_header = || CodecError::Header(excerpt(line));
    let text = std::str::from_utf8(line).map_err(|_| not_a_header())?;
    let (name, value) = text.split_once(':').ok_or_else(not_a_header)?;
    let value = value.trim_ascii();
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(not_a_header());
    }
    if name.eq_ignore_ascii_case("content-length") {
        let length = value.parse().map_err(|_| CodecError::Length(excerpt(line)))?;
        return if length > MAX_BODY_BYTES { Err(CodecError::TooLong(length)) } else { Ok(Some(length)) };
    }
    if name.eq_ignore_ascii_case("content-type") {
        let charset = value.to_ascii_lowercase();
        let charset = charset.split("charset=").nth(1).map(|name| name.trim_matches(['"', ' ', ';']));
        if !matches!(charset, None | Some("utf-8" | "utf8")) {
            return Err(CodecError::ContentType(excerpt(value.as_bytes())));
        }
    }
    Ok(None)
}

fn body(bytes: Bytes) -> Result<Message, CodecError> {
    Message::read(bytes.clone()).or_else(|error| {
        let replaced = replace_lone_surrogates(&bytes);
        replaced.and_then(|replaced| Message::read(replaced.into()).ok()).ok_or_else(|| CodecError::Body {
            reason: error.to_string(),
            excerpt: excerpt(&bytes),
            is_json: serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok(),
        })
    })
}

/// The body with each unpaired surrogate escape replaced by `\ufffd`, or `None` if there is no unpaired one.
fn replace_lone_surrogates(bytes: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| -> Option<u16> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut replaced = bytes.to_vec();
    let mut changed = false;
    let mut at = 0;
    while at < bytes.len() {
        at += match (bytes[at], unit(at)) {
            (b'\\', Some(0xd800..=0xdbff)) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            (b'\\', Some(0xd800..=0xdfff)) => {
                replaced[at..at + 6].copy_from_slice(b"\\ufffd");
                changed = true;
                6
            }
            // The escaped character is skipped, so that the second of two backslashes does not begin an escape.
            (b'\\', _) => 2,
            _ => 1,
        };
    }
    changed.then_some(replaced)
}

fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT_BYTES)]).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::lsp::jsonrpc::{Message, RpcId};

    /// Decodes bytes that arrive in pieces of these lengths; the last length repeats.
    fn decode(bytes: &[u8], pieces: &[usize]) -> (Vec<Message>, Option<CodecError>) {
        let mut codec = Codec::default();
        let mut buffer = BytesMut::new();
        let mut messages = Vec::new();
        let (mut rest, mut next) = (bytes, 0);
        loop {
            let piece =
                pieces.get(next).or(pieces.last()).map_or(rest.len(), |&n| n.clamp(1, rest.len().max(1)));
            next += 1;
            let (now, later) = rest.split_at(piece.min(rest.len()));
            buffer.extend_from_slice(now);
            rest = later;
            loop {
                let step =
                    if rest.is_empty() { codec.decode_eof(&mut buffer) } else { codec.decode(&mut buffer) };
                match step {
                    Ok(Some(message)) => messages.push(message),
                    Ok(None) if rest.is_empty() => return (messages, None),
                    Ok(None) => break,
                    Err(error) => return (messages, Some(error)),
                }
            }
        }
    }

    fn frame(body: &str) -> Vec<u8> {
        format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    fn text_value() -> impl Strategy<Value = Value> {
        prop_oneof![any::<i64>().prop_map(Value::from), ".{0,20}".prop_map(Value::from), Just(Value::Null)]
    }

    fn message() -> impl Strategy<Value = Message> {
        let id = prop_oneof![any::<i64>().prop_map(RpcId::Number), ".{0,5}".prop_map(RpcId::Text)];
        prop_oneof![
            (id.clone(), ".{0,9}", text_value()).prop_map(|(id, method, value)| Message::request(
                id,
                method,
                Some(json!([value]))
            )),
            ".{0,9}".prop_map(|method| Message::notification(method, None)),
            (id, text_value()).prop_map(|(id, value)| Message::response(id, Ok(value))),
        ]
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_messages(
            messages in prop::collection::vec(message(), 0..6),
            pieces in prop::collection::vec(1_usize..40, 1..8),
        ) {
            let mut bytes = BytesMut::new();
            for message in &messages {
                Codec::default().encode(message, &mut bytes).unwrap();
            }
            let (read, error) = decode(&bytes, &pieces);
            prop_assert!(error.is_none(), "{error:?}");
            prop_assert_eq!(read, messages);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), piece in 1_usize..9) {
            let whole = decode(&bytes, &[]);
            let pieces = decode(&bytes, &[piece]);
            prop_assert_eq!(whole.0, pieces.0);
            prop_assert_eq!(whole.1.is_some(), pieces.1.is_some());
        }
    }

    #[test]
    fn header_variants() {
        let body = r#"{"method":"m"}"#;
        for headers in [
            "content-length:14\r\n",
            "CONTENT-LENGTH: 14\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n",
            "Content-Type: application/vscode-jsonrpc; charset=utf8\r\nContent-Length: 14\r\n",
            "X-Trace: a:b\r\nContent-Length:   14  \r\n",
            "Content-Length: 14\nContent-Length: 14\n",
        ] {
            let (messages, error) = decode(format!("{headers}\r\n{body}").as_bytes(), &[1]);
            assert!(error.is_none(), "{headers:?}: {error:?}");
            assert_eq!(messages, [Message::notification("m", None)], "{headers:?}");
        }
    }

    #[test]
    fn faults_are_typed() {
        let fault = |bytes: &[u8]| decode(bytes, &[3]).1;
        assert!(matches!(fault(b"Segmentation fault\n"), Some(CodecError::Header(_))));
        assert!(matches!(fault(&[b'x'; 5000]), Some(CodecError::Header(_))));
        assert!(matches!(fault(b"Content-Type: a\r\n\r\n{}"), Some(CodecError::NoLength)));
        assert!(matches!(fault(b"\r\n{}"), Some(CodecError::NoLength)));
        assert!(matches!(fault(b"Content-Length: -1\r\n\r\n"), Some(CodecError::Length(_))));
        assert!(matches!(
            fault(b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
            Some(CodecError::Length(_))
        ));
        assert!(matches!(fault(b"Content-Length: 999999999999\r\n\r\n"), Some(CodecError::TooLong(_))));
        assert!(matches!(fault(b"Content-Type: a; charset=utf-16\r\n"), Some(CodecError::ContentType(_))));
        assert!(matches!(fault(&frame("{")), Some(CodecError::Body { .. })));
        assert!(matches!(fault(&frame("[]")), Some(CodecError::Body { .. })));
        assert!(matches!(fault(b"Content-Length: 20\r\n\r\n{\"met"), Some(CodecError::Truncated(_))));
        assert!(matches!(fault(b"Content-Len"), Some(CodecError::Truncated(_))));
        assert!(matches!(fault(b"Content-Length: 20\r\n"), Some(CodecError::Truncated(_))));
        assert!(fault(b"").is_none());
    }

    #[test]
    fn half_a_surrogate_pair_does_not_end_the_stream() {
        let body = r#"{"method":"m","params":["\ud800","\ud83d\ude00","\\ud800","\udc00x\ud800\u0041"]}"#;
        let (messages, error) = decode(&frame(body), &[]);
        assert!(error.is_none(), "{error:?}");
        let expected = json!(["\u{fffd}", "😀", "\\ud800", "\u{fffd}x\u{fffd}A"]);
        assert_eq!(messages, [Message::notification("m", Some(expected))]);
    }
}
