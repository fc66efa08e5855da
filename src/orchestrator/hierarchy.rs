//! `calls`: the call hierarchy, breadth first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use super::ask::{Answer, Asking};
use super::completeness;
use super::failure::Failure;
use super::occurrences::{Evidence, Named, explain, offset_of};
use super::query::{nothing_there, position};
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::{self, CallItem, Place};
use crate::model::facts::{
    Call, Completeness, CompletenessStatus, Facts, Location, Provenance, Symbol, UnresolvedUse,
};
use crate::model::request::Direction;
use crate::path::AbsPath;
use crate::resolve::outline::Span;
use crate::resolve::usage::{TokenUse, Usage};
use crate::text::{Position, Range};
use crate::workspace::files::Document;

/// Answers `calls`.
pub(super) async fn calls(asking: &Asking<'_>) -> Result<Answer, Failure> {
    let capabilities = asking.require("callHierarchy", asking.server.client.capabilities().call_hierarchy)?;
    let subject = asking.state.subject()?;
    let options = &asking.request.options;
    let direction = options.direction.unwrap_or(Direction::Incoming);
    let target = &subject.document.path;
    match (direction, subject.name()) {
        (Direction::Incoming, Some(name)) => drop(completeness::make_known(asking, &[name], &[target])?),
        _ => drop(asking.open([target.clone()])?),
    }
    let questions = asking.questions();
    let roots = questions.prepare_call_hierarchy(target, position(asking, subject)).await?.items;
    if roots.is_empty() {
        return Err(nothing_there(asking, subject));
    }
    let mut found = Vec::new();
    let mut completeness: Option<Completeness> = None;
    let mut is_late = false;
    let mut seen: BTreeSet<(AbsPath, Range)> = roots.iter().map(identity).collect();
    let mut queue: VecDeque<(CallItem, u32)> = roots.into_iter().map(|item| (item, 1)).collect();
    while let Some((item, depth)) = queue.pop_front() {
        asking.settings.progress.step(&format!("calls of {}", item.name));
        let edges = match direction {
            Direction::Incoming => {
                let (edges, verdict, late) = incoming(asking, &item).await?;
                completeness = Some(worse(completeness, verdict));
                is_late |= late;
                edges
            }
            Direction::Outgoing => {
                let edges = outgoing(asking, &item).await?;
                edges.into_iter().map(|edge| Edge { edge, evidence: BTreeMap::new() }).collect()
            }
        };
        for edge in edges {
            found.push(call(asking, direction, depth, &item, &edge));
            let other = edge.edge.item;
            if depth < options.depth.unwrap_or(1) && !other.is_module() && seen.insert(identity(&other)) {
                queue.push_back((other, depth + 1));
            }
        }
    }
    sort(&mut found);
    let unresolved =
        completeness.iter_mut().flat_map(|verdict| std::mem::take(&mut verdict.unresolved.items));
    let all = found
        .into_iter()
        .map(|call| Item::Call(Box::new(call)))
        .chain(unresolved.map(Item::Unresolved))
        .collect();
    let (part, limits) = page(all, options.limit, options.cursor.as_deref())?;
    let (mut found, mut unresolved) = (Vec::new(), Vec::new());
    for item in part {
        match item {
            Item::Call(item) => found.push(*item),
            Item::Unresolved(item) => unresolved.push(item),
        }
    }
    if let Some(verdict) = &mut completeness {
        verdict.unresolved.items = unresolved;
    }
    let mut facts = Facts::new(Provenance::Lsp);
    facts.calls = Some(found);
    facts.completeness = completeness;
    let error = is_late.then(|| asking.late());
    Ok(Answer { facts, limits: Some(limits), capabilities, refactored: None, error })
}

/// One item of the answer: first the calls, then what is unresolved; one cursor goes through both.
#[derive(Serialize)]
#[serde(untagged)]
enum Item {
    Call(Box<Call>),
    Unresolved(UnresolvedUse),
}

/// The calls between two functions, and how those are known that the server does not claim.
struct Edge {
    edge: lsp::Call,
    evidence: BTreeMap<Range, Evidence>,
}

/// The worse of two verdicts, with what is unresolved in both.
fn worse(first: Option<Completeness>, second: Completeness) -> Completeness {
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

/// Who calls an item: what the server says, and the calls among the other references that are known.
async fn incoming(asking: &Asking<'_>, item: &CallItem) -> Result<(Vec<Edge>, Completeness, bool), Failure> {
    let questions = asking.questions();
    let mut searched = completeness::make_known(asking, &[&item.name], &[&item.path])?;
    let claimed = questions.incoming_calls(item).await?.items;
    let mut edges: Vec<Edge> =
        claimed.into_iter().map(|edge| Edge { edge, evidence: BTreeMap::new() }).collect();
    let unknown = Place { path: item.path.clone(), range: item.selection_range };
    let Some((document, offset)) = offset_of(asking, &unknown) else {
        return Ok((edges, searched.of_files(asking), false));
    };
    let references = questions.references(&item.path, item.selection_range.start, true).await?;
    let named = Named { name: &item.name, document: &document, offset };
    let mut explained = Box::pin(explain(asking, named, &mut searched, references)).await?;
    // What is not called is no call.
    explained.unresolved.retain(|one| {
        !one.token.kind.is_token()
            || Usage::of(&one.token.document.text).of_token(one.token.span.start) == TokenUse::Called
    });
    let mut known: BTreeSet<(AbsPath, Position)> = BTreeSet::new();
    for Edge { edge, .. } in &edges {
        known.extend(edge.ranges.iter().map(|range| (edge.item.path.clone(), range.start)));
    }
    for (place, evidence) in &explained.references {
        if known.contains(&(place.path.clone(), place.range.start)) {
            continue;
        }
        let Some((document, offset)) = offset_of(asking, place) else { continue };
        let usage = Usage::of(&document.text);
        if usage.of_token(offset) != TokenUse::Called {
            continue;
        }
        let caller = caller(asking, &document, usage.functions_around(offset)).await?;
        let at = edges.iter().position(|other| identity(&other.edge.item) == identity(&caller));
        let at = at.unwrap_or_else(|| {
            edges.push(Edge {
                edge: lsp::Call { item: caller, ranges: Vec::new() },
                evidence: BTreeMap::new(),
            });
            edges.len() - 1
        });
        edges[at].edge.ranges.push(place.range);
        edges[at].evidence.insert(place.range, evidence.clone());
    }
    asking.require_clean(edges.iter().map(|edge| &edge.edge.item.path))?;
    edges.sort_by_key(|edge| identity(&edge.edge.item));
    let mut verdict = completeness::verdict(asking, &searched, &explained);
    verdict.explained = None;
    Ok((edges, verdict, explained.is_late))
}

/// The function around a call as the server knows it, or the module.
async fn caller(asking: &Asking<'_>, document: &Document, around: Vec<Span>) -> Result<CallItem, Failure> {
    if let Some(function) = around.first() {
        let at = document.lines.position(&document.text, function.start, asking.places.server_unit);
        let found = asking.questions().prepare_call_hierarchy(&document.path, at).await?.items;
        if let Some(item) = found.into_iter().find(|item| item.path == document.path) {
            return Ok(item);
        }
    }
    Ok(CallItem::module(document.path.clone()))
}

/// What an item calls, in the order of places.
async fn outgoing(asking: &Asking<'_>, item: &CallItem) -> Result<Vec<lsp::Call>, Failure> {
    if asking.state.is_in_workspace(&item.path) {
        asking.open([item.path.clone()])?;
    }
    let mut found = asking.questions().outgoing_calls(item).await?.items;
    found.sort_by_key(|edge| identity(&edge.item));
    Ok(found)
}

fn identity(item: &CallItem) -> (AbsPath, Range) {
    (item.path.clone(), item.selection_range)
}

fn call(asking: &Asking<'_>, direction: Direction, depth: u32, near: &CallItem, edge: &Edge) -> Call {
    let Edge { edge, evidence } = edge;
    let (caller, callee) = match direction {
        Direction::Incoming => (&edge.item, near),
        Direction::Outgoing => (near, &edge.item),
    };
    let site = |range: &Range| {
        let location = asking.places.location(&Place { path: caller.path.clone(), range: *range });
        match evidence.get(range) {
            Some(evidence) => {
                Location { provenance: evidence.provenance, via: evidence.via.clone(), ..location }
            }
            None => location,
        }
    };
    let mut sites = edge.ranges.iter().map(site).collect();
    sort(&mut sites);
    Call { direction, depth, caller: end(asking, caller), callee: end(asking, callee), sites }
}

fn end(asking: &Asking<'_>, item: &CallItem) -> Symbol {
    let (uri, at, preview) = asking.places.describe(&item.path, item.selection_range);
    Symbol {
        name: item.name.clone(),
        container: None,
        symbol_kind: item.kind.name().to_owned(),
        uri,
        range: item.range,
        selection_range: Some(item.selection_range),
        at,
        symbol_id: asking.places.symbol_id(&item.path, item.selection_range),
        preview,
    }
}
