//! Compares one batch at several concurrencies, forwards and backwards, with the same requests one by one, and with its replay
//! without the workspace.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use lanser::internal::digest::Digest;
use lanser::internal::engine::{Engine, Settings};
use lanser::model::bundle::Bundle;
use lanser::model::request::Request;

/// The concurrencies that are compared.
const CONCURRENCIES: [usize; 3] = [1, 4, 16];

/// Sends all requests in batches, and every `step`-th to a separate engine. Then one more batch is recorded, the workspace is
/// deleted, and the trace is replayed. Returns how many answers differ from those of the first batch.
pub(crate) async fn differences(
    settings: &Settings,
    requests: &[Request],
    step: usize,
) -> Result<usize, String> {
    let lines: Vec<String> = requests.iter().enumerate().map(line).collect::<Result<_, _>>()?;
    let first = answers(settings, &lines, CONCURRENCIES[0], None)?;
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
        for (number, bundle) in answers(settings, &lines, *concurrency, None)? {
            compare(&format!("at concurrency {concurrency}"), number, &bundle);
        }
    }
    let backwards: Vec<String> = lines.iter().rev().cloned().collect();
    let trace = settings.temp.as_path().join("trace.jsonl");
    for (number, bundle) in answers(settings, &backwards, CONCURRENCIES[2], Some(&trace))? {
        compare("backwards", number, &bundle);
    }
    let mut alone = 0;
    for (number, request) in requests.iter().enumerate().step_by(step.max(1)) {
        let one = Engine::for_one(settings.clone());
        compare("alone", number as u64, &one.run(request.clone(), std::future::pending()).await);
        alone += 1;
    }
    std::fs::remove_dir_all(settings.root.as_path()).map_err(|error| error.to_string())?;
    let began = Instant::now();
    different += unlike(&first, replayed(settings.temp.as_path(), &trace)?);
    let size = std::fs::metadata(&trace).map_or(0, |data| data.len());
    println!("replayed {} MB in {:.1} s", size >> 20, began.elapsed().as_secs_f64());
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

/// The bundles of a replay, run in a separate folder with an empty environment.
fn replayed(scratch: &Path, trace: &Path) -> Result<Vec<Bundle>, String> {
    let (program, _) = crate::support::program::beside_example()?;
    let elsewhere = scratch.join("elsewhere");
    std::fs::create_dir(&elsewhere).map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["trace", "replay"]).arg(trace).current_dir(elsewhere).env_clear();
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("lanser: {error}"))?;
    if !output.status.success() {
        return Err(format!("lanser trace replay ended with {}", output.status));
    }
    bundles(&output.stdout)
}

/// How many answers of a batch and of its replay have no counterpart. A replay does not contain the numbers of the lines.
fn unlike(first: &BTreeMap<u64, Bundle>, replayed: Vec<Bundle>) -> usize {
    let mut ids: BTreeMap<Digest, i64> = BTreeMap::new();
    for bundle in first.values() {
        *ids.entry(bundle.bundle_id).or_default() += 1;
    }
    for bundle in &replayed {
        let left = ids.entry(bundle.bundle_id).or_default();
        *left -= 1;
        if *left < 0 {
            println!("DIFFERENT replayed: {}", serde_json::to_string(bundle).unwrap_or_default());
        }
    }
    ids.values().filter(|left| **left != 0).count()
}

/// The answers of one batch by number.
fn answers(
    settings: &Settings,
    lines: &[String],
    concurrency: usize,
    trace: Option<&Path>,
) -> Result<BTreeMap<u64, Bundle>, String> {
    let (program, _) = crate::support::program::beside_example()?;
    let mut command = Command::new(program);
    command.args(["batch", "--no-cache", "--timeout", "300", "-C", settings.root.as_str()]);
    command.args(["--concurrency", &concurrency.to_string()]);
    if let Some(script) = &settings.server_command {
        command.args(["--server-command", script.as_str()]);
    }
    if let Some(trace) = trace {
        command.arg("--trace-file").arg(trace);
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
    for bundle in bundles(&output.stdout)? {
        let id = serde_json::to_value(&bundle.meta.volatile.id).map_err(|error| error.to_string())?;
        answers.insert(id.as_u64().ok_or("an answer has no number")?, bundle);
    }
    Ok(answers)
}

fn bundles(text: &[u8]) -> Result<Vec<Bundle>, String> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).map_err(|error| format!("no bundle: {error}"))).collect()
}
