//! What is known of each server: how it is started, what it is told when it asks for its settings, how it says who
//! it is and that it has found the source files, how it is cancelled.
//!
//! Nothing here depends on the workspace but [`ServerSettings`]. Absent on purpose: a type checking mode, include and
//! exclude lists and severities, because those are the workspace's own configuration and the server reads it.

use serde_json::{Value, json};

use super::capabilities;
use crate::model::server::ServerKind;
use crate::path::AbsPath;

/// What the layers above decide about a server's settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerSettings {
    /// The interpreter whose packages are seen. When it is `None` the server asks whatever `python` is on its PATH.
    pub python: Option<AbsPath>,
}

/// What is known of one kind of server.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// Which server.
    pub kind: ServerKind,
    /// Node's heap limit in megabytes. It is fixed because the server empties its type cache near the limit, and the
    /// default limit depends on the machine's memory.
    pub heap_megabytes: u32,
    /// Whether it answers `textDocument/diagnostic` although its capabilities do not say so (it registers the
    /// method later).
    pub(super) pulls_unoffered: bool,
    /// Whether it answers a pull for diagnostics when it was started so that it hears of cancellations by files.
    ///
    /// Such a server answers pulls from a background thread. Pyright 1.1.414 as npm and PyPI ship it starts that thread
    /// from `__filename`, which in its split bundle is the library and not the program: the thread ends at once
    /// ("Background thread exited with code: 0") and a pull waits for ever. basedpyright's thread runs.
    pub pulls_when_cancellable: bool,
    /// What comes before its version in the first log line.
    greeting: &'static str,
    /// Whether it has a section of settings of its own beside `python` and `pyright`.
    own_section: bool,
}

/// Measured on 1.1.414.
static PYRIGHT: Profile = Profile {
    kind: ServerKind::Pyright,
    heap_megabytes: 4096,
    pulls_unoffered: true,
    pulls_when_cancellable: false,
    greeting: "Pyright language server ",
    own_section: false,
};

/// Measured on 1.40.1.
static BASEDPYRIGHT: Profile = Profile {
    kind: ServerKind::Basedpyright,
    heap_megabytes: 4096,
    pulls_unoffered: true,
    pulls_when_cancellable: true,
    greeting: "basedpyright language server ",
    own_section: true,
};

/// What a log line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sign {
    /// The server names itself and its version.
    Greeting { kind: ServerKind, version: String },
    /// The source files are enumerated; so many were found.
    Enumerated(u32),
}

impl Profile {
    /// The profile of a kind.
    #[must_use]
    pub fn of(kind: ServerKind) -> &'static Self {
        match kind {
            ServerKind::Pyright => &PYRIGHT,
            ServerKind::Basedpyright => &BASEDPYRIGHT,
        }
    }

    /// The arguments for node: its own flags, then `found` (the server's script), then the server's flags.
    #[must_use]
    pub fn arguments(&self, found: &[String], cancellation_folder: Option<&str>) -> Vec<String> {
        let mut arguments = vec![format!("--max-old-space-size={}", self.heap_megabytes)];
        arguments.extend_from_slice(found);
        arguments.push("--stdio".to_owned());
        arguments.extend(cancellation_folder.map(|name| format!("--cancellationReceive=file:{name}")));
        arguments
    }

    /// Everything that the server is told and that can change its answers, as JSON text: the flags, the settings and
    /// the client capabilities. For a digest; a portable one leaves [`ServerSettings::python`] out.
    #[must_use]
    pub fn digestable(&self, settings: &ServerSettings) -> String {
        let flags = self.arguments(&[], None);
        json!({"capabilities": capabilities::declared(), "flags": flags, "settings": self.configuration(settings)})
            .to_string()
    }

    /// The tree of settings that `workspace/configuration` is answered from.
    pub(super) fn configuration(&self, settings: &ServerSettings) -> Value {
        let mut analysis = json!({
            "autoSearchPaths": true,
            "diagnosticMode": "openFilesOnly",
            // The line that says that the files are enumerated is not sent at a lower level.
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
        if self.own_section {
            // "auto" rewrites the workspace's baseline file, which is no reader's business.
            analysis["baselineMode"] = "discard".into();
            let mut own = services;
            own["analysis"] = analysis;
            tree[self.kind.as_str()] = own;
        }
        tree
    }

    /// Reads a log line; `None` when it is none of those that matter.
    pub(super) fn hear(line: &str) -> Option<Sign> {
        let greeting = ServerKind::ALL.into_iter().find_map(|kind| {
            let version = line.strip_prefix(Self::of(kind).greeting)?.strip_suffix(" starting")?;
            Some(Sign::Greeting { kind, version: version.to_owned() })
        });
        greeting.or_else(|| {
            if line == "No source files found." {
                return Some(Sign::Enumerated(0));
            }
            let (count, rest) = line.strip_prefix("Found ")?.split_once(' ')?;
            let count = count.parse().ok()?;
            matches!(rest, "source file" | "source files").then_some(Sign::Enumerated(count))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_log() {
        assert_eq!(
            Profile::hear("Pyright language server 1.1.414 starting"),
            Some(Sign::Greeting { kind: ServerKind::Pyright, version: "1.1.414".to_owned() })
        );
        assert_eq!(
            Profile::hear("basedpyright language server 1.40.1 starting"),
            Some(Sign::Greeting { kind: ServerKind::Basedpyright, version: "1.40.1".to_owned() })
        );
        assert_eq!(Profile::hear("Found 2821 source files"), Some(Sign::Enumerated(2821)));
        assert_eq!(Profile::hear("Found 1 source file"), Some(Sign::Enumerated(1)));
        assert_eq!(Profile::hear("No source files found."), Some(Sign::Enumerated(0)));
        for line in
            ["Found 3 files to analyze", "Found x source files", "Starting service instance \"w\"", ""]
        {
            assert_eq!(Profile::hear(line), None, "{line}");
        }
    }

    #[test]
    fn settings_that_every_answer_rests_on() {
        let python = AbsPath::new("/venv/bin/python").unwrap();
        for kind in ServerKind::ALL {
            let tree = Profile::of(kind).configuration(&ServerSettings { python: Some(python.clone()) });
            assert_eq!(tree["python"]["pythonPath"], "/venv/bin/python");
            assert_eq!(tree["python"]["analysis"]["logLevel"], "Information");
            assert_eq!(tree["python"]["analysis"]["diagnosticMode"], "openFilesOnly");
        }
        let own = Profile::of(ServerKind::Basedpyright).configuration(&ServerSettings::default());
        assert_eq!(own["basedpyright"]["analysis"]["logLevel"], "Information");
        assert_eq!(own["basedpyright"]["analysis"]["baselineMode"], "discard");
        assert!(own["python"].get("pythonPath").is_none());
    }

    #[test]
    fn the_digest_covers_the_interpreter_and_the_kind() {
        let python = ServerSettings { python: Some(AbsPath::new("/p").unwrap()) };
        let of = |kind, settings: &ServerSettings| Profile::of(kind).digestable(settings);
        let plain = of(ServerKind::Pyright, &ServerSettings::default());
        assert_ne!(plain, of(ServerKind::Pyright, &python));
        assert_ne!(plain, of(ServerKind::Basedpyright, &ServerSettings::default()));
        assert_eq!(plain, of(ServerKind::Pyright, &ServerSettings::default()));
    }

    #[test]
    fn node_is_told_its_heap_before_the_script() {
        let found = ["/x/langserver.index.js".to_owned()];
        let plain = ["--max-old-space-size=4096", "/x/langserver.index.js", "--stdio"];
        let profile = Profile::of(ServerKind::Pyright);
        assert_eq!(profile.arguments(&found, None), plain);
        let cancellable = profile.arguments(&found, Some("f"));
        assert_eq!(cancellable[..3], plain);
        assert_eq!(cancellable[3..], ["--cancellationReceive=file:f"]);
    }
}
