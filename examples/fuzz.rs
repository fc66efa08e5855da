//! Feeds arbitrary text and Python-like files to the selector parser and to relocation, for a time that is given.
//!
//! `cargo run --profile measure --example fuzz -- [--seconds N] [--seed N] [FOLDER…]`
//!
//! The files of the folders are mutated: lines dropped, doubled, swapped, cut, brackets and quotes put in, blocks moved. A
//! panic ends the program; an input that takes longer than five seconds, or a process of more than 500 MB, is a failure.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lanser::path::{AbsPath, WorkspacePath};
use lanser::resolve::index::{Index, Others};
use lanser::resolve::relocate::anchor::{head_of, heads, same_tokens, windows};
use lanser::resolve::relocate::{Before, Target, Verdict, relocate};
use lanser::selector::parse;
use lanser::text::ColumnUnit;
use lanser::workspace::files::Document;

const TOO_LONG: Duration = Duration::from_secs(5);
const TOO_MUCH: u64 = 500 << 20;

struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % count.max(1) as u64).unwrap_or_default()
    }

    fn pick<'p>(&mut self, list: &[&'p str]) -> &'p str {
        list[self.below(list.len())]
    }
}

fn main() -> ExitCode {
    let (mut seconds, mut seed, mut sources) = (60, 1, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|text| text.parse().ok()).unwrap_or_default();
        match arg.as_str() {
            "--seconds" => seconds = number(),
            "--seed" => seed = number(),
            folder => collect(std::path::Path::new(folder), &mut sources),
        }
    }
    let (began, mut random) = (Instant::now(), Random(seed));
    let (mut runs, mut slowest) = (0_u64, Duration::ZERO);
    while began.elapsed() < Duration::from_secs(seconds) {
        let at = random.0;
        let start = Instant::now();
        one(&mut random, &sources);
        runs += 1;
        slowest = slowest.max(start.elapsed());
        if start.elapsed() > TOO_LONG {
            eprintln!("the input of seed {at} took {:?}", start.elapsed());
            return ExitCode::FAILURE;
        }
    }
    let peak = peak_memory();
    println!("{runs} inputs in {seconds} s, the slowest {slowest:?}, at most {} MB", peak >> 20);
    if peak > TOO_MUCH { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn collect(folder: &std::path::Path, sources: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "py") {
            sources.extend(std::fs::read_to_string(path));
        }
    }
}

/// The most memory that this process had at once, where the operating system tells.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}

/// One input for everything.
fn one(random: &mut Random, sources: &[String]) {
    let selector = text(random, 40);
    if let Ok(spec) = parse(&selector, ColumnUnit::Codepoint) {
        let printed = spec.to_string();
        assert_eq!(parse(&printed, ColumnUnit::Codepoint).as_ref(), Ok(&spec), "{printed}");
    }
    let old = file(random, sources);
    let new = if random.below(3) == 0 { file(random, sources) } else { mutated(random, &old) };
    let other = if random.below(2) == 0 { mutated(random, &old) } else { file(random, sources) };
    let boundary = |mut at: usize| {
        while !old.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = random.below(old.len() + 1);
    let end = (start + random.below(200)).min(old.len());
    let span = boundary(start)..boundary(end).max(boundary(start));
    let document = |path: &str, text: &str| {
        let path = AbsPath::new(path).expect("an absolute path");
        Arc::new(Document::new(path, text.as_bytes().to_vec()))
    };
    let path = |text: &str| WorkspacePath::new(text).expect("a workspace path");
    let (current, elsewhere) = (document("/a.py", &new), document("/b.py", &other));
    let index = Index::of_texts([(path("a.py"), new.as_str()), (path("b.py"), other.as_str())]);
    let own = path("a.py");
    let before = match random.below(3) {
        0 => Before::Unknown,
        1 => Before::Absent,
        _ => Before::Text(mutated(random, &other).into()),
    };
    let others = Others {
        index: &index,
        own: Some(&own),
        read: |_: &WorkspacePath| Some(elsewhere.clone()),
        before: |_: &WorkspacePath| Some(before.clone()),
    };
    let target = Target { path: "a.py", text: &old, span: span.clone() };
    let current = Some(&current).filter(|_| random.below(5) > 0);
    match relocate(&target, current, &others) {
        Verdict::At(place) => assert!(place.document.text.get(place.span).is_some()),
        Verdict::Ambiguous(places) => {
            assert!(places.into_iter().all(|place| place.document.text.get(place.span).is_some()));
        }
        Verdict::Gone { .. } => {}
    }
    let snippet = &old[span];
    for (found, _) in windows(&new, snippet) {
        assert!(new.get(found).is_some());
    }
    for found in same_tokens(&new, snippet) {
        assert!(new.get(found).is_some());
    }
    if let Some((name, is_class)) = head_of(snippet) {
        for (found, _) in heads(&new, snippet, &name, is_class) {
            assert!(new.get(found).is_some());
        }
    }
}

/// Any text, with a liking for what selectors and Python give a meaning to.
fn text(random: &mut Random, most: usize) -> String {
    const PIECES: [&str; 40] = [
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
    (0..random.below(most)).map(|_| random.pick(&PIECES)).collect()
}

fn file(random: &mut Random, sources: &[String]) -> String {
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

fn mutated(random: &mut Random, text: &str) -> String {
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
