//! What an occurrence can be, as far as the syntax shows it without the server.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::completeness::ClaimedPlaces;
use super::super::context::RequestContext;
use super::family::Family;
use super::fixtures;
use super::quoted_types::QuotedTypes;
use super::shadowed::{ClassBinding, Variables};
use super::symbol::{Reach, SearchedSymbol};
use super::{COMPUTED_BASE, Evidence, Explanation, MANGLED, METACLASS, Token, UNKNOWN_RECEIVER, files_with};
use crate::model::facts::UseProvenance;
use crate::path::AbsPath;
use crate::python::classes::{Class, Classes};
use crate::python::module_imports::{WantedModules, imports_of};
use crate::python::occurrences::{OccurrenceKind, is_quoted};
use crate::python::outline::{Import, Imported, Outline};
use crate::python::passed_on;
use crate::python::scopes::{ScopeKind, Scopes};
use crate::python::type_strings::may_be_type;
use crate::python::unpacked::Unpacking;
use crate::python::usage::{BY_KEY, KeywordUse, StringUse, TokenUse, Usage};
use crate::text::names::is_mangled_form;
use crate::workspace::files::{Document, Files as _};
use crate::workspace::parallel::parallel_map;

/// Why the key of a dictionary is unresolved.
pub(super) const UNPACKED: &str = "the key of a dictionary that is unpacked into arguments";

/// Functions that look a member up by a string.
const BY_STRING: [&str; 3] = ["getattr", "attrgetter", "methodcaller"];

/// Builtins that are given an object and the name of its attribute.
const ATTRIBUTE_FUNCTIONS: [&str; 4] = ["getattr", "hasattr", "setattr", "delattr"];

/// Functions that are given the names of fixtures as strings.
const FIXTURES_BY_STRING: [&str; 2] = ["usefixtures", "getfixturevalue"];

/// What a file has in it that gets modules other than by an import statement.
const MODULES_BY_CALL: [&str; 9] = [
    "import_module(",
    "importorskip(",
    "__import__(",
    "sys.modules",
    "module_from_spec(",
    "load_module(",
    "load_source(",
    "run_module(",
    "run_path(",
];

/// What the server is asked about a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerQuestion {
    /// Its definition.
    Token,
    /// Its definition; it is bound by an import, which may be unresolved.
    Imported,
    /// The type, or the definition, of the expression that it subscripts.
    Subscripted(std::ops::Range<usize>),
    /// Its definition as the key of a dictionary; text if it has none.
    Key,
    /// What the calls do with it that are given it as the name of an argument.
    Unpacked(Vec<KeywordUse>),
    /// What the module binds under the name, since the class around it has not bound it yet, or may not have. Not asked: ty 0.0.105
    /// leads to the binding of the class.
    InModule(ClassBinding),
}

/// The names whose occurrences are explained.
#[derive(Debug)]
pub(super) struct Names {
    /// All of them, with the files that bind them as names of a module.
    pub(super) all: BTreeMap<String, BTreeSet<AbsPath>>,
    /// Those that are variables of classes or objects.
    pub(super) members: BTreeSet<String>,
}

/// Tokens that are explained, and those that need the server.
#[derive(Debug, Default)]
pub(super) struct Classified {
    pub(super) explained: Vec<(Token, Explanation)>,
    pub(super) questions: Vec<(Token, ServerQuestion)>,
    /// Of the files with a question about an attribute, whether one has parameters for which overlays may know a type.
    pub(super) untyped: BTreeMap<AbsPath, bool>,
}

/// What is known of a token before all files were read.
enum Classification {
    Done(Explanation),
    Ask(ServerQuestion),
    /// Another symbol, unless an object may hold the symbol, or a module that defines it. For an attribute, the last name before its dot.
    AskIfHeld(Option<String>),
}

const OTHER: Classification = Classification::Done(Explanation::Other);
const TEXT: Classification = Classification::Done(Explanation::Text);

/// The tokens of one file, in order, parts of comments and strings first.
#[derive(Default)]
struct ClassifiedFile {
    tokens: Vec<(Token, Classification)>,
    /// Whether a class or an object has a variable of the symbol's name, so that it may hold the symbol.
    is_held_by_objects: bool,
    /// If there is a question about an attribute, whether the file has parameters for which overlays may know a type.
    is_untyped: Option<bool>,
}

/// What all files are classified with.
struct Classifier<'f, 'p> {
    cx: &'f RequestContext<'f>,
    classes: &'f Classes<'f>,
    symbol: &'f SearchedSymbol,
    names: &'f Names,
    family: &'f Family,
    all: Vec<&'f str>,
    /// The names of the functions or classes that take the symbol as a keyword argument.
    functions: Vec<String>,
    pytest: Mutex<fixtures::PytestFiles<'p>>,
}

/// Explains what syntax explains of the occurrences of the names in the documents, which are in the order of their paths, that are
/// at none of the claimed places. Each file is parsed once.
pub(super) fn classify(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    symbol: &SearchedSymbol,
    names: &Names,
    family: &Family,
    documents: &[&Arc<Document>],
    claimed: &ClaimedPlaces<'_>,
) -> Classified {
    let classifier = Classifier {
        cx,
        classes,
        symbol,
        names,
        family,
        all: names.all.keys().map(String::as_str).collect(),
        functions: functions_with(classes, symbol),
        pytest: Mutex::new(fixtures::PytestFiles::new(cx)),
    };
    let files = parallel_map(documents, cx.settings.threads, |document| classifier.file(document, claimed));
    let is_deferred = |(_, classification): &(Token, Classification)| {
        matches!(classification, Classification::AskIfHeld(_))
    };
    let may_be_anywhere = files.iter().any(|file| file.is_held_by_objects);
    let is_needed = !may_be_anywhere && files.iter().any(|file| file.tokens.iter().any(is_deferred));
    let held = match is_needed {
        true if matches!(symbol.reach, Reach::Global) => HeldModules::of(cx, symbol),
        _ => HeldModules { may_be_anywhere, names: BTreeSet::new() },
    };
    let mut classified = Classified::default();
    for (document, file) in documents.iter().zip(&files) {
        classified.untyped.extend(file.is_untyped.map(|is_untyped| (document.path.clone(), is_untyped)));
    }
    for (token, classification) in files.into_iter().flat_map(|file| file.tokens) {
        match classification {
            Classification::Done(explanation) => classified.explained.push((token, explanation)),
            Classification::Ask(question) => classified.questions.push((token, question)),
            Classification::AskIfHeld(object) if held.may_be(object.as_deref()) => {
                classified.questions.push((token, ServerQuestion::Token));
            }
            Classification::AskIfHeld(_) => classified.explained.push((token, Explanation::Other)),
        }
    }
    classified
}

/// The names of the functions or classes that take a symbol as a keyword argument.
fn functions_with(classes: &Classes<'_>, symbol: &SearchedSymbol) -> Vec<String> {
    match &symbol.reach {
        Reach::Parameter => {
            let definitions = symbol.definitions.iter();
            definitions.flat_map(|(path, offset)| classes.callees_with_parameter(path, *offset)).collect()
        }
        Reach::Member { class: Some(class), is_field: true, .. } => vec![class.name().to_owned()],
        _ => Vec::new(),
    }
}

impl Classifier<'_, '_> {
    fn file(&self, document: &Arc<Document>, claimed: &ClaimedPlaces<'_>) -> ClassifiedFile {
        let cannot_be_used = self.is_local_elsewhere(&document.path);
        let tokens = claimed.others(self.cx, document, &self.all, cannot_be_used);
        if cannot_be_used {
            let explained = |token: Token| {
                let is_text = matches!(token.kind, OccurrenceKind::Comment | OccurrenceKind::String);
                let explanation = if is_text { TEXT } else { OTHER };
                (token, explanation)
            };
            let tokens = tokens.into_iter().map(explained).collect();
            return ClassifiedFile { tokens, ..ClassifiedFile::default() };
        }
        // Parts of comments and strings need no parsing.
        let may_be_type = |token: &Token| {
            token.kind == OccurrenceKind::String
                && self.symbol.may_be_type()
                && may_be_type(&document.text, &token.span)
        };
        // Several fixtures can be named in one string.
        let may_be_requested = self.symbol.is_fixture && document.text.contains("indirect");
        let is_plain_text = |token: &Token| {
            token.kind == OccurrenceKind::Comment
                || token.kind == OccurrenceKind::String
                    && !may_be_type(token)
                    && !may_be_requested
                    && !is_quoted(&document.text, &token.span)
        };
        let (plain, tokens): (Vec<Token>, Vec<Token>) = tokens.into_iter().partition(is_plain_text);
        let mut file = ClassifiedFile::default();
        file.tokens.extend(plain.into_iter().map(|token| (token, TEXT)));
        if tokens.is_empty() {
            return file;
        }
        let reader = File {
            cx: self.cx,
            classes: self.classes,
            symbol: self.symbol,
            names: self.names,
            family: self.family,
            document,
            usage: Usage::of(&document.text),
            outline: Outline::parse(&document.text),
            all: &self.all,
            functions: &self.functions,
            scopes: OnceCell::new(),
            import_scopes: OnceCell::new(),
            pytest: &self.pytest,
            in_types: tokens
                .iter()
                .filter(|token| may_be_type(token))
                .map(|token| token.span.start)
                .collect(),
            quoted_types: OnceCell::new(),
        };
        file.is_held_by_objects = (matches!(self.symbol.reach, Reach::Global) || self.symbol.is_local_value)
            && (self.symbol.replaces_methods
                || tokens
                    .iter()
                    .any(|token| is_variable_of_class(self.classes, token) || is_kept_by_name(token)));
        for token in tokens {
            let classification = reader.step(&token);
            if token.kind == OccurrenceKind::Attribute && matches!(classification, Classification::Ask(_)) {
                // Now, while its tree is cached.
                let is_untyped =
                    || fixtures::PytestFiles::new(self.cx).has_untyped_parameters(&document.path);
                file.is_untyped.get_or_insert_with(is_untyped);
            }
            file.tokens.push((token, classification));
        }
        file
    }

    /// Whether the symbol is local to functions of other files, so that the file cannot use it. Fixtures are used by their names, and
    /// what an object or a module holds under another name by that.
    fn is_local_elsewhere(&self, path: &AbsPath) -> bool {
        matches!(self.symbol.reach, Reach::Local)
            && !self.symbol.is_fixture
            && !self.symbol.is_local_value
            && self.names.members.is_empty()
            && self.names.all.len() == 1
            && self.symbol.definitions.iter().all(|(defined_in, _)| defined_in != path)
    }
}

/// One file with unexplained tokens.
struct File<'f, 'p> {
    cx: &'f RequestContext<'f>,
    classes: &'f Classes<'f>,
    symbol: &'f SearchedSymbol,
    names: &'f Names,
    family: &'f Family,
    document: &'f Document,
    usage: Usage<'f>,
    outline: Arc<Outline>,
    all: &'f [&'f str],
    functions: &'f [String],
    /// Where the symbol's names are.
    scopes: OnceCell<Scopes>,
    /// Where names that imports bind are.
    import_scopes: OnceCell<Scopes>,
    pytest: &'f Mutex<fixtures::PytestFiles<'p>>,
    /// The offsets of the names in strings that may be types.
    in_types: Vec<usize>,
    quoted_types: OnceCell<QuotedTypes<'f>>,
}

impl<'f> File<'f, '_> {
    fn quoted_types(&self) -> &QuotedTypes<'f> {
        let Self { cx, classes, symbol, document, .. } = *self;
        self.quoted_types.get_or_init(|| QuotedTypes::new(cx, classes, symbol, document, &self.in_types))
    }

    fn scopes(&self) -> &Scopes {
        self.scopes.get_or_init(|| Scopes::of(&self.document.text, self.all))
    }

    fn step(&self, token: &Token) -> Classification {
        token.read_syntax(&self.usage);
        use OccurrenceKind as Kind;
        match token.kind {
            Kind::Comment => TEXT,
            Kind::String if self.symbol.may_be_type() && self.usage.is_type_string(token.span.start) => {
                Classification::Done(self.quoted_types().explain(token))
            }
            Kind::String if self.symbol.is_fixture && self.requested(token).is_some() => {
                self.requested(token).map_or(OTHER, Classification::Done)
            }
            Kind::String if is_quoted(&self.document.text, &token.span) => self.string(token),
            Kind::String => TEXT,
            Kind::Exported => self.exported(token),
            Kind::Identifier if self.symbol.is_fixture && self.requested(token).is_some() => {
                self.requested(token).map_or(OTHER, Classification::Done)
            }
            Kind::Identifier
                if matches!(self.symbol.reach, Reach::Local | Reach::Parameter)
                    && self.is_bound_here(token) =>
            {
                Classification::Done(Explanation::Reference(Evidence::rule(UseProvenance::Scope)))
            }
            Kind::Identifier | Kind::Attribute | Kind::Keyword => match &self.symbol.reach {
                Reach::Local => self.of_alias(token),
                Reach::Parameter if token.kind == Kind::Keyword => Classification::Ask(ServerQuestion::Token),
                Reach::Parameter => OTHER,
                Reach::Member { is_field, .. } => self.of_member(token, *is_field),
                Reach::Global => self.of_global(token),
                Reach::Module => self.of_module(token),
            },
        }
    }

    /// What a parameter is that has the name of the fixture; nothing for any other token.
    fn requested(&self, token: &Token) -> Option<Explanation> {
        let mut files = self.pytest.lock().unwrap_or_else(PoisonError::into_inner);
        fixtures::requested(&mut files, self.classes, self.symbol, token)
    }

    /// Whether a name is bound by the symbol's own definition, in code that the server does not check.
    fn is_bound_here(&self, token: &Token) -> bool {
        let path = &self.document.path;
        self.symbol.definitions.iter().any(|(file, _)| file == path)
            && self.scopes().bound_by(token.span.start).is_some_and(|bound| {
                bound.iter().any(|span| self.symbol.definitions.contains(&(path.clone(), span.start)))
            })
    }

    /// A token that is no use of a local symbol by its own name: it may be one by the name of an object's attribute or of a module that
    /// holds it.
    fn of_alias(&self, token: &Token) -> Classification {
        match token.kind {
            OccurrenceKind::Attribute if self.names.members.contains(token.text()) => {
                Classification::Ask(ServerQuestion::Token)
            }
            OccurrenceKind::Identifier | OccurrenceKind::Attribute if token.text() != self.symbol.name => {
                self.of_global(token)
            }
            OccurrenceKind::Attribute if self.symbol.is_local_value && self.is_called(token) => {
                Classification::AskIfHeld(None)
            }
            // A parameter or variable of that name may hold it.
            OccurrenceKind::Identifier
                if self.symbol.is_local_value
                    && self.is_called(token)
                    && self.scopes().bound_by(token.span.start).is_some_and(|bound| !bound.is_empty()) =>
            {
                Classification::Ask(ServerQuestion::Imported)
            }
            _ => OTHER,
        }
    }

    fn of_member(&self, token: &Token, is_field: bool) -> Classification {
        let at = token.span.start;
        if let Some(explanation) = self.definition(token) {
            return Classification::Done(explanation);
        }
        match token.kind {
            OccurrenceKind::Attribute if is_mangled_form(token.text(), &self.symbol.name) => {
                Classification::Done(Explanation::Unresolved(MANGLED.to_owned()))
            }
            OccurrenceKind::Attribute if self.is_of_foreign_module(at) => OTHER,
            OccurrenceKind::Attribute => Classification::Ask(ServerQuestion::Token),
            OccurrenceKind::Keyword if is_field => Classification::Ask(ServerQuestion::Token),
            // Used in the body of its class, in code that the server does not check.
            OccurrenceKind::Identifier if self.is_bound_by_own_class(at) => {
                Classification::Done(Explanation::Reference(Evidence::rule(UseProvenance::Scope)))
            }
            // An alias of a member that a module binds is a name of that module.
            OccurrenceKind::Identifier if token.text() != self.symbol.name => self.of_global(token),
            // A variable of that name may hold the member.
            OccurrenceKind::Identifier if self.is_called(token) => {
                Classification::Ask(ServerQuestion::Imported)
            }
            _ => OTHER,
        }
    }

    /// Whether the body of a class of the symbol binds a name there.
    fn is_bound_by_own_class(&self, at: usize) -> bool {
        let defining = |span: &std::ops::Range<usize>| {
            let defined = self.classes.defined_at(&self.document.path, span.start);
            defined.and_then(|defined| defined.class)
        };
        self.scopes().home(at) == Some(ScopeKind::Class)
            && self.scopes().bound_by(at).is_some_and(|bound| {
                bound.iter().filter_map(defining).any(|class| self.family.is_own(&class.id()))
            })
    }

    /// A token that is itself the name of a member of a class.
    fn definition(&self, token: &Token) -> Option<Explanation> {
        let defined = self.classes.defined_at(&self.document.path, token.span.start)?;
        let Some(class) = defined.class else {
            // A module or a function defines it.
            return (token.kind == OccurrenceKind::Identifier && token.text() == self.symbol.name)
                .then_some(Explanation::Other);
        };
        let id = class.id();
        if self.family.is_own(&id) {
            // Another assignment to the same attribute.
            return Some(Explanation::Reference(Evidence::rule(UseProvenance::Scope)));
        }
        Some(match self.family.relation(&id) {
            Some(relation) => Explanation::Override { class: id.name, relation },
            None if self.family.may_be_below(self.classes, &class) => {
                Explanation::Unresolved(COMPUTED_BASE.to_owned())
            }
            // What its methods assign to their first parameter is a member of its classes.
            None if self.family.has_metaclass && self.classes.is_metaclass(&class)
                || self.family.is_of_metaclass && self.classes.has_metaclass(&class) =>
            {
                Explanation::Unresolved(METACLASS.to_owned())
            }
            None => Explanation::Other,
        })
    }

    fn of_global(&self, token: &Token) -> Classification {
        let at = token.span.start;
        match token.kind {
            OccurrenceKind::Keyword => OTHER,
            OccurrenceKind::Attribute => {
                let is_doubtful = self.names.members.contains(token.text())
                    || MODULES_BY_CALL.iter().any(|call| self.document.text.contains(call));
                let receiver = self.usage.receiver(at);
                let imports = self.object(at).map(|(object, start)| self.imports(&object, start));
                if imports.is_some_and(|imports| !imports.is_empty()) {
                    Classification::Ask(ServerQuestion::Imported)
                } else if is_doubtful {
                    Classification::Ask(ServerQuestion::Token)
                } else {
                    let last =
                        receiver.filter(|receiver| !receiver.is_call).and_then(|receiver| receiver.name);
                    Classification::AskIfHeld(last.map(|last| self.document.text[last].to_owned()))
                }
            }
            _ => self.of_scope(token),
        }
    }

    /// A plain name: the scopes of the file say what it can be.
    fn of_scope(&self, token: &Token) -> Classification {
        let at = token.span.start;
        if token.text() == self.symbol.name
            && !self.symbol.is_fixture
            // A variable may hold the symbol that it is called as.
            && (!self.is_called(token) || self.is_in_import(at) || self.is_bound_by_import(at))
            && self.variables().is_another(at)
        {
            return OTHER;
        }
        if self.is_in_import(at) {
            return Classification::Ask(ServerQuestion::Imported);
        }
        let Some(bound) = self.scopes().bound_by(at) else { return OTHER };
        match self.variables().class_binding(at, &bound) {
            ClassBinding::Certain => {}
            binding => return Classification::Ask(ServerQuestion::InModule(binding)),
        }
        let is_import = |span: &std::ops::Range<usize>| {
            self.outline.imports.iter().any(|import| import.bound_span.start == span.start)
                || self.is_in_import(span.start)
        };
        if bound.is_empty() {
            let has_star = self.outline.imports.iter().any(|import| import.what == Imported::Star);
            return if has_star { Classification::Ask(ServerQuestion::Imported) } else { OTHER };
        }
        if bound.iter().any(is_import) {
            return Classification::Ask(ServerQuestion::Imported);
        }
        let homes = self.names.all.get(token.text());
        let is_home = homes.is_some_and(|homes| homes.contains(&self.document.path));
        let path = &self.document.path;
        if bound.iter().any(|span| self.symbol.definitions.contains(&(path.clone(), span.start))) {
            return Classification::Done(Explanation::Reference(Evidence::rule(UseProvenance::Scope)));
        }
        // A parameter or variable of that name may hold the symbol.
        let is_doubtful = is_home && self.scopes().is_bound_by_module(at) || self.is_called(token);
        if is_doubtful { Classification::Ask(ServerQuestion::Imported) } else { OTHER }
    }

    fn is_called(&self, token: &Token) -> bool {
        self.symbol.is_callable && token.syntax().used == TokenUse::Called
    }

    fn of_module(&self, token: &Token) -> Classification {
        match token.kind {
            OccurrenceKind::Keyword => OTHER,
            OccurrenceKind::Identifier | OccurrenceKind::Attribute if self.is_in_import(token.span.start) => {
                Classification::Ask(ServerQuestion::Imported)
            }
            OccurrenceKind::Attribute => match self.object(token.span.start) {
                Some((object, start)) if !self.imports(&object, start).is_empty() => {
                    Classification::Ask(ServerQuestion::Imported)
                }
                _ => OTHER,
            },
            _ => self.of_scope(token),
        }
    }

    /// An entry of `__all__` that the server does not claim.
    fn exported(&self, token: &Token) -> Classification {
        if !matches!(self.symbol.reach, Reach::Global) {
            return OTHER;
        }
        let reached = self.classes.resolve(&self.document.path, &[token.text().to_owned()]);
        let is_alias = |file: &AbsPath| {
            token.text() != self.symbol.name
                && self.names.all.get(token.text()).is_some_and(|bound_in| bound_in.contains(file))
        };
        let is_it = |place: &(AbsPath, usize)| self.symbol.definitions.contains(place) || is_alias(&place.0);
        if reached.iter().any(is_it) {
            return Classification::Done(Explanation::Reference(Evidence::rule(UseProvenance::Exported)));
        }
        OTHER
    }

    fn string(&self, token: &Token) -> Classification {
        let Some(used) = self.usage.string(&token.span) else { return TEXT };
        if self.symbol.takes_keywords()
            && !self.is_subscriptable()
            && let Some(unpacking) = self.usage.unpacked_key(&token.span, &used, self.functions)
        {
            return match unpacking {
                Unpacking::InPlace | Unpacking::Perhaps => {
                    Classification::Done(Explanation::Unresolved(UNPACKED.to_owned()))
                }
                Unpacking::ByName(calls) => Classification::Ask(ServerQuestion::Unpacked(calls)),
            };
        }
        let is_member = matches!(self.symbol.reach, Reach::Member { .. });
        match used {
            StringUse::Argument { function, subject, receiver }
                if (is_member && subject.is_some() || matches!(self.symbol.reach, Reach::Global))
                    && self.takes_attribute(&function, receiver.clone()) =>
            {
                match subject {
                    Some(subject) => Classification::Ask(ServerQuestion::Subscripted(subject)),
                    None => Classification::Done(Explanation::Unresolved(UNKNOWN_RECEIVER.to_owned())),
                }
            }
            StringUse::Member(class) if is_member => self.listed_member(class),
            StringUse::Argument { function, .. } if BY_STRING.contains(&function.as_str()) && is_member => {
                Classification::Done(Explanation::Unresolved(format!(
                    "looked up by a string with {function}"
                )))
            }
            StringUse::Argument { function, receiver: Some(receiver), .. }
                if BY_KEY.contains(&function.as_str()) && self.is_subscriptable() =>
            {
                Classification::Ask(ServerQuestion::Subscripted(receiver))
            }
            StringUse::Argument { function, subject: None, receiver: None }
                if BY_KEY.contains(&function.as_str()) && self.is_subscriptable() =>
            {
                let reason = "the type of what has the key is unknown";
                Classification::Done(Explanation::Unresolved(reason.to_owned()))
            }
            StringUse::Argument { function, .. }
                if FIXTURES_BY_STRING.contains(&function.as_str()) && self.symbol.is_fixture =>
            {
                Classification::Done(Explanation::Reference(Evidence::rule(UseProvenance::FixtureRequest)))
            }
            StringUse::Subscript(Some(subject)) if self.is_subscriptable() => {
                Classification::Ask(ServerQuestion::Subscripted(subject))
            }
            StringUse::Subscript(None) if self.is_subscriptable() => Classification::Done(
                Explanation::Unresolved("the type of what is subscripted is unknown".to_owned()),
            ),
            StringUse::Contained(Some(subject)) if self.is_key() => {
                Classification::Ask(ServerQuestion::Subscripted(subject))
            }
            StringUse::Contained(None) if self.is_key() => Classification::Done(Explanation::Unresolved(
                "the type of what contains it is unknown".to_owned(),
            )),
            StringUse::Other if self.is_subscriptable() => Classification::Ask(ServerQuestion::Key),
            _ => TEXT,
        }
    }

    /// Whether a function is given an object and the name of its attribute: `setattr`, also of `monkeypatch`, or `patch.object`.
    fn takes_attribute(&self, function: &str, receiver: Option<std::ops::Range<usize>>) -> bool {
        ATTRIBUTE_FUNCTIONS.contains(&function)
            || function == "object" && receiver.is_some_and(|span| self.document.text[span] == *"patch")
    }

    /// An entry of `__slots__` or `__match_args__` of the class whose name begins at an offset.
    fn listed_member(&self, class: usize) -> Classification {
        let class = self.classes.class_at(&self.document.path, class);
        let is_related = class.is_some_and(|class| {
            let id = class.id();
            self.family.is_own(&id) || self.family.relation(&id).is_some()
        });
        if is_related {
            Classification::Done(Explanation::Reference(Evidence::rule(UseProvenance::Scope)))
        } else {
            TEXT
        }
    }

    /// Whether the symbol is a key of a `TypedDict`.
    fn is_key(&self) -> bool {
        self.symbol.class().is_some_and(|class| is_typed_dict(self.classes, class))
    }

    /// Whether the symbol can be read with a string in brackets: a key of a `TypedDict`, a member of an `Enum`.
    fn is_subscriptable(&self) -> bool {
        let is_enum = |class: &Class| {
            matches!(class.name(), "Enum" | "Flag")
                || class.bases().iter().any(|base| base.ends_with("Enum") || base.ends_with("Flag"))
        };
        self.is_key()
            || self
                .symbol
                .class()
                .is_some_and(|class| is_enum(class) || self.classes.ancestors(class).iter().any(is_enum))
    }

    /// Whether an import binds a name.
    fn is_bound_by_import(&self, at: usize) -> bool {
        let bound = self.scopes().bound_by(at).unwrap_or_default();
        bound.iter().any(|span| self.is_in_import(span.start))
    }

    fn variables(&self) -> Variables<'_, 'f> {
        Variables {
            cx: self.cx,
            classes: self.classes,
            path: &self.document.path,
            accepted: &self.symbol.definitions,
            usage: &self.usage,
            scopes: self.scopes(),
        }
    }

    /// Whether a token is in an import statement.
    fn is_in_import(&self, offset: usize) -> bool {
        matches!(self.usage.of_token(offset), TokenUse::Imported(_))
    }

    /// Whether the name after a dot is one of a module outside the workspace.
    fn is_of_foreign_module(&self, offset: usize) -> bool {
        let Some((object, start)) = self.object(offset) else { return false };
        let found = self.imports(&object, start);
        let roots = &self.cx.state.inputs.roots;
        let is_foreign = |import: &&Import| {
            if import.level > 0 || !matches!(import.what, Imported::Module | Imported::Top) {
                return false;
            }
            let module = roots.import(&self.cx.state.files, &import.module, &self.document.path);
            let file = module.as_ref().and_then(|module| module.file().cloned());
            file.is_none_or(|file| !self.cx.state.is_in_workspace(&file)) && !self.may_be_ours(&import.module)
        };
        // An attribute of a class of that module can be anything.
        !object.contains('.') && !found.is_empty() && found.iter().all(is_foreign)
    }

    /// Whether a module that cannot be found may be one of those that define the symbol, under another root.
    fn may_be_ours(&self, module: &str) -> bool {
        self.symbol.modules.iter().any(|own| own.split('.').any(|part| part == last_part(module)))
    }

    /// The imports that bind the first name of a dotted name that begins at an offset.
    fn imports(&self, dotted: &str, start: usize) -> Vec<&Import> {
        let first = dotted.split('.').next().unwrap_or_default();
        let imports: Vec<&Import> =
            self.outline.imports.iter().filter(|import| import.bound == first).collect();
        if imports.is_empty() {
            return imports;
        }
        let scopes = self.import_scopes.get_or_init(|| {
            let bound: Vec<&str> = self.outline.imports.iter().map(|import| import.bound.as_str()).collect();
            Scopes::of(&self.document.text, &bound)
        });
        let Some(bound) = scopes.bound_by(start) else { return Vec::new() };
        let is_bound = |import: &&Import| bound.iter().any(|span| span.start == import.bound_span.start);
        imports.into_iter().filter(is_bound).collect()
    }

    /// The dotted name before the dot of an attribute, and where it begins.
    fn object(&self, offset: usize) -> Option<(String, usize)> {
        let receiver = self.usage.receiver(offset)?;
        Some((receiver.dotted?, receiver.span.start))
    }
}

/// Whether a token is the name of a variable of a class or of its objects.
fn is_variable_of_class(classes: &Classes<'_>, token: &Token) -> bool {
    token.kind.is_token()
        && classes
            .defined_at(&token.document.path, token.span.start)
            .is_some_and(|defined| defined.class.is_some() && !defined.kind.is_function())
}

/// Which objects may be a module that defines the symbol.
#[derive(Debug)]
struct HeldModules {
    /// Whether such a module is used as a value somewhere, so that any object may be it.
    may_be_anywhere: bool,
    /// The names that imports give the modules. A module that has such an import has the other one as an attribute.
    names: BTreeSet<String>,
}

impl HeldModules {
    fn of(cx: &RequestContext<'_>, symbol: &SearchedSymbol) -> Self {
        let (files, roots) = (&cx.state.files, &cx.state.inputs.roots);
        let modules: Vec<AbsPath> = symbol.definitions.iter().map(|(path, _)| path.clone()).collect();
        let modules = WantedModules::new(&modules);
        let mut queue: Vec<String> =
            symbol.modules.iter().map(|module| last_part(module).to_owned()).collect();
        let mut held = Self { may_be_anywhere: false, names: queue.iter().cloned().collect() };
        while let Some(name) = queue.pop().filter(|name| !name.is_empty()) {
            for path in files_with(cx, &name) {
                let Ok(document) = files.read(&path) else { continue };
                let has_alias = document.text.contains(&format!("{name} as "));
                let is_held = passed_on::is_module_held(&document.text, document.digest, &name);
                if !has_alias && !is_held {
                    continue;
                }
                let imported = imports_of(files, roots, &path, &modules);
                if is_held && imported.any {
                    return Self { may_be_anywhere: true, ..held };
                }
                queue.extend(imported.aliases.into_iter().filter(|alias| held.names.insert(alias.clone())));
            }
        }
        held
    }

    /// Whether an attribute may be one of the modules, by the last name before its dot.
    fn may_be(&self, object: Option<&str>) -> bool {
        self.may_be_anywhere || object.is_some_and(|object| self.names.contains(object))
    }
}

/// Whether the members of a class are the keys of a dictionary.
pub(super) fn is_typed_dict(classes: &Classes<'_>, class: &Class) -> bool {
    classes.has_form(class, "TypedDict")
        || classes.ancestors(class).iter().any(|base| classes.has_form(base, "TypedDict"))
}

/// Whether a token is a keyword whose value has the same name: what `Namespace(name=name)` makes has it as an attribute.
fn is_kept_by_name(token: &Token) -> bool {
    let rest = token.document.text[token.span.end..].trim_start();
    let value = rest.strip_prefix('=').filter(|_| token.kind == OccurrenceKind::Keyword);
    let value =
        value.map(|value| value.trim_start().split([',', ')', '\n']).next().unwrap_or_default().trim());
    value.is_some_and(|value| last_part(value) == token.text())
}

fn last_part(dotted: &str) -> &str {
    dotted.rsplit('.').next().unwrap_or_default()
}
