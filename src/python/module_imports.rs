//! Which modules a file imports, and how. Many files are asked about few modules, so that a file is only parsed if an import in it
//! spells the name of one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::modules::{ImportRoots, Module};
use super::outline::{Imported, Outline};
use crate::path::AbsPath;
use crate::text::names::{names_of, whole_names};
use crate::workspace::files::Files;

/// How a file imports modules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleImports {
    /// Whether it imports one of them in any form.
    pub any: bool,
    /// Whether it imports all names of one (`*`).
    pub star: bool,
    /// The names that it binds to them as objects, where these are not their own names.
    pub aliases: BTreeSet<String>,
}

/// How a file imports the modules.
#[must_use]
pub fn imports_of(
    files: &dyn Files,
    roots: &ImportRoots,
    file: &AbsPath,
    modules: &WantedModules<'_>,
) -> ModuleImports {
    let is_wanted = |path: &AbsPath| modules.modules.contains(path);
    imports_in(files, roots, file, |text| modules.may_be_imported(text), is_wanted)
}

/// How a file imports the modules whose files `is_wanted`.
#[must_use]
pub fn imports_where(
    files: &dyn Files,
    roots: &ImportRoots,
    file: &AbsPath,
    is_wanted: impl Fn(&AbsPath) -> bool,
) -> ModuleImports {
    imports_in(files, roots, file, |_| true, is_wanted)
}

fn imports_in(
    files: &dyn Files,
    roots: &ImportRoots,
    file: &AbsPath,
    may_import: impl Fn(&str) -> bool,
    is_wanted: impl Fn(&AbsPath) -> bool,
) -> ModuleImports {
    let mut found = ModuleImports::default();
    let Some(document) = files.read(file).ok().filter(|document| may_import(&document.text)) else {
        return found;
    };
    let leads = |module: &Module| [&module.source, &module.stub].into_iter().flatten().any(&is_wanted);
    for import in &Outline::parse(&document.text).imports {
        let Some(module) = roots.imported(files, import, file) else { continue };
        let submodule = match &import.what {
            Imported::Name(name) => roots.submodule(files, &module, name),
            _ => None,
        };
        let is_object = match &import.what {
            Imported::Name(_) => submodule.is_some_and(|module| leads(&module)),
            Imported::Module => leads(&module),
            Imported::Top | Imported::Star => false,
        };
        let is_it = is_object || leads(&module);
        found.any |= is_it;
        found.star |= is_it && import.what == Imported::Star;
        if is_object {
            found.aliases.insert(import.bound.clone());
        }
    }
    found
}

/// Modules, and the names by which imports can spell them.
#[derive(Debug)]
pub struct WantedModules<'m> {
    modules: &'m [AbsPath],
    names: BTreeSet<&'m str>,
    /// Whether one is a package, which `from . import x` in it does not name.
    has_package: bool,
}

impl<'m> WantedModules<'m> {
    /// The modules of these files.
    #[must_use]
    pub fn new(modules: &'m [AbsPath]) -> Self {
        let mut written = Self { modules, names: BTreeSet::new(), has_package: false };
        for module in modules {
            let stem = module.file_name().split('.').next().unwrap_or_default();
            let path = module.as_str();
            let folder = path.rsplit('/').nth(1).unwrap_or_default();
            let is_package = stem == "__init__";
            written.has_package |= is_package;
            // The folder of a stub package has another name: `pkg-stubs`. `from .__init__ import x` is possible, too.
            written.names.extend(names_of(if is_package { folder } else { stem }).chain([stem]));
        }
        written
    }

    /// Whether an import statement of a text has one of the names.
    fn may_be_imported(&self, text: &str) -> bool {
        // Statements do not overlap. In a text where they seem to, only parsing tells what they are.
        let mut unread = 2 * text.len();
        whole_names(text, "import").any(|keyword| {
            let span = statement_around(text, &keyword);
            let Some(rest) = unread.checked_sub(span.len()) else { return true };
            unread = rest;
            let has_name = names_of(&text[span.clone()]).any(|name| self.names.contains(name));
            let before = text[span.start..keyword.start].trim_end_matches([' ', '\t', '\\', '\r', '\n']);
            has_name || self.has_package && before.ends_with('.')
        })
    }
}

/// Whether a text may bind a name by an import in a branch, and once more by another import or a definition. "Yes" can be wrong.
#[must_use]
pub fn may_import_again(text: &str) -> bool {
    let mut unread = 2 * text.len();
    // How often, and whether in a branch.
    let mut imported: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    for keyword in whole_names(text, "import") {
        let span = statement_around(text, &keyword);
        let Some(rest) = unread.checked_sub(span.len()) else { return true };
        unread = rest;
        let before = &text[span.start..keyword.start];
        let is_in_branch = before.starts_with([' ', '\t']) || before.contains([':', ';']);
        for name in names_of(&text[keyword.end..span.end]) {
            let known = imported.entry(name).or_default();
            *known = (known.0 + 1, known.1 | is_in_branch);
        }
    }
    let definitions = ["class ", "def "].into_iter().flat_map(|keyword| {
        text.match_indices(keyword).filter_map(|(at, _)| names_of(&text[at + keyword.len()..]).next())
    });
    let defined: BTreeSet<&str> = definitions.collect();
    imported.into_iter().any(|(name, (count, is_in_branch))| {
        is_in_branch && name != "as" && (count > 1 || defined.contains(name))
    })
}

/// The logical lines of an import statement around its keyword. What is no statement has a span, too.
fn statement_around(text: &str, keyword: &Range<usize>) -> Range<usize> {
    let is_continued = |line: &str| line.trim_end_matches(['\n', '\r']).ends_with('\\');
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let mut start = line_start(keyword.start);
    while start > 0 && is_continued(&text[..start]) {
        start = line_start(start - 1);
    }
    let rest = &text[keyword.end..];
    let names = rest.trim_start_matches([' ', '\t', '\\', '\r', '\n']);
    let has_parentheses = names.starts_with('(');
    let mut length = 0;
    for line in rest.split_inclusive('\n') {
        length += line.len();
        // A comment may have a parenthesis; there are no strings.
        let is_closed = line.split('#').next().unwrap_or_default().contains(')');
        let is_blank = rest[..length].trim_matches([' ', '\t', '\\', '\r', '\n']).is_empty();
        let goes_on = if has_parentheses { !is_closed } else { is_blank || is_continued(line) };
        if !goes_on {
            break;
        }
    }
    start..keyword.end + length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(paths: &str) -> Vec<AbsPath> {
        paths.split_whitespace().map(|path| AbsPath::new(path).unwrap()).collect()
    }

    #[test]
    fn a_module_is_spelled_in_every_form_of_an_import() {
        let modules = modules("/w/pkg/text.py");
        let names = WantedModules::new(&modules);
        for text in [
            "import pkg.text",
            "import os, pkg.text as t",
            "from pkg import text",
            "from pkg import (\n    other,\n    text,\n)\n",
            "from pkg import (  # (all)\n    other,  # )\n    text,\n)\n",
            "from pkg import \\\n    text\n",
            "from pkg \\\n    import other, \\\r\n text\n",
            "from pkg.text \\\n    import other\n",
            "x = 1\ntry: from .text import *\nexcept ImportError: pass\n",
            "if x:\n\tfrom pkg import(a, text)\n",
        ] {
            assert!(names.may_be_imported(text), "{text}");
        }
        for text in [
            "",
            "text = 1\nimport os\ntext",
            "from . import other\ntext",
            "from pkg import (\n    other,\n)\ntext\n",
            "import context\nimportlib.text\n",
        ] {
            assert!(!names.may_be_imported(text), "{text}");
        }
    }

    #[test]
    fn names_that_a_branch_may_bind_again() {
        for text in [
            "try:\n    from a import K\nexcept ImportError:\n    from b import K\n",
            "try: import fast as mod\nexcept ImportError: import slow as mod\n",
            "from a import (\n    x,\n    K,\n)\nif T:\n\tfrom b import y, K\n",
            "try:\n    from a import K\nexcept ImportError:\n    class K: pass\n",
        ] {
            assert!(may_import_again(text), "{text}");
        }
        for text in [
            "from a import K\nfrom b import L\ndef K(): ...\n",
            "def f():\n    from a import K as A\ndef g():\n    from a import L as B\nclass C: ...\n",
        ] {
            assert!(!may_import_again(text), "{text}");
        }
    }

    #[test]
    fn a_text_in_which_statements_never_end_is_parsed() {
        let modules = modules("/w/text.py");
        assert!(WantedModules::new(&modules).may_be_imported(&"import (\n".repeat(100_000)));
    }

    #[test]
    fn a_package_is_imported_without_its_name() {
        let modules = modules("/w/pkg/__init__.py /w/other-stubs/__init__.pyi");
        let names = WantedModules::new(&modules);
        for text in [
            "from . import x",
            "  from .. import x",
            "try: from . import x\nexcept ImportError: pass",
            "import os; from . \\\n  import x",
            "from .__init__ import x",
            "import other",
            "from pkg.sub import x",
        ] {
            assert!(names.may_be_imported(text), "{text}");
        }
        for text in ["from .sub import x", "import os", "from os import path"] {
            assert!(!names.may_be_imported(text), "{text}");
        }
    }
}
