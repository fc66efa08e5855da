//! Runs the `git` program for what libgit2 cannot read or treats differently.
//!
//! Only reading commands are run: git takes no lock, prompts for nothing and fetches nothing. It runs no program that
//! the repository's configuration names: no hook, no file system monitor, no filter. Filters of the user's
//! configuration run as usual, except Git LFS in a repository that configures extensions of it. A file that has a filter of the repository's configuration counts as modified, because
//! it cannot be known to be clean without running the filter. In a trusted repository, these filters run too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::path::AbsPath;
use crate::process::{self, guard::guarded};
use crate::workspace::search_path::{may_run, with_usable_path};

/// The time limit for one git command.
const GIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The limit of filters that are disabled, each by four settings on the command line.
const MAX_FILTERS: usize = 256;

const CANNOT_DISABLE_FILTERS: &str = "the repository's configuration has filters that cannot be disabled";

/// The `git` program and the environment variables that it gets.
#[derive(Debug, Clone)]
pub struct GitProgram {
    program: PathBuf,
    environment: BTreeMap<String, String>,
    /// lanser's own executable, under which git runs, so that it ends with lanser and its memory is limited.
    guard: Option<AbsPath>,
    /// Whether programs that the repository's configuration names may run.
    trusted: bool,
}

/// Runs git in a folder of a repository, with settings that disable the filters of the repository's configuration.
pub(super) struct RepositoryGit<'p> {
    program: &'p GitProgram,
    folder: &'p AbsPath,
    disabled_filters: Vec<String>,
}

impl RepositoryGit<'_> {
    /// Runs a git command and returns its standard output. An exit code outside `success_codes` is an error.
    ///
    /// # Errors
    /// git's error message, or why git could not be run.
    pub(super) fn run(&self, args: &[&str], input: &[u8], success_codes: &[i32]) -> Result<Vec<u8>, String> {
        self.program.run(self.folder, &self.disabled_filters, args, input, success_codes)
    }

    /// Whether the repository's configuration has filters that are disabled.
    pub(super) const fn has_filters(&self) -> bool {
        !self.disabled_filters.is_empty()
    }
}

impl GitProgram {
    /// The first `git` on a search path. Unless the checkout is trusted, a program inside `checkout` or a link into it
    /// does not count.
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
        let program = programs.filter(executable).find(|path| may_run(path, checkout, trusted))?;
        // `GIT_*` variables could make git use another repository or run a program.
        let mut environment = with_usable_path(environment, checkout, trusted);
        environment.retain(|name, _| !name.starts_with("GIT_"));
        Some(Self { program, environment, guard: None, trusted })
    }

    /// The same, run under lanser's own executable.
    #[must_use]
    pub fn guarded(self, guard: Option<AbsPath>) -> Self {
        Self { guard, ..self }
    }

    /// The folder that contains the program.
    #[cfg(test)]
    pub(super) fn folder(&self) -> &std::path::Path {
        self.program.parent().expect("because it was found in a folder")
    }

    /// Prepares git for a folder of a repository.
    ///
    /// # Errors
    /// git's error message, why git could not be run, or why it must not be.
    pub(super) fn at<'p>(&'p self, folder: &'p AbsPath) -> Result<RepositoryGit<'p>, String> {
        let disabled_filters = if self.trusted { Vec::new() } else { self.disable_filters(folder)? };
        Ok(RepositoryGit { program: self, folder, disabled_filters })
    }

    /// The settings that disable the filters of the repository's configuration.
    fn disable_filters(&self, folder: &AbsPath) -> Result<Vec<String>, String> {
        const LIST: [&str; 5] = ["config", "--list", "--show-scope", "--name-only", "-z"];
        let output = self.run(folder, &[], &LIST, b"", &[0])?;
        let mut drivers = BTreeSet::new();
        let mut fields = output.split(|byte| *byte == 0);
        while let (Some(scope), Some(name)) = (fields.next(), fields.next()) {
            let name = String::from_utf8(name.to_vec()).map_err(|_| CANNOT_DISABLE_FILTERS)?;
            if !["local", "worktree"].map(str::as_bytes).contains(&scope) {
                continue;
            }
            let driver = name.strip_prefix("filter.").and_then(|rest| Some(rest.rsplit_once('.')?.0));
            // Git LFS is usually a filter of the user's configuration, and runs the programs that such a setting names.
            let extended = name.starts_with("lfs.extension.").then_some("lfs");
            drivers.extend(driver.or(extended).map(str::to_owned));
        }
        // git splits the setting at its first `=`, so such a name cannot be passed.
        if drivers.len() > MAX_FILTERS || drivers.iter().any(|driver| driver.contains('=')) {
            return Err(CANNOT_DISABLE_FILTERS.to_owned());
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
        success_codes: &[i32],
    ) -> Result<Vec<u8>, String> {
        let mut command = guarded(self.guard.as_ref().map(AbsPath::as_path), &self.program);
        command.env_clear().envs(&self.environment);
        command.envs([("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")]);
        // Do not fetch objects that a partial clone lacks. Older versions of git know only the second variable.
        command.envs([("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")]);
        command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
        command.args(["-C", folder.as_str()]).arg(format!("--work-tree={folder}"));
        command.args(settings.iter().flat_map(|setting| ["-c", setting])).args(args);
        // A shim of a version manager reads the configuration of the current folder, which may name any program.
        command.current_dir("/");
        let found = process::output(&mut command, input.to_vec(), GIT_TIMEOUT, usize::MAX)
            .map_err(|error| format!("cannot run git: {error}"))?;
        // A filter that git started may still hold the output open; part of an output must not pass for the whole.
        match found.status.filter(|_| found.is_complete).and_then(|status| status.code()) {
            Some(code) if success_codes.contains(&code) => Ok(found.stdout),
            Some(_) => {
                let message = String::from_utf8_lossy(&found.stderr);
                let first = message.lines().find(|line| !line.is_empty()).unwrap_or("no error message");
                Err(first.trim_start_matches("fatal: ").to_owned())
            }
            None => Err("git did not finish in time".to_owned()),
        }
    }
}
