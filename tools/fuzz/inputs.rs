//! Inputs for the targets: arbitrary text, lines that look like Python, and mutations of real files.

use crate::Random;

/// Random text with many characters that have a meaning in selectors and Python.
pub(crate) fn text(random: &mut Random, most: usize) -> String {
    const FRAGMENTS: [&str; 40] = [
        "py://",
        "ast://",
        "anchor://",
        "sym://",
        "a.py",
        "#",
        "\"",
        "?v=",
        "git:",
        "sha256:",
        "@L1",
        ":C2",
        "@R(",
        "1,2",
        "->",
        ")",
        "[",
        "]",
        "=",
        "/",
        "def",
        "class",
        "module",
        "%20",
        "%",
        "\\",
        "é",
        "😀",
        "\n",
        "\t",
        " ",
        "'''",
        "(",
        "{",
        "f\"",
        ":",
        "0",
        "\u{feff}",
        "\r\n",
        "\0",
    ];
    (0..random.below(most)).map(|_| random.pick(&FRAGMENTS)).collect()
}

pub(crate) fn file(random: &mut Random, sources: &[String]) -> String {
    match random.below(if sources.is_empty() { 2 } else { 6 }) {
        0 => text(random, 3000),
        1 => python(random),
        _ => {
            let source = &sources[random.below(sources.len())];
            mutated(random, source)
        }
    }
}

/// Lines that look like Python.
fn python(random: &mut Random) -> String {
    const LINES: [&str; 16] = [
        "def f(a, b=1, *c, **d):",
        "class C(B):",
        "@x.setter",
        "async def g():",
        "self.x = y = 1",
        "if a:",
        "x = [1,",
        "'''doc",
        "'''",
        "# c",
        "return f(a)['b']",
        "X: int = 3",
        "for i in range(9):",
        "try:",
        "pass",
        "x = \\",
    ];
    let (lines, deepest) = (random.below(4000), random.below(80) + 1);
    (0..lines).map(|_| format!("{}{}\n", " ".repeat(random.below(deepest)), random.pick(&LINES))).collect()
}

pub(crate) fn mutated(random: &mut Random, text: &str) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    for _ in 0..random.below(12) {
        if lines.is_empty() {
            break;
        }
        let (at, to) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(8) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[to]),
            2 => lines.swap(at, to),
            3 => lines.truncate(at.max(1)),
            4 => lines.insert(
                at,
                random.pick(&["(", "'''\n", "\"", "}\n", "def f(x):\n", "  class C:\n", "\\\n", "\r"]),
            ),
            5 => lines.rotate_left(at),
            6 => {
                let block: Vec<&str> = lines.drain(at.min(to)..at.max(to)).collect();
                let place = random.below(lines.len() + 1);
                lines.splice(place..place, block);
            }
            _ => {
                let line = lines[at];
                let mut cut = random.below(line.len() + 1);
                while !line.is_char_boundary(cut) {
                    cut -= 1;
                }
                lines[at] = &line[..cut];
            }
        }
    }
    lines.concat()
}

/// The bytes with a few of them changed, deleted, duplicated or inserted.
pub(crate) fn damaged(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(20)).min(bytes.len());
        let byte = u8::try_from(random.below(256)).unwrap_or_default();
        match random.below(5) {
            0 => bytes.insert(at, byte),
            1 if at < bytes.len() => bytes[at] = byte,
            2 => drop(bytes.drain(at..end)),
            3 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                let number = random.pick(&[
                    "0",
                    "-1",
                    "99999999999999999999",
                    "1e999",
                    "null",
                    "\"..\"",
                    "[",
                    "\r\n",
                    "\0",
                ]);
                bytes.splice(at..end, number.bytes());
            }
        }
    }
    bytes
}
