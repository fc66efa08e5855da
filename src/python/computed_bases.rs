//! Classes with bases that only the program knows: what a call returns, a variable holds, or `*bases` unpacks. Such a class may be a
//! subclass of any class, unless its base comes from a package that does not know that class.

use std::collections::BTreeSet;
use std::sync::Arc;

use tree_sitter::Node;

use super::class_heads::ComputedHeads;
use super::classes::{Class, Classes, Subclasses};
use super::digest_cache::{DigestCache, MemorySize};
use super::lookup::{LookupResult, NameTarget, SourceFile, Trail};
use super::modules::ModuleOrigin;
use super::outline::{Imported, Span};
use super::passed_on::{is_class_passed_on, passes_types_on};
use super::roles::parameters_of;
use super::syntax::{children, dotted, parse, preorder, text_of};
use crate::path::AbsPath;
use crate::text::names::{is_in_name, names_of};
use crate::workspace::files::Document;

/// Functions of the standard library whose result is a new class, or no class.
const MAKES_NO_SUBCLASS: [&str; 7] =
    ["namedtuple", "NamedTuple", "TypedDict", "TypeVar", "getLogger", "Enum", "IntEnum"];

/// Functions that make a class whose bases are an argument.
const MAKERS: [&str; 3] = ["type", "new_class", "make_dataclass"];

/// How many imports are followed from the name of a base.
const MAX_IMPORTS: usize = 4;

/// A place where a class is defined that may be a subclass.
#[derive(Debug, Clone)]
pub struct ComputedClass {
    /// The file.
    pub document: Arc<Document>,
    /// The name of the class, or the call that makes it.
    pub span: Span,
}

/// Selects the files that may have classes with computed bases, or make classes by calls. `texts` are those of all files.
#[must_use]
pub fn files_with_computed_bases(heads: &[FileHeads]) -> Vec<usize> {
    let exported: BTreeSet<&str> =
        heads.iter().flat_map(|file| file.0.exported.iter().map(String::as_str)).collect();
    let is_selected = |FileHeads(file): &FileHeads| {
        let is_computed = |word: &String| exported.contains(word.as_str()) || file.computed.contains(word);
        file.is_open || file.words.iter().any(is_computed)
    };
    let selected = heads.iter().enumerate().filter(|(_, file)| is_selected(file));
    selected.map(|(index, _)| index).collect()
}

/// What [`files_with_computed_bases`] needs to know of one file.
#[derive(Debug)]
pub struct FileHeads(ComputedHeads);

impl FileHeads {
    /// From a file's text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(ComputedHeads::of(text))
    }
}

impl Classes<'_> {
    /// The classes of these files that may be subclasses of a class without being among those that were found. With a member, only
    /// those that define it.
    #[must_use]
    pub fn computed_subclasses(
        &self,
        of: &Class,
        found: &Subclasses,
        files: &[AbsPath],
        member: Option<&str>,
    ) -> Vec<ComputedClass> {
        let id = of.id();
        let mut computed = Vec::new();
        for file in files {
            for class in self.in_file(file) {
                let is_known =
                    || class.id() == id || found.classes.iter().any(|known| known.id() == class.id());
                if member.is_none_or(|member| class.has(member))
                    && !is_known()
                    && (self.inherits(&class, &id) || self.may_be_subclass(&class, of, &found.names))
                {
                    let (document, span) = (class.document().clone(), class.name_span().clone());
                    computed.push(ComputedClass { document, span });
                }
            }
            if member.is_none()
                && let Some(source) = self.source(file)
            {
                let made = made_classes(&source.document, &found.names);
                let document = &source.document;
                computed
                    .extend(made.into_iter().map(|span| ComputedClass { document: document.clone(), span }));
            }
        }
        computed
    }

    /// Whether a base of a class, or of one of its ancestors, is computed and may be `of` or a subclass of it. `names` are their
    /// names.
    #[must_use]
    pub fn may_be_subclass(&self, class: &Class, of: &Class, names: &BTreeSet<String>) -> bool {
        if class.is_plain() {
            return false;
        }
        let own = self.with_ancestors(class);
        own.into_iter().any(|class| {
            let Class { source, index } = &class;
            if !is_ours(&class) {
                return false;
            }
            let definition = class.definition();
            let mut other = definition.other_bases.iter();
            other.any(|base| self.may_yield(source, base, of, names))
                || definition.bases.iter().any(|base| {
                    let targets = self.lookup.base_targets(source, *index, base, &Trail::default());
                    // A class outside of the workspace may be in stubs that cannot be searched.
                    let last = base.rsplit('.').next().unwrap_or_default();
                    let may_be_it = || !is_ours(of) || self.may_be_imported(source, base, of);
                    let is_hidden = || targets.is_unknown() && names.contains(last) && may_be_it();
                    is_hidden()
                        || targets
                            .computed
                            .as_ref()
                            .is_some_and(|(source, span)| self.may_yield(source, span, of, names))
                })
        })
    }

    /// Whether a base that is not found may be a class of the workspace: its module makes names (`__getattr__`), or is not found
    /// and shares a part of its name with that of the class.
    fn may_be_imported(&self, source: &SourceFile, base: &str, of: &Class) -> bool {
        let first = base.split('.').next().unwrap_or_default();
        self.may_lead_to(source, first, &of.source.module.name, MAX_IMPORTS)
    }

    /// Whether what a module binds under a name may be a module of this name, or in it. `depth` limits how many imports are followed.
    fn may_lead_to(&self, source: &SourceFile, name: &str, own: &str, depth: usize) -> bool {
        let is_own = |word: &str| own.split('.').any(|part| part == word);
        let mut imports = source.outline.imports.iter();
        imports.any(|import| {
            let imported = match &import.what {
                Imported::Name(imported) if import.bound == name => Some(imported.as_str()),
                Imported::Star => Some(name),
                _ if import.bound == name => None,
                _ => return false,
            };
            let Some(module) = self.lookup.imported_module(source, import) else {
                return import.module.split('.').chain(imported).any(is_own);
            };
            let Some(from) = module.file().filter(|_| is_workspace(module.origin)) else { return false };
            let Ok(from) = self.lookup.source(&module, from) else { return false };
            let makes_names = || from.outline.children(None).any(|(_, one)| one.name == "__getattr__");
            makes_names()
                || depth > 0 && imported.is_some_and(|name| self.may_lead_to(&from, name, own, depth - 1))
        })
    }

    /// Whether the value of an expression may be a class or one of its subclasses. A function of a package does not know the
    /// classes of the workspace.
    fn may_yield(
        &self,
        source: &Arc<SourceFile>,
        expression: &Span,
        of: &Class,
        names: &BTreeSet<String>,
    ) -> bool {
        let text = source.document.text.get(expression.clone()).unwrap_or_default();
        if !is_ours(of) {
            return true;
        }
        if !is_of_workspace(source) {
            return false;
        }
        if names_of(text).any(|word| names.contains(word)) {
            return true;
        }
        let Some((function, _)) = text.split_once('(') else { return true };
        let is_name = |c: char| c == '.' || is_in_name(c);
        if function.is_empty() || !function.chars().all(is_name) {
            return true;
        }
        let last = function.rsplit('.').next().unwrap_or_default();
        if MAKES_NO_SUBCLASS.contains(&last) {
            return false;
        }
        let first = function.split('.').next().unwrap_or_default();
        let scope = source.outline.enclosing(expression.start);
        let reached = self.lookup.dotted(source, scope, first, &Trail::default());
        let is_foreign = |one: &LookupResult| match &one.found {
            NameTarget::Definition { source, .. } => source.module.origin == ModuleOrigin::Environment,
            NameTarget::Module(module) | NameTarget::Import { module: Some(module), .. } => {
                module.origin == ModuleOrigin::Environment
            }
            NameTarget::Import { source, span, module: None } => {
                let import = source.outline.imports.iter().find(|import| import.bound_span == *span);
                import.is_some_and(|import| {
                    let top = import.module.split('.').next().unwrap_or_default();
                    import.level == 0 && self.lookup.roots.find(self.lookup.files, top).is_empty()
                })
            }
        };
        reached.is_empty() || !reached.iter().all(is_foreign)
    }
}

/// Whether a class is one of the workspace's.
fn is_ours(class: &Class) -> bool {
    is_of_workspace(&class.source)
}

fn is_of_workspace(source: &SourceFile) -> bool {
    is_workspace(source.module.origin)
}

const fn is_workspace(origin: ModuleOrigin) -> bool {
    matches!(origin, ModuleOrigin::Workspace | ModuleOrigin::ExtraPath)
}

/// Whether a base of a class may be computed from the class of an object: `type(x)`, `x.__class__`, or the first parameter of a method
/// around it. All other computed bases are classes that were passed on as objects.
#[must_use]
pub fn may_take_type_of_object(class: &ComputedClass) -> bool {
    let (document, text) = (&class.document, &class.document.text);
    if passes_types_on(text, document.digest) {
        return true;
    }
    let tree = parse(text);
    let name = tree.root_node().descendant_for_byte_range(class.span.start, class.span.end);
    let above: Vec<Node<'_>> = std::iter::successors(name, Node::parent).collect();
    let made = above.iter().find_map(|node| match node.kind() {
        "class_definition" => node.child_by_field_name("superclasses"),
        "call" => node.child_by_field_name("arguments"),
        _ => None,
    });
    let Some(bases) = made else { return true };
    let methods = above.iter().filter(|node| node.kind() == "function_definition" && is_method(**node));
    let receivers: BTreeSet<String> = methods
        .filter_map(|method| method.child_by_field_name("name"))
        .filter_map(|name| parameters_of(text, name.start_byte())?.into_iter().next())
        .map(|(name, _)| name)
        .collect();
    let mut is_there = false;
    preorder(bases, |node| {
        let name = text_of(node, text);
        is_there |=
            node.kind() == "identifier" && (matches!(name, "type" | "__class__") || receivers.contains(name));
        !is_there
    });
    is_there || receivers.iter().any(|name| is_class_passed_on(text, document.digest, name))
}

/// Whether a function is defined in the body of a class.
fn is_method(function: Node<'_>) -> bool {
    let mut above = std::iter::successors(function.parent(), Node::parent);
    above
        .find(|node| !matches!(node.kind(), "decorated_definition" | "block"))
        .is_some_and(|node| node.kind() == "class_definition")
}

/// A call that makes a class.
#[derive(Debug, Clone)]
struct ClassCall {
    /// What is called.
    function: Span,
    /// The last parts of the names of the bases; `None` if they are not written there.
    bases: Option<Vec<String>>,
}

impl MemorySize for Vec<ClassCall> {
    fn memory_bytes(&self) -> usize {
        let names = self.iter().flat_map(|call| call.bases.iter().flatten());
        size_of::<Self>()
            + self.len() * size_of::<ClassCall>()
            + names.map(|name| name.len() + size_of::<String>()).sum::<usize>()
    }
}

/// The calls that make a class whose bases have one of the names, or are not written there.
fn made_classes(document: &Document, names: &BTreeSet<String>) -> Vec<Span> {
    static CALLS: DigestCache<Vec<ClassCall>> = DigestCache::new();
    let calls = CALLS.get(document.digest, || class_calls(&document.text));
    let may_be = |call: &&ClassCall| {
        call.bases.as_ref().is_none_or(|bases| bases.iter().any(|base| names.contains(base)))
    };
    calls.iter().filter(may_be).map(|call| call.function.clone()).collect()
}

fn class_calls(text: &str) -> Vec<ClassCall> {
    let mut found = Vec::new();
    if !text.contains(", (") && !MAKERS.iter().any(|maker| text.contains(&format!("{maker}("))) {
        return found;
    }
    preorder(parse(text).root_node(), |node| {
        if node.kind() == "call"
            && let Some(bases) = bases_argument(node, text)
        {
            let last = |part| dotted(part, text)?.rsplit('.').next().map(str::to_owned);
            let bases = if bases.kind() == "tuple" { children(bases).map(last).collect() } else { None };
            let function = node.child_by_field_name("function").unwrap_or(node).byte_range();
            found.push(ClassCall { function, bases });
        }
        true
    });
    found
}

/// The bases that are passed to a function that makes a class.
fn bases_argument<'t>(call: Node<'t>, text: &str) -> Option<Node<'t>> {
    let function = dotted(call.child_by_field_name("function")?, text)?;
    let last = function.rsplit('.').next().unwrap_or_default();
    let arguments = call.child_by_field_name("arguments")?;
    let all: Vec<Node<'t>> = children(arguments).collect();
    let keyword = all.iter().find(|one| {
        let name = one.child_by_field_name("name").map(|name| text_of(name, text));
        one.kind() == "keyword_argument" && name == Some("bases")
    });
    if let Some(keyword) = keyword.filter(|_| MAKERS.contains(&last)) {
        return keyword.child_by_field_name("value");
    }
    let positional: Vec<Node<'t>> =
        all.into_iter().filter(|one| !matches!(one.kind(), "keyword_argument" | "comment")).collect();
    match (last, positional.as_slice()) {
        // `self.type` is a member of an object.
        ("type", [_, bases, _]) if matches!(function.as_str(), "type" | "builtins.type") => Some(*bases),
        ("new_class", [_, bases, ..]) => Some(*bases),
        // A metaclass is called as `type` is.
        (_, [name, bases, namespace])
            if bases.kind() == "tuple"
                && matches!(name.kind(), "string" | "identifier" | "attribute")
                && matches!(namespace.kind(), "dictionary" | "identifier" | "call") =>
        {
            let is_names = children(*bases).all(|one| dotted(one, text).is_some());
            is_names.then_some(*bases)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::modules::ImportRoots;
    use crate::workspace::files::{Files as _, MemoryFiles};

    fn path(name: &str) -> AbsPath {
        AbsPath::new(name).unwrap()
    }

    /// The names of the classes below `Base` of `/w/m.py`, and the texts of those that may be.
    fn below(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let memory = MemoryFiles::new(files.iter().copied());
        let roots = ImportRoots::of_folder(path("/w"));
        let classes = Classes::new(&memory, &roots);
        let base = classes.class_named(&path("/w/m.py"), "Base").unwrap();
        let all: Vec<AbsPath> = files.iter().map(|(name, _)| path(name)).collect();
        let found = classes.subclasses(&base, &|_| all.clone());
        let heads: Vec<FileHeads> = files.iter().map(|(_, text)| FileHeads::of(text)).collect();
        let selected: Vec<AbsPath> =
            files_with_computed_bases(&heads).into_iter().map(|index| all[index].clone()).collect();
        let computed = classes.computed_subclasses(&base, &found, &selected, None);
        let text = |one: &ComputedClass| one.document.text[one.span.clone()].to_owned();
        (
            found.classes.iter().map(|class| class.name().to_owned()).collect(),
            computed.iter().map(text).collect(),
        )
    }

    #[test]
    fn classes_that_may_be_subclasses() {
        for (program, known, computed) in [
            ("def make(): return Base\nB = make()\nclass C(B): ...\n", &[][..], &["C"][..]),
            ("def use(self, x): return self.type(x, self, 1)\n", &[], &[]),
            ("def make(x): return type(x, x.bases, {})\n", &[], &["type"]),
            ("class X: ...\nB = Base if x else X\nclass C(B): ...\n", &["C"], &[]),
            ("B = Base if x else make()\nclass C(B): ...\n", &["C"], &[]),
            ("bases = (Base,)\nclass C(*bases): ...\n", &[], &["C"]),
            ("C = type('C', (Base,), {})\nD = type('D', (dict,), {})\n", &[], &["type"]),
            ("def f(bases): return type('C', bases, {})\n", &[], &["type"]),
            ("C = Meta('C', (Base,), {})\n", &[], &["Meta"]),
            ("class C(with_metaclass(Meta, Base)): ...\n", &[], &["C"]),
            ("if x:\n    class B: ...\nelse:\n    B = Base\nclass C(B): ...\n", &["C"], &[]),
            ("class B: ...\nB = decorate(B)\nclass C(B): ...\n", &[], &["C"]),
            ("def mixed(B):\n    class C(B): ...\n    return C\n", &[], &["C"]),
            ("def mixed(\n    Base,\n):\n    class C(Base): ...\n", &[], &["C"]),
            ("def mixed():\n    class C(Base): ...\n", &["C"], &[]),
            ("for B in (Base, int):\n    class C(B): ...\n", &[], &["C"]),
            ("if (B := Base):\n    class C(B): ...\n", &["C"], &[]),
            ("B = (\n    Base if x\n    else int\n)\nclass C(B): ...\n", &[], &["C"]),
            ("A, B = Base, int\nclass C(B): ...\n", &[], &["C"]),
            ("B = getattr(sys, 'x')\nclass C(B): ...\nclass D(C): ...\n", &[], &["C", "D"]),
            ("from collections import namedtuple\nclass C(namedtuple('C', 'a b')): ...\n", &[], &[]),
            ("from orm import declarative\nB = declarative()\nclass C(B): ...\n", &[], &[]),
            ("from orm import Db\ndb = Db()\nclass C(db.Model): ...\n", &[], &[]),
            ("db = make()\nclass C(db.Model): ...\n", &[], &["C"]),
            ("from orm import declarative\nB = declarative(Base)\nclass C(B): ...\n", &[], &["C"]),
        ] {
            let text = format!("class Base: ...\n{program}");
            let expected = (known.to_vec(), computed.to_vec());
            let found = below(&[("/w/m.py", &text)]);
            let found =
                (found.0.iter().map(String::as_str).collect(), found.1.iter().map(String::as_str).collect());
            assert_eq!(expected, found, "{program}");
        }
    }

    #[test]
    fn the_standard_library_knows_no_class_of_the_workspace() {
        let files = MemoryFiles::new([
            ("/w/m.py", "from types import Simple\nclass Base: ...\nclass C(Simple): ...\n"),
            ("/lib/types.py", "Simple = type(sys.implementation)\n"),
        ]);
        let roots = ImportRoots::of_folder(path("/w")).with_stdlib(path("/lib"));
        let classes = Classes::new(&files, &roots);
        let base = classes.class_named(&path("/w/m.py"), "Base").unwrap();
        let found = classes.subclasses(&base, &|_| vec![path("/w/m.py")]);
        assert!(classes.computed_subclasses(&base, &found, &[path("/w/m.py")], None).is_empty());
    }

    #[test]
    fn bases_that_may_be_the_class_of_an_object() {
        let may_take = |text: &str, at: &str| {
            let memory = MemoryFiles::new([("/w/m.py", text)]);
            let document = memory.read(&path("/w/m.py")).unwrap();
            let start = text.find(at).unwrap();
            may_take_type_of_object(&ComputedClass { document, span: start..start + at.len() })
        };
        for text in [
            "def f(base):\n    class C(base): ...\n",
            "class A:\n    @classmethod\n    def f(cls, base):\n        cls.x = base\n        class C(base): ...\n",
            "class C(make(1)): ...\n",
        ] {
            assert!(!may_take(text, "C("), "{text}");
        }
        for text in [
            "class A:\n    @classmethod\n    def f(me):\n        class C(me): ...\n",
            "class A:\n    @classmethod\n    def f(me):\n        base = me\n        class C(base): ...\n",
            "class A:\n    def f(self):\n        class C(type(self)): ...\n",
            "def f(x):\n    base = x.__class__\n    class C(base): ...\n",
        ] {
            assert!(may_take(text, "C("), "{text}");
        }
        assert!(may_take("class A:\n    def f(self): return type('C', (self.x,), {})\n", "type"));
        assert!(!may_take("def f(bases): return type('C', bases, {}).make()\n", "type"));
    }

    #[test]
    fn a_computed_base_may_be_in_another_file() {
        let files = [
            ("/w/m.py", "class Base: ...\n"),
            ("/w/made.py", "import m\ndef make(): return m.Base\nMade = make()\n"),
            ("/w/use.py", "from made import Made\nclass C(Made): ...\nclass D(int): ...\n"),
            (
                "/w/try.py",
                "try:\n    from m import Base as B\nexcept ImportError:\n    B = object\nclass E(B): ...\n",
            ),
            (
                "/w/two.py",
                "if x:\n    from m import Base as B\nelse:\n    from made import Other as B\nclass F(B): ...\n",
            ),
            (
                "/w/turn.py",
                "if x:\n    from turn2 import B\nelse:\n    from m import Base as B\nclass G(B): ...\n",
            ),
            ("/w/turn2.py", "class B: ...\n"),
        ];
        assert_eq!(below(&files), (["E", "G", "F"].map(str::to_owned).to_vec(), vec!["C".to_owned()]));
    }

    #[test]
    fn forms_of_typing_under_other_names() {
        let text = "from typing import Protocol as P\nimport typing as t\nQ = t.Protocol\nclass A(P): ...\n\
                    class B(t.Protocol[int]): ...\nclass C(Q): ...\nclass D(A): ...\nclass E(A, P): ...\n";
        let roots = ImportRoots::of_folder(path("/w"));
        for files in [
            vec![("/w/m.py", text)],
            vec![("/w/m.py", text), ("/w/typing.py", "class Protocol: ...\n")],
            vec![("/w/m.py", text), ("/w/typing.pyi", "Protocol: _SpecialForm\n")],
        ] {
            let memory = MemoryFiles::new(files);
            let classes = Classes::new(&memory, &roots);
            let is_protocol = |name: &str| {
                let class = classes.class_named(&path("/w/m.py"), name).unwrap();
                (classes.is_protocol(&class), classes.structural_forms(&class).any())
            };
            let found = ["A", "B", "C", "D", "E"].map(is_protocol);
            assert_eq!(found, [(true, true), (true, true), (true, true), (false, false), (true, true)]);
        }
    }

    #[test]
    fn bases_of_the_standard_library_without_its_stubs() {
        for (text, is_structural) in [
            ("class C(type): ...", false),
            ("import unittest as u\nclass C(u.TestCase): ...", false),
            ("from collections import OrderedDict\nclass B(OrderedDict): ...\nclass C(B): ...", false),
            ("from typing import Hashable\nclass C(Hashable): ...", true),
            ("from lib import Base\nclass C(Base): ...", true),
            ("from lib import *\nclass C(type): ...", true),
            ("class C(Missing): ...", true),
        ] {
            let files = MemoryFiles::new([("/w/m.py", text)]);
            let roots = ImportRoots::of_folder(path("/w"));
            let classes = Classes::new(&files, &roots);
            let class = classes.class_named(&path("/w/m.py"), "C").unwrap();
            assert_eq!(classes.structural_forms(&class).any(), is_structural, "{text}");
        }
    }
}
