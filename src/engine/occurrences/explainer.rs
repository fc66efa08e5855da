//! Explains tokens by the definitions that the server reports for them.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Serialize;

use super::super::concurrent::{self, BoxedFuture};
use super::super::context::RequestContext;
use super::super::failure::Failure;
use super::super::positions::by_name;
use super::alternatives::Alternatives;
use super::classify::{ServerQuestion, is_typed_dict};
use super::family::{Dispatch, Family};
use super::receivers::ANY_NAME;
use super::shadowed::{ClassBinding, resolve_import};
use super::symbol::{Reach, SearchedSymbol};
use super::{
    Evidence, Explained, Explanation, HALF_KNOWN, MAY_BE_SIBLING, NOT_CHECKED, ONE_OF_SEVERAL, OVERRIDDEN,
    Token, WINDOW, files_with, offset_of, values,
};
use crate::lsp::error::LspError;
use crate::lsp::{Listing, LspLocation, LspRequests, Profile};
use crate::model::facts::UseProvenance;
use crate::model::request::Scope;
use crate::path::AbsPath;
use crate::python::classes::{Class, ClassId, Classes, DefinitionInfo};
use crate::python::occurrences::OccurrenceKind;
use crate::python::outline::{Import, Imported, Outline};
use crate::python::roles::parameter_at;
use crate::python::scopes::{ScopeKind, Scopes};
use crate::python::usage::{TokenUse, Usage};
use crate::tape::IoKind;
use crate::text::Position;
use crate::workspace::files::{Document, FileKind, Files as _};

/// How many tokens are explained at a time where the order of requests does not matter.
const FREE_WINDOW: usize = 4 * WINDOW;

/// A definition request: answered from the cache, or sent to the server.
enum PendingDefinition {
    Cached(Listing<LspLocation>),
    Server(Pin<Box<dyn Future<Output = Result<Listing<LspLocation>, LspError>> + Send>>),
}

/// Explains tokens by the definitions that the server reports for them.
pub(super) struct Explainer<'l> {
    pub(super) cx: &'l RequestContext<'l>,
    pub(super) classes: &'l Classes<'l>,
    pub(super) symbol: &'l SearchedSymbol,
    pub(super) family: &'l Family,
    pub(super) claimed: BTreeSet<LspLocation>,
    /// Whether the symbol is passed or assigned as a value somewhere, so that a variable may hold it.
    is_passed: OnceLock<bool>,
    /// Calls of variables that may hold the symbol if one of the references that are found meanwhile passes it on.
    called_variables: Mutex<BTreeSet<LspLocation>>,
    /// Whether a file imports a package that is neither installed nor in the workspace.
    pub(super) with_foreign_imports: Mutex<BTreeMap<AbsPath, bool>>,
    /// Whether a class may have a subclass in common with the symbol's, because a base is computed.
    siblings: Mutex<BTreeMap<ClassId, bool>>,
    alternatives: OnceLock<Alternatives>,
    /// Whether one name may mean a class or the symbol's.
    has_alternative: Mutex<BTreeMap<ClassId, bool>>,
    /// Whether methods of a name without an annotation are overridden.
    pub(super) overridden: Mutex<BTreeMap<String, bool>>,
    /// Whether an override of a method of a class returns something else than the method.
    pub(super) returned_other: Mutex<BTreeMap<(ClassId, String), bool>>,
}

/// What a definition of a token is for the symbol.
pub(super) enum DefinitionMatch {
    Target,
    Dispatch(Evidence),
    AnyName,
    Interface(String),
    /// A class may inherit from both, because a base of it is computed.
    Computed,
    /// One name may mean its class or the symbol's.
    Alternative,
    /// The class is declared in a stub, and the source has none of its name.
    StubOnly,
    Variable,
    Other,
}

impl<'l> Explainer<'l> {
    pub(super) fn new(
        cx: &'l RequestContext<'l>,
        classes: &'l Classes<'l>,
        symbol: &'l SearchedSymbol,
        family: &'l Family,
        explained: &Explained,
    ) -> Self {
        let claimed = explained.references.keys().cloned().collect();
        let (is_passed, with_foreign_imports) = (OnceLock::new(), Mutex::default());
        let (siblings, called_variables) = (Mutex::default(), Mutex::default());
        Self {
            cx,
            classes,
            symbol,
            family,
            claimed,
            is_passed,
            called_variables,
            with_foreign_imports,
            siblings,
            alternatives: OnceLock::new(),
            has_alternative: Mutex::default(),
            overridden: Mutex::default(),
            returned_other: Mutex::default(),
        }
    }

    /// The calls of variables that may hold the symbol if it is passed on, though none of the claimed references does that.
    pub(super) fn into_called_variables(self) -> BTreeSet<LspLocation> {
        self.called_variables.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the server about each token, in their order.
    pub(super) async fn ask(
        &self,
        asked: Vec<(Token, ServerQuestion)>,
    ) -> Result<(Vec<(Token, Explanation)>, bool), Failure> {
        let mut found = Vec::with_capacity(asked.len());
        let total = asked.len();
        let mut is_late = false;
        let (window, at_once) =
            if self.cx.is_order_free() { (FREE_WINDOW, FREE_WINDOW) } else { (WINDOW, 1) };
        for window in asked.chunks(window) {
            if is_late {
                let rest = window.iter().map(|(token, _)| (token.clone(), not_looked_at()));
                found.extend(rest);
                continue;
            }
            let questions = self.cx.requests_until_deadline();
            self.cx.settings.progress.step(&format!("explaining occurrences: {} of {total}", found.len()));
            let mut answers = Vec::with_capacity(window.len());
            for (token, question) in window {
                let path = &token.document.path;
                answers.push(match question {
                    ServerQuestion::Token | ServerQuestion::Imported | ServerQuestion::Key => {
                        (self.definition(&questions, token), None)
                    }
                    // Functions of unpacked dictionaries are asked about below.
                    ServerQuestion::Unpacked(_) | ServerQuestion::InModule(_) => {
                        (PendingDefinition::Cached(Listing { items: Vec::new(), skipped: 0 }), None)
                    }
                    ServerQuestion::Subscripted(subject) => {
                        let at = self.position(token, subject.start);
                        let itself = PendingDefinition::Server(Box::pin(questions.definition(path, at)));
                        (itself, Some(questions.type_definition(path, at)))
                    }
                });
            }
            let mut explained: Vec<BoxedFuture<'_, _>> = Vec::with_capacity(window.len());
            for ((token, question), (answer, of_type)) in window.iter().zip(answers) {
                explained.push(Box::pin(async move {
                    let answer = match answer {
                        PendingDefinition::Cached(listing) => listing,
                        PendingDefinition::Server(answer) => {
                            let listing = by_name(self.cx, answer.await?);
                            self.cache(token, question, &listing);
                            listing
                        }
                    };
                    match (question, of_type) {
                        (ServerQuestion::Subscripted(subject), Some(of_type)) => {
                            let explanation = self.subscripted(token, subject, &answer, &of_type.await?);
                            let is_other = explanation == Explanation::Other
                                && matches!(self.symbol.reach, Reach::Member { .. });
                            Ok(match is_other && self.is_partly_unknown(token, subject.start).await? {
                                true => Explanation::Unresolved(HALF_KNOWN.to_owned()),
                                false => explanation,
                            })
                        }
                        (ServerQuestion::Unpacked(calls), _) => self.unpacked(token, calls).await,
                        (ServerQuestion::InModule(binding), _) => Ok(match self.imported(token) {
                            Explanation::Reference(_) if *binding == ClassBinding::Possible => {
                                Explanation::Unresolved(
                                    "the class around it may bind the name before".to_owned(),
                                )
                            }
                            explanation => explanation,
                        }),
                        _ => {
                            let explanation = self.explain(token, question, &answer).await?;
                            self.with_definition(token, explanation, &answer).await
                        }
                    }
                }));
            }
            let explained = concurrent::outputs(at_once, explained).await;
            for ((token, _), explanation) in window.iter().zip(explained) {
                let explanation = match explanation {
                    Err(failure) if self.cx.is_past_deadline(&failure) => {
                        is_late = true;
                        not_looked_at()
                    }
                    explanation => explanation?,
                };
                found.push((token.clone(), explanation));
            }
        }
        Ok((found, is_late))
    }

    /// The definition of a token: from the cache for the same inputs, or from the server. A traced request always asks the server.
    fn definition(&self, questions: &LspRequests, token: &Token) -> PendingDefinition {
        let state = self.cx.state;
        let cached =
            self.is_cached().then(|| state.inputs.definitions.get(&token.document.path, token.span.start));
        match cached.flatten() {
            Some(listing) => PendingDefinition::Cached(listing),
            None => {
                let at = self.position(token, token.span.start);
                PendingDefinition::Server(Box::pin(questions.definition(&token.document.path, at)))
            }
        }
    }

    /// Whether answers are cached. A server that was shown fewer files may answer otherwise.
    fn is_cached(&self) -> bool {
        self.cx.state.tape.is_off() && self.cx.request.options.scope == Scope::Workspace
    }

    fn cache(&self, token: &Token, question: &ServerQuestion, listing: &Listing<LspLocation>) {
        let state = self.cx.state;
        let holds = state.inputs.holds(&token.document.path, Some(token.document.digest)) == Some(true);
        if self.is_cached() && holds && !matches!(question, ServerQuestion::Subscripted(_)) {
            state.inputs.definitions.put(&token.document.path, token.span.start, listing);
        }
    }

    pub(super) fn position(&self, token: &Token, offset: usize) -> Position {
        token.document.lines.position(&token.document.text, offset, self.cx.locations.server_unit)
    }

    /// Explains a token by its definitions.
    pub(super) async fn explain(
        &self,
        token: &Token,
        question: &ServerQuestion,
        found: &Listing<LspLocation>,
    ) -> Result<Explanation, Failure> {
        let found = self.without_imports(found);
        let before = token.document.text[..token.span.start].trim_end();
        let may_be_pattern = token.kind == OccurrenceKind::Attribute && !before.ends_with('.');
        if may_be_pattern && let Some(class) = &token.syntax().pattern_class {
            return self.pattern_keyword(token, class.start, &found).await;
        }
        if !found.items.is_empty() || found.skipped > 0 {
            let explanation = self.explain_defined(token, &found);
            if explanation == Explanation::Other
                && *question == ServerQuestion::Imported
                && matches!(self.symbol.reach, Reach::Global)
                && found.items.iter().all(|place| self.is_another_declaration(token, place))
                && self.is_import_of_it(token)
            {
                return Ok(Explanation::Unresolved(ONE_OF_SEVERAL.to_owned()));
            }
            if self.may_be_unrelated(&explanation, &found) && self.is_unrelated(token).await? {
                return Ok(Explanation::Other);
            }
            if explanation == Explanation::Other && self.is_half_known(token).await? {
                return Ok(Explanation::Unresolved(HALF_KNOWN.to_owned()));
            }
            if explanation == Explanation::Other && self.is_of_overridden(token).await? {
                return Ok(Explanation::Unresolved(OVERRIDDEN.to_owned()));
            }
            return Ok(explanation);
        }
        match (question, token.kind) {
            (ServerQuestion::Key, _) => Ok(self.key(token)),
            (ServerQuestion::Imported, _) => Ok(self.imported(token)),
            (_, OccurrenceKind::Keyword) => self.keyword(token).await,
            _ => self.attribute(token).await,
        }
    }

    /// Whether a class or function is defined at a place, and not by the token itself.
    fn is_another_declaration(&self, token: &Token, place: &LspLocation) -> bool {
        let defined = offset_of(self.cx, place)
            .and_then(|(document, offset)| self.classes.defined_at(&document.path, offset));
        *place != token.place(self.cx) && defined.is_some_and(|defined| is_declared(&defined))
    }

    /// Whether an import that binds the name leads to the symbol, as the syntax shows it.
    fn is_import_of_it(&self, token: &Token) -> bool {
        let find = || matches!(self.imported(token), Explanation::Reference(_)).then_some(true);
        let query = ("one of several imports", &token.document.path, token.span.start);
        self.cx.state.tape.query_rare(IoKind::Index, &query, find).unwrap_or_default()
    }

    /// The definitions without the names in import statements: a server ends there when it cannot follow the import, such as of a
    /// name that a stub leaves out.
    pub(super) fn without_imports(&self, found: &Listing<LspLocation>) -> Listing<LspLocation> {
        let is_import = |place: &LspLocation| {
            let found = offset_of(self.cx, place).filter(|_| !self.claimed.contains(place));
            found.is_some_and(|(document, offset)| {
                // Most definitions are known without a tree of their file.
                self.cx.state.is_in_workspace(&document.path)
                    && self.classes.defined_at(&document.path, offset).is_none()
                    && matches!(Usage::of(&document.text).of_token(offset), TokenUse::Imported(_))
            })
        };
        let items = found.items.iter().filter(|place| !is_import(place)).cloned().collect();
        Listing { items, skipped: found.skipped }
    }

    /// Explains a token that has definitions.
    pub(super) fn explain_defined(&self, token: &Token, found: &Listing<LspLocation>) -> Explanation {
        let matches: Vec<DefinitionMatch> =
            found.items.iter().map(|place| self.match_location(token, place)).collect();
        let is_target = matches.iter().any(|one| matches!(one, DefinitionMatch::Target));
        if is_target && self.is_hidden_by_variable(token) {
            return if self.may_be_held(token) {
                Explanation::Unresolved(HELD.to_owned())
            } else {
                Explanation::Other
            };
        }
        if is_target {
            return Explanation::Reference(Evidence::rule(UseProvenance::Definition));
        }
        let dispatched = matches.iter().filter_map(|one| match one {
            DefinitionMatch::Dispatch(evidence) => Some(evidence),
            _ => None,
        });
        // Evidence through a base class is stronger than evidence through an interface.
        if let Some(evidence) = dispatched.min_by_key(|evidence| evidence.is_structural) {
            return Explanation::Reference(evidence.clone());
        }
        if matches.iter().any(|one| matches!(one, DefinitionMatch::AnyName)) {
            return Explanation::Unresolved("the receiver's class answers for any name".to_owned());
        }
        if let Some(interface) = matches.iter().find_map(|one| match one {
            DefinitionMatch::Interface(name) => Some(name),
            _ => None,
        }) {
            return Explanation::Unresolved(format!("receiver declared as the interface {interface}"));
        }
        if matches.iter().any(|one| matches!(one, DefinitionMatch::Computed)) {
            return Explanation::Unresolved(MAY_BE_SIBLING.to_owned());
        }
        if matches.iter().any(|one| matches!(one, DefinitionMatch::Alternative)) {
            return Explanation::Unresolved(ONE_OF_SEVERAL.to_owned());
        }
        if matches.iter().any(|one| matches!(one, DefinitionMatch::StubOnly)) {
            return Explanation::Unresolved(STUB_ONLY.to_owned());
        }
        // A stub may say that a name is imported from elsewhere than its source does.
        if self.symbol.is_in_stubs
            && matches!(self.symbol.reach, Reach::Global)
            && matches!(self.imported(token), Explanation::Reference(_))
        {
            return Explanation::Reference(Evidence::rule(UseProvenance::Stub));
        }
        let is_variable = matches.iter().any(|one| matches!(one, DefinitionMatch::Variable));
        if is_variable && self.may_be_held(token) {
            return Explanation::Unresolved(HELD.to_owned());
        }
        if self.symbol.replaces_methods && token.kind == OccurrenceKind::Attribute && self.is_called(token) {
            return Explanation::Unresolved(REPLACED.to_owned());
        }
        if matches!(self.symbol.reach, Reach::Member { .. })
            && token.receiver().is_some_and(|receiver| receiver.is_replaceable)
        {
            return Explanation::Unresolved("callers may pass another receiver".to_owned());
        }
        Explanation::Other
    }

    /// Whether a variable of a function has the symbol's name there, whatever the server says about code that cannot run.
    fn is_hidden_by_variable(&self, token: &Token) -> bool {
        matches!(self.symbol.reach, Reach::Global)
            && !self.symbol.is_fixture
            && token.kind == OccurrenceKind::Identifier
            && matches!(LocalBinding::of(&token.document, token), LocalBinding::Variable)
    }

    fn match_location(&self, token: &Token, place: &LspLocation) -> DefinitionMatch {
        if self.claimed.contains(place) && *place != token.place(self.cx) {
            return DefinitionMatch::Target;
        }
        let Some((document, offset)) = offset_of(self.cx, place) else { return DefinitionMatch::Other };
        if self.symbol.definitions.contains(&(document.path.clone(), offset)) {
            return DefinitionMatch::Target;
        }
        if let Some(evidence) = self.parameter_of_related_method(&document, offset) {
            return DefinitionMatch::Dispatch(evidence);
        }
        let Some(defined) = self.classes.defined_at(&document.path, offset) else {
            // A parameter or a local name.
            return if place.range == crate::text::Range::default() {
                DefinitionMatch::Other
            } else {
                DefinitionMatch::Variable
            };
        };
        if ANY_NAME.contains(&defined.name.as_str()) {
            return DefinitionMatch::AnyName;
        }
        if defined.name == self.symbol.name && self.is_beside(token, &document.path) {
            return DefinitionMatch::Alternative;
        }
        self.match_definition(token, &defined)
    }

    /// Whether a module of the name of this one is beside the token's file, and has the symbol. Python takes that if the file is run
    /// as a script or a test. In a package, it does not.
    fn is_beside(&self, token: &Token, module: &AbsPath) -> bool {
        let (folder, files) = (token.document.path.parent(), &self.cx.state.files);
        let is_namesake = |(path, _): &(AbsPath, usize)| {
            path.parent() == folder && module.parent() != folder && path.file_name() == module.file_name()
        };
        self.symbol.definitions.iter().any(is_namesake)
            && files.kind(&folder.join("__init__.py")) == FileKind::Missing
    }

    /// How a call reaches the parameter through the same parameter of the same method in a base class or a derived one.
    fn parameter_of_related_method(&self, document: &Document, offset: usize) -> Option<Evidence> {
        if !matches!(self.symbol.reach, Reach::Parameter) {
            return None;
        }
        let method_of = |path: &AbsPath, text: &str, offset: usize| {
            let function = parameter_at(text, offset)?.function?;
            let method = self.classes.defined_at(path, function.start)?;
            method.class.clone().map(|class| (method.name, class))
        };
        let (name, class) = method_of(&document.path, &document.text, offset)?;
        // These are called on one class, whatever others have.
        let is_mangled = name.starts_with("__") && !name.ends_with("__");
        if is_mangled || ["__init__", "__new__"].contains(&name.as_str()) {
            return None;
        }
        let is_related = |own: &Class| {
            own.id() != class.id()
                && (self.classes.inherits(own, &class.id()) || self.classes.inherits(&class, &own.id()))
        };
        let mut own = self.symbol.definitions.iter().filter_map(|(path, offset)| {
            let document = self.cx.state.files.read(path).ok()?;
            method_of(path, &document.text, *offset)
        });
        own.any(|(method, own)| method == name && is_related(&own))
            .then(|| Evidence::via(UseProvenance::Dispatch, format!("{}.{name}", class.id().name)))
    }

    pub(super) fn match_definition(&self, token: &Token, defined: &DefinitionInfo) -> DefinitionMatch {
        if defined.name == self.symbol.name {
            match self.family.dispatches(self.classes, defined) {
                // `super()` in the class itself skips the class.
                Dispatch::Nominal | Dispatch::Structural if self.is_past_own(token) => {}
                dispatch @ (Dispatch::Nominal | Dispatch::Structural) => {
                    let evidence = Evidence::via(UseProvenance::Dispatch, defined.qualname.join("."));
                    let is_structural = dispatch == Dispatch::Structural;
                    return DefinitionMatch::Dispatch(Evidence { is_structural, ..evidence });
                }
                Dispatch::Unknown(interface) => return DefinitionMatch::Interface(interface),
                Dispatch::Never => {
                    if defined.class.as_ref().is_some_and(|class| self.may_be_sibling(class)) {
                        return DefinitionMatch::Computed;
                    }
                    if defined.class.as_ref().is_some_and(|class| self.is_alternative(class)) {
                        return DefinitionMatch::Alternative;
                    }
                }
            }
        }
        if self.is_only_in_stub(defined) {
            return DefinitionMatch::StubOnly;
        }
        if is_declared(defined) { DefinitionMatch::Other } else { DefinitionMatch::Variable }
    }

    /// Whether a member's class is declared in a stub of the workspace, and the source has nothing of its name.
    fn is_only_in_stub(&self, defined: &DefinitionInfo) -> bool {
        let Some(class) =
            defined.class.as_ref().filter(|_| matches!(self.symbol.reach, Reach::Member { .. }))
        else {
            return false;
        };
        let path = &class.document().path;
        path.as_str().ends_with(".pyi")
            && self.cx.state.is_in_workspace(path)
            && self.classes.stub_or_source(path).is_some_and(|source| {
                // The source may bind the name to a class by an assignment or an import.
                let (_, chain) = defined.qualname.split_last().unwrap_or((&defined.name, &[]));
                self.classes.named(&source, chain).is_empty()
                    && self.classes.resolve(&source, chain).is_empty()
            })
    }

    /// Whether a class of the workspace may have a subclass in common with the symbol's, or that be one, because a base is computed.
    pub(super) fn may_be_sibling(&self, class: &Class) -> bool {
        self.once(&self.siblings, "computed siblings", class, || {
            let below = self.classes.subclasses(class, &|name| files_with(self.cx, name));
            let may_be_above = || self.family.may_be_derived_from(self.classes, class, &below.names);
            let mut derived = below.classes.iter();
            derived.any(|derived| self.family.may_inherit(self.classes, derived)) || may_be_above()
        })
    }

    /// Whether one name may mean a class of the workspace or the symbol's.
    fn is_alternative(&self, class: &Class) -> bool {
        self.once(&self.has_alternative, "alternatives", class, || {
            let own = self.symbol.definitions.iter().filter_map(|(path, offset)| {
                self.classes.defined_at(path, *offset).and_then(|defined| defined.class)
            });
            let alternatives = self.alternatives.get_or_init(|| Alternatives::find(self.cx, self.classes));
            let mut own = own.filter(|own| own.id() != class.id());
            own.any(|own| alternatives.are(self.classes, &own, class))
        })
    }

    /// What holds for a class of the workspace and the symbol's, found once; false for any other class.
    fn once(
        &self,
        known: &Mutex<BTreeMap<ClassId, bool>>,
        what: &str,
        class: &Class,
        find: impl FnOnce() -> bool,
    ) -> bool {
        if !self.cx.state.is_in_workspace(&class.document().path) {
            return false;
        }
        let id = class.id();
        self.remember(known, id.clone(), &(what, &self.family.own, &id), find)
    }

    /// What holds for a key, found once, and rarely true. `query` names it on the tape.
    pub(super) fn remember<K: Ord>(
        &self,
        known: &Mutex<BTreeMap<K, bool>>,
        key: K,
        query: &impl Serialize,
        find: impl FnOnce() -> bool,
    ) -> bool {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(key).or_insert_with(|| {
            let find = || find().then_some(true);
            self.cx.state.tape.query_rare(IoKind::Index, query, find).unwrap_or_default()
        })
    }

    /// Whether a token is an attribute of `super()` in the class whose member the symbol is.
    fn is_past_own(&self, token: &Token) -> bool {
        token.receiver().is_some_and(|receiver| receiver.is_self && receiver.is_call)
            && self
                .classes
                .around(&token.document.path, token.span.start)
                .is_some_and(|class| self.family.is_own(&class.id()))
    }

    fn is_called(&self, token: &Token) -> bool {
        token.syntax().used == TokenUse::Called
    }

    /// Whether a variable is called that may hold the symbol.
    fn may_be_held(&self, token: &Token) -> bool {
        if !self.symbol.is_callable || !self.is_called(token) {
            return false;
        }
        let is_passed = self.is_passed();
        if !is_passed {
            let mut called = self.called_variables.lock().unwrap_or_else(PoisonError::into_inner);
            called.insert(token.place(self.cx));
        }
        is_passed
    }

    fn is_passed(&self) -> bool {
        *self.is_passed.get_or_init(|| values::is_passed(self.cx, self.symbol, &self.claimed))
    }

    /// A string that the server does not know as a key. Pyright knows it where the dictionary is declared to be the `TypedDict`, but for
    /// those that are merged with one; ty knows no key of a dictionary that is written out.
    fn key(&self, token: &Token) -> Explanation {
        let is_key = self.symbol.class().is_some_and(|class| is_typed_dict(self.classes, class));
        let knows_keys = Profile::of(self.cx.settings.server).defines_keys;
        match Usage::of(&token.document.text).dictionary_key(&token.span) {
            Some(is_merged) if is_key && (is_merged || !knows_keys) => {
                Explanation::Unresolved("it may be the key of a dictionary of that type".to_owned())
            }
            _ => Explanation::Text,
        }
    }

    /// A name that an import binds which the server cannot resolve, or that is in code that it does not check.
    fn imported(&self, token: &Token) -> Explanation {
        let document = &token.document;
        let chain: Vec<String> = match token.receiver() {
            Some(receiver) => {
                let Some(dotted) = &receiver.dotted else { return Explanation::Other };
                dotted.split('.').chain([token.text()]).map(str::to_owned).collect()
            }
            None => vec![token.text().to_owned()],
        };
        if chain.len() == 1 {
            match LocalBinding::of(document, token) {
                LocalBinding::None => {}
                LocalBinding::Variable => return Explanation::Other,
                LocalBinding::Imports(imports) => {
                    let resolve =
                        |import: &Import| resolve_import(self.cx, self.classes, &document.path, import, &[]);
                    let found: Vec<_> = imports.iter().map(resolve).collect();
                    if found.iter().flatten().any(|place| self.symbol.definitions.contains(place)) {
                        return Explanation::Reference(Evidence::rule(UseProvenance::Scope));
                    }
                    if found.iter().all(|places| !places.is_empty()) {
                        return Explanation::Other;
                    }
                }
            }
        }
        let reached = self.classes.resolve(&document.path, &chain);
        if reached.iter().any(|place| self.symbol.definitions.contains(place)) {
            return Explanation::Reference(Evidence::rule(UseProvenance::Scope));
        }
        if !reached.is_empty() {
            return Explanation::Other;
        }
        // `__getattr__` of a module of the workspace answers for any name.
        let module = chain.split_last().map(|(_, module)| [module, &["__getattr__".to_owned()]].concat());
        let answers = |chain: &Vec<String>| {
            let found = self.classes.resolve(&document.path, chain);
            found.iter().any(|(path, _)| self.cx.state.is_in_workspace(path))
        };
        if module.as_ref().is_some_and(|chain| chain.len() > 1 && answers(chain)) {
            return Explanation::Unresolved("the module answers for any name".to_owned());
        }
        let outline = Outline::parse(&document.text);
        let first = chain.first().map(String::as_str).unwrap_or_default();
        let may_be_made = outline.imports.iter().any(|import| {
            import.bound == first
                && matches!(import.what, Imported::Name(_))
                && self.module_of(&document.path, import).is_some_and(|module| {
                    self.cx.state.is_in_workspace(&module)
                        && !self.classes.resolve(&module, &["__getattr__".to_owned()]).is_empty()
                })
        });
        if may_be_made {
            return Explanation::Unresolved("the module answers for any name".to_owned());
        }
        let unresolved = outline.imports.iter().find(|import| {
            let is_it =
                import.bound == first || matches!(&import.what, Imported::Name(name) if name == first);
            let is_ours = self.symbol.modules.iter().any(|own| {
                let last = import.module.rsplit('.').next().unwrap_or_default();
                own.split('.').any(|part| part == last)
            });
            is_it && is_ours && !self.is_found(&document.path, import)
        });
        match unresolved {
            Some(import) => {
                Explanation::Unresolved(format!("the import of `{}` cannot be resolved", import.module))
            }
            None => Explanation::Other,
        }
    }

    pub(super) fn is_found(&self, file: &AbsPath, import: &Import) -> bool {
        self.module_of(file, import).is_some()
    }

    /// The file of the module that an import names.
    fn module_of(&self, file: &AbsPath, import: &Import) -> Option<AbsPath> {
        let (roots, files) = (&self.cx.state.inputs.roots, &self.cx.state.files);
        roots.imported(files, import, file)?.file().cloned()
    }

    pub(super) fn classes_at<'p>(&self, places: impl IntoIterator<Item = &'p LspLocation>) -> Vec<Class> {
        let class_at = |place: &LspLocation| {
            let (document, offset) = offset_of(self.cx, place)?;
            self.classes.class_at(&document.path, offset)
        };
        places.into_iter().filter_map(class_at).collect()
    }
}

/// Whether it is a class or a function, and no variable.
fn is_declared(defined: &DefinitionInfo) -> bool {
    defined.kind.is_function() || defined.kind == crate::python::outline::DefinitionKind::Class
}

fn not_looked_at() -> Explanation {
    Explanation::Unresolved(NOT_CHECKED.to_owned())
}

/// Why the call of a variable is unresolved.
pub(super) const HELD: &str = "it is a variable that may hold it";

/// Why the call of a method is unresolved.
pub(super) const REPLACED: &str = "an assignment to an object's attribute may have replaced it";

/// Why a member is unresolved that only a stub knows.
const STUB_ONLY: &str = "its class is only declared in a stub: at run time it is another one";

/// How a function binds a name.
enum LocalBinding {
    /// Not at all.
    None,
    /// As a parameter or a variable.
    Variable,
    /// By these imports.
    Imports(Vec<Import>),
}

impl LocalBinding {
    fn of(document: &Document, token: &Token) -> Self {
        let (at, usage) = (token.span.start, Usage::of(&document.text));
        if let TokenUse::Imported(alias) = usage.of_token(at) {
            let import = usage.import_binding(alias.map_or(at, |alias| alias.start));
            let is_local = !usage.enclosing_functions(at).is_empty();
            return import.filter(|_| is_local).map_or(Self::None, |import| Self::Imports(vec![import]));
        }
        let scopes = Scopes::of(&document.text, &[token.text()]);
        if !matches!(scopes.home(at), Some(ScopeKind::Function | ScopeKind::Comprehension)) {
            return Self::None;
        }
        let bound = scopes.bound_by(at).unwrap_or_default();
        let imports: Vec<Import> = bound.iter().filter_map(|span| usage.import_binding(span.start)).collect();
        match (bound.is_empty(), imports.is_empty()) {
            (true, _) => Self::None,
            (false, true) => Self::Variable,
            (false, false) => Self::Imports(imports),
        }
    }
}
