//! The facts about each server: how to start it, which settings to send, how its log identifies it and reports the
//! enumeration of source files, how to cancel requests.
//!
//! Nothing here depends on the workspace except [`ServerSettings`]. Left out on purpose: type checking mode, include
//! and exclude lists, severities; these are the workspace's configuration, which the server reads itself.

use serde_json::{Value, json};

use super::capabilities;
use crate::model::server::ServerKind;
use crate::path::AbsPath;

/// The server's settings that upper layers decide.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerSettings {
    /// The interpreter whose packages the server sees, or for [`PythonSource::Prefix`] the folder of its environment. If `None`,
    /// the server looks for one itself.
    pub python: Option<AbsPath>,
}

/// What a server reads about the Python environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PythonSource {
    /// It runs the interpreter.
    Interpreter,
    /// It reads the files of the environment.
    Prefix,
}

/// How a server shows that it can answer requests about the whole workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadySignal {
    /// A line in its log; before it, answers are silently partial.
    LogLine,
    /// None is needed: a request waits until the server has read what it needs.
    Blocking,
}

/// The facts about one kind of server.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// The kind of server.
    pub kind: ServerKind,
    /// The arguments before the server's script, if any, and those behind it.
    flags: (&'static [&'static str], &'static [&'static str]),
    /// How it shows that it is ready.
    pub ready: ReadySignal,
    /// Where it learns about the Python environment.
    pub python: PythonSource,
    /// Whether it finds the files to search by itself, so that opening one adds nothing. It leaves out those that git ignores.
    pub finds_files: bool,
    /// Whether its references leave out uses of a module in dotted names, and uses under other names than the one asked about.
    pub leaves_out_names: bool,
    /// Whether it infers what a function without an annotation returns from its body.
    pub infers_results: bool,
    /// Whether it knows the definition of a key of a dictionary that is written out, as in `x: TypedDictClass = {"key": 1}`.
    pub defines_keys: bool,
    /// Whether the location of an attribute's definition is all of `self.name` in place of the name.
    pub defines_dotted: bool,
    /// Whether its stubs of the standard library are in its program, where they cannot be searched.
    pub hides_stubs: bool,
    /// Whether it answers `textDocument/diagnostic` although its capabilities do not include it (it registers the
    /// method later).
    pub(super) pulls_without_capability: bool,
    /// Whether it answers pulls for diagnostics when it was started with cancellation by files.
    ///
    /// Such a server answers pulls in a background thread. Pyright 1.1.414 as npm and PyPI ship it starts that thread
    /// from `__filename`, which in its split bundle is the library and not the program: the thread ends at once
    /// ("Background thread exited with code: 0") and a pull is never answered. basedpyright's thread works.
    pub pulls_when_cancellable: bool,
    /// Whether it may register which files the client should watch. Both are told of every change all the same. ty 0.0.105 lists all
    /// files of the workspace before it registers, and answers nothing before that; Pyright, if it may not, watches by itself.
    pub(super) registers_watchers: bool,
    /// Whether its answers never depend on earlier or concurrent requests, so that every request can share a worker.
    /// Pyright's do: it keeps the types that it inferred, and what it infers depends on where it begins.
    pub is_order_independent: bool,
    /// Whether it is killed when it is no longer needed and works on nothing. An orderly end only frees its memory piece by piece.
    pub(super) ends_by_kill: bool,
    /// The text before its version in the first log line; `None` if it tells its version in the result of `initialize`.
    start_line_prefix: Option<&'static str>,
    /// The first version that requests its settings as soon as it is initialized. Older ones do so when they receive
    /// `workspace/didChangeConfiguration`, and enumerate no files before.
    requests_settings_since: [u32; 3],
    /// Which sections of settings it requests.
    sections: SettingsSections,
}

/// The sections of settings that a server requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettingsSections {
    /// `python` and `pyright`.
    Pyright,
    /// As Pyright, and its own.
    Basedpyright,
    /// `ty`.
    Ty,
}

/// Measured on 1.1.406, 1.1.407 and 1.1.414.
const PYRIGHT: Profile = Profile {
    kind: ServerKind::Pyright,
    // The heap limit is fixed because the server empties its type cache near the limit, and node's default depends on the machine's
    // memory.
    flags: (&["--max-old-space-size=4096"], &["--stdio"]),
    ready: ReadySignal::LogLine,
    python: PythonSource::Interpreter,
    finds_files: false,
    leaves_out_names: false,
    infers_results: true,
    hides_stubs: false,
    defines_keys: true,
    defines_dotted: false,
    pulls_without_capability: true,
    pulls_when_cancellable: false,
    registers_watchers: true,
    is_order_independent: false,
    ends_by_kill: false,
    start_line_prefix: Some("Pyright language server "),
    requests_settings_since: [1, 1, 409],
    sections: SettingsSections::Pyright,
};

/// Measured on 1.40.1.
static BASEDPYRIGHT: Profile = Profile {
    kind: ServerKind::Basedpyright,
    pulls_when_cancellable: true,
    start_line_prefix: Some("basedpyright language server "),
    requests_settings_since: [1, 39, 3],
    sections: SettingsSections::Basedpyright,
    ..PYRIGHT
};

/// Measured on 0.0.105. It cancels by `$/cancelRequest`, also while it works.
static TY: Profile = Profile {
    kind: ServerKind::Ty,
    flags: (&["server"], &[]),
    ready: ReadySignal::Blocking,
    python: PythonSource::Prefix,
    finds_files: true,
    leaves_out_names: true,
    infers_results: false,
    hides_stubs: true,
    defines_keys: false,
    defines_dotted: true,
    pulls_without_capability: true,
    pulls_when_cancellable: true,
    registers_watchers: false,
    is_order_independent: true,
    ends_by_kill: true,
    start_line_prefix: None,
    requests_settings_since: [0, 0, 0],
    sections: SettingsSections::Ty,
};

/// An event that the server logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LogEvent {
    /// The server has started, with this version.
    Started { kind: ServerKind, version: String },
    /// The server has enumerated the source files and found this many.
    Enumerated(u32),
}

impl Profile {
    /// The profile of a kind.
    #[must_use]
    pub fn of(kind: ServerKind) -> &'static Self {
        match kind {
            ServerKind::Pyright => const { &PYRIGHT },
            ServerKind::Basedpyright => &BASEDPYRIGHT,
            ServerKind::Ty => &TY,
        }
    }

    /// The arguments of the program: for node its flags, then `program_args` (the server's script), then the server's flags.
    #[must_use]
    pub fn arguments(&self, program_args: &[String], cancellation_folder: Option<&str>) -> Vec<String> {
        let (before, behind) = self.flags;
        let mut arguments: Vec<String> = before.iter().map(|flag| (*flag).to_owned()).collect();
        arguments.extend_from_slice(program_args);
        arguments.extend(behind.iter().map(|flag| (*flag).to_owned()));
        if self.kind != ServerKind::Ty {
            arguments.extend(cancellation_folder.map(|name| format!("--cancellationReceive=file:{name}")));
        }
        arguments
    }

    /// Everything that is sent to the server and can change its answers, as JSON text: flags, settings and client
    /// capabilities. For a digest; leave out [`ServerSettings::python`] to make it portable.
    #[must_use]
    pub fn digest_input(&self, settings: &ServerSettings) -> String {
        let flags = self.arguments(&[], None);
        json!({"capabilities": capabilities::declared(self), "flags": flags, "settings": self.configuration(settings)})
            .to_string()
    }

    /// The settings that `workspace/configuration` is answered from.
    pub(super) fn configuration(&self, settings: &ServerSettings) -> Value {
        if self.sections == SettingsSections::Ty {
            let python = settings.python.as_ref().map(AbsPath::as_str);
            return json!({"ty": {
                // These win over the workspace's configuration. Without an interpreter ty takes one from PATH, or its own.
                "configuration": python.map(|prefix| json!({"environment": {"python": prefix}})),
                "diagnosticMode": "openFilesOnly",
                "disableLanguageServices": false,
            }});
        }
        let mut analysis = json!({
            "autoSearchPaths": true,
            "diagnosticMode": "openFilesOnly",
            // At lower levels the server does not log the enumeration of files.
            "logLevel": "Information",
            "useLibraryCodeForTypes": true,
        });
        let services = json!({
            "disableLanguageServices": false,
            "disableOrganizeImports": false,
            "disableTaggedHints": false,
        });
        let mut python = json!({"analysis": analysis.clone()});
        if let Some(interpreter) = &settings.python {
            python["pythonPath"] = interpreter.as_str().into();
        }
        let mut tree = json!({"python": python, "pyright": services.clone()});
        if self.sections == SettingsSections::Basedpyright {
            // "auto" rewrites the workspace's baseline file, which a reading command must not do.
            analysis["baselineMode"] = "discard".into();
            let mut own = services;
            own["analysis"] = analysis;
            tree[self.kind.as_str()] = own;
        }
        tree
    }

    /// Whether the server has to be told to request its settings. One that requests them by itself would do so twice:
    /// Pyright 1.1.414 and basedpyright 1.40.1 then read the interpreter twice and are ready 0.1 s later. A server of
    /// unknown version is told, because that costs only time.
    pub(super) fn waits_for_settings(&self, version: Option<&str>) -> bool {
        version.and_then(release).is_none_or(|version| version < self.requests_settings_since)
    }

    /// Parses a log line; `None` for lines without an event.
    pub(super) fn parse_log_line(line: &str) -> Option<LogEvent> {
        let started = ServerKind::ALL.into_iter().find_map(|kind| {
            let version = line.strip_prefix(Self::of(kind).start_line_prefix?)?.strip_suffix(" starting")?;
            Some(LogEvent::Started { kind, version: version.to_owned() })
        });
        started.or_else(|| {
            if line == "No source files found." {
                return Some(LogEvent::Enumerated(0));
            }
            let (count, rest) = line.strip_prefix("Found ")?.split_once(' ')?;
            let count = count.parse().ok()?;
            matches!(rest, "source file" | "source files").then_some(LogEvent::Enumerated(count))
        })
    }
}

/// The three numbers of a version; a suffix such as `-dev` is ignored.
fn release(version: &str) -> Option<[u32; 3]> {
    let mut numbers = version.splitn(3, '.').map(|part| {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..end].parse().ok()
    });
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_are_told_to_request_their_settings() {
        let waits = |kind, version| Profile::of(kind).waits_for_settings(version);
        for (version, expected) in [
            (Some("1.1.406"), true),
            (Some("1.1.408-dev.1"), true),
            (Some("1.1.409"), false),
            (Some("1.1.414"), false),
            (Some("1.2.0"), false),
            (Some("new"), true),
            (None, true),
        ] {
            assert_eq!(waits(ServerKind::Pyright, version), expected, "{version:?}");
        }
        assert!(waits(ServerKind::Basedpyright, Some("1.39.0")));
        assert!(!waits(ServerKind::Basedpyright, Some("1.40.1")));
    }

    #[test]
    fn lines_of_the_log() {
        assert_eq!(
            Profile::parse_log_line("Pyright language server 1.1.414 starting"),
            Some(LogEvent::Started { kind: ServerKind::Pyright, version: "1.1.414".to_owned() })
        );
        assert_eq!(
            Profile::parse_log_line("basedpyright language server 1.40.1 starting"),
            Some(LogEvent::Started { kind: ServerKind::Basedpyright, version: "1.40.1".to_owned() })
        );
        assert_eq!(Profile::parse_log_line("Found 2821 source files"), Some(LogEvent::Enumerated(2821)));
        assert_eq!(Profile::parse_log_line("Found 1 source file"), Some(LogEvent::Enumerated(1)));
        assert_eq!(Profile::parse_log_line("No source files found."), Some(LogEvent::Enumerated(0)));
        for line in
            ["Found 3 files to analyze", "Found x source files", "Starting service instance \"w\"", ""]
        {
            assert_eq!(Profile::parse_log_line(line), None, "{line}");
        }
    }

    #[test]
    fn the_settings_that_affect_answers() {
        let python = AbsPath::new("/venv/bin/python").unwrap();
        for kind in [ServerKind::Pyright, ServerKind::Basedpyright] {
            let tree = Profile::of(kind).configuration(&ServerSettings { python: Some(python.clone()) });
            assert_eq!(tree["python"]["pythonPath"], "/venv/bin/python");
            assert_eq!(tree["python"]["analysis"]["logLevel"], "Information");
            assert_eq!(tree["python"]["analysis"]["diagnosticMode"], "openFilesOnly");
        }
        let own = Profile::of(ServerKind::Basedpyright).configuration(&ServerSettings::default());
        assert_eq!(own["basedpyright"]["analysis"]["logLevel"], "Information");
        assert_eq!(own["basedpyright"]["analysis"]["baselineMode"], "discard");
        assert!(own["python"].get("pythonPath").is_none());
        let prefix = AbsPath::new("/venv").unwrap();
        let ty = Profile::of(ServerKind::Ty).configuration(&ServerSettings { python: Some(prefix) });
        assert_eq!(ty["ty"]["configuration"]["environment"]["python"], "/venv");
    }

    #[test]
    fn the_digest_covers_the_interpreter_and_the_kind() {
        let python = ServerSettings { python: Some(AbsPath::new("/p").unwrap()) };
        let of = |kind, settings: &ServerSettings| Profile::of(kind).digest_input(settings);
        let plain = of(ServerKind::Pyright, &ServerSettings::default());
        assert_ne!(plain, of(ServerKind::Pyright, &python));
        assert_ne!(plain, of(ServerKind::Basedpyright, &ServerSettings::default()));
        assert_eq!(plain, of(ServerKind::Pyright, &ServerSettings::default()));
    }

    #[test]
    fn the_heap_flag_precedes_the_script() {
        let found = ["/x/langserver.index.js".to_owned()];
        let plain = ["--max-old-space-size=4096", "/x/langserver.index.js", "--stdio"];
        let profile = Profile::of(ServerKind::Pyright);
        assert_eq!(profile.arguments(&found, None), plain);
        let cancellable = profile.arguments(&found, Some("f"));
        assert_eq!(cancellable[..3], plain);
        assert_eq!(cancellable[3..], ["--cancellationReceive=file:f"]);
        assert_eq!(Profile::of(ServerKind::Ty).arguments(&[], Some("f")), ["server"]);
    }
}
