//! Explains every occurrence of a name, so that a list of references can be called complete.
//!
//! A server reports the references whose types it can infer. It does not say why it leaves out the others: they may be
//! another symbol of the same name, or have a receiver of unknown type. So each occurrence that it does not report is explained
//! here, by a rule of the language where one is certain, else by requesting the definition of that token from the server:
//!
//! 1. [`closure`]: the symbol's definitions (a source and its stub), its aliases, and what the server claims for each.
//! 2. [`classify`]: what each other occurrence can be, as far as syntax tells.
//! 3. [`explainer`]: the server's definitions for the rest. [`family`] tells members of related classes apart, [`receivers`] and
//!    [`arguments`] explain what has no definition.
//! 4. [`fixtures`]: what stays unresolved is asked once more with types for the parameters that pytest and decorators pass.
//!
//! The set of questions and their order are a function of inputs and request.

mod alternatives;
mod arguments;
mod classify;
mod closure;
mod explainer;
mod family;
pub(super) mod fixtures;
mod mocks;
mod overlays;
mod overridden;
mod quoted_types;
mod receivers;
mod shadowed;
mod symbol;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use super::completeness::{self, ClaimedPlaces, SearchedFiles};
use super::context::RequestContext;
use super::failure::Failure;
use super::request_state::RequestTarget;
use crate::lsp::{Listing, LspLocation, Profile};
use crate::model::facts::{Agreement, AgreementCounts, UseProvenance};
use crate::model::request::Scope;
use crate::path::AbsPath;
use crate::python::classes::Classes;
use crate::python::hierarchy::Relation;
use crate::python::occurrences::{OccurrenceKind, is_quoted};
use crate::python::outline::{Imported, Outline, Span};
use crate::python::roles::is_of_overloaded;
use crate::python::scopes::Scopes;
use crate::python::usage::{Receiver, TokenSyntax, TokenUse, Usage};
use crate::python::{raise_tree_cache_limit, shrink_tree_cache};
use crate::workspace::files::{Document, Files as _};

use closure::Closure;
use family::Family;
use symbol::SearchedSymbol;
pub(in crate::engine) use symbol::{is_fixture, is_hook};

/// The size of the texts whose syntax trees are cached while occurrences are explained, in bytes.
const TREE_CACHE_BYTES: usize = 1 << 20;

/// The size of the texts whose syntax trees stay cached for the next request, in bytes: a session keeps the memory.
const IDLE_TREE_CACHE_BYTES: usize = 1 << 19;

/// How many requests are in flight at a time.
pub(super) const WINDOW: usize = 64;

/// A place where a name is written.
#[derive(Debug, Clone)]
pub(super) struct Token {
    /// The file.
    pub(super) document: Arc<Document>,
    /// The name in it, in bytes.
    pub(super) span: Span,
    /// What it is in the syntax.
    pub(super) kind: OccurrenceKind,
    /// How it is used, once that was read.
    syntax: OnceLock<Arc<TokenSyntax>>,
}

/// How a reference is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Evidence {
    /// The rule; `None` when the server claims it.
    pub(super) provenance: Option<UseProvenance>,
    /// The alias or the member of the family through which the symbol is reached.
    pub(super) via: Option<String>,
    /// Whether the symbol is reached through an interface that its class does not inherit from. Renaming the symbol does not
    /// rename the interface's member.
    pub(super) is_structural: bool,
}

impl Evidence {
    pub(super) const SERVER: Self = Self { provenance: None, via: None, is_structural: false };

    pub(super) const fn rule(provenance: UseProvenance) -> Self {
        Self { provenance: Some(provenance), via: None, is_structural: false }
    }

    pub(super) const fn via(provenance: UseProvenance, via: String) -> Self {
        Self { provenance: Some(provenance), via: Some(via), is_structural: false }
    }
}

/// What an occurrence is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Explanation {
    /// A use of the symbol.
    Reference(Evidence),
    /// The definition of the same member in a class of the family.
    Override { class: String, relation: Relation },
    /// Another symbol.
    Other,
    /// Another symbol, to which the server resolves it.
    Defined(OtherDefinition),
    /// The attribute of a mock that wraps nothing: another symbol, which a rename may have to follow.
    Mocked,
    /// Part of a comment or a string.
    Text,
    /// Not known; the reason.
    Unresolved(String),
}

/// The definition of another symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OtherDefinition {
    /// The module and the qualified name.
    pub(super) name: String,
    /// Whether nothing else is possible: no part of the receiver's type is unknown. Only determined for a second opinion.
    pub(super) is_certain: bool,
}

/// What an occurrence is that is neither a reference nor unresolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// Another symbol by a rule.
    Other,
    /// Another symbol, to which the server resolves it.
    Defined(OtherDefinition),
    /// A part of a string or a comment.
    Text,
    /// The definition of a related class, or the attribute of a mock.
    Related,
}

/// An occurrence that may be a use and cannot be proven to be one or none.
#[derive(Debug, Clone)]
pub(super) struct UnresolvedToken {
    pub(super) token: Token,
    /// What is before the dot.
    pub(super) receiver: Option<String>,
    pub(super) reason: String,
}

impl UnresolvedToken {
    /// Whether it is the name of a variable, or of a method, in whose place the symbol may be: a rename of the symbol leaves that.
    pub(super) fn is_variable(&self) -> bool {
        self.token.kind == OccurrenceKind::Identifier && self.reason == explainer::HELD
            || self.reason == explainer::REPLACED
    }

    /// Whether it is the name of a method that may override the symbol.
    pub(super) fn may_be_override(&self) -> bool {
        self.reason == COMPUTED_BASE
    }
}

/// A definition of the same member in another class.
#[derive(Debug, Clone)]
pub(super) struct OverrideToken {
    pub(super) token: Token,
    pub(super) class: String,
    pub(super) relation: Relation,
}

/// Every occurrence of a symbol's names, explained.
#[derive(Debug, Default)]
pub(super) struct Explained {
    /// Every reference, with how it is known.
    pub(super) references: BTreeMap<LspLocation, Evidence>,
    /// What the server claims, and is another variable by Python's scopes.
    pub(super) refuted: BTreeSet<LspLocation>,
    /// Those of the references that are declarations.
    pub(super) declarations: BTreeSet<LspLocation>,
    pub(super) overrides: Vec<OverrideToken>,
    pub(super) unresolved: Vec<UnresolvedToken>,
    /// Attributes of mocks that wrap nothing; they count as other symbols.
    pub(super) mocked: Vec<Token>,
    /// Strings that are proven to be another symbol.
    pub(super) other_strings: BTreeSet<(AbsPath, usize)>,
    /// Every other occurrence by file and byte offset, with its end. Only filled if it is compared with another server's.
    pub(super) elsewhere: BTreeMap<(AbsPath, usize), (usize, Elsewhere)>,
    /// By which servers' answers each reference is known, if another one was asked, too.
    pub(super) agreement: BTreeMap<LspLocation, Agreement>,
    /// How the answers compare.
    pub(super) compared: Option<AgreementCounts>,
    /// How many occurrences are other symbols.
    pub(super) other: usize,
    /// Those of them that are names in a scope, if the symbol is one.
    other_names: Vec<Token>,
    /// How many are parts of strings and comments.
    pub(super) text: usize,
    /// Why not everything was looked at.
    pub(super) cut: Option<String>,
    /// Whether the caller's time ended before everything was looked at.
    pub(super) is_late: bool,
    /// How many places of the server's answers are in no local file.
    pub(super) skipped: u32,
    /// Whether it is a name of a module or a function, and no member or keyword parameter: types do not depend on the name.
    pub(super) is_by_name: bool,
    /// Whether it is a variable of a function.
    pub(super) is_local_variable: bool,
    /// Whether it is a member of a class.
    pub(super) is_member: bool,
    /// Whether it is a hook, which plugins implement and call by its name.
    is_hook: bool,
}

/// A name at a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'n> {
    pub(super) name: &'n str,
    pub(super) document: &'n Arc<Document>,
    /// In bytes.
    pub(super) offset: usize,
    /// Other definitions that count as the same symbol, with the byte offsets of their names.
    pub(super) family: &'n [(Arc<Document>, usize)],
}

impl<'n> Named<'n> {
    /// The name that a question is about; `None` when it is about no name.
    pub(super) fn of(subject: &'n RequestTarget) -> Option<Self> {
        let (document, offset) = (&subject.document, subject.offset);
        Some(Self { name: subject.name()?, document, offset, family: &[] })
    }
}

/// Explains every occurrence of a name. `claimed` are the references that the server reports, declarations
/// included; `searched` are the files that were opened for the name.
pub(super) async fn explain(
    cx: &RequestContext<'_>,
    named: Named<'_>,
    searched: &mut SearchedFiles,
    claimed: Listing<LspLocation>,
) -> Result<Explained, Failure> {
    // Several steps look at the same files.
    raise_tree_cache_limit(TREE_CACHE_BYTES);
    let files = &cx.state.files;
    let classes = Classes::new(files, &cx.state.inputs.roots);
    let mut closure = Closure::new(cx, &classes, searched, claimed);
    let symbol = SearchedSymbol::of(cx, &classes, &named).await?;
    let mut symbol = closure.complete(symbol, named.family).await?;
    symbol.is_local_value = matches!(symbol.reach, symbol::Reach::Local)
        && symbol.is_callable
        && values::is_passed(cx, &symbol, closure.references.keys());
    symbol.replaces_methods =
        symbol.is_callable && values::replaces_methods(cx, &classes, closure.references.keys(), &symbol.name);
    let family = Family::of(cx, &classes, &symbol);
    let Closure { references, refuted, declarations, names, members, skipped, cut, is_late, .. } = closure;
    let is_by_name = matches!(symbol.reach, symbol::Reach::Global | symbol::Reach::Local);
    let is_local_variable = matches!(symbol.reach, symbol::Reach::Local) && !symbol.is_callable;
    let is_member = matches!(symbol.reach, symbol::Reach::Member { .. });
    let mut explained = Explained {
        references,
        declarations,
        skipped,
        cut,
        is_late,
        is_by_name,
        is_local_variable,
        is_member,
        is_hook: symbol.is_hook,
        ..Explained::default()
    };
    let is_searched = |document: &&Arc<Document>| {
        // The other files are not opened, and the completeness says so.
        cx.request.options.scope != Scope::Configured || {
            let uri = cx.locations.paths.uri(&document.path);
            uri.workspace_path().is_some_and(|path| cx.state.inputs.included.includes(path))
        }
    };
    let documents: Vec<&Arc<Document>> = searched.with_name().filter(is_searched).collect();
    let names = classify::Names { all: names, members };
    // Calls of variables, which may hold the symbol.
    let mut variables = Vec::new();
    for (document, span) in refuted.iter().filter_map(|place| name_at(cx, place)) {
        let token = Token::new(document, span, OccurrenceKind::Identifier);
        if symbol.is_callable && token.syntax().used == TokenUse::Called {
            variables.push((token, Explanation::Other));
        } else {
            explained.add(cx, &token, Explanation::Other);
        }
    }
    explained.refuted = refuted;
    let claimed = ClaimedPlaces::new(explained.references.keys().chain(&explained.refuted));
    let classified = classify::classify(cx, &classes, &symbol, &names, &family, &documents, &claimed);
    for (token, explanation) in classified.explained {
        explained.add(cx, &token, explanation);
    }
    let context = explainer::Explainer::new(cx, &classes, &symbol, &family, &explained);
    let (answers, is_late) = context.ask(classified.questions).await?;
    let called_variables = context.into_called_variables();
    explained.is_late |= is_late;
    let mut open = Vec::new();
    for (token, explanation) in answers {
        match explanation {
            Explanation::Unresolved(reason) => open.push((token, reason)),
            Explanation::Other | Explanation::Defined(_) if called_variables.contains(&token.place(cx)) => {
                variables.push((token, explanation));
            }
            explanation => explained.add(cx, &token, explanation),
        }
    }
    let is_passed = !variables.is_empty() && values::is_passed(cx, &symbol, explained.references.keys());
    for (token, explanation) in variables {
        let held = || Explanation::Unresolved(explainer::HELD.to_owned());
        explained.add(cx, &token, if is_passed { held() } else { explanation });
    }
    let context = explainer::Explainer::new(cx, &classes, &symbol, &family, &explained);
    let (answers, is_late) = fixtures::resolve(&context, open, classified.untyped, explained.is_late).await?;
    drop(context);
    explained.is_late |= is_late;
    for (token, explanation) in answers {
        explained.add(cx, &token, explanation);
    }
    explained.doubt_uses_of_its_variables(cx);
    shrink_tree_cache(IDLE_TREE_CACHE_BYTES);
    if let Some(reason) = not_searched(cx, &classes, &symbol) {
        explained.cut.get_or_insert_with(|| reason.to_owned());
    }
    if explained.is_late {
        explained.end(cx);
    }
    if explained.skipped > 0 {
        explained.cut.get_or_insert_with(|| "some references are in no file of this machine".to_owned());
    }
    if family.is_cut {
        explained.cut.get_or_insert_with(|| "there are more subclasses than the search limit".to_owned());
    }
    Ok(explained)
}

/// Why uses may be left out that no other rule finds.
fn not_searched(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    symbol: &SearchedSymbol,
) -> Option<&'static str> {
    let has_twin = || symbol.definitions.iter().any(|(path, _)| classes.stub_or_source(path).is_some());
    if matches!(symbol.reach, symbol::Reach::Parameter) && has_twin() {
        return Some(
            "the parameter is declared in a stub and in its source, and only one of them was searched",
        );
    }
    let has_overloads = |(path, offset): &(AbsPath, usize)| {
        cx.state.files.read(path).is_ok_and(|document| is_of_overloaded(&document.text, *offset))
    };
    if matches!(symbol.reach, symbol::Reach::Parameter) && symbol.definitions.iter().any(has_overloads) {
        return Some("its function has overloads, whose parameters of that name were not searched");
    }
    // Not in the standard library or an installed package, whose own uses are not asked for.
    let is_elsewhere = |(path, _): &(AbsPath, usize)| {
        !cx.state.is_in_workspace(path) && cx.state.inputs.roots.name_of_any(path).is_none()
    };
    if symbol.definitions.iter().any(is_elsewhere) {
        return Some("its file is outside of the workspace, and the files around it were not searched");
    }
    // The server goes on from an import to what it means, if it can.
    let is_unfollowed = |(path, offset): &(AbsPath, usize)| {
        let Ok(document) = cx.state.files.read(path) else { return false };
        let (files, roots) = (&cx.state.files, &cx.state.inputs.roots);
        let outline = Outline::parse(&document.text);
        let mut imports = outline.imports.iter().filter(|import| import.bound_span.start == *offset);
        imports.any(|import| match (roots.imported(files, import, path), &import.what) {
            (None, _) => true,
            (Some(module), Imported::Name(name)) => roots.submodule(files, &module, name).is_none(),
            _ => false,
        })
    };
    if !symbol.definitions.is_empty() && symbol.definitions.iter().all(is_unfollowed) {
        return Some("what it is imported from cannot be found");
    }
    if !Profile::of(cx.settings.server).leaves_out_names {
        return None;
    }
    // The definition of `a.b` may be the import in `a` that loads the module.
    let is_module_name = |(path, offset): &(AbsPath, usize)| {
        let document = cx.state.files.read(path);
        document.is_ok_and(|document| Usage::of(&document.text).names_module(*offset))
    };
    if matches!(symbol.reach, symbol::Reach::Module) || symbol.definitions.iter().any(is_module_name) {
        return Some("the server leaves out uses of a module in dotted names");
    }
    let own_name = |(path, offset): &(AbsPath, usize)| Some(classes.defined_at(path, *offset)?.name);
    let mut names = symbol.definitions.iter().filter_map(own_name);
    names.any(|name| name != symbol.name).then_some("it is an alias: only uses under this name were searched")
}

/// Why an occurrence is unresolved that the time did not suffice for.
const NOT_CHECKED: &str = "not checked within the time limit";

/// Why an occurrence is unresolved whose receiver the server does not know.
pub(super) const UNKNOWN_RECEIVER: &str = "receiver type unknown";

/// Why a name is unresolved that the server takes for another symbol.
const SAME_VARIABLE: &str = "it is one variable with a reference";

/// Why an occurrence is unresolved that the server resolves by a part of the receiver's type.
const HALF_KNOWN: &str = "a part of the receiver's type is unknown";

/// Why a member is unresolved whose receiver the server takes for what a method without an annotation returns.
const OVERRIDDEN: &str =
    "the receiver comes from a method without an annotation, and an override returns something else";

/// Why the name of a private member outside of its class is unresolved: `_C__x`.
pub(super) const MANGLED: &str = "it is written in its mangled form";

/// Why an occurrence of the name of a hook is unresolved.
pub(super) const CALLED_AS_HOOK: &str = "plugins implement and call hooks by name";

/// Why a member of another class is unresolved.
const MAY_BE_SIBLING: &str = "a class whose base is computed, or not found, may inherit from both classes";

/// Why what an import binds is unresolved where another one may bind the same name.
const ONE_OF_SEVERAL: &str = "another branch or import may bind the name";

/// Why a member of a metaclass is unresolved that may be one of its classes.
const METACLASS: &str = "a metaclass uses a member of its classes";

/// Why the member of a class is unresolved that may be a subclass of the symbol's class.
const COMPUTED_BASE: &str = "a base of its class is computed, or not found: it may be an override";

/// What is known of a name when the time limit ends before the server has answered: where it is written.
pub(super) async fn unexplained(
    cx: &RequestContext<'_>,
    name: &str,
    searched: &SearchedFiles,
) -> Result<Explained, Failure> {
    let mut explained = Explained { is_late: true, ..Explained::default() };
    let occurrences = completeness::occurrences(cx, searched, name).await?;
    for token in completeness::unclaimed(cx, &occurrences, std::iter::empty()) {
        let explanation = match token.kind.is_token() {
            true => Explanation::Unresolved(NOT_CHECKED.to_owned()),
            false => Explanation::Text,
        };
        explained.add(cx, &token, explanation);
    }
    explained.end(cx);
    Ok(explained)
}

impl Explained {
    /// The time limit ended: the server may still be working on abandoned requests.
    fn end(&mut self, cx: &RequestContext<'_>) {
        cx.server.retire();
        self.cut = Some("the time limit passed before the search was complete".to_owned());
    }

    /// Doubts that a use is of another symbol where Python's scopes say that it is one variable with a reference: ty 0.0.105 knows neither
    /// the names of `global` nor all those in code that cannot be parsed.
    fn doubt_uses_of_its_variables(&mut self, cx: &RequestContext<'_>) {
        let mut by_file: BTreeMap<AbsPath, Vec<Token>> = BTreeMap::new();
        for token in std::mem::take(&mut self.other_names) {
            by_file.entry(token.document.path.clone()).or_default().push(token);
        }
        // A parameter that requests a fixture is a reference by a rule, and holds its value.
        let claimed = self.references.iter().filter(|(_, evidence)| **evidence == Evidence::SERVER);
        let mut references: BTreeMap<&AbsPath, Vec<usize>> = BTreeMap::new();
        for (place, _) in claimed.filter(|(place, _)| by_file.contains_key(&place.path)) {
            references.entry(&place.path).or_default().extend(offset_of(cx, place).map(|(_, at)| at));
        }
        let mut doubted = Vec::new();
        for (path, starts) in references {
            let tokens = by_file.remove(path).unwrap_or_default();
            let Some(document) = tokens.first().map(|token| token.document.clone()) else { continue };
            let names: BTreeSet<&str> =
                tokens.iter().map(|token| &document.text[token.span.clone()]).collect();
            let scopes = Scopes::of(&document.text, &names.into_iter().collect::<Vec<_>>());
            let left: BTreeSet<usize> =
                scopes.left_behind(&starts).filter(|name| !name.binds).map(|name| name.span.start).collect();
            doubted.extend(tokens.into_iter().filter(|token| left.contains(&token.span.start)));
        }
        for token in doubted {
            self.other -= 1;
            self.elsewhere.remove(&(token.document.path.clone(), token.span.start));
            self.unresolved.push(UnresolvedToken::new(token, SAME_VARIABLE.to_owned()));
        }
    }

    fn add(&mut self, cx: &RequestContext<'_>, token: &Token, explanation: Explanation) {
        let is_unrelated =
            matches!(explanation, Explanation::Other | Explanation::Defined(_) | Explanation::Text);
        let explanation = match explanation {
            _ if self.is_hook && is_unrelated && token.is_whole() => {
                Explanation::Unresolved(CALLED_AS_HOOK.to_owned())
            }
            explanation => explanation,
        };
        if cx.opinions.are_compared()
            && let Some(elsewhere) = explanation.elsewhere()
        {
            let at = (token.document.path.clone(), token.span.start);
            self.elsewhere.insert(at, (token.span.end, elsewhere));
        }
        match explanation {
            Explanation::Reference(evidence) => {
                self.references.entry(token.place(cx)).or_insert(evidence);
            }
            Explanation::Override { class, relation } => {
                self.overrides.push(OverrideToken { token: token.clone(), class, relation });
            }
            Explanation::Other | Explanation::Defined(_) => {
                self.other += 1;
                // What the server resolves may be a later binding of the variable.
                if explanation == Explanation::Other
                    && self.is_by_name
                    && token.kind == OccurrenceKind::Identifier
                {
                    self.other_names.push(token.clone());
                }
                if token.kind == OccurrenceKind::String {
                    self.other_strings.insert((token.document.path.clone(), token.span.start));
                }
            }
            Explanation::Mocked => {
                self.other += 1;
                self.mocked.push(token.clone());
            }
            Explanation::Text => self.text += 1,
            Explanation::Unresolved(reason) => {
                self.unresolved.push(UnresolvedToken::new(token.clone(), reason));
            }
        }
    }
}

impl UnresolvedToken {
    pub(super) fn new(token: Token, reason: String) -> Self {
        let receiver = token.receiver();
        let receiver = receiver.map(|receiver| token.document.text[receiver.span.clone()].to_owned());
        Self { token, receiver, reason }
    }
}

impl Explanation {
    fn elsewhere(&self) -> Option<Elsewhere> {
        match self {
            Self::Reference(_) | Self::Unresolved(_) => None,
            Self::Other => Some(Elsewhere::Other),
            Self::Defined(definition) => Some(Elsewhere::Defined(definition.clone())),
            Self::Text => Some(Elsewhere::Text),
            Self::Override { .. } | Self::Mocked => Some(Elsewhere::Related),
        }
    }
}

impl Token {
    pub(super) const fn new(document: Arc<Document>, span: Span, kind: OccurrenceKind) -> Self {
        Self { document, span, kind, syntax: OnceLock::new() }
    }

    /// Whether it is a name in the program, or all of a string.
    fn is_whole(&self) -> bool {
        let is_string = self.kind == OccurrenceKind::String;
        self.kind.is_token() || is_string && is_quoted(&self.document.text, &self.span)
    }

    /// Reads its syntax from a tree of its file, so that the file need not be parsed again for it.
    pub(super) fn read_syntax(&self, usage: &Usage<'_>) -> &TokenSyntax {
        self.syntax.get_or_init(|| Arc::new(usage.syntax_of(self.span.start)))
    }

    /// How it is used.
    pub(super) fn syntax(&self) -> &TokenSyntax {
        self.syntax.get_or_init(|| Arc::new(Usage::of(&self.document.text).syntax_of(self.span.start)))
    }

    /// The expression before the dot.
    pub(super) fn receiver(&self) -> Option<&Receiver> {
        self.syntax().receiver.as_ref()
    }

    /// The place in the server's coordinates.
    pub(super) fn place(&self, cx: &RequestContext<'_>) -> LspLocation {
        let range =
            self.document.lines.range(&self.document.text, self.span.clone(), cx.locations.server_unit);
        LspLocation { path: self.document.path.clone(), range }
    }

    /// The name.
    pub(super) fn text(&self) -> &str {
        &self.document.text[self.span.clone()]
    }
}

/// The byte offset at which a place begins; `None` when its file cannot be read or has no such place.
pub(super) fn offset_of(cx: &RequestContext<'_>, place: &LspLocation) -> Option<(Arc<Document>, usize)> {
    let document = cx.state.files.read(&place.path).ok()?;
    let offset = document.lines.offset(&document.text, place.range.start, cx.locations.server_unit)?;
    // Pyright's range of `(name) = 1` begins before the name.
    let rest = &document.text[offset..];
    let inside = rest.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
    let offset = if rest.starts_with('(') { offset + rest.len() - inside.len() } else { offset };
    Some((document, offset))
}

/// The bytes of the name at a place; `None` when its file cannot be read or has no such place.
pub(super) fn name_at(cx: &RequestContext<'_>, place: &LspLocation) -> Option<(Arc<Document>, Span)> {
    let (document, start) = offset_of(cx, place)?;
    let end = document.lines.offset(&document.text, place.range.end, cx.locations.server_unit);
    let end = end.filter(|end| *end > start).unwrap_or(start);
    Some((document, start..end))
}

/// The module and qualified name of the definition at a place; `None` if no definition in a module or class is there.
pub(super) fn symbol_at(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    place: &LspLocation,
) -> Option<String> {
    let (document, offset) = offset_of(cx, place)?;
    let module = cx.state.inputs.roots.name_of_any(&document.path)?;
    if place.range == crate::text::Range::default() {
        return Some(module);
    }
    let defined = classes.defined_at(&document.path, offset)?;
    Some(format!("{module}.{}", defined.qualname.join(".")))
}

/// The files of the workspace in which a name is written.
pub(super) fn files_with(cx: &RequestContext<'_>, name: &str) -> Vec<AbsPath> {
    let snapshot = &cx.state.inputs.snapshot;
    cx.state.files_with_word(name).iter().map(|path| snapshot.absolute(path)).collect()
}
