//! Keyword arguments and strings in brackets: which member they set or read.

use super::classify::UNPACKED;
use super::explainer::Explainer;
use super::symbol::Reach;
use super::{Evidence, Explanation, MAY_BE_SIBLING, Token, UNKNOWN_RECEIVER, offset_of};
use crate::engine::failure::Failure;
use crate::lsp::{Listing, LspLocation};
use crate::model::facts::UseProvenance;
use crate::python::classes::{Class, DefinitionInfo};
use crate::python::hierarchy::Relation;
use crate::python::outline::{DefinitionKind, Outline, Span};
use crate::python::usage::{KeywordUse, TokenUse, Usage};

/// Functions that copy an object with other values for fields.
const REPLACERS: [&str; 5] = ["replace", "_replace", "evolve", "assoc", "__replace__"];

/// Functions of libraries that pass keyword arguments on to a function that they are given.
const FORWARDERS: [&str; 27] = [
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
    "finalize",
    "call_later",
    "addCleanup",
    "addClassCleanup",
    // What a mock was called with.
    "call",
    "assert_called_with",
    "assert_called_once_with",
    "assert_any_call",
    "assert_has_calls",
    "assert_awaited_with",
    "assert_awaited_once_with",
    "assert_any_await",
    "assert_has_awaits",
];

/// Functions that make a dictionary of their keyword arguments, which may be unpacked into a call.
const DICTIONARIES: [&str; 2] = ["dict", "update"];

impl Explainer<'_> {
    /// A keyword argument for which the server has no definition.
    pub(super) async fn keyword(&self, token: &Token) -> Result<Explanation, Failure> {
        match &token.syntax().keyword {
            None => Ok(Explanation::Other),
            Some(used) if used.is_class => Ok(self.class_keyword(token)),
            Some(used) => self.argument(token, used).await,
        }
    }

    /// A keyword argument of a call, which is written as a keyword or as a key.
    async fn argument(&self, token: &Token, used: &KeywordUse) -> Result<Explanation, Failure> {
        let path = &token.document.path;
        let questions = self.cx.requests_until_deadline();
        if REPLACERS.contains(&used.function.as_str()) && matches!(self.symbol.reach, Reach::Member { .. }) {
            let Some(subject) = &used.subject else {
                return Ok(Explanation::Unresolved("the type of what is replaced is unknown".to_owned()));
            };
            let of_type = questions.type_definition(path, self.position(token, subject.start)).await?;
            return Ok(self.of_type(&of_type, UseProvenance::Replace));
        }
        let Some(callee) = &used.callee else {
            return Ok(Explanation::Unresolved("what is called is unknown".to_owned()));
        };
        let found = questions.definition(path, self.position(token, callee.start)).await?;
        if found.items.is_empty() {
            return Ok(Explanation::Unresolved(format!("what `{}` is is unknown", used.function)));
        }
        let is_outside = found.items.iter().all(|place| !self.cx.state.is_in_workspace(&place.path));
        if is_outside
            && self.symbol.takes_keywords()
            && DICTIONARIES.contains(&used.function.as_str())
            && token.document.text.contains("**")
        {
            return Ok(Explanation::Unresolved(
                "a dictionary that may be unpacked into arguments".to_owned(),
            ));
        }
        if is_outside
            && !FORWARDERS.contains(&used.function.as_str())
            && !self.is_given_class(token, used.subject.as_ref()).await?
        {
            return Ok(Explanation::Other);
        }
        Ok(Explanation::Unresolved(format!("`{}` may pass its keyword arguments on", used.function)))
    }

    /// A key of a dictionary that calls unpack: another name if it were one as a keyword of each of them.
    pub(super) async fn unpacked(&self, token: &Token, calls: &[KeywordUse]) -> Result<Explanation, Failure> {
        for call in calls {
            if self.argument(token, call).await? != Explanation::Other {
                return Ok(Explanation::Unresolved(UNPACKED.to_owned()));
            }
        }
        Ok(Explanation::Text)
    }

    /// `case C(key=…)`: not every server knows that the key is a member of the class, and ty takes it for a name.
    pub(super) async fn pattern_keyword(
        &self,
        token: &Token,
        class: usize,
        found: &Listing<LspLocation>,
    ) -> Result<Explanation, Failure> {
        let explanation = self.explain_defined(token, found);
        if matches!(explanation, Explanation::Reference(_)) {
            return Ok(explanation);
        }
        let at = self.position(token, class);
        let classes = self.cx.requests_until_deadline().definition(&token.document.path, at).await?;
        Ok(self.of_type(&classes, UseProvenance::Definition))
    }

    /// Whether the first argument of a call is the class of the symbol, which may then be called with the keywords:
    /// `builds(C, key=…)`.
    async fn is_given_class(&self, token: &Token, subject: Option<&Span>) -> Result<bool, Failure> {
        let Some(subject) = subject.filter(|_| matches!(self.symbol.reach, Reach::Member { .. })) else {
            return Ok(false);
        };
        let at = self.position(token, subject.start);
        let found = self.cx.requests_until_deadline().definition(&token.document.path, at).await?;
        let is_own = |place: &LspLocation| {
            let (document, offset) = offset_of(self.cx, place)?;
            Some(self.family.is_own(&self.classes.class_at(&document.path, offset)?.id()))
        };
        Ok(found.items.iter().any(|place| is_own(place).unwrap_or(false)))
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

    /// `x["key"]` or `setattr(x, "key", …)`, where `x` is a class or has a type, or is a module.
    pub(super) fn subscripted(
        &self,
        token: &Token,
        subject: &Span,
        itself: &Listing<LspLocation>,
        of_type: &Listing<LspLocation>,
    ) -> Explanation {
        if matches!(self.symbol.reach, Reach::Global) {
            return self.in_module(token, subject, itself, of_type);
        }
        let is_module = |place: &LspLocation| place.range == crate::text::Range::default();
        if !itself.items.is_empty() && itself.items.iter().all(is_module) {
            return Explanation::Other;
        }
        // A function is not an object of a class of the workspace.
        let is_function =
            |place: &LspLocation| self.defined_at(place).is_some_and(|defined| is_function(&defined));
        if !itself.items.is_empty() && itself.items.iter().all(is_function) {
            return Explanation::Other;
        }
        let all = itself.items.iter().chain(&of_type.items);
        self.of_classes(&self.classes_at(all), UseProvenance::Subscript)
    }

    /// A name of the module that an expression is: `monkeypatch.setattr(module, "name", …)`.
    fn in_module(
        &self,
        token: &Token,
        subject: &Span,
        itself: &Listing<LspLocation>,
        of_type: &Listing<LspLocation>,
    ) -> Explanation {
        if itself.items.is_empty() && self.may_be_in(token, subject) {
            // ty has no definition of `mod` in `pkg.mod`, not even after `import pkg.mod`.
            let module = dotted_name(token, subject).join(".");
            return match self.classes.imports_dotted(&token.document.path, &module) {
                true => Explanation::Reference(Evidence::rule(UseProvenance::Subscript)),
                false => Explanation::Unresolved("a module that the file does not import".to_owned()),
            };
        }
        let modules = itself.items.iter().filter(|place| place.range == crate::text::Range::default());
        // A variable may hold the module, and ty's definition of a module is the import in its package that loads it. The name of
        // a class is never the first of a file.
        let modules = modules.chain(of_type.items.iter().filter(|place| is_first(place)));
        let chain = [token.text().to_owned()];
        let mut reached = modules.flat_map(|module| self.classes.resolve(&module.path, &chain));
        let is_imported = || itself.items.iter().all(|place| self.is_imported(place));
        if reached.any(|place| self.symbol.definitions.contains(&place))
            || is_imported() && self.may_be_in(token, subject)
        {
            Explanation::Reference(Evidence::rule(UseProvenance::Subscript))
        } else if self.may_be_module(itself, of_type) {
            Explanation::Unresolved(UNKNOWN_RECEIVER.to_owned())
        } else {
            Explanation::Text
        }
    }

    /// What is defined at a place.
    fn defined_at(&self, place: &LspLocation) -> Option<DefinitionInfo> {
        let (document, offset) = offset_of(self.cx, place)?;
        self.classes.defined_at(&document.path, offset)
    }

    /// Whether a place is in an import: what it binds is a module, or an object of one.
    fn is_imported(&self, place: &LspLocation) -> bool {
        offset_of(self.cx, place).is_some_and(|(document, offset)| {
            matches!(Usage::of(&document.text).of_token(offset), TokenUse::Imported(_))
        })
    }

    /// Whether an object that is no known module may be one: its type is not known, or that of all modules.
    fn may_be_module(&self, itself: &Listing<LspLocation>, of_type: &Listing<LspLocation>) -> bool {
        let is_declared =
            |defined: DefinitionInfo| is_function(&defined) || defined.kind == DefinitionKind::Class;
        let is_definition = |place: &LspLocation| {
            place.range == crate::text::Range::default() || self.defined_at(place).is_some_and(is_declared)
        };
        if !itself.items.is_empty() && itself.items.iter().all(is_definition) {
            return false;
        }
        let others: Vec<LspLocation> =
            of_type.items.iter().filter(|place| !is_first(place)).cloned().collect();
        let classes = self.classes_at(&others);
        let is_module = |class: &Class| is_any(class) || class.name() == "ModuleType";
        classes.len() < others.len() || of_type.items.is_empty() || classes.iter().any(is_module)
    }

    /// Whether the symbol is in the module `pkg.mod`, whose last name is given.
    fn may_be_in(&self, token: &Token, module: &Span) -> bool {
        let mut chain = dotted_name(token, module);
        chain.push(token.text().to_owned());
        let reached = self.classes.resolve(&token.document.path, &chain);
        reached.iter().any(|place| self.symbol.definitions.contains(place))
    }

    fn of_type(&self, found: &Listing<LspLocation>, provenance: UseProvenance) -> Explanation {
        self.of_classes(&self.classes_at(&found.items), provenance)
    }

    /// Whether the symbol is the key of a `TypedDict`.
    fn is_key_of_dictionary(&self) -> bool {
        self.symbol.class().is_some_and(|class| self.classes.has_form(class, "TypedDict"))
    }

    fn of_classes(&self, classes: &[Class], provenance: UseProvenance) -> Explanation {
        if classes.is_empty() {
            return Explanation::Unresolved("the type is unknown".to_owned());
        }
        let is_ours = |class: &Class| {
            let id = class.id();
            self.family.is_own(&id) || self.family.relation(&id) == Some(Relation::Derived)
        };
        let above = classes.iter().find(|class| self.family.relation(&class.id()) == Some(Relation::Base));
        if classes.iter().any(is_ours) {
            Explanation::Reference(Evidence::rule(provenance))
        } else if let Some(above) = above {
            Explanation::Reference(Evidence::via(UseProvenance::Dispatch, above.id().name))
        } else if classes.iter().any(is_any) {
            Explanation::Unresolved("it may be any class".to_owned())
        } else if classes.iter().any(|class| self.may_be_sibling(class)) {
            Explanation::Unresolved(MAY_BE_SIBLING.to_owned())
        } else if classes.iter().any(is_dictionary) && self.is_key_of_dictionary() {
            Explanation::Unresolved("a dictionary that may be one of the class".to_owned())
        } else {
            Explanation::Other
        }
    }
}

/// Whether the name of a definition is that of a function: a decorator may make any object of it, as `@property` does.
fn is_function(defined: &DefinitionInfo) -> bool {
    defined.kind.is_function() && defined.has_only_plain_decorators()
}

/// The names of the expression `pkg.mod`, whose last name is given.
fn dotted_name(token: &Token, last: &Span) -> Vec<String> {
    let text = &token.document.text;
    let before = Usage::of(text).object_name(last.start);
    let names = before.iter().flat_map(|before| before.split('.'));
    names.chain([&text[last.clone()]]).map(str::to_owned).collect()
}

/// Whether a place is the first of its file.
fn is_first(place: &LspLocation) -> bool {
    place.range.start == crate::text::Position::default()
}

/// Whether a `TypedDict` may be declared as the class.
fn is_dictionary(class: &Class) -> bool {
    matches!(class.name(), "dict" | "Mapping" | "MutableMapping")
        && matches!(
            class.id().module.as_str(),
            "builtins" | "typing" | "collections.abc" | "_collections_abc"
        )
}

/// Whether objects of a class may be of every other, or be other classes.
fn is_any(class: &Class) -> bool {
    let is_in = |module: &str| class.id().module == module;
    // The type of what is declared as `Any` is a class to ty.
    class.is_object()
        || class.name() == "type" && is_in("builtins")
        || class.name() == "Any" && (is_in("typing") || is_in("typing_extensions"))
}
