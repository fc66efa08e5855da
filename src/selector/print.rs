//! The canonical spelling.

use std::fmt;

use super::{CursorSpec, PositionSpec, RangeSpec, Role, SymbolSpec};
use crate::text::ColumnUnit;

impl fmt::Display for PositionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cursor(cursor) => cursor.fmt(f),
            Self::Range(range) => range.fmt(f),
            Self::Symbol(symbol) => symbol.fmt(f),
        }
    }
}

impl fmt::Display for CursorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@L{}:C{}", self.uri, self.line, self.col)?;
        write_indexing(f, self.indexing)
    }
}

impl fmt::Display for RangeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([sl, sc], [el, ec]) = (self.start, self.end);
        write!(f, "{}@R({sl},{sc}->{el},{ec})", self.uri)?;
        write_indexing(f, self.indexing)
    }
}

impl fmt::Display for SymbolSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "py://{}#{}", self.qualname.module, self.qualname.names().join("."))?;
        if self.role != Role::Def {
            write!(f, ":{}", self.role.as_str())?;
        }
        if let Some(overload) = self.overload {
            write!(f, "?overload={overload}")?;
        }
        Ok(())
    }
}

/// The default unit is left out, so that there is one spelling.
fn write_indexing(f: &mut fmt::Formatter<'_>, unit: ColumnUnit) -> fmt::Result {
    if unit == ColumnUnit::default() { Ok(()) } else { write!(f, "?indexing={unit}") }
}
