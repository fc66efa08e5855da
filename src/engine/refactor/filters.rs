//! Which files may be edited: `--allow` and `--deny`.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::Guards;
use crate::path::WorkspacePath;

/// The filters of a request.
pub(super) struct Filters {
    allow: Option<GlobSet>,
    within: Option<GlobSet>,
    deny: Option<GlobSet>,
}

impl Filters {
    /// # Errors
    /// When a glob is invalid.
    pub(super) fn new(guards: &Guards) -> Result<Self, ErrorBody> {
        Ok(Self {
            allow: set(&guards.allow)?,
            within: set(&guards.workspace_allow)?,
            deny: set(&guards.deny)?,
        })
    }

    /// Whether there are no filters.
    pub(super) const fn is_empty(&self) -> bool {
        self.allow.is_none() && self.within.is_none() && self.deny.is_none()
    }

    /// Whether a file may be edited.
    pub(super) fn allows(&self, path: &WorkspacePath) -> bool {
        let is_in = |set: &GlobSet| set.is_match(path.as_str());
        [&self.allow, &self.within].into_iter().flatten().all(is_in) && !self.deny.as_ref().is_some_and(is_in)
    }
}

/// Compiles globs. `*` matches within a folder and `**` across folders; a folder includes its content. `None` without
/// globs.
fn set(globs: &[String]) -> Result<Option<GlobSet>, ErrorBody> {
    let wrong = |glob: &str, reason: String| {
        ErrorBody::new(ErrorSymbol::Usage, format!("the glob {glob:?} is invalid: {reason}"))
            .hint("globs are relative to the workspace, like `src/**/*.py`")
    };
    if globs.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        // Such a glob matches no file, so a file that it was meant to deny would pass.
        if glob.starts_with('/') || glob.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(wrong(glob, "it is not relative to the workspace".to_owned()));
        }
        for pattern in [glob.clone(), format!("{}/**", glob.trim_end_matches('/'))] {
            let built = GlobBuilder::new(&pattern).literal_separator(true).build();
            set.add(built.map_err(|error| wrong(glob, error.kind().to_string()))?);
        }
    }
    let built = set.build().map_err(|error| wrong(&globs.join(" "), error.kind().to_string()))?;
    Ok(Some(built))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(allow: &[&str], within: &[&str], deny: &[&str]) -> Result<Filters, ErrorBody> {
        let [allow, within, deny] =
            [allow, within, deny].map(|globs| globs.iter().map(|&glob| glob.to_owned()).collect());
        Filters::new(&Guards { allow, workspace_allow: within, deny, ..Guards::default() })
    }

    #[test]
    fn a_star_stays_in_its_folder() {
        let [shallow, deep] = ["src/a.py", "src/deep/b.py"].map(|path| WorkspacePath::new(path).unwrap());
        for (glob, has_shallow, has_deep) in [
            ("src/*.py", true, false),
            ("src/**/*.py", true, true),
            ("**/*.py", true, true),
            ("src/**", true, true),
            ("src", true, true),
            ("src/", true, true),
            // This matches `src/deep` too, and with it the content of that folder.
            ("src/*", true, true),
            ("*/a.py", true, false),
            ("src/{a,b}.py", true, false),
            ("src/deep", false, true),
            ("*.py", false, false),
            ("**", true, true),
            ("sr", false, false),
        ] {
            let allowing = filters(&[glob], &[], &[]).unwrap();
            let denying = filters(&[], &[], &[glob]).unwrap();
            for (path, has) in [(&shallow, has_shallow), (&deep, has_deep)] {
                assert_eq!((allowing.allows(path), denying.allows(path)), (has, !has), "{glob} {path}");
            }
        }
    }

    #[test]
    fn both_lists_of_allowed_files_count_and_denying_wins() {
        let path = WorkspacePath::new("a/b.py").unwrap();
        assert!(filters(&["a"], &["**/*.py"], &["a/c.py"]).unwrap().allows(&path));
        assert!(!filters(&["a"], &["x"], &[]).unwrap().allows(&path));
        assert!(!filters(&["a"], &["a"], &["**/b.py"]).unwrap().allows(&path));
        assert!(filters(&[], &[], &[]).unwrap().is_empty());
        for glob in ["/a", "./a", "a/../b", "a["] {
            assert!(filters(&[], &[], &[glob]).is_err(), "{glob}");
        }
    }
}
