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
    /// SHA-256 of the wheels, one per platform (and version of Python, from 3.10 to 3.14), in hexadecimal digits.
    wheels: &'static [&'static str],
    /// [`super::Package::code_digest`] of npm's and PyPI's build, once if they are equal, or of the program of each wheel. Empty for packages other than servers.
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
        package: "ty",
        version: "0.0.105",
        npm: "",
        wheels: &[
            "c3217b0b217215222f8fa9d9d9eebbeae37b7a2b072dbb2f13b3d709ebd69ac5",
            "7a8c015cb075a5813a692170edc1ed2dfe7bd72e1c946cc8a102d612e5e710cb",
            "dd371e01305d5e64d82dc9afdc21c64fe101c3f5fa87ff5f9267f00a60845cc7",
            "863d4cd5f9b5b29528f35c36fe5f9a60aa7e3e04d0db109e6ee3e58d94f783d4",
            "2c8c13402c9cc057b0b0f8bf8b06dd5fb4d9bf00b0f9dbd34be707bf5280cff8",
            "3278adedc1b177d9be84e2b4938aca895f1c80e72ee23b6d0314775d65eb7937",
        ],
        code: &[
            "80ab95afdfb8ddf80cd1bd4b38f3f19e5e74be1fc6299712d680713e228beac0",
            "f5a2545dcf91602df0a3e1ae5bae4ac4cb45f77563145e57af10b1d223e1fc99",
            "5b6701621e70663577a193ccb67478ccde05d89d4bca76b25dd7b62fc89e2c64",
            "c80bfbe8f076bb92f96c42e073ef60451af3d3625ec1b9f359b6d257abacd5a3",
            "e10b387d6d52971e19f028cd4db682cbf1c446d7551a3ae308dfe4b33560a36a",
            "fff62f60fed787b06dbebee06548d4ddedec3aec36075c5832be2e5e1493ae9e",
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
    Pin {
        package: "ruff",
        version: "0.17.6",
        npm: "",
        wheels: &[
            "9d44ef2140402043fd6f689ef541858b80883a8b0a02e38539ef0614ebe57d0c",
            "9fbddc08577592e283c265d865e0182de6e33db185494db7b06290d989d888e5",
            "435241c61af5909a022f76219d3d1bf24730dc1bf0acabb5ddf4b569ab3cbb30",
            "aa3b08254a732acba246891089a152c47c5733dc36b8ecb76ce8602f8326e5e4",
            "fb589e032806bb942e4fb526f30b80a1a64112147ed9f1d38cc3de2e255b6f45",
            "3db61f5015600543a581b07fa7f6f64afa0eeedefe16034cadd88c4074087582",
        ],
        code: &[],
    },
    Pin {
        package: "mypy",
        version: "2.4.1",
        npm: "",
        wheels: &[
            "2b4e0aa029ad0c1d42cc494daf86d1e0efd15dab4db7bd096ece29e8a9689c6a",
            "c535efcb91f7e66f41b9bd2b5dbd78900a7609ce88f4c020d668e4c82d082b0b",
            "0724cf95fabc87ca4a2d5b7f276b43f51afce8a3804bde704490b008e377e50b",
            "0f0a8b8f5dee799195a3f2670a5b2617ac7193d3563f52dbef42ad6770c6a9db",
            "79a1e79199e980fb41f219cb3d4746d25c64b0b623840d3ed57df1cdc13a6502",
            "4e18d0da3898b3bcd16192f15a206e7b8b8dd0f4a0b3e51aa5bd5c2afe749e2c",
            "b69a15fc2e75858d6b15e91ed3a0dcff1a533265183b64734138791fe0f49aa5",
            "70971cc0bcb1d3f03d2eb68fa430a6481ccc03558dc001d9534d7e5fa274c392",
            "d63737426a048a27705a4eedb828669f4bc0873612a1b46b0b9fe892b2ebaaaf",
            "7344869cad05f073b8cae2826774fa0161e3eb2f5c685b76813574008d77d750",
            "a20ff6cd2af7a670c64f089bfa5fbcebe8ff3bf896c5e6ac7c9862c7960e4494",
            "9ed1195502cca32be5ef756b1693477f4991db2f2e34eaa90cc4ad6bea4f9531",
            "3f1613bfe6726169a5680ec3dad5fe1f6d96285c12aded51ad432eadedd39d45",
            "680ba5d9f0e3fe0c746b3d14df15f2a718e4bc308a1145616a1ea691ce7c354b",
            "1fb70621535c22fd4b1a0450d37ed1d6c5eb39656a1cebfb189084c12de54ba7",
            "4af5ad558033bf71a44a1be149ed61633522824f84c1b6bc2445d3fe2d2a5296",
            "c45485061ba08f700acc12cfc8b177e6997e6bc353605babfc0abb081e079456",
            "727890a32f1858c09549eb55a8b234fe990d460450b28f03e8213ef925f1247c",
            "beb254fec368c4e7f7f82a5f310c6470b893ec88a90b66426da971c6826b0453",
            "ec416d5d2ae689e681f5727e328723f18d8b5dc8c903a146b7851dc5727aad8a",
            "1784648d6ec8c2b5465e3f26241b845a0b3cb4e56c993c64abe16989e7698999",
        ],
        code: &[],
    },
    Pin {
        package: "mypy_extensions",
        version: "1.2.0",
        npm: "",
        wheels: &["993e7a20aa5671eb41a7132cf555af30062da99729601601b9a8382b11cae768"],
        code: &[],
    },
    Pin {
        package: "pathspec",
        version: "1.1.1",
        npm: "",
        wheels: &["a00ce642f577bf7f473932318056212bc4f8bfdf53128c78bbd5af0b9b20b189"],
        code: &[],
    },
    Pin {
        package: "typing_extensions",
        version: "4.16.0",
        npm: "",
        wheels: &["481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8"],
        code: &[],
    },
    Pin {
        package: "librt",
        version: "0.16.0",
        npm: "",
        wheels: &[
            "96f576f2711f8519152ec76d0e599243555c1f07679fa73606ca8c8c868c0be6",
            "2bec3818c7da7c96ceae0ef5915a3d16c52dd08f3ea913bf1fe8568c447c7978",
            "64c79520414a3fdfc6aabd7593e6169afa14d5f8d9908d4b498db068868b08dd",
            "473eebc7866bb0a0c8849a292b5e7157c1aba5d14d0f0f610c52158d6d964262",
            "ebefd60b42e2a82b32d136bb5f7c94eadfcd29f772b547df6f3291d1ed855a1c",
            "943c6bbecbdf7fa575a4f2952fcfd848c88ef95507c3fca411e89d4ac3ff8143",
            "fe4372c52d4849096c6cc1cda2817d293ec51440c890474ed59ef38d46556f18",
            "c72c5295a84bd249526da9bdca38f2e176d15c31c13bb0063c5053f4ca023421",
            "be56ba9c884143495b517f23fe794ae367d58cd89ea0fdd6d437e3c024a87f9f",
            "94aed6a8308818b91677957d1bd03188869cd7aeb23c5dba7912a6c0402f7602",
            "001bfd59a7d45b17e3e75f2a8c6405280b35e7b84471792778e718c4f368950e",
            "3ddeb3c9dedb461bb457c6c7d9aa7fbf35329da313d1a7543d00c8d0f3473c96",
            "fe52bf4641069e7978a14253b036cb9002def1926317e710f2e249f8a8c47742",
            "5bcc2c4726ced915b00de0c9856a4eeabfb3fddb93e10e0b8f735b7709358b6d",
            "ff7baa55f8e7c69851419e50a666015d02a74198716fd45c0125a2112e0a389f",
            "36e53948e99bbe3ffea257124cfcae1cfb01831555c9a9c903c9f9a72db7fd07",
            "4323193ac0cd025f85af531df8ba91bf24d1973b401697347a6282e8fd3fcf5e",
            "300c3ffdc459f4a779a8411ecb188e3ac0b1ff3a3a7b099642555dedae06c69b",
            "c5e6144e68b577f157519f2ba88ca20e3ed61c29b00e5cdfa76cd2d45acf059a",
            "33f41443a1f4e1f099331b3d8120e409fbff84b9760bc1cc9ea496f37ddaa5cc",
            "7e510b7770bee609617a3374a96548eb114cae048023e3f049ee449e7ff2db32",
            "17bac7f7a16b328fff77e440287693eb017abde913595b5827ebccbc21ecd8a6",
            "0058f9d68721094105917254c72ac0569117bb7b13b9769cf45d26d89f9d21cd",
            "a8afb6557920860b7a3a596eb804cf37e09e7cf8a803db2478c202acc72d8c2e",
            "931a0bb0fcac88f263e269e46eb30ba8e21402cd3c62ca40cb97034c0693fab1",
            "1bc17e54e5305f8d40b7ca203671ff5a9e59c1d0f8ea0f625dcca53a3984de11",
            "877698bf6bca5721d8be345f2fe09778e40ecadea8b58c73075f2b1a53666bf2",
            "ca8052401c55d7511dda6760719fda7618067e83535d7d0010096d216c34b667",
            "f1e8591bd8a5a628cd7f07954c6a1592359a878bf032957a8e9057a41d644311",
            "3e0c39bdc85370422e8b637be76eb1fd07d30967551b03e62267dd156f553152",
        ],
        code: &[],
    },
    Pin {
        package: "ast_serialize",
        version: "0.13.1",
        npm: "",
        wheels: &[
            "4bcf1d5f4eefecaa325a34ecf079b2741189e7d0821523f92cb343a389a67489",
            "1b158f1c9e3a0d386913924c57995d6df78224868a4d0f215bdd41587c97b34a",
            "77a6201b69ce42e919f2fd9a559138d5410b5d8afff7c3a6b1f500b0481ff7d8",
            "9f99786e0d62082a5b121b3437f3167562133711df22128de1e9886f57f0b226",
            "6ffb0f548a7dc126067fdfb7b2325ab5dfcdeecc29faf5e0f0461c96d6ebfa3d",
            "ca9acc67f796aa2554fa3037dccc022a4b08b38b2ad153edfac9c9bb7cb1f3c6",
        ],
        code: &[],
    },
    Pin {
        package: "tomli",
        version: "2.5.0",
        npm: "",
        wheels: &["32a7b79ac57a2e83670ce329ccf675798bc5a2094783a63676866b70503f2e2b"],
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
    use crate::toolchain::server_kinds::is_native;
    use crate::toolchain::{InstallableAnalyzer, supported_versions};

    #[test]
    fn everything_that_is_installed_is_pinned() {
        for kind in ServerKind::ALL {
            for version in supported_versions(kind) {
                let pin = Pin::of_server(PINS, kind, version).unwrap();
                let is_on_npm = pin.npm.starts_with("sha512-") && pin.npm.len() == 95;
                assert_eq!(is_on_npm, !is_native(kind), "{pin:?}");
                assert!(!pin.code.is_empty() && pin.code.iter().all(|code| code.len() == 64), "{pin:?}");
            }
        }
        assert!(Pin::of(PINS, NODE_WHEEL, NODE_WHEEL_VERSION).is_some());
        for kind in InstallableAnalyzer::ALL {
            for (package, version) in kind.packages("3.10").chain(kind.packages("3.14")) {
                assert!(Pin::of(PINS, package, version).is_some(), "{package} {version}");
            }
        }
        assert!(PINS.iter().all(|pin| pin.wheels.iter().all(|hash| hash.len() == 64)));
        let requirement = Pin::of(PINS, "pyright", "1.1.406").unwrap().requirement();
        assert!(requirement.starts_with("pyright==1.1.406 --hash=sha256:1d81fb43"), "{requirement}");
    }
}
