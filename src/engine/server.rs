//! The lifecycle of a server: find or install it, start it, initialize it, shut it down.

use std::sync::Arc;
use std::time::Duration;

use super::blocking::blocking;
use super::failure::Failure;
use super::settings::{Progress, Settings};
use crate::lsp::client::{Client, InitializeOptions};
use crate::lsp::process::{Launch, spawn};
use crate::lsp::profile::{Profile, ServerSettings};
use crate::lsp::python_shim::PythonShim;
use crate::model::environment::Tool;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::server::ServerKind;
use crate::toolchain::{self, FoundServer, InstallEvent, ServerProgram};
use crate::workspace::python::PythonEnvironment;

/// The time that a server has to shut down. Killing it loses nothing: a new one reads everything again.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// A running server that has answered `initialize`.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) client: Client,
    pub(super) found: FoundServer,
}

impl Server {
    /// Its identity for bundles; `requested` is the kind that was to be started.
    pub(super) fn tool(&self, requested: ServerKind) -> Tool {
        let identity = self.client.identity();
        Tool {
            name: ServerKind::parse(&identity.name).unwrap_or(requested),
            version: identity.version.unwrap_or_else(|| self.found.version.clone()),
        }
    }

    /// Starts a server for this environment. `cancellable` is for [`Launch::cancellable`].
    pub(super) async fn start(
        settings: Arc<Settings>,
        found: FoundServer,
        python: Option<&PythonEnvironment>,
        cancellable: bool,
    ) -> Result<Self, Failure> {
        let checked = found.clone();
        let cache = settings.cache.clone();
        if let Err(reason) = blocking(move || toolchain::verify(&checked, &cache)).await? {
            let hint = format!("`lanser server install {}` reinstalls it", found.kind);
            return Err(Failure::reported(ErrorBody::new(ErrorSymbol::LsUnavailable, reason).hint(hint)));
        }
        let profile = Profile::of(found.kind);
        let (program, args, env) = match &found.program {
            ServerProgram::Script { node, node_version, script } => {
                // They change no answer, so they are no part of what the digest of the configuration covers.
                let options = toolchain::faster_options(node_version).iter().map(|&option| option.to_owned());
                let args = options.chain([script.to_string()]).collect();
                (node, args, server_environment(&settings))
            }
            ServerProgram::Native(program) => {
                let stubs = found.stubs.clone();
                blocking(move || crate::path::private::create(stubs.as_path())).await?.map_err(|error| {
                    let reason = format!("cannot create {}: {error}", found.stubs);
                    Failure::reported(ErrorBody::new(ErrorSymbol::LsUnavailable, reason))
                })?;
                (program, Vec::new(), native_environment(&found))
            }
        };
        let launch = Launch {
            kind: found.kind,
            program: program.clone(),
            args,
            env,
            cwd: settings.root.clone(),
            guard: settings.guard.clone(),
            temp_dir: settings.temp.clone(),
            cancellable,
            python: python.map(python_shim).unwrap_or_default(),
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

    /// Shuts the server down, and kills it if it does not respond.
    pub(super) async fn stop(self) {
        // The answer is complete, so an error of the shutdown does not matter.
        let _ = self.client.shutdown(SHUTDOWN_TIMEOUT).await;
    }
}

fn python_shim(python: &PythonEnvironment) -> PythonShim {
    PythonShim {
        version: python.version.clone(),
        prefix: python.prefix.to_string(),
        search_path: python.search_path.clone(),
    }
}

/// The toolchain request for these settings.
#[must_use]
pub fn toolchain_request(settings: &Settings) -> toolchain::ToolchainRequest {
    toolchain::ToolchainRequest {
        kind: settings.server,
        version: settings.server_version.clone(),
        command: settings.server_command.as_ref().map(|command| vec![command.to_string()]),
        workspace: settings.root.clone(),
        checkout: settings.checkout(),
        trust_workspace: settings.trust_workspace,
        program: settings.guard.clone(),
        search_path: settings.search_path.clone(),
        environment: settings.environment.clone(),
        cache: settings.cache.clone(),
        offline: settings.offline,
        pins: toolchain::PINS,
    }
}

/// Finds a server. If there is none, installs it if `install` is true. Blocking.
pub(super) fn find(settings: &Settings, install: bool) -> Result<FoundServer, toolchain::Unavailable> {
    let request = toolchain_request(settings);
    if !install {
        return toolchain::find(&request);
    }
    toolchain::ensure(&request, &mut |event| tell_progress(&*settings.progress, &event))
}

/// Reports the progress of an installation.
pub fn tell_progress(progress: &dyn Progress, event: &InstallEvent) {
    match event {
        InstallEvent::Waiting { what } => {
            progress.notify(&format!("waiting for another process that installs {what}"));
        }
        InstallEvent::Installing { what, with } => {
            progress.notify(&format!("installing {what} with {with} (once)"));
        }
        InstallEvent::Installed { what, at } => progress.notify(&format!("installed {what} into {at}")),
    }
}

/// The environment variables of a server that is one program: nothing of the user's, whose own configuration is not part of the
/// workspace.
fn native_environment(found: &FoundServer) -> std::collections::BTreeMap<String, String> {
    let fixed = [
        ("LC_ALL", "C.UTF-8".to_owned()),
        ("XDG_CACHE_HOME", found.stubs.to_string()),
        ("XDG_CONFIG_HOME", found.stubs.join("no-configuration").to_string()),
    ];
    fixed.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The environment variables of the server's process: where programs and the user's folders are, and nothing that
/// could change an answer.
fn server_environment(settings: &Settings) -> std::collections::BTreeMap<String, String> {
    const INHERITED_VARIABLES: [&str; 2] = ["PATH", "HOME"];
    // The user's site-packages are not part of the environment that the bundle identifies.
    const FIXED_VARIABLES: [(&str, &str); 2] = [("LC_ALL", "C.UTF-8"), ("PYTHONNOUSERSITE", "1")];
    let inherited =
        settings.environment.iter().filter(|(name, _)| INHERITED_VARIABLES.contains(&name.as_str()));
    let inherited = inherited.map(|(name, value)| (name.clone(), value.clone()));
    inherited.chain(FIXED_VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
}
