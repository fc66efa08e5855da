//! A client of a server that speaks JSON-RPC on standard input and output.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::TestEnv;

/// How long a message may take.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(120);

/// How messages are delimited.
#[derive(Clone, Copy)]
pub(crate) enum Framing {
    /// One on each line, as in MCP.
    Lines,
    /// With a header, as in LSP.
    Headers,
}

/// A running server and its client. Dropping it kills the server.
pub(crate) struct RpcClient {
    child: Child,
    stdin: Option<ChildStdin>,
    received: Receiver<Value>,
    framing: Framing,
    next_id: u64,
    /// The notifications and the requests of the server that came so far.
    pub(crate) notes: Vec<Value>,
}

impl RpcClient {
    /// Starts lanser with these arguments.
    pub(crate) fn start(env: &TestEnv, args: &[&str], framing: Framing) -> Self {
        let mut command = env.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, received) = channel();
        std::thread::spawn(move || {
            let mut stdout = stdout;
            while let Some(message) = read(&mut stdout, framing) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, received, framing, next_id: 0, notes: Vec::new() }
    }

    /// Sends any bytes.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let framed = match self.framing {
            Framing::Lines => format!("{text}\n"),
            Framing::Headers => format!("Content-Length: {}\r\n\r\n{text}", text.len()),
        };
        self.send_raw(framed.as_bytes());
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request; returns its id.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    /// The response with this id: a message with `result` or `error`.
    #[track_caller]
    pub(crate) fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.message().unwrap_or_else(|| panic!("no response to {id}"));
            match message.get("method") {
                None if message["id"] == id => return message,
                _ => self.notes.push(message),
            }
        }
    }

    /// Sends a request and waits for the response.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.response(id)
    }

    /// The next message; `None` at the end of the stream.
    #[track_caller]
    pub(crate) fn message(&mut self) -> Option<Value> {
        match self.received.recv_timeout(MESSAGE_TIMEOUT) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no message within {MESSAGE_TIMEOUT:?}"),
        }
    }

    /// Closes the input of the server and returns its exit code, and how long it took to end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> (Option<i32>, Duration) {
        drop(self.stdin.take());
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), began.elapsed());
            }
            assert!(began.elapsed() < Duration::from_secs(30), "the server did not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for RpcClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(stdout: &mut BufReader<ChildStdout>, framing: Framing) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match framing {
            Framing::Lines => {
                return Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line:?}")));
            }
            Framing::Headers if line == "\r\n" => break,
            Framing::Headers => {
                if let Some(value) = line.strip_prefix("Content-Length: ") {
                    length = value.trim().parse().unwrap();
                }
            }
        }
    }
    let mut body = vec![0; length];
    stdout.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).unwrap())
}
