//! `lanser batch`: a stream of requests gets a stream of answers, the same as those of single commands.

/// The same answers at any concurrency, as single commands, and in a session.
mod consistency;
/// Failures: dying servers, signals, closed pipes, lines without end.
mod failures;
/// Names whose types look declared but are inferred.
mod order_dependence;
/// Heads that are scored in a batch.
mod scoring;
/// The fields of a line and their effects.
mod stream;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Output, Project, TestEnv};

/// Limit for each answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// A running batch process. Dropping it kills the process.
struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<Value>,
}

impl Talk {
    fn start(env: &TestEnv, args: &[&str]) -> Self {
        let mut command = env.command(["batch"].iter().chain(args));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                let _ = sender.send(serde_json::from_str(&line.unwrap()).unwrap());
            }
        });
        Self { input: child.stdin.take(), child, answers }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    #[track_caller]
    fn receive(&self) -> Value {
        self.answers.recv_timeout(ANSWER_TIMEOUT).expect("there is an answer in time")
    }

    /// Sends a line and waits for one answer.
    #[track_caller]
    fn ask(&mut self, line: &str) -> Value {
        self.send(line);
        self.receive()
    }

    /// The live processes that the batch started.
    fn servers(&self) -> Vec<u32> {
        let output = std::process::Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let pairs = text.lines().map(|line| {
            let mut words = line.split_whitespace().map(|word| word.parse::<u32>().unwrap());
            (words.next().unwrap(), words.next().unwrap())
        });
        pairs.filter(|(_, parent)| *parent == self.child.id()).map(|(pid, _)| pid).collect()
    }

    /// Closes the input; returns the remaining answers and the exit code.
    #[track_caller]
    fn end(mut self) -> (Vec<Value>, Option<i32>) {
        self.input = None;
        let rest = self.rest();
        (rest, self.child.wait().unwrap().code())
    }

    /// The remaining answers until the end of the output.
    #[track_caller]
    fn rest(&self) -> Vec<Value> {
        let mut rest = Vec::new();
        loop {
            match self.answers.recv_timeout(ANSWER_TIMEOUT) {
                Ok(answer) => rest.push(answer),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return rest,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("the output does not end"),
            }
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bundles of a successful batch; asserts that each is valid.
#[track_caller]
fn bundles(output: &Output) -> Vec<Value> {
    let lines = output.text().lines();
    lines
        .map(|line| {
            if let Err(problems) = lanser::internal::schema::validate(
                lanser::internal::schema::SchemaKind::Bundle,
                line.as_bytes(),
            ) {
                panic!("the bundle is not valid: {problems:?}\n{line}");
            }
            serde_json::from_str(line).unwrap()
        })
        .collect()
}

fn id(bundle: &Value) -> &Value {
    &bundle["meta"]["volatile"]["id"]
}

/// The status of a bundle, or the symbol of its error.
fn outcome(bundle: &Value) -> &str {
    bundle["error"]["symbol"].as_str().unwrap_or_else(|| bundle["status"].as_str().unwrap())
}

fn shop() -> Project {
    Project::fixture("shop")
}
