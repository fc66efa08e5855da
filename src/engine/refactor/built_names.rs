//! Names that a program builds when it runs: `getattr(self, f"visit_{kind}")` reaches every method whose name begins with `visit_`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::collision::Renaming;
use crate::engine::context::RequestContext;
use crate::path::WorkspacePath;
use crate::python::outline::Span;
use crate::tape::IoKind;
use crate::text::names::{is_in_name, whole_names};
use crate::workspace::files::{Document, Files as _};

/// What a file has in it that looks names up.
const LOOKUPS: [&str; 6] = ["getattr(", "hasattr(", "vars(", "__dict__", "methodcaller(", "getfixturevalue("];

/// What lists names, of which a program may take those with a prefix.
const LISTINGS: [&str; 6] = ["dir(", "getmembers(", "vars(", "__dict__", "globals()", "__members__"];

/// The bytes of a string and of what follows it that are read.
const MAX_STRING: usize = 1_000;

/// What looks names of a module up, and no members.
const GLOBALS: &str = "globals()";

/// The strings that the beginning of the old name and something else are put together in, in files that look names up.
pub(super) fn prefixes(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
    is_member: bool,
) -> Vec<(Arc<Document>, Span)> {
    let snapshot = &cx.state.inputs.snapshot;
    let mut found = Vec::new();
    let ends = renaming.old.match_indices('_').map(|(at, _)| &renaming.old[..=at]);
    for prefix in ends.filter(|prefix| prefix.len() < renaming.old.len()) {
        for path in cx.state.files_with_word(prefix) {
            let Ok(document) = cx.state.files.read(&snapshot.absolute(&path)) else { continue };
            let text = &document.text;
            if LOOKUPS.iter().any(|lookup| text.contains(lookup)) || !is_member && text.contains(GLOBALS) {
                let mut built = built(text, prefix, renaming.old);
                built.retain(|span| !is_member || !is_in_globals(text, span));
                found.extend(built.into_iter().map(|span| (document.clone(), span)));
            }
            if LISTINGS.iter().any(|listing| is_called(text, listing)) {
                found.extend(selecting(text, prefix).map(|span| (document.clone(), span)));
            }
        }
    }
    found
}

/// The beginnings of strings that the name of an object is put into, where the workspace has what they give with the old name:
/// `getattr(self, f"visit_{type(node).__name__}")` beside a method `visit_Old`.
pub(super) fn around(cx: &RequestContext<'_>, old: &str) -> Vec<(Arc<Document>, Span)> {
    let snapshot = &cx.state.inputs.snapshot;
    let find = || {
        let lower = old.to_lowercase();
        let mut is_written: BTreeMap<String, bool> = BTreeMap::new();
        let mut found: Vec<(WorkspacePath, Span)> = Vec::new();
        for path in cx.state.files_with_word("__name__") {
            let Ok(document) = cx.state.files.read(&snapshot.absolute(&path)) else { continue };
            let text = &document.text;
            if !LOOKUPS.iter().chain([&GLOBALS]).any(|lookup| text.contains(lookup)) {
                continue;
            }
            for (prefix, suffix) in framed(text) {
                let is_there = [old, &lower].iter().any(|name| {
                    let whole = format!("{}{name}{suffix}", &text[prefix.clone()]);
                    *is_written
                        .entry(whole)
                        .or_insert_with_key(|whole| !cx.state.files_with_word(whole).is_empty())
                });
                found.extend(is_there.then(|| (path.clone(), prefix)));
            }
        }
        (!found.is_empty()).then_some(found)
    };
    let found = cx.state.tape.query_rare(IoKind::Guard, &("built around", old), find).unwrap_or_default();
    let read = |path: &WorkspacePath| cx.state.files.read(&snapshot.absolute(path)).ok();
    found.into_iter().filter_map(|(path, span)| Some((read(&path)?, span))).collect()
}

/// The strings that begin with a part of a name, ended by `_`, and go on with the name of an object: where the part is, and what
/// follows the value.
fn framed(text: &str) -> impl Iterator<Item = (Span, &str)> {
    let variables = names_of_objects(text);
    text.match_indices(['"', '\'']).filter_map(move |(at, quote)| {
        let rest = &text[at + 1..text.floor_char_boundary(at + 1 + MAX_STRING)];
        let prefix = rest.find(|c: char| !is_in_name(c))?;
        if !rest[..prefix].ends_with('_') {
            return None;
        }
        let (inside, after) = rest_of_string(&rest[prefix..], quote.chars().next());
        let line = || after.lines().next().unwrap_or_default();
        let (value, of) = match inside.chars().next() {
            Some('{') => (value_end(inside), &inside[..value_end(inside)]),
            Some('%') => (2, line()),
            None if after.starts_with('+') => (0, line()),
            _ => return None,
        };
        let suffix = inside.get(value..)?;
        let mut words = of.split(|c| !is_in_name(c));
        let is_name = suffix.chars().all(is_in_name) && words.any(|word| variables.contains(word));
        is_name.then(|| (at + 1..at + 1 + prefix, suffix))
    })
}

/// `__name__`, and the variables that lines of a text assign one to: `kind = type(x).__name__`.
fn names_of_objects(text: &str) -> BTreeSet<&str> {
    let assigned = whole_names(text, "__name__").filter_map(|span| {
        let line = text[..span.start].lines().next_back()?;
        let variable = line.split_once('=')?.0.trim();
        (!variable.is_empty() && variable.chars().all(is_in_name)).then_some(variable)
    });
    assigned.chain(["__name__"]).collect()
}

/// Whether a text has a call, and not only one of a function whose name ends so: `dir(`, and not `mkdir(`.
fn is_called(text: &str, call: &str) -> bool {
    text.match_indices(call).any(|(at, _)| !text[..at].ends_with(is_in_name))
}

/// The places where names with a prefix are selected: `name.startswith("visit_")`.
fn selecting(text: &str, prefix: &str) -> impl Iterator<Item = Span> {
    const SELECT: &str = "startswith(";
    text.match_indices(SELECT).filter_map(move |(at, _)| {
        let start = at + SELECT.len() + 1;
        let (quote, rest) = (text.get(start - 1..start)?, text.get(start..)?.strip_prefix(prefix)?);
        (matches!(quote, "\"" | "'") && rest.starts_with(quote)).then(|| start..start + prefix.len())
    })
}

/// The places where a string begins with a prefix and goes on with a value, so that it can be a name: `f"visit_{x}"`, `"visit_" + x`,
/// `"visit_%s" % x`.
fn built(text: &str, prefix: &str, name: &str) -> Vec<Span> {
    let quoted = text.match_indices(prefix).filter(|(at, _)| text[..*at].ends_with(['"', '\'']));
    let can_be = |at: usize| {
        let (inside, after) = rest_of_string(&text[at + prefix.len()..], text[..at].chars().next_back());
        let goes_on = inside.starts_with(['{', '%']) || inside.is_empty() && after.starts_with('+');
        goes_on && fits(&name[prefix.len()..], inside)
    };
    quoted.filter(|(at, _)| can_be(*at)).map(|(at, _)| at..at + prefix.len()).collect()
}

/// What a text has up to the end of a string that begins with this quote, and behind it.
fn rest_of_string(rest: &str, quote: Option<char>) -> (&str, &str) {
    let end = string_end(rest, quote);
    (&rest[..end], rest[end..].get(1..).unwrap_or_default().trim_start())
}

/// Where a string ends that begins with this quote, or its line. The values in an f-string may have strings of their own.
fn string_end(rest: &str, quote: Option<char>) -> usize {
    let mut depth = 0_usize;
    let end = rest.char_indices().find(|&(_, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '\n' || depth == 0 && Some(c) == quote
    });
    end.map_or(rest.len(), |(at, _)| at)
}

/// Where the value in braces ends with which a text begins.
fn value_end(text: &str) -> usize {
    let mut depth = 0_usize;
    let end = text.char_indices().find(|&(_, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// Whether a string is looked up in the names of the module: `globals()[f"visit_{x}"]`.
fn is_in_globals(text: &str, span: &Span) -> bool {
    let before = text[..span.start].trim_end_matches(['"', '\'']);
    let before = before.trim_end_matches(['f', 'F', 'r', 'R']).trim_end();
    [format!("{GLOBALS}["), format!("{GLOBALS}.get(")].iter().any(|lookup| before.ends_with(lookup))
}

/// Whether a name can be what a format gives: `{…}` and `%s` stand for anything.
fn fits(name: &str, format: &str) -> bool {
    let mut literals = vec![String::new()];
    let mut rest = format;
    while let Some(c) = rest.chars().next() {
        let end = match c {
            '{' => value_end(rest),
            '%' => rest.len().min(2),
            _ => 0,
        };
        if end > 0 {
            literals.push(String::new());
        } else if let Some(literal) = literals.last_mut() {
            literal.push(c);
        }
        rest = rest.get(end.max(c.len_utf8())..).unwrap_or_default();
    }
    let last = literals.pop().unwrap_or_default();
    let mut left = name;
    for literal in &literals {
        let Some(at) = left.find(literal.as_str()) else { return false };
        left = &left[at + literal.len()..];
    }
    left.ends_with(&last)
}

#[cfg(test)]
mod tests {
    use super::{built, framed, is_in_globals, selecting};

    #[test]
    fn names_of_modules() {
        for (text, expected) in [
            ("globals()[f'visit_{kind}']", true),
            ("globals().get(\"visit_\" + kind)", true),
            ("getattr(self, f'visit_{kind}')", false),
            ("vars(self)[f'visit_{kind}']", false),
        ] {
            let span = built(text, "visit_", "visit_name").remove(0);
            assert_eq!(is_in_globals(text, &span), expected, "{text}");
        }
    }

    #[test]
    fn names_that_are_selected() {
        for (text, count) in [
            ("name.startswith('visit_')", 1),
            ("name.startswith(\"visit_\") or name.startswith('visit_')", 2),
            ("name.startswith('visit_x')", 0),
            ("name.startswith(visit_)", 0),
        ] {
            assert_eq!(selecting(text, "visit_").count(), count, "{text}");
        }
    }

    #[test]
    fn strings_around_a_value() {
        for (text, expected) in [
            ("f'visit_{type(x).__name__}'", Some(("visit_", ""))),
            ("\"visit_\" + type(x).__name__", Some(("visit_", ""))),
            ("name = type(x).__name__\n'visit_%s_x' % name", Some(("visit_", "_x"))),
            ("f'visit_{names[\"a\"].__name__.lower()}_x'", Some(("visit_", "_x"))),
            ("f'visit_{x.__name__} x'", None),
            ("f'visit{x.__name__}'", None),
            ("f'visit_{name}' + x.__name__", None),
            ("'visit_'", None),
            ("'visit_all'", None),
            ("'visit_", None),
        ] {
            let found: Vec<(&str, &str)> = framed(text).map(|(prefix, rest)| (&text[prefix], rest)).collect();
            assert_eq!(found.first().copied(), expected, "{text}");
        }
    }

    #[test]
    fn strings_that_are_put_together() {
        for (text, count) in [
            ("getattr(self, f'visit_{kind}')", 1),
            ("getattr(self, \"visit_\" + kind)", 1),
            ("getattr(self, 'visit_%s' % kind)", 1),
            ("getattr(self, 'visit_')", 0),
            ("getattr(self, 'visit_all')", 0),
            ("self.visit_{kind}", 0),
            ("getattr(self, f'visit_{kind}_name')", 0),
            ("getattr(self, f'visit_{kind}ame')", 1),
            ("getattr(self, f'visit_{kind}_{other}')", 0),
            ("getattr(self, 'visit_%sx' % kind)", 0),
            ("getattr(self, f\"visit_{node['kind']}_x\")", 0),
            ("getattr(self, f\"visit_{node['kind']}ame\")", 1),
            ("getattr(self, f'visit_{kind:{width}}')", 1),
        ] {
            assert_eq!(built(text, "visit_", "visit_name").len(), count, "{text}");
        }
    }
}
