//! Local variables: names that a function binds and that only its own code can use.

use tree_sitter::Node;

use super::outline::Span;
use super::roles::{parameter_of, token_at};
use super::scopes::{ScopeKind, Scopes};
use super::syntax::{children, parse, preorder, text_of};

/// Calls without arguments that return all variables.
const RETURN_VARIABLES: [&str; 2] = ["vars", "dir"];

/// What gives all variables, or runs a text in which they can be named.
const TAKE_VARIABLES: [&str; 6] = ["locals", "eval", "exec", "f_locals", "_getframe", "currentframe"];

/// The code that can use the local variable whose token begins at an offset: its function, or its comprehension. `None` if it is no
/// local variable: if a module or a class binds the name, or it is a parameter of a function that has a name, an import, a function
/// or a class.
#[must_use]
pub fn code_of_local_variable(text: &str, offset: usize) -> Option<Span> {
    let tree = parse(text);
    let name = text_of(token_at(&tree, offset)?, text);
    let scopes = Scopes::of(text, &[name]);
    if !matches!(scopes.home(offset)?, ScopeKind::Function | ScopeKind::Comprehension) {
        return None;
    }
    let bindings = scopes.bound_by(offset)?;
    let tokens: Vec<Node<'_>> =
        bindings.iter().map(|span| token_at(&tree, span.start)).collect::<Option<_>>()?;
    let around: Vec<Node<'_>> = tokens.iter().map(|token| code_around(*token)).collect::<Option<_>>()?;
    // A binding may be in a function inside, where it is `nonlocal`.
    let outermost = around.into_iter().map(|node| node.byte_range()).min_by_key(|span| span.start)?;
    tokens.iter().all(|token| is_variable(*token)).then_some(outermost)
}

/// The names in a part of a text by which its variables are looked up: `locals()`, `eval(…)`, `df.eval(…)`, `sys._getframe().f_locals`.
#[must_use]
pub fn uses_of_all_variables(text: &str, within: &Span) -> Vec<Span> {
    let tree = parse(text);
    let mut found = Vec::new();
    preorder(tree.root_node(), |node| {
        if node.end_byte() <= within.start || within.end <= node.start_byte() {
            return false;
        }
        if node.kind() == "identifier" {
            let name = text_of(node, text);
            let callee = node.parent().filter(|parent| parent.kind() == "attribute").unwrap_or(node);
            let call = callee.parent().filter(|call| call.child_by_field_name("function") == Some(callee));
            let arguments = call.and_then(|call| call.child_by_field_name("arguments"));
            let has_no_arguments =
                arguments.is_some_and(|arguments| children(arguments).all(|one| one.kind() == "comment"));
            // `model.eval()` of PyTorch takes no text.
            let takes_nothing = callee != node && has_no_arguments && name == "eval";
            if TAKE_VARIABLES.contains(&name) && !takes_nothing
                || RETURN_VARIABLES.contains(&name) && has_no_arguments
            {
                found.push(node.byte_range());
            }
        }
        true
    });
    found
}

/// The function or comprehension that a token belongs to.
fn code_around(token: Node<'_>) -> Option<Node<'_>> {
    let mut comprehension = None;
    let mut node = token;
    while let Some(parent) = node.parent() {
        node = parent;
        match node.kind() {
            "function_definition" | "lambda" => return Some(node),
            "list_comprehension"
            | "set_comprehension"
            | "dictionary_comprehension"
            | "generator_expression" => comprehension = Some(node),
            "ERROR" => return None,
            _ => {}
        }
    }
    comprehension
}

/// Whether a token that binds a name makes it a variable.
fn is_variable(token: Node<'_>) -> bool {
    // Callers can look the parameters of a function up, also those that they cannot pass by name: `inspect.signature(f)`.
    if let Some((_, list)) = parameter_of(token) {
        return list.kind() == "lambda_parameters";
    }
    let Some(parent) = token.parent() else { return false };
    let is_name = parent.child_by_field_name("name") == Some(token);
    if is_name && matches!(parent.kind(), "function_definition" | "class_definition") {
        return false;
    }
    let mut node = Some(token);
    while let Some(above) = node {
        match above.kind() {
            "import_statement" | "import_from_statement" | "type_parameter" | "type_alias_statement" => {
                return false;
            }
            kind if kind.ends_with("_statement") || kind == "block" => return true,
            _ => node = above.parent(),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code of the variable at `§`.
    fn code(marked: &str) -> Option<String> {
        let text = marked.replace('§', "");
        code_of_local_variable(&text, marked.find('§').unwrap()).map(|span| text[span].to_owned())
    }

    #[test]
    fn variables_of_functions_and_comprehensions() {
        for (text, expected) in [
            ("def f():\n    §x = 1\n", Some("def f():\n    x = 1")),
            ("def f():\n    x = 1\n    return §x\n", Some("def f():\n    x = 1\n    return x")),
            ("g = lambda a: §a\n", Some("lambda a: a")),
            ("y = [§x for x in z]\n", Some("[x for x in z]")),
            (
                "def f():\n  for x in []: pass\n  with a as §x: pass\n",
                Some("def f():\n  for x in []: pass\n  with a as x: pass"),
            ),
            (
                "def f():\n  x = 1\n  def g():\n    nonlocal x\n    §x = 2\n",
                Some("def f():\n  x = 1\n  def g():\n    nonlocal x\n    x = 2"),
            ),
        ] {
            assert_eq!(code(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_may_be_used_elsewhere() {
        for text in [
            "§x = 1\n",
            "class A:\n  §x = 1\n",
            "def f():\n  global x\n  §x = 1\n",
            "def f(§a): return a\n",
            "def f(a): return §a\n",
            "def f(a, /, *, b): return §a\n",
            "def f(*args): return §args\n",
            "def f(a):\n  §a = 1\n",
            "def f():\n  import §x\n",
            "def f():\n  from a import §x\n",
            "def f():\n  from a import b as §x\n  return x\n",
            "def f():\n  def §x(): pass\n",
            "def f():\n  class x: pass\n  return §x\n",
            "def f():\n  return §x\n",
            "def f():\n  return a.§x\n",
            "def f[§T](x: T): pass\n",
            "def f():\n  class A:\n    §x = 1\n",
            "def f():\n  y = 1\n  g(§y=1)\n",
        ] {
            assert_eq!(code(text), None, "{text}");
        }
    }

    #[test]
    fn calls_that_take_all_variables() {
        let text = "def f(a):\n  x = 1\n  return locals(), vars( # c\n ), vars(a), b.eval('x'), m.eval(), sys._getframe(1).f_locals\nlocals()\n";
        let end = text.rfind("locals").unwrap();
        let found = uses_of_all_variables(text, &(0..end - 1));
        let names: Vec<&str> = found.into_iter().map(|span| &text[span]).collect();
        assert_eq!(names, ["locals", "vars", "eval", "_getframe", "f_locals"]);
    }
}
