//! `skill install|print|hook`: the instructions for agents, and the hook of Claude Code.

use std::fmt::Write as _;
use std::io::Read as _;

use clap::{Args, CommandFactory as _, Subcommand};
use serde::Serialize;

use crate::cli::Cli;
use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::cli::settings::CliSettings;
use crate::cli::skill::claude_settings::{SETTINGS_FILE, snippet, with_hook};
use crate::cli::skill::{FOREIGN, SKILL_FILE, grep_hook, is_own, render};
use crate::digest::Digest;
use crate::engine::write_files;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::{AbsPath, WorkspacePath};
use crate::schema::commands;
use crate::text::plural;
use crate::text::shell::shell_quote;
use crate::workspace::files::{ReadError, canonical, read_bytes};
use crate::workspace::transaction::{Change, SKILL_INSTALLATION};

/// The longest input of a hook that is read.
const HOOK_INPUT_LIMIT: u64 = 1 << 20;

/// The verbs of `skill`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SkillSubcommand {
    /// Write the skill into the workspace
    Install(SkillInstallArgs),
    /// Print the skill
    Print(PrintArgs),
    /// Answer a hook of Claude Code, on standard input
    #[command(hide = true)]
    Hook,
}

/// Arguments of `skill install`.
#[derive(Debug, Clone, Args)]
pub(crate) struct SkillInstallArgs {
    /// Write .agents/skills/lanser/SKILL.md (the default)
    #[arg(long)]
    agents: bool,

    /// Write .claude/skills/lanser/SKILL.md, and a hook into .claude/settings.json
    #[arg(long)]
    claude: bool,

    /// Write .github/skills/lanser/SKILL.md
    #[arg(long)]
    copilot: bool,

    /// Write into the home folder instead, for all projects
    #[arg(long)]
    user: bool,

    /// Replace a skill that lanser did not write
    #[arg(long)]
    force: bool,
}

/// Arguments of `skill print`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PrintArgs {
    /// Print the settings with the hook of Claude Code instead
    #[arg(long)]
    hook: bool,
}

/// The JSON output of `skill install`.
#[derive(Debug, Serialize)]
struct SkillInstallation {
    /// The folder that the paths are relative to.
    root: String,
    files: Vec<InstalledFile>,
    /// `null` if nothing had to be written.
    transaction: Option<String>,
}

/// A file of the skill.
#[derive(Debug, Serialize)]
struct InstalledFile {
    path: String,
    change: FileState,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FileState {
    Created,
    Modified,
    Unchanged,
}

/// Runs a verb of `skill`.
pub(crate) fn run(command: &SkillSubcommand, context: &mut CliContext) -> ProgramExit {
    match command {
        SkillSubcommand::Print(args) if args.hook => context.printer.payload(&snippet()),
        SkillSubcommand::Print(_) => context.printer.payload(&skill()),
        SkillSubcommand::Install(args) => install(args, context).unwrap_or_else(|error| context.fail(error)),
        SkillSubcommand::Hook => hook(context),
    }
}

fn skill() -> String {
    render(&commands(&Cli::command()))
}

/// Whatever goes wrong, the agent's search goes on: there is no output then, and the exit code is 0.
fn hook(context: &CliContext) -> ProgramExit {
    let mut input = Vec::new();
    let read = std::io::stdin().lock().take(HOOK_INPUT_LIMIT).read_to_end(&mut input);
    match read.ok().and_then(|_| grep_hook::answer(&input)) {
        Some(output) => context.printer.payload(&output),
        None => ProgramExit::Ok,
    }
}

fn install(args: &SkillInstallArgs, context: &CliContext) -> Result<ProgramExit, ErrorBody> {
    let mut settings = context.settings()?;
    if args.user {
        let home = context.env.var("HOME").and_then(|home| AbsPath::new(home).ok());
        let missing = || ErrorBody::new(ErrorSymbol::Usage, "there is no home folder: HOME is not set");
        settings.root = canonical(&home.ok_or_else(missing)?);
    }
    let (files, writes): (Vec<_>, Vec<_>) = planned(args, &settings.root)?.into_iter().unzip();
    let writes: Vec<Change> = writes.into_iter().flatten().collect();
    let transaction = match writes.is_empty() {
        true => None,
        false => Some(write(context, &settings, writes)?),
    };
    let done = SkillInstallation { root: settings.root.to_string(), files, transaction };
    Ok(match context.json() {
        true => context.printer.json_payload(&done),
        false => context.printer.payload(&report(&done, args.user)),
    })
}

fn write(context: &CliContext, settings: &CliSettings, writes: Vec<Change>) -> Result<String, ErrorBody> {
    let settings = context.engine_settings(settings);
    let written = write_files(&settings, SKILL_INSTALLATION, writes).map_err(|error| ErrorBody {
        hint: error.hint.filter(|hint| !hint.contains("--workspace-jail")),
        ..error
    })?;
    Ok(written.id)
}

/// The files, each with the change that is needed.
fn planned(
    args: &SkillInstallArgs,
    root: &AbsPath,
) -> Result<Vec<(InstalledFile, Option<Change>)>, ErrorBody> {
    let copilot = if args.user { ".copilot" } else { ".github" };
    let agents = args.agents || !(args.claude || args.copilot);
    let folders = [(agents, ".agents"), (args.claude, ".claude"), (args.copilot, copilot)];
    let mut changes = Vec::new();
    for (_, folder) in folders.into_iter().filter(|(wanted, _)| *wanted) {
        let path = format!("{folder}/skills/{SKILL_FILE}");
        let current = current(root, &path)?;
        if current.as_ref().is_some_and(|text| !args.force && !is_own(text)) {
            let message =
                format!("nothing was written: {path} was not written by lanser, or was changed since");
            return Err(ErrorBody::new(FOREIGN, message).hint("--force replaces it"));
        }
        changes.push(change(path, current, skill()));
    }
    if args.claude {
        let path = format!(".claude/{SETTINGS_FILE}");
        let current = current(root, &path)?;
        let content = with_hook(current.as_deref().unwrap_or_default()).map_err(|error| {
            ErrorBody::new(
                FOREIGN,
                format!("nothing was written: the hook cannot be added to {path}: {error}"),
            )
            .hint("add it by hand; `lanser skill print --hook` prints it")
        })?;
        changes.push(change(path, current, content));
    }
    Ok(changes)
}

fn change(path: String, current: Option<String>, content: String) -> (InstalledFile, Option<Change>) {
    let state = match &current {
        None => FileState::Created,
        Some(current) if *current == content => FileState::Unchanged,
        Some(_) => FileState::Modified,
    };
    let written = WorkspacePath::new(&path).filter(|_| state != FileState::Unchanged);
    let before = current.as_ref().map(|text| Digest::of(text.as_bytes()));
    let write =
        written.map(|path| Change::Write { path, before, content: content.into_bytes(), executable: None });
    (InstalledFile { path, change: state }, write)
}

/// The content of a file; `None` if it does not exist. Nothing outside of the folder is read.
fn current(root: &AbsPath, path: &str) -> Result<Option<String>, ErrorBody> {
    let file = root.join(path);
    let real = canonical(&file);
    let nothing = |symbol, why: &str| ErrorBody::new(symbol, format!("nothing was written: {path} {why}"));
    let is_link = |at: &AbsPath| at.as_path().symlink_metadata().is_ok_and(|data| data.is_symlink());
    if real.strip_prefix(root).is_none() {
        return Err(nothing(ErrorSymbol::Jail, &format!("leads to {real}, outside of {root}")));
    }
    if is_link(&real) {
        return Err(nothing(ErrorSymbol::Jail, "is a link to a file that does not exist"));
    }
    match read_bytes(&file) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(nothing(FOREIGN, "is not UTF-8")),
        },
        Err(ReadError::Missing { .. }) => Ok(None),
        Err(error) => Err(nothing(ErrorSymbol::FsPermissions, &format!("cannot be read: {error}"))),
    }
}

fn report(done: &SkillInstallation, user: bool) -> String {
    let mark = |state| match state {
        FileState::Created => "A",
        FileState::Modified => "M",
        FileState::Unchanged => "=",
    };
    let mut text: String =
        done.files.iter().map(|file| format!("{} {}\n", mark(file.change), file.path)).collect();
    match &done.transaction {
        None => text.push_str("up to date\n"),
        Some(id) => {
            let written = done.files.iter().filter(|file| file.change != FileState::Unchanged).count();
            let folder = if user { format!("-C {} ", shell_quote(&done.root)) } else { String::new() };
            let _ = writeln!(text, "wrote {} in {}", plural(written, "file"), done.root);
            let _ = writeln!(text, "to undo: lanser {folder}undo {id}");
        }
    }
    text
}
