//! Whether what a name means hangs on the type of something else, and whether that type has to be inferred.

use tree_sitter::{Node, Tree};

use super::outline::Span;
use super::reading::Reading;
use super::scopes::{Bindings, Scopes};
use super::syntax::{self, text_of};
use crate::workspace::files::Document;

/// What the meaning of a name hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The scopes around it: it stands alone.
    Scoped,
    /// A type that the source declares: of a module, a class, a function, what one of them gives a name, an instance of the
    /// class around a method, a parameter.
    Declared,
    /// A type that is inferred from what functions return and variables are given.
    Inferred,
}

/// What the meaning of a name token hangs on: of an attribute on the type of its object, of a keyword argument on that of what
/// is called.
///
/// What Pyright infers can depend on what it was asked before; what is declared does not. Of some 15,000 names of the kind
/// [`Meaning::Declared`] in django, sympy and flask each had one definition, in two orders of asking and from a server that
/// had inferred nothing (Pyright 1.1.414); of 1,500 attributes of local variables in sympy 16 had two.
#[must_use]
pub fn meaning(document: &Document, name: &Span) -> Meaning {
    // What is in parentheses, or follows a backslash, goes on in the next line.
    let is_space = |c: char| c.is_whitespace() || c == '\\';
    let text = &document.text;
    let is_attribute = text[..name.start].trim_end_matches(is_space).ends_with('.');
    let after = text[name.end..].trim_start_matches(is_space);
    if is_attribute || after.starts_with('=') && !after.starts_with("==") {
        Reading::of(document).meanings(text).of(name.start, is_attribute)
    } else {
        Meaning::Scoped
    }
}

/// The attributes and the keyword arguments of one text.
#[derive(Debug)]
pub(super) struct Meanings {
    /// Where they begin, in order, and whether what they hang on is declared. `None` where the syntax is broken: then what a
    /// name is, and what binds a name, may be hidden.
    hanging: Option<Vec<(u32, bool)>>,
}

impl Meanings {
    /// Reads a text.
    pub(super) fn read(text: &str) -> Self {
        let tree = syntax::parse(text);
        if tree.root_node().has_error() {
            return Self { hanging: None };
        }
        let scopes = Scopes::of_all(&tree, text);
        let reader = Reader { tree: &tree, text, bindings: scopes.bindings_of_all() };
        let mut hanging = Vec::new();
        syntax::preorder(tree.root_node(), |node| {
            let field = match node.kind() {
                "attribute" => "attribute",
                "keyword_argument" => "name",
                _ => return true,
            };
            if let Some(token) = node.child_by_field_name(field) {
                let is_declared = rests_on(node).is_some_and(|base| reader.is_declared(base));
                hanging.push((u32::try_from(token.start_byte()).unwrap_or(u32::MAX), is_declared));
            }
            true
        });
        // An attribute comes before what is in its object.
        hanging.sort_unstable();
        Self { hanging: Some(hanging) }
    }

    /// About how many bytes they take.
    pub(super) fn weight(&self) -> usize {
        self.hanging.as_ref().map_or(0, |hanging| hanging.len() * size_of::<(u32, bool)>())
    }

    /// What the meaning of the name hangs on that begins at an offset, and stands behind a dot or before an `=`.
    fn of(&self, offset: usize, is_behind_dot: bool) -> Meaning {
        let Some(hanging) = &self.hanging else { return Meaning::Inferred };
        match hanging.binary_search_by_key(&offset, |(start, _)| *start as usize) {
            Ok(at) if hanging[at].1 => Meaning::Declared,
            Ok(_) => Meaning::Inferred,
            // A part of a module's name: which of its files is meant hangs on more than the text.
            Err(_) if is_behind_dot => Meaning::Inferred,
            // What is given a value, or a default.
            Err(_) => Meaning::Scoped,
        }
    }
}

/// The expression on whose type an attribute or a keyword argument hangs: of `a.name` and of `a.b(name=1)` that is `a`, of
/// `f(name=1)` it is `f`.
fn rests_on(node: Node<'_>) -> Option<Node<'_>> {
    if node.kind() == "attribute" {
        return node.child_by_field_name("object");
    }
    // The keyword arguments of a class belong to what its bases say.
    let call = node.parent()?.parent().filter(|call| call.kind() == "call")?;
    let function = call.child_by_field_name("function")?;
    match function.kind() {
        "attribute" => function.child_by_field_name("object"),
        _ => Some(function),
    }
}

struct Reader<'r> {
    tree: &'r Tree,
    text: &'r str,
    bindings: Bindings<'r>,
}

impl<'r> Reader<'r> {
    /// Whether an expression's type is declared.
    fn is_declared(&self, base: Node<'_>) -> bool {
        match base.kind() {
            "string" | "concatenated_string" | "integer" | "float" => true,
            "identifier" => self.is_declared_name(base),
            // What an imported module or class gives a name.
            "attribute" => base.child_by_field_name("object").is_some_and(|object| {
                let Some(tokens) = self.tokens(object).filter(|_| object.kind() == "identifier") else {
                    return false;
                };
                let mut tokens = tokens.peekable();
                tokens.peek().is_some() && tokens.all(is_import)
            }),
            // What follows the class around the method.
            "call" => base.child_by_field_name("function").is_some_and(|function| {
                let given = base.child_by_field_name("arguments");
                function.kind() == "identifier"
                    && text_of(function, self.text) == "super"
                    && given.is_some_and(|given| given.named_child_count() == 0)
                    && self.is_declared_name(function)
            }),
            _ => false,
        }
    }

    /// Whether everything that binds a name, as it is seen from where it stands, declares its type. A name that nothing in
    /// the file binds is a builtin, or what `import *` brings.
    fn is_declared_name(&self, name: Node<'_>) -> bool {
        let is_one = self.bindings.of(name.start_byte()).is_some_and(|bound| bound.len() == 1);
        let mut tokens = self.tokens(name).into_iter().flatten();
        self.tokens(name).is_some()
            && tokens.all(|token| declares(token) || is_one && is_typed_parameter(token))
    }

    /// The tokens that bind a name, as it is seen from where it stands.
    fn tokens(&self, name: Node<'_>) -> Option<impl Iterator<Item = Node<'r>>> {
        let bound = self.bindings.of(name.start_byte())?.to_vec();
        let root = self.tree.root_node();
        // An identifier is always there where one was read.
        Some(
            bound
                .into_iter()
                .map(move |token| root.descendant_for_byte_range(token.start, token.end).unwrap_or(root)),
        )
    }
}

/// Whether a name is bound by an import, a class or a function.
fn declares(token: Node<'_>) -> bool {
    let kind = token.parent().map(|parent| parent.kind());
    is_import(token) || matches!(kind, Some("class_definition" | "function_definition"))
}

/// Whether a token that binds a name imports it.
fn is_import(token: Node<'_>) -> bool {
    // A `case` has dotted names too.
    let mut around = std::iter::successors(token.parent(), Node::parent).take(3);
    around.any(|node| matches!(node.kind(), "import_statement" | "import_from_statement"))
}

/// Whether a name is that of a function's parameter whose type nothing has to be inferred for: an annotated one, one that
/// may be anything, or one with a constant for a default.
fn is_typed_parameter(token: Node<'_>) -> bool {
    /// Defaults that are of one type.
    const CONSTANTS: [&str; 6] = ["none", "true", "false", "integer", "float", "string"];
    let Some(parent) = token.parent() else { return false };
    let parameter = if parent.kind() == "parameters" { token } else { parent };
    if parameter.parent().is_none_or(|list| list.kind() != "parameters") && parameter != token {
        return false;
    }
    match parameter.kind() {
        "identifier" => parent.kind() == "parameters",
        "typed_parameter" | "typed_default_parameter" => true,
        "default_parameter" => {
            parameter.child_by_field_name("value").is_some_and(|default| CONSTANTS.contains(&default.kind()))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use Meaning::{Declared, Inferred, Scoped};

    use super::*;
    use crate::path::AbsPath;

    /// What the name behind a `|` hangs on.
    fn asked(text: &str) -> Meaning {
        let (before, after) = text.split_once('|').unwrap();
        let length = after.find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len());
        let path = AbsPath::new("/w/a.py").unwrap();
        let document = Document::new(path, format!("{before}{after}").into_bytes());
        meaning(&document, &(before.len()..before.len() + length))
    }

    /// The same in statements of a method.
    fn in_method(statements: &str) -> Meaning {
        asked(&format!("class A:\n    def f(self, a):\n        {}\n", statements.replace('\n', "\n        ")))
    }

    #[track_caller]
    fn all(found: fn(&str) -> Meaning, expected: Meaning, texts: &[&str]) {
        for text in texts {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn a_name_that_stands_alone_hangs_on_its_scopes() {
        all(
            asked,
            Scoped,
            &["|b", "f(|x == 1)", "import |a", "x = |a", "def f(|x): pass", "|a = 1", "|a: int = 1"],
        );
        all(asked, Scoped, &["def f(|x=1): pass", "for a in b: |c = a", "a = |b = 1", "lambda |x=1: x"]);
    }

    #[test]
    fn results_and_variables_are_inferred() {
        all(
            asked,
            Inferred,
            &[
                "f().|b",
                "a = g()\na.|b",
                "a.b.|c",
                "import a\na.b.c.|d",
                "class a: b = g()\na.b.|c",
                "def f(a): a.b.|c",
                "(a).|b",
                "a[0].|b",
                "class A(B, |k=1): pass",
                "import a.|b",
            ],
        );
        all(asked, Inferred, &["f()(|x=1)", "a = g()\na(|x=1)", "a.b.c(|x=1)", "lambda a: a.|b"]);
        all(
            asked,
            Inferred,
            &["[a.|b for a in c]", "def f(*a): a.|b", "def f(a=g()): a.|b", "a = b = 1\nb.|c"],
        );
        all(
            in_method,
            Inferred,
            &["self.a.|b", "a.self.|b", "(self).|b", "self().|b", "lambda self: self.|b"],
        );
    }

    #[test]
    fn imports_classes_functions_and_literals_are_declared() {
        all(asked, Declared, &["import a\na.|b", "from x import a\na . |b", "import x.y as a\n(a.\n  |b)"]);
        all(asked, Declared, &["import a.c\na.\\\n  |b", "class a: pass\na.|b", "def a(): pass\na.|b"]);
        all(
            asked,
            Declared,
            &["try:\n  import a\nexcept E:\n  from b import a\na.|b", "from x import *\na.|b"],
        );
        all(asked, Declared, &["''.|join(x)", "'a' 'b'.|c", "str.|join"]);
        all(
            asked,
            Declared,
            &["import f\nf(|x=1)", "import a\na.f(1, |x=2)", "def f(x): f(|x=1)", "dict(|x=1)"],
        );
        all(in_method, Declared, &["super().|b", "super().f(|x=1)", "self.f(|x=1)"]);
        all(in_method, Inferred, &["super(A, self).|b", "super = g\nsuper().|b"]);
    }

    #[test]
    fn of_what_binds_a_name_one_scope_is_looked_at() {
        all(
            asked,
            Declared,
            &["import a\ndef f():\n  a = g()\na.|b", "import a\nclass C:\n  a = g()\n  def f(s): a.|b"],
        );
        all(asked, Declared, &["a = g()\ndef f():\n  import a\n  a.|b", "a = g()\ndef f(a): a.|b"]);
        all(asked, Inferred, &["import a\nmatch b:\n  case a:\n    a.|b"]);
        all(asked, Inferred, &["import a\na = g()\na.|b", "import a\ndef f():\n  global a\n  a = g()\na.|b"]);
        all(
            asked,
            Inferred,
            &["try:\n  import a\nexcept E:\n  a = None\na.|b", "import a\ndef f():\n  a.|b\n  a = g()"],
        );
        all(asked, Inferred, &["import a\na.|b\n)))\n", "import a\ntry: f()\nexcept E as a: a.|b"]);
    }

    #[test]
    fn parameters_are_declared_until_they_are_given_something_else() {
        all(
            asked,
            Declared,
            &["def f(a): a.|b", "def f(a: B): a.|b", "def f(a=None): a.|b", "def f(a: B = g()): a.|b"],
        );
        all(asked, Declared, &["async def f(*, a=''): a.|b", "def f(a):\n  def g(): a.|b"]);
        all(asked, Inferred, &["def f(a):\n  a = g()\n  a.|b", "def f(**a): a.|b", "def f(*a: B): a.|b"]);
        all(
            in_method,
            Declared,
            &["self.|b", "x = -self . |b", "if a == self:\n    g(self, self=self).c = self.|b"],
        );
        all(in_method, Declared, &["x = self\nself.|b", "def g():\n    return self.|b"]);
    }

    #[test]
    fn a_self_that_is_bound_anew_may_be_anything() {
        all(
            in_method,
            Inferred,
            &[
                "self = other()\nself.|b",
                "self: A = other()\nself.|b",
                "for self in x:\n    self.|b",
                "for a, self in x:\n    self.|b",
                "self, a = x\nself.|b",
                "(a, self) = x\nself.|b",
                "[a, *self] = x\nself.|b",
                "with g() as self:\n    self.|b",
                "with g() as (a, self):\n    self.|b",
                "if (self := g()):\n    self.|b",
                "[self.|b for a, self in x]",
                "match a:\n    case A(self):\n        self.|b",
                "match a:\n    case {'x': self}:\n        self.|b",
                "match a:\n    case [*self]:\n        self.|b",
                "match a:\n    case A() as self:\n        self.|b",
                "import x as self\nself.|b",
                "del self\nself.|b",
                "self += 1\nself.|b",
                "def g():\n    nonlocal self\n    self = 1\nself.|b",
            ],
        );
    }
}
