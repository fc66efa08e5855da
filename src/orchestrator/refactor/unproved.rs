//! Uses of the old name that the server did not claim and that may be uses all the same: after a dot, as the name of a keyword
//! argument, in an import that leads nowhere.
//!
//! A server claims what it can type. `other.size` where nobody knows what `other` is it leaves, without a word, and a rename
//! without it breaks the code. So the server is asked where each such token leads. One that leads to another definition is
//! another name; one that leads nowhere may be the renamed one.

use std::collections::BTreeSet;

use super::collision::Renaming;
use super::{fixtures, private};
use crate::lsp::{Listing, Place};
use crate::model::request::Scope;
use crate::orchestrator::ask::Asking;
use crate::orchestrator::completeness::Unclaimed;
use crate::orchestrator::failure::Failure;
use crate::path::AbsPath;
use crate::resolve::occurrences::OccurrenceKind;
use crate::resolve::outline::{DefinitionKind, Import, Imported, Outline};
use crate::resolve::roles::{callee_of, object_of, parameter_at};
use crate::resolve::scopes::Scopes;
use crate::workspace::files::{Document, Files as _};

/// The most tokens that the server is asked about; the rest counts as unproved.
const MOST: usize = 200;

/// How many questions are under way at a time.
const WINDOW: usize = 8;

/// Methods that answer for any name after a dot.
const ANY_NAME: [&str; 2] = ["__getattr__", "__getattribute__"];

/// Places that may mean the old name, and that the rename does not reach.
#[derive(Default)]
pub(super) struct Unproved {
    /// As selectors.
    pub(super) places: Vec<String>,
    reasons: Vec<String>,
}

impl Unproved {
    /// Why the references are not known to be complete.
    pub(super) fn reason(&self) -> Option<String> {
        (!self.reasons.is_empty()).then(|| self.reasons.join("; "))
    }

    fn add(&mut self, places: Vec<String>, reason: impl FnOnce(&str) -> String) {
        if !places.is_empty() {
            let count = places.len();
            self.reasons.push(reason(&if count == 1 {
                "1 place".to_owned()
            } else {
                format!("{count} places")
            }));
            self.places.extend(places);
        }
    }
}

/// What is renamed, as far as it says where its uses can hide.
enum Part {
    /// A member of a class; whether it is a variable of the class, such as a dataclass's, which a constructor may take by name.
    Member { is_field: bool },
    /// A parameter that callers can pass by name.
    Keyword,
    /// A name of a module; the last name of that.
    Global { module: String },
    /// A local name, which hides nowhere.
    Local,
}

/// Looks for them among the places that the server did not claim, and elsewhere.
pub(super) async fn find(
    asking: &Asking<'_>,
    renaming: &Renaming<'_>,
    unclaimed: &[Unclaimed],
) -> Result<Unproved, Failure> {
    let mut found = Unproved::default();
    let old = renaming.old;
    let (tokens, not_asked) = tokens(asking, renaming, unclaimed).await?;
    let not_asked = match not_asked {
        0 => String::new(),
        more => format!(" ({more} of them were not looked at: {MOST} are)"),
    };
    found.add(tokens, |places| format!("nobody can say what `{old}` means in {places}{not_asked}"));
    let spelled = private::spelled_out(asking, renaming);
    found.add(spelled, |places| format!("it is spelled out as Python spells it in {places}"));
    let asked_for = fixtures::asked_for(asking, renaming, unclaimed);
    found.add(asked_for, |places| format!("pytest passes it by its name in {places}"));
    Ok(found)
}

/// The tokens of which nobody can say what they mean, and how many of them the server was not asked about.
async fn tokens(
    asking: &Asking<'_>,
    renaming: &Renaming<'_>,
    unclaimed: &[Unclaimed],
) -> Result<(Vec<String>, usize), Failure> {
    // The server was not shown what it would have to be asked about, and the answer is not complete anyway.
    if asking.request.options.scope == Scope::Configured {
        return Ok((Vec::new(), 0));
    }
    let part = part(asking, renaming);
    let doubtful: Vec<&Unclaimed> =
        unclaimed.iter().filter(|token| is_doubtful(asking, renaming, &part, token)).collect();
    let (asked, not_asked) = doubtful.split_at(doubtful.len().min(MOST));
    let mut unproved = Vec::new();
    let questions = asking.questions();
    for window in asked.chunks(WINDOW) {
        let mut answers = Vec::new();
        for token in window {
            answers.push(questions.definition(&token.document.path, position(asking, token)));
        }
        for (token, answer) in window.iter().zip(answers) {
            let leads_elsewhere = is_elsewhere(asking, renaming, &answer.await?);
            if !leads_elsewhere && !is_of_builtin(asking, token).await? {
                unproved.push(*token);
            }
        }
    }
    let at = |token: &&Unclaimed| asking.places.span(&token.document, token.span.clone()).2;
    Ok((unproved.iter().chain(not_asked).map(at).collect(), not_asked.len()))
}

fn position(asking: &Asking<'_>, token: &Unclaimed) -> crate::text::Position {
    token.document.lines.position(&token.document.text, token.span.start, asking.places.server_unit)
}

fn part(asking: &Asking<'_>, renaming: &Renaming<'_>) -> Part {
    let (document, offset) = &renaming.definition;
    if let Some(parameter) = parameter_at(&document.text, *offset) {
        return if parameter.is_keyword { Part::Keyword } else { Part::Local };
    }
    let outline = Outline::parse(&document.text);
    let definition = outline.definitions.iter().find(|found| found.name_span.start == *offset);
    if let Some(definition) = definition.filter(|_| renaming.class().is_some()) {
        // A class that is neither derived nor decorated has the constructor that it defines.
        let class = definition.parent.map(|class| &outline.definitions[class]);
        let is_plain = class.is_some_and(|class| {
            class.bases.is_empty() && class.other_bases.is_empty() && class.decorators.is_empty()
        });
        return Part::Member { is_field: definition.kind == DefinitionKind::Field && !is_plain };
    }
    // `x.size = 1` outside of the class.
    if object_of(&document.text, *offset).is_some() {
        return Part::Member { is_field: false };
    }
    if !Scopes::of(&document.text, &[renaming.old]).is_of_module(*offset) {
        return Part::Local;
    }
    let name = asking.state.ground.roots.name_of(&document.path).unwrap_or_default();
    Part::Global { module: last_part(&name).to_owned() }
}

/// Whether a token may be a use, as far as syntax tells.
fn is_doubtful(asking: &Asking<'_>, renaming: &Renaming<'_>, part: &Part, token: &Unclaimed) -> bool {
    let (document, offset) = (&token.document, token.span.start);
    match (part, token.kind) {
        (Part::Member { .. }, OccurrenceKind::Attribute) => !is_of_foreign_module(asking, document, offset),
        (Part::Member { is_field: true } | Part::Keyword, OccurrenceKind::Keyword) => true,
        (Part::Global { module }, OccurrenceKind::Attribute) => object_of(&document.text, offset)
            .is_some_and(|(object, start)| {
                last_part(&object) == module
                    || imports(document, &object, start)
                        .iter()
                        .any(|import| last_part(&import.module) == module)
            }),
        (Part::Global { module }, OccurrenceKind::Identifier) => {
            let outline = Outline::parse(&document.text);
            outline.imports.iter().any(|import| {
                import.what == Imported::Name(renaming.old.to_owned())
                    && last_part(&import.module) == module
                    && is_around(&document.text, import, offset)
            })
        }
        _ => false,
    }
}

/// Whether the name after a dot is one of a module that the workspace does not have.
fn is_of_foreign_module(asking: &Asking<'_>, document: &Document, offset: usize) -> bool {
    let Some((object, start)) = object_of(&document.text, offset) else { return false };
    let found = imports(document, &object, start);
    let roots = &asking.state.ground.roots;
    let is_foreign = |import: &Import| {
        let module = roots.import(&asking.state.files, &import.module, &document.path);
        let file = module.as_ref().and_then(|module| module.file());
        import.level == 0 && file.is_none_or(|file| !asking.state.is_in_workspace(file))
    };
    !found.is_empty() && found.iter().all(is_foreign)
}

/// The imports that bind the first name of a dotted name that begins at an offset.
fn imports(document: &Document, dotted: &str, start: usize) -> Vec<Import> {
    let first = dotted.split('.').next().unwrap_or_default();
    if !Scopes::of(&document.text, &[first]).is_of_module(start) {
        return Vec::new();
    }
    let outline = Outline::parse(&document.text);
    outline.imports_of(None).filter(|import| import.bound == first).cloned().collect()
}

/// Whether a token stands in the statement of an import.
fn is_around(text: &str, import: &Import, offset: usize) -> bool {
    // The token that binds is the name itself, or an alias after it.
    let between = text.get(offset..import.bound_span.start).unwrap_or("\n");
    offset == import.bound_span.start || between.split_whitespace().nth(1) == Some("as")
}

/// Whether every definition that a token leads to is another one.
fn is_elsewhere(asking: &Asking<'_>, renaming: &Renaming<'_>, found: &Listing<Place>) -> bool {
    let is_another = |place: &Place| {
        let Ok(document) = asking.state.files.read(&place.path) else { return true };
        let offset = |position| document.lines.offset(&document.text, position, asking.places.server_unit);
        let Some((start, end)) = offset(place.range.start).zip(offset(place.range.end)) else { return true };
        let answers_for_any = document.text.get(start..end).is_some_and(|name| ANY_NAME.contains(&name));
        !answers_for_any && !renaming.is_edited(&place.path, start)
    };
    let is_somewhere = !found.items.is_empty() || found.skipped > 0;
    is_somewhere && found.items.iter().all(is_another)
}

/// Whether a keyword argument is passed to something of `builtins`, such as `dict` and `str.format`, which hand it to nobody.
async fn is_of_builtin(asking: &Asking<'_>, token: &Unclaimed) -> Result<bool, Failure> {
    let text = &token.document.text;
    if token.kind != OccurrenceKind::Keyword {
        return Ok(false);
    }
    let Some(callee) = callee_of(text, token.span.start) else { return Ok(false) };
    let at = token.document.lines.position(text, callee.start, asking.places.server_unit);
    let questions = asking.questions();
    let found = questions.definition(&token.document.path, at).await?;
    let files: BTreeSet<&AbsPath> = found.items.iter().map(|place| &place.path).collect();
    Ok(!files.is_empty() && files.iter().all(|path| path.file_name() == "builtins.pyi"))
}

fn last_part(dotted: &str) -> &str {
    dotted.rsplit('.').next().unwrap_or_default()
}
