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
    let mut is_declaring = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if let Some(header) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            is_declaring = declares(header.trim());
        } else if is_declaring && !trimmed.starts_with('#') {
            // Both formats have one entry in a line, with the same reference after the first `=`.
            found.extend(line.find('=').and_then(|at| reference(line, start, at + 1)));
        }
        start += line.len();
    }
    found
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

    #[test]
    fn both_formats() {
        let text = "[project]\nname = \"a.b:c\"\n[project.scripts]\nrun = \"pkg.cli:main\"  # x\n\"other\" = 'pkg.tool'\n\n[project.entry-points.\"a.b\"]\n# x = \"no:no\"\np = \"pkg.plug : C.make [extra]\"\n[tool.x]\ny = \"pkg.cli:main\"\n[options.entry_points]\nconsole_scripts =\n    old = pkg.cli:main\n";
        let found: Vec<(&str, Option<&str>)> = entry_points(text)
            .into_iter()
            .map(|entry| (&text[entry.module], entry.object.map(|span| &text[span])))
            .collect();
        assert_eq!(
            found,
            [
                ("pkg.cli", Some("main")),
                ("pkg.tool", None),
                ("pkg.plug", Some("C.make")),
                ("pkg.cli", Some("main"))
            ]
        );
    }
}
