//! Settings of a run. Each comes from the first of: flag, environment, workspace's file, user's file, default.

use std::collections::BTreeMap;
use std::time::Duration;

use super::config::{self, ConfigError, FileConfig};
use super::environment::ProcessEnvironment;
use super::global::GlobalArgs;
use super::guards::Policies;
use crate::engine;
use crate::model::analyzer::AnalyzerKind;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::Scope;
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::serve::session::SessionOptions;
use crate::text::ColumnUnit;
use crate::toolchain::default_server;
use crate::workspace::root;
use crate::workspace::snapshot::ChangeDetection;

/// The default of `--timeout`, in seconds.
const DEFAULT_TIMEOUT_SECONDS: u64 = 60;

/// Settings of one run.
#[derive(Debug, Clone)]
pub(crate) struct CliSettings {
    pub(crate) root: AbsPath,
    pub(crate) server: ServerKind,
    pub(crate) server_version: Option<String>,
    pub(crate) server_command: Option<AbsPath>,
    pub(crate) python: Option<AbsPath>,
    pub(crate) index_io: ColumnUnit,
    /// Whether absolute paths are printed.
    pub(crate) absolute: bool,
    pub(crate) scope: Scope,
    /// The analyzers besides the language server, sorted.
    pub(crate) with: Vec<AnalyzerKind>,
    /// Another server that is asked the same.
    pub(crate) agree: Option<ServerKind>,
    pub(crate) timeout: Duration,
    pub(crate) offline: bool,
    pub(crate) trust_workspace: bool,
    pub(crate) trust: ChangeDetection,
    /// Lanser's cache folder.
    pub(crate) cache: AbsPath,
    /// Whether caches of the workspace are used.
    pub(crate) keep: bool,
    /// Whether a session may be used and started.
    pub(crate) session: bool,
    /// How long an idle session runs.
    pub(crate) session_idle: Duration,
    /// The memory above which a session restarts its server, in bytes.
    pub(crate) session_memory: u64,
    /// The guard settings of the configuration files.
    pub(crate) policies: Policies,
    /// The settings that are not defaults and where they came from, for `doctor`.
    pub(crate) origins: BTreeMap<&'static str, Setting>,
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) value: String,
    pub(crate) origin: String,
}

/// The names of the global options whose value came from the environment.
pub(crate) type OptionsFromEnv = std::collections::BTreeSet<String>;

impl CliSettings {
    /// Combines the sources.
    ///
    /// # Errors
    /// If a value or a configuration file is invalid, or the workspace is not a folder.
    pub(crate) fn new(
        args: &GlobalArgs,
        from_env: &OptionsFromEnv,
        env: &ProcessEnvironment,
    ) -> Result<Self, ErrorBody> {
        let root = match &args.workspace {
            Some(folder) => {
                let folder = env.absolute(folder);
                if !folder.as_path().is_dir() {
                    let message = format!("the workspace {folder} is not a folder");
                    return Err(ErrorBody::new(ErrorSymbol::Usage, message)
                        .hint("pass an existing folder to --workspace"));
                }
                crate::workspace::files::canonical(&folder)
            }
            None => root::discover(&env.cwd),
        };
        let of_workspace = config::of_workspace(&root).map_err(config_error)?;
        let of_user = config::of_user(env.user_config().as_ref()).map_err(config_error)?.unwrap_or_default();
        let (workspace_file, of_workspace) = of_workspace.unzip();
        let mut sources = SettingSources {
            from_env,
            workspace_file,
            of_workspace: of_workspace.unwrap_or_default(),
            of_user,
            origins: BTreeMap::new(),
        };
        let server = sources.text("server", args.server.clone(), |file| file.server.clone());
        let server_command =
            sources.text("server-command", args.server_command.clone(), |file| file.server_command.clone());
        let (server, server_version) = match server {
            Some(name) => parse_server(&name)?,
            None => (sources.default_server(server_command.is_some(), env), None),
        };
        let python = sources.text("python", args.python.clone(), |file| file.python.clone());
        let index_io = sources.text("index-io", args.index_io.clone(), |file| file.index_io.clone());
        let scope = sources.text("scope", args.scope.clone(), |file| file.scope.clone());
        let with = sources.analyzers(env)?;
        let agree = sources.agree(server, env)?;
        let timeout =
            sources.value("timeout", args.timeout, |file| file.timeout).unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        let session = sources.session(args.no_session, env)?;
        let session_idle = sources
            .value("session-idle", args.session_idle, |file| file.session_idle)
            .unwrap_or(SessionOptions::DEFAULT_IDLE_TIMEOUT.as_secs());
        let session_memory = sources
            .value("session-memory", args.session_memory, |file| file.session_memory)
            .unwrap_or(engine::Settings::SERVER_MEMORY >> 20);
        let offline =
            sources.value("offline", args.offline.then_some(true), |file| file.offline).unwrap_or(false);
        let absolute =
            sources.value("absolute", args.absolute.then_some(true), |file| file.absolute).unwrap_or(false);
        let is_listed = env.trust_list().trusts(&env.checkout(&root));
        let trust_workspace = args.trust_workspace || is_listed;
        if trust_workspace {
            let origin = match (args.trust_workspace, from_env.contains("trust-workspace")) {
                (true, true) => "environment",
                (true, false) => "flag",
                (false, _) => "lanser trust",
            };
            let setting = Setting { value: "true".to_owned(), origin: origin.to_owned() };
            sources.origins.insert("trust-workspace", setting);
        }
        Ok(Self {
            server,
            server_version,
            server_command: server_command.map(|path| env.absolute(&path)),
            python: python.map(|path| env.absolute(&path)),
            index_io: match index_io {
                None => ColumnUnit::default(),
                Some(unit) => ColumnUnit::parse(&unit).ok_or_else(|| engine::unknown_unit_error(&unit))?,
            },
            scope: match scope.as_deref() {
                None | Some("workspace") => Scope::Workspace,
                Some("configured") => Scope::Configured,
                Some(other) => return Err(invalid_choice("--scope", other, "workspace or configured")),
            },
            with,
            agree,
            timeout: Duration::from_secs(timeout.clamp(1, 86_400)),
            absolute,
            offline,
            trust_workspace,
            trust: match args.freshness.as_deref() {
                None | Some("stat") => ChangeDetection::Stat,
                Some("content") => ChangeDetection::Content,
                Some(other) => return Err(invalid_choice("--freshness", other, "stat or content")),
            },
            cache: env.cache(),
            keep: !args.no_cache,
            session,
            session_idle: Duration::from_secs(session_idle.clamp(1, 604_800)),
            session_memory: session_memory.clamp(64, 1_048_576) << 20,
            policies: Policies { workspace: sources.of_workspace, user: sources.of_user },
            origins: sources.origins,
            root,
        })
    }
}

/// The sources of settings.
struct SettingSources<'a> {
    from_env: &'a OptionsFromEnv,
    workspace_file: Option<AbsPath>,
    of_workspace: FileConfig,
    of_user: FileConfig,
    origins: BTreeMap<&'static str, Setting>,
}

impl SettingSources<'_> {
    fn text(
        &mut self,
        name: &'static str,
        arg: Option<String>,
        field: impl Fn(&FileConfig) -> Option<String>,
    ) -> Option<String> {
        self.value(name, arg, field)
    }

    /// Whether sessions are used. Decided by `--no-session`, then `LANSER_SESSION`, then `CI`: a session would outlive a CI job.
    fn session(&mut self, no_session: bool, env: &ProcessEnvironment) -> Result<bool, ErrorBody> {
        let (session, origin) = match (no_session, env.var("LANSER_SESSION"), env.var("CI")) {
            (true, ..) => (false, "flag"),
            (false, Some("off" | "0" | "no" | "false"), _) => (false, "environment"),
            (false, Some("on" | "1" | "yes" | "true"), _) => (true, "environment"),
            (false, Some(other), _) => return Err(invalid_choice("LANSER_SESSION", other, "on or off")),
            (false, None, Some(ci)) if !matches!(ci, "false" | "0") => (false, "CI is set"),
            (false, None, _) => return Ok(true),
        };
        let value = if session { "on" } else { "off" }.to_owned();
        self.origins.insert("session", Setting { value, origin: origin.to_owned() });
        Ok(session)
    }

    /// The analyzers of `LANSER_WITH` or of a configuration file; an option of a verb comes first.
    fn analyzers(&mut self, env: &ProcessEnvironment) -> Result<Vec<AnalyzerKind>, ErrorBody> {
        let named = env.var("LANSER_WITH").filter(|value| !value.is_empty());
        let (names, origin) = if let Some(value) = named {
            (Some(value.split(',').map(str::to_owned).collect()), "environment".to_owned())
        } else if let Some(names) = &self.of_workspace.with {
            let file = self.workspace_file.as_ref().map_or_else(String::new, AbsPath::to_string);
            (Some(names.clone()), file)
        } else {
            (self.of_user.with.clone(), "user configuration".to_owned())
        };
        let Some(names): Option<Vec<String>> = names else { return Ok(Vec::new()) };
        let analyzers = parse_analyzers("with", &names)?;
        self.origins.insert("with", Setting { value: names.join(","), origin });
        Ok(analyzers)
    }

    /// The other server of `LANSER_AGREE` or of a configuration file, unless it is the server itself; an option of a verb comes
    /// first.
    fn agree(
        &mut self,
        server: ServerKind,
        env: &ProcessEnvironment,
    ) -> Result<Option<ServerKind>, ErrorBody> {
        let named = env.var("LANSER_AGREE").filter(|value| !value.is_empty()).map(str::to_owned);
        let name = match named {
            Some(value) => {
                let setting = Setting { value: value.clone(), origin: "environment".to_owned() };
                self.origins.insert("agree", setting);
                Some(value)
            }
            None => self.text("agree", None, |file| file.agree.clone()),
        };
        let agree = name.map_or(Ok(None), |name| parse_agree("agree", &name))?;
        Ok(agree.filter(|agree| *agree != server))
    }

    /// The server if none is named; with a command for it, what its package has to be.
    fn default_server(&mut self, has_command: bool, env: &ProcessEnvironment) -> ServerKind {
        let found = default_server(env.exe.as_ref());
        if has_command || found == ServerKind::default() {
            return ServerKind::default();
        }
        let setting = Setting { value: found.to_string(), origin: "the environment of lanser".to_owned() };
        self.origins.insert("server", setting);
        found
    }

    fn value<T: ToString>(
        &mut self,
        name: &'static str,
        arg: Option<T>,
        field: impl Fn(&FileConfig) -> Option<T>,
    ) -> Option<T> {
        let from_env = self.from_env.contains(name);
        let arg = arg.map(|value| (value, if from_env { "environment" } else { "flag" }.to_owned()));
        let file = self.workspace_file.as_ref().map_or_else(String::new, AbsPath::to_string);
        let found = arg
            .or_else(|| field(&self.of_workspace).map(|value| (value, file)))
            .or_else(|| field(&self.of_user).map(|value| (value, "user configuration".to_owned())));
        let (value, origin) = found?;
        self.origins.insert(name, Setting { value: value.to_string(), origin });
        Some(value)
    }
}

fn parse_server(text: &str) -> Result<(ServerKind, Option<String>), ErrorBody> {
    let (name, version) = match text.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    };
    let kind = ServerKind::parse(name)
        .ok_or_else(|| invalid_choice("--server", text, "pyright, basedpyright or ty"))?;
    let numeric = |version: &str| {
        version.split('.').count() >= 2
            && version
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    match version {
        Some(version) if !numeric(version) => {
            Err(invalid_choice("--server", text, "a version such as pyright@1.1.414"))
        }
        version => Ok((kind, version.map(str::to_owned))),
    }
}

/// The analyzers with these names, sorted; `none` is none.
///
/// # Errors
/// If a name is unknown.
pub(crate) fn parse_analyzers(option: &str, names: &[String]) -> Result<Vec<AnalyzerKind>, ErrorBody> {
    let mut found = Vec::new();
    for name in names.iter().map(|name| name.trim()).filter(|name| *name != "none") {
        let kind = AnalyzerKind::parse(name).ok_or_else(|| {
            invalid_choice(option, name, "compile, ruff or mypy, separated by commas, or none")
        })?;
        found.push(kind);
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The server with this name; `none` is none.
///
/// # Errors
/// If the name is unknown.
pub(crate) fn parse_agree(option: &str, name: &str) -> Result<Option<ServerKind>, ErrorBody> {
    if name == "none" {
        return Ok(None);
    }
    let unknown = || invalid_choice(option, name, "pyright, basedpyright, ty or none");
    ServerKind::parse(name).map(Some).ok_or_else(unknown)
}

fn invalid_choice(option: &str, given: &str, expected: &str) -> ErrorBody {
    ErrorBody::new(ErrorSymbol::Usage, format!("invalid value {given:?} for {option}"))
        .hint(format!("use {expected}"))
}

fn config_error(error: ConfigError) -> ErrorBody {
    let (symbol, hint) = match &error {
        ConfigError::Syntax { .. } => (
            ErrorSymbol::Usage,
            "the keys are server, index-io, absolute, timeout, scope, with, agree, session-idle, session-memory, allow, deny, allow-dirty, deny-apply-on-ambiguous and workspace-jail; the user's file may also have server-command, python and offline",
        ),
        ConfigError::Unreadable(_) => (
            ErrorSymbol::FsPermissions,
            "make it a readable file or remove it: without it, guards that it sets would be lost",
        ),
        ConfigError::Forbidden { .. } | ConfigError::TooMuch { .. } => (
            ErrorSymbol::Usage,
            "set it with a flag, LANSER_… in the environment, or in the user's lanser/config.toml",
        ),
    };
    ErrorBody::new(symbol, error.to_string()).hint(hint)
}
