//! Prints selectors in the canonical spelling.

use std::fmt;

use super::anchor::DEFAULT_CONTEXT;
use super::{
    AnchorSpec, AstSpec, AstStep, CursorSpec, DocVersion, Identifier, LineSpec, NameSpec, PositionSpec,
    RangeSpec, Role, SymbolSpec, SymidSpec,
};
use crate::path::encode_portable_and;
use crate::text::ColumnUnit;

impl fmt::Display for PositionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cursor(cursor) => cursor.fmt(f),
            Self::Range(range) => range.fmt(f),
            Self::Line(line) => line.fmt(f),
            Self::Symbol(symbol) => symbol.fmt(f),
            Self::Name(name) => name.fmt(f),
            Self::Ast(ast) => ast.fmt(f),
            Self::Anchor(anchor) => anchor.fmt(f),
            Self::Symid(symid) => symid.fmt(f),
        }
    }
}

impl fmt::Display for CursorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@L{}:C{}", self.uri, self.line, self.col)?;
        QueryWriter::new(f).indexing(self.indexing)?.version(self.doc_version.as_ref())
    }
}

impl fmt::Display for RangeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([sl, sc], [el, ec]) = (self.start, self.end);
        write!(f, "{}@R({sl},{sc}->{el},{ec})", self.uri)?;
        QueryWriter::new(f).indexing(self.indexing)?.version(self.doc_version.as_ref())
    }
}

impl fmt::Display for LineSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@L{}", self.uri, self.line)?;
        QueryWriter::new(f).version(self.doc_version.as_ref())
    }
}

impl fmt::Display for SymbolSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "py://{}#{}", self.qualname.module, self.qualname.names().join("."))?;
        part(f, self.param.as_ref(), self.role)?;
        QueryWriter::new(f).overload(self.overload)?.version(self.doc_version.as_ref())
    }
}

impl fmt::Display for NameSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.uri {
            // The first `.py::` ends the path.
            Some(uri) => {
                write!(f, "{}", uri.to_string().replace("::", "%3A%3A"))?;
                self.name.names().iter().try_for_each(|name| write!(f, "::{name}"))?;
            }
            None => self.name.fmt(f)?,
        }
        part(f, self.param.as_ref(), self.role)?;
        QueryWriter::new(f).overload(self.overload)?.version(self.doc_version.as_ref())
    }
}

/// Writes the parameter and the role after the name of a definition.
fn part(f: &mut fmt::Formatter<'_>, param: Option<&Identifier>, role: Role) -> fmt::Result {
    if let Some(param) = param {
        write!(f, "({param})")?;
    }
    if role == Role::Def { Ok(()) } else { write!(f, ":{}", role.as_str()) }
}

impl fmt::Display for AstSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ast://")?;
        for (at, step) in self.path.iter().enumerate() {
            if at > 0 {
                f.write_str("/")?;
            }
            step.fmt(f)?;
        }
        QueryWriter::new(f).version(self.doc_version.as_ref())
    }
}

impl fmt::Display for AstStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let construct = self.construct.as_str();
        match self.name() {
            Some(name) => write!(f, "[{construct}={}]", encode_portable_and(name, b"[]=/"))?,
            None => f.write_str(construct)?,
        }
        self.ordinal().map_or(Ok(()), |ordinal| write!(f, "[{ordinal}]"))
    }
}

impl fmt::Display for AnchorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A backslash is encoded too, because one before a quote or a slash would be read as an escape.
        write!(f, "anchor://{}#\"{}\"", self.uri, encode_portable_and(&self.snippet, b"\\"))?;
        let mut query = QueryWriter::new(f);
        if self.ctx != DEFAULT_CONTEXT {
            query.option("ctx", self.ctx)?;
        }
        if let Some(hash) = &self.hash {
            query.option("hash", hash)?;
        }
        query.version(self.doc_version.as_ref())
    }
}

impl fmt::Display for SymidSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sym://{}", self.id)?;
        QueryWriter::new(f).version(self.doc_version.as_ref())
    }
}

/// Writes the options after `?`, in the canonical order.
struct QueryWriter<'f, 'b> {
    f: &'f mut fmt::Formatter<'b>,
    separator: char,
}

impl<'f, 'b> QueryWriter<'f, 'b> {
    const fn new(f: &'f mut fmt::Formatter<'b>) -> Self {
        Self { f, separator: '?' }
    }

    fn option(&mut self, key: &str, value: impl fmt::Display) -> fmt::Result {
        write!(self.f, "{}{key}={value}", self.separator)?;
        self.separator = '&';
        Ok(())
    }

    fn overload(mut self, overload: Option<u32>) -> Result<Self, fmt::Error> {
        if let Some(overload) = overload {
            self.option("overload", overload)?;
        }
        Ok(self)
    }

    /// Writes the unit. The default is omitted, so that there is one spelling.
    fn indexing(mut self, unit: ColumnUnit) -> Result<Self, fmt::Error> {
        if unit != ColumnUnit::default() {
            self.option("indexing", unit)?;
        }
        Ok(self)
    }

    fn version(mut self, version: Option<&DocVersion>) -> fmt::Result {
        version.map_or(Ok(()), |version| self.option("v", encode_portable_and(&version.to_string(), b"&")))
    }
}
