//! One line of a batch: a request, a head to score, or a cancellation of earlier lines.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::analyzer::AnalyzerKind;
use super::object::object;
use super::request::{Command, Options};
use super::reward::Preset;
use crate::selector::PositionSpec;

/// The maximum `timeout` of a request, in seconds.
const MAX_TIMEOUT_SECONDS: u32 = 86_400;

/// A line of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchLine {
    /// A request.
    Request(Box<BatchRequest>),
    /// A head to score.
    Score(Box<ScoreLine>),
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

/// A head to score against a base. It is answered with an episode instead of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScoreLine {
    /// The caller's identifier, returned as `meta.volatile.id`.
    pub id: Option<RequestId>,
    /// The time limit in seconds, counted from when the head has a server.
    #[schemars(range(min = 1, max = 86_400))]
    pub timeout: Option<u32>,
    /// The state to start from, as in `lanser score --base`: a revision, a folder, a bundle, or `WORKTREE`. `HEAD` by default.
    pub base: Option<String>,
    /// The state to score.
    pub head: HeadInput,
    /// The formula; `rl-csf-guarded-v1` by default.
    pub preset: Option<Preset>,
    /// The analyzers besides the server.
    #[serde(default)]
    pub with: Vec<AnalyzerKind>,
}

/// A state to score.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HeadInput {
    /// An edit of the base: a unified diff, or a `WorkspaceEdit` as text.
    Diff(String),
    /// The base with these contents of files; `null` deletes a file.
    Files(BTreeMap<String, Option<String>>),
    /// A state as in `lanser score --head`: a revision, a folder, a bundle, a file with a diff, or `WORKTREE`.
    State(String),
}

/// The command of a line.
enum BatchCommand {
    Request(Command),
    Score,
}

/// The name of the command that scores a head.
const SCORE: &str = "score";

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
            cmd: Option<BatchCommand>,
            selector: Option<SelectorInput>,
            #[serde(rename = "newName")]
            new_name: Option<String>,
            #[serde(default, deserialize_with = "object")]
            options: Options,
            base: Option<String>,
            head: Option<HeadInput>,
            preset: Option<Preset>,
            #[serde(default)]
            with: Vec<AnalyzerKind>,
        }
        let BatchLineFields {
            cancel,
            id,
            timeout,
            cmd,
            selector,
            new_name,
            options,
            base,
            head,
            preset,
            with,
        } = BatchLineFields::deserialize(deserializer)?;
        let is_request = selector.is_some() || new_name.is_some() || options != Options::default();
        let is_score = base.is_some() || head.is_some() || preset.is_some() || !with.is_empty();
        if let Some(cancel) = cancel {
            let is_alone = id.is_none() && timeout.is_none() && cmd.is_none() && !is_request && !is_score;
            let wrong = || D::Error::custom("`cancel` must be the only member of its line");
            return is_alone.then_some(Self::Cancel(Cancellation { cancel })).ok_or_else(wrong);
        }
        if timeout.is_some_and(|seconds| seconds == 0 || seconds > MAX_TIMEOUT_SECONDS) {
            return Err(D::Error::custom(format!(
                "`timeout` must be from 1 to {MAX_TIMEOUT_SECONDS} seconds"
            )));
        }
        match cmd.ok_or_else(|| D::Error::missing_field("cmd"))? {
            BatchCommand::Request(_) if is_score => Err(D::Error::custom(
                "`base`, `head`, `preset` and `with` are members of a line with `score`",
            )),
            BatchCommand::Request(cmd) => {
                Ok(Self::Request(Box::new(BatchRequest { id, timeout, cmd, selector, new_name, options })))
            }
            BatchCommand::Score if is_request => {
                Err(D::Error::custom("`score` does not take `selector`, `newName` or `options`"))
            }
            BatchCommand::Score => {
                let head = head.ok_or_else(|| D::Error::missing_field("head"))?;
                Ok(Self::Score(Box::new(ScoreLine { id, timeout, base, head, preset, with })))
            }
        }
    }
}

/// Reads a command by its long name or by a verb of the command line.
fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BatchCommand>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let unknown = || {
        let names = Command::ALL.map(|command| format!("`{}`", command.as_str())).join(", ");
        D::Error::custom(format!(
            "unknown variant `{name}`, expected one of {names}, `{SCORE}`, or a verb of the command line"
        ))
    };
    if name == SCORE {
        return Ok(Some(BatchCommand::Score));
    }
    Command::parse(&name).map(|cmd| Some(BatchCommand::Request(cmd))).ok_or_else(unknown)
}

/// The schema of a command that is given by its long name or by a verb.
fn command_names(_: &mut SchemaGenerator) -> Schema {
    let names = Command::ALL
        .into_iter()
        .flat_map(|command| std::iter::once(command.as_str()).chain(command.verbs().iter().copied()));
    json_schema!({"type": "string", "enum": names.collect::<Vec<_>>()})
}

/// The members that only a line with `score` has.
const SCORE_MEMBERS: [&str; 4] = ["base", "head", "preset", "with"];

/// One object with the members of all variants, so that an error names the invalid member.
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
        let mut score = ScoreLine::json_schema(generator);
        if let (Some(properties), Some(others)) = (
            schema.get_mut("properties").and_then(|value| value.as_object_mut()),
            score.get_mut("properties").and_then(|value| value.as_object_mut()),
        ) {
            for name in SCORE_MEMBERS {
                properties.extend(others.remove(name).map(|member| (name.to_owned(), member)));
            }
            if let Some(names) = properties.get_mut("cmd").and_then(|cmd| cmd.get_mut("enum")?.as_array_mut())
            {
                names.push(SCORE.into());
            }
        }
        let absent =
            |names: &[&str]| names.iter().map(|name| json_schema!({"required": [name]})).collect::<Vec<_>>();
        schema.remove("required");
        schema.insert("description".to_owned(), "A line of a batch.".into());
        let more = json_schema!({
            "if": {"required": ["cancel"]},
            "then": {"maxProperties": 1},
            "else": {
                "required": ["cmd"],
                "if": {"properties": {"cmd": {"const": SCORE}}},
                "then": {"required": ["head"], "not": {"anyOf": absent(&["selector", "newName", "options"])}},
                "else": {"not": {"anyOf": absent(&SCORE_MEMBERS)}},
            },
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
    fn heads_to_score() {
        let line = r#"{"id":1,"timeout":9,"cmd":"score","base":"rev:v1","head":{"files":{"a.py":"x = 1\n","b.py":null}},"with":["ruff"]}"#;
        let BatchLine::Score(line) = read(line).unwrap() else { panic!("not a head") };
        assert_eq!((line.id, line.timeout), (Some(RequestId::Number(1)), Some(9)));
        assert_eq!(line.base.as_deref(), Some("rev:v1"));
        let HeadInput::Files(files) = line.head else { panic!("not files") };
        assert_eq!(files.values().cloned().collect::<Vec<_>>(), [Some("x = 1\n".to_owned()), None]);
        let line = read(r#"{"cmd":"score","head":{"diff":"--- a"},"preset":"pr-v1"}"#).unwrap();
        let BatchLine::Score(line) = line else { panic!("not a head") };
        assert_eq!((line.head, line.preset), (HeadInput::Diff("--- a".to_owned()), Some(Preset::Pr)));
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
            (r#"{"cmd":"score"}"#, "missing field `head`"),
            (r#"{"cmd":"score","head":{"diff":"","state":"HEAD"}}"#, ""),
            (r#"{"cmd":"score","head":{"diff":""},"selector":"a.py:1"}"#, "does not take"),
            (r#"{"cmd":"hover","head":{"diff":""}}"#, "with `score`"),
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
