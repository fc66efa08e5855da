//! Messages as lines. The SDK's own transport answers a message that is no request without an `id`, which the reference client
//! refuses, and a line that is no JSON not at all; JSON-RPC wants `"id": null` for both. It takes a request whose parameters have
//! another type for one of an unknown method, and only names the method that it does not know.

use std::io;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, ClientRequest, InitializeRequestParams, JsonRpcMessage, ReadResourceRequestParams,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;

/// The longest line that is read, as in the SDK.
const MAX_LINE_BYTES: usize = 16 << 20;

/// The codes of JSON-RPC.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;

/// A connection whose messages are lines.
pub(super) struct Lines<R, W> {
    read: BufReader<R>,
    /// The line so far: a read may be interrupted.
    line: Vec<u8>,
    /// Whether the line is too long, and skipped to its end.
    is_skipped: bool,
    write: Arc<Mutex<W>>,
}

/// What a line is.
enum Line {
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// To be answered with an error.
    Refused {
        id: Value,
        code: i32,
        message: String,
    },
    /// Empty, or a notification that is not known.
    Ignored,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    pub(super) fn new(read: R, write: W) -> Self {
        let write = Arc::new(Mutex::new(write));
        Self { read: BufReader::new(read), line: Vec::new(), is_skipped: false, write }
    }

    /// Reads to the end of a line; `None` at the end of the input.
    async fn next(&mut self) -> Option<Line> {
        loop {
            let available = self.read.fill_buf().await.ok().filter(|available| !available.is_empty())?;
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if self.line.len() + taken > MAX_LINE_BYTES {
                self.is_skipped = true;
                self.line.clear();
            } else if !self.is_skipped {
                self.line.extend_from_slice(&available[..taken]);
            }
            self.read.consume(taken);
            if end.is_none() {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            return Some(match std::mem::take(&mut self.is_skipped) {
                true => refused(Value::Null, INVALID_REQUEST, format!("more than {MAX_LINE_BYTES} bytes")),
                false => read(line.trim_ascii()),
            });
        }
    }

    async fn write(write: &Mutex<W>, message: &impl serde::Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut write = write.lock().await;
        write.write_all(&line).await?;
        write.flush().await
    }
}

fn refused(id: Value, code: i32, message: String) -> Line {
    Line::Refused { id, code, message }
}

fn read(line: &[u8]) -> Line {
    if line.is_empty() {
        return Line::Ignored;
    }
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => return refused(Value::Null, PARSE_ERROR, format!("not JSON: {error}")),
    };
    let id = value.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64()).cloned();
    let method = value.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_notification = !method.is_empty() && value.get("id").is_none();
    // JSON-RPC also has parameters by position; MCP has none.
    if id.is_some() && !method.is_empty() && value.get("params").is_some_and(Value::is_array) {
        let message = format!("the parameters of {method} have to be an object");
        return refused(id.unwrap_or_default(), INVALID_PARAMS, message);
    }
    match serde_json::from_value(value) {
        Ok(message) => match invalid_params(&message) {
            Some(error) => refused(id.unwrap_or_default(), INVALID_PARAMS, error),
            None => Line::Message(Box::new(message)),
        },
        // The parameters may be of a later revision.
        Err(_) if is_notification => Line::Ignored,
        Err(error) => {
            refused(id.unwrap_or_default(), INVALID_REQUEST, format!("not a request of MCP: {error}"))
        }
    }
}

/// What is wrong with the parameters of a request that the server knows. The SDK takes it for one of an unknown method.
fn invalid_params(message: &RxJsonRpcMessage<RoleServer>) -> Option<String> {
    fn error<T: DeserializeOwned>(params: Value) -> Option<serde_json::Error> {
        serde_json::from_value::<T>(params).err()
    }
    let JsonRpcMessage::Request(request) = message else { return None };
    let ClientRequest::CustomRequest(unknown) = &request.request else { return None };
    let params = unknown.params.clone().unwrap_or_default();
    let error = match unknown.method.as_str() {
        "initialize" => error::<InitializeRequestParams>(params),
        "tools/call" => error::<CallToolRequestParams>(params),
        "resources/read" => error::<ReadResourceRequestParams>(params),
        _ => None,
    };
    error.map(|error| format!("the parameters of {}: {error}", unknown.method))
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let write = self.write.clone();
        let mut item = item;
        if let JsonRpcMessage::Error(error) = &mut item
            && error.error.code.0 == METHOD_NOT_FOUND
        {
            // The SDK's message is the name of the method.
            error.error.message = format!("unknown method: {}", error.error.message).into();
        }
        async move { Self::write(&write, &item).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            match self.next().await? {
                Line::Message(message) => return Some(*message),
                Line::Ignored => {}
                Line::Refused { id, code, message } => {
                    let error =
                        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
                    let write = self.write.clone();
                    // In a task, because reading may be interrupted.
                    drop(tokio::spawn(async move { Self::write(&write, &error).await }));
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.lock().await.shutdown().await
    }
}
