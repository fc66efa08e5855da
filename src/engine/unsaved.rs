//! Answers about text that is not saved: in a copy of the workspace that has it.
//!
//! A server resolves imports and enumerates files on the disk, and completeness is proved from what is on the disk. A copy gives
//! the same proofs as the workspace. If the copy cannot be equal to the workspace but for the unsaved text, the request is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;

use super::blocking::blocking;
use super::failure::{Failure, cancelled};
use super::instance::Engine;
use super::reward::{ScratchFolder, cannot_copy};
use super::settings::{Progress, Settings};
use crate::bundle::portable::PathMap;
use crate::model::bundle::Bundle;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::Request;
use crate::path::{AbsPath, WorkspacePath};
use crate::text::decode_source;
use crate::workspace::code_folders::SkippedFolders;
use crate::workspace::file_tree::{FileTree, is_server_input};
use crate::workspace::files::DiskFiles;
use crate::workspace::server_config::ServerConfig;
use crate::workspace::snapshot::{ChangeDetection, Snapshot, SnapshotScanner};

/// How often a request is repeated because files were saved meanwhile.
const MAX_ATTEMPTS: u32 = 3;

/// The unsaved texts of files.
pub type UnsavedTexts = BTreeMap<WorkspacePath, Arc<str>>;

/// Answers requests about a workspace and unsaved texts, one at a time. Keeps a server for later requests.
pub struct UnsavedWorkspace {
    settings: Arc<Settings>,
    copy: tokio::sync::Mutex<Option<WorkspaceCopy>>,
}

/// A copy of the workspace.
struct WorkspaceCopy {
    engine: Engine,
    /// Deleted on drop.
    _folder: ScratchFolder,
    content: CopyContent,
}

/// What the copy has, and the scanners that compare it with the workspace.
struct CopyContent {
    root: AbsPath,
    written: FileTree,
    /// See [`Snapshot::import_layout`]: the folders, and what decides whether there can be a copy.
    layout: BTreeSet<String>,
    /// Why the copy cannot stand for the workspace.
    refused: Option<ErrorBody>,
    original: SnapshotScanner,
    copied: SnapshotScanner,
}

impl UnsavedWorkspace {
    /// Answers for the workspace of these settings. The copy is made by the first request.
    #[must_use]
    pub fn new(settings: Arc<Settings>) -> Self {
        Self { settings, copy: tokio::sync::Mutex::new(None) }
    }

    /// Answers a request as [`Engine::run`] does, as if these texts were saved. The bundle is not stored.
    pub async fn run(
        &self,
        mut request: Request,
        texts: Arc<UnsavedTexts>,
        mut interrupted: Pin<&mut (dyn Future<Output = ()> + Send)>,
    ) -> Bundle {
        // An absolute path leads to the workspace, not to the copy.
        let paths = PathMap::new().workspace(self.settings.root.clone());
        request.map_uri(|uri| paths.absolute(uri).map_or_else(|| uri.clone(), |path| paths.uri(&path)));
        let mut copy = tokio::select! {
            copy = self.copy.lock() => copy,
            () = &mut interrupted => return self.failed(request, cancelled()),
        };
        for _ in 0..MAX_ATTEMPTS {
            if let Err(failure) = self.sync(&mut copy, &texts).await {
                return self.failed(request, failure.into_body(&PathMap::new()));
            }
            let Some(WorkspaceCopy { engine, .. }) = &*copy else { break };
            let bundle = engine.run(request.clone(), interrupted.as_mut()).await;
            match self.sync(&mut copy, &texts).await {
                Ok(false) => return bundle,
                Ok(true) => {}
                Err(failure) => return self.failed(request, failure.into_body(&PathMap::new())),
            }
        }
        let error =
            ErrorBody::new(ErrorSymbol::ContentModified, "the workspace changed while the request ran")
                .hint("repeat the request when no program writes to the workspace");
        self.failed(request, error)
    }

    /// Stops the server and removes the copy.
    pub async fn close(&self) {
        if let Some(copy) = self.copy.lock().await.take() {
            copy.engine.close().await;
        }
    }

    fn failed(&self, request: Request, error: ErrorBody) -> Bundle {
        let settings = Settings { trace: None, ..(*self.settings).clone() };
        Engine::for_one(settings).refused(request, error)
    }

    /// Makes the copy equal to the workspace with the texts; returns whether it was not.
    async fn sync(
        &self,
        copy: &mut Option<WorkspaceCopy>,
        texts: &Arc<UnsavedTexts>,
    ) -> Result<bool, Failure> {
        let WorkspaceCopy { engine, _folder, content } = match copy.take() {
            Some(copy) => copy,
            None => self.open().await?,
        };
        let (settings, texts) = (self.settings.clone(), texts.clone());
        let (content, synced) = blocking(move || {
            let mut content = content;
            let synced = content.sync(&settings, &texts);
            (content, synced)
        })
        .await?;
        *copy = Some(WorkspaceCopy { engine, _folder, content });
        synced.map_err(Failure::reported)
    }

    async fn open(&self) -> Result<WorkspaceCopy, Failure> {
        // The copy is filled when it is first used.
        let empty = Arc::new(FileTree::default());
        let (folder, root) = ScratchFolder::with_copy(&self.settings, &empty, "the workspace").await?;
        let progress: Arc<dyn Progress> = self.settings.progress.clone();
        let engine = Engine::new(Settings {
            root: root.clone(),
            copy_of: Some(self.settings.checkout()),
            environment_of: Some(self.settings.root.clone()),
            // Results about a temporary folder are not worth caching.
            keep: false,
            trace: None,
            progress,
            ..(*self.settings).clone()
        });
        let threads = self.settings.threads;
        let scanner = |root: &AbsPath, detection, skipped| {
            SnapshotScanner::new(root, None, detection, threads).reading(skipped)
        };
        let content = CopyContent {
            original: scanner(&self.settings.root, self.settings.trust, SkippedFolders::ReadTracked),
            copied: scanner(&root, ChangeDetection::Stat, SkippedFolders::Read),
            root,
            written: FileTree::default(),
            layout: BTreeSet::new(),
            refused: None,
        };
        Ok(WorkspaceCopy { engine, _folder: folder, content })
    }
}

impl CopyContent {
    /// Writes what differs; returns whether anything did. Blocking.
    fn sync(&mut self, settings: &Settings, texts: &UnsavedTexts) -> Result<bool, ErrorBody> {
        let tree = tree_with(&settings.root, texts)?;
        let original = self.original.scan();
        let layout = original.import_layout();
        if tree == self.written && *layout == self.layout {
            return self.refused.clone().map_or(Ok(false), Err);
        }
        let folders_of = |layout: &BTreeSet<String>| -> BTreeSet<String> {
            layout.iter().filter(|line| line.ends_with('/')).cloned().collect()
        };
        let folders = folders_of(layout);
        for folder in folders_of(&self.layout).difference(&folders) {
            // It is not empty if it has files now.
            let _ = std::fs::remove_dir(self.root.join(folder.trim_end_matches('/')).as_path());
        }
        for folder in &folders {
            let path = self.root.join(folder.trim_end_matches('/'));
            std::fs::create_dir_all(path.as_path()).map_err(|error| cannot_write(&error))?;
        }
        for (path, (before, after)) in self.written.difference(&tree) {
            let at = self.root.join(path.as_str());
            let written = match (before, after) {
                (_, Some(bytes)) => std::fs::create_dir_all(at.parent().as_path())
                    .and_then(|()| std::fs::write(at.as_path(), bytes.as_slice())),
                (_, None) => {
                    std::fs::remove_file(at.as_path()).map(|()| remove_empty(&self.root, &at, &folders))
                }
            };
            written.map_err(|error| cannot_write(&error))?;
        }
        (self.written, self.layout) = (tree, layout.clone());
        self.refused = self.check(settings, &original, texts).err();
        self.refused.clone().map_or(Ok(true), Err)
    }

    /// Refuses a copy that differs from the workspace in more than the texts.
    fn check(
        &mut self,
        settings: &Settings,
        original: &Snapshot,
        texts: &UnsavedTexts,
    ) -> Result<(), ErrorBody> {
        let copied = self.copied.scan();
        let is_input = |path: &&WorkspacePath| {
            texts.get(*path).is_none_or(|text| is_server_input(path, text.as_bytes()))
        };
        let expected: BTreeSet<&WorkspacePath> =
            original.files().keys().chain(texts.keys()).filter(is_input).collect();
        if !expected.iter().copied().eq(copied.files().keys()) {
            let differs = expected.iter().copied().find(|path| !copied.files().contains_key(path));
            let what = differs
                .map_or_else(|| "its files".to_owned(), |path| format!("{path}, which is a link or hidden"));
            return Err(not_copied(&what));
        }
        // A new file may be in a folder that had none.
        let other = |line: &&String| !line.ends_with('/');
        let layouts = [original, &*copied]
            .map(|snapshot| snapshot.import_layout().iter().filter(other).collect::<Vec<_>>());
        if layouts[0] != layouts[1] {
            return Err(not_copied("links or compiled modules"));
        }
        if !original.unreadable().is_empty() {
            return Err(not_copied("files that cannot be read"));
        }
        let files = DiskFiles::new();
        let config = ServerConfig::read(&files, &settings.root, settings.server);
        if config.files != ServerConfig::read(&files, &self.root, settings.server).files {
            return Err(not_copied("configuration files outside of it"));
        }
        let environments = config.execution_environments.iter();
        let mut folders = environments
            .flat_map(|one| std::iter::once(&one.root).chain(one.extra_paths.iter().flatten()))
            .chain(config.extra_paths.iter().flatten())
            .chain(&config.stub_path)
            .chain(&config.typeshed_path);
        if folders.any(|folder| folder.strip_prefix(&settings.root).is_none()) {
            return Err(not_copied("a configuration that refers to folders outside of it"));
        }
        Ok(())
    }
}

/// The files of the workspace with the texts.
fn tree_with(root: &AbsPath, texts: &UnsavedTexts) -> Result<FileTree, ErrorBody> {
    let mut tree = FileTree::of_checkout(root);
    for (path, text) in texts {
        let bytes = text.as_bytes().to_vec();
        if decode_source(bytes.clone()).text != **text {
            let message = format!("{path} has unsaved text and declares an encoding other than UTF-8");
            return Err(ErrorBody::new(ErrorSymbol::UnsupportedCap, message).hint("save the file"));
        }
        // A script whose unsaved text is none is no input.
        match is_server_input(path, &bytes) {
            true => drop(tree.files.insert(path.clone(), Arc::new(bytes))),
            false => drop(tree.files.remove(path)),
        }
    }
    Ok(tree)
}

/// Removes the folders that a removed file leaves empty.
fn remove_empty(root: &AbsPath, file: &AbsPath, kept: &BTreeSet<String>) {
    let mut folder = file.parent();
    while let Some(inside) = folder.strip_prefix(root)
        && !inside.is_empty()
        && !kept.contains(&format!("{inside}/"))
        && std::fs::remove_dir(folder.as_path()).is_ok()
    {
        folder = folder.parent();
    }
}

fn cannot_write(error: &std::io::Error) -> ErrorBody {
    cannot_copy("the workspace", error)
}

fn not_copied(what: &str) -> ErrorBody {
    let message = format!("unsaved text cannot be analyzed in this workspace: it has {what}");
    ErrorBody::new(ErrorSymbol::UnsupportedCap, message).hint("save the files that are open")
}
