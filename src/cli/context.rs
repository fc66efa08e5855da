//! The context that a verb runs in, and how it gets from a request to a printed bundle.
//!
//! [`CliContext::run_request`] builds a request, has a background session or this process answer it, and prints the bundle.

use std::io::Read as _;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use super::environment::ProcessEnvironment;
use super::exit::ProgramExit;
use super::global::GlobalArgs;
use super::output::{Format, Printer};
use super::rewards;
use super::settings::{CliSettings, OptionsFromEnv};
use crate::bundle::portable::PathMap;
use crate::bundle::seal::{BundleDraft, seal};
use crate::engine::{self, AbsolutePaths, Engine, Progress, read_selector};
use crate::model::bundle::{Bundle, ServedFrom, Volatile};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, GivenSelector, Options, Request};
use crate::model::trace::StepOrigin;
use crate::path::{DocUri, WorkspacePath, encode_portable};
use crate::reward::of_bundle;
use crate::selector::PositionSpec;
use crate::serve::session::{SessionClient, SessionError, SessionOptions, SessionResponse};
use crate::serve::watchdog::{StallReason, Watchdog};
use crate::trace::operation::FinishedOperation;
use crate::trace::writer::TraceWriter;
use crate::workspace::files::canonical;
use crate::workspace::root;

/// A response to a request.
enum CliResponse {
    Bundle(Box<Bundle>),
    /// The JSON bytes of a session's response, printed without parsing.
    Encoded(SessionResponse),
}

/// The context of a verb.
#[derive(Clone)]
pub(crate) struct CliContext {
    pub(crate) env: ProcessEnvironment,
    pub(crate) global: GlobalArgs,
    pub(crate) from_env: OptionsFromEnv,
    pub(crate) printer: Printer,
    /// The trace that operations are recorded in, if it is open.
    pub(crate) trace: Option<Arc<TraceWriter>>,
    /// The input of commands that read standard input, where a protocol uses that; `None` to read it.
    pub(crate) input: Option<Vec<u8>>,
    /// Where progress is reported; `None` for the terminal.
    pub(crate) progress: Option<Arc<dyn Progress>>,
}

impl CliContext {
    /// The settings of this run.
    ///
    /// # Errors
    /// If an option or a configuration file is invalid.
    pub(crate) fn settings(&self) -> Result<CliSettings, ErrorBody> {
        CliSettings::new(&self.global, &self.from_env, &self.env)
    }

    /// The request options that all verbs have in common.
    pub(crate) fn options(&self, settings: &CliSettings) -> Options {
        Options {
            index_io: settings.index_io,
            scope: settings.scope,
            limit: self.global.limit,
            cursor: self.global.cursor.clone(),
            ..Options::default()
        }
    }

    /// Parses a selector in string or JSON form; `-` reads it from standard input.
    ///
    /// # Errors
    /// If it is not a valid selector.
    pub(crate) fn selector(&self, text: &str, settings: &CliSettings) -> Result<GivenSelector, ErrorBody> {
        let mut input = text.to_owned();
        if text == "-" {
            let bytes = self.read_input(1 << 20)?;
            input = String::from_utf8(bytes).map_err(|_| {
                ErrorBody::new(ErrorSymbol::Usage, "cannot read standard input: it is not UTF-8")
            })?;
        }
        if let Some(spec) = self.selector_above(input.trim(), settings) {
            return Ok(spec.into());
        }
        let read = read_selector(input.trim(), settings.index_io)?;
        let mut spec = read.clone();
        spec.map_uri(|uri| self.resolve_from_current_folder(uri, settings));
        // A path that is relative to the current folder means nothing to a reader of the bundle.
        Ok(if spec == read { GivenSelector::parsed(spec, input.trim()) } else { spec.into() })
    }

    /// Standard input, up to a number of bytes, or the input that replaces it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn read_input(&self, limit: u64) -> Result<Vec<u8>, ErrorBody> {
        if let Some(input) = &self.input {
            return Ok(input.clone());
        }
        let mut content = Vec::new();
        std::io::stdin().take(limit).read_to_end(&mut content).map_err(|error| {
            ErrorBody::new(ErrorSymbol::Usage, format!("cannot read standard input: {error}"))
        })?;
        Ok(content)
    }

    /// A path relative to the workspace; one in the current folder if it is inside the workspace.
    pub(crate) fn path_in_workspace(&self, path: &str, settings: &CliSettings) -> String {
        let here = self.env.cwd.join(path.trim_end_matches('/'));
        let inside = canonical(&here.parent()).join(here.file_name());
        inside.strip_prefix(&settings.root).map_or_else(|| path.to_owned(), str::to_owned)
    }

    /// A selector whose path begins with `../` and leads to a file of the workspace.
    fn selector_above(&self, text: &str, settings: &CliSettings) -> Option<PositionSpec> {
        let rest = text.trim_start_matches("../");
        let parents = (text.len() - rest.len()) / "../".len();
        if parents == 0 {
            return None;
        }
        let folder = (0..parents).fold(canonical(&self.env.cwd), |folder, _| folder.parent());
        let inside = encode_portable(folder.strip_prefix(&settings.root)?);
        let text = if inside.is_empty() { rest.to_owned() } else { format!("{inside}/{rest}") };
        let spec = read_selector(&text, settings.index_io).ok()?;
        spec.uri().is_some_and(|uri| uri.workspace_path().is_some()).then_some(spec)
    }

    /// Resolves a path in the current folder if it exists there and not in the workspace.
    fn resolve_from_current_folder(&self, uri: &DocUri, settings: &CliSettings) -> DocUri {
        let Some(path) = uri.workspace_path().map(WorkspacePath::as_str) else { return uri.clone() };
        let here = canonical(&self.env.cwd.join(path));
        let inside = here.strip_prefix(&settings.root).and_then(WorkspacePath::new);
        match inside {
            Some(inside) if here.as_path().exists() && !settings.root.join(path).as_path().exists() => {
                DocUri::Workspace(inside)
            }
            _ => uri.clone(),
        }
    }

    /// Answers the request that `make` builds and prints the bundle.
    pub(crate) fn run_request(
        &mut self,
        make: impl FnOnce(&Self, &CliSettings) -> Result<Request, ErrorBody>,
    ) -> ProgramExit {
        let settings = match self.settings() {
            Ok(settings) => settings,
            Err(error) => return self.fail(error),
        };
        let settings = match self.record(settings) {
            Ok(settings) => settings,
            Err(error) => return self.fail(error),
        };
        if let Some(error) = self.whole_disk(&settings) {
            return self.fail(error);
        }
        self.printer.within = self.within(&settings);
        let request =
            make(self, &settings).and_then(|request| Ok((request, rewards::requested(self, &settings)?)));
        match request {
            Ok((request, reward)) => {
                match self.answer(&settings, request, reward.is_some() || settings.absolute) {
                    CliResponse::Bundle(mut bundle) => {
                        if let Some(reward) = reward {
                            self.reward(&reward, &mut bundle, &settings);
                        }
                        if settings.absolute {
                            AbsolutePaths::of(&self.engine_settings(&settings)).add_to(&mut bundle);
                        }
                        self.printer.bundle(&bundle)
                    }
                    CliResponse::Encoded(reply) => self.printer.reply(&reply),
                }
            }
            Err(error) => self.fail(error),
        }
    }

    /// The workspace in its repository, if it is a part of one: its uses elsewhere are not searched.
    pub(crate) fn within(&self, settings: &CliSettings) -> Option<String> {
        let inside = settings.root.strip_prefix(&self.env.checkout(&settings.root))?;
        (!inside.is_empty()).then(|| inside.to_owned())
    }

    /// The refusal to take all of the disk for a workspace, where the command line does not say so.
    fn whole_disk(&self, settings: &CliSettings) -> Option<ErrorBody> {
        let is_meant = self.global.workspace.is_some() || !root::is_unmarked_disk(&settings.root);
        (!is_meant).then(|| {
            let message = format!("the workspace would be all of {}", settings.root);
            ErrorBody::new(ErrorSymbol::Usage, message).hint("name the folder of the project: -C DIR")
        })
    }

    /// Sets the requested reward of a new bundle.
    fn reward(&self, reward: &rewards::RewardRequest, bundle: &mut Bundle, settings: &CliSettings) {
        reward.apply_to(bundle);
        let mut unmeasured = None;
        if let Ok(runtime) = runtime() {
            let engine_settings = self.engine_settings(settings);
            unmeasured = runtime.block_on(async {
                tokio::select! {
                    why = reward.supplement(bundle, &engine_settings) => why,
                    () = super::signals::interrupted() => None,
                }
            });
            runtime.shutdown_background();
        }
        let previous = reward.previous.clone().map(|previous| StepOrigin::Bundle(Box::new(previous)));
        if let Some(trace) = &self.trace
            && let Err(failed) = rewards::record(trace, bundle, previous, unmeasured)
        {
            self.printer.complain(&format!("the trace could not be written: {failed}"));
        }
    }

    /// A request about a selector.
    ///
    /// # Errors
    /// If it is not a valid selector.
    pub(crate) fn request_for(
        &self,
        cmd: Command,
        selector: &str,
        settings: &CliSettings,
        set: impl FnOnce(&mut Options),
    ) -> Result<Request, ErrorBody> {
        let mut options = self.options(settings);
        set(&mut options);
        Ok(Request::new(cmd, Some(self.selector(selector, settings)?), None, options))
    }

    /// Answers a request in the session or in this process. With `parse`, the response is a parsed bundle.
    fn answer(&self, settings: &CliSettings, request: Request, parse: bool) -> CliResponse {
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(error) => return CliResponse::Bundle(Box::new(error_bundle(Some(request), error))),
        };
        let watchdog = self.guard(&request, settings.timeout);
        let answer = runtime.block_on(async {
            watchdog.start_heartbeat();
            let mut interrupted = pin!(super::signals::interrupted());
            if let Some(answer) =
                self.request_from_session(settings, &request, parse, interrupted.as_mut()).await
            {
                return answer;
            }
            let engine = Engine::for_one(self.engine_settings(settings));
            if let Some(cancelled) =
                self.plan_in_session(&engine, settings, &request, interrupted.as_mut()).await
            {
                return CliResponse::Bundle(Box::new(cancelled));
            }
            CliResponse::Bundle(Box::new(engine.run(request, interrupted).await))
        });
        watchdog.disarm();
        // A background task, such as an abandoned scan, must not delay the exit.
        runtime.shutdown_background();
        answer
    }

    /// Ends the program if a step blocks the event loop for longer than `limit`: meanwhile neither signals nor timeouts are
    /// handled.
    fn guard(&self, request: &Request, limit: std::time::Duration) -> Watchdog {
        let watchdog = Watchdog::default();
        let (request, printer) = (request.clone(), self.printer.clone());
        watchdog.exit_on_stall(limit, super::signals::interrupted, move |why| {
            printer.bundle(&error_bundle(Some(request), stopped(why, limit))).number()
        });
        watchdog
    }

    /// The session's response. `None` if sessions are disabled or anything fails: the request is then answered in this
    /// process.
    async fn request_from_session(
        &self,
        settings: &CliSettings,
        request: &Request,
        parse: bool,
        interrupted: Pin<&mut (impl Future<Output = ()> + ?Sized)>,
    ) -> Option<CliResponse> {
        // A session that dies is replaced and the request repeated. Writes must not be repeated, and after an interruption the
        // caller must know whether anything was written. Undo needs no server.
        if !settings.session || request.writes() || request.cmd == Command::Undo {
            return None;
        }
        // `locate` needs no server, so it does not start a session; but a running one has read the files already.
        let start = request.cmd != Command::Locate;
        let began = Instant::now();
        let mut caller = self.caller(settings, start).ok()?;
        let reply = tokio::select! {
            biased;
            reply = caller.send(request) => reply.ok()?,
            () = interrupted => {
                caller.clear_progress();
                return Some(CliResponse::Bundle(Box::new(cancelled(request.clone(), settings, began))));
            }
        };
        if self.printer.prints_bytes() && !parse {
            return Some(CliResponse::Encoded(reply));
        }
        serde_json::from_slice(&reply.bundle).ok().map(|bundle| CliResponse::Bundle(Box::new(bundle)))
    }

    /// Has a running session plan the edit that this process is to write, so that its warm server is used: the plan is then in the
    /// memo. Returns the answer if the wait was interrupted. If anything fails, this process plans by itself.
    async fn plan_in_session(
        &self,
        engine: &Engine,
        settings: &CliSettings,
        request: &Request,
        interrupted: Pin<&mut (impl Future<Output = ()> + ?Sized)>,
    ) -> Option<Bundle> {
        if !settings.session || self.trace.is_some() || !request.writes() {
            return None;
        }
        let began = Instant::now();
        let mut caller = self.caller(settings, false).ok()?;
        let planned = async {
            let planning = engine.planning_request(request).await?;
            caller.send(&planning).await.ok()
        };
        tokio::select! {
            biased;
            _ = planned => None,
            () = interrupted => Some(cancelled(request.clone(), settings, began)),
        }
    }

    /// Like [`Self::request_from_session`], always parsed.
    pub(crate) async fn bundle_from_session(
        &self,
        settings: &CliSettings,
        request: &Request,
        interrupted: Pin<&mut (impl Future<Output = ()> + ?Sized)>,
    ) -> Option<Bundle> {
        match self.request_from_session(settings, request, true, interrupted).await? {
            CliResponse::Bundle(bundle) => Some(*bundle),
            CliResponse::Encoded(_) => None,
        }
    }

    /// A client of the session for these settings.
    ///
    /// # Errors
    /// If there is no session and none can be started.
    pub(crate) fn caller(&self, settings: &CliSettings, start: bool) -> Result<SessionClient, SessionError> {
        let terms = SessionOptions { idle_timeout: settings.session_idle };
        SessionClient::new(self.env.sessions(), self.engine_settings(settings), terms, start)
    }

    pub(crate) fn engine_settings(&self, settings: &CliSettings) -> engine::Settings {
        engine::Settings {
            root: settings.root.clone(),
            copy_of: None,
            environment_of: None,
            server: settings.server,
            server_version: settings.server_version.clone(),
            server_command: settings.server_command.clone(),
            python: settings.python.clone(),
            timeout: settings.timeout,
            offline: settings.offline,
            trust_workspace: settings.trust_workspace,
            trust: settings.trust,
            cache: settings.cache.clone(),
            keep: settings.keep,
            temp: self.env.temp.clone(),
            guard: self.env.exe.clone(),
            search_path: self.env.search_path(),
            environment: self.env.vars.clone(),
            verbose: self.global.verbose,
            threads: engine::processors(),
            session_memory: settings.session_memory,
            progress: self.progress.clone().unwrap_or_else(|| self.printer.progress()),
            trace: self.trace.clone(),
        }
    }

    /// Opens the trace if `--trace-file` is set. Recorded requests are answered in this process.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn record(&mut self, mut settings: CliSettings) -> Result<CliSettings, ErrorBody> {
        let Some(file) = &self.global.trace_file else { return Ok(settings) };
        let path = self.env.cwd.join(file);
        let writer = TraceWriter::open(&path, self.printer.typed.clone()).map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                let message = format!("cannot write the trace {file}: no such folder: {}", path.parent());
                return ErrorBody::new(ErrorSymbol::NotFound, message).hint("create the folder first");
            }
            ErrorBody::new(ErrorSymbol::FsPermissions, format!("cannot write the trace {file}: {error}"))
                .hint("pass a writable file to --trace-file")
        })?;
        self.trace = Some(Arc::new(writer));
        settings.session = false;
        Ok(settings)
    }

    /// Prints an error that prevented the request, and records it if there is a trace.
    pub(crate) fn fail(&mut self, error: ErrorBody) -> ProgramExit {
        let bundle = error_bundle(None, error.clone());
        if let Some(trace) = &self.trace
            && let Err(failed) = trace.append(FinishedOperation::unread(error, bundle.clone()))
        {
            self.printer.complain(&format!("the trace could not be written: {failed}"));
        }
        self.printer.bundle(&bundle)
    }

    /// Whether to print JSON.
    pub(crate) const fn json(&self) -> bool {
        matches!(self.printer.format, Format::Json)
    }
}

/// The event loop of this process. It has one thread, because a server is killed when the thread that started it exits.
///
/// # Errors
/// If the operating system cannot create one.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, ErrorBody> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        let message = format!("cannot create an event loop: {error}");
        ErrorBody::new(ErrorSymbol::Internal, message)
    })
}

/// The error after the event loop was blocked by a long step.
pub(crate) fn stopped(why: StallReason, limit: std::time::Duration) -> ErrorBody {
    match why {
        StallReason::Interrupted => {
            ErrorBody::new(ErrorSymbol::RequestCancelled, "the request was cancelled")
                .hint("repeat the request")
        }
        StallReason::Limit => {
            let message = format!("an internal step of lanser took longer than {} s", limit.as_secs());
            ErrorBody::new(ErrorSymbol::LsTimeout, message)
                .hint("deeply nested files and very long lines take long to analyze; raise --timeout")
        }
    }
}

/// The bundle for a request that was interrupted while a session answered it; the same as that of [`Engine::run`].
fn cancelled(mut request: Request, settings: &CliSettings, began: Instant) -> Bundle {
    let paths = PathMap::new().workspace(settings.root.clone());
    request.map_uri(|uri| paths.absolute(uri).map_or_else(|| uri.clone(), |path| paths.uri(&path)));
    let served_from = if request.cmd == Command::Locate { ServedFrom::Syntax } else { ServedFrom::Server };
    let error =
        ErrorBody::new(ErrorSymbol::RequestCancelled, "the request was cancelled").hint("repeat the request");
    let mut bundle = error_bundle(Some(request), error);
    bundle.meta.volatile = Volatile {
        elapsed_ms: Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)),
        served_from: Some(served_from),
        root: Some(settings.root.to_string()),
        pid: Some(std::process::id()),
        ..Volatile::default()
    };
    bundle
}

/// A bundle with only an error.
pub(crate) fn error_bundle(request: Option<Request>, error: ErrorBody) -> Bundle {
    let mut bundle =
        seal(BundleDraft::failed(request, error)).expect("an error is made of texts and small integers");
    bundle.process_reward = Some(of_bundle(&bundle, None));
    bundle
}
