//! The absolute paths of the files in a bundle, for callers that open them. They are outside of the hash.

use std::collections::BTreeMap;

use serde_json::Value;

use super::inputs::{Tools, path_map};
use super::python_env::environment_cache;
use super::settings::Settings;
use crate::bundle::portable::PathMap;
use crate::model::bundle::Bundle;
use crate::path::{AbsPath, DocUri};
use crate::selector;
use crate::text::ColumnUnit;

/// The folders of this machine to which the URIs of bundles are relative.
#[derive(Debug, Clone)]
pub struct AbsolutePaths(PathMap);

impl AbsolutePaths {
    /// The folders of a workspace, of its Python environment and of the server, if those are found. Blocking.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let tools = Tools::find(settings, &environment_cache(settings), false).ok();
        let python = tools.as_ref().and_then(|tools| tools.python.as_ref());
        let server = tools.as_ref().and_then(|tools| tools.found.as_ref().ok());
        Self(path_map(settings, python, server.map(|found| &found.stubs)))
    }

    /// The path of a URI.
    #[must_use]
    pub fn path(&self, uri: &DocUri) -> Option<AbsPath> {
        self.0.absolute(uri)
    }

    /// Sets `meta.volatile.absolute` to the path of every URI in the bundle.
    pub fn add_to(&self, bundle: &mut Bundle) {
        let mut absolute = BTreeMap::new();
        if let Ok(value) = serde_json::to_value(&*bundle) {
            self.collect(&value, &mut absolute);
        }
        bundle.meta.volatile.absolute = absolute;
    }

    /// The paths of the URIs in the members `uri` and `at`.
    fn collect(&self, value: &Value, found: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(members) => members.iter().for_each(|(name, member)| {
                let uri = match (name.as_str(), member) {
                    ("uri", Value::String(text)) => DocUri::parse(text),
                    ("at", Value::String(text)) => selector::parse(text, ColumnUnit::default())
                        .ok()
                        .and_then(|selector| selector.uri().cloned()),
                    _ => None,
                };
                if let Some(path) = uri.as_ref().and_then(|uri| self.0.absolute(uri)) {
                    found.extend(uri.map(|uri| (uri.to_string(), path.to_string())));
                }
                self.collect(member, found);
            }),
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, found)),
            _ => {}
        }
    }
}
