//! Rule 6: no reward if the configuration, interpreter, server or stub path differs from the base.

use std::collections::BTreeMap;

use crate::model::analyzer::AnalyzerKind;
use crate::model::environment::Environment;

/// Files that configure the server's analysis.
const CONFIGURATION_FILES: [&str; 3] = ["pyrightconfig.json", "pyvenv.cfg", "basedpyrightconfig.json"];

/// Sections of `pyproject.toml` that configure it.
const PYPROJECT_SECTIONS: [&str; 2] = ["pyright", "basedpyright"];

/// The files and sections that configure an analyzer.
const fn configuration_of(analyzer: AnalyzerKind) -> (&'static [&'static str], &'static [&'static str]) {
    match analyzer {
        AnalyzerKind::Compile => (&[], &[]),
        AnalyzerKind::Ruff => (&["ruff.toml", ".ruff.toml"], &["ruff"]),
        AnalyzerKind::Mypy => (&["mypy.ini", ".mypy.ini", "setup.cfg"], &["mypy"]),
    }
}

/// Changed files by path, with their content before and after; `None` where the file does not exist.
pub type ContentChanges<'c> = BTreeMap<&'c str, (Option<&'c [u8]>, Option<&'c [u8]>)>;

/// How many of the changed files affect the server's analysis. `configuration` lists the files that the server's configuration
/// was read from; `stubs` is the stub folder. Also counts the configuration of these analyzers.
#[must_use]
pub fn changed(
    files: &ContentChanges<'_>,
    configuration: &[&str],
    stubs: &str,
    analyzers: &[AnalyzerKind],
) -> u32 {
    let of_analyzers = || analyzers.iter().map(|analyzer| configuration_of(*analyzer));
    let sections: Vec<&str> = PYPROJECT_SECTIONS
        .into_iter()
        .chain(of_analyzers().flat_map(|(_, sections)| sections.iter().copied()))
        .collect();
    let configures = |name: &str| of_analyzers().any(|(files, _)| files.contains(&name));
    let counts = files.iter().filter(|(path, (before, after))| {
        let name = path.rsplit('/').next().unwrap_or(path);
        if before == after {
            return false;
        }
        if name == "pyproject.toml" {
            return checker_sections(*before, &sections) != checker_sections(*after, &sections);
        }
        let in_stubs =
            path.strip_prefix(stubs).is_some_and(|rest| !stubs.is_empty() && rest.starts_with('/'));
        CONFIGURATION_FILES.contains(&name)
            || configures(name)
            || configuration.contains(path)
            || in_stubs
            || path.contains("site-packages/")
    });
    u32::try_from(counts.count()).unwrap_or(u32::MAX)
}

/// The checker sections of a `pyproject.toml`.
fn checker_sections(content: Option<&[u8]>, sections: &[&str]) -> Option<Vec<Option<toml::Value>>> {
    let text = std::str::from_utf8(content?).ok()?;
    let Ok(all) = text.parse::<toml::Table>() else { return Some(vec![None, Some(toml::Value::from(text))]) };
    let tool = all.get("tool");
    let found: Vec<Option<toml::Value>> =
        sections.iter().map(|name| tool.and_then(|tool| tool.get(name)).cloned()).collect();
    // A file without these sections is equal to no file.
    if found.iter().all(Option::is_none) { None } else { Some(found) }
}

/// The first difference between two environments that affects the server's analysis.
#[must_use]
pub fn difference(before: &Environment, after: &Environment) -> Option<&'static str> {
    let tools = before.tool.as_ref().zip(after.tool.as_ref());
    if tools.is_some_and(|(a, b)| a != b) {
        Some("the server")
    } else if before.config_digest != after.config_digest {
        Some("the server's configuration")
    } else if before.python != after.python {
        Some("the interpreter")
    } else if before.platform != after.platform {
        Some("the platform")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(path: &str, before: Option<&str>, after: Option<&str>) -> u32 {
        changed(
            &BTreeMap::from([(path, (before.map(str::as_bytes), after.map(str::as_bytes)))]),
            &["conf/base.json"],
            "typings",
            &[],
        )
    }

    #[test]
    fn only_what_the_server_reads_counts() {
        assert_eq!(one("pyrightconfig.json", None, Some("{}")), 1);
        assert_eq!(one("conf/base.json", Some("{}"), Some("{\"a\":1}")), 1);
        assert_eq!(one("typings/m.pyi", None, Some("")), 1);
        assert_eq!(one("a.py", Some(""), Some("x")), 0);
        assert_eq!(one("pyproject.toml", Some("[project]\nname='a'"), Some("[project]\nname='b'")), 0);
        assert_eq!(one("pyproject.toml", None, Some("[project]\nname='b'")), 0);
        assert_eq!(one("pyproject.toml", Some(""), Some("[tool.pyright]\ntypeCheckingMode='off'")), 1);
        assert_eq!(one("pyproject.toml", Some("[tool.pyright]\nexclude=['a']"), None), 1);
        assert_eq!(one("mypy.ini", None, Some("[mypy]")), 0);
    }

    #[test]
    fn the_configuration_of_analyzers_counts_if_they_are_used() {
        let with = |path: &str, text: &str, analyzers: &[AnalyzerKind]| {
            let files = BTreeMap::from([(path, (None, Some(text.as_bytes())))]);
            changed(&files, &[], "typings", analyzers)
        };
        assert_eq!(with("mypy.ini", "[mypy]", &[AnalyzerKind::Mypy]), 1);
        assert_eq!(with("mypy.ini", "[mypy]", &[AnalyzerKind::Ruff]), 0);
        assert_eq!(with("a/ruff.toml", "fix = true", &[AnalyzerKind::Ruff]), 1);
        assert_eq!(with("pyproject.toml", "[tool.ruff]\nfix = true", &[AnalyzerKind::Ruff]), 1);
        assert_eq!(with("pyproject.toml", "[tool.ruff]\nfix = true", &[AnalyzerKind::Mypy]), 0);
    }
}
