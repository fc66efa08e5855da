//! Finds classes, their base classes and their subclasses.
//!
//! Imports and aliases are followed by syntax; types are not inferred. A class is identified by its module and its qualified
//! name, so that a class and its declaration in a stub are the same class.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::bases::ClassRef;
use super::digest_cache::{DigestCache, MemorySize};
use super::lookup::{Lookup, NameTarget, SourceFile, Trail};
use super::modules::{ImportRoots, Module, ModuleOrigin};
use super::outline::{Definition, DefinitionKind, Span};
use super::roles::parameters_of;
use crate::path::AbsPath;
use crate::workspace::files::{Document, Files};

/// The most classes that a search for subclasses returns.
const MAX_SUBCLASSES: usize = 4_000;

/// Finds classes; each file is read and parsed once.
pub struct Classes<'f> {
    lookup: Lookup<'f>,
    sources: Mutex<BTreeMap<AbsPath, Option<Arc<SourceFile>>>>,
}

/// A class.
#[derive(Debug, Clone)]
pub struct Class {
    source: Arc<SourceFile>,
    index: usize,
}

/// The identity of a class: the module, or the file if the module has no name, and the qualified name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The decorators as dotted names, without arguments.
    pub decorators: Vec<String>,
}

/// The classes that inherit from a class.
#[derive(Debug, Default)]
pub struct Subclasses {
    /// Ordered by file and position.
    pub classes: Vec<Class>,
    /// Other classes with a base that is computed from the class or from one of these.
    pub computed: Vec<Class>,
    /// Whether the search reached a limit, so that classes may be missing.
    pub is_cut: bool,
}

/// The direct bases of a class.
#[derive(Debug, Default)]
pub struct DirectBases {
    /// In their order.
    pub classes: Vec<Class>,
    /// Those that cannot be found, as they are written.
    pub unknown: Vec<String>,
}

impl Class {
    fn definition(&self) -> &Definition {
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

    /// Whether one of its own members, or a parameter of one, has this name.
    #[must_use]
    pub fn has_in_shape(&self, name: &str) -> bool {
        let text = &self.source.document.text;
        let mut children = self.source.outline.children(Some(self.index));
        children.any(|(_, member)| {
            let parameters = || parameters_of(text, member.name_span.start).unwrap_or_default();
            member.name == name
                || member.kind.is_function() && parameters().iter().any(|(parameter, _)| parameter == name)
        })
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

    fn is_object(&self) -> bool {
        self.name() == "object" && self.source.module.name == "builtins"
    }

    /// Whether it is a class of `typing` that makes other classes generic or structural.
    fn is_form(&self) -> bool {
        matches!(self.name(), "Generic" | "Protocol" | "TypedDict" | "NamedTuple")
            && matches!(self.source.module.name.as_str(), "typing" | "typing_extensions")
    }

    /// The bases that are dotted names, as they are written.
    #[must_use]
    pub fn bases(&self) -> &[String] {
        &self.definition().bases
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

    fn source(&self, file: &AbsPath) -> Option<Arc<SourceFile>> {
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
        let module = module.unwrap_or_else(|| Module {
            name,
            source: Some(file.clone()),
            stub: None,
            folder: None,
            origin: ModuleOrigin::Workspace,
        });
        self.lookup.source(&module, file).ok()
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
        let computed =
            definition.other_bases.iter().filter_map(|base| source.document.text.get(base.clone()));
        unknown.extend(computed.map(|base| base.lines().next().unwrap_or_default().to_owned()));
        DirectBases {
            classes: classes.filter(|base| !base.is_object() && !base.is_form()).collect(),
            unknown,
        }
    }

    /// Whether a class may be a structural type, whose name does not decide what fits it: a protocol or a TypedDict. A base that
    /// is not found may be anything.
    #[must_use]
    pub fn may_be_structural(&self, class: &Class) -> bool {
        let names = |base: &String| base.rsplit('.').next().unwrap_or_default().to_owned();
        let is_nominal_form = |name: &str| matches!(name, "Generic" | "NamedTuple");
        let is_unknown = |class: &Class| {
            let definition = class.definition();
            let unknown = self.lookup.unknown_bases(&class.source, class.index);
            !definition.other_bases.is_empty() || unknown.iter().any(|base| !is_nominal_form(&names(base)))
        };
        let special = |class: &Class| {
            let found = self.lookup.special_bases(&class.source, class.index);
            found.into_iter().filter(|name| !is_nominal_form(name)).collect::<BTreeSet<String>>()
        };
        let own = self.lookup.direct_bases(&class.source, class.index, &Trail::default());
        let is_form = own.into_iter().any(|(source, index)| {
            let base = Class { source, index };
            base.is_form() && !is_nominal_form(base.name())
        });
        if is_form || is_unknown(class) || !special(class).is_empty() {
            return true;
        }
        let above = self.ancestors(class);
        // What inherits from a protocol is none, what inherits from a TypedDict is one.
        above.iter().any(|above| is_unknown(above) || special(above).iter().any(|name| name != "Protocol"))
    }

    /// Whether a class or one of its ancestors has a base that cannot be found.
    #[must_use]
    pub fn has_unknown_base(&self, class: &Class) -> bool {
        let own = std::iter::once(class.clone()).chain(self.ancestors(class));
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
        let mut unclear: BTreeMap<(AbsPath, usize), Class> = BTreeMap::new();
        let mut names: BTreeSet<String> = BTreeSet::from([of.name().to_owned()]);
        let mut queue: Vec<String> = names.iter().cloned().collect();
        while let Some(name) = queue.pop() {
            for file in files_with(&name) {
                let Ok(document) = self.lookup.files.read(&file) else { continue };
                let heads = HEADS.get(document.digest, || ClassHeads::of(&document.text));
                let written = heads.aliases_of(&name);
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
                let is_base = |words: &str| words_of(words).any(is_name);
                let Some(source) = self.source(&file) else { continue };
                for (index, definition) in source.outline.definitions.iter().enumerate() {
                    let mut computed = definition
                        .other_bases
                        .iter()
                        .filter_map(|base| source.document.text.get(base.clone()));
                    if computed.any(is_base) {
                        unclear.insert((file.clone(), index), Class { source: source.clone(), index });
                    }
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
                        return Subclasses {
                            classes: found.into_values().collect(),
                            is_cut: true,
                            ..Subclasses::default()
                        };
                    }
                }
            }
        }
        unclear.retain(|key, _| !found.contains_key(key));
        Subclasses {
            classes: found.into_values().collect(),
            computed: unclear.into_values().collect(),
            is_cut: self.lookup.is_exhausted(),
        }
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

/// The text between the parentheses of each `class X(…)`.
fn class_heads(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("class ").filter(|(at, _)| {
        let line = text[..*at].rfind('\n').map_or(0, |end| end + 1);
        text[line..*at].chars().all(char::is_whitespace)
    });
    starts.filter_map(|(at, _)| {
        let rest = &text[at..];
        let open = rest.find(['(', ':'])?;
        if !rest[open..].starts_with('(') {
            return None;
        }
        let mut depth = 0_usize;
        for (end, character) in rest[open..].char_indices() {
            match character {
                '(' | '[' => depth += 1,
                ')' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return rest.get(open + 1..open + end);
            }
        }
        None
    })
}

/// The identifiers of a text.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c == '_' || unicode_ident::is_xid_continue(c);
    text.split(move |c| !is_word(c)).filter(|word| !word.is_empty())
}

/// The words in the heads of the classes of a text.
fn head_words(text: &str) -> impl Iterator<Item = &str> {
    class_heads(text).flat_map(words_of)
}

/// The names of a text with their aliases: `import name as alias`, `alias = name`.
fn alias_pairs(text: &str) -> BTreeSet<(String, String)> {
    let mut aliases = BTreeSet::new();
    for line in text.lines().filter(|line| line.contains(" as ") || line.contains('=')) {
        let mut words = words_of(line).peekable();
        let mut before = None;
        while let Some(word) = words.next() {
            if let (Some(name), "as", Some(alias)) = (before, word, words.peek()) {
                aliases.insert((str::to_owned(name), (*alias).to_owned()));
            }
            before = Some(word);
        }
        let code = line.split_once('#').map_or(line, |(code, _)| code);
        for statement in code.split(';') {
            aliases.extend(assigned_aliases(statement));
        }
    }
    aliases.retain(|(name, alias)| name != alias);
    aliases
}

/// The class heads of each text, for the search for subclasses.
static HEADS: DigestCache<ClassHeads> = DigestCache::new();

/// The words in the class heads of a text, and its aliases.
#[derive(Debug, Clone)]
struct ClassHeads {
    words: BTreeSet<String>,
    /// A name and its alias: `import name as alias`, `alias = name`.
    aliases: BTreeSet<(String, String)>,
}

impl ClassHeads {
    fn of(text: &str) -> Self {
        let words = head_words(text).map(str::to_owned).collect();
        Self { words, aliases: alias_pairs(text) }
    }

    fn aliases_of(&self, name: &str) -> BTreeSet<&str> {
        let from = (name.to_owned(), String::new());
        let of_name = self.aliases.range(from..).take_while(|(of, _)| of == name);
        of_name.map(|(_, alias)| alias.as_str()).collect()
    }
}

/// The aliases of `alias = other = module.name[…]`, each behind its name. The value must be nothing but a name: what is returned by a
/// call is no class that is written there.
fn assigned_aliases(statement: &str) -> Vec<(String, String)> {
    let Some((targets, value)) = statement.rsplit_once('=') else { return Vec::new() };
    let value = value.trim();
    let value = value.strip_prefix('(').and_then(|value| value.strip_suffix(')')).unwrap_or(value);
    let value = value.split_once('[').map_or(value, |(generic, _)| generic).trim();
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c == '_' || c.is_alphanumeric());
    let is_comparison = targets.split('=').any(|target| target.trim().is_empty());
    if is_comparison || !value.split('.').all(|part| is_word(part.trim())) {
        return Vec::new();
    }
    let name = value.rsplit('.').next().unwrap_or_default().trim();
    let targets =
        targets.split('=').map(|target| target.split_once(':').map_or(target, |(target, _)| target));
    let targets = targets.map(str::trim).filter(|target| is_word(target));
    targets.map(|alias| (name.to_owned(), alias.to_owned())).collect()
}

impl MemorySize for ClassHeads {
    fn memory_bytes(&self) -> usize {
        /// The memory of a string in a set, beyond its bytes.
        const STRING_BYTES: usize = 32;
        let words = self.words.iter().map(|word| word.len() + STRING_BYTES);
        let aliases = self.aliases.iter().map(|(name, alias)| name.len() + alias.len() + 2 * STRING_BYTES);
        size_of::<Self>() + words.chain(aliases).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::files::MemoryFiles;

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

    #[test]
    fn heads_of_classes() {
        let text = "class A: pass\nclass B(x.A, k=f(1)): pass\n # class C(A)\n  class D(\n  A[int],\n):\n";
        let heads: Vec<&str> = class_heads(text).collect();
        assert_eq!(heads, ["x.A, k=f(1)", "\n  A[int],\n"]);
        let heads = ClassHeads::of("from a import B as C, D as E\nF = x.B\nB = B\nclass G(B, C): ...\n");
        assert_eq!(heads.aliases_of("B"), BTreeSet::from(["C", "F"]));
        assert_eq!(heads.aliases_of("D"), BTreeSet::from(["E"]));
        assert_eq!(Vec::from_iter(&heads.words), ["B", "C"]);
        let heads = ClassHeads::of(
            "A: type[B] = B\n  C = D = m.B[int]  # why\nE = B(); F = (B)\nG = f(B)\nh == B\ni.j = B\nk(l=B)\n",
        );
        assert_eq!(heads.aliases_of("B"), BTreeSet::from(["A", "C", "D", "F"]));
    }
}
