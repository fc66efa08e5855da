//! Selectors that name a definition: `py://pkg.mod#Class.method:role`.

use super::{SyntaxError, SyntaxResult};
use crate::selector::name::is_identifier;
use crate::selector::{ModuleName, QualName, Role, SymbolSpec};

/// Reads `pkg.mod#Class.method:role`, which starts at byte `offset` of the whole text.
pub(super) fn symbol(rest: &str, offset: usize) -> SyntaxResult<SymbolSpec> {
    let Some(hash) = rest.find('#') else {
        let at = offset + rest.len();
        return Err(SyntaxError::new(at..at, "`#` and a name after the module"));
    };
    identifiers(&rest[..hash], offset, &['.'], "a module name such as pkg.mod")?;
    let mut names = &rest[hash + 1..];
    let start = offset + hash + 1;
    let mut role = Role::Def;
    if let Some((before, last)) = names.rsplit_once(':')
        && let Some(found) = Role::parse(last)
    {
        (names, role) = (before, found);
    }
    identifiers(names, start, &['.', ':'], "a name such as Class.method")?;
    let names = names.split(['.', ':']).map(str::to_owned).collect();
    let qualname = ModuleName::new(&rest[..hash])
        .and_then(|module| QualName::new(module, names))
        .expect("both parts were checked to be identifiers");
    Ok(SymbolSpec { qualname, role, overload: None, doc_version: None })
}

fn identifiers(text: &str, offset: usize, separators: &[char], expected: &str) -> SyntaxResult<()> {
    let mut at = offset;
    for part in text.split(separators) {
        if !is_identifier(part) {
            return Err(SyntaxError::new(at..at + part.len(), expected));
        }
        at += part.len() + 1;
    }
    Ok(())
}
