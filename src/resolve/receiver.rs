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
    /// A type that the source declares: of a module, a class, a function, an instance of the class around a method, a
    /// parameter. No function's result and no variable's value has to be inferred for it.
    Declared,
    /// A type that is inferred from what functions return and variables are given.
    Inferred,
}

/// What the meaning of a name token hangs on: of an attribute on the type of its object, of a keyword argument on that of what
/// is called.
///
/// What Pyright infers can depend on what it was asked before; what is declared does not. What an import from a module names may
/// be a variable there, so it counts as inferred. Of several thousand names of the kind [`Meaning::Declared`] in django,
/// sympy and flask each had one definition, in two orders of asking and from a server that had inferred nothing (Pyright
/// 1.1.414); of 1,500 attributes of local variables in sympy 16 had two.
#[must_use]
pub fn meaning(document: &Document, name: &Span) -> Meaning {
    let text = &document.text;
    if stands_alone(text, name) {
        Meaning::Scoped
    } else {
        Reading::of(document).meanings(text).of(name.start)
    }
}

/// Whether the line alone tells that a name is no attribute and no keyword argument.
fn stands_alone(text: &str, name: &Span) -> bool {
    let before = text[..name.start].rsplit('\n').next().unwrap_or_default().trim_end();
    let after = text[name.end..].split('\n').next().unwrap_or_default().trim_start();
    // What stands first or last in a line may go on in another.
    let no_attribute = !before.is_empty() && !before.ends_with(['.', '\\']);
    let no_keyword = !after.is_empty() && (after.starts_with("==") || !after.starts_with(['=', '#', '\\']));
    no_attribute && no_keyword
}

/// The attributes and the keyword arguments of one text.
#[derive(Debug)]
pub(super) struct Meanings {
    /// Where they begin, in order, and whether what they hang on is declared; the parts of dotted names too. `None` where the syntax is broken: then what a
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
        let mut has_star = false;
        syntax::preorder(tree.root_node(), |node| {
            has_star |= node.kind() == "wildcard_import";
            true
        });
        let reader = Reader { tree: &tree, text, bindings: scopes.bindings_of_all(), has_star };
        let mut hanging = Vec::new();
        syntax::preorder(tree.root_node(), |node| {
            let mut hangs = |token: Node<'_>, is_declared| {
                hanging.push((u32::try_from(token.start_byte()).unwrap_or(u32::MAX), is_declared));
            };
            match node.kind() {
                "attribute" => {
                    let object = node.child_by_field_name("object");
                    if let Some(token) = node.child_by_field_name("attribute") {
                        hangs(token, object.is_some_and(|object| reader.is_declared(object)));
                    }
                }
                "keyword_argument" => {
                    if let Some(token) = node.child_by_field_name("name") {
                        hangs(token, called(node).is_some_and(|function| reader.is_own_or_builtin(function)));
                    }
                }
                // Which members of a class they are; which of a module's files.
                "keyword_pattern" => node.named_child(0).into_iter().for_each(|token| hangs(token, false)),
                "dotted_name" => {
                    let mut cursor = node.walk();
                    node.named_children(&mut cursor).skip(1).for_each(|token| hangs(token, false));
                }
                _ => {}
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

    /// What the meaning of the name hangs on that begins at an offset.
    fn of(&self, offset: usize) -> Meaning {
        let Some(hanging) = &self.hanging else { return Meaning::Inferred };
        match hanging.binary_search_by_key(&offset, |(start, _)| *start as usize) {
            Ok(at) if hanging[at].1 => Meaning::Declared,
            Ok(_) => Meaning::Inferred,
            Err(_) => Meaning::Scoped,
        }
    }
}

/// What is called with a keyword argument, when it is a name. The keyword arguments of a class belong to what its bases say.
fn called(argument: Node<'_>) -> Option<Node<'_>> {
    let call = argument.parent()?.parent().filter(|call| call.kind() == "call")?;
    call.child_by_field_name("function").filter(|function| function.kind() == "identifier")
}

struct Reader<'r> {
    tree: &'r Tree,
    text: &'r str,
    bindings: Bindings<'r>,
    /// Whether the file has an `import *`.
    has_star: bool,
}

impl<'r> Reader<'r> {
    /// Whether the type of an attribute's object is declared.
    fn is_declared(&self, object: Node<'_>) -> bool {
        match object.kind() {
            "string" | "concatenated_string" | "integer" | "float" => true,
            "identifier" => self.is_own_or_builtin(object) || self.is_module_or_parameter(object),
            // What follows the class around the method.
            "call" => object.child_by_field_name("function").is_some_and(|function| {
                let given = object.child_by_field_name("arguments");
                function.kind() == "identifier"
                    && text_of(function, self.text) == "super"
                    && given.is_some_and(|given| given.named_child_count() == 0)
                    && self.is_own_or_builtin(function)
            }),
            _ => false,
        }
    }

    /// Whether a name is that of classes and functions of the file, or a builtin.
    fn is_own_or_builtin(&self, name: Node<'_>) -> bool {
        self.tokens(name).is_some_and(|tokens| match tokens.len() {
            0 => !self.has_star,
            _ => tokens.into_iter().all(defines),
        })
    }

    /// Whether a name is that of a module, or of a parameter whose type nothing has to be inferred for.
    fn is_module_or_parameter(&self, name: Node<'_>) -> bool {
        self.tokens(name).is_some_and(|tokens| match tokens[..] {
            [token] if is_typed_parameter(token) => true,
            _ => !tokens.is_empty() && tokens.into_iter().all(is_module),
        })
    }

    /// The tokens that bind a name, as it is seen from where it stands.
    fn tokens(&self, name: Node<'_>) -> Option<Vec<Node<'r>>> {
        let root = self.tree.root_node();
        let token = |span: &&Span| root.descendant_for_byte_range(span.start, span.end);
        self.bindings.of(name.start_byte())?.iter().map(token).collect()
    }
}

/// Whether a token names a class or a function, and no decorator makes something else of it.
fn defines(token: Node<'_>) -> bool {
    token.parent().is_some_and(|parent| {
        matches!(parent.kind(), "class_definition" | "function_definition")
            && parent.child_by_field_name("name") == Some(token)
            && parent.parent().is_none_or(|outer| outer.kind() != "decorated_definition")
    })
}

/// Whether a token that binds a name imports a module. What `from m import a` names may be anything.
fn is_module(token: Node<'_>) -> bool {
    let mut around = std::iter::successors(token.parent(), Node::parent).take(3);
    around.any(|node| node.kind() == "import_statement")
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
            &["f().|b", "a = g()\na.|b", "a.b.|c", "(a).|b", "a[0].|b", "class A(B, |k=1): pass"],
        );
        all(
            asked,
            Inferred,
            &["f()(|x=1)", "a = g()\na(|x=1)", "a.b.c(|x=1)", "lambda a: a.|b", "import a.|b"],
        );
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
        all(in_method, Inferred, &["self.f(|x=1)", "super().f(|x=1)", "match a:\n    case A(|k=1): pass"]);
    }

    #[test]
    fn what_is_imported_from_a_module_may_be_a_variable() {
        all(asked, Inferred, &["from x import a\na.|b", "from x import f\nf(|x=1)", "from x import *\na.|b"]);
        all(asked, Inferred, &["import a\na.b.|c", "import a\na.f(|x=1)", "from . import a\na.|b"]);
        all(
            asked,
            Inferred,
            &["try:\n  import a\nexcept E:\n  from b import a\na.|b", "from x import *\nf(|x=1)"],
        );
    }

    #[test]
    fn decorators_make_anything_of_what_they_are_given() {
        all(asked, Inferred, &["@g\ndef f(x): pass\nf(|x=1)", "@g\nclass A: pass\nA.|b"]);
        all(asked, Inferred, &["class T:\n  @thing.|m\n  def thing(self): pass"]);
    }

    #[test]
    fn modules_classes_functions_and_literals_are_declared() {
        all(asked, Declared, &["import a\na.|b", "import a\na . |b", "import x.y as a\n(a.\n  |b)"]);
        all(asked, Declared, &["import a.c\na.\\\n  |b", "class a: pass\na.|b", "def a(): pass\na.|b"]);
        all(asked, Declared, &["import a\n(a.  # why\n  |b)", "def f(x): f(|x  # why\n =1)", "str.|join"]);
        all(asked, Declared, &["''.|join(x)", "'a' 'b'.|c", "def f(x): f(|x=1)", "dict(|x=1)"]);
        all(in_method, Declared, &["super().|b"]);
        all(in_method, Inferred, &["super(A, self).|b", "super = g\nsuper().|b"]);
    }

    #[test]
    fn of_what_binds_a_name_one_scope_is_looked_at() {
        all(asked, Declared, &["import a\ndef f():\n  a = g()\na.|b"]);
        all(asked, Declared, &["import a\nclass C:\n  a = g()\n  def f(s): a.|b"]);
        all(asked, Declared, &["a = g()\ndef f():\n  import a\n  a.|b", "a = g()\ndef f(a): a.|b"]);
        all(asked, Inferred, &["import a\nmatch b:\n  case a:\n    a.|b"]);
        all(asked, Inferred, &["import a\na = g()\na.|b", "import a\ndef f():\n  global a\n  a = g()\na.|b"]);
        all(
            asked,
            Inferred,
            &["try:\n  import a\nexcept E:\n  a = None\na.|b", "import a\ndef f():\n  a.|b\n  a = g()"],
        );
        all(asked, Inferred, &["import a\na.|b\n)))\n", "import a\ntry: f()\nexcept E as a: a.|b"]);
        // A class's names are seen from what a comprehension in it goes through.
        all(asked, Inferred, &["import a\nclass C:\n  a = g()\n  x = [i for i in a.|b]"]);
        all(asked, Declared, &["import a\nclass C:\n  a = g()\n  x = [a.|b for i in y]"]);
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
