//! Dictionaries whose keys become keyword arguments: `f(**{"key": 1})`, and `x = {"key": 1}` with `f(**x)`.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::outline::Span;
use super::syntax::{preorder, text_of};
use super::usage::{BY_KEY, KeywordUse, StringUse, Usage, last_name, targets};

/// How the dictionary with a key is unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unpacking {
    /// Where it is written.
    InPlace,
    /// In calls that name a variable or attribute which has it.
    ByName(Vec<KeywordUse>),
}

/// The calls that unpack a dictionary, by its last name: `x` and `y` of `f(**x, **self.y)`.
pub(super) type UnpackingCalls = BTreeMap<String, Vec<KeywordUse>>;

impl Usage<'_> {
    /// How the dictionary is unpacked that the string at a span, which is used so, is a key of; `None` if no call of the text is seen to
    /// unpack it. Dictionaries are told apart by their last names, so that calls that unpack another one can be among those found.
    #[must_use]
    pub fn unpacked_key(&self, key: &Span, used: &StringUse) -> Option<Unpacking> {
        let names = match used {
            StringUse::Subscript(Some(name)) => vec![name.clone()],
            StringUse::Argument { function, receiver: Some(name), .. }
                if BY_KEY.contains(&function.as_str()) =>
            {
                vec![name.clone()]
            }
            StringUse::Other => {
                let display = self.display_with(key)?;
                let parent = display.parent()?;
                if is_argument(parent) {
                    return Some(Unpacking::InPlace);
                }
                let is_assigned = |field| parent.child_by_field_name(field) == Some(display);
                match parent.kind() {
                    "assignment" if is_assigned("right") => targets(parent),
                    "named_expression" if is_assigned("value") => {
                        parent.child_by_field_name("name").map(|name| name.byte_range()).into_iter().collect()
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        let by_name = self.unpacked.get_or_init(|| self.unpacking_calls());
        let calls = names.into_iter().filter_map(|name| by_name.get(&self.text[name]));
        let calls: Vec<KeywordUse> = calls.flatten().cloned().collect();
        (!calls.is_empty()).then_some(Unpacking::ByName(calls))
    }

    /// The dictionary `{"key": value}` with a key, within its parentheses.
    fn display_with(&self, key: &Span) -> Option<Node<'_>> {
        let string = self.tree.root_node().descendant_for_byte_range(key.start, key.end)?.parent()?;
        let pair = string
            .parent()
            .filter(|pair| pair.kind() == "pair" && pair.child_by_field_name("key") == Some(string))?;
        let mut display = pair.parent()?;
        while let Some(around) = display.parent().filter(|node| node.kind() == "parenthesized_expression") {
            display = around;
        }
        Some(display)
    }

    fn unpacking_calls(&self) -> UnpackingCalls {
        let mut found = UnpackingCalls::new();
        if self.text.contains("**") {
            preorder(self.tree.root_node(), |node| {
                if is_argument(node)
                    && let Some(dictionary) = node.named_child(0).and_then(last_name)
                    && let Some(call) = node.parent().and_then(|arguments| self.argument_in(arguments))
                {
                    found.entry(text_of(dictionary, self.text).to_owned()).or_default().push(call);
                }
                true
            });
        }
        found
    }
}

/// Whether it is `**x` among the arguments of a call, and not in a dictionary.
fn is_argument(node: Node<'_>) -> bool {
    node.kind() == "dictionary_splat" && node.parent().is_some_and(|above| above.kind() == "argument_list")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last names of the functions, if the dictionary of `'§key'` is unpacked by name.
    fn functions(text: &str) -> Option<Vec<String>> {
        let at = text.find('§').unwrap();
        let text = text.replace('§', "");
        let (span, usage) = (at..at + 3, Usage::of(&text));
        match usage.unpacked_key(&span, &usage.string(&span)?)? {
            Unpacking::InPlace => Some(Vec::new()),
            Unpacking::ByName(calls) => Some(calls.into_iter().map(|call| call.function).collect()),
        }
    }

    #[test]
    fn keys_of_unpacked_dictionaries() {
        for (text, expected) in [
            ("f(**{'§key': 1})", Some(&[][..])),
            ("f(**({'a': 1, '§key': 1}))", Some(&[])),
            ("x = {'§key': 1}\nm.f(**x)\ng(**a.x)", Some(&["f", "g"])),
            ("a = self.x = {'§key': 1}\nf(**self.x)\n", Some(&["f"])),
            ("x: dict[\n str, int\n] = ({'§key': 1})\nf(**x)", Some(&["f"])),
            ("if (x := {'§key': 1}): f(**x)", Some(&["f"])),
            ("self.x['§key'] = 1\nf(**self.x)", Some(&["f"])),
            ("x.setdefault('§key', 1)\nf()(**x)", Some(&[""])),
            ("x = {'a': {'§key': 1}}\nf(**x)", None),
            ("x = {'a': '§key'}\nf(**x)", None),
            ("x = {'§key': 1}\ny = {**x}\ndef f(**x): pass", None),
            ("x.append('§key')\nf(**x)", None),
        ] {
            let expected: Option<Vec<String>> =
                expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            assert_eq!(functions(text), expected, "{text}");
        }
    }
}
