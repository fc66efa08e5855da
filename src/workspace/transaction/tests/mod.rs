//! The real disk under each test; see `project` for what is changed on it.

mod concurrent;
mod faults;
mod guards;
mod kill;
mod laws;
mod project;
mod size;
