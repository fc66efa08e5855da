//! The Python files of a folder, and identifier positions in them, chosen by a fixed seed.
//!
//! The scanner is minimal: it skips comments and strings, and takes the remaining words that are not keywords. Expressions inside
//! f-strings count as string.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The seed of the chosen positions.
pub(crate) const SEED: u64 = 0x1a25_e200_0000_0002;

const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// A source file.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Its path.
    pub(crate) path: PathBuf,
    /// Its path relative to the folder.
    pub(crate) relative: String,
    /// Its text.
    pub(crate) text: String,
}

/// The position of an identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The index of its file.
    pub(crate) file: usize,
    /// The identifier.
    pub(crate) word: String,
    /// 0-based.
    pub(crate) line: u32,
    /// 0-based, in UTF-16 units.
    pub(crate) utf16: u32,
    /// 0-based, in Unicode scalar values.
    pub(crate) scalar: u32,
}

/// The Python files of a folder, in the order of their paths, without hidden folders, caches, `node_modules` and virtual
/// environments. Files that are neither UTF-8 nor declared to be Latin-1 are left out.
pub(crate) fn sources(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries: Vec<_> = fs::read_dir(&folder).into_iter().flatten().flatten().collect();
        if folder != root && entries.iter().any(|entry| entry.file_name() == "pyvenv.cfg") {
            continue;
        }
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(kind) = entry.file_type() else { continue };
            let skipped = name.starts_with('.') || name == "node_modules" || name == "__pycache__";
            if kind.is_dir() && !skipped {
                folders.push(entry.path());
            } else if kind.is_file() && (name.ends_with(".py") || name.ends_with(".pyi")) {
                let path = entry.path();
                let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
                if let Some(text) = fs::read(&path).ok().and_then(decoded) {
                    found.push(Source { path, relative, text });
                }
            }
        }
    }
    found.sort_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
    found
}

/// The files that contain a word.
pub(crate) fn with_word<'a>(sources: &'a [Source], word: &str) -> Vec<&'a Source> {
    sources.iter().filter(|source| has_word(&source.text, word)).collect()
}

fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(|c| part(c) && c != '\u{feff}') && !after.is_some_and(part)
    })
}

/// `count` different positions, chosen by [`SEED`], in the order of the files.
pub(crate) fn chosen(sources: &[Source], count: usize) -> Vec<Place> {
    let all: Vec<Place> =
        sources.iter().enumerate().flat_map(|(file, source)| places(file, source)).collect();
    let mut state = SEED;
    let mut picked = BTreeSet::new();
    while picked.len() < count.min(all.len()) {
        let number = usize::try_from(random(&mut state) >> 1).unwrap_or_default();
        picked.insert(number % all.len());
    }
    picked.into_iter().map(|index| all[index].clone()).collect()
}

/// The first definition of each name, as a function or class.
pub(crate) fn defined(sources: &[Source], names: &[String]) -> Vec<Place> {
    let is_defined = |source: &Source, place: &Place| {
        let line = source.text.lines().nth(place.line as usize).unwrap_or_default().trim_start();
        ["def ", "async def ", "class "].iter().any(|word| {
            line.strip_prefix(word).is_some_and(|rest| rest.trim_start().starts_with(&place.word))
        })
    };
    let first = |name: &String| {
        sources.iter().enumerate().filter(|(_, source)| has_word(&source.text, name)).find_map(
            |(file, source)| {
                places(file, source)
                    .into_iter()
                    .find(|place| place.word == *name && is_defined(source, place))
            },
        )
    };
    names.iter().filter_map(first).collect()
}

/// Splitmix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Every identifier of a file.
pub(crate) fn places(file: usize, source: &Source) -> Vec<Place> {
    let chars: Vec<char> = source.text.chars().collect();
    let mut found = Vec::new();
    let mut at = usize::from(chars.first() == Some(&'\u{feff}'));
    let (mut line, mut line_start) = (0, 0);
    // The end of the line ends, if any, that lie between two indices.
    let advance = |from: usize, to: usize, line: &mut u32, line_start: &mut usize| {
        for index in from..to {
            let crlf = chars[index] == '\r' && chars.get(index + 1) == Some(&'\n');
            if (chars[index] == '\n' || chars[index] == '\r') && !crlf {
                *line += 1;
                *line_start = index + 1;
            }
        }
    };
    while at < chars.len() {
        let c = chars[at];
        let from = at;
        if c == '#' {
            at = end_of_line(&chars, at);
        } else if c == '"' || c == '\'' {
            at = end_of_string(&chars, at);
        } else if c == '_' || c.is_alphabetic() {
            while chars.get(at).is_some_and(|&c| c == '_' || c.is_alphanumeric()) {
                at += 1;
            }
            let word: String = chars[from..at].iter().collect();
            let quote = matches!(chars.get(at), Some('"' | '\''));
            let prefix = word.len() <= 2 && word.chars().all(|c| "rRbBuUfFtT".contains(c));
            if quote && prefix {
                at = end_of_string(&chars, at);
            } else if !KEYWORDS.contains(&word.as_str()) {
                let units: usize = chars[line_start..from].iter().map(|c| c.len_utf16()).sum();
                found.push(Place {
                    file,
                    word,
                    line,
                    utf16: u32::try_from(units).unwrap_or(u32::MAX),
                    scalar: u32::try_from(from - line_start).unwrap_or(u32::MAX),
                });
            }
        } else if c.is_ascii_digit() {
            // `1e5`, `0xff`, `1_000j`: the letters belong to the number.
            while chars.get(at).is_some_and(|&c| c == '_' || c.is_alphanumeric()) {
                at += 1;
            }
        } else {
            at += 1;
        }
        at = at.min(chars.len());
        advance(from, at, &mut line, &mut line_start);
    }
    found
}

fn end_of_line(chars: &[char], from: usize) -> usize {
    (from..chars.len()).find(|&at| matches!(chars[at], '\n' | '\r')).unwrap_or(chars.len())
}

/// The end of the string whose first quote is at `from`. A backslash escapes the next character, in raw strings too.
fn end_of_string(chars: &[char], from: usize) -> usize {
    let quote = chars[from];
    let triple = chars.get(from + 1) == Some(&quote) && chars.get(from + 2) == Some(&quote);
    let mut at = from + if triple { 3 } else { 1 };
    while at < chars.len() {
        match chars[at] {
            '\\' if chars.get(at + 1) == Some(&'\r') && chars.get(at + 2) == Some(&'\n') => at += 3,
            '\\' => at += 2,
            '\n' | '\r' if !triple => return at,
            c if c == quote && !triple => return at + 1,
            c if c == quote && chars.get(at + 1) == Some(&quote) && chars.get(at + 2) == Some(&quote) => {
                return at + 3;
            }
            _ => at += 1,
        }
    }
    chars.len()
}

fn decoded(bytes: Vec<u8>) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).to_ascii_lowercase();
    let latin = head.lines().take(2).any(|line| {
        line.starts_with('#')
            && line.contains("coding")
            && (line.contains("latin-1") || line.contains("8859-1"))
    });
    if latin {
        return Some(bytes.iter().map(|&byte| char::from(byte)).collect());
    }
    String::from_utf8(bytes).ok()
}
