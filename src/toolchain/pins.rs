//! The pinned versions by content: a registry can serve anything under a version number.

use crate::digest::Digest;
use crate::model::server::ServerKind;

use super::server_kinds::{NODE_WHEEL, NODE_WHEEL_VERSION, package_name};

/// The content of one version of one package.
#[derive(Debug, PartialEq, Eq)]
pub struct Pin {
    package: &'static str,
    version: &'static str,
    /// npm's `integrity` of the tarball: SHA-512 in base 64. Empty if npm does not have the package.
    npm: &'static str,
    /// SHA-256 of the wheels, one per platform, in hexadecimal digits.
    wheels: &'static [&'static str],
    /// [`super::Package::code_digest`] of npm's and PyPI's build, once if they are equal. Empty for packages other than servers.
    code: &'static [&'static str],
}

/// All versions that lanser installs, as published on npm and PyPI in November 2026.
pub const PINS: &[Pin] = &[
    Pin {
        package: "pyright",
        version: "1.1.406",
        npm: "sha512-1k62zN/37Buv8soOOjaOhAb0EZUZb/zW5rR2//ZUA/cU3XHZQQqMrLY+ozPccdodvH9sJRePOO30RRxQu/tqtQ==",
        wheels: &["1d81fb43c2407bf566e97e57abb01c811973fdb21b2df8df59f870f688bdca71"],
        code: &["8bd065ba951ed5aeb6971f3991aa20387ec037e6b18517059fc87df3ca00bda1"],
    },
    Pin {
        package: "pyright",
        version: "1.1.407",
        npm: "sha512-zU+peTFEVUdokNQyUBhGQYt+NWI/3aiNlvBbDBSsn5Ti334XElFUs+GDjQzCbchYfkT+DvMAT3OkMcV4CuEfDg==",
        wheels: &["6dd419f54fcc13f03b52285796d65e639786373f433e243f8b94cf93a7444d21"],
        code: &["db3ba4af20cc1ba6d1f8770fcd166b7e173f2a2ee533673ea32413eaee8d840e"],
    },
    Pin {
        package: "pyright",
        version: "1.1.414",
        npm: "sha512-FPZZb51jepDX4eP7TEYDeNFtmE3WgwkkEcJpvH3/QmUSsj0EAy3LXu+xB4T/FWDejtsXlCfFr/rbWFjwuwuXww==",
        wheels: &["2a6b4b3298c9eec174c5ed83bd338de6eee82df2992f3e1930e6199d381be36f"],
        code: &["dfc723298fffcf1b1a0ea4340c8963c4a4b61b4846cb3598e281bfb077dca655"],
    },
    Pin {
        package: "basedpyright",
        version: "1.40.1",
        npm: "sha512-98BUK6yuNcUCgaEVaaFzhW4ReGjB8Tip9XBX4s7rGIsoKtc1Be7O4PB0A8Z4zV42FKvfUR5hwYzRYafU/BVTtQ==",
        wheels: &["222dc0382caf9816eb23a27cb7059fa96356ddc500b3b7b306072848fd650244"],
        code: &[
            "4842df0be8ff91160d7a0da8aa3c612b415aee86849e57f37f693c137074c20c",
            "e66005edd9711fc5b634f5bbeeb5aaac4dbb7248d3c05198fd1b8d9dd5e2ff9f",
        ],
    },
    Pin {
        package: NODE_WHEEL,
        version: NODE_WHEEL_VERSION,
        npm: "",
        wheels: &[
            "e12cbfd69089504e42fb14194ce734a9dcf3eb38c820ca63dd511d36fb964e9c",
            "1c890adf4b7e6556ccc1ca66c866bb81884b6c9a581dee4e530dc7f78fb9d514",
            "4e029dadfae1295876063c96b236f673487e8c27379fe146c1e2250283520227",
            "4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8",
            "352e048ab4dd35e7de5f338d1cc4fcbf77a0e93da30bf7336a8217ee246b31d7",
            "28d078b2ced9e2069516e652dc4b1380e7a1a7f2d3934eccd1611586d283ba4c",
        ],
        code: &[],
    },
];

impl Pin {
    /// The pin of one version of a package among `pins`.
    pub(super) fn of(pins: &'static [Self], package: &str, version: &str) -> Option<&'static Self> {
        pins.iter().find(|pin| pin.package == package && pin.version == version)
    }

    /// The pin of a server.
    pub(super) fn of_server(pins: &'static [Self], kind: ServerKind, version: &str) -> Option<&'static Self> {
        Self::of(pins, package_name(kind), version)
    }

    /// Whether npm's tarball has this `integrity`.
    pub(super) fn is_tarball(&self, integrity: &str) -> bool {
        integrity == self.npm
    }

    /// The line for pip's requirements file.
    pub(super) fn requirement(&self) -> String {
        let hashes: String = self.wheels.iter().map(|hash| format!(" --hash=sha256:{hash}")).collect();
        format!("{}=={}{hashes}\n", self.package, self.version)
    }

    /// Whether a server's code is one of the pinned builds.
    pub(super) fn is_code(&self, code: &Digest) -> bool {
        let code = code.to_hex();
        self.code.iter().any(|one| *one == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::supported_versions;

    #[test]
    fn everything_that_is_installed_is_pinned() {
        for kind in ServerKind::ALL {
            for version in supported_versions(kind) {
                let pin = Pin::of_server(PINS, kind, version).unwrap();
                assert!(pin.npm.starts_with("sha512-") && pin.npm.len() == 95, "{pin:?}");
                assert!(!pin.code.is_empty() && pin.code.iter().all(|code| code.len() == 64), "{pin:?}");
            }
        }
        assert!(Pin::of(PINS, NODE_WHEEL, NODE_WHEEL_VERSION).is_some());
        assert!(PINS.iter().all(|pin| pin.wheels.iter().all(|hash| hash.len() == 64)));
        let requirement = Pin::of(PINS, "pyright", "1.1.406").unwrap().requirement();
        assert!(requirement.starts_with("pyright==1.1.406 --hash=sha256:1d81fb43"), "{requirement}");
    }
}
