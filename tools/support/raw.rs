//! A minimal synchronous LSP client for Pyright, its forks and ty.
//!
//! It shares no code with the library, so that a mistake there cannot hide here. It has only what is needed to send requests to a
//! healthy local server, and to kill it.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Time limit for each response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(300);

/// The settings of a raw server.
#[derive(Debug, Clone)]
pub(crate) struct RawOptions {
    /// The path of the server's script, or of ty's program.
    pub(crate) script: PathBuf,
    /// The interpreter whose installed packages the server uses; for ty the folder of its environment.
    pub(crate) python: PathBuf,
    /// A folder for the server's temporary files, including its cancellation folder.
    pub(crate) scratch: PathBuf,
    /// Whether diagnostics are pulled: Pyright does not answer pull requests from a client with cancellation files.
    pub(crate) pulls: bool,
}

impl RawOptions {
    /// Whether the server is ty. It finds the files to search by itself, and a request waits until it can be answered.
    pub(crate) fn is_ty(&self) -> bool {
        self.script.extension().is_none_or(|extension| extension != "js")
    }

    fn command(&self, stamp: &str) -> Command {
        if self.is_ty() {
            let mut command = Command::new(&self.script);
            command.arg("server");
            return command;
        }
        let cancellable = (!self.pulls).then(|| format!("--cancellationReceive=file:{stamp}"));
        let mut command = Command::new("node");
        command.arg("--max-old-space-size=4096").arg(&self.script).arg("--stdio").args(cancellable);
        command
    }

    /// The settings that the server requests, by section.
    fn configuration(&self) -> Value {
        let python = text(&self.python);
        if self.is_ty() {
            return json!({"ty": {
                "configuration": {"environment": {"python": python}},
                "diagnosticMode": "openFilesOnly",
            }});
        }
        let analysis = json!({
            "autoSearchPaths": true,
            "diagnosticMode": "openFilesOnly",
            "logLevel": "Information",
            "useLibraryCodeForTypes": true,
        });
        let python = json!({"analysis": analysis, "pythonPath": python});
        json!({"python": python, "python.analysis": analysis, "pyright": {}})
    }
}

/// A running server. Dropping it kills the server.
#[derive(Debug)]
pub(crate) struct Raw {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    configuration: Value,
    root: PathBuf,
    enumerated: bool,
    next: i64,
    answers: BTreeMap<i64, Value>,
    log: VecDeque<String>,
}

impl Raw {
    /// Starts a server and sends `initialize` without waiting for the response, so that the caller can work meanwhile.
    pub(crate) fn spawn(options: &RawOptions, root: &Path) -> Result<Self, String> {
        let stamp = format!("raw-{}", std::process::id());
        fs::create_dir_all(options.scratch.join("python-languageserver-cancellation").join(&stamp))
            .map_err(|error| format!("the scratch folder cannot be made: {error}"))?;
        let mut child = options
            .command(&stamp)
            .current_dir(root)
            .env("TMPDIR", &options.scratch)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("the server cannot be started: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the server has no pipes".to_owned());
        };
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read_message(&mut output) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut raw = Self {
            child,
            input,
            messages,
            configuration: options.configuration(),
            root: root.to_owned(),
            enumerated: options.is_ty(),
            next: 0,
            answers: BTreeMap::new(),
            log: VecDeque::new(),
        };
        let root = uri(root);
        raw.send_request(
            "initialize",
            &json!({
                "processId": std::process::id(),
                "locale": "en",
                "rootUri": root,
                "workspaceFolders": raw.folders(),
                "capabilities": capabilities(!options.is_ty()),
                "initializationOptions": {},
            }),
        )?;
        Ok(raw)
    }

    /// Finishes initialization, and waits for the log message that the source files are enumerated.
    pub(crate) fn barrier(&mut self) -> Result<(), String> {
        self.answer(1)?;
        self.notify("initialized", &json!({}))?;
        while !self.enumerated {
            self.pump("the enumeration of source files")?;
        }
        Ok(())
    }

    /// Opens a document with this text.
    pub(crate) fn open(&mut self, path: &Path, text: &str) -> Result<(), String> {
        let document = json!({"uri": uri(path), "languageId": "python", "version": 1, "text": text});
        self.notify("textDocument/didOpen", &json!({"textDocument": document}))
    }

    /// Closes a document.
    pub(crate) fn close(&mut self, path: &Path) -> Result<(), String> {
        self.notify("textDocument/didClose", &json!({"textDocument": {"uri": uri(path)}}))
    }

    /// Replaces the text of an open document. Versions must only increase.
    #[allow(dead_code, reason = "only the example `score_speed` changes documents")]
    pub(crate) fn change(&mut self, path: &Path, version: usize, text: &str) -> Result<(), String> {
        let document = json!({"uri": uri(path), "version": version});
        let changes = json!([{"text": text}]);
        self.notify("textDocument/didChange", &json!({"textDocument": document, "contentChanges": changes}))
    }

    /// Pulls the diagnostics of open documents concurrently, and waits for all reports.
    #[allow(dead_code, reason = "only the example `score_speed` pulls")]
    pub(crate) fn pull_all(&mut self, paths: &[PathBuf]) -> Result<Vec<Value>, String> {
        let mut asked = Vec::new();
        for path in paths {
            let params = json!({"textDocument": {"uri": uri(path)}});
            asked.push(self.send_request("textDocument/diagnostic", &params)?);
        }
        asked.into_iter().map(|id| self.answer(id)).collect()
    }

    /// Sends a request about a position (0-based line, UTF-16 column) and waits for the result.
    pub(crate) fn ask(&mut self, method: &str, path: &Path, position: [u32; 2]) -> Result<Value, String> {
        let mut params = json!({
            "textDocument": {"uri": uri(path)},
            "position": {"line": position[0], "character": position[1]},
        });
        if method == "textDocument/references" {
            params["context"] = json!({"includeDeclaration": true});
        }
        let id = self.send_request(method, &params)?;
        self.answer(id)
    }

    /// Sends requests about many positions, with at most `at_once` of them unanswered at any time, and waits for all results.
    #[allow(dead_code, reason = "only the example `throughput` asks so")]
    pub(crate) fn ask_all(
        &mut self,
        method: &str,
        places: &[(&Path, [u32; 2])],
        at_once: usize,
    ) -> Result<Vec<Value>, String> {
        let mut asked = VecDeque::new();
        let mut results = Vec::new();
        for (path, position) in places {
            if asked.len() == at_once
                && let Some(id) = asked.pop_front()
            {
                results.push(self.answer(id)?);
            }
            let params = json!({
                "textDocument": {"uri": uri(path)},
                "position": {"line": position[0], "character": position[1]},
            });
            asked.push_back(self.send_request(method, &params)?);
        }
        for id in asked {
            results.push(self.answer(id)?);
        }
        Ok(results)
    }

    /// Requests the symbols of a document and waits for the result.
    pub(crate) fn symbols(&mut self, path: &Path) -> Result<Value, String> {
        let params = json!({"textDocument": {"uri": uri(path)}});
        let id = self.send_request("textDocument/documentSymbol", &params)?;
        self.answer(id)
    }

    fn folders(&self) -> Value {
        json!([{"uri": uri(&self.root), "name": "root"}])
    }

    fn send_request(&mut self, method: &str, params: &Value) -> Result<i64, String> {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    fn notify(&mut self, method: &str, params: &Value) -> Result<(), String> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    fn answer(&mut self, id: i64) -> Result<Value, String> {
        loop {
            if let Some(mut message) = self.answers.remove(&id) {
                return match message.get("error") {
                    Some(error) => Err(format!("the raw server answered with an error: {error}")),
                    None => Ok(message["result"].take()),
                };
            }
            self.pump("an answer")?;
        }
    }

    /// Processes one message.
    fn pump(&mut self, awaited: &str) -> Result<(), String> {
        let message = self.messages.recv_timeout(RESPONSE_TIMEOUT).map_err(|_| {
            let log: Vec<_> = self.log.iter().map(String::as_str).collect();
            format!("the raw server did not give {awaited}; its last log lines: {}", log.join(" | "))
        })?;
        let id = message.get("id").cloned();
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => {
                let result = match method {
                    "workspace/configuration" => {
                        let items = message["params"]["items"].as_array().cloned().unwrap_or_default();
                        let value = |item: &Value| {
                            let section = item["section"].as_str().unwrap_or_default();
                            self.configuration.get(section).cloned().unwrap_or(Value::Null)
                        };
                        items.iter().map(value).collect()
                    }
                    "workspace/workspaceFolders" => self.folders(),
                    _ => Value::Null,
                };
                self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
            }
            (Some("window/logMessage"), None) => {
                let line = message["params"]["message"].as_str().unwrap_or_default();
                let found = line.starts_with("Found ") && line.contains(" source file");
                self.enumerated |= found || line.starts_with("No source files");
                self.log.push_back(line.to_owned());
                if self.log.len() > 5 {
                    self.log.pop_front();
                }
            }
            (Some(_), None) => {}
            (None, id) => {
                if let Some(id) = id.as_ref().and_then(Value::as_i64) {
                    self.answers.insert(id, message);
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, message: &Value) -> Result<(), String> {
        let body = message.to_string();
        let gone = |error: std::io::Error| format!("the raw server is gone: {error}");
        write!(self.input, "Content-Length: {}\r\n\r\n", body.len()).map_err(gone)?;
        self.input.write_all(body.as_bytes()).map_err(gone)?;
        self.input.flush().map_err(gone)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The client capabilities. Some of them change Pyright's answers: with `declaration`, a definition prefers sources over stubs; with
/// a registration for `diagnostic`, it stops pushing diagnostics. ty lists all files before it registers `watchers`.
fn capabilities(watchers: bool) -> Value {
    json!({
        "general": {"positionEncodings": ["utf-16"]},
        "textDocument": {
            "declaration": {"linkSupport": false},
            "definition": {"linkSupport": false},
            "diagnostic": {"dynamicRegistration": true},
            "documentSymbol": {"hierarchicalDocumentSymbolSupport": true},
            "hover": {"contentFormat": ["markdown", "plaintext"]},
            "publishDiagnostics": {"relatedInformation": true, "tagSupport": {"valueSet": [1, 2]}},
            "references": {},
            "typeDefinition": {"linkSupport": false},
        },
        "window": {"workDoneProgress": true},
        "workspace": {
            "configuration": true,
            "didChangeWatchedFiles": {"dynamicRegistration": watchers},
            "workspaceFolders": true,
        },
    })
}

fn read_message(output: &mut impl std::io::BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let mut body = vec![0; length?];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// A path as a `file:` URI.
pub(crate) fn uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in text(path).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.extend(["%", &format!("{byte:02X}")]);
        }
    }
    uri
}

/// Undoes percent-encoding.
pub(crate) fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            out.push(byte);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
