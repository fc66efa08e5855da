//! One line of a batch: a request, or a cancellation of earlier requests.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::object::object;
use super::request::{Command, Options};
use crate::selector::PositionSpec;

/// The maximum `timeout` of a request, in seconds.
const MAX_TIMEOUT_SECONDS: u32 = 86_400;

/// A line of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchLine {
    /// A request.
    Request(Box<BatchRequest>),
    /// A cancellation.
    Cancel(Cancellation),
}

/// A request of a batch.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    /// The caller's identifier of the request, returned as `meta.volatile.id`.
    pub id: Option<RequestId>,
    /// The time limit in seconds, counted from when the request is started. Without it, the limit of the command line
    /// applies.
    #[schemars(range(min = 1, max = 86_400))]
    pub timeout: Option<u32>,
    /// The command: its long name, or a verb of the command line, such as `refs`.
    #[schemars(schema_with = "command_names")]
    pub cmd: Command,
    /// The selector, as on the command line or as JSON. Required by commands that are about one place.
    pub selector: Option<SelectorInput>,
    /// `rename`: the new name.
    #[serde(rename = "newName")]
    pub new_name: Option<String>,
    /// Options that change the answer. Members that have their default value can be left out.
    #[serde(default)]
    pub options: Options,
}

/// Cancels all earlier, unanswered requests with an ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancellation {
    /// The ID.
    pub cancel: RequestId,
}

/// The caller's identifier of a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(untagged)]
pub enum RequestId {
    /// An integer.
    Number(i64),
    /// A string.
    Text(String),
}

/// A selector as a string or as JSON.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub enum SelectorInput {
    /// As on the command line.
    Text(String),
    /// As JSON.
    Spec(PositionSpec),
}

impl<'de> Deserialize<'de> for BatchLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct BatchLineFields {
            cancel: Option<RequestId>,
            id: Option<RequestId>,
            timeout: Option<u32>,
            #[serde(default, deserialize_with = "command")]
            cmd: Option<Command>,
            selector: Option<SelectorInput>,
            #[serde(rename = "newName")]
            new_name: Option<String>,
            #[serde(default, deserialize_with = "object")]
            options: Options,
        }
        let BatchLineFields { cancel, id, timeout, cmd, selector, new_name, options } =
            BatchLineFields::deserialize(deserializer)?;
        if let Some(cancel) = cancel {
            let is_alone = id.is_none()
                && timeout.is_none()
                && cmd.is_none()
                && selector.is_none()
                && new_name.is_none()
                && options == Options::default();
            let wrong = || D::Error::custom("`cancel` must be the only member of its line");
            return is_alone.then_some(Self::Cancel(Cancellation { cancel })).ok_or_else(wrong);
        }
        if timeout.is_some_and(|seconds| seconds == 0 || seconds > MAX_TIMEOUT_SECONDS) {
            return Err(D::Error::custom(format!(
                "`timeout` must be from 1 to {MAX_TIMEOUT_SECONDS} seconds"
            )));
        }
        let cmd = cmd.ok_or_else(|| D::Error::missing_field("cmd"))?;
        Ok(Self::Request(Box::new(BatchRequest { id, timeout, cmd, selector, new_name, options })))
    }
}

/// Reads a command by its long name or by a verb of the command line.
fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Command>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let unknown = || {
        let names = Command::ALL.map(|command| format!("`{}`", command.as_str())).join(", ");
        D::Error::custom(format!(
            "unknown variant `{name}`, expected one of {names}, or a verb of the command line"
        ))
    };
    Command::parse(&name).map(Some).ok_or_else(unknown)
}

/// The schema of a command that is given by its long name or by a verb.
fn command_names(_: &mut SchemaGenerator) -> Schema {
    let names = Command::ALL
        .into_iter()
        .flat_map(|command| std::iter::once(command.as_str()).chain(command.verbs().iter().copied()));
    json_schema!({"type": "string", "enum": names.collect::<Vec<_>>()})
}

/// One object with the members of both variants, so that an error names the invalid member.
impl JsonSchema for BatchLine {
    fn schema_name() -> Cow<'static, str> {
        "BatchLine".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = BatchRequest::json_schema(generator);
        let id = generator.subschema_for::<RequestId>();
        let cancel = json_schema!({
            "description": "Cancels all earlier, unanswered requests with this `id`. Must be the only member of its line.",
            "allOf": [id],
        });
        if let Some(properties) = schema.get_mut("properties").and_then(|value| value.as_object_mut()) {
            properties.insert("cancel".to_owned(), cancel.into());
        }
        schema.remove("required");
        schema.insert("description".to_owned(), "A line of a batch.".into());
        let more = json_schema!({
            "if": {"required": ["cancel"]},
            "then": {"maxProperties": 1},
            "else": {"required": ["cmd"]},
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            schema.insert(name.clone(), value.clone());
        }
        schema
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RequestIdVisitor;
        impl Visitor<'_> for RequestIdVisitor {
            type Value = RequestId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an integer")
            }

            fn visit_i64<E>(self, number: i64) -> Result<RequestId, E> {
                Ok(RequestId::Number(number))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<RequestId, E> {
                let wrong = || E::custom("the number is too large");
                i64::try_from(number).map(RequestId::Number).map_err(|_| wrong())
            }

            fn visit_str<E>(self, text: &str) -> Result<RequestId, E> {
                Ok(RequestId::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(RequestIdVisitor)
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for SelectorInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SelectorVisitor;
        impl<'de> Visitor<'de> for SelectorVisitor {
            type Value = SelectorInput;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a selector, as a string or an object")
            }

            fn visit_str<E>(self, text: &str) -> Result<SelectorInput, E> {
                Ok(SelectorInput::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SelectorInput, A::Error> {
                PositionSpec::deserialize(MapAccessDeserializer::new(map)).map(SelectorInput::Spec)
            }
        }
        deserializer.deserialize_any(SelectorVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::strict_json;

    fn read(line: &str) -> Result<BatchLine, String> {
        strict_json::from_slice(line.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn requests() {
        let BatchLine::Request(request) =
            read(r#"{"id":7,"timeout":2,"cmd":"rename","selector":"py://a#b","newName":"c"}"#).unwrap()
        else {
            panic!("not a request");
        };
        assert_eq!(request.id, Some(RequestId::Number(7)));
        assert_eq!(request.timeout, Some(2));
        assert_eq!(request.cmd, Command::Rename);
        assert_eq!(request.selector, Some(SelectorInput::Text("py://a#b".to_owned())));
        assert_eq!(request.new_name.as_deref(), Some("c"));
        let spec = read(r#"{"id":"7","cmd":"hover","selector":{"kind":"symbol","qualname":"a:b"}}"#).unwrap();
        let BatchLine::Request(request) = spec else { panic!("not a request") };
        assert_eq!(request.id, Some(RequestId::Text("7".to_owned())));
        assert!(matches!(request.selector, Some(SelectorInput::Spec(PositionSpec::Symbol(_)))));
    }

    #[test]
    fn verbs_of_the_command_line_are_commands() {
        for command in Command::ALL {
            for name in std::iter::once(command.as_str()).chain(command.verbs().iter().copied()) {
                let line = format!(r#"{{"cmd":"{name}"}}"#);
                let BatchLine::Request(request) = read(&line).unwrap() else { panic!("{line}") };
                assert_eq!(request.cmd, command, "{name}");
            }
        }
    }

    #[test]
    fn cancellations() {
        let read_id = |line| match read(line) {
            Ok(BatchLine::Cancel(order)) => Ok(order.cancel),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        };
        assert_eq!(read_id(r#"{"cancel":-3}"#), Ok(RequestId::Number(-3)));
        assert_eq!(read_id(r#"{"cancel":"a"}"#), Ok(RequestId::Text("a".to_owned())));
        assert!(read_id(r#"{"cancel":1,"cmd":"hover"}"#).unwrap_err().contains("only member"));
    }

    #[test]
    fn invalid_lines() {
        for (line, why) in [
            ("{}", "missing field `cmd`"),
            (r#"{"cmd":"hoover"}"#, "unknown variant `hoover`"),
            (r#"{"cmd":"hover","cmd":"hover"}"#, "occurs twice"),
            (r#"{"cmd":"hover","timeout":0}"#, "from 1 to 86400 seconds"),
            (r#"{"cmd":"hover","id":1.5}"#, "a string or an integer"),
            (r#"{"cmd":"hover","selector":3}"#, "a selector, as a string or an object"),
            (r#"{"cmd":"hover","selector":{"kind":"symbol"}}"#, "qualname"),
            (r#"{"cmd":"hover","Id":1}"#, "unknown field `Id`"),
            ("[]", ""),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
