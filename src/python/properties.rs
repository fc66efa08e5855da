//! Properties and methods that a class has or inherits, where names seem to be definitions of their own: a server takes `self.x = 1` in a
//! method for the definition of an attribute, though it calls the setter of a base class.

use super::classes::{Class, Classes, DefinitionInfo};
use super::outline::{Definition, DefinitionKind, Import};
use crate::path::AbsPath;

impl Classes<'_> {
    /// The definitions of the property that a name token of a class means although it seems to define the name itself: an assignment to the
    /// attribute of an object (`self.name = x` in a method), which calls the setter, or an annotation without a value. None, if a
    /// class has the name otherwise before. Also those of the property that the token itself defines.
    #[must_use]
    pub fn property_at(&self, file: &AbsPath, offset: usize) -> Vec<(AbsPath, usize)> {
        let Some(DefinitionInfo { name, class: Some(class), .. }) = self.defined_at(file, offset) else {
            return Vec::new();
        };
        for class in self.with_ancestors(&class) {
            let source = &class.source;
            let members = source.outline.children(Some(class.index));
            let own: Vec<_> = members
                .map(|(_, member)| member)
                .filter(|member| member.name == name && !is_without_value(member))
                .collect();
            if own.iter().any(|member| is_property(member, &source.document.text)) {
                let path = &source.document.path;
                return own.iter().map(|member| (path.clone(), member.name_span.start)).collect();
            }
            let is_bound = |import: &Import| import.parent == Some(class.index) && import.bound == name;
            if !own.is_empty() || source.outline.imports.iter().any(is_bound) {
                break;
            }
        }
        Vec::new()
    }

    /// Whether a name token of a class means a property that another token defines.
    #[must_use]
    pub fn means_property(&self, file: &AbsPath, offset: usize) -> bool {
        let property = self.property_at(file, offset);
        !property.is_empty() && !property.contains(&(file.clone(), offset))
    }

    /// Whether a class has, or inherits, a method of a name.
    #[must_use]
    pub fn has_method(&self, class: &Class, name: &str) -> bool {
        self.with_ancestors(class).any(|class| {
            let mut members = class.source.outline.children(Some(class.index));
            members.any(|(_, member)| member.name == name && member.kind.is_function())
        })
    }
}

/// Whether a member binds nothing in the body of its class: `self.x = 1` in a method, and `x: int`.
fn is_without_value(member: &Definition) -> bool {
    let is_annotation = || member.value.computed.as_ref() == Some(&member.name_span);
    member.kind == DefinitionKind::Attribute || member.kind == DefinitionKind::Field && is_annotation()
}

fn is_property(member: &Definition, text: &str) -> bool {
    let value = || member.value.computed.clone().is_some_and(|value| text[value].starts_with("property("));
    member.kind == DefinitionKind::Property || member.kind == DefinitionKind::Field && value()
}
