//! Canonical JSON (RFC 8785, JCS): the bytes that are hashed.
//!
//! `serde_jcs` writes; [`domain`](super::domain) first refuses what RFC 8785 has no form for, and what could get the hash of something
//! else. Deliberately absent: a lenient mode, and any repair of a value.

use std::fmt;

use serde::Serialize;

use super::domain;

/// Why a value has no canonical form, and where in it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("no canonical JSON form: {path}: {fault}")]
pub struct CanonicalError {
    /// The path of the value that is at fault, as `$.meta.weights[2]`.
    pub path: String,
    /// What is wrong with it.
    pub fault: CanonicalFault,
}

/// What keeps a value from having one canonical form.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CanonicalFault {
    /// JSON has no NaN and no infinities.
    #[error("{0} is not a finite number")]
    NotFinite(f64),
    /// JCS writes numbers as doubles, where integers past 2^53 - 1 run together.
    #[error("the integer {0} is past ±(2^53 - 1)")]
    IntegerOutOfRange(String),
    /// An `f32`. Its printed form and its canonical form differ (`0.1` and `0.10000000149011612`), so that
    /// a value would change its hash by being written and read.
    #[error("a number of single precision prints as another number than it hashes as")]
    SinglePrecision,
    /// A key twice in one object, as a map with its own order or `#[serde(flatten)]` can have it.
    #[error("the key {0:?} occurs twice")]
    DuplicateKey(String),
    /// A map with keys that are not text.
    #[error("the key {0} is not text")]
    KeyNotText(String),
    /// JSON text carried through as it is (`RawValue`), which nothing has checked.
    #[error("raw JSON text cannot be hashed")]
    RawJson,
    /// More than [`MAX_DEPTH`](super::MAX_DEPTH) arrays and objects in one another.
    #[error("more than {} arrays and objects inside one another", domain::MAX_DEPTH)]
    TooDeep,
    /// The value's own `Serialize` refused, with its message.
    #[error("{0}")]
    Refused(String),
}

/// The RFC 8785 form of a value.
///
/// # Errors
/// See [`CanonicalFault`]; nothing is rounded, dropped or replaced in silence.
pub fn to_canonical<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    /// Takes the value past the outermost serializer of `serde_jcs`, which knows no 128-bit integers.
    #[derive(Serialize)]
    struct Root<'v, T: ?Sized>(&'v T);

    domain::check(value)?;
    serde_jcs::to_vec(&Root(value)).map_err(<CanonicalError as serde::ser::Error>::custom)
}

impl CanonicalError {
    /// Fills in the path, unless a value further inside has done so.
    pub(super) fn located(mut self, at: &impl fmt::Display) -> Self {
        if self.path.is_empty() {
            self.path = at.to_string();
        }
        self
    }
}

impl From<CanonicalFault> for CanonicalError {
    fn from(fault: CanonicalFault) -> Self {
        Self { path: String::new(), fault }
    }
}

impl serde::ser::Error for CanonicalError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        CanonicalFault::Refused(message.to_string()).into()
    }
}
