//! What the measuring programs share.

#![allow(dead_code, reason = "no program needs all of it")]

pub(crate) mod positions;
pub(crate) mod program;
pub(crate) mod raw;
