//! From the wire to the plain types of [`super::answer`]. The only place that knows LSP's result forms.
//!
//! The structs are our own because `lsp_types` refuses a whole message for one URI that it does not like. URIs are
//! text until they are decoded; what does not lie in a local file is counted and left out. Members that LSP requires
//! are required here, everything else may be missing or `null`.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::answer::{
    Call, CallItem, CodeAction, Diagnostic, DiagnosticTag, HoverText, Listing, Place, Related, Renamable,
    ServerCommand, Severity, Symbol, SymbolKind, WorkspaceSymbol,
};
use super::jsonrpc::Reply;
use crate::model::edits::WorkspaceEdit;
use crate::path::{AbsPath, FileUri};
use crate::text::{Position, Range};

type Read<T> = Result<T, serde_json::Error>;

#[derive(Deserialize)]
struct WirePosition {
    line: u32,
    character: u32,
}

#[derive(Deserialize)]
struct WireRange {
    start: WirePosition,
    end: WirePosition,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePlace {
    uri: Option<String>,
    range: Option<WireRange>,
    // The members of `LocationLink`.
    target_uri: Option<String>,
    target_selection_range: Option<WireRange>,
}

#[derive(Deserialize)]
struct WireHover {
    contents: Value,
    range: Option<WireRange>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSymbol {
    name: String,
    detail: Option<String>,
    kind: u32,
    tags: Option<Vec<u32>>,
    deprecated: Option<bool>,
    range: Option<WireRange>,
    selection_range: Option<WireRange>,
    children: Option<Vec<Self>>,
    // The members of `SymbolInformation` and `WorkspaceSymbol`.
    location: Option<WirePlace>,
    container_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCallItem {
    name: String,
    detail: Option<String>,
    kind: u32,
    uri: String,
    range: WireRange,
    selection_range: WireRange,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCall {
    from: Option<Value>,
    to: Option<Value>,
    from_ranges: Vec<WireRange>,
}

#[derive(Deserialize)]
struct WireReport {
    items: Vec<WireDiagnostic>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDiagnostic {
    range: WireRange,
    severity: Option<u32>,
    code: Option<Value>,
    code_description: Option<WireCodeDescription>,
    source: Option<String>,
    message: String,
    tags: Option<Vec<u32>>,
    related_information: Option<Vec<WireRelated>>,
}

#[derive(Deserialize)]
struct WireCodeDescription {
    href: String,
}

#[derive(Deserialize)]
struct WireRelated {
    location: WirePlace,
    message: String,
}

/// Places one after the other, as they are read: there can be a hundred thousand.
struct Places(Listing<Place>);

impl<'de> Deserialize<'de> for Places {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Places;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a place, places or null")
            }

            fn visit_unit<E>(self) -> Result<Places, E> {
                Ok(Places(listing(std::iter::empty())))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Places, A::Error> {
                let wire = WirePlace::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Places(listing(std::iter::once(place(wire)))))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Places, A::Error> {
                let mut places = listing(std::iter::empty());
                // They come file by file.
                let mut last: Option<(String, Option<AbsPath>)> = None;
                while let Some(wire) = sequence.next_element::<WirePlace>()? {
                    let stretch = wire.range.or(wire.target_selection_range);
                    let Some((uri, stretch)) = wire.uri.or(wire.target_uri).zip(stretch) else {
                        places.skipped += 1;
                        continue;
                    };
                    if last.as_ref().is_none_or(|(before, _)| *before != uri) {
                        let path = path(&uri);
                        last = Some((uri, path));
                    }
                    match last.as_ref().and_then(|(_, path)| path.clone()) {
                        Some(path) => places.items.push(Place { path, range: range(stretch) }),
                        None => places.skipped += 1,
                    }
                }
                Ok(Places(places))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

/// `Location`, `Location[]`, `LocationLink[]` or `null`.
pub(super) fn places(reply: &Reply) -> Read<Listing<Place>> {
    reply.read::<Places>().map(|places| places.0)
}

/// `Hover` or `null`.
pub(super) fn hover(reply: &Reply) -> Read<Option<HoverText>> {
    let Some(wire) = reply.read::<Option<WireHover>>()? else { return Ok(None) };
    let parts = match wire.contents {
        Value::Array(parts) => parts,
        one => vec![one],
    };
    let parts = parts.into_iter().map(hover_part).collect::<Read<Vec<_>>>()?;
    let markdown = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
    Ok((!markdown.is_empty()).then(|| HoverText { markdown, range: wire.range.map(range) }))
}

/// `DocumentSymbol[]`, `SymbolInformation[]` or `null`.
pub(super) fn symbols(reply: &Reply) -> Read<Vec<Symbol>> {
    let wire = list::<WireSymbol>(reply)?;
    wire.into_iter().map(symbol).collect()
}

/// `SymbolInformation[]`, `WorkspaceSymbol[]` or `null`.
pub(super) fn workspace_symbols(reply: &Reply) -> Read<Listing<WorkspaceSymbol>> {
    let wire = list::<WireSymbol>(reply)?;
    Ok(listing(wire.into_iter().map(|symbol| {
        Some(WorkspaceSymbol {
            deprecated: is_deprecated(&symbol),
            place: place(symbol.location?)?,
            name: symbol.name,
            kind: SymbolKind(symbol.kind),
            container: symbol.container_name.filter(|name| !name.is_empty()),
        })
    })))
}

/// `CallHierarchyItem[]` or `null`.
pub(super) fn call_items(reply: &Reply) -> Read<Listing<CallItem>> {
    let items = list::<Value>(reply)?.into_iter().map(call_item).collect::<Read<Vec<_>>>()?;
    Ok(listing(items.into_iter()))
}

/// `CallHierarchyIncomingCall[]`, `CallHierarchyOutgoingCall[]` or `null`.
pub(super) fn calls(reply: &Reply) -> Read<Listing<Call>> {
    let mut calls = Vec::new();
    for wire in list::<WireCall>(reply)? {
        let end = wire.from.or(wire.to).ok_or_else(|| missing("a call has neither `from` nor `to`"))?;
        let ranges = wire.from_ranges.into_iter().map(range).collect();
        calls.push(call_item(end)?.map(|item| Call { item, ranges }));
    }
    Ok(listing(calls.into_iter()))
}

/// A full `DocumentDiagnosticReport` or `null`. An unchanged one never comes, because none is ever referred to.
pub(super) fn diagnostics(reply: &Reply) -> Read<Listing<Diagnostic>> {
    let wire = reply.read::<Option<WireReport>>()?;
    let mut skipped = 0;
    let items = wire.map(|report| report.items).unwrap_or_default();
    let items = items
        .into_iter()
        .map(|wire| {
            let related =
                listing(wire.related_information.unwrap_or_default().into_iter().map(|related| {
                    Some(Related { place: place(related.location)?, message: related.message })
                }));
            skipped += related.skipped;
            Diagnostic {
                range: range(wire.range),
                severity: match wire.severity {
                    Some(2) => Severity::Warning,
                    Some(3) => Severity::Information,
                    Some(4) => Severity::Hint,
                    _ => Severity::Error,
                },
                code: wire.code.and_then(|code| match code {
                    Value::String(text) => Some(text),
                    Value::Number(number) => Some(number.to_string()),
                    _ => None,
                }),
                code_description: wire.code_description.map(|description| description.href),
                source: wire.source,
                message: wire.message,
                tags: wire.tags.unwrap_or_default().into_iter().filter_map(tag).collect(),
                related: related.items,
            }
        })
        .collect();
    Ok(Listing { items, skipped })
}

/// `Range`, `{range, placeholder}`, `{defaultBehavior}` or `null`.
pub(super) fn renamable(reply: &Reply) -> Read<Option<Renamable>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wire {
        range: Option<WireRange>,
        placeholder: Option<String>,
        default_behavior: Option<bool>,
        start: Option<WirePosition>,
        end: Option<WirePosition>,
    }
    let Some(wire) = reply.read::<Option<Wire>>()? else { return Ok(None) };
    let bare = wire.start.zip(wire.end).map(|(start, end)| WireRange { start, end });
    let found = wire.range.or(bare).map(range);
    let accepted = found.is_some() || wire.default_behavior == Some(true);
    Ok(accepted.then_some(Renamable { range: found, placeholder: wire.placeholder }))
}

/// `WorkspaceEdit` or `null`.
pub(super) fn edit(reply: &Reply) -> Read<Option<WorkspaceEdit>> {
    reply.read()
}

/// `(Command | CodeAction)[]` or `null`.
pub(super) fn actions(reply: &Reply) -> Read<Vec<CodeAction>> {
    list::<Value>(reply)?.into_iter().map(read_action).collect()
}

/// A `CodeAction`, or a bare `Command`.
pub(super) fn action(reply: &Reply) -> Read<CodeAction> {
    reply.read::<Value>().and_then(read_action)
}

fn read_action(wire: Value) -> Read<CodeAction> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wire {
        title: String,
        kind: Option<String>,
        is_preferred: Option<bool>,
        disabled: Option<Disabled>,
        edit: Option<WorkspaceEdit>,
    }
    #[derive(Deserialize)]
    struct Disabled {
        reason: String,
    }
    let read = Wire::deserialize(&wire)?;
    // The `command` of an action is an object, that of a bare command its name.
    let command = match &wire["command"] {
        Value::String(name) => {
            Some(ServerCommand { name: name.clone(), arguments: wire["arguments"].clone() })
        }
        Value::Object(command) => command.get("command").and_then(Value::as_str).map(|name| ServerCommand {
            name: name.to_owned(),
            arguments: command.get("arguments").cloned().unwrap_or_default(),
        }),
        _ => None,
    };
    Ok(CodeAction {
        title: read.title,
        kind: read.kind,
        preferred: read.is_preferred.unwrap_or(false),
        disabled: read.disabled.map(|disabled| disabled.reason),
        edit: read.edit,
        command,
        wire,
    })
}

/// Any answer whose content is no matter.
pub(super) fn done(_: &Reply) -> Read<()> {
    Ok(())
}

/// A position, for a request.
pub(super) fn wire_position(position: Position) -> Value {
    serde_json::json!({"line": position.line, "character": position.column})
}

/// A range, for a request.
pub(super) fn wire_range(range: Range) -> Value {
    serde_json::json!({"start": wire_position(range.start), "end": wire_position(range.end)})
}

/// A diagnostic, for a request.
pub(super) fn wire_diagnostic(found: &Diagnostic) -> Value {
    let severity = match found.severity {
        Severity::Error => 1,
        Severity::Warning => 2,
        Severity::Information => 3,
        Severity::Hint => 4,
    };
    let mut wire = serde_json::json!({
        "range": wire_range(found.range), "severity": severity, "message": found.message,
    });
    for (name, value) in [("code", &found.code), ("source", &found.source)] {
        if let Some(value) = value {
            wire[name] = value.as_str().into();
        }
    }
    wire
}

fn list<T: serde::de::DeserializeOwned>(reply: &Reply) -> Read<Vec<T>> {
    reply.read::<Option<Vec<T>>>().map(Option::unwrap_or_default)
}

fn listing<T>(items: impl Iterator<Item = Option<T>>) -> Listing<T> {
    let mut listing = Listing { items: Vec::new(), skipped: 0 };
    for item in items {
        match item {
            Some(item) => listing.items.push(item),
            None => listing.skipped += 1,
        }
    }
    listing
}

fn range(wire: WireRange) -> Range {
    let position = |wire: WirePosition| Position::new(wire.line, wire.character);
    Range::new(position(wire.start), position(wire.end))
}

fn path(uri: &str) -> Option<AbsPath> {
    FileUri::parse_path(uri).ok()
}

/// `None` when it is not in a local file, or in no certain place of it.
fn place(wire: WirePlace) -> Option<Place> {
    let path = path(&wire.uri.or(wire.target_uri)?)?;
    let range = range(wire.range.or(wire.target_selection_range)?);
    Some(Place { path, range })
}

fn hover_part(part: Value) -> Read<String> {
    let text = |member: &str| part.get(member).and_then(Value::as_str);
    if let Value::String(text) = part {
        return Ok(text);
    }
    let value = text("value").ok_or_else(|| missing("a part of a hover has no `value`"))?;
    Ok(match text("language") {
        Some(language) if !value.is_empty() => format!("```{language}\n{value}\n```"),
        _ => value.to_owned(),
    })
}

fn symbol(wire: WireSymbol) -> Read<Symbol> {
    let deprecated = is_deprecated(&wire);
    let all = wire.range.or(wire.location.and_then(|location| location.range));
    let all = range(all.ok_or_else(|| missing("a symbol has no range"))?);
    Ok(Symbol {
        name: wire.name,
        detail: wire.detail.filter(|detail| !detail.is_empty()),
        kind: SymbolKind(wire.kind),
        range: all,
        selection_range: wire.selection_range.map_or(all, range),
        deprecated,
        container: wire.container_name.filter(|name| !name.is_empty()),
        children: wire.children.unwrap_or_default().into_iter().map(symbol).collect::<Read<_>>()?,
    })
}

fn is_deprecated(wire: &WireSymbol) -> bool {
    wire.deprecated == Some(true) || wire.tags.as_ref().is_some_and(|tags| tags.contains(&1))
}

fn call_item(wire: Value) -> Read<Option<CallItem>> {
    let item = WireCallItem::deserialize(&wire)?;
    Ok(path(&item.uri).map(|path| CallItem {
        name: item.name,
        detail: item.detail.filter(|detail| !detail.is_empty()),
        kind: SymbolKind(item.kind),
        path,
        range: range(item.range),
        selection_range: range(item.selection_range),
        wire,
    }))
}

fn tag(number: u32) -> Option<DiagnosticTag> {
    match number {
        1 => Some(DiagnosticTag::Unnecessary),
        2 => Some(DiagnosticTag::Deprecated),
        _ => None,
    }
}

fn missing(what: &str) -> serde_json::Error {
    serde::de::Error::custom(what)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The readers, of values.
    macro_rules! readers {
        ($($name:ident: $read:ty),* $(,)?) => {
            $(fn $name(value: Value) -> Read<$read> {
                super::$name(&value.into())
            })*
        };
    }

    readers! {
        places: Listing<Place>, hover: Option<HoverText>, symbols: Vec<Symbol>,
        workspace_symbols: Listing<WorkspaceSymbol>, call_items: Listing<CallItem>, calls: Listing<Call>,
        diagnostics: Listing<Diagnostic>, renamable: Option<Renamable>, actions: Vec<CodeAction>,
    }

    fn wire(line: u32) -> Value {
        json!({"start": {"line": line, "character": 1}, "end": {"line": line, "character": 4}})
    }

    fn at(line: u32) -> Range {
        Range::new(Position::new(line, 1), Position::new(line, 4))
    }

    fn file(name: &str) -> AbsPath {
        AbsPath::new(name).unwrap()
    }

    #[test]
    fn the_forms_of_a_rename_that_is_offered() {
        let read = |value| renamable(value).unwrap().map(|found| found.range);
        assert_eq!(read(wire(1)), Some(Some(at(1))));
        assert_eq!(read(json!({"range": wire(1), "placeholder": "x"})), Some(Some(at(1))));
        assert_eq!(read(json!({"defaultBehavior": true})), Some(None));
        assert_eq!((read(json!({"defaultBehavior": false})), read(Value::Null)), (None, None));
    }

    #[test]
    fn actions_and_bare_commands() {
        let command = json!({"title": "t", "command": "c", "arguments": [1]});
        let found = actions(json!([
            command, {"title": "a", "kind": "quickfix", "command": command, "disabled": {"reason": "no"}},
            {"title": "e", "edit": {"changes": {}}, "isPreferred": true},
        ]))
        .unwrap();
        let command = ServerCommand { name: "c".to_owned(), arguments: json!([1]) };
        assert_eq!((&found[0].command, &found[1].command), (&Some(command.clone()), &Some(command)));
        assert_eq!(found[1].disabled.as_deref(), Some("no"));
        assert!(found[2].edit.is_some() && found[2].preferred && found[2].command.is_none());
        assert_eq!(found.iter().map(CodeAction::may_be_resolved).collect::<Vec<_>>(), [false, true, false]);
    }

    #[test]
    fn the_four_forms_of_a_definition() {
        let expected = |line| Place { path: file("/w/a b.py"), range: at(line) };
        let location = json!({"uri": "file:///w/a%20b.py", "range": wire(1)});
        assert_eq!(places(location.clone()).unwrap().items, [expected(1)]);
        assert_eq!(places(json!([location])).unwrap().items, [expected(1)]);
        let link = json!({
            "targetUri": "file:///w/a b.py", "targetRange": wire(2), "targetSelectionRange": wire(3),
        });
        assert_eq!(places(json!([link])).unwrap().items, [expected(3)]);
        assert!(places(Value::Null).unwrap().items.is_empty());
    }

    #[test]
    fn what_is_in_no_local_file_is_counted() {
        let found = places(json!([
            {"uri": "untitled:1", "range": wire(1)}, {"uri": "file:///w/%zz", "range": wire(1)},
            {"uri": "file:///w/a.py", "range": wire(1)}, {"range": wire(1)},
        ]));
        let found = found.unwrap();
        assert_eq!((found.items.len(), found.skipped), (1, 3));
    }

    #[test]
    fn answers_of_another_form_are_errors() {
        assert!(places(json!("x")).is_err());
        assert!(
            places(json!([{"uri": "file:///a", "range": {"start": {"line": -1, "character": 0}}}])).is_err()
        );
        assert!(hover(json!({"contents": 1})).is_err());
        assert!(symbols(json!([{"name": "x", "kind": 5}])).is_err());
        assert!(calls(json!([{"fromRanges": []}])).is_err());
        assert!(diagnostics(json!({"kind": "unchanged", "resultId": "1"})).is_err());
    }

    #[test]
    fn the_forms_of_a_hover() {
        let text =
            |contents: Value| hover(json!({"contents": contents})).unwrap().map(|hover| hover.markdown);
        assert_eq!(text(json!({"kind": "markdown", "value": "*x*"})).as_deref(), Some("*x*"));
        assert_eq!(text(json!("x")).as_deref(), Some("x"));
        assert_eq!(
            text(json!([{"language": "python", "value": "x: int"}, "", "doc"])).as_deref(),
            Some("```python\nx: int\n```\n\ndoc")
        );
        assert_eq!(text(json!([])), None);
        assert_eq!(hover(Value::Null).unwrap(), None);
        let ranged = hover(json!({"contents": "x", "range": wire(7)})).unwrap().unwrap();
        assert_eq!(ranged.range, Some(at(7)));
    }

    #[test]
    fn symbols_as_a_tree_and_as_a_list() {
        let tree = json!([{
            "name": "C", "kind": 5, "range": wire(1), "selectionRange": wire(2), "tags": [1],
            "children": [{"name": "m", "kind": 6, "range": wire(3), "selectionRange": wire(3), "detail": ""}],
        }]);
        let tree = symbols(tree).unwrap();
        assert_eq!((tree[0].range, tree[0].selection_range), (at(1), at(2)));
        assert!(tree[0].deprecated && !tree[0].children[0].deprecated);
        assert_eq!((tree[0].children[0].name.as_str(), &tree[0].children[0].detail), ("m", &None));
        let flat = symbols(json!([{
            "name": "m", "kind": 6, "containerName": "C", "location": {"uri": "file:///a.py", "range": wire(3)},
        }]));
        let flat = flat.unwrap();
        assert_eq!((flat[0].range, flat[0].container.as_deref()), (at(3), Some("C")));
    }

    #[test]
    fn workspace_symbols_without_a_place_are_counted() {
        let found = workspace_symbols(json!([
            {"name": "a", "kind": 12, "location": {"uri": "file:///a.py", "range": wire(1)}, "containerName": ""},
            {"name": "b", "kind": 12, "location": {"uri": "file:///a.py"}},
        ]));
        let found = found.unwrap();
        assert_eq!((found.items.len(), found.skipped), (1, 1));
        assert_eq!(found.items[0].container, None);
    }

    #[test]
    fn call_items_keep_what_the_server_wants_back() {
        let item = json!({
            "name": "f", "kind": 12, "uri": "file:///a.py", "range": wire(1), "selectionRange": wire(2),
            "data": {"x": [1]},
        });
        let read = call_items(json!([item])).unwrap();
        assert_eq!(read.items[0].wire, item);
        let incoming = calls(json!([{"from": item, "fromRanges": [wire(5), wire(6)]}])).unwrap();
        assert_eq!(incoming.items[0].ranges, [at(5), at(6)]);
        let outgoing = calls(json!([{"to": item, "fromRanges": []}])).unwrap();
        assert_eq!(outgoing.items[0].item, read.items[0]);
    }

    #[test]
    fn everything_a_diagnostic_says() {
        let read = diagnostics(json!({"kind": "full", "resultId": "4", "items": [
            {
                "range": wire(1), "severity": 4, "code": "reportUnused", "source": "Pyright",
                "codeDescription": {"href": "https://example.org/rule"}, "message": "m", "tags": [1, 2, 99],
                "relatedInformation": [
                    {"location": {"uri": "file:///b.py", "range": wire(2)}, "message": "here"},
                    {"location": {"uri": "vscode-notebook-cell:b", "range": wire(2)}, "message": "there"},
                ],
            },
            {"range": wire(3), "code": 12, "message": "n"},
        ]}));
        let read = read.unwrap();
        let related =
            Related { place: Place { path: file("/b.py"), range: at(2) }, message: "here".to_owned() };
        let first = Diagnostic {
            range: at(1),
            severity: Severity::Hint,
            code: Some("reportUnused".to_owned()),
            code_description: Some("https://example.org/rule".to_owned()),
            source: Some("Pyright".to_owned()),
            message: "m".to_owned(),
            tags: vec![DiagnosticTag::Unnecessary, DiagnosticTag::Deprecated],
            related: vec![related],
        };
        assert_eq!((&read.items[0], read.skipped), (&first, 1));
        assert_eq!((read.items[1].code.as_deref(), read.items[1].severity), (Some("12"), Severity::Error));
    }
}
