//! Paths and URIs: absolute paths, workspace paths, `file:` URIs of servers, and the portable document URIs of bundles and
//! selectors.

pub mod absolute;
pub mod doc_uri;
pub mod file_uri;
mod percent;
pub mod private;
pub mod workspace;

pub use absolute::AbsPath;
pub use doc_uri::DocUri;
pub use file_uri::FileUri;
pub use percent::{decode as decode_percent, encode_portable, encode_portable_and};
pub use workspace::WorkspacePath;

/// What the names of Python source and stub files end with.
pub(crate) const PYTHON_SUFFIXES: [&str; 3] = [".py", ".pyi", ".pyw"];

/// Whether a path, or the name of a file, is that of a Python source or stub file.
#[must_use]
pub fn is_python(path: &str) -> bool {
    PYTHON_SUFFIXES.iter().any(|suffix| path.ends_with(suffix))
}

/// Whether a path has a component that is git's folder on some file system. On Windows, `\` separates components.
#[must_use]
pub(crate) fn touches_git(path: &str) -> bool {
    path.split(['/', '\\']).any(|part| {
        // HFS+ ignores these characters in names.
        let visible = part.chars().filter(|c| {
            !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
        });
        // NTFS ignores stream names, trailing spaces and trailing dots, and accepts short names such as `git~1`.
        let visible: String = visible.collect();
        let name = visible.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
        let is_short = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("git~"))
            && name[4..].chars().all(|c| c.is_ascii_digit());
        name.eq_ignore_ascii_case(".git") || is_short
    })
}

/// Whether a folder in an environment is filled by the tools that make it and install into it: `venv`, `virtualenv` and `uv` on all
/// systems, conda, and pip, which has its checkouts in `src`.
#[must_use]
pub fn is_environment_folder(name: &str) -> bool {
    const FOLDERS: [&str; 19] = [
        "bin",
        "compiler_compat",
        "conda-meta",
        "DLLs",
        "doc",
        "etc",
        "include",
        "Include",
        "lib",
        "Lib",
        "lib64",
        "Library",
        "libs",
        "local",
        "man",
        "Scripts",
        "share",
        "src",
        "ssl",
    ];
    FOLDERS.contains(&name)
}
