//! One batch at several concurrencies, forwards and backwards, against the same requests one by one.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use ::lanser::model::bundle::Bundle;
use ::lanser::model::request::Request;
use ::lanser::orchestrator::{Orchestrator, Settings};

use crate::lanser;

/// How many are asked at a time.
const CONCURRENCIES: [usize; 3] = [1, 4, 16];

/// Asks all requests in batches, and every `step`-th by an orchestrator of its own. Tells how many answers differ from
/// those of the first batch.
pub(crate) async fn differences(
    settings: &Settings,
    requests: &[Request],
    step: usize,
) -> Result<usize, String> {
    let lines: Vec<String> = requests.iter().enumerate().map(line).collect::<Result<_, _>>()?;
    let first = answers(settings, &lines, CONCURRENCIES[0])?;
    if first.len() != lines.len() {
        return Err(format!("{} of {} requests have an answer", first.len(), lines.len()));
    }
    let mut different = 0;
    let mut compare = |how: &str, number: u64, bundle: &Bundle| {
        let expected = &first[&number];
        if expected.bundle_id != bundle.bundle_id {
            different += 1;
            let told = |bundle: &Bundle| serde_json::to_string(bundle).unwrap_or_default();
            println!("DIFFERENT {how}: {}\n  {}\n  {}", lines[number as usize], told(expected), told(bundle));
        }
    };
    for concurrency in &CONCURRENCIES[1..] {
        for (number, bundle) in answers(settings, &lines, *concurrency)? {
            compare(&format!("at concurrency {concurrency}"), number, &bundle);
        }
    }
    let backwards: Vec<String> = lines.iter().rev().cloned().collect();
    for (number, bundle) in answers(settings, &backwards, CONCURRENCIES[2])? {
        compare("backwards", number, &bundle);
    }
    let mut alone = 0;
    for (number, request) in requests.iter().enumerate().step_by(step.max(1)) {
        let one = Orchestrator::for_one(settings.clone());
        compare("alone", number as u64, &one.run(request.clone(), std::future::pending()).await);
        alone += 1;
    }
    let good = first.values().filter(|bundle| bundle.error.is_none()).count();
    println!(
        "{} requests, {good} with an answer, {alone} of them also alone: {different} differ",
        lines.len()
    );
    Ok(different)
}

fn line((number, request): (usize, &Request)) -> Result<String, String> {
    let mut line = serde_json::to_value(request).map_err(|error| error.to_string())?;
    line["id"] = number.into();
    Ok(line.to_string())
}

/// The answers of one batch, by their number.
fn answers(
    settings: &Settings,
    lines: &[String],
    concurrency: usize,
) -> Result<BTreeMap<u64, Bundle>, String> {
    let (program, _) = lanser::beside_example()?;
    let mut command = Command::new(program);
    command.args(["batch", "--no-cache", "--timeout", "300", "-C", settings.root.as_str()]);
    command.args(["--concurrency", &concurrency.to_string()]);
    if let Some(script) = &settings.server_command {
        command.args(["--server-command", script.as_str()]);
    }
    command.env("LANSER_CACHE_DIR", settings.cache.as_str()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("lanser: {error}"))?;
    let mut input = child.stdin.take().ok_or("lanser has no pipe")?;
    let text = lines.join("\n");
    let writing = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().map_err(|error| format!("lanser: {error}"))?;
    writing.join().map_err(|_| "the writer failed")?.map_err(|error| format!("lanser batch: {error}"))?;
    if !output.status.success() {
        return Err(format!("lanser batch ended with {}", output.status));
    }
    let mut answers = BTreeMap::new();
    for line in output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let bundle: Bundle = serde_json::from_slice(line).map_err(|error| format!("no bundle: {error}"))?;
        let id = serde_json::to_value(&bundle.meta.volatile.id).map_err(|error| error.to_string())?;
        answers.insert(id.as_u64().ok_or("an answer has no number")?, bundle);
    }
    Ok(answers)
}
