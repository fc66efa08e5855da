//! Symbolic selectors: from a module and a chain of names to the definition.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::hop::Hop;
use super::lookup::{Found, Lookup, Reached, Trail};
use super::modules::{ImportRoots, Module};
use super::near::{Near, Reason};
use super::outline::{DefinitionKind, Span};
use crate::selector::{ModuleName, QualName, Role, SymbolSpec};
use crate::workspace::files::{Document, Files};

/// A definition, or a place in a file.
#[derive(Debug, Clone)]
pub struct Target {
    /// The file.
    pub document: Arc<Document>,
    /// What was asked for: the name token, the signature, the body, the docstring, the range.
    pub span: Span,
    /// The name token, which servers are asked at; empty at the start of the file for a module.
    pub name_span: Span,
    /// What it is; `None` for a place that defines nothing.
    pub kind: Option<DefinitionKind>,
    /// The name under which it really is defined, `module:Class.method`.
    pub qualname: Option<QualName>,
    /// How it was reached from the name that was asked for.
    pub via: Vec<Hop>,
    /// The name tokens of other declarations of the same symbol in the same file: other assignments, overloads,
    /// accessors.
    pub declarations: Vec<Span>,
    /// The conditions that it stands under, such as `if sys.version_info >= (3, 8)`, outermost first.
    pub conditions: Vec<String>,
    /// The same definition in the stub that the server reads in place of the source. References asked at the stub's
    /// name include the source's, and not the reverse (measured on Pyright 1.1.414), so this is where to ask for them.
    pub stub: Option<StubPlace>,
    /// Whether the parser found a syntax error inside of it.
    pub has_error: bool,
}

/// A name in a stub file.
#[derive(Debug, Clone)]
pub struct StubPlace {
    /// The stub.
    pub document: Arc<Document>,
    /// The name token.
    pub name_span: Span,
}

/// What a selector leads to.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// One place.
    Found(Box<Target>),
    /// Several, in the order in which they are met.
    Ambiguous(Vec<Target>),
    /// None.
    NotFound(Near),
}

/// Resolves a symbolic selector.
#[must_use]
pub fn symbol(files: &dyn Files, roots: &ImportRoots, spec: &SymbolSpec) -> Outcome {
    Symbol { lookup: Lookup::new(files, roots), spec }.resolve()
}

struct Symbol<'s> {
    lookup: Lookup<'s>,
    spec: &'s SymbolSpec,
}

impl Symbol<'_> {
    fn resolve(&self) -> Outcome {
        let (files, roots) = (self.lookup.files, self.lookup.roots);
        let modules = roots.find(files, self.spec.qualname.module.as_str());
        if modules.is_empty() {
            return Outcome::NotFound(Near::module(&self.lookup, self.spec));
        }
        let mut reached: Vec<Reached> = Vec::new();
        let mut failure = None;
        let mut beside = Vec::new();
        for module in &modules {
            match self.in_module(module, &mut beside) {
                Ok(found) => reached.extend(found),
                Err(reason) => failure = failure.or(Some(reason)),
            }
        }
        if self.lookup.is_exhausted() {
            return Outcome::NotFound(Near::because(Reason::TooDeep {
                name: self.spec.qualname.to_string(),
            }));
        }
        if reached.is_empty() {
            let reason = failure.unwrap_or_else(|| Reason::Name {
                module: self.spec.qualname.module.to_string(),
                name: self.spec.qualname.names().join("."),
            });
            return Outcome::NotFound(Near::name(&self.lookup, self.spec, &modules, beside, reason));
        }
        let mut targets = Vec::new();
        let mut missing = None;
        for one in &reached {
            match self.target(one) {
                Ok(target) => targets.push(target),
                Err(reason) => missing = missing.or(Some(reason)),
            }
        }
        let mut seen = BTreeSet::new();
        let is_new = |target: &Target| {
            seen.insert((target.document.path.clone(), target.name_span.start, target.name_span.end))
        };
        let mut distinct: Vec<Target> = targets.into_iter().filter(is_new).collect();
        match (distinct.len(), missing) {
            (0, Some(reason)) => Outcome::NotFound(Near::because(reason)),
            (1, _) => Outcome::Found(Box::new(distinct.remove(0))),
            _ => Outcome::Ambiguous(distinct),
        }
    }

    /// Everything that the chain of names leads to in one module. Where it breaks off, `beside` gets the names that it
    /// could go on with.
    fn in_module(&self, module: &Module, beside: &mut Vec<String>) -> Result<Vec<Reached>, Reason> {
        if let Some(file) = module.file()
            && let Err(error) = self.lookup.source(module, file)
        {
            return Err(Reason::Unreadable(error));
        }
        let names = self.spec.qualname.names();
        let mut reached = self.lookup.in_module(module, &names[0], &Trail::default());
        for (done, name) in names.iter().enumerate().skip(1) {
            let before = reached;
            reached = before
                .iter()
                .flat_map(|reached| self.lookup.member(reached, name, &Trail::default()))
                .collect();
            if reached.is_empty() {
                let chain = names[..done].join(".");
                let members = before.iter().flat_map(|reached| self.lookup.member_names(reached));
                beside.extend(members.map(|member| format!("{chain}.{member}")));
                return Err(no_member(&before, &names[..done].join("."), name, module));
            }
        }
        Ok(reached)
    }

    fn target(&self, reached: &Reached) -> Result<Target, Reason> {
        let files = self.lookup.files;
        match &reached.found {
            Found::Definition { source, index, group } => {
                let outline = &source.outline;
                let index = self.overload(outline, *index, group)?;
                let definition = &outline.definitions[index];
                let span = match self.spec.role {
                    Role::Def => Some(&definition.name_span),
                    Role::Sig => definition.signature.as_ref(),
                    Role::Body => definition.body.as_ref(),
                    Role::Doc => definition.doc.as_ref(),
                };
                let span = span.cloned().ok_or_else(|| Reason::Role {
                    name: definition.name.clone(),
                    kind: definition.kind,
                    role: self.spec.role,
                })?;
                let module = self.lookup.roots.name_of(&source.document.path);
                let module = module.unwrap_or_else(|| source.module.name.clone());
                let names = outline.names(index);
                let declarations = group.iter().filter(|&&other| other != index);
                let conditions = outline.branch_chain(definition.branch).filter_map(|branch| {
                    source.document.text.get(branch.head.clone()).map(|head| head.trim().to_owned())
                });
                let mut conditions: Vec<String> = conditions.collect();
                conditions.reverse();
                Ok(Target {
                    document: source.document.clone(),
                    span,
                    name_span: definition.name_span.clone(),
                    kind: Some(definition.kind),
                    stub: self.lookup.stub_place(&source.module, &source.document.path, &names),
                    qualname: ModuleName::new(&module).and_then(|module| QualName::new(module, names)),
                    via: reached.via.clone(),
                    declarations: declarations
                        .map(|&other| outline.definitions[other].name_span.clone())
                        .collect(),
                    conditions,
                    has_error: definition.has_error,
                })
            }
            Found::Import { source, span, module } => {
                self.whole_only(DefinitionKind::Import)?;
                let module_name = module.as_ref().map_or(&source.module.name, |module| &module.name);
                let name = source.document.text.get(span.clone()).unwrap_or_default().to_owned();
                let qualname = ModuleName::new(&source.module.name)
                    .and_then(|of| QualName::new(of, vec![name]))
                    .filter(|_| !module_name.is_empty());
                Ok(Target {
                    document: source.document.clone(),
                    span: span.clone(),
                    name_span: span.clone(),
                    kind: Some(DefinitionKind::Import),
                    qualname,
                    via: reached.via.clone(),
                    declarations: Vec::new(),
                    conditions: Vec::new(),
                    stub: None,
                    has_error: false,
                })
            }
            Found::Module(module) => {
                let no_file = || Reason::NoFile { module: module.name.clone() };
                let file = module.file().ok_or_else(no_file)?;
                let document = files.read(file).map_err(Reason::Unreadable)?;
                let source = self.lookup.source(module, file).map_err(Reason::Unreadable)?;
                let role =
                    |role| Reason::Role { name: module.name.clone(), kind: DefinitionKind::Module, role };
                let span = match self.spec.role {
                    Role::Def => 0..0,
                    Role::Sig => return Err(role(Role::Sig)),
                    Role::Body => 0..document.text.len(),
                    Role::Doc => source.outline.doc.clone().ok_or_else(|| role(Role::Doc))?,
                };
                Ok(Target {
                    document,
                    span,
                    name_span: 0..0,
                    kind: Some(DefinitionKind::Module),
                    qualname: None,
                    via: reached.via.clone(),
                    declarations: Vec::new(),
                    conditions: Vec::new(),
                    stub: None,
                    has_error: source.outline.has_error,
                })
            }
        }
    }

    /// The definition of a group that `overload=` asks for.
    fn overload(
        &self,
        outline: &super::outline::Outline,
        shown: usize,
        group: &[usize],
    ) -> Result<usize, Reason> {
        let Some(wanted) = self.spec.overload else { return Ok(shown) };
        let definition = &outline.definitions[shown];
        // Accessors are not overloads of each other, and neither are assignments.
        let all: Vec<usize> = match definition.kind {
            kind if kind.is_function() => {
                let functions = group.iter().copied();
                functions.filter(|&index| !outline.definitions[index].is_accessor()).collect()
            }
            _ => vec![shown],
        };
        let found = usize::try_from(wanted).ok().and_then(|wanted| all.get(wanted).copied());
        found.ok_or(Reason::Overload { name: definition.name.clone(), wanted, count: all.len() })
    }

    fn whole_only(&self, kind: DefinitionKind) -> Result<(), Reason> {
        let role = self.spec.role;
        if role == Role::Def {
            return Ok(());
        }
        Err(Reason::Role { name: self.spec.qualname.last().to_owned(), kind, role })
    }
}

/// Why something has no such member.
fn no_member(of: &[Reached], names: &str, name: &str, module: &Module) -> Reason {
    let plain = Reason::Name { module: module.name.clone(), name: format!("{names}.{name}") };
    match of.first().map(|reached| &reached.found) {
        Some(Found::Definition { source, index, .. }) => {
            let kind = source.outline.definitions[*index].kind;
            match kind {
                DefinitionKind::Class => plain,
                _ if kind.is_function() => Reason::Local { name: names.to_owned(), member: name.to_owned() },
                _ => Reason::Instance { name: names.to_owned(), member: name.to_owned(), kind },
            }
        }
        Some(Found::Import { module: None, .. }) => Reason::UnresolvedImport { name: names.to_owned() },
        _ => plain,
    }
}
