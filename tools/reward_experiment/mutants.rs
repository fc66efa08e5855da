//! Mutants of single lines, and the scripted edits made from them.

use std::fs;
use std::path::{Path, PathBuf};

/// The kind of mistake of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Mistakes that a type checker finds: a wrong name, attribute, argument, type.
    Type,
    /// Mistakes that it does not find: a wrong comparison, constant, condition.
    Logic,
}

impl Family {
    pub(crate) const ALL: [Self; 2] = [Self::Type, Self::Logic];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Type => "types",
            Self::Logic => "logic",
        }
    }
}

/// The replacement of a line.
#[derive(Debug, Clone)]
pub(crate) struct Mutant {
    /// 0-based.
    pub(crate) line: usize,
    new: String,
}

/// A small random number generator with the same numbers everywhere (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % limit.max(1) as u64).unwrap_or(0)
    }
}

/// The Python files below a folder, in order, with their texts.
pub(crate) fn sources(folder: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| error.to_string())?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "py") {
                let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
                found.push((path, text));
            }
        }
    }
    found.sort();
    if found.is_empty() { Err("there are no sources".to_owned()) } else { Ok(found) }
}

/// Two mutants of different functions or lines of one text.
pub(crate) fn pair(text: &str, family: Family, random: &mut Random) -> Option<(Mutant, Mutant)> {
    let all = candidates(text, family);
    if all.len() < 2 {
        return None;
    }
    let (first, second) = (&all[random.below(all.len())], &all[random.below(all.len())]);
    (first.line.abs_diff(second.line) > 3).then(|| (first.clone(), second.clone()))
}

/// Every mutant of a text. Lines in docstrings and with quotes are skipped, because there is no parser here.
fn candidates(text: &str, family: Family) -> Vec<Mutant> {
    let (mut found, mut quoted) = (Vec::new(), false);
    for (line, code) in text.lines().enumerate() {
        let was = quoted;
        quoted ^= code.matches("\"\"\"").count() % 2 == 1;
        let bare = code.trim_start();
        let indented = code.len() > bare.len() + 3;
        if was || quoted || !indented || bare.starts_with(['#', '@']) || code.contains(['"', '\'']) {
            continue;
        }
        let mut add = |new: String| {
            if new != code {
                found.push(Mutant { line, new });
            }
        };
        match family {
            Family::Type => {
                add(code.replacen("self.", "self.x_", 1));
                if bare.starts_with("return ") && !bare.contains('#') {
                    add(format!("{}return None", &code[..code.len() - bare.len()]));
                }
                if !bare.starts_with("def ") && code.ends_with(')') && !code.ends_with("()") {
                    add(format!("{}, 0)", &code[..code.len() - 1]));
                }
                if let Some((name, _)) = bare
                    .split_once('(')
                    .filter(|(name, _)| name.ends_with(char::is_alphabetic) && !name.contains(' '))
                {
                    add(code.replacen(name, &format!("{name}_x"), 1));
                }
            }
            Family::Logic => {
                for (old, new) in [
                    (" == ", " != "),
                    (" != ", " == "),
                    (" < ", " >= "),
                    (" > ", " <= "),
                    (" and ", " or "),
                    (" or ", " and "),
                    (" not in ", " in "),
                    (" is not ", " is "),
                    ("True", "False"),
                    ("False", "True"),
                    (" + 1", " + 2"),
                    (" - 1", " - 2"),
                    ("[0]", "[1]"),
                ] {
                    add(code.replacen(old, new, 1));
                }
            }
        }
    }
    found
}

/// A text with mutants.
pub(crate) fn apply(text: &str, mutants: &[&Mutant]) -> String {
    let lines = text.lines().enumerate().map(|(at, line)| {
        let mutant = mutants.iter().find(|mutant| mutant.line == at);
        mutant.map_or(line, |mutant| &mutant.new)
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// The text with suppression comments on both lines.
pub(crate) fn hidden(broken: &str, mutants: [&Mutant; 2]) -> String {
    let lines = broken.lines().enumerate().map(|(at, line)| {
        let here = mutants.iter().any(|mutant| mutant.line == at);
        if here { format!("{line}  # type: ignore\n") } else { format!("{line}\n") }
    });
    lines.collect()
}

/// The text with the bodies of the functions around both lines removed.
pub(crate) fn stubbed(broken: &str, mutants: [&Mutant; 2]) -> String {
    let mut lines: Vec<String> = broken.lines().map(str::to_owned).collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut places: Vec<usize> = mutants.iter().map(|mutant| mutant.line).collect();
    places.sort_unstable();
    for at in places.into_iter().rev() {
        // The header is the nearest `def` above with less indentation, and its body begins after the line that ends with a colon.
        let inner = indent(&lines[at]);
        let is_head = |line: &&usize| {
            let text = lines[**line].trim_start();
            (text.starts_with("def ") || text.starts_with("async def ")) && indent(&lines[**line]) < inner
        };
        let above: Vec<usize> = (0..at).rev().collect();
        let Some(&head) = above.iter().find(is_head) else { continue };
        let Some(colon) = (head..=at).find(|line| lines[*line].trim_end().ends_with(':')) else { continue };
        let outer = indent(&lines[head]);
        let end = (at + 1..lines.len()).find(|line| {
            let text = &lines[*line];
            !text.trim().is_empty() && indent(text) <= outer && !text.trim_start().starts_with(')')
        });
        let end = end.unwrap_or(lines.len());
        if colon < at {
            lines.splice(colon + 1..end, [format!("{}...", " ".repeat(outer + 4)), String::new()]);
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}
