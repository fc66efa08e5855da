//! Runs lanser as a process, as users do.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The built program and the settings of every call.
#[derive(Debug, Clone)]
pub(crate) struct Lanser {
    /// The program.
    pub(crate) program: PathBuf,
    /// Its cache folder, separate from the user's.
    pub(crate) cache: PathBuf,
    /// The interpreter.
    pub(crate) python: PathBuf,
    /// The server's script, or its program.
    pub(crate) script: PathBuf,
    /// The kind of server.
    pub(crate) server: String,
}

impl Lanser {
    /// A command in a workspace, with JSON output.
    pub(crate) fn command(&self, root: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .args(["--json", "--timeout", "300", "-C"])
            .arg(root)
            .arg("--python")
            .arg(&self.python)
            .args(["--server", &self.server, "--server-command"])
            .arg(&self.script)
            .env("LANSER_CACHE_DIR", &self.cache)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The same without a session.
    pub(crate) fn alone(&self, root: &Path, words: &[&str]) -> Command {
        let mut command = self.command(root, words);
        command.env("LANSER_SESSION", "off");
        command
    }

    /// Runs a command without a session; returns the bundle and the exit code.
    pub(crate) fn bundle(&self, root: &Path, words: &[&str]) -> Result<(Value, Option<i32>), String> {
        let output = self.alone(root, words).output().map_err(|error| format!("lanser: {error}"))?;
        let bundle = serde_json::from_slice(&output.stdout).map_err(|error| {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            format!("the output of lanser is not a bundle ({error}), exit {:?}: {said}", output.status.code())
        })?;
        Ok((bundle, output.status.code()))
    }
}

/// The built program next to this example (`target/release/examples/…`), and a folder below `target` for caches.
pub(crate) fn beside_example() -> Result<(PathBuf, PathBuf), String> {
    let own = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
    let folder = own.ancestors().nth(2).ok_or("this program is nowhere")?.to_owned();
    let program = folder.join("lanser");
    if !program.is_file() {
        return Err(format!("{} is not there: run `cargo build --release` first", program.display()));
    }
    Ok((program, folder.join("compare-scratch")))
}

/// The server's script or program that lanser finds without being told.
pub(crate) fn found_script(program: &Path, server: &str) -> Result<PathBuf, String> {
    let run = Command::new(program).args(["server", "which", "--json", "--server", server]).output();
    let output = run.map_err(|error| format!("lanser: {error}"))?.stdout;
    let said: Value = serde_json::from_slice(&output).map_err(|error| format!("`server which`: {error}"))?;
    let script = said["script"].as_str().map(PathBuf::from);
    script.ok_or_else(|| "lanser finds no server: give one with --server-command".to_owned())
}

/// The interpreter of a command name, its prefix and its base prefix.
pub(crate) fn interpreter(name: &str) -> Result<[PathBuf; 3], String> {
    let code = "import sys; print(sys.executable); print(sys.prefix); print(sys.base_prefix)";
    let run = Command::new(name).args(["-c", code]).output();
    let output = run.map_err(|error| format!("{name} cannot be run: {error}"))?.stdout;
    let text = String::from_utf8_lossy(&output).into_owned();
    let lines: Vec<PathBuf> = text.lines().map(PathBuf::from).collect();
    lines.try_into().map_err(|_| format!("{name} does not say where it is"))
}

/// A cursor selector for a position (0-based line and scalar column) in a workspace file.
pub(crate) fn selector(relative: &str, line: u32, scalar: u32) -> String {
    format!("{}@L{}:C{}", encoded(relative), line + 1, scalar + 1)
}

/// A path, percent-encoded as in selectors.
fn encoded(relative: &str) -> String {
    let mut out = String::new();
    for c in relative.chars() {
        if matches!(c, '#' | '?' | '%' | '"' | '\u{0}'..=' ' | '\u{7f}') {
            out.extend(["%", &format!("{:02X}", u32::from(c))]);
        } else {
            out.push(c);
        }
    }
    out
}
