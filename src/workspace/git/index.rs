//! Reads the paths in git's index.
//!
//! libgit2 can do it, too, but keeps all entries in memory. In version 4 of the format an entry repeats the path before it in a few
//! bytes, so that an index of 1 MB can take 100 GB.

/// An index with a longer path counts as damaged.
const MAX_PATH_BYTES: usize = 4096;

/// More bytes of paths are not kept.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// The type of a file in a mode: that of a regular one, a symbolic link, a folder of a sparse index, and a submodule.
const FILE_TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const FOLDER: u32 = 0o040_000;
const SUBMODULE: u32 = 0o160_000;

/// What an index says, as far as it matters here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::workspace) struct GitIndex {
    /// The paths of regular files.
    pub(in crate::workspace) files: Vec<Vec<u8>>,
    /// The paths of submodules.
    pub(in crate::workspace) submodules: Vec<Vec<u8>>,
    /// The name of the file beside it that has more entries, of which some are replaced or removed.
    pub(in crate::workspace) shared: Option<String>,
}

/// Reads the entries of an index of version 2 to 4 that `is_wanted`. `None` if it is damaged, or has too much.
///
/// Source: <https://git-scm.com/docs/index-format>.
pub(in crate::workspace) fn read_index(index: &[u8], is_wanted: impl Fn(&[u8]) -> bool) -> Option<GitIndex> {
    // Only the repository's configuration says whether the IDs are those of SHA-1 or SHA-256.
    [20, 32].into_iter().find_map(|id_bytes| read(index, id_bytes, &is_wanted))
}

fn read(index: &[u8], id_bytes: usize, is_wanted: &impl Fn(&[u8]) -> bool) -> Option<GitIndex> {
    let index = index.get(..index.len().checked_sub(id_bytes)?)?;
    let (header, mut rest) = index.split_at_checked(12)?;
    let number = |bytes: &[u8]| Some(u32::from_be_bytes(bytes.try_into().ok()?));
    let (version, count) = (number(&header[4..8])?, number(&header[8..])?);
    if &header[..4] != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut found = GitIndex::default();
    let (mut path, mut kept) = (Vec::new(), 0);
    for _ in 0..count {
        // Times, device and inode, the mode, owner, size, the ID of the content, flags, and more of them if one says so.
        let entry = rest.get(..42 + id_bytes)?;
        let mode = number(&entry[24..28])?;
        let start = entry.len() + if entry[40 + id_bytes] & 0x40 == 0 { 0 } else { 2 };
        let mut name = rest.get(start..)?;
        if version == 4 {
            path.truncate(path.len().checked_sub(take_number(&mut name)?)?);
        } else {
            path.clear();
        }
        let end = name.iter().take(MAX_PATH_BYTES + 1).position(|byte| *byte == 0)?;
        path.extend_from_slice(&name[..end]);
        if path.len() > MAX_PATH_BYTES {
            return None;
        }
        let list = match mode & FILE_TYPE {
            REGULAR | LINK | FOLDER if is_wanted(&path) => Some(&mut found.files),
            SUBMODULE => Some(&mut found.submodules),
            _ => None,
        };
        if let Some(list) = list {
            kept += path.len();
            if kept > MAX_KEPT_BYTES {
                return None;
            }
            list.push(path.clone());
        }
        let bytes = rest.len() - name.len() + end;
        // Up to version 3, one to eight zeros end an entry, whose length is a multiple of eight then.
        rest = rest.get(if version == 4 { bytes + 1 } else { (bytes + 8) / 8 * 8 }..)?;
    }
    // Extensions: a name, the number of bytes, and those.
    while !rest.is_empty() {
        let (name, after) = rest.split_at_checked(4)?;
        let (bytes, after) = after.split_at_checked(4)?;
        let (content, after) = after.split_at_checked(usize::try_from(number(bytes)?).ok()?)?;
        if name == b"link" {
            let id = content.get(..id_bytes)?;
            let has_one = id.iter().any(|byte| *byte != 0);
            let name = || id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            found.shared = has_one.then(|| format!("sharedindex.{}", name()));
        }
        rest = after;
    }
    Some(found)
}

/// Takes a number of variable length, in the encoding of offsets in packs.
fn take_number(from: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_files_are_those_that_git_lists() {
        for format in ["sha1", "sha256"] {
            let folder = tempfile::tempdir().unwrap();
            let git = |args: &[&str]| {
                let output = Command::new("git").args(args).current_dir(folder.path()).output().unwrap();
                assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
                String::from_utf8(output.stdout).unwrap()
            };
            git(&["init", "-q", &format!("--object-format={format}")]);
            let names = (0..300).map(|n| format!("{}/{}{n}.py", "folder/".repeat(n % 40), "x".repeat(n / 2)));
            for name in names.chain(["ä.py", "a b", ".hid/x"].map(str::to_owned)) {
                let file = folder.path().join(name);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, "").unwrap();
            }
            std::os::unix::fs::symlink("a b", folder.path().join("link.py")).unwrap();
            git(&["add", "-A"]);
            // Makes an entry with more flags.
            std::fs::write(folder.path().join("later.py"), "").unwrap();
            git(&["add", "-N", "later.py"]);
            let listed = git(&["ls-files", "-z"]);
            let expected: Vec<&[u8]> = listed.split_terminator('\0').map(str::as_bytes).collect();
            let index = || std::fs::read(folder.path().join(".git/index")).unwrap();
            for version in ["2", "3", "4"] {
                git(&["update-index", "--index-version", version]);
                let bytes = index();
                let found = read_index(&bytes, |_| true).unwrap();
                assert_eq!(found.files, expected, "{format}, version {version}");
                for damaged in 0..bytes.len().min(2000) {
                    assert_eq!(read_index(&bytes[..damaged], |_| true), None);
                }
            }
            git(&["update-index", "--split-index"]);
            let shared = read_index(&index(), |_| true).unwrap().shared.unwrap();
            let bytes = std::fs::read(folder.path().join(".git").join(shared)).unwrap();
            assert_eq!(read_index(&bytes, |_| true).unwrap().files, expected);
        }
    }
}
