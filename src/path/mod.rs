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
