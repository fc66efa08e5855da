//! `score`: what an edit is worth against a state.

use clap::Args;

use crate::cli::context::{Context, runtime};
use crate::cli::exit::Exit;
use crate::cli::rewards;
use crate::cli::settings::Settings;
use crate::cli::signals;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::reward::Preset;
use crate::orchestrator::{self, Scored, Source, is_revision};
use crate::reward::episode::Episode;
use crate::workspace::files::{canonical, read_bytes};

/// What can be named.
const KINDS: &str = "name a revision, a folder, a bundle, a file with a diff, or WORKTREE";

/// Arguments of `score`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
A state is a revision of git, a folder, WORKTREE (the workspace as it is), or a bundle, by file or bundleId: the code that it was
asked about, with its own edit made. A head can also be a file with a unified diff, a WorkspaceEdit or a bundle with edits, which
is made to the base. rev:NAME is a revision and ./NAME a path, where NAME alone is both.
With several heads one line of JSON is printed for each. One that cannot be had or judged is told with \"scored\":false and its
error; the others are scored all the same, and the exit code is that of the first such error.
Nothing in the workspace is touched: states are laid out in a temporary folder.
The default formula is rl-csf-guarded-v1; --preset rl-csf-v1 counts as a server counts, and pays for hiding.")]
pub(crate) struct ScoreArgs {
    /// The state to start from
    #[arg(long, value_name = "REV|DIR|BUNDLE|WORKTREE", default_value = "HEAD")]
    pub(crate) base: String,

    /// The state to score; can be given several times
    #[arg(long, value_name = "REV|DIR|DIFF|BUNDLE|WORKTREE", default_value = "WORKTREE")]
    pub(crate) head: Vec<String>,
}

/// Scores the heads.
pub(crate) fn run(args: &ScoreArgs, context: &mut Context) -> Exit {
    match scored(args, context) {
        Ok(exit) => exit,
        Err(error) => context.fail(error),
    }
}

fn scored(args: &ScoreArgs, context: &Context) -> Result<Exit, ErrorBody> {
    let settings = context.settings()?;
    let terms = rewards::terms(context, Preset::Guarded)?;
    let base = source(&args.base, context, &settings)?;
    let heads = args.head.iter().map(|name| {
        let found = source(name, context, &settings);
        let source = found.unwrap_or_else(|error| Source::Missing(Box::new(error)));
        Scored { name: name.clone(), source }
    });
    let heads: Vec<Scored> = heads.collect();
    let own = context.orchestrator_settings(&settings);
    let (mut stopped, mut failed) = (None, None);
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let tell = |episode: Episode| {
            let error = episode.error.as_ref().filter(|_| !episode.scored);
            failed = failed.or_else(|| error.map(|error| error.symbol));
            // A reader that went away misses the rest.
            stopped =
                stopped.or_else(|| Some(print(context, &episode)).filter(|exit| !matches!(exit, Exit::Ok)));
        };
        orchestrator::score(&own, &base, &heads, &terms, signals::interrupted(), tell).await
    });
    runtime.shutdown_background();
    done.map(|()| stopped.or(failed.map(Exit::Failed)).unwrap_or(Exit::Ok))
}

fn print(context: &Context, episode: &Episode) -> Exit {
    if context.json() {
        return context.printer.json_payload(episode);
    }
    if let Some(error) = episode.error.as_ref().filter(|_| !episode.scored) {
        let hint = error.hint.as_ref().map(|hint| format!("  {hint}\n")).unwrap_or_default();
        let (head, symbol, message) = (&episode.head, error.symbol.as_str(), &error.message);
        return context.printer.payload(&format!("{head} is not scored: {symbol}: {message}\n{hint}"));
    }
    let number = |score: Option<crate::digest::Score>| {
        score.map_or_else(|| "none".to_owned(), |score| score.get().to_string())
    };
    let step = episode.steps.first().copied().unwrap_or_default();
    let mut lines = vec![format!(
        "{} {}: {} ({} diagnostics before, {} after; new {}, gone {})\n",
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
    if !episode.integrity_flags.is_empty() {
        lines.push(format!("  integrity: {}\n", episode.integrity_flags.join(", ")));
    }
    lines.extend(episode.warnings.iter().map(|warning| format!("  warning: {warning}\n")));
    if !episode.visible {
        lines.push("  the checker had nothing to see here\n".to_owned());
    }
    context.printer.payload(&lines.concat())
}

/// What a word names. Like git, it is not guessed which of two is meant.
fn source(named: &str, context: &Context, settings: &Settings) -> Result<Source, ErrorBody> {
    if named == "WORKTREE" {
        return Ok(Source::Worktree(settings.root.clone()));
    }
    if let Some(revision) = named.strip_prefix("rev:").or_else(|| named.strip_prefix("git:")) {
        return Ok(Source::Revision(revision.to_owned()));
    }
    let path = context.env.absolute(named);
    let is_path = ["./", "../", "/"].iter().any(|start| named.starts_with(start));
    if !path.as_path().exists() {
        if rewards::identifier(named).is_some() {
            return Ok(Source::Bundle(Box::new(rewards::load(named, context, settings)?)));
        }
        if is_path {
            let message = format!("{named} is not there");
            return Err(ErrorBody::new(ErrorSymbol::NotFound, message).hint(KINDS));
        }
        return Ok(Source::Revision(named.to_owned()));
    }
    let what = if path.as_path().is_dir() { "folder" } else { "file" };
    if !is_path && is_revision(&settings.root, named) {
        let message = format!("{named} is a {what} and a revision");
        let hint = format!("say rev:{named} for the revision, ./{named} for the {what}");
        return Err(ErrorBody::new(ErrorSymbol::Ambiguous, message).hint(hint));
    }
    if path.as_path().is_dir() {
        return Ok(Source::Folder(canonical(&path)));
    }
    let content = read_bytes(&path).map_err(|error| {
        ErrorBody::new(ErrorSymbol::Usage, format!("{named} cannot be read: {error}")).hint(KINDS)
    })?;
    Ok(rewards::read(&content).map_or(Source::Edit(content), |bundle| Source::Bundle(Box::new(bundle))))
}
