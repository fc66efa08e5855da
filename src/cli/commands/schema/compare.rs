//! `schema diff`: whether a change of a schema is compatible.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;

use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::schema::diff::{Compatibility, SchemaChange, diff};
use crate::schema::{self, SchemaKind};
use crate::text::plural;

/// Arguments of `schema diff`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = "\
Keywords are compared by their meaning, descriptions are ignored. `backward`: every document that is valid under OLD is valid \
under NEW, as for files that are kept. `forward`: every document that is valid under NEW is valid under OLD, as for programs \
that are not updated.

Exit codes: 0 compatible; 1 breaking.

Example:
  lanser schema diff bundle@1.4 bundle")]
pub(crate) struct DiffArgs {
    /// Schema file, or a kind such as `bundle`, or an earlier version of one, such as `bundle@1.4`
    pub(crate) old: String,

    /// The same, for the changed schema
    pub(crate) new: String,

    /// Which documents have to stay valid
    #[arg(long, value_name = "MODE", default_value = "backward")]
    pub(crate) mode: Mode,
}

/// The value of `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Old documents under the new schema
    Backward,
    /// New documents under the old schema
    Forward,
    /// Both
    Full,
}

impl From<Mode> for Compatibility {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Backward => Self::Backward,
            Mode::Forward => Self::Forward,
            Mode::Full => Self::Full,
        }
    }
}

/// The JSON output.
#[derive(Debug, Serialize)]
struct DiffReport {
    compatible: bool,
    mode: Compatibility,
    changes: Vec<ReportedChange>,
}

#[derive(Debug, Serialize)]
struct ReportedChange {
    #[serde(flatten)]
    change: SchemaChange,
    breaking: bool,
}

/// Runs `schema diff`.
pub(super) fn run(args: &DiffArgs, context: &CliContext) -> Result<ProgramExit, ErrorBody> {
    let (old, new) = (read(&args.old, context)?, read(&args.new, context)?);
    let mode = Compatibility::from(args.mode);
    let changes: Vec<ReportedChange> = diff(&old, &new)
        .into_iter()
        .map(|change| ReportedChange { breaking: change.breaks(mode), change })
        .collect();
    let compatible = changes.iter().all(|change| !change.breaking);
    let report = DiffReport { compatible, mode, changes };
    let printed = if context.json() {
        context.printer.json_payload(&report)
    } else {
        context.printer.payload(&text(&report))
    };
    Ok(match printed {
        ProgramExit::Ok if !compatible => ProgramExit::CheckFailed,
        exit => exit,
    })
}

fn text(report: &DiffReport) -> String {
    let mut text = String::new();
    for ReportedChange { change, breaking } in &report.changes {
        let _ = writeln!(text, "{}: {change}", if *breaking { "breaking" } else { "compatible" });
    }
    let breaking = report.changes.iter().filter(|change| change.breaking).count();
    let _ = writeln!(text, "{}, {breaking} breaking", plural(report.changes.len(), "change"));
    text
}

/// A schema by its kind and version, or from a file.
fn read(name: &str, context: &CliContext) -> Result<Value, ErrorBody> {
    let (kind, version) = name.split_once('@').map_or((name, None), |(kind, version)| (kind, Some(version)));
    let text = match (SchemaKind::parse(kind).filter(|found| found.name() == kind), version) {
        (Some(kind), None) => schema::export(kind).to_owned(),
        (Some(kind), Some(version)) if version == kind.version() => schema::export(kind).to_owned(),
        (Some(kind), Some(version)) => {
            let text = schema::earlier(kind, version).ok_or_else(|| {
                let message = format!("no schema of {kind} {version} is known");
                ErrorBody::new(ErrorSymbol::NotFound, message)
                    .hint(format!("known versions: {}", schema::versions(kind).join(", ")))
            })?;
            text.to_owned()
        }
        (None, _) => {
            let path = context.env.absolute(name);
            std::fs::read_to_string(path.as_path()).map_err(|error| {
                ErrorBody::new(ErrorSymbol::NotFound, format!("cannot read {name}: {error}"))
                    .hint("name a schema file, or a kind such as `bundle` or `bundle@1.4`")
            })?
        }
    };
    let not_a_schema = |why: String| {
        ErrorBody::new(ErrorSymbol::Usage, format!("{name} is not a JSON schema: {why}"))
            .hint("`lanser schema export --out DIR` writes schemas")
    };
    let schema: Value = serde_json::from_str(&text).map_err(|error| not_a_schema(error.to_string()))?;
    if schema.is_object() || schema.is_boolean() {
        Ok(schema)
    } else {
        Err(not_a_schema("it is not an object".to_owned()))
    }
}
