//! Resolves symbolic selectors: from a module and a chain of names to the definition.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::lookup::{Lookup, LookupResult, NameTarget, Trail};
use super::modules::{ImportRoots, Module};
use super::not_found::{NotFound, NotFoundReason};
use super::outline::{DefinitionKind, Span};
use super::roles::parameters_of;
use super::step::ResolutionStep;
use crate::selector::{Identifier, ModuleName, QualName, Role, SymbolSpec};
use crate::workspace::files::{Document, Files};

/// The target of a selector: a definition, or a location in a file.
#[derive(Debug, Clone)]
pub struct ResolvedTarget {
    /// The file.
    pub document: Arc<Document>,
    /// The selected part: the name token, the signature, the body, the docstring, or the range.
    pub span: Span,
    /// The name token, which requests to the server use; empty at the start of the file for a module.
    pub name_span: Span,
    /// The kind of the definition; `None` for a parameter, and for a location that is not a definition.
    pub kind: Option<DefinitionKind>,
    /// The name at its definition, `module:Class.method`, which may differ from the selected name.
    pub qualname: Option<QualName>,
    /// The steps from the selected name to the definition.
    pub via: Vec<ResolutionStep>,
    /// The name tokens of other declarations of the same symbol in the same file: other assignments, overloads,
    /// accessors.
    pub declarations: Vec<Span>,
    /// The heads of the branches around it, such as `if sys.version_info >= (3, 8)`, outermost first.
    pub conditions: Vec<String>,
    /// The same definition in the stub that the server reads in place of the source. References requested at the stub's name
    /// include those of the source, but not the reverse (measured on Pyright 1.1.414), so they are requested there.
    pub stub: Option<StubLocation>,
    /// Whether the parser found a syntax error in it.
    pub has_error: bool,
}

/// A name in a stub file.
#[derive(Debug, Clone)]
pub struct StubLocation {
    /// The stub.
    pub document: Arc<Document>,
    /// The name token.
    pub name_span: Span,
}

/// The result of resolving a selector.
#[derive(Debug, Clone)]
pub enum ResolveOutcome {
    /// One target.
    Found(Box<ResolvedTarget>),
    /// Several targets, in the order in which they are found.
    Ambiguous(Vec<ResolvedTarget>),
    /// No target.
    NotFound(NotFound),
}

/// Resolves a symbolic selector.
#[must_use]
pub fn resolve_symbol(files: &dyn Files, roots: &ImportRoots, spec: &SymbolSpec) -> ResolveOutcome {
    let modules = roots.find(files, spec.qualname.module.as_str());
    resolve_in(files, roots, &modules, spec)
}

/// Resolves the names of a symbolic selector in these modules, whatever the module in the selector.
pub(crate) fn resolve_in(
    files: &dyn Files,
    roots: &ImportRoots,
    modules: &[Module],
    spec: &SymbolSpec,
) -> ResolveOutcome {
    SymbolResolver { lookup: Lookup::new(files, roots), spec }.resolve(modules)
}

/// Resolves a module by itself; `spec` is its name and the requested part.
pub(crate) fn resolve_module(
    files: &dyn Files,
    roots: &ImportRoots,
    module: &Module,
    spec: &SymbolSpec,
) -> ResolveOutcome {
    let found = LookupResult { found: NameTarget::Module(module.clone()), via: Vec::new() };
    match (SymbolResolver { lookup: Lookup::new(files, roots), spec }).target(&found) {
        Ok(target) => ResolveOutcome::Found(Box::new(target)),
        Err(reason) => ResolveOutcome::NotFound(NotFound::new(reason)),
    }
}

/// The parameter `name` of a function.
///
/// # Errors
/// If the target is not a function, or has no such parameter.
pub(crate) fn parameter(
    function: &ResolvedTarget,
    name: &Identifier,
    role: Role,
) -> Result<ResolvedTarget, NotFoundReason> {
    let qualname = function.qualname.as_ref();
    let function_name = qualname.map_or_else(String::new, |qualname| qualname.names().join("."));
    let Some(all) = parameters_of(&function.document.text, function.name_span.start) else {
        return Err(NotFoundReason::NotAFunction {
            name: function_name,
            kind: function.kind.unwrap_or(DefinitionKind::Variable),
        });
    };
    let Some((_, span)) = all.iter().find(|(other, _)| other == name.as_str()) else {
        let names = all.into_iter().map(|(name, _)| name).collect();
        return Err(NotFoundReason::Parameter { function: function_name, name: name.to_string(), names });
    };
    if role != Role::Def {
        let reason = format!("the parameter {name} has no {}: it is a name", role.as_str());
        return Err(NotFoundReason::Other { reason });
    }
    Ok(ResolvedTarget {
        span: span.clone(),
        name_span: span.clone(),
        kind: None,
        qualname: None,
        declarations: Vec::new(),
        stub: None,
        ..function.clone()
    })
}

struct SymbolResolver<'s> {
    lookup: Lookup<'s>,
    spec: &'s SymbolSpec,
}

impl SymbolResolver<'_> {
    fn resolve(&self, modules: &[Module]) -> ResolveOutcome {
        if modules.is_empty() {
            return ResolveOutcome::NotFound(NotFound::module(&self.lookup, self.spec));
        }
        let mut reached: Vec<LookupResult> = Vec::new();
        let mut failure = None;
        let mut alternatives = Vec::new();
        for module in modules {
            match self.in_module(module, &mut alternatives) {
                Ok(found) => reached.extend(found),
                Err(reason) => failure = failure.or(Some(reason)),
            }
        }
        if self.lookup.is_exhausted() {
            return ResolveOutcome::NotFound(NotFound::new(NotFoundReason::TooDeep {
                name: self.spec.qualname.to_string(),
            }));
        }
        if reached.is_empty() {
            let reason = failure.unwrap_or_else(|| NotFoundReason::Name {
                module: self.spec.qualname.module.to_string(),
                name: self.spec.qualname.names().join("."),
            });
            return ResolveOutcome::NotFound(NotFound::name(
                &self.lookup,
                self.spec,
                modules,
                alternatives,
                reason,
            ));
        }
        let mut targets = Vec::new();
        let mut missing = None;
        for one in &reached {
            match self.selected(one) {
                Ok(target) => targets.push(target),
                Err(reason) => missing = missing.or(Some(reason)),
            }
        }
        let mut seen = BTreeSet::new();
        let is_new = |target: &ResolvedTarget| {
            seen.insert((target.document.path.clone(), target.name_span.start, target.name_span.end))
        };
        let mut distinct: Vec<ResolvedTarget> = targets.into_iter().filter(is_new).collect();
        match (distinct.len(), missing) {
            (0, Some(reason)) => ResolveOutcome::NotFound(NotFound::part(self.spec, reason)),
            (1, _) => ResolveOutcome::Found(Box::new(distinct.remove(0))),
            _ => ResolveOutcome::Ambiguous(distinct),
        }
    }

    /// Looks up the chain of names in one module. Where it breaks off, the names that exist there are added to `alternatives`.
    fn in_module(
        &self,
        module: &Module,
        alternatives: &mut Vec<String>,
    ) -> Result<Vec<LookupResult>, NotFoundReason> {
        if let Some(file) = module.file()
            && let Err(error) = self.lookup.source(module, file)
        {
            return Err(NotFoundReason::Unreadable(error));
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
                alternatives.extend(members.map(|member| format!("{chain}.{member}")));
                return Err(no_member(&before, &names[..done].join("."), name, module));
            }
        }
        Ok(reached)
    }

    /// The selected parameter or part of a lookup result.
    fn selected(&self, reached: &LookupResult) -> Result<ResolvedTarget, NotFoundReason> {
        let Some(name) = &self.spec.param else { return self.target(reached) };
        let name_only = SymbolSpec { role: Role::Def, param: None, ..self.spec.clone() };
        let lookup = Lookup::new(self.lookup.files, self.lookup.roots);
        let function = SymbolResolver { lookup, spec: &name_only }.target(reached)?;
        parameter(&function, name, self.spec.role)
    }

    fn target(&self, reached: &LookupResult) -> Result<ResolvedTarget, NotFoundReason> {
        let files = self.lookup.files;
        match &reached.found {
            NameTarget::Definition { source, index, group } => {
                let outline = &source.outline;
                let index = self.overload(outline, *index, group)?;
                let definition = &outline.definitions[index];
                let span = match self.spec.role {
                    Role::Def => Some(&definition.name_span),
                    Role::Sig => definition.signature.as_ref(),
                    Role::Body => definition.body.as_ref(),
                    Role::Doc => definition.doc.as_ref(),
                };
                let span = span.cloned().ok_or_else(|| NotFoundReason::Role {
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
                Ok(ResolvedTarget {
                    document: source.document.clone(),
                    span,
                    name_span: definition.name_span.clone(),
                    kind: Some(definition.kind),
                    stub: self.lookup.stub_location(&source.module, &source.document.path, &names),
                    qualname: ModuleName::new(&module).and_then(|module| QualName::new(module, names)),
                    via: reached.via.clone(),
                    declarations: declarations
                        .map(|&other| outline.definitions[other].name_span.clone())
                        .collect(),
                    conditions,
                    has_error: definition.has_error,
                })
            }
            NameTarget::Import { source, span, module } => {
                self.require_def_role(DefinitionKind::Import)?;
                let module_name = module.as_ref().map_or(&source.module.name, |module| &module.name);
                let name = source.document.text.get(span.clone()).unwrap_or_default().to_owned();
                let qualname = ModuleName::new(&source.module.name)
                    .and_then(|of| QualName::new(of, vec![name]))
                    .filter(|_| !module_name.is_empty());
                Ok(ResolvedTarget {
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
            NameTarget::Module(module) => {
                let no_file = || NotFoundReason::NoFile { module: module.name.clone() };
                let file = module.file().ok_or_else(no_file)?;
                let document = files.read(file).map_err(NotFoundReason::Unreadable)?;
                let source = self.lookup.source(module, file).map_err(NotFoundReason::Unreadable)?;
                let role = |role| NotFoundReason::Role {
                    name: module.name.clone(),
                    kind: DefinitionKind::Module,
                    role,
                };
                let span = match self.spec.role {
                    Role::Def => 0..0,
                    Role::Sig => return Err(role(Role::Sig)),
                    Role::Body => 0..document.text.len(),
                    Role::Doc => source.outline.doc.clone().ok_or_else(|| role(Role::Doc))?,
                };
                Ok(ResolvedTarget {
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

    /// The definition of a group that `overload=` selects.
    fn overload(
        &self,
        outline: &super::outline::Outline,
        representative: usize,
        group: &[usize],
    ) -> Result<usize, NotFoundReason> {
        let Some(wanted) = self.spec.overload else { return Ok(representative) };
        let definition = &outline.definitions[representative];
        // Accessors are not overloads of each other, and neither are assignments.
        let all: Vec<usize> = match definition.kind {
            kind if kind.is_function() => {
                let functions = group.iter().copied();
                functions.filter(|&index| !outline.definitions[index].is_accessor()).collect()
            }
            _ => vec![representative],
        };
        let found = usize::try_from(wanted).ok().and_then(|wanted| all.get(wanted).copied());
        found.ok_or(NotFoundReason::Overload { name: definition.name.clone(), wanted, count: all.len() })
    }

    fn require_def_role(&self, kind: DefinitionKind) -> Result<(), NotFoundReason> {
        let role = self.spec.role;
        if role == Role::Def {
            return Ok(());
        }
        Err(NotFoundReason::Role { name: self.spec.qualname.last().to_owned(), kind, role })
    }
}

/// The reason why a lookup result has no such member.
fn no_member(of: &[LookupResult], names: &str, name: &str, module: &Module) -> NotFoundReason {
    let plain = NotFoundReason::Name { module: module.name.clone(), name: format!("{names}.{name}") };
    match of.first().map(|reached| &reached.found) {
        Some(NameTarget::Definition { source, index, .. }) => {
            let kind = source.outline.definitions[*index].kind;
            match kind {
                DefinitionKind::Class => plain,
                _ if kind.is_function() => {
                    NotFoundReason::Local { name: names.to_owned(), member: name.to_owned() }
                }
                _ => NotFoundReason::Instance { name: names.to_owned(), member: name.to_owned(), kind },
            }
        }
        Some(NameTarget::Import { module: None, .. }) => {
            NotFoundReason::UnresolvedImport { name: names.to_owned() }
        }
        _ => plain,
    }
}
