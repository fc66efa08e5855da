//! Classes that `register` makes virtual subclasses: objects of one pass for objects of the other, although neither inherits.

use super::classes::Class;
use crate::text::names::is_in_name;

/// The call, behind the class on which it is.
const CALL: &str = ".register";

/// The longest name of a class that is looked at, with its module, in characters.
const MAX_ARGUMENT: usize = 200;

impl Class {
    /// The names of the classes of which a decorator makes it a virtual subclass: `@Base.register`.
    pub fn registrars(&self) -> impl Iterator<Item = &str> {
        let decorators = self.definition().decorators.iter();
        decorators.filter_map(|decorator| decorator.strip_suffix(CALL)?.rsplit('.').next())
    }
}

/// The names of each `with.register(class)` in a text, the class first; `with` may be another object that has such a method.
pub(super) fn registered(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices(CALL).filter_map(|(at, _)| {
        let rest = text[at + CALL.len()..].trim_start().strip_prefix('(')?;
        let (end, _) = rest.char_indices().take(MAX_ARGUMENT).find(|(_, character)| *character == ')')?;
        let class = rest[..end].trim().rsplit('.').next()?;
        let with = text[..at].rsplit(|c| !is_in_name(c)).next()?;
        (!class.is_empty() && class.chars().all(is_in_name)).then_some((class, with))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_class_is_registered_with() {
        let text =
            "abc.Sized.register(m.A)\nBase.register( A )\nBase.register(AB)\nadmin.register(A, B)\n.register";
        let found: Vec<_> = registered(text).collect();
        assert_eq!(found, [("A", "Sized"), ("A", "Base"), ("AB", "Base")]);
    }
}
