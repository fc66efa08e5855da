//! `score`: scores code states against a base.

use clap::Args;

use super::diag::WithArgs;
use crate::cli::context::{CliContext, runtime};
use crate::cli::exit::ProgramExit;
use crate::cli::rewards;
use crate::cli::settings::CliSettings;
use crate::cli::signals;
use crate::engine::{self, ScoreHead, StateSource, is_revision};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::reward::Preset;
use crate::reward::episode::Episode;
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
}

/// Scores the heads.
pub(crate) fn run(args: &ScoreArgs, context: &mut CliContext) -> ProgramExit {
    match scored(args, context) {
        Ok(exit) => exit,
        Err(error) => context.fail(error),
    }
}

fn scored(args: &ScoreArgs, context: &CliContext) -> Result<ProgramExit, ErrorBody> {
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
    let (mut stopped, mut failed) = (None, None);
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let report = |episode: Episode| {
            let error = episode.error.as_ref().filter(|_| !episode.scored);
            failed = failed.or_else(|| error.map(|error| error.symbol));
            // After a failed print, such as to a closed pipe, nothing more is printed.
            stopped = stopped
                .or_else(|| Some(print(context, &episode)).filter(|exit| !matches!(exit, ProgramExit::Ok)));
        };
        engine::score(&engine_settings, &base, &heads, (&terms, &with), signals::interrupted(), report).await
    });
    runtime.shutdown_background();
    done.map(|()| stopped.or(failed.map(ProgramExit::Failed)).unwrap_or(ProgramExit::Ok))
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
