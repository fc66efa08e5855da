//! Who is asked: an orchestrator that has been answering all the time against one that starts from nothing, in this process
//! or as processes of their own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::lanser::model::bundle::Bundle;
use ::lanser::model::request::{Command, Request};
use ::lanser::orchestrator::{Orchestrator, Settings};
use tempfile::TempDir;

use crate::lanser;

/// After how many seconds a session leaves by itself, should this program be killed.
const ABANDONED: &str = "300";

/// Both sides.
pub(crate) enum Sides {
    Here { warm: Orchestrator, settings: Box<Settings> },
    Processes { program: PathBuf, runtime: TempDir, settings: Box<Settings>, keep: bool },
}

/// An answer.
pub(crate) struct Said {
    pub(crate) id: String,
    /// Where it came from.
    pub(crate) road: String,
    /// What it says, in a few lines, for whoever looks into a difference.
    pub(crate) told: String,
}

impl Sides {
    /// Both sides in this process; `keep`: whether the warm one uses the memo.
    pub(crate) fn here(settings: Settings, keep: bool) -> Self {
        let warm = Orchestrator::new(Settings { keep, ..settings.clone() });
        Self::Here { warm, settings: Box::new(settings) }
    }

    /// Both sides as processes, the warm one's with a session.
    pub(crate) fn processes(settings: Settings, keep: bool) -> Result<Self, String> {
        let (program, _) = lanser::beside_example()?;
        let runtime = tempfile::tempdir().map_err(|error| error.to_string())?;
        Ok(Self::Processes { program, runtime, settings: Box::new(settings), keep })
    }

    /// Asks the one that has been answering all the time.
    pub(crate) async fn warm(&self, request: &Request) -> Result<Said, String> {
        match self {
            Self::Here { warm, .. } => Ok(said(&warm.run(request.clone(), std::future::pending()).await)),
            Self::Processes { keep: true, .. } => self.process(request, "on", &[]),
            Self::Processes { keep: false, .. } => self.process(request, "on", &["--no-cache"]),
        }
    }

    /// Asks one that starts from nothing.
    pub(crate) async fn cold(&self, request: &Request) -> Result<Said, String> {
        match self {
            Self::Here { settings, .. } => {
                let cold = Orchestrator::for_one((**settings).clone());
                Ok(said(&cold.run(request.clone(), std::future::pending()).await))
            }
            Self::Processes { .. } => self.process(request, "off", &["--no-cache"]),
        }
    }

    /// Ends the warm side.
    pub(crate) async fn close(&self) {
        match self {
            Self::Here { warm, .. } => warm.close().await,
            Self::Processes { program, runtime, .. } => {
                let mut command = std::process::Command::new(program);
                command.args(["session", "stop", "--all"]).env("XDG_RUNTIME_DIR", runtime.path());
                if !command.output().is_ok_and(|output| output.status.success()) {
                    eprintln!("the session could not be stopped; it leaves after {ABANDONED} s");
                }
            }
        }
    }

    fn process(&self, request: &Request, session: &str, more: &[&str]) -> Result<Said, String> {
        let Self::Processes { program, runtime, settings, .. } = self else {
            return Err("no processes are asked".to_owned());
        };
        let verb = match request.cmd {
            Command::TypeDefinition => "typedef",
            other => other.as_str(),
        };
        let mut command = std::process::Command::new(program);
        command.arg(verb).args(request.selector.iter().map(ToString::to_string));
        if request.options.direction.is_some() {
            // The only one that is asked about.
            command.arg("--incoming");
        }
        command.args(["--json", "--timeout", "300", "-C", settings.root.as_str()]).args(more);
        if let Some(script) = &settings.server_command {
            command.args(["--server-command", script.as_str()]);
        }
        command
            .env("XDG_RUNTIME_DIR", runtime.path())
            .env("LANSER_CACHE_DIR", settings.cache.as_str())
            .env("LANSER_SESSION", session)
            .env("LANSER_SESSION_IDLE", ABANDONED);
        let output = command.output().map_err(|error| format!("lanser: {error}"))?;
        let bundle: Bundle = serde_json::from_slice(&output.stdout).map_err(|error| {
            format!(
                "no bundle ({error}), exit {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            )
        })?;
        Ok(said(&bundle))
    }
}

fn said(bundle: &Bundle) -> Said {
    let parts = BTreeMap::from([
        ("error", serde_json::to_value(&bundle.error)),
        ("resolution", serde_json::to_value(&bundle.resolution)),
        ("facts", serde_json::to_value(&bundle.facts)),
        ("environment", serde_json::to_value(&bundle.environment)),
    ]);
    let text: Vec<String> =
        parts.into_iter().map(|(name, part)| format!("{name}: {}", part.unwrap_or_default())).collect();
    Said {
        id: bundle.bundle_id.to_string(),
        road: bundle.meta.volatile.road.map_or_else(|| "none".to_owned(), |road| format!("{road:?}")),
        told: text.join(" ").chars().take(4000).collect(),
    }
}
