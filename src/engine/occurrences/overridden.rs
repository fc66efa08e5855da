//! Objects whose class a server infers from the body of a method that a subclass overrides: `self.make().run()`, where `make` has no
//! annotation. Pyright takes what the body of the base class returns, and the object may be what the override returns.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use super::explainer::Explainer;
use super::symbol::Reach;
use super::{Token, files_with, offset_of};
use crate::engine::failure::Failure;
use crate::lsp::Profile;
use crate::path::AbsPath;
use crate::python::classes::{Class, DefinitionInfo};
use crate::python::occurrences::OccurrenceKind;
use crate::python::usage::Usage;
use crate::workspace::files::Files as _;

/// The most overrides of one method whose types are compared.
const MAX_OVERRIDES: usize = 20;

impl Explainer<'_> {
    /// Whether the receiver of a member may be something else than the server says, because a subclass overrides the method without
    /// an annotation that it comes from, and returns something else.
    pub(super) async fn is_of_overridden(&self, token: &Token) -> Result<bool, Failure> {
        let is_member = matches!(self.symbol.reach, Reach::Member { .. });
        let infers = Profile::of(self.cx.settings.server).infers_results;
        let is_attribute = token.kind == OccurrenceKind::Attribute;
        if !infers || !is_member || !is_attribute || token.receiver().is_none_or(|receiver| receiver.is_self)
        {
            return Ok(false);
        }
        let (path, text) = (&token.document.path, &token.document.text);
        for maker in Usage::of(text).makers(token.span.start) {
            if !self.may_be_overridden(&text[maker.clone()]) {
                continue;
            }
            let at = self.position(token, maker.start);
            let found = self.cx.requests_until_deadline().definition(path, at).await?;
            for place in &found.items {
                let defined = offset_of(self.cx, place)
                    .and_then(|(document, offset)| self.classes.defined_at(&document.path, offset));
                if let Some(defined) = defined
                    && self.returns_other(&defined).await?
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether two classes of the workspace define a method of this name, one inherits from the other, and the method has no
    /// annotation.
    fn may_be_overridden(&self, name: &str) -> bool {
        let find = || {
            let files = files_with(self.cx, name);
            let classes: Vec<Class> = files
                .iter()
                .flat_map(|file| self.classes.in_file(file))
                .filter(|class| class.signature_of(name).is_some())
                .collect();
            let is_above = |above: &Class| {
                let id = above.id();
                is_inferred(above, name)
                    && classes.iter().any(|below| below.id() != id && self.classes.inherits(below, &id))
            };
            classes.iter().any(is_above)
        };
        self.remember(&self.overridden, name.to_owned(), &("overridden without a type", name), find)
    }

    /// Whether an override of a method without an annotation returns something else than the method.
    async fn returns_other(&self, method: &DefinitionInfo) -> Result<bool, Failure> {
        let Some(class) = method.class.as_ref().filter(|class| is_inferred(class, &method.name)) else {
            return Ok(false);
        };
        let key = (class.id(), method.name.clone());
        let known = || self.returned_other.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known().get(&key) {
            return Ok(*known);
        }
        let found = self.has_other_override(class, &method.name).await?;
        known().insert(key, found);
        Ok(found)
    }

    async fn has_other_override(&self, class: &Class, name: &str) -> Result<bool, Failure> {
        let below = self.classes.subclasses(class, &|name| files_with(self.cx, name));
        let overrides = below.classes.iter().filter(|class| class.signature_of(name).is_some());
        let overrides: BTreeSet<(AbsPath, usize)> = overrides.flat_map(|class| places(class, name)).collect();
        if overrides.is_empty() {
            return Ok(false);
        }
        if below.is_cut || overrides.len() > MAX_OVERRIDES {
            return Ok(true);
        }
        let own = match places(class, name).last() {
            Some((path, offset)) => self.returned(path, *offset).await?,
            None => None,
        };
        for (path, offset) in overrides {
            if own.is_none() || self.returned(&path, offset).await? != own {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What the server says that a function returns; `None` if it does not know all of it.
    async fn returned(&self, path: &AbsPath, offset: usize) -> Result<Option<String>, Failure> {
        let Ok(document) = self.cx.state.files.read(path) else { return Ok(None) };
        let at = document.lines.position(&document.text, offset, self.cx.locations.server_unit);
        let hover = self.cx.requests_until_deadline().hover(path, at).await?;
        Ok(hover.and_then(|hover| {
            let code = hover.markdown.split("\n```").next()?;
            let returned = code.rsplit_once("-> ").map(|(_, returned)| returned)?;
            (!returned.contains("Unknown") && !returned.contains("Any")).then(|| returned.trim().to_owned())
        }))
    }
}

/// Whether a class has a method, or a property, whose result is not declared.
fn is_inferred(class: &Class, name: &str) -> bool {
    class.signature_of(name).is_some_and(|signature| !signature.contains("->"))
}

fn places(class: &Class, name: &str) -> Vec<(AbsPath, usize)> {
    let path = &class.document().path;
    class.members(name).map(|span| (path.clone(), span.start)).collect()
}
