//! How a name token is used: whether it is called, imported under another name, assigned, or passed as a value.

use std::cell::OnceCell;
use std::sync::Arc;

use tree_sitter::{Node, Tree};

use super::outline::{Import, Outline, Span};
use super::replaceable::Replaceable;
use super::roles::name_of_parameter;
use super::syntax::{children, dotted, parse, text_of, unwrapped};
use super::unpacked::UnpackingCalls;

/// The syntax tree of one text, to examine the uses of many of its tokens.
pub struct Usage<'t> {
    pub(super) tree: Tree,
    pub(super) text: &'t str,
    /// See [`Receiver::is_replaceable`].
    replaceable: OnceCell<Replaceable<'t>>,
    /// See [`Usage::unpacked_key`].
    pub(super) unpacked: OnceCell<UnpackingCalls>,
    outline: OnceCell<Arc<Outline>>,
}

/// The use of a name token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenUse {
    /// It is the callee of a call.
    Called,
    /// An import binds it; the span of the alias for `import name as alias`.
    Imported(Option<Span>),
    /// It is the whole value of an assignment, or one that the assignment chooses: the last name tokens of the targets, for
    /// `a = b.c = name`, `a = name if x else y`, `(a := name)` and `a, b = name, y`.
    Assigned(Vec<Span>),
    /// It is used as a value: passed, returned, stored in a collection.
    Passed,
    /// Anything else: a definition, a deletion, an annotation, a base class, an object before a dot.
    Other,
}

/// The expression before the dot of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    /// The whole expression.
    pub span: Span,
    /// Its last name token: `b` of `a.b`, and of `a.b()`.
    pub name: Option<Span>,
    /// Whether it is a call, so that `name` is the function that returns the receiver.
    pub is_call: bool,
    /// The whole expression if it is a dotted name.
    pub dotted: Option<String>,
    /// Whether it is the first parameter of the method around it, or `super()`.
    pub is_self: bool,
    /// Whether its type is inferred from a value that callers may replace: `client` after `client = client or Client()`, where it is
    /// a parameter without a type.
    pub is_replaceable: bool,
}

/// The use of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StringUse {
    /// `x["key"]`: the last name token of `x`.
    Subscript(Option<Span>),
    /// `"key" in x`: the last name token of `x`.
    Contained(Option<Span>),
    /// An argument of a call.
    Argument {
        /// The last name of the function.
        function: String,
        /// The last name token of the argument before it.
        subject: Option<Span>,
        /// The last name token of the expression before the function's dot.
        receiver: Option<Span>,
    },
    /// An entry of `__slots__` or `__match_args__` of a class: the offset of the class's name.
    Member(usize),
    /// Anything else.
    Other,
}

/// What names the members of a class with strings.
const MEMBER_LISTS: [&str; 2] = ["__slots__", "__match_args__"];

/// Methods that read the key of a dictionary.
pub const BY_KEY: [&str; 3] = ["get", "pop", "setdefault"];

/// A keyword argument, or a dictionary that is unpacked into several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeywordUse {
    /// The last name token of the callee; `None` in the head of a class.
    pub callee: Option<Span>,
    /// The last name of the callee.
    pub function: String,
    /// The last name token of the first positional argument, or of the receiver of a method.
    pub subject: Option<Span>,
    /// Whether it is in the head of a class, among its bases.
    pub is_class: bool,
}

/// A call whose value is assigned to a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedCall {
    /// What is called, as a dotted name.
    pub function: String,
    /// How many arguments are passed by position.
    pub positional: usize,
    /// The names of the arguments that are passed by name.
    pub keywords: Vec<String>,
    /// Whether there are `*args` or `**kwargs`.
    pub has_spread: bool,
}

/// Everything about the use of a name token, to be kept when the tree is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSyntax {
    /// See [`Usage::of_token`].
    pub used: TokenUse,
    /// See [`Usage::receiver`].
    pub receiver: Option<Receiver>,
    /// See [`Usage::keyword`].
    pub keyword: Option<KeywordUse>,
    /// See [`Usage::pattern_class`].
    pub pattern_class: Option<Span>,
}

impl<'t> Usage<'t> {
    /// Parses a text, or takes its tree from the cache.
    #[must_use]
    pub fn of(text: &'t str) -> Self {
        let (replaceable, unpacked, outline) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { tree: parse(text), text, replaceable, unpacked, outline }
    }

    pub(super) fn outline(&self) -> &Outline {
        self.outline.get_or_init(|| Outline::parse(self.text))
    }

    pub(super) fn token(&self, offset: usize) -> Option<Node<'_>> {
        let found = self.tree.root_node().descendant_for_byte_range(offset, offset + 1)?;
        (found.kind() == "identifier" && found.start_byte() == offset).then_some(found)
    }

    /// Whether the name token at an offset is part of the name of a module in an import: `a` and `b` in `from a.b import c`.
    #[must_use]
    pub fn names_module(&self, offset: usize) -> bool {
        let dotted = self.token(offset).and_then(|token| token.parent());
        let Some(dotted) = dotted.filter(|name| name.kind() == "dotted_name") else { return false };
        let around = dotted.parent().filter(|parent| parent.kind() != "aliased_import").or_else(|| {
            // `import a.b as c`, and not `from a import b as c`.
            dotted.parent()?.parent().filter(|parent| parent.kind() == "import_statement")
        });
        around.is_some_and(|around| match around.kind() {
            "relative_import" | "import_statement" => true,
            "import_from_statement" => around.child_by_field_name("module_name") == Some(dotted),
            _ => false,
        })
    }

    /// The innermost statement around the name token at an offset.
    #[must_use]
    pub fn statement(&self, offset: usize) -> Option<Span> {
        let mut node = self.token(offset)?;
        while node.parent().is_some_and(|around| !matches!(around.kind(), "block" | "module")) {
            node = node.parent()?;
        }
        Some(node.byte_range())
    }

    /// Whether a token is declared without a value: `x: int` binds nothing.
    #[must_use]
    pub fn is_bare_annotation(&self, offset: usize) -> bool {
        let around = self.token(offset).and_then(|token| token.parent());
        around.is_some_and(|around| {
            around.kind() == "assignment" && around.child_by_field_name("right").is_none()
        })
    }

    /// Whether a token is in a `del` statement.
    #[must_use]
    pub fn is_deleted(&self, offset: usize) -> bool {
        let mut around = self.token(offset).and_then(|token| token.parent());
        while let Some(node) = around.filter(|node| matches!(node.kind(), "expression_list" | "tuple")) {
            around = node.parent();
        }
        around.is_some_and(|around| around.kind() == "delete_statement")
    }

    /// Whether the statement with the token at one offset has run where the token at a later one is used: it is no part of the head of a
    /// loop or the like, and its block has the other one.
    #[must_use]
    pub fn certainly_runs_before(&self, offset: usize, later: usize) -> bool {
        const HEADS: [&str; 6] = [
            "for_statement",
            "while_statement",
            "if_statement",
            "try_statement",
            "with_statement",
            "match_statement",
        ];
        let Some(mut node) = self.token(offset) else { return false };
        while let Some(around) = node.parent() {
            if matches!(around.kind(), "block" | "module") {
                return around.byte_range().contains(&later) && !HEADS.contains(&node.kind());
            }
            node = around;
        }
        false
    }

    /// The import that binds the name whose token begins at an offset, also in a function. It has no parent and no branch.
    #[must_use]
    pub fn import_binding(&self, offset: usize) -> Option<Import> {
        let mut node = self.token(offset)?;
        while !matches!(node.kind(), "import_statement" | "import_from_statement") {
            node = node.parent()?;
        }
        let (start, text) = (node.start_byte(), self.text.get(node.byte_range())?);
        let statement = Outline::parse(text);
        let import = statement.imports.iter().find(|import| import.bound_span.start + start == offset)?;
        let bound_span = import.bound_span.start + start..import.bound_span.end + start;
        Some(Import { bound_span, ..import.clone() })
    }

    /// The use of the name token at an offset.
    #[must_use]
    pub fn of_token(&self, offset: usize) -> TokenUse {
        let Some(token) = self.token(offset) else { return TokenUse::Other };
        if let Some(import) = imported(token) {
            return TokenUse::Imported(import);
        }
        let (node, is_choice) = whole_value(token);
        let Some(parent) = node.parent() else { return TokenUse::Other };
        let is = |field: &str| parent.child_by_field_name(field) == Some(node);
        match parent.kind() {
            "call" if is("function") && !is_choice => TokenUse::Called,
            "call" if is_choice => TokenUse::Passed,
            "assignment" if is("right") => TokenUse::Assigned(targets(parent)),
            "named_expression" if is("value") => {
                let name = parent.child_by_field_name("name");
                TokenUse::Assigned(name.map(|name| name.byte_range()).into_iter().collect())
            }
            "expression_list" | "tuple" if paired_target(parent, node).is_some() => {
                TokenUse::Assigned(paired_target(parent, node).into_iter().collect())
            }
            "keyword_argument" | "default_parameter" | "typed_default_parameter" if is("value") => {
                TokenUse::Passed
            }
            // The bases of a class are written as arguments.
            "argument_list" if parent.parent().is_some_and(|around| around.kind() == "class_definition") => {
                TokenUse::Other
            }
            "pair" if is("value") => TokenUse::Passed,
            "argument_list"
            | "list"
            | "tuple"
            | "set"
            | "expression_list"
            | "return_statement"
            | "yield"
            | "list_splat"
            | "conditional_expression"
            | "boolean_operator"
            | "lambda"
            | "await" => TokenUse::Passed,
            _ if is_choice => TokenUse::Passed,
            _ => TokenUse::Other,
        }
    }

    /// The object whose attribute of a name is set, if the name token at an offset is a part of what it is set to:
    /// `x.name = MethodType(f, x)`, `setattr(x, "name", f)`, `for x.name in [f]`.
    #[must_use]
    pub fn object_given(&self, offset: usize, name: &str) -> Option<Receiver> {
        let mut node = self.token(offset);
        while let Some(above) = node.and_then(|node| node.parent()) {
            let is = |field: &str| above.child_by_field_name(field) == node;
            let target = |span: Span| self.receiver(span.start).filter(|_| self.text[span] == *name);
            match above.kind() {
                "assignment" if is("right") => return targets(above).into_iter().find_map(target),
                "for_statement" if is("right") => {
                    return target(last_name(above.child_by_field_name("left")?)?.byte_range());
                }
                "argument_list" if let Some(object) = self.object_set(above, name) => return Some(object),
                "block" => return None,
                kind if kind.ends_with("_definition") => return None,
                _ => {}
            }
            node = Some(above);
        }
        None
    }

    /// The object of `setattr(x, "name", …)`, for its arguments.
    fn object_set(&self, arguments: Node<'_>, name: &str) -> Option<Receiver> {
        let function = last_name(arguments.parent()?.child_by_field_name("function")?)?;
        let (object, key) = (arguments.named_child(0)?, arguments.named_child(1)?);
        let is_it = text_of(function, self.text) == "setattr"
            && text_of(key, self.text).trim_matches(['"', '\'']) == name;
        is_it.then(|| self.receiver_of(unwrapped(object)))
    }

    /// Everything about the use of the name token at an offset.
    #[must_use]
    pub fn syntax_of(&self, offset: usize) -> TokenSyntax {
        TokenSyntax {
            used: self.of_token(offset),
            receiver: self.receiver(offset),
            keyword: self.keyword(offset),
            pattern_class: self.pattern_class(offset),
        }
    }

    /// The call that an assignment to the plain name at an offset evaluates: `name = function(…)`.
    #[must_use]
    pub fn assigned_call(&self, offset: usize) -> Option<AssignedCall> {
        let token = self.token(offset)?;
        let assignment = token.parent().filter(|parent| {
            parent.kind() == "assignment" && parent.child_by_field_name("left") == Some(token)
        })?;
        let call = unwrapped(assignment.child_by_field_name("right")?);
        let function = call.child_by_field_name("function").filter(|_| call.kind() == "call")?;
        let mut found = AssignedCall {
            function: dotted(function, self.text)?,
            positional: 0,
            keywords: Vec::new(),
            has_spread: false,
        };
        for argument in children(call.child_by_field_name("arguments")?) {
            match argument.kind() {
                "comment" => {}
                "keyword_argument" => {
                    let name = argument.child_by_field_name("name")?;
                    found.keywords.push(text_of(name, self.text).to_owned());
                }
                "list_splat" | "dictionary_splat" => found.has_spread = true,
                _ => found.positional += 1,
            }
        }
        Some(found)
    }

    /// The expression before the dot of the attribute whose name begins at an offset.
    #[must_use]
    pub fn receiver(&self, offset: usize) -> Option<Receiver> {
        let attribute = attribute_of(self.token(offset)?)?;
        Some(self.receiver_of(unwrapped(attribute.child_by_field_name("object")?)))
    }

    fn receiver_of(&self, object: Node<'_>) -> Receiver {
        let called = (object.kind() == "call").then(|| object.child_by_field_name("function")).flatten();
        let dotted = dotted(object, self.text);
        let is_super = called.is_some_and(|called| text_of(called, self.text) == "super");
        let is_self = is_super
            || dotted.as_deref().is_some_and(|name| {
                !name.contains('.')
                    && self.first_parameter(object.start_byte()).is_some_and(|first| first == name)
            });
        let name = last_name(called.unwrap_or(object)).map(|name| name.byte_range());
        let replaceable =
            || self.replaceable.get_or_init(|| Replaceable::of(self.tree.root_node(), self.text));
        let is_replaceable = !is_self && replaceable().has(object, self.text);
        let (span, is_call) = (object.byte_range(), called.is_some());
        Receiver { span, name, is_call, dotted, is_self, is_replaceable }
    }

    /// The dotted name of the object whose attribute the token at an offset is.
    #[must_use]
    pub fn object_name(&self, offset: usize) -> Option<String> {
        let attribute = attribute_of(self.token(offset)?)?;
        dotted(unwrapped(attribute.child_by_field_name("object")?), self.text)
    }

    /// The first parameter of the innermost method around an offset.
    fn first_parameter(&self, offset: usize) -> Option<&'t str> {
        let mut node = self.token(offset)?;
        // The parameters of the functions and lambdas inside the method.
        let mut inner: Vec<&str> = Vec::new();
        loop {
            node = node.parent()?;
            if node.kind() == "lambda" {
                inner.extend(self.parameter_names(node));
            }
            if node.kind() != "function_definition" {
                continue;
            }
            let mut around = node.parent()?;
            if around.kind() == "decorated_definition" {
                around = around.parent()?;
            }
            let is_method = around
                .parent()
                .is_some_and(|parent| around.kind() == "block" && parent.kind() == "class_definition");
            let decorated = node.parent().filter(|parent| parent.kind() == "decorated_definition");
            let is_static = decorated.is_some_and(|decorated| {
                let all = children(decorated).filter(|child| child.kind() == "decorator");
                all.into_iter().any(|one| text_of(one, self.text).ends_with("staticmethod"))
            });
            if is_method && is_static {
                return None;
            }
            if is_method {
                return self.parameter_names(node).next().filter(|first| !inner.contains(first));
            }
            inner.extend(self.parameter_names(node));
        }
    }

    /// The names of the parameters of a function or a lambda.
    fn parameter_names<'n>(&self, function: Node<'n>) -> impl Iterator<Item = &'t str> + use<'n, 't> {
        let text = self.text;
        let list = function.child_by_field_name("parameters").into_iter();
        list.flat_map(children).filter_map(name_of_parameter).map(move |name| text_of(name, text))
    }

    /// The last name of the class in whose pattern a keyword begins at an offset: `C` in `case m.C(key=1)`.
    #[must_use]
    pub fn pattern_class(&self, offset: usize) -> Option<Span> {
        let token = self.token(offset)?;
        let keyword = token.parent().filter(|parent| parent.kind() == "keyword_pattern")?;
        let mut around = keyword.parent()?;
        while around.kind() == "case_pattern" {
            around = around.parent()?;
        }
        let class = (around.kind() == "class_pattern" && keyword.named_child(0) == Some(token))
            .then(|| around.named_child(0))
            .flatten()?;
        let last = u32::try_from(class.named_child_count()).ok()?.checked_sub(1);
        Some(last.and_then(|last| class.named_child(last)).unwrap_or(class).byte_range())
    }

    /// The keyword argument whose name begins at an offset.
    #[must_use]
    pub fn keyword(&self, offset: usize) -> Option<KeywordUse> {
        let token = self.token(offset)?;
        let argument = token.parent().filter(|parent| parent.kind() == "keyword_argument")?;
        self.argument_in(argument.parent()?)
    }

    /// A keyword argument among these arguments.
    pub(super) fn argument_in(&self, list: Node<'_>) -> Option<KeywordUse> {
        let call = list.parent()?;
        if call.kind() == "class_definition" {
            return Some(KeywordUse { callee: None, function: String::new(), subject: None, is_class: true });
        }
        let function = unwrapped(call.child_by_field_name("function")?);
        let callee = last_name(function);
        let first = children(list).find(|child| child.kind() != "comment");
        let first = first.filter(|first| first.kind() != "keyword_argument").and_then(last_name);
        let object = function.child_by_field_name("object").map(unwrapped).and_then(last_name);
        Some(KeywordUse {
            callee: callee.map(|callee| callee.byte_range()),
            function: callee.map(|callee| text_of(callee, self.text).to_owned()).unwrap_or_default(),
            subject: first.or(object).map(|name| name.byte_range()),
            is_class: false,
        })
    }

    /// The use of the string at a span; `None` unless the span is the whole content of a string.
    #[must_use]
    pub fn string(&self, span: &Span) -> Option<StringUse> {
        let content = self.tree.root_node().descendant_for_byte_range(span.start, span.end)?;
        if content.kind() != "string_content" || content.byte_range() != *span {
            return None;
        }
        let string = content.parent()?;
        let around = string.parent()?;
        Some(match around.kind() {
            "subscript" if around.child_by_field_name("value") != Some(string) => {
                let value = unwrapped(around.child_by_field_name("value")?);
                StringUse::Subscript(last_name(value).map(|name| name.byte_range()))
            }
            "comparison_operator"
                if around.child(0) == Some(string)
                    && around.child(1).is_some_and(|operator| matches!(operator.kind(), "in" | "not in")) =>
            {
                let value = around.child(2).map(unwrapped);
                StringUse::Contained(value.and_then(last_name).map(|name| name.byte_range()))
            }
            "argument_list" => {
                let Some(function) = around.parent()?.child_by_field_name("function").map(unwrapped) else {
                    return Some(StringUse::Other);
                };
                let Some(name) = last_name(function) else { return Some(StringUse::Other) };
                let before = string.prev_named_sibling().filter(|node| node.kind() != "comment");
                StringUse::Argument {
                    function: text_of(name, self.text).to_owned(),
                    subject: before.and_then(last_name).map(|name| name.byte_range()),
                    receiver: function
                        .child_by_field_name("object")
                        .and_then(last_name)
                        .map(|name| name.byte_range()),
                }
            }
            _ => self.listed_member(string).map_or(StringUse::Other, StringUse::Member),
        })
    }

    /// Whether a string is a key of a dictionary that is written out, and whether another one is merged with that: `x.update({"key": 1})`,
    /// `x | {"key": 1}`.
    #[must_use]
    pub fn dictionary_key(&self, span: &Span) -> Option<bool> {
        let content = self.tree.root_node().descendant_for_byte_range(span.start, span.end)?;
        let pair = content.parent()?.parent().filter(|pair| pair.kind() == "pair")?;
        if pair.child_by_field_name("key") != content.parent() {
            return None;
        }
        let dictionary = pair.parent()?;
        if children(dictionary).any(|part| part.kind() == "dictionary_splat") {
            return Some(true);
        }
        let around = dictionary.parent()?;
        let is_update = || {
            let function = around.parent().and_then(|call| call.child_by_field_name("function"));
            function.and_then(last_name).is_some_and(|name| text_of(name, self.text) == "update")
        };
        Some(match around.kind() {
            "binary_operator" | "augmented_assignment" | "dictionary_splat" => true,
            "argument_list" => is_update(),
            _ => false,
        })
    }

    /// The offset of the name of the class that lists a string in its `__slots__` or `__match_args__`.
    fn listed_member(&self, string: Node<'_>) -> Option<usize> {
        const COLLECTIONS: [&str; 6] =
            ["tuple", "list", "set", "dictionary", "pair", "parenthesized_expression"];
        let mut node = string;
        while let Some(parent) = node.parent().filter(|parent| COLLECTIONS.contains(&parent.kind())) {
            // The values of a dictionary are the documentation of its slots.
            if parent.kind() == "pair" && parent.child_by_field_name("key") != Some(node) {
                return None;
            }
            node = parent;
        }
        let assignment = node.parent().filter(|parent| {
            parent.kind() == "assignment" && parent.child_by_field_name("right") == Some(node)
        })?;
        let list = text_of(assignment.child_by_field_name("left")?, self.text);
        let block = assignment.parent().filter(|parent| parent.kind() == "expression_statement")?.parent()?;
        let class = block.parent().filter(|class| class.kind() == "class_definition")?;
        MEMBER_LISTS.contains(&list).then_some(class.child_by_field_name("name")?.start_byte())
    }

    /// The name tokens of the functions around an offset, innermost first. Default values, annotations and decorators are evaluated
    /// outside of their function.
    #[must_use]
    pub fn enclosing_functions(&self, offset: usize) -> Vec<Span> {
        let mut found = Vec::new();
        let mut node = self.tree.root_node().descendant_for_byte_range(offset, offset + 1);
        while let Some(at) = node {
            if at.kind() == "function_definition"
                && at.child_by_field_name("body").is_some_and(|body| body.start_byte() <= offset)
            {
                found.extend(at.child_by_field_name("name").map(|name| name.byte_range()));
            }
            node = at.parent();
        }
        found
    }
}

/// The expression whose value is that of a name token, as `x.name` and `(name)`, and whether other expressions are chosen instead of
/// it: `name if x else y`, `name or y`.
pub(super) fn whole_value(token: Node<'_>) -> (Node<'_>, bool) {
    let mut node = token;
    // The use of `x.name` is that of the whole expression.
    if let Some(parent) = node.parent().filter(|parent| {
        parent.kind() == "attribute" && parent.child_by_field_name("attribute") == Some(node)
    }) {
        node = parent;
    }
    let mut is_choice = false;
    while let Some(parent) = node.parent() {
        let is_condition = parent.kind() == "conditional_expression" && parent.named_child(1) == Some(node);
        match parent.kind() {
            "parenthesized_expression" => {}
            "conditional_expression" | "boolean_operator" if !is_condition => is_choice = true,
            _ => break,
        }
        node = parent;
    }
    (node, is_choice)
}

/// The attribute whose name a token is.
fn attribute_of(token: Node<'_>) -> Option<Node<'_>> {
    token.parent().filter(|parent| {
        parent.kind() == "attribute" && parent.child_by_field_name("attribute") == Some(token)
    })
}

/// The alias of an imported name; `None` when the token is not the name of an import.
pub(super) fn imported(token: Node<'_>) -> Option<Option<Span>> {
    let name = token.parent().filter(|parent| parent.kind() == "dotted_name")?;
    let around = name.parent()?;
    match around.kind() {
        "aliased_import" => {
            let alias = around.child_by_field_name("alias")?;
            Some(Some(alias.byte_range()))
        }
        "import_from_statement" | "import_statement" | "future_import_statement" => Some(None),
        _ => None,
    }
}

/// The last name token of a dotted name.
pub(super) fn last_name(node: Node<'_>) -> Option<Node<'_>> {
    let node = unwrapped(node);
    match node.kind() {
        "identifier" => Some(node),
        "attribute" => node.child_by_field_name("attribute"),
        _ => None,
    }
}

/// The last name token of the target that takes an element of a tuple: `a` for the first of `a, b = x, y`.
pub(super) fn paired_target(values: Node<'_>, element: Node<'_>) -> Option<Span> {
    let assignment = values.parent().filter(|parent| parent.kind() == "assignment")?;
    let left = assignment.child_by_field_name("left")?;
    let is_plain = |node: Node<'_>| {
        matches!(node.kind(), "pattern_list" | "tuple_pattern" | "expression_list" | "tuple")
            && !children(node).any(|child| child.kind().starts_with("list_splat"))
    };
    let is_paired = assignment.child_by_field_name("right") == Some(values)
        && is_plain(left)
        && is_plain(values)
        && left.named_child_count() == values.named_child_count();
    let at = children(values).position(|child| child == element)?;
    children(left).nth(at).filter(|_| is_paired).and_then(last_name).map(|name| name.byte_range())
}

/// The targets of an assignment: the last name token of each one that is a dotted name.
pub(super) fn targets(assignment: Node<'_>) -> Vec<Span> {
    let mut found = Vec::new();
    let mut at = Some(assignment);
    while let Some(node) = at.filter(|node| node.kind() == "assignment") {
        found.extend(node.child_by_field_name("left").and_then(last_name).map(|name| name.byte_range()));
        at = node.parent();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text without `§`, and the offset of `§`.
    fn marked(text: &str) -> (String, usize) {
        (text.replace('§', ""), text.find('§').unwrap())
    }

    fn names<'t>(text: &'t str, spans: &[Span]) -> Vec<&'t str> {
        spans.iter().map(|span| &text[span.clone()]).collect()
    }

    #[test]
    fn names_of_modules() {
        for (text, expected) in [
            ("import §a", true),
            ("import a.§b as c", true),
            ("from a.§b import c", true),
            ("from .§a import b as c", true),
            ("from a import §b", false),
            ("from a import §b as c", false),
            ("import a as §b", false),
            ("a.§b", false),
        ] {
            let (text, at) = marked(text);
            assert_eq!(Usage::of(&text).names_module(at), expected, "{text}");
        }
    }

    #[test]
    fn uses_of_tokens() {
        for (text, expected) in [
            ("§f(1)", TokenUse::Called),
            ("a.§f()", TokenUse::Called),
            ("(a.§f)()", TokenUse::Called),
            ("from m import §f", TokenUse::Imported(None)),
            ("g(§f)", TokenUse::Passed),
            ("g(k=a.§f)", TokenUse::Passed),
            ("x = [§f]", TokenUse::Passed),
            ("def g(k=§f): pass", TokenUse::Passed),
            ("def g():\n return §f", TokenUse::Passed),
            ("{1: §f}", TokenUse::Passed),
            ("def §f(): pass", TokenUse::Other),
            ("@§f\ndef g(): pass", TokenUse::Other),
            ("class C(§f): pass", TokenUse::Other),
            ("x: §f = 1", TokenUse::Other),
            ("§f.x", TokenUse::Other),
            ("§f = 1", TokenUse::Other),
        ] {
            let (text, at) = marked(text);
            assert_eq!(Usage::of(&text).of_token(at), expected, "{text}");
        }
        let (text, at) = marked("from m import §f as g");
        let TokenUse::Imported(Some(alias)) = Usage::of(&text).of_token(at) else { panic!("{text}") };
        assert_eq!(&text[alias], "g");
        let (text, at) = marked("a = self.b = m.§f");
        let TokenUse::Assigned(targets) = Usage::of(&text).of_token(at) else { panic!("{text}") };
        assert_eq!(names(&text, &targets), ["b", "a"]);
        for (text, expected) in [
            ("g = §f if x else h", &["g"][..]),
            ("g = h if x else (m.§f)", &["g"]),
            ("g = h or §f", &["g"]),
            ("if (g := §f): pass", &["g"]),
            ("a, b.c = x, §f", &["c"]),
        ] {
            let (text, at) = marked(text);
            let TokenUse::Assigned(targets) = Usage::of(&text).of_token(at) else { panic!("{text}") };
            assert_eq!(names(&text, &targets), expected, "{text}");
        }
        for text in ["g = x if §f else h", "(§f or g)()", "a, *b = x, §f", "g(x or §f)"] {
            let (text, at) = marked(text);
            assert!(
                !matches!(Usage::of(&text).of_token(at), TokenUse::Assigned(_) | TokenUse::Called),
                "{text}"
            );
        }
    }

    #[test]
    fn receivers() {
        for (text, name, is_call, is_self) in [
            ("a.b.§c", Some("b"), false, false),
            ("a.b().§c", Some("b"), true, false),
            ("a[0].§c", None, false, false),
            ("class C:\n def m(self):\n  self.§c", Some("self"), false, true),
            ("class C:\n @d\n def m(me, self):\n  return me.§c", Some("me"), false, true),
            ("class C:\n def m(self):\n  super().§c()", Some("super"), true, true),
            ("class C:\n def m(self):\n  def f(self): return self.§c", Some("self"), false, false),
            ("class C:\n def m(self):\n  return lambda self: self.§c", Some("self"), false, false),
            ("class C:\n def m(self):\n  def f(x): return self.§c", Some("self"), false, true),
            ("def m(self):\n self.§c", Some("self"), false, false),
            ("class C:\n def m(self):\n  self.a.§c", Some("a"), false, false),
        ] {
            let (text, at) = marked(text);
            let found = Usage::of(&text).receiver(at).unwrap();
            assert_eq!(found.name.clone().map(|name| text[name].to_owned()).as_deref(), name, "{text}");
            assert_eq!((found.is_call, found.is_self), (is_call, is_self), "{text}");
        }
        assert_eq!(Usage::of("c").receiver(0), None);
    }

    #[test]
    fn keywords_of_patterns() {
        for (text, class) in [
            ("match x:\n case C(§k=1): pass", Some("C")),
            ("match x:\n case m.n.C(1, j=2, §k=D(k=1)): pass", Some("C")),
            ("match x:\n case [C(j=D(§k=_)), *_] | E(): pass", Some("D")),
            ("match x:\n case C(k=§v): pass", None),
            ("f(§k=1)", None),
        ] {
            let (text, at) = marked(text);
            let found = Usage::of(&text).pattern_class(at);
            assert_eq!(found.map(|span| text[span].to_owned()).as_deref(), class, "{text}");
        }
    }

    #[test]
    fn keywords_and_strings() {
        let (text, at) = marked("m.f(d.x, §size=1)");
        let found = Usage::of(&text).keyword(at).unwrap();
        assert_eq!((found.function.as_str(), &text[found.subject.unwrap()]), ("f", "x"));
        let (text, at) = marked("t._replace(§size=1)");
        assert_eq!(&text[Usage::of(&text).keyword(at).unwrap().subject.unwrap()], "t");
        let (text, at) = marked("class M(B, §size=1): pass");
        assert!(Usage::of(&text).keyword(at).unwrap().is_class);
        let (text, at) = marked("a.t['§key']");
        let span = at..at + 3;
        assert_eq!(Usage::of(&text).string(&span), Some(StringUse::Subscript(Some(2..3))));
        let (text, at) = marked("getattr(x, '§key')");
        let span = at..at + 3;
        let expected =
            StringUse::Argument { function: "getattr".to_owned(), subject: Some(8..9), receiver: None };
        assert_eq!(Usage::of(&text).string(&span), Some(expected));
        let (text, at) = marked("'a §key'");
        let span = at..at + 3;
        assert_eq!(Usage::of(&text).string(&span), None);
    }
}
