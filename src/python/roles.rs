//! The syntactic role of a name token: the object before its dot, the callee of its keyword argument, the function of its parameter.

use tree_sitter::{Node, Tree};

use super::outline::Span;
use super::syntax::{children, dotted, parse, preorder, text_of, unwrapped};

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The function's name token; `None` for a lambda.
    pub function: Option<Span>,
    /// The function's name; empty for a lambda.
    pub name: String,
    /// The function's decorators as dotted names, without arguments.
    pub decorators: Vec<String>,
    /// Whether callers can pass it by its name.
    pub is_keyword: bool,
    /// The decorators of its function, as they are written.
    pub decorated: Option<Span>,
}

/// The parameter whose name begins at an offset.
#[must_use]
pub fn parameter_at(text: &str, offset: usize) -> Option<Parameter> {
    let tree = parse(text);
    let token = token_at(&tree, offset)?;
    let (parameter, list) = parameter_of(token)?;
    let function = list.parent()?;
    let name = function.child_by_field_name("name");
    Some(Parameter {
        function: name.map(|name| name.byte_range()),
        name: name.map(|name| text_of(name, text).to_owned()).unwrap_or_default(),
        decorators: decorators(function, text),
        is_keyword: is_keyword(token, parameter, list),
        decorated: function
            .parent()
            .filter(|around| around.kind() == "decorated_definition")
            .map(|around| around.start_byte()..function.start_byte()),
    })
}

/// The types of the parameter whose name begins at an offset in the overloads of its function, as dotted names without
/// arguments; a union gives each member. Empty when the implementation annotates the parameter with a type other than
/// `Any`, or the function has no overloads.
#[must_use]
pub fn overloaded_types(text: &str, offset: usize) -> Vec<String> {
    // Most files have none, and need no parsing.
    if !text.contains("overload") {
        return Vec::new();
    }
    let tree = parse(text);
    overloaded(&tree, text, offset).unwrap_or_default()
}

/// Whether the function of the parameter whose name begins at an offset is an overload, or has some.
#[must_use]
pub fn is_of_overloaded(text: &str, offset: usize) -> bool {
    if !text.contains("overload") {
        return false;
    }
    let tree = parse(text);
    let found = || {
        let (_, list) = parameter_of(token_at(&tree, offset)?)?;
        let function = list.parent().filter(|parent| parent.kind() == "function_definition")?;
        Some(!overloads(function, text)?.is_empty())
    };
    found().unwrap_or_default()
}

/// The overloads of a function in its block, itself included if it is one.
fn overloads<'t>(function: Node<'t>, text: &str) -> Option<Vec<Node<'t>>> {
    let name = text_of(function.child_by_field_name("name")?, text);
    let outer =
        function.parent().filter(|parent| parent.kind() == "decorated_definition").unwrap_or(function);
    let is_overload = |decorator: &String| decorator.rsplit('.').next() == Some("overload");
    let decorated = children(outer.parent()?).filter_map(|sibling| sibling.child_by_field_name("definition"));
    let found = decorated.filter(|other| {
        other.child_by_field_name("name").is_some_and(|other| text_of(other, text) == name)
            && decorators(*other, text).iter().any(is_overload)
    });
    Some(found.collect())
}

fn overloaded(tree: &Tree, text: &str, offset: usize) -> Option<Vec<String>> {
    let (parameter, list) = parameter_of(token_at(tree, offset)?)?;
    let own = parameter.child_by_field_name("type");
    if own.is_some_and(|own| !matches!(text_of(own, text), "Any" | "typing.Any" | "t.Any")) {
        return None;
    }
    let at = children(list).position(|other| other == parameter)?;
    let function = list.parent().filter(|parent| parent.kind() == "function_definition")?;
    let mut types = Vec::new();
    let is_before = |other: &Node<'_>| other.start_byte() < function.start_byte();
    for overload in overloads(function, text)?.into_iter().filter(is_before) {
        let declared = overload.child_by_field_name("parameters").and_then(|list| children(list).nth(at));
        if let Some(declared) = declared.and_then(|parameter| parameter.child_by_field_name("type")) {
            types.extend(named_types(text_of(declared, text)));
        }
    }
    Some(types)
}

/// The classes in an annotation, as dotted names: the members of a union, the argument of `type[…]` and `Optional[…]`, generic
/// classes without their arguments.
fn named_types(annotation: &str) -> Vec<String> {
    let annotation = annotation.trim().trim_matches(['"', '\'']).trim();
    let mut depth = 0_usize;
    let parts = annotation.split(|c: char| {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '|' && depth == 0
    });
    let parts: Vec<&str> = parts.map(str::trim).collect();
    if parts.len() > 1 {
        return parts.into_iter().flat_map(named_types).collect();
    }
    match annotation.split_once('[') {
        Some((outer, inner)) => match outer.rsplit('.').next() {
            Some("type" | "Type" | "Optional") => named_types(inner.strip_suffix(']').unwrap_or(inner)),
            Some("Callable" | "Literal") => Vec::new(),
            _ => vec![outer.trim().to_owned()],
        },
        None if annotation.is_empty() => Vec::new(),
        None => vec![annotation.to_owned()],
    }
}

/// The parameters that callers can pass by name to the function whose name token begins at an offset. `None` when no function
/// name begins there.
#[must_use]
pub fn keywords_of(text: &str, offset: usize) -> Option<Vec<(String, Span)>> {
    let tree = parse(text);
    let list = parameter_list(&tree, offset)?;
    let tokens = children(list).filter_map(|parameter| Some((parameter, name_of_parameter(parameter)?)));
    let keywords = tokens.filter(|(parameter, token)| is_keyword(*token, *parameter, list));
    Some(keywords.map(|(_, token)| (text_of(token, text).to_owned(), token.byte_range())).collect())
}

/// The statement of the class or function whose name token begins at an offset, decorators included.
#[must_use]
pub fn statement_of(text: &str, offset: usize) -> Option<Span> {
    let tree = parse(text);
    let name = token_at(&tree, offset)?;
    let definition = name.parent().filter(|parent| parent.child_by_field_name("name") == Some(name))?;
    if !matches!(definition.kind(), "function_definition" | "class_definition") {
        return None;
    }
    let outer = definition.parent().filter(|parent| parent.kind() == "decorated_definition");
    Some(outer.unwrap_or(definition).byte_range())
}

/// The parameters of the function whose name token begins at an offset, with their name tokens. `None` when no function name
/// begins there.
#[must_use]
pub fn parameters_of(text: &str, offset: usize) -> Option<Vec<(String, Span)>> {
    let tree = parse(text);
    let list = parameter_list(&tree, offset)?;
    let tokens = children(list).filter_map(name_of_parameter);
    Some(tokens.map(|token| (text_of(token, text).to_owned(), token.byte_range())).collect())
}

/// The parameter list of the function whose name token begins at an offset.
pub(super) fn parameter_list(tree: &Tree, offset: usize) -> Option<Node<'_>> {
    let name = token_at(tree, offset)?;
    let function = name.parent().filter(|parent| {
        parent.kind() == "function_definition" && parent.child_by_field_name("name") == Some(name)
    })?;
    function.child_by_field_name("parameters")
}

/// A function that has a parameter of the requested name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionWithParameter {
    /// The function's name.
    pub function: String,
    /// Its decorators as dotted names, without arguments.
    pub decorators: Vec<String>,
    /// The parameter's name token.
    pub parameter: Span,
}

/// The functions that have a parameter of this name, in the order of the parameters.
#[must_use]
pub fn functions_with_parameter(text: &str, name: &str) -> Vec<FunctionWithParameter> {
    let tree = parse(text);
    let mut found = Vec::new();
    preorder(tree.root_node(), |node| {
        if node.kind() == "function_definition"
            && let Some(list) = node.child_by_field_name("parameters")
        {
            for token in children(list).filter_map(name_of_parameter) {
                if text_of(token, text) == name {
                    let function = node.child_by_field_name("name");
                    found.push(FunctionWithParameter {
                        function: function.map(|name| text_of(name, text).to_owned()).unwrap_or_default(),
                        decorators: decorators(node, text),
                        parameter: token.byte_range(),
                    });
                }
            }
        }
        true
    });
    found.sort_by_key(|function| function.parameter.start);
    found
}

/// The object before the dot of the attribute whose name begins at an offset, if it is a dotted name: the name and its offset.
#[must_use]
pub fn object_of(text: &str, offset: usize) -> Option<(String, usize)> {
    let tree = parse(text);
    let token = token_at(&tree, offset)?;
    let attribute = token.parent().filter(|parent| {
        parent.kind() == "attribute" && parent.child_by_field_name("attribute") == Some(token)
    })?;
    let object = attribute.child_by_field_name("object")?;
    Some((dotted(object, text)?, unwrapped(object).start_byte()))
}

/// Whether the name that begins at an offset is a type parameter: `T` of `def f[T](x: T)`.
#[must_use]
pub fn is_type_parameter(text: &str, offset: usize) -> bool {
    let tree = parse(text);
    let above = |node: Node<'_>| node.parent().is_some_and(|parent| parent.kind() == "type_parameter");
    // `T: int` and `*Ts` have a node of their own.
    let mut node = token_at(&tree, offset);
    for _ in 0..3 {
        if node.is_some_and(above) {
            return true;
        }
        node = node.and_then(|node| node.parent());
    }
    false
}

/// The last name of the callee of the call with the keyword argument whose name begins at an offset.
#[must_use]
pub fn callee_of(text: &str, offset: usize) -> Option<Span> {
    let tree = parse(text);
    let token = token_at(&tree, offset)?;
    let argument = token.parent().filter(|parent| parent.kind() == "keyword_argument")?;
    let call = argument.parent()?.parent().filter(|call| call.kind() == "call")?;
    let function = unwrapped(call.child_by_field_name("function")?);
    match function.kind() {
        "identifier" => Some(function.byte_range()),
        "attribute" => function.child_by_field_name("attribute").map(|name| name.byte_range()),
        _ => None,
    }
}

/// The last name of the callee of the innermost call around an offset.
#[must_use]
pub fn enclosing_call(text: &str, offset: usize) -> Option<String> {
    let tree = parse(text);
    let mut node = tree.root_node().descendant_for_byte_range(offset, offset + 1)?;
    while node.kind() != "call" {
        node = node.parent()?;
    }
    let function = dotted(node.child_by_field_name("function")?, text)?;
    function.rsplit('.').next().map(str::to_owned)
}

/// The name of the innermost class around an offset, as Python uses it to mangle `__x`: the name, bases and decorators of a class
/// are outside it.
#[must_use]
pub fn enclosing_class(text: &str, offset: usize) -> Option<String> {
    let tree = parse(text);
    let mut node = token_at(&tree, offset)?;
    while let Some(parent) = node.parent() {
        if parent.kind() == "class_definition" && parent.child_by_field_name("body") == Some(node) {
            return parent.child_by_field_name("name").map(|name| text_of(name, text).to_owned());
        }
        node = parent;
    }
    None
}

pub(super) fn token_at(tree: &Tree, offset: usize) -> Option<Node<'_>> {
    let found = tree.root_node().descendant_for_byte_range(offset, offset + 1)?;
    (found.kind() == "identifier" && found.start_byte() == offset).then_some(found)
}

/// The parameter whose name is a token, and its parameter list.
pub(super) fn parameter_of(token: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    let mut node = token;
    // `*args: int` is three deep.
    for _ in 0..4 {
        let parent = node.parent()?;
        if matches!(parent.kind(), "parameters" | "lambda_parameters") {
            return (name_of_parameter(node) == Some(token)).then_some((node, parent));
        }
        node = parent;
    }
    None
}

pub(super) fn name_of_parameter(parameter: Node<'_>) -> Option<Node<'_>> {
    let mut at = parameter;
    loop {
        at = match at.kind() {
            "identifier" => return Some(at),
            "default_parameter" | "typed_default_parameter" => at.child_by_field_name("name")?,
            "typed_parameter" | "list_splat_pattern" | "dictionary_splat_pattern" => at.named_child(0)?,
            _ => return None,
        }
    }
}

/// Whether callers can pass a parameter by name: it is neither `*x` nor `**x`, and no `/` follows.
fn is_keyword(token: Node<'_>, parameter: Node<'_>, list: Node<'_>) -> bool {
    let mut at = token;
    while at != parameter {
        let Some(parent) = at.parent() else { return false };
        if matches!(parent.kind(), "list_splat_pattern" | "dictionary_splat_pattern") {
            return false;
        }
        at = parent;
    }
    let follows = |other: Node<'_>| other.start_byte() > parameter.start_byte();
    !children(list).any(|other| other.kind() == "positional_separator" && follows(other))
}

fn decorators(function: Node<'_>, text: &str) -> Vec<String> {
    let Some(around) = function.parent().filter(|parent| parent.kind() == "decorated_definition") else {
        return Vec::new();
    };
    let expressions = children(around).filter(|child| child.kind() == "decorator");
    let names = expressions.filter_map(|decorator| {
        let expression = decorator.named_child(0)?;
        dotted(expression.child_by_field_name("function").unwrap_or(expression), text)
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text without `§`, and the offset of `§`.
    fn marked(text: &str) -> (String, usize) {
        (text.replace('§', ""), text.find('§').unwrap())
    }

    #[test]
    fn a_definition_begins_with_its_decorators() {
        let text = "x = 1\n@a\n@b(\n    1,\n)\ndef f():\n    @c\n    class D: pass\n\n    y = 2\n";
        let of = |word: &str| statement_of(text, text.find(word).unwrap()).map(|span| &text[span]);
        assert_eq!(of("f()").unwrap(), text[6..].trim_end());
        assert_eq!(of("D:").unwrap(), "@c\n    class D: pass");
        assert_eq!(of("y = 2"), None);
    }

    #[test]
    fn types_of_overloads() {
        let text = "\
@overload
def f(a, o: 'S[T, P] | None', /) -> T: ...
@typing.overload
def f(a, o: type[m.B], /): ...
@overload
def f(a, o: Callable[[int], str], /): ...
@overload
def g(o: C): ...
def f(a, o: Any, /):
    o.x
def g(o: int):
    o.y
def h(o):
    o.z
";
        let of = |from: &str| overloaded_types(text, text.find(from).unwrap() + from.len());
        assert_eq!(of("def f(a, o: Any, /)").len(), 0, "after the parameter");
        assert_eq!(overloaded_types(text, text.find("o: Any").unwrap()), ["S", "None", "m.B"]);
        assert!(
            overloaded_types(text, text.find("o: int").unwrap()).is_empty(),
            "the parameter is annotated"
        );
        assert!(
            overloaded_types(text, text.find("o):\n    o.z").unwrap()).is_empty(),
            "there are no overloads"
        );
    }

    #[test]
    fn parameters() {
        for (text, function, is_keyword) in [
            ("def f(§x): pass", "f", true),
            ("def f(a, §x: int): pass", "f", true),
            ("def f(a, §x=1): pass", "f", true),
            ("def f(a, *, §x: int = 1): pass", "f", true),
            ("def f(§x, /, y): pass", "f", false),
            ("def f(y, /, §x): pass", "f", true),
            ("def f(*§x): pass", "f", false),
            ("def f(*§x: int): pass", "f", false),
            ("def f(**§x): pass", "f", false),
            ("g = lambda a, §x=2: x", "", true),
        ] {
            let (text, offset) = marked(text);
            let found = parameter_at(&text, offset).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((found.name.as_str(), found.is_keyword), (function, is_keyword), "{text}");
        }
        for text in ["def §f(x): pass", "def f(x=§y): pass", "def f(x: §T): pass", "§x = 1", "f(§x=1)"] {
            let (text, offset) = marked(text);
            assert_eq!(parameter_at(&text, offset), None, "{text}");
        }
        let (text, offset) = marked("@pytest.fixture(scope='x')\n@a\ndef f(§x): pass");
        assert_eq!(parameter_at(&text, offset).unwrap().decorators, ["pytest.fixture", "a"]);
    }

    #[test]
    fn what_can_be_passed_by_name() {
        let (text, offset) = marked("class C:\n  async def §f(self, /, a, b: int, *c, d=1, **e): pass");
        let names: Vec<_> = keywords_of(&text, offset).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b", "d"]);
        let names: Vec<_> = parameters_of(&text, offset).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["self", "a", "b", "c", "d", "e"]);
        assert_eq!(keywords_of("f = 1", 0), None);
    }

    #[test]
    fn functions_that_have_a_parameter() {
        let text = "def test_a(x, y): pass\nclass T:\n  @f\n  def test_b(self, x: int): def_x = x\ndef g(y=x): pass\n";
        let found: Vec<_> = functions_with_parameter(text, "x").into_iter().map(|one| one.function).collect();
        assert_eq!(found, ["test_a", "test_b"]);
    }

    #[test]
    fn objects_callees_and_classes() {
        let of = |text: &str| {
            let (text, offset) = marked(text);
            (object_of(&text, offset), callee_of(&text, offset).map(|span| text[span].to_owned()))
        };
        assert_eq!(of("a.b.§c"), (Some(("a.b".to_owned(), 0)), None));
        assert_eq!(of("x = (a).§c()"), (Some(("a".to_owned(), 5)), None));
        assert_eq!(of("f().§c"), (None, None));
        assert_eq!(of("§a.c"), (None, None));
        assert_eq!(of("a.f(1, §c=2)"), (None, Some("f".to_owned())));
        assert_eq!(of("(f)(§c=2)"), (None, Some("f".to_owned())));
        assert_eq!(of("f()(§c=2)"), (None, None));
        assert_eq!(of("class A(§metaclass=M): pass"), (None, None));
        let call = |text: &str| {
            let (text, offset) = marked(text);
            enclosing_call(&text, offset)
        };
        assert_eq!(
            call("@pytest.mark.usefixtures('a', '§b')\ndef f(): pass"),
            Some("usefixtures".to_owned())
        );
        assert_eq!(call("f(['§b'])"), Some("f".to_owned()));
        assert_eq!(call("'§b'"), None);
        let around = |text: &str| {
            let (text, offset) = marked(text);
            enclosing_class(&text, offset)
        };
        assert_eq!(around("class A:\n  def f(self):\n    self.§x"), Some("A".to_owned()));
        assert_eq!(around("class A(B.§x): pass"), None);
        assert_eq!(around("class A:\n  class B(§x): pass"), Some("A".to_owned()));
        assert_eq!(around("§x = 1"), None);
    }
}
