//! Recognizes the kind of a document by its content.

use serde_json::Value;

use super::SchemaKind;

/// The tags of selectors, in their member `kind`.
const SELECTOR_KINDS: [&str; 6] = ["cursor", "range", "symbol", "ast", "anchor", "symid"];

/// The kind of a document; `None` if it is not a document of lanser.
///
/// A request that could also be a line of a batch is a request. A document that is not valid JSON is recognized by the
/// members that it names, because it may be a damaged document of lanser.
#[must_use]
pub fn recognize(bytes: &[u8]) -> Option<SchemaKind> {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(document) => kind_of(&document),
        Err(_) => damaged(bytes),
    }
}

pub(super) fn kind_of(document: &Value) -> Option<SchemaKind> {
    let members = document.as_object()?;
    let has = |name: &str| members.contains_key(name);
    let tag = document["kind"].as_str();
    // JSON schemas describe members of these names.
    if has("$schema") || has("$defs") {
        None
    } else if has("bundleId") {
        // The summary of a recorded operation has one too, beside the number of the operation.
        (!has("op")).then_some(SchemaKind::Bundle)
    } else if has("op") && has("seq") && has("sum") {
        Some(SchemaKind::Trace)
    } else if tag.is_some_and(|tag| SELECTOR_KINDS.contains(&tag)) {
        Some(SchemaKind::Selector)
    } else if document["cmd"].is_string() {
        let is_line = has("id") || has("timeout") || document["selector"].is_string();
        Some(if is_line { SchemaKind::Batch } else { SchemaKind::Request })
    } else if has("cancel") && members.len() == 1 {
        Some(SchemaKind::Batch)
    } else {
        None
    }
}

fn damaged(bytes: &[u8]) -> Option<SchemaKind> {
    let text = String::from_utf8_lossy(bytes);
    if !text.trim_start().starts_with('{') {
        return None;
    }
    if text.contains("\"lanser-trace\"") {
        Some(SchemaKind::Trace)
    } else if text.contains("\"bundleId\"") {
        Some(SchemaKind::Bundle)
    } else if text.contains("\"cmd\"") {
        Some(SchemaKind::Batch)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_recognized_by_content() {
        use SchemaKind::{Batch, Bundle, Request, Selector, Trace};
        for (text, kind) in [
            (r#"{"version":"1.2","bundleId":"x"}"#, Some(Bundle)),
            (r#"{"op":1,"seq":2,"kind":"end","sum":""}"#, Some(Trace)),
            (r#"{"kind":"symbol","qualname":"a:b"}"#, Some(Selector)),
            (r#"{"kind":"file","path":"a"}"#, None),
            (r#"{"cmd":"hover","selector":{"kind":"symbol"}}"#, Some(Request)),
            (r#"{"cmd":"refs","selector":"py://a#b"}"#, Some(Batch)),
            (r#"{"cmd":"diagnostics","id":1}"#, Some(Batch)),
            (r#"{"cancel":1}"#, Some(Batch)),
            (r#"{"cmd":["pytest"]}"#, None),
            (r#"{"$schema":"x","bundleId":"y"}"#, None),
            (r#"{"op":1,"cmd":"hover","bundleId":null}"#, None),
            ("[]", None),
            ("3", None),
            (r#"{"version":"1.5","bundleId":"x""#, Some(Bundle)),
            (r#"{"kind":"symbol""#, None),
            ("# bundleId", None),
        ] {
            assert_eq!(recognize(text.as_bytes()), kind, "{text}");
        }
    }
}
