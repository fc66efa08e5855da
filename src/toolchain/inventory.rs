//! Every place looked at and what is there, for `lanser server list` and `doctor`.

use super::error::Unavailable;
use super::find::{Candidate, find, judge, survey};
use super::node::{Node, candidates, examine};
use super::package::Package;
use super::request::{Found, Request, Source};
use super::store::Store;

/// What there is, and what of it is taken.
#[derive(Debug)]
pub struct Inventory {
    /// The places of servers, in the order of preference.
    pub places: Vec<Place>,
    /// The nodes, in the order of preference.
    pub nodes: Vec<NodePlace>,
    /// What [`find`] says.
    pub chosen: Result<Found, Unavailable>,
}

/// One place where a server may be.
#[derive(Debug)]
pub struct Place {
    /// How lanser comes to look there.
    pub source: Source,
    /// The place: a path, a command, or `PATH`.
    pub place: String,
    /// The package that is there, whatever its kind and version.
    pub package: Option<Package>,
    /// Whether it is taken.
    pub standing: Standing,
}

/// One node.
#[derive(Debug)]
pub struct NodePlace {
    /// The path as it was found: a shim, perhaps.
    pub place: String,
    /// The program that it leads to.
    pub node: Option<Node>,
    /// Whether it is taken.
    pub standing: Standing,
}

/// Whether something is taken, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// This one is taken.
    Chosen,
    /// It would do, but another comes first.
    Spare,
    /// It is taken, or would be, but something is wrong with it that only reading all of it shows.
    Suspect(String),
    /// It cannot be taken.
    PassedOver(String),
}

/// Looks at every place. Slower than [`find`]: every node is asked, and the code in lanser's cache is compared with what
/// was installed.
#[must_use]
pub fn inventory(request: &Request) -> Inventory {
    let chosen = find(request);
    let mut seen = false;
    let places = survey(request)
        .into_iter()
        .map(|candidate| {
            let standing = match judge(request, &candidate) {
                Err(why) => Standing::PassedOver(why),
                Ok(package) => {
                    let is_chosen = !seen
                        && chosen.as_ref().is_ok_and(|found| {
                            found.package == package.root && found.source == candidate.source
                        });
                    seen |= is_chosen;
                    let damage = match candidate.source {
                        Source::Cache => cached_damage(request),
                        Source::Command | Source::Workspace | Source::Path => None,
                    };
                    match damage {
                        Some(damage) => Standing::Suspect(damage),
                        None if is_chosen => Standing::Chosen,
                        None if chosen.is_ok() => Standing::Spare,
                        None => Standing::PassedOver("there is no node to run it".to_owned()),
                    }
                }
            };
            let Candidate { source, place, package, .. } = candidate;
            Place { source, place, package: package.ok(), standing }
        })
        .collect();
    Inventory { places, nodes: nodes(request, chosen.as_ref().ok()), chosen }
}

fn cached_damage(request: &Request) -> Option<String> {
    let slot = Store::new(&request.cache).server(request.kind, request.wanted_version());
    slot.verified_package(request.pins).err()
}

fn nodes(request: &Request, chosen: Option<&Found>) -> Vec<NodePlace> {
    let named = survey(request).into_iter().find_map(|candidate| candidate.node);
    let beside = chosen.map(|found| Package {
        kind: found.kind,
        version: found.version.clone(),
        root: found.package.clone(),
    });
    let mut seen = false;
    candidates(request, named.as_deref(), beside.as_ref())
        .into_iter()
        .map(|path| {
            let place = path.display().to_string();
            match examine(request, &path) {
                Err(why) => NodePlace { place, node: None, standing: Standing::PassedOver(why) },
                Ok(node) => {
                    let is_chosen = !seen && chosen.is_some_and(|found| found.node == node.path);
                    seen |= is_chosen;
                    let standing = if is_chosen { Standing::Chosen } else { Standing::Spare };
                    NodePlace { place, node: Some(node), standing }
                }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::toolchain::fake::{self, World};
    use crate::toolchain::install::install;

    #[test]
    fn every_place_and_its_standing() {
        let mut world = World::new();
        fake::node(&world.at("old"), "12.0.0");
        world.request.search_path.insert(0, world.at("old"));
        fake::node(&world.at("bin"), "20.0.0");
        fake::node(&world.at("third"), "22.0.0");
        world.add_to_path("third");
        fake::package(&world.at("tree"), "pyright", "1.1.414");
        world.npm("tree", 0.0);
        fake::npm(&world.at("other"), "basedpyright", "1.40.1");
        world.add_to_path("other/node_modules/.bin");
        let standings = |world: &World| {
            inventory(&world.request).places.into_iter().map(|place| place.standing).collect::<Vec<_>>()
        };
        let other = Standing::PassedOver("is basedpyright 1.40.1, not pyright".to_owned());
        let none = Standing::PassedOver("is not installed".to_owned());
        assert_eq!(standings(&world), [other.clone(), none]);
        assert!(inventory(&world.request).chosen.is_err());

        install(&world.request, &mut |_| ()).unwrap();
        assert_eq!(standings(&world), [other.clone(), Standing::Chosen]);
        let nodes = inventory(&world.request).nodes;
        let nodes: Vec<_> = nodes.iter().map(|place| &place.standing).collect();
        assert!(
            matches!(nodes[..], [Standing::PassedOver(_), Standing::Chosen, Standing::Spare]),
            "{nodes:?}"
        );

        fake::npm(&world.at("mine"), "pyright", "1.1.414");
        world.request.search_path.insert(0, world.at("mine/node_modules/.bin"));
        assert_eq!(standings(&world), [Standing::Chosen, other.clone(), Standing::Spare]);

        world.request.search_path.remove(0);
        let code = world.at("cache/servers/pyright-1.1.414/package/dist/pyright-langserver.js");
        fs::write(code, "changed").unwrap();
        assert!(matches!(&standings(&world)[..], [_, Standing::Suspect(why)] if why.contains("damaged")));
    }
}
