//! Diagnostics as SARIF 2.1.0, the format of code scanning. One run per tool.
//!
//! The log contains no time and no path of the machine, so equal answers give equal bytes. URIs are relative to the root of the
//! repository, `%SRCROOT%`.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};

use super::sarif_run::{ReportTool, run};
use super::{repository_path, screen};
use crate::model::analyzer::DiagnosticSource;
use crate::model::bundle::Bundle;
use crate::model::facts::Diagnostic;

/// The schema that the output is valid for.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Prints a bundle with diagnostics or with an error.
pub(super) fn print(bundle: &Bundle) -> io::Result<()> {
    screen::write_json(format!("{}\n", log(bundle)).as_bytes())
}

/// The log of a bundle.
fn log(bundle: &Bundle) -> Value {
    let found = bundle.facts.as_ref().and_then(|facts| facts.diagnostics.as_ref());
    let reports = found.map(|found| found.sources.as_slice()).unwrap_or_default();
    // Whatever was asked has a run also when it reports nothing, so that code scanning closes what was fixed.
    let mut runs = BTreeMap::from([(DiagnosticSource::Lsp, Vec::new())]);
    runs.extend(reports.iter().map(|report| (report.source, Vec::new())));
    for item in found.iter().flat_map(|found| &found.items) {
        runs.entry(item.source.unwrap_or(DiagnosticSource::Lsp)).or_default().push(item);
    }
    let prefix = repository_path::prefix(bundle);
    let runs: Vec<Value> = runs
        .into_iter()
        .map(|(source, items): (DiagnosticSource, Vec<&Diagnostic>)| {
            let report = reports.iter().find(|report| report.source == source);
            let tool = match report.filter(|_| source != DiagnosticSource::Lsp) {
                Some(report) => ReportTool { name: &report.tool, version: Some(&report.version) },
                None => server(bundle),
            };
            run(bundle, &tool, &prefix, &items)
        })
        .collect();
    json!({"$schema": SCHEMA, "version": "2.1.0", "runs": runs})
}

/// The language server; lanser itself if none was used.
fn server(bundle: &Bundle) -> ReportTool<'_> {
    let tool = bundle.environment.as_ref().and_then(|environment| environment.tool.as_ref());
    tool.map_or(ReportTool { name: "lanser", version: Some(env!("CARGO_PKG_VERSION")) }, |tool| ReportTool {
        name: tool.name.as_str(),
        version: Some(&tool.version),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::seal::{BundleDraft, seal};
    use crate::model::analyzer::{AnalysisScope, SourceReport};
    use crate::model::error::{ErrorBody, ErrorSymbol};
    use crate::model::facts::{Counts, Diagnostics, Facts, NotChecked, Provenance};
    use crate::path::DocUri;

    fn is_valid(log: &Value) {
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/sarif/sarif-schema-2.1.0.json");
        let schema = std::fs::read_to_string(schema).unwrap();
        // A pattern of the schema has a bracket that ECMA 262 requires to be escaped.
        let schema: Value =
            serde_json::from_str(&schema.replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}\\\\]?$")).unwrap();
        let validator = jsonschema::draft7::new(&schema).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(log).map(|error| format!("{} {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        // The schema is one that can fail.
        let mut broken = log.clone();
        broken["runs"][0]["invocations"][0]["executionSuccessful"] = json!("yes");
        assert!(!validator.is_valid(&broken));
    }

    fn item(path: &str, line: u32, severity: &str, rule: Option<&str>) -> Diagnostic {
        serde_json::from_value(json!({
            "uri": path, "range": [line, 3, line, 7], "at": format!("{path}@L{}:C4", line + 1), "severity": severity,
            "rule": rule, "message": format!("wrong on line {line}"), "symbol": "C.f", "tags": ["deprecated"],
            "related": [
                {"location": {"uri": "env://lib/x.py", "range": [0, 0, 0, 1], "at": "env://lib/x.py@L1:C1"}, "message": "here"},
                {"location": {"uri": "file:///other/x.py", "range": [0, 0, 0, 1], "at": "file:///other/x.py@L1:C1"}, "message": "there"},
            ],
        }))
        .unwrap()
    }

    fn bundle(items: Vec<Diagnostic>) -> Bundle {
        let mut facts = Facts::new(Provenance::Lsp);
        let is_of_ruff = |item: &Diagnostic| item.source == Some(DiagnosticSource::Ruff);
        let ruff = items.iter().any(is_of_ruff).then(|| SourceReport {
            source: DiagnosticSource::Ruff,
            tool: "ruff".to_owned(),
            version: "0.17.6".to_owned(),
            config_digest: crate::digest::Digest::of(b""),
            scope: AnalysisScope::Requested,
            complete: true,
            reason: None,
        });
        facts.diagnostics = Some(Diagnostics {
            items,
            counts: Counts::default(),
            base: None,
            sources: ruff.into_iter().collect(),
            verdict: None,
            files_checked: 1,
            files: Vec::new(),
            not_checked: vec![NotChecked {
                uri: DocUri::parse("big.py").unwrap(),
                reason: "too big".to_owned(),
            }],
        });
        seal(BundleDraft {
            facts: Some(facts),
            error: None,
            warnings: vec!["no environment".to_owned()],
            ..BundleDraft::failed(None, ErrorBody::new(ErrorSymbol::Usage, ""))
        })
        .unwrap()
    }

    #[test]
    fn one_run_per_tool() {
        let of_ruff = Diagnostic { source: Some(DiagnosticSource::Ruff), ..item("a.py", 2, "hint", None) };
        let bundle = bundle(vec![item("a b/ü:c.py", 1, "error", Some("r")), of_ruff]);
        let log = log(&bundle);
        is_valid(&log);
        let name = |run: usize| log["runs"][run]["tool"]["driver"]["name"].as_str().unwrap();
        assert_eq!((name(0), name(1)), ("lanser", "ruff"));
        let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(
            place["artifactLocation"],
            json!({"uri": "a%20b/%C3%BC%3Ac.py", "uriBaseId": "%SRCROOT%"})
        );
        assert_eq!(log["runs"][1]["results"][0]["level"], "note");
        assert!(!log.to_string().contains("/other"), "{log}");
        let notes = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"];
        assert_eq!(
            (notes[0]["level"].as_str(), notes[1]["level"].as_str()),
            (Some("warning"), Some("error"))
        );
    }

    #[test]
    fn fingerprints_survive_shifted_lines_and_are_unique() {
        let prints = |bundle: &Bundle| -> Vec<String> {
            let log = log(bundle);
            is_valid(&log);
            let results = log["runs"][0]["results"].as_array().unwrap().clone();
            results.iter().map(|result| result["partialFingerprints"]["lanser/v1"].to_string()).collect()
        };
        let one = |line| item("a.py", line, "error", Some("r"));
        let before = prints(&bundle(vec![one(1), one(2)]));
        let after = prints(&bundle(vec![one(41), one(52)]));
        assert_eq!(before, after);
        assert_ne!(before[0], before[1]);
        assert_ne!(before[0], prints(&bundle(vec![item("b.py", 1, "error", Some("r"))]))[0]);
    }

    #[test]
    fn an_error_is_an_unsuccessful_invocation() {
        let error = ErrorBody::new(ErrorSymbol::LsTimeout, "too late").hint("give it time");
        let bundle = seal(BundleDraft::failed(None, error)).unwrap();
        let log = log(&bundle);
        is_valid(&log);
        let run = &log["runs"][0];
        let invocation = &run["invocations"][0];
        assert_eq!(
            (&invocation["executionSuccessful"], &invocation["exitCode"]),
            (&json!(false), &json!(64))
        );
        assert_eq!(invocation["toolExecutionNotifications"][0]["descriptor"]["id"], "E/LS_TIMEOUT");
        assert!(run.get("results").is_none());
    }
}
