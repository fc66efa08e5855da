//! Makes a sealed bundle from facts. Pure: no files, no server, no clock.
//!
//! [`portable`] replaces the machine's paths, [`order`] sorts lists, [`page`] truncates long lists, [`seal`] hashes the
//! bundle.

pub mod order;
pub mod page;
pub mod portable;
pub mod seal;
