//! Python names in selectors.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whether `text` is a Python identifier (keywords included: the grammar does not exclude them).
///
/// Source: Python reference, "Identifiers and keywords", before NFKC normalization, which servers do not apply either.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c == '_' || unicode_ident::is_xid_start(c))
        && chars.all(unicode_ident::is_xid_continue)
}

/// The dotted name of a module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModuleName(String);

impl ModuleName {
    /// A dotted name; `None` if a part is not an identifier.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        text.split('.').all(is_identifier).then(|| Self(text.to_owned()))
    }

    /// The text of the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parts between the dots.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A module and the chain of names inside it, printed `pkg.mod:Class.method`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct QualName {
    /// The module.
    pub module: ModuleName,
    /// The names, outermost first. Invariant: identifiers, at least one.
    names: Vec<String>,
}

impl QualName {
    /// A qualified name; `None` if `names` is empty or contains a text that is not an identifier.
    #[must_use]
    pub fn new(module: ModuleName, names: Vec<String>) -> Option<Self> {
        (!names.is_empty() && names.iter().all(|name| is_identifier(name))).then_some(Self { module, names })
    }

    /// Reads the printed form; both `.` and `:` separate names after the first `:`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (module, names) = text.split_once(':')?;
        Self::new(ModuleName::new(module)?, names.split(['.', ':']).map(str::to_owned).collect())
    }

    /// The names, outermost first.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The innermost name.
    #[must_use]
    pub fn last(&self) -> &str {
        self.names.last().expect("a qualified name has at least one name")
    }
}

impl fmt::Display for QualName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.module, self.names.join("."))
    }
}

impl Serialize for QualName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for QualName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!("{text:?} is not of the form pkg.mod:Class.method"))
        })
    }
}

impl schemars::JsonSchema for QualName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "QualName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "module and name, pkg.mod:Class.method", "pattern": "^[^:#]+:[^#]+$" })
    }
}

/// A chain of names, outermost first, printed `Class.method`. It does not end like a Python file: `app.py` is a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DottedName(Vec<String>);

impl DottedName {
    /// A chain of names; `None` if it is empty, contains a text that is not an identifier, or ends like the name of a Python file.
    #[must_use]
    pub fn new(names: Vec<String>) -> Option<Self> {
        let is_path =
            names.len() > 1 && names.last().is_some_and(|last| matches!(last.as_str(), "py" | "pyi" | "pyw"));
        (!names.is_empty() && !is_path && names.iter().all(|name| is_identifier(name))).then_some(Self(names))
    }

    /// Reads the printed form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::new(text.split('.').map(str::to_owned).collect())
    }

    /// The names, outermost first.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for DottedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

impl Serialize for DottedName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DottedName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a name such as Class.method")))
    }
}

impl schemars::JsonSchema for DottedName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DottedName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "names joined by dots: Class.method, pkg.mod.Class", "pattern": "^[^.:#/()]+(\\.[^.:#/()]+)*$" })
    }
}

/// One name, such as that of a parameter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identifier(String);

impl Identifier {
    /// A name; `None` if the text is not an identifier.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        is_identifier(text).then(|| Self(text.to_owned()))
    }

    /// The text of the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Identifier {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Identifier {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a name")))
    }
}

impl schemars::JsonSchema for Identifier {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Identifier".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "a Python name", "pattern": "^[^.:#/()]+$" })
    }
}
