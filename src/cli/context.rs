//! What a verb works with: surroundings, options, settings, and the way from a request to a printed bundle.

use std::io::Read as _;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use super::environment::Environment;
use super::exit::Exit;
use super::global::GlobalArgs;
use super::output::{Format, Printer};
use super::rewards;
use super::settings::{FromEnvironment, Settings};
use crate::bundle::portable::PathMap;
use crate::bundle::seal::{Draft, seal};
use crate::model::bundle::{Bundle, Road, Volatile};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Options, Request};
use crate::orchestrator::session::{Caller, Reply, Terms, Trouble};
use crate::orchestrator::stall::{Heart, Why};
use crate::orchestrator::{self, Orchestrator, read_selector};
use crate::path::{DocUri, WorkspacePath};
use crate::reward::of_bundle;
use crate::selector::PositionSpec;
use crate::trace::operation::Finished;
use crate::trace::writer::Writer;
use crate::workspace::files::canonical;

/// An answer, read or as it came.
enum Answer {
    Bundle(Box<Bundle>),
    /// To be printed as it is.
    Bytes(Reply),
}

/// What a verb works with.
pub(crate) struct Context {
    pub(crate) env: Environment,
    pub(crate) global: GlobalArgs,
    pub(crate) from_env: FromEnvironment,
    pub(crate) printer: Printer,
    /// Where operations are recorded, once it was opened.
    pub(crate) trace: Option<Arc<Writer>>,
}

impl Context {
    /// The settings of this run.
    ///
    /// # Errors
    /// When an option or a configuration file cannot be read.
    pub(crate) fn settings(&self) -> Result<Settings, ErrorBody> {
        Settings::new(&self.global, &self.from_env, &self.env)
    }

    /// The options of a request that every verb shares.
    pub(crate) fn options(&self, settings: &Settings) -> Options {
        Options {
            index_io: settings.index_io,
            scope: settings.scope,
            limit: self.global.limit,
            cursor: self.global.cursor.clone(),
            ..Options::default()
        }
    }

    /// Reads a selector: its string form, its JSON form, or `-` for either on standard input.
    ///
    /// # Errors
    /// When it is neither.
    pub(crate) fn selector(&self, text: &str, settings: &Settings) -> Result<PositionSpec, ErrorBody> {
        let mut input = text.to_owned();
        if text == "-" {
            input.clear();
            std::io::stdin().take(1 << 20).read_to_string(&mut input).map_err(|error| {
                ErrorBody::new(ErrorSymbol::Usage, format!("cannot read standard input: {error}"))
            })?;
        }
        let mut selector = read_selector(input.trim(), settings.index_io)?;
        selector.map_uri(|uri| self.seen_from_here(uri, settings));
        Ok(selector)
    }

    /// A path that the workspace does not have, and the current folder has, is meant from the current folder on.
    fn seen_from_here(&self, uri: &DocUri, settings: &Settings) -> DocUri {
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

    /// Asks the question that `make` builds and prints the answer.
    pub(crate) fn ask(&mut self, make: impl FnOnce(&Self, &Settings) -> Result<Request, ErrorBody>) -> Exit {
        let settings = match self.settings() {
            Ok(settings) => settings,
            Err(error) => return self.fail(error),
        };
        let settings = match self.record(settings) {
            Ok(settings) => settings,
            Err(error) => return self.fail(error),
        };
        let asked = make(self, &settings).and_then(|request| Ok((request, rewards::asked(self, &settings)?)));
        match asked {
            Ok((request, asked)) => match self.answer(&settings, request, asked.is_some()) {
                Answer::Bundle(mut bundle) => {
                    if let Some(asked) = asked {
                        self.reward(&asked, &mut bundle, &settings);
                    }
                    self.printer.bundle(&bundle)
                }
                Answer::Bytes(reply) => self.printer.reply(&reply),
            },
            Err(error) => self.fail(error),
        }
    }

    /// Puts the reward that was asked for into a bundle that was just made.
    fn reward(&self, asked: &rewards::Asked, bundle: &mut Bundle, settings: &Settings) {
        let Ok(runtime) = runtime() else { return asked.put_into(bundle) };
        let own = self.orchestrator_settings(settings);
        runtime.block_on(async {
            tokio::select! {
                () = asked.put_into_new(bundle, &own) => {}
                () = super::signals::interrupted() => {}
            }
        });
        runtime.shutdown_background();
    }

    /// Asks a question about a selector and prints the answer.
    pub(crate) fn ask_about(&mut self, cmd: Command, selector: &str, set: impl FnOnce(&mut Options)) -> Exit {
        let make = |context: &Self, settings: &Settings| {
            let mut options = context.options(settings);
            set(&mut options);
            Ok(Request {
                cmd,
                selector: Some(context.selector(selector, settings)?),
                new_name: None,
                options,
            })
        };
        self.ask(make)
    }

    /// Has the session answer, or answers in this process. `read` says that the bundle itself is needed.
    fn answer(&self, settings: &Settings, request: Request, read: bool) -> Answer {
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(error) => return Answer::Bundle(Box::new(error_bundle(Some(request), error))),
        };
        let heart = self.guard(&request, settings.timeout);
        let answer = runtime.block_on(async {
            heart.beat();
            let mut interrupted = pin!(super::signals::interrupted());
            if let Some(answer) = self.ask_session(settings, &request, read, interrupted.as_mut()).await {
                return answer;
            }
            let orchestrator = Orchestrator::for_one(self.orchestrator_settings(settings));
            Answer::Bundle(Box::new(orchestrator.run(request, interrupted).await))
        });
        heart.end();
        // What still runs in the background (a scan that nobody waits for any more) must not hold the answer up.
        runtime.shutdown_background();
        answer
    }

    /// Ends the program when a step of the work takes longer than an answer may: nothing else would be heard meanwhile, no
    /// signal and no time limit.
    fn guard(&self, request: &Request, limit: std::time::Duration) -> Heart {
        let heart = Heart::default();
        let (request, printer) = (request.clone(), self.printer.clone());
        heart.guard(limit, super::signals::interrupted, move |why| {
            printer.bundle(&error_bundle(Some(request), stopped(why, limit))).number()
        });
        heart
    }

    /// The session's answer. `None` when sessions are off, and when anything is wrong with this one: then nobody needs to
    /// know that it was tried.
    async fn ask_session(
        &self,
        settings: &Settings,
        request: &Request,
        read: bool,
        interrupted: Pin<&mut impl Future<Output = ()>>,
    ) -> Option<Answer> {
        // A session that dies is replaced and asked again; but what it wrote before must not be written twice, and a caller
        // that is interrupted must know whether anything was written. Undoing needs no server anyway.
        if !settings.session || request.writes() || request.cmd == Command::Undo {
            return None;
        }
        // What needs no server is not worth a session; one that is there has read the files already.
        let start = request.cmd != Command::Locate;
        let began = Instant::now();
        let mut caller = self.caller(settings, start).ok()?;
        let reply = tokio::select! {
            biased;
            reply = caller.ask(request) => reply.ok()?,
            () = interrupted => {
                caller.done();
                return Some(Answer::Bundle(Box::new(cancelled(request.clone(), settings, began))));
            }
        };
        if self.printer.prints_bytes() && !read {
            return Some(Answer::Bytes(reply));
        }
        serde_json::from_slice(&reply.bundle).ok().map(|bundle| Answer::Bundle(Box::new(bundle)))
    }

    /// Somebody who can ask the session for these settings.
    ///
    /// # Errors
    /// When no session can be had.
    pub(crate) fn caller(&self, settings: &Settings, start: bool) -> Result<Caller, Trouble> {
        let terms = Terms { idle: settings.session_idle };
        Caller::new(self.env.sessions(), self.orchestrator_settings(settings), terms, start)
    }

    pub(crate) fn orchestrator_settings(&self, settings: &Settings) -> orchestrator::Settings {
        orchestrator::Settings {
            root: settings.root.clone(),
            copy_of: None,
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
            threads: orchestrator::processors(),
            session_memory: settings.session_memory,
            progress: self.printer.progress(),
            trace: self.trace.clone(),
        }
    }

    /// Opens the trace, if there is to be one. What is recorded is answered in this process.
    ///
    /// # Errors
    /// When it cannot be written into.
    pub(crate) fn record(&mut self, mut settings: Settings) -> Result<Settings, ErrorBody> {
        let Some(file) = &self.global.trace_file else { return Ok(settings) };
        let path = self.env.cwd.join(file);
        let words = &self.printer.typed;
        let writer = Writer::open(&path, words.clone()).map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                let message = format!("cannot record into {file}: there is no folder {}", path.parent());
                return ErrorBody::new(ErrorSymbol::NotFound, message).hint("make the folder first");
            }
            ErrorBody::new(ErrorSymbol::FsPermissions, format!("cannot record into {file}: {error}"))
                .hint("name a file that can be written with --trace-file")
        })?;
        self.trace = Some(Arc::new(writer));
        settings.session = false;
        Ok(settings)
    }

    /// Prints why nothing could be asked.
    pub(crate) fn fail(&mut self, error: ErrorBody) -> Exit {
        let bundle = error_bundle(None, error.clone());
        if let Some(trace) = &self.trace
            && let Err(failed) = trace.append(Finished::unread(error, bundle.clone()))
        {
            self.printer.complain(&format!("the trace could not be written: {failed}"));
        }
        self.printer.bundle(&bundle)
    }

    /// Whether standard output is to hold JSON.
    pub(crate) const fn json(&self) -> bool {
        matches!(self.printer.format, Format::Json)
    }
}

/// The event loop of this process. It has one thread, because servers die with the thread that started them.
///
/// # Errors
/// When the operating system gives none.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, ErrorBody> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        let message = format!("the operating system gives no event loop: {error}");
        ErrorBody::new(ErrorSymbol::Internal, message)
    })
}

/// What is said when a step of the work was stopped.
pub(crate) fn stopped(why: Why, limit: std::time::Duration) -> ErrorBody {
    match why {
        Why::Interrupted => {
            ErrorBody::new(ErrorSymbol::RequestCancelled, "the request was cancelled").hint("ask again")
        }
        Why::Limit => {
            let message = format!("a step of lanser's own work took more than {} s", limit.as_secs());
            ErrorBody::new(ErrorSymbol::LsTimeout, message)
                .hint("deeply nested files and very long lines take long; --timeout gives more time")
        }
    }
}

/// What [`Orchestrator::run`] says when it is interrupted, for a question that a session was asked.
fn cancelled(mut request: Request, settings: &Settings, began: Instant) -> Bundle {
    if let Some(selector) = &mut request.selector {
        let paths = PathMap::new().workspace(settings.root.clone());
        selector.map_uri(|uri| paths.absolute(uri).map_or_else(|| uri.clone(), |path| paths.uri(&path)));
    }
    let road = if request.cmd == Command::Locate { Road::Syntax } else { Road::Cold };
    let error = ErrorBody::new(ErrorSymbol::RequestCancelled, "the request was cancelled").hint("ask again");
    let mut bundle = error_bundle(Some(request), error);
    bundle.meta.volatile = Volatile {
        id: None,
        line: None,
        elapsed_ms: Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)),
        road: Some(road),
        root: Some(settings.root.to_string()),
        pid: Some(std::process::id()),
        coordinates: Vec::new(),
    };
    bundle
}

/// A bundle that says only why there is no answer.
pub(crate) fn error_bundle(request: Option<Request>, error: ErrorBody) -> Bundle {
    let mut bundle =
        seal(Draft::failed(request, error)).expect("an error is made of texts and small integers");
    bundle.process_reward = Some(of_bundle(&bundle, None));
    bundle
}
