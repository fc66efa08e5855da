//! `symbols`: the outline of documents, and the search over the workspace.

use std::collections::BTreeSet;

use super::ask::{Answer, Asking};
use super::completeness;
use super::failure::Failure;
use super::query::distinct;
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::{self, Place, WorkspaceSymbol};
use crate::model::facts::{Completeness, CompletenessStatus, Facts, Provenance, Symbol, Unresolved};
use crate::model::request::Scope;
use crate::path::AbsPath;
use crate::text::words::words;
use crate::workspace::files::Files as _;
use crate::workspace::parallel::parallel_map;

/// Answers `symbols`.
pub(super) async fn symbols(asking: &Asking<'_>) -> Result<Answer, Failure> {
    let offered = asking.server.client.capabilities();
    let (mut found, completeness, capabilities) = if let Some(query) = &asking.request.options.query {
        let capabilities = asking.require("workspaceSymbol", offered.workspace_symbol)?;
        let (found, completeness) = search(asking, query).await?;
        (found, Some(completeness), capabilities)
    } else {
        let capabilities = asking.require("documentSymbol", offered.document_symbol)?;
        let (found, completeness) = outlines(asking).await?;
        (found, completeness, capabilities)
    };
    sort(&mut found);
    let options = &asking.request.options;
    let (found, limits) = page(found, options.limit, options.cursor.as_deref())?;
    let mut facts = Facts::new(Provenance::Lsp);
    facts.symbols = Some(found);
    facts.completeness = completeness;
    Ok(Answer { facts, limits: Some(limits), capabilities, refactored: None, error: None })
}

/// The outlines of every file that the request means. What cannot be read does not stop the others, unless it was all
/// that was asked about; then the verdict names it.
async fn outlines(asking: &Asking<'_>) -> Result<(Vec<Symbol>, Option<Completeness>), Failure> {
    let files = asking.state.request_files(asking.request)?;
    let mut found = Vec::new();
    let mut unreadable = Vec::new();
    for path in &files {
        if !asking.open([path.clone()])?.is_empty() {
            let error =
                asking.state.files.read(path).err().map_or_else(String::new, |error| error.to_string());
            let error = asking.places.paths.text(&error);
            if files.len() == 1 {
                return Err(Failure::not_found(error, "name a file that can be read"));
            }
            unreadable.push(error);
            continue;
        }
        outline(asking, path, |symbol, container| {
            found.push(of_document(asking, path, symbol, container.clone()));
        })
        .await?;
    }
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let completeness = (!unreadable.is_empty()).then(|| Completeness {
        status: CompletenessStatus::Unknown,
        reason: Some(unreadable.join("; ")),
        scope: asking.request.options.scope,
        files_with_name: count(files.len()),
        files_searched: count(files.len() - unreadable.len()),
        explained: None,
        unresolved: Unresolved::default(),
    });
    Ok((found, completeness))
}

/// Tells every symbol of a document that is open, and what it is in.
async fn outline(
    asking: &Asking<'_>,
    path: &AbsPath,
    mut tell: impl FnMut(&lsp::Symbol, &Option<String>),
) -> Result<(), Failure> {
    let symbols = asking.questions().document_symbols(path).await?;
    // An explicit stack: a file may nest deeper than a thread's stack is long.
    let mut stack: Vec<(lsp::Symbol, Option<String>)> =
        symbols.into_iter().map(|symbol| (symbol, None)).collect();
    while let Some((symbol, container)) = stack.pop() {
        let container = container.or_else(|| symbol.container.clone());
        let inner = container
            .as_ref()
            .map_or_else(|| symbol.name.clone(), |outer| format!("{outer}.{}", symbol.name));
        stack.extend(symbol.children.iter().cloned().map(|child| (child, Some(inner.clone()))));
        tell(&symbol, &container);
    }
    Ok(())
}

fn of_document(
    asking: &Asking<'_>,
    path: &AbsPath,
    symbol: &lsp::Symbol,
    container: Option<String>,
) -> Symbol {
    let (uri, at, preview) = asking.places.describe(path, symbol.selection_range);
    Symbol {
        name: symbol.name.clone(),
        container,
        symbol_kind: symbol.kind.name().to_owned(),
        uri,
        range: symbol.range,
        selection_range: Some(symbol.selection_range),
        at,
        symbol_id: asking.places.symbol_id(path, symbol.selection_range),
        preview,
    }
}

/// Searches names over the workspace. The server only searches what its configuration includes: a file that it leaves out
/// is passed over even while it is open. So of those in which a word could match the outline is asked for and searched.
async fn search(asking: &Asking<'_>, query: &str) -> Result<(Vec<Symbol>, Completeness), Failure> {
    let snapshot = &asking.state.ground.snapshot;
    let all: Vec<AbsPath> = snapshot.files().keys().map(|path| snapshot.absolute(path)).collect();
    let matching: BTreeSet<AbsPath> = {
        let matches = parallel_map(&all, asking.settings.threads, |path| {
            let document = asking.state.files.read(path).ok()?;
            words(document.text.as_bytes()).any(|word| is_subsequence(query, word)).then(|| path.clone())
        });
        matches.into_iter().flatten().collect()
    };
    let scope = asking.request.options.scope;
    let questions = asking.questions();
    let mut listing = questions.workspace_symbols(query).await?;
    let places: Vec<Place> = listing.items.iter().map(|item| item.place.clone()).collect();
    if asking.open_encoded(distinct(&places))? {
        listing = questions.workspace_symbols(query).await?;
    }
    let mut found: Vec<Symbol> = listing.items.iter().map(|item| of_workspace(asking, item)).collect();
    if scope == Scope::Workspace {
        let included = &asking.state.ground.included;
        let left_out: Vec<&AbsPath> = snapshot
            .files()
            .keys()
            .filter(|path| !included.includes(path))
            .filter_map(|path| matching.get(&snapshot.absolute(path)))
            .collect();
        asking.open(left_out.iter().copied().cloned())?;
        for path in left_out {
            outline(asking, path, |symbol, container| {
                if is_subsequence(query, symbol.name.as_bytes()) {
                    let symbol = of_document(asking, path, symbol, container.clone());
                    // As the server tells what it finds by itself.
                    let range = symbol.selection_range.unwrap_or(symbol.range);
                    found.push(Symbol { range, selection_range: None, ..symbol });
                }
            })
            .await?;
        }
    }
    let completeness = completeness::of_documents(asking, matching.len(), &completeness::unreadable(asking));
    Ok((found, completeness))
}

fn of_workspace(asking: &Asking<'_>, item: &WorkspaceSymbol) -> Symbol {
    let (uri, at, preview) = asking.places.describe(&item.place.path, item.place.range);
    Symbol {
        name: item.name.clone(),
        container: item.container.clone().filter(|container| !container.is_empty()),
        symbol_kind: item.kind.name().to_owned(),
        uri,
        range: item.place.range,
        selection_range: None,
        at,
        symbol_id: asking.places.symbol_id(&item.place.path, item.place.range),
        preview,
    }
}

/// Whether the characters of `query` stand in `word` in their order, whatever their case: the widest match that servers
/// use, so that no file is missed.
fn is_subsequence(query: &str, word: &[u8]) -> bool {
    let word = String::from_utf8_lossy(word);
    let mut rest = word.chars().flat_map(char::to_lowercase);
    query.chars().flat_map(char::to_lowercase).all(|wanted| rest.any(|c| c == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_match() {
        assert!(is_subsequence("qs", b"QuerySet"));
        assert!(is_subsequence("QUERY", b"my_query"));
        assert!(!is_subsequence("sq", b"Query"));
    }
}
