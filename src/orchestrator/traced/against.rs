//! A recorded workspace held against one that is there.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use super::surroundings;
use crate::model::environment::Python;
use crate::model::error::ErrorBody;
use crate::model::trace::Workspace;
use crate::orchestrator::Settings;
use crate::orchestrator::ground::{Ground, Surveyor};

/// A workspace that is there.
#[derive(Debug)]
pub struct Live(Arc<Ground>);

/// Something that is another one in a workspace than was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where the trace tells it, as a JSONPath into the event `workspace`.
    pub field: String,
    /// What differs, as a sentence without its end.
    pub what: String,
}

impl Live {
    /// Looks at a workspace.
    ///
    /// # Errors
    /// When the interpreter that the user named cannot be asked.
    pub async fn survey(settings: Settings) -> Result<Self, ErrorBody> {
        let settings = Arc::new(settings);
        let ground = Surveyor::new(&settings, false).since(Instant::now(), &settings, None).await;
        ground.map(Self).map_err(|failure| failure.into_body(&crate::bundle::portable::PathMap::new()))
    }

    /// Everything of what answers rest on that is another one here: Python files, configuration files, the Python
    /// environment. Which lanser, which server and which machine recorded is no part of a workspace.
    #[must_use]
    pub fn differences(&self, recorded: &Workspace) -> Vec<Difference> {
        let (then, now) = (&recorded.environment, &self.0.environment);
        let mut all = members("$.files", &recorded.files, self.0.snapshot.files());
        if let Some(config) = surroundings::config(recorded) {
            all.extend(members("$.configuration.config.files", &config.files, &self.0.config.files));
        }
        let mut differs = |field: &str, what: String| {
            all.push(Difference { field: field.to_owned(), what });
        };
        if then.python != now.python {
            let what =
                format!("it has {} and not {}", named(now.python.as_ref()), named(then.python.as_ref()));
            differs("$.environment.python", what);
        }
        if all.is_empty() && then.config_digest != now.config_digest {
            let what = "what the server is told of the configuration is not the same".to_owned();
            all.push(Difference { field: "$.environment.configDigest".to_owned(), what });
        }
        if all.is_empty() && recorded.digest != now.workspace.digest {
            let what =
                "other packages are installed in its Python environment, or sources outside of it are others";
            all.push(Difference { field: "$.digest".to_owned(), what: what.to_owned() });
        }
        all
    }
}

fn named(python: Option<&Python>) -> String {
    python.map_or_else(
        || "no Python".to_owned(),
        |python| {
            format!("Python {}{}", python.version, if python.venv { " in a virtual environment" } else { "" })
        },
    )
}

/// The members of two maps that differ.
fn members<K: Ord + Display, V: PartialEq>(
    field: &str,
    then: &BTreeMap<K, V>,
    now: &BTreeMap<K, V>,
) -> Vec<Difference> {
    let mut paths: Vec<&K> = then.keys().chain(now.keys()).collect();
    paths.sort();
    paths.dedup();
    let differs = |path: &K| {
        let what = match (then.get(path), now.get(path)) {
            (Some(then), Some(now)) if then == now => return None,
            (Some(_), Some(_)) => format!("{path} has another content"),
            (Some(_), None) => format!("{path} is not there"),
            (None, _) => format!("{path} was not recorded"),
        };
        let name = serde_json::to_string(&path.to_string()).unwrap_or_default();
        Some(Difference { field: format!("{field}[{name}]"), what })
    };
    paths.into_iter().filter_map(differs).collect()
}
