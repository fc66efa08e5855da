//! A script that a server runs in place of the Python interpreter.
//!
//! Pyright and its forks run the interpreter that they are given, once for `sys.version_info` and once for
//! `sys.path`, in the workspace and not in isolated mode, so that code in the workspace could run. lanser knows both
//! values already. So the server gets a script that prints them, which also saves two runs of Python before the first
//! request.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::digest::Digest;
use crate::path::{AbsPath, private};

/// The values that the script prints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonShim {
    /// For example `3.11.7`. If empty, the version is unknown, and the server assumes the newest one that it supports.
    pub version: String,
    /// `sys.prefix`.
    pub prefix: String,
    /// `sys.path`.
    pub search_path: Vec<AbsPath>,
}

impl PythonShim {
    /// Writes the script into a folder that others cannot write to. If programs cannot run from there, writes it into
    /// `fallback`, where it stays for later servers.
    ///
    /// # Errors
    /// When the script cannot be written, or programs cannot run from `fallback` either.
    pub(super) fn write(&self, folder: &Path, fallback: &Path) -> io::Result<AbsPath> {
        let script = self.script();
        let path = Self::write_in(folder, "python", &script).or_else(|_| {
            private::create(fallback)?;
            Self::write_in(fallback, &Digest::of(script.as_bytes()).to_hex()[..32], &script)
        })?;
        AbsPath::new(path).map_err(io::Error::other)
    }

    /// The folder of the environment for a server that runs no interpreter; if there is none, an empty environment in `folder`,
    /// since the server would look for another.
    pub(super) fn prefix_or_empty(&self, folder: &Path) -> io::Result<AbsPath> {
        if !self.prefix.is_empty() {
            return AbsPath::new(&self.prefix).map_err(io::Error::other);
        }
        let empty = folder.join("python");
        std::fs::create_dir_all(empty.join("lib/python3/site-packages"))?;
        std::fs::write(empty.join("pyvenv.cfg"), "home = /nonexistent\n")?;
        AbsPath::new(empty).map_err(io::Error::other)
    }

    fn write_in(folder: &Path, name: &str, script: &str) -> io::Result<PathBuf> {
        let path = folder.join(name);
        let mut file =
            tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempfile_in(folder)?;
        file.write_all(script.as_bytes())?;
        file.persist(&path).map_err(|error| error.error)?;
        rustix::fs::access(&path, rustix::fs::Access::EXEC_OK)?;
        Ok(path)
    }

    fn script(&self) -> String {
        let numbers: Option<Vec<u32>> = self.version.split('.').map(|part| part.parse().ok()).collect();
        let version = numbers.filter(|numbers| numbers.len() == 3).map_or_else(
            || "exit 1".to_owned(),
            |numbers| print_command(&json!([numbers[0], numbers[1], numbers[2], "final", 0]).to_string()),
        );
        let path: Vec<&str> = self.search_path.iter().map(AbsPath::as_str).collect();
        let paths = print_command(&json!({"path": path, "prefix": self.prefix}).to_string());
        format!("#!/bin/sh\ncase \"$*\" in\n*version_info*) {version} ;;\n*) {paths} ;;\nesac\n")
    }
}

/// A shell command that prints a text.
fn print_command(text: &str) -> String {
    format!("printf %s '{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &AbsPath, args: &[&str]) -> (Option<i32>, String) {
        // A process that another test starts at this moment may still hold the file open for writing.
        let output = loop {
            match std::process::Command::new(script.as_path()).args(args).output() {
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                other => break other.unwrap(),
            }
        };
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }

    #[test]
    fn it_prints_what_python_would_print() {
        let folder = tempfile::tempdir().unwrap();
        let odd = AbsPath::new("/it's $(here) `and` \"there\"\\n").unwrap();
        let shim = PythonShim {
            version: "3.11.7".to_owned(),
            prefix: "/p".to_owned(),
            search_path: vec![odd.clone(), AbsPath::new("/b").unwrap()],
        };
        let script = shim.write(folder.path(), folder.path()).unwrap();
        let version =
            run(&script, &["-I", "-c", "import sys; json.dump(tuple(sys.version_info), sys.stdout)"]);
        assert_eq!(version, (Some(0), "[3,11,7,\"final\",0]".to_owned()));
        let (code, paths) =
            run(&script, &["-c", "json.dump(dict(path=orig_sys_path, prefix=sys.prefix), x)"]);
        let paths: serde_json::Value = serde_json::from_str(&paths).unwrap();
        assert_eq!((code, paths), (Some(0), json!({"path": [odd.as_str(), "/b"], "prefix": "/p"})));
    }

    #[test]
    fn without_python_it_reports_no_version() {
        let folder = tempfile::tempdir().unwrap();
        let script =
            PythonShim::default().write(&folder.path().join("gone"), &folder.path().join("cache")).unwrap();
        assert_eq!(run(&script, &["-I", "-c", "sys.version_info"]), (Some(1), String::new()));
        assert_eq!(run(&script, &["-c", "sys.path"]).1, r#"{"path":[],"prefix":""}"#);
    }
}
