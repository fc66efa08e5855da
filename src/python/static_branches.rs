//! What a name may mean in branches of which a server reads only one:
//!
//! ```text
//! if sys.platform == "win32":
//!     terminal = Windows()
//! else:
//!     terminal = Posix()
//! ```
//!
//! Which conditions these are is in [`super::static_conditions`].

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use tree_sitter::Node;

use super::digest_cache::{DigestCache, MemorySize};
use super::static_conditions::{Knowledge, KnownImports, MaybeConstant, constants_of};
use super::syntax::{children, dotted, parse_now, preorder, text_of, unwrapped};
use crate::workspace::files::Document;

/// Longer strings in values are no types.
const MAX_TYPE_BYTES: usize = 200;

/// How often a byte of the text may be in a value: time and memory stay in proportion to the text.
const MAX_VISITS: usize = 16;

/// The branch of code that all servers read.
pub const NO_BRANCH: usize = 0;

/// What gets values in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bound {
    /// A variable of a function, given by its dotted name, or of the module (empty).
    Variable(String, String),
    /// An attribute of an object, or a variable of a class.
    Attribute(String),
    /// What a function returns or yields, given by its dotted name.
    Result(String),
    /// A class, by the functions and classes around it: what it inherits from.
    Class(String),
    /// An expression, by its offset.
    Expression(usize),
}

/// One of the values that something in a file gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueInBranch {
    /// The innermost branch in which it does: [`NO_BRANCH`] or a number of this file.
    pub branch: usize,
    /// The dotted name of the function around, empty in none.
    pub scope: String,
    /// What it may be.
    pub origins: Vec<ValueOrigin>,
}

/// The values of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValuesInBranches {
    /// By what gets them.
    pub values: BTreeMap<Bound, Vec<ValueInBranch>>,
    /// The dotted names of the functions with results in a class or a function, by their last names.
    methods: BTreeMap<String, BTreeSet<String>>,
    /// The names whose values servers may know.
    pub constants: Vec<MaybeConstant>,
    /// The branches, numbered from 1: the branch around each, and whether servers know the condition.
    branches: Vec<(usize, Arc<Knowledge>)>,
    /// Whether names of values are missing, because the text has values within values within values.
    pub is_cut: bool,
}

impl ValuesInBranches {
    /// What a dotted name means that is read in a function: the values of the variable, or of the attributes and the results of
    /// functions of this name.
    pub fn of<'v>(&'v self, scope: &str, name: &str) -> Vec<&'v [ValueInBranch]> {
        let mut found: Vec<&Vec<ValueInBranch>> = Vec::new();
        if let Some((_, last)) = name.rsplit_once('.') {
            found.extend(self.values.get(&Bound::Attribute(last.to_owned())));
            let methods = self.methods.get(last).into_iter().flatten();
            found.extend(methods.filter_map(|method| self.values.get(&Bound::Result(method.clone()))));
        } else {
            let scopes = std::iter::successors(Some(scope), |scope| {
                let outer = scope.rsplit_once('.').map_or("", |(outer, _)| outer);
                (!scope.is_empty()).then_some(outer)
            });
            let mut found_in = scopes.map(|scope| {
                let variable = Bound::Variable(scope.to_owned(), name.to_owned());
                let function = Bound::Result(inside(scope, name));
                [self.values.get(&variable), self.values.get(&function)]
            });
            found.extend(
                found_in.find(|found| found.iter().any(Option::is_some)).into_iter().flatten().flatten(),
            );
        }
        found.into_iter().map(Vec::as_slice).collect()
    }

    /// What is in the text of a document.
    #[must_use]
    pub fn of_document(document: &Document) -> Arc<Self> {
        static CACHE: DigestCache<ValuesInBranches> = DigestCache::new();
        CACHE.get(document.digest, || read(&document.text))
    }

    /// For each branch the innermost one around it, or itself, of which servers know the condition if they know the values of some
    /// names; [`NO_BRANCH`] for none.
    #[must_use]
    pub fn fixed_branches(&self, names: &[&BTreeSet<String>]) -> Vec<usize> {
        let mut fixed = vec![NO_BRANCH];
        for (at, (around, condition)) in self.branches.iter().enumerate() {
            fixed.push(if condition.is_given_by(names) { at + 1 } else { fixed[*around] });
        }
        fixed
    }

    /// The values of the arguments of a call, or of an expression with branches, by its offset.
    pub fn at(&self, offset: usize) -> impl Iterator<Item = &ValueInBranch> {
        self.values.get(&Bound::Expression(offset)).into_iter().flatten()
    }
}

impl MemorySize for ValuesInBranches {
    fn memory_bytes(&self) -> usize {
        let values = self.values.values().flatten().map(|value| 128 + 64 * value.origins.len());
        let constants = self.constants.iter().map(|constant| 64 + constant.value.memory_bytes());
        let branches = self.branches.iter().map(|(_, condition)| 32 + condition.memory_bytes());
        values.chain(constants).chain(branches).sum::<usize>() + 128 * self.values.len()
    }
}

/// What a value may be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueOrigin {
    /// What a dotted name means, or an object of it.
    Name(String),
    /// What a function with a dotted name returns. If there is none in the workspace, the arguments, which are the expression at an
    /// offset: `list(names)`.
    Call(String, usize),
    /// The expression at an offset.
    Expression(usize),
}

/// The dotted name of a definition in a function or class with a dotted name.
fn inside(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") }
}

fn read(text: &str) -> ValuesInBranches {
    let tree = parse_now(text);
    let root = tree.root_node();
    let imports = KnownImports::of(root, text);
    let constants = constants_of(root, text, &imports);
    let mut reader = Reader {
        text,
        imports,
        globals: BTreeSet::new(),
        nodes_left: MAX_VISITS * text.len(),
        found: ValuesInBranches { constants, ..ValuesInBranches::default() },
    };
    preorder(root, |node| {
        if matches!(node.kind(), "global_statement" | "nonlocal_statement") {
            reader.globals.extend(children(node).map(|name| text_of(name, text).to_owned()));
        }
        true
    });
    reader.read(root);
    reader.found
}

/// The code around a node.
#[derive(Debug, Clone)]
struct Around {
    branch: usize,
    /// The dotted name of the definition around.
    name: Rc<str>,
    /// That of the function around.
    function: Rc<str>,
    is_class: bool,
    /// Whether the result of the function around is annotated, which servers believe.
    is_annotated: bool,
    /// Whether it is an operand of `and` or `or`.
    is_in_boolean: bool,
}

struct Reader<'t> {
    text: &'t str,
    imports: KnownImports,
    /// Names that functions bind outside of themselves.
    globals: BTreeSet<String>,
    /// How many nodes of values may still be visited.
    nodes_left: usize,
    found: ValuesInBranches,
}

impl<'t> Reader<'t> {
    fn read(&mut self, root: Node<'t>) {
        let start = Around {
            branch: NO_BRANCH,
            name: "".into(),
            function: "".into(),
            is_class: false,
            is_annotated: false,
            is_in_boolean: false,
        };
        let mut pending = vec![(root, start)];
        while let Some((node, around)) = pending.pop() {
            self.bindings(node, &around);
            let name = || node.child_by_field_name("name").map_or("", |name| text_of(name, self.text));
            let mut inner = match node.kind() {
                "function_definition" => {
                    let name: Rc<str> = inside(&around.name, name()).into();
                    let is_annotated = node.child_by_field_name("return_type").is_some();
                    Around { function: name.clone(), name, is_class: false, is_annotated, ..around }
                }
                "class_definition" => {
                    Around { name: inside(&around.name, name()).into(), is_class: true, ..around }
                }
                _ => around,
            };
            let condition = self.condition(node).map(Arc::new);
            let outer = inner.branch;
            // The operands of `a or b or c` are those of its left operand, too.
            let is_in_boolean = inner.is_in_boolean;
            inner.is_in_boolean = node.kind() == "boolean_operator";
            let is_expression = matches!(node.kind(), "conditional_expression" | "boolean_operator");
            // The cases of a `match` are in a block.
            let is_match = node.kind() == "match_statement";
            let inner_parts = parts_of(node).flat_map(|child| {
                if is_match && child.kind() == "block" { children(child).collect() } else { vec![child] }
            });
            for child in inner_parts {
                if let Some(condition) = &condition {
                    inner.branch = self.new_branch(outer, condition.clone());
                    if is_expression && !is_in_boolean {
                        self.add(Bound::Expression(node.start_byte()), &inner, Some(child));
                    }
                }
                pending.push((child, inner.clone()));
                // What follows is the other branch.
                if condition.is_none()
                    && let Some(condition) = self.end_of_block(child)
                {
                    inner.branch = self.new_branch(inner.branch, Arc::new(condition));
                }
            }
        }
    }

    fn new_branch(&mut self, around: usize, condition: Arc<Knowledge>) -> usize {
        self.found.branches.push((around, condition));
        self.found.branches.len()
    }

    /// What decides whether a server reads some of the parts of a statement or an expression, and not others.
    fn condition(&self, node: Node<'_>) -> Option<Knowledge> {
        let of = |condition: Node<'_>| self.imports.knowledge(condition, self.text);
        let field = |node: Node<'_>, field| node.child_by_field_name(field).map(of).unwrap_or_default();
        let found = match node.kind() {
            "if_statement" => {
                let others = children(node).filter(|clause| clause.kind() == "elif_clause");
                let others = others.map(|clause| field(clause, "condition"));
                others.fold(field(node, "condition"), Knowledge::or)
            }
            "while_statement" => field(node, "condition"),
            "match_statement" => {
                let mut cursor = node.walk();
                let subjects = node.children_by_field_name("subject", &mut cursor);
                subjects.map(of).fold(Knowledge::default(), Knowledge::or)
            }
            "conditional_expression" => parts_of(node).nth(1).map(of).unwrap_or_default(),
            "boolean_operator" => of(node),
            _ => return None,
        };
        found.is_possible().then_some(found)
    }

    /// What decides whether a server reads the rest of a block after a statement.
    fn end_of_block(&self, statement: Node<'_>) -> Option<Knowledge> {
        match statement.kind() {
            "assert_statement" => {
                let test = children(statement).next()?;
                Some(self.imports.knowledge(test, self.text)).filter(Knowledge::is_possible)
            }
            "if_statement" => {
                let mut blocks = children(statement).flat_map(|part| {
                    let inner = part.child_by_field_name("consequence").or(part.child_by_field_name("body"));
                    if part.kind() == "block" { Some(part) } else { inner }
                });
                let may_end = blocks.any(|block| {
                    children(block).filter(|last| last.kind() != "comment").last().is_some_and(may_leave)
                });
                if may_end { self.condition(statement) } else { None }
            }
            _ => None,
        }
    }

    /// Adds the values that a node gives to something.
    fn bindings(&mut self, node: Node<'t>, around: &Around) {
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            "assignment" => self.bind(field("left"), [field("right"), field("type")], around),
            "augmented_assignment" | "for_statement" | "for_in_clause" => {
                self.bind(field("left"), [field("right"), None], around);
            }
            "named_expression" => self.bind(field("name"), [field("value"), None], around),
            "as_pattern" => self.bind(field("alias"), [children(node).next(), None], around),
            "default_parameter" | "typed_default_parameter" => {
                self.bind(field("name"), [field("type").or(field("value")), None], around);
            }
            "typed_parameter" => self.bind(children(node).next(), [field("type"), None], around),
            "return_statement" | "yield" if !around.is_annotated => {
                self.add(Bound::Result(around.function.to_string()), around, children(node).next());
            }
            "function_definition" => {
                let name = field("name").map_or("", |name| text_of(name, self.text));
                self.add(Bound::Result(inside(&around.name, name)), around, field("return_type"));
            }
            "class_definition" => {
                let name = field("name").map_or("", |name| text_of(name, self.text));
                self.add(Bound::Class(inside(&around.name, name)), around, field("superclasses"));
            }
            _ => {}
        }
    }

    /// Adds the values of a target; those of the parts of a pattern to each of its names.
    fn bind(&mut self, target: Option<Node<'t>>, values: [Option<Node<'t>>; 2], around: &Around) {
        let mut pending: Vec<(Node<'t>, [Option<Node<'t>>; 2])> =
            target.into_iter().map(|target| (target, values)).collect();
        while let Some((target, values)) = pending.pop() {
            let bound = match target.kind() {
                "identifier" => {
                    let name = text_of(target, self.text).to_owned();
                    if around.is_class {
                        Bound::Attribute(name)
                    } else if self.globals.contains(&name) {
                        Bound::Variable(String::new(), name)
                    } else {
                        Bound::Variable(around.function.to_string(), name)
                    }
                }
                "attribute" => {
                    let name = target.child_by_field_name("attribute");
                    Bound::Attribute(name.map_or("", |name| text_of(name, self.text)).to_owned())
                }
                "call" => continue,
                "subscript" => {
                    pending.extend(target.child_by_field_name("value").map(|of| (of, values)));
                    continue;
                }
                _ => {
                    let parts: Vec<Node<'t>> = parts_of(target).collect();
                    let given: Vec<Node<'t>> =
                        values[0].map(unwrapped).into_iter().flat_map(parts_of).collect();
                    let is_pair = values[0].is_some_and(|value| {
                        let is_list = matches!(value.kind(), "tuple" | "expression_list" | "list");
                        let is_star = |part: &Node<'_>| part.kind().starts_with("list_splat");
                        is_list && given.len() == parts.len() && !parts.iter().chain(&given).any(is_star)
                    });
                    let value_of = |at: usize| if is_pair { [Some(given[at]), None] } else { values };
                    pending.extend(parts.iter().enumerate().map(|(at, part)| (*part, value_of(at))));
                    continue;
                }
            };
            for value in values.into_iter().flatten() {
                self.add(bound.clone(), around, Some(value));
            }
        }
    }

    fn add(&mut self, bound: Bound, around: &Around, value: Option<Node<'_>>) {
        let Some(value) = value else { return };
        let mut pending = vec![(bound, value)];
        while let Some((bound, value)) = pending.pop() {
            let origins = self.origins(value, &mut pending);
            if origins.is_empty() {
                continue;
            }
            if let Bound::Result(function) = &bound
                && let Some((_, last)) = function.rsplit_once('.')
            {
                self.found.methods.entry(last.to_owned()).or_default().insert(function.clone());
            }
            let value = ValueInBranch { branch: around.branch, scope: around.function.to_string(), origins };
            self.found.values.entry(bound).or_default().push(value);
        }
    }

    /// What a value may be. Arguments of calls are `pending`.
    fn origins<'n>(&mut self, value: Node<'n>, pending: &mut Vec<(Bound, Node<'n>)>) -> Vec<ValueOrigin> {
        let mut found = Vec::new();
        // With whether it is a type, of which strings are parts.
        let mut parts = vec![(value, value.kind() == "type")];
        while let Some((node, is_type)) = parts.pop() {
            match self.nodes_left.checked_sub(1) {
                Some(left) => self.nodes_left = left,
                None => {
                    self.found.is_cut = true;
                    break;
                }
            }
            let field = |name| node.child_by_field_name(name);
            match node.kind() {
                "identifier" | "attribute" => {
                    let last = || field("attribute").map(|last| format!("_.{}", text_of(last, self.text)));
                    found.extend(dotted(node, self.text).or_else(last).map(ValueOrigin::Name));
                }
                "call" => {
                    let called = field("function").map(unwrapped);
                    let name = called.and_then(|called| dotted(called, self.text));
                    let arguments = field("arguments");
                    match (name, arguments) {
                        (Some(name), Some(arguments)) => {
                            found.push(ValueOrigin::Call(name, arguments.start_byte()));
                            pending.push((Bound::Expression(arguments.start_byte()), arguments));
                        }
                        _ => parts.extend(called.map(|called| (called, false))),
                    }
                }
                "conditional_expression" | "boolean_operator"
                    if node != value && self.condition(node).is_some() =>
                {
                    found.push(ValueOrigin::Expression(node.start_byte()));
                }
                "string" if is_type || is_of_cast(node, value, self.text) => {
                    let content = text_of(node, self.text);
                    if content.len() <= MAX_TYPE_BYTES {
                        let words = content.split(|c: char| c != '.' && c != '_' && !c.is_alphanumeric());
                        let words = words.filter(|word| !word.is_empty());
                        found.extend(words.map(|word| ValueOrigin::Name(word.to_owned())));
                    }
                }
                "string" | "comparison_operator" | "not_operator" => {}
                "keyword_argument" | "named_expression" => {
                    parts.extend(field("value").map(|value| (value, false)));
                }
                "assignment" => parts.extend(field("right").map(|value| (value, false))),
                "lambda" => parts.extend(field("body").map(|value| (value, false))),
                _ => parts.extend(children(node).map(|child| (child, is_type || child.kind() == "type"))),
            }
        }
        found.sort();
        found.dedup();
        found
    }
}

/// The named children of a node without comments.
fn parts_of<'t>(node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    children(node).filter(|child| child.kind() != "comment")
}

/// Whether a string is the type of a `cast`, whose arguments are read.
fn is_of_cast(string: Node<'_>, arguments: Node<'_>, text: &str) -> bool {
    arguments.kind() == "argument_list"
        && children(arguments).next() == Some(string)
        && text[..arguments.start_byte()].ends_with("cast")
}

/// Whether what follows a statement at the end of a branch may not run after it.
fn may_leave(last: Node<'_>) -> bool {
    match last.kind() {
        "expression_statement" => {
            children(last).next().is_some_and(|inner| matches!(inner.kind(), "call" | "await"))
        }
        "pass_statement"
        | "import_statement"
        | "import_from_statement"
        | "function_definition"
        | "class_definition"
        | "decorated_definition"
        | "delete_statement"
        | "global_statement" => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::static_conditions::names_given;

    /// Whether something in a text may be `Win` and `Posix` in different branches.
    fn has_alternatives(text: &str) -> bool {
        let found = read(text);
        let fixed = found.fixed_branches(&[&names_given(&found.constants, &BTreeSet::new())]);
        let leads = |value: &ValueInBranch, to: &str| {
            let mut pending = vec![value];
            let mut known = BTreeSet::new();
            while let Some(value) = pending.pop() {
                for one in &value.origins {
                    if !known.insert((&value.scope, one)) {
                        continue;
                    }
                    match one {
                        ValueOrigin::Name(name) | ValueOrigin::Call(name, _) if name == to => {
                            return true;
                        }
                        ValueOrigin::Name(name) => {
                            pending.extend(found.of(&value.scope, name).into_iter().flatten());
                        }
                        ValueOrigin::Call(name, arguments) => {
                            let before = pending.len();
                            pending.extend(found.of(&value.scope, name).into_iter().flatten());
                            if pending.len() == before && !["Win", "Posix"].contains(&name.as_str()) {
                                pending.extend(found.at(*arguments));
                            }
                        }
                        ValueOrigin::Expression(at) => pending.extend(found.at(*at)),
                    }
                }
            }
            false
        };
        found.values.values().any(|values| {
            let of = |name: &'static str| values.iter().filter(move |value| leads(value, name));
            of("Win").any(|win| of("Posix").any(|posix| fixed[win.branch] != fixed[posix.branch]))
        })
    }

    #[test]
    fn values_in_branches_are_alternatives() {
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
            "W = os.name == 'nt'\nif x and not W:\n    t = Win()\nelse:\n    t = Posix()\n",
            "if x:\n    t = 1\nelif os.name == 'nt':\n    t = Win()\nelse:\n    t = Posix()\n",
            "match sys.platform:\n    case 'win32':\n        t = Win()\n    case _:\n        t = Posix()\n",
            "t = os.name == 'nt' and Win() or Posix()\n",
            "f(Win() if os.name == 'nt' else x or Posix())\n",
            "a = Win()\nb = Posix()\nt = a if os.name == 'nt' else b\n",
            "if os.name == 'nt':\n    t, n = Win(), 1\nelse:\n    t, n = Posix(), 2\n",
            "if os.name == 'nt':\n    t: 'list[Win]'\nelse:\n    t = [Posix()]\n",
            "def w(): return Win()\nif os.name == 'nt':\n    t = w()\nelse:\n    t = Posix()\n",
            "t = Posix()\ndef f():\n    global t\n    if os.name == 'nt':\n        t = Win()\n",
            "class C:\n    t = Posix()\n    def f(self):\n        if os.name == 'nt':\n            self.t = Win()\n",
            "def f(t=Win() if os.name == 'nt' else Posix()): ...\n",
            "def f():\n    t = Win()\n    assert os.name != 'nt'\n    t = Posix()\n",
            "t = (\n    Win()  # win\n    if os.name == 'nt'\n    else Posix()\n)\n",
            "t = 1 if os.name == 'a' else Win() if os.name == 'nt' else Posix()\n",
        ] {
            assert!(has_alternatives(text), "{text}");
        }
    }

    #[test]
    fn other_values_are_not() {
        for text in [
            "if x:\n    t = Posix()\nelse:\n    t = Win()\n",
            "if sys.platform == 'x':\n    t = Posix()\n    t = Win()\n",
            "if sys.platform == 'x':\n    t = Posix()\nelse:\n    u = Win()\n",
            "if self.platform.startswith('x'):\n    t = Posix()\nelse:\n    t = Win()\n",
            "if os.name == 'nt':\n    t = Win(Posix())\nelse:\n    t = Win('Posix', Posix() == x)\n",
            "if os.name == 'nt':\n    t, u = Win(), Posix()\nelse:\n    t, u = Win(), Posix()\n",
            "def f():\n    if os.name == 'nt':\n        t = Win()\ndef g():\n    t = Posix()\n",
            "class C:\n    def f(self):\n        if os.name == 'nt':\n            return Win()\nclass D:\n    def f(self): return Posix()\n",
        ] {
            assert!(!has_alternatives(text), "{text}");
        }
    }

    #[test]
    fn hostile_texts_end() {
        let many = |part: &str| format!("import os\nos.name\ndef f():\n{}", part.repeat(20_000));
        for text in [
            many("    if os.name:\n        return A()\n    t = B()\n"),
            format!("t = f{} if os.name else 1\n", "()".repeat(100_000)),
            format!("t = {}1\n", "a if os.name else ".repeat(5_000)),
            format!("t = {}os.name\n", "a or ".repeat(20_000)),
            format!("t = {}1{}\n", "(a := f(".repeat(5_000), "))".repeat(5_000)),
            (0..20_000).map(|n| format!("t = A{n}()\n")).collect::<String>() + "if os.name:\n    t = B()\n",
        ] {
            let found = read(&text);
            let names: usize = found.values.values().flatten().map(|value| value.origins.len()).sum();
            assert!(names <= MAX_VISITS * text.len());
        }
    }
}
