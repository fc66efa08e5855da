//! `calls`: the call hierarchy, breadth first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use super::completeness::{self, UsedIn};
use super::context::{HandlerOutput, RequestContext};
use super::failure::Failure;
use super::occurrences::{Evidence, Named, Token, UnresolvedToken, explain, name_at, offset_of};
use super::positions::{no_result, position};
use super::references;
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::{self, LspCallItem, LspLocation};
use crate::model::facts::{
    Call, Completeness, CompletenessStatus, Facts, Location, Override, Provenance, Symbol,
    UnresolvedOccurrence,
};
use crate::model::request::Direction;
use crate::path::AbsPath;
use crate::python::classes::Classes;
use crate::python::occurrences::OccurrenceKind;
use crate::python::outline::{DefinitionKind, Span};
use crate::python::usage::Usage;
use crate::python::value_use::ValueUse;
use crate::text::Range;
use crate::text::names::is_dunder;
use crate::workspace::files::Document;

/// Why a use of a function may be a call that is not known: what gets the value may call it.
const USED_AS_VALUE: &str = "used as a value, which may be called";

/// Why the use of a property is no known call: the server may list only what is written as one.
const ACCESSED_AS_PROPERTY: &str = "a property, called where it is accessed";

/// The same for a method whose decorator may have made a descriptor of it, such as a cached property.
const ACCESSED_AS_DESCRIPTOR: &str = "what its decorator returns may call it where it is accessed";

/// Why an attribute of a decorated function may call the function: `task.delay()`.
const READ_OF_DECORATED: &str = "what its decorator returns may call it";

/// Answers `calls`.
pub(super) async fn calls(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let capabilities = cx.require("callHierarchy", cx.server.client.capabilities().call_hierarchy)?;
    let target = cx.state.target()?;
    let options = &cx.request.options;
    let direction = options.direction.unwrap_or_default();
    let target_path = &target.document.path;
    match (direction, target.name()) {
        (Direction::Incoming, Some(name)) => {
            drop(completeness::open_files_with_names(cx, &[name], &[target_path], UsedIn::AnyFile)?);
        }
        _ => drop(cx.open([target_path.clone()])?),
    }
    let requests = cx.requests();
    let roots = requests.prepare_call_hierarchy(target_path, position(cx, target)).await?.items;
    if roots.is_empty() {
        return Err(no_result(cx, target));
    }
    let functions = Functions(Classes::new(&cx.state.files, &cx.state.inputs.roots));
    let roots = functions.without_overloads(cx, roots);
    let mut found = Vec::new();
    let mut overrides = Vec::new();
    let mut completeness: Option<Completeness> = None;
    let mut is_late = false;
    let mut seen: BTreeSet<(AbsPath, Range)> = roots.iter().map(item_key).collect();
    let mut queue: VecDeque<(LspCallItem, u32)> = roots.into_iter().map(|item| (item, 1)).collect();
    while let Some((item, depth)) = queue.pop_front() {
        cx.settings.progress.step(&format!("calls of {}", item.name));
        let edges = match direction {
            Direction::Incoming => {
                let called = incoming(cx, &functions, &item).await?;
                completeness = Some(worse_of(completeness, called.verdict));
                is_late |= called.is_late;
                if depth == 1 {
                    overrides.extend(called.overrides);
                }
                called.edges
            }
            Direction::Outgoing => {
                let edges = functions.merge_overloads(cx, outgoing(cx, &functions, &item).await?);
                edges.into_iter().map(|edge| CallEdge { edge, evidence: BTreeMap::new() }).collect()
            }
        };
        for edge in edges {
            found.push(call(cx, &functions, (direction, depth), &item, &edge));
            let other = edge.edge.item;
            if depth < options.depth.unwrap_or(1) && !other.is_module() && seen.insert(item_key(&other)) {
                queue.push_back((other, depth + 1));
            }
        }
    }
    sort(&mut found);
    sort(&mut overrides);
    overrides.dedup();
    if let Some(verdict) = &mut completeness {
        // The parts of a property, which a server may merge, have the same uses.
        let is_listed = |one: &UnresolvedOccurrence| {
            let mut sites = found.iter().flat_map(|call| &call.sites);
            sites.any(|site| (&site.uri, site.range.start) == (&one.uri, one.range.start))
        };
        let unresolved = &mut verdict.unresolved;
        unresolved.items.retain(|one| !is_listed(one));
        unresolved.count = u32::try_from(unresolved.items.len()).unwrap_or(u32::MAX);
        if unresolved.count == 0 && verdict.status == CompletenessStatus::Partial {
            (verdict.status, verdict.reason) = (CompletenessStatus::Complete, None);
        }
    }
    let unresolved =
        completeness.iter_mut().flat_map(|verdict| std::mem::take(&mut verdict.unresolved.items));
    let all = found
        .into_iter()
        .map(|call| CallsItem::Call(Box::new(call)))
        .chain(overrides.into_iter().map(CallsItem::Override))
        .chain(unresolved.map(CallsItem::Unresolved))
        .collect();
    let (part, limits) = page(all, options.limit, options.cursor.as_deref())?;
    let (mut found, mut overrides, mut unresolved) = (Vec::new(), Vec::new(), Vec::new());
    for item in part {
        match item {
            CallsItem::Call(item) => found.push(*item),
            CallsItem::Override(item) => overrides.push(item),
            CallsItem::Unresolved(item) => unresolved.push(item),
        }
    }
    if let Some(verdict) = &mut completeness {
        verdict.unresolved.items = unresolved;
    }
    let mut facts = Facts::new(Provenance::Lsp);
    facts.calls = Some(found);
    facts.overrides = overrides;
    facts.completeness = completeness;
    let error = is_late.then(|| cx.timeout_error());
    Ok(HandlerOutput { facts, limits: Some(limits), capabilities, refactored: None, error })
}

/// One item of the answer: calls first, then overrides, then unresolved occurrences. One cursor covers all.
#[derive(Serialize)]
#[serde(untagged)]
enum CallsItem {
    Call(Box<Call>),
    Override(Override),
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
    first.unresolved.items.extend(second.unresolved.items);
    // Functions of the same name share their unresolved occurrences.
    sort(&mut first.unresolved.items);
    first.unresolved.count = u32::try_from(first.unresolved.items.len()).unwrap_or(u32::MAX);
    first
}

/// The functions that servers name, as the workspace defines them.
struct Functions<'f>(Classes<'f>);

impl Functions<'_> {
    /// The definition of an item: its file, its qualified name, and whether it is an overload.
    fn defined(&self, cx: &RequestContext<'_>, item: &LspCallItem) -> Option<(AbsPath, Vec<String>, bool)> {
        let place = LspLocation { path: item.path.clone(), range: item.selection_range };
        let (document, offset) = offset_of(cx, &place)?;
        let defined = self.0.defined_at(&document.path, offset)?;
        let is_overload = defined.decorators.iter().any(|one| one.rsplit('.').next() == Some("overload"));
        Some((document.path.clone(), defined.qualname, is_overload))
    }

    /// The items, with one for all overloads of a function: its implementation, or the first in a stub.
    fn without_overloads(&self, cx: &RequestContext<'_>, items: Vec<LspCallItem>) -> Vec<LspCallItem> {
        let edges = items.into_iter().map(|item| lsp::LspCall { item, ranges: Vec::new() });
        self.merge_overloads(cx, edges.collect()).into_iter().map(|edge| edge.item).collect()
    }

    /// The edges, with one for all overloads of a function.
    fn merge_overloads(&self, cx: &RequestContext<'_>, edges: Vec<lsp::LspCall>) -> Vec<lsp::LspCall> {
        let mut merged: Vec<lsp::LspCall> = Vec::new();
        let mut known: Vec<Option<(AbsPath, Vec<String>, bool)>> = Vec::new();
        for edge in edges {
            let defined = self.defined(cx, &edge.item);
            let same = known.iter().position(|other| match (other, &defined) {
                (Some(other), Some(defined)) => {
                    (other.2 || defined.2) && (&other.0, &other.1) == (&defined.0, &defined.1)
                }
                _ => false,
            });
            let Some(at) = same else {
                merged.push(edge);
                known.push(defined);
                continue;
            };
            merged[at].ranges.extend(edge.ranges);
            merged[at].ranges.sort();
            merged[at].ranges.dedup();
            if defined.as_ref().is_some_and(|defined| !defined.2) {
                (merged[at].item, known[at]) = (edge.item, defined);
            }
        }
        merged
    }

    fn callable(&self, cx: &RequestContext<'_>, item: &LspCallItem) -> Callable {
        let place = LspLocation { path: item.path.clone(), range: item.selection_range };
        let defined = offset_of(cx, &place).and_then(|(document, at)| self.0.defined_at(&document.path, at));
        match defined {
            Some(defined) if defined.kind == DefinitionKind::Property => Callable::Property,
            _ if item.kind.name() == "class" => Callable::Class,
            Some(defined) if !defined.has_only_plain_decorators() => {
                if defined.class.is_some() {
                    Callable::Descriptor
                } else {
                    Callable::Decorated
                }
            }
            _ => Callable::Function,
        }
    }

    /// The qualified name of the class around an item.
    fn class_of(&self, cx: &RequestContext<'_>, item: &LspCallItem) -> Option<String> {
        let place = LspLocation { path: item.path.clone(), range: item.selection_range };
        let (document, offset) = offset_of(cx, &place)?;
        let defined = self.0.defined_at(&document.path, offset)?;
        defined.class.map(|class| class.id().name)
    }
}

/// The calls of a function.
struct Called {
    edges: Vec<CallEdge>,
    /// The same method in related classes, which calls may reach in place of it.
    overrides: Vec<Override>,
    verdict: Completeness,
    is_late: bool,
}

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Callable {
    Function,
    /// A function with a decorator that is not known.
    Decorated,
    /// A method with a decorator that is not known.
    Descriptor,
    /// A property: one of its functions is called wherever it is read, assigned or deleted.
    Property,
    Class,
}

/// What a use of a function means for its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Call,
    /// It may be one; the reason why that is not known.
    MayBeCall(&'static str),
    NoCall,
}

impl Callable {
    fn meaning(self, used: &ValueUse, is_attribute: bool, is_followed: impl Fn(&Span) -> bool) -> Meaning {
        match (self, used) {
            (_, ValueUse::Called) | (Self::Class, ValueUse::Subscripted) => Meaning::Call,
            (Self::Property, _) if is_attribute => Meaning::MayBeCall(ACCESSED_AS_PROPERTY),
            (Self::Descriptor, _) if is_attribute => Meaning::MayBeCall(ACCESSED_AS_DESCRIPTOR),
            (Self::Decorated, ValueUse::Before | ValueUse::Subscripted) => {
                Meaning::MayBeCall(READ_OF_DECORATED)
            }
            // What gets a property gets its value.
            (Self::Property, _) | (Self::Class, ValueUse::OnlyNamed) => Meaning::NoCall,
            (_, ValueUse::Escapes | ValueUse::OnlyNamed) => Meaning::MayBeCall(USED_AS_VALUE),
            // Uses of another name for it are among the known references.
            (_, ValueUse::Bound(names)) if !names.iter().all(&is_followed) => {
                Meaning::MayBeCall(USED_AS_VALUE)
            }
            _ => Meaning::NoCall,
        }
    }

    /// Whether a call that a server claims at a use of the name is none.
    fn refutes(self, used: &ValueUse) -> bool {
        match self {
            Self::Function => *used != ValueUse::Called,
            Self::Decorated | Self::Descriptor => {
                matches!(used, ValueUse::Escapes | ValueUse::OnlyNamed | ValueUse::Bound(_))
            }
            Self::Property | Self::Class => false,
        }
    }
}

/// The calls of an item: those that the server reports, and the calls among the other known references.
async fn incoming(
    cx: &RequestContext<'_>,
    functions: &Functions<'_>,
    item: &LspCallItem,
) -> Result<Called, Failure> {
    let requests = cx.requests();
    let mut searched =
        completeness::open_files_with_names(cx, &[&item.name], &[&item.path], UsedIn::AnyFile)?;
    let claimed = requests.incoming_calls(item).await?.items;
    let mut edges: Vec<CallEdge> =
        claimed.into_iter().map(|edge| CallEdge { edge, evidence: BTreeMap::new() }).collect();
    let unknown = LspLocation { path: item.path.clone(), range: item.selection_range };
    let Some((document, offset)) = offset_of(cx, &unknown) else {
        let verdict = searched.of_files(cx);
        return Ok(Called { edges, overrides: Vec::new(), verdict, is_late: false });
    };
    let references = requests.references(&item.path, item.selection_range.start, true).await?;
    let named = Named { name: &item.name, document: &document, offset, family: &[] };
    let mut explained = Box::pin(explain(cx, named, &mut searched, references)).await?;
    let callable = functions.callable(cx, item);
    // Other names of the function are not followed where it is not known that it is the function.
    explained.unresolved.retain(|one| {
        let used = Usage::of(&one.token.document.text).value_use(one.token.span.start);
        let is_attribute = one.token.kind == OccurrenceKind::Attribute;
        !one.token.kind.is_token()
            || one.may_be_override()
            || callable.meaning(&used, is_attribute, |_| false) != Meaning::NoCall
    });
    let uses: Uses = explained
        .references
        .iter()
        .filter_map(|(place, evidence)| {
            Some(((place.path.clone(), offset_of(cx, place)?.1), (place.clone(), evidence.clone())))
        })
        .collect();
    let known = keep_calls(cx, callable, &mut edges, &uses);
    for (at, (place, evidence)) in &uses {
        if known.contains(at) {
            continue;
        }
        let Some((document, name)) = name_at(cx, place) else { continue };
        let (usage, offset) = (Usage::of(&document.text), name.start);
        let is_followed = |target: &Span| uses.contains_key(&(place.path.clone(), target.start));
        let is_attribute = usage.receiver(offset).is_some() || usage.is_looked_up(offset);
        match callable.meaning(&usage.value_use(offset), is_attribute, is_followed) {
            Meaning::Call => {
                let caller = caller(cx, &document, usage.enclosing_functions(offset)).await?;
                add_site(&mut edges, caller, place.range, evidence);
            }
            Meaning::NoCall => {}
            Meaning::MayBeCall(reason) => {
                let kind = if is_attribute { OccurrenceKind::Attribute } else { OccurrenceKind::Identifier };
                let token = Token::new(document.clone(), name, kind);
                explained.unresolved.push(UnresolvedToken::new(token, reason.to_owned()));
            }
        }
    }
    cx.require_fresh_outside_workspace(edges.iter().map(|edge| &edge.edge.item.path))?;
    edges.sort_by_key(|edge| item_key(&edge.edge.item));
    let mut verdict = completeness::verdict(cx, &searched, &explained);
    sort(&mut verdict.unresolved.items);
    verdict.explained = None;
    if is_dunder(&item.name) && verdict.status != CompletenessStatus::Unknown {
        verdict.status = CompletenessStatus::Unknown;
        verdict.reason = Some(format!("`{}` is also called where its name is not written", item.name));
    }
    let overrides = references::overrides(cx, &explained);
    Ok(Called { edges, overrides, verdict, is_late: explained.is_late })
}

/// The known references to a function, by file and byte.
type Uses = BTreeMap<(AbsPath, usize), (LspLocation, Evidence)>;

/// Drops the sites of edges that are no calls: Pyright claims calls of what is only passed on, ty does not. The ranges of the
/// others become those of the names: Pyright's range of `(f)()` begins before it. Returns the known references that are sites.
fn keep_calls(
    cx: &RequestContext<'_>,
    callable: Callable,
    edges: &mut Vec<CallEdge>,
    uses: &Uses,
) -> BTreeSet<(AbsPath, usize)> {
    let mut known = BTreeSet::new();
    for CallEdge { edge, .. } in &mut *edges {
        let path = &edge.item.path;
        edge.ranges.retain_mut(|range| {
            let place = LspLocation { path: path.clone(), range: *range };
            let Some((_, offset)) = offset_of(cx, &place) else { return true };
            let at = (path.clone(), offset);
            let Some((document, name)) = uses.get(&at).and_then(|(place, _)| name_at(cx, place)) else {
                return true;
            };
            *range = document.lines.range(&document.text, name, cx.locations.server_unit);
            let is_call = !callable.refutes(&Usage::of(&document.text).value_use(offset));
            is_call && known.insert(at)
        });
    }
    edges.retain(|edge| !edge.edge.ranges.is_empty());
    known
}

/// Adds a call to the edge of its caller.
fn add_site(edges: &mut Vec<CallEdge>, caller: LspCallItem, range: Range, evidence: &Evidence) {
    let at = edges.iter().position(|other| item_key(&other.edge.item) == item_key(&caller));
    let at = at.unwrap_or_else(|| {
        let edge = lsp::LspCall { item: caller, ranges: Vec::new() };
        edges.push(CallEdge { edge, evidence: BTreeMap::new() });
        edges.len() - 1
    });
    edges[at].edge.ranges.push(range);
    edges[at].evidence.insert(range, evidence.clone());
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

/// The calls that an item makes, in the order of their locations. Those of a function within it are that function's own, as for
/// callers; Pyright counts them for both.
async fn outgoing(
    cx: &RequestContext<'_>,
    functions: &Functions<'_>,
    item: &LspCallItem,
) -> Result<Vec<lsp::LspCall>, Failure> {
    if cx.state.is_in_workspace(&item.path) {
        cx.open([item.path.clone()])?;
    }
    let mut found = cx.requests().outgoing_calls(item).await?.items;
    if let Some((document, own)) =
        offset_of(cx, &LspLocation { path: item.path.clone(), range: item.selection_range })
    {
        let (usage, unit) = (Usage::of(&document.text), cx.locations.server_unit);
        let defined = functions.0.defined_at(&document.path, own);
        let is_function = defined.is_some_and(|defined| defined.kind.is_function());
        let is_own = |offset: usize| {
            !is_function || usage.enclosing_functions(offset).first().is_some_and(|one| one.start == own)
        };
        for edge in &mut found {
            edge.ranges.retain(|range| {
                let at = document.lines.offset(&document.text, range.start, unit);
                at.is_none_or(is_own)
            });
        }
        found.retain(|edge| !edge.ranges.is_empty());
    }
    found.sort_by_key(|edge| item_key(&edge.item));
    Ok(found)
}

fn item_key(item: &LspCallItem) -> (AbsPath, Range) {
    (item.path.clone(), item.selection_range)
}

fn call(
    cx: &RequestContext<'_>,
    functions: &Functions<'_>,
    (direction, depth): (Direction, u32),
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
    let symbol = |item| symbol_of(cx, functions, item);
    Call { direction, depth, caller: symbol(caller), callee: symbol(callee), sites }
}

fn symbol_of(cx: &RequestContext<'_>, functions: &Functions<'_>, item: &LspCallItem) -> Symbol {
    let (uri, at, preview) = cx.locations.describe(&item.path, item.selection_range);
    Symbol {
        name: item.name.clone(),
        container: functions.class_of(cx, item),
        symbol_kind: item.kind.name().to_owned(),
        uri,
        range: item.range,
        selection_range: Some(item.selection_range),
        at,
        symbol_id: cx.locations.symbol_id(&item.path, item.selection_range),
        preview,
    }
}
