use crate::support::{Output, Project, TestEnv};

const BODY: &str = "(order, rate):
    total = 0
    for item in order.items:
        total += item.price * rate
    return total
";
const REWRITTEN: &str = "(order, rate):
    return sum(item.price * rate for item in order.items if item)
";
const OTHER: &str = "(path):
    with open(path) as file:
        lines = file.readlines()
    return [line.strip() for line in lines]
";

fn git(env: &TestEnv, args: &[&str]) -> String {
    let identity = ["-c", "user.email=a@b", "-c", "user.name=a"];
    let out = env.run("git", identity.iter().chain(args));
    assert_eq!(out.code, Some(0), "{out}");
    out.stdout.trim().to_owned()
}

fn commit(env: &TestEnv, files: &[(&str, Option<&str>)]) -> String {
    for (name, text) in files {
        match text {
            Some(text) => env.write(name, text),
            None => std::fs::remove_file(env.file(name)).unwrap(),
        }
    }
    git(env, &["add", "-A"]);
    git(env, &["commit", "-qm", "x"]);
    git(env, &["rev-parse", "HEAD"])
}

/// A function that one commit renamed, the next rewrote, and the last moved. Returns the commits.
fn renamed_rewritten_and_moved() -> (TestEnv, Vec<String>) {
    let env = TestEnv::ty(&Project::parse("\n//- /setup.py\n"));
    git(&env, &["init", "-q"]);
    let with = |function: &str| format!("{function}\n\ndef read{OTHER}");
    let commits = vec![
        commit(&env, &[("a.py", Some(&with(&format!("def price{BODY}"))))]),
        commit(&env, &[("a.py", Some(&with(&format!("def cost{BODY}"))))]),
        commit(&env, &[("a.py", Some(&with(&format!("def cost{REWRITTEN}"))))]),
        commit(
            &env,
            &[
                ("a.py", Some(&format!("def read{OTHER}"))),
                ("b.py", Some(&format!("import os\n\n\ndef cost{REWRITTEN}"))),
            ],
        ),
    ];
    (env, commits)
}

fn locate(env: &TestEnv, selector: &str) -> Output {
    env.lanser(["locate", selector, "--json"])
}

#[test]
fn the_commits_between_lead_to_a_target_that_the_two_ends_do_not_show() {
    let (env, commits) = renamed_rewritten_and_moved();
    let old = &commits[0];
    for selector in ["a.py@L1:C5", "py://a#price", "ast://[module=a]/[def=price]"] {
        let bundle = locate(&env, &format!("{selector}?v=git:{old}")).answer();
        let resolved = &bundle["resolution"]["resolved"];
        let relocation = &resolved["relocation"];
        assert_eq!(resolved["uri"], "b.py", "{selector}: {resolved}");
        assert_eq!(resolved["via"], "renamed");
        assert_eq!(resolved["certified"], false);
        assert_eq!(relocation["via"], "history");
        let decided = relocation["commits"].as_array().unwrap();
        let decided: Vec<_> =
            decided.iter().map(|one| (one["commit"].as_str().unwrap(), &one["via"])).collect();
        assert_eq!(decided[0], (commits[1].as_str(), &"renamed".into()));
        assert_eq!(decided[decided.len() - 1], (commits[3].as_str(), &"moved".into()));
        let scores =
            relocation["commits"].as_array().unwrap().iter().map(|one| one["score"].as_f64().unwrap());
        let product: f64 = scores.product();
        assert!((resolved["confidence"].as_f64().unwrap() - product).abs() < 0.02, "{resolved}");
    }
    // The same history in one commit.
    let tree = git(&env, &["rev-parse", "HEAD^{tree}"]);
    let squashed = git(&env, &["commit-tree", &tree, "-p", old, "-m", "squashed"]);
    git(&env, &["reset", "-q", "--hard", &squashed]);
    locate(&env, &format!("a.py@L1:C5?v=git:{old}")).error(3, "E/NOT_FOUND");
}

#[test]
fn a_target_that_a_merged_branch_renamed_is_followed() {
    let env = TestEnv::with(&Project::parse("\n//- /setup.py\n"));
    git(&env, &["init", "-q", "-b", "trunk"]);
    commit(&env, &[("c.py", Some("x = 1\n"))]);
    git(&env, &["checkout", "-q", "-b", "side"]);
    let states = [format!("def price{BODY}"), format!("def cost{BODY}"), format!("def cost{REWRITTEN}")];
    let commits: Vec<String> = states.iter().map(|text| commit(&env, &[("a.py", Some(text))])).collect();
    git(&env, &["checkout", "-q", "trunk"]);
    commit(&env, &[("c.py", Some("x = 2\n"))]);
    git(&env, &["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    // The first parents know the merge as one step. The commits of the branch are reached through its other parent.
    let bundle = locate(&env, &format!("py://a#price?v=git:{}", commits[0])).answer();
    let resolved = &bundle["resolution"]["resolved"];
    assert_eq!((&resolved["at"], &resolved["via"]), (&"a.py@L1:C5".into(), &"renamed".into()), "{resolved}");
    assert_eq!(resolved["relocation"]["commits"][0]["commit"], commits[1]);
}

#[test]
fn a_commit_that_removed_the_target_is_named() {
    let (env, commits) = renamed_rewritten_and_moved();
    let removal = commit(&env, &[("a.py", Some("x = 1\n"))]);
    let output = locate(&env, &format!("py://a#read?v=git:{}", commits[0]));
    output.error(3, "E/NOT_FOUND");
    let message = output.bundle()["error"]["message"].to_string();
    assert!(message.contains(&removal[..10]), "{message}");
    // Something with the same name that came later is not taken for it.
    commit(&env, &[("a.py", Some("class read:\n    size = 3\n"))]);
    let output = locate(&env, &format!("py://a#read?v=git:{}", commits[0]));
    assert!([Some(3), Some(4)].contains(&output.code), "{output}");
}

#[test]
fn a_line_of_a_file_that_is_gone_is_asked_for_with_its_last_commit() {
    let (env, commits) = renamed_rewritten_and_moved();
    commit(&env, &[("a.py", None)]);
    for numbers in ["a.py:1:5", "a.py@R(1,1->1,5)", "a.py:1"] {
        let error = locate(&env, numbers).error(3, "E/NOT_FOUND");
        let message = error["message"].as_str().unwrap();
        assert!(
            message
                .ends_with(&format!("there is no file a.py; the file was in commit {}", &commits[3][..10]))
        );
        let suggested = error["data"]["selectors"][0].as_str().unwrap();
        assert!(suggested.ends_with(&format!("?v=git:{}", commits[3])), "{suggested}");
        let told = locate(&env, suggested).error(3, "E/NOT_FOUND")["message"].to_string();
        assert!(told.contains("removed it"), "{told}");
    }
    // A file that never was there.
    assert!(locate(&env, "never.py:1:5").error(3, "E/NOT_FOUND")["data"].is_null());
}

#[test]
fn a_reused_name_is_not_certified() {
    let env = TestEnv::with(&Project::parse("\n//- /setup.py\n"));
    git(&env, &["init", "-q"]);
    let with = |function: &str| format!("{function}\n\ndef read{OTHER}");
    let old = commit(&env, &[("a.py", Some(&with(&format!("def price{BODY}"))))]);
    let removed = commit(&env, &[("a.py", Some(&with("")))]);
    let other = "def price(url, *, session=None):\n    with session or connect(url) as open_session:\n        return json.loads(open_session.get(url).text)['price']\n";
    commit(&env, &[("a.py", Some(&with(other)))]);
    for selector in ["a.py@L1:C5", "py://a#price", "ast://[module=a]/[def=price]"] {
        let output = locate(&env, &format!("{selector}?v=git:{old}"));
        output.error(4, "E/AMBIGUOUS");
        let reason =
            output.bundle()["resolution"]["disambiguation"][0]["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains(&removed[..10]), "{selector}: {reason}");
    }
}

/// A function that takes a name is similar to the one that had it, as functions of one name are.
#[test]
fn a_target_is_followed_past_another_definition_that_took_its_name() {
    let load = |name: &str, read: &str, check: &str| {
        format!(
            "def {name}(path, encoding='utf-8'):\n    with open(path, encoding=encoding) as stream:\n        data = {read}(stream)\n    if {check}:\n        raise ValueError('expected a mapping')\n    return data\n\n\n"
        )
    };
    let (json, yaml) = (("json.load", "not isinstance(data, dict)"), ("yaml.safe_load", "data is None"));
    let class = |name: &str| {
        format!(
            "class {name}:\n    retries = 3\n\n    def run(self, event):\n        self.log(event)\n        return self.dispatch(event.kind, event.payload)\n\n    def close(self):\n        self.loop.stop()\n\n\n"
        )
    };
    let subclass = "class Handler(Base):\n    retries = 5\n\n    def run(self, event):\n        self.log(event)\n        return super().run(event)\n\n    def close(self):\n        self.loop.stop()\n\n\n";
    let rest = format!("def read{OTHER}");
    let env = TestEnv::with(&Project::parse("\n//- /setup.py\n"));
    git(&env, &["init", "-q"]);
    let text = |parts: &[&str]| Some(parts.concat());
    let states = [
        [
            ("a.py", text(&[&load("load", json.0, json.1), &rest])),
            ("b.py", text(&[&class("Handler"), &rest])),
            ("c.py", text(&[&load("load", json.0, json.1), &rest])),
            ("d.py", None),
        ],
        [
            ("a.py", text(&[&load("load_json", json.0, json.1), &rest])),
            ("b.py", text(&[&class("Base"), &rest])),
            ("c.py", text(&[&rest])),
            ("d.py", text(&["import json\n", &load("load", json.0, json.1)])),
        ],
        [
            ("a.py", text(&[&load("load_json", json.0, json.1), &load("load", yaml.0, yaml.1), &rest])),
            ("b.py", text(&[&class("Base"), subclass, &rest])),
            ("c.py", text(&[&load("load", yaml.0, yaml.1), &rest])),
            ("d.py", text(&["import json\n", &load("load", json.0, json.1)])),
        ],
    ];
    let mut commits = states.map(|files| {
        let files = files.iter().filter(|(_, text)| text.is_some());
        commit(&env, &files.map(|(name, text)| (*name, text.as_deref())).collect::<Vec<_>>())
    });
    let old = std::mem::take(&mut commits[0]);
    for (selector, at) in [
        ("a.py@L1:C5", "a.py@L1:C5"),
        ("py://a#load", "a.py@L1:C5"),
        ("a.py@L3:C9", "a.py@L3:C9"),
        ("b.py@L1:C7", "b.py@L1:C7"),
        ("py://b#Handler.run", "b.py@L4:C9"),
        ("py://b#Handler.close", "b.py@L8:C9"),
        ("c.py@L1:C5", "d.py@L2:C5"),
    ] {
        let bundle = locate(&env, &format!("{selector}?v=git:{old}")).answer();
        let resolved = &bundle["resolution"]["resolved"];
        let found = (&resolved["at"], &resolved["certified"], &resolved["relocation"]["via"]);
        assert_eq!(found, (&at.into(), &false.into(), &"history".into()), "{selector}: {resolved}");
    }
}

#[test]
fn a_similar_definition_that_was_added_later_is_not_certified() {
    let env = TestEnv::with(&Project::parse("\n//- /setup.py\n"));
    git(&env, &["init", "-q"]);
    let parse = |lines: &str| format!("def parse(text, strict=False):\n{lines}\n\ndef read{OTHER}");
    let old = commit(
        &env,
        &[(
            "a.py",
            Some(&parse(
                "    tokens = tokenize(text)\n    tree = build(tokens, strict=strict)\n    return tree\n",
            )),
        )],
    );
    commit(&env, &[("a.py", Some(&format!("def read{OTHER}")))]);
    let new = "    lines = text.splitlines()\n    rows = convert(lines, strict=strict)\n    return rows\n";
    commit(&env, &[("a.py", Some(&parse(new)))]);
    for selector in ["a.py@L1:C5", "py://a#parse", "py://a#parse(text)"] {
        locate(&env, &format!("{selector}?v=git:{old}")).error(4, "E/AMBIGUOUS");
    }
}

/// In a folder whose name is a pattern for git; a script without a suffix.
#[test]
fn a_move_is_followed_in_any_folder_and_between_scripts() {
    for (from, to) in [("a.py", "b.py"), ("tool", "other")] {
        let env = TestEnv::with(&Project::parse("\n//- /my[proj]/setup.py\n"));
        git(&env, &["init", "-q"]);
        let script = |function: &str| Some(format!("#!/usr/bin/env python3\n{function}"));
        let with = |function: &str| script(&format!("{function}\n\ndef read{OTHER}"));
        let (from_path, to_path) = (format!("my[proj]/{from}"), format!("my[proj]/{to}"));
        let change = |before: Option<String>, after: Option<String>| {
            let files = [(from_path.as_str(), before.as_deref()), (to_path.as_str(), after.as_deref())];
            commit(&env, &files[..if after.is_some() { 2 } else { 1 }])
        };
        let first = change(with(&format!("def price{BODY}")), None);
        change(with(&format!("def cost{BODY}")), None);
        change(with(&format!("def cost{REWRITTEN}")), None);
        change(with(""), script(&format!("import os\n\n\ndef cost{REWRITTEN}")));
        let selector = format!("{from}@L2:C5?v=git:{first}");
        let output = env.lanser(["-C", "my[proj]", "locate", &selector, "--json"]);
        assert_eq!(output.answer()["resolution"]["resolved"]["at"], format!("{to}@L5:C5"), "{output}");
    }
}

#[test]
fn a_file_that_became_two_is_in_neither_with_certainty() {
    let env = TestEnv::with(&Project::parse("\n//- /setup.py\n"));
    git(&env, &["init", "-q"]);
    let text = format!("def cost{BODY}");
    let old = commit(&env, &[("a.py", Some(&text))]);
    commit(&env, &[("a.py", None), ("b.py", Some(&text)), ("old/a.py", Some(&text))]);
    let output = locate(&env, &format!("a.py@L1:C5?v=git:{old}"));
    output.error(4, "E/AMBIGUOUS");
    assert_eq!(output.bundle()["resolution"]["disambiguation"].as_array().map(Vec::len), Some(2), "{output}");
    // One of them is in a folder of the same name.
    let old = commit(&env, &[("out/v1/cfg/c.py", Some(&text))]);
    commit(&env, &[("out/v1/cfg/c.py", None), ("out/cfg/c.py", Some(&text)), ("out/all/c.py", Some(&text))]);
    let output = locate(&env, &format!("out/v1/cfg/c.py@L1:C5?v=git:{old}"));
    assert_eq!(output.answer()["resolution"]["resolved"]["at"], "out/cfg/c.py@L1:C5", "{output}");
}

/// A module became a package, with a module that has the name of a function in it.
#[test]
fn a_function_whose_name_is_a_submodule_now_is_followed_into_it() {
    let env = TestEnv::ty(&Project::parse("\n//- /setup.py\n"));
    git(&env, &["init", "-q"]);
    commit(&env, &[("checks.py", Some(&format!("def price{BODY}\n\ndef read{OTHER}")))]);
    let moved = [
        ("checks.py", None),
        ("checks/__init__.py", Some(String::new())),
        ("checks/price.py", Some(format!("import os\n\n\ndef price{BODY}"))),
        ("checks/read.py", Some(format!("def read{OTHER}"))),
    ];
    let moved: Vec<_> = moved.iter().map(|(name, text)| (*name, text.as_deref())).collect();
    std::fs::create_dir(env.file("checks")).unwrap();
    commit(&env, &moved);
    let at = |selector: &str| locate(&env, selector).answer()["resolution"]["resolved"]["at"].clone();
    assert_eq!(at("py://checks#price:def"), "checks/price.py@L4:C5");
    // No commit has another meaning of it.
    assert_eq!(at("py://checks.price#price:def"), "checks/price.py@L4:C5");
    commit(&env, &[("checks/extra.py", Some("x = 1\n"))]);
    assert_eq!(at("py://checks#extra"), "checks/extra.py@L1:C1");
    // Neither is it what a commit removed that nothing continues.
    commit(&env, &[("checks/__init__.py", Some("def later(a, b):\n    return a.first + b.second\n"))]);
    commit(&env, &[("checks/__init__.py", Some("")), ("checks/later.py", Some("z = 3\n"))]);
    assert_eq!(at("py://checks#later"), "checks/later.py@L1:C1");
}

/// The class moved, and a subclass of it has its name now, with a constructor of nearly the same parameters.
#[test]
fn methods_of_a_class_that_left_its_name_to_a_subclass_are_not_certified() {
    const PARAMETERS: &str = "self, name: str, folder: str | None = None, encoding: str | None = None)";
    const MOVED: &str = ":
        if not name:
            raise ValueError(\"'name' may not be empty.\")
        self.name, self.folder, self.prefix = name, folder, None
        self.encoding, self.entries = encoding, []
        if \".\" in name:
            raise ValueError(\"'name' may not contain a dot.\")
        if self.folder is not None and self.prefix is None:
            self.prefix = f\"/{self.folder.strip('/')}/{name}\"
        self.defaults = {}

    def record(self, entry):
        if entry in self.entries:
            raise KeyError(entry)
        self.entries.append(entry)

    def replay(self, target):
        for entry in self.entries:
            target.apply(self.prefix, entry)

    def merge(self, other):
        for key, value in other.defaults.items():
            self.defaults.setdefault(key, value)

    def written(self, path):
        with open(path, 'w') as file:
            json.dump([entry.dumped() for entry in self.entries], file)

    def __len__(self):
        return sum(1 for entry in self.entries if entry.is_open)

    @classmethod
    def read(cls, path, *, strict=False):
        made = cls(path.stem)
        for line in path.read_text().splitlines():
            if strict and not line.strip():
                raise SyntaxError(line)
            made.record(Entry.parsed(line, separator=':'))
        return made
";
    const LEFT: &str = " -> None:
        super().__init__(name, folder, encoding)
        self.group = Group()
        self.group.name = self.name
";
    let env = TestEnv::ty(&Project::parse("\n//- /setup.py\n"));
    git(&env, &["init", "-q"]);
    let whole =
        format!("from base import Root\n\n\nclass Journal(Root):\n    def __init__({PARAMETERS}{MOVED}");
    let old = commit(&env, &[("journal.py", Some(&whole))]);
    let left =
        format!("import plain\n\n\nclass Journal(plain.Journal):\n    def __init__({PARAMETERS}{LEFT}");
    commit(&env, &[("journal.py", Some(&left)), ("plain.py", Some(&whole))]);
    for selector in ["journal.py@L5:C9", "py://journal#Journal.__init__:def"] {
        let bundle = locate(&env, &format!("{selector}?v=git:{old}")).answer();
        let resolved = &bundle["resolution"]["resolved"];
        assert_eq!(resolved["certified"], false, "{resolved}");
        assert!(resolved["confidence"].as_f64().unwrap() < 0.95, "{resolved}");
    }
}

/// A name without a revision that the files do not have any more is followed from the last commit that has it.
#[test]
fn a_name_that_is_gone_is_followed_from_its_last_commit() {
    let (env, commits) = renamed_rewritten_and_moved();
    let selectors = ["a.price", "py://a#price", "ast://[module=a]/[def=price]", "a.py::price"];
    for selector in selectors {
        let bundle = locate(&env, selector).answer();
        let resolved = &bundle["resolution"]["resolved"];
        assert!(resolved["at"].as_str().unwrap().starts_with("b.py@"), "{selector}: {resolved}");
        assert_eq!((&resolved["via"], &resolved["certified"]), (&"renamed".into(), &false.into()));
        assert_eq!(resolved["relocation"]["via"], "history", "{selector}");
        let reason = resolved["relocation"]["reason"].as_str().unwrap();
        assert!(reason.contains(&commits[0][..10]) && reason.contains("cost"), "{selector}: {reason}");
        let alone = env.lanser(["locate", selector, "--json", "--no-cache"]).bundle();
        assert_eq!(alone["bundleId"], bundle["bundleId"], "{selector}");
    }
    // An edit takes names as they are.
    let refused = env.lanser(["rename", "a.price", "worth", "--json"]);
    refused.error(3, "E/NOT_FOUND");
    assert!(refused.stdout.contains("price is cost now"), "{refused}");
    let recorded = env.lanser(["locate", "a.price", "--json", "--trace-file", "trace.jsonl"]).answer();
    // What is not committed counts, too.
    env.write("b.py", format!("def fee{REWRITTEN}"));
    let resolved = locate(&env, "b.cost").answer()["resolution"]["resolved"].clone();
    assert_eq!(resolved["at"], "b.py@L1:C5", "{resolved}");
    // A name that nothing ever had, and one that a commit removed.
    let unknown = locate(&env, "a.prize");
    unknown.error(3, "E/NOT_FOUND");
    assert!(!unknown.stdout.contains("commit"), "{unknown}");
    let removed = commit(&env, &[("a.py", Some("import os\n"))]);
    let gone = locate(&env, "py://a#read");
    gone.error(3, "E/NOT_FOUND");
    assert!(gone.stdout.contains(&removed[..10]), "{gone}");

    std::fs::remove_dir_all(env.file(".git")).unwrap();
    let replayed = env.lanser(["trace", "replay", "trace.jsonl", "--verify"]);
    assert_eq!(replayed.code, Some(0), "{replayed}: {recorded}");
}

/// So is a snippet whose context is gone. Where it occurs elsewhere, that is not what was meant.
#[test]
fn a_snippet_that_is_gone_is_followed_from_its_last_commit() {
    let env = TestEnv::with(&Project::parse("\n//- /setup.py\n"));
    git(&env, &["init", "-q"]);
    let with = |function: &str| format!("{function}\n\ndef read{OTHER}");
    let old = commit(&env, &[("a.py", Some(&with(&format!("def price{BODY}"))))]);
    let made = env.lanser(["locate", "a.py:1:5", "--as", "anchor"]);
    let line = env.lanser(["locate", "a.py:2:5", "--as", "anchor"]);
    let alone = |output: &Output| {
        let text = output.stdout.trim();
        text.split(['?', '&']).filter(|part| !part.starts_with("v=")).enumerate().fold(
            String::new(),
            |all, (at, part)| {
                let between = ["", "?", "&"][at.min(2)];
                all + between + part
            },
        )
    };
    let (header, statement) = (alone(&made), alone(&line));
    assert!(header.starts_with("anchor://a.py#") && !header.contains("v="), "{header}");
    // The statement is there twice now, and the header under another name in another file.
    let now = format!("import os\n\n\ndef cost{BODY}\n\ndef other():\n    total = 0\n    return total\n");
    commit(&env, &[("a.py", Some(&format!("def read{OTHER}"))), ("b.py", Some(&now))]);
    for (selector, at) in [(&header, "b.py@R(4,"), (&statement, "b.py@R(5,5")] {
        let bundle = locate(&env, selector).answer();
        let resolved = &bundle["resolution"]["resolved"];
        assert!(resolved["at"].as_str().unwrap().starts_with(at), "{selector}: {resolved}");
        assert_eq!(
            (&resolved["certified"], &resolved["relocation"]["via"]),
            (&false.into(), &"history".into())
        );
        assert!(resolved["relocation"]["reason"].as_str().unwrap().contains(&old[..10]), "{resolved}");
    }
}

/// The commits are not among what a cached answer depends on.
#[test]
fn what_the_history_says_is_not_cached() {
    let (env, _) = renamed_rewritten_and_moved();
    let answer = || env.lanser(["refs", "a.price", "--json"]);
    assert_eq!(answer().answer()["resolution"]["resolved"]["via"], "renamed");
    git(&env, &["checkout", "-q", "--orphan", "new"]);
    git(&env, &["commit", "-qm", "all"]);
    answer().error(3, "E/NOT_FOUND");
}

#[test]
fn a_file_that_was_where_a_link_is_now() {
    let env = TestEnv::with(&Project::parse("\n//- /setup.py\n"));
    git(&env, &["init", "-q"]);
    let old = commit(&env, &[("old/a.py", Some(&format!("def price{BODY}")))]);
    git(&env, &["mv", "old", "new"]);
    std::os::unix::fs::symlink("new", env.file("old")).unwrap();
    commit(&env, &[]);
    for selector in ["old/a.py@L1:C5", "old/a.py::price", "py://old.a#price"] {
        let bundle = locate(&env, &format!("{selector}?v=git:{old}")).answer();
        assert_eq!(bundle["resolution"]["resolved"]["at"], "new/a.py@L1:C5", "{selector}");
    }
    let linked = commit(&env, &[("new/a.py", Some(&format!("import os\ndef price{BODY}")))]);
    let bundle = locate(&env, &format!("old/a.py@L2:C5?v=git:{linked}")).answer();
    assert_eq!(bundle["resolution"]["resolved"]["at"], "new/a.py@L2:C5");
}

#[test]
fn the_walk_is_the_same_cold_warm_without_a_cache_and_replayed() {
    let (env, commits) = renamed_rewritten_and_moved();
    let selector = format!("a.py@L2:C5?v=git:{}", commits[1]);
    let selectors = [selector, format!("py://a#price?v=git:{}", commits[0])];
    for selector in &selectors {
        let cold = locate(&env, selector).bundle();
        let warm = locate(&env, selector).bundle();
        let alone = env.lanser(["locate", selector, "--json", "--no-cache"]).bundle();
        let recorded = env.lanser(["locate", selector, "--json", "--trace-file", "trace.jsonl"]).bundle();
        for other in [warm, alone, recorded] {
            assert_eq!(other["bundleId"], cold["bundleId"], "{selector}");
        }
    }
    // The replay has no repository.
    std::fs::remove_dir_all(env.file(".git")).unwrap();
    let replayed = env.lanser(["trace", "replay", "trace.jsonl", "--verify"]);
    assert_eq!(replayed.code, Some(0), "{replayed}");
}

#[test]
fn a_selector_of_an_uncommitted_state_follows_transactions() {
    let env = TestEnv::with(&Project::parse("\n//- /setup.py\n"));
    env.write("a.py", format!("def price{BODY}"));
    let version = locate(&env, "py://a#price").answer()["resolution"]["resolved"]["docVersion"].clone();
    let patch = |from: &str, to: &str| {
        let lines =
            |text: &str, sign: &str| text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
        let count = |text: &str| text.lines().count();
        format!(
            "--- a/a.py\n+++ b/a.py\n@@ -1,{} +1,{} @@\n{}{}",
            count(from),
            count(to),
            lines(from, "-"),
            lines(to, "+")
        )
    };
    let steps = [format!("def price{BODY}"), format!("def cost{BODY}"), format!("def cost{REWRITTEN}")];
    for pair in steps.windows(2) {
        let output = env.lanser_with_input(["apply", "-", "--apply"], patch(&pair[0], &pair[1]));
        assert_eq!(output.code, Some(0), "{output}");
    }
    let selector = format!("py://a#price?v={}", version.as_str().unwrap());
    let bundle = locate(&env, &selector).answer();
    let resolved = &bundle["resolution"]["resolved"];
    assert_eq!((&resolved["at"], &resolved["via"]), (&"a.py@L1:C5".into(), &"renamed".into()), "{resolved}");
    assert_eq!(resolved["relocation"]["via"], "history");
    // Without the log there is one step, in which nothing is similar enough.
    let alone = TestEnv::with(&Project::parse("\n//- /setup.py\n"));
    alone.write("a.py", &steps[0]);
    locate(&alone, "py://a#price").answer();
    alone.write("a.py", &steps[2]);
    assert_ne!(locate(&alone, &selector).code, Some(0));
}

#[test]
fn a_selector_of_an_uncommitted_state_follows_transactions_and_the_commits_after_them() {
    let env = TestEnv::with(&Project::parse("\n//- /setup.py\n"));
    git(&env, &["init", "-q"]);
    let with = |function: &str| format!("{function}\n\ndef read{OTHER}");
    commit(&env, &[("a.py", Some(&with(&format!("def price{BODY}"))))]);
    let version = locate(&env, "py://a#price").answer()["resolution"]["resolved"]["docVersion"].clone();
    let patch = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-def price(order, rate):\n+def cost(order, rate):\n";
    let output = env.lanser_with_input(["apply", "-", "--apply"], patch);
    assert_eq!(output.code, Some(0), "{output}");
    let states = [format!("def cost{BODY}"), format!("def sum_up{BODY}"), format!("def sum_up{REWRITTEN}")];
    for state in &states {
        commit(&env, &[("a.py", Some(&with(state)))]);
    }
    let bundle = locate(&env, &format!("py://a#price?v={}", version.as_str().unwrap())).answer();
    let resolved = &bundle["resolution"]["resolved"];
    assert_eq!((&resolved["at"], &resolved["via"]), (&"a.py@L1:C5".into(), &"renamed".into()), "{resolved}");
    assert!(resolved["relocation"]["commits"].as_array().unwrap().len() >= 2, "{resolved}");
}

#[test]
fn a_second_definition_for_type_checkers_lowers_the_confidence() {
    let env = TestEnv::with(&Project::parse("\n//- /setup.py\n"));
    env.write(
        "a.py",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    def f(x: int) -> int: ...\nelse:\n    def f(x):\n        return x\n",
    );
    let bundle = locate(&env, "py://a#f").answer();
    let resolved = &bundle["resolution"]["resolved"];
    assert_eq!((&resolved["at"], &resolved["certified"]), (&"a.py@L4:C9".into(), &false.into()));
    assert!(resolved["relocation"]["reason"].as_str().unwrap().contains("line 6"), "{resolved}");
    env.write(
        "b.py",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    class C:\n        def m(self, x) -> int: ...\nelse:\n    class C:\n        def m(self, x):\n            return x\n",
    );
    git(&env, &["init", "-q"]);
    commit(&env, &[]);
    for selector in
        ["py://a#f?v=git:HEAD", "py://a#f(x)", "py://b#C.m", "py://b#C.m(x)", "py://b#C.m?v=git:HEAD"]
    {
        let resolved = &locate(&env, selector).answer()["resolution"]["resolved"];
        let reason = resolved["relocation"]["reason"].as_str().unwrap_or_default();
        assert!(resolved["certified"] == false && reason.contains("that runs"), "{selector}: {resolved}");
    }
}

#[test]
fn an_inner_copy_of_a_module_is_not_where_its_names_moved() {
    let env = TestEnv::with(&Project::parse("\n//- /pkg/__init__.py\n//- /pkg/v1/__init__.py\n"));
    env.write("pkg/main.py", format!("def read{OTHER}"));
    env.write("pkg/v1/main.py", format!("def calculate_price{BODY}"));
    let output = locate(&env, "py://pkg.main#calculate_price");
    output.error(4, "E/AMBIGUOUS");
    assert_eq!(output.bundle()["resolution"]["disambiguation"][0]["uri"], "pkg/v1/main.py");
}
