//! A ground in a trace: its files by digest, and what lanser made of configuration and environment.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bundle::portable::PathMap;
use crate::digest::Digest;
use crate::model::server::ServerKind;
use crate::model::trace::Workspace;
use crate::orchestrator::ground::{Ground, Tools};
use crate::path::AbsPath;
use crate::resolve::modules::ImportRoots;
use crate::toolchain::{Found, Source, Unavailable};
use crate::trace::machine::Machine;
use crate::workspace::configured::Configured;
use crate::workspace::python::PythonEnvironment;
use crate::workspace::server_config::ServerConfig;
use crate::workspace::snapshot::Snapshot;

/// What stands around the files.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Surroundings {
    root: AbsPath,
    python: Option<PythonEnvironment>,
    server: Option<Server>,
    config: ServerConfig,
    import_roots: ImportRoots,
    folders: PathMap,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    kind: ServerKind,
    version: String,
    package: AbsPath,
}

/// The machine's folders, as a ground knows them.
pub(super) fn machine(ground: &Ground) -> Machine {
    let folders: Vec<(AbsPath, &str)> =
        ground.paths.folders().map(|(folder, name)| (folder.clone(), name)).collect();
    Machine::new(folders.iter().map(|(folder, name)| (folder, *name)))
}

/// A ground as a trace tells it; `None` when it cannot be told. Worked out once: it names every file.
pub(super) fn told(ground: &Ground, machine: &Machine) -> Option<Arc<Workspace>> {
    ground.told.get_or_init(|| in_full(ground, machine).map(Arc::new)).clone()
}

fn in_full(ground: &Ground, machine: &Machine) -> Option<Workspace> {
    let found = ground.tools.found.as_ref().ok();
    let surroundings = Surroundings {
        root: ground.snapshot.root().clone(),
        python: ground.tools.python.clone(),
        server: found.map(|found| Server {
            kind: found.kind,
            version: found.version.clone(),
            package: found.package.clone(),
        }),
        config: ground.config.clone(),
        import_roots: ground.roots.clone(),
        folders: ground.paths.clone(),
        warnings: ground.warnings.clone(),
    };
    let mut workspace = Workspace {
        id: Digest::of(b""),
        digest: ground.environment.workspace.digest,
        files: ground.snapshot.files().clone(),
        encoded: ground.snapshot.encoded().clone(),
        unreadable: ground.snapshot.unreadable().clone(),
        environment: ground.environment.clone(),
        surroundings: machine.value(serde_json::to_value(&surroundings).ok()?),
    };
    workspace.id = Digest::of(&serde_json::to_vec(&workspace).ok()?);
    Some(workspace)
}

/// The configuration that a trace tells; `None` when another version of lanser wrote it.
pub(super) fn config(workspace: &Workspace) -> Option<ServerConfig> {
    serde_json::from_value(workspace.surroundings.get("config")?.clone()).ok()
}

/// The ground that a trace tells; `None` when another version of lanser wrote it.
pub(super) fn ground(workspace: Workspace) -> Option<Ground> {
    let surroundings: Surroundings = serde_json::from_value(workspace.surroundings).ok()?;
    let Surroundings { root, python, server, config, import_roots, folders, warnings } = surroundings;
    let nowhere = || root.join("nowhere");
    let found = server.map(|server| Found {
        kind: server.kind,
        version: server.version,
        node: nowhere(),
        node_version: String::new(),
        script: nowhere(),
        package: server.package,
        source: Source::Cache,
    });
    let none = || Unavailable { what: String::new(), tried: Vec::new(), hint: String::new() };
    let snapshot = Snapshot::recorded(root.clone(), workspace.files, workspace.encoded, workspace.unreadable);
    let mut ground = Ground::recorded(
        snapshot,
        Tools { python, found: found.ok_or_else(none) },
        Configured::new(&config),
        config,
        import_roots,
        folders,
        workspace.environment,
    );
    ground.warnings = warnings;
    Some(ground)
}

/// The grounds of a trace that were needed last.
#[derive(Debug, Default)]
pub struct Grounds(Vec<(Digest, Arc<Ground>)>);

/// How many grounds are held.
const MOST: usize = 8;

impl Grounds {
    /// A ground by its id.
    pub(super) fn get(
        &mut self,
        id: Digest,
        read: impl FnOnce() -> Option<Workspace>,
    ) -> Option<Arc<Ground>> {
        if let Some(at) = self.0.iter().position(|(known, _)| *known == id) {
            let held = self.0.remove(at);
            self.0.push(held);
        } else {
            let found = Arc::new(ground(read()?)?);
            if self.0.len() == MOST {
                self.0.remove(0);
            }
            self.0.push((id, found));
        }
        self.0.last().map(|(_, ground)| ground.clone())
    }
}
