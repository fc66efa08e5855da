//! Names in strings that are types (`cast("C", x)`). Servers leave out some of them; the scopes and imports of the file say what they
//! are, as if the string were code.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::context::RequestContext;
use super::shadowed::resolve_import;
use super::symbol::SearchedSymbol;
use super::{Evidence, Explanation, Token};
use crate::model::facts::UseProvenance;
use crate::path::AbsPath;
use crate::python::classes::Classes;
use crate::python::outline::Span;
use crate::python::scopes::{ScopeKind, Scopes};
use crate::python::type_strings::TypesAsCode;
use crate::python::usage::Usage;
use crate::text::names::is_in_name;
use crate::workspace::files::Document;

/// The types in strings of one file.
pub(super) struct QuotedTypes<'q> {
    cx: &'q RequestContext<'q>,
    classes: &'q Classes<'q>,
    symbol: &'q SearchedSymbol,
    path: &'q AbsPath,
    types: TypesAsCode,
    /// By the first name of a dotted one.
    scopes: RefCell<BTreeMap<String, Rc<Scopes>>>,
}

impl<'q> QuotedTypes<'q> {
    /// Those with a name at one of these offsets.
    pub(super) fn new(
        cx: &'q RequestContext<'q>,
        classes: &'q Classes<'q>,
        symbol: &'q SearchedSymbol,
        document: &'q Document,
        offsets: &[usize],
    ) -> Self {
        let (path, types) = (&document.path, TypesAsCode::of(&document.text, offsets));
        Self { cx, classes, symbol, path, types, scopes: RefCell::default() }
    }

    /// What a name is.
    pub(super) fn explain(&self, token: &Token) -> Explanation {
        if self.types.names.contains(&token.span.start) && self.is_symbol(&token.span) {
            Explanation::Reference(Evidence::rule(UseProvenance::Scope))
        } else {
            Explanation::Text
        }
    }

    fn is_symbol(&self, name: &Span) -> bool {
        let code = &self.types.code;
        let start = code[..name.start].trim_end_matches(|c: char| is_in_name(c) || c == '.').len();
        let chain: Vec<String> = code[start..name.end].split('.').map(str::to_owned).collect();
        let is_ours = |place: &(AbsPath, usize)| self.symbol.definitions.contains(place);
        let Some((first, rest)) = chain.split_first() else { return false };
        let scopes = self.scopes_of(first);
        let home = scopes.home(start);
        let mut bound = scopes.bound_by(start).unwrap_or_default();
        if matches!(home, None | Some(ScopeKind::Module)) || bound.is_empty() {
            return self.classes.resolve(self.path, &chain).iter().any(is_ours);
        }
        let usage = Usage::of(code);
        if home == Some(ScopeKind::Class) {
            // A field does not hide the class whose name it has: `C: "C | None" = None`.
            let statement = usage.statement(start).unwrap_or_default();
            let is_in_statement = |span: &Span| statement.start <= span.start && span.end <= statement.end;
            bound.retain(|span| !usage.is_bare_annotation(span.start) && !is_in_statement(span));
            if bound.is_empty() {
                return self.classes.resolve(self.path, &chain).iter().any(is_ours);
            }
        }
        bound.iter().any(|span| {
            let import = usage.import_binding(span.start);
            let imported = import
                .map(|import| resolve_import(self.cx, self.classes, self.path, &import, rest))
                .unwrap_or_default();
            imported.iter().any(is_ours) || rest.is_empty() && is_ours(&(self.path.clone(), span.start))
        })
    }

    fn scopes_of(&self, name: &str) -> Rc<Scopes> {
        let mut known = self.scopes.borrow_mut();
        let scopes = || Rc::new(Scopes::of(&self.types.code, &[name]));
        known.entry(name.to_owned()).or_insert_with(scopes).clone()
    }
}
