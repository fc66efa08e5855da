//! Counts in messages: `1 reference`, `2 references`.

use std::fmt::Display;

/// A count with its noun, which takes an `s` unless the count is one.
#[must_use]
pub fn plural<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = match count == N::from(1) {
        true => "",
        false if noun.ends_with('s') => "es",
        false => "s",
    };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!(plural(0_u32, "file"), "0 files");
        assert_eq!(plural(1_usize, "file"), "1 file");
        assert_eq!(plural(2_usize, "class"), "2 classes");
        assert_eq!(plural(21_u64, "file"), "21 files");
    }
}
