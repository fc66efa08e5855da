//! What a new name would collide with: in the scopes that bind or use the old one, in the classes above, below and beside, among
//! the keyword arguments of calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::checks::Checks;
use super::names::is_private;
use crate::edit::text::Splice;
use crate::model::edits::CheckName;
use crate::orchestrator::ask::Asking;
use crate::path::AbsPath;
use crate::resolve::hierarchy::{Hierarchy, Relation, members};
use crate::resolve::occurrences::{OccurrenceKind, occurrences};
use crate::resolve::outline::{DefinitionKind, Outline};
use crate::resolve::scopes::{CollisionKind, Scopes, keywords_beside};
use crate::workspace::files::{Document, Files as _};

/// How often classes below classes are looked for.
const ROUNDS: usize = 12;

/// What is renamed.
pub(super) struct Renaming<'r> {
    pub(super) old: &'r str,
    pub(super) new: &'r str,
    /// Where the old name is defined: a file and an offset.
    pub(super) definition: (Arc<Document>, usize),
    /// The edits of each file.
    pub(super) splices: &'r BTreeMap<AbsPath, Vec<Splice>>,
}

impl Renaming<'_> {
    /// The class that the definition is a member of: its name, and where that stands.
    pub(super) fn class(&self) -> Option<(String, usize)> {
        let (document, offset) = &self.definition;
        class_of(&Outline::parse(&document.text), *offset)
    }

    pub(super) fn is_edited(&self, path: &AbsPath, offset: usize) -> bool {
        self.splices.get(path).is_some_and(|splices| splices.iter().any(|splice| splice.span.start == offset))
    }
}

/// The class that the definition whose name begins at an offset is a member of: its name, and where that stands.
pub(super) fn class_of(outline: &Outline, offset: usize) -> Option<(String, usize)> {
    let member = outline.definitions.iter().find(|found| found.name_span.start == offset)?;
    let class = outline.definitions.get(member.parent?)?;
    (class.kind == DefinitionKind::Class).then(|| (class.name.clone(), class.name_span.start))
}

/// Records what the new name collides with. `around` is what stands around the class of the definition.
pub(super) fn check(
    asking: &Asking<'_>,
    checks: &mut Checks<'_>,
    renaming: &Renaming<'_>,
    around: &Hierarchy,
) {
    let mut places = Vec::new();
    let mut words: BTreeSet<&str> = BTreeSet::new();
    for (path, splices) in renaming.splices {
        let Ok(document) = asking.state.files.read(path) else { continue };
        let tokens: Vec<usize> = splices.iter().map(|splice| splice.span.start).collect();
        let at = |span: &std::ops::Range<usize>| asking.places.span(&document, span.clone()).2;
        // Attributes and keyword arguments are in no scope of the file.
        let found = occurrences(&document.text, document.digest, renaming.old);
        let kinds: BTreeMap<usize, OccurrenceKind> =
            found.iter().map(|found| (found.start, found.kind)).collect();
        let plain: Vec<usize> =
            tokens.iter().copied().filter(|at| kinds.get(at) == Some(&OccurrenceKind::Identifier)).collect();
        let scopes = Scopes::of(&document.text, &[renaming.old, renaming.new]);
        for collision in scopes.collisions(&plain, renaming.new) {
            words.insert(match collision.kind {
                CollisionKind::Bound => "it is bound already where the old name is",
                CollisionKind::Hidden => "a scope in between binds it",
                CollisionKind::Captured => "uses of it mean something else now",
            });
            places.push(at(&collision.span));
        }
        for token in tokens.iter().filter(|at| kinds.get(at) == Some(&OccurrenceKind::Keyword)) {
            let beside = keywords_beside(&document.text, *token).unwrap_or_default();
            for (_, span) in beside.iter().filter(|(name, _)| name == renaming.new) {
                words.insert("a call passes it already");
                places.push(at(span));
            }
        }
    }
    let own = own_members(renaming);
    for span in &own {
        words.insert("its class has it");
        places.push(asking.places.span(&renaming.definition.0, span.clone()).2);
    }
    // What every class spells with its own name is in nobody's way.
    let near = around.members.get(renaming.new).filter(|_| !is_private(renaming.new));
    for member in near.into_iter().flatten() {
        words.insert(match member.relation {
            Relation::Above => "a base class has it",
            Relation::Below => "a derived class has it",
            Relation::Beside => "another base of a derived class has it",
        });
        places.push(asking.places.span(&member.document, member.name_span.clone()).2);
    }
    places.sort();
    places.dedup();
    let words: Vec<&str> = words.into_iter().collect();
    let wrong = format!("`{}` is taken ({})", renaming.new, words.join(", "));
    let well = format!("`{}` is free in {}", renaming.new, super::planned::files(renaming.splices.len()));
    checks.none_of(CheckName::Collision, places, &well, &wrong);
}

/// Where the class of the definition has the new name already.
fn own_members(renaming: &Renaming<'_>) -> Vec<std::ops::Range<usize>> {
    let Some((_, class)) = renaming.class() else { return Vec::new() };
    let outline = Outline::parse(&renaming.definition.0.text);
    let Some(index) = outline.definitions.iter().position(|found| found.name_span.start == class) else {
        return Vec::new();
    };
    let members = outline.children(Some(index)).filter(|(_, member)| member.name == renaming.new);
    members.map(|(_, member)| member.name_span.clone()).collect()
}

/// What stands around the class of the definition, with the members of both names.
pub(super) fn around_definition(asking: &Asking<'_>, renaming: &Renaming<'_>) -> Hierarchy {
    let Some(class) = renaming.class() else { return Hierarchy::default() };
    around(asking, &renaming.definition.0, class, &[renaming.old, renaming.new])
}

/// What stands around a class of a file, given by its name and where that begins, with the members of some names.
pub(super) fn around(
    asking: &Asking<'_>,
    document: &Document,
    (name, class): (String, usize),
    wanted: &[&str],
) -> Hierarchy {
    let snapshot = &asking.state.ground.snapshot;
    let with = |name: &str| asking.state.files_with_word(name);
    let (mut names, mut asked) = (BTreeSet::from([name]), BTreeSet::new());
    let mut files: BTreeSet<AbsPath> = BTreeSet::new();
    let mut found = Hierarchy::default();
    for _ in 0..ROUNDS {
        let new: Vec<String> = names.difference(&asked).cloned().collect();
        if new.is_empty() {
            break;
        }
        let before = files.len();
        files.extend(new.iter().flat_map(|name| with(name)).map(|path| snapshot.absolute(&path)));
        asked.extend(new);
        if files.len() > before {
            let files: Vec<AbsPath> = files.iter().cloned().collect();
            let roots = &asking.state.ground.roots;
            found = members(&asking.state.files, roots, &document.path, class, &files, wanted);
            names.extend(found.below.iter().cloned());
        }
    }
    found.is_cut |= names.difference(&asked).next().is_some();
    found
}
