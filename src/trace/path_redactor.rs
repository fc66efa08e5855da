//! Replaces absolute paths of the recording machine by stable placeholders such as `/lanser/workspace`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::path::{AbsPath, FileUri};

/// Local folders and their placeholders.
#[derive(Debug, Clone, Default)]
pub struct PathRedactor {
    /// Longest first. Each folder is listed as a path and, where that is a different text, as it appears in a `file://` URI.
    folders: Vec<(String, String)>,
    /// Whether only paths in `file://` URIs are replaced.
    uris_only: bool,
}

impl PathRedactor {
    /// A redactor for folders and their placeholder names. A folder inside another one has no separate placeholder, unless it
    /// is the workspace.
    #[must_use]
    pub fn new<'f>(folders: impl IntoIterator<Item = (&'f AbsPath, &'f str)>) -> Self {
        let mut named: Vec<(&AbsPath, &str)> =
            folders.into_iter().filter(|(folder, _)| folder.as_str() != "/").collect();
        named.sort_by_key(|(folder, _)| folder.as_str().len());
        let mut outer: Vec<(&AbsPath, String)> = Vec::new();
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        for (folder, name) in named {
            let is_inside = |(other, _): &(&AbsPath, String)| {
                folder.strip_prefix(other).is_some_and(|rest| !rest.is_empty())
            };
            // The workspace has its own placeholder wherever it is.
            if name != "workspace" && outer.iter().any(is_inside) {
                continue;
            }
            let number = count.entry(name).or_default();
            *number += 1;
            let number = if *number == 1 { String::new() } else { number.to_string() };
            outer.push((folder, format!("/lanser/{name}{number}")));
        }
        let mut folders = Vec::new();
        for (folder, name) in outer {
            let uri = FileUri::from_path(folder);
            let encoded = uri.as_str().strip_prefix("file://").unwrap_or_default();
            if encoded != folder.as_str() {
                folders.push((encoded.to_owned(), name.clone()));
            }
            folders.push((folder.as_str().to_owned(), name));
        }
        folders.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.0.cmp(&b.0)));
        Self { folders, uris_only: false }
    }

    /// The same, but only for `file://` URIs: in text that users wrote, something that looks like a path may be an ordinary word.
    #[must_use]
    pub fn in_uris(&self) -> Self {
        Self { folders: self.folders.clone(), uris_only: true }
    }

    /// The text with every folder replaced.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        if !self.folders.iter().any(|(folder, _)| text.contains(folder.as_str())) {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        'scan: while let Some(at) = rest.find('/') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            // A slash in the middle of a path does not begin a path, but the one after `file://` does.
            let inside = out.chars().next_back().is_some_and(|before| {
                before.is_alphanumeric()
                    || "_-.".contains(before)
                    || (before == '/' && !out.ends_with("file://"))
            });
            let passes = self.uris_only && !out.ends_with("file://");
            for (folder, name) in self.folders.iter().filter(|_| !inside && !passes) {
                let Some(after) = rest.strip_prefix(folder.as_str()) else { continue };
                // `/work` is not a prefix of the path `/workshop`.
                if !after.starts_with(|next: char| next.is_alphanumeric() || "_-.%".contains(next)) {
                    out.push_str(name);
                    rest = after;
                    continue 'scan;
                }
            }
            out.push('/');
            rest = &rest[1..];
        }
        out.push_str(rest);
        out
    }

    /// A command-line argument with every folder replaced, and every other absolute path cut to its last component: folders of
    /// the machine can reveal its user.
    #[must_use]
    pub fn argument(&self, text: &str) -> String {
        let text = self.text(text);
        let (mut out, mut rest) = (String::with_capacity(text.len()), text.as_str());
        while let Some(at) = rest.find('/') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let is_first = out.is_empty() || (out.starts_with('-') && out.find('=') == Some(out.len() - 1));
            let begins = (out.ends_with(['=', '"', '\'', ' ', ':', ',', '[', '(', '{'])
                && !rest.starts_with("//"))
                || out.ends_with("file://")
                || is_first;
            // An argument that begins with a path is one path, even if a folder name has spaces or punctuation.
            let folders =
                if is_first { rest[..rest.find(['#', '?']).unwrap_or(rest.len())].rfind('/') } else { None };
            let from = folders.unwrap_or(0);
            let over = |c: char| c.is_whitespace() || "#?@:,\"'".contains(c);
            let path = &rest[..rest[from..].find(over).map_or(rest.len(), |end| from + end)];
            let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            if begins && !path.starts_with("/lanser/") && path.trim_end_matches('/').len() > last.len() + 1 {
                out.push_str("/lanser/elsewhere/");
                out.push_str(last);
                rest = &rest[path.len()..];
            } else if begins {
                out.push_str(path);
                rest = &rest[path.len()..];
            } else {
                out.push('/');
                rest = &rest[1..];
            }
        }
        out.push_str(rest);
        out
    }

    /// The JSON value with every folder replaced, in keys too.
    #[must_use]
    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(key, value)| (self.text(&key), self.value(value))).collect()
            }
            other => other,
        }
    }

    /// JSON text as a value with every folder replaced.
    #[must_use]
    pub fn json(&self, text: &str) -> Value {
        self.value(serde_json::from_str(text).unwrap_or(Value::Null))
    }

    /// Serializable data with every folder replaced; `None` when the result is no longer of this type.
    #[must_use]
    pub fn data<T: Serialize + DeserializeOwned>(&self, data: &T) -> Option<T> {
        serde_json::from_value(self.value(serde_json::to_value(data).ok()?)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor(folders: &[(&str, &'static str)]) -> PathRedactor {
        let folders: Vec<(AbsPath, &str)> =
            folders.iter().map(|(folder, name)| (AbsPath::new(folder).unwrap(), *name)).collect();
        PathRedactor::new(folders.iter().map(|(folder, name)| (folder, *name)))
    }

    #[test]
    fn folders_get_placeholders() {
        let redactor =
            redactor(&[("/srv/my app", "workspace"), ("/usr", "base"), ("/srv/my app/.venv", "env")]);
        for (text, expected) in [
            ("/srv/my app/a.py", "/lanser/workspace/a.py"),
            ("file:///srv/my%20app/a.py", "file:///lanser/workspace/a.py"),
            ("/srv/my app/.venv/bin", "/lanser/workspace/.venv/bin"),
            ("see /usr/lib, not /usrs or x/usr", "see /lanser/base/lib, not /usrs or x/usr"),
            ("a//usr/b", "a//usr/b"),
            ("/usr", "/lanser/base"),
            ("/srv/my apps", "/srv/my apps"),
        ] {
            assert_eq!(redactor.text(text), expected);
        }
        let value = serde_json::json!({"/usr/a": ["/usr"], "n": 1});
        assert_eq!(redactor.value(value), serde_json::json!({"/lanser/base/a": ["/lanser/base"], "n": 1}));
    }

    #[test]
    fn arguments_reveal_no_folders() {
        let redactor = redactor(&[("/home/ann/app", "workspace")]);
        for (text, expected) in [
            ("/home/ann/t.jsonl", "/lanser/elsewhere/t.jsonl"),
            ("--trace-file=/home/ann/t.jsonl", "--trace-file=/lanser/elsewhere/t.jsonl"),
            ("/home/ann/app/a.py:1:2", "/lanser/workspace/a.py:1:2"),
            ("/home/ann/b.py:1:2", "/lanser/elsewhere/b.py:1:2"),
            ("file:///home/ann/b.py#f", "file:///lanser/elsewhere/b.py#f"),
            ("{\"file:///home/ann/b.py\": 1}", "{\"file:///lanser/elsewhere/b.py\": 1}"),
            ("/home/ann/", "/lanser/elsewhere/ann"),
            ("/home/ann smith/a,b/c.py:3:4", "/lanser/elsewhere/c.py:3:4"),
            ("--in=/home/ann smith/b.jsonl", "--in=/lanser/elsewhere/b.jsonl"),
            ("x:/home/ann/b.py", "x:/lanser/elsewhere/b.py"),
            ("src/app.py:4:2", "src/app.py:4:2"),
            ("../b/c.py", "../b/c.py"),
            ("py://flask#Flask.route", "py://flask#Flask.route"),
            ("ast://[module=m]/f", "ast://[module=m]/f"),
            ("/", "/"),
            ("/tmp", "/tmp"),
            ("a / b", "a / b"),
            ("--apply", "--apply"),
        ] {
            assert_eq!(redactor.argument(text), expected);
        }
    }

    #[test]
    fn a_workspace_inside_another_folder_has_its_own_placeholder() {
        let redactor =
            redactor(&[("/usr", "base"), ("/usr/src/app", "workspace"), ("/e", "env"), ("/f", "env")]);
        assert_eq!(
            redactor.text("/usr/src/app/a.py /usr/b /e /f"),
            "/lanser/workspace/a.py /lanser/base/b /lanser/env /lanser/env2"
        );
    }
}
