//! The same plan from a cold process, in a session after other requests, in another folder, and after apply and undo.

use serde_json::Value;

use super::{Repository, SHOP};
use crate::support::{Project, TestEnv, portable};

const PLANS: [&[&str]; 6] = [
    &["rename", "py://shop.stock#Stock.add", "put"],
    &["rename", "py://shop.stock#total", "Stock"],
    &["rename", "shop/use.py:8:25", "rows"],
    &["rename", "py://shop.stock", "shop.stocks"],
    &["rename", "py://shop.stock#Cellar.remove", "take", "--family"],
    &["actions", "shop/use.py:1:1", "--run", "Organize imports"],
];

fn plan(env: &TestEnv, args: &[&str]) -> Value {
    env.lanser(args.iter().chain(&["--json"])).bundle()
}

#[test]
fn plans_are_the_same_cold_warm_and_elsewhere() {
    let project = Project::parse(SHOP);
    let cold = Repository::new(&project);
    let warm = Repository::of(TestEnv::pyright_session(&project));
    for round in 0..2 {
        for args in PLANS {
            let told = portable(&plan(&cold.env, args));
            assert_eq!(told, portable(&plan(&warm.env, args)), "{args:?} in round {round}");
            for word in cold.env.machine_paths() {
                assert!(!told.contains(&word), "{args:?} tells {word}\n{told}");
            }
        }
        // Overlays of earlier plans do not affect later answers.
        for question in
            [["refs", "py://shop.stock#Stock.add"], ["hover", "py://shop.stock#total"], ["diag", "shop"]]
        {
            assert_eq!(
                portable(&plan(&cold.env, &question)),
                portable(&plan(&warm.env, &question)),
                "{question:?}"
            );
        }
    }
    // A session notices its own writes.
    warm.env.lanser(["rename", "py://shop.stock#Stock.add", "put", "--apply"]).text();
    warm.env.lanser(["refs", "py://shop.stock#Stock.put"]).text();
    // The commit still has the old name.
    let refs = warm.env.lanser(["refs", "py://shop.stock#Stock.add", "--json"]).answer();
    assert_eq!(refs["resolution"]["resolved"]["qualname"], "shop.stock:Stock.put", "{refs}");
    warm.env.lanser(["undo"]).text();
    assert_eq!(portable(&plan(&cold.env, PLANS[0])), portable(&plan(&warm.env, PLANS[0])));
}

/// Applies and undoes in a session and in a process, with requests in between: a session must see each state of the files as if
/// it were the only one.
#[test]
fn a_session_answers_from_the_written_files() {
    let project = Project::parse(SHOP);
    let cold = Repository::of(TestEnv::pyright(&project));
    let warm = Repository::of(TestEnv::pyright_session(&project));
    let zero = serde_json::json!({"line": 0, "character": 0});
    let moves = serde_json::json!({"documentChanges": [
        {"kind": "rename", "oldUri": "shop/use.py", "newUri": "shop/used.py"},
        {"kind": "create", "uri": "shop/till.py"},
        {"textDocument": {"uri": "shop/till.py", "version": null}, "edits": [
            {"range": {"start": zero, "end": zero}, "newText": "from shop.used import run\nprint(run())\n"},
        ]},
        {"textDocument": {"uri": "shop/__init__.py", "version": null}, "edits": [
            {"range": {"start": zero, "end": zero}, "newText": "from shop.till import run\n"},
        ]},
    ]})
    .to_string();
    let gone =
        serde_json::json!({"documentChanges": [{"kind": "delete", "uri": "shop/till.py"}]}).to_string();
    let steps: [(&[&str], &str); 5] = [
        (&["rename", "py://shop.stock#Stock.add", "put"], ""),
        (&["undo"], ""),
        (&["apply", "-"], &moves),
        (&["apply", "-"], &gone),
        (&["undo"], ""),
    ];
    let questions: [&[&str]; 5] = [
        &["refs", "py://shop.stock#total"],
        &["def", "shop/__init__.py:1:6"],
        &["diag"],
        &["symbols", "--query", "run"],
        &["rename", "shop/stock.py:1:1", "MOST"],
    ];
    let (mut trees, mut warm_answers) = (Vec::new(), 0);
    for (args, input) in steps {
        for repository in [&cold, &warm] {
            let args: Vec<&str> = match args[0] {
                "undo" => args.to_vec(),
                _ => [args, &["--apply", "--allow-new-diagnostics", "--allow-dirty"]].concat(),
            };
            repository.env.lanser_with_input(&args, input).text();
        }
        assert_eq!(cold.tree(), warm.tree(), "{args:?}");
        trees.push(cold.tree());
        for question in questions {
            let answer = plan(&warm.env, question);
            warm_answers += usize::from(answer["meta"]["volatile"]["served_from"] == "warm_server");
            let told = portable(&answer);
            assert_eq!(told, portable(&plan(&cold.env, question)), "{question:?} after {args:?}");
        }
    }
    trees.sort();
    trees.dedup();
    assert_eq!(trees.len(), 4, "every step but taking one back makes another tree");
    assert!(warm_answers > 10, "{warm_answers} answers came from a server that knew another tree");
}
