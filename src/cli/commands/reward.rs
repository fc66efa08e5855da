//! `reward`: the rewards of steps, computed from stored bundles.

use std::io::{BufRead, BufReader};

use clap::Args;
use serde::Serialize;

use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::cli::output_file::OutputFile;
use crate::cli::report::{Report, ReportStep};
use crate::cli::rewards;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::reward::{Preset, ProcessReward};
use crate::reward::recomputed;
use crate::reward::run::RewardRun;
use crate::text::BoundedLines;

/// The longest line that is read as a bundle.
const MAX_LINE_BYTES: usize = 256 << 20;

/// The size of the output buffer.
const OUTPUT_BUFFER_BYTES: usize = 1 << 16;

/// Arguments of `reward`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = "\
With --next, prints the reward of the step from --prev to that bundle, or of the bundle by itself without --prev. With --run, \
prints one line of JSON per step and one for the whole run; steps of a run on standard input are printed as they come. An invalid line is reported with its number and skipped, and the \
exit code is then 2.

Rewards are computed from the facts in the bundles, so --preset and --weights need not be those the bundles were made with.")]
pub(crate) struct RewardArgs {
    /// Bundle that the step leads to: a file or a `bundleId`
    #[arg(long, value_name = "BUNDLE", required_unless_present = "run", conflicts_with = "run")]
    pub(crate) next: Option<String>,

    /// File with the bundles of a run, one per line; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "prev")]
    pub(crate) run: Option<String>,

    /// Also write the run as a page to look at: one HTML file without scripts
    #[arg(long, value_name = "FILE", requires = "run")]
    pub(crate) html: Option<String>,
}

/// A line that is not a bundle.
#[derive(Serialize)]
struct Malformed<'m> {
    line: u64,
    malformed: &'m str,
}

/// Prints the rewards.
pub(crate) fn run(args: &RewardArgs, context: &mut CliContext) -> ProgramExit {
    let exit = match (&args.next, &args.run) {
        (Some(next), _) => step_reward(next, context),
        (None, Some(file)) => run_rewards(file, args.html.as_deref(), context),
        (None, None) => Err(ErrorBody::new(ErrorSymbol::Usage, "no bundle is given")
            .hint("give a bundle with --next, or a run with --run")),
    };
    exit.unwrap_or_else(|error| context.fail(error))
}

fn step_reward(next: &str, context: &CliContext) -> Result<ProgramExit, ErrorBody> {
    let settings = context.settings()?;
    let terms = rewards::terms(context, Preset::default())?;
    let next = rewards::load(next, context, &settings)?;
    let previous =
        context.global.prev.as_deref().map(|named| rewards::load(named, context, &settings)).transpose()?;
    let reward = recomputed(&next, previous.as_ref(), &terms);
    if context.json() {
        return Ok(context.printer.json_payload(&reward));
    }
    Ok(context.printer.payload(&reward_text(&reward)))
}

fn reward_text(reward: &ProcessReward) -> String {
    let r = reward.r.map_or_else(
        || format!("none ({})", reward.reason.as_deref().unwrap_or("unknown")),
        |r| r.get().to_string(),
    );
    let flags: Vec<String> =
        reward.integrity.flags().into_iter().map(|(name, count)| format!("{name} {count}")).collect();
    let flags = if flags.is_empty() { String::new() } else { format!("integrity: {}\n", flags.join(", ")) };
    format!("{} {r}\n{}\n{flags}", reward.version.as_str(), reward.explanation)
}

fn run_rewards(file: &str, html: Option<&str>, context: &CliContext) -> Result<ProgramExit, ErrorBody> {
    let terms = rewards::terms(context, Preset::default())?;
    let unreadable = |error: std::io::Error| {
        ErrorBody::new(ErrorSymbol::NotFound, format!("cannot read the run {file}: {error}"))
            .hint("give a file with one bundle per line, or `-` for standard input")
    };
    // A program that writes bundles one by one reads the reward of each before it writes the next.
    let is_stream = file == "-";
    let reader: Box<dyn BufRead> = if is_stream {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        let path = context.env.absolute(file);
        Box::new(BufReader::new(std::fs::File::open(path.as_path()).map_err(unreadable)?))
    };
    let mut run = RewardRun::new(terms);
    let mut lines = BoundedLines::new(reader, MAX_LINE_BYTES);
    let (mut out, mut any_malformed) = (String::new(), false);
    let mut report = html.map(|_| Report { title: "Rewards of a run", is_run: true, ..Report::default() });
    while let Some(fits) = lines.advance().map_err(unreadable)? {
        let (line, number) = (lines.line(), lines.number());
        if fits && line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let bundle =
            if fits { rewards::read(line) } else { Err(format!("it is longer than {MAX_LINE_BYTES} bytes")) };
        let output = match bundle {
            Ok(bundle) => {
                let described = report.as_ref().map(|_| ReportStep::of_bundle(&bundle));
                let step = run.next(bundle);
                if let Some((report, described)) = report.as_mut().zip(described) {
                    report.steps.push(described.with_reward(&step));
                }
                serde_json::to_string(&step)
            }
            Err(why) => {
                run.skip_malformed();
                any_malformed = true;
                context.printer.complain(&format!("error: line {number} is not a bundle: {why}"));
                serde_json::to_string(&Malformed { line: number, malformed: &why })
            }
        };
        out.push_str(&output.unwrap_or_default());
        out.push('\n');
        if is_stream || out.len() >= OUTPUT_BUFFER_BYTES {
            match context.printer.payload(&std::mem::take(&mut out)) {
                ProgramExit::Ok => {}
                ended => return Ok(ended),
            }
        }
    }
    let total = run.total();
    if let Some((file, report)) = html.zip(report.as_mut()) {
        report.facts = vec![
            ("formula", total.preset.as_str().to_owned()),
            ("sum of the rewards", total.reward.get().to_string()),
            ("malformed lines", total.malformed.to_string()),
        ];
        OutputFile::new("--html", file, context).write(&report.to_html())?;
    }
    out.push_str(&serde_json::to_string(&total).unwrap_or_default());
    out.push('\n');
    Ok(match context.printer.payload(&out) {
        ProgramExit::Ok if any_malformed => ProgramExit::Failed(ErrorSymbol::Usage),
        ended => ended,
    })
}
