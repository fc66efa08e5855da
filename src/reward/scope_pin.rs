//! Rule 2: the files of the base stay in scope. The diagnostics of a file that was deleted, renamed, excluded or given another
//! suffix stay outstanding, unless its definitions continue to exist elsewhere.

use std::collections::BTreeMap;

use super::code::{Code, Statement};
use super::judge::SideCode;
use crate::workspace::scripts::may_be_script;

/// Renamed files of the base: from the old name to the new.
pub(super) fn lineage(base: &SideCode<'_>, head: &SideCode<'_>) -> BTreeMap<String, String> {
    let is_seen = |side: &SideCode<'_>, name: &str| side.view(name).is_some_and(|view| view.seen);
    let gone: Vec<(&str, &Code)> = base.seen().filter(|(name, _)| !is_seen(head, name)).collect();
    let added: Vec<(&str, &Code)> = head.seen().filter(|(name, _)| !is_seen(base, name)).collect();
    renamed_files(&gone, &added)
}

/// Which of the files that are gone continue under the name of an added one: from the old name to the new.
#[must_use]
pub fn renamed_files(gone: &[(&str, &Code)], added: &[(&str, &Code)]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (name, code) in gone {
        let best = added
            .iter()
            .map(|(other, theirs)| (share(code, theirs), *other))
            .max_by_key(|(share, other)| (*share, std::cmp::Reverse(*other)));
        if let Some((_, other)) = best.filter(|(share, _)| *share >= 50) {
            found.insert((*name).to_owned(), other.to_owned());
        }
    }
    found
}

/// How many files were removed whose code exists nowhere else.
pub(super) fn removed(base: &SideCode<'_>, head: &SideCode<'_>) -> u32 {
    let gone = base.seen().filter(|(name, _)| head.view(name).is_none_or(|view| !view.seen));
    let lost = gone.filter(|(_, code)| {
        let own: Vec<&Statement> =
            code.statements.iter().filter(|statement| is_specific(statement)).collect();
        let lives = |statement: &&&Statement| {
            head.seen().any(|(_, code)| code.statements.iter().any(|other| other.tokens == statement.tokens))
        };
        !own.is_empty() && own.iter().filter(lives).count() * 2 < own.len()
    });
    u32::try_from(lost.count()).unwrap_or(u32::MAX)
}

/// Whether a statement is specific enough to identify its file.
fn is_specific(statement: &Statement) -> bool {
    !statement.is_empty && statement.tokens.len() > 1
}

/// The share of one file's statements that another contains, in percent.
fn share(code: &Code, other: &Code) -> usize {
    let own: Vec<&Statement> = code.statements.iter().filter(|statement| is_specific(statement)).collect();
    let there =
        own.iter().filter(|one| other.statements.iter().any(|found| found.tokens == one.tokens)).count();
    (there * 100).checked_div(own.len()).unwrap_or(0)
}

/// Whether a checker analyzes a file with this path, judged by the path alone: code without a suffix is a script.
#[must_use]
pub fn is_checked_name(path: &str) -> bool {
    let named = [".py", ".pyi"].iter().any(|suffix| path.ends_with(suffix)) || may_be_script(path);
    let hidden = |part: &str| {
        part.starts_with('.')
            || matches!(part, "node_modules" | "__pycache__" | "site-packages" | "__pypackages__")
    };
    named && !path.split('/').any(hidden)
}

#[cfg(test)]
mod tests {
    use crate::reward::testing::Case;

    const CODE: &str = "def f(x):\n    y = g(x) #! r\n    return y\n";

    #[test]
    fn a_removed_file_keeps_its_diagnostics_outstanding() {
        let gone = Case::default().base("a.py", CODE);
        assert_eq!(gone.drop(), 0.0);
        assert_eq!(gone.judged().integrity.files_removed, 1);
        for hidden in ["a.txt", "a.pyx", ".old/a.py", "node_modules/a.py"] {
            assert_eq!(Case::default().base("a.py", CODE).head(hidden, CODE).drop(), 0.0, "{hidden}");
        }
    }

    #[test]
    fn a_moved_file_is_followed() {
        let moved = Case::default().base("a.py", CODE).head("b.py", CODE);
        let judged = moved.judged();
        assert_eq!(
            (moved.drop(), judged.integrity.files_removed, judged.after.outstanding.len()),
            (0.0, 0, 0)
        );
        let repaired =
            Case::default().base("a.py", CODE).head("b.py", "def f(x):\n    y = g(x, 1)\n    return y\n");
        assert_eq!(repaired.drop(), 1.0);
    }
}
