//! The diagnostics of files as they are on disk, cached by the inputs of the request: every edit of one state of the workspace
//! is compared with the same ones.

use std::collections::BTreeMap;

use super::speculate;
use crate::digest::Digest;
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::engine::memo::inputs_digest;
use crate::engine::reward::DiagnosticsByFile;
use crate::model::facts::Diagnostic;
use crate::path::AbsPath;
use crate::workspace::disk_cache::DiskCache;

/// The maximum size of the cache, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The diagnostics of files, which the server must have been shown as they are on disk.
pub(super) async fn diagnostics<'p>(
    cx: &RequestContext<'_>,
    paths: impl Iterator<Item = &'p AbsPath>,
) -> Result<DiagnosticsByFile, Failure> {
    let paths: Vec<&AbsPath> = paths.collect();
    // A trace records the server's answers, and an answer with both coordinate systems is complete only if it is computed.
    let is_cached = cx.settings.keep && cx.state.tape.is_off() && !cx.settings.verbose;
    let inputs = if is_cached { inputs_digest(cx.request, &cx.state.inputs, cx.settings) } else { None };
    let Some(inputs) = inputs else {
        return speculate::diagnostics(cx, &cx.state.files, cx.locations, paths.into_iter()).await;
    };
    let store = DiskCache::new(cx.settings.cache.join("diagnostics"), MAX_BYTES);
    let key = |path: &AbsPath| {
        let unit = format!("{:?}", cx.locations.io_unit);
        Digest::of_fields([cx.locations.paths.uri(path).to_string().as_bytes(), unit.as_bytes()])
    };
    let read = |path: &AbsPath| -> Option<Vec<Diagnostic>> {
        serde_json::from_slice(&store.get(&inputs, &key(path))?).ok()
    };
    let mut found: DiagnosticsByFile = BTreeMap::new();
    let mut unknown = Vec::new();
    for path in paths {
        match read(path) {
            Some(list) => drop(found.insert(path.clone(), list)),
            None => unknown.push(path),
        }
    }
    let computed = speculate::diagnostics(cx, &cx.state.files, cx.locations, unknown.into_iter()).await?;
    for (path, list) in &computed {
        if let Ok(json) = serde_json::to_vec(list) {
            store.put(&inputs, &key(path), |out| out.write_all(&json));
        }
    }
    found.extend(computed);
    Ok(found)
}
