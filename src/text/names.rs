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

/// Whether a name is private, so that Python mangles it with the class's name: `__x` in `class C` is `_C__x`.
#[must_use]
pub fn is_private(name: &str) -> bool {
    name.starts_with("__") && !name.ends_with("__")
}

/// Whether a name is another one as Python mangles it in some class: `_C__x` for `__x`.
#[must_use]
pub fn is_mangled_form(name: &str, of: &str) -> bool {
    is_private(of) && name != of && name.starts_with('_') && !name.starts_with("__") && name.ends_with(of)
}

/// The mangled form of `name` in a class, or `name` itself outside of classes.
#[must_use]
pub fn mangled(name: &str, class: Option<&str>) -> String {
    match class.map(|class| class.trim_start_matches('_')).filter(|class| !class.is_empty()) {
        Some(class) if is_private(name) => format!("_{class}{name}"),
        _ => name.to_owned(),
    }
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

/// Replaces a name wherever it occurs as a whole word.
#[must_use]
pub fn replace_word(text: &str, old: &str, new: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for span in whole_names(text, old) {
        out.push_str(&text[from..span.start]);
        out.push_str(new);
        from = span.end;
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole() {
        assert_eq!(names_of("a.b_c, é1+(2)").collect::<Vec<_>>(), ["a", "b_c", "é1", "2"]);
        assert_eq!(whole_names("ab a _a aé a", "a").collect::<Vec<_>>(), [3..4, 12..13]);
    }

    #[test]
    fn dunder_and_private_names() {
        for (name, dunder, private) in [
            ("__len__", true, false),
            ("__x", false, true),
            ("__x_", false, true),
            ("_x", false, false),
            ("____", false, false),
            ("x__", false, false),
        ] {
            assert_eq!((is_dunder(name), is_private(name)), (dunder, private), "{name}");
        }
        assert_eq!(mangled("__x", Some("_C")), "_C__x");
        assert_eq!(mangled("__x", Some("__")), "__x");
        assert_eq!(mangled("__x", None), "__x");
        assert_eq!(mangled("_x", Some("C")), "_x");
    }

    #[test]
    fn whole_words_are_replaced() {
        assert_eq!(replace_word("\"get\" of get_x, get", "get", "fetch"), "\"fetch\" of get_x, fetch");
        assert_eq!(replace_word("aa", "a", "b"), "aa");
    }
}
