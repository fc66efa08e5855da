//! `symbols`: the outline of documents, and the symbol search over the workspace.

use std::collections::BTreeSet;

use super::completeness;
use super::context::{HandlerOutput, RequestContext};
use super::failure::Failure;
use super::positions::{distinct, span_of};
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::{self, LspLocation, Profile, WorkspaceSymbol};
use crate::model::facts::{Completeness, CompletenessStatus, Facts, Provenance, Symbol, Unresolved};
use crate::model::request::Scope;
use crate::path::{AbsPath, WorkspacePath};
use crate::python::outline::Outline;
use crate::text::Range;
use crate::text::words::words;
use crate::workspace::files::Files as _;
use crate::workspace::parallel::parallel_map;

/// The most files whose outlines are searched because the server may leave them out.
const MAX_OUTLINES: usize = 400;

/// Answers `symbols`.
pub(super) async fn symbols(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let offered = cx.server.client.capabilities();
    let (mut found, completeness, capabilities) = if let Some(query) = &cx.request.options.query {
        let capabilities = cx.require("workspaceSymbol", offered.workspace_symbol)?;
        let (found, completeness) = search(cx, query).await?;
        (found, Some(completeness), capabilities)
    } else {
        let capabilities = cx.require("documentSymbol", offered.document_symbol)?;
        let (found, completeness) = outlines(cx).await?;
        (found, completeness, capabilities)
    };
    if let Some(part) = cx.state.selected_part(cx.locations.server_unit) {
        found = selected(found, part);
    }
    sort(&mut found);
    let options = &cx.request.options;
    let (found, limits) = page(found, options.limit, options.cursor.as_deref())?;
    let mut facts = Facts::new(Provenance::Lsp);
    facts.symbols = Some(found);
    facts.completeness = completeness;
    Ok(HandlerOutput { facts, limits: Some(limits), capabilities, refactored: None, error: None })
}

/// The symbols in a part of their file; if there are none, the innermost one around it.
fn selected(found: Vec<Symbol>, part: Range) -> Vec<Symbol> {
    let is_inside = |outer: &Range, inner: &Range| outer.start <= inner.start && inner.end <= outer.end;
    let name = |symbol: &Symbol| symbol.selection_range.unwrap_or(symbol.range);
    let (inside, outside): (Vec<Symbol>, Vec<Symbol>) =
        found.into_iter().partition(|symbol| is_inside(&part, &name(symbol)));
    if !inside.is_empty() {
        return inside;
    }
    let around = outside.into_iter().filter(|symbol| symbol.range.overlaps(&part));
    around.max_by_key(|symbol| symbol.range.start).into_iter().collect()
}

/// The outlines of all requested files. A file that cannot be read does not stop the others, unless it was the only
/// one; the verdict names it.
async fn outlines(cx: &RequestContext<'_>) -> Result<(Vec<Symbol>, Option<Completeness>), Failure> {
    let files = cx.state.request_files(cx.request)?;
    let mut found = Vec::new();
    let mut unreadable = Vec::new();
    for path in &files {
        if !cx.open([path.clone()])?.is_empty() {
            let error = cx.state.files.read(path).err().map_or_else(String::new, |error| error.to_string());
            let error = cx.locations.paths.text(&error);
            if files.len() == 1 {
                return Err(Failure::not_found(error, "name a file that can be read"));
            }
            unreadable.push(error);
            continue;
        }
        outline(cx, path, |symbol, container| {
            found.push(of_document(cx, path, symbol, container.clone()));
        })
        .await?;
    }
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let completeness = (!unreadable.is_empty()).then(|| Completeness {
        status: CompletenessStatus::Unknown,
        reason: Some(unreadable.join("; ")),
        scope: cx.request.options.scope,
        files_with_name: count(files.len()),
        files_searched: count(files.len() - unreadable.len()),
        explained: None,
        agreement: None,
        unresolved: Unresolved::default(),
    });
    Ok((found, completeness))
}

/// Passes every symbol of an open document, and its container, to `visit`.
async fn outline(
    cx: &RequestContext<'_>,
    path: &AbsPath,
    mut visit: impl FnMut(&lsp::LspSymbol, &Option<String>),
) -> Result<(), Failure> {
    let symbols = cx.requests().document_symbols(path).await?;
    // An explicit stack: a file may nest deeper than a thread's stack is long.
    let mut stack: Vec<(lsp::LspSymbol, Option<String>)> =
        symbols.into_iter().map(|symbol| (symbol, None)).collect();
    while let Some((symbol, container)) = stack.pop() {
        let container = container.or_else(|| symbol.container.clone());
        let inner = container
            .as_ref()
            .map_or_else(|| symbol.name.clone(), |outer| format!("{outer}.{}", symbol.name));
        stack.extend(symbol.children.iter().cloned().map(|child| (child, Some(inner.clone()))));
        visit(&symbol, &container);
    }
    Ok(())
}

fn of_document(
    cx: &RequestContext<'_>,
    path: &AbsPath,
    symbol: &lsp::LspSymbol,
    container: Option<String>,
) -> Symbol {
    let (uri, at, preview) = cx.locations.describe(path, symbol.selection_range);
    Symbol {
        name: symbol.name.clone(),
        container,
        symbol_kind: symbol.kind.name().to_owned(),
        uri,
        range: symbol.range,
        selection_range: Some(symbol.selection_range),
        at,
        symbol_id: cx.locations.symbol_id(path, symbol.selection_range),
        preview,
    }
}

/// Searches symbols over the workspace. The server searches only the files that its configuration includes, and skips
/// others even while they are open. For those of the others in which a word could match, the outline is requested and
/// searched.
async fn search(cx: &RequestContext<'_>, query: &str) -> Result<(Vec<Symbol>, Completeness), Failure> {
    let snapshot = &cx.state.inputs.snapshot;
    let all: Vec<AbsPath> = snapshot.files().keys().map(|path| snapshot.absolute(path)).collect();
    let matching: BTreeSet<AbsPath> = {
        let matches = parallel_map(&all, cx.settings.threads, |path| {
            let document = cx.state.files.read(path).ok()?;
            words(document.text.as_bytes()).any(|word| is_subsequence(query, word)).then(|| path.clone())
        });
        matches.into_iter().flatten().collect()
    };
    let scope = cx.request.options.scope;
    let requests = cx.requests();
    let mut listing = requests.workspace_symbols(query).await?;
    let places: Vec<LspLocation> = listing.items.iter().map(|item| item.place.clone()).collect();
    if cx.open_encoded(distinct(&places))? {
        listing = requests.workspace_symbols(query).await?;
    }
    let mut found: Vec<Symbol> = listing.items.iter().map(|item| of_workspace(cx, item)).collect();
    let mut completeness = completeness::of_documents(cx, matching.len(), &completeness::unreadable(cx));
    if scope == Scope::Workspace {
        let included = &cx.state.inputs.included;
        let searches_ignored = !Profile::of(cx.settings.server).finds_files;
        let answered = distinct(&places);
        // A server that finds files by itself leaves out those that git ignores.
        let may_be_left_out = |path: &WorkspacePath| match searches_ignored {
            true => !included.includes(path) || !path.is_python(),
            false => !answered.contains(&snapshot.absolute(path)),
        };
        let mut excluded: Vec<&AbsPath> = snapshot
            .files()
            .keys()
            .filter(|path| may_be_left_out(path))
            .filter_map(|path| matching.get(&snapshot.absolute(path)))
            .collect();
        if !searches_ignored && excluded.len() > MAX_OUTLINES {
            excluded.clear();
            if completeness.status == CompletenessStatus::Complete {
                completeness.status = CompletenessStatus::Unknown;
                completeness.reason = Some("the server leaves out files that git ignores".to_owned());
            }
        }
        cx.open(excluded.iter().copied().cloned())?;
        for path in excluded {
            outline(cx, path, |symbol, container| {
                if is_subsequence(query, symbol.name.as_bytes()) {
                    let symbol = of_document(cx, path, symbol, container.clone());
                    // The same form in which the server reports its own matches.
                    let range = symbol.selection_range.unwrap_or(symbol.range);
                    found.push(Symbol { range, selection_range: None, ..symbol });
                }
            })
            .await?;
        }
    }
    Ok((found, completeness))
}

/// The name in a definition, where a server reports the place of all of it.
fn name_of(cx: &RequestContext<'_>, item: &WorkspaceSymbol) -> Option<LspLocation> {
    let (document, whole) = span_of(cx, &item.place)?;
    if document.text.get(whole.clone())? == item.name {
        return None;
    }
    let outline = Outline::parse(&document.text);
    let names =
        outline.definitions.iter().filter(|found| found.name == item.name).map(|found| &found.name_span);
    let span = names.filter(|span| whole.contains(&span.start)).min_by_key(|span| span.start)?;
    let range = document.lines.range(&document.text, span.clone(), cx.locations.server_unit);
    Some(LspLocation { path: item.place.path.clone(), range })
}

fn of_workspace(cx: &RequestContext<'_>, item: &WorkspaceSymbol) -> Symbol {
    let place = name_of(cx, item).unwrap_or_else(|| item.place.clone());
    let (uri, at, preview) = cx.locations.describe(&place.path, place.range);
    let (symbol_id, scopes) = cx.locations.definition_at(&place.path, place.range).unzip();
    let container = item.container.clone().filter(|container| !container.is_empty());
    Symbol {
        name: item.name.clone(),
        // ty 0.0.105 does not tell it.
        container: container.or_else(|| scopes.flatten()),
        symbol_kind: item.kind.name().to_owned(),
        uri,
        range: place.range,
        selection_range: None,
        at,
        symbol_id,
        preview,
    }
}

/// Whether the characters of `query` appear in `word` in order, ignoring case. This is the most permissive match that
/// servers use, so no file is missed.
fn is_subsequence(query: &str, word: &[u8]) -> bool {
    let word = String::from_utf8_lossy(word);
    let mut rest = word.chars().flat_map(char::to_lowercase);
    query.chars().flat_map(char::to_lowercase).all(|wanted| rest.any(|c| c == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsequences_match() {
        assert!(is_subsequence("qs", b"QuerySet"));
        assert!(is_subsequence("QUERY", b"my_query"));
        assert!(!is_subsequence("sq", b"Query"));
    }
}
