//! What a name may mean in branches of which a server reads only one:
//!
//! ```text
//! if sys.platform == "win32":
//!     terminal = Windows()
//! else:
//!     terminal = Posix()
//! ```
//!
//! A server takes one platform, one version of Python and `TYPE_CHECKING` for granted. The program may run with others.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::syntax::{children, dotted, parse_now, text_of, unwrapped};

/// What a condition that servers take as constant has in its text.
const CONDITIONS: [&str; 6] =
    ["sys.platform", "platform ==", "platform.startswith", "version_info", "TYPE_CHECKING", "os.name"];

/// At most this many branches around a value count, and values of one name: time and memory stay in proportion to the text.
const MAX_BRANCHES: usize = 16;
const MAX_MEANINGS: usize = 64;

/// Where statements begin, each with the number of a branch of it.
type Branches = Vec<(usize, usize)>;

/// The classes that one name may mean, or be an object of, by the branches in which it gets its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchedName {
    /// The dotted names that stand for the class in the file, with the branches around them.
    meanings: Vec<(Branches, Vec<String>)>,
}

impl BranchedName {
    /// Two dotted names of which a server knows one, because they are in branches of which one is read.
    pub fn alternatives(&self) -> impl Iterator<Item = (&[String], &[String])> {
        self.meanings.iter().flat_map(|(branches, one)| {
            let others =
                self.meanings.iter().filter(move |(others, other)| others != branches && other != one);
            others.map(|(_, other)| (one.as_slice(), other.as_slice()))
        })
    }
}

/// The names of a text whose values depend on a platform, a version or `TYPE_CHECKING`.
#[must_use]
pub fn branched_names(text: &str) -> Vec<BranchedName> {
    if !is_fixed(text) {
        return Vec::new();
    }
    let tree = parse_now(text);
    let mut found: BTreeMap<String, BranchedName> = BTreeMap::new();
    // With the branches and the name of the function around.
    let mut pending: Vec<(Node<'_>, Branches, String)> = vec![(tree.root_node(), Vec::new(), String::new())];
    let mut add = |name: String, branches: &Branches, value: Node<'_>| {
        let known = found.entry(name).or_insert_with(|| BranchedName { meanings: Vec::new() });
        add_meanings(&mut known.meanings, branches, value, text);
    };
    while let Some((node, branches, function)) = pending.pop() {
        let field = |name| node.child_by_field_name(name);
        let mut around = function.clone();
        match node.kind() {
            "if_statement" if has_fixed_condition(node, text) => {
                for (at, child) in children(node).enumerate() {
                    pending.push((child, within(&branches, (node.start_byte(), at)), function.clone()));
                }
                continue;
            }
            "assignment" => {
                if let (Some(target), Some(value)) = (field("left"), field("right").or_else(|| field("type")))
                {
                    add(format!("{function} {}", text_of(target, text)), &branches, value);
                    // An attribute of an object is set and read in several methods.
                    if target.kind() == "attribute" {
                        add(text_of(target, text).to_owned(), &branches, value);
                    }
                }
            }
            "return_statement" => {
                if let Some(value) = children(node).next() {
                    add(format!("return {function}"), &branches, value);
                }
            }
            "function_definition" => {
                around = field("name").map_or_else(String::new, |name| text_of(name, text).to_owned());
                if let Some(result) = field("return_type") {
                    add(format!("return {around}"), &branches, result);
                }
            }
            "class_definition" => {
                let name = field("name").map_or("", |name| text_of(name, text));
                for base in field("superclasses").into_iter().flat_map(children) {
                    add(format!("{function} {name}"), &branches, base);
                }
            }
            _ => {}
        }
        let mut branches = branches;
        for child in children(node) {
            pending.push((child, branches.clone(), around.clone()));
            // What follows is the other branch.
            if ends_in_a_branch(child, text) {
                branches = within(&branches, (child.start_byte(), usize::MAX));
            }
        }
    }
    let depends = |name: &BranchedName| name.alternatives().next().is_some();
    found.into_values().filter(depends).collect()
}

/// Whether the rest of a block does not run after a branch of this statement, of which servers read one.
fn ends_in_a_branch(statement: Node<'_>, text: &str) -> bool {
    let ends =
        |last: Node<'_>| matches!(last.kind(), "return_statement" | "raise_statement" | "continue_statement");
    let last = |block| children(block).last();
    statement.kind() == "if_statement"
        && has_fixed_condition(statement, text)
        && statement.child_by_field_name("consequence").and_then(last).is_some_and(ends)
}

fn has_fixed_condition(statement: Node<'_>, text: &str) -> bool {
    let condition = statement.child_by_field_name("condition");
    condition.is_some_and(|condition| is_fixed(text_of(condition, text)))
}

/// The branches around what is in one more.
fn within(around: &Branches, branch: (usize, usize)) -> Branches {
    let mut branches = around.clone();
    if branches.len() < MAX_BRANCHES {
        branches.push(branch);
    }
    branches
}

/// Adds the classes that a value names: itself, what it calls, the alternatives of a conditional expression.
fn add_meanings(
    meanings: &mut Vec<(Branches, Vec<String>)>,
    branches: &Branches,
    value: Node<'_>,
    text: &str,
) {
    let mut pending = vec![(value, branches.clone())];
    while let Some((value, branches)) = pending.pop() {
        let value = unwrapped(value);
        match value.kind() {
            "type" => pending.extend(children(value).next().map(|inner| (inner, branches))),
            "call" => pending.extend(value.child_by_field_name("function").map(|called| (called, branches))),
            "conditional_expression" => {
                let parts: Vec<Node<'_>> = children(value).collect();
                let is_constant = parts.get(1).is_some_and(|condition| is_fixed(text_of(*condition, text)));
                for at in [0, 2] {
                    let own = || within(&branches, (value.start_byte(), at));
                    let branches = if is_constant { own() } else { branches.clone() };
                    pending.extend(parts.get(at).map(|part| (*part, branches)));
                }
            }
            _ => {
                let chain = dotted(value, text).map(|name| name.split('.').map(str::to_owned).collect());
                let meaning = chain.map(|chain| (branches, chain));
                if let Some(meaning) = meaning.filter(|meaning| !meanings.contains(meaning))
                    && meanings.len() < MAX_MEANINGS
                {
                    meanings.push(meaning);
                }
            }
        }
    }
}

/// Whether a condition is one that servers take as constant, or a text may have one.
fn is_fixed(condition: &str) -> bool {
    CONDITIONS.iter().any(|part| condition.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let names = branched_names(text);
        let all = names.iter().flat_map(|name| {
            name.alternatives().map(|(one, other)| (one.join("."), other.join("."))).collect::<Vec<_>>()
        });
        let mut all: Vec<_> = all.filter(|(one, other)| one < other).collect();
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn values_in_branches_are_alternatives() {
        let posix_or_win = vec![("Posix".to_owned(), "Win".to_owned())];
        for text in [
            "if sys.platform == 'x':\n    t = Posix()\nelse:\n    t = Win()\n",
            "if sys.version_info >= (3, 9):\n    T = Posix\nelif 1:\n    T = Win\n",
            "t = Posix()\nif os.name == 'nt':\n    t = Win()\n",
            "t = Win() if sys.platform == 'win32' else Posix()\n",
            "class C:\n    def __init__(self):\n        if TYPE_CHECKING:\n            self.t = Posix()\n        else:\n            self.t = Win()\n",
            "def make():\n    if sys.platform == 'win32':\n        return Win()\n    return Posix()\n",
            "if os.name == 'nt':\n    def make() -> Win: ...\nelse:\n    def make() -> Posix: ...\n",
            "if os.name == 'nt':\n    class K(Win): ...\nelse:\n    class K(Posix): ...\n",
            "if sys.platform.startswith('win'):\n    t: Win\nelse:\n    t: Posix\n",
            "def f():\n    t = Win()\n    if sys.platform == 'win32':\n        return t\n    t = Posix()\n",
        ] {
            assert_eq!(pairs(text), posix_or_win, "{text}");
        }
    }

    #[test]
    fn hostile_texts_end() {
        let many = |part: &str| format!("import os\nos.name\ndef f():\n{}", part.repeat(20_000));
        for text in [
            many("    if os.name:\n        return A()\n    t = B()\n"),
            format!("t = f{} if os.name else 1\n", "()".repeat(100_000)),
            format!("t = {}1\n", "a if os.name else ".repeat(5_000)),
            (0..20_000).map(|n| format!("t = A{n}()\n")).collect::<String>() + "if os.name:\n    t = B()\n",
        ] {
            let found = branched_names(&text);
            assert!(found.iter().all(|name| name.meanings.len() <= MAX_MEANINGS));
        }
    }

    #[test]
    fn other_values_are_not() {
        for text in [
            "if x:\n    t = Posix()\nelse:\n    t = Win()\n",
            "if sys.platform == 'x':\n    t = Posix()\n    t = Win()\n",
            "if sys.platform == 'x':\n    t = Posix()\nelse:\n    u = Win()\n",
            "def f():\n    if os.name == 'nt':\n        t = Win()\ndef g():\n    t = Posix()\n",
        ] {
            assert_eq!(pairs(text), Vec::new(), "{text}");
        }
    }
}
