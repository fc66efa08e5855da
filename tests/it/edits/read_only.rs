//! Read-only commands write nothing: every folder of the workspace and of git is watched by the kernel during the runs.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use serde_json::json;

use super::{Repository, SHOP};
use crate::support::{Project, TestEnv};

/// Watches a folder tree for changes.
struct Watch {
    events: OwnedFd,
    folders: BTreeMap<i32, PathBuf>,
}

impl Watch {
    fn over(root: &Path) -> Self {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let mut watch = Self { events, folders: BTreeMap::new() };
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            let what = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE_SELF
                | WatchFlags::CLOSE_WRITE;
            watch.folders.insert(inotify::add_watch(&watch.events, &folder, what).unwrap(), folder.clone());
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                }
            }
        }
        watch
    }

    /// The changes since the last call.
    fn seen(&self) -> Vec<String> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.events, &mut buffer);
        let mut seen = Vec::new();
        loop {
            match reader.next() {
                Ok(event) => {
                    let folder = self.folders.get(&event.wd()).cloned().unwrap_or_default();
                    let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
                    let path = folder.join(name.unwrap_or_default());
                    seen.push(format!("{:?} {}", event.events(), path.display()));
                }
                Err(rustix::io::Errno::AGAIN) => return seen,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn read_only_commands_write_nothing() {
    let zero = json!({"line": 0, "character": 0});
    let edit = json!({"documentChanges": [
        {"kind": "rename", "oldUri": "shop/use.py", "newUri": "shop/used/here.py"},
        {"kind": "create", "uri": "new.py"},
        {"kind": "delete", "uri": "README.md"},
        {"textDocument": {"uri": "shop/stock.py", "version": null},
         "edits": [{"range": {"start": zero, "end": zero}, "newText": "x: int = ''\n"}]},
    ]})
    .to_string();
    let patch = "--- a/shop/use.py\n+++ b/shop/use.py\n@@ -1,2 +1,2 @@\n-import shop\n+import shop as shop\n from shop import Stock\n";
    let questions: [(&[&str], &str); 9] = [
        (&["check", "-"], &edit),
        (&["check", "-"], patch),
        (&["apply", "-"], &edit),
        (&["apply", "-", "--strategy", "3way"], patch),
        (&["rename", "py://shop.stock#Stock.add", "put"], ""),
        (&["rename", "py://shop.stock#total", "Stock"], ""),
        (&["actions", "shop/use.py:1:1"], ""),
        (&["actions", "shop/use.py:1:1", "--run", "Organize imports"], ""),
        (&["undo", "--list"], ""),
    ];
    let project = Project::parse(SHOP);
    for env in [TestEnv::pyright_session(&project), TestEnv::pyright(&project)] {
        let repository = Repository::of(env);
        // A file whose metadata changed, and one whose content did: git would like to refresh its index.
        repository.env.write("README.md", "Use `add` to add.\n");
        repository.env.write("notes.txt", "mine");
        let watch = Watch::over(&repository.env.cwd);
        repository.env.write("notes.txt", "mine!");
        assert!(watch.seen().iter().any(|event| event.ends_with("notes.txt")), "the watch sees nothing");
        for (args, input) in questions {
            let output = repository.env.lanser_with_input(args.iter().chain(&["--json"]), input);
            let _ = output.bundle();
            assert_eq!(watch.seen(), [""; 0], "{args:?}");
        }
        // A refused write leaves nothing either.
        let args = ["rename", "py://shop.stock#total", "Stock", "--apply", "--json"];
        let _ = repository.env.lanser(args).bundle();
        assert_eq!(watch.seen(), [""; 0]);
    }
}
