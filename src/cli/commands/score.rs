//! `score`: scores code states against a base.

use clap::Args;

use super::diag::WithArgs;
use crate::cli::context::{CliContext, runtime};
use crate::cli::exit::ProgramExit;
use crate::cli::output_file::OutputFile;
use crate::cli::report::{Report, ReportStep};
use crate::cli::rewards;
use crate::cli::settings::CliSettings;
use crate::cli::signals;
use crate::engine::{self, ScoreHead, StateSource, is_revision};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::reward::Preset;
use crate::reward::episode::Episode;
use crate::reward::numbers::numbers;
use crate::workspace::files::{canonical, read_bytes};

/// The hint of errors about a state that cannot be found or read.
const STATE_HINT: &str = "give a git revision, a folder, a bundle, a file with a diff, or WORKTREE";

/// Arguments of `score`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = "\
A state is a git revision, a folder, WORKTREE (the workspace as it is), or a bundle, by file or bundleId (the code that its \
request was about, with its edit applied). A head can also be a file with a unified diff, a WorkspaceEdit or a bundle with \
edits, which is applied to the base. If NAME is both a revision and a path, write rev:NAME or ./NAME.

Each head is printed as one line of JSON (--json) or text. A head that cannot be read or scored is printed with \
\"scored\":false and its error; the others are still scored, and the exit code is that of the first error. The workspace is not \
changed: states are checked out into a temporary folder.

The default formula is rl-csf-guarded-v1. --preset rl-csf-v1 only counts diagnostics, and so also rewards hiding them.")]
pub(crate) struct ScoreArgs {
    /// State to start from: revision, folder, bundle or WORKTREE
    #[arg(long, value_name = "STATE", default_value = "HEAD")]
    pub(crate) base: String,

    /// State to score, or a diff; can be given several times
    #[arg(long, value_name = "STATE", default_value = "WORKTREE")]
    pub(crate) head: Vec<String>,

    #[command(flatten)]
    pub(crate) with: WithArgs,

    /// Write the reward and its parts into this file, as one JSON object of numbers
    ///
    /// The file that verifiers of Harbor and terminal-bench tasks read, such as /logs/verifier/reward.json. Needs exactly one head.
    /// If the head gets no reward, there is no such file afterwards, and the exit code is not 0: a trial without a reward is not
    /// one with the reward 0.
    #[arg(long, value_name = "FILE")]
    pub(crate) rewards_json: Option<String>,

    /// Also write the scores as a page to look at: one HTML file without scripts
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<String>,
}

/// Scores the heads.
pub(crate) fn run(args: &ScoreArgs, context: &mut CliContext) -> ProgramExit {
    match scored(args, context) {
        Ok(exit) => exit,
        Err(error) => context.fail(error),
    }
}

fn scored(args: &ScoreArgs, context: &CliContext) -> Result<ProgramExit, ErrorBody> {
    let rewards_file =
        args.rewards_json.as_deref().map(|file| OutputFile::new("--rewards-json", file, context));
    if let Some(file) = &rewards_file {
        // Whatever fails from here on, a reward of an earlier run must not be taken for that of this one.
        file.remove()?;
        if args.head.len() != 1 {
            let message = format!("--rewards-json needs one head, and there are {}", args.head.len());
            return Err(ErrorBody::new(ErrorSymbol::Usage, message).hint("score the heads one by one"));
        }
    }
    let settings = context.settings()?;
    let terms = rewards::terms(context, Preset::Guarded)?;
    let with = args.with.analyzers(&settings)?;
    let base = source(&args.base, context, &settings)?;
    let heads = args.head.iter().map(|name| {
        let found = source(name, context, &settings);
        let source = found.unwrap_or_else(|error| StateSource::Missing(Box::new(error)));
        ScoreHead { name: name.clone(), source }
    });
    let heads: Vec<ScoreHead> = heads.collect();
    let engine_settings = context.engine_settings(&settings);
    let (mut stopped, mut failed, mut rewards) = (None, None, None);
    let mut steps = args.html.as_ref().map(|_| Vec::new());
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let report = |episode: Episode| {
            let error = episode.error.as_ref().filter(|_| !episode.scored);
            failed = failed.or_else(|| error.map(|error| error.symbol));
            rewards = numbers(&episode);
            if let Some(steps) = &mut steps {
                let source = heads.get(steps.len()).map(|head| &head.source);
                steps.push(ReportStep::of_episode(&episode, source.and_then(diff_of)));
            }
            // After a failed print, such as to a closed pipe, nothing more is printed.
            stopped = stopped
                .or_else(|| Some(print(context, &episode)).filter(|exit| !matches!(exit, ProgramExit::Ok)));
        };
        engine::score(&engine_settings, &base, &heads, (&terms, &with), signals::interrupted(), report).await
    });
    runtime.shutdown_background();
    done?;
    if let Some((file, steps)) = args.html.as_deref().zip(steps) {
        let facts = vec![("formula", terms.preset.as_str().to_owned()), ("base", args.base.clone())];
        let report = Report { title: "Scores against one base", facts, is_run: false, steps };
        OutputFile::new("--html", file, context).write(&report.to_html())?;
    }
    if let Some(file) = rewards_file {
        match rewards {
            Some(numbers) => {
                file.write(&format!("{}\n", serde_json::to_string(&numbers).unwrap_or_default()))?;
            }
            // Only a changed configuration gives no reward without an error.
            None => failed = failed.or(Some(ErrorSymbol::VersionSkew)),
        }
    }
    Ok(stopped.or(failed.map(ProgramExit::Failed)).unwrap_or(ProgramExit::Ok))
}

/// The diff of a head, if it is one.
fn diff_of(source: &StateSource) -> Option<String> {
    match source {
        StateSource::Edit(content) => std::str::from_utf8(content).ok().map(str::to_owned),
        StateSource::Bundle(bundle) => bundle.edits.as_ref().map(|edits| edits.diff.clone()),
        _ => None,
    }
}

fn print(context: &CliContext, episode: &Episode) -> ProgramExit {
    if context.json() {
        return context.printer.json_payload(episode);
    }
    if let Some(error) = episode.error.as_ref().filter(|_| !episode.scored) {
        let hint = error.hint.as_ref().map(|hint| format!("  {hint}\n")).unwrap_or_default();
        let (head, symbol, message) = (&episode.head, error.symbol.as_str(), &error.message);
        return context.printer.payload(&format!("{head} cannot be scored: {symbol}: {message}\n{hint}"));
    }
    let number = |score: Option<crate::digest::Score>| {
        score.map_or_else(|| "none".to_owned(), |score| score.get().to_string())
    };
    let step = episode.steps.first().copied().unwrap_or_default();
    let mut lines = vec![format!(
        "{} {}: {} (diagnostics: {} before, {} after; {} new, {} gone)\n",
        episode.preset.as_str(),
        episode.head,
        number(episode.reward),
        number(step.prev),
        number(step.cur),
        step.new,
        step.fixed
    )];
    if let Some(reason) = &episode.reason {
        lines.push(format!("  {reason}\n"));
    }
    let fates = episode.gone.map_or_else(Vec::new, |gone| gone.counts());
    if !fates.is_empty() {
        let fates: Vec<String> = fates.iter().map(|(fate, count)| format!("{count} {fate}")).collect();
        lines.push(format!("  gone: {}\n", fates.join(", ")));
    }
    for part in &episode.sources {
        let (before, after) = (part.prev.get(), part.cur.get());
        lines.push(format!("  {}: {before} before, {after} after\n", part.source.as_str()));
    }
    if !episode.integrity_flags.is_empty() {
        lines.push(format!("  integrity: {}\n", episode.integrity_flags.join(", ")));
    }
    lines.extend(episode.warnings.iter().map(|warning| format!("  warning: {warning}\n")));
    if !episode.visible {
        lines.push("  no diagnostics are affected by this change\n".to_owned());
    }
    context.printer.payload(&lines.concat())
}

/// The state that an argument names. As in git, an ambiguous name is an error.
pub(super) fn source(
    named: &str,
    context: &CliContext,
    settings: &CliSettings,
) -> Result<StateSource, ErrorBody> {
    if named == "WORKTREE" {
        return Ok(StateSource::Worktree(settings.root.clone()));
    }
    if let Some(revision) = named.strip_prefix("rev:").or_else(|| named.strip_prefix("git:")) {
        return Ok(StateSource::Revision(revision.to_owned()));
    }
    let path = context.env.absolute(named);
    let is_path = ["./", "../", "/"].iter().any(|start| named.starts_with(start));
    if !path.as_path().exists() {
        if rewards::identifier(named).is_some() {
            return Ok(StateSource::Bundle(Box::new(rewards::load(named, context, settings)?)));
        }
        if is_path {
            let message = format!("{named} does not exist");
            return Err(ErrorBody::new(ErrorSymbol::NotFound, message).hint(STATE_HINT));
        }
        return Ok(StateSource::Revision(named.to_owned()));
    }
    let what = if path.as_path().is_dir() { "folder" } else { "file" };
    if !is_path && is_revision(&settings.root, named) {
        let message = format!("{named} is both a {what} and a revision");
        let hint = format!("write rev:{named} for the revision or ./{named} for the {what}");
        return Err(ErrorBody::new(ErrorSymbol::Ambiguous, message).hint(hint));
    }
    if path.as_path().is_dir() {
        return Ok(StateSource::Folder(canonical(&path)));
    }
    let content = read_bytes(&path).map_err(|error| {
        ErrorBody::new(ErrorSymbol::Usage, format!("cannot read {named}: {error}")).hint(STATE_HINT)
    })?;
    if !rewards::claims_to_be_bundle(&content) {
        return Ok(StateSource::Edit(content));
    }
    Ok(StateSource::Bundle(Box::new(rewards::read_named(named, &content)?)))
}
