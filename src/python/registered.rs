//! Classes that `register` makes virtual subclasses: objects of one pass for objects of the other, although neither inherits.

use super::classes::Class;
use crate::text::names::is_in_name;

/// The call, behind the class on which it is.
const CALL: &str = ".register";

impl Class {
    /// The names of the classes of which a decorator makes it a virtual subclass: `@Base.register`.
    pub fn registrars(&self) -> impl Iterator<Item = &str> {
        let decorators = self.definition().decorators.iter();
        decorators.filter_map(|decorator| decorator.strip_suffix(CALL)?.rsplit('.').next())
    }
}

/// The names before `.register(name)` in a text: of classes, or of other objects that have such a method.
#[must_use]
pub fn registrars_of<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let calls = text.match_indices(CALL).filter(|(at, _)| {
        let rest = text[at + CALL.len()..].trim_start();
        let argument = rest.strip_prefix('(').and_then(|rest| rest.split(')').next());
        argument.is_some_and(|argument| argument.trim().rsplit('.').next() == Some(name))
    });
    calls.filter_map(|(at, _)| text[..at].rsplit(|c| !is_in_name(c)).next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_class_is_registered_with() {
        let text =
            "abc.Sized.register(m.A)\nBase.register( A )\nBase.register(AB)\nadmin.register(A, B)\n.register";
        assert_eq!(registrars_of(text, "A"), ["Sized", "Base"]);
    }
}
