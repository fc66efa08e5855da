//! Requests as people and programs write them, read with the care that the command line takes.

use crate::bundle::page::MAX_ITEMS;
use crate::digest::strict_json;
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::{Command, Request, Severity};
use crate::selector::{self, PositionSpec};
use crate::text::ColumnUnit;

/// The most steps of a call hierarchy.
const MOST_STEPS: u32 = 8;

/// Reads a selector as somebody wrote it: its string form, with columns in `unit`, or its JSON form.
///
/// # Errors
/// When it is neither, in the words of a bundle.
pub fn read_selector(text: &str, unit: ColumnUnit) -> Result<PositionSpec, ErrorBody> {
    if text.trim().is_empty() {
        return Err(ErrorBody::new(ErrorSymbol::BadSelectorSyntax, "the selector is empty")
            .hint("`lanser help locate` shows the forms of a selector"));
    }
    if text.starts_with('{') {
        let wrong = |why: String| {
            ErrorBody::new(ErrorSymbol::BadSelectorSyntax, format!("the selector is no PositionSpec: {why}"))
                .hint("`lanser schema export --only selector` prints its schema")
        };
        return strict_json::from_slice(text.as_bytes()).map_err(|error| wrong(error.to_string()));
    }
    selector::parse(text, unit).map_err(|error| {
        let span = [error.span.start, error.span.end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        let data = ErrorData::Syntax { text: text.to_owned(), span, expected: error.expected.clone() };
        ErrorBody::new(
            ErrorSymbol::BadSelectorSyntax,
            format!("the selector {text:?} cannot be read: {error}"),
        )
        .hint(
            bare_name(text)
                .unwrap_or_else(|| "`lanser help locate` shows the forms of a selector".to_owned()),
        )
        .data(data)
    })
}

/// Makes sure that a request that did not come from the command line is one that could have, and says it as that would:
/// what is the default is left out, and lists are in order.
///
/// # Errors
/// When something is missing or out of bounds.
pub fn checked(mut request: Request) -> Result<Request, ErrorBody> {
    let wrong = |what: &str, hint: &str| Err(ErrorBody::new(ErrorSymbol::Usage, what).hint(hint));
    let name = request.cmd.as_str();
    let options = &mut request.options;
    if options.limit.is_some_and(|limit| limit == 0 || limit > MAX_ITEMS) {
        return wrong("`limit` is out of bounds", "give 1 to 100000");
    }
    if options.depth.is_some_and(|depth| depth == 0 || depth > MOST_STEPS) {
        return wrong("`depth` is out of bounds", "give 1 to 8");
    }
    if request.cmd == Command::Calls && options.direction.is_none() {
        return wrong(
            "`calls` needs a direction",
            "give \"direction\": \"incoming\" or \"outgoing\" in the options",
        );
    }
    if request.cmd == Command::Rename && request.new_name.is_none() {
        return wrong("`rename` needs a new name", "give it as \"newName\"");
    }
    if matches!(request.cmd, Command::Apply | Command::Check) && options.edit.is_none() {
        return wrong(&format!("`{name}` needs an edit"), "give \"edit\": {\"text\": …} in the options");
    }
    if options.query.as_deref().is_some_and(|query| query.trim().is_empty()) {
        return wrong("the query is empty", "give a name, or a part of one");
    }
    let about_files = matches!(request.cmd, Command::Symbols | Command::Diagnostics);
    let needs_none = matches!(request.cmd, Command::Apply | Command::Check | Command::Undo);
    match &request.selector {
        Some(_) if needs_none => {
            return wrong(&format!("`{name}` takes no selector"), "leave \"selector\" out");
        }
        None if !about_files && !needs_none => {
            let hint = "`lanser help locate` shows the forms of a selector";
            return wrong(&format!("`{name}` needs a selector"), hint);
        }
        _ => {}
    }
    options.depth = options.depth.filter(|depth| *depth != 1);
    options.severity = options.severity.filter(|severity| *severity != Severity::Information);
    options.paths.sort();
    options.paths.dedup();
    let guards = &mut options.guards;
    guards.deny.sort();
    guards.deny.dedup();
    guards.given_up.sort();
    guards.given_up.dedup();
    Ok(request)
}

/// What to write in place of a name that stands alone: what begins with a capital letter is in a module, not one.
fn bare_name(text: &str) -> Option<String> {
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
        "a name is looked for in its module: `py://{module}#{name}`; `lanser symbols --query {last}` tells where it is defined"
    ))
}

#[cfg(test)]
mod tests {
    use super::bare_name;

    #[test]
    fn names_without_their_module() {
        let told = |text: &str| bare_name(text).and_then(|hint| Some(hint.split('`').nth(1)?.to_owned()));
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
            assert_eq!(told(text).as_deref(), expected, "{text}");
        }
    }
}
