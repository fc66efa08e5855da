//! Whether an object gets anywhere else: a module or a class whose name is used other than to reach what is in it, or to make an
//! instance. Decided by names and syntax alone, so that "yes" can be wrong.

use tree_sitter::Node;

use super::occurrences::{OccurrenceKind, occurrences};
use super::outline::{DefinitionKind, Import, Imported, Outline, Span};
use super::syntax::{dotted, parse, preorder, text_of};
use crate::digest::Digest;
use crate::text::names::whole_names;

/// Functions that do nothing with a class but compare it, or take it for a type.
const ASKING: [&str; 5] = ["isinstance", "issubclass", "cast", "repr", "str"];

/// Attributes of a class with double underscores that do not lead to its constructor.
const DESCRIBING: [&str; 5] = ["__name__", "__qualname__", "__module__", "__doc__", "__members__"];

/// Functions that look an attribute up or inspect an object, and pass it to nothing else.
const INSPECTING: [&str; 9] =
    ["getattr", "hasattr", "setattr", "delattr", "object", "reload", "dir", "vars", "getmembers"];

/// Whether the name of a module is used in a text otherwise than before a dot or in an import statement, so that the object may get anywhere.
#[must_use]
pub fn is_module_passed_on(text: &str, digest: Digest, name: &str) -> bool {
    is_used_as_value(text, digest, name, &|_, _| false)
}

/// The same, where a use counts if an import of the text may have bound the module or a package above it: the name itself, or the first one
/// of `a.b.m`, is imported, or is a part of what is (`from .m import x` binds `m` in a package), or `*` is. An import in the body of a
/// class makes the module an attribute of its objects.
#[must_use]
pub fn is_import_passed_on(text: &str, digest: Digest, name: &str) -> bool {
    let outline = Outline::parse(text);
    let binds = |import: &Import, name: &str| {
        import.what == Imported::Star
            || import.bound == name
            || import.module.split('.').any(|part| part == name)
    };
    let in_class = outline.imports.iter().filter(|import| binds(import, name)).any(|import| {
        import.parent.is_some_and(|parent| outline.definitions[parent].kind == DefinitionKind::Class)
    });
    let is_other = |node: Node<'_>, text: &str| {
        let chain = dotted(node, text);
        let first = chain.as_deref().and_then(|chain| chain.split('.').next());
        !first.is_some_and(|first| outline.imports.iter().any(|import| binds(import, first)))
    };
    in_class || is_used_as_value(text, digest, name, &is_other)
}

/// The other names that `from … import name as other` binds in a text.
#[must_use]
pub fn aliases_of(text: &str, name: &str) -> Vec<String> {
    if !text.contains(" as ") {
        return Vec::new();
    }
    let outline = Outline::parse(text);
    let is_it =
        |import: &&Import| matches!(&import.what, Imported::Name(of) if of == name) && import.bound != name;
    outline.imports.iter().filter(is_it).map(|import| import.bound.clone()).collect()
}

/// Whether a function of this name is used otherwise than to call it, to import it under its name, or as a decorator: then something else may
/// have its parameters.
#[must_use]
pub fn is_function_passed_on(text: &str, digest: Digest, name: &str) -> bool {
    let tree = std::cell::LazyCell::new(|| parse(text));
    occurrences(text, digest, name).into_iter().filter(|found| found.kind.is_token()).any(|found| {
        let span = found.span();
        let token = tree.root_node().descendant_for_byte_range(span.start, span.end);
        let Some(node) = token.map(end_of_chain) else { return true };
        let Some(above) = node.parent() else { return true };
        let is = |field: &str| above.child_by_field_name(field) == Some(node);
        !match above.kind() {
            "call" => is("function"),
            "function_definition" | "keyword_argument" => is("name"),
            "decorator" | "expression_statement" | "parameters" | "lambda_parameters" => true,
            "dotted_name" => above.parent().is_some_and(|above| above.kind() == "import_from_statement"),
            _ => false,
        }
    })
}

/// The same, where functions that only inspect the module do not count: whether an attribute of an unknown object may be one of it.
#[must_use]
pub fn is_module_held(text: &str, digest: Digest, name: &str) -> bool {
    // Most uses are seen without a tree.
    let is_read = |span: &Span| {
        let line = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let head = text[line..].trim_start();
        text[span.end..].trim_start_matches(' ').starts_with('.')
            || head.starts_with("import ")
            || head.starts_with("from ")
    };
    whole_names(text, name).any(|span| !is_read(&span)) && is_used_as_value(text, digest, name, &is_inspected)
}

/// Whether an argument is passed to a function that only inspects it: `patch.object(module, "name")`.
fn is_inspected(argument: Node<'_>, text: &str) -> bool {
    let call =
        argument.parent().filter(|parent| parent.kind() == "argument_list").and_then(|list| list.parent());
    let function = call.and_then(|call| dotted(call.child_by_field_name("function")?, text));
    function.is_some_and(|function| INSPECTING.contains(&function.rsplit('.').next().unwrap_or_default()))
}

/// Whether the name of a module is used as a value, without the uses that do not count.
fn is_used_as_value(
    text: &str,
    digest: Digest,
    name: &str,
    is_left_out: &dyn Fn(Node<'_>, &str) -> bool,
) -> bool {
    let tree = std::cell::LazyCell::new(|| parse(text));
    occurrences(text, digest, name).into_iter().filter(|found| found.kind.is_token()).any(|found| {
        let span = found.span();
        let Some(token) = tree.root_node().descendant_for_byte_range(span.start, span.end) else {
            return true;
        };
        // `m` of `a.m` is the end of an expression, whose parent counts.
        let node = end_of_chain(token);
        let is_read = node.parent().is_some_and(|above| {
            above.kind() == "attribute" && above.child_by_field_name("object") == Some(node)
        });
        let mut above = Some(token);
        let mut is_import = false;
        while let Some(node) = above.filter(|_| !is_import) {
            is_import = matches!(node.kind(), "import_statement" | "import_from_statement");
            above = node.parent();
        }
        !is_read && !is_import && !is_left_out(node, text)
    })
}

/// Whether a class of this name may get anywhere as an object, where its constructor may have to match the type of another callable.
#[must_use]
pub fn is_class_passed_on(text: &str, digest: Digest, name: &str) -> bool {
    let tree = std::cell::LazyCell::new(|| parse(text));
    occurrences(text, digest, name).into_iter().any(|found| {
        let span = found.span();
        match found.kind {
            // `"type[C]"`
            OccurrenceKind::String => {
                let before = text[..span.start].trim_end_matches(['"', '\'']);
                before.ends_with("type[") || before.ends_with("Type[")
            }
            kind if kind.is_token() => {
                let token = tree.root_node().descendant_for_byte_range(span.start, span.end);
                token.is_none_or(|token| !stays(end_of_chain(token), text))
            }
            _ => false,
        }
    })
}

/// Whether the class of an object may get anywhere as an object: `f(type(x))`, `y = x.__class__`.
#[must_use]
pub fn passes_types_on(text: &str, digest: Digest) -> bool {
    let tree = std::cell::LazyCell::new(|| parse(text));
    ["type", "__class__"].iter().any(|name| {
        let found = occurrences(text, digest, name).into_iter().filter(|found| found.kind.is_token());
        found.map(|found| found.span()).any(|span| {
            let token = tree.root_node().descendant_for_byte_range(span.start, span.end);
            let Some(token) = token else { return true };
            match *name {
                "type" => call_of(token).is_some_and(|call| !stays(call, text)),
                _ => !stays(end_of_chain(token), text),
            }
        })
    })
}

/// Whether a dictionary is unpacked into the arguments of a function with one of the names (`m.f(**x)` for `f`), or of what a call or
/// another expression yields.
#[must_use]
pub fn unpacks_into(text: &str, is_named: &dyn Fn(&str) -> bool) -> bool {
    let mut unpacks = false;
    if text.contains("**") {
        preorder(parse(text).root_node(), |node| {
            let call =
                node.parent().filter(|_| node.kind() == "dictionary_splat").and_then(|above| above.parent());
            if let Some(call) = call.filter(|above| above.kind() == "call") {
                let function =
                    call.child_by_field_name("function").and_then(|function| dotted(function, text));
                let last = function.as_deref().and_then(|name| name.rsplit('.').next());
                unpacks |= last.is_none_or(is_named);
            }
            !unpacks
        });
    }
    unpacks
}

/// The call of a function.
fn call_of(function: Node<'_>) -> Option<Node<'_>> {
    let call = function.parent().filter(|above| above.kind() == "call")?;
    (call.child_by_field_name("function") == Some(function)).then_some(call)
}

/// `a.m` for its `m`.
fn end_of_chain(token: Node<'_>) -> Node<'_> {
    let chain = token.parent().filter(|above| above.child_by_field_name("attribute") == Some(token));
    chain.unwrap_or(token)
}

/// Whether an expression that means a class is used where no other callable has to match the class.
fn stays(expression: Node<'_>, text: &str) -> bool {
    let (mut node, mut is_type) = (expression, false);
    while let Some(above) = node.parent() {
        let is = |field: &str| above.child_by_field_name(field) == Some(node);
        let is_of_types = |head: Option<Node<'_>>| {
            let head = head.map_or("", |head| text_of(head, text));
            matches!(head.rsplit('.').next(), Some("type" | "Type"))
        };
        match above.kind() {
            "type" | "type_parameter" | "union_type" | "member_type" => is_type = true,
            "generic_type" if is_of_types(above.child(0)) => return false,
            "generic_type" => is_type = true,
            _ if is_type => return true,
            // A union in an annotation.
            "binary_operator"
                if above.child_by_field_name("operator").is_some_and(|sign| sign.kind() == "|") => {}
            "parenthesized_expression" | "tuple" | "dotted_name" => {}
            "subscript" if is("value") => {}
            "subscript" => return !is_of_types(above.child_by_field_name("value")),
            "call" => return is("function"),
            "attribute" => {
                let attribute = above.child_by_field_name("attribute").map_or("", |name| text_of(name, text));
                return is("object") && (!attribute.starts_with("__") || DESCRIBING.contains(&attribute));
            }
            "argument_list" => {
                let function = above.parent().and_then(|call| call.child_by_field_name("function"));
                let name = function.and_then(|function| text_of(function, text).rsplit('.').next());
                let is_base = above.parent().is_some_and(|above| above.kind() == "class_definition");
                return is_base || name.is_some_and(|name| ASKING.contains(&name));
            }
            "aliased_import" => return false,
            "as_pattern" if above.parent().is_some_and(|above| above.kind() == "except_clause") => {
                return true;
            }
            // A parameter of the name is another thing.
            "parameters" | "lambda_parameters" => return true,
            "import_from_statement"
            | "import_statement"
            | "comparison_operator"
            | "interpolation"
            | "expression_statement"
            | "except_clause"
            | "class_pattern"
            | "case_pattern"
            | "decorator" => {
                return true;
            }
            "class_definition" | "function_definition" => return is("name"),
            _ => return false,
        }
        node = above;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_are_passed_on() {
        let passes = |text: &str| is_import_passed_on(text, Digest::of(text.as_bytes()), "m");
        for text in [
            "from p import m\nf(m)",
            "from p import x as m\ny = m",
            "import p\nf(p.m)",
            "import p.q\nf(key=p.q.m)",
            "def g():\n    from p import m\n    return m",
            "from p import *\nf(m)",
            "from p import *\nf(p.m)",
            "class C:\n    from p import m",
            "class C:\n    import p.m",
            "from .m import x\nf(m)",
        ] {
            assert!(passes(text), "{text}");
        }
        for text in [
            "from p import m\nm.f(1)",
            "def g(m):\n    return m",
            "f(self.m)",
            "import q\nf(p.m)",
            "f(q().m)",
            "import p.m\np.m.f()",
            "from p import m",
        ] {
            assert!(!passes(text), "{text}");
        }
    }

    #[test]
    fn functions_that_are_passed_on() {
        let passes = |text: &str| is_function_passed_on(text, Digest::of(text.as_bytes()), "f");
        for text in [
            "g(f)",
            "x = m.f",
            "f.callback",
            "cast(f)",
            "from m import f as g",
            "return f",
            "f: int",
            "f == g",
            "[f]",
            "class C:\n    f = f",
            "def g(x=f): ...",
            "x = f if y else z",
        ] {
            assert!(passes(text), "{text}");
        }
        for text in [
            "f(1)",
            "m.f(x=1).y",
            "from m import f, g",
            "from m import (\n    f,\n)",
            "def f(x): ...",
            "@f\ndef g(): ...",
            "@f(1)\ndef g(): ...",
            "g(f=1)",
            "def g(f): ...",
            "'f'",
            "# f",
        ] {
            assert!(!passes(text), "{text}");
        }
    }

    #[test]
    fn names_of_imports() {
        assert_eq!(aliases_of("from p import m as q, n\nimport m as r\nfrom m import x as y", "m"), ["q"]);
        assert_eq!(aliases_of("from p import m as m\nfrom p import n as m", "m"), [""; 0]);
    }

    #[test]
    fn classes_that_stay() {
        for text in [
            "class C(B): ...",
            "from m import C",
            "from m import (A, C)",
            "C(1).x",
            "m.C(1)",
            "C.make(2)",
            "print(C.__name__)",
            "x: C",
            "def f(x: list[C] | None, y: m.C) -> dict[str, C]: ...",
            "def f(x: C | None, y: None | m.C = None) -> C | None: ...",
            "isinstance(x, (B, C))",
            "isinstance(x, B | C)",
            "cast(C, x)",
            "class D(C): ...",
            "class D(Generic[C]): ...",
            "C[int](1)",
            "try: ...\nexcept (B, C) as e: ...",
            "try: ...\nexcept C: ...",
            "def f(C, x): ...",
            "match x:\n    case C(y=1): ...\n    case m.C(): ...",
            "if type(x) is C: ...",
            "x: 'list[C]'",
            "# f(C)",
        ] {
            assert!(!is_class_passed_on(text, Digest::of(text.as_bytes()), "C"), "{text}");
        }
    }

    #[test]
    fn classes_that_are_passed_on() {
        for text in [
            "f(C)",
            "f(m.C)",
            "f(key=C)",
            "def f(x=C): ...",
            "D = C",
            "x: type[C]",
            "x: dict[str, type[C]]",
            "x: 'type[C]'",
            "x: type['C']",
            "def f(): return C",
            "ALL = [B, C]",
            "from m import C as D",
            "f(C.__init__)",
            "D = C | None",
            "f(C | None)",
            "x: type[C | None]",
            "f(C + B)",
            "class D:\n    made = C",
            "x: Callable[[type[C]], None]",
        ] {
            assert!(is_class_passed_on(text, Digest::of(text.as_bytes()), "C"), "{text}");
        }
    }

    #[test]
    fn dictionaries_that_are_unpacked_into_arguments() {
        let unpacks = |text: &str| unpacks_into(text, &|name| name == "C");
        for text in ["C(**x)", "m.C(1, **f())", "C[int](**x)", "type(y)(**x)", "all[0](**x)"] {
            assert!(unpacks(text), "{text}");
        }
        for text in ["f(**x)", "C(*x)", "def C(**x): ...", "C({**x})", "C(2 ** x)", "# C(**x)"] {
            assert!(!unpacks(text), "{text}");
        }
    }

    #[test]
    fn types_of_objects() {
        let passes = |text: &str| passes_types_on(text, Digest::of(text.as_bytes()));
        for text in ["f(type(x))", "y = x.__class__", "def f(): return type(x)", "f(x.__class__.__init__)"] {
            assert!(passes(text), "{text}");
        }
        for text in [
            "type(x).__name__",
            "type(x) is C",
            "type(x)(1)",
            "f'{type(x)}'",
            "x: type[C]",
            "x.type(1).y",
            "type X = int",
        ] {
            assert!(!passes(text), "{text}");
        }
    }
}
