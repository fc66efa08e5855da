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
