//! Finds what a new name would collide with: in the scopes that bind or use the old name, in the class hierarchy, and
//! among the keyword arguments of calls.

use std::collections::{BTreeMap, BTreeSet};

use super::checks::Checks;
use super::family::DefinitionSite;
use crate::edit::text::Splice;
use crate::engine::context::RequestContext;
use crate::lsp::LspLocation;
use crate::model::edits::CheckName;
use crate::path::AbsPath;
use crate::python::hierarchy::{Hierarchy, Relation, members};
use crate::python::occurrences::{OccurrenceKind, occurrences};
use crate::python::outline::{DefinitionKind, Outline};
use crate::python::roles::enclosing_class;
use crate::python::scopes::{CollisionKind, Scopes, sibling_keywords};
use crate::text::names::{is_private, mangled};
use crate::workspace::files::{Document, FileKind, Files as _};

/// How often to look for further derived classes.
const MAX_SEARCH_ROUNDS: usize = 12;

/// How many kinds of collisions a message names.
const MAX_REASONS: usize = 4;

/// A rename.
pub(super) struct Renaming<'r> {
    pub(super) old: &'r str,
    pub(super) new: &'r str,
    /// The definition of the old name.
    pub(super) definition: DefinitionSite,
    /// The definitions that are renamed with it.
    pub(super) family: &'r [DefinitionSite],
    /// The edits by file.
    pub(super) splices: &'r BTreeMap<AbsPath, Vec<Splice>>,
    /// Members of other classes that are renamed with it, because they are bound to it under its name: `run = run` in a class,
    /// `self.run = run`.
    pub(super) bound: &'r [DefinitionSite],
}

impl Renaming<'_> {
    /// The class that the definition is a member of: its name, and the offset of that.
    pub(super) fn class(&self) -> Option<(String, usize)> {
        let (document, offset) = &self.definition;
        class_of(&Outline::parse(&document.text), *offset)
    }

    /// The old and the new name as Python mangles them in the class around the definition.
    pub(super) fn mangled(&self) -> [String; 2] {
        let (document, offset) = &self.definition;
        let class = enclosing_class(&document.text, *offset);
        [self.old, self.new].map(|name| mangled(name, class.as_deref()))
    }

    /// All definitions that are renamed.
    pub(super) fn definitions(&self) -> impl Iterator<Item = &DefinitionSite> {
        std::iter::once(&self.definition).chain(self.family)
    }

    /// All definitions that get the new name.
    pub(super) fn renamed(&self) -> impl Iterator<Item = &DefinitionSite> {
        self.definitions().chain(self.bound)
    }

    /// The members that the edits rename in classes that have none of the definitions (see [`Self::bound`]), one of each class.
    pub(super) fn find_bound(&self, cx: &RequestContext<'_>) -> Vec<DefinitionSite> {
        let class =
            |document: &Document, at| class_of(&Outline::parse(&document.text), at).map(|(_, class)| class);
        let own = self.definitions().map(|(document, at)| (document.path.clone(), class(document, *at)));
        let mut known: BTreeSet<(AbsPath, Option<usize>)> = own.collect();
        let mut found = Vec::new();
        for (path, splices) in self.splices {
            let Ok(document) = cx.state.files.read(path) else { continue };
            for at in splices.iter().map(|splice| splice.span.start) {
                let class = class(&document, at);
                if class.is_some() && known.insert((path.clone(), class)) {
                    found.push((document.clone(), at));
                }
            }
        }
        found
    }

    pub(super) fn is_edited(&self, path: &AbsPath, offset: usize) -> bool {
        self.splices.get(path).is_some_and(|splices| splices.iter().any(|splice| splice.span.start == offset))
    }
}

/// The class that has a member whose name begins at an offset: its name, and the offset of that.
pub(super) fn class_of(outline: &Outline, offset: usize) -> Option<(String, usize)> {
    let member = outline.definitions.iter().find(|found| found.name_span.start == offset)?;
    let class = outline.definitions.get(member.parent?)?;
    (class.kind == DefinitionKind::Class).then(|| (class.name.clone(), class.name_span.start))
}

/// Records what the new name collides with. `around` is the hierarchy around the classes of the definitions; `undecided` are
/// places that the caller was asked about.
pub(super) fn check(
    cx: &RequestContext<'_>,
    checks: &mut Checks<'_>,
    renaming: &Renaming<'_>,
    around: &Hierarchy,
    undecided: &BTreeSet<LspLocation>,
) {
    let mut places = Vec::new();
    let mut reasons: BTreeSet<String> = BTreeSet::new();
    for (path, splices) in renaming.splices {
        let Ok(document) = cx.state.files.read(path) else { continue };
        let tokens: Vec<usize> = splices.iter().map(|splice| splice.span.start).collect();
        let at = |span: &std::ops::Range<usize>| cx.locations.span(&document, span.clone()).2;
        // Attributes and keyword arguments are not in the file's scopes.
        let found = occurrences(&document.text, document.digest, renaming.old);
        let kinds: BTreeMap<usize, OccurrenceKind> =
            found.iter().map(|found| (found.start, found.kind)).collect();
        let plain: Vec<usize> =
            tokens.iter().copied().filter(|at| kinds.get(at) == Some(&OccurrenceKind::Identifier)).collect();
        let scopes = Scopes::of(&document.text, &[renaming.old, renaming.new]);
        for collision in scopes.collisions(&plain, renaming.new) {
            let reason = match collision.kind {
                CollisionKind::Bound => "is already bound in the same scope",
                CollisionKind::Hidden => "is already bound in a scope between a use and the definition",
                CollisionKind::Captured => "is already used, and the uses would refer to the renamed symbol",
            };
            reasons.insert(reason.to_owned());
            places.push(at(&collision.span));
        }
        let is_open = |span: &std::ops::Range<usize>| {
            let range = document.lines.range(&document.text, span.clone(), cx.locations.server_unit);
            undecided.contains(&LspLocation { path: path.clone(), range })
        };
        // The server knows the variable by another binding, such as a function under the name of an import.
        for span in scopes.left_behind(&plain).map(|name| &name.span).filter(|span| !is_open(span)) {
            reasons.insert("does not reach every binding and use of the variable".to_owned());
            places.push(at(span));
        }
        for token in tokens.iter().filter(|at| kinds.get(at) == Some(&OccurrenceKind::Keyword)) {
            let beside = sibling_keywords(&document.text, *token).unwrap_or_default();
            for (_, span) in beside.iter().filter(|(name, _)| name == renaming.new) {
                reasons.insert("is already an argument of a call".to_owned());
                places.push(at(span));
            }
        }
    }
    for site in renaming.renamed() {
        let own = own_members(site, renaming.new);
        reasons.extend(own.as_ref().map(|(class, _)| is_member(class)));
        let spans = own.into_iter().flat_map(|(_, spans)| spans);
        places.extend(spans.map(|span| cx.locations.span(&site.0, span).2));
    }
    // A package cannot have a submodule and a member of one name.
    let home = &renaming.definition.0.path;
    if home.file_name().starts_with("__init__.py") && renaming.class().is_none() {
        let beside = ["", ".py", ".pyi"].map(|end| home.parent().join(&format!("{}{end}", renaming.new)));
        for path in beside.iter().filter(|path| cx.state.files.kind(path) != FileKind::Missing) {
            reasons.insert("is a submodule of the package".to_owned());
            places.push(cx.locations.paths.uri(path).to_string());
        }
    }
    // A private name is mangled with its class's name, so it collides with nothing in other classes.
    let related = around.members.get(renaming.new).filter(|_| !is_private(renaming.new));
    for member in related.into_iter().flatten() {
        let of = match member.relation {
            Relation::Base => "base class",
            Relation::Derived => "derived class",
            Relation::Sibling => "sibling class",
        };
        reasons.insert(format!("{} ({of})", is_member(&member.class)));
        places.push(cx.locations.span(&member.document, member.name_span.clone()).2);
    }
    places.sort();
    places.dedup();
    let shown: Vec<String> = reasons.iter().take(MAX_REASONS).cloned().collect();
    let more = match reasons.len() - shown.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let shown = match shown.split_last() {
        Some((last, others)) if more.is_empty() && !others.is_empty() => {
            format!("{} and {last}", others.join(", "))
        }
        _ => shown.join(", "),
    };
    let failed = format!("`{}` {shown}{more}", renaming.new);
    let passed = format!("`{}` is free in {}", renaming.new, super::planning::files(renaming.splices.len()));
    checks.fail_if_any(CheckName::Collision, places, &passed, &failed);
}

fn is_member(class: &str) -> String {
    format!("is already a member of {class}")
}

/// The members of a definition's class that have the new name already, with the name of the class; `None` if there are none.
fn own_members(
    (document, offset): &DefinitionSite,
    new: &str,
) -> Option<(String, Vec<std::ops::Range<usize>>)> {
    let outline = Outline::parse(&document.text);
    let (name, class) = class_of(&outline, *offset)?;
    let index = outline.definitions.iter().position(|found| found.name_span.start == class)?;
    let members = outline.children(Some(index)).filter(|(_, member)| member.name == new);
    let spans: Vec<_> = members.map(|(_, member)| member.name_span.clone()).collect();
    (!spans.is_empty()).then_some((name, spans))
}

/// The hierarchy around a class, given by its name and the offset of that in the document, with the members of some
/// names.
pub(super) fn around(
    cx: &RequestContext<'_>,
    document: &Document,
    (name, class): (String, usize),
    wanted: &[&str],
) -> Hierarchy {
    let snapshot = &cx.state.inputs.snapshot;
    let with = |name: &str| cx.state.files_with_word(name);
    let (mut names, mut searched) = (BTreeSet::from([name]), BTreeSet::new());
    let mut files: BTreeSet<AbsPath> = BTreeSet::new();
    let mut found = Hierarchy::default();
    for _ in 0..MAX_SEARCH_ROUNDS {
        let new: Vec<String> = names.difference(&searched).cloned().collect();
        if new.is_empty() {
            break;
        }
        let before = files.len();
        files.extend(new.iter().flat_map(|name| with(name)).map(|path| snapshot.absolute(&path)));
        searched.extend(new);
        if files.len() > before {
            let files: Vec<AbsPath> = files.iter().cloned().collect();
            let roots = &cx.state.inputs.roots;
            found = members(&cx.state.files, roots, &document.path, class, &files, wanted);
            names.extend(found.below.iter().cloned());
        }
    }
    found.is_cut |= names.difference(&searched).next().is_some();
    found
}
