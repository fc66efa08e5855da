//! A server's life: found or installed, started, greeted, stopped.

use std::sync::Arc;
use std::time::Duration;

use super::failure::Failure;
use super::{Progress, Settings, blocking};
use crate::lsp::client::{Client, InitializeOptions};
use crate::lsp::process::{Launch, spawn};
use crate::lsp::profile::{Profile, ServerSettings};
use crate::lsp::stand_in::StandIn;
use crate::model::environment::Tool;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::server::ServerKind;
use crate::toolchain::{self, Found, Progress as Installing};
use crate::workspace::python::PythonEnvironment;

/// How long a server may take to say goodbye. It has nothing to lose: what it knows, it reads again.
const GOODBYE: Duration = Duration::from_millis(500);

/// A running server that has answered `initialize`.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) client: Client,
    pub(super) found: Found,
}

impl Server {
    /// What it is, as bundles say; `asked_for` is the one that was to be started.
    pub(super) fn tool(&self, asked_for: ServerKind) -> Tool {
        let identity = self.client.identity();
        Tool {
            name: ServerKind::parse(&identity.name).unwrap_or(asked_for),
            version: identity.version.unwrap_or_else(|| self.found.version.clone()),
        }
    }

    /// Starts the server that was found, and tells it of this environment; `cancellable` is for [`Launch::cancellable`].
    pub(super) async fn start(
        settings: Arc<Settings>,
        found: Found,
        python: Option<&PythonEnvironment>,
        cancellable: bool,
    ) -> Result<Self, Failure> {
        let checked = found.clone();
        if let Err(why) = blocking(move || toolchain::verify(&checked)).await? {
            let hint = format!("`lanser server install {}` installs it anew", found.kind);
            return Err(Failure::told(ErrorBody::new(ErrorSymbol::LsUnavailable, why).hint(hint)));
        }
        let profile = Profile::of(found.kind);
        let launch = Launch {
            kind: found.kind,
            program: found.node.clone(),
            args: vec![found.script.to_string()],
            env: server_environment(&settings),
            cwd: settings.root.clone(),
            guard: settings.guard.clone(),
            temp_dir: settings.temp.clone(),
            cancellable,
            python: python.map(stand_in).unwrap_or_default(),
            programs: settings.cache.join("stand-ins"),
        };
        let (connection, process) = spawn(&launch)?;
        let options = InitializeOptions {
            root: settings.root.clone(),
            settings: ServerSettings { python: Some(process.python().clone()) },
            process_id: Some(std::process::id()),
            within: settings.timeout,
        };
        let client = Client::initialize(connection, Some(process), profile, options).await?;
        Ok(Self { client, found })
    }

    /// Says goodbye, and kills what does not listen.
    pub(super) async fn stop(self) {
        // The answer is there already; how the server went is nobody's business any more, only that it did.
        let _ = self.client.shutdown(GOODBYE).await;
    }
}

fn stand_in(python: &PythonEnvironment) -> StandIn {
    StandIn {
        version: python.version.clone(),
        prefix: python.prefix.to_string(),
        search_path: python.search_path.clone(),
    }
}

/// What is asked of the toolchain.
#[must_use]
pub fn toolchain_request(settings: &Settings) -> toolchain::Request {
    toolchain::Request {
        kind: settings.server,
        version: settings.server_version.clone(),
        command: settings.server_command.as_ref().map(|command| vec![command.to_string()]),
        workspace: settings.root.clone(),
        checkout: settings.checkout(),
        trust_workspace: settings.trust_workspace,
        search_path: settings.search_path.clone(),
        environment: settings.environment.clone(),
        cache: settings.cache.clone(),
        offline: settings.offline,
        pins: toolchain::PINS,
    }
}

/// Finds a server; installs it when there is none and `install` says so. Blocking.
pub(super) fn find(settings: &Settings, install: bool) -> Result<Found, toolchain::Unavailable> {
    let request = toolchain_request(settings);
    if !install {
        return toolchain::find(&request);
    }
    toolchain::ensure(&request, &mut |event| tell_progress(&*settings.progress, &event))
}

/// Tells what an install is doing.
pub fn tell_progress(progress: &dyn Progress, event: &Installing) {
    match event {
        Installing::Waiting { what } => {
            progress.say(&format!("waiting for another process that installs {what}"));
        }
        Installing::Installing { what, with } => {
            progress.say(&format!("installing {what} with {with} (once)"));
        }
        Installing::Installed { what, at } => progress.say(&format!("installed {what} into {at}")),
    }
}

/// What the server's process sees of the environment: where programs, the user's folders and temporary files are, nothing
/// that could change an answer.
fn server_environment(settings: &Settings) -> std::collections::BTreeMap<String, String> {
    const PASSED: [&str; 2] = ["PATH", "HOME"];
    // The user's own packages are not part of the environment whose identity the bundle has.
    const SET: [(&str, &str); 2] = [("LC_ALL", "C.UTF-8"), ("PYTHONNOUSERSITE", "1")];
    let passed = settings.environment.iter().filter(|(name, _)| PASSED.contains(&name.as_str()));
    let passed = passed.map(|(name, value)| (name.clone(), value.clone()));
    passed.chain(SET.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
}
