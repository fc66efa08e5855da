//! The text of `calls`: the line of a caller or callee, and the summary.

use super::Printer;
use super::lists::{counts, note};
use super::screen::escape_for_terminal;
use super::text::{Links, completeness, line, location, position, qualified, total};
use crate::model::bundle::Bundle;
use crate::model::facts::{Call, Completeness, Facts, Location, Override};
use crate::model::request::Direction;

/// The last lines: how much is listed, and whether it is complete. Empty for callees.
pub(super) fn summary(printer: &Printer, bundle: &Bundle, facts: &Facts, calls: &[Call]) -> String {
    let Some(verdict) = &facts.completeness else {
        return if calls.is_empty() { "no calls".to_owned() } else { String::new() };
    };
    let summary = completeness(printer, verdict, callers(bundle, calls, &facts.overrides, verdict));
    match inherited(bundle, calls) {
        Some(method) => format!("{method} is inherited: calls through any class that has it\n{summary}"),
        None => summary,
    }
}

/// The line of a caller or callee.
pub(super) fn call(links: Links<'_>, item: &Call) -> String {
    let (text, near) = match item.direction {
        Direction::Incoming => {
            // One line per caller, because --limit counts callers.
            let Some((first, more)) = item.sites.split_first() else { return String::new() };
            let text = location(links, first, &format!("in {}: ", qualified(&item.caller)));
            (text + &further_sites(first, more), format!("calls {}", qualified(&item.callee)))
        }
        Direction::Outgoing => {
            let callee = format!("calls {} {}", item.callee.symbol_kind, qualified(&item.callee));
            (line(links, &item.callee.at, &callee), format!("from {}", qualified(&item.caller)))
        }
    };
    // The list is in the order of places, so that a line says itself what it belongs to.
    match item.depth {
        0 | 1 => text,
        depth => format!("{text}  [depth {depth}: {}]", escape_for_terminal(&near)),
    }
}

/// How the first call was found, and where the caller has more. What holds for all of them is said once.
fn further_sites(first: &Location, more: &[Location]) -> String {
    let noted = |note: Option<String>| note.map_or_else(String::new, |note| format!("  [{note}]"));
    let is_same = more.iter().all(|site| note(site) == note(first));
    let own = |site: &Location| if is_same { String::new() } else { noted(note(site)) };
    let places: Vec<String> = more.iter().map(|site| position(&site.at) + &own(site)).collect();
    let places = if places.is_empty() { String::new() } else { format!("  and at {}", places.join(", ")) };
    if is_same { places + &noted(note(first)) } else { own(first) + &places }
}

/// The method whose calls are listed, if the requested class inherits it.
fn inherited(bundle: &Bundle, calls: &[Call]) -> Option<String> {
    let resolved = bundle.resolution.as_ref()?.resolved.as_ref()?;
    let is_inherited = resolved.evidence.iter().any(|step| step.step == "inherited");
    calls.iter().find(|call| call.depth == 1).filter(|_| is_inherited).map(|call| qualified(&call.callee))
}

/// How many callers and overrides of the requested function are listed, on the first page of a list.
fn callers(bundle: &Bundle, calls: &[Call], overrides: &[Override], verdict: &Completeness) -> Vec<String> {
    if bundle.request.as_ref().is_some_and(|request| request.options.cursor.is_some()) {
        return Vec::new();
    }
    // The limits count the overrides and the unresolved occurrences, too. Overrides come after all callers.
    let listed = total(bundle, calls.len() + overrides.len() + verdict.unresolved.items.len());
    let listed = listed.saturating_sub(verdict.unresolved.count as usize);
    if overrides.is_empty() && calls.len() < listed {
        // None of the listed ones is an override, but some of the others may be.
        return vec![format!("{listed} callers or overrides")];
    }
    counts(calls.len(), "caller", listed - calls.len(), overrides)
}
