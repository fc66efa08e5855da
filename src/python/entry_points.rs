//! Entry points of packages: the places in `pyproject.toml` and `setup.cfg` that name a module or a function of one as
//! `pkg.mod:func`.
//!
//! Source: the Python packaging user guide, "Entry points specification" and "Writing your pyproject.toml".

use super::outline::Span;

/// The files that declare entry points.
pub const FILES: [&str; 2] = ["pyproject.toml", "setup.cfg"];

/// An entry point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPoint {
    /// The dotted name of the module, in bytes of the file.
    pub module: Span,
    /// The dotted name of the object in it; `None` if the entry names a module.
    pub object: Option<Span>,
}

/// Whether a table of the file declares entry points.
fn declares(section: &str) -> bool {
    let section = section.replace(['"', '\''], "");
    matches!(section.as_str(), "project.scripts" | "project.gui-scripts" | "tool.poetry.scripts")
        || section.starts_with("project.entry-points.")
        || section.starts_with("tool.poetry.plugins.")
        || section == "options.entry_points"
}

/// The entry points of a file, in source order.
#[must_use]
pub fn entry_points(text: &str) -> Vec<EntryPoint> {
    let mut found = Vec::new();
    let mut section = String::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if let Some(header) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            header.trim().clone_into(&mut section);
        } else if !trimmed.starts_with('#') {
            found.extend(of_line(&section, line, start));
        }
        start += line.len();
    }
    found
}

/// The entry points in a line of a section.
fn of_line(section: &str, line: &str, start: usize) -> Vec<EntryPoint> {
    let Some(equals) = line.find('=') else { return Vec::new() };
    if section == "options.entry_points" {
        // The first entry may be in the line of its group: `console_scripts = run = pkg.cli:main`.
        return line.rfind('=').and_then(|at| reference(line, start, at + 1)).into_iter().collect();
    }
    let key = format!("{section}.{}", line[..equals].trim());
    let value = &line[equals + 1..];
    let is_table = value.trim_start().starts_with('{');
    if is_table && may_hold(&key) {
        // `scripts = { run = "pkg.cli:main", … }`, and tables in it.
        let strings = line.match_indices('=').skip(1).map(|(at, _)| at);
        let quoted = strings.filter(|at| line[at + 1..].trim_start().starts_with(['"', '\'']));
        return quoted.filter_map(|at| reference(line, start, at + 1)).collect();
    }
    // The last part of the key is the name of the entry; it may be quoted, with dots in it.
    let table = key.trim_end_matches(|c| c != '.').trim_end_matches('.');
    if !is_table && (declares(section) || declares(table)) {
        return reference(line, start, equals + 1).into_iter().collect();
    }
    Vec::new()
}

/// Whether an inline table under a key has entry points, directly or in tables of its own.
fn may_hold(key: &str) -> bool {
    declares(key) || declares(&format!("{key}.group"))
}

/// The reference that begins after the `=` of a line.
fn reference(line: &str, line_start: usize, from: usize) -> Option<EntryPoint> {
    let rest = &line[from..];
    let at = from + (rest.len() - rest.trim_start_matches([' ', '\t', '"', '\'']).len());
    let is_name = |c: char| c == '_' || c == '.' || c.is_alphanumeric();
    let name = |from: usize| {
        let rest = &line[from..];
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        (end > 0).then_some(from..from + end)
    };
    let module = name(at)?;
    let after = line[module.end..].trim_start_matches([' ', '\t']);
    let object = after.strip_prefix(':').and_then(|rest| {
        let rest = rest.trim_start_matches([' ', '\t']);
        name(line.len() - rest.len())
    });
    let shift = |span: Span| line_start + span.start..line_start + span.end;
    Some(EntryPoint { module: shift(module), object: object.map(shift) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<(&str, Option<&str>)> {
        let found = entry_points(text).into_iter();
        found.map(|entry| (&text[entry.module], entry.object.map(|span| &text[span]))).collect()
    }

    #[test]
    fn both_formats() {
        let text = "[project]\nname = \"a.b:c\"\n[project.scripts]\nrun = \"pkg.cli:main\"  # x\n\"other\" = 'pkg.tool'\n\n[project.entry-points.\"a.b\"]\n# x = \"no:no\"\np = \"pkg.plug : C.make [extra]\"\n[tool.x]\ny = \"pkg.cli:main\"\n[options.entry_points]\nconsole_scripts =\n    old = pkg.cli:main\n";
        assert_eq!(
            named(text),
            [
                ("pkg.cli", Some("main")),
                ("pkg.tool", None),
                ("pkg.plug", Some("C.make")),
                ("pkg.cli", Some("main"))
            ]
        );
    }

    #[test]
    fn inline_tables_dotted_keys_and_single_lines() {
        let text = "[project]\nscripts = { run = \"pkg.cli:main\", other = 'pkg.tool:go' }\nscripts.third = \"pkg.three:x\"\nentry-points = {group = {a = \"pkg.a:b\"}}\nurls = { home = \"pkg.no:no\" }\ndescription = \"a = pkg.no:no\"\n[project.entry-points]\ngroup = { \"a.b\" = \"pkg.c\" }\n[options.entry_points]\nconsole_scripts = run = pkg.cli:old\n";
        assert_eq!(
            named(text),
            [
                ("pkg.cli", Some("main")),
                ("pkg.tool", Some("go")),
                ("pkg.three", Some("x")),
                ("pkg.a", Some("b")),
                ("pkg.c", None),
                ("pkg.cli", Some("old")),
            ]
        );
    }
}
