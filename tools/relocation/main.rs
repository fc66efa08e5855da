//! Measures relocation: selectors made in an old state of a project, resolved in a newer one.
//!
//! `cargo run --profile measure --features tools --example relocation -- [--seed N] [--most N] [--show CATEGORY] OLD=NEW… [--scripted FOLDER…]`
//!
//! `OLD=NEW` are two releases of one project. The true location of a target in the newer one is determined by independent evidence
//! (see `truth.rs`), never by lanser's own matching. `--scripted` applies seeded refactorings to real code, so that the truth is
//! known by construction (see `scripted.rs`). Lanser is compared with three baselines: the same line and column, a diff of the file,
//! and the line of the new release that is most similar to the target's line.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

mod answers;
mod baselines;
mod cases;
mod scripted;
mod truth;
mod unversioned;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use answers::{Answer, Known};
use cases::{Case, Tree};

const USAGE: &str = "usage: relocation [--seed N] [--most N] [--show CATEGORY] OLD=NEW… [--scripted FOLDER…]";

/// The counts of one category and one method.
#[derive(Default, Clone, Copy)]
struct Count {
    cases: usize,
    right: usize,
    /// Answered without a flag, but wrong.
    wrong: usize,
    /// Of those, the ones reported as certain.
    certain: usize,
    /// Reported as ambiguous or uncertain.
    flagged: usize,
}

/// Lanser with each kind of version, and the baselines.
const METHODS: [&str; 5] = ["git", "sha256", "raw", "diff", "fuzzy"];

type Table = BTreeMap<(String, &'static str), Count>;

fn main() -> ExitCode {
    let (mut seed, mut most, mut show) = (1, 300, None);
    let (mut pairs, mut folders, mut scripted) = (Vec::new(), Vec::new(), false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|text| text.parse().ok()).unwrap_or_default();
        match arg.as_str() {
            "--seed" => seed = number(),
            "--most" => most = usize::try_from(number()).unwrap_or_default(),
            "--show" => show = args.next(),
            "--scripted" => scripted = true,
            folder if scripted => folders.push(folder.to_owned()),
            pair => match pair.split_once('=') {
                Some((old, new)) => pairs.push((old.to_owned(), new.to_owned())),
                None => {
                    eprintln!("{USAGE}");
                    return ExitCode::from(2);
                }
            },
        }
    }
    let (mut table, mut alone) = (Table::new(), Table::new());
    for (old, new) in &pairs {
        let (old, new) = (Tree::read(Path::new(old)), Tree::read(Path::new(new)));
        let cases = truth::cases(&old, &new, seed, most);
        eprintln!("{} files, {} cases", old.files.len(), cases.len());
        run(&old, &new, &cases, &mut table, show.as_deref());
        unversioned::run(&old, &new, &cases, &mut alone, show.as_deref());
    }
    print(&table, "real histories, with a version", &METHODS);
    print(&alone, "real histories, by the selector alone", &unversioned::FORMS);
    print(&in_short(&table), "in short, with a version", &METHODS);
    print(&in_short(&alone), "in short, by the selector alone", &unversioned::FORMS);
    let mut table = Table::new();
    for folder in &folders {
        let old = Tree::read(Path::new(folder));
        let mut count = 0;
        for (new, cases) in scripted::changes(&old, seed, most) {
            count += cases.len();
            run(&old, &new, &cases, &mut table, show.as_deref());
        }
        eprintln!("{folder}: {count} scripted cases");
    }
    print(&table, "scripted refactorings", &METHODS);
    ExitCode::SUCCESS
}

/// Answers every case with every method.
fn run(old: &Tree, new: &Tree, cases: &[Case], table: &mut Table, show: Option<&str>) {
    let index = answers::index(new);
    for case in cases {
        let methods: [(&'static str, Answer); 5] = [
            ("git", answers::lanser(&index, old, new, case, Known::Everything)),
            ("sha256", answers::lanser(&index, old, new, case, Known::OwnFile)),
            ("raw", baselines::raw(new, case)),
            ("diff", baselines::diff(old, new, case)),
            ("fuzzy", baselines::fuzzy(new, case)),
        ];
        for (way, answer) in methods {
            record(table, new, case, way, &answer, show.filter(|_| ["git", "sha256"].contains(&way)));
        }
    }
}

/// Counts an answer, and prints it if it is not right and its category was requested.
fn record(
    table: &mut Table,
    new: &Tree,
    case: &Case,
    way: &'static str,
    answer: &Answer,
    show: Option<&str>,
) {
    let verdict = case.judge(new, answer);
    if show.is_some_and(|show| case.category.starts_with(show)) && verdict != "right" {
        println!(
            "{verdict:>8} {way} {} {}\n         truth {}\n         {}",
            case.category,
            case.what,
            case.shown(new),
            answer.told
        );
    }
    let count = table.entry((case.category.clone(), way)).or_default();
    count.cases += 1;
    count.right += usize::from(verdict == "right");
    count.wrong += usize::from(verdict == "wrong" || verdict == "certain");
    count.certain += usize::from(verdict == "certain");
    count.flagged += usize::from(verdict == "flagged");
}

/// A summary table: statements are merged with the definitions that contain them.
fn in_short(table: &Table) -> Table {
    let mut short = Table::new();
    for ((category, way), count) in table {
        let category = category.trim_end_matches(": statement").trim_end_matches(" and edited");
        let sum = short.entry((category.to_owned(), *way)).or_default();
        sum.cases += count.cases;
        sum.right += count.right;
        sum.wrong += count.wrong;
        sum.certain += count.certain;
        sum.flagged += count.flagged;
    }
    short
}

fn print<const N: usize>(table: &Table, title: &str, methods: &[&'static str; N]) {
    if table.is_empty() {
        return;
    }
    println!("\n{title}: right % (wrong without a flag %; of all cases wrong and certified %)\n");
    println!("| category | cases | {} |\n|---|---|{}", methods.join(" | "), "---|".repeat(N));
    let categories: std::collections::BTreeSet<&String> =
        table.keys().map(|(category, _)| category).collect();
    let row = |name: &str, counts: [Count; N]| {
        let cells = counts.map(|count| {
            let share = |part: usize| 100.0 * part as f64 / count.cases.max(1) as f64;
            format!("{:.1} ({:.1}; {:.1})", share(count.right), share(count.wrong), share(count.certain))
        });
        let cases = counts.iter().map(|count| count.cases).max().unwrap_or_default();
        println!("| {name} | {cases} | {} |", cells.join(" | "));
    };
    let mut all = [Count::default(); N];
    for category in categories {
        let counts = methods.map(|way| table.get(&(category.clone(), way)).copied().unwrap_or_default());
        for (sum, count) in all.iter_mut().zip(counts) {
            sum.cases += count.cases;
            sum.right += count.right;
            sum.wrong += count.wrong;
            sum.certain += count.certain;
        }
        row(category, counts);
    }
    row("all", all);
}
