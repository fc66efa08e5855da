//! Explains attributes without a definition by what is known of the receiver's type.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use super::explainer::{DefinitionMatch, Explainer};
use super::symbol::Reach;
use super::{
    Evidence, Explanation, MAY_BE_SIBLING, METACLASS, OtherDefinition, Token, UNKNOWN_RECEIVER, files_with,
    offset_of, symbol_at,
};
use crate::engine::failure::Failure;
use crate::engine::positions::by_name;
use crate::lsp::{Listing, LspLocation};
use crate::model::facts::UseProvenance;
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::python::classes::{Class, ClassId};
use crate::python::foreign::is_foreign_object;
use crate::python::hierarchy::Relation;
use crate::python::occurrences::OccurrenceKind;
use crate::python::outline::{Import, Outline};
use crate::python::roles::overloaded_types;
use crate::python::stdlib::is_stdlib;

/// Methods that answer for any name after a dot.
pub(super) const ANY_NAME: [&str; 2] = ["__getattr__", "__getattribute__"];

impl Explainer<'_> {
    /// Whether a member is reached through a base class outside the workspace, from which many unrelated classes inherit, too:
    /// `os.environ.update` is defined by `MutableMapping.update`.
    pub(super) fn may_be_unrelated(&self, explanation: &Explanation, found: &Listing<LspLocation>) -> bool {
        let Explanation::Reference(evidence) = explanation else { return false };
        !self.family.has_unknown_base
            && evidence.provenance == Some(UseProvenance::Dispatch)
            && found.items.iter().all(|place| !self.cx.state.is_in_workspace(&place.path))
    }

    /// Adds the definition to which the server resolves another symbol, if that is compared with another server's answer.
    pub(super) async fn with_definition(
        &self,
        token: &Token,
        explanation: Explanation,
        found: &Listing<LspLocation>,
    ) -> Result<Explanation, Failure> {
        if explanation != Explanation::Other || !self.cx.opinions.are_compared() {
            return Ok(explanation);
        }
        let found = self.without_imports(found);
        let names: Option<Vec<String>> =
            found.items.iter().map(|place| symbol_at(self.cx, self.classes, place)).collect();
        let Some(name) = names.filter(|_| found.skipped == 0).and_then(|names| names.into_iter().min())
        else {
            return Ok(explanation);
        };
        let is_certain = self.cx.opinions.is_other() && self.is_fully_typed(token).await?;
        Ok(Explanation::Defined(OtherDefinition { name, is_certain }))
    }

    /// Whether the server knows everything that a token can be resolved to: it is a plain name, or no part of the receiver's type
    /// is unknown.
    async fn is_fully_typed(&self, token: &Token) -> Result<bool, Failure> {
        match token.kind {
            OccurrenceKind::Identifier => return Ok(true),
            OccurrenceKind::Attribute => {}
            _ => return Ok(false),
        }
        let Some(receiver) = token.receiver() else { return Ok(false) };
        if receiver.is_self {
            return Ok(!receiver.is_call);
        }
        let Some(name) = receiver.name.as_ref().filter(|_| !receiver.is_call) else { return Ok(false) };
        let (path, at) = (&token.document.path, self.position(token, name.start));
        let hover = self.cx.requests_until_deadline().hover(path, at).await?;
        Ok(hover.is_some_and(|hover| !hides_types(&hover.markdown, self.cx.settings.server)))
    }

    /// Whether the server resolves an attribute by a part of the receiver's type, and does not know another part: then it may be the
    /// symbol all the same.
    pub(super) async fn is_half_known(&self, token: &Token) -> Result<bool, Failure> {
        if token.kind != OccurrenceKind::Attribute || !matches!(self.symbol.reach, Reach::Member { .. }) {
            return Ok(false);
        }
        let receiver = token.receiver().filter(|receiver| !receiver.is_call && !receiver.is_self);
        let Some(name) = receiver.and_then(|receiver| receiver.name.as_ref()) else { return Ok(false) };
        self.is_partly_unknown(token, name.start).await
    }

    /// Whether a part of the type is unknown that the name at an offset of a token's file has.
    pub(super) async fn is_partly_unknown(&self, token: &Token, offset: usize) -> Result<bool, Failure> {
        let (path, at) = (&token.document.path, self.position(token, offset));
        let hover = self.cx.requests_until_deadline().hover(path, at).await?;
        let server = self.cx.settings.server;
        // Pyright shows no type of modules and classes.
        let has_type = |markdown: &str| {
            server == ServerKind::Ty || markdown.split("\n```").next().is_some_and(|code| code.contains(": "))
        };
        Ok(hover.is_some_and(|hover| has_type(&hover.markdown) && hides_types(&hover.markdown, server)))
    }

    /// Whether the receiver of a token is of classes that have nothing to do with the symbol's.
    pub(super) async fn is_unrelated(&self, token: &Token) -> Result<bool, Failure> {
        let receiver = token.receiver().filter(|receiver| !receiver.is_call && !receiver.is_self);
        let Some(name) = receiver.and_then(|receiver| receiver.name.as_ref()) else { return Ok(false) };
        let (path, at) = (&token.document.path, self.position(token, name.start));
        let questions = self.cx.requests_until_deadline();
        let hover = questions.hover(path, at).await?;
        if hover.is_none_or(|hover| hides_types(&hover.markdown, self.cx.settings.server)) {
            return Ok(false);
        }
        let of_type = questions.type_definition(path, at).await?;
        let classes = self.classes_at(&of_type.items);
        let is_unrelated = |class: &Class| !self.family.may_be_declared_as(self.classes, class);
        Ok(!classes.is_empty() && classes.len() == of_type.items.len() && classes.iter().all(is_unrelated))
    }

    /// Explains an attribute for which the server has no definition.
    pub(super) async fn attribute(&self, token: &Token) -> Result<Explanation, Failure> {
        let unknown = || Explanation::Unresolved(UNKNOWN_RECEIVER.to_owned());
        let Some(receiver) = token.receiver() else { return Ok(unknown()) };
        if receiver.is_self
            && let Some(class) = self.classes.around(&token.document.path, token.span.start)
        {
            return Ok(self.of_self(&class, receiver.is_call));
        }
        if !self.family.has_unknown_base && self.is_foreign(token, &receiver.span) {
            return Ok(Explanation::Other);
        }
        let Some(name) = &receiver.name else { return Ok(unknown()) };
        let (path, at) = (&token.document.path, self.position(token, name.start));
        let questions = self.cx.requests_until_deadline();
        let found = by_name(self.cx, questions.definition(path, at).await?);
        let is_module = |place: &LspLocation| place.range == crate::text::Range::default();
        // An attribute of a module is not a member of a class.
        if !found.items.is_empty() && found.items.iter().all(is_module) && !receiver.is_call {
            let is_member = matches!(self.symbol.reach, Reach::Member { .. });
            return Ok(if is_member { Explanation::Other } else { unknown() });
        }
        let named = self.classes_at(&found.items);
        let classes = if receiver.is_call || !named.is_empty() && named.len() == found.items.len() {
            // What is called is a class, and its object the receiver; or a class is the receiver.
            named
        } else {
            let hover = questions.hover(path, at).await?;
            if hover.is_none_or(|hover| hides_types(&hover.markdown, self.cx.settings.server)) {
                return Ok(self.overloaded(token, &found.items).unwrap_or_else(unknown));
            }
            self.classes_at(&questions.type_definition(path, at).await?.items)
        };
        let is_mock = |class: &Class| self.is_mock(class);
        if receiver.dotted.is_some()
            && !classes.is_empty()
            && classes.iter().all(is_mock)
            && self.is_of_mock(token, &found.items)
        {
            return Ok(Explanation::Mocked);
        }
        Ok(self.of_dynamic_classes(&classes))
    }

    /// An attribute of a parameter whose type only the overloads of its function declare: a use of the symbol when one of them
    /// names a class through which the symbol can be reached. What they do not name proves nothing.
    fn overloaded(&self, token: &Token, places: &[LspLocation]) -> Option<Explanation> {
        let [place] = places else { return None };
        let (document, offset) = offset_of(self.cx, place)?;
        let types = overloaded_types(&document.text, offset);
        let evidence = types.iter().find_map(|dotted| {
            let class = self.classes.class_named(&document.path, dotted)?;
            let mut order = self.classes.with_ancestors(&class);
            let first = order.find(|class| class.has(&self.symbol.name))?;
            let via = format!("{}.{}", first.id().name, self.symbol.name);
            if self.family.is_own(&first.id()) {
                return Some(Evidence::via(UseProvenance::Dispatch, via));
            }
            let span = first.members(&self.symbol.name).next()?;
            let defined = self.classes.defined_at(&first.document().path, span.start)?;
            match self.match_definition(token, &defined) {
                DefinitionMatch::Dispatch(evidence) => Some(evidence),
                _ => None,
            }
        });
        evidence.map(Explanation::Reference)
    }

    /// An attribute of objects of these classes that the server does not know. A class and its declaration in a stub are one.
    fn of_dynamic_classes(&self, classes: &[Class]) -> Explanation {
        if classes.is_empty() {
            return Explanation::Unresolved(UNKNOWN_RECEIVER.to_owned());
        }
        if classes.iter().any(|class| self.is_mock(class)) {
            return Explanation::Unresolved("a mock may stand in for it".to_owned());
        }
        let mut by_id: BTreeMap<ClassId, Vec<Class>> = BTreeMap::new();
        for class in classes {
            let twins = by_id.entry(class.id()).or_default();
            twins.push(class.clone());
            twins.extend(self.classes.twin_of(class));
        }
        let mut found = by_id.values().map(|twins| {
            let mut explained = twins.iter().filter_map(|class| self.of_dynamic_class(class));
            explained.next().unwrap_or_else(|| {
                Explanation::Unresolved("no such attribute in the receiver's type".to_owned())
            })
        });
        let first = found.next().unwrap_or(Explanation::Other);
        found.fold(first, |all, one| match (&all, &one) {
            (Explanation::Reference(_), _) => all,
            (_, Explanation::Reference(_)) | (Explanation::Other, _) => one,
            _ => all,
        })
    }

    /// An attribute of an object of a class, in whose declaration the server does not find it: a stub may leave it out, or the
    /// declared class is a base of the object's. `None` if nothing explains it; then it is a mistake, or made when the program
    /// runs.
    fn of_dynamic_class(&self, class: &Class) -> Option<Explanation> {
        let name = &self.symbol.name;
        let id = class.id();
        if class.is_object() {
            return None;
        }
        // `object` has `__getattribute__`, which answers only for the names that there are.
        let order: Vec<Class> = std::iter::once(class.clone())
            .chain(self.classes.ancestors(class))
            .filter(|class| !class.is_object())
            .collect();
        if let Some(first) = order.iter().find(|class| class.has(name)) {
            return Some(self.member_of(first));
        }
        match self.family.relation(&id) {
            _ if self.family.is_own(&id) => return None,
            Some(Relation::Base | Relation::Sibling) => {
                return Some(Explanation::Reference(Evidence::via(UseProvenance::Dispatch, id.name)));
            }
            Some(Relation::Derived) => return None,
            None => {}
        }
        if self.family.may_be_below(self.classes, class) {
            return Some(Explanation::Unresolved("a base of the receiver's class is computed".to_owned()));
        }
        // A module may be any, and a namespace keeps any function.
        let keeps_any = matches!(class.name(), "ModuleType" | "SimpleNamespace" | "Namespace");
        if keeps_any && matches!(self.symbol.reach, Reach::Global) {
            return None;
        }
        if let Some(dynamic) = order.iter().find(|class| answers_any_name(class)) {
            return (!self.cx.state.is_in_workspace(&dynamic.document().path)).then_some(Explanation::Other);
        }
        if self.classes.has_unknown_base(class) {
            return (!self.family.has_unknown_base).then_some(Explanation::Other);
        }
        let is_ours = self.cx.state.is_in_workspace(&class.document().path);
        (is_ours && !self.classes.is_protocol(class)).then(|| self.of_derived(class)).flatten()
    }

    /// An attribute that a class does not have, but classes derived from it may: the object is of one of those.
    fn of_derived(&self, class: &Class) -> Option<Explanation> {
        let below = self.classes.subclasses(class, &|name| files_with(self.cx, name));
        if below.is_cut || below.classes.iter().any(|derived| self.family.may_be_below(self.classes, derived))
        {
            return None;
        }
        let members = below.classes.iter().filter_map(|derived| {
            let mut order = self.classes.with_ancestors(derived);
            order.find(|class| class.has(&self.symbol.name))
        });
        let found: Vec<Explanation> = members.map(|first| self.member_of(&first)).collect();
        if found.iter().any(|explanation| matches!(explanation, Explanation::Reference(_))) {
            return Some(Explanation::Reference(Evidence::via(UseProvenance::Dispatch, class.id().name)));
        }
        (!found.is_empty()).then_some(Explanation::Other)
    }

    /// Whether a receiver is an object of a package that is neither installed nor in the workspace.
    fn is_foreign(&self, token: &Token, receiver: &std::ops::Range<usize>) -> bool {
        let document = &token.document;
        let is_foreign = |import: &Import| self.is_foreign_import(&document.path, import);
        let has_foreign_import = || Outline::parse(&document.text).imports.iter().any(is_foreign);
        // Most files import nothing like that, and then no object in them can come from there.
        let mut known = self.with_foreign_imports.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(document.path.clone()).or_insert_with(has_foreign_import)
            && is_foreign_object(&document.text, receiver, &is_foreign)
    }

    fn is_foreign_import(&self, path: &AbsPath, import: &Import) -> bool {
        import.level == 0
            && !is_stdlib(&import.module)
            && !self.is_found(path, import)
            && !self.may_be_ours(&import.module)
    }

    /// Whether a module that cannot be found may be one of the workspace's under another root: a package or a module of the
    /// workspace has the first part of its name.
    fn may_be_ours(&self, module: &str) -> bool {
        let first = module.split('.').next().unwrap_or_default();
        let files = self.cx.state.inputs.snapshot.files().keys();
        let (folder, file) = (format!("{first}/"), format!("{first}.py"));
        let is_it = |path: &str| {
            path == file
                || path.starts_with(&folder)
                || path.contains(&format!("/{folder}"))
                || path.ends_with(&format!("/{file}"))
        };
        files.into_iter().any(|path| is_it(path.as_str()))
    }

    /// `self.name`, or `super().name`, where the server does not know the name: the class may be a mixin, or the code is not checked.
    fn of_self(&self, class: &Class, is_super: bool) -> Explanation {
        let name = &self.symbol.name;
        // `super()` in the class itself skips the class.
        if is_super && self.family.is_own(&class.id()) {
            return Explanation::Other;
        }
        let own = (!is_super).then(|| class.clone());
        let order = own.into_iter().chain(self.classes.ancestors(class));
        if let Some(first) = order.into_iter().find(|class| class.has(name)) {
            return self.member_of(&first);
        }
        if self.family.relation(&class.id()).is_some_and(|relation| relation != Relation::Derived) {
            return Explanation::Reference(Evidence::via(UseProvenance::Dispatch, class.id().name));
        }
        if self.classes.has_unknown_base(class) {
            return Explanation::Unresolved("a base class cannot be found".to_owned());
        }
        if self.classes.is_metaclass(class) {
            return Explanation::Unresolved(METACLASS.to_owned());
        }
        let below = self.classes.subclasses(class, &|name| files_with(self.cx, name));
        let reaches = below.classes.iter().any(|derived| {
            let order = self.classes.with_ancestors(derived);
            order
                .into_iter()
                .find(|class| class.has(name))
                .is_some_and(|first| self.family.is_own(&first.id()))
        });
        if reaches {
            return Explanation::Reference(Evidence::via(UseProvenance::Dispatch, class.id().name));
        }
        if below.is_cut {
            Explanation::Unresolved("there are too many subclasses".to_owned())
        } else if below.classes.iter().any(|derived| self.family.may_be_below(self.classes, derived)) {
            Explanation::Unresolved("a base of a subclass is computed".to_owned())
        } else {
            Explanation::Other
        }
    }

    fn member_of(&self, class: &Class) -> Explanation {
        let id = class.id();
        if self.family.is_own(&id) {
            return Explanation::Reference(Evidence::rule(UseProvenance::Scope));
        }
        match self.family.relation(&id) {
            Some(Relation::Base | Relation::Sibling) => {
                let via = format!("{}.{}", id.name, self.symbol.name);
                Explanation::Reference(Evidence::via(UseProvenance::Dispatch, via))
            }
            None if self.may_be_sibling(class) => Explanation::Unresolved(MAY_BE_SIBLING.to_owned()),
            _ => Explanation::Other,
        }
    }
}

/// Whether a class itself defines a method that answers for any name.
pub(super) fn answers_any_name(class: &Class) -> bool {
    ANY_NAME.iter().any(|name| class.has(name))
}

/// Whether a hover shows a type of which a part is unknown. The arguments of a generic class do not matter: `list[Any]` is a
/// list; but `type[Any]` is any class.
fn hides_types(markdown: &str, server: ServerKind) -> bool {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    // ty shows the type and nothing else, then the documentation.
    let code = markdown.split_once("\n```").map_or(markdown, |(code, _)| code);
    let declared = match (server, code.split_once(": ")) {
        (ServerKind::Ty, _) => code.trim_start_matches("```python\n"),
        (_, Some((_, declared))) => declared,
        (_, None) => return !markdown.contains("(class)"),
    };
    let mut is_argument = vec![false];
    let mut word = String::new();
    for c in declared.chars().chain([' ']) {
        if is_word(c) {
            word.push(c);
            continue;
        }
        let hides = matches!(word.as_str(), "Unknown" | "Any" | "Todo");
        if hides && is_argument.last() == Some(&false) {
            return true;
        }
        match c {
            '[' => {
                let of_class = !matches!(word.as_str(), "type" | "Type" | "");
                is_argument.push(of_class || is_argument.last() == Some(&true));
            }
            ']' if is_argument.len() > 1 => drop(is_argument.pop()),
            _ => {}
        }
        word.clear();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::hides_types;
    use crate::model::server::ServerKind;

    #[test]
    fn types_that_hide_something() {
        let hides = |markdown: &str| hides_types(markdown, ServerKind::Pyright);
        assert!(!hides("```python\n(variable) x: S\n```"));
        assert!(!hides("```python\n(class) C\n```"));
        assert!(hides("```python\n(variable) x: S | Unknown\n```"));
        assert!(hides("```python\n(parameter) o\n```"));
        assert!(hides("```python\n(variable) x: type[Unknown]\n```"));
        assert!(hides("```python\n(variable) x: dict[str, Any] | Any\n```"));
        assert!(!hides("```python\n(variable) x: dict[str, Any]\n```"));
        let hides = |markdown: &str| hides_types(markdown, ServerKind::Ty);
        assert!(!hides("```python\nS\n```\n---\nAny: documentation"));
        assert!(!hides("```python\n<class 'S'>\n```"));
        assert!(!hides("```python\nlist[Unknown]\n```"));
        assert!(hides("```python\nUnknown | S\n```"));
        assert!(hides("```python\nUnknown\n```"));
        assert!(hides("```python\n@Todo\n```"));
    }
}
