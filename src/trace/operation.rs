//! One operation, as it is written and as it is read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::machine::Machine;
use crate::digest::{Digest, to_canonical};
use crate::model::bundle::{Bundle, Volatile};
use crate::model::error::ErrorBody;
use crate::model::request::Request;
use crate::model::server::ServerKind;
use crate::model::trace::{Asked, Body, TRACE_VERSION, Workspace};
use crate::tape::{Door, Exchange, Recorded, Side};

/// The name of the format, in every header.
pub const FORMAT: &str = "lanser-trace";

/// Everything that is to be written of one operation.
#[derive(Debug)]
pub struct Finished {
    /// What was asked; `None` when it could not be read.
    pub request: Option<Request>,
    /// Which server; `None` without a request.
    pub server: Option<ServerKind>,
    /// The workspace on which it was answered. Blank where it came to none.
    pub workspace: Option<Arc<Workspace>>,
    /// What passed through the doors.
    pub recorded: Recorded,
    /// What failed outside, and whether the selector had been resolved before.
    pub fault: Option<(ErrorBody, bool)>,
    /// The answer.
    pub bundle: Bundle,
    /// The machine's folders.
    pub machine: Machine,
}

impl Finished {
    /// An operation whose request could not be read.
    #[must_use]
    pub fn unread(error: ErrorBody, bundle: Bundle) -> Self {
        Self {
            request: None,
            server: None,
            workspace: None,
            recorded: Recorded::default(),
            fault: Some((error, false)),
            bundle,
            machine: Machine::default(),
        }
    }

    /// The events of the operation without those that `is_known` already, and without the end.
    pub(super) fn bodies(self, argv: &[String], mut is_known: impl FnMut(&Digest) -> bool) -> Vec<Body> {
        let Self { request, server, workspace, recorded, fault, mut bundle, machine } = self;
        let environment = workspace.as_ref().map(|workspace| Box::new(workspace.environment.clone()));
        let mut bodies = vec![Body::Header {
            format: FORMAT.to_owned(),
            version: TRACE_VERSION.to_owned(),
            lanser: env!("CARGO_PKG_VERSION").to_owned(),
            argv: argv.iter().map(|argument| machine.argument(argument)).collect(),
            environment,
        }];
        let id = workspace.as_ref().map(|workspace| workspace.id);
        if let Some(workspace) = workspace.filter(|workspace| !is_known(&workspace.id)) {
            bodies.push(Body::Workspace(Box::new((*workspace).clone())));
        }
        for (digest, bytes) in &recorded.blobs {
            if !is_known(digest) {
                bodies.push(blob(*digest, bytes));
            }
        }
        if let (Some(request), Some(server)) = (request, server) {
            let resolved =
                machine.in_uris().data(&request).filter(|resolved| *resolved != request).map(Box::new);
            bodies.push(Body::Request { request: Box::new(request), resolved, workspace: id, server });
        }
        for ((door, question), answer) in &recorded.answers {
            let asked = Asked { question: machine.json(question), answer: machine.json(answer) };
            bodies.push(match door {
                Door::File => Body::File(asked),
                Door::Index => Body::Index(asked),
                Door::History => Body::History(asked),
                Door::Contents => Body::Contents(asked),
                Door::Guard => Body::Guard(asked),
                Door::Transaction => Body::Transaction(asked),
            });
        }
        for frame in &recorded.frames {
            bodies.push(Body::Frame { from: frame.from, message: machine.json(&frame.message) });
        }
        if let Some((error, resolved)) = fault {
            bodies.push(Body::Fault { error: Box::new(error), resolved });
        }
        bundle.meta.volatile = Volatile::default();
        bodies.push(Body::Bundle { bundle: Box::new(bundle) });
        bodies
    }
}

fn blob(digest: Digest, bytes: &Arc<Vec<u8>>) -> Body {
    match std::str::from_utf8(bytes) {
        Ok(text) => Body::Blob { digest, text: Some(text.to_owned()), hex: None },
        Err(_) => {
            let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            Body::Blob { digest, text: None, hex: Some(hex) }
        }
    }
}

/// The bytes of a blob; `None` when they are written neither way.
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

/// One operation as it was read.
#[derive(Debug)]
pub struct Operation {
    /// Its number in the file.
    pub op: u64,
    /// What was asked; `None` when it could not be read.
    pub request: Option<Request>,
    /// The same with the machine's folders replaced.
    pub resolved: Option<Request>,
    /// The workspace by its id.
    pub workspace: Option<Digest>,
    /// Which server.
    pub server: Option<ServerKind>,
    /// Questions and answers, both as JSON text.
    pub answers: BTreeMap<(Door, String), String>,
    /// Calls by method and canonical parameters.
    pub calls: BTreeMap<(String, String), VecDeque<Exchange>>,
    /// The conversation: number of the event, sender, message.
    pub frames: Vec<(u64, Side, Value)>,
    /// What the server said by itself when it was started, as JSON text.
    pub introduction: Vec<String>,
    /// What failed outside, and whether the selector had been resolved before.
    pub fault: Option<(ErrorBody, bool)>,
    /// The answer.
    pub bundle: Option<Bundle>,
    /// The arguments of the program that recorded it.
    pub argv: Vec<String>,
    /// How many events it has.
    pub events: u64,
    /// How many bytes they take.
    pub bytes: u64,
}

impl Operation {
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
            argv: Vec::new(),
            events: 0,
            bytes: 0,
        }
    }

    /// Takes an event in; blobs and workspaces are not part of it.
    pub(super) fn take(&mut self, seq: u64, body: Body) {
        match body {
            Body::Header { argv, .. } => self.argv = argv,
            Body::Request { request, resolved, workspace, server } => {
                self.request = Some(*request);
                self.resolved = resolved.map(|request| *request);
                self.workspace = workspace;
                self.server = Some(server);
            }
            Body::File(asked) => self.asked(Door::File, &asked),
            Body::Index(asked) => self.asked(Door::Index, &asked),
            Body::History(asked) => self.asked(Door::History, &asked),
            Body::Contents(asked) => self.asked(Door::Contents, &asked),
            Body::Guard(asked) => self.asked(Door::Guard, &asked),
            Body::Transaction(asked) => self.asked(Door::Transaction, &asked),
            Body::Frame { from, message } => self.frames.push((seq, from, message)),
            Body::Fault { error, resolved } => self.fault = Some((*error, resolved)),
            Body::Bundle { bundle } => self.bundle = Some(*bundle),
            Body::Workspace(_) | Body::Blob { .. } | Body::End { .. } => {}
        }
    }

    fn asked(&mut self, door: Door, asked: &Asked) {
        self.answers.insert((door, asked.question.to_string()), asked.answer.to_string());
    }

    /// Orders the conversation by calls.
    pub(super) fn settle(&mut self) {
        let mut open: BTreeMap<u64, ((String, String), usize)> = BTreeMap::new();
        let mut meanwhile: Vec<String> = Vec::new();
        for (_, from, message) in &self.frames {
            let id = message["id"].as_u64();
            match (from, message["method"].as_str(), id) {
                (Side::Client, Some(method), Some(id)) => {
                    let key = (method.to_owned(), canonical(&message["params"]));
                    let alike = self.calls.entry(key.clone()).or_default();
                    open.insert(id, (key, alike.len()));
                    alike.push_back(Exchange::default());
                }
                (Side::Server, Some("window/logMessage" | "client/registerCapability"), _) => {
                    self.introduction.push(message.to_string());
                }
                (Side::Server, Some(_), _) => meanwhile.push(message.to_string()),
                (Side::Server, None, Some(id)) => {
                    let Some((key, at)) = open.get(&id) else { continue };
                    if let Some(exchange) = self.calls.get_mut(key).and_then(|alike| alike.get_mut(*at)) {
                        exchange.outcome = Some(message.to_string());
                        exchange.meanwhile = std::mem::take(&mut meanwhile);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Parameters in the one form by which calls are matched.
#[must_use]
pub fn canonical(params: &Value) -> String {
    to_canonical(params)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_else(|| params.to_string())
}
