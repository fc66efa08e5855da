//! Adds the hook to `.claude/settings.json`. Everything else in the file keeps its bytes.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::json;
use serde_json::value::RawValue;

/// The settings, in the folder for Claude Code.
pub(crate) const SETTINGS_FILE: &str = "settings.json";

/// The command of the hook. If lanser is not installed, or fails, the agent's search goes on without a message.
const COMMAND: &str = "lanser skill hook 2>/dev/null || true";

/// What marks the hook in the settings.
const MARK: &str = "lanser skill hook";

/// Why the settings were not changed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("it is not JSON: {0}")]
    Syntax(String),
    #[error("`{0}` is not {1}")]
    Shape(&'static str, &'static str),
}

/// The hook, as an element of `hooks.PreToolUse`.
fn hook() -> serde_json::Value {
    json!({
        "matcher": "Grep|Bash",
        "hooks": [{"type": "command", "command": COMMAND, "timeout": 5}],
    })
}

/// Settings with only the hook.
pub(crate) fn snippet() -> String {
    let settings = json!({"hooks": {"PreToolUse": [hook()]}});
    format!("{settings:#}\n")
}

/// The settings with the hook; the same text if it has it already.
///
/// # Errors
/// If the text is not JSON, or its hooks do not have the form that Claude Code documents.
pub(crate) fn with_hook(text: &str) -> Result<String, SettingsError> {
    if text.trim().is_empty() {
        return Ok(snippet());
    }
    // The whole text is read first: a part that is borrowed below may be followed by anything.
    let _: serde::de::IgnoredAny =
        serde_json::from_str(text).map_err(|error| SettingsError::Syntax(error.to_string()))?;
    let top: &RawValue =
        serde_json::from_str(text).map_err(|error| SettingsError::Syntax(error.to_string()))?;
    let settings = Members::of(top, "settings")?;
    let Some(hooks) = settings.get("hooks") else {
        let member = format!("\"hooks\": {:#}", json!({"PreToolUse": [hook()]}));
        return Ok(appended(text, top, &settings.0, &member, 1));
    };
    let events = Members::of(hooks, "hooks")?;
    let Some(matchers) = events.get("PreToolUse") else {
        let member = format!("\"PreToolUse\": {:#}", json!([hook()]));
        return Ok(appended(text, hooks, &events.0, &member, 2));
    };
    let elements: Vec<&RawValue> = serde_json::from_str(matchers.get())
        .map_err(|_| SettingsError::Shape("hooks.PreToolUse", "a list"))?;
    if elements.iter().any(|element| element.get().contains(MARK)) {
        return Ok(text.to_owned());
    }
    Ok(appended(text, matchers, &elements, &format!("{:#}", hook()), 3))
}

/// The members of an object, in their order.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Members<'t> {
    fn of(value: &'t RawValue, name: &'static str) -> Result<Self, SettingsError> {
        serde_json::from_str(value.get()).map_err(|_| SettingsError::Shape(name, "an object"))
    }

    /// The value of a member. If it is there twice, the last one is used, as in JavaScript.
    fn get(&self, name: &str) -> Option<&'t RawValue> {
        self.0.iter().rev().find(|(found, _)| found == name).map(|(_, value)| *value)
    }
}

impl<'de: 't, 't> Deserialize<'de> for Members<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(MembersVisitor).map(Members)
    }
}

/// The text with one more element at the end of a list or object, which is a part of the text.
fn appended<T>(text: &str, container: &RawValue, elements: &[T], element: &str, depth: usize) -> String {
    // Where the part is borrowed from.
    let start = container.get().as_ptr() as usize - text.as_ptr() as usize;
    let close = start + container.get().len() - 1;
    let before = text[..close].trim_end();
    let comma = if elements.is_empty() { "" } else { "," };
    let (outer, inner) = ("  ".repeat(depth - 1), "  ".repeat(depth));
    let element = element.replace('\n', &format!("\n{inner}"));
    format!("{before}{comma}\n{inner}{element}\n{outer}{}", &text[close..])
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn everything_else_keeps_its_bytes() {
        for (before, kept) in [
            ("{}", &[][..]),
            ("{ \"z\": 1.50, \"a\":\t[ 1,2 ] }\n", &["\"z\": 1.50, \"a\":\t[ 1,2 ]"]),
            ("{\"hooks\": {}}", &[]),
            (
                "{\"hooks\": {\"Stop\": [{\"hooks\": []}]}, \"b\": \"\\u00e9\"}",
                &["\"Stop\": [{\"hooks\": []}]", "\\u00e9"],
            ),
            ("{\"hooks\": {\"PreToolUse\": []}, \"x\": {}}", &["\"x\": {}"]),
            (
                "{\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Edit\",\"hooks\":[]}]}}",
                &["{\"matcher\":\"Edit\",\"hooks\":[]}"],
            ),
        ] {
            let after = with_hook(before).unwrap();
            for part in kept {
                assert!(after.contains(part), "{part}: {after}");
            }
            let matchers = &parsed(&after)["hooks"]["PreToolUse"];
            assert_eq!(matchers.as_array().unwrap().last(), Some(&hook()), "{after}");
            // What was there is still there, and nothing else is new.
            let mut without = parsed(&after);
            without["hooks"]["PreToolUse"].as_array_mut().unwrap().pop();
            let mut expected = parsed(before);
            expected["hooks"]["PreToolUse"].as_array_mut().map_or_else(|| {}, |_| {});
            if expected["hooks"]["PreToolUse"].is_null() {
                expected["hooks"]["PreToolUse"] = json!([]);
            }
            assert_eq!(without, expected, "{after}");
            assert_eq!(with_hook(&after).unwrap(), after, "the second time");
        }
    }

    #[test]
    fn new_settings_have_only_the_hook() {
        assert_eq!(with_hook(" \n").unwrap(), snippet());
        assert_eq!(parsed(&snippet())["hooks"]["PreToolUse"], json!([hook()]));
    }

    #[test]
    fn settings_in_another_form_are_not_changed() {
        for (text, why) in [
            ("{\"a\": 1,}", "it is not JSON: "),
            ("// comment\n{}", "it is not JSON: "),
            ("{} {}", "it is not JSON: "),
            ("[]", "`settings` is not an object"),
            ("{\"hooks\": []}", "`hooks` is not an object"),
            ("{\"hooks\": {\"PreToolUse\": {}}}", "`hooks.PreToolUse` is not a list"),
        ] {
            let error = with_hook(text).unwrap_err().to_string();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }
}
