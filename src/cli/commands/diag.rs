//! `diag`: diagnostics.

use std::path::Path;

use clap::{Args, ValueEnum};

use crate::cli::context::CliContext;
use crate::cli::settings::{CliSettings, parse_analyzers};
use crate::engine::validate_request;
use crate::model::analyzer::AnalyzerKind;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Request, Severity};
use crate::path::{AbsPath, WorkspacePath, decode_percent};
use crate::python::not_found::near_files;
use crate::selector::parse;
use crate::text::ColumnUnit;
use crate::workspace::files::{DiskFiles, canonical};

/// Arguments of `diag`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DiagArgs {
    /// Files or folders, or a selector for a part of one [default: the whole workspace]
    pub(crate) targets: Vec<String>,

    /// List only diagnostics of this severity or worse; all are counted
    #[arg(long, value_name = "LEVEL", default_value = "information")]
    pub(crate) severity: Level,

    /// Exit with code 1 if there is a diagnostic of this severity or worse
    #[arg(long, value_name = "LEVEL")]
    pub(crate) fail_on: Option<FailOn>,

    /// Report only what is new since a git revision; implied by `--fail-on new-error`
    #[arg(long)]
    pub(crate) new: bool,

    /// Compare with this revision; implies --new [default: HEAD]
    #[arg(long, value_name = "REV")]
    pub(crate) base: Option<String>,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json", "sarif", "github"])]
    pub(crate) format: Option<String>,

    #[command(flatten)]
    pub(crate) with: WithArgs,
}

/// The analyzers besides the language server.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WithArgs {
    /// Add analyzers: `compile`, `ruff`, `mypy`, or `none`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) with: Option<Vec<String>>,
}

impl WithArgs {
    /// The analyzers, sorted: those of the option, otherwise those of the settings.
    ///
    /// # Errors
    /// If a name is unknown.
    pub(crate) fn analyzers(&self, settings: &CliSettings) -> Result<Vec<AnalyzerKind>, ErrorBody> {
        self.with.as_ref().map_or_else(|| Ok(settings.with.clone()), |names| parse_analyzers("--with", names))
    }
}

/// A severity on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// Everything, also unreachable and unused code
    Hint,
    /// Information and worse
    Information,
    /// Warnings and errors
    Warning,
    /// Errors only
    Error,
}

impl From<Level> for Severity {
    fn from(level: Level) -> Self {
        match level {
            Level::Hint => Self::Hint,
            Level::Information => Self::Information,
            Level::Warning => Self::Warning,
            Level::Error => Self::Error,
        }
    }
}

/// The value of `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    /// Any diagnostic
    Hint,
    /// Information and worse
    Information,
    /// Warnings and errors
    Warning,
    /// Errors only
    Error,
    /// Errors that are new: what `check` reports, and `diag --new`
    NewError,
}

impl From<FailOn> for Severity {
    fn from(level: FailOn) -> Self {
        match level {
            FailOn::Hint => Level::Hint.into(),
            FailOn::Information => Level::Information.into(),
            FailOn::Warning => Level::Warning.into(),
            FailOn::Error | FailOn::NewError => Level::Error.into(),
        }
    }
}

impl DiagArgs {
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        let mut options = context.options(settings);
        let severity = Severity::from(self.severity);
        options.severity = (severity != Severity::Information).then_some(severity);
        options.fail_on = self.fail_on.map(Severity::from);
        options.new = self.new || self.fail_on == Some(FailOn::NewError);
        options.base.clone_from(&self.base);
        options.with = self.with.analyzers(settings)?;
        let mut selector = None;
        match workspace_paths(&self.targets, context, settings) {
            Ok(paths) => options.paths = paths,
            Err(error) => match self.targets.as_slice() {
                [target] if !context.env.absolute(target).as_path().exists() && is_selector(target) => {
                    selector = Some(context.selector(target, settings)?);
                }
                _ => return Err(error),
            },
        }
        validate_request(Request::new(Command::Diagnostics, selector, None, options))
    }
}

/// Whether a text that is not an existing path looks like a selector.
pub(super) fn is_selector(target: &str) -> bool {
    target.contains("://")
        || target.contains(['@', ':'])
        || target.starts_with('{')
        || parse(target, ColumnUnit::default()).is_ok()
}

/// The paths relative to the workspace, sorted and without duplicates. A path is resolved in the current folder first, as
/// shells complete it, then in the workspace; then as answers print it. What is outside of the workspace does not count. The
/// workspace itself gives the empty list.
///
/// # Errors
/// If a path does not exist or is outside of the workspace.
pub(crate) fn workspace_paths(
    targets: &[String],
    context: &CliContext,
    settings: &CliSettings,
) -> Result<Vec<WorkspacePath>, ErrorBody> {
    let mut paths = Vec::new();
    for target in targets {
        // Answers print paths with percent signs.
        let printed = decode_percent(target).filter(|decoded| decoded != target);
        let places: Vec<_> = std::iter::once(target)
            .chain(&printed)
            .flat_map(|path| [context.env.absolute(path), settings.root.join(path)])
            .collect();
        let inside = |path: &AbsPath| path.strip_prefix(&settings.root).map(str::to_owned);
        // A link to a file of the workspace names that file.
        let in_workspace = |place: &AbsPath| inside(&canonical(place)).or_else(|| inside(place));
        let mut existing = places.iter().filter(|place| place.as_path().exists()).peekable();
        existing.peek().ok_or_else(|| {
            ErrorBody::new(ErrorSymbol::NotFound, format!("no such file or folder: {target:?}"))
                .hint("paths are relative to the workspace or to the current folder")
                .suggestions(near_paths(target, &places))
        })?;
        let relative = existing.find_map(in_workspace).ok_or_else(|| {
            ErrorBody::new(
                ErrorSymbol::NotFound,
                format!("{target:?} is outside of the workspace {}", settings.root),
            )
            .hint("set the workspace with --workspace")
        })?;
        match WorkspacePath::new(&relative) {
            Some(path) => paths.push(path),
            None => return Ok(Vec::new()),
        }
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Python files and folders with a name like that of a path that does not exist, as the path is written.
fn near_paths(target: &str, places: &[AbsPath]) -> Vec<String> {
    let files = DiskFiles::new();
    let in_folder = |place: &AbsPath| near_files(place, &files, true);
    let near = places.iter().map(in_folder).find(|near| !near.is_empty()).unwrap_or_default();
    let written = |name: &String| Path::new(target).with_file_name(name).to_string_lossy().into_owned();
    near.iter().map(written).collect()
}
