//! From facts to a sealed bundle. Pure: no files, no server, no clock.
//!
//! [`portable`] takes the machine out of paths and texts, [`order`] puts lists in their one order, [`page`] cuts what is too
//! long, [`seal`] hashes.

pub mod order;
pub mod page;
pub mod portable;
pub mod seal;
