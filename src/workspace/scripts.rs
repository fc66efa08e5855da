//! Python scripts without a suffix, such as `bin/tool`. They are Python files of the workspace, but no server finds them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use super::files::open;
use crate::path::{AbsPath, WorkspacePath, is_python};

/// A folder with more files without a suffix has data and no scripts.
pub(super) const MAX_MAYBE_SCRIPTS: usize = 100;

/// A larger file without a suffix is no script.
const MAX_SCRIPT_BYTES: u64 = 1 << 20;

/// As much of a file shows whether it is a script.
const HEAD_BYTES: usize = 256;

/// What a first line says of a Python that the servers know.
const PROGRAMS: [&[u8]; 3] = [b"python", b"pypy", b"uv run"];

/// Whether a file may be a Python script by its path or name.
#[must_use]
pub fn may_be_script(path: &str) -> bool {
    !path.rsplit('/').next().unwrap_or_default().contains('.')
}

/// Whether a file is Python code or, by its path, may be a script. Trees of files and snapshots have no other files without a suffix.
#[must_use]
pub fn may_be_code(path: &WorkspacePath) -> bool {
    path.is_python() || may_be_script(path.as_str())
}

/// Whether the first line of a content says that Python runs it.
#[must_use]
pub fn is_python_script(content: &[u8]) -> bool {
    let head = &content[..content.len().min(HEAD_BYTES)];
    let first = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let names = |name: &[u8]| first.windows(name.len()).any(|part| part == name);
    first.starts_with(b"#!") && PROGRAMS.into_iter().any(names) && !names(b"python2")
}

/// Whether a file with this content is Python code: it has the suffix, or is a script.
#[must_use]
pub fn is_code(path: &str, content: &[u8]) -> bool {
    is_python(path) || may_be_script(path) && is_python_script(content)
}

/// Whether the whole content of a file without a suffix is that of a script.
pub(super) fn is_script_content(content: &[u8]) -> bool {
    content.len() as u64 <= MAX_SCRIPT_BYTES && is_python_script(content)
}

/// Whether the file of this size, which may be a script by its name, is one.
#[must_use]
pub fn is_script(path: &AbsPath, size: u64) -> bool {
    if size > MAX_SCRIPT_BYTES {
        return false;
    }
    let mut head = Vec::new();
    let Ok(Some(file)) = open(path) else { return false };
    let read = file.take(HEAD_BYTES as u64).read_to_end(&mut head);
    read.is_ok() && is_python_script(&head)
}

/// The folders in which no script is searched.
pub(super) fn folders_of_data<'p>(paths: impl Iterator<Item = &'p WorkspacePath>) -> BTreeSet<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for path in paths.filter(|path| may_be_script(path.as_str())) {
        *counts.entry(folder_of(path)).or_default() += 1;
    }
    counts.retain(|_, count| *count > MAX_MAYBE_SCRIPTS);
    counts.into_keys().map(str::to_owned).collect()
}

/// The folder of a file; empty for the root.
pub(super) fn folder_of(path: &WorkspacePath) -> &str {
    path.as_str().rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root may open it, and would wait for the next message of the kernel.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_of_the_kernel_is_no_script() {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(is_script(&AbsPath::new("/proc/kmsg").unwrap(), 0)));
        assert_eq!(receiver.recv_timeout(std::time::Duration::from_secs(20)), Ok(false));
    }

    #[test]
    fn first_lines() {
        for line in
            ["#!/usr/bin/python3", "#!/usr/bin/env -S uv run --script", "#! pypy3\n", "#!/bin/python\r\n"]
        {
            assert!(is_python_script(line.as_bytes()), "{line}");
        }
        let long = format!("#!/usr/bin/env {} python3", "x".repeat(HEAD_BYTES));
        for line in ["", "#!/bin/sh\n# python", "# python", "#!/usr/bin/env python2.7", &long] {
            assert!(!is_python_script(line.as_bytes()), "{line}");
        }
    }
}
