//! `lanser batch`: what comes in a stream is answered in a stream, and says what single calls say.

/// What goes wrong: servers that die, signals, pipes that close, lines that never end.
mod broken;
/// What looks declared and is inferred.
mod kept;
/// The same answers at every concurrency, one by one, and through a session.
mod same;
/// What a line may say, and what becomes of it.
mod stream;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Output, Project, TestEnv};

/// No answer may take longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A batch that is talked to. Dropped, it is killed.
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

    fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    #[track_caller]
    fn hear(&self) -> Value {
        self.answers.recv_timeout(PATIENCE).expect("there is an answer in time")
    }

    /// Says a line and hears its answer.
    #[track_caller]
    fn ask(&mut self, line: &str) -> Value {
        self.say(line);
        self.hear()
    }

    /// The processes that it started and that live.
    fn servers(&self) -> Vec<u32> {
        let output = std::process::Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let pairs = text.lines().map(|line| {
            let mut words = line.split_whitespace().map(|word| word.parse::<u32>().unwrap());
            (words.next().unwrap(), words.next().unwrap())
        });
        pairs.filter(|(_, parent)| *parent == self.child.id()).map(|(pid, _)| pid).collect()
    }

    /// Ends the input, and gives the answers that were still to come and the exit code.
    #[track_caller]
    fn end(mut self) -> (Vec<Value>, Option<i32>) {
        self.input = None;
        let rest = self.rest();
        (rest, self.child.wait().unwrap().code())
    }

    /// The answers until the output's end.
    #[track_caller]
    fn rest(&self) -> Vec<Value> {
        let mut rest = Vec::new();
        loop {
            match self.answers.recv_timeout(PATIENCE) {
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

/// The bundles of a batch that ended well; each is valid.
#[track_caller]
fn bundles(output: &Output) -> Vec<Value> {
    let lines = output.text().lines();
    lines
        .map(|line| {
            if let Err(problems) = lanser::schema::validate(lanser::schema::Kind::Bundle, line.as_bytes()) {
                panic!("the bundle is not valid: {problems:?}\n{line}");
            }
            serde_json::from_str(line).unwrap()
        })
        .collect()
}

fn id(bundle: &Value) -> &Value {
    &bundle["meta"]["volatile"]["id"]
}

/// Status or the symbol of the error.
fn outcome(bundle: &Value) -> &str {
    bundle["error"]["symbol"].as_str().unwrap_or_else(|| bundle["status"].as_str().unwrap())
}

fn shop() -> Project {
    Project::fixture("shop")
}
