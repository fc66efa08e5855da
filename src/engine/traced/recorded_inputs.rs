//! The inputs of a request in a trace: files by digest, and what was derived from configuration and environment.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bundle::portable::PathMap;
use crate::digest::Digest;
use crate::engine::inputs::{Inputs, Tools};
use crate::model::server::ServerKind;
use crate::model::trace::RecordedWorkspace;
use crate::path::AbsPath;
use crate::python::modules::ImportRoots;
use crate::toolchain::{FoundServer, ServerProgram, ServerSource, Unavailable};
use crate::trace::path_redactor::PathRedactor;
use crate::workspace::include_filter::IncludeFilter;
use crate::workspace::python::PythonEnvironment;
use crate::workspace::server_config::ServerConfig;
use crate::workspace::snapshot::Snapshot;

/// The recorded inputs except the files.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedEnvironment {
    root: AbsPath,
    python: Option<PythonEnvironment>,
    server: Option<RecordedServer>,
    config: ServerConfig,
    import_roots: ImportRoots,
    folders: PathMap,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedServer {
    kind: ServerKind,
    version: String,
    package: AbsPath,
}

/// The machine's folders that the inputs name.
pub(super) fn redactor(inputs: &Inputs) -> PathRedactor {
    let folders: Vec<(AbsPath, &str)> =
        inputs.paths.folders().map(|(folder, name)| (folder.clone(), name)).collect();
    PathRedactor::new(folders.iter().map(|(folder, name)| (folder, *name)))
}

/// The inputs in the form of the trace; `None` if they cannot be serialized. Computed once, because it names every
/// file.
pub(super) fn workspace_event(inputs: &Inputs, redactor: &PathRedactor) -> Option<Arc<RecordedWorkspace>> {
    inputs.trace_form.get_or_init(|| to_event(inputs, redactor).map(Arc::new)).clone()
}

fn to_event(inputs: &Inputs, redactor: &PathRedactor) -> Option<RecordedWorkspace> {
    let found = inputs.tools.found.as_ref().ok();
    let surroundings = RecordedEnvironment {
        root: inputs.snapshot.root().clone(),
        python: inputs.tools.python.clone(),
        server: found.map(|found| RecordedServer {
            kind: found.kind,
            version: found.version.clone(),
            package: found.stubs.clone(),
        }),
        config: inputs.config.clone(),
        import_roots: inputs.roots.clone(),
        folders: inputs.paths.clone(),
        warnings: inputs.warnings.clone(),
    };
    let mut workspace = RecordedWorkspace {
        id: Digest::of(b""),
        digest: inputs.environment.workspace.digest,
        files: inputs.snapshot.files().clone(),
        encoded: inputs.snapshot.not_utf8().clone(),
        unreadable: inputs.snapshot.unreadable().clone(),
        environment: inputs.environment.clone(),
        surroundings: redactor.value(serde_json::to_value(&surroundings).ok()?),
    };
    workspace.id = Digest::of(&serde_json::to_vec(&workspace).ok()?);
    Some(workspace)
}

/// The recorded configuration; `None` if an incompatible version of lanser wrote it.
pub(super) fn config(workspace: &RecordedWorkspace) -> Option<ServerConfig> {
    serde_json::from_value(workspace.surroundings.get("config")?.clone()).ok()
}

/// The recorded inputs; `None` if an incompatible version of lanser wrote them.
pub(super) fn read_inputs(workspace: RecordedWorkspace) -> Option<Inputs> {
    let surroundings: RecordedEnvironment = serde_json::from_value(workspace.surroundings).ok()?;
    let RecordedEnvironment { root, python, server, config, import_roots, folders, warnings } = surroundings;
    let missing = || root.join("nowhere");
    let found = server.map(|server| FoundServer {
        kind: server.kind,
        version: server.version,
        program: ServerProgram::Native(missing()),
        stubs: server.package.clone(),
        package: server.package,
        typeshed: import_roots.typeshed().cloned(),
        source: ServerSource::Cache,
    });
    let none = || Unavailable { what: String::new(), tried: Vec::new(), hint: String::new() };
    let snapshot = Snapshot::recorded(root.clone(), workspace.files, workspace.encoded, workspace.unreadable);
    let mut inputs = Inputs::recorded(
        snapshot,
        Tools { python, problems: Vec::new(), found: found.ok_or_else(none) },
        IncludeFilter::new(&config),
        config,
        import_roots,
        folders,
        workspace.environment,
    );
    inputs.warnings = warnings;
    Some(inputs)
}

/// The most recently used inputs of a trace.
#[derive(Debug, Default)]
pub struct RecordedInputsCache(Vec<(Digest, Arc<Inputs>)>);

/// The number of cached inputs.
const MAX_CACHED: usize = 8;

impl RecordedInputsCache {
    /// Inputs by their id.
    pub(super) fn get(
        &mut self,
        id: Digest,
        read: impl FnOnce() -> Option<RecordedWorkspace>,
    ) -> Option<Arc<Inputs>> {
        if let Some(at) = self.0.iter().position(|(known, _)| *known == id) {
            let entry = self.0.remove(at);
            self.0.push(entry);
        } else {
            let found = Arc::new(read_inputs(read()?)?);
            if self.0.len() == MAX_CACHED {
                self.0.remove(0);
            }
            self.0.push((id, found));
        }
        self.0.last().map(|(_, inputs)| inputs.clone())
    }
}
