//! `calls`: the call hierarchy, breadth first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use super::completeness;
use super::context::{HandlerOutput, RequestContext};
use super::failure::Failure;
use super::occurrences::{Evidence, Named, explain, offset_of};
use super::positions::{no_result, position};
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::{self, LspCallItem, LspLocation};
use crate::model::facts::{
    Call, Completeness, CompletenessStatus, Facts, Location, Provenance, Symbol, UnresolvedOccurrence,
};
use crate::model::request::Direction;
use crate::path::AbsPath;
use crate::python::outline::Span;
use crate::python::usage::{TokenUse, Usage};
use crate::text::{Position, Range};
use crate::workspace::files::Document;

/// Answers `calls`.
pub(super) async fn calls(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let capabilities = cx.require("callHierarchy", cx.server.client.capabilities().call_hierarchy)?;
    let target = cx.state.target()?;
    let options = &cx.request.options;
    let direction = options.direction.unwrap_or(Direction::Incoming);
    let target_path = &target.document.path;
    match (direction, target.name()) {
        (Direction::Incoming, Some(name)) => {
            drop(completeness::open_files_with_names(cx, &[name], &[target_path])?);
        }
        _ => drop(cx.open([target_path.clone()])?),
    }
    let requests = cx.requests();
    let roots = requests.prepare_call_hierarchy(target_path, position(cx, target)).await?.items;
    if roots.is_empty() {
        return Err(no_result(cx, target));
    }
    let mut found = Vec::new();
    let mut completeness: Option<Completeness> = None;
    let mut is_late = false;
    let mut seen: BTreeSet<(AbsPath, Range)> = roots.iter().map(item_key).collect();
    let mut queue: VecDeque<(LspCallItem, u32)> = roots.into_iter().map(|item| (item, 1)).collect();
    while let Some((item, depth)) = queue.pop_front() {
        cx.settings.progress.step(&format!("calls of {}", item.name));
        let edges = match direction {
            Direction::Incoming => {
                let (edges, verdict, late) = incoming(cx, &item).await?;
                completeness = Some(worse_of(completeness, verdict));
                is_late |= late;
                edges
            }
            Direction::Outgoing => {
                let edges = outgoing(cx, &item).await?;
                edges.into_iter().map(|edge| CallEdge { edge, evidence: BTreeMap::new() }).collect()
            }
        };
        for edge in edges {
            found.push(call(cx, direction, depth, &item, &edge));
            let other = edge.edge.item;
            if depth < options.depth.unwrap_or(1) && !other.is_module() && seen.insert(item_key(&other)) {
                queue.push_back((other, depth + 1));
            }
        }
    }
    sort(&mut found);
    let unresolved =
        completeness.iter_mut().flat_map(|verdict| std::mem::take(&mut verdict.unresolved.items));
    let all = found
        .into_iter()
        .map(|call| CallsItem::Call(Box::new(call)))
        .chain(unresolved.map(CallsItem::Unresolved))
        .collect();
    let (part, limits) = page(all, options.limit, options.cursor.as_deref())?;
    let (mut found, mut unresolved) = (Vec::new(), Vec::new());
    for item in part {
        match item {
            CallsItem::Call(item) => found.push(*item),
            CallsItem::Unresolved(item) => unresolved.push(item),
        }
    }
    if let Some(verdict) = &mut completeness {
        verdict.unresolved.items = unresolved;
    }
    let mut facts = Facts::new(Provenance::Lsp);
    facts.calls = Some(found);
    facts.completeness = completeness;
    let error = is_late.then(|| cx.timeout_error());
    Ok(HandlerOutput { facts, limits: Some(limits), capabilities, refactored: None, error })
}

/// One item of the answer: calls first, then unresolved occurrences. One cursor covers both.
#[derive(Serialize)]
#[serde(untagged)]
enum CallsItem {
    Call(Box<Call>),
    Unresolved(UnresolvedOccurrence),
}

/// The calls between two functions, and the evidence for those that the server does not report.
struct CallEdge {
    edge: lsp::LspCall,
    evidence: BTreeMap<Range, Evidence>,
}

/// The worse of two verdicts, with the unresolved occurrences of both.
fn worse_of(first: Option<Completeness>, second: Completeness) -> Completeness {
    let Some(mut first) = first else { return second };
    let rank = |status: CompletenessStatus| match status {
        CompletenessStatus::Complete => 0,
        CompletenessStatus::Partial => 1,
        CompletenessStatus::Unknown => 2,
    };
    if rank(second.status) > rank(first.status) {
        (first.status, first.reason) = (second.status, second.reason);
    }
    first.files_with_name += second.files_with_name;
    first.files_searched += second.files_searched;
    first.unresolved.count += second.unresolved.count;
    first.unresolved.items.extend(second.unresolved.items);
    sort(&mut first.unresolved.items);
    first
}

/// The calls of an item: those that the server reports, and the calls among the other known references.
async fn incoming(
    cx: &RequestContext<'_>,
    item: &LspCallItem,
) -> Result<(Vec<CallEdge>, Completeness, bool), Failure> {
    let requests = cx.requests();
    let mut searched = completeness::open_files_with_names(cx, &[&item.name], &[&item.path])?;
    let claimed = requests.incoming_calls(item).await?.items;
    let mut edges: Vec<CallEdge> =
        claimed.into_iter().map(|edge| CallEdge { edge, evidence: BTreeMap::new() }).collect();
    let unknown = LspLocation { path: item.path.clone(), range: item.selection_range };
    let Some((document, offset)) = offset_of(cx, &unknown) else {
        return Ok((edges, searched.of_files(cx), false));
    };
    let references = requests.references(&item.path, item.selection_range.start, true).await?;
    let named = Named { name: &item.name, document: &document, offset, family: &[] };
    let mut explained = Box::pin(explain(cx, named, &mut searched, references)).await?;
    // An occurrence that is not called is irrelevant here.
    explained
        .unresolved
        .retain(|one| !one.token.kind.is_token() || one.token.syntax().used == TokenUse::Called);
    let mut known: BTreeSet<(AbsPath, Position)> = BTreeSet::new();
    for CallEdge { edge, .. } in &edges {
        known.extend(edge.ranges.iter().map(|range| (edge.item.path.clone(), range.start)));
    }
    for (place, evidence) in &explained.references {
        if known.contains(&(place.path.clone(), place.range.start)) {
            continue;
        }
        let Some((document, offset)) = offset_of(cx, place) else { continue };
        let usage = Usage::of(&document.text);
        if usage.of_token(offset) != TokenUse::Called {
            continue;
        }
        let caller = caller(cx, &document, usage.enclosing_functions(offset)).await?;
        let at = edges.iter().position(|other| item_key(&other.edge.item) == item_key(&caller));
        let at = at.unwrap_or_else(|| {
            edges.push(CallEdge {
                edge: lsp::LspCall { item: caller, ranges: Vec::new() },
                evidence: BTreeMap::new(),
            });
            edges.len() - 1
        });
        edges[at].edge.ranges.push(place.range);
        edges[at].evidence.insert(place.range, evidence.clone());
    }
    cx.require_fresh_outside_workspace(edges.iter().map(|edge| &edge.edge.item.path))?;
    edges.sort_by_key(|edge| item_key(&edge.edge.item));
    let mut verdict = completeness::verdict(cx, &searched, &explained);
    verdict.explained = None;
    Ok((edges, verdict, explained.is_late))
}

/// The function that contains a call, as the server's item, or the module.
async fn caller(
    cx: &RequestContext<'_>,
    document: &Document,
    around: Vec<Span>,
) -> Result<LspCallItem, Failure> {
    if let Some(function) = around.first() {
        let at = document.lines.position(&document.text, function.start, cx.locations.server_unit);
        let found = cx.requests().prepare_call_hierarchy(&document.path, at).await?.items;
        if let Some(item) = found.into_iter().find(|item| item.path == document.path) {
            return Ok(item);
        }
    }
    Ok(LspCallItem::module(document.path.clone()))
}

/// The calls that an item makes, in the order of their locations.
async fn outgoing(cx: &RequestContext<'_>, item: &LspCallItem) -> Result<Vec<lsp::LspCall>, Failure> {
    if cx.state.is_in_workspace(&item.path) {
        cx.open([item.path.clone()])?;
    }
    let mut found = cx.requests().outgoing_calls(item).await?.items;
    found.sort_by_key(|edge| item_key(&edge.item));
    Ok(found)
}

fn item_key(item: &LspCallItem) -> (AbsPath, Range) {
    (item.path.clone(), item.selection_range)
}

fn call(
    cx: &RequestContext<'_>,
    direction: Direction,
    depth: u32,
    item: &LspCallItem,
    edge: &CallEdge,
) -> Call {
    let CallEdge { edge, evidence } = edge;
    let (caller, callee) = match direction {
        Direction::Incoming => (&edge.item, item),
        Direction::Outgoing => (item, &edge.item),
    };
    let site = |range: &Range| {
        let location = cx.locations.location(&LspLocation { path: caller.path.clone(), range: *range });
        match evidence.get(range) {
            Some(evidence) => {
                Location { provenance: evidence.provenance, via: evidence.via.clone(), ..location }
            }
            None => location,
        }
    };
    let mut sites = edge.ranges.iter().map(site).collect();
    sort(&mut sites);
    Call { direction, depth, caller: symbol_of(cx, caller), callee: symbol_of(cx, callee), sites }
}

fn symbol_of(cx: &RequestContext<'_>, item: &LspCallItem) -> Symbol {
    let (uri, at, preview) = cx.locations.describe(&item.path, item.selection_range);
    Symbol {
        name: item.name.clone(),
        container: None,
        symbol_kind: item.kind.name().to_owned(),
        uri,
        range: item.range,
        selection_range: Some(item.selection_range),
        at,
        symbol_id: cx.locations.symbol_id(&item.path, item.selection_range),
        preview,
    }
}
