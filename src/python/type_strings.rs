//! Types that are written as strings: `x: "C | None"`, `cast("C", x)`, `TypeVar("T", bound="C")`. Servers do not report all uses in
//! them.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::outline::{Imported, Span};
use super::scopes::Scopes;
use super::syntax::text_of;
use super::usage::Usage;

/// Modules whose names are what they are called, also under an alias.
const TYPING: [&str; 4] = ["typing", "typing_extensions", "collections", "collections.abc"];

/// Builtins that take types in brackets.
const BUILTINS: [&str; 6] = ["dict", "frozenset", "list", "set", "tuple", "type"];

/// How many strings are in one another at most.
const MAX_DEPTH: usize = 4;

/// How far from a name its string is looked for, in characters.
const MAX_DISTANCE: usize = 500;

/// Whether a name in a string may be a part of a type, judged by its line: around it are nothing but names, operators and brackets.
#[must_use]
pub fn may_be_type(text: &str, span: &Span) -> bool {
    let is_part = |c: &char| c.is_alphanumeric() || "_.,|[] '\"".contains(*c);
    let length = |around: &mut dyn Iterator<Item = char>| -> Option<usize> {
        let mut length = 0;
        for (count, c) in around.take_while(is_part).enumerate() {
            length += c.len_utf8();
            if count == MAX_DISTANCE {
                return None;
            }
        }
        Some(length)
    };
    let before = length(&mut text[..span.start].chars().rev());
    let after = length(&mut text[span.end..].chars());
    let Some((before, after)) = before.zip(after) else { return false };
    let (before, after) = (span.start - before, span.end + after);
    let is_quote = |c: char| matches!(c, '"' | '\'');
    if !text[before..span.start].contains(is_quote) || !text[span.end..after].contains(is_quote) {
        return false;
    }
    // Two names with nothing between them are a sentence.
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let words: Vec<&str> = text[before..after].split(' ').filter(|word| !word.is_empty()).collect();
    !words.windows(2).any(|two| two[0].ends_with(is_name) && two[1].starts_with(is_name))
}

/// A text with its strings that are types as code.
#[derive(Debug)]
pub struct TypesAsCode {
    /// The text; all offsets are as they were.
    pub code: String,
    /// The offsets of names that were in such strings.
    pub names: BTreeSet<usize>,
}

impl TypesAsCode {
    /// Reads the strings around the names that begin at these offsets.
    #[must_use]
    pub fn of(text: &str, offsets: &[usize]) -> Self {
        let (mut code, mut names) = (text.to_owned(), BTreeSet::new());
        for _ in 0..MAX_DEPTH {
            let mut contents = BTreeSet::new();
            let usage = Usage::of(&code);
            for &offset in offsets {
                let Some(node) = usage.tree.root_node().descendant_for_byte_range(offset, offset + 1) else {
                    continue;
                };
                if let Some(content) = usage.type_string(node) {
                    contents.insert((content.start, content.end));
                    names.insert(offset);
                } else if node.kind().starts_with("string") {
                    // In a string that is a type, this one is none.
                    names.remove(&offset);
                }
            }
            drop(usage);
            if contents.is_empty() {
                return Self { code, names };
            }
            let quotes: BTreeSet<usize> =
                contents.into_iter().flat_map(|(start, end)| [start - 1, end]).collect();
            code = code.char_indices().map(|(at, c)| if quotes.contains(&at) { ' ' } else { c }).collect();
        }
        Self { code, names: BTreeSet::new() }
    }
}

impl Usage<'_> {
    /// Whether the string around an offset is a type, as far as its place says it.
    #[must_use]
    pub fn is_type_string(&self, offset: usize) -> bool {
        let content = self.tree.root_node().descendant_for_byte_range(offset, offset + 1);
        content.is_some_and(|content| self.type_string(content).is_some())
    }

    /// The span of the content of a string between plain quotes, if the string is where a type is expected.
    fn type_string(&self, content: Node<'_>) -> Option<Span> {
        let string = content.parent().filter(|_| content.kind() == "string_content")?;
        let quote = |at: u32| string.child(at).map(|node| text_of(node, self.text));
        let is_plain =
            matches!(quote(0), Some("'" | "\"")) && quote(0) == quote(2) && string.child_count() == 3;
        (is_plain && self.is_type(string)).then(|| content.byte_range())
    }

    /// Whether a string is where a type is expected.
    fn is_type(&self, string: Node<'_>) -> bool {
        let mut node = string;
        // In the brackets of something of `typing`, in those of something else.
        let (mut is_in_brackets, mut is_in_others) = (false, false);
        let (mut is_first, mut is_second, mut is_value) = (true, false, false);
        while let Some(around) = node.parent() {
            match around.kind() {
                "type" if !around.parent().is_some_and(|outer| is_part_of_type(outer)) => {
                    return !is_in_others;
                }
                "type_parameter" => is_first = around.named_child(0) == Some(node),
                "subscript" | "generic_type" => {
                    let Some(generic) = around.child(0).filter(|generic| *generic != node) else {
                        return false;
                    };
                    if around.kind() == "subscript" {
                        is_first = around.named_child(1) == Some(node);
                    }
                    match self.typing_name(generic).as_deref() {
                        Some("Literal") => return false,
                        Some("Annotated") if !is_first => return false,
                        Some(_) => is_in_brackets = true,
                        None => is_in_others = true,
                    }
                }
                "tuple" => is_second = around.named_child(1) == Some(node),
                "pair" if around.child_by_field_name("value") == Some(node) => is_value = true,
                "dictionary" if is_value => {}
                "type" => {}
                _ if is_part_of_type(around) => {}
                "assignment" if around.child_by_field_name("right") == Some(node) => {
                    let declared = around.child_by_field_name("type").map(|of| text_of(of, self.text));
                    let is_alias = declared.is_some_and(|of| of.ends_with("TypeAlias"));
                    return !is_value && !is_in_others && (is_in_brackets || is_alias);
                }
                "keyword_argument" => {
                    let name = around.child_by_field_name("name").map(|name| text_of(name, self.text));
                    let call = around.parent().and_then(|arguments| arguments.parent());
                    let function = call.and_then(|call| self.function(call)).unwrap_or_default();
                    let takes_type = match name {
                        Some("bound" | "default") => function.starts_with("TypeVar"),
                        Some("typ") => function == "cast",
                        _ => is_in_brackets,
                    };
                    return takes_type && !is_value && !is_in_others;
                }
                "argument_list" => {
                    let Some(call) = around.parent() else { return false };
                    if call.kind() == "class_definition" {
                        return is_in_brackets || is_in_others;
                    }
                    let is_at = |index: u32| around.named_child(index) == Some(node);
                    let takes_type = match self.function(call).as_deref() {
                        Some("cast") => !is_value && is_at(0),
                        Some("NewType" | "assert_type" | "TypeAliasType") => !is_value && is_at(1),
                        Some("TypeVar") => !is_value && !is_at(0),
                        Some("NamedTuple") => !is_value && is_second && is_at(1),
                        Some("TypedDict") => is_value && is_at(1),
                        _ => !is_value && is_in_brackets,
                    };
                    return takes_type && !is_in_others;
                }
                _ => return is_in_brackets && !is_in_others && !is_value,
            }
            node = around;
        }
        false
    }

    /// The name that an expression has in `typing` or the like, or as a builtin.
    fn typing_name(&self, expression: Node<'_>) -> Option<String> {
        let object = match expression.kind() {
            "identifier" => expression,
            "attribute" => expression.child_by_field_name("object").filter(|of| of.kind() == "identifier")?,
            _ => return None,
        };
        let name = text_of(object, self.text);
        let mut bound = self.outline().imports.iter().filter(|import| import.bound == name);
        let Some(import) = bound.next().filter(|import| import.level == 0) else {
            // What the file binds itself is no builtin.
            let is_builtin = object == expression
                && BUILTINS.contains(&name)
                && Scopes::of(self.text, &[name])
                    .bound_by(object.start_byte())
                    .is_some_and(|bound| bound.is_empty());
            return is_builtin.then(|| name.to_owned());
        };
        let is_typing = TYPING.contains(&import.module.as_str());
        match (&import.what, expression.child_by_field_name("attribute")) {
            (Imported::Name(name), None) if is_typing => Some(name.clone()),
            (Imported::Module | Imported::Top, Some(attribute)) if is_typing => {
                Some(text_of(attribute, self.text).to_owned())
            }
            _ => None,
        }
    }

    /// The name in `typing` of what is called.
    fn function(&self, call: Node<'_>) -> Option<String> {
        self.typing_name(call.child_by_field_name("function")?)
    }
}

/// Whether a node may be in the middle of a type.
fn is_part_of_type(node: Node<'_>) -> bool {
    const KINDS: [&str; 8] = [
        "type_parameter",
        "binary_operator",
        "list",
        "tuple",
        "parenthesized_expression",
        "union_type",
        "member_type",
        "constrained_type",
    ];
    KINDS.contains(&node.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMPORTS: &str = "import typing as t\nfrom typing import Annotated as A, Callable, Generic, List, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, cast\n";

    #[test]
    fn types_in_strings() {
        let check = |text: &str| {
            let text = format!("{IMPORTS}{text}");
            let at = text.find('§').unwrap();
            let text = text.replace('§', "");
            let TypesAsCode { code, names } = TypesAsCode::of(&text, &[at]);
            assert_eq!((code.len(), &code[at..=at]), (text.len(), &text[at..=at]), "{text}");
            may_be_type(&text, &(at..at + 1)) && names.contains(&at)
        };
        for text in [
            "x: '§C'",
            "x: 'm.§C | None' = 1",
            "x: list['§C']",
            "x: dict[str, 'list[§C]']",
            "x: A['§C', 'D']",
            "x: D | '§C'",
            "x: Callable[['§C'], D]",
            "def f(x: '§C' = 1): pass",
            "def f() -> '§C': pass",
            "cast('§C', x)",
            "t.cast('list[§C]', x)",
            "cast(\"t.Union[D, '§C']\", x)",
            "cast('Other[§C]', x)",
            "cast(typ='§C', val=x)",
            "N = NewType('N', '§C')",
            "T = t.TypeVar('T', bound='§C')",
            "T = TypeVar('T', 'D', '§C')",
            "B: t.TypeAlias = '§C'",
            "B = Optional['§C']",
            "class D(Generic['§C']): pass",
            "class D(Other['§C']): pass",
            "f(List['§C'])",
            "N = NamedTuple('N', [('a', '§C')])",
            "D = TypedDict('D', {'a': '§C'})",
        ] {
            assert!(check(text), "{text}");
        }
        for text in [
            "x: Literal['§C']",
            "x: \"Literal['§C', 'D'] | None\"",
            "x: t.Literal['D', '§C'] = 1",
            "cast(\"Literal['§C']\", x)",
            "x: A[D, '§C']",
            "x: \"A[D, '§C']\"",
            "x: Other[D, '§C']",
            "x = '§C'",
            "x: str = '§C'",
            "d['§C']",
            "x = d['§C'] | e",
            "def f(dict): return dict['§C']",
            "x.type['§C']",
            "f('§C')",
            "x.cast('§C')",
            "x.assert_type(1, '§C')",
            "N = NewType('§C', D)",
            "T = TypeVar('§C')",
            "N = NamedTuple('N', [('§C', 'a')])",
            "D = TypedDict('D', {'§C': 'a'})",
            "def f(x: D = '§C'): pass",
            "x: f('§C')",
            "x: b'§C'",
            "x: f'§C'",
            "cast('§C",
            "'see §C here'",
            "'#§C'",
            "'''\n§C\n'''",
        ] {
            assert!(!check(text), "{text}");
        }
        let long = format!("x = '{}§C'", "C, ".repeat(MAX_DISTANCE));
        assert!(!check(&long));
    }
}
