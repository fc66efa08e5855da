//! One answer whatever the road: cold, in a session that was asked other things before, in another folder, after an apply and
//! an undo.

use serde_json::Value;

use super::{Repository, SHOP};
use crate::support::{Project, TestEnv, portable};

const PLANS: [&[&str]; 4] = [
    &["rename", "py://shop.stock#Stock.add", "put"],
    &["rename", "py://shop.stock#total", "Stock"],
    &["rename", "shop/use.py:8:25", "rows"],
    &["actions", "shop/use.py:1:1", "--run", "Organize imports"],
];

fn plan(env: &TestEnv, args: &[&str]) -> Value {
    env.lanser(args.iter().chain(&["--json"])).bundle()
}

#[test]
fn warm_is_cold_and_anywhere() {
    let project = Project::parse(SHOP);
    let cold = Repository::new(&project);
    let warm = Repository::of(TestEnv::pyright(&project).with_sessions());
    for round in 0..2 {
        for args in PLANS {
            let told = portable(&plan(&cold.env, args));
            assert_eq!(told, portable(&plan(&warm.env, args)), "{args:?} in round {round}");
            for word in cold.env.machine_words() {
                assert!(!told.contains(&word), "{args:?} tells {word}\n{told}");
            }
        }
        // What was shown to the server is not believed afterwards.
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
    // A session learns what it wrote itself.
    warm.env.lanser(["rename", "py://shop.stock#Stock.add", "put", "--apply"]).text();
    warm.env.lanser(["refs", "py://shop.stock#Stock.put"]).text();
    let refs = warm.env.lanser(["refs", "py://shop.stock#Stock.add", "--json"]);
    refs.error(3, "E/NOT_FOUND");
    warm.env.lanser(["undo"]).text();
    assert_eq!(portable(&plan(&cold.env, PLANS[0])), portable(&plan(&warm.env, PLANS[0])));
}
