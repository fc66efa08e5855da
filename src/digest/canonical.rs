//! Canonical JSON (RFC 8785, JCS).

use serde::Serialize;

/// Why a value has no canonical form.
#[derive(Debug, thiserror::Error)]
#[error("the value has no canonical JSON form: {0}")]
pub struct CanonicalError(#[from] serde_json::Error);

/// The RFC 8785 form of a value.
///
/// # Errors
/// See [`CanonicalError`].
pub fn to_canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    Ok(serde_jcs::to_vec(value)?)
}
