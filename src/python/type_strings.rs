//! Types that are written as strings: `x: "C | None"`, `cast("C", x)`, `TypeVar("T", bound="C")`. Servers do not report all uses in
//! them.

use tree_sitter::Node;

use super::outline::Span;
use super::syntax::text_of;
use super::usage::{Usage, last_name};

/// What takes types in brackets, also where no annotation is.
const GENERICS: [&str; 31] = [
    "AsyncGenerator",
    "AsyncIterable",
    "AsyncIterator",
    "Annotated",
    "Awaitable",
    "Callable",
    "ClassVar",
    "Collection",
    "Coroutine",
    "DefaultDict",
    "Deque",
    "Dict",
    "FrozenSet",
    "Generator",
    "Generic",
    "Iterable",
    "Iterator",
    "List",
    "Mapping",
    "MutableMapping",
    "Optional",
    "Protocol",
    "Sequence",
    "Set",
    "Tuple",
    "Type",
    "Union",
    "dict",
    "list",
    "tuple",
    "type",
];

/// Whether a name in a string may be a part of a type, judged by its line: the string has nothing but names, operators and brackets.
#[must_use]
pub fn may_be_type(text: &str, span: &Span) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_.,|[] ".contains(c);
    let before = text[..span.start].trim_end_matches(is_part);
    let after = text[span.end..].trim_start_matches(is_part);
    let quote = before.chars().next_back().filter(|c| matches!(c, '"' | '\''));
    if quote.is_none() || after.chars().next() != quote {
        return false;
    }
    // Two names with nothing between them are a sentence.
    let content = &text[before.len()..text.len() - after.len()];
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let words: Vec<&str> = content.split(' ').filter(|word| !word.is_empty()).collect();
    !words.windows(2).any(|two| two[0].ends_with(is_name) && two[1].starts_with(is_name))
}

impl Usage<'_> {
    /// The span of the content of the string around an offset, if the string is a type.
    #[must_use]
    pub fn type_string(&self, offset: usize) -> Option<Span> {
        let content = self.tree.root_node().descendant_for_byte_range(offset, offset + 1)?;
        let string = content.parent().filter(|_| content.kind() == "string_content")?;
        self.is_type(string).then(|| content.byte_range())
    }

    /// Whether an expression is where a type is expected.
    fn is_type(&self, expression: Node<'_>) -> bool {
        let mut node = expression;
        let mut is_in_brackets = false;
        while let Some(around) = node.parent() {
            match around.kind() {
                "type" if !around.parent().is_some_and(|outer| is_part_of_type(outer)) => return true,
                "subscript" | "generic_type" => {
                    let generic = around.child(0).filter(|generic| *generic != node);
                    let Some(name) = generic.and_then(last_name).map(|name| text_of(name, self.text)) else {
                        return false;
                    };
                    if name == "Literal" || name == "Annotated" && around.named_child(1) != Some(node) {
                        return false;
                    }
                    is_in_brackets |= GENERICS.contains(&name);
                }
                "type_parameter" if self.is_metadata(around, node) => return false,
                "type" => {}
                _ if is_part_of_type(around) => {}
                "assignment" if around.child_by_field_name("right") == Some(node) => {
                    let declared = around.child_by_field_name("type").map(|of| text_of(of, self.text));
                    return is_in_brackets || declared.is_some_and(|of| of.ends_with("TypeAlias"));
                }
                "keyword_argument" => {
                    let name = around.child_by_field_name("name").map(|name| text_of(name, self.text));
                    let call = around.parent().and_then(|arguments| arguments.parent());
                    let function = call.map(|call| self.function(call)).unwrap_or_default();
                    return is_in_brackets
                        || matches!(name, Some("bound" | "default")) && function.starts_with("TypeVar")
                        || name == Some("typ") && function == "cast";
                }
                "argument_list" => {
                    let Some(call) = around.parent() else { return false };
                    let is_at = |index: u32| around.named_child(index) == Some(node);
                    return is_in_brackets
                        || match self.function(call) {
                            "cast" => is_at(0),
                            "NewType" | "assert_type" | "TypeAliasType" => is_at(1),
                            "TypeVar" => !is_at(0),
                            _ => false,
                        };
                }
                _ => return is_in_brackets,
            }
            node = around;
        }
        false
    }

    /// Whether a part of `Literal[…]` or `Annotated[C, …]` in an annotation is no type.
    fn is_metadata(&self, parameters: Node<'_>, part: Node<'_>) -> bool {
        let generic = parameters.parent().and_then(|around| around.child(0)).and_then(last_name);
        match generic.map(|name| text_of(name, self.text)) {
            Some("Literal") => true,
            Some("Annotated") => parameters.named_child(0) != Some(part),
            _ => false,
        }
    }

    /// The last name of what is called.
    fn function(&self, call: Node<'_>) -> &str {
        let function = call.child_by_field_name("function").and_then(last_name);
        function.map(|name| text_of(name, self.text)).unwrap_or_default()
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

    #[test]
    fn types_in_strings() {
        let check = |text: &str| {
            let at = text.find('§').unwrap();
            let text = text.replace('§', "");
            let found = Usage::of(&text).type_string(at);
            (may_be_type(&text, &(at..at + 1)), found.map(|span| text[span].to_owned()))
        };
        for (text, content) in [
            ("x: '§C'", "C"),
            ("x: 'm.§C | None' = 1", "m.C | None"),
            ("x: list['§C']", "C"),
            ("x: dict[str, 'list[§C]']", "list[C]"),
            ("x: Annotated['§C', 'D']", "C"),
            ("x: D | '§C'", "C"),
            ("x: Callable[['§C'], D]", "C"),
            ("def f(x: '§C' = 1): pass", "C"),
            ("def f() -> '§C': pass", "C"),
            ("cast('§C', x)", "C"),
            ("t.cast('list[§C]', x)", "list[C]"),
            ("cast(typ='§C', val=x)", "C"),
            ("N = NewType('N', '§C')", "C"),
            ("T = t.TypeVar('T', bound='§C')", "C"),
            ("T = TypeVar('T', 'D', '§C')", "C"),
            ("A: t.TypeAlias = '§C'", "C"),
            ("A = Optional['§C']", "C"),
            ("class D(Generic['§C']): pass", "C"),
            ("f(List['§C'])", "C"),
        ] {
            assert_eq!(check(text), (true, Some(content.to_owned())), "{text}");
        }
        for text in [
            "x: Literal['§C']",
            "x: t.Literal['D', '§C'] = 1",
            "x: Annotated[D, '§C']",
            "x = '§C'",
            "x: str = '§C'",
            "d['§C']",
            "x = d['§C'] | e",
            "f('§C')",
            "N = NewType('§C', D)",
            "T = TypeVar('§C')",
            "def f(x: D = '§C'): pass",
            "x: f('§C')",
        ] {
            assert_eq!(check(text).1, None, "{text}");
        }
        for text in ["'see §C here'", "'#§C'", "'a-§C'", "'''\n§C\n'''"] {
            assert!(!check(text).0, "{text}");
        }
    }
}
