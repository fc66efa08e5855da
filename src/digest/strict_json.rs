//! Strict reading of JSON.
