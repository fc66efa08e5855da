//! Inputs for the targets: arbitrary text, lines that look like Python, and mutations of real files.

use serde_json::Value;

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

/// The value with a few of its parts replaced, removed, repeated or moved. What can be read as JSON stays so, and reaches the code
/// behind the JSON reader.
pub(crate) fn changed(random: &mut Random, value: &Value, words: &[&str]) -> Value {
    let mut value = value.clone();
    for _ in 0..random.below(4) + 1 {
        let other = any_part(random, &mut value).clone();
        let part = any_part(random, &mut value);
        match random.below(8) {
            0 => *part = other,
            1 => *part = Value::Null,
            2 => *part = Value::from(random.pick(words)),
            3 => *part = number(random),
            4 => *part = Value::from(text(random, 12)),
            5 => match part {
                Value::Array(list) if !list.is_empty() => drop(list.remove(random.below(list.len()))),
                Value::Object(map) if !map.is_empty() => {
                    let key = map.keys().nth(random.below(map.len())).cloned().unwrap_or_default();
                    map.remove(&key);
                }
                _ => *part = Value::Array(vec![other]),
            },
            6 => match part {
                Value::Array(list) => list.insert(random.below(list.len() + 1), other),
                Value::Object(map) => drop(map.insert(random.pick(words).to_owned(), other)),
                _ => *part = Value::Bool(false),
            },
            _ => {
                if let Value::String(string) = part {
                    *string = String::from_utf8_lossy(&damaged(random, string.as_bytes())).into_owned();
                }
            }
        }
    }
    value
}

fn number(random: &mut Random) -> Value {
    match random.below(4) {
        0 => Value::from(random.below(4)),
        1 => Value::from(u64::MAX - random.below(2) as u64),
        2 => Value::from(-1),
        _ => Value::from(0.5),
    }
}

/// A part of a value: the value itself, a member, or a member of a member.
fn any_part<'v>(random: &mut Random, value: &'v mut Value) -> &'v mut Value {
    let length = match &*value {
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    if length == 0 || random.below(5) == 0 {
        return value;
    }
    let index = random.below(length);
    match value {
        Value::Array(list) => any_part(random, &mut list[index]),
        Value::Object(map) => {
            any_part(random, map.values_mut().nth(index).expect("because the index is below the length"))
        }
        scalar => scalar,
    }
}
