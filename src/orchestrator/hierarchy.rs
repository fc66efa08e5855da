//! `calls`: the call hierarchy, breadth first.

use std::collections::{BTreeSet, VecDeque};

use super::ask::{Answer, Asking};
use super::completeness;
use super::failure::Failure;
use super::query::{nothing_there, position};
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::{self, CallItem, Place};
use crate::model::facts::{Call, Facts, Provenance, Symbol};
use crate::model::request::Direction;
use crate::path::AbsPath;
use crate::text::Range;

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
    let mut seen: BTreeSet<(AbsPath, Range)> = roots.iter().map(identity).collect();
    let mut queue: VecDeque<(CallItem, u32)> = roots.into_iter().map(|item| (item, 1)).collect();
    while let Some((item, depth)) = queue.pop_front() {
        asking.settings.progress.step(&format!("calls of {}", item.name));
        for edge in edges(asking, direction, &item).await? {
            found.push(call(asking, direction, depth, &item, &edge));
            if depth < options.depth.unwrap_or(1) && seen.insert(identity(&edge.item)) {
                queue.push_back((edge.item, depth + 1));
            }
        }
    }
    sort(&mut found);
    let (found, limits) = page(found, options.limit, options.cursor.as_deref())?;
    let mut facts = Facts::new(Provenance::Lsp);
    facts.calls = Some(found);
    facts.completeness = (direction == Direction::Incoming)
        .then(|| completeness::of_documents(asking, asking.open_count(), &completeness::unreadable(asking)));
    Ok(Answer { facts, limits: Some(limits), capabilities, refactored: None })
}

/// The edges at one item, in the order of their places.
async fn edges(
    asking: &Asking<'_>,
    direction: Direction,
    item: &CallItem,
) -> Result<Vec<lsp::Call>, Failure> {
    let questions = asking.questions();
    let mut found = match direction {
        Direction::Incoming => {
            completeness::make_known(asking, &[&item.name], &[&item.path])?;
            questions.incoming_calls(item).await?.items
        }
        Direction::Outgoing => {
            if asking.state.is_in_workspace(&item.path) {
                asking.open([item.path.clone()])?;
            }
            questions.outgoing_calls(item).await?.items
        }
    };
    if direction == Direction::Incoming {
        asking.require_clean(found.iter().map(|edge| &edge.item.path))?;
    }
    found.sort_by_key(|edge| identity(&edge.item));
    Ok(found)
}

fn identity(item: &CallItem) -> (AbsPath, Range) {
    (item.path.clone(), item.selection_range)
}

fn call(asking: &Asking<'_>, direction: Direction, depth: u32, near: &CallItem, edge: &lsp::Call) -> Call {
    let (caller, callee) = match direction {
        Direction::Incoming => (&edge.item, near),
        Direction::Outgoing => (near, &edge.item),
    };
    let site = |range: &Range| asking.places.location(&Place { path: caller.path.clone(), range: *range });
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
