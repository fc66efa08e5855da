//! Finds classes, their base classes and their subclasses.
//!
//! Imports and aliases are followed by syntax; types are not inferred. A class is identified by its module and its qualified
//! name, so that a class and its declaration in a stub are the same class.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::bases::{ClassRef, is_typing_form};
use super::class_heads::{ClassHeads, HEADS};
use super::lookup::{Lookup, NameTarget, SourceFile, Trail};
use super::modules::{ImportRoots, Module, ModuleOrigin};
use super::outline::{Definition, DefinitionKind, Imported, Span, VariableValue};
use super::stdlib::{is_builtin, is_stdlib};
use crate::path::AbsPath;
use crate::text::names::whole_names;
use crate::text::names::{is_in_name, names_of};
use crate::workspace::files::{Document, Files};

/// The classes of `enum`.
const ENUMERATIONS: [&str; 6] = ["Enum", "IntEnum", "StrEnum", "ReprEnum", "Flag", "IntFlag"];

/// The most classes that a search for subclasses returns.
const MAX_SUBCLASSES: usize = 4_000;

/// Finds classes; each file is read and parsed once.
pub struct Classes<'f> {
    pub(super) lookup: Lookup<'f>,
    sources: Mutex<BTreeMap<AbsPath, Option<Arc<SourceFile>>>>,
}

/// A class.
#[derive(Debug, Clone)]
pub struct Class {
    pub(super) source: Arc<SourceFile>,
    pub(super) index: usize,
}

/// The identity of a class: the module, or the file if the module has no name, and the qualified name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClassId {
    /// The dotted name of the module.
    pub module: String,
    /// The qualified name in it.
    pub name: String,
}

/// A definition at a location.
#[derive(Debug, Clone)]
pub struct DefinitionInfo {
    /// The kind.
    pub kind: DefinitionKind,
    /// Its last name.
    pub name: String,
    /// The class that it is a member of.
    pub class: Option<Class>,
    /// Its qualified name, from the module down.
    pub qualname: Vec<String>,
    /// The decorators as dotted names, without arguments; empty for any other expression.
    pub decorators: Vec<String>,
}

/// The forms of types whose names do not decide what fits them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StructuralForms {
    /// A protocol, which every class with its members fits.
    pub protocol: bool,
    /// A dictionary with known keys, which can be unpacked into the arguments of a call.
    pub typed_dict: bool,
}

impl StructuralForms {
    /// All that cannot be excluded.
    pub const ANY: Self = Self { protocol: true, typed_dict: true };

    /// Whether it may be one of them.
    #[must_use]
    pub const fn any(self) -> bool {
        self.protocol || self.typed_dict
    }

    /// What one or the other may be.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self { protocol: self.protocol || other.protocol, typed_dict: self.typed_dict || other.typed_dict }
    }
}

/// The classes that inherit from a class.
#[derive(Debug, Default)]
pub struct Subclasses {
    /// Ordered by file and position.
    pub classes: Vec<Class>,
    /// The names of the class and of these classes, and their aliases.
    pub names: BTreeSet<String>,
    /// The names of classes with which one of these is registered as a virtual subclass by a call.
    pub registrars: BTreeSet<String>,
    /// Whether the search reached a limit, so that classes may be missing.
    pub is_cut: bool,
}

/// The direct bases of a class.
#[derive(Debug, Default)]
pub struct DirectBases {
    /// In their order.
    pub classes: Vec<Class>,
    /// Those that cannot be found.
    pub unknown: Vec<UnfoundBase>,
}

/// A base that cannot be found.
#[derive(Debug, Clone)]
pub struct UnfoundBase {
    /// As it is written.
    pub text: String,
    /// The offset of the last name, if it is a dotted name.
    pub name: Option<usize>,
}

impl Class {
    pub(super) fn definition(&self) -> &Definition {
        &self.source.outline.definitions[self.index]
    }

    /// Its identity.
    #[must_use]
    pub fn id(&self) -> ClassId {
        let name = self.source.outline.names(self.index).join(".");
        let module = &self.source.module.name;
        let module = if module.is_empty() { self.source.document.path.to_string() } else { module.clone() };
        ClassId { module, name }
    }

    /// Its own name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition().name
    }

    /// The file.
    #[must_use]
    pub fn document(&self) -> &Arc<Document> {
        &self.source.document
    }

    /// Its name token.
    #[must_use]
    pub fn name_span(&self) -> &Span {
        &self.definition().name_span
    }

    /// The name tokens of its own members with a name.
    pub fn members<'c>(&'c self, name: &'c str) -> impl Iterator<Item = &'c Span> {
        let children = self.source.outline.children(Some(self.index));
        children.filter(move |(_, member)| member.name == name).map(|(_, member)| &member.name_span)
    }

    /// Whether it has an own member with a name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.members(name).next().is_some()
    }

    /// The names of its own members.
    #[must_use]
    pub fn member_names(&self) -> BTreeSet<&str> {
        self.source.outline.children(Some(self.index)).map(|(_, member)| member.name.as_str()).collect()
    }

    /// The signature of its own function with a name, from `def` to the colon.
    #[must_use]
    pub fn signature_of(&self, name: &str) -> Option<&str> {
        let mut children = self.source.outline.children(Some(self.index));
        let (_, member) = children.find(|(_, member)| member.name == name)?;
        self.source.document.text.get(member.signature.clone()?)
    }

    /// The whole statement, without decorators.
    #[must_use]
    pub fn span(&self) -> &Span {
        &self.definition().span
    }

    /// Whether it is `object`, from which every class inherits.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.name() == "object" && self.source.module.name == "builtins"
    }

    /// The bases that are dotted names, as they are written.
    #[must_use]
    pub fn bases(&self) -> &[String] {
        &self.definition().bases
    }

    /// Where the last name of a dotted name is written in the head.
    fn offset_in_head(&self, dotted: &str) -> Option<usize> {
        let class = self.definition();
        let start = class.name_span.end;
        let head = self.source.document.text.get(start..class.signature.as_ref()?.end)?;
        let last = dotted.rsplit('.').next()?;
        let is_part = |c: char| c == '.' || is_in_name(c);
        let mut found = head.match_indices(dotted).filter(|(at, _)| {
            !head[..*at].ends_with(is_part) && !head[at + dotted.len()..].starts_with(is_part)
        });
        found.next().map(|(at, _)| start + at + dotted.len() - last.len())
    }

    /// Whether a base is written with this last name.
    #[must_use]
    pub fn is_derived_from(&self, name: &str) -> bool {
        self.bases().iter().any(|base| base.rsplit('.').next() == Some(name))
    }

    /// Whether a decorator has this last name.
    #[must_use]
    pub fn is_decorated(&self, name: &str) -> bool {
        self.definition().is_decorated(name)
    }

    /// Whether its body may make attributes of the keyword arguments that it is given: `self.__dict__.update(values)`,
    /// `setattr(self, name, value)`. Decided by words alone, so that "yes" can be wrong.
    #[must_use]
    pub fn may_set_keywords(&self) -> bool {
        let body = self.document().text.get(self.span().clone()).unwrap_or_default();
        body.contains("**") && ["__dict__", "vars(", "setattr("].iter().any(|setter| body.contains(setter))
    }

    /// Whether it has neither bases nor decorators, so that its constructor is the one that it defines.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let class = self.definition();
        class.bases.is_empty() && class.other_bases.is_empty() && class.decorators.is_empty()
    }
}

impl<'f> Classes<'f> {
    /// A search over these files.
    #[must_use]
    pub fn new(files: &'f dyn Files, roots: &'f ImportRoots) -> Self {
        Self { lookup: Lookup::for_all_classes(files, roots), sources: Mutex::default() }
    }

    pub(super) fn source(&self, file: &AbsPath) -> Option<Arc<SourceFile>> {
        if let Some(known) = self.sources.lock().unwrap_or_else(PoisonError::into_inner).get(file) {
            return known.clone();
        }
        let source = self.read(file);
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).insert(file.clone(), source.clone());
        source
    }

    fn read(&self, file: &AbsPath) -> Option<Arc<SourceFile>> {
        let roots = self.lookup.roots;
        let name = roots.name_of_any(file).unwrap_or_default();
        let module = roots
            .find(self.lookup.files, &name)
            .into_iter()
            .find(|module| module.source.as_ref() == Some(file) || module.stub.as_ref() == Some(file));
        let module = module.unwrap_or_else(|| {
            // A server may have stubs outside of every root.
            let is_stub = file.as_str().ends_with(".pyi");
            let origin = if is_stub { ModuleOrigin::Stubs } else { ModuleOrigin::Workspace };
            Module { name, source: Some(file.clone()), stub: None, folder: None, origin }
        });
        self.lookup.source(&module, file).ok()
    }

    /// Whether a file says `import pkg.mod` of the module `pkg.mod`, or imports one below it in this way.
    #[must_use]
    pub fn imports_dotted(&self, file: &AbsPath, module: &str) -> bool {
        let imports = self.source(file).map(|source| source.outline.clone());
        imports.iter().flat_map(|outline| &outline.imports).any(|import| {
            let rest = import.module.strip_prefix(module);
            import.what == Imported::Top && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    /// The definition whose name begins at an offset of a file.
    #[must_use]
    pub fn defined_at(&self, file: &AbsPath, offset: usize) -> Option<DefinitionInfo> {
        let source = self.source(file)?;
        let outline = &source.outline;
        let index = outline.definitions.iter().position(|found| found.name_span.start == offset)?;
        let definition = &outline.definitions[index];
        let class = definition.parent.filter(|&at| outline.definitions[at].kind == DefinitionKind::Class);
        Some(DefinitionInfo {
            kind: definition.kind,
            name: definition.name.clone(),
            class: class.map(|index| Class { source: source.clone(), index }),
            qualname: outline.names(index),
            decorators: definition.decorators.clone(),
        })
    }

    /// The names by which the function is called that has a parameter at an offset of a file; a class by its constructor, too.
    #[must_use]
    pub fn callees_with_parameter(&self, file: &AbsPath, offset: usize) -> Vec<String> {
        let Some(source) = self.source(file) else { return Vec::new() };
        let all = &source.outline.definitions;
        let has_it = |found: &&Definition| {
            found.kind.is_function() && found.signature.as_ref().is_some_and(|span| span.contains(&offset))
        };
        let Some(function) = all.iter().rev().find(has_it) else { return Vec::new() };
        let is_constructor = ["__init__", "__new__"].contains(&function.name.as_str());
        let class = function.parent.filter(|_| is_constructor).map(|class| all[class].name.clone());
        vec![class.unwrap_or_else(|| function.name.clone())]
    }

    /// The class whose name begins at an offset of a file.
    #[must_use]
    pub fn class_at(&self, file: &AbsPath, offset: usize) -> Option<Class> {
        let source = self.source(file)?;
        let index = source
            .outline
            .definitions
            .iter()
            .position(|found| found.kind == DefinitionKind::Class && found.name_span.start == offset)?;
        Some(Class { source, index })
    }

    /// The classes of a file.
    #[must_use]
    pub fn in_file(&self, file: &AbsPath) -> Vec<Class> {
        let Some(source) = self.source(file) else { return Vec::new() };
        let all = source.outline.definitions.iter().enumerate();
        all.filter(|(_, definition)| definition.kind == DefinitionKind::Class)
            .map(|(index, _)| Class { source: source.clone(), index })
            .collect()
    }

    /// The innermost class whose body is around an offset of a file.
    #[must_use]
    pub fn around(&self, file: &AbsPath, offset: usize) -> Option<Class> {
        let source = self.source(file)?;
        let index = source.outline.definitions.iter().rposition(|definition| {
            definition.kind == DefinitionKind::Class
                && definition.body.as_ref().is_some_and(|body| body.contains(&offset))
        })?;
        Some(Class { source, index })
    }

    /// The classes that a class inherits from, in Python's method resolution order.
    #[must_use]
    pub fn ancestors(&self, class: &Class) -> Vec<Class> {
        let order = self.lookup.linearize(&class.source, class.index, &Trail::default());
        order.into_iter().skip(1).map(|(source, index)| Class { source, index }).collect()
    }

    /// A class, then those that it inherits from: the order in which Python looks a member up.
    pub fn with_ancestors(&self, class: &Class) -> impl Iterator<Item = Class> + use<> {
        std::iter::once(class.clone()).chain(self.ancestors(class))
    }

    /// Whether a class is, or inherits from, another class.
    #[must_use]
    pub fn inherits(&self, class: &Class, from: &ClassId) -> bool {
        class.id() == *from || self.ancestors(class).iter().any(|above| above.id() == *from)
    }

    /// The direct bases of a class, without `object` and forms of `typing`, such as `Protocol`: the server decides whether these are
    /// classes.
    #[must_use]
    pub fn direct_bases(&self, class: &Class) -> DirectBases {
        let Class { source, index } = class;
        let definition = class.definition();
        let bases = self.lookup.direct_bases(source, *index, &Trail::default());
        let classes = bases.into_iter().map(|(source, index)| Class { source, index });
        let mut unknown = self.lookup.unknown_bases(source, *index);
        unknown.retain(|base| base != "object");
        let mut unknown: Vec<UnfoundBase> =
            unknown.into_iter().map(|text| UnfoundBase { name: class.offset_in_head(&text), text }).collect();
        let computed =
            definition.other_bases.iter().filter_map(|base| source.document.text.get(base.clone()));
        let first_line = |base: &str| base.lines().next().unwrap_or_default().to_owned();
        unknown.extend(computed.map(|base| UnfoundBase { text: first_line(base), name: None }));
        DirectBases {
            classes: classes
                .filter(|base| !base.is_object() && !is_typing_form(&base.source, base.index))
                .collect(),
            unknown,
        }
    }

    /// Whether objects of a class are classes.
    #[must_use]
    pub fn is_metaclass(&self, class: &Class) -> bool {
        self.with_ancestors(class).into_iter().any(|class| class.is_derived_from("type"))
    }

    /// Whether a class, or one above, names a metaclass other than `ABCMeta`: one that may do anything with its classes.
    #[must_use]
    pub fn has_metaclass(&self, class: &Class) -> bool {
        let is_named = |class: &Class| {
            let metaclass = class.definition().metaclass.as_deref();
            metaclass.is_some_and(|name| name.rsplit('.').next() != Some("ABCMeta"))
        };
        self.with_ancestors(class).into_iter().any(|class| is_named(&class))
    }

    /// Whether a class is an enumeration of the standard library, whose members are no parameters of a constructor.
    #[must_use]
    pub fn is_enumeration(&self, class: &Class) -> bool {
        let is_of_enum = |class: &Class, base: &String| {
            let last = base.rsplit('.').next().unwrap_or_default();
            ENUMERATIONS.contains(&last) && is_of_stdlib(class, base)
        };
        let own = self.with_ancestors(class);
        own.into_iter().any(|class| class.definition().bases.iter().any(|base| is_of_enum(&class, base)))
    }

    /// Whether a class is an enumeration that has a member, which Python allows no subclass of.
    #[must_use]
    pub fn is_closed_enumeration(&self, class: &Class) -> bool {
        let mut children = class.source.outline.children(Some(class.index)).map(|(_, child)| child);
        let is_literal = |value: &VariableValue| value.names.is_empty() && value.computed.is_none();
        let is_member = |child: &Definition| {
            // Of a class below another enumeration, the outline does not know that they are members.
            matches!(child.kind, DefinitionKind::EnumMember | DefinitionKind::Field)
                && !child.name.starts_with('_')
                && child.branch.is_none()
                && is_literal(&child.value)
        };
        // Both take members away.
        let statement = class.document().text.get(class.span().clone()).unwrap_or_default();
        children.any(is_member)
            && !["_ignore_", "del"].iter().any(|word| whole_names(statement, word).next().is_some())
            && self.is_enumeration(class)
    }

    /// Whether a class is a protocol.
    #[must_use]
    pub fn is_protocol(&self, class: &Class) -> bool {
        self.has_form(class, "Protocol")
    }

    /// Whether a base of a class is this form of `typing`, also under another name.
    #[must_use]
    pub fn has_form(&self, class: &Class, form: &str) -> bool {
        let has = || self.lookup.typing_forms(&class.source, class.index).iter().any(|found| found == form);
        class.is_derived_from(form) || !class.bases().is_empty() && has()
    }

    /// Which structural types a class may be. A base that is not found may be anything, unless it is of the standard library, of
    /// which not every server brings the stubs.
    #[must_use]
    pub fn structural_forms(&self, class: &Class) -> StructuralForms {
        self.forms_of(class, &is_of_stdlib)
    }

    /// The same of a class in an installed package or in the server's stubs. There a base of a module that is not found, mostly one of an
    /// optional dependency, is of no known type for the server either.
    #[must_use]
    pub fn structural_forms_of_installed(&self, class: &Class) -> StructuralForms {
        self.forms_of(class, &|class, base| {
            is_of_stdlib(class, base) || self.is_of_missing_module(class, base)
        })
    }

    fn forms_of(&self, class: &Class, is_no_form: &dyn Fn(&Class, &str) -> bool) -> StructuralForms {
        let is_nominal_form = |name: &str| matches!(name, "Generic" | "NamedTuple");
        let is_unknown = |class: &Class| {
            let unknown = self.lookup.unknown_bases(&class.source, class.index);
            let is_nominal = |base: &String| {
                base.rsplit('.').next().is_some_and(is_nominal_form) || is_no_form(class, base)
            };
            !class.definition().other_bases.is_empty() || !unknown.iter().all(is_nominal)
        };
        let forms = |class: &Class| {
            let mut forms = self.lookup.typing_forms(&class.source, class.index);
            forms.retain(|name| !is_nominal_form(name));
            forms
        };
        let has_unknown_base = is_unknown(class);
        let own = forms(class);
        // What inherits from a protocol is none, what inherits from a TypedDict is one.
        let may_inherit =
            |above: &Class| is_unknown(above) || forms(above).iter().any(|name| name != "Protocol");
        StructuralForms {
            protocol: has_unknown_base || own.iter().any(|name| name != "TypedDict"),
            typed_dict: has_unknown_base
                || own.iter().any(|name| name != "Protocol")
                || self.ancestors(class).iter().any(may_inherit),
        }
    }

    /// Whether the first name of a base is bound only by imports of modules that are not found.
    fn is_of_missing_module(&self, class: &Class, base: &str) -> bool {
        let (outline, file) = (&class.source.outline, &class.document().path);
        let first = base.split('.').next().unwrap_or_default();
        let is_defined = outline.definitions.iter().any(|definition| definition.name == first);
        let has_star = outline.imports.iter().any(|import| import.what == Imported::Star);
        let mut imports = outline.imports.iter().filter(|import| import.bound == first).peekable();
        let (files, roots) = (self.lookup.files, self.lookup.roots);
        !is_defined
            && !has_star
            && imports.peek().is_some()
            && imports
                .all(|import| import.module != "typing" && roots.imported(files, import, file).is_none())
    }

    /// Whether a class or one of its ancestors has a base that cannot be found.
    #[must_use]
    pub fn has_unknown_base(&self, class: &Class) -> bool {
        let own = self.with_ancestors(class);
        own.into_iter().any(|class| {
            class.source.module.origin != ModuleOrigin::Stdlib
                && class.source.module.origin != ModuleOrigin::Stubs
                && (!class.definition().other_bases.is_empty()
                    || !self.lookup.unknown_bases(&class.source, class.index).is_empty())
        })
    }

    /// The classes that inherit from a class. `files_with` returns the files in which a name is written.
    #[must_use]
    pub fn subclasses(&self, of: &Class, files_with: &dyn Fn(&str) -> Vec<AbsPath>) -> Subclasses {
        let id = of.id();
        let mut found: BTreeMap<(AbsPath, usize), Class> = BTreeMap::new();
        let mut names: BTreeSet<String> = BTreeSet::from([of.name().to_owned()]);
        let mut queue: Vec<String> = names.iter().cloned().collect();
        let mut registrars: BTreeSet<String> = BTreeSet::new();
        while let Some(name) = queue.pop() {
            for file in files_with(&name) {
                let Ok(document) = self.lookup.files.read(&file) else { continue };
                let heads = HEADS.get(document.digest, || ClassHeads::of(&document.text));
                let written = heads.aliases_of(&name);
                registrars.extend(heads.registrars_of(&name).map(str::to_owned));
                // An alias may be imported again from there.
                for &alias in &written {
                    if names.insert(alias.to_owned()) {
                        queue.push(alias.to_owned());
                    }
                }
                let is_name = |word: &str| word == name || written.contains(word);
                if !heads.words.iter().any(|word| is_name(word)) {
                    continue;
                }
                let is_base = |words: &str| names_of(words).any(is_name);
                let Some(source) = self.source(&file) else { continue };
                for (index, definition) in source.outline.definitions.iter().enumerate() {
                    let mentions = definition.bases.iter().any(|base| is_base(base));
                    if definition.kind != DefinitionKind::Class || !mentions {
                        continue;
                    }
                    let class = Class { source: source.clone(), index };
                    let key = (file.clone(), index);
                    if found.contains_key(&key) || class.id() == id || !self.inherits(&class, &id) {
                        continue;
                    }
                    if names.insert(definition.name.clone()) {
                        queue.push(definition.name.clone());
                    }
                    found.insert(key, class);
                    if found.len() >= MAX_SUBCLASSES {
                        let classes = found.into_values().collect();
                        return Subclasses { classes, names, registrars, is_cut: true };
                    }
                }
            }
        }
        let (classes, is_cut) = (found.into_values().collect(), self.lookup.is_exhausted());
        Subclasses { classes, names, registrars, is_cut }
    }

    /// Whether a chain of names in a module resolves to the definition whose name begins at an offset.
    #[must_use]
    pub fn resolves_to(&self, module: &AbsPath, chain: &[String], file: &AbsPath, offset: usize) -> bool {
        self.resolve(module, chain).iter().any(|(found, at)| found == file && *at == offset)
    }

    /// The definitions that a chain of names resolves to in a module, which is given by its file.
    #[must_use]
    pub fn resolve(&self, module: &AbsPath, chain: &[String]) -> Vec<(AbsPath, usize)> {
        let Some(source) = self.source(module) else { return Vec::new() };
        let reached = self.lookup.dotted(&source, None, &chain.join("."), &Trail::default());
        let mut found = Vec::new();
        for one in reached {
            if let NameTarget::Definition { source, group, .. } = one.found {
                let at = |index: &usize| source.outline.definitions[*index].name_span.start;
                found.extend(group.iter().map(|index| (source.document.path.clone(), at(index))));
            }
        }
        found
    }

    /// The stub of a source file, or the source of a stub.
    #[must_use]
    pub fn stub_or_source(&self, file: &AbsPath) -> Option<AbsPath> {
        let module = self.source(file)?.module.clone();
        if module.source.as_ref() == Some(file) {
            return module.stub;
        }
        if let Some(source) = module.source {
            return Some(source);
        }
        let sources = self.lookup.roots.sources(self.lookup.files, &module.name, file);
        sources.into_iter().next()
    }

    /// The class in the other file of its module: its declaration in a stub, or the source of one.
    #[must_use]
    pub fn twin_of(&self, class: &Class) -> Option<Class> {
        let file = self.stub_or_source(&class.document().path)?;
        let start = self.named(&file, &class.source.outline.names(class.index)).into_iter().next()?;
        self.class_at(&file, start)
    }

    /// The definitions of a file with a qualified name, as the offsets of their name tokens.
    #[must_use]
    pub fn named(&self, file: &AbsPath, chain: &[String]) -> Vec<usize> {
        let Some(source) = self.source(file) else { return Vec::new() };
        let all = source.outline.definitions.iter().enumerate();
        all.filter(|(index, definition)| {
            Some(&definition.name) == chain.last() && source.outline.names(*index) == chain
        })
        .map(|(_, definition)| definition.name_span.start)
        .collect()
    }

    /// The definitions of a file with a last name: their qualified names and the offsets of their name tokens.
    #[must_use]
    pub fn definitions_named(&self, file: &AbsPath, name: &str) -> Vec<(Vec<String>, usize)> {
        let Some(source) = self.source(file) else { return Vec::new() };
        let all = source.outline.definitions.iter().enumerate();
        all.filter(|(_, definition)| definition.name == name)
            .map(|(index, definition)| (source.outline.names(index), definition.name_span.start))
            .collect()
    }

    /// The class that a dotted name resolves to.
    #[must_use]
    pub fn class_named(&self, file: &AbsPath, dotted: &str) -> Option<Class> {
        let source = self.source(file)?;
        let reached = self.lookup.dotted(&source, None, dotted, &Trail::default());
        reached.into_iter().find_map(|one| match one.found {
            NameTarget::Definition { source, index, .. }
                if source.outline.definitions[index].kind == DefinitionKind::Class =>
            {
                Some(Class { source, index })
            }
            _ => None,
        })
    }
}

impl From<Class> for ClassRef {
    fn from(class: Class) -> Self {
        (class.source, class.index)
    }
}

/// Whether the base of a class is a class of the standard library, by the names that its file binds.
fn is_of_stdlib(class: &Class, base: &str) -> bool {
    let outline = &class.source.outline;
    let first = base.split('.').next().unwrap_or_default();
    let is_defined = outline.definitions.iter().any(|definition| definition.name == first);
    let mut imports = outline.imports.iter().filter(|import| import.bound == first).peekable();
    let has_star = || outline.imports.iter().any(|import| import.what == Imported::Star);
    // What these modules have may be a form of type, or a protocol.
    let is_nominal = |module: &str| is_stdlib(module) && !matches!(module, "typing" | "_typeshed");
    match imports.peek() {
        _ if is_defined => false,
        Some(_) => imports.all(|import| import.level == 0 && is_nominal(&import.module)),
        None => is_builtin(base) && !has_star(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::files::MemoryFiles;

    #[test]
    fn closed_enumerations() {
        for (text, expected) in [
            ("from enum import Enum\nclass C(Enum):\n    A = 1", true),
            ("import enum\nclass B(str, enum.Enum): ...\nclass C(B):\n    A = 'a'", true),
            ("from enum import Enum\nclass C(Enum):\n    A: int", false),
            ("from enum import Enum, nonmember\nclass C(Enum):\n    A = nonmember(1)", false),
            ("from enum import Enum\nclass C(Enum):\n    _A = 1\n    def f(self): ...", false),
            ("from mine import Enum\nclass C(Enum):\n    A = 1", false),
            ("from enum import Enum\nclass C(Enum):\n    _ignore_ = 'A'\n    A = 1", false),
            ("from enum import Enum\nclass C(Enum):\n    if False:\n        A = 1", false),
            ("from enum import Enum\nclass C(Enum):\n    A = 1\n    del A", false),
            ("class C:\n    A = 1", false),
        ] {
            let files = MemoryFiles::new([("/w/m.py", text)]);
            let roots = ImportRoots::of_folder(path("/w"));
            let classes = Classes::new(&files, &roots);
            let class =
                classes.in_file(&path("/w/m.py")).into_iter().find(|class| class.name() == "C").unwrap();
            assert_eq!(classes.is_closed_enumeration(&class), expected, "{text}");
        }
    }

    #[test]
    fn structural_forms_of_installed_classes() {
        for (text, expected) in [
            ("from missing import B\nclass C(B): ...", false),
            ("import missing.b\nclass C(missing.b.B): ...", false),
            (
                "try:\n    from missing import B\nexcept ImportError:\n    from other import B\nclass C(B): ...",
                false,
            ),
            ("try:\n    from missing import B\nexcept ImportError:\n    B = object\nclass C(B): ...", true),
            ("from missing import B\nfrom found import *\nclass C(B): ...", true),
            ("from found import B\nclass C(B): ...", true),
            ("from typing import Protocol as B\nclass C(B): ...", true),
            ("class C(B): ...", true),
            ("from missing import B\nclass C(B, f()): ...", true),
        ] {
            let files = MemoryFiles::new([("/w/m.py", text), ("/w/found.py", "")]);
            let roots = ImportRoots::of_folder(path("/w"));
            let classes = Classes::new(&files, &roots);
            let class =
                classes.in_file(&path("/w/m.py")).into_iter().find(|class| class.name() == "C").unwrap();
            assert_eq!(classes.structural_forms_of_installed(&class).protocol, expected, "{text}");
            assert!(classes.structural_forms(&class).protocol, "{text}");
        }
    }

    fn path(name: &str) -> AbsPath {
        AbsPath::new(name).unwrap()
    }

    #[test]
    fn subclasses_are_found_through_imports_and_aliases() {
        let files = MemoryFiles::new([
            ("/w/a.py", "class Base:\n    def run(self): ...\nclass Near(Base): ...\nclass Other: ...\n"),
            (
                "/w/b.py",
                "from a import Base as B\nimport a\nclass Far(\n    B,\n): ...\nclass Dotted(a.Near): ...\n",
            ),
            (
                "/w/c.py",
                "from b import Far\nclass Farther(Far[int]): ...\nclass Base: ...\nclass No(Base): ...\n\
                 if x:\n    F = Far[int]\nelse:\n    F = object\nclass Generic(F): ...\n",
            ),
        ]);
        let roots = ImportRoots::of_folder(path("/w"));
        let classes = Classes::new(&files, &roots);
        let base = classes.class_named(&path("/w/a.py"), "Base").unwrap();
        let all = |_: &str| ["/w/a.py", "/w/b.py", "/w/c.py"].map(path).to_vec();
        let found = classes.subclasses(&base, &all);
        let names: Vec<&str> = found.classes.iter().map(Class::name).collect();
        assert_eq!(names, ["Near", "Far", "Dotted", "Farther", "Generic"]);
        let far = classes.class_named(&path("/w/c.py"), "Farther").unwrap();
        assert!(classes.inherits(&far, &base.id()));
        let above: Vec<String> = classes.ancestors(&far).iter().map(|class| class.id().name).collect();
        assert_eq!(above, ["Far", "Base"]);
        let run = classes.defined_at(&path("/w/a.py"), 20).unwrap();
        assert_eq!((run.name.as_str(), run.class.unwrap().name()), ("run", "Base"));
    }

    #[test]
    fn a_stub_and_its_source_belong_together() {
        let files = MemoryFiles::new([
            ("/w/p/__init__.py", "from p.m import f\n"),
            ("/w/p/__init__.pyi", "def f() -> int: ...\n"),
            ("/w/p/m.py", "def f(): ...\n"),
        ]);
        let roots = ImportRoots::of_folder(path("/w"));
        let classes = Classes::new(&files, &roots);
        let (source, stub) = (path("/w/p/__init__.py"), path("/w/p/__init__.pyi"));
        assert_eq!(classes.stub_or_source(&source), Some(stub.clone()));
        assert_eq!(classes.stub_or_source(&stub), Some(source.clone()));
        assert!(classes.resolves_to(&source, &["f".to_owned()], &path("/w/p/m.py"), 4));
    }
}
