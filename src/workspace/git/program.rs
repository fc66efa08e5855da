//! The `git` program, for what libgit2 cannot read or sees differently.
//!
//! It is asked and never told to write: no lock is taken, nothing is prompted, nothing is fetched, and nothing is run that a
//! repository's own configuration names: no hook, no monitor, no filter. The filters of the user's own configuration are
//! run, as git does; a file behind one of the repository's own counts as modified, since nobody knows whether it is clean,
//! unless the repository is trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::path::AbsPath;

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// More filters than this are not switched off one by one.
const MANY: usize = 256;

const UNREADABLE: &str = "the repository's own configuration has filters that cannot be switched off";

/// The program and what it may know of the environment.
#[derive(Debug, Clone)]
pub struct GitProgram {
    program: PathBuf,
    environment: BTreeMap<String, String>,
    /// Whether what the repository's configuration names may be run.
    trusted: bool,
}

/// The program in a folder of a repository, with the settings that keep it from running what the repository names.
pub(super) struct GitAt<'p> {
    program: &'p GitProgram,
    folder: &'p AbsPath,
    switched_off: Vec<String>,
}

impl GitAt<'_> {
    /// What it says on its standard output; `fine` are the exit codes that are no failure.
    ///
    /// # Errors
    /// With its own words, or why it could not be run.
    pub(super) fn ask(&self, args: &[&str], input: &[u8], fine: &[i32]) -> Result<Vec<u8>, String> {
        self.program.run(self.folder, &self.switched_off, args, input, fine)
    }

    /// Whether the repository's own configuration names filters that are not run.
    pub(super) const fn has_filters(&self) -> bool {
        !self.switched_off.is_empty()
    }
}

impl GitProgram {
    /// The first `git` on a search path that neither lies in `checkout` nor leads into it.
    #[must_use]
    pub fn find(
        search_path: &[PathBuf],
        environment: &BTreeMap<String, String>,
        checkout: &AbsPath,
        trusted: bool,
    ) -> Option<Self> {
        let programs =
            search_path.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join("git"));
        let executable =
            |path: &PathBuf| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
        let inside = |path: &std::path::Path| path.starts_with(checkout.as_path());
        let brought = |path: &PathBuf| inside(path) || path.canonicalize().is_ok_and(|path| inside(&path));
        let program = programs.filter(executable).find(|path| trusted || !brought(path))?;
        // These would lead it to another repository than the one it is asked about, or make it run something.
        let environment = environment.iter().filter(|(name, _)| !name.starts_with("GIT_"));
        let environment = environment.map(|(name, value)| (name.clone(), value.clone())).collect();
        Some(Self { program, environment, trusted })
    }

    /// The folder that it is in.
    #[cfg(test)]
    pub(super) fn folder(&self) -> &std::path::Path {
        self.program.parent().expect("because it was found in a folder")
    }

    /// The program in a folder of a repository.
    ///
    /// # Errors
    /// With its own words, or why it could not be run, or why it is not.
    pub(super) fn at<'p>(&'p self, folder: &'p AbsPath) -> Result<GitAt<'p>, String> {
        let switched_off = if self.trusted { Vec::new() } else { self.filters(folder)? };
        Ok(GitAt { program: self, folder, switched_off })
    }

    /// The settings that switch off the filters which the repository's own configuration names.
    fn filters(&self, folder: &AbsPath) -> Result<Vec<String>, String> {
        const LIST: [&str; 5] = ["config", "--list", "--show-scope", "--name-only", "-z"];
        let told = self.run(folder, &[], &LIST, b"", &[0])?;
        let mut drivers = BTreeSet::new();
        let mut fields = told.split(|byte| *byte == 0);
        while let (Some(scope), Some(name)) = (fields.next(), fields.next()) {
            let name = String::from_utf8(name.to_vec()).map_err(|_| UNREADABLE)?;
            let driver = name.strip_prefix("filter.").and_then(|rest| Some(rest.rsplit_once('.')?.0));
            if let Some(driver) = driver
                && ["local", "worktree"].map(str::as_bytes).contains(&scope)
            {
                drivers.insert(driver.to_owned());
            }
        }
        // Git splits what it is told at the first `=`.
        if drivers.len() > MANY || drivers.iter().any(|driver| driver.contains('=')) {
            return Err(UNREADABLE.to_owned());
        }
        let off = ["clean=", "smudge=", "process=", "required=false"];
        Ok(drivers.iter().flat_map(|driver| off.map(|off| format!("filter.{driver}.{off}"))).collect())
    }

    fn run(
        &self,
        folder: &AbsPath,
        settings: &[String],
        args: &[&str],
        input: &[u8],
        fine: &[i32],
    ) -> Result<Vec<u8>, String> {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(&self.environment);
        command.envs([("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")]);
        // Objects that a partial clone lacks are not fetched; older versions know only the second.
        command.envs([("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")]);
        command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
        command.arg(format!("--work-tree={folder}"));
        command.args(settings.iter().flat_map(|setting| ["-c", setting])).args(args);
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
