//! A git repository whose files are damaged: its history is read by libgit2, in this process.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use git2::{ObjectType, Repository, Signature};
use lanser::internal::path::{AbsPath, WorkspacePath};
use lanser::internal::tape::Tape;
use lanser::internal::workspace::history::{RevisionFiles, commit_id, ignore_filter, visit_recent};

use super::Seeds;
use crate::Random;
use crate::inputs::{damaged, text};

/// The files of a small `.git`: two commits, one of them packed.
static TEMPLATE: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();

fn template() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repository = Repository::init(folder.path()).expect("a repository");
    let who = Signature::new("a", "a@example.org", &git2::Time::new(1, 0)).expect("a name");
    let mut parent: Option<git2::Oid> = None;
    for number in 0..2 {
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        write("a.py", &format!("def f(): return {number}\n"));
        write(&format!("pkg/b{number}.py"), &"x = 1\n".repeat(30));
        write(".gitignore", "*.log\n!keep.log\n/build/\n");
        let mut index = repository.index().expect("an index");
        index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).expect("files");
        index.write().expect("an index");
        let tree = repository.find_tree(index.write_tree().expect("a tree")).expect("a tree");
        let parents: Vec<_> =
            parent.into_iter().map(|id| repository.find_commit(id).expect("a commit")).collect();
        let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
        parent = Some(repository.commit(Some("HEAD"), &who, &who, "m", &tree, &parents).expect("a commit"));
        if number == 0 {
            let mut pack = repository.packbuilder().expect("a pack");
            pack.insert_commit(parent.expect("a commit")).expect("a commit");
            pack.insert_tree(tree.id()).expect("a tree");
            for entry in &tree {
                pack.insert_object(entry.id(), None).expect("an object");
            }
            pack.write(&folder.path().join(".git/objects/pack"), 0).expect("a pack");
            for entry in tree.iter().filter(|entry| entry.kind() == Some(ObjectType::Blob)) {
                let id = entry.id().to_string();
                let _ =
                    std::fs::remove_file(folder.path().join(".git/objects").join(&id[..2]).join(&id[2..]));
            }
        }
    }
    let mut files = Vec::new();
    read(folder.path(), folder.path(), &mut files);
    files.retain(|(path, _)| !path.starts_with(".git/hooks"));
    files
}

fn read(top: &Path, folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).expect("a folder").flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            read(top, &path, files);
        } else {
            let name = path.strip_prefix(top).expect("a path below the folder").to_owned();
            files.push((name, std::fs::read(&path).expect("a file")));
        }
    }
}

/// Reading the history of a damaged repository ends, with an answer or an error.
pub(super) fn repository(random: &mut Random, _: &Seeds) {
    let files = TEMPLATE.get_or_init(template);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let victims = [random.below(files.len()), random.below(files.len())];
    for (number, (name, bytes)) in files.iter().enumerate() {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let bytes = if victims.contains(&number) { damaged(random, bytes) } else { bytes.clone() };
        std::fs::write(path, bytes).expect("a file");
    }
    for empty in ["refs/heads", "refs/tags", "objects/info"] {
        std::fs::create_dir_all(folder.path().join(".git").join(empty)).expect("a folder");
    }
    if random.below(2) == 0 {
        damage_objects(random, folder.path());
    }
    let root = AbsPath::new(folder.path().canonicalize().expect("a folder")).expect("an absolute path");
    let path = |text: &str| WorkspacePath::new(text).expect("a workspace path");
    if let Some(ignores) = ignore_filter(&root) {
        for name in ["a.py", "x.log", "keep.log", "build/a.py", "pkg/b1.py"] {
            let _ = ignores(&path(name));
        }
    }
    let odd = text(random, 8);
    for revision in ["HEAD", "HEAD~1", "HEAD^{tree}", "master@{1}", ":/m", odd.as_str()] {
        let _ = commit_id(&root, revision);
        let Ok(files) = RevisionFiles::at(&root, revision, &Tape::off()) else { continue };
        for file in files.python_files() {
            let _ = files.read(&file);
        }
        let _ = files.list("pkg");
        let _ = files.is_folder("pkg");
        let _ = files.files(|_| true);
    }
    visit_recent(&root, 8, |_, _| true);
}

/// Objects with well-formed containers and damaged content: trees, commits and blobs that `HEAD` leads to.
fn damage_objects(random: &mut Random, folder: &Path) -> Option<()> {
    let repository = Repository::open(folder).ok()?;
    let odb = repository.odb().ok()?;
    let head = repository.head().ok()?.peel_to_commit().ok()?;
    let tree = odb.read(head.tree_id()).ok()?;
    let mut content = tree.data().to_vec();
    for (name, hostile) in
        [("a.py", ".."), ("a.py", ".git"), ("pkg", "a/b"), ("a.py", ""), ("100644", "120000")]
    {
        if random.below(4) == 0
            && let Some(at) = content.windows(name.len()).position(|part| part == name.as_bytes())
        {
            content.splice(at..at + name.len(), hostile.bytes());
        }
    }
    let tree = odb.write(ObjectType::Tree, &damaged(random, &content)).ok()?;
    let commit = odb.read(head.id()).ok()?;
    let commit =
        String::from_utf8_lossy(commit.data()).replace(&head.tree_id().to_string(), &tree.to_string());
    let commit = odb.write(ObjectType::Commit, &damaged(random, commit.as_bytes())).ok()?;
    std::fs::write(folder.join(".git/HEAD"), format!("{commit}\n")).ok()
}
