//! The library API: its typed answers are those of the program, byte for byte.

use std::collections::BTreeMap;

use lanser::model::request::{Command, Direction, Options, Request};
use lanser::model::reward::Preset;
use lanser::{AbsPath, Bundle, RewardFormula, ScoreHead, StateSource, Workspace};

use crate::support::{Project, TestEnv, machine, portable};

fn open(env: &TestEnv) -> Workspace {
    let path = machine("PATH").unwrap().into_string().unwrap();
    let variables = [("PATH", path), ("HOME", env.path("home").to_str().unwrap().to_owned())];
    let variables: BTreeMap<String, String> =
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let options = Workspace::options(&env.cwd).environment(variables).cache(env.path("test-cache"));
    options.keep(false).offline(true).open().unwrap()
}

fn portable_text(bundle: &Bundle) -> String {
    portable(&serde_json::to_value(bundle).unwrap())
}

#[test]
fn the_library_answers_like_the_program() {
    let env = TestEnv::pyright(&Project::fixture("shop"));
    let workspace = open(&env);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (uses, hover, calls, found, plan, limited) = runtime.block_on(async {
        let (uses, hover) = tokio::join!(
            workspace.references("py://shop#price_of"),
            workspace.hover("src/shop/till.py:9:21"),
        );
        let calls = workspace.calls("py://shop#price_of", Direction::Incoming, 1).await;
        let found = workspace.search("price").await;
        let plan = workspace.rename("py://shop#price_of", "cost_of").await;
        let place = lanser::selector::parse("py://shop#price_of", Default::default()).unwrap();
        let options = Options { limit: Some(1), ..Options::default() };
        let limited = Request { options, ..Request::about(Command::References, place) };
        let limited = workspace.ask(limited).await;
        assert!(!workspace.report().servers.is_empty());
        workspace.close().await;
        (uses, hover, calls, found, plan, limited)
    });
    assert!(uses.facts.as_ref().unwrap().references.as_ref().unwrap().len() > 2);
    assert!(plan.edits.as_ref().unwrap().diff.contains("+def cost_of"));
    let questions: [(&Bundle, &[&str]); 6] = [
        (&uses, &["refs", "py://shop#price_of"]),
        (&hover, &["hover", "src/shop/till.py:9:21"]),
        (&calls, &["calls", "py://shop#price_of", "--incoming"]),
        (&found, &["symbols", "--query", "price"]),
        (&plan, &["rename", "py://shop#price_of", "cost_of"]),
        (&limited, &["refs", "py://shop#price_of", "--limit", "1"]),
    ];
    for (bundle, words) in questions {
        let program = env.lanser(words.iter().chain(&["--json", "--no-cache"])).bundle();
        assert_eq!(portable_text(bundle), portable(&program), "{words:?}");
    }
}

#[test]
fn the_library_records_and_replays() {
    let env = TestEnv::pyright(&Project::fixture("shop"));
    let trace = env.path("trace.jsonl");
    let path = machine("PATH").unwrap().into_string().unwrap();
    let variables = BTreeMap::from([("PATH".to_owned(), path)]);
    let options = Workspace::options(&env.cwd).environment(variables).cache(env.path("test-cache"));
    let workspace = options.keep(false).offline(true).trace(&trace).open().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let told = runtime.block_on(async {
        let told = [
            workspace.references("py://shop#price_of").await,
            workspace.hover("src/shop/till.py:9:21").await,
            workspace.locate("py://shop#nothing").await,
        ];
        workspace.close().await;
        told
    });
    std::fs::remove_dir_all(&env.cwd).unwrap();
    let mut replay = lanser::Replay::open(&trace).unwrap();
    for bundle in &told {
        let again = runtime.block_on(replay.next()).unwrap().unwrap();
        assert!(again.is_same(), "{:?}", again.unrecorded);
        assert_eq!(again.bundle.bundle_id, bundle.bundle_id);
    }
    assert!(runtime.block_on(replay.next()).unwrap().is_none() && !replay.is_truncated());
}

#[test]
fn the_library_scores_like_the_program() {
    let env = TestEnv::pyright(&Project::fixture("shop"));
    let edit = "--- /dev/null\n+++ b/src/shop/new.py\n@@ -0,0 +1 @@\n+total: int = ''\n";
    std::fs::write(env.path("new.diff"), edit).unwrap();
    let fits = env.path("new.diff");
    let fits = fits.to_str().unwrap();
    let workspace = open(&env);
    let base = StateSource::Worktree(AbsPath::new(std::fs::canonicalize(&env.cwd).unwrap()).unwrap());
    let named = [("WORKTREE", base.clone()), (fits, StateSource::Edit(edit.as_bytes().to_vec()))];
    let heads = named.map(|(name, source)| ScoreHead { name: name.to_owned(), source });
    let mut told = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tell = |episode| told.push(serde_json::to_value(&episode).unwrap());
    runtime.block_on(workspace.score(&base, &heads, &RewardFormula::of(Preset::Guarded), tell)).unwrap();
    let output = env.lanser(["score", "--json", "--base", "WORKTREE", "--head", "WORKTREE", "--head", fits]);
    let printed: Vec<serde_json::Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(printed, told);
    assert_eq!((&told[0]["reward"], &told[1]["reward"]), (&0.0.into(), &(-0.5).into()));
    assert_eq!(told[1]["steps"][0]["new"], 1);
}
