//! The `lanser` binary.

fn main() {}
