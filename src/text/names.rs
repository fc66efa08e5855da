//! Names in a text, found without parsing: the runs of characters that can be in a Python identifier.

use std::ops::Range;

/// Whether a character can be in a name. That includes `_`.
#[must_use]
pub fn is_in_name(c: char) -> bool {
    unicode_ident::is_xid_continue(c)
}

/// Whether Python gives a name a special meaning, like `__len__`.
#[must_use]
pub fn is_dunder(name: &str) -> bool {
    name.len() > 4 && name.starts_with("__") && name.ends_with("__")
}

/// The names in a text, and its numbers.
pub fn names_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_in_name(c)).filter(|name| !name.is_empty())
}

/// Where a name occurs in a text, other than as a part of a longer one.
pub fn whole_names<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
    text.match_indices(name)
        .map(move |(at, _)| at..at + name.len())
        .filter(|span| !text[..span.start].ends_with(is_in_name) && !text[span.end..].starts_with(is_in_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole() {
        assert_eq!(names_of("a.b_c, é1+(2)").collect::<Vec<_>>(), ["a", "b_c", "é1", "2"]);
        assert_eq!(whole_names("ab a _a aé a", "a").collect::<Vec<_>>(), [3..4, 12..13]);
    }
}
