//! Requests about the name at a position: definition, declaration, type definition, implementation, references,
//! hover.

use super::agreement;
use super::context::{Attempt, HandlerOutput, RequestContext};
use super::failure::Failure;
use super::locations::LocationBuilder;
use super::occurrences::fixtures;
use super::opinion::Opinions;
use super::order_dependence::needs_inference;
use super::positions::{by_name, no_result, position};
use super::request_state::{RequestState, RequestTarget};
use super::settings::Settings;
use super::{implementations, references, resolution, stub_sources};
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::bundle::seal::BundleDraft;
use crate::lsp::{Listing, LspLocation};
use crate::model::facts::{Facts, Hover, Location, Provenance};
use crate::model::request::{Command, Request};
use crate::python::parsed_file::signature_at;
use crate::text::{ColumnUnit, Range};
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
    Attempt { draft, dual: locations.into_dual(), plan: None, measured: None }
}

/// Answers the requests whose result is a list of locations.
pub(super) async fn locations(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let cmd = cx.request.cmd;
    let offered = cx.server.client.capabilities();
    if cmd == Command::Implementation {
        return implementations::implementations(cx, cx.state.target()?).await;
    }
    let capabilities = match cmd {
        Command::Declaration => cx.require("declaration", offered.declaration)?,
        Command::TypeDefinition => cx.require("typeDefinition", offered.type_definition)?,
        Command::References => cx.require("references", offered.references)?,
        _ => cx.require("definition", offered.definition)?,
    };
    let target = cx.state.target()?;
    let name = target.name();
    if let (Command::References, Some(name)) = (cmd, name) {
        return references::references(cx, target, name, capabilities).await;
    }
    cx.open([target.document.path.clone()])?;
    let asked = async {
        let is_compared = cmd == Command::Definition;
        if is_compared { agreement::ask(cx, &[]).await } else { Ok(None) }
    };
    let (mut listing, opinion) = tokio::try_join!(server_locations(cx, target), asked)?;
    if cx.open_encoded(listing.items.iter().map(|place| &place.path))? {
        listing = server_locations(cx, target).await?;
    }
    if cx.server.is_shared() && needs_inference(cx, &listing.items) {
        return Err(Failure::NeedsExclusiveServer);
    }
    if cmd == Command::Definition {
        listing = stub_sources::definitions(cx, target, listing).await?;
    }
    let is_module = |place: &&LspLocation| place.range == Range::default();
    if cmd == Command::TypeDefinition && !cx.state.is_scoped() {
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
    if let Opinions::Other(request) = &cx.opinions {
        let opinion = agreement::opinion_on_definitions(cx, &listing.items, &request.question);
        return Ok(agreement::give(request, opinion));
    }
    let hover = (cmd == Command::Definition).then(|| signature(cx, &listing.items)).flatten();
    let describe = |place: &LspLocation| Location { provenance, ..cx.locations.location(place) };
    let mut found: Vec<Location> = match opinion {
        Some(opinion) => {
            let found = listing.items.into_iter().map(|place| (place.clone(), describe(&place)));
            agreement::merge_definitions(cx, found.collect(), &opinion)
        }
        None => listing.items.iter().map(describe).collect(),
    };
    if found.is_empty() {
        return Err(no_result(cx, target));
    }
    sort(&mut found);
    let options = &cx.request.options;
    let (found, limits) = page(found, options.limit, options.cursor.as_deref())?;
    let mut facts = Facts::new(Provenance::Lsp);
    facts.hover = hover;
    let list = match cmd {
        Command::Declaration => &mut facts.declarations,
        Command::TypeDefinition => &mut facts.type_definitions,
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

async fn server_locations(
    cx: &RequestContext<'_>,
    target: &RequestTarget,
) -> Result<Listing<LspLocation>, Failure> {
    let requests = cx.requests();
    let (path, at) = (&target.document.path, position(cx, target));
    let found = match cx.request.cmd {
        Command::Declaration => requests.declaration(path, at).await?,
        Command::TypeDefinition => requests.type_definition(path, at).await?,
        _ => requests.definition(path, at).await?,
    };
    Ok(by_name(cx, found))
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
