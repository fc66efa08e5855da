//! The globs of `--allow` and `--deny` as people write them: several in one word, `./src`, an absolute path. A request has them
//! relative to the workspace, so that it is the same anywhere.

use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::AbsPath;

/// Globs in the form of a request, sorted.
///
/// # Errors
/// When one is of no file of the workspace.
pub(crate) fn read(root: &AbsPath, words: &[String]) -> Result<Vec<String>, ErrorBody> {
    let globs = words.iter().flat_map(|word| split(word)).map(|glob| {
        in_workspace(root, glob).map_err(|reason| {
            let why = reason.unwrap_or("names nothing in the workspace");
            ErrorBody::new(ErrorSymbol::Usage, format!("the glob {glob:?} {why}"))
                .hint("globs are relative to the workspace, like `src/**/*.py`")
        })
    });
    let mut globs = globs.collect::<Result<Vec<String>, ErrorBody>>()?;
    globs.sort();
    globs.dedup();
    Ok(globs)
}

/// The parts of a list with commas, those in `{}` and `[]` left alone.
fn split(word: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = word.split(|c| {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// One glob relative to the workspace at `root`.
///
/// # Errors
/// What is wrong with it; `None` when it is of files elsewhere.
pub(crate) fn in_workspace(root: &AbsPath, glob: &str) -> Result<String, Option<&'static str>> {
    let inside = match glob.strip_prefix(root.as_str()) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ if glob.starts_with('/') => return Err(None),
        _ => glob,
    };
    let parts: Vec<&str> = inside.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(Some("climbs out with `..`"));
    }
    Ok(if parts.is_empty() { "**".to_owned() } else { parts.join("/") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ways_to_write_one_glob() {
        let root = AbsPath::new("/w/x").unwrap();
        let one = |glob: &str| read(&root, &[glob.to_owned()]).map_err(|error| error.symbol);
        for glob in ["src", "./src", "src/", "/w/x/src", "/w/x/./src//"] {
            assert_eq!(one(glob).unwrap(), ["src"], "{glob}");
        }
        for glob in [".", "/w/x", "/w/x/", "**"] {
            assert_eq!(one(glob).unwrap(), ["**"], "{glob}");
        }
        assert_eq!(one("b,a/{c,d}.py,[,]x,b").unwrap(), ["[,]x", "a/{c,d}.py", "b"]);
        for glob in ["../x", "a/../b", "/w/xy", "/", "/elsewhere/**"] {
            assert_eq!(one(glob), Err(ErrorSymbol::Usage), "{glob}");
        }
    }
}
