//! One run of a SARIF log: the findings of one tool.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::repository_path;
use crate::digest::Digest;
use crate::model::bundle::Bundle;
use crate::model::facts::{Diagnostic, Diagnostics};
use crate::model::request::Severity;
use crate::path::DocUri;
use crate::reward::fingerprint;
use crate::text::{ColumnUnit, Position, Range};

/// The base of URIs in the repository.
const SOURCE_ROOT: &str = "%SRCROOT%";
/// The base of URIs in the Python environment.
const ENVIRONMENT: &str = "%PYTHONENV%";
/// The base of URIs in the language server's package.
const SERVER: &str = "%SERVER%";

/// How many hexadecimal digits a fingerprint has.
const FINGERPRINT_DIGITS: usize = 32;

/// The tool that reports diagnostics.
#[derive(Debug, Clone)]
pub(super) struct ReportTool<'b> {
    pub(super) name: &'b str,
    pub(super) version: Option<&'b str>,
}

impl ReportTool<'_> {
    /// Its home page.
    fn home(&self) -> Option<&'static str> {
        Some(match self.name {
            "pyright" => "https://github.com/microsoft/pyright",
            "basedpyright" => "https://github.com/DetachHead/basedpyright",
            "ty" => "https://github.com/astral-sh/ty",
            "ruff" => "https://docs.astral.sh/ruff/",
            "mypy" => "https://mypy-lang.org/",
            _ => return None,
        })
    }

    /// The documentation of a rule.
    fn help(&self, rule: &str) -> Option<String> {
        let page = match self.name {
            "pyright" if rule.starts_with("report") => {
                "https://github.com/microsoft/pyright/blob/main/docs/configuration.md#"
            }
            "basedpyright" if rule.starts_with("report") => {
                "https://docs.basedpyright.com/latest/configuration/config-files/#"
            }
            "ty" => "https://ty.dev/rules#",
            "mypy" => "https://mypy.readthedocs.io/en/stable/_refs.html#code-",
            _ => return None,
        };
        Some(format!("{page}{}", encoded(rule)))
    }

    /// The driver with the rules of the findings.
    fn driver(&self, rules: &BTreeMap<&str, usize>) -> Value {
        let rules: Vec<Value> = rules
            .keys()
            .map(|rule| {
                let mut descriptor = json!({"id": rule});
                if let Some(help) = self.help(rule) {
                    descriptor["helpUri"] = help.into();
                }
                descriptor
            })
            .collect();
        let mut driver = json!({"name": self.name, "rules": rules});
        if let Some(version) = self.version {
            driver["version"] = version.into();
        }
        if let Some(home) = self.home() {
            driver["informationUri"] = home.into();
        }
        driver
    }
}

/// The run of a tool.
pub(super) fn run(bundle: &Bundle, tool: &ReportTool<'_>, prefix: &str, items: &[&Diagnostic]) -> Value {
    let found = bundle.facts.as_ref().and_then(|facts| facts.diagnostics.as_ref());
    let mut rules: BTreeMap<&str, usize> = items.iter().map(|item| (rule_id(item), 0)).collect();
    for (index, at) in rules.values_mut().enumerate() {
        *at = index;
    }
    let mut tools = json!({"driver": tool.driver(&rules)});
    if tool.name != "lanser" {
        tools["extensions"] = json!([{"name": "lanser", "version": env!("CARGO_PKG_VERSION")}]);
    }
    let unit = unit(bundle);
    let mut run = json!({
        "tool": tools,
        // GitHub accepts several runs of one upload if their categories differ.
        "automationDetails": {"id": format!("lanser/{}/", tool.name)},
        "invocations": [invocation(bundle, found, prefix)],
        "columnKind": if unit == ColumnUnit::Utf16 { "utf16CodeUnits" } else { "unicodeCodePoints" },
        "originalUriBaseIds": {
            SOURCE_ROOT: {"description": {"text": "The root of the repository"}},
            ENVIRONMENT: {"description": {"text": "The Python environment"}},
            SERVER: {"description": {"text": "The package of the language server"}},
        },
    });
    if let Some(found) = found {
        let mut seen = BTreeMap::new();
        let is_new = found.base.is_some();
        let results = items.iter().map(|item| {
            let mut result = result(item, prefix, unit);
            result["ruleIndex"] = rules[rule_id(item)].into();
            result["partialFingerprints"] = json!({"lanser/v1": fingerprint(tool.name, item, &mut seen)});
            if is_new {
                result["baselineState"] = "new".into();
            }
            result
        });
        run["results"] = results.collect();
        if let Some(base) = &found.base {
            run["properties"] = json!({"base": base});
        }
    }
    run
}

/// The unit of columns in the bundle.
fn unit(bundle: &Bundle) -> ColumnUnit {
    let encoding = bundle.environment.as_ref().map(|environment| environment.position_encoding.as_str());
    encoding.and_then(ColumnUnit::parse).unwrap_or(ColumnUnit::Utf16)
}

/// How the tool ran, and what its reader has to know.
fn invocation(bundle: &Bundle, found: Option<&Diagnostics>, prefix: &str) -> Value {
    let mut notifications: Vec<Value> =
        bundle.warnings.iter().map(|warning| notification("warning", "warning", warning)).collect();
    for file in found.iter().flat_map(|found| &found.not_checked) {
        let mut note = notification("error", "not-checked", &file.reason);
        note["locations"] = json!([{"physicalLocation": {"artifactLocation": artifact(&file.uri, prefix)}}]);
        notifications.push(note);
    }
    for source in found.iter().flat_map(|found| &found.sources).filter(|source| !source.complete) {
        let reason = source.reason.as_deref().unwrap_or("incomplete");
        notifications.push(notification("error", "incomplete", &format!("{}: {reason}", source.tool)));
    }
    if let Some(limits) = bundle.meta.limits.as_ref().filter(|limits| limits.truncated) {
        let listed = found.map_or(0, |found| found.items.len());
        let text = format!("only {listed} of {} diagnostics are listed", limits.total);
        notifications.push(notification("warning", "truncated", &text));
    }
    if let Some(caveat) = found.and_then(|found| found.base.as_ref()?.caveat.as_ref()) {
        notifications.push(notification("warning", "base", caveat));
    }
    if let Some(error) = &bundle.error {
        let hint = error.hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        notifications.push(notification("error", error.symbol.as_str(), &format!("{}{hint}", error.message)));
    }
    json!({
        "executionSuccessful": bundle.error.is_none(),
        "exitCode": bundle.meta.exit_code,
        "toolExecutionNotifications": notifications,
    })
}

fn notification(level: &str, id: &str, text: &str) -> Value {
    json!({"level": level, "descriptor": {"id": id}, "message": {"text": text}})
}

/// The rule of a diagnostic; its severity, if it has none, as syntax errors.
fn rule_id(item: &Diagnostic) -> &str {
    item.rule.as_deref().unwrap_or(item.severity.as_str())
}

fn result(item: &Diagnostic, prefix: &str, unit: ColumnUnit) -> Value {
    let level = match item.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Information | Severity::Hint => "note",
    };
    let mut place = physical(&item.uri, prefix, item.range, &item.at, unit);
    if let Some(symbol) = &item.symbol {
        place["logicalLocations"] = json!([{"fullyQualifiedName": symbol}]);
    }
    let mut result = json!({
        "ruleId": rule_id(item),
        "level": level,
        "message": {"text": item.message.replace('\u{a0}', " ")},
        "locations": [place],
    });
    let mut related: Vec<Value> = Vec::new();
    for other in item.related.iter().filter(|other| !matches!(other.location.uri, DocUri::File(_))) {
        let location = &other.location;
        let mut place = physical(&location.uri, prefix, location.range, &location.at, unit);
        place["id"] = (related.len() + 1).into();
        place["message"] = json!({"text": other.message.replace('\u{a0}', " ")});
        related.push(place);
    }
    if !related.is_empty() {
        result["relatedLocations"] = related.into();
    }
    if !item.tags.is_empty() {
        result["properties"] = json!({"tags": item.tags});
    }
    result
}

fn physical(uri: &DocUri, prefix: &str, range: Range, at: &str, unit: ColumnUnit) -> Value {
    json!({"physicalLocation": {"artifactLocation": artifact(uri, prefix), "region": region(range, at, unit)}})
}

/// A region. Columns are 1-based and the end is exclusive. SARIF has no byte columns: of those only the start is known in
/// another unit, from the selector.
fn region(range: Range, at: &str, unit: ColumnUnit) -> Value {
    let mut region = Map::new();
    let mut put = |name: &str, number: u32| drop(region.insert(name.to_owned(), number.into()));
    let Range { start: Position { line, column }, end } = range;
    put("startLine", line + 1);
    put("endLine", end.line + 1);
    if unit != ColumnUnit::Utf8 {
        put("startColumn", column + 1);
        put("endColumn", end.column + 1);
    } else if let Some(column) = at.rsplit_once(":C").and_then(|(_, column)| column.parse().ok()) {
        put("startColumn", column);
    }
    Value::Object(region)
}

/// The location of a file. No URI has a scheme: GitHub refuses those that do not match the checkout's.
fn artifact(uri: &DocUri, prefix: &str) -> Value {
    let (path, base) = match uri {
        DocUri::Workspace(path) => (repository_path::in_repository(prefix, path), SOURCE_ROOT),
        DocUri::Env(path) => (path.clone(), ENVIRONMENT),
        DocUri::Server(path) => (path.clone(), SERVER),
        DocUri::File(path) => (path.file_name().to_owned(), ENVIRONMENT),
    };
    json!({"uri": encoded(&path), "uriBaseId": base})
}

/// A relative path as a URI reference of RFC 3986.
fn encoded(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// A fingerprint that does not depend on lines: of the tool, the file, the rule, the normalized message, the definition, and
/// how many equal ones precede it.
fn fingerprint(tool: &str, item: &Diagnostic, seen: &mut BTreeMap<Vec<String>, u32>) -> String {
    let (file, print) = fingerprint::of_diagnostic(item);
    let parts = vec![tool.to_owned(), file, print.rule.unwrap_or_default(), print.message, print.symbol];
    let count = seen.entry(parts.clone()).or_default();
    *count += 1;
    let number = count.to_string();
    let fields = parts.iter().map(String::as_bytes).chain([number.as_bytes()]);
    let mut digits = Digest::of_fields(fields).to_hex();
    digits.truncate(FINGERPRINT_DIGITS);
    digits
}
