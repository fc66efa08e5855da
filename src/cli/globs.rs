//! Normalizes the globs of `--allow` and `--deny`: comma-separated lists, `./src` and absolute paths. A request has them
//! relative to the workspace, so that it is the same on any machine.

use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::AbsPath;

/// Normalizes globs to the form in a request, sorted.
///
/// # Errors
/// If one cannot match a file in the workspace.
pub(crate) fn read(root: &AbsPath, args: &[String]) -> Result<Vec<String>, ErrorBody> {
    let globs = args.iter().flat_map(|arg| split(arg)).map(|glob| {
        in_workspace(root, glob).map_err(|reason| {
            let why = reason.unwrap_or("is outside of the workspace");
            ErrorBody::new(ErrorSymbol::Usage, format!("the glob {glob:?} {why}"))
                .hint("globs are relative to the workspace, like `src/**/*.py`")
        })
    });
    let mut globs = globs.collect::<Result<Vec<String>, ErrorBody>>()?;
    globs.sort();
    globs.dedup();
    Ok(globs)
}

/// Splits a list at commas, except inside of `{}` and `[]`.
fn split(list: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = list.split(|c| {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// Makes one glob relative to the workspace at `root`.
///
/// # Errors
/// With what is wrong with it; `None` if it is an absolute glob outside of the workspace.
pub(crate) fn in_workspace(root: &AbsPath, glob: &str) -> Result<String, Option<&'static str>> {
    let inside = match glob.strip_prefix(root.as_str()) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ if glob.starts_with('/') => return Err(None),
        _ => glob,
    };
    let parts: Vec<&str> = inside.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(Some("contains `..`"));
    }
    Ok(if parts.is_empty() { "**".to_owned() } else { parts.join("/") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_normalized() {
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
