//! JSON-RPC 2.0 messages, and nothing of LSP.
//!
//! Reading is lenient where servers differ (`params: null`, no `result` member, unknown members) and strict where a
//! message could be taken for another one. Batches do not exist in LSP and are refused.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// What a request is known by. Ours are numbers; a server may use either.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// A whole number.
    Number(i64),
    /// Any text.
    Text(String),
}

/// A message that is to be answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What the answer will carry.
    pub id: Id,
    /// What is asked.
    pub method: String,
    /// `None` when the member is left out; JSON `null` reads as that too.
    pub params: Option<Value>,
}

/// A message that is not answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// What is said.
    pub method: String,
    /// `None` when the member is left out; JSON `null` reads as that too.
    pub params: Option<Params>,
}

/// What a notification tells.
#[derive(Clone)]
pub enum Params {
    /// A value.
    Value(Value),
    /// A value that is made when it is sent. A thousand texts may wait to be sent, which somebody else holds anyway.
    Made(Arc<dyn Fn() -> Value + Send + Sync>),
}

impl Params {
    /// The value.
    #[must_use]
    pub fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::Value(value) => Cow::Borrowed(value),
            Self::Made(make) => Cow::Owned(make()),
        }
    }
}

impl From<Value> for Params {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

/// Equal is what tells the same.
impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The request's id; `None` when the peer could not read it.
    pub id: Option<Id>,
    /// The result, or why there is none.
    pub outcome: Result<Reply, ResponseError>,
}

/// The result of a request, as text. It is read once it is known as what: a tree of values takes ten times the text, and there
/// are answers of many megabytes.
#[derive(Debug, Clone)]
pub struct Reply {
    /// A message whose member `result` it is.
    message: Bytes,
}

impl Reply {
    /// The result.
    ///
    /// # Errors
    /// When it has another form.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        #[derive(Deserialize)]
        struct Carrier<T> {
            result: T,
        }
        serde_json::from_slice::<Carrier<T>>(&self.message).map(|carrier| carrier.result)
    }

    /// A result from its own text.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        Self { message: format!("{{\"result\":{text}}}").into() }
    }

    /// How long its text is at most, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.message.len()
    }
}

impl From<Value> for Reply {
    fn from(result: Value) -> Self {
        Self::of_text(&result.to_string())
    }
}

/// Equal is what says the same, however it is written.
impl PartialEq for Reply {
    fn eq(&self, other: &Self) -> bool {
        let value = |reply: &Self| reply.read::<Value>().ok();
        self.message == other.message || value(self) == value(other)
    }
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResponseError {
    /// The number that says what kind of failure it is.
    pub code: i64,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
    /// What else the peer says about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// Anything that travels.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A message that is to be answered.
    Request(Request),
    /// A message that is not answered.
    Notification(Notification),
    /// An answer.
    Response(Response),
}

impl Message {
    /// A request.
    #[must_use]
    pub fn request(id: Id, method: impl Into<String>, params: Option<Value>) -> Self {
        Self::Request(Request { id, method: method.into(), params })
    }

    /// A notification.
    #[must_use]
    pub fn notification(method: impl Into<String>, params: Option<Value>) -> Self {
        Self::Notification(Notification { method: method.into(), params: params.map(Params::Value) })
    }

    /// The answer to the request `id`.
    #[must_use]
    pub fn response(id: Id, outcome: Result<Value, ResponseError>) -> Self {
        Self::Response(Response { id: Some(id), outcome: outcome.map(Reply::from) })
    }

    /// Reads a message.
    ///
    /// # Errors
    /// When the text is no JSON, or a message of no kind.
    pub fn read(text: Bytes) -> serde_json::Result<Self> {
        if !text.trim_ascii_start().starts_with(b"{") {
            return Err(serde::de::Error::custom("it is no object"));
        }
        let Members { id, method, params, result, error } = serde_json::from_slice(&text)?;
        match (method, id) {
            (Some(method), Some(id)) => Ok(Self::Request(Request { id, method, params })),
            (Some(method), None) => Ok(Self::notification(method, params)),
            (None, id) => {
                let outcome = match (error, result) {
                    (Some(error), _) => Err(error),
                    (None, Some(Sound)) => Ok(Reply { message: text }),
                    // A handler that returns nothing; some servers then leave the member out.
                    (None, None) if id.is_some() => Ok(Reply::from(Value::Null)),
                    (None, None) => {
                        return Err(serde::de::Error::custom("neither a method, nor a result, nor an error"));
                    }
                };
                Ok(Self::Response(Response { id, outcome }))
            }
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self::Text(text)),
            Value::Number(number) => number
                .as_i64()
                .map(Self::Number)
                .ok_or_else(|| serde::de::Error::custom(format!("the id {number} is not a whole number"))),
            other => Err(serde::de::Error::custom(format!("{other} is not an id"))),
        }
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("jsonrpc", "2.0")?;
        let (id, called) = match self {
            Self::Request(request) => {
                (Some(Some(&request.id)), Some((&request.method, request.params.as_ref().map(Cow::Borrowed))))
            }
            Self::Notification(note) => (None, Some((&note.method, note.params.as_ref().map(Params::value)))),
            Self::Response(response) => (Some(response.id.as_ref()), None),
        };
        if let Some(id) = id {
            map.serialize_entry("id", &id)?;
        }
        if let Some((method, params)) = called {
            map.serialize_entry("method", method)?;
            if let Some(params) = params {
                map.serialize_entry("params", &params)?;
            }
        }
        if let Self::Response(response) = self {
            match &response.outcome {
                Ok(reply) => {
                    let result: Value = reply.read().map_err(serde::ser::Error::custom)?;
                    map.serialize_entry("result", &result)?;
                }
                Err(error) => map.serialize_entry("error", error)?,
            }
        }
        map.end()
    }
}

/// The members that tell the kinds of messages apart.
#[derive(Deserialize)]
struct Members {
    id: Option<Id>,
    method: Option<String>,
    params: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Sound>,
    error: Option<ResponseError>,
}

/// Keeps `null` apart from a member that is left out.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Sound>, D::Error> {
    Sound::deserialize(deserializer).map(Some)
}

/// Something that can be read as a value: no number is too large, nothing is too deep, no text is broken. Nothing is kept of it.
struct Sound;

impl<'de> Deserialize<'de> for Sound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Sound;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_bool<E>(self, _: bool) -> Result<Sound, E> {
                Ok(Sound)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Sound, E> {
                Ok(Sound)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Sound, E> {
                Ok(Sound)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Sound, E> {
                Ok(Sound)
            }

            fn visit_str<E>(self, _: &str) -> Result<Sound, E> {
                Ok(Sound)
            }

            fn visit_unit<E>(self) -> Result<Sound, E> {
                Ok(Sound)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Sound, A::Error> {
                while items.next_element::<Sound>()?.is_some() {}
                Ok(Sound)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Sound, A::Error> {
                while members.next_entry::<Sound, Sound>()?.is_some() {}
                Ok(Sound)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Message {
        Message::read(value.to_string().into()).unwrap()
    }

    #[test]
    fn kinds_are_told_apart_by_their_members() {
        assert_eq!(
            read(json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": null, "extra": 1})),
            Message::request(Id::Number(1), "m", None)
        );
        assert_eq!(read(json!({"method": "m", "params": [1]})), Message::notification("m", Some(json!([1]))));
        assert_eq!(
            read(json!({"id": "a", "result": null})),
            Message::response(Id::Text("a".to_owned()), Ok(Value::Null))
        );
        assert_eq!(read(json!({"id": 2})), Message::response(Id::Number(2), Ok(Value::Null)));
        let error = ResponseError { code: -32700, message: "bad".to_owned(), data: None };
        assert_eq!(
            read(json!({"id": null, "error": {"code": -32700, "message": "bad"}})),
            Message::Response(Response { id: None, outcome: Err(error) })
        );
    }

    #[test]
    fn a_result_is_read_as_what_it_is() {
        let reply = |value: Value| match read(json!({"id": 1, "result": value})) {
            Message::Response(Response { outcome: Ok(reply), .. }) => reply,
            other => panic!("{other:?}"),
        };
        assert_eq!(reply(json!([1, 2])).read::<Vec<u8>>().unwrap(), [1, 2]);
        assert_eq!(reply(json!(null)).read::<Option<u8>>().unwrap(), None);
        assert!(reply(json!("x")).read::<u8>().is_err());
        assert_eq!(Reply::of_text("[ 1 ]"), reply(json!([1])));
        assert_ne!(Reply::of_text("[2]"), reply(json!([1])));
    }

    #[test]
    fn a_result_that_is_no_value_is_no_message() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for bad in [&deep, "1e999", "[\"\\ud800\"]", "{\"\\ud800\":1}", "01", "tru"] {
            let read = |result: &str| Message::read(format!("{{\"id\":1,\"result\":{result}}}").into());
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(Message::read(Bytes::from_static(b"{\"id\":1,\"result\":\"\xff\"}")).is_err());
    }

    #[test]
    fn what_is_no_message() {
        for value in [
            json!({}),
            json!([]),
            json!([1, null, null, 2, null]),
            json!({"id": 1.5, "result": 1}),
            json!({"id": {}, "method": "m"}),
        ] {
            assert!(Message::read(value.to_string().into()).is_err(), "{value}");
        }
    }

    #[test]
    fn reading_is_the_inverse_of_writing() {
        let error = ResponseError { code: 1, message: "no".to_owned(), data: Some(json!({"a": 1})) };
        for message in [
            Message::request(Id::Text("x".to_owned()), "m", Some(json!({"a": [1, null]}))),
            Message::notification("n", None),
            Message::response(Id::Number(-4), Ok(Value::Null)),
            Message::response(Id::Number(5), Err(error)),
        ] {
            assert_eq!(read(serde_json::to_value(&message).unwrap()), message);
        }
    }
}
