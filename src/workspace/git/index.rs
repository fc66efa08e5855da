//! Reads the paths in git's index.
//!
//! libgit2 can do it, too, but keeps all entries in memory. In version 4 of the format an entry repeats the path before it in a few
//! bytes, so that an index of 1 MB can take 100 GB.

/// A longer path ends the reading.
const MAX_PATH_BYTES: usize = 4096;

/// The type of a file in a mode, and that of a regular one.
const FILE_TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

/// Visits the regular files of an index of version 2 to 4 whose paths are UTF-8, up to the first entry that is damaged.
///
/// Source: <https://git-scm.com/docs/index-format>.
pub(in crate::workspace) fn visit_files(index: &[u8], visit: &mut impl FnMut(&str)) {
    let _ = visit_entries(index, visit);
}

/// `None` if the index is damaged.
fn visit_entries(index: &[u8], visit: &mut impl FnMut(&str)) -> Option<()> {
    let (header, mut rest) = index.split_at_checked(12)?;
    let number = |bytes: &[u8]| Some(u32::from_be_bytes(bytes.try_into().ok()?));
    let (version, count) = (number(&header[4..8])?, number(&header[8..])?);
    if &header[..4] != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut path = Vec::new();
    for _ in 0..count {
        // Times, device and inode, the mode, owner, size, the blob's ID, flags, and more of them if one says so.
        let entry = rest.get(..62)?;
        let mode = number(&entry[24..28])?;
        let start = if entry[60] & 0x40 == 0 { 62 } else { 64 };
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
        if mode & FILE_TYPE == REGULAR
            && let Ok(path) = str::from_utf8(&path)
        {
            visit(path);
        }
        let bytes = rest.len() - name.len() + end;
        // Up to version 3, one to eight zeros end an entry, whose length is a multiple of eight then.
        rest = rest.get(if version == 4 { bytes + 1 } else { (bytes + 8) / 8 * 8 }..)?;
    }
    Some(())
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
        let folder = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let output = Command::new("git").args(args).current_dir(folder.path()).output().unwrap();
            assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        git(&["init", "-q"]);
        let names: Vec<String> =
            (0..300).map(|n| format!("{}/{}{n}.py", "folder/".repeat(n % 40), "x".repeat(n / 2))).collect();
        for name in names.iter().map(String::as_str).chain(["ä.py", "a b", ".hid/x"]) {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        std::os::unix::fs::symlink("a b", folder.path().join("link.py")).unwrap();
        git(&["add", "-A"]);
        // Makes an entry with more flags.
        std::fs::write(folder.path().join("later.py"), "").unwrap();
        git(&["add", "-N", "later.py"]);
        for version in ["2", "3", "4"] {
            git(&["update-index", "--index-version", version]);
            let index = std::fs::read(folder.path().join(".git/index")).unwrap();
            let mut found = Vec::new();
            visit_files(&index, &mut |path| found.push(path.to_owned()));
            let listed = git(&["ls-files", "-z"]);
            let expected: Vec<&str> =
                listed.split_terminator('\0').filter(|path| *path != "link.py").collect();
            assert_eq!(found, expected, "version {version}");
            for damaged in 0..index.len().min(2000) {
                visit_files(&index[..damaged], &mut |_| {});
            }
        }
    }
}
