//! The two sides: an engine that runs all the time and one that starts from nothing, in this process or as processes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lanser::internal::engine::{Engine, Settings};
use lanser::model::bundle::Bundle;
use lanser::model::request::{Command, Request};
use tempfile::TempDir;

/// The idle timeout of the sessions in seconds, in case this program is killed.
const IDLE_TIMEOUT_SECONDS: &str = "300";

/// The two sides.
pub(crate) enum Sides {
    Here { warm: Engine, settings: Box<Settings> },
    Processes { program: PathBuf, runtime: TempDir, settings: Box<Settings>, keep: bool },
}

/// An answer.
pub(crate) struct SideAnswer {
    pub(crate) id: String,
    /// Where it came from.
    pub(crate) served_from: String,
    /// A short summary, to investigate a difference.
    pub(crate) told: String,
}

impl Sides {
    /// Both sides in this process; `keep` is whether the warm side uses the memo.
    pub(crate) fn here(settings: Settings, keep: bool) -> Self {
        let warm = Engine::new(Settings { keep, ..settings.clone() });
        Self::Here { warm, settings: Box::new(settings) }
    }

    /// Both sides as processes, the warm one with a session.
    pub(crate) fn processes(settings: Settings, keep: bool) -> Result<Self, String> {
        let (program, _) = crate::support::program::beside_example()?;
        let runtime = tempfile::tempdir().map_err(|error| error.to_string())?;
        Ok(Self::Processes { program, runtime, settings: Box::new(settings), keep })
    }

    /// Sends a request to the warm side.
    pub(crate) async fn warm(&self, request: &Request) -> Result<SideAnswer, String> {
        match self {
            Self::Here { warm, .. } => Ok(said(&warm.run(request.clone(), std::future::pending()).await)),
            Self::Processes { keep: true, .. } => self.process(request, "on", &[]),
            Self::Processes { keep: false, .. } => self.process(request, "on", &["--no-cache"]),
        }
    }

    /// Sends a request to a new cold side.
    pub(crate) async fn cold(&self, request: &Request) -> Result<SideAnswer, String> {
        match self {
            Self::Here { settings, .. } => {
                let cold = Engine::for_one((**settings).clone());
                Ok(said(&cold.run(request.clone(), std::future::pending()).await))
            }
            Self::Processes { .. } => self.process(request, "off", &["--no-cache"]),
        }
    }

    /// Stops the warm side.
    pub(crate) async fn close(&self) {
        match self {
            Self::Here { warm, .. } => warm.close().await,
            Self::Processes { program, runtime, .. } => {
                let mut command = std::process::Command::new(program);
                command.args(["session", "stop", "--all"]).env("XDG_RUNTIME_DIR", runtime.path());
                if !command.output().is_ok_and(|output| output.status.success()) {
                    eprintln!("the session could not be stopped; it leaves after {IDLE_TIMEOUT_SECONDS} s");
                }
            }
        }
    }

    fn process(&self, request: &Request, session: &str, more: &[&str]) -> Result<SideAnswer, String> {
        let Self::Processes { program, runtime, settings, .. } = self else {
            return Err("this side has no processes".to_owned());
        };
        let verb = match request.cmd {
            Command::TypeDefinition => "typedef",
            other => other.as_str(),
        };
        let mut command = std::process::Command::new(program);
        command.arg(verb).args(request.selector.iter().map(ToString::to_string));
        if request.options.direction.is_some() {
            // The only kind of request that is sent.
            command.arg("--incoming");
        }
        command.args(["--json", "--timeout", "300", "-C", settings.root.as_str()]).args(more);
        command.args(request.options.agree.map(|server| format!("--agree={server}")));
        if let Some(script) = &settings.server_command {
            command.args(["--server-command", script.as_str()]);
        }
        command
            .env("XDG_RUNTIME_DIR", runtime.path())
            .env("LANSER_CACHE_DIR", settings.cache.as_str())
            .env("LANSER_SESSION", session)
            .env("LANSER_SESSION_IDLE", IDLE_TIMEOUT_SECONDS);
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

fn said(bundle: &Bundle) -> SideAnswer {
    let parts = BTreeMap::from([
        ("error", serde_json::to_value(&bundle.error)),
        ("resolution", serde_json::to_value(&bundle.resolution)),
        ("facts", serde_json::to_value(&bundle.facts)),
        ("environment", serde_json::to_value(&bundle.environment)),
    ]);
    let text: Vec<String> =
        parts.into_iter().map(|(name, part)| format!("{name}: {}", part.unwrap_or_default())).collect();
    SideAnswer {
        id: bundle.bundle_id.to_string(),
        served_from: bundle
            .meta
            .volatile
            .served_from
            .map_or_else(|| "none".to_owned(), |served_from| format!("{served_from:?}")),
        told: text.join(" ").chars().take(4000).collect(),
    }
}
