//! Definition, declaration, type definition, implementation, references, hover: questions about the name at a place.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ask::{Answer, Asking};
use super::completeness;
use super::failure::Failure;
use super::occurrences::fixtures;
use super::places::Places;
use super::state::{State, Subject};
use super::{Attempt, Settings, implementations, located, stubs, uses};
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::bundle::seal::Draft;
use crate::lsp::{Listing, Place};
use crate::model::facts::{Facts, Hover, Location, Provenance};
use crate::model::request::{Command, Request};
use crate::path::AbsPath;
use crate::text::{ColumnUnit, Position, Range};
use crate::workspace::files::Files as _;

/// How a hover begins that is about a module.
const MODULE: &str = "(module)";

/// Answers `locate`, for which the state is enough.
pub(super) fn located(request: &Request, state: &State, settings: &Settings) -> Attempt {
    let places = Places {
        state,
        files: &state.files,
        paths: &state.ground.paths,
        // No server was asked; the unit is the one that LSP takes for granted.
        server_unit: ColumnUnit::Utf16,
        io_unit: request.options.index_io,
        dual: settings.verbose.then(Default::default),
    };
    let resolution = state.resolution_in(request, &places);
    state.keep_contents(settings);
    let draft = Draft {
        request: Some(request.clone()),
        relocation: located::rules_of(resolution.as_ref()),
        resolution,
        facts: Some(Facts::new(Provenance::Syntax)),
        edits: None,
        environment: Some(state.ground.environment.clone()),
        capabilities: std::collections::BTreeMap::new(),
        error: located::missing_form(state, &places, &request.options),
        warnings: state.ground.warnings.clone(),
        limits: None,
        partial: false,
    };
    Attempt { draft, dual: places.into_dual(), plan: None, measured: None, held: None }
}

/// Answers the questions whose answer is a list of places.
pub(super) async fn locations(asking: &Asking<'_>) -> Result<Answer, Failure> {
    let cmd = asking.request.cmd;
    let offered = asking.server.client.capabilities();
    if cmd == Command::Implementation && !offered.implementation {
        return implementations::by_index(asking, asking.state.subject()?).await;
    }
    let capabilities = match cmd {
        Command::Declaration => asking.require("declaration", offered.declaration)?,
        Command::TypeDefinition => asking.require("typeDefinition", offered.type_definition)?,
        Command::Implementation => asking.require("implementation", offered.implementation)?,
        Command::References => asking.require("references", offered.references)?,
        _ => asking.require("definition", offered.definition)?,
    };
    let subject = asking.state.subject()?;
    let name = subject.name();
    if let (Command::References, Some(name)) = (cmd, name) {
        return uses::references(asking, subject, name, capabilities).await;
    }
    let searched = match (cmd, name) {
        (Command::Implementation, Some(name)) => {
            let targets = [&subject.document.path, &subject.asked_for_uses().0.path];
            Some(completeness::make_known(asking, &[name], &targets)?)
        }
        _ => {
            asking.open([subject.document.path.clone()])?;
            None
        }
    };
    let mut listing = places(asking, subject).await?;
    if asking.open_encoded(listing.items.iter().map(|place| &place.path))? {
        listing = places(asking, subject).await?;
    }
    if asking.server.is_shared() && listing.items.iter().any(|place| is_made_up(asking, place)) {
        return Err(Failure::Company);
    }
    if cmd == Command::Definition {
        listing = stubs::definitions(asking, subject, listing).await?;
    }
    let is_module = |place: &&Place| place.range == Range::default();
    if cmd == Command::Implementation {
        asking.require_clean(listing.items.iter().map(|place| &place.path))?;
    } else if cmd == Command::TypeDefinition && !asking.state.is_scoped() {
        // Which source of a module's stub is told hangs on what the server has read, and only the places of definitions can
        // be told without that.
        asking.require_clean(listing.items.iter().filter(is_module).map(|place| &place.path))?;
    }
    let mut provenance = None;
    if listing.items.is_empty()
        && cmd == Command::Definition
        && let Some((found, how)) = fixtures::definition(asking, &subject.document, subject.offset).await?
    {
        (listing, provenance) = (found, Some(how));
    }
    if listing.items.is_empty() {
        return Err(nothing_there(asking, subject));
    }
    let completeness = searched.map(|searched| searched.of_files(asking));
    let mut found: Vec<_> = listing
        .items
        .into_iter()
        .map(|place| Location { provenance, ..asking.places.location(&place) })
        .collect();
    sort(&mut found);
    let options = &asking.request.options;
    let (found, limits) = page(found, options.limit, options.cursor.as_deref())?;
    let mut facts = Facts::new(Provenance::Lsp);
    facts.completeness = completeness;
    let list = match cmd {
        Command::Declaration => &mut facts.declarations,
        Command::TypeDefinition => &mut facts.type_definitions,
        Command::Implementation => &mut facts.implementations,
        _ => &mut facts.definitions,
    };
    *list = Some(found);
    Ok(Answer { facts, limits: Some(limits), capabilities, refactored: None, error: None })
}

/// Whether a place is that of a function of which a decorator made something that has to be inferred.
fn is_made_up(asking: &Asking<'_>, place: &Place) -> bool {
    let Ok(document) = asking.state.files.read(&place.path) else { return false };
    let unit = asking.places.server_unit;
    let offset = document.lines.offset(&document.text, place.range.start, unit);
    offset.is_some_and(|offset| asking.state.is_made_up(&document, offset))
}

async fn places(asking: &Asking<'_>, subject: &Subject) -> Result<Listing<Place>, Failure> {
    let questions = asking.questions();
    let (path, at) = (&subject.document.path, position(asking, subject));
    Ok(match asking.request.cmd {
        Command::Declaration => questions.declaration(path, at).await?,
        Command::TypeDefinition => questions.type_definition(path, at).await?,
        Command::Implementation => questions.implementation(path, at).await?,
        _ => questions.definition(path, at).await?,
    })
}

/// Answers `hover`.
pub(super) async fn hover(asking: &Asking<'_>) -> Result<Answer, Failure> {
    let capabilities = asking.require("hover", asking.server.client.capabilities().hover)?;
    let subject = asking.state.subject()?;
    asking.open([subject.document.path.clone()])?;
    let questions = asking.questions();
    let (path, at) = (&subject.document.path, position(asking, subject));
    let declares = asking.server.client.capabilities().declaration;
    let declared = async {
        match declares {
            true => questions.declaration(path, at).await.map(Some),
            false => Ok(None),
        }
    };
    let (said, declared) = tokio::join!(questions.hover(path, at), declared);
    let said = said?;
    let said =
        said.filter(|said| !said.markdown.trim().is_empty()).ok_or_else(|| nothing_there(asking, subject))?;
    if !asking.state.is_scoped() && said.markdown.contains(MODULE) {
        asking.require_pristine()?;
    }
    let markdown = match declared? {
        Some(declared) => stubs::hover(asking, said.markdown, &declared)?,
        None => said.markdown,
    };
    let mut facts = Facts::new(Provenance::Lsp);
    facts.hover = Some(Hover { markdown: asking.places.paths.text(&markdown), range: said.range });
    Ok(Answer { facts, limits: None, capabilities, refactored: None, error: None })
}

/// Where the server is asked, in its own columns.
pub(super) fn position(asking: &Asking<'_>, subject: &Subject) -> Position {
    let document: &Arc<_> = &subject.document;
    document.lines.position(&document.text, subject.offset, asking.places.server_unit)
}

/// The server has nothing to say of a place that exists.
pub(super) fn nothing_there(asking: &Asking<'_>, subject: &Subject) -> Failure {
    let (_, _, at) = asking.places.span(&subject.document, subject.offset..subject.offset);
    let what = subject.name().map_or_else(|| "what stands there".to_owned(), |name| format!("`{name}`"));
    let message =
        format!("{} has no {} for {what} at {at}", asking.settings.server, asking.request.cmd.as_str());
    let hint = match subject.name() {
        None => "there is no identifier at this place; `lanser symbols PATH` lists the names of a file",
        Some(_) => "the server does not know this name; `lanser diag PATH` shows unresolved imports",
    };
    Failure::not_found(message, hint)
}

/// The paths of a list of places, each once.
pub(super) fn distinct<'p>(places: impl IntoIterator<Item = &'p Place>) -> BTreeSet<&'p AbsPath> {
    places.into_iter().map(|place| &place.path).collect()
}
