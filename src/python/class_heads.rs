//! The words in the heads of classes, and the aliases of names: where a search for subclasses looks, before it follows names.

use std::collections::BTreeSet;

use super::digest_cache::{DigestCache, MemorySize};

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

/// The identifiers of a text.
pub(super) fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c == '_' || unicode_ident::is_xid_continue(c);
    text.split(move |c| !is_word(c)).filter(|word| !word.is_empty())
}

/// The class heads of each text, for the search for subclasses.
pub(super) static HEADS: DigestCache<ClassHeads> = DigestCache::new();

/// The words in the class heads of a text, and its aliases.
#[derive(Debug, Clone)]
pub(super) struct ClassHeads {
    pub(super) words: BTreeSet<String>,
    /// A name and its alias: `import name as alias`, `alias = name`.
    aliases: BTreeSet<(String, String)>,
}

impl ClassHeads {
    pub(super) fn of(text: &str) -> Self {
        let words = class_heads(text).flat_map(words_of).map(str::to_owned).collect();
        let mut aliases = BTreeSet::new();
        for line in text.lines().filter(|line| line.contains(" as ") || line.contains('=')) {
            let mut words = words_of(line).peekable();
            let mut before = None;
            while let Some(word) = words.next() {
                if let (Some(name), "as", Some(alias)) = (before, word, words.peek()) {
                    aliases.insert((str::to_owned(name), (*alias).to_owned()));
                }
                before = Some(word);
            }
            let code = line.split_once('#').map_or(line, |(code, _)| code);
            for statement in code.split(';') {
                aliases.extend(assigned_aliases(statement));
            }
        }
        aliases.retain(|(name, alias)| name != alias);
        Self { words, aliases }
    }

    pub(super) fn aliases_of(&self, name: &str) -> BTreeSet<&str> {
        let from = (name.to_owned(), String::new());
        let of_name = self.aliases.range(from..).take_while(|(of, _)| of == name);
        of_name.map(|(_, alias)| alias.as_str()).collect()
    }
}

/// The aliases of `alias = other = module.name[…]`, each behind its name. The value must be nothing but a name: what is returned by a
/// call is no class that is written there.
fn assigned_aliases(statement: &str) -> Vec<(String, String)> {
    let Some((targets, value)) = statement.rsplit_once('=') else { return Vec::new() };
    let value = value.trim();
    let value = value.strip_prefix('(').and_then(|value| value.strip_suffix(')')).unwrap_or(value);
    let value = value.split_once('[').map_or(value, |(generic, _)| generic).trim();
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c == '_' || c.is_alphanumeric());
    let is_comparison = targets.split('=').any(|target| target.trim().is_empty());
    if is_comparison || !value.split('.').all(|part| is_word(part.trim())) {
        return Vec::new();
    }
    let name = value.rsplit('.').next().unwrap_or_default().trim();
    let targets =
        targets.split('=').map(|target| target.split_once(':').map_or(target, |(target, _)| target));
    let targets = targets.map(str::trim).filter(|target| is_word(target));
    targets.map(|alias| (name.to_owned(), alias.to_owned())).collect()
}

impl MemorySize for ClassHeads {
    fn memory_bytes(&self) -> usize {
        /// The memory of a string in a set, beyond its bytes.
        const STRING_BYTES: usize = 32;
        let words = self.words.iter().map(|word| word.len() + STRING_BYTES);
        let aliases = self.aliases.iter().map(|(name, alias)| name.len() + alias.len() + 2 * STRING_BYTES);
        size_of::<Self>() + words.chain(aliases).sum::<usize>()
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
