//! Parses and validates requests that people and programs write, as strictly as the command line does.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::bundle::page::MAX_ITEMS;
use crate::digest::strict_json;
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::{Command, Direction, Request, Severity, TypeDirection, module_of_selector};
use crate::selector::{self, PositionSpec};
use crate::text::{ColumnUnit, shell_argument};

/// The maximum depth of a call hierarchy.
const MAX_DEPTH: u32 = 8;

/// The revision that `diagnostics` with `new` compares with by default.
pub(super) const DEFAULT_BASE: &str = "HEAD";

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
        return strict_json::from_slice(text.as_bytes())
            .map_err(|error| unknown_unit(text.as_bytes()).unwrap_or_else(|| wrong(error.to_string())));
    }
    selector::parse(text, unit).map_err(|error| {
        let span = [error.span.start, error.span.end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        let symbol = match error.is_unknown_unit {
            true => ErrorSymbol::IndexingUnsupported,
            false => ErrorSymbol::BadSelectorSyntax,
        };
        let data = ErrorData::Syntax { text: text.to_owned(), span, expected: error.expected.clone() };
        let hint = match module_of_selector(text) {
            Some(module) => format!("`lanser symbols {}` lists what it defines", shell_argument(module)),
            None => "`lanser help locate` shows the forms of a selector".to_owned(),
        };
        ErrorBody::new(symbol, format!("the selector {text:?} cannot be parsed: {error}"))
            .hint(hint)
            .data(data)
    })
}

/// The error if a selector or a request in JSON has a unit of columns that lanser does not know.
pub(crate) fn unknown_unit(json: &[u8]) -> Option<ErrorBody> {
    let UnitMembers { indexing, selector, options, .. } = strict_json::from_slice(json).ok()?;
    let inner = |nested: Option<NestedUnits>| match nested {
        Some(NestedUnits::Members(members)) => [members.indexing, members.index_io],
        Some(NestedUnits::Other(_)) | None => [None, None],
    };
    let given = [indexing].into_iter().chain(inner(selector)).chain(inner(options)).flatten();
    let mut unknown = given.filter(|name| ColumnUnit::parse(name).is_none());
    unknown.next().map(|name| unknown_unit_error(&name))
}

/// The members of a selector or a request that have units of columns.
#[derive(Default, Deserialize)]
#[serde(default)]
struct UnitMembers {
    indexing: Option<String>,
    index_io: Option<String>,
    selector: Option<NestedUnits>,
    options: Option<NestedUnits>,
}

/// A member that may have such members.
#[derive(Deserialize)]
#[serde(untagged)]
enum NestedUnits {
    Members(Box<UnitMembers>),
    Other(IgnoredAny),
}

/// The error for a unit of columns that lanser does not know.
#[must_use]
pub fn unknown_unit_error(name: &str) -> ErrorBody {
    ErrorBody::new(ErrorSymbol::IndexingUnsupported, format!("unknown column unit {name:?}"))
        .hint(format!("use {}", ColumnUnit::EXPECTED))
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
    if options.base.as_deref().is_some_and(|base| base.trim().is_empty()) {
        return wrong("the base is empty", "name a git revision, such as HEAD~1 or origin/main");
    }
    options.new |= options.base.is_some();
    if options.new && [options.severity, options.fail_on].contains(&Some(Severity::Hint)) {
        return wrong(
            "hints are not compared with the base",
            "use the severity information, warning or error",
        );
    }
    if request.cmd == Command::Calls {
        options.direction.get_or_insert(Direction::Incoming);
    }
    if request.cmd == Command::TypeHierarchy {
        options.types.get_or_insert(TypeDirection::Subtypes);
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
    if options.query.is_some() && (request.selector.is_some() || !options.paths.is_empty()) {
        return wrong(
            "a query is for the whole workspace",
            "remove the query, or the selector and the paths",
        );
    }
    let is_about_files = matches!(request.cmd, Command::Symbols | Command::Diagnostics);
    if options.module.is_some() && request.cmd != Command::Rename {
        return wrong(&format!("`{name}` moves no module"), "remove \"module\" from the options");
    }
    if let Some(module) = &mut options.module {
        // As in selectors of modules.
        for name in [Some(module), request.new_name.as_mut()].into_iter().flatten() {
            *name = name.strip_prefix("py://").unwrap_or(name).to_owned();
        }
    }
    let takes_no_selector =
        matches!(request.cmd, Command::Apply | Command::Check | Command::Undo) || options.module.is_some();
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
    options.base = options.base.take().filter(|base| base != DEFAULT_BASE);
    options.severity = options.severity.filter(|severity| *severity != Severity::Information);
    if !options.with.is_empty() && !matches!(request.cmd, Command::Diagnostics | Command::Check) {
        return wrong(&format!("`{name}` does not use analyzers"), "remove \"with\" from the options");
    }
    if options.agree.is_some() && !(request.cmd.takes_second_opinion() && options.module.is_none()) {
        return wrong(
            &format!("`{name}` does not ask another server"),
            "remove \"agree\" from the options: it is for definition, references, and rename of a symbol",
        );
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
