//! The call hierarchy and the type hierarchy. Their items have the same members.

use lsp_types as lsp;
use serde_json::{Value, json};

use super::convert::symbol_kind;
use super::requests::{Canceled, LspOutcome, RequestHandler};
use super::{codes, failed, of_body};
use crate::lsp::jsonrpc::ResponseError;
use crate::model::bundle::Bundle;
use crate::model::error::ErrorBody;
use crate::model::facts::Symbol;
use crate::model::request::{Command, Direction, TypeDirection};

impl RequestHandler<'_> {
    /// The definition at a position as the root of a hierarchy, if it has this kind.
    pub(super) async fn hierarchy_root(
        &self,
        at: lsp::TextDocumentPositionParams,
        only: Option<lsp::SymbolKind>,
        mut canceled: Canceled<'_>,
    ) -> LspOutcome {
        let request = self.request_at(Command::Definition, &at)?;
        let Some((bundle, facts)) = self.facts_if_any(request, canceled.as_mut()).await? else {
            return Ok(Value::Null);
        };
        let mut items = Vec::new();
        for definition in facts.definitions.iter().flatten() {
            let place = self.converter(&bundle).await.place(&definition.uri, definition.range);
            let place = place.map_err(|error| of_body(&error))?;
            let selector = self.cursor(definition.uri.clone(), place.range.start);
            let located = self.run(self.request(Command::Locate, Some(selector)), canceled.as_mut()).await?;
            let resolved = located.resolution.and_then(|resolution| resolution.resolved);
            let Some((name, kind)) = resolved.and_then(|found| Some((found.qualname?, found.symbol_kind?)))
            else {
                continue;
            };
            let kind = symbol_kind(&kind);
            if only.is_some_and(|only| only != kind) {
                continue;
            }
            let (module, name) = name.split_once(':').unwrap_or(("", &name));
            items.push(lsp::CallHierarchyItem {
                name: name.rsplit('.').next().unwrap_or(name).to_owned(),
                kind,
                tags: None,
                detail: Some(format!("{module}:{name}")),
                uri: place.uri,
                range: place.range,
                selection_range: place.range,
                data: None,
            });
        }
        Ok(if items.is_empty() { Value::Null } else { json!(items) })
    }

    pub(super) async fn calls(
        &self,
        direction: Direction,
        item: &lsp::CallHierarchyItem,
        canceled: Canceled<'_>,
    ) -> LspOutcome {
        let at = start_of(&item.uri, item.selection_range);
        if is_module(item.kind) {
            // Its place is that of the first token, which may name something.
            return match direction {
                Direction::Incoming => Ok(json!([])),
                Direction::Outgoing => Err(failed(
                    codes::REQUEST_FAILED,
                    "the calls that a module's own code makes are not listed",
                )),
            };
        }
        let mut request = self.request_at(Command::Calls, &at)?;
        request.options.direction = Some(direction);
        let (bundle, facts) = self.facts(request, canceled).await?;
        is_still_there(&bundle, &item.name)?;
        let calls = facts.calls.as_deref().unwrap_or_default();
        let mut converter = self.converter(&bundle).await;
        let converted: Result<Vec<Value>, ErrorBody> = calls
            .iter()
            .map(|call| {
                let sites = converter.locations(&call.sites)?;
                let ranges: Vec<lsp::Range> = sites.into_iter().map(|site| site.range).collect();
                let mut end = |symbol: &Symbol| converter.hierarchy_item(symbol);
                Ok(match direction {
                    Direction::Incoming => json!({"from": end(&call.caller)?, "fromRanges": ranges}),
                    Direction::Outgoing => json!({"to": end(&call.callee)?, "fromRanges": ranges}),
                })
            })
            .collect();
        let converted = converted.map_err(|error| of_body(&error))?;
        self.report(&facts, &at, converted.len(), &mut converter)?;
        Ok(json!(converted))
    }

    /// The classes directly above or below a class.
    pub(super) async fn types(
        &self,
        direction: TypeDirection,
        item: &lsp::TypeHierarchyItem,
        canceled: Canceled<'_>,
    ) -> LspOutcome {
        let at = start_of(&item.uri, item.selection_range);
        let mut request = self.request_at(Command::TypeHierarchy, &at)?;
        request.options.types = Some(direction);
        let (bundle, facts) = self.facts(request, canceled).await?;
        is_still_there(&bundle, &item.name)?;
        let mut converter = self.converter(&bundle).await;
        let edges = facts.types.as_deref().unwrap_or_default().iter();
        let items: Result<Vec<_>, ErrorBody> = edges
            .map(|edge| match direction {
                TypeDirection::Supertypes => converter.hierarchy_item(&edge.supertype),
                TypeDirection::Subtypes => converter.hierarchy_item(&edge.subtype),
            })
            .collect();
        let items = items.map_err(|error| of_body(&error))?;
        self.report(&facts, &at, items.len(), &mut converter)?;
        Ok(json!(items))
    }
}

/// An error if the file changed since the client got the item, so that another definition is in its place.
fn is_still_there(bundle: &Bundle, name: &str) -> Result<(), ResponseError> {
    let resolved = bundle.resolution.as_ref().and_then(|resolution| resolution.resolved.as_ref());
    let Some(found) = resolved.and_then(|resolved| resolved.qualname.as_deref()) else { return Ok(()) };
    if found.rsplit(['.', ':']).next() == Some(name) {
        return Ok(());
    }
    Err(failed(
        codes::CONTENT_MODIFIED,
        &format!("`{found}` is now where `{name}` was: prepare the hierarchy again"),
    ))
}

fn is_module(kind: lsp::SymbolKind) -> bool {
    matches!(kind, lsp::SymbolKind::MODULE | lsp::SymbolKind::FILE)
}

/// The position of the name of an item.
fn start_of(uri: &lsp::Uri, name: lsp::Range) -> lsp::TextDocumentPositionParams {
    lsp::TextDocumentPositionParams::new(lsp::TextDocumentIdentifier::new(uri.clone()), name.start)
}
