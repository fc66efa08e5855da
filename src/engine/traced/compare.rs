//! Compares a recorded workspace with one on disk.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use super::recorded_inputs;
use crate::engine::inputs::{InputScanner, Inputs};
use crate::engine::settings::Settings;
use crate::model::environment::Python;
use crate::model::error::ErrorBody;
use crate::model::trace::RecordedWorkspace;

/// A workspace on disk.
#[derive(Debug)]
pub struct CurrentWorkspace(Arc<Inputs>);

/// A difference between a workspace and a recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceDifference {
    /// The member of the trace's event `workspace`, as a JSONPath.
    pub field: String,
    /// The difference, as a sentence without a final period.
    pub what: String,
}

impl CurrentWorkspace {
    /// Scans a workspace.
    ///
    /// # Errors
    /// If the interpreter given by the user cannot be run.
    pub async fn scan(settings: Settings) -> Result<Self, ErrorBody> {
        let settings = Arc::new(settings);
        let inputs = InputScanner::new(&settings, false).scan_since(Instant::now(), &settings, None).await;
        inputs.map(Self).map_err(|failure| failure.into_body(&crate::bundle::portable::PathMap::new()))
    }

    /// All differences in the inputs: Python files, configuration files, the Python environment. The versions of
    /// lanser and of the server, and the machine, are not part of a workspace.
    #[must_use]
    pub fn differences(&self, recorded: &RecordedWorkspace) -> Vec<WorkspaceDifference> {
        let (then, now) = (&recorded.environment, &self.0.environment);
        let mut all = differing_members("$.files", &recorded.files, self.0.snapshot.files());
        if let Some(config) = recorded_inputs::config(recorded) {
            all.extend(differing_members(
                "$.configuration.config.files",
                &config.files,
                &self.0.config.files,
            ));
        }
        let mut differs = |field: &str, what: String| {
            all.push(WorkspaceDifference { field: field.to_owned(), what });
        };
        if then.python != now.python {
            let what = format!(
                "it has {} instead of {}",
                describe_python(now.python.as_ref()),
                describe_python(then.python.as_ref())
            );
            differs("$.environment.python", what);
        }
        if all.is_empty() && then.config_digest != now.config_digest {
            let what = "the configuration sent to the server differs".to_owned();
            all.push(WorkspaceDifference { field: "$.environment.configDigest".to_owned(), what });
        }
        if all.is_empty() && recorded.digest != now.workspace.digest {
            let what = "the installed packages of its Python environment or the sources outside of it differ";
            all.push(WorkspaceDifference { field: "$.digest".to_owned(), what: what.to_owned() });
        }
        all
    }
}

fn describe_python(python: Option<&Python>) -> String {
    python.map_or_else(
        || "no Python".to_owned(),
        |python| {
            format!("Python {}{}", python.version, if python.venv { " in a virtual environment" } else { "" })
        },
    )
}

/// The differing members of two maps.
fn differing_members<K: Ord + Display, V: PartialEq>(
    field: &str,
    then: &BTreeMap<K, V>,
    now: &BTreeMap<K, V>,
) -> Vec<WorkspaceDifference> {
    let mut paths: Vec<&K> = then.keys().chain(now.keys()).collect();
    paths.sort();
    paths.dedup();
    let differs = |path: &K| {
        let what = match (then.get(path), now.get(path)) {
            (Some(then), Some(now)) if then == now => return None,
            (Some(_), Some(_)) => format!("the content of {path} differs"),
            (Some(_), None) => format!("{path} does not exist"),
            (None, _) => format!("{path} was not recorded"),
        };
        let name = serde_json::to_string(&path.to_string()).unwrap_or_default();
        Some(WorkspaceDifference { field: format!("{field}[{name}]"), what })
    };
    paths.into_iter().filter_map(differs).collect()
}
