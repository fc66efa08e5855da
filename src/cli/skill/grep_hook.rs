//! The answer to a `PreToolUse` hook of Claude Code: if the agent is about to search for something that looks like a Python
//! symbol, a text with the commands that answer it. The search itself is neither permitted nor forbidden.
//!
//! Nothing is executed and no server is asked; of the project only the names of some files are read.

use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use super::shell_words::{Word, words};
use crate::python::stdlib::is_builtin;
use crate::text::shell::shell_quote;

/// How many entries of a folder are read to see whether it holds Python.
const ENTRIES_LIMIT: usize = 2000;

/// The longest pattern that can be a symbol.
const PATTERN_LIMIT: usize = 200;

/// The most symbols that are searched for at a time.
const MAX_SYMBOLS: usize = 3;

/// Files that only Python projects have.
const MARKERS: [&str; 6] =
    ["pyproject.toml", "setup.py", "setup.cfg", "pyrightconfig.json", "lanser.toml", "requirements.txt"];

/// Programs that search text.
const SEARCHERS: [&str; 7] = ["grep", "egrep", "fgrep", "rg", "ag", "ack", "ggrep"];

/// Short options of the searchers that take a value, and long ones where the value is the next word.
const WITH_VALUE: &str = "ABCmgtTjEdDr";
const LONG_WITH_VALUE: [&str; 20] = [
    "after-context",
    "before-context",
    "context",
    "encoding",
    "exclude",
    "exclude-dir",
    "exclude-from",
    "file-type",
    "glob",
    "iglob",
    "ignore",
    "ignore-dir",
    "ignore-file",
    "max-count",
    "max-depth",
    "sort",
    "threads",
    "type",
    "type-add",
    "type-not",
];

/// Words before the program that a shell or another program runs. `timeout` has its limit in between.
const PREFIXES: [&str; 14] = [
    "!", "command", "do", "else", "env", "exec", "if", "nice", "sudo", "then", "time", "timeout", "while",
    "xargs",
];

/// What Claude Code writes to the standard input of a hook.
#[derive(Debug, Deserialize)]
struct HookInput {
    tool_name: String,
    #[serde(default)]
    cwd: String,
    tool_input: ToolInput,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolInput {
    /// `Grep`: the regular expression, and where to search.
    pattern: Option<String>,
    path: Option<String>,
    glob: Option<String>,
    r#type: Option<String>,
    /// `Bash`: the command.
    command: Option<String>,
}

/// A text search: the alternative patterns, and the words that restrict the files.
#[derive(Debug, PartialEq, Eq)]
struct TextSearch {
    patterns: Vec<String>,
    files: Vec<String>,
}

/// The output of the hook for this input; `None` if there is nothing to say, also when the input is not what is expected.
pub(crate) fn answer(input: &[u8]) -> Option<String> {
    let input: HookInput = serde_json::from_slice(input).ok()?;
    let folder = Path::new(&input.cwd);
    let search = match input.tool_name.as_str() {
        "Grep" => {
            let ToolInput { pattern, path, glob, r#type: kind, .. } = input.tool_input;
            let kind = kind.map(|kind| format!("*.{}", if kind == "python" { "py" } else { &kind }));
            TextSearch { patterns: vec![pattern?], files: [path, glob, kind].into_iter().flatten().collect() }
        }
        "Bash" => search_of(&input.tool_input.command?)?,
        _ => return None,
    };
    let is_searched = |name: &String| may_be_python(name) && is_in_project(folder, name);
    if !search.files.iter().all(is_searched) || !holds_python(folder) {
        return None;
    }
    let alternatives = search.patterns.iter().flat_map(|pattern| alternatives(pattern));
    let symbols = alternatives.map(symbol).collect::<Option<Vec<_>>>()?;
    if symbols.len() > MAX_SYMBOLS {
        return None;
    }
    let output = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "additionalContext": symbols.iter().map(advice).collect::<Vec<_>>().join(" "),
    }});
    Some(format!("{output}\n"))
}

/// The alternatives of a pattern, `a|b` or `a\|b`. In groups they are parts of a longer pattern, which is no symbol.
fn alternatives(pattern: &str) -> Vec<&str> {
    let parts = pattern.split('|').map(|part| part.strip_suffix('\\').unwrap_or(part));
    parts.collect()
}

/// Whether a path or glob is not outside of the project of a folder.
fn is_in_project(folder: &Path, name: &str) -> bool {
    let top = folder.ancestors().find(|above| above.join(".git").exists()).unwrap_or(folder);
    !Path::new(name).is_absolute() || Path::new(name).starts_with(top)
}

/// What is searched for.
#[derive(Debug, PartialEq, Eq)]
enum PatternSymbol {
    /// A definition: `def NAME`, `class NAME`.
    Definition(String),
    /// A call: `NAME(`.
    CallOf(String),
    /// A name.
    Name(String),
}

fn advice(symbol: &PatternSymbol) -> String {
    let (PatternSymbol::Definition(name) | PatternSymbol::CallOf(name) | PatternSymbol::Name(name)) = symbol;
    let quoted = shell_quote(name);
    // The search is for names, not for qualified ones.
    let last = shell_quote(name.rsplit('.').next().unwrap_or(name));
    let first = match symbol {
        PatternSymbol::Definition(_) => {
            format!("`lanser def {quoted}` shows the definition, `lanser refs {quoted}` every use")
        }
        PatternSymbol::CallOf(_) => {
            format!("`lanser refs {quoted}` lists every use, `lanser calls {quoted} --incoming` the callers")
        }
        PatternSymbol::Name(_) => {
            format!("`lanser refs {quoted}` lists every use, `lanser def {quoted}` shows the definition")
        }
    };
    format!(
        "`{name}` looks like a Python symbol: {first}, by types instead of text, and says whether the list is complete. If the name \
         is not unique: `lanser symbols --query {last}`."
    )
}

/// The symbol that a pattern describes: a dotted name, after `def` or `class`, with word boundaries or an opening parenthesis.
///
/// A single word in lower case may be any text, so it counts only after a keyword or before a parenthesis.
fn symbol(pattern: &str) -> Option<PatternSymbol> {
    if pattern.len() > PATTERN_LIMIT {
        return None;
    }
    let mut rest = pattern;
    for anchor in ["^", r"\b", r"\s*", r"\s+", " *", r"\<"] {
        rest = rest.strip_prefix(anchor).unwrap_or(rest);
    }
    rest = rest.trim_start().strip_prefix("async ").unwrap_or(rest).trim_start();
    let after = |rest, keyword| {
        str::strip_prefix(rest, keyword).and_then(|rest: &str| {
            [" +", r"\s+", r"\s*", " "].iter().find_map(|space| rest.strip_prefix(space))
        })
    };
    let defined = after(rest, "def").or_else(|| after(rest, "class"));
    rest = defined.unwrap_or(rest);
    rest = rest.strip_prefix(r"\.").or_else(|| rest.strip_prefix('.')).unwrap_or(rest);
    let unescaped = rest.replace(r"\.", ".");
    let end =
        unescaped.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(unescaped.len());
    let (name, tail) = unescaped.split_at(end);
    // No selector names what an object is.
    let name = ["self.", "cls."].iter().find_map(|object| name.strip_prefix(object)).unwrap_or(name);
    let called = tail.starts_with('(') || tail.starts_with(r"\(") || tail.starts_with(r"\s*\(");
    let tail_is_known = called || ["", r"\b", r"\>", "$", ":", r"\s*:", r"\s*=", " =", "="].contains(&tail);
    let parts: Vec<&str> = name.split('.').collect();
    let is_word = |part: &&str| {
        part.starts_with(|c: char| c == '_' || c.is_alphabetic()) && part.chars().any(char::is_alphabetic)
    };
    if !tail_is_known || !parts.iter().all(is_word) || (defined.is_none() && is_builtin(name)) {
        return None;
    }
    let name = name.to_owned();
    if defined.is_some() {
        return Some(PatternSymbol::Definition(name));
    }
    if called {
        return Some(PatternSymbol::CallOf(name));
    }
    let last = parts.last()?;
    let has_case = last.chars().skip(1).any(char::is_uppercase) && last.chars().any(char::is_lowercase)
        || last.starts_with(char::is_uppercase) && last.chars().skip(1).any(char::is_lowercase);
    let is_file = parts.len() > 1
        && matches!(*last, "py" | "md" | "txt" | "toml" | "json" | "yml" | "yaml" | "cfg" | "com" | "org");
    let is_shaped = last.trim_matches('_').contains('_') || has_case && last.len() > 3 || parts.len() > 1;
    (is_shaped && !is_file).then_some(PatternSymbol::Name(name))
}

/// Whether a path, glob or file type can select Python files.
fn may_be_python(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    match last.rsplit_once('.') {
        None | Some(("" | ".", _)) => true,
        Some((_, extension)) => {
            let extension = extension.trim_matches(['{', '}', '\'', '"']);
            extension.contains("py") || extension.is_empty() || extension.contains('*')
        }
    }
}

/// The text search that is the first program of a pipeline in a command. What comes after `|` filters other output.
fn search_of(command: &str) -> Option<TextSearch> {
    let all = words(command);
    let mut pipelines = all.split(|word| matches!(word, Word::Operator(';' | '&' | '\n' | '(' | ')')));
    pipelines.find_map(|pipeline| {
        let mut parts = pipeline.split(|word| *word == Word::Operator('|'));
        // `find … | xargs grep …` searches files, too.
        let is_run_on_files = |part: &&[Word]| part.first() == Some(&Word::Text("xargs".to_owned()));
        let first = parts.next()?;
        let searching = parts.find(is_run_on_files).unwrap_or(first);
        let texts = searching.iter().map_while(|word| match word {
            Word::Text(text) => Some(text.as_str()),
            Word::Operator(_) => None,
        });
        arguments_of(program_words(texts))
    })
}

/// The words of a pipeline from its program on: without variables, and without the programs that run another one.
fn program_words<'w>(words: impl Iterator<Item = &'w str>) -> impl Iterator<Item = &'w str> {
    let mut words = words.peekable();
    let mut is_prefixed = false;
    while let Some(word) = words.peek() {
        let is_variable = word.contains('=') && !word.starts_with('-');
        let is_prefix = PREFIXES.contains(word);
        // Options and limits of the programs before.
        let is_theirs =
            is_prefixed && (word.starts_with('-') || word.starts_with(|c: char| c.is_ascii_digit()));
        if !(is_variable || is_prefix || is_theirs) {
            break;
        }
        is_prefixed |= is_prefix;
        words.next();
    }
    // `find … -exec grep …`.
    let runs = words.next_if(|word| *word == "find").is_some();
    words.skip_while(move |word| runs && !matches!(*word, "-exec" | "-execdir")).skip(usize::from(runs))
}

/// The pattern and files of a searcher's arguments.
fn arguments_of<'w>(mut words: impl Iterator<Item = &'w str>) -> Option<TextSearch> {
    let program = words.next()?;
    let program = match program.rsplit('/').next()? {
        "git" => words.next().filter(|verb| *verb == "grep")?,
        program => program,
    };
    if !SEARCHERS.contains(&program) {
        return None;
    }
    let (mut patterns, mut files) = (Vec::new(), Vec::new());
    let mut only_files = false;
    while let Some(word) = words.next() {
        match word.strip_prefix("--") {
            // The end of `find -exec`.
            _ if matches!(word, ";" | "+" | "{}") => {}
            _ if only_files || !word.starts_with('-') || word == "-" => match patterns.is_empty() {
                true => patterns.push(word.to_owned()),
                false => files.push(word.to_owned()),
            },
            Some("") => only_files = true,
            Some(long) => {
                if let Some(("include" | "glob" | "type", value)) = long.split_once('=') {
                    files.push(file_type(long, value));
                } else if let Some(("regexp", value)) = long.split_once('=') {
                    patterns.push(value.to_owned());
                } else if long == "regexp" {
                    patterns.extend(words.next().map(str::to_owned));
                } else if LONG_WITH_VALUE.contains(&long) {
                    let value = words.next().unwrap_or_default();
                    if matches!(long, "glob" | "type") {
                        files.push(file_type(long, value));
                    }
                } else if long == "include" {
                    files.extend(words.next().map(str::to_owned));
                }
            }
            None => {
                let last = word.chars().last().unwrap_or_default();
                match last {
                    'e' => patterns.extend(words.next().map(str::to_owned)),
                    // The patterns are in a file.
                    'f' => return None,
                    'g' | 't' if program == "rg" => {
                        let value = words.next().unwrap_or_default();
                        files.push(file_type(if last == 't' { "type" } else { "glob" }, value));
                    }
                    // `-r` of grep has no value, that of ripgrep replaces.
                    last if WITH_VALUE.contains(last) && (program == "rg" || "ABCm".contains(last)) => {
                        words.next();
                    }
                    _ => {}
                }
            }
        }
    }
    (!patterns.is_empty()).then_some(TextSearch { patterns, files })
}

fn file_type(option: &str, value: &str) -> String {
    if option.starts_with("type") { format!("*.{}", value.replace("python", "py")) } else { value.to_owned() }
}

/// Whether a folder, or `src` in it, looks like a part of a Python project.
fn holds_python(folder: &Path) -> bool {
    let is_marked = |folder: &Path| MARKERS.iter().any(|name| folder.join(name).is_file());
    // A file above the repository, such as one in the home folder, says nothing about it.
    let top = folder.ancestors().position(|above| above.join(".git").exists()).unwrap_or(0);
    let marked = folder.ancestors().take(top + 1).any(is_marked);
    let has_source = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().take(ENTRIES_LIMIT).flatten();
        entries
            .map(|entry| entry.file_name())
            .any(|name| Path::new(&name).extension().is_some_and(|end| end == "py"))
    };
    folder.is_absolute() && (marked || has_source(folder) || has_source(&folder.join("src")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_are_symbols() {
        let definition = |name: &str| Some(PatternSymbol::Definition(name.to_owned()));
        let call = |name: &str| Some(PatternSymbol::CallOf(name.to_owned()));
        let name = |name: &str| Some(PatternSymbol::Name(name.to_owned()));
        for (pattern, expected) in [
            ("def add", definition("add")),
            (r"^\s*def add\(", definition("add")),
            (r"async def  fetch\b", None),
            ("async def fetch", definition("fetch")),
            (r"class\s+Stock\b", definition("Stock")),
            ("class Stock:", definition("Stock")),
            ("class Stock(", definition("Stock")),
            (r"\.add\(", call("add")),
            ("add(", call("add")),
            ("stock.add(", call("stock.add")),
            ("get_adapter", name("get_adapter")),
            (r"\bget_adapter\b", name("get_adapter")),
            ("Session", name("Session")),
            ("HTTPAdapter", name("HTTPAdapter")),
            (r"Stock\.add", name("Stock.add")),
            ("_private_name", name("_private_name")),
            ("self.add_all", name("add_all")),
            (r"self\.add(", call("add")),
            // These may be any text.
            ("add", None),
            ("timeout", None),
            ("TODO", None),
            ("FIXME:", None),
            ("the end", None),
            ("foo|bar", None),
            ("get_.*", None),
            ("setup.py", None),
            ("example.com", None),
            ("print(", None),
            ("self.add", None),
            ("E/NOT_FOUND", None),
            ("1.2.3", None),
            ("", None),
            ("...", None),
            ("_", None),
            (".*", None),
        ] {
            assert_eq!(symbol(pattern), expected, "{pattern:?}");
        }
    }

    #[test]
    fn searches_in_shell_commands() {
        let search = |command: &str| {
            search_of(command).map(|search| (search.patterns.join(" "), search.files.join(" ")))
        };
        let found = |pattern: &str, files: &str| Some((pattern.to_owned(), files.to_owned()));
        assert_eq!(search("grep -rn 'def add' src"), found("def add", "src"));
        assert_eq!(search("cd /x && grep -rn --include=*.py get_adapter ."), found("get_adapter", "*.py ."));
        assert_eq!(search("rg -t py -A 3 get_adapter"), found("get_adapter", "*.py"));
        assert_eq!(search("rg --type=js get_adapter"), found("get_adapter", "*.js"));
        assert_eq!(search("git grep -n -e get_adapter -- src"), found("get_adapter", "src"));
        assert_eq!(search("LC_ALL=C /usr/bin/grep -A5 -m 2 x_y f.py | head"), found("x_y", "f.py"));
        for command in [
            "find . -name '*.py' | xargs grep -n x_y",
            r"find . -name '*.py' -exec grep -n x_y {} \;",
            "timeout 5 grep -rn x_y",
            "sudo grep x_y",
            "if grep -rq x_y; then ls; fi",
            "rg --type-add foo:x x_y",
            "grep --regexp=x_y",
        ] {
            assert_eq!(search(command), found("x_y", ""), "{command}");
        }
        assert_eq!(search("grep --exclude-dir .git -rn x_y ."), found("x_y", "."));
        assert_eq!(search("grep -e x_y -e y_z ."), found("x_y y_z", "."));
        for other in ["ls | grep get_adapter", "git log --grep x", "echo grep x_y", "grep", "grep -f p .", ""]
        {
            assert_eq!(search(other), None, "{other}");
        }
    }

    #[test]
    fn the_answer_is_context_for_the_agent_and_never_a_decision() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("m.py"), "").unwrap();
        let ask = |tool: &str, input: serde_json::Value| {
            let cwd = folder.path().to_str().unwrap();
            let call =
                json!({"tool_name": tool, "cwd": cwd, "hook_event_name": "PreToolUse", "tool_input": input});
            answer(call.to_string().as_bytes())
        };
        let output = ask("Grep", json!({"pattern": "get_adapter", "output_mode": "content"})).unwrap();
        let output: serde_json::Value = serde_json::from_str(&output).unwrap();
        let specific = output["hookSpecificOutput"].as_object().unwrap();
        assert_eq!(specific.keys().collect::<Vec<_>>(), ["additionalContext", "hookEventName"]);
        assert!(specific["additionalContext"].as_str().unwrap().contains("`lanser refs get_adapter`"));
        assert!(ask("Bash", json!({"command": "grep -rn 'class Stock' ."})).is_some());
        assert!(ask("Grep", json!({"pattern": "get_adapter", "glob": "*.{py,pyi}"})).is_some());
        let both = ask("Bash", json!({"command": r#"grep -rn "get_adapter\|max_size" ."#})).unwrap();
        assert!(both.contains("refs get_adapter`") && both.contains("refs max_size`"), "{both}");
        for silent in [
            ask("Grep", json!({"pattern": "get_adapter|any text"})),
            ask("Grep", json!({"pattern": "get_adapter", "path": "/elsewhere"})),
            ask("Grep", json!({"pattern": "get_adapter", "glob": "*.md"})),
            ask("Grep", json!({"pattern": "get_adapter", "type": "js"})),
            ask("Grep", json!({"pattern": "get_adapter", "path": "docs/a.rst"})),
            ask("Grep", json!({})),
            ask("Bash", json!({"command": 3})),
            ask("Read", json!({"file_path": "m.py"})),
        ] {
            assert_eq!(silent, None);
        }
        std::fs::remove_file(folder.path().join("m.py")).unwrap();
        assert_eq!(ask("Grep", json!({"pattern": "get_adapter"})), None, "not a Python project");
        std::fs::create_dir_all(folder.path().join("pkg/.git")).unwrap();
        std::fs::write(folder.path().join("setup.py"), "").unwrap();
        let inner = folder.path().join("pkg");
        assert!(holds_python(folder.path()) && !holds_python(&inner), "another repository");
        std::fs::write(inner.join("pyproject.toml"), "").unwrap();
        std::fs::create_dir(inner.join("docs")).unwrap();
        assert!(holds_python(&inner) && holds_python(&inner.join("docs")));
        for broken in ["", "{", "[]", "null", "{\"tool_name\":\"Grep\"}"] {
            assert_eq!(answer(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn a_name_in_the_advice_is_quoted_for_the_shell() {
        // A symbol has no character that a shell would interpret.
        assert_eq!(symbol("$(rm_x)"), None);
        assert_eq!(symbol("a_b;rm"), None);
        assert_eq!(symbol("a_b`rm`"), None);
    }
}
