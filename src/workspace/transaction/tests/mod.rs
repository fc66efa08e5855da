//! Tests of transactions on the real disk. `project` has the files that they change.

mod concurrent;
mod faults;
mod guards;
mod kill;
mod laws;
mod project;
mod size;
