//! Diagnostics as workflow commands of GitHub Actions, which become annotations:
//! `::error title=…,file=…,line=…,endLine=…,col=…,endColumn=…::message`.
//!
//! The last line is the summary of the text output. It is no command.

use std::fmt::Write as _;
use std::io;

use super::{repository_path, screen, text};
use crate::model::analyzer::DiagnosticSource;
use crate::model::bundle::Bundle;
use crate::model::facts::Diagnostic;
use crate::model::request::Severity;

/// Prints a bundle with diagnostics or with an error.
pub(super) fn print(bundle: &Bundle) -> io::Result<()> {
    screen::write(&commands(bundle))
}

fn commands(bundle: &Bundle) -> String {
    let prefix = repository_path::prefix(bundle);
    let mut out = String::new();
    for warning in &bundle.warnings {
        command(&mut out, "warning", &[("title", "lanser")], warning);
    }
    if let Some(found) = bundle.facts.as_ref().and_then(|facts| facts.diagnostics.as_ref()) {
        for item in &found.items {
            diagnostic(&mut out, &prefix, item);
        }
        for file in &found.not_checked {
            let path = file.uri.workspace_path().map(|path| repository_path::in_repository(&prefix, path));
            let mut properties = vec![("title", "lanser: not checked")];
            properties.extend(path.as_deref().map(|path| ("file", path)));
            command(&mut out, "error", &properties, &file.reason);
        }
        for source in found.sources.iter().filter(|source| !source.complete) {
            let reason = source.reason.as_deref().unwrap_or("incomplete");
            command(
                &mut out,
                "error",
                &[("title", "lanser: incomplete")],
                &format!("{}: {reason}", source.tool),
            );
        }
        if let Some(limits) = bundle.meta.limits.as_ref().filter(|limits| limits.truncated) {
            let message = format!("only {} of {} diagnostics are listed", found.items.len(), limits.total);
            command(&mut out, "warning", &[("title", "lanser: incomplete")], &message);
        }
        // A path or a reason in the later lines was reported above.
        let summary = text::diagnostics_summary(found);
        let _ = writeln!(out, "{}", summary.lines().next().unwrap_or_default());
        if let Some(caveat) = found.base.as_ref().and_then(|base| base.caveat.as_ref()) {
            command(&mut out, "warning", &[("title", "lanser: base")], caveat);
        }
    }
    if let Some(error) = &bundle.error {
        let title = format!("lanser: {}", error.symbol.as_str());
        let hint = error.hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        command(&mut out, "error", &[("title", &title)], &format!("{}{hint}", error.message));
    }
    out
}

fn diagnostic(out: &mut String, prefix: &str, item: &Diagnostic) {
    let name = match item.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Information | Severity::Hint => "notice",
    };
    let file = item
        .uri
        .workspace_path()
        .map_or_else(|| item.uri.to_string(), |path| repository_path::in_repository(prefix, path));
    let rule = item.rule.as_deref().unwrap_or(item.severity.as_str());
    let title = match item.source.filter(|source| *source != DiagnosticSource::Lsp) {
        Some(source) => format!("{} {rule}", source.as_str()),
        None => rule.to_owned(),
    };
    let (start, end) = (item.range.start, item.range.end);
    let [line, end_line, column, end_column] =
        [start.line, end.line, start.column, end.column].map(|number| (number + 1).to_string());
    let mut properties = vec![
        ("title", title.as_str()),
        ("file", file.as_str()),
        ("line", line.as_str()),
        ("endLine", end_line.as_str()),
    ];
    // GitHub refuses columns of a range of several lines.
    if start.line == end.line {
        properties.extend([("col", column.as_str()), ("endColumn", end_column.as_str())]);
    }
    command(out, name, &properties, &item.message.replace('\u{a0}', " "));
}

/// Writes a workflow command.
fn command(out: &mut String, name: &str, properties: &[(&str, &str)], message: &str) {
    let properties: Vec<String> =
        properties.iter().map(|(key, value)| format!("{key}={}", escaped_property(value))).collect();
    let _ = writeln!(out, "::{name} {}::{}", properties.join(","), escaped_data(message));
}

/// The message of a workflow command. Logs interpret control characters, so they are shown as escapes.
fn escaped_data(text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| {
            let (line, end) = line.strip_suffix('\r').map_or((line, ""), |line| (line, "%0D"));
            format!("{}{end}", screen::quoted(line).replace('%', "%25"))
        })
        .collect();
    lines.join("%0A")
}

/// The value of a property of a workflow command.
fn escaped_property(text: &str) -> String {
    escaped_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_end_their_command_or_start_another() {
        assert_eq!(escaped_data("50% of\r\n::error::x, y"), "50%25 of%0D%0A::error::x, y");
        assert_eq!(escaped_property("a:b,c%3A\nd"), "a%3Ab%2Cc%253A%0Ad");
        assert_eq!(escaped_data("a\x1b[2J\rb\u{202e}"), "a\\x1b[2J\\x0db\\u{202e}");
        let mut out = String::new();
        command(&mut out, "error", &[("file", "a,b.py")], "1\n2");
        assert_eq!(out, "::error file=a%2Cb.py::1%0A2\n");
    }
}
