//! Selectors that name a definition: `py://pkg.mod#Class.method:role`, `pkg.mod.Class.method`, `Class.method`,
//! `pkg.mod:Class.method`, `tests/test_x.py::TestC::test_m[param-1]`.

use std::ops::Range;

use super::{FORMS, SyntaxError, SyntaxResult, position};
use crate::path::PYTHON_SUFFIXES;
use crate::selector::name::is_identifier;
use crate::selector::{
    DottedName, Identifier, ModuleName, NameSpec, PositionSpec, QualName, Role, SymbolSpec,
};

/// Reads `pkg.mod#Class.method(param):role`, which starts at byte `offset` of the whole text.
pub(super) fn symbol(rest: &str, offset: usize) -> SyntaxResult<SymbolSpec> {
    let Some(hash) = rest.find('#') else {
        let at = offset + rest.len();
        return Err(SyntaxError::new(at..at, "`#` and a name after the module"));
    };
    identifiers(&rest[..hash], offset, ".", "a module name such as pkg.mod")?;
    let start = offset + hash + 1;
    let (names, role) = split_role(&rest[hash + 1..]);
    let (names, param) = split_param(names, start)?;
    let names = identifiers(&names.replace(':', "."), start, ".", "a name such as Class.method")?;
    let qualname = ModuleName::new(&rest[..hash])
        .and_then(|module| QualName::new(module, names))
        .expect("both parts were checked to be identifiers");
    Ok(SymbolSpec { qualname, param, role, overload: None, doc_version: None })
}

/// Reads a name without `py://`: `pkg.mod#Class.method`, `pkg.mod:Class.method`, `pkg.mod.Class.method`, `Class.method`.
/// `None` if it is none of them.
pub(super) fn plain_name(text: &str) -> Option<PositionSpec> {
    let (names, role) = split_role(text);
    let (names, param) = split_param(names, 0).ok()?;
    match names.split_once(['#', ':']) {
        Some((module, names)) => {
            // A module is not a path.
            let module = DottedName::parse(module).and_then(|module| ModuleName::new(&module.to_string()))?;
            let qualname = QualName::new(module, names.split(['.', ':']).map(str::to_owned).collect())?;
            Some(PositionSpec::Symbol(SymbolSpec {
                qualname,
                param,
                role,
                overload: None,
                doc_version: None,
            }))
        }
        None => {
            let name = NameSpec::new(DottedName::parse(names)?);
            Some(PositionSpec::Name(NameSpec { param, role, ..name }))
        }
    }
}

/// The end of the path in `path.py::name`; `None` for a text of another form.
pub(super) fn path_before_names(text: &str) -> Option<usize> {
    let ends =
        PYTHON_SUFFIXES.iter().filter_map(|suffix| Some(text.find(&format!("{suffix}::"))? + suffix.len()));
    // `@` is in no name: the `::` is in the path of a position.
    let is_position =
        |end: &usize| text[*end..].split(['[', '?']).next().is_some_and(|names| names.contains('@'));
    let is_other = ["py://", "ast://", "sym://"].iter().any(|scheme| text.starts_with(scheme));
    ends.min().filter(|end| !is_other && !is_position(end))
}

/// Reads `path.py::Class::method`, as pytest prints it, whose path ends at `path_end`. Parameters of the test in brackets are
/// ignored. Also returns the offset of the options.
pub(super) fn name_in_file(text: &str, path_end: usize) -> SyntaxResult<(PositionSpec, Option<usize>)> {
    let uri = position::uri(text, 0..path_end)?;
    let start = path_end + 2;
    let rest = &text[start..];
    // The text in brackets can contain anything, also brackets.
    let brackets =
        rest.find('[').and_then(|open| Some(open..rest.rfind(']')? + 1)).filter(|all| all.start < all.end);
    let tail = brackets.as_ref().map_or(0, |brackets| brackets.end);
    let query = rest[tail..].find('?').map(|at| tail + at);
    let body_end = query.unwrap_or(rest.len());
    let names = match &brackets {
        Some(brackets) if brackets.end < body_end => {
            let expected = format!("the end of the selector: {}", &text[..start + brackets.end]);
            return Err(SyntaxError::new(start + brackets.end..start + body_end, expected));
        }
        Some(brackets) => &rest[..brackets.start],
        None => &rest[..body_end],
    };
    let (names, role) = split_role(names);
    let (names, param) = split_param(names, start)?;
    let names = identifiers(names, start, "::", "a name such as TestClass::test_method")?;
    let name = DottedName::new(names)
        .ok_or_else(|| SyntaxError::new(start..start + body_end, "the name of a definition"))?;
    let spec = NameSpec { uri: Some(uri), param, role, ..NameSpec::new(name) };
    Ok((PositionSpec::Name(spec), query.map(|at| start + at + 1)))
}

/// The text before a last `:role`, and the role.
fn split_role(text: &str) -> (&str, Role) {
    match text.rsplit_once(':') {
        Some((before, last)) if !before.ends_with(':') => match Role::parse(last) {
            Some(role) => (before, role),
            None => (text, Role::Def),
        },
        _ => (text, Role::Def),
    }
}

/// The text before a last `(param)`, and the parameter. `text` starts at byte `offset` of the whole text.
fn split_param(text: &str, offset: usize) -> SyntaxResult<(&str, Option<Identifier>)> {
    let Some(open) = text.find('(') else { return Ok((text, None)) };
    let inside = open + 1..text.len().max(open + 2) - 1;
    let wrong = |span: Range<usize>| {
        SyntaxError::new(offset + span.start..offset + span.end, "the name of one parameter and `)`")
    };
    let param = text.get(inside.clone()).filter(|_| text.ends_with(')')).and_then(Identifier::new);
    let param = param.ok_or_else(|| wrong(open + 1..text.len()))?;
    Ok((&text[..open], Some(param)))
}

/// The identifiers in a text that starts at byte `offset` of the whole text.
fn identifiers(text: &str, offset: usize, separator: &str, expected: &str) -> SyntaxResult<Vec<String>> {
    let mut at = offset;
    let mut names = Vec::new();
    for part in text.split(separator) {
        if !is_identifier(part) {
            return Err(SyntaxError::new(at..at + part.len(), expected));
        }
        names.push(part.to_owned());
        at += part.len() + separator.len();
    }
    Ok(names)
}

/// The error for a text that is neither a path with a position nor a name.
pub(super) fn unknown_form(text: &str) -> SyntaxError {
    SyntaxError::new(0..text.len(), FORMS)
}
