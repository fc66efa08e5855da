//! The kind of a symbol, which determines where its uses can be.

use std::collections::BTreeSet;

use super::super::context::RequestContext;
use super::super::failure::Failure;
use super::super::positions::by_name;
use super::{Named, offset_of};
use crate::path::AbsPath;
use crate::python::classes::{Class, Classes};
use crate::python::outline::DefinitionKind;
use crate::python::roles::{is_type_parameter, parameter_at};
use crate::python::scopes::{ScopeKind, Scopes};
use crate::text::Range;
use crate::workspace::files::Files as _;

/// Where the uses of a symbol can be.
#[derive(Debug, Clone)]
pub(super) enum Reach {
    /// A member of a class; whether its class may take it as a keyword argument.
    Member { class: Option<Class>, is_field: bool },
    /// A parameter that callers can pass by name.
    Parameter,
    /// A name of a module.
    Global,
    /// A module.
    Module,
    /// A name of a function, which is used nowhere else.
    Local,
}

/// A symbol.
#[derive(Debug, Clone)]
pub(super) struct SearchedSymbol {
    pub(super) name: String,
    pub(super) reach: Reach,
    /// The files and byte offsets of its definitions.
    pub(super) definitions: BTreeSet<(AbsPath, usize)>,
    /// Whether it is a function or a class, which may be called under another name.
    pub(super) is_callable: bool,
    /// Whether variables may hold it: a function or a class of a function that is used as a value there. For others it is worked out
    /// when it is asked for.
    pub(super) is_local_value: bool,
    /// Whether a decorator gets it, which may pass it on.
    pub(super) is_passed_to_decorator: bool,
    /// Whether it is made an attribute of its name of some object, in place of the method of that name that the object's class may have.
    /// Worked out when the references of the server are known.
    pub(super) replaces_methods: bool,
    /// Whether it is a function.
    pub(super) is_function: bool,
    /// Whether it is a property, of which an object shows only the value.
    pub(super) is_property: bool,
    /// Whether it is a pytest fixture.
    pub(super) is_fixture: bool,
    /// Whether it is a hook, which plugins implement and pluggy calls by name.
    pub(super) is_hook: bool,
    /// Whether a stub of the workspace has its name.
    pub(super) is_in_stubs: bool,
    /// Whether no token defines it, but for example a string: the field of a named tuple.
    is_undefined: bool,
    /// The dotted names of the modules that define it.
    pub(super) modules: BTreeSet<String>,
}

impl SearchedSymbol {
    /// The symbol that a name means, as the server reports it.
    pub(super) async fn of(
        cx: &RequestContext<'_>,
        classes: &Classes<'_>,
        asked: &Named<'_>,
    ) -> Result<Self, Failure> {
        let Named { name, document, offset, .. } = *asked;
        let name = name.to_owned();
        let at = document.lines.position(&document.text, offset, cx.locations.server_unit);
        let found = by_name(cx, cx.requests().definition(&document.path, at).await?);
        let is_module = |range: Range| range == Range::default();
        let mut definitions = BTreeSet::new();
        let mut modules = 0;
        for place in &found.items {
            if is_module(place.range) && !place.path.as_str().is_empty() {
                modules += 1;
            }
            // An entry of `__slots__` declares nothing by itself.
            if let Some((document, offset)) = offset_of(cx, place)
                && !document.text[offset..].starts_with(['"', '\''])
            {
                definitions.insert((document.path.clone(), offset));
            }
        }
        let all_modules = modules > 0 && modules == found.items.len();
        let is_undefined = definitions.is_empty() && !all_modules;
        if is_undefined {
            definitions.insert((document.path.clone(), offset));
        }
        let mut symbol = Self {
            name,
            reach: if all_modules { Reach::Module } else { Reach::Local },
            definitions,
            is_callable: false,
            is_local_value: false,
            is_passed_to_decorator: false,
            replaces_methods: false,
            is_function: false,
            is_property: false,
            is_fixture: false,
            is_hook: false,
            is_in_stubs: false,
            is_undefined,
            modules: BTreeSet::new(),
        };
        if !all_modules {
            symbol.describe(cx, classes);
        }
        Ok(symbol)
    }

    /// Whether types are written with it: a name of a module, or a class in another one.
    pub(super) fn may_be_type(&self) -> bool {
        match self.reach {
            Reach::Global => true,
            Reach::Member { .. } | Reach::Local => self.is_callable && !self.is_function,
            _ => false,
        }
    }

    /// Works out reach and kind from the definitions. Called again when there are more of them.
    pub(super) fn describe(&mut self, cx: &RequestContext<'_>, classes: &Classes<'_>) {
        let roots = &cx.state.inputs.roots;
        self.modules = self.definitions.iter().filter_map(|(path, _)| roots.name_of_any(path)).collect();
        // Prefer a source to a stub, the workspace to a library, and a property to what is assigned to it.
        let mut sites: Vec<_> = self.definitions.iter().cloned().collect();
        sites.sort_by_cached_key(|(path, offset)| {
            let is_assigned = classes.means_property(path, *offset);
            (!cx.state.is_in_workspace(path), path.as_str().ends_with(".pyi"), is_assigned)
        });
        for (path, offset) in &sites {
            let defined = classes.defined_at(path, *offset);
            if let Some(defined) = &defined {
                self.is_callable |= defined.kind.is_function() || defined.kind == DefinitionKind::Class;
                self.is_function |= defined.kind.is_function();
                self.is_property |= defined.kind == DefinitionKind::Property;
                self.is_fixture |= defined.kind.is_function() && is_fixture(&defined.decorators);
                self.is_hook |= defined.kind.is_function() && is_hook(&defined.name, &defined.decorators);
                self.is_passed_to_decorator |= defined.kind.is_function()
                    && defined.kind != DefinitionKind::Property
                    && !defined.has_only_plain_decorators();
            }
        }
        // pytest and pluggy call them with what they know.
        self.is_passed_to_decorator &= !self.is_fixture && !self.is_hook;
        let Some((path, offset)) = sites.into_iter().next() else { return };
        let Ok(document) = cx.state.files.read(&path) else { return };
        self.reach = if let Some(parameter) = parameter_at(&document.text, offset) {
            if parameter.is_keyword { Reach::Parameter } else { Reach::Local }
        } else if let Some(defined) = classes.defined_at(&path, offset) {
            match defined.class {
                Some(class) => {
                    let may_set_keywords = || {
                        class.may_set_keywords()
                            || classes.ancestors(&class).iter().any(Class::may_set_keywords)
                    };
                    let is_field = match defined.kind {
                        DefinitionKind::Field => !class.is_plain() || may_set_keywords(),
                        DefinitionKind::Attribute => may_set_keywords(),
                        _ => false,
                    };
                    Reach::Member { class: Some(class), is_field }
                }
                // A function may define it as a `global`.
                None => self.reach_by_scope(&document.text, offset),
            }
        } else {
            self.reach_by_scope(&document.text, offset)
        };
    }

    /// The reach of a name that no class of the outline defines. It is only called local where a function is known to bind it.
    fn reach_by_scope(&self, text: &str, offset: usize) -> Reach {
        if is_type_parameter(text, offset) {
            return Reach::Local;
        }
        match Scopes::of(text, &[&self.name]).home(offset) {
            Some(ScopeKind::Module) => Reach::Global,
            Some(ScopeKind::Function | ScopeKind::Comprehension) => Reach::Local,
            // `x.size = 1` outside of the class, `size, count = 1, 2` in one, or the use of something that no token defines.
            Some(ScopeKind::Class) | None => Reach::Member { class: None, is_field: self.is_undefined },
        }
    }

    /// Whether a keyword argument may set it.
    pub(super) const fn takes_keywords(&self) -> bool {
        matches!(self.reach, Reach::Parameter | Reach::Member { is_field: true, .. })
    }

    /// The class that it is a member of.
    pub(super) const fn class(&self) -> Option<&Class> {
        match &self.reach {
            Reach::Member { class, .. } => class.as_ref(),
            _ => None,
        }
    }
}

/// Whether one of the decorators makes a function a pytest fixture: `pytest.fixture`, `pytest_asyncio.fixture`.
pub(in crate::engine) fn is_fixture(decorators: &[String]) -> bool {
    decorators
        .iter()
        .any(|decorator| decorator.rsplit('.').next().is_some_and(|last| last.ends_with("fixture")))
}

/// Whether a function is a hook: pytest's begin with `pytest_`, and the projects that use pluggy mark theirs, `@hookimpl`,
/// `@hookspec`.
pub(in crate::engine) fn is_hook(name: &str, decorators: &[String]) -> bool {
    let is_marker = |decorator: &String| {
        let last = decorator.rsplit('.').next().unwrap_or_default();
        last.ends_with("hookimpl") || last.ends_with("hookspec")
    };
    decorators.iter().any(is_marker) || (name.starts_with("pytest_") && !is_fixture(decorators))
}
