//! The folders of PATH from which programs may be run while a checkout is not trusted.
//!
//! Programs that lanser starts get a PATH of these folders, too: they start others by name, as git starts the filters of the
//! user's configuration, and `#!/usr/bin/env bash` a shell.

use std::collections::BTreeMap;
use std::path::Path;

use crate::path::AbsPath;

/// Whether the program or folder at this path may be used: its path is absolute and, unless the checkout is `trusted`, neither it
/// nor what it links to is inside of it.
#[must_use]
pub fn may_run(path: &Path, checkout: &AbsPath, trusted: bool) -> bool {
    let inside = |path: &Path| path.starts_with(checkout.as_path());
    path.is_absolute() && (trusted || !inside(path) && !path.canonicalize().is_ok_and(|path| inside(&path)))
}

/// The environment variables with PATH reduced to the folders that may be used.
#[must_use]
pub fn with_usable_path(
    environment: &BTreeMap<String, String>,
    checkout: &AbsPath,
    trusted: bool,
) -> BTreeMap<String, String> {
    let mut variables = environment.clone();
    if let Some(path) = variables.get_mut("PATH") {
        let folders: Vec<_> =
            std::env::split_paths(path).filter(|folder| may_run(folder, checkout, trusted)).collect();
        // The folders were joined before, so that they can be joined again.
        let usable = std::env::join_paths(folders).unwrap_or_default();
        *path = usable.into_string().unwrap_or_default();
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_checkout_and_relative_ones_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap();
        let checkout = root.join("checkout");
        std::fs::create_dir_all(checkout.join("bin").as_path()).unwrap();
        std::os::unix::fs::symlink(checkout.join("bin").as_path(), root.join("link").as_path()).unwrap();
        let path = format!("{checkout}/bin:bin::/usr/bin:{root}/link:/bin:");
        let environment = BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), "/h".to_owned())]);
        let usable = with_usable_path(&environment, &checkout, false);
        assert_eq!((usable["PATH"].as_str(), usable["HOME"].as_str()), ("/usr/bin:/bin", "/h"));
        let trusted = with_usable_path(&environment, &checkout, true);
        assert_eq!(trusted["PATH"], format!("{checkout}/bin:/usr/bin:{root}/link:/bin"));
        assert!(with_usable_path(&BTreeMap::new(), &checkout, false).is_empty());
    }
}
