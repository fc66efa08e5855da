//! JSON-RPC 2.0 messages, without anything specific to LSP.
//!
//! Reading is lenient where servers differ (`params: null`, no `result` member, unknown members) and strict where one
//! kind of message could be taken for another. Batches do not exist in LSP and are rejected.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The id of a request. The client uses numbers; a server may use either.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RpcId {
    /// An integer.
    Number(i64),
    /// A string.
    Text(String),
}

/// A message that expects a response.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcRequest {
    /// The id, which the response repeats.
    pub id: RpcId,
    /// The method.
    pub method: String,
    /// `None` if missing or `null`.
    pub params: Option<Value>,
}

/// A message without a response.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// The method.
    pub method: String,
    /// `None` if missing or `null`.
    pub params: Option<Params>,
}

/// The parameters of a notification.
#[derive(Clone)]
pub enum Params {
    /// A value.
    Value(Value),
    /// A value that is created when the message is sent: a thousand documents may wait to be sent, whose texts others
    /// own anyway.
    Lazy(Arc<dyn Fn() -> Value + Send + Sync>),
}

impl Params {
    /// The value.
    #[must_use]
    pub fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::Value(value) => Cow::Borrowed(value),
            Self::Lazy(make) => Cow::Owned(make()),
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

/// Equal if the values are equal.
impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

/// A response.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The id of the request; `None` when the peer could not read it.
    pub id: Option<RpcId>,
    /// The result or the error.
    pub outcome: Result<RawResult, ResponseError>,
}

/// The result of a request as unparsed text. It is parsed once its type is known: a tree of values takes ten times
/// the memory of the text, and some results have many megabytes.
#[derive(Debug, Clone)]
pub struct RawResult {
    /// A message with the member `result`.
    message: Bytes,
}

impl RawResult {
    /// Parses the result.
    ///
    /// # Errors
    /// When the result does not have the form of `T`.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        #[derive(Deserialize)]
        struct ResultMember<T> {
            result: T,
        }
        serde_json::from_slice::<ResultMember<T>>(&self.message).map(|member| member.result)
    }

    /// A result from JSON text.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self { message: format!("{{\"result\":{text}}}").into() }
    }
}

impl From<Value> for RawResult {
    fn from(result: Value) -> Self {
        Self::from_text(&result.to_string())
    }
}

/// Equal if the values are equal, however they are written.
impl PartialEq for RawResult {
    fn eq(&self, other: &Self) -> bool {
        let value = |reply: &Self| reply.read::<Value>().ok();
        self.message == other.message || value(self) == value(other)
    }
}

/// The error of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResponseError {
    /// The error code.
    pub code: i64,
    /// The message, for people.
    #[serde(default)]
    pub message: String,
    /// Additional data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// A message of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A message that expects a response.
    Request(RpcRequest),
    /// A message without a response.
    Notification(Notification),
    /// A response.
    Response(Response),
}

impl Message {
    /// A request.
    #[must_use]
    pub fn request(id: RpcId, method: impl Into<String>, params: Option<Value>) -> Self {
        Self::Request(RpcRequest { id, method: method.into(), params })
    }

    /// A notification.
    #[must_use]
    pub fn notification(method: impl Into<String>, params: Option<Value>) -> Self {
        Self::Notification(Notification { method: method.into(), params: params.map(Params::Value) })
    }

    /// The response to the request `id`.
    #[must_use]
    pub fn response(id: RpcId, outcome: Result<Value, ResponseError>) -> Self {
        Self::Response(Response { id: Some(id), outcome: outcome.map(RawResult::from) })
    }

    /// The response to a message that could not be read.
    #[must_use]
    pub const fn unreadable(error: ResponseError) -> Self {
        Self::Response(Response { id: None, outcome: Err(error) })
    }

    /// Parses a message.
    ///
    /// # Errors
    /// When the text is not JSON, or not a JSON-RPC message.
    pub fn read(text: Bytes) -> serde_json::Result<Self> {
        if !text.trim_ascii_start().starts_with(b"{") {
            return Err(serde::de::Error::custom("the message is not an object"));
        }
        let MessageFields { id, method, params, result, error } = serde_json::from_slice(&text)?;
        match (method, id) {
            (Some(method), Some(id)) => Ok(Self::Request(RpcRequest { id, method, params })),
            (Some(method), None) => Ok(Self::notification(method, params)),
            (None, id) => {
                let outcome = match (error, result) {
                    (Some(error), _) => Err(error),
                    (None, Some(ValidValue)) => Ok(RawResult { message: text }),
                    // For handlers that return nothing, some servers leave the member out.
                    (None, None) if id.is_some() => Ok(RawResult::from(Value::Null)),
                    (None, None) => {
                        return Err(serde::de::Error::custom("neither a method, nor a result, nor an error"));
                    }
                };
                Ok(Self::Response(Response { id, outcome }))
            }
        }
    }
}

impl fmt::Display for RpcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for RpcId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RpcId {
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

/// The members that distinguish the kinds of messages.
#[derive(Deserialize)]
struct MessageFields {
    id: Option<RpcId>,
    method: Option<String>,
    params: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    result: Option<ValidValue>,
    error: Option<ResponseError>,
}

/// Distinguishes `null` from a missing member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ValidValue>, D::Error> {
    ValidValue::deserialize(deserializer).map(Some)
}

/// A valid JSON value, checked without being kept: numbers in range, limited depth, valid strings.
struct ValidValue;

impl<'de> Deserialize<'de> for ValidValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValidValueVisitor;

        impl<'de> Visitor<'de> for ValidValueVisitor {
            type Value = ValidValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_bool<E>(self, _: bool) -> Result<ValidValue, E> {
                Ok(ValidValue)
            }

            fn visit_i64<E>(self, _: i64) -> Result<ValidValue, E> {
                Ok(ValidValue)
            }

            fn visit_u64<E>(self, _: u64) -> Result<ValidValue, E> {
                Ok(ValidValue)
            }

            fn visit_f64<E>(self, _: f64) -> Result<ValidValue, E> {
                Ok(ValidValue)
            }

            fn visit_str<E>(self, _: &str) -> Result<ValidValue, E> {
                Ok(ValidValue)
            }

            fn visit_unit<E>(self) -> Result<ValidValue, E> {
                Ok(ValidValue)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ValidValue, A::Error> {
                while items.next_element::<ValidValue>()?.is_some() {}
                Ok(ValidValue)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<ValidValue, A::Error> {
                while members.next_entry::<ValidValue, ValidValue>()?.is_some() {}
                Ok(ValidValue)
            }
        }

        deserializer.deserialize_any(ValidValueVisitor)
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
    fn message_kinds_are_distinguished_by_their_members() {
        assert_eq!(
            read(json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": null, "extra": 1})),
            Message::request(RpcId::Number(1), "m", None)
        );
        assert_eq!(read(json!({"method": "m", "params": [1]})), Message::notification("m", Some(json!([1]))));
        assert_eq!(
            read(json!({"id": "a", "result": null})),
            Message::response(RpcId::Text("a".to_owned()), Ok(Value::Null))
        );
        assert_eq!(read(json!({"id": 2})), Message::response(RpcId::Number(2), Ok(Value::Null)));
        let error = ResponseError { code: -32700, message: "bad".to_owned(), data: None };
        assert_eq!(
            read(json!({"id": null, "error": {"code": -32700, "message": "bad"}})),
            Message::Response(Response { id: None, outcome: Err(error) })
        );
    }

    #[test]
    fn a_result_is_parsed_as_its_type() {
        let reply = |value: Value| match read(json!({"id": 1, "result": value})) {
            Message::Response(Response { outcome: Ok(reply), .. }) => reply,
            other => panic!("{other:?}"),
        };
        assert_eq!(reply(json!([1, 2])).read::<Vec<u8>>().unwrap(), [1, 2]);
        assert_eq!(reply(json!(null)).read::<Option<u8>>().unwrap(), None);
        assert!(reply(json!("x")).read::<u8>().is_err());
        assert_eq!(RawResult::from_text("[ 1 ]"), reply(json!([1])));
        assert_ne!(RawResult::from_text("[2]"), reply(json!([1])));
    }

    #[test]
    fn a_message_with_an_invalid_result_is_rejected() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for bad in [&deep, "1e999", "[\"\\ud800\"]", "{\"\\ud800\":1}", "01", "tru"] {
            let read = |result: &str| Message::read(format!("{{\"id\":1,\"result\":{result}}}").into());
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(Message::read(Bytes::from_static(b"{\"id\":1,\"result\":\"\xff\"}")).is_err());
    }

    #[test]
    fn invalid_messages_are_rejected() {
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
    fn parsing_is_the_inverse_of_serializing() {
        let error = ResponseError { code: 1, message: "no".to_owned(), data: Some(json!({"a": 1})) };
        for message in [
            Message::request(RpcId::Text("x".to_owned()), "m", Some(json!({"a": [1, null]}))),
            Message::notification("n", None),
            Message::response(RpcId::Number(-4), Ok(Value::Null)),
            Message::response(RpcId::Number(5), Err(error)),
        ] {
            assert_eq!(read(serde_json::to_value(&message).unwrap()), message);
        }
    }
}
