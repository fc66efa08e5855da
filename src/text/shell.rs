//! Words of a command line for a POSIX shell.

/// A word as one argument: quoted where the shell would read it differently.
#[must_use]
pub fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@,+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// An argument for a shell that is not taken for an option.
#[must_use]
pub fn shell_argument(word: &str) -> String {
    let dashes = if word.starts_with('-') { "-- " } else { "" };
    format!("{dashes}{}", shell_quote(word))
}

#[cfg(test)]
mod tests {
    use super::shell_quote;

    #[test]
    fn words_that_a_shell_would_change_are_quoted() {
        assert_eq!(shell_quote("src/a.py:3:1"), "src/a.py:3:1");
        assert_eq!(shell_quote("py://m#C.f"), "'py://m#C.f'");
        assert_eq!(shell_quote("it's"), "'it'\\''s'");
        assert_eq!(shell_quote(""), "''");
    }
}
