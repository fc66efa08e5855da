//! Parses and validates requests that people and programs write, as strictly as the command line does.

use crate::bundle::page::MAX_ITEMS;
use crate::digest::strict_json;
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::{Command, Request, Severity};
use crate::selector::{self, PositionSpec};
use crate::text::ColumnUnit;

/// The maximum depth of a call hierarchy.
const MAX_DEPTH: u32 = 8;

/// Parses a selector: its text form, with columns in `unit`, or its JSON form.
///
/// # Errors
/// If the text is neither.
pub fn read_selector(text: &str, unit: ColumnUnit) -> Result<PositionSpec, ErrorBody> {
    if text.trim().is_empty() {
        return Err(ErrorBody::new(ErrorSymbol::BadSelectorSyntax, "the selector is empty")
            .hint("`lanser help locate` shows the forms of a selector"));
    }
    if text.starts_with('{') {
        let wrong = |why: String| {
            ErrorBody::new(
                ErrorSymbol::BadSelectorSyntax,
                format!("the selector is not a valid PositionSpec: {why}"),
            )
            .hint("`lanser schema export --only selector` prints its schema")
        };
        return strict_json::from_slice(text.as_bytes()).map_err(|error| wrong(error.to_string()));
    }
    selector::parse(text, unit).map_err(|error| {
        let span = [error.span.start, error.span.end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        let data = ErrorData::Syntax { text: text.to_owned(), span, expected: error.expected.clone() };
        ErrorBody::new(
            ErrorSymbol::BadSelectorSyntax,
            format!("the selector {text:?} cannot be parsed: {error}"),
        )
        .hint(
            bare_name_hint(text)
                .unwrap_or_else(|| "`lanser help locate` shows the forms of a selector".to_owned()),
        )
        .data(data)
    })
}

/// Validates a request that did not come from the command line, and normalizes it as the command line would: default
/// values are left out, and lists are sorted.
///
/// # Errors
/// If a value is missing or out of bounds.
pub fn validate_request(mut request: Request) -> Result<Request, ErrorBody> {
    let wrong = |what: &str, hint: &str| Err(ErrorBody::new(ErrorSymbol::Usage, what).hint(hint));
    let name = request.cmd.as_str();
    let options = &mut request.options;
    if options.limit.is_some_and(|limit| limit == 0 || limit > MAX_ITEMS) {
        return wrong("`limit` is out of bounds", "use a value from 1 to 100000");
    }
    if options.depth.is_some_and(|depth| depth == 0 || depth > MAX_DEPTH) {
        return wrong("`depth` is out of bounds", "use a value from 1 to 8");
    }
    if request.cmd == Command::Calls && options.direction.is_none() {
        return wrong(
            "`calls` needs a direction",
            "set \"direction\" to \"incoming\" or \"outgoing\" in the options",
        );
    }
    if request.cmd == Command::Rename && request.new_name.is_none() {
        return wrong("`rename` needs a new name", "set \"newName\"");
    }
    if matches!(request.cmd, Command::Apply | Command::Check) && options.edit.is_none() {
        return wrong(&format!("`{name}` needs an edit"), "set \"edit\" to {\"text\": …} in the options");
    }
    if options.query.as_deref().is_some_and(|query| query.trim().is_empty()) {
        return wrong("the query is empty", "use a name, or a part of one");
    }
    let is_about_files = matches!(request.cmd, Command::Symbols | Command::Diagnostics);
    let takes_no_selector = matches!(request.cmd, Command::Apply | Command::Check | Command::Undo);
    match &request.selector {
        Some(_) if takes_no_selector => {
            return wrong(&format!("`{name}` does not take a selector"), "remove \"selector\"");
        }
        None if !is_about_files && !takes_no_selector => {
            let hint = "`lanser help locate` shows the forms of a selector";
            return wrong(&format!("`{name}` needs a selector"), hint);
        }
        _ => {}
    }
    options.depth = options.depth.filter(|depth| *depth != 1);
    options.severity = options.severity.filter(|severity| *severity != Severity::Information);
    if !options.with.is_empty() && !matches!(request.cmd, Command::Diagnostics | Command::Check) {
        return wrong(&format!("`{name}` does not use analyzers"), "remove \"with\" from the options");
    }
    options.with.sort();
    options.with.dedup();
    options.paths.sort();
    options.paths.dedup();
    let guards = &mut options.guards;
    guards.deny.sort();
    guards.deny.dedup();
    guards.overrides.sort();
    guards.overrides.dedup();
    Ok(request)
}

/// A hint with the selector for a bare name. A part that starts with a capital letter is taken for a definition in a
/// module, not for a module.
fn bare_name_hint(text: &str) -> Option<String> {
    let (module, names) = text.split_once(':').unwrap_or(("", text));
    let parts: Vec<&str> =
        module.split('.').chain(names.split(['.', ':'])).filter(|part| !part.is_empty()).collect();
    let is_word = |part: &&str| {
        part.chars().all(|c| c == '_' || c.is_alphanumeric())
            && !part.starts_with(|c: char| c.is_ascii_digit())
    };
    if parts.is_empty()
        || !parts.iter().all(is_word)
        || parts.iter().any(|part| matches!(*part, "py" | "pyi"))
    {
        return None;
    }
    let in_module = match module {
        "" => parts.iter().position(|part| part.starts_with(char::is_uppercase)).unwrap_or(parts.len() - 1),
        module => module.split('.').count(),
    };
    let (module, name) = (parts[..in_module].join("."), parts[in_module..].join("."));
    let module = if module.is_empty() { "MODULE".to_owned() } else { module };
    let last = parts.last().copied().unwrap_or_default();
    Some(format!(
        "write a name with its module: `py://{module}#{name}`; `lanser symbols --query {last}` shows where it is defined"
    ))
}

#[cfg(test)]
mod tests {
    use super::bare_name_hint;

    #[test]
    fn hints_for_bare_names() {
        let suggestion =
            |text: &str| bare_name_hint(text).and_then(|hint| Some(hint.split('`').nth(1)?.to_owned()));
        for (text, expected) in [
            ("Session", Some("py://MODULE#Session")),
            ("requests.Session.get", Some("py://requests#Session.get")),
            ("Session.get", Some("py://MODULE#Session.get")),
            ("os.path.join", Some("py://os.path#join")),
            ("pkg.mod:C.m", Some("py://pkg.mod#C.m")),
            ("app.py", None),
            ("src/app.py", None),
            ("a.py:x", None),
            ("", None),
        ] {
            assert_eq!(suggestion(text).as_deref(), expected, "{text}");
        }
    }
}
