//! Requests about the name at a position: definition, declaration, type definition, implementation, references,
//! hover.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ask::{HandlerOutput, RequestContext};
use super::completeness;
use super::failure::Failure;
use super::locations::LocationBuilder;
use super::occurrences::fixtures;
use super::request_state::{RequestState, RequestTarget};
use super::{Attempt, Settings, implementations, references, resolution, stub_sources};
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::bundle::seal::BundleDraft;
use crate::lsp::{Listing, LspLocation};
use crate::model::facts::{Facts, Hover, Location, Provenance};
use crate::model::request::{Command, Request};
use crate::path::AbsPath;
use crate::python::occurrences::{OccurrenceKind, occurrences};
use crate::python::parsed_file::signature_at;
use crate::text::{ColumnUnit, Position, Range};
use crate::workspace::files::Files as _;

/// The prefix of a module's hover text.
const MODULE_HOVER_PREFIX: &str = "(module)";

/// Answers `locate`, which needs no server.
pub(super) fn locate(request: &Request, state: &RequestState, settings: &Settings) -> Attempt {
    let locations = LocationBuilder {
        state,
        files: &state.files,
        paths: &state.inputs.paths,
        // Without a server, the default unit of LSP.
        server_unit: ColumnUnit::Utf16,
        io_unit: request.options.index_io,
        dual: settings.verbose.then(Default::default),
    };
    let resolution = state.resolution_in(request, &locations);
    state.cache_contents(settings);
    let draft = BundleDraft {
        request: Some(request.clone()),
        relocation: resolution::rules_of(resolution.as_ref()),
        resolution,
        facts: Some(Facts::new(Provenance::Syntax)),
        edits: None,
        environment: Some(state.inputs.environment.clone()),
        capabilities: std::collections::BTreeMap::new(),
        error: resolution::missing_form(state, &locations, &request.options),
        warnings: state.inputs.warnings.clone(),
        limits: None,
        measured: None,
        partial: false,
    };
    Attempt { draft, dual: locations.into_dual(), plan: None, measured: None, held: None }
}

/// Answers the requests whose result is a list of locations.
pub(super) async fn locations(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let cmd = cx.request.cmd;
    let offered = cx.server.client.capabilities();
    if cmd == Command::Implementation && !offered.implementation {
        return implementations::by_index(cx, cx.state.target()?).await;
    }
    let capabilities = match cmd {
        Command::Declaration => cx.require("declaration", offered.declaration)?,
        Command::TypeDefinition => cx.require("typeDefinition", offered.type_definition)?,
        Command::Implementation => cx.require("implementation", offered.implementation)?,
        Command::References => cx.require("references", offered.references)?,
        _ => cx.require("definition", offered.definition)?,
    };
    let target = cx.state.target()?;
    let name = target.name();
    if let (Command::References, Some(name)) = (cmd, name) {
        return references::references(cx, target, name, capabilities).await;
    }
    let searched = match (cmd, name) {
        (Command::Implementation, Some(name)) => {
            let targets = [&target.document.path, &target.reference_position().0.path];
            Some(completeness::open_files_with_names(cx, &[name], &targets)?)
        }
        _ => {
            cx.open([target.document.path.clone()])?;
            None
        }
    };
    let mut listing = server_locations(cx, target).await?;
    if cx.open_encoded(listing.items.iter().map(|place| &place.path))? {
        listing = server_locations(cx, target).await?;
    }
    if cx.server.is_shared() && listing.items.iter().any(|place| needs_inference(cx, place)) {
        return Err(Failure::NeedsExclusiveServer);
    }
    if cmd == Command::Definition {
        listing = stub_sources::definitions(cx, target, listing).await?;
    }
    let is_module = |place: &&LspLocation| place.range == Range::default();
    if cmd == Command::Implementation {
        cx.require_fresh_outside_workspace(listing.items.iter().map(|place| &place.path))?;
    } else if cmd == Command::TypeDefinition && !cx.state.is_scoped() {
        // Which source the server returns for a module's stub depends on the files that it has read. Only the
        // locations of definitions can be determined independently of that (see [`stub_sources`]).
        cx.require_fresh_outside_workspace(listing.items.iter().filter(is_module).map(|place| &place.path))?;
    }
    let mut provenance = None;
    if listing.items.is_empty()
        && cmd == Command::Definition
        && let Some((found, how)) = fixtures::definition(cx, &target.document, target.offset).await?
    {
        (listing, provenance) = (found, Some(how));
    }
    if listing.items.is_empty() {
        return Err(no_result(cx, target));
    }
    let completeness = searched.map(|searched| searched.of_files(cx));
    let hover = (cmd == Command::Definition).then(|| signature(cx, &listing.items)).flatten();
    let mut found: Vec<_> = listing
        .items
        .into_iter()
        .map(|place| Location { provenance, ..cx.locations.location(&place) })
        .collect();
    sort(&mut found);
    let options = &cx.request.options;
    let (found, limits) = page(found, options.limit, options.cursor.as_deref())?;
    let mut facts = Facts::new(Provenance::Lsp);
    facts.completeness = completeness;
    facts.hover = hover;
    let list = match cmd {
        Command::Declaration => &mut facts.declarations,
        Command::TypeDefinition => &mut facts.type_definitions,
        Command::Implementation => &mut facts.implementations,
        _ => &mut facts.definitions,
    };
    *list = Some(found);
    Ok(HandlerOutput { facts, limits: Some(limits), capabilities, refactored: None, error: None })
}

/// The signature of the first definition, from its source: the server would have to infer types for it.
fn signature(cx: &RequestContext<'_>, places: &[LspLocation]) -> Option<Hover> {
    let uri = |place: &LspLocation| cx.locations.paths.uri(&place.path);
    let key = |place: &&LspLocation| (uri(place).to_string(), place.range);
    let first = places.iter().min_by_key(key)?;
    let document = cx.state.files.read(&first.path).ok()?;
    let offset = document.lines.offset(&document.text, first.range.start, cx.locations.server_unit)?;
    let markdown = format!("```python\n{}\n```", signature_at(&document, offset)?);
    Some(Hover { markdown, range: None, provenance: Some(Provenance::Syntax) })
}

/// Whether the function at a location has a decorator whose result has to be inferred.
fn needs_inference(cx: &RequestContext<'_>, place: &LspLocation) -> bool {
    let Ok(document) = cx.state.files.read(&place.path) else { return false };
    let unit = cx.locations.server_unit;
    let offset = document.lines.offset(&document.text, place.range.start, unit);
    offset.is_some_and(|offset| cx.state.needs_inference(&document, offset))
}

async fn server_locations(
    cx: &RequestContext<'_>,
    target: &RequestTarget,
) -> Result<Listing<LspLocation>, Failure> {
    let requests = cx.requests();
    let (path, at) = (&target.document.path, position(cx, target));
    Ok(match cx.request.cmd {
        Command::Declaration => requests.declaration(path, at).await?,
        Command::TypeDefinition => requests.type_definition(path, at).await?,
        Command::Implementation => requests.implementation(path, at).await?,
        _ => requests.definition(path, at).await?,
    })
}

/// Answers `hover`.
pub(super) async fn hover(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let capabilities = cx.require("hover", cx.server.client.capabilities().hover)?;
    let target = cx.state.target()?;
    cx.open([target.document.path.clone()])?;
    let requests = cx.requests();
    let (path, at) = (&target.document.path, position(cx, target));
    let declares = cx.server.client.capabilities().declaration;
    let declared = async {
        match declares {
            true => requests.declaration(path, at).await.map(Some),
            false => Ok(None),
        }
    };
    let (response, declared) = tokio::join!(requests.hover(path, at), declared);
    let response = response?;
    let response = response
        .filter(|response| !response.markdown.trim().is_empty())
        .ok_or_else(|| no_result(cx, target))?;
    if !cx.state.is_scoped() && response.markdown.contains(MODULE_HOVER_PREFIX) {
        cx.require_fresh()?;
    }
    let markdown = match declared? {
        Some(declared) => stub_sources::hover(cx, response.markdown, &declared)?,
        None => response.markdown,
    };
    let mut facts = Facts::new(Provenance::Lsp);
    facts.hover =
        Some(Hover { markdown: cx.locations.paths.text(&markdown), range: response.range, provenance: None });
    Ok(HandlerOutput { facts, limits: None, capabilities, refactored: None, error: None })
}

/// The target's position in the server's columns.
pub(super) fn position(cx: &RequestContext<'_>, target: &RequestTarget) -> Position {
    let document: &Arc<_> = &target.document;
    document.lines.position(&document.text, target.offset, cx.locations.server_unit)
}

/// The failure for a target for which the server returns nothing.
pub(super) fn no_result(cx: &RequestContext<'_>, target: &RequestTarget) -> Failure {
    let (_, _, at) = cx.locations.span(&target.document, target.offset..target.offset);
    let what = target.name().map_or_else(|| "the text".to_owned(), |name| format!("`{name}`"));
    let message = format!("{} has no {} for {what} at {at}", cx.settings.server, cx.request.cmd.as_str());
    let hint = match (target.name(), cx.request.cmd) {
        (None, _) => {
            "there is no identifier at this location; `lanser symbols PATH` lists the names of a file"
                .to_owned()
        }
        (Some(name), cmd) if searches_definition(cmd) && is_attribute(target, name) => format!(
            "the type of the receiver is unknown or has no `{name}`; annotate the receiver, or search with `lanser symbols --query {name}`"
        ),
        (Some(_), _) => {
            "the server does not know this name; `lanser diag PATH` shows unresolved imports".to_owned()
        }
    };
    Failure::not_found(message, hint)
}

/// Whether an empty response of the server means that it does not know the definition of the name.
const fn searches_definition(cmd: Command) -> bool {
    use Command::{Declaration, Definition, Hover, Implementation, References};
    matches!(cmd, Definition | Declaration | Implementation | References | Hover)
}

/// Whether the target is the name after the dot of an attribute.
fn is_attribute(target: &RequestTarget, name: &str) -> bool {
    let (document, start) = (&target.document, target.name_span.as_ref().map(|span| span.start));
    occurrences(&document.text, document.digest, name)
        .iter()
        .any(|found| Some(found.start) == start && found.kind == OccurrenceKind::Attribute)
}

/// The distinct paths of a list of locations.
pub(super) fn distinct<'p>(locations: impl IntoIterator<Item = &'p LspLocation>) -> BTreeSet<&'p AbsPath> {
    locations.into_iter().map(|place| &place.path).collect()
}
