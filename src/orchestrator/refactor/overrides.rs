//! Who shares the old name without the server's saying so: methods of classes above, below and beside, their parameters, and
//! Python itself.

use std::collections::BTreeSet;

use super::checks::Checks;
use super::collision::{self, Renaming};
use super::names::{is_dunder, is_private};
use crate::model::edits::CheckName;
use crate::orchestrator::ask::Asking;
use crate::resolve::hierarchy::{Hierarchy, Member, Relation};
use crate::resolve::outline::Outline;
use crate::resolve::roles::{keywords_of, parameter_at};

/// How many classes and bases a message tells.
const TOLD: usize = 5;

/// Methods that are called by the name of their class.
const CONSTRUCTORS: [&str; 4] = ["__init__", "__new__", "__post_init__", "__init_subclass__"];

/// Records what else has the old name and keeps it. `around` is what stands around the class of the definition.
pub(super) fn check(
    asking: &Asking<'_>,
    checks: &mut Checks<'_>,
    renaming: &Renaming<'_>,
    around: &Hierarchy,
) {
    let mut wrong = Vec::new();
    let mut places = Vec::new();
    let is_member = renaming.class().is_some();
    if is_dunder(renaming.old) {
        wrong.push(format!("Python itself uses `{}`", renaming.old));
    }
    // What every class spells with its own name, overrides nothing.
    if is_member && !is_private(renaming.old) {
        let same = around.members.get(renaming.old).into_iter().flatten();
        let kept = same.filter(|member| !renaming.is_edited(&member.document.path, member.name_span.start));
        let kept: Vec<&Member> = kept.collect();
        if !kept.is_empty() {
            wrong.push(format!(
                "`{}` is also defined in {} and keeps its name there",
                renaming.old,
                classes(kept.iter().copied())
            ));
            places.extend(kept.iter().map(|member| at(asking, member)));
        }
        unknown(asking, around, renaming.old, &mut wrong, &mut places);
    }
    let of_method = parameter(asking, renaming, &mut wrong, &mut places);
    if !is_member && !of_method && wrong.is_empty() {
        return;
    }
    places.sort();
    places.dedup();
    if wrong.is_empty() {
        let well = format!("no class above, below or beside keeps a `{}` of its own", renaming.old);
        checks.pass(CheckName::Overrides, well);
    } else {
        checks.fail(CheckName::Overrides, wrong.join("; "), places);
    }
}

/// Looks at the methods of the same name around the one whose parameter is renamed. Tells whether there can be any.
fn parameter(
    asking: &Asking<'_>,
    renaming: &Renaming<'_>,
    wrong: &mut Vec<String>,
    places: &mut Vec<String>,
) -> bool {
    let (document, offset) = &renaming.definition;
    let Some(parameter) = parameter_at(&document.text, *offset).filter(|parameter| parameter.is_keyword)
    else {
        return false;
    };
    let Some(function) = parameter.function.filter(|_| !CONSTRUCTORS.contains(&parameter.name.as_str()))
    else {
        return false;
    };
    let outline = Outline::parse(&document.text);
    let Some((class_name, class)) = collision::class_of(&outline, function.start) else { return false };
    let method = parameter.name.as_str();
    if is_private(method) {
        return false;
    }
    let around = collision::around(asking, document, (class_name, class), &[method]);
    let mut sharing: Vec<&Member> = Vec::new();
    for member in around.members.get(method).into_iter().flatten() {
        let keywords = keywords_of(&member.document.text, member.name_span.start).unwrap_or_default();
        let same = keywords.into_iter().find(|(name, _)| name == renaming.old);
        if let Some((_, span)) =
            same.filter(|(_, span)| !renaming.is_edited(&member.document.path, span.start))
        {
            places.push(asking.places.span(&member.document, span).2);
            sharing.push(member);
        }
    }
    if !sharing.is_empty() {
        wrong.push(format!(
            "`{method}` of {} takes `{}` too, by which calls may pass it to any of them",
            classes(sharing.into_iter()),
            renaming.old
        ));
    }
    unknown(asking, &around, method, wrong, places);
    true
}

/// Says of which bases nobody knows what they have.
fn unknown(
    asking: &Asking<'_>,
    around: &Hierarchy,
    name: &str,
    wrong: &mut Vec<String>,
    places: &mut Vec<String>,
) {
    if around.is_cut {
        wrong.push("there are more classes around than anybody looks at".to_owned());
    }
    if around.unknown.is_empty() {
        return;
    }
    let bases: BTreeSet<&str> = around.unknown.iter().map(|unknown| unknown.base.as_str()).collect();
    let bases: Vec<&str> = bases.into_iter().take(TOLD).collect();
    wrong.push(format!(
        "whether a base that cannot be found has a `{name}`, nobody can tell ({})",
        bases.join(", ")
    ));
    places.extend(
        around.unknown.iter().map(|found| asking.places.span(&found.document, found.class_span.clone()).2),
    );
}

/// Which classes these are members of, and where those stand.
fn classes<'m>(members: impl Iterator<Item = &'m Member> + Clone) -> String {
    let relations: BTreeSet<Relation> = members.clone().map(|member| member.relation).collect();
    let words: Vec<&str> = relations.into_iter().map(word).collect();
    let names: BTreeSet<&str> = members.map(|member| member.class.as_str()).collect();
    let names: Vec<&str> = names.into_iter().take(TOLD).collect();
    format!("classes {} ({})", words.join(" and "), names.join(", "))
}

const fn word(relation: Relation) -> &'static str {
    match relation {
        Relation::Above => "above",
        Relation::Below => "below",
        Relation::Beside => "beside",
    }
}

fn at(asking: &Asking<'_>, member: &Member) -> String {
    asking.places.span(&member.document, member.name_span.clone()).2
}
