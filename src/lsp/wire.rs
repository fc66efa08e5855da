//! The parts of messages that lanser writes, in the types of `lsp_types`, so that the compiler checks their members.
//!
//! What servers send is not read with these types, see [`super::convert`]. Data of a server that is sent back to it
//! (call hierarchy items, code actions, edits) stays the JSON value that it sent: it may have members and URIs that
//! the types do not allow.

use lsp_types::notification::Notification;
use lsp_types::{
    Diagnostic, DiagnosticSeverity, NumberOrString, Position as WirePosition, Range as WireRange,
    TextDocumentIdentifier, TextDocumentPositionParams, Uri,
};
use serde::Serialize;
use serde_json::Value;

use super::documents::OutgoingNotification;
use super::results::{LspDiagnostic, LspSeverity};
use crate::path::{AbsPath, FileUri};
use crate::text::{Position, Range};

/// A message or a part of one as a JSON value.
pub(super) fn value(part: impl Serialize) -> Value {
    serde_json::to_value(part).expect("LSP's types are plain data")
}

/// A notification.
pub(super) fn notification<N: Notification>(params: N::Params) -> OutgoingNotification {
    (N::METHOD, value(params).into())
}

/// The URI of a file.
pub(super) fn uri(path: &AbsPath) -> Uri {
    let uri = FileUri::from_path(path);
    uri.as_str().parse().expect("`FileUri` encodes every character that a URI cannot have")
}

/// A reference to a document.
pub(super) fn document(path: &AbsPath) -> TextDocumentIdentifier {
    TextDocumentIdentifier::new(uri(path))
}

/// A position in a document.
pub(super) fn document_position(path: &AbsPath, at: Position) -> TextDocumentPositionParams {
    TextDocumentPositionParams::new(document(path), position(at))
}

/// A range.
pub(super) fn range(range: Range) -> WireRange {
    WireRange::new(position(range.start), position(range.end))
}

/// A diagnostic of the server, as the context of a code action.
pub(super) fn diagnostic(found: &LspDiagnostic) -> Diagnostic {
    let severity = match found.severity {
        LspSeverity::Error => DiagnosticSeverity::ERROR,
        LspSeverity::Warning => DiagnosticSeverity::WARNING,
        LspSeverity::Information => DiagnosticSeverity::INFORMATION,
        LspSeverity::Hint => DiagnosticSeverity::HINT,
    };
    Diagnostic {
        range: range(found.range),
        severity: Some(severity),
        code: found.code.clone().map(NumberOrString::String),
        source: found.source.clone(),
        message: found.message.clone(),
        ..Diagnostic::default()
    }
}

fn position(position: Position) -> WirePosition {
    WirePosition::new(position.line, position.column)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn odd_paths_are_written_in_full() {
        for name in [
            "a b", "[x]", "{x}", "é", "日本", "^", "%zz", "%2F", "a#b?c", "\"", "\\", "\n", "\0", "\u{7f}",
            "😀", "a:b",
        ] {
            let path = AbsPath::new(format!("/w/{name}.py")).unwrap();
            assert_eq!(value(uri(&path)), FileUri::from_path(&path).as_str(), "{name:?}");
        }
        assert_eq!(uri(&AbsPath::new("/").unwrap()).as_str(), "file:///");
    }

    proptest! {
        #[test]
        fn every_path_has_a_uri(name in any::<String>()) {
            let path = AbsPath::new(format!("/{name}")).unwrap();
            let (written, expected) = (uri(&path), FileUri::from_path(&path));
            prop_assert_eq!(written.as_str(), expected.as_str());
            prop_assert_eq!(FileUri::parse_path(written.as_str()).is_ok(), !path.as_str().contains('\0'));
        }
    }

    #[test]
    fn unset_members_are_absent() {
        let found = LspDiagnostic {
            range: Range::new(Position::new(1, 2), Position::new(1, 3)),
            severity: LspSeverity::Warning,
            code: None,
            code_description: None,
            source: Some("Pyright".to_owned()),
            message: "m".to_owned(),
            tags: Vec::new(),
            related: Vec::new(),
        };
        let range = json!({"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 3}});
        let expected = json!({"range": range, "severity": 2, "source": "Pyright", "message": "m"});
        assert_eq!(value(diagnostic(&found)), expected);
    }
}
