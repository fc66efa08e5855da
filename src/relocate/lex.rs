//! A fast lexer for Python that accepts any text.
//!
//! Relocation only needs to know which parts of two texts are the same, for thousands of files in a second, so it does not
//! use the syntax tree. The lexer reports no errors: text that Python rejects becomes a token too. An f-string is one token,
//! with everything in its braces.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// An identifier or keyword.
    Name,
    /// A number.
    Number,
    /// A string literal, prefix and quotes included.
    String,
    /// An operator or any other character.
    Operator,
    /// A comment up to the end of its line.
    Comment,
}

/// One token.
#[derive(Debug, Clone, Copy)]
pub(super) struct LexToken {
    /// The first byte.
    pub(super) start: u32,
    /// The byte after the last.
    pub(super) end: u32,
    pub(super) kind: TokenKind,
    /// A hash of kind and text.
    pub(super) hash: u64,
}

/// A logical line: a simple statement or the header of a compound one, over as many physical lines as its brackets span; or a
/// comment on a separate line.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogicalLine {
    /// The first token.
    pub(super) first: u32,
    /// The token after the last.
    pub(super) end: u32,
    /// The column of the first token; a tab advances to the next multiple of eight.
    pub(super) indent: u32,
    /// A hash of all tokens.
    pub(super) hash: u64,
}

/// The tokens and logical lines of a text.
#[derive(Debug, Default)]
pub(super) struct LexedText {
    /// Invariant: ascending, disjoint, none empty.
    pub(super) tokens: Vec<LexToken>,
    /// Invariant: they cover the tokens in order; none is empty.
    pub(super) lines: Vec<LogicalLine>,
}

/// A mixing step of a hash: sufficient to distinguish code, not safe against an adversary.
pub(super) const fn mix(hash: u64, value: u64) -> u64 {
    let mixed = (hash.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// The hash of some bytes.
pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        hash = mix(hash, u64::from_le_bytes(word));
    }
    let mut word = [0; 8];
    word[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    mix(mix(hash, u64::from_le_bytes(word)), 0x5bd1)
}

struct Lexer<'t> {
    bytes: &'t [u8],
    at: usize,
    /// How many brackets are open.
    depth: usize,
    indent: u32,
    first: usize,
    /// Where the physical line starts, and whether only white space was read on it.
    line_begin: usize,
    line_blank: bool,
    out: LexedText,
}

/// Lexes a text. Reads at most its first 4 GiB.
pub(super) fn lex(text: &str) -> LexedText {
    let bytes = text.as_bytes();
    let bytes = &bytes[..bytes.len().min(u32::MAX as usize)];
    let out = LexedText::default();
    let mut lexer =
        Lexer { bytes, at: 0, depth: 0, indent: 0, first: 0, line_begin: 0, line_blank: true, out };
    if bytes.starts_with(b"\xef\xbb\xbf") {
        lexer.at = 3;
    }
    lexer.out.tokens.reserve(bytes.len() / 5);
    lexer.run();
    lexer.out
}

impl Lexer<'_> {
    fn run(&mut self) {
        let mut at_line_start = true;
        while self.at < self.bytes.len() {
            if at_line_start {
                self.measure_indent();
                at_line_start = false;
                continue;
            }
            let byte = self.bytes[self.at];
            match byte {
                b'\n' | b'\r' => {
                    self.at += 1;
                    if self.depth == 0 {
                        self.end_line();
                    }
                    at_line_start = true;
                    (self.line_begin, self.line_blank) = (self.at, true);
                }
                b' ' | b'\t' | 0x0c => self.at += 1,
                b'\\' if matches!(self.bytes.get(self.at + 1), Some(b'\n' | b'\r')) => {
                    let crlf =
                        self.bytes[self.at + 1] == b'\r' && self.bytes.get(self.at + 2) == Some(&b'\n');
                    self.at += if crlf { 3 } else { 2 };
                }
                b'#' => {
                    let end = self.line_end(self.at);
                    self.push(TokenKind::Comment, end);
                }
                b'"' | b'\'' => {
                    let end = string_end(self.bytes, self.at, self.at);
                    self.push(TokenKind::String, end);
                }
                b'0'..=b'9' => self.number(),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.word(),
                _ => {
                    match byte {
                        b'(' | b'[' | b'{' => self.depth += 1,
                        b')' | b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                        _ => {}
                    }
                    let end = self.at + operator_length(&self.bytes[self.at..]);
                    self.push(TokenKind::Operator, end);
                }
            }
        }
        self.end_line();
    }

    /// Measures the indentation at the start of a physical line.
    fn measure_indent(&mut self) {
        let mut column = 0;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b' ' => column += 1,
                b'\t' => column = (column / 8 + 1) * 8,
                0x0c => column = 0,
                _ => break,
            }
            self.at += 1;
        }
        if self.first == self.out.tokens.len() {
            self.indent = column;
        }
    }

    fn push(&mut self, kind: TokenKind, end: usize) {
        let hash = mix(hash_of(&self.bytes[self.at..end]), kind as u64);
        let (start, end) = (self.at, end);
        self.out.tokens.push(LexToken { start: to_u32(start), end: to_u32(end), kind, hash });
        self.at = end;
        self.line_blank = false;
    }

    fn end_line(&mut self) {
        let end = self.out.tokens.len();
        if self.first < end {
            let tokens = &self.out.tokens[self.first..end];
            let code = tokens.iter().filter(|token| token.kind != TokenKind::Comment);
            // A comment after a statement does not change the statement's hash.
            let hash = match code.clone().next() {
                Some(_) => code.fold(1, |hash, token| mix(hash, token.hash)),
                None => tokens.iter().fold(2, |hash, token| mix(hash, token.hash)),
            };
            self.out.lines.push(LogicalLine {
                first: to_u32(self.first),
                end: to_u32(end),
                indent: self.indent,
                hash,
            });
        }
        self.first = end;
    }

    fn line_end(&self, from: usize) -> usize {
        let rest = &self.bytes[from..];
        from + rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len())
    }

    fn number(&mut self) {
        let mut end = self.at;
        while let Some(&byte) = self.bytes.get(end) {
            let exponent = matches!(byte, b'+' | b'-') && matches!(self.bytes[end - 1], b'e' | b'E');
            if !(byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_' || (exponent && end > self.at))
            {
                break;
            }
            end += 1;
        }
        self.push(TokenKind::Number, end);
    }

    fn word(&mut self) {
        let mut end = self.at;
        while self
            .bytes
            .get(end)
            .is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80)
        {
            end += 1;
        }
        let word = &self.bytes[self.at..end];
        if word.len() <= 2 && matches!(self.bytes.get(end), Some(b'"' | b'\'')) && is_prefix(word) {
            let end = string_end(self.bytes, self.at, end);
            self.push(TokenKind::String, end);
            return;
        }
        // Neither keyword can occur in brackets, so an earlier bracket was never closed.
        if self.depth > 0 && self.line_blank && matches!(word, b"def" | b"class") {
            self.depth = 0;
            self.end_line();
            let resume = self.at;
            self.at = self.line_begin;
            self.measure_indent();
            self.at = resume;
        }
        self.push(TokenKind::Name, end);
    }
}

fn to_u32(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn is_prefix(word: &[u8]) -> bool {
    word.iter().all(|byte| matches!(byte.to_ascii_lowercase(), b'r' | b'b' | b'u' | b'f' | b't'))
}

/// The end of the string literal whose quote is at `quote` and whose prefix starts at `start`. An unclosed literal in single
/// quotes ends with its line.
fn string_end(bytes: &[u8], start: usize, quote: usize) -> usize {
    let prefix = &bytes[start..quote];
    let formatted = prefix.iter().any(|byte| matches!(byte.to_ascii_lowercase(), b'f' | b't'));
    let mark = bytes[quote];
    let triple = bytes[quote..].starts_with(&[mark; 3]);
    let mut at = quote + if triple { 3 } else { 1 };
    let mut braces = 0_usize;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if bytes[at + 1..].starts_with(b"\r\n") => at += 2,
            b'\\' => at += 1,
            b'\n' | b'\r' if !triple => return at,
            b'{' if formatted && braces == 0 && bytes.get(at + 1) == Some(&b'{') => at += 1,
            b'{' if formatted => braces += 1,
            b'}' if formatted => braces = braces.saturating_sub(1),
            _ if byte == mark && triple && bytes[at..].starts_with(&[mark; 3]) => return at + 3,
            _ if byte == mark && !triple => {
                // Since Python 3.12 the same quotes may be used in braces; they are closed before the brace is.
                let mut line =
                    bytes[at + 1..].iter().take_while(|byte| !matches!(byte, b'\n' | b'\r')).take(4096);
                match line.position(|&other| other == mark) {
                    Some(length) if braces > 0 => at += length + 1,
                    _ => return at + 1,
                }
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The length in bytes of the operator at the start of a text.
fn operator_length(rest: &[u8]) -> usize {
    const LONG: [&[u8]; 23] = [
        b"**=", b"//=", b">>=", b"<<=", b"...", b"->", b":=", b"==", b"!=", b"<=", b">=", b"+=", b"-=",
        b"*=", b"/=", b"%=", b"&=", b"|=", b"^=", b"@=", b"**", b"//", b"<<",
    ];
    LONG.iter().find(|operator| rest.starts_with(operator)).map_or(1, |operator| operator.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<Vec<&str>> {
        let lexed = lex(text);
        let of = |line: &LogicalLine| {
            let tokens = &lexed.tokens[line.first as usize..line.end as usize];
            tokens.iter().map(|token| &text[token.start as usize..token.end as usize]).collect()
        };
        lexed.lines.iter().map(of).collect()
    }

    #[test]
    fn tokens_in_logical_lines() {
        assert_eq!(
            shown("x = f(1,\n  2e-3) # c\n# d\nif a**b: pass\ny = \\\n  z\n"),
            [
                vec!["x", "=", "f", "(", "1", ",", "2e-3", ")", "# c"],
                vec!["# d"],
                vec!["if", "a", "**", "b", ":", "pass"],
                vec!["y", "=", "z"],
            ]
        );
    }

    #[test]
    fn strings() {
        assert_eq!(
            shown("a = rb'x' + \"it's\" + '''q\n'q'''\n")[0],
            ["a", "=", "rb'x'", "+", "\"it's\"", "+", "'''q\n'q'''"]
        );
        assert_eq!(shown("f'{x['a']}{{' b f\"{y:{w}}\" c\n")[0], ["f'{x['a']}{{'", "b", "f\"{y:{w}}\"", "c"]);
        assert_eq!(shown("x = 'open\ny\n"), [vec!["x", "=", "'open"], vec!["y"]]);
    }

    #[test]
    fn an_unclosed_bracket_ends_at_the_next_definition() {
        assert_eq!(shown("x = f(1,\n  def g(): pass\n").len(), 2);
        assert_eq!(lex("x = f(1,\n  def g(): pass\n").lines[1].indent, 2);
    }

    proptest::proptest! {
        #[test]
        fn tokens_cover_any_text_in_order(text in "[ab0é'\"{}f#()=\\\\\r\n\t \u{feff}.]{0,60}|\\PC{0,30}") {
            let lexed = lex(&text);
            let mut last = 0;
            for token in &lexed.tokens {
                let (start, end) = (token.start as usize, token.end as usize);
                proptest::prop_assert!(last <= start && start < end && text.get(start..end).is_some());
                let between = text[last..start].trim_start_matches('\u{feff}');
                proptest::prop_assert!(between.chars().all(|c| " \t\r\n\u{c}\\".contains(c)), "{:?}", between);
                last = end;
            }
            let mut next = 0;
            for line in &lexed.lines {
                proptest::prop_assert!(line.first == next && line.end > line.first);
                next = line.end;
            }
            proptest::prop_assert_eq!(next as usize, lexed.tokens.len());
        }
    }
}
