//! Targets that take edits: diffs, the `WorkspaceEdit` of a server, and the journals of transactions.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lanser::ColumnUnit;
use lanser::internal::digest::Digest;
use lanser::internal::edit::patch::{self, FilePatch};
use lanser::internal::edit::plan::{Base, EditPlan, Original, PlannedChange, Planner};
use lanser::internal::edit::preview;
use lanser::internal::path::{AbsPath, WorkspacePath};
use lanser::internal::workspace::transaction::{Change, Label, Policy, Transactions};
use lanser::model::edits::WorkspaceEdit;
use serde_json::json;

use super::{Seeds, pick};
use crate::Random;
use crate::inputs::{changed, damaged, file, mutated};

/// Strings that mean something in a path, a URI or a journal.
const HOSTILE_WORDS: [&str; 19] = [
    "..",
    "../bystander",
    "/",
    "/etc/passwd",
    ".git",
    ".git/config",
    ".GIT/hooks/x",
    "git~1/x",
    "link",
    "link/bystander",
    "b",
    "b/c.py",
    "a.py",
    "a.py/x",
    "",
    "file:///w/a.py",
    "file:///w/%2e%2e/bystander",
    "file:///w/b%00.py",
    "file:///w/new/d.py",
];

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::new(text).expect("a workspace path")
}

/// A diff of two texts gives the second one when it is applied to the first. A mutated diff stays within its size, and what applies
/// keeps the lines that no hunk names.
pub(super) fn diff(random: &mut Random, seeds: &Seeds) {
    let before = match random.below(6) {
        0 => String::new(),
        _ => file(random, &seeds.sources),
    };
    let after = mutated(random, &before);
    let original = Original { bytes: before.clone().into_bytes(), executable: random.below(8) == 0 };
    let change =
        PlannedChange::of_one(path("a.py"), None, None).between(Arc::new(original), after.into_bytes());
    let printed = preview::diff(&EditPlan::of(vec![change.clone()]));
    if !is_binary(&printed) && change.before.as_ref().map(|original| &original.bytes) != change.after.as_ref()
    {
        let patches = patch::parse(printed.as_bytes()).expect("a diff that lanser wrote");
        let applied = patch::apply(before.as_bytes(), &patches[0]).expect("a diff of this content");
        assert_eq!(Some(applied.content), change.after, "{printed}");
        assert!(applied.notes.is_empty(), "{:?}", applied.notes);
    }
    let seed = if random.below(4) == 0 { pick(random, &seeds.diffs, &printed) } else { printed };
    let bytes = match random.below(2) {
        0 => mutated(random, &seed).into_bytes(),
        _ => damaged(random, seed.as_bytes()),
    };
    let patches: Vec<FilePatch> = patch::parse(&bytes).into_iter().flatten().collect();
    for patch in &patches {
        let hunks = patch.hunks.iter();
        let lines: usize = hunks.map(|hunk| hunk.before().count() + hunk.after().count()).sum();
        assert!(lines <= 2 * bytes.len());
        if let Ok(applied) = patch::apply(before.as_bytes(), patch) {
            assert!(applied.content.len() <= before.len() + bytes.len());
        }
    }
    check_plan(|planner| planner.patches(&patches).is_ok());
}

/// The edit of a server names files inside the workspace only, or is refused.
pub(super) fn workspace_edit(random: &mut Random, _: &Seeds) {
    let edit = |line: usize, text: &str| {
        json!({
            "range": {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 3}},
            "newText": text,
        })
    };
    let seed = json!({
        "changes": {"file:///w/a.py": [edit(0, "one"), edit(2, "three\n")], "file:///w/b/c.py": [edit(1, "é")]},
        "documentChanges": [
            {"textDocument": {"uri": "file:///w/a.py", "version": 3}, "edits": [edit(0, "x"), edit(1, "y")]},
            {"kind": "create", "uri": "file:///w/new/d.py", "options": {"overwrite": true}},
            {"textDocument": {"uri": "file:///w/new/d.py", "version": null}, "edits": [edit(0, "z")]},
            {"kind": "rename", "oldUri": "file:///w/b/c.py", "newUri": "file:///w/e.py"},
            {"kind": "delete", "uri": "file:///w/a.py", "options": {"ignoreIfNotExists": true}},
        ],
    });
    let mut seed = seed;
    if random.below(3) == 0 {
        seed.as_object_mut().expect("an object").remove("documentChanges");
    }
    let Ok(edit) = serde_json::from_value::<WorkspaceEdit>(changed(random, &seed, &HOSTILE_WORDS)) else {
        return;
    };
    check_plan(|planner| planner.workspace_edit(&edit).is_ok());
}

/// Whether a diff has a change that is no text, which lanser prints but does not read.
fn is_binary(diff: &str) -> bool {
    diff.lines().any(|line| line == "GIT binary patch")
}

/// Plans an edit of three files in memory. The diff of the plan, applied to these files, gives the files of the plan.
fn check_plan(edit: impl FnOnce(&mut Planner<'_>) -> bool) {
    let root = AbsPath::new("/w").expect("an absolute path");
    let base = MemoryBase::default();
    let mut planner = Planner::new(&root, &base, ColumnUnit::Utf16);
    if !edit(&mut planner) {
        return;
    }
    let Ok(plan) = planner.plan() else { return };
    for path in plan.paths() {
        assert!(WorkspacePath::new(path.as_str()).is_some(), "{path}");
    }
    if plan.changes().is_empty() {
        return;
    }
    let printed = preview::diff(&plan);
    if is_binary(&printed) {
        return;
    }
    let mut again = Planner::new(&root, &base, ColumnUnit::Utf16);
    let patches = patch::parse(printed.as_bytes()).unwrap_or_else(|error| panic!("{error}: {printed}"));
    again.patches(&patches).unwrap_or_else(|error| panic!("{error}: {printed}"));
    let repeated = again.plan().expect("a plan");
    let contents = |plan: &EditPlan| -> BTreeMap<WorkspacePath, Option<Vec<u8>>> {
        let mut contents = BTreeMap::new();
        for change in plan.changes() {
            contents.extend(change.from.clone().map(|from| (from, None)));
            contents.insert(change.path.clone(), change.after.clone());
        }
        contents
    };
    assert_eq!(contents(&repeated), contents(&plan), "{printed}");
}

struct MemoryBase(BTreeMap<WorkspacePath, Arc<Original>>);

impl Default for MemoryBase {
    fn default() -> Self {
        let files = [("a.py", "1\n2 é😀\r\n3\n4"), ("b/c.py", "first\nsecond\n"), ("empty.py", "")];
        let original = |text: &str| Arc::new(Original { bytes: text.as_bytes().to_vec(), executable: false });
        Self(files.map(|(name, text)| (path(name), original(text))).into())
    }
}

impl Base for MemoryBase {
    fn resolve(&self, path: &WorkspacePath) -> Result<WorkspacePath, String> {
        Ok(path.clone())
    }

    fn file(&self, path: &WorkspacePath) -> Result<Option<Arc<Original>>, String> {
        Ok(self.0.get(path).cloned())
    }

    fn is_folder(&self, path: &WorkspacePath) -> bool {
        self.0.keys().any(|file| file.as_str().starts_with(&format!("{path}/")))
    }
}

/// A journal with any content writes nothing outside of its worktree.
pub(super) fn journal(random: &mut Random, _: &Seeds) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| {
        AbsPath::new(folder.path().canonicalize().expect("a folder").join(name)).expect("an absolute path")
    };
    let (root, state, bystander) = (at("work"), at("state"), at("bystander"));
    std::fs::create_dir(root.as_path()).expect("a folder");
    std::fs::write(root.join("a.py").as_path(), "1").expect("a file");
    std::fs::write(bystander.as_path(), "1").expect("a file");
    let transactions = Transactions::new(&root, &state);
    let path = |text: &str| WorkspacePath::new(text).expect("a workspace path");
    let change = |name: &str, before: Option<&str>| Change::Write {
        path: path(name),
        before: before.map(|text| Digest::of(text.as_bytes())),
        content: b"2".to_vec(),
        executable: None,
    };
    let plan = transactions.plan(vec![change("a.py", Some("1")), change("b/c.py", None)], Policy::default());
    let label = Label { what: "fuzz".to_owned(), time: 1 };
    let applied = plan.expect("a plan").stage(&label).expect("a place").apply().expect("files");
    // The journal of a killed process, or the one that stays for `undo`.
    let interrupted: Vec<_> = walk(state.as_path())
        .into_iter()
        .filter(|file| file.file_name().is_some_and(|name| name == "journal"))
        .map(|file| (std::fs::read(&file).expect("a journal"), file))
        .collect();
    drop(applied.commit());
    if random.below(2) == 0 {
        for (bytes, file) in interrupted {
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(&file, bytes).expect("a file");
        }
    }
    for file in walk(state.as_path()) {
        if file.file_name().is_some_and(|name| name == "journal") {
            let whole = std::fs::read(&file).expect("a journal");
            let json = damaged(random, whole.get(65..).unwrap_or_default());
            let mut bytes = format!("{}\n", Digest::of(&json).to_hex()).into_bytes();
            bytes.extend(json);
            std::fs::write(&file, bytes).expect("a file");
        }
    }
    let _ = transactions.recover();
    let _ = transactions.undo(None, &label, Policy::default());
    assert_eq!(std::fs::read(bystander.as_path()).expect("a file"), b"1");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 3);
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| if entry.path().is_dir() { walk(&entry.path()) } else { vec![entry.path()] })
        .collect()
}
