//! Claims of a server that Python's scopes refute.
//!
//! In code that cannot run (a branch for another platform, statements after a `return`) Pyright 1.1.414 looks names up without
//! binding anything: a parameter, a local variable or an import of another module counts as a use of the module's name. ty 0.0.105
//! follows a parameter to its default value.

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

/// Whether something inside of a block may bind the name at an offset, judged by its line. What such a binding hides is claimed with
/// it, so that a file without one need not be parsed. Where a line does not say it, as in a list of parameters with several lines, it
/// may.
fn may_bind(text: &str, at: usize) -> bool {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let is_indented = text[start..].starts_with([' ', '\t']);
    let before = text[start..at].trim();
    let after = text[at + name_in(text, at).len()..].trim_start_matches([' ', '\t']);
    if before.split_whitespace().any(|word| word == "import") {
        return is_indented;
    }
    // A server may follow a parameter to its default value: `name=name`.
    if before.ends_with('=') && names_of(before).any(|name| name == name_in(text, at)) {
        return true;
    }
    // `=`, `:=`, `+=`; also `<=`, which does not matter.
    let operator = after.trim_start_matches([':', '+', '-', '*', '/', '%', '@', '&', '|', '^', '<', '>']);
    let is_assigned = operator.starts_with('=') && !after.starts_with("==");
    let ends_item = after.starts_with([',', ')', ']', '#', '\r', '\n']) || after.is_empty();
    let is_bound = ends_item || is_assigned || after.starts_with(':') || after.starts_with("in ");
    let word = before.rsplit(|c| !is_in_name(c)).next().unwrap_or_default();
    match before.chars().next_back() {
        None => ends_item || is_indented && (is_assigned || after.starts_with(':')),
        Some('(' | '[' | ',' | '*') => {
            let declares = ["def ", "class ", "lambda", "for ", "case ", " as ", "del "];
            // The elements of a call or a list that begins on this line are only read.
            let is_read = is_opened(before) && !declares.iter().any(|word| before.contains(word));
            is_assigned || is_bound && !is_read
        }
        _ => match word {
            "def" | "class" | "type" => is_indented,
            "for" | "as" | "lambda" | "case" | "del" => true,
            _ => false,
        },
    }
}

/// Whether the beginning of a line opens the parenthesis or bracket that its end is in; not known with strings, which may hold some.
fn is_opened(before: &str) -> bool {
    let depth = |depth: i32, c| match c {
        '(' | '[' => depth + 1,
        ')' | ']' => depth - 1,
        _ => depth,
    };
    !before.contains(['"', '\'']) && before.chars().fold(0, depth) > 0
}

fn name_in(text: &str, at: usize) -> &str {
    names_of(&text[at..]).next().unwrap_or_default()
}

/// Whether a class has bound a name where its body uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClassBinding {
    /// It has, or no class does.
    Certain,
    /// In a branch or a loop, or it may have deleted it again.
    Possible,
    /// Only from there on.
    None,
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
            return imports.len() == bound.len()
                && imports.iter().all(|import| self.is_of_another(import))
                && self.class_binding(at, &bound) == ClassBinding::Certain;
        }
        match home {
            // Another assignment to the variable of the module may be the symbol's.
            ScopeKind::Module => false,
            // What the class has not bound yet is looked up in the module.
            ScopeKind::Class => self.class_binding(at, &bound) == ClassBinding::Certain,
            ScopeKind::Function | ScopeKind::Comprehension => true,
        }
    }

    /// Whether the class in whose body a name is used has bound it there. What it has not is looked up in the module.
    pub(super) fn class_binding(&self, at: usize, bound: &[Span]) -> ClassBinding {
        if self.scopes.home(at) != Some(ScopeKind::Class) || self.scopes.at(at).is_none_or(|used| used.binds)
        {
            return ClassBinding::Certain;
        }
        let Some(statement) = self.usage.statement(at) else { return ClassBinding::Certain };
        let mut earlier = bound
            .iter()
            .filter(|span| span.end <= statement.start && !self.usage.is_bare_annotation(span.start))
            .peekable();
        if earlier.peek().is_none() {
            return ClassBinding::None;
        }
        let (mut is_certain, mut is_deleted) = (false, false);
        for span in earlier {
            is_certain |= self.usage.certainly_runs_before(span.start, at);
            is_deleted |= self.usage.is_deleted(span.start);
        }
        if is_certain && !is_deleted { ClassBinding::Certain } else { ClassBinding::Possible }
    }

    /// Whether an import certainly binds something else.
    fn is_of_another(&self, import: &Import) -> bool {
        if !matches!(import.what, Imported::Name(_)) {
            return import.what != Imported::Star;
        }
        let found = resolve_import(self.cx, self.classes, self.path, import, &[]);
        !found.is_empty() && !found.iter().any(|place| self.accepted.contains(place))
    }
}

/// What an import in a file binds, or what a dotted name leads to that begins with it and goes on with `rest`; empty if that is not known,
/// and for a module.
pub(super) fn resolve_import(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    path: &AbsPath,
    import: &Import,
    rest: &[String],
) -> Vec<(AbsPath, usize)> {
    let own = if let Imported::Name(name) = &import.what { Some(name.clone()) } else { None };
    let names: Vec<String> = own.into_iter().chain(rest.iter().cloned()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let module = cx.state.inputs.roots.imported(&cx.state.files, import, path);
    let file = module.and_then(|module| module.file().cloned());
    file.map_or_else(Vec::new, |file| classes.resolve(&file, &names))
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
            "def f(\n    a: str,  # 1) one\n    b=g(),\n    c: int = 1, §x: int = 1,\n): pass",
            "def f(\n    a: str = '(', §x=1,\n): pass",
            "    case [a, §x]: pass",
            "    case §x: pass",
            "    with y as (a, §x): pass",
            "    for (a,\n        §x) in y: pass",
            "    §x += 1",
            "    del §x",
        ] {
            assert!(check(text), "{text}");
        }
        for text in [
            "§x(1)",
            "def f(a: §x, b=§x) -> §x: pass",
            "from m import §x",
            "    f(a, §x)",
            "    return §x == 1",
            "§x = 1",
            "def §x(): pass",
            "isinstance(y, (a, §x))",
            "def f(a):\n    g(a, §x)",
            "    [a, §x]",
        ] {
            assert!(!check(text), "{text}");
        }
    }
}
