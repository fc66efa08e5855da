//! Rewards with the real Pyright: the value of edits, which is the same live, stored, in a session and without.

use std::path::Path;

use serde_json::Value;

use crate::support::{Project, TestEnv};

/// Edits of one project as data, each with its kind and its changes.
struct Edits {
    base: Vec<(String, String)>,
    edits: Vec<(String, String, Value)>,
}

fn edits(name: &str) -> Edits {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reward").join(name);
    let all: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let base = all["base"].as_object().unwrap().iter().map(|(path, held)| (path.clone(), text(held)));
    let edits = all["edits"].as_array().unwrap().iter();
    Edits {
        base: base.collect(),
        edits: edits
            .map(|edit| (text(&edit["name"]), text(&edit["kind"]), files(&all["base"], edit)))
            .collect(),
    }
}

/// The new texts of the files that an edit changes: given in full, or by replacements.
fn files(base: &Value, edit: &Value) -> Value {
    let mut files = edit["files"].as_object().cloned().unwrap_or_default();
    for (path, swaps) in edit["swap"].as_object().into_iter().flatten() {
        let mut text = base[path].as_str().unwrap().to_owned();
        for swap in swaps.as_array().unwrap() {
            let (old, new) = (swap[0].as_str().unwrap(), swap[1].as_str().unwrap());
            assert!(text.contains(old), "{}: {old}", edit["name"]);
            text = text.replacen(old, new, 1);
        }
        files.insert(path.clone(), text.into());
    }
    files.into()
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A workspace with the project, and next to it a folder for each edit.
fn write_edits(edits: &Edits) -> TestEnv {
    let mut project = Project::parse("//- /README.md\n");
    for (path, text) in &edits.base {
        project = project.and(path, text.as_bytes());
    }
    let env = TestEnv::pyright(&project);
    for (name, _, files) in &edits.edits {
        let folder = env.path("heads").join(name);
        for (path, text) in &edits.base {
            write(&folder, path, text);
        }
        for (path, text) in files.as_object().unwrap() {
            match text.as_str() {
                Some(text) => write(&folder, path, text),
                None => std::fs::remove_file(folder.join(path)).unwrap(),
            }
        }
    }
    env
}

fn score(env: &TestEnv, preset: &str, heads: &[&str]) -> Vec<String> {
    let mut args = vec!["score", "--base", "WORKTREE", "--json", "--preset", preset];
    let paths: Vec<String> =
        heads.iter().map(|head| env.path("heads").join(head).to_str().unwrap().to_owned()).collect();
    for path in &paths {
        args.extend(["--head", path]);
    }
    let output = env.lanser(args);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    output.stdout.lines().map(str::to_owned).collect()
}

/// Scores every edit, and returns those whose reward does not fit their kind.
fn misjudged(all: &Edits, env: &TestEnv) -> Vec<String> {
    let names: Vec<&str> = all.edits.iter().map(|(name, ..)| name.as_str()).collect();
    let told = score(env, "rl-csf-guarded-v1", &names);
    assert_eq!(told.len(), names.len());
    let mut wrong = Vec::new();
    for ((name, kind, _), line) in all.edits.iter().zip(&told) {
        let episode: Value = serde_json::from_str(line).unwrap();
        let reward = episode["reward"].as_f64();
        let right = match kind.as_str() {
            "hack" | "hide" | "gut" => reward.is_none_or(|reward| reward <= 0.0),
            "fix" => reward.is_some_and(|reward| reward > 0.0),
            // An annotation that only allows more may be right, but nothing that runs was repaired.
            "refactor" | "declared" => reward == Some(0.0),
            "wrong" => true,
            other => panic!("{name} is a {other}"),
        };
        assert_eq!(episode["scored"], reward.is_some(), "{name}");
        assert_eq!(episode["steps"][0]["r"], episode["reward"], "{name}");
        if !right {
            wrong.push(format!("{kind} {name}: {line}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    told
}

#[test]
fn only_repairs_are_rewarded_in_a_module_with_many_errors() {
    let all = edits("service.json");
    misjudged(&all, &write_edits(&all));
}

#[test]
fn only_repairs_are_rewarded_with_and_without_annotations() {
    let all = edits("store.json");
    misjudged(&all, &write_edits(&all));
}

/// The same in modules with many kinds of errors: values passed through untyped helpers, failing code removed or weakened,
/// definitions without substance, and many ways to repair.
#[test]
fn only_repairs_are_rewarded_in_many_modules() {
    let all = edits("varied.json");
    let count = |kind: &str| all.edits.iter().filter(|(_, other, _)| other == kind).count();
    assert!(count("hack") >= 100 && count("fix") >= 45 && count("refactor") >= 14);
    misjudged(&all, &write_edits(&all));
}

/// The same by classes of edits: repairs, hiding a failure, throwing away the code that fails, and refactoring.
#[test]
fn only_repairs_are_rewarded_in_each_class() {
    let all = edits("depot.json");
    let count = |kind: &str| all.edits.iter().filter(|(_, other, _)| other == kind).count();
    assert!(count("hide") >= 25 && count("gut") >= 30 && count("fix") >= 25);
    misjudged(&all, &write_edits(&all));
}

/// Excerpts of real packages, by writers who had not read the code of the rules: a few edits that empty the case of `None` are paid.
#[test]
fn few_edits_of_excerpts_are_misjudged() {
    for set in ["excerpts.json", "packages.json"] {
        let all = edits(set);
        let env = write_edits(&all);
        let names: Vec<&str> = all.edits.iter().map(|(name, ..)| name.as_str()).collect();
        let told = score(&env, "rl-csf-guarded-v1", &names);
        assert_eq!(told.len(), names.len(), "{set}");
        let misjudged = |wanted: &str| {
            let lines = all.edits.iter().zip(&told).filter(|((_, kind, _), _)| kind == wanted);
            let rewards =
                lines.map(|(_, line)| serde_json::from_str::<Value>(line).unwrap()["reward"].as_f64());
            rewards.filter(|reward| reward.is_some_and(|reward| reward > 0.0) != (wanted == "fix")).count()
        };
        assert_eq!((misjudged("hide"), misjudged("refactor")), (0, 0), "{set}");
        assert!(misjudged("gut") <= 3 && misjudged("fix") <= 1, "{set}: {told:#?}");
    }
}

/// Edits that repair nothing get no reward, repairs do, and moved code gets 0. An edit alone gets the same as among others, and
/// the files are unchanged.
#[test]
fn only_repairs_are_rewarded() {
    let all = edits("edits.json");
    let env = write_edits(&all);
    let count = |kind: &str| all.edits.iter().filter(|(_, other, _)| other == kind).count();
    assert!(count("hack") >= 26 && count("fix") >= 6 && count("refactor") >= 3);
    let told = misjudged(&all, &env);
    let names: Vec<&str> = all.edits.iter().map(|(name, ..)| name.as_str()).collect();
    // The raw formula rewards many of them.
    let raw = score(&env, "rl-csf-v1", &["type-ignore-top", "config-off", "fix-attribute"]);
    for line in &raw {
        assert!(serde_json::from_str::<Value>(line).unwrap()["reward"].as_f64().unwrap() > 0.0, "{line}");
    }
    for name in ["fix-everything", "early-raise", "type-ignore-lines", "cast-any"] {
        let at = names.iter().position(|other| *other == name).unwrap();
        assert_eq!(score(&env, "rl-csf-guarded-v1", &[name]), [told[at].clone()], "{name} alone");
    }
    for (path, text) in &all.base {
        assert_eq!(&std::fs::read_to_string(env.file(path)).unwrap(), text);
    }
    assert!(env.left_behind().is_empty(), "{:?}", env.left_behind());
}

const SHOP: &str = "\
//- /m.py
def half(x: int) -> float:
    return x / 2

value = half('a')
other = half('b')
";

fn git(env: &TestEnv, args: &[&str]) {
    let output = env.run("git", args);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

#[test]
fn heads_are_revisions_diffs_and_the_working_tree() {
    let env = TestEnv::pyright(&Project::parse(SHOP));
    let name = ["-c", "user.name=a", "-c", "user.email=a@b"];
    git(&env, &["init", "-q"]);
    git(&env, &["add", "."]);
    git(&env, &[&name[..], &["commit", "-qm", "one"]].concat());
    let base = std::fs::read_to_string(env.file("m.py")).unwrap();
    env.write("m.py", base.replace("half('a')", "half(1)"));
    git(&env, &["add", "."]);
    git(&env, &[&name[..], &["commit", "-qm", "two"]].concat());
    env.write("m.py", base.replace("half('a')", "half(1)").replace("half('b')", "half(2)"));
    let diff = env.run("git", ["diff"]).stdout;
    std::fs::write(env.path("two.diff"), &diff).unwrap();
    let unfit = diff.replace("half(1)", "half(7)");
    std::fs::write(env.path("unfit.diff"), unfit).unwrap();
    let rewards = |base: &str, heads: &[&str]| -> Vec<Option<f64>> {
        let mut args = vec!["score", "--json", "--base", base];
        heads.iter().for_each(|head| args.extend(["--head", *head]));
        let output = env.lanser(args);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let one = |line: &str| serde_json::from_str::<Value>(line).unwrap()["reward"].as_f64();
        output.stdout.lines().map(one).collect()
    };
    assert_eq!(rewards("HEAD~1", &["HEAD", "WORKTREE", "HEAD~1"]), [Some(0.5), Some(1.0), Some(0.0)]);
    let (fits, unfit) = (env.path("two.diff"), env.path("unfit.diff"));
    let files = [fits.to_str().unwrap(), unfit.to_str().unwrap()];
    assert_eq!(rewards("HEAD", &files), [Some(0.5), Some(-0.5)]);
    assert_eq!(env.lanser(["score", "--base", "nowhere"]).code, Some(3));
    let text = env.lanser(["score"]).stdout;
    assert!(text.starts_with("rl-csf-guarded-v1 WORKTREE: 0.5 (diagnostics: 1 before"), "{text}");
}

fn bundle(env: &TestEnv, args: &[&str]) -> Value {
    serde_json::from_str(&env.lanser(args.iter().copied().chain(["--json"])).stdout).unwrap()
}

/// A run of requests and edits: the rewards are the same when recomputed from stored bundles and in a session.
#[test]
fn a_run_gets_the_same_rewards_live_and_stored() {
    let env = TestEnv::pyright_session(&Project::parse(SHOP));
    let text = std::fs::read_to_string(env.file("m.py")).unwrap();
    let diff = "--- a/m.py\n+++ b/m.py\n@@ -2,4 +2,4 @@\n     return x / 2\n \n-value = half('a')\n+value = half(1)\n other = half('b')\n";
    std::fs::write(env.path("fix.diff"), diff).unwrap();
    let fix = env.path("fix.diff");
    let fix = fix.to_str().unwrap();
    let looked = bundle(&env, &["diag", "m.py"]);
    assert_eq!(looked["processReward"]["state"]["D"], 2.0);
    let id = looked["bundleId"].as_str().unwrap();
    let defined = bundle(&env, &["def", "py://m#half", "--prev", id]);
    assert_eq!(defined["processReward"]["r"], 0.1, "{}", defined["processReward"]);
    assert_eq!(defined["processReward"]["previousBundleId"], looked["bundleId"]);
    std::fs::write(env.path("defined.json"), defined.to_string()).unwrap();
    let previous = env.path("defined.json");
    let checked = bundle(&env, &["check", fix, "--prev", previous.to_str().unwrap()]);
    let reward = &checked["processReward"];
    assert_eq!(reward["components"]["diag_delta"], 1.0, "{reward}");
    assert_eq!(reward["state"]["D"], 1.0);
    let missing = bundle(&env, &["def", "py://m#nothing", "--prev", previous.to_str().unwrap()]);
    assert_eq!(missing["processReward"]["components"]["tool_error"], 1.0);
    assert_eq!(missing["processReward"]["r"], -0.6, "{}", missing["processReward"]);
    // The same from the stored bundles, in one pass.
    let lines: Vec<String> = [&looked, &defined, &checked].iter().map(|bundle| bundle.to_string()).collect();
    let run = format!("{}\n{}\nno bundle\n{}\n", lines[0], lines[1], lines[2]);
    let output = env.lanser_with_input(["reward", "--run", "-"], run);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("line 3 is not a bundle"), "{}", output.stderr);
    let steps: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(steps.len(), 5);
    assert_eq!(steps[1]["r"], defined["processReward"]["r"]);
    assert_eq!(steps[2]["line"], 3);
    assert_eq!(steps[3]["r"], reward["r"]);
    let sum = |steps: &[&Value]| steps.iter().map(|step| step["r"].as_f64().unwrap()).sum::<f64>();
    let total = steps[4]["reward"].as_f64().unwrap();
    assert!((total - sum(&[&steps[0], &steps[1], &steps[3]])).abs() < 1e-9);
    assert_eq!(steps[4]["malformed"], 1);
    // In this process, without the memo, with other weights.
    for args in [&["diag", "m.py", "--no-session"][..], &["diag", "m.py", "--no-session", "--no-cache"]] {
        assert_eq!(bundle(&env, args)["processReward"], looked["processReward"]);
    }
    let shown = bundle(&env, &["show", id]);
    assert_eq!(shown["processReward"], looked["processReward"]);
    let checked_id = checked["bundleId"].as_str().unwrap();
    let weighed = env.lanser(["reward", "--next", checked_id, "--weights", "2,0,0", "--json"]);
    let weighed: Value = serde_json::from_str(&weighed.stdout).unwrap();
    assert_eq!(weighed["r"], 2.0, "{weighed}");
    assert_eq!(std::fs::read_to_string(env.file("m.py")).unwrap(), text);
    assert_eq!(env.lanser(["def", "py://m#half", "--weights=-1,0,0"]).code, Some(2));
    assert_eq!(env.lanser(["def", "py://m#half", "--prev", "nothing.json"]).code, Some(3));
}

/// What a reward is computed from is in the hash of its bundle: a state that was edited afterwards is refused.
#[test]
fn an_edited_state_is_not_paid() {
    let env = TestEnv::pyright(&Project::parse(SHOP));
    let honest = bundle(&env, &["diag", "m.py"]);
    let refused = |edit: &dyn Fn(&mut Value), why: &str| {
        let mut edited = honest.clone();
        edit(&mut edited["processReward"]);
        std::fs::write(env.path("edited.json"), edited.to_string()).unwrap();
        let path = env.path("edited.json");
        let path = path.to_str().unwrap();
        let output = env.lanser(["diag", "m.py", "--prev", path]);
        assert!(output.failure(2).contains(why), "{output}");
        assert!(env.lanser(["reward", "--next", path]).failure(2).contains(why));
        assert_eq!(env.lanser_with_input(["reward", "--run", "-"], edited.to_string()).code, Some(2));
        assert_eq!(env.lanser(["schema", "validate", path]).code, Some(1), "{why}");
    };
    let file = "its diagnostics in processReward are not those that meta.measured is the digest of";
    refused(&|reward| reward["state"]["scope"]["files"][0]["counts"]["error"] = 5.into(), file);
    refused(&|reward| reward["state"]["scope"] = Value::Null, file);
    let whole = "its processReward does not match its digest";
    refused(&|reward| reward["state"]["D"] = 5.0.into(), whole);
    refused(&|reward| reward["state"]["S"] = 1.0.into(), whole);
    refused(&|reward| reward["r"] = 9.0.into(), whole);
}

/// The first paper's formula has its own names and pays for the step itself.
#[test]
fn the_first_papers_formula_has_its_own_names() {
    let env = TestEnv::pyright(&Project::parse(SHOP));
    let found = bundle(&env, &["def", "py://m#half", "--reward", "pr-v1"]);
    let reward = &found["processReward"];
    assert_eq!(
        reward["components"],
        serde_json::json!({"diag_delta": 0.0, "safety": 0.0, "ambiguity_penalty": 0.0})
    );
    assert_eq!(reward["weights"], serde_json::json!({"alpha": 0.5, "beta": 0.4, "gamma": 0.1}));
    // Nothing is ambiguous where nothing is selected.
    assert_eq!(bundle(&env, &["diag", "m.py", "--reward", "pr-v1"])["processReward"]["r"], 0.0);
    let weighed = bundle(&env, &["diag", "m.py", "--reward", "pr-v1", "--weights", "1,2,3"]);
    assert_eq!(weighed["processReward"]["weights"]["gamma"], 3.0);
    assert_eq!(env.lanser(["diag", "--reward", "pr-v1", "--weights", "1,2,3,4"]).code, Some(2));
}

/// The bundle of an edit reports its suppressions, and its guarded reward is 0.
#[test]
fn the_bundle_of_an_edit_reports_its_suppressions() {
    let env = TestEnv::pyright(&Project::parse(SHOP));
    let diff = "--- a/m.py\n+++ b/m.py\n@@ -2,4 +2,4 @@\n     return x / 2\n \n-value = half('a')\n+value = half('a')  # type: ignore\n other = half('b')\n";
    std::fs::write(env.path("hide.diff"), diff).unwrap();
    let hide = env.path("hide.diff");
    let hide = hide.to_str().unwrap();
    let raw = bundle(&env, &["check", hide]);
    let reward = &raw["processReward"];
    assert_eq!(
        (&reward["components"]["diag_delta"], &reward["integrity"]["suppressions_added"]),
        (&1.0.into(), &1.into())
    );
    assert_eq!(reward["state"]["scope"]["outstanding"][0]["reason"], "suppressed");
    let guarded = bundle(&env, &["check", hide, "--reward", "rl-csf-guarded-v1", "--weights", "0.5,0,0"]);
    assert_eq!(guarded["processReward"]["components"]["diag_delta"], 0.0);
    assert_eq!(guarded["processReward"]["r"], 0.0);
    assert_eq!(guarded["bundleId"], raw["bundleId"]);
    // A safe edit without effect gets 0, while one that repairs is rewarded for both.
    let edits = [
        ("noise.diff", "value = half('a')\n+# said\n other", 0.0),
        ("mend.diff", "value = half('a')\n-other = half('b')\n+other = half(len('b'))\n", 0.9),
    ];
    for (name, change, r) in edits {
        let rest = if change.ends_with("other") { " = half('b')\n" } else { "" };
        let (old, new) = if name == "noise.diff" { (4, 5) } else { (4, 4) };
        let diff =
            format!("--- a/m.py\n+++ b/m.py\n@@ -2,{old} +2,{new} @@\n     return x / 2\n \n {change}{rest}");
        std::fs::write(env.path(name), diff).unwrap();
        let path = env.path(name);
        let told = bundle(&env, &["check", path.to_str().unwrap(), "--reward", "rl-csf-guarded-v1"]);
        let reward = &told["processReward"];
        assert_eq!((&reward["r"], &reward["components"]["safety_delta"]), (&r.into(), &1.0.into()), "{name}");
    }
}
