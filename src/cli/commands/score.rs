//! `score`: what an edit is worth against a state.

use clap::Args;

use crate::cli::context::{Context, runtime};
use crate::cli::exit::Exit;
use crate::cli::rewards;
use crate::cli::settings::Settings;
use crate::cli::signals;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::reward::Preset;
use crate::orchestrator::{self, Scored, Source};
use crate::reward::episode::Episode;
use crate::workspace::files::{canonical, read_bytes};

/// Arguments of `score`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
A state is a revision of git, a folder, or WORKTREE: the workspace as it is. A head can also be a file with a unified diff, a
WorkspaceEdit or a bundle with edits, which is made to the base. With several heads one line of JSON is printed for each.
Nothing in the workspace is touched: states are laid out in a temporary folder.
The default formula is rl-csf-guarded-v1; --preset rl-csf-v1 counts as a server counts, and pays for hiding.")]
pub(crate) struct ScoreArgs {
    /// The state to start from
    #[arg(long, value_name = "REV|DIR|WORKTREE", default_value = "HEAD")]
    pub(crate) base: String,

    /// The state to score; can be given several times
    #[arg(long, value_name = "REV|DIR|DIFF|WORKTREE", default_value = "WORKTREE")]
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
    let heads = args
        .head
        .iter()
        .map(|name| Ok(Scored { name: name.clone(), source: source(name, context, &settings)? }));
    let heads: Vec<Scored> = heads.collect::<Result<_, ErrorBody>>()?;
    let own = context.orchestrator_settings(&settings);
    let mut exit = Exit::Ok;
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let tell = |episode| {
            if matches!(exit, Exit::Ok) {
                exit = print(context, &episode);
            }
        };
        orchestrator::score(&own, &base, &heads, &terms, signals::interrupted(), tell).await
    });
    runtime.shutdown_background();
    done.map(|()| exit)
}

fn print(context: &Context, episode: &Episode) -> Exit {
    if context.json() {
        return context.printer.json_payload(episode);
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
    if !episode.visible {
        lines.push("  the checker had nothing to see here\n".to_owned());
    }
    context.printer.payload(&lines.concat())
}

/// What a word names: the working tree, a folder, a file with an edit, or a revision.
fn source(named: &str, context: &Context, settings: &Settings) -> Result<Source, ErrorBody> {
    if named == "WORKTREE" {
        return Ok(Source::Worktree(settings.root.clone()));
    }
    if let Some(revision) = named.strip_prefix("git:") {
        return Ok(Source::Revision(revision.to_owned()));
    }
    let path = context.env.absolute(named);
    if path.as_path().is_dir() {
        return Ok(Source::Folder(canonical(&path)));
    }
    if path.as_path().exists() {
        let content = read_bytes(&path).map_err(|error| {
            ErrorBody::new(ErrorSymbol::Usage, format!("{named} cannot be read: {error}"))
        })?;
        return Ok(Source::Edit(content));
    }
    Ok(Source::Revision(named.to_owned()))
}
