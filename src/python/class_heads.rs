//! The words in the heads of classes, and the aliases of names: where a search for subclasses looks, before it follows names.

use std::collections::BTreeSet;

use super::digest_cache::{DigestCache, MemorySize};
use super::registered::registered;
use crate::text::names::{is_in_name, names_of};

/// The text between the parentheses of each `class X(…)`.
fn class_heads(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("class ").filter(|(at, _)| {
        let line = text[..*at].rfind('\n').map_or(0, |end| end + 1);
        text[line..*at].chars().all(char::is_whitespace)
    });
    starts.filter_map(|(at, _)| {
        let mut rest = &text[at..];
        rest = &rest[rest.find(['(', '[', ':'])?..];
        // The type parameters, whose bounds have colons.
        if rest.starts_with('[') {
            rest = rest[bracket_end(rest)?..].trim_start();
        }
        rest.starts_with('(').then(|| rest.get(1..bracket_end(rest)? - 1)).flatten()
    })
}

/// Where the bracket ends with which a text begins.
fn bracket_end(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// The class heads of each text, for the search for subclasses.
pub(super) static HEADS: DigestCache<ClassHeads> = DigestCache::new();

/// The words in the class heads of a text, and its aliases.
#[derive(Debug, Clone)]
pub(super) struct ClassHeads {
    pub(super) words: BTreeSet<String>,
    /// A name and its alias: `import name as alias`, `alias = name`.
    aliases: BTreeSet<(String, String)>,
    /// A class, and one with which it is registered as a virtual subclass.
    registered: BTreeSet<(String, String)>,
}

impl ClassHeads {
    pub(super) fn of(text: &str) -> Self {
        let words = class_heads(text).flat_map(names_of).map(str::to_owned).collect();
        let mut aliases = BTreeSet::new();
        for line in text.lines().filter(|line| line.contains(" as ") || line.contains('=')) {
            let mut words = names_of(line).peekable();
            let mut before = None;
            while let Some(word) = words.next() {
                if let (Some(name), "as", Some(alias)) = (before, word, words.peek()) {
                    aliases.insert((str::to_owned(name), (*alias).to_owned()));
                }
                before = Some(word);
            }
            let code = code_of(line);
            for statement in code.split(';') {
                aliases.extend(assigned_aliases(statement));
            }
            for (at, walrus) in code.match_indices(":=") {
                let value = code[at + walrus.len()..].split([')', ',']).next().and_then(name_of);
                let alias = names_of(&code[..at]).last();
                aliases.extend(value.zip(alias).map(|(name, alias)| (name.to_owned(), alias.to_owned())));
            }
        }
        aliases.retain(|(name, alias)| name != alias);
        let registered = registered(text).map(|(class, with)| (class.to_owned(), with.to_owned()));
        Self { words, aliases, registered: registered.collect() }
    }

    pub(super) fn aliases_of(&self, name: &str) -> BTreeSet<&str> {
        of_name(&self.aliases, name).collect()
    }

    /// The names of the classes with which one of this name is registered.
    pub(super) fn registrars_of(&self, name: &str) -> impl Iterator<Item = &str> {
        of_name(&self.registered, name)
    }
}

/// The second names of the pairs with a first one.
fn of_name<'p>(pairs: &'p BTreeSet<(String, String)>, name: &str) -> impl Iterator<Item = &'p str> {
    let from = (name.to_owned(), String::new());
    let name = name.to_owned();
    pairs.range(from..).take_while(move |(first, _)| *first == name).map(|(_, second)| second.as_str())
}

/// A line without its comment.
fn code_of(line: &str) -> &str {
    line.split_once('#').map_or(line, |(code, _)| code)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c == '_' || c.is_alphanumeric())
}

/// The names `a` and `b` of `a = b: type = value`, and the value. Empty if it is no assignment.
fn assigned(statement: &str) -> (Vec<&str>, &str) {
    let Some((targets, value)) = statement.rsplit_once('=') else { return (Vec::new(), "") };
    if targets.split('=').any(|target| target.trim().is_empty()) {
        return (Vec::new(), "");
    }
    let targets =
        targets.split('=').map(|target| target.split_once(':').map_or(target, |(target, _)| target));
    (targets.map(str::trim).filter(|target| is_word(target)).collect(), value.trim())
}

/// The aliases of `alias = other = module.name[…]`, each behind its name. The value must be nothing but a name, or a choice of
/// names: what is returned by a call is no class that is written there.
fn assigned_aliases(statement: &str) -> Vec<(String, String)> {
    let (targets, value) = assigned(statement);
    let mut aliases = Vec::new();
    for value in value.split(" if ").flat_map(|part| part.split(" else ")).flat_map(|part| part.split(" or "))
    {
        if let Some(name) = name_of(value) {
            aliases.extend(targets.iter().map(|&alias| (name.to_owned(), alias.to_owned())));
        }
    }
    aliases
}

/// The last name of an expression that is nothing but a dotted name, perhaps with type arguments.
fn name_of(value: &str) -> Option<&str> {
    let value = value.trim().trim_start_matches('(').trim_end_matches(')');
    let value = value.split_once('[').map_or(value, |(generic, _)| generic).trim();
    let is_name = value.split('.').all(|part| is_word(part.trim()));
    is_name.then(|| value.rsplit('.').next().unwrap_or_default().trim())
}

/// What a file says about classes whose bases only the program knows, by its text: a first selection.
#[derive(Debug, Default)]
pub(super) struct ComputedHeads {
    /// Whether a class has a base that is not a name, or may have one that is a local name; or a class is made by a call.
    pub(super) is_open: bool,
    /// The words in the heads of its classes.
    pub(super) words: BTreeSet<String>,
    /// The names that it binds to values that are not names, in any scope.
    pub(super) computed: BTreeSet<String>,
    /// Those of them that other files can import.
    pub(super) exported: BTreeSet<String>,
}

impl ComputedHeads {
    pub(super) fn of(text: &str) -> Self {
        let mut found = Self { is_open: makes_classes(text), ..Self::default() };
        for head in class_heads(text) {
            found.words.extend(names_of(head).map(str::to_owned));
            let is_plain = |c: char| is_in_name(c) || c.is_whitespace() || matches!(c, '.' | ',');
            let without = without_brackets(head);
            let keywords = without.find('=').map_or(without.as_str(), |at| &without[..at]);
            found.is_open |= !keywords.chars().all(is_plain) || is_local(text, head);
        }
        let all_are_global = text.contains("global ");
        let mut is_in_function = false;
        for line in text.lines() {
            if !line.starts_with([' ', '\t', ')', '#']) && !line.is_empty() {
                is_in_function = line.starts_with("def ") || line.starts_with("async def ");
            }
            let code = code_of(line);
            if !code.contains('=') && !code.contains(" as ") && !code.trim_start().starts_with("for ") {
                continue;
            }
            for name in computed_names(code) {
                if all_are_global || !is_in_function {
                    found.exported.insert(name.to_owned());
                }
                found.computed.insert(name.to_owned());
            }
        }
        found
    }
}

/// The text without what is in square brackets, and without comments.
fn without_brackets(head: &str) -> String {
    let mut depth = 0_usize;
    let lines = head.lines().map(code_of).collect::<Vec<_>>().join("\n");
    let outside = |c: &char| {
        depth = if *c == '[' { depth + 1 } else { depth };
        let is_outside = depth == 0;
        depth = if *c == ']' { depth.saturating_sub(1) } else { depth };
        is_outside
    };
    lines.chars().filter(outside).collect()
}

/// Whether the class with a head is in a function in which, before the class, a word of the head is written.
fn is_local(text: &str, head: &str) -> bool {
    let at = head.as_ptr() as usize - text.as_ptr() as usize;
    let indent = |line: &str| line.len() - line.trim_start().len();
    let start = text[..at].rfind("class ").map_or(0, |at| text[..at].rfind('\n').map_or(0, |end| end + 1));
    let mut level = indent(&text[start..]);
    let mut function = None;
    let mut end = start;
    while level > 0 && end > 0 {
        let begin = text[..end - 1].rfind('\n').map_or(0, |end| end + 1);
        let line = &text[begin..end];
        if !line.trim().is_empty() && indent(line) < level {
            level = indent(line);
            let line = line.trim_start();
            if line.starts_with("def ") || line.starts_with("async def ") {
                function = Some(begin);
            } else if line.starts_with(')') {
                // The end of a head of several lines; its beginning has the same indentation.
                level += 1;
            }
        }
        end = begin;
    }
    let Some(function) = function else { return false };
    let before: BTreeSet<&str> = names_of(&text[function..start]).collect();
    names_of(head).any(|word| before.contains(word))
}

/// Whether a text seems to make a class by a call: `type(name, bases, namespace)`.
fn makes_classes(text: &str) -> bool {
    let is_made = |(at, call): (usize, &str)| {
        let rest = &text[at + call.len() - 1..];
        let is_name = text[..at].chars().next_back().is_some_and(is_in_name);
        !is_name && bracket_end(rest).is_some_and(|end| rest[..end].contains(','))
    };
    ["type(", "new_class(", "make_dataclass("].iter().any(|call| text.match_indices(call).any(is_made))
        || text.contains("\", (")
        || text.contains("', (")
}

/// The names that a line of code binds to values that are not names.
fn computed_names(code: &str) -> Vec<&str> {
    let (targets, value) = assigned(code);
    let is_names = || {
        let parts = value.split(" if ").flat_map(|part| part.split(" else "));
        parts.flat_map(|part| part.split(" or ")).all(|part| name_of(part).is_some())
    };
    let mut names = if targets.is_empty() || is_names() { Vec::new() } else { targets };
    // `a, b = …`, `for a in …`, `with … as a`, `(a := …)`
    let targets = code.split_once('=').map_or("", |(targets, _)| targets);
    if targets.contains(',') && !targets.contains('(') {
        names.extend(names_of(targets));
    }
    if let Some(rest) = code.trim_start().strip_prefix("for ") {
        names.extend(names_of(rest.split_once(" in ").map_or("", |(targets, _)| targets)));
    }
    if code.trim_start().starts_with("with ") {
        let aliases = code.split(" as ").skip(1);
        names.extend(aliases.filter_map(|after| names_of(after).next()));
    }
    let before_walrus = code.match_indices(":=").filter_map(|(at, _)| names_of(&code[..at]).last());
    names.extend(before_walrus);
    names
}

impl MemorySize for ClassHeads {
    fn memory_bytes(&self) -> usize {
        /// The memory of a string in a set, beyond its bytes.
        const STRING_BYTES: usize = 32;
        let words = self.words.iter().map(|word| word.len() + STRING_BYTES);
        let pairs = self.aliases.iter().chain(&self.registered);
        let pairs = pairs.map(|(name, other)| name.len() + other.len() + 2 * STRING_BYTES);
        size_of::<Self>() + words.chain(pairs).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_classes() {
        let text = "class A: pass\nclass B(x.A, k=f(1)): pass\n # class C(A)\n  class D(\n  A[int],\n):\n";
        let heads: Vec<&str> = class_heads(text).collect();
        assert_eq!(heads, ["x.A, k=f(1)", "\n  A[int],\n"]);
        let heads: Vec<&str> =
            class_heads("class S[T: (int, str), *Ts](B[T]): ...\nclass U[T: X]: f(1)\n").collect();
        assert_eq!(heads, ["B[T]"]);
        let heads = ClassHeads::of("from a import B as C, D as E\nF = x.B\nB = B\nclass G(B, C): ...\n");
        assert_eq!(heads.aliases_of("B"), BTreeSet::from(["C", "F"]));
        assert_eq!(heads.aliases_of("D"), BTreeSet::from(["E"]));
        assert_eq!(Vec::from_iter(&heads.words), ["B", "C"]);
        let heads = ClassHeads::of(
            "A: type[B] = B\n  C = D = m.B[int]  # why\nE = B(); F = (B)\nG = f(B)\nh == B\ni.j = B\nk(l=B)\n",
        );
        assert_eq!(heads.aliases_of("B"), BTreeSet::from(["A", "C", "D", "F"]));
    }
}
