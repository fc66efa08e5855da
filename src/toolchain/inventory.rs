//! All candidates for the server and node, for `lanser server which` and `doctor`.

use super::error::Unavailable;
use super::find::{PackageCandidate, accept, find, server_candidates};
use super::node::{Node, node_candidates, probe};
use super::package::Package;
use super::request::{FoundServer, ServerSource, ToolchainRequest};
use super::store::InstallStore;

/// All candidates, and the chosen server.
#[derive(Debug)]
pub struct Inventory {
    /// The candidates for the server, in the order of preference.
    pub servers: Vec<ServerCandidate>,
    /// The candidates for node, in the order of preference.
    pub nodes: Vec<NodeCandidate>,
    /// The result of [`find`].
    pub chosen: Result<FoundServer, Unavailable>,
}

/// A candidate for the server.
#[derive(Debug)]
pub struct ServerCandidate {
    /// Where it comes from.
    pub source: ServerSource,
    /// A path, a command, or `PATH`.
    pub location: String,
    /// The package there, of any kind and version.
    pub package: Option<Package>,
    /// Whether it is used.
    pub status: CandidateStatus,
}

/// A candidate for node.
#[derive(Debug)]
pub struct NodeCandidate {
    /// The path as found; it may be a version manager's shim.
    pub location: String,
    /// The actual program.
    pub node: Option<Node>,
    /// Whether it is used.
    pub status: CandidateStatus,
}

/// Whether a candidate is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidateStatus {
    /// It is used.
    Chosen,
    /// It is usable, but another candidate is preferred.
    Available,
    /// It is used or usable, but its code is damaged. [`find`] does not check this, because it requires reading all of it.
    Damaged(String),
    /// It cannot be used.
    Rejected(String),
}

/// Checks all candidates. Slower than [`find`]: it queries every node, and compares the code in lanser's cache with what was
/// installed.
#[must_use]
pub fn inventory(request: &ToolchainRequest) -> Inventory {
    let chosen = find(request);
    let mut seen = false;
    let servers = server_candidates(request)
        .into_iter()
        .map(|candidate| {
            let status = match accept(request, &candidate) {
                Err(why) => CandidateStatus::Rejected(why),
                Ok(package) => {
                    let is_chosen = !seen
                        && chosen.as_ref().is_ok_and(|found| {
                            found.package == package.root && found.source == candidate.source
                        });
                    seen |= is_chosen;
                    let damage = match candidate.source {
                        ServerSource::Cache => cached_damage(request),
                        ServerSource::Command
                        | ServerSource::Workspace
                        | ServerSource::Environment
                        | ServerSource::Path => None,
                    };
                    match damage {
                        Some(damage) => CandidateStatus::Damaged(damage),
                        None if is_chosen => CandidateStatus::Chosen,
                        None if chosen.is_ok() => CandidateStatus::Available,
                        None => CandidateStatus::Rejected("no node to run it with".to_owned()),
                    }
                }
            };
            let PackageCandidate { source, location, package, .. } = candidate;
            ServerCandidate { source, location, package: package.ok(), status }
        })
        .collect();
    Inventory { servers, nodes: nodes(request, chosen.as_ref().ok()), chosen }
}

fn cached_damage(request: &ToolchainRequest) -> Option<String> {
    let slot = InstallStore::new(&request.cache).server(request.kind, request.wanted_version());
    slot.verified_package(request.pins).err()
}

fn nodes(request: &ToolchainRequest, chosen: Option<&FoundServer>) -> Vec<NodeCandidate> {
    let named = server_candidates(request).into_iter().find_map(|candidate| candidate.node);
    let package = chosen.map(|found| Package {
        kind: found.kind,
        version: found.version.clone(),
        root: found.package.clone(),
    });
    let mut seen = false;
    node_candidates(request, named.as_deref(), package.as_ref())
        .into_iter()
        .map(|path| {
            let location = path.display().to_string();
            match probe(request, &path) {
                Err(why) => NodeCandidate { location, node: None, status: CandidateStatus::Rejected(why) },
                Ok(node) => {
                    let is_chosen = !seen
                        && chosen
                            .and_then(|found| found.program.node())
                            .is_some_and(|(chosen, _)| *chosen == node.path);
                    seen |= is_chosen;
                    let status = if is_chosen { CandidateStatus::Chosen } else { CandidateStatus::Available };
                    NodeCandidate { location, node: Some(node), status }
                }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::toolchain::fixtures::{self, FakeMachine};
    use crate::toolchain::install::install;

    #[test]
    fn all_candidates_and_their_status() {
        let mut machine = FakeMachine::new();
        fixtures::node(&machine.at("old"), "12.0.0");
        machine.request.search_path.insert(0, machine.at("old"));
        fixtures::node(&machine.at("bin"), "20.0.0");
        fixtures::node(&machine.at("third"), "22.0.0");
        machine.add_to_path("third");
        fixtures::package(&machine.at("tree"), "pyright", "1.1.414");
        machine.npm("tree", 0.0);
        fixtures::npm(&machine.at("other"), "basedpyright", "1.40.1");
        machine.add_to_path("other/node_modules/.bin");
        let statuses = |machine: &FakeMachine| {
            inventory(&machine.request)
                .servers
                .into_iter()
                .map(|location| location.status)
                .collect::<Vec<_>>()
        };
        let other = CandidateStatus::Rejected("is basedpyright 1.40.1, not pyright".to_owned());
        let none = CandidateStatus::Rejected("is not installed".to_owned());
        assert_eq!(statuses(&machine), [other.clone(), none]);
        assert!(inventory(&machine.request).chosen.is_err());

        install(&machine.request, &mut |_| ()).unwrap();
        assert_eq!(statuses(&machine), [other.clone(), CandidateStatus::Chosen]);
        let nodes = inventory(&machine.request).nodes;
        let nodes: Vec<_> = nodes.iter().map(|location| &location.status).collect();
        assert!(
            matches!(
                nodes[..],
                [CandidateStatus::Rejected(_), CandidateStatus::Chosen, CandidateStatus::Available]
            ),
            "{nodes:?}"
        );

        fixtures::npm(&machine.at("mine"), "pyright", "1.1.414");
        machine.request.search_path.insert(0, machine.at("mine/node_modules/.bin"));
        assert_eq!(statuses(&machine), [CandidateStatus::Chosen, other.clone(), CandidateStatus::Available]);

        machine.request.search_path.remove(0);
        let code = machine.at("cache/servers/pyright-1.1.414/package/dist/pyright-langserver.js");
        fs::write(code, "changed").unwrap();
        assert!(
            matches!(&statuses(&machine)[..], [_, CandidateStatus::Damaged(why)] if why.contains("damaged"))
        );
    }
}
