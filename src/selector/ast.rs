//! AST paths: paths through the constructs of Python, independent of a parser's node types.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::DocVersion;

/// A path through the constructs of a file: `ast://[module=pkg.mod]/[class=C]/[def=m]/call[2]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AstSpec {
    /// The steps, outermost first; at least one.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(length(min = 1))]
    pub path: Vec<AstStep>,
    /// The version that the path was made from.
    #[serde(rename = "docVersion", default, skip_serializing_if = "Option::is_none")]
    pub doc_version: Option<DocVersion>,
}

impl AstSpec {
    /// The first step whose ordinal counts constructs of the text, so that an edit may change what it selects. The ordinal of
    /// a construct that its parent has at most once, such as the name of a `def`, counts nothing.
    #[must_use]
    pub fn counted_step(&self) -> Option<&AstStep> {
        let mut parent = None;
        self.path.iter().find(|step| {
            let parent = parent.replace(step.construct);
            step.ordinal.is_some() && !step.is_only_child_of(parent)
        })
    }
}

fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<AstStep>, D::Error> {
    let path = Vec::deserialize(deserializer)?;
    if path.is_empty() { Err(D::Error::custom("an AST path must have at least one step")) } else { Ok(path) }
}

impl AstStep {
    /// Whether a construct of the kind `parent` has at most one such child, by Python's grammar.
    fn is_only_child_of(&self, parent: Option<Construct>) -> bool {
        let is_scope = matches!(parent, Some(Construct::Class | Construct::Def));
        match self.construct {
            Construct::Params | Construct::Returns | Construct::Doc => true,
            Construct::Body => is_scope,
            // With a name it selects among all identifiers inside.
            Construct::Name => is_scope && self.name.is_none(),
            _ => false,
        }
    }
}

/// One step: a construct, optionally its name, optionally an ordinal. In JSON an array: `["def", "m", 2]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AstStep {
    /// The construct.
    pub construct: Construct,
    /// The name of the construct. Invariant, ensured by [`AstStep::new`]: not empty, no control character.
    pub(super) name: Option<String>,
    /// The 1-based ordinal among equal constructs under the previous step; without it there must be exactly one.
    pub(super) ordinal: Option<u32>,
}

impl AstStep {
    /// A step; `None` if the name is empty or contains a control character, or the ordinal is 0.
    #[must_use]
    pub fn new(construct: Construct, name: Option<String>, ordinal: Option<u32>) -> Option<Self> {
        let named = name.as_ref().is_none_or(|name| !name.is_empty() && !name.chars().any(char::is_control));
        (named && ordinal != Some(0)).then_some(Self { construct, name, ordinal })
    }

    /// The name of the construct.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The 1-based ordinal among equal constructs under the previous step.
    #[must_use]
    pub const fn ordinal(&self) -> Option<u32> {
        self.ordinal
    }
}

macro_rules! constructs {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// A construct of Python that a step can name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Construct { $($(#[$doc])* $variant),+ }

        impl Construct {
            /// Every construct.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name in selectors.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

constructs! {
    /// A whole file; its name is the module's, or a path that ends in `.py`.
    Module = "module",
    /// A class.
    Class = "class",
    /// A function or method, including `async` ones.
    Def = "def",
    /// An identifier.
    Name = "name",
    /// A parameter of a function.
    Param = "param",
    /// All parameters, with their parentheses.
    Params = "params",
    /// The annotation after `->`.
    Returns = "returns",
    /// A decorator.
    Decorator = "decorator",
    /// The block of a definition.
    Body = "body",
    /// The docstring.
    Doc = "doc",
    /// An assignment, including augmented and annotated ones.
    Assign = "assign",
    /// A call.
    Call = "call",
    /// An import statement.
    Import = "import",
    /// An `if` statement.
    If = "if",
    /// A `for` loop.
    For = "for",
    /// A `while` loop.
    While = "while",
    /// A `with` statement.
    With = "with",
    /// A `try` statement.
    Try = "try",
    /// An `except` clause.
    Except = "except",
    /// A `match` statement.
    Match = "match",
    /// A `return` statement.
    Return = "return",
    /// A `raise` statement.
    Raise = "raise",
    /// A `lambda`.
    Lambda = "lambda",
    /// A comprehension of any kind.
    Comprehension = "comprehension",
    /// A string literal.
    String = "string",
}

impl Construct {
    /// Reads the name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|construct| construct.as_str() == name)
    }
}

impl Serialize for AstStep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut array = serializer.serialize_seq(None)?;
        array.serialize_element(self.construct.as_str())?;
        if let Some(name) = &self.name {
            array.serialize_element(name)?;
        }
        if let Some(ordinal) = self.ordinal {
            array.serialize_element(&ordinal)?;
        }
        array.end()
    }
}

impl<'de> Deserialize<'de> for AstStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(StepVisitor)
    }
}

/// A name or an ordinal, after the construct.
#[derive(Deserialize)]
#[serde(untagged)]
enum StepPart {
    Name(String),
    Ordinal(u32),
}

struct StepVisitor;

impl<'de> Visitor<'de> for StepVisitor {
    type Value = AstStep;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step such as [\"def\", \"m\"], [\"call\", 2] or [\"def\", \"m\", 2]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<AstStep, A::Error> {
        let word: String = array.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let construct = Construct::parse(&word)
            .ok_or_else(|| A::Error::custom(format!("{word:?} is not a construct; expected {}", names())))?;
        let (mut name, mut ordinal) = (None, None);
        while let Some(part) = array.next_element()? {
            match part {
                StepPart::Name(text) if name.is_none() && ordinal.is_none() => name = Some(text),
                StepPart::Ordinal(number) if ordinal.is_none() => ordinal = Some(number),
                _ => return Err(A::Error::custom("a step has at most one name and then one ordinal")),
            }
        }
        AstStep::new(construct, name, ordinal)
            .ok_or_else(|| A::Error::custom("a name must not be empty, and an ordinal must be at least 1"))
    }
}

/// The constructs, for messages.
pub(super) fn names() -> String {
    let names: Vec<_> = Construct::ALL.iter().map(|construct| construct.as_str()).collect();
    format!("one of {}", names.join(", "))
}

impl JsonSchema for AstStep {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AstStep".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<_> = Construct::ALL.iter().map(|construct| construct.as_str()).collect();
        let construct = schemars::json_schema!({ "enum": names });
        let name =
            schemars::json_schema!({ "type": "string", "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$" });
        let ordinal = schemars::json_schema!({ "type": "integer", "minimum": 1, "maximum": u32::MAX });
        schemars::json_schema!({
            "description": "a construct, optionally its name, optionally its 1-based ordinal: [\"def\", \"m\", 2]",
            "type": "array",
            "anyOf": [
                { "prefixItems": [construct.clone()], "items": false, "minItems": 1, "type": "array" },
                { "prefixItems": [construct.clone(), name.clone()], "items": false, "minItems": 2, "type": "array" },
                { "prefixItems": [construct.clone(), ordinal.clone()], "items": false, "minItems": 2, "type": "array" },
                { "prefixItems": [construct, name, ordinal], "items": false, "minItems": 3, "type": "array" }
            ]
        })
    }
}
