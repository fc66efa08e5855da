//! Python scripts without a suffix, such as `bin/tool`. They are Python files of the workspace, but no server finds them.

use std::io::Read as _;

use crate::path::AbsPath;

/// A folder with more files without a suffix has data and no scripts.
pub(super) const MAX_MAYBE_SCRIPTS: usize = 500;

/// A larger file without a suffix is no script.
const MAX_SCRIPT_BYTES: u64 = 1 << 20;

/// As much of a file shows whether it is a script.
const SCRIPT_HEAD_BYTES: u64 = 256;

/// Whether a file may be a Python script by its path or name.
#[must_use]
pub fn may_be_script(path: &str) -> bool {
    !path.rsplit('/').next().unwrap_or_default().contains('.')
}

/// Whether the file of this size, which may be a script by its name, is one.
pub(super) fn is_script(path: &AbsPath, size: u64) -> bool {
    if size > MAX_SCRIPT_BYTES {
        return false;
    }
    let mut head = Vec::new();
    let file = std::fs::File::open(path.as_path());
    let read = file.and_then(|file| file.take(SCRIPT_HEAD_BYTES).read_to_end(&mut head));
    read.is_ok() && is_python_script(&head)
}

/// Whether the first line of a content says that Python runs it.
#[must_use]
pub fn is_python_script(content: &[u8]) -> bool {
    let first = content.split(|&byte| byte == b'\n').next().unwrap_or_default();
    first.starts_with(b"#!") && first.windows(6).any(|part| part == b"python")
}

/// Whether the whole content is that of a script, if the file has no suffix.
pub(super) fn is_script_content(content: &[u8]) -> bool {
    content.len() as u64 <= MAX_SCRIPT_BYTES && is_python_script(content)
}
