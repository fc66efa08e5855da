//! Splits a shell command into words and operators, as far as it is needed to see what a `grep` searches for.

/// A word, or an operator between commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// A word, without its quotes.
    Text(String),
    /// `|`, `||`, `&&`, `;`, `&`, a newline, a parenthesis or a redirection.
    Operator(char),
}

impl Word {
    /// The text of a word.
    pub(super) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Operator(_) => None,
        }
    }
}

/// The words of a command. Expansions are not done; an open quote ends at the end of the text.
pub(super) fn words(command: &str) -> Vec<Word> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => all.extend(word.take().map(Word::Text)),
            '|' | '&' | ';' | '\n' | '(' | ')' | '<' | '>' => {
                all.extend(word.take().map(Word::Text));
                all.push(Word::Operator(c));
            }
            '\'' => word.get_or_insert_default().extend(chars.by_ref().take_while(|c| *c != '\'')),
            '"' => {
                let text = word.get_or_insert_default();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    match (c, chars.peek()) {
                        ('\\', Some('"' | '\\' | '$' | '`')) => text.extend(chars.next()),
                        _ => text.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word.map(Word::Text));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_removed_and_operators_separate() {
        let text = |text: &str| Word::Text(text.to_owned());
        assert_eq!(
            words(r#"cd a&&grep -rn "def \"x\" \b" 'it  is'\''s' .|head"#),
            [
                text("cd"),
                text("a"),
                Word::Operator('&'),
                Word::Operator('&'),
                text("grep"),
                text("-rn"),
                text(r#"def "x" \b"#),
                text("it  is's"),
                text("."),
                Word::Operator('|'),
                text("head"),
            ]
        );
        assert_eq!(words("a ''"), [text("a"), text("")]);
        assert_eq!(words("'open"), [text("open")]);
    }
}
