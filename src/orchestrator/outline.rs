//! `symbols`: the outline of documents, and the search over the workspace.

use std::collections::BTreeSet;

use super::ask::{Answer, Asking};
use super::completeness;
use super::failure::Failure;
use super::query::distinct;
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::{self, Place, WorkspaceSymbol};
use crate::model::facts::{Completeness, Facts, Provenance, Symbol};
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
        let (found, skipped) = outlines(asking).await?;
        let verdict =
            (!skipped.is_empty()).then(|| completeness::of_documents(asking, asking.open_count(), &skipped));
        (found, verdict, capabilities)
    };
    sort(&mut found);
    let options = &asking.request.options;
    let (found, limits) = page(found, options.limit, options.cursor.as_deref())?;
    let mut facts = Facts::new(Provenance::Lsp);
    facts.symbols = Some(found);
    facts.completeness = completeness;
    Ok(Answer { facts, limits: Some(limits), capabilities })
}

/// The outlines of every file that the request means, and those of several files that could not be read.
async fn outlines(asking: &Asking<'_>) -> Result<(Vec<Symbol>, Vec<AbsPath>), Failure> {
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    let files = asking.state.request_files(asking.request)?;
    let one = files.len() == 1;
    for path in files {
        if let Some(unreadable) = asking.open([path.clone()])?.first() {
            // One file of many must not stop the others; the answer says that it is not whole.
            if !one {
                skipped.push(path);
                continue;
            }
            let error =
                asking.state.files.read(unreadable).err().map_or_else(String::new, |error| error.to_string());
            return Err(Failure::not_found(asking.places.paths.text(&error), "name a file that can be read"));
        }
        let questions = asking.server.client.within(asking.settings.timeout);
        let symbols = questions.document_symbols(&path).await?;
        // An explicit stack: a file may nest deeper than a thread's stack is long.
        let mut stack: Vec<(lsp::Symbol, Option<String>)> =
            symbols.into_iter().map(|symbol| (symbol, None)).collect();
        while let Some((symbol, container)) = stack.pop() {
            let container = container.or_else(|| symbol.container.clone());
            let inner = container
                .as_ref()
                .map_or_else(|| symbol.name.clone(), |outer| format!("{outer}.{}", symbol.name));
            stack.extend(symbol.children.iter().cloned().map(|child| (child, Some(inner.clone()))));
            found.push(of_document(asking, &path, &symbol, container));
        }
    }
    Ok((found, skipped))
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
        preview,
    }
}

/// Searches names over the workspace. The server only searches what it knows; where its configuration leaves files out,
/// those in which a word could match are made known to it.
async fn search(asking: &Asking<'_>, query: &str) -> Result<(Vec<Symbol>, Completeness), Failure> {
    let snapshot = &asking.state.snapshot;
    let all: Vec<AbsPath> = snapshot.files().keys().map(|path| snapshot.absolute(path)).collect();
    let matching: BTreeSet<AbsPath> = {
        let matches = parallel_map(&all, asking.settings.threads, |path| {
            let document = asking.state.files.read(path).ok()?;
            words(document.text.as_bytes()).any(|word| is_subsequence(query, word)).then(|| path.clone())
        });
        matches.into_iter().flatten().collect()
    };
    let scope = asking.request.options.scope;
    // Equal numbers mean equal sets only where no pattern chose.
    let config = &asking.state.config;
    let everything_known =
        config.include.is_empty() && config.exclude.is_empty() && asking.enumerated as usize == all.len();
    if scope == Scope::Workspace && !everything_known {
        asking.open(matching.iter().cloned())?;
    }
    let questions = asking.server.client.within(asking.settings.timeout);
    let mut listing = questions.workspace_symbols(query).await?;
    let places: Vec<Place> = listing.items.iter().map(|item| item.place.clone()).collect();
    if asking.open_encoded(distinct(&places))? {
        listing = questions.workspace_symbols(query).await?;
    }
    let found = listing.items.iter().map(|item| of_workspace(asking, item)).collect();
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
