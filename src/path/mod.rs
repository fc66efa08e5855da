//! Paths and URIs: absolute paths, workspace paths, `file:` URIs as servers spell them, and the portable
//! document URIs of bundles and selectors.

pub mod absolute;
pub mod doc_uri;
pub mod file_uri;
mod percent;
pub mod workspace;

pub use absolute::AbsPath;
pub use doc_uri::DocUri;
pub use file_uri::FileUri;
pub use percent::encode_portable;
pub use workspace::WorkspacePath;
