//! The notes that ty appends to messages.

/// The lines of a message without them. They tell where ty searched: in a copy of the workspace also in the folder of an editable
/// install, which is the workspace itself.
pub fn lines_without_notes(message: &str) -> impl Iterator<Item = &str> {
    message.lines().filter(|line| !line.starts_with("info: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_left_out() {
        let message = "Cannot resolve `x`\n\ninfo: Searched in:\ninfo:   1. src\nThe end";
        let lines: Vec<&str> = lines_without_notes(message).collect();
        assert_eq!(lines.join("\n"), "Cannot resolve `x`\n\nThe end");
    }
}
