//! Converts LSP results into the plain types of [`super::results`]. The only module that knows the forms of LSP
//! results.
//!
//! The structs are not those of `lsp_types`, which rejects a whole message for one URI that it cannot parse, and
//! everything that is newer than LSP 3.17. URIs stay text until they are decoded; items outside of local files are
//! counted and left out. Members that LSP requires are required here, all others may be missing or `null`.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::jsonrpc::RawResult;
use super::results::{
    CodeAction, DiagnosticTag, HoverText, Listing, LspCall, LspCallItem, LspCommand, LspDiagnostic,
    LspLocation, LspSeverity, LspSymbol, RelatedLocation, RenameTarget, SymbolKind, WorkspaceSymbol,
    module_name,
};
use crate::model::edits::WorkspaceEdit;
use crate::path::{AbsPath, FileUri};
use crate::text::{Position, Range};

type JsonResult<T> = Result<T, serde_json::Error>;

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
struct WireLocation {
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
    location: Option<WireLocation>,
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
struct WireHighlight {
    range: WireRange,
}

#[derive(Deserialize)]
struct WireCodeDescription {
    href: String,
}

#[derive(Deserialize)]
struct WireRelated {
    location: WireLocation,
    message: String,
}

/// Locations, converted while they are parsed: there can be a hundred thousand.
struct LocationList(Listing<LspLocation>);

impl<'de> Deserialize<'de> for LocationList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LocationsVisitor;

        impl<'de> Visitor<'de> for LocationsVisitor {
            type Value = LocationList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a location, a list of locations or null")
            }

            fn visit_unit<E>(self) -> Result<LocationList, E> {
                Ok(LocationList(listing(std::iter::empty())))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LocationList, A::Error> {
                let wire = WireLocation::deserialize(MapAccessDeserializer::new(map))?;
                Ok(LocationList(listing(std::iter::once(location(wire)))))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<LocationList, A::Error> {
                let mut locations = listing(std::iter::empty());
                // Locations of one file follow each other.
                let mut last: Option<(String, Option<AbsPath>)> = None;
                while let Some(wire) = sequence.next_element::<WireLocation>()? {
                    let range_found = wire.range.or(wire.target_selection_range);
                    let Some((uri, range_found)) = wire.uri.or(wire.target_uri).zip(range_found) else {
                        locations.skipped += 1;
                        continue;
                    };
                    if last.as_ref().is_none_or(|(before, _)| *before != uri) {
                        let path = path(&uri);
                        last = Some((uri, path));
                    }
                    match last.as_ref().and_then(|(_, path)| path.clone()) {
                        Some(path) => locations.items.push(LspLocation { path, range: range(range_found) }),
                        None => locations.skipped += 1,
                    }
                }
                Ok(LocationList(locations))
            }
        }

        deserializer.deserialize_any(LocationsVisitor)
    }
}

/// `Location`, `Location[]`, `LocationLink[]` or `null`.
pub(super) fn locations(reply: &RawResult) -> JsonResult<Listing<LspLocation>> {
    reply.read::<LocationList>().map(|locations| locations.0)
}

/// The ranges of a `DocumentHighlight[]` or `null`.
pub(super) fn highlights(reply: &RawResult) -> JsonResult<Vec<Range>> {
    Ok(list::<WireHighlight>(reply)?.into_iter().map(|highlight| range(highlight.range)).collect())
}

/// `Hover` or `null`.
pub(super) fn hover(reply: &RawResult) -> JsonResult<Option<HoverText>> {
    let Some(wire) = reply.read::<Option<WireHover>>()? else { return Ok(None) };
    let parts = match wire.contents {
        Value::Array(parts) => parts,
        one => vec![one],
    };
    let parts = parts.into_iter().map(hover_part).collect::<JsonResult<Vec<_>>>()?;
    let markdown = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
    Ok((!markdown.is_empty()).then(|| HoverText { markdown, range: wire.range.map(range) }))
}

/// `DocumentSymbol[]`, `SymbolInformation[]` or `null`.
pub(super) fn symbols(reply: &RawResult) -> JsonResult<Vec<LspSymbol>> {
    let wire = list::<WireSymbol>(reply)?;
    wire.into_iter().map(symbol).collect()
}

/// `SymbolInformation[]`, `WorkspaceSymbol[]` or `null`.
pub(super) fn workspace_symbols(reply: &RawResult) -> JsonResult<Listing<WorkspaceSymbol>> {
    let wire = list::<WireSymbol>(reply)?;
    Ok(listing(wire.into_iter().map(|symbol| {
        Some(WorkspaceSymbol {
            deprecated: is_deprecated(&symbol),
            place: location(symbol.location?)?,
            name: symbol.name,
            kind: SymbolKind(symbol.kind),
            container: symbol.container_name.filter(|name| !name.is_empty()),
        })
    })))
}

/// `CallHierarchyItem[]` or `null`.
pub(super) fn call_items(reply: &RawResult) -> JsonResult<Listing<LspCallItem>> {
    let items = list::<Value>(reply)?.into_iter().map(call_item).collect::<JsonResult<Vec<_>>>()?;
    Ok(listing(items.into_iter()))
}

/// `CallHierarchyIncomingCall[]`, `CallHierarchyOutgoingCall[]` or `null`.
pub(super) fn calls(reply: &RawResult) -> JsonResult<Listing<LspCall>> {
    let mut calls = Vec::new();
    for wire in list::<WireCall>(reply)? {
        let end = wire.from.or(wire.to).ok_or_else(|| missing("a call has neither `from` nor `to`"))?;
        let ranges = wire.from_ranges.into_iter().map(range).collect();
        calls.push(call_item(end)?.map(|item| LspCall { item, ranges }));
    }
    Ok(listing(calls.into_iter()))
}

/// A full `DocumentDiagnosticReport` or `null`. An unchanged report never comes, because no earlier one is referred to.
pub(super) fn diagnostics(reply: &RawResult) -> JsonResult<Listing<LspDiagnostic>> {
    let wire = reply.read::<Option<WireReport>>()?;
    let mut skipped = 0;
    let items = wire.map(|report| report.items).unwrap_or_default();
    let items = items
        .into_iter()
        .map(|wire| {
            let related = listing(wire.related_information.unwrap_or_default().into_iter().map(|related| {
                Some(RelatedLocation { place: location(related.location)?, message: related.message })
            }));
            skipped += related.skipped;
            LspDiagnostic {
                range: range(wire.range),
                severity: match wire.severity {
                    Some(2) => LspSeverity::Warning,
                    Some(3) => LspSeverity::Information,
                    Some(4) => LspSeverity::Hint,
                    _ => LspSeverity::Error,
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
pub(super) fn renamable(reply: &RawResult) -> JsonResult<Option<RenameTarget>> {
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
    Ok(accepted.then_some(RenameTarget { range: found, placeholder: wire.placeholder }))
}

/// `WorkspaceEdit` or `null`.
pub(super) fn edit(reply: &RawResult) -> JsonResult<Option<WorkspaceEdit>> {
    reply.read()
}

/// `(Command | CodeAction)[]` or `null`.
pub(super) fn actions(reply: &RawResult) -> JsonResult<Vec<CodeAction>> {
    list::<Value>(reply)?.into_iter().map(read_action).collect()
}

/// A `CodeAction`, or a bare `Command`.
pub(super) fn action(reply: &RawResult) -> JsonResult<CodeAction> {
    reply.read::<Value>().and_then(read_action)
}

fn read_action(wire: Value) -> JsonResult<CodeAction> {
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
    // In an action, `command` is an object; in a bare command, it is the command's name.
    let command = match &wire["command"] {
        Value::String(name) => {
            Some(LspCommand { name: name.clone(), arguments: arguments(wire.get("arguments")) })
        }
        Value::Object(command) => command
            .get("command")
            .and_then(Value::as_str)
            .map(|name| LspCommand { name: name.to_owned(), arguments: arguments(command.get("arguments")) }),
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

/// The arguments of a command; a missing list is empty.
fn arguments(wire: Option<&Value>) -> Vec<Value> {
    wire.and_then(Value::as_array).cloned().unwrap_or_default()
}

/// A result whose content is not needed.
pub(super) fn ignore_result(_: &RawResult) -> JsonResult<()> {
    Ok(())
}

fn list<T: serde::de::DeserializeOwned>(reply: &RawResult) -> JsonResult<Vec<T>> {
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

/// `None` when it is not in a local file or has no range.
fn location(wire: WireLocation) -> Option<LspLocation> {
    let path = path(&wire.uri.or(wire.target_uri)?)?;
    let range = range(wire.range.or(wire.target_selection_range)?);
    Some(LspLocation { path, range })
}

fn hover_part(part: Value) -> JsonResult<String> {
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

fn symbol(wire: WireSymbol) -> JsonResult<LspSymbol> {
    let deprecated = is_deprecated(&wire);
    let all = wire.range.or(wire.location.and_then(|location| location.range));
    let all = range(all.ok_or_else(|| missing("a symbol has no range"))?);
    Ok(LspSymbol {
        name: wire.name,
        detail: wire.detail.filter(|detail| !detail.is_empty()),
        kind: SymbolKind(wire.kind),
        range: all,
        selection_range: wire.selection_range.map_or(all, range),
        deprecated,
        container: wire.container_name.filter(|name| !name.is_empty()),
        children: wire.children.unwrap_or_default().into_iter().map(symbol).collect::<JsonResult<_>>()?,
    })
}

fn is_deprecated(wire: &WireSymbol) -> bool {
    wire.deprecated == Some(true) || wire.tags.as_ref().is_some_and(|tags| tags.contains(&1))
}

fn call_item(wire: Value) -> JsonResult<Option<LspCallItem>> {
    let item = WireCallItem::deserialize(&wire)?;
    Ok(path(&item.uri).map(|path| {
        let item = LspCallItem {
            name: item.name,
            detail: item.detail.filter(|detail| !detail.is_empty()),
            kind: SymbolKind(item.kind),
            path,
            range: range(item.range),
            selection_range: range(item.selection_range),
            wire,
        };
        if item.is_module() { LspCallItem { name: module_name(&item.path), ..item } } else { item }
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

    /// Wrappers of the converters that take values.
    macro_rules! readers {
        ($($name:ident: $read:ty),* $(,)?) => {
            $(fn $name(value: Value) -> JsonResult<$read> {
                super::$name(&value.into())
            })*
        };
    }

    readers! {
        locations: Listing<LspLocation>, hover: Option<HoverText>, symbols: Vec<LspSymbol>,
        workspace_symbols: Listing<WorkspaceSymbol>, call_items: Listing<LspCallItem>, calls: Listing<LspCall>,
        diagnostics: Listing<LspDiagnostic>, renamable: Option<RenameTarget>, actions: Vec<CodeAction>,
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
    fn the_forms_of_prepare_rename() {
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
        let command = LspCommand { name: "c".to_owned(), arguments: vec![json!(1)] };
        assert_eq!((&found[0].command, &found[1].command), (&Some(command.clone()), &Some(command)));
        assert_eq!(found[1].disabled.as_deref(), Some("no"));
        assert!(found[2].edit.is_some() && found[2].preferred && found[2].command.is_none());
        assert_eq!(found.iter().map(CodeAction::may_be_resolved).collect::<Vec<_>>(), [false, true, false]);
    }

    #[test]
    fn the_four_forms_of_a_definition() {
        let expected = |line| LspLocation { path: file("/w/a b.py"), range: at(line) };
        let location = json!({"uri": "file:///w/a%20b.py", "range": wire(1)});
        assert_eq!(locations(location.clone()).unwrap().items, [expected(1)]);
        assert_eq!(locations(json!([location])).unwrap().items, [expected(1)]);
        let link = json!({
            "targetUri": "file:///w/a b.py", "targetRange": wire(2), "targetSelectionRange": wire(3),
        });
        assert_eq!(locations(json!([link])).unwrap().items, [expected(3)]);
        assert!(locations(Value::Null).unwrap().items.is_empty());
    }

    #[test]
    fn locations_outside_of_local_files_are_counted() {
        let found = locations(json!([
            {"uri": "untitled:1", "range": wire(1)}, {"uri": "file:///w/%zz", "range": wire(1)},
            {"uri": "file:///w/a.py", "range": wire(1)}, {"range": wire(1)},
        ]));
        let found = found.unwrap();
        assert_eq!((found.items.len(), found.skipped), (1, 3));
    }

    #[test]
    fn results_of_another_form_are_errors() {
        assert!(locations(json!("x")).is_err());
        assert!(
            locations(json!([{"uri": "file:///a", "range": {"start": {"line": -1, "character": 0}}}]))
                .is_err()
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
    fn workspace_symbols_without_a_range_are_counted() {
        let found = workspace_symbols(json!([
            {"name": "a", "kind": 12, "location": {"uri": "file:///a.py", "range": wire(1)}, "containerName": ""},
            {"name": "b", "kind": 12, "location": {"uri": "file:///a.py"}},
        ]));
        let found = found.unwrap();
        assert_eq!((found.items.len(), found.skipped), (1, 1));
        assert_eq!(found.items[0].container, None);
    }

    #[test]
    fn call_items_keep_the_data_to_send_back() {
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
    fn every_member_of_a_diagnostic() {
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
        let related = RelatedLocation {
            place: LspLocation { path: file("/b.py"), range: at(2) },
            message: "here".to_owned(),
        };
        let first = LspDiagnostic {
            range: at(1),
            severity: LspSeverity::Hint,
            code: Some("reportUnused".to_owned()),
            code_description: Some("https://example.org/rule".to_owned()),
            source: Some("Pyright".to_owned()),
            message: "m".to_owned(),
            tags: vec![DiagnosticTag::Unnecessary, DiagnosticTag::Deprecated],
            related: vec![related],
        };
        assert_eq!((&read.items[0], read.skipped), (&first, 1));
        assert_eq!((read.items[1].code.as_deref(), read.items[1].severity), (Some("12"), LspSeverity::Error));
    }
}
