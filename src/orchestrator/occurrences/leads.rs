//! Where a token leads, as the server says, and what that makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::OnceLock;

use super::super::ask::Asking;
use super::super::failure::Failure;
use super::classify::Question;
use super::family::{Dispatch, Family};
use super::symbol::{Reach, Symbol};
use super::{Evidence, Explained, Explanation, NOT_LOOKED_AT, Token, WINDOW, files_with, offset_of};
use crate::lsp::error::LspError;
use crate::lsp::{Listing, Place, Questions};
use crate::model::facts::UseProvenance;
use crate::model::request::Scope;
use crate::path::AbsPath;
use crate::resolve::classes::{Class, ClassId, Classes, Defined};
use crate::resolve::hierarchy::Relation;
use crate::resolve::occurrences::OccurrenceKind;
use crate::resolve::origin::is_foreign_object;
use crate::resolve::outline::Outline;
use crate::resolve::roles::overloaded_types;
use crate::resolve::usage::{TokenUse, Usage};
use crate::text::Position;
use crate::workspace::files::Files as _;

/// Methods that answer for any name after a dot.
pub(super) const ANY_NAME: [&str; 2] = ["__getattr__", "__getattribute__"];

/// Functions that copy an object with other values for fields.
const REPLACERS: [&str; 5] = ["replace", "_replace", "evolve", "assoc", "__replace__"];

/// Functions of libraries that pass keyword arguments on to a function that they are given.
const FORWARDERS: [&str; 14] = [
    "partial",
    "partialmethod",
    "submit",
    "to_thread",
    "run_in_executor",
    "apply",
    "call_soon",
    "assertRaises",
    "assertWarns",
    "raises",
    "warns",
    "callback",
    "push_async_callback",
    "register",
];

/// A question that was asked, or answered before.
enum Asked {
    Cached(Listing<Place>),
    Server(Pin<Box<dyn Future<Output = Result<Listing<Place>, LspError>> + Send>>),
}

/// Explains tokens by what the server says of them.
pub(super) struct Leads<'l> {
    pub(super) asking: &'l Asking<'l>,
    pub(super) classes: &'l Classes<'l>,
    pub(super) symbol: &'l Symbol,
    family: &'l Family,
    pub(super) claimed: BTreeSet<Place>,
    /// Whether the symbol is handed on as a value somewhere, so that a variable may hold it.
    is_passed: OnceLock<bool>,
}

/// What one place that a token leads to is.
enum Lead {
    Target,
    Dispatch(Evidence),
    AnyName,
    Interface(String),
    Variable,
    Other,
}

impl<'l> Leads<'l> {
    pub(super) fn new(
        asking: &'l Asking<'l>,
        classes: &'l Classes<'l>,
        symbol: &'l Symbol,
        family: &'l Family,
        explained: &Explained,
    ) -> Self {
        let claimed = explained.references.keys().cloned().collect();
        Self { asking, classes, symbol, family, claimed, is_passed: OnceLock::new() }
    }

    /// Asks the server about each token, in their order.
    pub(super) async fn ask(
        &self,
        asked: Vec<(Token, Question)>,
    ) -> Result<(Vec<(Token, Explanation)>, bool), Failure> {
        let mut found = Vec::with_capacity(asked.len());
        let total = asked.len();
        let mut is_late = false;
        for window in asked.chunks(WINDOW) {
            if is_late {
                let rest = window.iter().map(|(token, _)| (token.clone(), not_looked_at()));
                found.extend(rest);
                continue;
            }
            let questions = self.asking.last_questions();
            self.asking
                .settings
                .progress
                .step(&format!("explaining occurrences: {} of {total}", found.len()));
            let mut answers = Vec::with_capacity(window.len());
            for (token, question) in window {
                let path = &token.document.path;
                answers.push(match question {
                    Question::Token | Question::Imported | Question::Key => {
                        (self.definition(&questions, token), None)
                    }
                    Question::Subscripted(subject) => {
                        let at = self.position(token, subject.start);
                        let itself = Asked::Server(Box::pin(questions.definition(path, at)));
                        (itself, Some(questions.type_definition(path, at)))
                    }
                });
            }
            for ((token, question), (answer, of_type)) in window.iter().zip(answers) {
                let explanation = async {
                    let answer = match answer {
                        Asked::Cached(listing) => listing,
                        Asked::Server(answer) => {
                            let listing = answer.await?;
                            self.cache(token, question, &listing);
                            listing
                        }
                    };
                    match of_type {
                        Some(of_type) => Ok(self.subscripted(&answer, &of_type.await?)),
                        None => self.explain(token, question, &answer).await,
                    }
                };
                let explanation = match explanation.await {
                    Err(failure) if self.asking.is_over(&failure) => {
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

    /// Where a token leads: as the server said before about the same inputs, or as it is asked now. What is recorded is asked.
    fn definition(&self, questions: &Questions, token: &Token) -> Asked {
        let state = self.asking.state;
        let cached = self.is_cached().then(|| state.ground.leads.get(&token.document.path, token.span.start));
        match cached.flatten() {
            Some(listing) => Asked::Cached(listing),
            None => {
                let at = self.position(token, token.span.start);
                Asked::Server(Box::pin(questions.definition(&token.document.path, at)))
            }
        }
    }

    /// Whether answers are cached. A server that was shown fewer files may answer otherwise.
    fn is_cached(&self) -> bool {
        self.asking.state.tape.is_off() && self.asking.request.options.scope == Scope::Workspace
    }

    fn cache(&self, token: &Token, question: &Question, listing: &Listing<Place>) {
        let state = self.asking.state;
        let holds = state.ground.holds(&token.document.path, Some(token.document.digest)) == Some(true);
        if self.is_cached() && holds && !matches!(question, Question::Subscripted(_)) {
            state.ground.leads.put(&token.document.path, token.span.start, listing);
        }
    }

    pub(super) fn position(&self, token: &Token, offset: usize) -> Position {
        token.document.lines.position(&token.document.text, offset, self.asking.places.server_unit)
    }

    /// What a token is that leads to these places.
    pub(super) async fn explain(
        &self,
        token: &Token,
        question: &Question,
        found: &Listing<Place>,
    ) -> Result<Explanation, Failure> {
        if !found.items.is_empty() || found.skipped > 0 {
            let explanation = self.led(token, found);
            let is_unrelated = self.may_be_unrelated(&explanation, found) && self.is_unrelated(token).await?;
            return Ok(if is_unrelated { Explanation::Other } else { explanation });
        }
        match (question, token.kind) {
            (Question::Key, _) => Ok(Explanation::Text),
            (Question::Imported, _) => Ok(self.imported(token)),
            (_, OccurrenceKind::Keyword) => self.keyword(token).await,
            _ => self.attribute(token).await,
        }
    }

    /// Whether a member is reached through a base class outside the workspace, from which many unrelated classes inherit, too:
    /// `os.environ.update` leads to `MutableMapping.update`.
    fn may_be_unrelated(&self, explanation: &Explanation, found: &Listing<Place>) -> bool {
        let Explanation::Reference(evidence) = explanation else { return false };
        !self.family.has_unknown_base
            && evidence.provenance == Some(UseProvenance::Dispatch)
            && found.items.iter().all(|place| !self.asking.state.is_in_workspace(&place.path))
    }

    /// Whether the receiver of a token is of classes that have nothing to do with the symbol's.
    async fn is_unrelated(&self, token: &Token) -> Result<bool, Failure> {
        let usage = Usage::of(&token.document.text);
        let receiver =
            usage.receiver(token.span.start).filter(|receiver| !receiver.is_call && !receiver.is_self);
        let Some(name) = receiver.and_then(|receiver| receiver.name) else { return Ok(false) };
        let (path, at) = (&token.document.path, self.position(token, name.start));
        let questions = self.asking.last_questions();
        let hover = questions.hover(path, at).await?;
        if hover.is_none_or(|hover| hides_types(&hover.markdown)) {
            return Ok(false);
        }
        let of_type = questions.type_definition(path, at).await?;
        let classes = self.classes_at(&of_type.items);
        let is_unrelated = |class: &Class| {
            let id = class.id();
            !self.family.is_own(&id)
                && self.family.relation(&id).is_none()
                && !class.is_derived_from("Protocol")
        };
        Ok(!classes.is_empty() && classes.len() == of_type.items.len() && classes.iter().all(is_unrelated))
    }

    /// What a token is that leads somewhere.
    pub(super) fn led(&self, token: &Token, found: &Listing<Place>) -> Explanation {
        let leads: Vec<Lead> = found.items.iter().map(|place| self.lead(token, place)).collect();
        if leads.iter().any(|lead| matches!(lead, Lead::Target)) {
            return Explanation::Reference(Evidence::rule(UseProvenance::Definition));
        }
        let dispatched = leads.iter().filter_map(|lead| match lead {
            Lead::Dispatch(evidence) => Some(evidence),
            _ => None,
        });
        // What is reached through an interface only says so.
        if let Some(evidence) = dispatched.min_by_key(|evidence| evidence.is_structural) {
            return Explanation::Reference(evidence.clone());
        }
        if leads.iter().any(|lead| matches!(lead, Lead::AnyName)) {
            return Explanation::Unresolved("the receiver's class answers for any name".to_owned());
        }
        if let Some(interface) = leads.iter().find_map(|lead| match lead {
            Lead::Interface(name) => Some(name),
            _ => None,
        }) {
            return Explanation::Unresolved(format!("receiver declared as the interface {interface}"));
        }
        // A stub may say that a name is imported from elsewhere than its source does.
        if self.symbol.is_in_stubs
            && matches!(self.symbol.reach, Reach::Global)
            && matches!(self.imported(token), Explanation::Reference(_))
        {
            return Explanation::Reference(Evidence::rule(UseProvenance::Stub));
        }
        let is_variable = leads.iter().any(|lead| matches!(lead, Lead::Variable));
        if is_variable && self.symbol.is_callable && self.is_called(token) && self.is_passed() {
            return Explanation::Unresolved("it leads to a variable that may hold it".to_owned());
        }
        Explanation::Other
    }

    fn lead(&self, token: &Token, place: &Place) -> Lead {
        if self.claimed.contains(place) && *place != token.place(self.asking) {
            return Lead::Target;
        }
        let Some((document, offset)) = offset_of(self.asking, place) else { return Lead::Other };
        if self.symbol.definitions.contains(&(document.path.clone(), offset)) {
            return Lead::Target;
        }
        let Some(defined) = self.classes.defined_at(&document.path, offset) else {
            // A parameter or a local name.
            return if place.range == crate::text::Range::default() { Lead::Other } else { Lead::Variable };
        };
        if ANY_NAME.contains(&defined.name.as_str()) {
            return Lead::AnyName;
        }
        self.lead_of(token, &defined)
    }

    fn lead_of(&self, token: &Token, defined: &Defined) -> Lead {
        if defined.name == self.symbol.name {
            match self.family.dispatches(self.classes, defined) {
                // `super()` in the class itself leads past it.
                Dispatch::Nominal | Dispatch::Structural if self.is_past_own(token) => {}
                dispatch @ (Dispatch::Nominal | Dispatch::Structural) => {
                    let evidence = Evidence::via(UseProvenance::Dispatch, defined.qualname.join("."));
                    let is_structural = dispatch == Dispatch::Structural;
                    return Lead::Dispatch(Evidence { is_structural, ..evidence });
                }
                Dispatch::Unknown(interface) => return Lead::Interface(interface),
                Dispatch::Never => {}
            }
        }
        let is_declared =
            defined.kind.is_function() || defined.kind == crate::resolve::outline::DefinitionKind::Class;
        if is_declared { Lead::Other } else { Lead::Variable }
    }

    /// Whether a token is an attribute of `super()` in the class whose member the symbol is.
    fn is_past_own(&self, token: &Token) -> bool {
        let usage = Usage::of(&token.document.text);
        let receiver = usage.receiver(token.span.start);
        receiver.is_some_and(|receiver| receiver.is_self && receiver.is_call)
            && self
                .classes
                .around(&token.document.path, token.span.start)
                .is_some_and(|class| self.family.is_own(&class.id()))
    }

    fn is_called(&self, token: &Token) -> bool {
        Usage::of(&token.document.text).of_token(token.span.start) == TokenUse::Called
    }

    /// Whether the symbol is handed on as a value somewhere in the workspace.
    fn is_passed(&self) -> bool {
        *self.is_passed.get_or_init(|| {
            let places: Vec<&Place> = self.claimed.iter().collect();
            places.chunk_by(|a, b| a.path == b.path).any(|file| {
                if !self.asking.state.is_in_workspace(&file[0].path) {
                    return false;
                }
                let Ok(document) = self.asking.state.files.read(&file[0].path) else { return false };
                let usage = Usage::of(&document.text);
                file.iter().any(|place| {
                    let offset = offset_of(self.asking, place);
                    offset.is_some_and(|(_, offset)| {
                        matches!(usage.of_token(offset), TokenUse::Passed | TokenUse::Assigned(_))
                    })
                })
            })
        })
    }

    /// A name that an import binds which the server cannot resolve, or that is in code that it does not check.
    fn imported(&self, token: &Token) -> Explanation {
        let document = &token.document;
        let usage = Usage::of(&document.text);
        let receiver = usage.receiver(token.span.start);
        let chain: Vec<String> = match &receiver {
            Some(receiver) => {
                let Some(dotted) = &receiver.dotted else { return Explanation::Other };
                dotted.split('.').chain([token.text()]).map(str::to_owned).collect()
            }
            None => vec![token.text().to_owned()],
        };
        let reached = self.classes.reached(&document.path, &chain);
        if reached.iter().any(|place| self.symbol.definitions.contains(place)) {
            return Explanation::Reference(Evidence::rule(UseProvenance::Scope));
        }
        if !reached.is_empty() {
            return Explanation::Other;
        }
        let outline = Outline::parse(&document.text);
        let first = chain.first().map(String::as_str).unwrap_or_default();
        let unresolved = outline.imports.iter().find(|import| {
            let is_it = import.bound == first
                || matches!(&import.what, crate::resolve::outline::Imported::Name(name) if name == first);
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

    fn is_found(&self, file: &AbsPath, import: &crate::resolve::outline::Import) -> bool {
        let (roots, files) = (&self.asking.state.ground.roots, &self.asking.state.files);
        let module = if import.level > 0 {
            roots.relative(files, import.level, &import.module, file)
        } else {
            roots.import(files, &import.module, file)
        };
        module.is_some_and(|module| module.file().is_some())
    }

    /// An attribute that leads nowhere.
    async fn attribute(&self, token: &Token) -> Result<Explanation, Failure> {
        let usage = Usage::of(&token.document.text);
        let unknown = || Explanation::Unresolved("receiver type unknown".to_owned());
        let Some(receiver) = usage.receiver(token.span.start) else { return Ok(unknown()) };
        if receiver.is_self
            && let Some(class) = self.classes.around(&token.document.path, token.span.start)
        {
            return Ok(self.of_self(&class));
        }
        if !self.family.has_unknown_base && self.is_foreign(token, &receiver.span) {
            return Ok(Explanation::Other);
        }
        let Some(name) = receiver.name else { return Ok(unknown()) };
        let (path, at) = (&token.document.path, self.position(token, name.start));
        let questions = self.asking.last_questions();
        let found = questions.definition(path, at).await?;
        let is_module = |place: &Place| place.range == crate::text::Range::default();
        // What a module has is no member of a class.
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
            if hover.is_none_or(|hover| hides_types(&hover.markdown)) {
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
    fn overloaded(&self, token: &Token, places: &[Place]) -> Option<Explanation> {
        let [place] = places else { return None };
        let (document, offset) = offset_of(self.asking, place)?;
        let types = overloaded_types(&document.text, offset);
        let evidence = types.iter().find_map(|dotted| {
            let class = self.classes.class_named(&document.path, dotted)?;
            let mut order = std::iter::once(class.clone()).chain(self.classes.ancestors(&class));
            let first = order.find(|class| class.has(&self.symbol.name))?;
            let via = format!("{}.{}", first.id().name, self.symbol.name);
            if self.family.is_own(&first.id()) {
                return Some(Evidence::via(UseProvenance::Dispatch, via));
            }
            let span = first.members(&self.symbol.name).next()?;
            let defined = self.classes.defined_at(&first.document().path, span.start)?;
            match self.lead_of(token, &defined) {
                Lead::Dispatch(evidence) => Some(evidence),
                _ => None,
            }
        });
        evidence.map(Explanation::Reference)
    }

    /// An attribute of objects of these classes that the server does not know. A class and its declaration in a stub are one.
    fn of_dynamic_classes(&self, classes: &[Class]) -> Explanation {
        if classes.is_empty() {
            return Explanation::Unresolved("receiver type unknown".to_owned());
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
        let is_object = |class: &Class| class.name() == "object" && class.id().module == "builtins";
        if is_object(class) {
            return None;
        }
        // `object` has `__getattribute__`, which answers only for the names that there are.
        let order: Vec<Class> = std::iter::once(class.clone())
            .chain(self.classes.ancestors(class))
            .filter(|class| !is_object(class))
            .collect();
        if let Some(first) = order.iter().find(|class| class.has(name)) {
            return Some(self.member_of(first));
        }
        match self.family.relation(&id) {
            _ if self.family.is_own(&id) => return None,
            Some(Relation::Above | Relation::Beside) => {
                return Some(Explanation::Reference(Evidence::via(UseProvenance::Dispatch, id.name)));
            }
            Some(Relation::Below) => return None,
            None => {}
        }
        if let Some(dynamic) = order.iter().find(|class| answers_any_name(class)) {
            return (!self.asking.state.is_in_workspace(&dynamic.document().path))
                .then_some(Explanation::Other);
        }
        if self.classes.has_unknown_base(class) {
            return (!self.family.has_unknown_base).then_some(Explanation::Other);
        }
        let is_ours = self.asking.state.is_in_workspace(&class.document().path);
        (is_ours && !class.is_derived_from("Protocol")).then(|| self.of_derived(class)).flatten()
    }

    /// An attribute that a class does not have, but classes derived from it may: the object is of one of those.
    fn of_derived(&self, class: &Class) -> Option<Explanation> {
        let below = self.classes.subclasses(class, &|name| files_with(self.asking, name));
        if below.is_cut {
            return None;
        }
        let members = below.classes.iter().filter_map(|derived| {
            let mut order = std::iter::once(derived.clone()).chain(self.classes.ancestors(derived));
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
        is_foreign_object(&document.text, receiver, &|import| {
            import.level == 0 && !self.is_found(&document.path, import) && !self.may_be_ours(&import.module)
        })
    }

    /// Whether a module that cannot be found may be one of the workspace's under another root: a package or a module of the
    /// workspace has the first part of its name.
    fn may_be_ours(&self, module: &str) -> bool {
        let first = module.split('.').next().unwrap_or_default();
        let files = self.asking.state.ground.snapshot.files().keys();
        let (folder, file) = (format!("{first}/"), format!("{first}.py"));
        let is_it = |path: &str| {
            path == file
                || path.starts_with(&folder)
                || path.contains(&format!("/{folder}"))
                || path.ends_with(&format!("/{file}"))
        };
        files.into_iter().any(|path| is_it(path.as_str()))
    }

    /// `self.name` where the server does not know the name: the class may be a mixin, or the code is not checked.
    fn of_self(&self, class: &Class) -> Explanation {
        let name = &self.symbol.name;
        let order = std::iter::once(class.clone()).chain(self.classes.ancestors(class));
        if let Some(first) = order.into_iter().find(|class| class.has(name)) {
            return self.member_of(&first);
        }
        if self.family.relation(&class.id()).is_some_and(|relation| relation != Relation::Below) {
            return Explanation::Reference(Evidence::via(UseProvenance::Dispatch, class.id().name));
        }
        if self.classes.has_unknown_base(class) {
            return Explanation::Unresolved("a base class cannot be found".to_owned());
        }
        let below = self.classes.subclasses(class, &|name| files_with(self.asking, name));
        let reaches = below.classes.iter().any(|derived| {
            let order = std::iter::once(derived.clone()).chain(self.classes.ancestors(derived));
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
            Some(Relation::Above | Relation::Beside) => {
                let via = format!("{}.{}", id.name, self.symbol.name);
                Explanation::Reference(Evidence::via(UseProvenance::Dispatch, via))
            }
            _ => Explanation::Other,
        }
    }

    /// A keyword argument that leads nowhere.
    async fn keyword(&self, token: &Token) -> Result<Explanation, Failure> {
        let usage = Usage::of(&token.document.text);
        let Some(used) = usage.keyword(token.span.start) else { return Ok(Explanation::Other) };
        let path = &token.document.path;
        let questions = self.asking.last_questions();
        if used.is_class {
            return Ok(self.class_keyword(token));
        }
        if REPLACERS.contains(&used.function.as_str()) && matches!(self.symbol.reach, Reach::Member { .. }) {
            let Some(subject) = used.subject else {
                return Ok(Explanation::Unresolved("the type of what is replaced is unknown".to_owned()));
            };
            let of_type = questions.type_definition(path, self.position(token, subject.start)).await?;
            return Ok(self.of_type(&of_type, UseProvenance::Replace));
        }
        let Some(callee) = used.callee else {
            return Ok(Explanation::Unresolved("what is called is unknown".to_owned()));
        };
        let found = questions.definition(path, self.position(token, callee.start)).await?;
        if found.items.is_empty() {
            return Ok(Explanation::Unresolved(format!("what `{}` is is unknown", used.function)));
        }
        let is_outside = found.items.iter().all(|place| !self.asking.state.is_in_workspace(&place.path));
        if is_outside && !FORWARDERS.contains(&used.function.as_str()) {
            return Ok(Explanation::Other);
        }
        Ok(Explanation::Unresolved(format!("`{}` may pass its keyword arguments on", used.function)))
    }

    /// `class C(Base, key=…)`: the base may say with `Unpack` which keywords it takes.
    fn class_keyword(&self, token: &Token) -> Explanation {
        let outline = Outline::parse(&token.document.text);
        let head = outline.definitions.iter().find(|definition| {
            let signature = definition.signature.as_ref();
            signature.is_some_and(|signature| signature.contains(&token.span.start))
        });
        let class = head.and_then(|head| self.classes.class_at(&token.document.path, head.name_span.start));
        let Some(class) = class else { return Explanation::Unresolved("a keyword of a class".to_owned()) };
        let own = self.symbol.class().map(|class| class.name().to_owned()).unwrap_or_default();
        let heads = self.classes.ancestors(&class);
        let mut known = false;
        for above in &heads {
            if let Some(signature) = above.signature_of("__init_subclass__") {
                known = true;
                let unpacked = signature.split("Unpack[").nth(1).and_then(|rest| rest.split(']').next());
                if unpacked.is_some_and(|name| name.rsplit('.').next() == Some(own.as_str())) {
                    return Explanation::Reference(Evidence::rule(UseProvenance::ClassKeyword));
                }
            }
        }
        let is_parameter = matches!(self.symbol.reach, Reach::Parameter);
        if known && !is_parameter {
            Explanation::Other
        } else {
            Explanation::Unresolved("a keyword of a class".to_owned())
        }
    }

    /// `x["key"]`, where `x` leads to a class or has a type.
    fn subscripted(&self, itself: &Listing<Place>, of_type: &Listing<Place>) -> Explanation {
        let is_function = |place: &Place| {
            let defined = offset_of(self.asking, place)
                .and_then(|(document, offset)| self.classes.defined_at(&document.path, offset));
            defined.is_some_and(|defined| defined.kind.is_function())
        };
        // A function is no object of a class of the workspace.
        if !itself.items.is_empty() && itself.items.iter().all(is_function) {
            return Explanation::Other;
        }
        let all = itself.items.iter().chain(&of_type.items);
        self.of_classes(&self.classes_at(all), UseProvenance::Subscript)
    }

    fn of_type(&self, found: &Listing<Place>, provenance: UseProvenance) -> Explanation {
        self.of_classes(&self.classes_at(&found.items), provenance)
    }

    fn classes_at<'p>(&self, places: impl IntoIterator<Item = &'p Place>) -> Vec<Class> {
        let class_at = |place: &Place| {
            let (document, offset) = offset_of(self.asking, place)?;
            self.classes.class_at(&document.path, offset)
        };
        places.into_iter().filter_map(class_at).collect()
    }

    fn of_classes(&self, classes: &[Class], provenance: UseProvenance) -> Explanation {
        if classes.is_empty() {
            return Explanation::Unresolved("the type is unknown".to_owned());
        }
        let is_ours = |class: &Class| {
            let id = class.id();
            self.family.is_own(&id) || self.family.relation(&id) == Some(Relation::Below)
        };
        let above = classes.iter().find(|class| self.family.relation(&class.id()) == Some(Relation::Above));
        if classes.iter().any(is_ours) {
            Explanation::Reference(Evidence::rule(provenance))
        } else if let Some(above) = above {
            Explanation::Reference(Evidence::via(UseProvenance::Dispatch, above.id().name))
        } else {
            Explanation::Other
        }
    }
}

/// Whether a class has a method of its own that answers for any name.
pub(super) fn answers_any_name(class: &Class) -> bool {
    ANY_NAME.iter().any(|name| class.has(name))
}

fn not_looked_at() -> Explanation {
    Explanation::Unresolved(NOT_LOOKED_AT.to_owned())
}

/// Whether a hover shows a type of which a part is unknown. The arguments of a generic class do not matter: `list[Any]` is a
/// list; but `type[Any]` is any class.
fn hides_types(markdown: &str) -> bool {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    let Some((_, declared)) = markdown.split_once(": ") else { return !markdown.contains("(class)") };
    let mut is_argument = vec![false];
    let mut word = String::new();
    for c in declared.chars().chain([' ']) {
        if is_word(c) {
            word.push(c);
            continue;
        }
        let hides = matches!(word.as_str(), "Unknown" | "Any");
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

    #[test]
    fn types_that_hide_something() {
        assert!(!hides_types("```python\n(variable) x: S\n```"));
        assert!(!hides_types("```python\n(class) C\n```"));
        assert!(hides_types("```python\n(variable) x: S | Unknown\n```"));
        assert!(hides_types("```python\n(parameter) o\n```"));
        assert!(hides_types("```python\n(variable) x: type[Unknown]\n```"));
        assert!(hides_types("```python\n(variable) x: dict[str, Any] | Any\n```"));
        assert!(!hides_types("```python\n(variable) x: dict[str, Any]\n```"));
    }
}
