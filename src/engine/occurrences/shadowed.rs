//! Claims of a server that Python's scopes refute.
//!
//! In code that cannot run (a branch for another platform, statements after a `return`) Pyright 1.1.414 looks names up without
//! binding anything: a parameter, a local variable or an import of another module counts as a use of the module's name.

use std::collections::{BTreeMap, BTreeSet};

use super::super::context::RequestContext;
use super::offset_of;
use crate::lsp::LspLocation;
use crate::path::AbsPath;
use crate::python::classes::Classes;
use crate::python::outline::{Import, Imported, Span};
use crate::python::scopes::{ScopeKind, Scopes};
use crate::python::usage::{TokenUse, Usage};
use crate::text::names::{is_in_name, names_of};
use crate::workspace::parallel::parallel_map;

/// The claimed places of the workspace that are other variables than the ones that are defined at `accepted`, or imports of
/// something else.
pub(super) fn shadowed<'p>(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    claimed: impl Iterator<Item = &'p LspLocation>,
    accepted: &BTreeSet<(AbsPath, usize)>,
) -> BTreeSet<LspLocation> {
    let mut by_file: BTreeMap<&AbsPath, Vec<&LspLocation>> = BTreeMap::new();
    for place in claimed.filter(|place| cx.state.is_in_workspace(&place.path)) {
        by_file.entry(&place.path).or_default().push(place);
    }
    let files: Vec<Vec<&LspLocation>> = by_file.into_values().collect();
    let refuted = parallel_map(&files, cx.settings.threads, |places| {
        let places: Vec<(&LspLocation, usize)> =
            places.iter().filter_map(|place| Some((*place, offset_of(cx, place)?.1))).collect();
        let Some((document, _)) = places.first().and_then(|(place, _)| offset_of(cx, place)) else {
            return Vec::new();
        };
        let text = &document.text;
        if !places.iter().any(|(_, at)| may_bind(text, *at)) {
            return Vec::new();
        }
        let names: BTreeSet<&str> = places.iter().map(|(_, at)| name_in(text, *at)).collect();
        let scopes = Scopes::of(text, &names.into_iter().collect::<Vec<_>>());
        let (usage, path) = (Usage::of(text), &document.path);
        let variables = Variables { cx, classes, path, accepted, usage: &usage, scopes: &scopes };
        let another = places.into_iter().filter(|(_, at)| variables.is_another(*at));
        another.map(|(place, _)| place.clone()).collect()
    });
    refuted.into_iter().flatten().collect()
}

/// Whether a function, a class body or an import inside of a block may bind the name at an offset, judged by its line. What such a
/// binding hides is claimed with it, so that a file without one need not be parsed.
fn may_bind(text: &str, at: usize) -> bool {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let is_indented = text[start..].starts_with([' ', '\t']);
    let before = text[start..at].trim();
    let after = text[at + name_in(text, at).len()..].trim_start_matches([' ', '\t']);
    if before.split_whitespace().any(|word| word == "import") {
        return is_indented;
    }
    let is_assigned = after.starts_with('=') && !after.starts_with("==") || after.starts_with(":=");
    let ends_item = after.starts_with([',', ')', ']', '\r', '\n']) || after.is_empty();
    let is_declared = || {
        opening_lines(&text[..start]).any(|line| match line.trim_end().ends_with("import") {
            true => line.starts_with([' ', '\t']),
            false => line.trim_start().trim_start_matches("async ").starts_with("def "),
        })
    };
    let word = before.rsplit(|c| !is_in_name(c)).next().unwrap_or_default();
    match before.chars().next_back() {
        None if ends_item => is_declared(),
        None => is_indented && (is_assigned || after.starts_with(':')),
        Some('(' | '[' | ',' | '*') => {
            let declares = ["def ", "class ", "lambda", "for "].iter().any(|word| before.contains(word));
            let is_in_list = || unclosed(before).is_none() && is_declared();
            let is_bound = ends_item || after.starts_with([':', '=']) || after.starts_with("in ");
            is_assigned || is_bound && (declares || is_in_list())
        }
        _ => match word {
            "def" | "class" => is_indented,
            "for" | "as" | "lambda" => true,
            _ => false,
        },
    }
}

/// How far back the beginning of a list is looked for.
const MAX_LIST_BYTES: usize = 8 << 10;

/// The starts of lines that may open the list in which a text ends, up to its parenthesis: the last one that is not closed, and the
/// last one, for a text with parentheses in strings and comments.
fn opening_lines(text: &str) -> impl Iterator<Item = &str> {
    let open = [unclosed(text), text.rfind('(')];
    open.into_iter().flatten().map(|at| {
        let line = &text[..at];
        &line[line.rfind('\n').map_or(0, |end| end + 1)..]
    })
}

/// The last parenthesis or bracket that is not closed in the text; lists of parameters are shorter than what is looked at.
fn unclosed(text: &str) -> Option<usize> {
    let mut closed = 0usize;
    for (at, byte) in text.bytes().enumerate().rev().take(MAX_LIST_BYTES) {
        match byte {
            b')' | b']' => closed += 1,
            b'(' | b'[' if closed == 0 => return Some(at),
            b'(' | b'[' => closed -= 1,
            _ => {}
        }
    }
    None
}

fn name_in(text: &str, at: usize) -> &str {
    names_of(&text[at..]).next().unwrap_or_default()
}

/// The variables of one file.
pub(super) struct Variables<'v, 'f> {
    pub(super) cx: &'f RequestContext<'f>,
    pub(super) classes: &'f Classes<'f>,
    /// The file.
    pub(super) path: &'v AbsPath,
    /// The definitions of the symbol.
    pub(super) accepted: &'v BTreeSet<(AbsPath, usize)>,
    pub(super) usage: &'v Usage<'f>,
    /// Of the names that are asked about.
    pub(super) scopes: &'v Scopes,
}

impl Variables<'_, '_> {
    /// Whether the name that begins at an offset certainly is another variable, or imports something else.
    pub(super) fn is_another(&self, at: usize) -> bool {
        if let TokenUse::Imported(alias) = self.usage.of_token(at) {
            let bound = alias.map_or(at, |alias| alias.start);
            return self.usage.import_binding(bound).is_some_and(|import| self.is_of_another(&import));
        }
        let (Some(home), Some(bound)) = (self.scopes.home(at), self.scopes.bound_by(at)) else {
            return false;
        };
        if bound.is_empty()
            || bound.iter().any(|span| self.accepted.contains(&(self.path.clone(), span.start)))
        {
            return false;
        }
        let imports: Vec<Import> =
            bound.iter().filter_map(|span| self.usage.import_binding(span.start)).collect();
        if !imports.is_empty() {
            return imports.len() == bound.len() && imports.iter().all(|import| self.is_of_another(import));
        }
        match home {
            // Another assignment to the variable of the module may be the symbol's.
            ScopeKind::Module => false,
            // What the class has not bound yet is looked up in the module.
            ScopeKind::Class => !self.is_before_class_binds(at, &bound),
            ScopeKind::Function | ScopeKind::Comprehension => true,
        }
    }

    /// Whether a name is used in the body of a class that binds it only from there on: it is looked up in the module.
    pub(super) fn is_before_class_binds(&self, at: usize, bound: &[Span]) -> bool {
        let statement = self.usage.statement(at);
        let is_earlier = |span: &Span| statement.as_ref().is_some_and(|whole| span.end <= whole.start);
        self.scopes.home(at) == Some(ScopeKind::Class)
            && self.scopes.at(at).is_some_and(|used| !used.binds)
            && !bound.iter().any(is_earlier)
    }

    /// Whether an import certainly binds something else.
    fn is_of_another(&self, import: &Import) -> bool {
        if !matches!(import.what, Imported::Name(_)) {
            return import.what != Imported::Star;
        }
        let found = resolve_import(self.cx, self.classes, self.path, import);
        !found.is_empty() && !found.iter().any(|place| self.accepted.contains(place))
    }
}

/// What `from module import name` in a file binds; empty if that is not known.
pub(super) fn resolve_import(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    path: &AbsPath,
    import: &Import,
) -> Vec<(AbsPath, usize)> {
    let Imported::Name(name) = &import.what else { return Vec::new() };
    let module = cx.state.inputs.roots.imported(&cx.state.files, import, path);
    let file = module.and_then(|module| module.file().cloned());
    file.map_or_else(Vec::new, |file| classes.resolve(&file, std::slice::from_ref(name)))
}

#[cfg(test)]
mod tests {
    use super::may_bind;

    #[test]
    fn lines_that_may_bind_a_name() {
        let check = |text: &str| may_bind(&text.replace('§', ""), text.find('§').unwrap());
        for text in [
            "def f(§x): pass",
            "def f(a, *, §x=1): pass",
            "async def f(\n    a: int,\n    §x,\n): pass",
            "    §x = 1",
            "  a, §x = y",
            "  §x: int = 1",
            "for §x in y: pass",
            "[x for (a, §x) in y]",
            "lambda §x: 1",
            "lambda a, §x: 1",
            "with y as §x: pass",
            "  def §x(): pass",
            "  class §x: pass",
            "  from m import a, §x",
            "  from m import (\n    a,\n    §x,\n)",
            "if (a := 1, §x := 2): pass",
            "def f(\n    a: int, §x: int,\n): pass",
            "def f(\n    a: tuple[int, str] = (1, g()),\n    *§x,\n): pass",
            "def f(\n    a,  # (\n    *, §x=1,\n): pass",
            "def f[§x](a): pass",
            "class C[a, §x]: pass",
            "  from m import (\n    a, §x,\n)",
        ] {
            assert!(check(text), "{text}");
        }
        for text in [
            "§x(1)",
            "def f(a: §x, b=§x) -> §x: pass",
            "from m import §x",
            "from m import (\n    a,\n    §x,\n)",
            "    f(a, §x)",
            "    f(\n        §x,\n    )",
            "    return §x == 1",
            "§x = 1",
            "def §x(): pass",
            "isinstance(y, (a, §x))",
            "def f(a):\n    g(a, §x)",
            "def f(a):\n    g(\n        a, §x,\n    )",
        ] {
            assert!(!check(text), "{text}");
        }
    }
}
