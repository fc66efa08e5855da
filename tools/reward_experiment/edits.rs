//! Scores sets of edits, each of a known kind.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Experiment;
use crate::ablation::Scores;

/// Prints what each score pays of each set, and what the guarded score misjudges.
pub(crate) fn run(world: &Experiment, files: &[PathBuf]) -> Result<(), String> {
    println!("| set | kind | edits | {} |", Scores::NAMES.map(|name| format!("{name}: paid")).join(" | "));
    println!("|---|---|---|{}", "---|".repeat(Scores::NAMES.len()));
    for file in files {
        let text = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let set: Value =
            serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let (base, heads) = written(world, &set)?;
        let paths: Vec<PathBuf> = heads.iter().map(|(.., path)| path.clone()).collect();
        let scores = world.scores(&base, &paths)?;
        let mut kinds: BTreeMap<&str, Vec<Scores>> = BTreeMap::new();
        for ((name, kind, _), score) in heads.iter().zip(&scores) {
            let reward = score.all()[3];
            if (kind == "fix") != (reward > 0.0) {
                eprintln!("{kind} {name}: {reward}");
            }
            kinds.entry(kind).or_default().push(*score);
        }
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        for (kind, scores) in kinds {
            let paid = |at: usize| scores.iter().filter(|score| score.all()[at] > 0.0).count().to_string();
            let cells: Vec<String> = (0..Scores::NAMES.len()).map(paid).collect();
            println!("| {name} | {kind} | {} | {} |", scores.len(), cells.join(" | "));
        }
    }
    Ok(())
}

/// Writes the base and the heads of a set: name, kind and folder of each.
#[expect(clippy::type_complexity, reason = "a list of heads")]
fn written(world: &Experiment, set: &Value) -> Result<(PathBuf, Vec<(String, String, PathBuf)>), String> {
    let root = world.temporary.path().join("set");
    let _ = fs::remove_dir_all(&root);
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or("a text is missing");
    let mut base = BTreeMap::new();
    for (path, value) in set["base"].as_object().ok_or("the set has no base")? {
        base.insert(path.clone(), text(value)?);
    }
    write(&root.join("base"), &base)?;
    let mut heads = Vec::new();
    for edit in set["edits"].as_array().ok_or("the set has no edits")? {
        let (name, mut files) = (text(&edit["name"])?, base.clone());
        for (path, value) in edit["files"].as_object().into_iter().flatten() {
            match value.as_str() {
                Some(text) => files.insert(path.clone(), text.to_owned()),
                None => files.remove(path),
            };
        }
        for (path, swaps) in edit["swap"].as_object().into_iter().flatten() {
            let held = files.get_mut(path).ok_or_else(|| format!("{name}: {path}"))?;
            for swap in swaps.as_array().into_iter().flatten() {
                let (old, new) = (text(&swap[0])?, text(&swap[1])?);
                if !held.contains(&old) {
                    return Err(format!("{name}: {old:?} is not in {path}"));
                }
                *held = held.replacen(&old, &new, 1);
            }
        }
        let folder = root.join("heads").join(&name);
        write(&folder, &files)?;
        heads.push((name, text(&edit["kind"])?, folder));
    }
    Ok((root.join("base"), heads))
}

fn write(folder: &Path, files: &BTreeMap<String, String>) -> Result<(), String> {
    for (path, text) in files {
        let path = folder.join(path);
        let parent = path.parent().ok_or("a path is empty")?;
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}
