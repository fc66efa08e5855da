//! Finds definitions that share the old name and that the server does not rename: methods in base classes, derived
//! classes and other bases of derived classes, their parameters, and special methods of Python.

use std::collections::BTreeSet;

use super::checks::Checks;
use super::collision::Renaming;
use super::family::{DefinitionSite, around_all, method_of};
use crate::engine::context::RequestContext;
use crate::model::edits::CheckName;
use crate::python::hierarchy::{Hierarchy, Member, Relation};
use crate::python::roles::keywords_of;
use crate::text::names::{is_dunder, is_private};

/// How many classes and bases a message names.
const MAX_NAMED: usize = 5;

/// Records which definitions keep the old name. `around` is the hierarchy around the classes of the definitions.
pub(super) fn check(
    cx: &RequestContext<'_>,
    checks: &mut Checks<'_>,
    renaming: &Renaming<'_>,
    around: &Hierarchy,
) {
    let mut problems = Vec::new();
    let mut places = Vec::new();
    // Whether `--family` would solve what is found.
    let mut keeps_by_choice = false;
    let is_method = renaming.class().is_some();
    let is_member = is_method || !renaming.bound.is_empty();
    if is_dunder(renaming.old) {
        problems.push(format!("Python itself uses `{}`", renaming.old));
    }
    // A private name is mangled with its class's name, so it overrides nothing.
    if is_member && !is_private(renaming.old) {
        let same = around.members.get(renaming.old).into_iter().flatten();
        let not_renamed =
            same.filter(|member| !renaming.is_edited(&member.document.path, member.name_span.start));
        let not_renamed: Vec<&Member> = not_renamed.collect();
        if !not_renamed.is_empty() {
            let attribute =
                if is_method { "" } else { "an attribute that is bound to it is renamed with it; " };
            problems.push(format!(
                "{attribute}`{}` is also defined in {} and keeps its name there",
                renaming.old,
                classes(not_renamed.iter().copied())
            ));
            places.extend(not_renamed.iter().map(|member| at(cx, member)));
            keeps_by_choice = is_method && is_in_family(cx, &not_renamed);
        }
        add_unknown_bases(cx, around, renaming.old, &mut problems, &mut places);
    }
    let of_method = match check_parameter(cx, renaming, &mut problems, &mut places) {
        Some(is_solvable) => {
            keeps_by_choice |= is_solvable;
            true
        }
        None => false,
    };
    if !is_member && !of_method && problems.is_empty() {
        return;
    }
    places.sort();
    places.dedup();
    if problems.is_empty() {
        let detail = format!("no base, derived or sibling class keeps the name `{}`", renaming.old);
        checks.pass(CheckName::Overrides, detail);
    } else {
        checks.fail(CheckName::Overrides, problems.join("; "), places);
        if keeps_by_choice && problems.len() == 1 {
            checks.offer_family();
        }
    }
}

/// Whether `--family` would rename all of these members.
fn is_in_family(cx: &RequestContext<'_>, members: &[&Member]) -> bool {
    let is_here = |member: &&Member| cx.state.is_in_workspace(&member.document.path);
    !cx.request.options.family && members.iter().all(is_here)
}

/// Checks the methods of the same name around the one whose parameter is renamed. `None` if there cannot be any, else whether
/// `--family` would solve what is found.
fn check_parameter(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
    problems: &mut Vec<String>,
    places: &mut Vec<String>,
) -> Option<bool> {
    let methods: Vec<(String, DefinitionSite)> =
        renaming.definitions().filter_map(|(document, offset)| method_of(document, *offset)).collect();
    let (method, _) = methods.first()?;
    let around = around_all(cx, methods.iter().map(|(_, site)| site), &[method]);
    let mut sharing: Vec<&Member> = Vec::new();
    for member in around.members.get(method).into_iter().flatten() {
        let keywords = keywords_of(&member.document.text, member.name_span.start).unwrap_or_default();
        let same = keywords.into_iter().find(|(name, _)| name == renaming.old);
        if let Some((_, span)) =
            same.filter(|(_, span)| !renaming.is_edited(&member.document.path, span.start))
        {
            places.push(cx.locations.span(&member.document, span).2);
            sharing.push(member);
        }
    }
    let is_solvable = !sharing.is_empty() && is_in_family(cx, &sharing);
    if !sharing.is_empty() {
        problems.push(format!(
            "`{method}` of {} has the parameter `{}` too, and a call may pass it by name to any of them",
            classes(sharing.into_iter()),
            renaming.old
        ));
    }
    add_unknown_bases(cx, &around, method, problems, places);
    Some(is_solvable)
}

/// Adds the bases whose members are unknown.
fn add_unknown_bases(
    cx: &RequestContext<'_>,
    around: &Hierarchy,
    name: &str,
    problems: &mut Vec<String>,
    places: &mut Vec<String>,
) {
    if around.is_cut {
        problems.push("the class hierarchy is too large to be checked completely".to_owned());
    }
    if around.unknown.is_empty() {
        return;
    }
    let bases: BTreeSet<&str> = around.unknown.iter().map(|unknown| unknown.base.as_str()).collect();
    let bases: Vec<&str> = bases.into_iter().take(MAX_NAMED).collect();
    problems.push(format!("bases that cannot be found may define `{name}` ({})", bases.join(", ")));
    places.extend(
        around.unknown.iter().map(|found| cx.locations.span(&found.document, found.class_span.clone()).2),
    );
}

/// Describes the classes of members by relation and name.
fn classes<'m>(members: impl Iterator<Item = &'m Member> + Clone) -> String {
    let relations: BTreeSet<Relation> = members.clone().map(|member| member.relation).collect();
    let relations: Vec<&str> = relations.into_iter().map(relation_name).collect();
    let names: BTreeSet<&str> = members.map(|member| member.class.as_str()).collect();
    let names: Vec<&str> = names.into_iter().take(MAX_NAMED).collect();
    format!("{} classes ({})", relations.join(" and "), names.join(", "))
}

const fn relation_name(relation: Relation) -> &'static str {
    match relation {
        Relation::Base => "base",
        Relation::Derived => "derived",
        Relation::Sibling => "sibling",
    }
}

fn at(cx: &RequestContext<'_>, member: &Member) -> String {
    cx.locations.span(&member.document, member.name_span.clone()).2
}
