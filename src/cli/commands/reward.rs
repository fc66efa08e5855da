//! `reward`: what steps are worth, from stored bundles alone, by any formula.

use std::io::{BufRead, BufReader};

use clap::Args;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::rewards;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::reward::{Preset, ProcessReward};
use crate::reward::recomputed;
use crate::reward::run::Run;
use crate::text::BoundedLines;

/// A longer line is no bundle.
const MAX_LINE: usize = 256 << 20;

/// How much is collected before it is written.
const WRITTEN_AT: usize = 1 << 16;

/// Arguments of `reward`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
With --next the reward of the step from --prev to it is printed (without --prev: of the step that it is by itself).
With --run every line is one bundle; one line of JSON is printed for each step, and one for the whole. A line that is no
bundle is told by its number, left out, and makes the command end with exit code 2.
The rewards are computed again from what the bundles say, so --preset and --weights may be any.")]
pub(crate) struct RewardArgs {
    /// The bundle that the step leads to: a file or a `bundleId`
    #[arg(long, value_name = "BUNDLE", required_unless_present = "run", conflicts_with = "run")]
    pub(crate) next: Option<String>,

    /// A file with one bundle on each line, in the order of the run; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "prev")]
    pub(crate) run: Option<String>,
}

/// A line that is no bundle.
#[derive(Serialize)]
struct Malformed<'m> {
    line: u64,
    malformed: &'m str,
}

/// Tells the rewards.
pub(crate) fn run(args: &RewardArgs, context: &mut Context) -> Exit {
    let told = match (&args.next, &args.run) {
        (Some(next), _) => one(next, context),
        (None, Some(file)) => many(file, context),
        (None, None) => Err(ErrorBody::new(ErrorSymbol::Usage, "there is no bundle")
            .hint("name one with --next, or a run with --run")),
    };
    told.unwrap_or_else(|error| context.fail(error))
}

fn one(next: &str, context: &Context) -> Result<Exit, ErrorBody> {
    let settings = context.settings()?;
    let terms = rewards::terms(context, Preset::default())?;
    let next = rewards::load(next, context, &settings)?;
    let previous =
        context.global.prev.as_deref().map(|named| rewards::load(named, context, &settings)).transpose()?;
    let reward = recomputed(&next, previous.as_ref(), &terms);
    if context.json() {
        return Ok(context.printer.json_payload(&reward));
    }
    Ok(context.printer.payload(&in_words(&reward)))
}

fn in_words(reward: &ProcessReward) -> String {
    let r = reward.r.map_or_else(
        || format!("none ({})", reward.reason.as_deref().unwrap_or("unknown")),
        |r| r.get().to_string(),
    );
    let flags: Vec<String> =
        reward.integrity.flags().into_iter().map(|(name, count)| format!("{name} {count}")).collect();
    let flags = if flags.is_empty() { String::new() } else { format!("integrity: {}\n", flags.join(", ")) };
    format!("{} {r}\n{}\n{flags}", reward.version.as_str(), reward.explanation)
}

fn many(file: &str, context: &Context) -> Result<Exit, ErrorBody> {
    let terms = rewards::terms(context, Preset::default())?;
    let unreadable = |error: std::io::Error| {
        ErrorBody::new(ErrorSymbol::NotFound, format!("the run {file} cannot be read: {error}"))
            .hint("name a file with one bundle on each line, or `-` for standard input")
    };
    let reader: Box<dyn BufRead> = if file == "-" {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        let path = context.env.absolute(file);
        Box::new(BufReader::new(std::fs::File::open(path.as_path()).map_err(unreadable)?))
    };
    let mut run = Run::new(terms);
    let mut lines = BoundedLines::new(reader, MAX_LINE);
    let (mut out, mut wrong) = (String::new(), false);
    while let Some(fits) = lines.advance().map_err(unreadable)? {
        let (line, number) = (lines.line(), lines.number());
        if fits && line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let bundle =
            if fits { rewards::read(line) } else { Err(format!("it is longer than {MAX_LINE} bytes")) };
        let told = match bundle {
            Ok(bundle) => serde_json::to_string(&run.next(bundle)),
            Err(why) => {
                run.skip();
                wrong = true;
                context.printer.complain(&format!("error: line {number} is no bundle: {why}"));
                serde_json::to_string(&Malformed { line: number, malformed: &why })
            }
        };
        out.push_str(&told.unwrap_or_default());
        out.push('\n');
        if out.len() >= WRITTEN_AT {
            match context.printer.payload(&std::mem::take(&mut out)) {
                Exit::Ok => {}
                ended => return Ok(ended),
            }
        }
    }
    out.push_str(&serde_json::to_string(&run.total()).unwrap_or_default());
    out.push('\n');
    Ok(match context.printer.payload(&out) {
        Exit::Ok if wrong => Exit::Failed(ErrorSymbol::Usage),
        ended => ended,
    })
}
