//! One operation of a trace: turning it into events for the writer, and collecting events from the reader.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::path_redactor::PathRedactor;
use crate::digest::Digest;
use crate::model::bundle::{Bundle, Volatile};
use crate::model::environment::Environment;
use crate::model::error::ErrorBody;
use crate::model::request::Request;
use crate::model::server::ServerKind;
use crate::model::trace::{
    EventBody, RecordedBundle, RecordedCall, RecordedStep, RecordedWorkspace, TRACE_FORMAT, TRACE_VERSION,
};
use crate::tape::{CallKey, Exchange, IoKind, MessageSender, Recording, call_key};

/// An operation that is over, ready to be written.
#[derive(Debug)]
pub struct FinishedOperation {
    /// The request; `None` when it could not be read.
    pub request: Option<Request>,
    /// The kind of server; `None` without a request.
    pub server: Option<ServerKind>,
    /// The workspace state that the answer is based on; `None` when the request failed before.
    pub workspace: Option<Arc<RecordedWorkspace>>,
    /// The recorded I/O.
    pub recorded: Recording,
    /// An external failure (server, changed workspace, caller), and whether the selector was resolved before it.
    pub fault: Option<(ErrorBody, bool)>,
    /// The resulting bundle.
    pub bundle: Bundle,
    /// Replaces local folders in everything that is written.
    pub redactor: PathRedactor,
}

impl FinishedOperation {
    /// An operation whose request could not be read.
    #[must_use]
    pub fn unread(error: ErrorBody, bundle: Bundle) -> Self {
        Self {
            request: None,
            server: None,
            workspace: None,
            recorded: Recording::default(),
            fault: Some((error, false)),
            bundle,
            redactor: PathRedactor::default(),
        }
    }

    /// The events of the operation, except contents for which `is_known` is true and the final `end`.
    pub(super) fn bodies(self, argv: &[String], mut is_known: impl FnMut(&Digest) -> bool) -> Vec<EventBody> {
        let Self { request, server, workspace, recorded, fault, mut bundle, redactor } = self;
        let environment = workspace.as_ref().map(|workspace| Box::new(workspace.environment.clone()));
        let argv = argv.iter().map(|argument| redactor.argument(argument)).collect();
        let mut bodies = vec![header(argv, environment)];
        let id = workspace.as_ref().map(|workspace| workspace.id);
        if let Some(workspace) = workspace.filter(|workspace| !is_known(&workspace.id)) {
            bodies.push(EventBody::Workspace(Box::new((*workspace).clone())));
        }
        for (digest, bytes) in &recorded.blobs {
            if !is_known(digest) {
                bodies.push(blob_body(*digest, bytes));
            }
        }
        if let (Some(request), Some(server)) = (request, server) {
            let resolved =
                redactor.in_uris().data(&request).filter(|resolved| *resolved != request).map(Box::new);
            bodies.push(EventBody::Request { request: Box::new(request), resolved, workspace: id, server });
        }
        for ((door, question), answer) in &recorded.answers {
            let pair = RecordedCall { question: redactor.json(question), answer: redactor.json(answer) };
            bodies.push(match door {
                IoKind::File => EventBody::File(pair),
                IoKind::Index => EventBody::Index(pair),
                IoKind::History => EventBody::History(pair),
                IoKind::Contents => EventBody::Contents(pair),
                IoKind::Guard => EventBody::Guard(pair),
                IoKind::Transaction => EventBody::Transaction(pair),
                IoKind::Analyzer => EventBody::Analyzer(pair),
            });
        }
        for frame in &recorded.frames {
            bodies.push(EventBody::Frame { from: frame.from, message: redactor.json(&frame.message) });
        }
        if let Some((error, resolved)) = fault {
            bodies.push(EventBody::Fault { error: Box::new(error), resolved });
        }
        bundle.meta.volatile = Volatile::default();
        bodies.push(EventBody::Bundle { bundle: RecordedBundle::Current(Box::new(bundle)) });
        bodies
    }
}

/// The events of a step, except the final `end`.
pub(super) fn step_bodies(step: RecordedStep) -> Vec<EventBody> {
    vec![header(Vec::new(), None), EventBody::Step(Box::new(step))]
}

fn header(argv: Vec<String>, environment: Option<Box<Environment>>) -> EventBody {
    EventBody::Header {
        format: TRACE_FORMAT.to_owned(),
        version: TRACE_VERSION.to_owned(),
        lanser: env!("CARGO_PKG_VERSION").to_owned(),
        argv,
        environment,
    }
}

fn blob_body(digest: Digest, bytes: &Arc<Vec<u8>>) -> EventBody {
    match std::str::from_utf8(bytes) {
        Ok(text) => EventBody::Blob { digest, text: Some(text.to_owned()), hex: None },
        Err(_) => {
            let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            EventBody::Blob { digest, text: None, hex: Some(hex) }
        }
    }
}

/// The bytes of a blob; `None` unless exactly one of `text` and valid `hex` is given.
pub(super) fn bytes_of(text: Option<String>, hex: Option<&str>) -> Option<Vec<u8>> {
    match (text, hex) {
        (Some(text), None) => Some(text.into_bytes()),
        (None, Some(hex)) if hex.len().is_multiple_of(2) => (0..hex.len())
            .step_by(2)
            .map(|at| hex.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
            .collect(),
        _ => None,
    }
}

/// One operation, read from a trace.
#[derive(Debug)]
pub struct TracedOperation {
    /// Its number in the file, from 1.
    pub op: u64,
    /// The request; `None` when it could not be read.
    pub request: Option<Request>,
    /// The request with local folders replaced.
    pub resolved: Option<Request>,
    /// The id of its workspace event.
    pub workspace: Option<Digest>,
    /// The kind of server.
    pub server: Option<ServerKind>,
    /// Recording answers by I/O boundary and question, both as JSON text.
    pub answers: BTreeMap<(IoKind, String), String>,
    /// Server calls by their [`call_key`].
    pub calls: BTreeMap<CallKey, VecDeque<Exchange>>,
    /// All messages: event number, sender, message.
    pub frames: Vec<(u64, MessageSender, Value)>,
    /// What the server sent unprompted when it started, as JSON text.
    pub introduction: Vec<String>,
    /// An external failure (server, changed workspace, caller), and whether the selector was resolved before it.
    pub fault: Option<(ErrorBody, bool)>,
    /// The resulting bundle.
    pub bundle: Option<RecordedBundle>,
    /// The reward, if the operation is a step and not a request.
    pub step: Option<RecordedStep>,
    /// The command-line arguments of the recording process.
    pub argv: Vec<String>,
    /// The number of events.
    pub events: u64,
    /// The number of bytes of all its lines.
    pub bytes: u64,
}

impl TracedOperation {
    pub(super) fn new(op: u64) -> Self {
        Self {
            op,
            request: None,
            resolved: None,
            workspace: None,
            server: None,
            answers: BTreeMap::new(),
            calls: BTreeMap::new(),
            frames: Vec::new(),
            introduction: Vec::new(),
            fault: None,
            bundle: None,
            step: None,
            argv: Vec::new(),
            events: 0,
            bytes: 0,
        }
    }

    /// Adds an event. Blobs and workspaces belong to the file, not to the operation.
    pub(super) fn add_event(&mut self, seq: u64, body: EventBody) {
        match body {
            EventBody::Header { argv, .. } => self.argv = argv,
            EventBody::Request { request, resolved, workspace, server } => {
                self.request = Some(*request);
                self.resolved = resolved.map(|request| *request);
                self.workspace = workspace;
                self.server = Some(server);
            }
            EventBody::File(pair) => self.insert_answer(IoKind::File, &pair),
            EventBody::Index(pair) => self.insert_answer(IoKind::Index, &pair),
            EventBody::History(pair) => self.insert_answer(IoKind::History, &pair),
            EventBody::Contents(pair) => self.insert_answer(IoKind::Contents, &pair),
            EventBody::Guard(pair) => self.insert_answer(IoKind::Guard, &pair),
            EventBody::Transaction(pair) => self.insert_answer(IoKind::Transaction, &pair),
            EventBody::Analyzer(pair) => self.insert_answer(IoKind::Analyzer, &pair),
            EventBody::Frame { from, message } => self.frames.push((seq, from, message)),
            EventBody::Fault { error, resolved } => self.fault = Some((*error, resolved)),
            EventBody::Bundle { bundle } => self.bundle = Some(bundle),
            EventBody::Step(step) => self.step = Some(*step),
            EventBody::Workspace(_) | EventBody::Blob { .. } | EventBody::End { .. } => {}
        }
    }

    fn insert_answer(&mut self, door: IoKind, pair: &RecordedCall) {
        self.answers.insert((door, pair.question.to_string()), pair.answer.to_string());
    }

    /// Groups the frames into calls with their responses.
    pub(super) fn group_calls(&mut self) {
        let mut pending: BTreeMap<u64, (CallKey, usize)> = BTreeMap::new();
        let mut meanwhile: Vec<String> = Vec::new();
        for (_, from, message) in &self.frames {
            let id = message["id"].as_u64();
            match (from, message["method"].as_str(), id) {
                (MessageSender::Client, Some(method), Some(id)) => {
                    let key = call_key(method, &message["params"]);
                    let exchanges = self.calls.entry(key.clone()).or_default();
                    pending.insert(id, (key, exchanges.len()));
                    exchanges.push_back(Exchange::default());
                }
                (
                    MessageSender::Server,
                    Some("window/logMessage" | "client/registerCapability" | "workspace/configuration"),
                    _,
                ) => self.introduction.push(message.to_string()),
                (MessageSender::Server, Some(_), _) => meanwhile.push(message.to_string()),
                (MessageSender::Server, None, Some(id)) => {
                    let Some((key, at)) = pending.get(&id) else { continue };
                    if let Some(exchange) =
                        self.calls.get_mut(key).and_then(|exchanges| exchanges.get_mut(*at))
                    {
                        exchange.outcome = Some(message.to_string());
                        exchange.meanwhile = std::mem::take(&mut meanwhile);
                    }
                }
                _ => {}
            }
        }
    }
}
