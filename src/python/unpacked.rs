//! Dictionaries whose keys become keyword arguments: `f(**{"key": 1})`, and `x = {"key": 1}` with `f(**x)`.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::outline::Span;
use super::syntax::{preorder, preorder_with_parents, text_of, unwrapped};
use super::usage::{BY_KEY, KeywordUse, StringUse, Usage, last_name, targets};

/// How the dictionary with a key is unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unpacking {
    /// Where it is written.
    InPlace,
    /// In calls that name a variable or attribute which has it.
    ByName(Vec<KeywordUse>),
    /// Perhaps by what gets it together with the function, or by a call of the function that unpacks something else:
    /// `Thread(target=f, kwargs={"key": 1})`, `def test(given): f(**given)`.
    Perhaps,
}

/// The calls that unpack dictionaries.
#[derive(Debug, Clone, Default)]
pub(super) struct UnpackingCalls {
    /// By the last name of the dictionary: `x` and `y` of `f(**x, **self.y)`.
    by_name: BTreeMap<String, Vec<KeywordUse>>,
    /// The last names of the functions to which what they unpack is given: the file does not write it out.
    functions: BTreeSet<String>,
}

impl Usage<'_> {
    /// How the dictionary is unpacked that the string at a span, which is used so, is a key of; `None` if no call of the text is seen to
    /// unpack it. Dictionaries are told apart by their last names, so that calls that unpack another one can be among those found.
    /// `functions` are the names of the functions that may get it.
    #[must_use]
    pub fn unpacked_key(&self, key: &Span, used: &StringUse, functions: &[String]) -> Option<Unpacking> {
        let names = match used {
            StringUse::Subscript(Some(name)) => vec![name.clone()],
            StringUse::Argument { function, receiver: Some(name), .. }
                if BY_KEY.contains(&function.as_str()) =>
            {
                vec![name.clone()]
            }
            StringUse::Other => {
                if self.is_in_unpacked(key) {
                    return Some(Unpacking::InPlace);
                }
                let display = self.display_with(key)?;
                let parent = display.parent()?;
                if self.is_beside(display, functions) {
                    return Some(Unpacking::Perhaps);
                }
                let is_assigned = |field| parent.child_by_field_name(field) == Some(display);
                match parent.kind() {
                    "assignment" if is_assigned("right") => targets(parent),
                    "named_expression" if is_assigned("value") => {
                        parent.child_by_field_name("name").map(|name| name.byte_range()).into_iter().collect()
                    }
                    _ => Vec::new(),
                }
            }
            _ => return None,
        };
        let calls = self.unpacked.get_or_init(|| self.unpacking_calls());
        let found = names.into_iter().filter_map(|name| calls.by_name.get(&self.text[name]));
        let found: Vec<KeywordUse> = found.flatten().cloned().collect();
        if !found.is_empty() {
            return Some(Unpacking::ByName(found));
        }
        let is_unpacked =
            *used == StringUse::Other && functions.iter().any(|name| calls.functions.contains(name));
        is_unpacked.then_some(Unpacking::Perhaps)
    }

    /// Whether a string is in what a call unpacks, and not the value of a key there: `f(**dict([("key", 1)]))`.
    fn is_in_unpacked(&self, key: &Span) -> bool {
        let mut node = self.tree.root_node().descendant_for_byte_range(key.start, key.end);
        while let Some(inner) = node {
            let Some(around) = inner.parent() else { return false };
            if is_argument(around) {
                return true;
            }
            let is_value = around.kind() == "pair" && around.child_by_field_name("value") == Some(inner);
            if is_value || is_statement(around) {
                return false;
            }
            node = Some(around);
        }
        false
    }

    /// Whether the expression around a dictionary names one of the functions without a call of it.
    fn is_beside(&self, display: Node<'_>, functions: &[String]) -> bool {
        if functions.is_empty() {
            return false;
        }
        let mut expression = display;
        while let Some(around) = expression.parent().filter(|around| !is_statement(*around)) {
            expression = around;
        }
        let mut is_named = false;
        preorder_with_parents(expression, |node, around| {
            let is_last = || {
                around.is_none_or(|around| {
                    around.kind() != "attribute" || around.child_by_field_name("attribute") == Some(node)
                })
            };
            let is_name = || functions.iter().any(|name| name == text_of(node, self.text));
            if node.kind() == "identifier" && is_name() && is_last() {
                let value = around.filter(|around| around.kind() == "attribute").unwrap_or(node);
                let is_called =
                    value.parent().is_some_and(|call| call.child_by_field_name("function") == Some(value));
                is_named |= !is_called;
            }
            node != display && !is_named
        });
        is_named
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
        let mut found = UnpackingCalls::default();
        if !self.text.contains("**") {
            return found;
        }
        let mut written = BTreeSet::new();
        let mut others = Vec::new();
        preorder(self.tree.root_node(), |node| {
            if is_argument(node)
                && let Some(call) = node.parent().and_then(|arguments| self.argument_in(arguments))
            {
                let dictionary = node.named_child(0).and_then(last_name);
                let dictionary = dictionary.map(|name| text_of(name, self.text));
                others.push((dictionary, call.function.clone()));
                if let Some(name) = dictionary {
                    found.by_name.entry(name.to_owned()).or_default().push(call);
                }
            }
            let value = node.child_by_field_name("right").map(unwrapped);
            if node.kind() == "assignment" && value.is_some_and(|value| value.kind() == "dictionary") {
                written.extend(targets(node).into_iter().map(|target| &self.text[target]));
            }
            true
        });
        let is_given = |dictionary: &Option<&str>| dictionary.is_none_or(|name| !written.contains(name));
        let given = others.into_iter().filter(|(dictionary, _)| is_given(dictionary));
        found.functions = given.map(|(_, function)| function).collect();
        found
    }
}

/// Whether a node is a statement, or a part of one with statements.
fn is_statement(node: Node<'_>) -> bool {
    let ends = ["_statement", "_definition", "_clause", "block", "module", "decorator", "parameters"];
    ends.iter().any(|end| node.kind().ends_with(end))
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
        match usage.unpacked_key(&span, &usage.string(&span)?, &["take".to_owned()])? {
            Unpacking::InPlace => Some(Vec::new()),
            Unpacking::Perhaps => Some(vec!["perhaps".to_owned()]),
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
            ("f(**dict(zip(['§key'], [1])), **dict([('a', 2)]))", Some(&[])),
            ("f(**dict([('§key', 2)]))", Some(&[])),
            ("f(**{'a': ['§key']})", None),
            ("Thread(target=take, kwargs={'§key': 1})", Some(&["perhaps"])),
            ("CALLS = [(m.take, {'§key': 1})]", Some(&["perhaps"])),
            ("take({'§key': 1})", None),
            ("def test(given): take(**given)\nCASES = [{'§key': 1}]", Some(&["perhaps"])),
            ("def test(given): other(**given)\nCASES = [{'§key': 1}]", None),
        ] {
            let expected: Option<Vec<String>> =
                expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            assert_eq!(functions(text), expected, "{text}");
        }
    }
}
