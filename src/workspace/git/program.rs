//! The `git` program, for what libgit2 cannot read or sees differently.
//!
//! It is asked and never told to write: no lock is taken, nothing is prompted, no hook of a repository is run. The filters
//! that a repository's configuration names are: without them nobody knows whether a file is clean.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::path::AbsPath;

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program and what it may know of the environment.
#[derive(Debug, Clone)]
pub struct GitProgram {
    program: PathBuf,
    environment: BTreeMap<String, String>,
}

impl GitProgram {
    /// The first `git` on a search path that is not inside `workspace`.
    #[must_use]
    pub fn find(
        search_path: &[PathBuf],
        environment: &BTreeMap<String, String>,
        workspace: &AbsPath,
    ) -> Option<Self> {
        let programs =
            search_path.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join("git"));
        let executable =
            |path: &PathBuf| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
        let program = programs.filter(executable).find(|path| !path.starts_with(workspace.as_path()))?;
        // These would lead it to another repository than the one it is asked about, or make it run something.
        let environment = environment.iter().filter(|(name, _)| !name.starts_with("GIT_"));
        let environment = environment.map(|(name, value)| (name.clone(), value.clone())).collect();
        Some(Self { program, environment })
    }

    /// The folder that it is in.
    #[cfg(test)]
    pub(super) fn folder(&self) -> &std::path::Path {
        self.program.parent().expect("because it was found in a folder")
    }

    /// What it says on its standard output when it is run in `folder`; `fine` are the exit codes that are no failure.
    ///
    /// # Errors
    /// With its own words, or why it could not be run.
    pub(super) fn ask(
        &self,
        folder: &AbsPath,
        args: &[&str],
        input: &[u8],
        fine: &[i32],
    ) -> Result<Vec<u8>, String> {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(&self.environment);
        command.envs([("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")]);
        command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]).args(args);
        command.current_dir(folder.as_path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("git cannot be run: {error}"))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (out, err, code) = std::thread::scope(|scope| {
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            let read = |stream: Option<Box<dyn std::io::Read + Send>>| {
                move || {
                    let mut bytes = Vec::new();
                    let _ = stream.map(|mut stream| stream.read_to_end(&mut bytes));
                    bytes
                }
            };
            let out = scope.spawn(read(stdout.map(|out| Box::new(out) as _)));
            let err = scope.spawn(read(stderr.map(|err| Box::new(err) as _)));
            let began = Instant::now();
            let code = loop {
                match child.try_wait() {
                    Ok(Some(status)) => break status.code(),
                    Ok(None) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(2)),
                    _ => {
                        // A filter that it started may hold its output open; that one's time is its own affair.
                        let _ = child.kill();
                        let _ = child.wait();
                        break None;
                    }
                }
            };
            (out.join().unwrap_or_default(), err.join().unwrap_or_default(), code)
        });
        match code {
            Some(code) if fine.contains(&code) => Ok(out),
            Some(_) => {
                let words = String::from_utf8_lossy(&err);
                let first = words.lines().find(|line| !line.is_empty()).unwrap_or("no words");
                Err(first.trim_start_matches("fatal: ").to_owned())
            }
            None => Err("git did not answer".to_owned()),
        }
    }
}
