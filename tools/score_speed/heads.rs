//! Seeded edits of single files.

use std::path::{Path, PathBuf};

use crate::support::positions::{self, Place, Source};

/// The number of context lines in a diff.
const CONTEXT_LINES: usize = 3;

/// An edit of one file.
pub(crate) struct Head {
    /// A description.
    pub(crate) name: String,
    /// The file.
    pub(crate) path: PathBuf,
    /// Its old text.
    pub(crate) before: String,
    /// Its new text.
    pub(crate) after: String,
    /// The edit as a unified diff.
    pub(crate) diff: String,
}

/// Heads at seeded positions of a folder's sources, below `src` if that folder exists.
pub(crate) fn of(root: &Path, count: usize) -> Vec<Head> {
    let own = root.join("src");
    let sources: Vec<Source> = positions::sources(root)
        .into_iter()
        .filter(|source| !own.is_dir() || source.path.starts_with(&own))
        .filter(|source| source.text.ends_with('\n') && !source.text.contains('\r'))
        .collect();
    let places = positions::chosen(&sources, count);
    places.iter().enumerate().map(|(number, place)| head(&sources[place.file], number, place)).collect()
}

fn head(source: &Source, number: usize, place: &Place) -> Head {
    let lines: Vec<&str> = source.text.lines().collect();
    let at = place.line as usize;
    // The first changed line, the number of replaced lines, and the new lines.
    let (what, from, taken, put) = match number % 3 {
        0 => {
            let word = place.scalar as usize + place.word.chars().count();
            let head: String = lines[at].chars().take(word).collect();
            let rest: String = lines[at].chars().skip(word).collect();
            (format!("{} misspelt", place.word), at, 1, vec![format!("{head}x{rest}")])
        }
        1 => ("a comment".to_owned(), at, 0, vec![format!("# seeded {number}")]),
        _ => {
            let function = format!("def seeded_{number}(text: str) -> int:");
            ("a function".to_owned(), lines.len(), 0, vec![function, "    return text".to_owned()])
        }
    };
    let (first, last) = (from.saturating_sub(CONTEXT_LINES), (from + taken + CONTEXT_LINES).min(lines.len()));
    let mut diff = format!(
        "--- a/{path}\n+++ b/{path}\n@@ -{},{} +{},{} @@\n",
        first + 1,
        last - first,
        first + 1,
        last - first - taken + put.len(),
        path = source.relative,
    );
    let mut line = |sign: char, text: &str| diff.extend([sign.to_string().as_str(), text, "\n"]);
    lines[first..from].iter().for_each(|text| line(' ', text));
    lines[from..from + taken].iter().for_each(|text| line('-', text));
    put.iter().for_each(|text| line('+', text));
    lines[from + taken..last].iter().for_each(|text| line(' ', text));
    let put = put.iter().map(String::as_str);
    let all = lines[..from].iter().copied().chain(put).chain(lines[from + taken..].iter().copied());
    let after = all.flat_map(|line| [line, "\n"]).collect();
    Head {
        name: format!("{number}: {} {what}", source.relative),
        path: source.path.clone(),
        before: source.text.clone(),
        after,
        diff,
    }
}
